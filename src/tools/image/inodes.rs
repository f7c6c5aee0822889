//! Inodes as XML.

use super::view::View;
use crate::tools::failure::Failure;
use crate::tools::text::hex;
use hadoop_proto::fsimage::i_node_section as wire;
use hadoop_proto::hdfs::BlockProto;
use std::io::Write;

/// What stands for the replication of a striped file.
const STRIPED_REPLICATION: i16 = 1;

impl<W: Write> View<'_, W> {
    pub(super) fn inode_fields(&mut self, inode: &wire::INode) -> Result<(), Failure> {
        self.xml.value("id", inode.id as i64)?.value("type", inode.r#type().as_str_name())?;
        self.xml.bytes("name", inode.name())?;
        match (&inode.file, &inode.directory, &inode.symlink) {
            (Some(file), _, _) => self.file(file),
            (None, Some(directory), _) => self.directory(directory),
            (None, None, Some(symlink)) => self.symlink(symlink),
            (None, None, None) => Ok(()),
        }
    }

    pub(super) fn file(&mut self, file: &wire::INodeFile) -> Result<(), Failure> {
        match file.erasure_coding_policy_id {
            Some(_) => self.xml.value("replication", STRIPED_REPLICATION)?,
            None => self.xml.value("replication", file.replication() as i32)?,
        };
        self.xml.value("mtime", file.modification_time() as i64)?.value("atime", file.access_time() as i64)?;
        self.xml.value("preferredBlockSize", file.preferred_block_size() as i64)?;
        self.permission(file.permission())?;
        file.x_attrs.as_ref().map_or(Ok(()), |xattrs| self.xattrs(xattrs))?;
        file.acl.as_ref().map_or(Ok(()), |acl| self.acl(acl))?;
        self.blocks(&file.blocks)?;
        if file.storage_policy_id.is_some() {
            self.xml.value("storagePolicyId", file.storage_policy_id() as i32)?;
        }
        if file.erasure_coding_policy_id.is_some() {
            self.xml.value("blockType", file.block_type().as_str_name())?;
            self.xml.value("erasureCodingPolicyId", file.erasure_coding_policy_id() as i32)?;
        }
        if let Some(open) = &file.file_uc {
            self.xml.raw("<file-under-construction>")?.text("clientName", open.client_name())?;
            self.xml.text("clientMachine", open.client_machine())?.raw("</file-under-construction>\n")?;
        }
        Ok(())
    }

    /// Blocks, if there are any.
    pub(super) fn blocks(&mut self, blocks: &[BlockProto]) -> Result<(), Failure> {
        if blocks.is_empty() {
            return Ok(());
        }
        self.xml.raw("<blocks>")?;
        for block in blocks {
            self.xml.raw("<block>")?.value("id", block.block_id as i64)?;
            self.xml.value("genstamp", block.gen_stamp as i64)?.value("numBytes", block.num_bytes() as i64)?;
            self.xml.raw("</block>\n")?;
        }
        self.xml.raw("</blocks>\n")?;
        Ok(())
    }

    pub(super) fn directory(&mut self, directory: &wire::INodeDirectory) -> Result<(), Failure> {
        self.xml.value("mtime", directory.modification_time() as i64)?;
        self.permission(directory.permission())?;
        directory.x_attrs.as_ref().map_or(Ok(()), |xattrs| self.xattrs(xattrs))?;
        directory.acl.as_ref().map_or(Ok(()), |acl| self.acl(acl))?;
        if let (Some(names), Some(space)) = (directory.ns_quota, directory.ds_quota) {
            self.xml.value("nsquota", names as i64)?.value("dsquota", space as i64)?;
        }
        for quota in directory.type_quotas.iter().flat_map(|quotas| &quotas.quotas) {
            self.xml.raw("<typeQuota>")?.value("type", quota.storage_type().as_str_name())?;
            self.xml.value("quota", quota.quota as i64)?.raw("</typeQuota>")?;
        }
        Ok(())
    }

    fn symlink(&mut self, symlink: &wire::INodeSymlink) -> Result<(), Failure> {
        self.permission(symlink.permission())?;
        self.xml.bytes("target", symlink.target())?.value("mtime", symlink.modification_time() as i64)?;
        self.xml.value("atime", symlink.access_time() as i64)?;
        Ok(())
    }

    fn permission(&mut self, packed: u64) -> Result<(), Failure> {
        let permission = self.image.permission(packed)?;
        let name = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or("null").to_owned();
        let mode = vocab::Mode::new(permission.mode).bits();
        self.xml.value("permission", format!("{}:{}:{mode:04o}", name(&permission.user), name(&permission.group)))?;
        Ok(())
    }

    fn acl(&mut self, acl: &wire::AclFeatureProto) -> Result<(), Failure> {
        if acl.entries.is_empty() {
            return Ok(());
        }
        self.xml.raw("<acls>")?;
        for entry in &acl.entries {
            let text = self.image.acl_entry(*entry)?;
            self.xml.text("acl", &text)?;
        }
        self.xml.raw("</acls>")?;
        Ok(())
    }

    fn xattrs(&mut self, xattrs: &wire::XAttrFeatureProto) -> Result<(), Failure> {
        self.xml.raw("<xattrs>")?;
        for xattr in &xattrs.x_attrs {
            let (namespace, name) = self.image.xattr_name(xattr.name)?;
            self.xml.raw("<xattr>")?.text("ns", namespace)?.text("name", &name)?;
            match std::str::from_utf8(xattr.value()) {
                Ok(text) => self.xml.text("val", text)?,
                Err(_) => self.xml.text("valHex", &hex(xattr.value()))?,
            };
            self.xml.raw("</xattr>")?;
        }
        self.xml.raw("</xattrs>")?;
        Ok(())
    }
}
