//! Questions about one path.

use super::generate::{Call, Generator, quoted};

impl Generator {
    pub(super) fn reads(&mut self) -> Call {
        let (user, path) = (self.user(), self.path());
        let src = quoted(&path);
        let (method, request) = match self.dice.below(27) {
            0 | 1 => ("getFileInfo", format!("src: {src}")),
            2 => ("getFileLinkInfo", format!("src: {src}")),
            3 => ("getLocatedFileInfo", format!("src: {src} needBlockToken: false")),
            4 | 5 => {
                let after = if self.one_in(3) { self.name() } else { String::new() };
                let located = self.one_in(3);
                ("getListing", format!("src: {src} startAfter: {} needLocation: {located}", quoted(&after)))
            }
            6 => {
                let (one, two) = (quoted(&self.directory()), quoted(&self.path()));
                let after = if self.one_in(4) { self.name() } else { String::new() };
                let located = self.one_in(3);
                let request =
                    format!("paths: {one} paths: {two} startAfter: {} needLocation: {located}", quoted(&after));
                ("getBatchedListing", request)
            }
            7 | 8 => {
                let offset = self.pick(&[0, 0, 1, 1 << 20, 3 << 20, u64::MAX]);
                let length = self.pick(&[i64::MAX as u64, 1, 0, 2 << 20, u64::MAX]);
                ("getBlockLocations", format!("src: {src} offset: {offset} length: {length}"))
            }
            9 | 10 => ("getContentSummary", format!("path: {src}")),
            11 | 12 => ("getQuotaUsage", format!("path: {src}")),
            13 => {
                let mode = self.pick(&["READ", "WRITE", "EXECUTE", "READ_WRITE", "PERM_ALL", "NONE"]);
                ("checkAccess", format!("path: {src} mode: {mode}"))
            }
            14 => ("isFileClosed", format!("src: {src}")),
            15 => ("getPreferredBlockSize", format!("filename: {src}")),
            16 => ("getLinkTarget", format!("path: {src}")),
            17 | 18 => ("getAclStatus", format!("src: {src}")),
            19 => {
                let wanted =
                    if self.one_in(2) { format!(" xAttrs {{ {} }}", self.xattr(false)) } else { String::new() };
                ("getXAttrs", format!("src: {src}{wanted}"))
            }
            20 => ("listXAttrs", format!("src: {src}")),
            21 => ("getStoragePolicy", format!("path: {src}")),
            22 => ("getErasureCodingPolicy", format!("src: {src}")),
            23 => ("getEZForPath", format!("src: {src}")),
            24 => ("getEnclosingRoot", format!("filename: {src}")),
            25 => {
                // which one a small number leaves out goes by the order of queues
                let cookie = if self.one_in(4) { self.pick(&[1_000, -1]) } else { 0 };
                ("listCorruptFileBlocks", format!("path: {src} cookie: \"{cookie}\""))
            }
            _ => {
                let kind = self.pick(&["", " types: ALL_OPEN_FILES", " types: BLOCKING_DECOMMISSION"]);
                ("listOpenFiles", format!("id: 0{kind} path: {src}"))
            }
        };
        self.call(user, method, request, &[])
    }
}
