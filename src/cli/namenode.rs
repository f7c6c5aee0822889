//! `ironroot namenode`: what `hdfs namenode` does with the same words.

use super::question::{Answer, Choices, confirm};
use super::startup::{self, StartupOption, USAGE};
use crate::config::settings::{Identity, OfflineSettings, Settings};
use crate::config::{Configuration, Environment, Source, default_directory, not_honoured, take_generic_options};
use crate::node::{self, Launch, StartError, logging};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Generic options, for `-h`.
const GENERIC: &str = "\nGeneric options, before all others:\n-conf <file>\tone more configuration file\n\
-D <key=value>\tone configuration key\n-fs <uri>\tthe default file system\n";

/// What Hadoop says before it asks about a rollback.
const ROLLBACK_NOTICE: &str = "\"rollBack\" will remove the current state of the file system,\nreturning you to the state prior to initiating your recent.\n\
upgrade. This action is permanent and cannot be undone. If you\nare performing a rollback in an HA environment, you should be\n\
certain that no NameNode process is running on any host.";

/// What Hadoop asks before a recovery, with `-force` too.
const RECOVERY_QUESTION: &str = "You have selected Metadata Recovery mode.  This mode is intended to recover lost metadata on a corrupt \
filesystem.  Metadata recovery mode often permanently deletes data from your HDFS filesystem.  Please back up your edit log and fsimage before \
trying this!\n\nAre you ready to proceed? (Y/N)\n";

/// Runs to the end of the NameNode, or of what the option asks for; the exit code is Hadoop's.
pub fn run(words: &[String]) -> ExitCode {
    if let [word] = words
        && ["-h", "-help", "--help"].contains(&word.as_str())
    {
        println!("{USAGE}{GENERIC}");
        return ExitCode::SUCCESS;
    }
    logging::start();
    let environment = Environment::of_process();
    let directory = default_directory(&environment);
    let conf = directory.as_ref().map_or("none (HADOOP_CONF_DIR is not set)".into(), |d| d.display().to_string());
    banner(&[
        "Starting NameNode".to_owned(),
        format!("  host = {}", node::host_name()),
        format!("  args = [{}]", words.join(", ")),
        format!("  version = {} (speaks as Hadoop {})", env!("CARGO_PKG_VERSION"), node::HADOOP_VERSION),
        format!("  conf = {conf}"),
    ]);
    let code = act(words, &process_user(&environment), directory).unwrap_or_else(|error| {
        tracing::error!("Failed to start namenode.\n{error}");
        tracing::info!("Exiting with status 1: {}", error.to_string().lines().next().unwrap_or(""));
        1
    });
    banner(&[format!("Shutting down NameNode at {}", node::host_name())]);
    ExitCode::from(code)
}

/// A framed message that stands out in the log.
fn banner(lines: &[String]) {
    let label = if lines.len() > 1 { "STARTUP_MSG" } else { "SHUTDOWN_MSG" };
    let frame = "*".repeat(60);
    let text: String = lines.iter().map(|line| format!("{label}: {line}\n")).collect();
    tracing::info!("{label}: \n/{frame}\n{text}{frame}/");
}

fn act(words: &[String], user: &str, directory: Option<PathBuf>) -> Result<u8, StartError> {
    let (options, rest) = take_generic_options(words)?;
    let source = Source { directory, options };
    let (configuration, identity) = source.read()?;
    let option = match StartupOption::parse(rest) {
        Ok(option) => option,
        // Quirk: usage_is_no_failure: options that are not understood end with status 0
        Err(usage) if usage.fatal => return Err(StartError::Unsupported(usage.reason.unwrap_or_default())),
        Err(usage) => {
            if let Some(reason) = usage.reason {
                tracing::error!("{reason}");
            }
            eprintln!("{USAGE}");
            return Ok(0);
        }
    };
    match option {
        StartupOption::Serve(mode) => {
            let settings = online(&configuration, identity)?;
            let user = user.to_owned();
            node::run(Launch { source, configuration, settings, user, mode }, async |_| Ok(()))
        }
        StartupOption::UpgradeOnly(upgrade) => {
            node::upgrade_only(&online(&configuration, identity)?, &upgrade)?;
            Ok(0)
        }
        StartupOption::Recover { force } => recover(&configuration, identity, force),
        StartupOption::InitializeSharedEdits => {
            tracing::error!("No shared edits directory configured for namespace null namenode null");
            Ok(0)
        }
        StartupOption::BootstrapStandby => {
            Err(StartError::Unsupported("HA is not enabled for this namenode.".to_owned()))
        }
        StartupOption::Rollback => roll_back(&configuration),
        StartupOption::Format(format) => {
            let settings = offline(&configuration)?;
            let mut answer = match format {
                startup::Format { force: true, .. } => Answer::Force,
                startup::Format { non_interactive: true, .. } => Answer::Never,
                _ => Answer::Ask,
            };
            let done = node::format(&settings, format.cluster_id.as_deref(), user, &mut answer)?;
            Ok(u8::from(!done))
        }
        StartupOption::MetadataVersion => {
            print!("{}", node::metadata_version(&offline(&configuration)?)?);
            Ok(0)
        }
        StartupOption::GenerateClusterId => {
            tracing::info!("Generated new cluster id: {}", node::new_cluster_id());
            Ok(0)
        }
        StartupOption::Unsupported(name) => {
            Err(StartError::Unsupported(format!("The start option {name} is not supported yet. Nothing was changed.")))
        }
    }
}

/// `-recover`, after a question.
fn recover(configuration: &Configuration, identity: Identity, force: bool) -> Result<u8, StartError> {
    let asked = confirm(RECOVERY_QUESTION, &mut io::stdin().lock(), &mut io::stderr());
    if !asked.map_err(StartError::system("standard input"))? {
        eprintln!("Recovery aborted at user request.\n");
        return Ok(0);
    }
    tracing::info!("starting recovery...");
    if node::recover(&online(configuration, identity)?, &mut Choices { always: force })? {
        tracing::info!("RECOVERY COMPLETE");
    } else {
        tracing::error!("Exiting on user request.");
    }
    Ok(0)
}

/// `-rollback`, after a question.
fn roll_back(configuration: &Configuration) -> Result<u8, StartError> {
    eprint!("{ROLLBACK_NOTICE}");
    let asked = confirm("Roll back file system state?", &mut io::stdin().lock(), &mut io::stderr());
    if !asked.map_err(StartError::system("standard input"))? {
        eprintln!("Rollback aborted.");
        return Ok(1);
    }
    node::roll_back(&offline(configuration)?)?;
    Ok(0)
}

fn online(configuration: &Configuration, identity: Identity) -> Result<Settings, StartError> {
    let settings = Settings::read(configuration, identity)?;
    log_notices(configuration, &settings.warnings);
    match settings.unsupported() {
        Some(reason) => Err(StartError::Unsupported(reason)),
        None => Ok(settings),
    }
}

fn offline(configuration: &Configuration) -> Result<OfflineSettings, StartError> {
    let settings = OfflineSettings::read(configuration)?;
    match settings.directories.unsupported() {
        Some(reason) => Err(StartError::Unsupported(reason)),
        None => Ok(settings),
    }
}

/// Says once what there is to say about the configuration.
pub fn log_notices(configuration: &Configuration, warnings: &[String]) {
    for notice in configuration.notices().iter().chain(warnings) {
        tracing::warn!("{notice}");
    }
    let without_effect = not_honoured(configuration);
    if !without_effect.is_empty() {
        let names: Vec<_> = without_effect.iter().map(|key| key.name).collect();
        tracing::warn!("Set, but without effect in this version: {}", names.join(", "));
    }
}

/// The user whose rights this process has in the file system: `HADOOP_USER_NAME`, else the user of the operating system.
pub fn process_user(environment: &Environment) -> String {
    let named = environment.variables.get("HADOOP_USER_NAME").filter(|name| !name.is_empty());
    let system = || environment.properties.get("user.name").cloned().unwrap_or_default();
    named.cloned().unwrap_or_else(system)
}
