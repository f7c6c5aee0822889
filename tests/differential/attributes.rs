//! Names and what is attached to them: making, moving, deleting; modes, owners, times, quotas, policies, ACLs, extended attributes.

use super::generate::{Call, Generator, quoted};

impl Generator {
    pub(super) fn names(&mut self) -> Call {
        let user = self.user();
        match self.dice.below(12) {
            0..=2 => {
                let path = if self.one_in(5) { self.path() } else { self.new_path() };
                let mode = self.pick(&[0o755, 0o755, 0o777, 0o700, 0o1777, 0]);
                let (parents, unmasked) = (!self.one_in(4), self.one_in(4));
                let unmasked = if unmasked { " unmasked { perm: 511 }" } else { "" };
                let request =
                    format!("src: {} masked {{ perm: {mode} }} createParent: {parents}{unmasked}", quoted(&path));
                self.call(user, "mkdirs", request, &[&path])
            }
            3..=6 => self.create(user),
            7 => {
                let path = self.path();
                let recursive = self.one_in(4);
                self.call(user, "delete", format!("src: {} recursive: {recursive}", quoted(&path)), &[&path])
            }
            8 | 9 => {
                let (from, to) = (self.path(), if self.one_in(2) { self.new_path() } else { self.path() });
                self.call(user, "rename", format!("src: {} dst: {}", quoted(&from), quoted(&to)), &[&from, &to])
            }
            _ => {
                let (from, to) = (self.path(), if self.one_in(2) { self.new_path() } else { self.path() });
                let (overwrite, trash) = (self.one_in(2), self.one_in(6));
                let trash = if trash { " moveToTrash: true" } else { "" };
                let request = format!("src: {} dst: {} overwriteDest: {overwrite}{trash}", quoted(&from), quoted(&to));
                self.call(user, "rename2", request, &[&from, &to])
            }
        }
    }

    fn entries(&mut self) -> String {
        let count = 1 + self.dice.below(4);
        let mut out = String::new();
        for _ in 0..count {
            let kind = self.pick(&["USER", "GROUP", "MASK", "OTHER"]);
            let scope = self.pick(&["ACCESS", "DEFAULT"]);
            let action = self.pick(&["NONE", "READ", "READ_WRITE", "READ_EXECUTE", "PERM_ALL"]);
            out += &format!(" aclSpec {{ type: {kind} scope: {scope} permissions: {action}");
            if matches!(kind, "USER" | "GROUP") && !self.one_in(3) {
                out += &format!(" name: \"{}\"", self.pick(&["alice", "bob", "staff"]));
            }
            out += " }";
        }
        out
    }

    pub(super) fn attributes(&mut self) -> Call {
        let (user, path) = (self.user(), self.path());
        let src = quoted(&path);
        let own = |generator: &Self, method, request| generator.call(user, method, request, &[]);
        match self.dice.below(21) {
            0 | 1 => {
                let mode = self.pick(&[0o755, 0o777, 0o700, 0o644, 0o1777, 0o750, 0]);
                own(self, "setPermission", format!("src: {src} permission {{ perm: {mode} }}"))
            }
            2 => {
                let name = self.pick(&["", " username: \"alice\"", " username: \"bob\"", " username: \"hdfs\""]);
                let group = self.pick(&["", " groupname: \"staff\"", " groupname: \"ops\""]);
                own(self, "setOwner", format!("src: {src}{name}{group}"))
            }
            3 => {
                let mtime = self.pick(&["1000000000000", "18446744073709551615", "0", "5"]);
                let atime = self.pick(&["1000000000001", "18446744073709551615", "0"]);
                own(self, "setTimes", format!("src: {src} mtime: {mtime} atime: {atime}"))
            }
            4 | 5 => {
                let replication = self.pick(&[1, 2, 3, 3, 0, 513]);
                own(self, "setReplication", format!("src: {src} replication: {replication}"))
            }
            6 => self.quota(),
            7 => {
                let policy = self.pick(&["HOT", "COLD", "WARM", "ALL_SSD", "ONE_SSD", "LAZY_PERSIST", "hot", "no"]);
                own(self, "setStoragePolicy", format!("src: {src} policyName: \"{policy}\""))
            }
            8 => own(self, "unsetStoragePolicy", format!("src: {src}")),
            9 => {
                let entries = self.entries();
                own(self, "modifyAclEntries", format!("src: {src}{entries}"))
            }
            10 => {
                let entries = self.entries();
                own(self, "removeAclEntries", format!("src: {src}{entries}"))
            }
            11 => {
                let entries = self.entries();
                own(self, "setAcl", format!("src: {src}{entries}"))
            }
            12 => own(self, "removeDefaultAcl", format!("src: {src}")),
            13 => own(self, "removeAcl", format!("src: {src}")),
            14 | 15 => {
                let (attribute, flag) = (self.xattr(true), self.pick(&[1, 2, 3, 3, 3, 0]));
                own(self, "setXAttr", format!("src: {src} xAttr {{ {attribute} }} flag: {flag}"))
            }
            16 => own(self, "satisfyStoragePolicy", format!("src: {src}")),
            17 => {
                let attribute = self.xattr(false);
                own(self, "removeXAttr", format!("src: {src} xAttr {{ {attribute} }}"))
            }
            _ => match self.dice.below(3) {
                0 => own(self, "unsetErasureCodingPolicy", format!("src: {src}")),
                _ => {
                    let policy = self.pick(&["RS-6-3-1024k", "XOR-2-1-1024k", "replication", "RS-3-2-1024k"]);
                    own(self, "setErasureCodingPolicy", format!("src: {src} ecPolicyName: \"{policy}\""))
                }
            },
        }
    }

    pub(super) fn xattr(&mut self, value: bool) -> String {
        let namespace = self.pick(&["USER", "USER", "USER", "TRUSTED", "SECURITY", "SYSTEM", "RAW"]);
        let name = self.pick(&["x", "y", "\u{e9}", "", "z"]);
        let value =
            if value { self.pick(&[" value: \"v\"", " value: \"\"", "", " value: \"\\377\\000\""]) } else { "" };
        format!("namespace: {namespace} name: {}{value}", quoted(name))
    }

    fn quota(&mut self) -> Call {
        let path = if self.one_in(4) { self.path() } else { self.directory() };
        let (keep, reset) = (i64::MAX as u64, u64::MAX);
        // and so does its count of names: it has been 0 for four files, so that it took a create where one name was allowed
        let names = self.pick(&[keep, reset, reset, 20_000, 2_000, 5_000]);
        // Java's use of space drifts: quotas that it could reach refuse calls at random
        let space = self.pick(&[keep, reset, reset, 1 << 36, 1 << 38, 1 << 38]);
        let kind = self.pick(&["", "", "", " storageType: DISK", " storageType: SSD", " storageType: ARCHIVE"]);
        let names = if kind.is_empty() { names } else { keep };
        let request = format!("path: {} namespaceQuota: {names} storagespaceQuota: {space}{kind}", quoted(&path));
        let user = if self.one_in(6) { self.user() } else { "hdfs" };
        self.call(user, "setQuota", request, &[])
    }
}
