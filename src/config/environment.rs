//! What a value may refer to besides other keys: Java's system properties and the environment variables.

use std::collections::BTreeMap;

/// Names that `${...}` finds: `properties` (Java system properties) before keys, `variables` as `${env.NAME}`.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Java system properties such as `user.name`.
    pub properties: BTreeMap<String, String>,
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
}

impl Environment {
    /// What this process sees. The properties that a Java process of the same user would have, those that the `hdfs`
    /// script derives from its variables, and every `-Dname=value` in `HADOOP_OPTS` and `HDFS_NAMENODE_OPTS`.
    pub fn of_process() -> Environment {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let (user, home) = user_and_home(&variables);
        let directory = std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default();
        let mut properties = BTreeMap::new();
        for (name, value) in [
            ("user.name", user.as_str()),
            ("user.home", &home),
            ("user.dir", &directory),
            ("java.io.tmpdir", "/tmp"),
            ("os.name", "Linux"),
            ("file.separator", "/"),
            ("path.separator", ":"),
            ("line.separator", "\n"),
        ] {
            properties.insert(name.to_string(), value.to_string());
        }
        for (variable, property) in [
            ("HADOOP_LOG_DIR", "hadoop.log.dir"),
            ("HADOOP_LOGFILE", "hadoop.log.file"),
            ("HADOOP_HOME", "hadoop.home.dir"),
            ("HADOOP_IDENT_STRING", "hadoop.id.str"),
            ("HADOOP_ROOT_LOGGER", "hadoop.root.logger"),
            ("HDFS_AUDIT_LOGGER", "hdfs.audit.logger"),
        ] {
            if let Some(value) = variables.get(variable) {
                properties.insert(property.to_string(), value.clone());
            }
        }
        for options in ["HADOOP_OPTS", "HDFS_NAMENODE_OPTS"] {
            properties.extend(variables.get(options).into_iter().flat_map(|text| java_properties(text)));
        }
        Environment { properties, variables }
    }

    /// The folder of logs, where one is set.
    pub fn log_folder(&self) -> Option<std::path::PathBuf> {
        self.properties.get("hadoop.log.dir").filter(|folder| !folder.is_empty()).map(Into::into)
    }

    /// The folder of logs; the working directory where none is set.
    pub fn log_directory(&self) -> std::path::PathBuf {
        self.properties.get("hadoop.log.dir").map_or_else(Default::default, Into::into)
    }
}

/// The `-Dname=value` words of a Java command line.
fn java_properties(options: &str) -> impl Iterator<Item = (String, String)> + '_ {
    options.split_whitespace().filter_map(|word| {
        let (name, value) = word.strip_prefix("-D")?.split_once('=')?;
        Some((name.to_string(), value.to_string()))
    })
}

/// Name and home of the user this process runs as: from the password file as Java has it, else from the variables.
fn user_and_home(variables: &BTreeMap<String, String>) -> (String, String) {
    let id = rustix::process::getuid().as_raw().to_string();
    let known = std::fs::read_to_string("/etc/passwd").ok().and_then(|text| password_entry(&text, &id));
    known.unwrap_or_else(|| {
        let of = |name: &str| variables.get(name).cloned();
        (of("USER").or_else(|| of("LOGNAME")).unwrap_or_else(|| "?".into()), of("HOME").unwrap_or_else(|| "?".into()))
    })
}

/// Name and home of a user id in the text of a password file.
fn password_entry(text: &str, id: &str) -> Option<(String, String)> {
    text.lines().map(|line| line.split(':').collect::<Vec<_>>()).find_map(|fields| match fields[..] {
        [name, _, user, _, _, home, ..] if user == id => Some((name.to_string(), home.to_string())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_java_command_line() {
        let found: Vec<_> = java_properties("-Xmx4g -Dhadoop.log.dir=/var/log -Dflag -Da=b=c").collect();
        assert_eq!(found, [("hadoop.log.dir".into(), "/var/log".into()), ("a".into(), "b=c".into())]);
    }

    #[test]
    fn user_from_the_password_file() {
        let text = "root:x:0:0:root:/root:/bin/sh\nhdfs:x:17:17::/var/lib/hdfs:/bin/sh\nbroken\n";
        assert_eq!(password_entry(text, "17"), Some(("hdfs".into(), "/var/lib/hdfs".into())));
        assert_eq!(password_entry(text, "4"), None);
    }
}
