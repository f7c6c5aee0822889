//! Groups through the `id` command, found by the `PATH` of this process.

use super::GroupList;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;

/// Asks for names; where some have none, asks for numbers as well and leaves those out that are only numbers.
pub(super) async fn look_up(user: &str, timeout: Option<Duration>) -> GroupList {
    let quoted = format!("'{}'", user.replace('\'', r"'\''"));
    let Some((good, names)) = run(&format!("id -gn {quoted}; id -Gn {quoted}"), user, timeout).await else {
        return Arc::default();
    };
    if good {
        return distinct(names.split_ascii_whitespace());
    }
    if names.trim().is_empty() {
        tracing::debug!(user, "no groups: the user is not known to the system");
        return Arc::default();
    }
    let Some((true, numbers)) = run(&format!("id -g {quoted}; id -G {quoted}"), user, timeout).await else {
        return Arc::default();
    };
    named(&names, &numbers)
}

/// Exit state and output of a shell command; `None` if it could not run or took too long.
async fn run(script: &str, user: &str, timeout: Option<Duration>) -> Option<(bool, String)> {
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = match timeout {
        None => command.output().await,
        Some(limit) => match tokio::time::timeout(limit, command.output()).await {
            Ok(output) => output,
            Err(_) => {
                tracing::warn!(user, script, ?limit, "unable to return groups: the command ran longer than its limit");
                return None;
            }
        },
    };
    match output {
        Ok(output) => Some((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())),
        Err(error) => {
            tracing::warn!(user, %error, "unable to return groups: the shell does not start");
            None
        }
    }
}

/// Names whose place in the list of numbers holds another text.
fn named(names: &str, numbers: &str) -> GroupList {
    let pairs = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
    distinct(pairs.filter(|(name, number)| name != number).map(|(name, _)| name))
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> GroupList {
    let mut list: Vec<Arc<str>> = Vec::new();
    for name in names {
        if !list.iter().any(|n| **n == *name) {
            list.push(name.into());
        }
    }
    list.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_names_leave_numbers_out() {
        let list = named("1000\n1000 staff 77 wheel\n", "1000\n1000 50 77 10\n");
        assert_eq!(list.iter().map(|g| &**g).collect::<Vec<_>>(), ["staff", "wheel"]);
    }

    #[tokio::test]
    async fn asks_the_system() {
        assert_eq!(&*look_up("root", None).await[0], "root");
        assert!(look_up("no'such; user", None).await.is_empty());
    }
}
