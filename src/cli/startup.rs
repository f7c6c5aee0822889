//! The start options of `hdfs namenode`.

use crate::node::Upgrade;

/// What `namenode` was asked to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StartupOption {
    /// Serve.
    Regular,
    /// Make new directories.
    Format(Format),
    /// Print a new cluster id.
    GenerateClusterId,
    /// Print the layout versions on disk and of the software.
    MetadataVersion,
    /// Upgrade the directories to the present layout, and then serve, or only that.
    Upgrade {
        /// How.
        upgrade: Upgrade,
        /// Serve afterwards.
        serve: bool,
    },
    /// Bring back the directories from before an upgrade.
    Rollback,
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
}

impl UsageError {
    fn because(reason: impl Into<String>) -> UsageError {
        UsageError { reason: Some(reason.into()) }
    }
}

/// What Hadoop prints when it does not understand its options.
pub const USAGE: &str = "Usage: hdfs namenode [-backup] | \n\t[-checkpoint] | \n\t[-format [-clusterid cid ] [-force] [-nonInteractive] ] | \n\t\
[-upgrade [-clusterid cid] [-renameReserved<k-v pairs>] ] | \n\t[-upgradeOnly [-clusterid cid] [-renameReserved<k-v pairs>] ] | \n\t\
[-rollback] | \n\t[-rollingUpgrade <rollback|started> ] | \n\t[-importCheckpoint] | \n\t[-initializeSharedEdits] | \n\t\
[-bootstrapStandby [-force] [-nonInteractive] [-skipSharedEditsCheck] ] | \n\t[-recover [ -force] ] | \n\t[-metadataVersion ]\n";

/// Options that are known but not done here yet.
const UNSUPPORTED: [&str; 7] = [
    "-backup",
    "-checkpoint",
    "-rollingUpgrade",
    "-importCheckpoint",
    "-initializeSharedEdits",
    "-bootstrapStandby",
    "-recover",
];

impl StartupOption {
    /// Parses the arguments after `namenode` (generic options such as `-D` already taken out). Names are matched without regard to case; of several
    /// options the last one counts.
    ///
    /// Quirk: format_takes_all_words: `-format` takes every word behind it and passes over those it does not know.
    ///
    /// # Errors
    /// [`UsageError`] for anything Hadoop would not accept.
    pub fn parse(arguments: &[String]) -> Result<StartupOption, UsageError> {
        let mut option = StartupOption::Regular;
        let mut rest = arguments;
        while let Some((word, after)) = rest.split_first() {
            let is = |name: &str| word.eq_ignore_ascii_case(name);
            rest = after;
            option = if is("-format") {
                return Format::parse(after).map(StartupOption::Format);
            } else if is("-regular") {
                StartupOption::Regular
            } else if is("-genclusterid") {
                StartupOption::GenerateClusterId
            } else if is("-metadataVersion") {
                StartupOption::MetadataVersion
            } else if is("-upgrade") || is("-upgradeOnly") {
                let upgrade = upgrade(after)?;
                return Ok(StartupOption::Upgrade { upgrade, serve: is("-upgrade") });
            } else if is("-rollback") {
                StartupOption::Rollback
            } else if let Some(name) = UNSUPPORTED.iter().find(|name| is(name)) {
                rest = arguments_of(name, after)?;
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
            rest.next();
        } else {
            return Err(UsageError::because(format!("Unknown upgrade flag: {word}")));
        }
    }
    Ok(upgrade)
}

/// Checks the arguments of an option that is only refused: a mistake in them comes before the refusal. Gives the words behind them.
fn arguments_of<'a>(option: &str, words: &'a [String]) -> Result<&'a [String], UsageError> {
    match option {
        "-rollingUpgrade" => match words.split_first() {
            Some((kind, rest)) if ["rollback", "started"].iter().any(|k| kind.eq_ignore_ascii_case(k)) => Ok(rest),
            Some((kind, _)) => {
                Err(UsageError::because(format!("Failed to convert \"{kind}\" to RollingUpgradeStartupOption")))
            }
            None => Err(UsageError::because("Must specify a rolling upgrade startup option <rollback|started>")),
        },
        "-bootstrapStandby" | "-recover" => Ok(&[]),
        _ => Ok(words),
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
        Err(UsageError { reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()) })
    }

    const NO_ID: &str = "Must specify a valid cluster ID after the -clusterid flag";

    #[test]
    fn options_as_hadoop_takes_them() {
        assert_eq!(parse(""), Ok(StartupOption::Regular));
        assert_eq!(parse("-regular"), Ok(StartupOption::Regular));
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
        let upgrade = |upgrade, serve| Ok(StartupOption::Upgrade { upgrade, serve });
        assert_eq!(parse("-upgrade"), upgrade(Upgrade::default(), true));
        let named = Upgrade { cluster_id: Some("c".into()), rename_reserved: true };
        assert_eq!(parse("-upgradeonly -renameReserved .snapshot=.x -clusterId c"), upgrade(named, false));
        assert_eq!(parse("-upgrade -clusterid"), usage(NO_ID));
        assert_eq!(parse("-rollback"), Ok(StartupOption::Rollback));
        assert_eq!(parse("-upgrade foo"), usage("Unknown upgrade flag: foo"));
        assert_eq!(parse("-rollingUpgrade"), usage("Must specify a rolling upgrade startup option <rollback|started>"));
        assert_eq!(parse("-rollingupgrade started"), Ok(StartupOption::Unsupported("-rollingUpgrade".into())));
    }

    #[test]
    fn format_takes_all_words() {
        assert_eq!(parse("-format extra -regular"), Ok(StartupOption::Format(Format::default())));
        assert_eq!(parse("-regular -format"), Ok(StartupOption::Format(Format::default())));
    }
}
