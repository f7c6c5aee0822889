//! From a configuration directory and a command line to one `Configuration`.

use super::registry::Origin;
use super::settings::{Identity, identify, is_local_host};
use super::{ConfigError, Configuration, Environment, xml};
use std::path::{Path, PathBuf};

/// Hadoop's generic options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenericOptions {
    /// `-conf FILE`, in order.
    pub files: Vec<PathBuf>,
    /// `-D key=value`, in order.
    pub definitions: Vec<(String, String)>,
    /// `-fs URI`.
    pub file_system: Option<String>,
}

/// Where the configuration of this process comes from: read at the start, and again when an administrator asks for it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The folder of the site files.
    pub directory: Option<PathBuf>,
    /// What the command line adds.
    pub options: GenericOptions,
}

impl Source {
    /// Reads everything as it is now, and finds out which NameNode this is.
    pub fn read(&self) -> Result<(Configuration, Identity), ConfigError> {
        let mut configuration = load(Environment::of_process(), self.directory.as_deref(), &self.options)?;
        let identity = identify(&mut configuration, is_local_host)?;
        Ok((configuration, identity))
    }

    /// The same with the policy file, which says who may use which protocol and counts before the site files.
    pub fn read_policy(&self) -> Result<Configuration, ConfigError> {
        self.read_beside("hadoop-policy.xml")
    }

    /// The same with another file of the folder, which counts before the site files and need not be there.
    pub fn read_beside(&self, name: &str) -> Result<Configuration, ConfigError> {
        let (mut configuration, _) = self.read()?;
        let file = self.directory.as_deref().map(|directory| xml::read_file(&directory.join(name), name));
        if let Some(items) = file.transpose()?.flatten() {
            configuration.add(items, name);
        }
        Ok(configuration)
    }
}

/// Takes the generic options off the front of a command line; they end at the first word that is none of them.
///
/// Quirk: generic_options: `-D key` without `=` is swallowed without a word.
pub fn take_generic_options(words: &[String]) -> Result<(GenericOptions, &[String]), ConfigError> {
    let mut options = GenericOptions::default();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let known = ["-D", "-conf", "-fs", "-jt", "-files", "-libjars", "-archives", "-tokenCacheFile"];
        let (option, argument, after) = if known.contains(&word.as_str()) {
            let Some((argument, after)) = after.split_first() else {
                return Err(ConfigError::Option(word[1..].to_string()));
            };
            (word.as_str(), argument.as_str(), after)
        } else if let Some(definition) = word.strip_prefix("-D") {
            ("-D", definition, after)
        } else {
            break;
        };
        match option {
            "-D" => options.definitions.extend(argument.split_once('=').map(|(k, v)| (k.to_string(), v.to_string()))),
            "-conf" => options.files.push(argument.into()),
            "-fs" => options.file_system = Some(argument.to_string()),
            _ => {} // of MapReduce, without meaning here
        }
        rest = after;
    }
    Ok((options, rest))
}

/// `HADOOP_CONF_DIR`, or the place in `HADOOP_HOME` where the `hdfs` script looks.
pub fn default_directory(environment: &Environment) -> Option<PathBuf> {
    let of = |name: &str| environment.variables.get(name).filter(|value| !value.is_empty());
    of("HADOOP_CONF_DIR")
        .map(PathBuf::from)
        .or_else(|| of("HADOOP_HOME").map(|home| Path::new(home).join("etc/hadoop")))
}

/// Everything in Hadoop's order: core-default, core-site, hdfs-default, hdfs-site, hdfs-rbf-site, `-conf` files, `-fs`, `-D`.
/// Site files that are missing are not missed.
pub fn load(
    environment: Environment,
    directory: Option<&Path>,
    options: &GenericOptions,
) -> Result<Configuration, ConfigError> {
    let mut configuration = Configuration::empty(environment);
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        configuration.note(format!("{}: no such configuration directory", directory.display()));
    }
    let add_site = |configuration: &mut Configuration, name: &str| -> Result<(), ConfigError> {
        if let Some(items) = directory.map(|d| xml::read_file(&d.join(name), name)).transpose()?.flatten() {
            configuration.add(items, name);
        }
        Ok(())
    };
    configuration.add_defaults(Origin::Core);
    add_site(&mut configuration, "core-site.xml")?;
    configuration.add_defaults(Origin::Hdfs);
    add_site(&mut configuration, "hdfs-site.xml")?;
    add_site(&mut configuration, "hdfs-rbf-site.xml")?;
    for file in &options.files {
        let name = file.display().to_string();
        match xml::read_file(file, &name)? {
            Some(items) => configuration.add(items, &name),
            None => configuration.note(format!("{name}: no such configuration file; ignored")),
        }
    }
    if let Some(uri) = &options.file_system {
        configuration.set("fs.defaultFS", uri, "programmatically");
    }
    for (key, value) in &options.definitions {
        configuration.set(key, value, "from command line");
    }
    Ok(configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, definitions: &str, rest: &str) -> GenericOptions {
        let words: Vec<String> = line.split('|').filter(|word| !word.is_empty()).map(str::to_string).collect();
        let (options, remaining) = take_generic_options(&words).unwrap();
        let shown: Vec<String> = options.definitions.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!((shown.join("|").as_str(), remaining.join("|").as_str()), (definitions, rest), "for {line}");
        options
    }

    #[test]
    fn generic_options() {
        check("-D|a=1", "a=1", "");
        check("-Da=1", "a=1", "");
        check("-D|a", "", "");
        check("-D|a=b=c", "a=b=c", "");
        check("-Dx=1|-regular", "x=1", "-regular");
        check("-D|a=", "a=", "");
        check("-regular|-D|a=1", "", "-regular|-D|a=1");
        let options = check("-conf|x/dep0.xml|-fs|hdfs://h:1|-jt|local|-format", "", "-format");
        assert_eq!(options.files, [PathBuf::from("x/dep0.xml")]);
        assert_eq!(options.file_system.as_deref(), Some("hdfs://h:1"));
        let text = take_generic_options(&["-D".to_string()]).unwrap_err().to_string();
        assert_eq!(text, "Missing argument for option: D");
    }

    #[test]
    fn directory_by_environment() {
        let mut environment = Environment::default();
        assert_eq!(default_directory(&environment), None);
        environment.variables.insert("HADOOP_HOME".into(), "/opt/hadoop".into());
        assert_eq!(default_directory(&environment), Some("/opt/hadoop/etc/hadoop".into()));
        environment.variables.insert("HADOOP_CONF_DIR".into(), "/etc/h".into());
        assert_eq!(default_directory(&environment), Some("/etc/h".into()));
    }

    #[test]
    fn command_line_wins_and_a_missing_file_is_noted() {
        let options = GenericOptions {
            files: vec!["/nope/x.xml".into()],
            definitions: vec![("dfs.replication".into(), "2".into())],
            file_system: Some("hdfs://h:1".into()),
        };
        let configuration = load(Environment::default(), Some(Path::new("/nope")), &options).unwrap();
        assert_eq!(configuration.raw("dfs.replication"), Some("2"));
        assert_eq!(configuration.raw("fs.defaultFS"), Some("hdfs://h:1"));
        assert_eq!(
            configuration.notices(),
            ["/nope: no such configuration directory", "/nope/x.xml: no such configuration file; ignored"]
        );
    }
}
