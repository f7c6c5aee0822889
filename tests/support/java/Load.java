import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.ipc.RemoteException;

/**
 * Writers that know what was acknowledged to them. Each has a directory of its own and a model of it: path to "dir" or
 * "length:seed". An operation that ends with an error because the server died has an unknown outcome: both the model
 * before it and the one after it are right, until the check has seen which one it is.
 */
final class Load {
  private static final int MOST_ENTRIES = 150;
  private static final List<Load> WRITERS = new ArrayList<>();
  private static final AtomicLong ACKNOWLEDGED = new AtomicLong();
  private static volatile boolean stopping;

  private final DistributedFileSystem fs;
  private final Path home;
  private final Random random;
  private TreeMap<String, String> model = new TreeMap<>();
  private TreeMap<String, String> pending;
  private String pendingFile;
  private String pendingOperation;
  private String failure;
  private final List<String> recent = new ArrayList<>();
  private Thread thread;
  private int serial;

  private Load(DistributedFileSystem fs, Path home, long seed) {
    this.fs = fs;
    this.home = home;
    this.random = new Random(seed);
  }

  /**
   * start DIRECTORY WRITERS SEED: begins, or goes on after a check; stop: waits until all writers have ended (the
   * server is dead by now, or they end themselves) and prints the operations acknowledged so far; check recent|all:
   * compares what the server shows with the models, reading the files written since the last check or all of them.
   */
  static int run(Configuration conf, String verb, String[] args) throws Exception {
    DistributedFileSystem fs = (DistributedFileSystem) new Path("/").getFileSystem(conf);
    switch (verb) {
      case "start":
        start(fs, args);
        return 0;
      case "stop":
        stopping = true;
        for (Load writer : WRITERS) {
          writer.thread.join(60_000);
          if (writer.thread.isAlive()) {
            throw new IOException(writer.home + " did not end: " + java.util.Arrays.toString(writer.thread.getStackTrace()));
          }
        }
        System.out.println(ACKNOWLEDGED.get());
        return 0;
      case "check":
        int wrong = 0;
        for (Load writer : WRITERS) {
          wrong += writer.check(args[0].equals("all"));
        }
        return wrong == 0 ? 0 : 1;
      default:
        System.err.println("no such verb: " + verb);
        return 254;
    }
  }

  private static void start(DistributedFileSystem fs, String[] args) throws IOException {
    stopping = false;
    int writers = Integer.parseInt(args[1]);
    for (int i = WRITERS.size(); i < writers; i++) {
      Load writer = new Load(fs, new Path(args[0], "writer" + i), Long.parseLong(args[2]) + i);
      fs.mkdirs(writer.home);
      WRITERS.add(writer);
    }
    for (Load writer : WRITERS) {
      writer.thread = new Thread(writer::write, writer.home.getName());
      writer.thread.setDaemon(true);
      writer.thread.start();
    }
  }

  private void write() {
    while (!stopping && pending == null) {
      try {
        step();
        ACKNOWLEDGED.incrementAndGet();
        model = pending;
        if (pendingFile != null) {
          recent.add(pendingFile);
        }
        pending = null;
        pendingFile = null;
      } catch (IOException e) {
        // when the server is gone the outcome is open until the check; but every operation is a legal one
        for (Throwable cause = e; cause != null; cause = cause.getCause()) {
          if (cause instanceof RemoteException) {
            failure = pendingOperation + ": refused: " + e;
          }
        }
      } catch (RuntimeException e) {
        failure = pendingOperation + ": " + e;
      }
    }
  }

  /** One operation; `pending` is the model if it succeeds, set before the call. */
  private void step() throws IOException {
    TreeMap<String, String> after = new TreeMap<>(model);
    List<String> all = new ArrayList<>(model.keySet());
    List<String> folders = new ArrayList<>();
    folders.add("");
    model.forEach((path, what) -> {
      if (what.equals("dir")) {
        folders.add(path);
      }
    });
    String fresh = folders.get(random.nextInt(folders.size())) + "/n" + serial++;
    int choice = all.size() > MOST_ENTRIES ? 9 : random.nextInt(10);
    if (choice < 2) {
      after.put(fresh, "dir");
      begin(after, "mkdir " + fresh);
      require(fs.mkdirs(at(fresh)));
    } else if (choice < 6 || all.isEmpty()) {
      int length = random.nextInt(4) == 0 ? 0 : random.nextInt(30_000);
      long seed = random.nextLong();
      after.put(fresh, length + ":" + seed);
      begin(after, "create " + fresh);
      pendingFile = fresh;
      byte[] content = content(length, seed);
      try (FSDataOutputStream out = fs.create(at(fresh), false)) {
        out.write(content);
      }
    } else if (choice < 8) {
      String from = all.get(random.nextInt(all.size()));
      String to = "/n" + serial++; // into the home: never below itself
      move(after, from, to);
      begin(after, "rename " + from + " " + to);
      require(fs.rename(at(from), at(to)));
    } else {
      String victim = all.get(random.nextInt(all.size()));
      after.keySet().removeIf(path -> path.equals(victim) || path.startsWith(victim + "/"));
      begin(after, "delete " + victim);
      require(fs.delete(at(victim), true));
    }
  }

  private void begin(TreeMap<String, String> after, String operation) {
    pendingOperation = operation;
    pending = after;
  }

  private static void require(boolean answer) {
    if (!answer) {
      throw new IllegalStateException("answered false");
    }
  }

  private static void move(TreeMap<String, String> tree, String from, String to) {
    for (String path : new ArrayList<>(tree.keySet())) {
      if (path.equals(from) || path.startsWith(from + "/")) {
        tree.put(to + path.substring(from.length()), tree.remove(path));
      }
    }
  }

  private Path at(String path) {
    return new Path(home + path);
  }

  private static byte[] content(int length, long seed) {
    byte[] content = new byte[length];
    new Random(seed).nextBytes(content);
    return content;
  }

  /** Prints each difference; answers their number. */
  private int check(boolean all) throws Exception {
    List<String> wrong = new ArrayList<>();
    if (failure != null) {
      wrong.add(failure);
      failure = null;
    }
    TreeMap<String, Long> seen = new TreeMap<>();
    list(at(""), seen);
    if (pending != null) {
      // a create that did not reach its end may have left an open file
      if (pendingFile != null && seen.containsKey(pendingFile) && !fs.isFileClosed(at(pendingFile))) {
        require(fs.delete(at(pendingFile), false));
        seen.remove(pendingFile);
      }
      if (differences(pending, seen).isEmpty()) {
        model = pending;
        if (pendingFile != null) {
          recent.add(pendingFile);
        }
      }
      pending = null;
      pendingFile = null;
    }
    wrong.addAll(differences(model, seen));
    for (String path : all ? model.keySet() : recent) {
      String what = model.get(path);
      if (what != null && !what.equals("dir") && seen.containsKey(path)) {
        readBack(path, what, wrong);
      }
    }
    recent.clear();
    for (String line : wrong) {
      System.out.println(home + ": " + line + " (last operation: " + pendingOperation + ")");
    }
    return wrong.size();
  }

  private void readBack(String path, String what, List<String> wrong) {
    int length = Integer.parseInt(what.substring(0, what.indexOf(':')));
    byte[] expected = content(length, Long.parseLong(what.substring(what.indexOf(':') + 1)));
    byte[] actual = new byte[length];
    try (org.apache.hadoop.fs.FSDataInputStream in = fs.open(at(path))) {
      in.readFully(0, actual);
      if (!java.util.Arrays.equals(expected, actual)) {
        wrong.add(path + ": other content");
      }
    } catch (IOException e) {
      wrong.add(path + ": " + e);
    }
  }

  private void list(Path folder, TreeMap<String, Long> seen) throws IOException {
    for (FileStatus child : fs.listStatus(folder)) {
      String path = child.getPath().toUri().getPath().substring(home.toUri().getPath().length());
      seen.put(path, child.isDirectory() ? -1 : child.getLen());
      if (child.isDirectory()) {
        list(child.getPath(), seen);
      }
    }
  }

  private static List<String> differences(TreeMap<String, String> model, TreeMap<String, Long> seen) {
    List<String> wrong = new ArrayList<>();
    for (Map.Entry<String, String> entry : model.entrySet()) {
      String what = entry.getValue();
      long expected = what.equals("dir") ? -1 : Long.parseLong(what.substring(0, what.indexOf(':')));
      Long actual = seen.get(entry.getKey());
      if (actual == null) {
        wrong.add(entry.getKey() + ": acknowledged and lost");
      } else if (actual != expected) {
        wrong.add(entry.getKey() + ": length " + actual + " where " + expected + " was acknowledged");
      }
    }
    for (String path : seen.keySet()) {
      if (!model.containsKey(path)) {
        wrong.add(path + ": there, though never acknowledged or gone");
      }
    }
    return wrong;
  }
}
