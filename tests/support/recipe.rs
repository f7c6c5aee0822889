//! Damaged directories made from whole ones by recipes (tests/golden/edits/README.md tells the commands).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files and empty folders by path, relative to the place where the tree is put (`a/current/VERSION`).
#[derive(Clone, Default, Debug)]
pub struct Tree {
    /// Content by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Folders that exist even if nothing is in them.
    pub folders: BTreeSet<String>,
}

/// One line of a table of variants.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub id: String,
    /// Directories given to the server.
    pub directories: Vec<String>,
    /// How it is made.
    pub recipe: String,
    /// Bytes of the damaged file, if one is.
    pub bytes: Option<usize>,
    /// Whether Hadoop loads it.
    pub loaded: bool,
    /// Last transaction it applied.
    pub last_txid: Option<u64>,
    /// Inodes after the load.
    pub inodes: Option<u64>,
    /// First line of the refusal.
    pub message: String,
    /// Names left in each directory.
    pub files_after: String,
}

/// Reads a table of variants (the columns of tests/golden/edits/README.md).
pub fn variants(table: &str) -> Vec<Variant> {
    let variant = |line: &str| {
        let column: Vec<&str> = line.split('\t').collect();
        Variant {
            id: column[0].to_owned(),
            directories: column[1].split(',').map(str::to_owned).collect(),
            recipe: column[2].to_owned(),
            bytes: column[3].parse().ok(),
            loaded: column[4] == "LOADED",
            last_txid: column[5].parse().ok(),
            inodes: column[6].parse().ok(),
            message: column[8].to_owned(),
            files_after: column[9].to_owned(),
        }
    };
    table.lines().skip(1).map(variant).collect()
}

/// Reads the files of a folder, without folders below it.
pub fn read_folder(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

impl Tree {
    /// Carries out a recipe. `base` is what `base` copies; `md5` gives the hexadecimal digest of content.
    pub fn from_recipe(recipe: &str, base: &BTreeMap<String, Vec<u8>>, md5: fn(&[u8]) -> String) -> Tree {
        let mut tree = Tree::default();
        for command in recipe.split("; ") {
            tree.apply(&command.trim().split(' ').collect::<Vec<_>>(), base, md5);
        }
        tree
    }

    fn apply(&mut self, command: &[&str], base: &BTreeMap<String, Vec<u8>>, md5: fn(&[u8]) -> String) {
        let directory = command[0];
        let path = |name: &str| {
            if name == "." { format!("{directory}/current") } else { format!("{directory}/current/{name}") }
        };
        let argument = |index: usize| command.get(index).copied().unwrap_or("");
        let number = |index: usize| argument(index).parse::<usize>().unwrap();
        match command[1] {
            "base" => {
                self.folders.insert(format!("{directory}/current"));
                self.files.extend(base.iter().map(|(name, content)| (path(name), content.clone())));
            }
            "empty-dir" | "no-dir" => {
                let below = format!("{directory}/");
                self.files.retain(|name, _| !name.starts_with(&below));
                self.folders.retain(|name| name != directory && !name.starts_with(&below));
                if command[1] == "empty-dir" {
                    self.folders.insert(directory.to_owned());
                }
            }
            "rm" => _ = self.files.remove(&path(argument(2))).unwrap(),
            "mv" => {
                let content = self.files.remove(&path(argument(2))).unwrap();
                self.files.insert(path(argument(3)), content);
            }
            "cp" => {
                let content = self.files[&path(argument(2))].clone();
                self.files.insert(path(argument(3)), content);
            }
            "mkdir" => _ = self.folders.insert(path(argument(2))),
            "mvdir" | "cpdir" => self.folder(directory, argument(2), argument(3), command[1] == "mvdir"),
            "md5" => {
                let text = format!("{} *{}\n", md5(&self.files[&path(argument(2))]), argument(2));
                self.files.insert(path(&format!("{}.md5", argument(2))), text.into_bytes());
            }
            "write" => _ = self.files.insert(path(argument(2)), hex(argument(3))),
            "prop" => property(self.files.get_mut(&path(argument(2))).unwrap(), argument(3)),
            edit => {
                let content = self.files.get_mut(&path(argument(2))).unwrap();
                let offset = || match argument(3).parse::<i64>().unwrap() {
                    offset if offset < 0 => content.len() - offset.unsigned_abs() as usize,
                    offset => offset as usize,
                };
                match edit {
                    "cut" => content.resize(number(3), 0),
                    "xor" => {
                        let at = offset();
                        content[at] ^= hex(argument(4))[0];
                    }
                    "set" => {
                        let (at, value) = (offset(), hex(argument(4)));
                        content[at..at + value.len()].copy_from_slice(&value);
                    }
                    "append" => content.extend(hex(argument(3)).repeat(number(4))),
                    "drop" => _ = content.drain(number(3)..number(4)),
                    "copy-in" => {
                        let copy = content[number(3)..number(4)].to_vec();
                        content.splice(number(5)..number(5), copy);
                    }
                    other => panic!("unknown command {other}"),
                }
            }
        }
    }

    fn folder(&mut self, directory: &str, from: &str, to: &str, moves: bool) {
        let (from, to) = (format!("{directory}/{from}"), format!("{directory}/{to}"));
        let inside = |name: &String| {
            name.strip_prefix(&from).filter(|rest| rest.is_empty() || rest.starts_with('/')).map(str::to_owned)
        };
        let files: Vec<_> = self
            .files
            .iter()
            .filter_map(|(name, content)| Some((name.clone(), inside(name)?, content.clone())))
            .collect();
        for (name, rest, content) in files {
            if moves {
                self.files.remove(&name);
            }
            self.files.insert(format!("{to}{rest}"), content);
        }
        let folders: Vec<_> = self.folders.iter().filter_map(|name| Some((name.clone(), inside(name)?))).collect();
        for (name, rest) in folders {
            if moves {
                self.folders.remove(&name);
            }
            self.folders.insert(format!("{to}{rest}"));
        }
    }
}

fn property(content: &mut Vec<u8>, assignment: &str) {
    let key = assignment.split('=').next().unwrap();
    let text = String::from_utf8(content.clone()).unwrap();
    let mut lines: Vec<_> =
        text.lines().filter(|line| !line.starts_with(&format!("{key}="))).map(str::to_owned).collect();
    if assignment.contains('=') {
        lines.push(assignment.to_owned());
    }
    *content = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}
