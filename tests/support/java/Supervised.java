import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.hadoop.io.nativeio.NativeIO;

/**
 * Runs the main method of another class, and ends the JVM when standard input ends, so that a server started by a test
 * never outlives that test, however the test ended.
 */
public final class Supervised {
  private Supervised() {}

  public static void main(String[] args) throws Throwable {
    Thread watch = new Thread(() -> {
      try {
        while (System.in.read() >= 0) {
          // nothing is expected: only the end matters
        }
      } catch (java.io.IOException e) {
        // as good as the end
      }
      Runtime.getRuntime().halt(137);
    }, "parent watch");
    watch.setDaemon(true);
    watch.start();
    // a DataNode that is to keep blocks in memory maps them, but locks nothing: that would take native code and the right to it
    NativeIO.POSIX.setCacheManipulator(new NativeIO.POSIX.NoMlockCacheManipulator());
    try {
      Class.forName(args[0]).getMethod("main", String[].class)
          .invoke(null, (Object) Arrays.copyOfRange(args, 1, args.length));
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
