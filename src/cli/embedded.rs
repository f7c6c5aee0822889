//! `ironroot` alone: a file system in one folder, on loopback, ready to be tried out; with real DataNodes beside it if asked for.

use super::namenode::{log_notices, process_user};
use super::question::Answer;
use super::{hadoop, supervise};
use crate::config::settings::{OfflineSettings, Settings};
use crate::config::{Environment, Source, embedded};
use crate::node::{self, Launch, Serving, StartError, StartMode, logging};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// How long DataNodes may take to register.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(90);
/// How long they may take to report their blocks before the commands are printed all the same.
const REPORT_LIMIT: Duration = Duration::from_secs(10);

/// Runs to the end of the NameNode.
pub fn run(data: &Path, datanodes: u16) -> ExitCode {
    logging::start();
    match act(data, datanodes) {
        // an interrupt is how one leaves
        Ok(130) => ExitCode::SUCCESS,
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tracing::error!("Failed to start namenode.\n{error}");
            ExitCode::FAILURE
        }
    }
}

/// The folders and files of an embedded file system.
struct Layout {
    data: PathBuf,
    conf: PathBuf,
    script: PathBuf,
}

fn act(data: &Path, datanodes: u16) -> Result<u8, StartError> {
    std::fs::create_dir_all(data).map_err(StartError::system("the data folder cannot be made"))?;
    let data = data.canonicalize().map_err(StartError::system("the data folder"))?;
    let layout = Layout { conf: data.join("conf"), script: data.join("bin/hdfs"), data };
    embedded::write_namenode_sites(&layout.conf, &layout.data).map_err(StartError::system("site files"))?;
    let jars = if datanodes > 0 { Some(fetch()?) } else { hadoop::cached().filter(|_| hadoop::is_installed("java")) };
    if let Some(jars) = &jars {
        hadoop::write_script(&layout.script, &layout.conf, jars).map_err(StartError::system("the hdfs script"))?;
    }
    let user = user_name();
    let source = Source { directory: Some(layout.conf.clone()), ..Source::default() };
    let (configuration, identity) = source.read()?;
    let offline = OfflineSettings::read(&configuration)?;
    if !layout.data.join("name").exists() {
        node::format(&offline, None, &user, &mut Answer::Never)?;
    }
    let settings = Settings::read(&configuration, identity)?;
    log_notices(&configuration, &settings.warnings);
    if let Some(reason) = settings.unsupported() {
        return Err(StartError::Unsupported(reason));
    }
    let mut children = Vec::new();
    let code = node::run(Launch { source, configuration, settings, user, mode: StartMode::Regular }, async |serving| {
        for number in 1..=datanodes {
            children.push(start_datanode(&layout, number, &serving)?);
        }
        wait_for(datanodes, &serving, &mut children).await?;
        // the text is for a person; a terminal that is gone is no reason to stop
        _ = io::stdout().write_all(next_steps(&layout, datanodes, jars.is_some(), &serving).as_bytes());
        Ok(())
    });
    children.iter_mut().for_each(end);
    code
}

fn fetch() -> Result<PathBuf, StartError> {
    if !hadoop::is_installed("java") {
        return Err(StartError::Unsupported("--with-datanodes needs Java 17 (java) on this machine".to_owned()));
    }
    hadoop::fetch().map_err(StartError::Unsupported)
}

/// Starts a DataNode in a folder of its own. It ends when this thread does.
fn start_datanode(layout: &Layout, number: u16, serving: &Serving) -> Result<Child, StartError> {
    let folder = layout.data.join(format!("dn{number}"));
    let conf = folder.join("conf");
    let start = || {
        embedded::write_datanode_sites(&conf, &folder, &format!("hdfs://{}", serving.rpc))?;
        hadoop::write_log_settings(&conf)?;
        let log = OpenOptions::new().create(true).append(true).open(folder.join("datanode.log"))?;
        let mut command = supervise::command(&layout.script)?;
        command.arg("--config").arg(&conf).arg("datanode").env("HADOOP_ROOT_LOGGER", "INFO,console");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
    };
    start().map_err(StartError::system("a DataNode"))
}

/// Waits until so many DataNodes are live.
async fn wait_for(datanodes: u16, serving: &Serving, children: &mut [Child]) -> Result<(), StartError> {
    let limit = Instant::now() + REGISTRATION_LIMIT;
    let failed = |what: String| Err(StartError::Unsupported(what));
    while live(serving) < usize::from(datanodes) {
        for (number, child) in (1..).zip(children.iter_mut()) {
            if let Some(status) = child.try_wait().map_err(StartError::system("a DataNode"))? {
                return failed(format!(
                    "DataNode {number} ended ({status}); see dn{number}/datanode.log in the data folder"
                ));
            }
        }
        if Instant::now() > limit {
            return failed(
                "the DataNodes did not register in time; see dn*/datanode.log in the data folder".to_owned(),
            );
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let limit = Instant::now() + REPORT_LIMIT;
    while datanodes > 0 && in_safe_mode(serving) && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn in_safe_mode(serving: &Serving) -> bool {
    serving.engine.lock().read("safe mode", |state| state.blocks.safe_mode.is_on())
}

fn live(serving: &Serving) -> usize {
    serving.engine.lock().read("live DataNodes", |state| state.blocks.datanode_report(blocks::ReportKind::Live).len())
}

/// Ends a DataNode in order; whatever is left of it goes with this process.
fn end(child: &mut Child) {
    if let Some(id) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        // it may have ended already
        _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    _ = child.wait();
}

/// What can be done now, as commands that work as they stand.
fn next_steps(layout: &Layout, datanodes: u16, client: bool, serving: &Serving) -> String {
    let (data, script) = (layout.data.display(), layout.script.display());
    let mut text = format!(
        "\nIronroot serves hdfs://{} (data in {data}).\n\n  status       curl http://{}/jmx\n",
        serving.rpc, serving.http
    );
    if in_safe_mode(serving) {
        text += "  (safe mode: not all blocks are reported yet; changes are refused until then)\n";
    }
    if client {
        text += &format!(
            "  list         {script} dfs -ls /\n  directory    {script} dfs -mkdir -p /user/{}\n",
            user_name()
        );
        if datanodes > 0 {
            text += &format!(
                "  put a file   {script} dfs -put {} /hello\n  read it      {script} dfs -cat /hello\n",
                layout.conf.join("core-site.xml").display()
            );
        }
    } else {
        text += &format!("  any client   HADOOP_CONF_DIR={} hdfs dfs -ls /\n", layout.conf.display());
    }
    text += "  stop         Ctrl-C\n\n";
    if datanodes == 0 {
        let again = format!("{} --data {data} --with-datanodes 1", program());
        text += &if hadoop::is_installed("java") && (client || hadoop::is_installed("mvn")) {
            format!("To store files, stop it and start it with real DataNodes:\n\n  {again}\n\n")
        } else {
            format!("To store files it needs DataNodes. Install Java 17 and Maven, stop it, and:\n\n  {again}\n\n")
        };
    }
    text
}

/// This program as it was called.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "ironroot".to_owned())
}

fn user_name() -> String {
    process_user(&Environment::of_process())
}
