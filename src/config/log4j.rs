//! Where audit lines go, in the words of the file that administrators have for it: `log4j.properties`, as far as it is about the audit log.

use super::Environment;
use jiff::tz::TimeZone;
use observe::audit::{Layout, Place, Target};
use std::collections::BTreeMap;
use std::path::Path;

/// The logger of audit lines.
const AUDIT: &str = "org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit";
/// What counts where there is no file: nothing is written until `HDFS_AUDIT_LOGGER` names one of these appenders.
const BUILT_IN: &str = "\
hdfs.audit.logger=INFO,NullAppender
hdfs.audit.log.maxfilesize=256MB
hdfs.audit.log.maxbackupindex=20
hadoop.log.dir=.
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=${hdfs.audit.logger}
log4j.additivity.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=false
log4j.appender.NullAppender=org.apache.log4j.varia.NullAppender
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.RFAAUDIT=org.apache.log4j.RollingFileAppender
log4j.appender.RFAAUDIT.File=${hadoop.log.dir}/hdfs-audit.log
log4j.appender.RFAAUDIT.MaxFileSize=${hdfs.audit.log.maxfilesize}
log4j.appender.RFAAUDIT.MaxBackupIndex=${hdfs.audit.log.maxbackupindex}
log4j.appender.DRFAAUDIT=org.apache.log4j.DailyRollingFileAppender
log4j.appender.DRFAAUDIT.File=${hadoop.log.dir}/hdfs-audit.log
log4j.appender.DRFAAUDIT.DatePattern=.yyyy-MM-dd
";

/// What the file says of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditAppenders {
    /// Where lines go.
    pub targets: Vec<Target>,
    /// Whether lines of level DEBUG are wanted.
    pub debug: bool,
    /// What is in the file and not done here.
    pub notices: Vec<String>,
}

/// Reads `log4j.properties` of the configuration folder (or the file that `-Dlog4j.configuration=` names), or what is built in.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn audit_appenders(environment: &Environment, directory: Option<&Path>) -> Result<AuditAppenders, String> {
    let named = environment.properties.get("log4j.configuration").map(|name| name.trim_start_matches("file:").into());
    let file = named.or_else(|| directory.map(|directory| directory.join("log4j.properties")));
    let text = match file.filter(|file| file.is_file()) {
        Some(file) => std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?,
        None => BUILT_IN.into(),
    };
    Ok(File::parse(&String::from_utf8_lossy(&text), environment).audit())
}

struct File<'a> {
    entries: BTreeMap<String, String>,
    environment: &'a Environment,
}

impl<'a> File<'a> {
    /// Lines `key=value`; a backslash at the end of a line goes on in the next.
    fn parse(text: &str, environment: &'a Environment) -> File<'a> {
        let mut entries = BTreeMap::new();
        let mut whole = String::new();
        for line in text.lines().map(str::trim_start) {
            if whole.is_empty() && (line.starts_with(['#', '!']) || line.is_empty()) {
                continue;
            }
            if let Some(begun) = line.strip_suffix('\\') {
                whole += begun;
                continue;
            }
            whole += line;
            let at = whole.find(['=', ':']).unwrap_or(whole.len());
            let (key, value) = (whole[..at].trim(), whole.get(at + 1..).unwrap_or("").trim());
            entries.insert(key.to_owned(), value.replace("\\t", "\t"));
            whole.clear();
        }
        File { entries, environment }
    }

    /// A value with all `${name}` replaced: by Java's properties, then by other entries; by nothing if there is no such name.
    fn get(&self, key: &str) -> Option<String> {
        let value = self.entries.get(key)?;
        Some(self.replaced(value, 0))
    }

    fn replaced(&self, value: &str, depth: usize) -> String {
        let Some((before, rest)) = value.split_once("${").filter(|_| depth < 20) else { return value.to_owned() };
        let Some((name, after)) = rest.split_once('}') else { return value.to_owned() };
        let found = self.environment.properties.get(name).or_else(|| self.entries.get(name));
        let found = found.map_or_else(String::new, |found| self.replaced(found, depth + 1));
        format!("{before}{found}{}", self.replaced(after, depth))
    }

    /// A parameter of an appender; case does not matter.
    fn of_appender(&self, appender: &str, parameter: &str) -> Option<String> {
        let key = format!("log4j.appender.{appender}.{parameter}");
        let found = self.entries.keys().find(|entry| entry.eq_ignore_ascii_case(&key))?;
        self.get(found)
    }

    /// The logger's own appenders and those of the loggers above it, up to one that is not additive; the level is that of the nearest that
    /// has one.
    fn audit(&self) -> AuditAppenders {
        let mut found = AuditAppenders::default();
        let mut level = None;
        let mut names: Vec<String> = AUDIT.match_indices('.').map(|(at, _)| AUDIT[..at].to_owned()).rev().collect();
        names.insert(0, AUDIT.to_owned());
        let loggers = names.iter().map(|name| (format!("log4j.logger.{name}"), format!("log4j.additivity.{name}")));
        for (key, additivity) in loggers.chain([("log4j.rootLogger".to_owned(), String::new())]) {
            let value = self.get(&key).unwrap_or_default();
            let mut words = value.split(',').map(str::trim);
            let own = words.next().filter(|level| !level.is_empty() && !level.eq_ignore_ascii_case("inherited"));
            level = level.or(own.map(str::to_ascii_uppercase));
            for name in words.filter(|name| !name.is_empty()) {
                match self.appender(name) {
                    Ok(target) => found.targets.extend(target),
                    Err(notice) => found.notices.push(notice),
                }
            }
            if self.get(&additivity).is_some_and(|value| value.eq_ignore_ascii_case("false")) {
                break;
            }
        }
        match level.as_deref() {
            Some("ALL" | "TRACE" | "DEBUG") => found.debug = true,
            Some("WARN" | "ERROR" | "FATAL" | "OFF") => found.targets.clear(),
            _ => {}
        }
        found
    }

    fn appender(&self, name: &str) -> Result<Option<Target>, String> {
        let class = self.get(&format!("log4j.appender.{name}")).ok_or(format!("log4j has no appender {name}"))?;
        let parameter = |parameter| self.of_appender(name, parameter);
        let file = || parameter("File").or_else(|| parameter("fileName")).ok_or(format!("appender {name} has no file"));
        let place = match &*class {
            "org.apache.log4j.varia.NullAppender" => return Ok(None),
            "org.apache.log4j.ConsoleAppender" => match parameter("Target").as_deref() {
                Some("System.err") => Place::Error,
                _ => Place::Output,
            },
            "org.apache.log4j.FileAppender" => Place::File(file()?.into()),
            "org.apache.log4j.DailyRollingFileAppender" => {
                let pattern = parameter("DatePattern").unwrap_or_else(|| "'.'yyyy-MM-dd".to_owned());
                Place::Daily { path: file()?.into(), suffix: strftime(&pattern) }
            }
            "org.apache.log4j.RollingFileAppender" | "org.apache.hadoop.hdfs.util.AsyncRFAAppender" => Place::Rolling {
                path: file()?.into(),
                bytes_max: parameter("MaxFileSize").and_then(|size| bytes(&size)).unwrap_or(10 << 20),
                kept: parameter("MaxBackupIndex").and_then(|kept| kept.parse().ok()).unwrap_or(1),
            },
            other => return Err(format!("appender {name} of class {other} is not known here; it gets no audit lines")),
        };
        let pattern = parameter("layout.ConversionPattern").or_else(|| parameter("conversionPattern"));
        let pattern = pattern.unwrap_or_else(|| "%d{ISO8601} %p %c{2}: %m%n".to_owned());
        Ok(Some(Target { place, layout: Some(Layout::parse(&pattern, AUDIT, TimeZone::system())) }))
    }
}

/// `256MB`, `10KB`, `1GB` or a number of bytes.
fn bytes(text: &str) -> Option<u64> {
    let upper = text.trim().to_ascii_uppercase();
    let (number, unit) = match upper.as_bytes() {
        [.., b'K', b'B'] => (&upper[..upper.len() - 2], 1 << 10),
        [.., b'M', b'B'] => (&upper[..upper.len() - 2], 1 << 20),
        [.., b'G', b'B'] => (&upper[..upper.len() - 2], 1 << 30),
        _ => (&*upper, 1),
    };
    Some(number.trim().parse::<u64>().ok()? * unit)
}

/// A date pattern of Java as one of `strftime`.
fn strftime(pattern: &str) -> String {
    let known = [("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("mm", "%M"), ("'", "")];
    known.iter().fold(pattern.to_owned(), |text, (java, ours)| text.replace(java, ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(properties: &[(&str, &str)]) -> Environment {
        let properties = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Environment { properties, ..Environment::default() }
    }

    fn places(text: &str, properties: &[(&str, &str)]) -> (Vec<Place>, bool, usize) {
        let environment = environment(properties);
        let found = File::parse(text, &environment).audit();
        (found.targets.into_iter().map(|target| target.place).collect(), found.debug, found.notices.len())
    }

    #[test]
    fn built_in_appenders_by_name() {
        assert_eq!(places(BUILT_IN, &[]), (vec![], false, 0));
        let properties = [("hdfs.audit.logger", "DEBUG,RFAAUDIT,console"), ("hadoop.log.dir", "/var/log")];
        let rolling = Place::Rolling { path: "/var/log/hdfs-audit.log".into(), bytes_max: 256 << 20, kept: 20 };
        assert_eq!(places(BUILT_IN, &properties), (vec![rolling, Place::Error], true, 0));
        assert_eq!(places(BUILT_IN, &[("hdfs.audit.logger", "INFO,nothing")]), (vec![], false, 1));
        assert_eq!(places(BUILT_IN, &[("hdfs.audit.logger", "WARN,console")]).0, []);
        let daily = Place::Daily { path: "./hdfs-audit.log".into(), suffix: ".%Y-%m-%d".into() };
        assert_eq!(places(BUILT_IN, &[("hdfs.audit.logger", "INFO,DRFAAUDIT")]).0, [daily]);
    }

    #[test]
    fn the_sample_works() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/audit");
        let found = audit_appenders(&environment(&[("hadoop.log.dir", "/var/log")]), Some(&path)).unwrap();
        let places: Vec<_> = found.targets.into_iter().map(|target| target.place).collect();
        let path = "/var/log/hdfs-audit.log".into();
        assert_eq!(places, [Place::Rolling { path, bytes_max: 256 << 20, kept: 20 }]);
    }

    #[test]
    fn loggers_above_get_the_lines_too() {
        let text = "log4j.rootLogger=INFO, out, odd\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n\
                    log4j.appender.odd=x.Y\n! comment\nlog4j.logger.org.apache.hadoop=DEBUG,file\n\
                    log4j.appender.file=org.apache.log4j.\\\n  FileAppender\nlog4j.appender.file.file=/a b\n";
        assert_eq!(places(text, &[]), (vec![Place::File("/a b".into()), Place::Output], true, 1));
        let cut = format!("{text}log4j.additivity.org.apache=false\n");
        assert_eq!(places(&cut, &[]).0, [Place::File("/a b".into())]);
        assert_eq!(bytes("10kb"), Some(10_240));
    }
}
