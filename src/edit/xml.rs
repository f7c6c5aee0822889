//! Records as the XML of Hadoop's offline edits viewer (`hdfs oev -p XML`), byte for byte.

use crate::record::{AddClose, Bytes, CacheDirective, CachePool, Permission, RenameOption, Token};
use crate::{Opcode, Record};
use std::fmt::{Display, Write};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::time::TimeMs;
use vocab::xattr::Xattr;
use vocab::{Block, LayoutVersion, Mode, RpcIds, Txid};

/// The text before the first record of a log of the given layout.
pub fn opening(layout: LayoutVersion) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<EDITS>\n  <EDITS_VERSION>{}</EDITS_VERSION>\n",
        layout.0
    )
}

/// The text after the last record.
pub const CLOSING: &str = "</EDITS>\n";

/// Appends one record.
pub fn record(txid: Txid, record: &Record<'_>, out: &mut String) {
    let mut xml = Xml { out, depth: 1 };
    xml.open("RECORD");
    xml.value("OPCODE", record.opcode().name());
    xml.open("DATA");
    xml.value("TXID", txid);
    xml.body(record);
    xml.close("DATA");
    xml.close("RECORD");
}

struct Xml<'o> {
    out: &'o mut String,
    depth: usize,
}

impl Xml<'_> {
    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }
    fn open(&mut self, name: &str) {
        self.indent();
        _ = writeln!(self.out, "<{name}>");
        self.depth += 1;
    }
    fn close(&mut self, name: &str) {
        self.depth -= 1;
        self.indent();
        _ = writeln!(self.out, "</{name}>");
    }
    fn value(&mut self, name: &str, value: impl Display) -> &mut Self {
        self.text(name, &value.to_string())
    }
    fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.indent();
        if text.is_empty() {
            _ = writeln!(self.out, "<{name}/>");
            return self;
        }
        _ = write!(self.out, "<{name}>");
        text.chars().for_each(|c| self.character(c));
        _ = writeln!(self.out, "</{name}>");
        self
    }
    /// Quirk: viewer_escapes: what XML cannot hold, and the backslash, is written as `\` with four hex digits and `;`.
    fn character(&mut self, c: char) {
        match c {
            '\\' | '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                _ = write!(self.out, "\\{:04x};", u32::from(c));
            }
            '&' => self.out.push_str("&amp;"),
            '<' => self.out.push_str("&lt;"),
            '>' => self.out.push_str("&gt;"),
            '\r' | '\u{7f}'..='\u{9f}' | '\u{10000}'.. => _ = write!(self.out, "&#{};", u32::from(c)),
            c => self.out.push(c),
        }
    }
    fn path(&mut self, name: &str, path: &Bytes<'_>) -> &mut Self {
        self.text(name, &String::from_utf8_lossy(path))
    }
    fn time(&mut self, name: &str, time: TimeMs) -> &mut Self {
        self.value(name, time.0)
    }
    fn optional(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.value(name, value);
        }
        self
    }
    /// Old forms begin with the length of their counted array, which is 0 ever since.
    fn length(&mut self) -> &mut Self {
        self.value("LENGTH", 0)
    }

    fn body(&mut self, record: &Record<'_>) {
        use Record as R;
        match record {
            R::Add(file) | R::Close(file) => self.file(file, record.opcode()),
            R::RenameOld { src, dst, time, rpc } => {
                self.length().path("SRC", src).path("DST", dst).time("TIMESTAMP", *time).rpc(rpc);
            }
            R::Delete { path, time, rpc } => self.length().path("PATH", path).time("TIMESTAMP", *time).rpc(rpc),
            R::Mkdir { inode_id, path, mtime, permission, acl, xattrs, .. } => {
                self.length()
                    .value("INODEID", inode_id)
                    .path("PATH", path)
                    .time("TIMESTAMP", *mtime)
                    .permission(permission);
                self.acl(acl);
                self.xattrs(xattrs, false);
            }
            R::SetReplication { path, replication } => {
                _ = self.path("PATH", path).value("REPLICATION", *replication as i16)
            }
            R::SetPermissions { path, mode } => _ = self.path("SRC", path).value("MODE", Mode::new(*mode).bits()),
            R::SetOwner { path, user, group } => {
                self.path("SRC", path).optional("USERNAME", user.as_ref()).optional("GROUPNAME", group.as_ref());
            }
            R::SetGenstampV1 { stamp } => _ = self.value("GENSTAMP", stamp),
            R::SetNamespaceQuota { path, quota } => _ = self.path("SRC", path).value("NSQUOTA", quota),
            R::ClearNamespaceQuota { path } => _ = self.path("SRC", path),
            R::Times { path, mtime, atime } => {
                _ = self.length().path("PATH", path).time("MTIME", *mtime).time("ATIME", *atime)
            }
            R::SetQuota { path, namespace, space } => {
                self.path("SRC", path).value("NSQUOTA", namespace).value("DSQUOTA", space);
            }
            R::Rename { src, dst, time, options, rpc } => {
                self.length()
                    .path("SRC", src)
                    .path("DST", dst)
                    .time("TIMESTAMP", *time)
                    .text("OPTIONS", &rename_options(options))
                    .rpc(rpc);
            }
            R::Concat { target, sources, time, rpc } => {
                self.length().path("TRG", target).time("TIMESTAMP", *time).sources(sources).rpc(rpc);
            }
            R::Symlink { inode_id, path, target, mtime, atime, permission, rpc } => {
                self.length().value("INODEID", inode_id).path("PATH", path).path("VALUE", target);
                self.time("MTIME", *mtime).time("ATIME", *atime).permission(permission).rpc(rpc);
            }
            R::EndLogSegment | R::StartLogSegment => {}
            R::SetGenstampV2 { stamp } => _ = self.value("GENSTAMPV2", stamp),
            R::AllocateBlockId { id } => _ = self.value("BLOCK_ID", id),
            R::UpdateBlocks { path, blocks, rpc } => self.path("PATH", path).blocks(blocks).rpc(rpc),
            R::AddBlock { path, penultimate, last, rpc } => {
                self.path("PATH", path).blocks(penultimate).blocks([last]).rpc(rpc);
            }
            _ => self.writer(record),
        }
    }

    fn writer(&mut self, record: &Record<'_>) {
        use Record as R;
        match record {
            R::ReassignLease { holder, path, new_holder } => {
                self.text("LEASEHOLDER", holder).path("PATH", path).text("NEWHOLDER", new_holder);
            }
            R::Truncate { path, client_name, client_machine, new_length, time, block } => {
                self.path("SRC", path).text("CLIENTNAME", client_name).text("CLIENTMACHINE", client_machine);
                self.value("NEWLENGTH", *new_length as i64).time("TIMESTAMP", *time).blocks(block);
            }
            R::Append { path, client_name, client_machine, new_block, rpc } => {
                self.path("PATH", path).text("CLIENT_NAME", client_name).text("CLIENT_MACHINE", client_machine);
                self.value("NEWBLOCK", new_block).rpc(rpc);
            }
            _ => self.rarer(record),
        }
    }

    fn rarer(&mut self, record: &Record<'_>) {
        use Record as R;
        match record {
            R::GetDelegationToken { token, expiry } | R::RenewDelegationToken { token, expiry } => {
                self.token(token).time("EXPIRY_TIME", *expiry);
            }
            R::CancelDelegationToken { token } => _ = self.token(token),
            R::UpdateMasterKey { id, expiry, key } => {
                self.open("DELEGATION_KEY");
                self.value("KEY_ID", id).time("EXPIRY_DATE", *expiry).optional("KEY", key.as_deref().map(hex));
                self.close("DELEGATION_KEY");
            }
            R::CreateSnapshot { root, name, mtime, rpc } | R::DeleteSnapshot { root, name, mtime, rpc } => {
                self.path("SNAPSHOTROOT", root)
                    .path("SNAPSHOTNAME", name)
                    .value("MTIME", mtime.unwrap_or_default().0)
                    .rpc(rpc);
            }
            R::RenameSnapshot { root, old, new, mtime, rpc } => {
                self.path("SNAPSHOTROOT", root).path("SNAPSHOTOLDNAME", old).path("SNAPSHOTNEWNAME", new);
                self.value("MTIME", mtime.unwrap_or_default().0).rpc(rpc);
            }
            R::AllowSnapshot { root } | R::DisallowSnapshot { root } => _ = self.path("SNAPSHOTROOT", root),
            R::AddCacheDirective { directive, rpc } | R::ModifyCacheDirective { directive, rpc } => {
                self.cache_directive(directive).rpc(rpc);
            }
            R::RemoveCacheDirective { id, rpc } => self.value("ID", id).rpc(rpc),
            R::AddCachePool { pool, rpc } | R::ModifyCachePool { pool, rpc } => self.cache_pool(pool).rpc(rpc),
            R::RemoveCachePool { name, rpc } => self.text("POOLNAME", name).rpc(rpc),
            R::SetAcl { path, entries } => _ = self.path("SRC", path).acl(entries),
            R::RollingUpgradeStart { time } => _ = self.time("STARTTIME", *time),
            R::RollingUpgradeFinalize { time } => _ = self.time("FINALIZETIME", *time),
            R::SetXattr { path, xattrs, given, rpc } => self.path("SRC", path).xattrs(xattrs, *given).rpc(rpc),
            R::RemoveXattr { path, xattrs, rpc } => self.path("SRC", path).xattrs(xattrs, false).rpc(rpc),
            R::SetStoragePolicy { path, policy } => _ = self.path("PATH", path).value("POLICYID", *policy as i8),
            R::SetQuotaByKind { path, kind, quota } => {
                self.path("SRC", path).value("STORAGETYPE", *kind as u8).value("DSQUOTA", quota);
            }
            R::AddErasureCodingPolicy { codec, data_units, parity_units, cell_size, options, rpc } => {
                self.text("CODEC", codec).value("DATAUNITS", data_units).value("PARITYUNITS", parity_units);
                self.value("CELLSIZE", cell_size).value("EXTRAOPTIONS", options.len());
                for (key, value) in options {
                    self.open("EXTRAOPTION");
                    self.text("KEY", key).text("VALUE", value);
                    self.close("EXTRAOPTION");
                }
                self.rpc(rpc);
            }
            R::EnableErasureCodingPolicy { name, rpc }
            | R::DisableErasureCodingPolicy { name, rpc }
            | R::RemoveErasureCodingPolicy { name, rpc } => self.text("POLICYNAME", name).rpc(rpc),
            _ => unreachable!("written by `body`"),
        }
    }

    fn file(&mut self, file: &AddClose<'_>, opcode: Opcode) {
        self.length()
            .value("INODEID", file.inode_id)
            .path("PATH", &file.path)
            .value("REPLICATION", file.replication as i16);
        self.time("MTIME", file.mtime).time("ATIME", file.atime).value("BLOCKSIZE", file.block_size as i64);
        self.text("CLIENT_NAME", &file.client_name)
            .text("CLIENT_MACHINE", &file.client_machine)
            .value("OVERWRITE", file.overwrite);
        self.blocks(&file.blocks).permission(&file.permission);
        if opcode == Opcode::Add {
            self.acl(&file.acl).value("ERASURE_CODING_POLICY_ID", file.erasure_coding_policy as i8).rpc(&file.rpc);
        }
    }
    fn sources(&mut self, sources: &[Bytes<'_>]) -> &mut Self {
        if sources.is_empty() {
            return self.text("SOURCES", "");
        }
        self.open("SOURCES");
        for (index, source) in sources.iter().enumerate() {
            self.path(&format!("SOURCE{}", index + 1), source);
        }
        self.close("SOURCES");
        self
    }
    fn blocks<'b>(&mut self, blocks: impl IntoIterator<Item = &'b Block>) -> &mut Self {
        for block in blocks {
            self.open("BLOCK");
            self.value("BLOCK_ID", block.id).value("NUM_BYTES", block.length as i64).value("GENSTAMP", block.stamp);
            self.close("BLOCK");
        }
        self
    }
    fn permission(&mut self, permission: &Permission<'_>) -> &mut Self {
        self.open("PERMISSION_STATUS");
        self.text("USERNAME", &permission.user)
            .text("GROUPNAME", &permission.group)
            .value("MODE", Mode::new(permission.mode).bits());
        self.close("PERMISSION_STATUS");
        self
    }
    fn acl(&mut self, entries: &[AclEntry]) -> &mut Self {
        for entry in entries {
            self.open("ENTRY");
            self.text("SCOPE", if entry.scope == AclScope::Access { "ACCESS" } else { "DEFAULT" });
            self.text(
                "TYPE",
                match entry.kind {
                    AclKind::User => "USER",
                    AclKind::Group => "GROUP",
                    AclKind::Mask => "MASK",
                    AclKind::Other => "OTHER",
                },
            );
            self.optional("NAME", entry.name.as_ref()).text("PERM", entry.permission.symbol());
            self.close("ENTRY");
        }
        self
    }
    fn xattrs(&mut self, xattrs: &[Xattr], given: bool) -> &mut Self {
        for xattr in xattrs {
            self.open("XATTR");
            self.text("NAMESPACE", ["USER", "TRUSTED", "SECURITY", "SYSTEM", "RAW"][xattr.namespace as usize]);
            self.text("NAME", &xattr.name);
            if given || !xattr.value.is_empty() {
                self.text("VALUE", &format!("0x{}", hex(&xattr.value)));
            }
            self.close("XATTR");
        }
        self
    }
    fn rpc(&mut self, rpc: &Option<RpcIds>) {
        match rpc {
            Some(ids) => {
                let h = hex(&ids.client_id);
                self.text(
                    "RPC_CLIENTID",
                    &format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..]),
                );
                self.value("RPC_CALLID", ids.call_id);
            }
            None => _ = self.text("RPC_CLIENTID", "").value("RPC_CALLID", crate::fields::NO_CALL_ID),
        }
    }
    fn token(&mut self, token: &Token<'_>) -> &mut Self {
        self.open("DELEGATION_TOKEN_IDENTIFIER");
        self.text("KIND", "HDFS_DELEGATION_TOKEN").value("SEQUENCE_NUMBER", token.sequence_number);
        self.text("OWNER", &token.owner).text("RENEWER", &token.renewer).text("REALUSER", &token.real_user);
        self.time("ISSUE_DATE", token.issue_date)
            .time("MAX_DATE", token.max_date)
            .value("MASTER_KEY_ID", token.master_key_id);
        self.close("DELEGATION_TOKEN_IDENTIFIER");
        self
    }
    fn cache_directive(&mut self, directive: &CacheDirective<'_>) -> &mut Self {
        self.value("ID", directive.id);
        if let Some(path) = &directive.path {
            self.path("PATH", path);
        }
        self.optional("REPLICATION", directive.replication).optional("POOL", directive.pool.as_ref());
        self.optional("EXPIRATION", directive.expiration.map(|time| time.0))
    }
    fn cache_pool(&mut self, pool: &CachePool<'_>) -> &mut Self {
        self.text("POOLNAME", &pool.name)
            .optional("OWNERNAME", pool.owner.as_ref())
            .optional("GROUPNAME", pool.group.as_ref());
        self.optional("MODE", pool.mode.map(|mode| mode.bits())).optional("LIMIT", pool.limit);
        self.optional("MAXRELATIVEEXPIRY", pool.max_relative_expiry)
            .optional("DEFAULTREPLICATION", pool.default_replication)
    }
}

fn rename_options(options: &[RenameOption]) -> String {
    let names = options.iter().map(|option| match option {
        RenameOption::None => "NONE",
        RenameOption::Overwrite => "OVERWRITE",
        RenameOption::ToTrash => "TO_TRASH",
    });
    names.collect::<Vec<_>>().join("|")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text: String, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}
