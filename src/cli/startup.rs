//! The start options of `hdfs namenode`.

use crate::node::{StartMode, Upgrade};

/// What `namenode` was asked to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartupOption {
    /// Serve, after the directories were treated so.
    Serve(StartMode),
    /// Make new directories.
    Format(Format),
    /// Print a new cluster id.
    GenerateClusterId,
    /// Print the layout versions on disk and of the software.
    MetadataVersion,
    /// Upgrade the directories to the present layout, and no more.
    UpgradeOnly(Upgrade),
    /// Bring back the directories from before an upgrade.
    Rollback,
    /// Save what a damaged log still leads to.
    Recover {
        /// Whether every question about the log is answered with its first choice.
        force: bool,
    },
    /// Fill shared edits directories; there are none here.
    InitializeSharedEdits,
    /// Fill the directories from another NameNode; there is none here.
    BootstrapStandby,
    /// An option that Hadoop knows and this version does not do; the name as given.
    Unsupported(String),
}

/// Options of `-format`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Format {
    /// Cluster id to use; a new one if absent.
    pub cluster_id: Option<String>,
    /// Overwrite without asking.
    pub force: bool,
    /// Never ask: refuse where a question would come.
    pub non_interactive: bool,
}

/// The command line could not be understood: the usage text is the answer, after the reason if there is one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UsageError {
    /// What Hadoop logs as the reason.
    pub reason: Option<String>,
    /// Whether it is a failed start instead: no usage text, and status 1.
    pub fatal: bool,
}

impl UsageError {
    fn because(reason: impl Into<String>) -> UsageError {
        UsageError { reason: Some(reason.into()), fatal: false }
    }
    fn fatal(reason: impl Into<String>) -> UsageError {
        UsageError { reason: Some(reason.into()), fatal: true }
    }
}

/// Why Hadoop 3 does not take `-rollingUpgrade downgrade`.
const NO_DOWNGRADE: &str = "The \"downgrade\" option is no longer supported since it may incorrectly finalize an ongoing rolling upgrade. \
For downgrade instruction, please see the documentation \
(http://hadoop.apache.org/docs/current/hadoop-project-dist/hadoop-hdfs/HdfsRollingUpgrade.html#Downgrade).";

/// What Hadoop prints when it does not understand its options.
pub const USAGE: &str = "Usage: hdfs namenode [-backup] | \n\t[-checkpoint] | \n\t[-format [-clusterid cid ] [-force] [-nonInteractive] ] | \n\t\
[-upgrade [-clusterid cid] [-renameReserved<k-v pairs>] ] | \n\t[-upgradeOnly [-clusterid cid] [-renameReserved<k-v pairs>] ] | \n\t\
[-rollback] | \n\t[-rollingUpgrade <rollback|started> ] | \n\t[-importCheckpoint] | \n\t[-initializeSharedEdits] | \n\t\
[-bootstrapStandby [-force] [-nonInteractive] [-skipSharedEditsCheck] ] | \n\t[-recover [ -force] ] | \n\t[-metadataVersion ]\n";

/// Options that are known but not done here yet.
const UNSUPPORTED: [&str; 2] = ["-backup", "-checkpoint"];

impl StartupOption {
    /// Parses the arguments after `namenode` (generic options such as `-D` already taken out). Names are matched without regard to case; of several
    /// options the last one counts.
    ///
    /// Quirk: format_takes_all_words: `-format` takes every word behind it and passes over those it does not know.
    ///
    /// # Errors
    /// [`UsageError`] for anything Hadoop would not accept.
    pub fn parse(arguments: &[String]) -> Result<StartupOption, UsageError> {
        let mut option = StartupOption::Serve(StartMode::Regular);
        let mut rest = arguments;
        while let Some((word, after)) = rest.split_first() {
            let is = |name: &str| word.eq_ignore_ascii_case(name);
            rest = after;
            option = if is("-format") {
                return Format::parse(after).map(StartupOption::Format);
            } else if is("-regular") {
                StartupOption::Serve(StartMode::Regular)
            } else if is("-genclusterid") {
                StartupOption::GenerateClusterId
            } else if is("-metadataVersion") {
                StartupOption::MetadataVersion
            } else if is("-upgrade") || is("-upgradeOnly") {
                let upgrade = upgrade(after)?;
                return Ok(match is("-upgrade") {
                    true => StartupOption::Serve(StartMode::Upgrade(upgrade)),
                    false => StartupOption::UpgradeOnly(upgrade),
                });
            } else if is("-rollback") {
                StartupOption::Rollback
            } else if is("-rollingUpgrade") {
                let missing =
                    || UsageError::because("Must specify a rolling upgrade startup option <rollback|started>");
                let (kind, behind) = after.split_first().ok_or_else(missing)?;
                rest = behind;
                StartupOption::Serve(rolling_upgrade(kind)?)
            } else if is("-importCheckpoint") {
                StartupOption::Serve(StartMode::ImportCheckpoint)
            } else if is("-initializeSharedEdits") {
                return initialize_shared_edits(after);
            } else if is("-bootstrapStandby") {
                return bootstrap_standby(after);
            } else if is("-recover") {
                return recover(after);
            } else if let Some(name) = UNSUPPORTED.iter().find(|name| is(name)) {
                StartupOption::Unsupported((*name).to_owned())
            } else {
                return Err(UsageError::default());
            };
        }
        Ok(option)
    }
}

/// The arguments of `-upgrade`, which takes all words behind it.
fn upgrade(words: &[String]) -> Result<Upgrade, UsageError> {
    let mut upgrade = Upgrade::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word.eq_ignore_ascii_case("-clusterid") {
            let id = rest.next();
            let missing = || UsageError::because("Must specify a valid cluster ID after the -clusterid flag");
            upgrade.cluster_id = Some(id.ok_or_else(missing)?.clone());
        } else if word.eq_ignore_ascii_case("-renameReserved") {
            upgrade.rename_reserved = true;
            if let Some(pairs) = rest.next() {
                check_renames(pairs)?;
            }
        } else {
            return Err(UsageError::because(format!("Unknown upgrade flag: {word}")));
        }
    }
    Ok(upgrade)
}

/// Checks the pairs of `-renameReserved`: a name that is reserved today, and what it shall be called.
fn check_renames(pairs: &str) -> Result<(), UsageError> {
    for pair in pairs.split(',') {
        let Some((name, other)) = pair.split_once('=').filter(|(_, other)| !other.contains('=')) else {
            return Err(UsageError::fatal(format!("Could not parse key-value pair {pair}")));
        };
        if ![".snapshot", ".reserved"].contains(&name) {
            return Err(UsageError::fatal(format!("Unknown reserved path {name}")));
        }
        if other.is_empty() || [".", "..", ".snapshot", ".reserved"].contains(&other) || other.contains(['/', ':']) {
            return Err(UsageError::fatal(format!("Invalid rename path for {name}: {other}")));
        }
    }
    Ok(())
}

/// The kind of `-rollingUpgrade`.
fn rolling_upgrade(kind: &str) -> Result<StartMode, UsageError> {
    if kind.eq_ignore_ascii_case("started") {
        Ok(StartMode::RollingUpgradeStarted)
    } else if kind.eq_ignore_ascii_case("rollback") {
        Ok(StartMode::RollingUpgradeRollback)
    } else if kind.eq_ignore_ascii_case("downgrade") {
        Err(UsageError::fatal(NO_DOWNGRADE))
    } else {
        Err(UsageError::fatal(format!("Failed to convert \"{kind}\" to RollingUpgradeStartupOption")))
    }
}

/// The arguments of `-recover`, which takes all words behind it.
fn recover(words: &[String]) -> Result<StartupOption, UsageError> {
    let strange = |word: &&String| !word.eq_ignore_ascii_case("-force");
    match words.iter().find(strange) {
        Some(word) => {
            Err(UsageError::fatal(format!("Error parsing recovery options: can't understand option \"{word}\"")))
        }
        None => Ok(StartupOption::Recover { force: !words.is_empty() }),
    }
}

/// The arguments of `-initializeSharedEdits`, which takes all words behind it.
fn initialize_shared_edits(words: &[String]) -> Result<StartupOption, UsageError> {
    let known = |word: &String| ["-nonInteractive", "-force"].iter().any(|known| word.eq_ignore_ascii_case(known));
    match words.iter().find(|word| !known(word)) {
        Some(word) => Err(UsageError::because(format!("Invalid argument: {word}"))),
        None => Ok(StartupOption::InitializeSharedEdits),
    }
}

/// The arguments of `-bootstrapStandby`, which takes all words behind it.
fn bootstrap_standby(words: &[String]) -> Result<StartupOption, UsageError> {
    let known = |word: &String| ["-force", "-nonInteractive", "-skipSharedEditsCheck"].contains(&word.as_str());
    match words.iter().find(|word| !known(word)) {
        Some(word) => Err(UsageError::fatal(format!("Illegal argument: {word}"))),
        None => Ok(StartupOption::BootstrapStandby),
    }
}

impl Format {
    fn parse(arguments: &[String]) -> Result<Format, UsageError> {
        let mut format = Format::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument.eq_ignore_ascii_case("-clusterid") {
                let id = rest.next().filter(|id| !id.is_empty() && !Self::is_option(id));
                let unusable = || UsageError::because("Must specify a valid cluster ID after the -clusterid flag");
                format.cluster_id = Some(id.ok_or_else(unusable)?.clone());
            } else if argument.eq_ignore_ascii_case("-force") {
                format.force = true;
            } else if argument.eq_ignore_ascii_case("-nonInteractive") {
                format.non_interactive = true;
            }
        }
        Ok(format)
    }

    fn is_option(text: &str) -> bool {
        ["-force", "-nonInteractive"].iter().any(|o| text.eq_ignore_ascii_case(o))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StartupOption, UsageError> {
        StartupOption::parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    fn usage(reason: &str) -> Result<StartupOption, UsageError> {
        Err(UsageError { reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()), fatal: false })
    }

    fn fatal(reason: &str) -> Result<StartupOption, UsageError> {
        Err(UsageError::fatal(reason))
    }

    const NO_ID: &str = "Must specify a valid cluster ID after the -clusterid flag";

    #[test]
    fn options_as_hadoop_takes_them() {
        let serve = |mode| Ok(StartupOption::Serve(mode));
        assert_eq!(parse(""), serve(StartMode::Regular));
        assert_eq!(parse("-regular"), serve(StartMode::Regular));
        assert_eq!(parse("-FORMAT"), Ok(StartupOption::Format(Format::default())));
        let full = Format { cluster_id: Some("CID-x".into()), force: true, non_interactive: true };
        assert_eq!(parse("-format -clusterid CID-x -force -nonInteractive"), Ok(StartupOption::Format(full)));
        assert_eq!(parse("-format -clusterid"), usage(NO_ID));
        assert_eq!(parse("-format -clusterid -force"), usage(NO_ID));
        let odd = Format { cluster_id: Some("-foo".into()), ..Format::default() };
        assert_eq!(parse("-format -clusterid -foo"), Ok(StartupOption::Format(odd)));
        assert_eq!(parse("-bogus"), usage(""));
        assert_eq!(parse("-genclusterid"), Ok(StartupOption::GenerateClusterId));
        assert_eq!(parse("-genclusterid -bogus"), usage(""));
        assert_eq!(parse("-metadataVersion foo"), usage(""));
        assert_eq!(parse("-upgrade"), serve(StartMode::Upgrade(Upgrade::default())));
        let named = Upgrade { cluster_id: Some("c".into()), rename_reserved: true };
        assert_eq!(
            parse("-upgradeonly -renameReserved .snapshot=.x -clusterId c"),
            Ok(StartupOption::UpgradeOnly(named))
        );
        assert_eq!(parse("-upgrade -renameReserved foo"), fatal("Could not parse key-value pair foo"));
        assert_eq!(parse("-upgrade -renameReserved a=b"), fatal("Unknown reserved path a"));
        assert_eq!(parse("-upgrade -renameReserved .snapshot=a/b"), fatal("Invalid rename path for .snapshot: a/b"));
        assert_eq!(parse("-upgrade -clusterid"), usage(NO_ID));
        assert_eq!(parse("-rollback"), Ok(StartupOption::Rollback));
        assert_eq!(parse("-upgrade foo"), usage("Unknown upgrade flag: foo"));
        assert_eq!(parse("-rollingUpgrade"), usage("Must specify a rolling upgrade startup option <rollback|started>"));
        assert_eq!(parse("-rollingupgrade started"), serve(StartMode::RollingUpgradeStarted));
        assert_eq!(parse("-rollingUpgrade ROLLBACK -regular"), serve(StartMode::Regular));
        assert_eq!(parse("-rollingUpgrade rollback"), serve(StartMode::RollingUpgradeRollback));
        assert_eq!(parse("-rollingUpgrade downgrade"), fatal(NO_DOWNGRADE));
        assert_eq!(parse("-rollingUpgrade x"), fatal("Failed to convert \"x\" to RollingUpgradeStartupOption"));
        assert_eq!(parse("-importCheckpoint"), serve(StartMode::ImportCheckpoint));
        assert_eq!(parse("-importCheckpoint x"), usage(""));
        assert_eq!(parse("-recover -FORCE"), Ok(StartupOption::Recover { force: true }));
        assert_eq!(parse("-recover"), Ok(StartupOption::Recover { force: false }));
        let strange = "Error parsing recovery options: can't understand option \"x\"";
        assert_eq!(parse("-recover -force x"), fatal(strange));
        assert_eq!(parse("-bootstrapStandby -force"), Ok(StartupOption::BootstrapStandby));
        assert_eq!(parse("-bootstrapStandby -x"), fatal("Illegal argument: -x"));
        assert_eq!(parse("-initializeSharedEdits -nonInteractive"), Ok(StartupOption::InitializeSharedEdits));
    }

    #[test]
    fn format_takes_all_words() {
        assert_eq!(parse("-format extra -regular"), Ok(StartupOption::Format(Format::default())));
        assert_eq!(parse("-regular -format"), Ok(StartupOption::Format(Format::default())));
    }
}
