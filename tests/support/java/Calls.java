import java.io.InputStream;
import java.io.OutputStream;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.security.UserGroupInformation;

/** Calls of the Java API that the shell does not offer. Each prints its answer. */
final class Calls {
  private static final Map<String, CompletableFuture<String>> WRITERS = new HashMap<>();
  private final Configuration conf;

  Calls(Configuration conf) {
    this.conf = conf;
  }

  int run(String call, String[] args) throws Exception {
    switch (call) {
      case "tree":
        tree(fileSystem(), new Path(args[0]));
        return 0;
      case "blocks":
        blocks(fileSystem(), args[0]);
        return 0;
      case "cached": // for each block, how many hosts have it in memory
        for (BlockLocation block : fileSystem().getFileBlockLocations(new Path(args[0]), 0, Long.MAX_VALUE)) {
          System.out.println(block.getCachedHosts().length);
        }
        return 0;
      case "datanodes": // transfer address and free bytes of each live one
        for (DatanodeInfo node : fileSystem().getDataNodeStats(HdfsConstants.DatanodeReportType.LIVE)) {
          System.out.println(node.getXferAddr() + "\t" + node.getRemaining());
        }
        return 0;
      case "digest":
        System.out.println(digest(fileSystem(), new Path(args[0])));
        return 0;
      case "write": // path, bytes, seed
        System.out.println(write(fileSystem(), new Path(args[0]), Long.parseLong(args[1]), Long.parseLong(args[2]), 1 << 16, 0));
        return 0;
      case "append": // path, bytes, seed; answers the digest of the whole file
        append(fileSystem(), new Path(args[0]), Integer.parseInt(args[1]), Long.parseLong(args[2]));
        System.out.println(digest(fileSystem(), new Path(args[0])));
        return 0;
      case "recover": // path of a file whose writer is gone: waits until it is closed
        recover(fileSystem(), new Path(args[0]));
        return 0;
      case "write-slowly": // name of the writer, path, bytes, seed, bytes a step, milliseconds between steps
        writeSlowly(args);
        return 0;
      case "join": // name of the writer: waits for its end
        System.out.println(WRITERS.remove(args[0]).get());
        return 0;
      default:
        System.err.println("no such call: " + call);
        return 254;
    }
  }

  private DistributedFileSystem fileSystem() throws Exception {
    return (DistributedFileSystem) new Path("/").getFileSystem(conf);
  }

  /** One line an inode with all that a client can ask, depth first in the order of names. */
  static void tree(DistributedFileSystem fs, Path path) throws Exception {
    HdfsFileStatus status = (HdfsFileStatus) fs.getFileStatus(path);
    StringBuilder line = new StringBuilder(path.toUri().getPath());
    line.append('\t').append(status.isDirectory() ? 'd' : 'f').append('\t').append(status.getPermission())
        .append(status.getPermission().getStickyBit() ? " sticky" : "")
        .append('\t').append(status.getOwner()).append('\t').append(status.getGroup()).append('\t').append(status.getLen())
        .append('\t').append(status.getReplication()).append('\t').append(status.getBlockSize()).append('\t')
        .append(status.getModificationTime()).append('\t').append(status.getAccessTime()).append('\t').append(status.getFileId())
        .append('\t').append(status.getStoragePolicy());
    if (status.isDirectory()) {
      System.out.println(line);
      FileStatus[] children = fs.listStatus(path);
      Arrays.sort(children, Comparator.comparing(child -> child.getPath().getName()));
      for (FileStatus child : children) {
        tree(fs, child.getPath());
      }
      return;
    }
    for (LocatedBlock block : fs.getClient().getLocatedBlocks(path.toUri().getPath(), 0, Long.MAX_VALUE).getLocatedBlocks()) {
      line.append('\t').append(block.getBlock().getBlockName()).append('_').append(block.getBlock().getGenerationStamp())
          .append(':').append(block.getBlockSize());
    }
    line.append('\t').append(fs.isFileClosed(path) ? fs.getFileChecksum(path) : "open");
    System.out.println(line);
  }

  /** One line a block: name, generation stamp, bytes, and the transfer addresses of its replicas. */
  private static void blocks(DistributedFileSystem fs, String path) throws Exception {
    for (LocatedBlock block : fs.getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE).getLocatedBlocks()) {
      StringBuilder line = new StringBuilder(block.getBlock().getBlockName());
      line.append('\t').append(block.getBlock().getGenerationStamp()).append('\t').append(block.getBlockSize());
      for (DatanodeInfo node : block.getLocations()) {
        line.append('\t').append(node.getXferAddr());
      }
      System.out.println(line);
    }
  }

  /** Digest and length of the content. */
  static String digest(DistributedFileSystem fs, Path path) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("MD5");
    long length = 0;
    byte[] buffer = new byte[1 << 16];
    try (InputStream in = fs.open(path)) {
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        digest.update(buffer, 0, n);
        length += n;
      }
    }
    return hex(digest) + "\t" + length;
  }

  /** Writes pseudo-random bytes of a seed; answers their digest and length. */
  static String write(DistributedFileSystem fs, Path path, long length, long seed, int step, long pauseMillis) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("MD5");
    Random random = new Random(seed);
    byte[] buffer = new byte[step];
    try (OutputStream out = fs.create(path)) {
      for (long left = length; left > 0; ) {
        int n = (int) Math.min(left, step);
        random.nextBytes(buffer);
        out.write(buffer, 0, n);
        digest.update(buffer, 0, n);
        left -= n;
        if (pauseMillis > 0) {
          Thread.sleep(pauseMillis);
        }
      }
    }
    return hex(digest) + "\t" + length;
  }

  private static void append(DistributedFileSystem fs, Path path, int length, long seed) throws Exception {
    byte[] bytes = new byte[length];
    new Random(seed).nextBytes(bytes);
    try (OutputStream out = fs.append(path)) {
      out.write(bytes);
    }
  }

  private static void recover(DistributedFileSystem fs, Path path) throws Exception {
    for (int tries = 0; !fs.recoverLease(path); tries++) {
      if (tries == 120) {
        throw new IllegalStateException(path + " is still open");
      }
      Thread.sleep(1000);
    }
  }

  private void writeSlowly(String[] args) throws Exception {
    DistributedFileSystem fs = fileSystem();
    UserGroupInformation user = UserGroupInformation.getCurrentUser();
    CompletableFuture<String> end = new CompletableFuture<>();
    Thread thread = new Thread(() -> {
      try {
        end.complete(user.doAs((java.security.PrivilegedExceptionAction<String>) () -> write(fs, new Path(args[1]),
            Long.parseLong(args[2]), Long.parseLong(args[3]), Integer.parseInt(args[4]), Long.parseLong(args[5]))));
      } catch (Throwable e) {
        end.completeExceptionally(e);
      }
    }, args[0]);
    thread.setDaemon(true);
    thread.start();
    WRITERS.put(args[0], end);
  }

  private static String hex(MessageDigest digest) {
    StringBuilder text = new StringBuilder();
    for (byte b : digest.digest()) {
      text.append(String.format("%02x", b));
    }
    return text.toString();
  }
}
