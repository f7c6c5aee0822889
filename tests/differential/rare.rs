//! Files that are opened again, cut, put together, linked.

use super::generate::{CLIENTS, Call, Generator, quoted};
use super::model::Entry;
use super::writers::BLOCK_BYTES;

impl Generator {
    pub(super) fn rare(&mut self) -> Call {
        let user = self.user();
        let client = self.pick(&CLIENTS);
        match self.dice.below(9) {
            0..=2 => {
                let path = self.some_file();
                let flag = self.pick(&["", " flag: 4", " flag: 36", " flag: 36"]);
                let request = format!("src: {} clientName: \"{client}\"{flag}", quoted(&path));
                Call { client, ..self.call(user, "append", request, &[&path]) }
            }
            3 | 4 => {
                let path = self.some_file();
                let blocks = self.model.tree.get(&path).map_or(0, |entry| entry.blocks.len() as u64);
                let length = self.pick(&[blocks.saturating_sub(1) * BLOCK_BYTES, blocks * BLOCK_BYTES, 0, 5, u64::MAX]);
                let request = format!("src: {} newLength: {length} clientName: \"{client}\"", quoted(&path));
                Call { client, ..self.call(user, "truncate", request, &[&path]) }
            }
            5 | 6 => {
                let target = self.some_file();
                let parent = target.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
                let beside = |(path, entry): (&String, &Entry)| {
                    (!entry.directory && *path != target && path.rsplit_once('/').is_some_and(|(p, _)| p == parent))
                        .then(|| path.clone())
                };
                let mut sources: Vec<String> = self.model.tree.iter().filter_map(beside).take(2).collect();
                if sources.is_empty() || self.one_in(6) {
                    sources.push(self.path());
                }
                let request: String = sources.iter().map(|source| format!(" srcs: {}", quoted(source))).collect();
                let mut paths = vec![target.clone()];
                paths.extend(sources);
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                self.call(user, "concat", format!("trg: {}{request}", quoted(&target)), &paths)
            }
            7 => {
                let path = self.some_file();
                let request = format!("src: {} clientName: \"{client}\"", quoted(&path));
                self.call(user, "recoverLease", request, &[])
            }
            _ => {
                let target = if self.one_in(4) { self.path() } else { "/w".to_owned() };
                let link = if self.one_in(4) { self.path() } else { self.new_path() };
                let (target, link, parents) = (quoted(&target), quoted(&link), self.one_in(3));
                let request = format!("target: {target} link: {link} dirPerm {{ perm: 511 }} createParent: {parents}");
                self.call(user, "createSymlink", request, &[])
            }
        }
    }
}
