import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.util.ToolRunner;

/** One short life of all roles in one JVM: the run from which a class-data archive is recorded. */
final class Warm {
  private Warm() {}

  /** args: an empty directory */
  public static void main(String[] args) {
    int exit = 1;
    try {
      exit = live(new File(args[0]));
    } catch (Throwable e) {
      e.printStackTrace();
    }
    System.exit(exit); // threads of servers are left
  }

  private static int live(File work) throws Exception {
    Class.forName("Driver");
    Class.forName("Calls");
    Class.forName("Supervised");
    DefaultMetricsSystem.setMiniClusterMode(true); // the format and the start are of one process here
    Configuration conf = new HdfsConfiguration();
    conf.set("dfs.namenode.name.dir", "file://" + work + "/name");
    conf.set("dfs.datanode.data.dir", "file://" + work + "/data");
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:0");
    for (String key : new String[] {"dfs.namenode.http-address", "dfs.datanode.address", "dfs.datanode.http.address",
        "dfs.datanode.ipc.address"}) {
      conf.set(key, "127.0.0.1:0");
    }
    conf.set("dfs.datanode.hostname", "127.0.0.1");
    conf.set("dfs.namenode.safemode.extension", "0");
    conf.set("dfs.replication", "1");
    NameNode.format(conf);
    NameNode nameNode = NameNode.createNameNode(new String[0], conf);
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:" + nameNode.getNameNodeAddress().getPort());
    DataNode dataNode = DataNode.createDataNode(new String[0], conf);
    for (int i = 0; i < 100 && nameNode.getNamesystem().getNumLiveDataNodes() == 0; i++) {
      Thread.sleep(100);
    }
    String jar = Warm.class.getProtectionDomain().getCodeSource().getLocation().getPath();
    int failed = 0;
    for (String line : new String[] {"-mkdir -p /a/b", "-put " + jar + " /a/f", "-cat /a/f", "-ls -R /", "-checksum /a/f",
        "-mv /a/f /a/g", "-rm -r -skipTrash /a"}) {
      failed += ToolRunner.run(conf, new FsShell(), line.split(" "));
    }
    failed += ToolRunner.run(conf, new DFSAdmin(), new String[] {"-report"});
    dataNode.shutdown();
    nameNode.stop();
    return failed == 0 ? 0 : 1;
  }
}
