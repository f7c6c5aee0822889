//! Paths: mostly of what is there, with every odd form among them.

use super::generate::Generator;
use super::model::Entry;

const NAMES: [&str; 12] =
    ["a", "b", "c", "d", "e", "f", "dir", "file.txt", "with space", "\u{e9}", "\u{1f600}", "tab\there"];

impl Generator {
    pub(super) fn find(&mut self, wanted: impl Fn(&Entry) -> bool) -> Option<(String, Entry)> {
        let count = self.model.tree.len();
        for _ in 0..12 {
            let at = self.dice.below(count);
            if let Some((path, entry)) = self.model.tree.iter().nth(at)
                && wanted(entry)
            {
                return Some((path.clone(), entry.clone()));
            }
        }
        None
    }

    pub(super) fn existing(&mut self) -> String {
        self.find(|_| true).map_or_else(|| "/".to_owned(), |(path, _)| path)
    }

    pub(super) fn directory(&mut self) -> String {
        self.find(|entry| entry.directory).map_or_else(|| "/w".to_owned(), |(path, _)| path)
    }

    pub(super) fn file(&mut self) -> String {
        self.find(|entry| !entry.directory).map_or_else(|| "/w/none".to_owned(), |(path, _)| path)
    }

    pub(super) fn name(&mut self) -> String {
        match self.dice.below(60) {
            0 => "n".repeat(250 + self.dice.below(10)),
            1 => "\u{e9}".repeat(126 + self.dice.below(4)),
            _ => self.pick(&NAMES).to_owned(),
        }
    }

    pub(super) fn new_path(&mut self) -> String {
        let directory = self.directory();
        let deeper = if self.one_in(8) { format!("{}/", self.name()) } else { String::new() };
        let directory = if directory.matches('/').count() > 6 { "/w".to_owned() } else { directory };
        format!("{}/{deeper}{}", directory.trim_end_matches('/'), self.name())
    }

    /// Mostly what is there.
    pub(super) fn path(&mut self) -> String {
        if self.one_in(9)
            && let Some(path) = self.past_path()
        {
            return path;
        }
        match self.dice.below(14) {
            0 => self.odd_path(),
            1 | 2 => self.new_path(),
            3 => self.directory(),
            4 | 5 => self.file(),
            _ => self.existing(),
        }
    }

    fn odd_path(&mut self) -> String {
        let path = self.existing();
        let id = self.model.tree.get(&path).map_or(16_385, |entry| entry.id);
        match self.dice.below(27) {
            0 => String::new(),
            1 => "/".to_owned(),
            2 => "//".to_owned(),
            3 => path.trim_start_matches('/').to_owned(),
            4 => format!("/{path}"),
            5 => format!("{path}/"),
            6 => format!("{path}/."),
            7 => format!("{path}/.."),
            8 => format!("{path}/../x"),
            9 => format!("{path}//x"),
            10 => format!("{path}/a:b"),
            11 => format!("{path}/~~raw~~"),
            12 => format!("{path}/a\nb\u{1}"),
            13 => format!("/{}", "abcdefghi/".repeat(799 + self.dice.below(3))),
            14 => format!("/w{}", "/d".repeat(998 + self.dice.below(3))),
            15 => "/.reserved".to_owned(),
            16 => "/.reserved/raw".to_owned(),
            17 => format!("/.reserved/raw{path}"),
            18 | 19 if id > 0 => format!("/.reserved/.inodes/§F{id}§"),
            20 if id > 0 => format!("/.reserved/.inodes/§F{id}§/{}", self.name()),
            21 => "/.reserved/.inodes/1/x".to_owned(),
            22 => format!("{path}/.snapshot"),
            23 => ".".to_owned(),
            24 => format!("/../{}", path.trim_start_matches('/')),
            25 => format!("/./{}", path.trim_start_matches('/')),
            _ => format!("{path}/x"),
        }
    }

    /// Mostly a file; else anything.
    pub(super) fn some_file(&mut self) -> String {
        if self.one_in(10) { self.path() } else { self.file() }
    }

    /// The path of a call that a writer makes: now and then another one than his.
    pub(super) fn or_odd(&mut self, path: &str) -> String {
        if self.one_in(40) { self.path() } else { path.to_owned() }
    }
}

/// Whether the model does not follow a call with this path.
pub fn is_odd(path: &str) -> bool {
    path.is_empty()
        || !path.starts_with('/')
        || path.contains("//")
        || path.contains("/.")
        || path.contains("~~raw~~")
        || path.contains(':')
        || path.ends_with('/')
}
