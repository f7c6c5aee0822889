import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.tools.CacheAdmin;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.hdfs.tools.DFSHAAdmin;
import org.apache.hadoop.hdfs.tools.DFSck;
import org.apache.hadoop.hdfs.tools.ECAdmin;
import org.apache.hadoop.hdfs.tools.GetGroups;
import org.apache.hadoop.hdfs.tools.offlineEditsViewer.OfflineEditsViewer;
import org.apache.hadoop.hdfs.tools.offlineImageViewer.OfflineImageViewerPB;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.ExitUtil;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * A persistent Hadoop client. Each line of standard input is one command: a user ("-" for that of the process) and the
 * words of the command, separated by blanks, each URL-encoded. The answer is one line "#RESULT exit outBytes errBytes"
 * and then these bytes. What Hadoop logs goes to the standard error of the process.
 */
public final class Driver {
  private static final Map<String, UserGroupInformation> USERS = new HashMap<>();

  private Driver() {}

  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    PrintStream log = System.err;
    ExitUtil.disableSystemExit();
    Configuration conf = new HdfsConfiguration();
    org.slf4j.LoggerFactory.getLogger(Driver.class).debug("bind the console before System.err is swapped");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      List<String> words = new ArrayList<>();
      for (String word : line.split(" ", -1)) {
        words.add(URLDecoder.decode(word, StandardCharsets.UTF_8));
      }
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      ByteArrayOutputStream err = new ByteArrayOutputStream();
      System.setOut(new PrintStream(out, true, "UTF-8"));
      System.setErr(new PrintStream(err, true, "UTF-8"));
      int exit;
      try {
        exit = as(words.get(0), () -> run(conf, words.subList(1, words.size())));
      } catch (ExitUtil.ExitException e) {
        exit = e.status;
      } catch (Throwable e) {
        StringWriter trace = new StringWriter();
        e.printStackTrace(new PrintWriter(trace));
        System.err.print(trace);
        exit = 255;
      }
      System.out.flush();
      System.err.flush();
      System.setOut(answers);
      System.setErr(log);
      answers.print("#RESULT " + exit + " " + out.size() + " " + err.size() + "\n");
      out.writeTo(answers);
      err.writeTo(answers);
      answers.flush();
    }
    // client threads of unfinished writers would keep the process
    Runtime.getRuntime().halt(0);
  }

  private static int as(String user, PrivilegedExceptionAction<Integer> action) throws Exception {
    if (user.equals("-")) {
      return action.run();
    }
    // one login object a user: it is the key of Hadoop's cache of file systems
    return USERS.computeIfAbsent(user, UserGroupInformation::createRemoteUser).doAs(action);
  }

  private static int run(Configuration conf, List<String> words) throws Exception {
    String[] args = words.subList(1, words.size()).toArray(new String[0]);
    switch (words.get(0)) {
      case "dfs":
        return tool(new FsShell(conf), conf, args);
      case "dfsadmin":
        return tool(new DFSAdmin(conf), conf, args);
      case "fsck":
        return tool(new DFSck(conf, System.out), conf, args);
      case "cacheadmin":
        return tool(new CacheAdmin(conf), conf, args);
      case "ec":
        return tool(new ECAdmin(conf), conf, args);
      case "haadmin":
        return tool(new DFSHAAdmin(), conf, args);
      case "groups":
        return tool(new GetGroups(conf, System.out), conf, args);
      case "oev":
        return tool(new OfflineEditsViewer(), conf, args);
      case "oiv":
        return OfflineImageViewerPB.run(args);
      case "api":
        return new Calls(conf).run(args[0], Arrays.copyOfRange(args, 1, args.length));
      case "load":
        return Load.run(conf, args[0], Arrays.copyOfRange(args, 1, args.length));
      default:
        System.err.println("no such command: " + words.get(0));
        return 254;
    }
  }

  private static int tool(Tool tool, Configuration conf, String[] args) throws Exception {
    return ToolRunner.run(conf, tool, args);
  }
}
