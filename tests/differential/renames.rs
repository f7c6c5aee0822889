//! Renames, of which more must be known than whether they succeed.

use super::generate::{Call, Generator, quoted};
use super::pair::Pair;
use super::paths::is_odd;

impl Generator {
    /// The old rename into a directory that was itself renamed names its target in full: where only the directory is named, Hadoop forgets that it
    /// is in a snapshot, and loses what that has (see the scenario `a_rename_into_a_directory_out_of_a_snapshot`).
    pub(super) fn rename(&mut self, pair: &mut Pair, mut call: Call) {
        let (from, to) = (call.paths[0].clone(), call.paths[1].clone());
        let (source, target) = (pair.found(&from), pair.found(&to));
        let forgets = |(id, is_directory): (u64, bool)| is_directory && self.moved.contains(&id);
        if call.method == "rename" && target.is_some_and(forgets) {
            let name = from.rsplit('/').next().unwrap_or_default();
            if is_odd(&from) || name.is_empty() {
                return;
            }
            let to = format!("{}/{name}", to.trim_end_matches('/'));
            call.request = format!("src: {} dst: {}", quoted(&from), quoted(&to));
            call.paths[1] = to;
        }
        if let Ok(answer) = pair.ask(call.user, call.method, &call.request) {
            self.learn(&call, &answer);
            self.moved.extend(source.map(|(id, _)| id));
        }
    }
}
