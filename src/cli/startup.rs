//! The start options of `hdfs namenode`.

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

/// The command line could not be understood: the usage text is the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsageError;

/// What Hadoop prints when it does not understand its options.
pub const USAGE: &str = "Usage: hdfs namenode [-backup] | \n\t[-checkpoint] | \n\t[-format [-clusterid cid ] [-force] [-nonInteractive] ] | \n\t\
[-upgrade [-clusterid cid] [-renameReserved<k-v pairs>] ] | \n\t[-upgradeOnly [-clusterid cid] [-renameReserved<k-v pairs>] ] | \n\t\
[-rollback] | \n\t[-rollingUpgrade <rollback|started> ] | \n\t[-importCheckpoint] | \n\t[-initializeSharedEdits] | \n\t\
[-bootstrapStandby [-force] [-nonInteractive] [-skipSharedEditsCheck] ] | \n\t[-recover [ -force] ] | \n\t[-metadataVersion ]\n";

/// Names of options that are known but not done here yet.
const UNSUPPORTED: [&str; 10] = [
    "-backup",
    "-checkpoint",
    "-upgrade",
    "-upgradeOnly",
    "-rollback",
    "-rollingUpgrade",
    "-importCheckpoint",
    "-initializeSharedEdits",
    "-bootstrapStandby",
    "-recover",
];

impl StartupOption {
    /// Parses the arguments after `namenode` (generic options such as `-D` already taken out). Names are matched without regard to case.
    ///
    /// # Errors
    /// [`UsageError`] for anything Hadoop would not accept.
    pub fn parse(arguments: &[String]) -> Result<StartupOption, UsageError> {
        let Some(first) = arguments.first() else { return Ok(StartupOption::Regular) };
        let is = |name: &str| first.eq_ignore_ascii_case(name);
        if is("-format") {
            return Format::parse(&arguments[1..]).map(StartupOption::Format);
        }
        if is("-regular") {
            return StartupOption::parse(&arguments[1..]);
        }
        if is("-genclusterid") {
            return Ok(StartupOption::GenerateClusterId);
        }
        if is("-metadataVersion") {
            return Ok(StartupOption::MetadataVersion);
        }
        match UNSUPPORTED.iter().find(|name| is(name)) {
            Some(name) => Ok(StartupOption::Unsupported((*name).to_string())),
            None => Err(UsageError),
        }
    }
}

impl Format {
    fn parse(arguments: &[String]) -> Result<Format, UsageError> {
        let mut format = Format::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument.eq_ignore_ascii_case("-clusterid") {
                let id = rest.next().filter(|id| !id.is_empty() && !Self::is_option(id)).ok_or(UsageError)?;
                format.cluster_id = Some(id.clone());
            } else if argument.eq_ignore_ascii_case("-force") {
                format.force = true;
            } else if argument.eq_ignore_ascii_case("-nonInteractive") {
                format.non_interactive = true;
            } else {
                return Err(UsageError);
            }
        }
        Ok(format)
    }

    fn is_option(text: &str) -> bool {
        ["-force", "-nonInteractive", "-clusterid"].iter().any(|o| text.eq_ignore_ascii_case(o))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StartupOption, UsageError> {
        StartupOption::parse(&text.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_as_hadoop_takes_them() {
        assert_eq!(parse(""), Ok(StartupOption::Regular));
        assert_eq!(parse("-regular"), Ok(StartupOption::Regular));
        assert_eq!(parse("-FORMAT"), Ok(StartupOption::Format(Format::default())));
        let full = Format { cluster_id: Some("CID-x".into()), force: true, non_interactive: true };
        assert_eq!(parse("-format -clusterid CID-x -force -nonInteractive"), Ok(StartupOption::Format(full)));
        assert_eq!(parse("-format -clusterid"), Err(UsageError));
        assert_eq!(parse("-format -clusterid -force"), Err(UsageError));
        assert_eq!(parse("-format -bogus"), Err(UsageError));
        assert_eq!(parse("-bogus"), Err(UsageError));
        assert_eq!(parse("-genclusterid"), Ok(StartupOption::GenerateClusterId));
        assert_eq!(parse("-upgrade"), Ok(StartupOption::Unsupported("-upgrade".into())));
    }
}
