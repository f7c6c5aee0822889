import com.unboundid.ldap.listener.*;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.Groups;

/**
 * A directory server in memory. Prints its port; then, for each line of input (user, tab, settings as key=value separated by tabs; PORT stands for
 * the port), the groups that Hadoop finds for the user; none where it throws. Ends with its input.
 */
public class Directory {
  static final String BASE = "dc=example,dc=com";
  static final String[] ENTRIES = {
    "dn: dc=example,dc=com\nobjectClass: domain\ndc: example",
    "dn: ou=people,dc=example,dc=com\nobjectClass: organizationalUnit\nou: people",
    "dn: ou=groups,dc=example,dc=com\nobjectClass: organizationalUnit\nou: groups",
    "dn: cn=Alice (A*),ou=people,dc=example,dc=com\nobjectClass: user\nobjectClass: posixAccount\nsAMAccountName: alice\nuid: alice\nuidNumber: 1001\n"
        + "gidNumber: 100\nmemberOf: cn=staff,ou=groups,dc=example,dc=com\nmemberOf: CN=R\\26D\\, all,ou=groups,dc=example,dc=com",
    "dn: cn=bob,ou=people,dc=example,dc=com\nobjectClass: user\nobjectClass: posixAccount\nsAMAccountName: bob\nuid: bob\nuidNumber: 1002\n"
        + "gidNumber: 200\nmemberOf: ou=none,dc=example,dc=com",
    "dn: cn=carl,ou=people,dc=example,dc=com\nobjectClass: user\nsAMAccountName: carl",
    "dn: cn=Staff,ou=groups,dc=example,dc=com\nobjectClass: group\ncn: Staff\nmember: cn=Alice (A*),ou=people,dc=example,dc=com\n"
        + "member: cn=bob,ou=people,dc=example,dc=com",
    "dn: cn=dev,ou=groups,dc=example,dc=com\nobjectClass: group\ncn: dev\nmember: cn=Alice (A*),ou=people,dc=example,dc=com",
    "dn: cn=all,ou=groups,dc=example,dc=com\nobjectClass: group\ncn: all\nmember: cn=Staff,ou=groups,dc=example,dc=com",
    "dn: cn=world,ou=groups,dc=example,dc=com\nobjectClass: group\ncn: world\nmember: cn=all,ou=groups,dc=example,dc=com",
    "dn: cn=p100,ou=groups,dc=example,dc=com\nobjectClass: posixGroup\ncn: p100\ngidNumber: 100",
    "dn: cn=p300,ou=groups,dc=example,dc=com\nobjectClass: posixGroup\ncn: p300\ngidNumber: 300\nmemberUid: 1001\nmemberUid: 1002",
    "dn: cn=byname,ou=groups,dc=example,dc=com\nobjectClass: group\ncn: byname\nmemberUid: alice",
  };

  public static void main(String[] args) throws Exception {
    InMemoryDirectoryServerConfig config = new InMemoryDirectoryServerConfig(BASE);
    config.setSchema(null);
    config.addAdditionalBindCredentials("cn=admin", "secret");
    config.setListenerConfigs(InMemoryListenerConfig.createLDAPConfig("plain", java.net.InetAddress.getByName("127.0.0.1"), 0, null));
    InMemoryDirectoryServer server = new InMemoryDirectoryServer(config);
    for (String entry : ENTRIES) {
      server.add(entry.split("\n"));
    }
    server.startListening();
    System.out.println(server.getListenPort());
    Scanner lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      String[] fields = lines.nextLine().replace("PORT", "" + server.getListenPort()).split("\t");
      Configuration settings = new Configuration(true);
      for (int i = 1; i < fields.length; i++) {
        String[] pair = fields[i].split("=", 2);
        settings.set(pair[0], pair[1]);
      }
      String groups;
      try {
        groups = String.join(",", new Groups(settings).getGroups(fields[0]));
      } catch (java.io.IOException | RuntimeException none) {
        // runtime ones too: a user without an attribute that the filter asks for is a null pointer there
        groups = "";
      }
      System.out.println(groups);
    }
    // the listener's thread would keep the process
    server.shutDown(true);
    System.exit(0);
  }
}
