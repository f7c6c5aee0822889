//! The XML processor: every section of an image, in the order of Hadoop's section names.

use super::source::{Image, Messages};
use crate::node::HADOOP_REVISION;
use crate::tools::failure::Failure;
use crate::tools::text::{hex, utc};
use crate::tools::xml::Elements;
use hadoop_proto::fsimage as wire;
use hadoop_proto::hdfs;
use std::io::Write;
use storage::image::SectionName;
use vocab::erasure_coding::ErasureCodingPolicy;
use vocab::hash_order;

/// `ondiskVersion` of every image that can be opened.
const ONDISK_VERSION: u32 = 1;

/// An image being written as XML.
pub(super) struct View<'i, W> {
    pub(super) image: &'i Image,
    pub(super) xml: Elements<W>,
}

/// Writes the whole image.
pub(super) fn write(image: &Image, out: impl Write) -> Result<(), Failure> {
    let mut view = View { image, xml: Elements::new(out) };
    view.xml.raw("<?xml version=\"1.0\"?>\n<fsimage>")?.raw("<version>")?;
    view.xml.value("layoutVersion", image.summary.layout.0)?.value("onDiskVersion", ONDISK_VERSION)?;
    view.xml.text("oivRevision", HADOOP_REVISION)?.raw("</version>\n")?;
    let mut done = Vec::new();
    for section in &image.summary.sections {
        if done.contains(&section.name) {
            continue;
        }
        done.push(section.name);
        if let Some(messages) = image.section(section.name) {
            view.section(section.name, messages)?;
        }
    }
    view.xml.raw("</fsimage>\n")?;
    view.xml.flush()?;
    Ok(())
}

impl<W: Write> View<'_, W> {
    fn section(&mut self, name: SectionName, messages: Messages<'_>) -> Result<(), Failure> {
        match name {
            SectionName::NsInfo => self.name_section(messages),
            SectionName::ErasureCoding => self.erasure_coding(messages),
            SectionName::Inode => self.inodes(messages),
            SectionName::InodeReference => self.references(messages),
            SectionName::Snapshot => self.snapshots(messages),
            SectionName::InodeDir => self.directories(messages),
            SectionName::FilesUnderConstruction => self.files_under_construction(messages),
            SectionName::SnapshotDiff => self.diffs(messages),
            SectionName::SecretManager => self.secrets(messages),
            SectionName::CacheManager => self.cache(messages),
            SectionName::StringTable
            | SectionName::ExtendedAcl
            | SectionName::InodeSub
            | SectionName::InodeReferenceSub
            | SectionName::InodeDirSub
            | SectionName::SnapshotDiffSub => Ok(()),
        }
    }

    pub(super) fn name_section(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::NameSystemSection = messages.expect()?;
        self.xml.raw("<NameSection>")?.value("namespaceId", section.namespace_id() as i32)?;
        self.xml.value("genstampV1", section.genstamp_v1() as i64)?;
        self.xml.value("genstampV2", section.genstamp_v2() as i64)?;
        self.xml.value("genstampV1Limit", section.genstamp_v1_limit() as i64)?;
        self.xml.value("lastAllocatedBlockId", section.last_allocated_block_id() as i64)?;
        self.xml.value("txid", section.transaction_id() as i64)?.raw("</NameSection>\n")?;
        Ok(())
    }

    fn erasure_coding(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::ErasureCodingSection = messages.expect()?;
        if section.policies.is_empty() {
            return Ok(());
        }
        self.xml.raw("<ErasureCodingSection>\n")?;
        for policy in &section.policies {
            self.erasure_coding_policy(policy)?;
        }
        self.xml.raw("</ErasureCodingSection>\n\n")?;
        Ok(())
    }

    /// A policy; built-in ones are written with nothing but their number.
    pub(super) fn erasure_coding_policy(&mut self, policy: &hdfs::ErasureCodingPolicyProto) -> Result<(), Failure> {
        let built_in = ErasureCodingPolicy::built_in().find(|known| u32::from(known.id) == policy.id);
        let schema = policy.schema.clone().unwrap_or_default();
        let (name, cell, codec, data, parity) = match &built_in {
            Some(known) => {
                let stripe = &known.stripe;
                let (data, parity) = (u32::from(stripe.data_units), u32::from(stripe.parity_units));
                (known.name.to_string(), stripe.cell_size, known.codec.to_string(), data, parity)
            }
            None => {
                let codec = schema.codec_name.clone();
                (policy.name().to_owned(), policy.cell_size(), codec, schema.data_units, schema.parity_units)
            }
        };
        self.xml.raw("<erasureCodingPolicy>\n")?.value("policyId", policy.id as i8)?.text("policyName", &name)?;
        self.xml.value("cellSize", cell as i32)?.text("policyState", policy_state(policy))?;
        self.xml.raw("<ecSchema>\n")?.text("codecName", &codec)?;
        self.xml.value("dataUnits", data as i32)?.value("parityUnits", parity as i32)?;
        if !schema.options.is_empty() && built_in.is_none() {
            self.xml.raw("<extraOptions>\n")?;
            let mut options = schema.options;
            // read into a map that was made for as many
            hash_order::sort(&mut options, 1, |option| &option.key);
            for option in &options {
                self.xml.raw("<option>\n")?.text("key", &option.key)?.text("value", &option.value)?;
                self.xml.raw("</option>\n")?;
            }
            self.xml.raw("</extraOptions>\n")?;
        }
        self.xml.raw("</ecSchema>\n</erasureCodingPolicy>\n\n")?;
        Ok(())
    }

    fn inodes(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::INodeSection = messages.expect()?;
        self.xml.raw("<INodeSection>")?.value("lastInodeId", section.last_inode_id() as i64)?;
        self.xml.value("numInodes", section.num_inodes() as i64)?;
        for _ in 0..section.num_inodes() as i64 {
            let inode: wire::i_node_section::INode = messages.expect()?;
            self.xml.raw("<inode>")?;
            self.inode_fields(&inode)?;
            self.xml.raw("</inode>\n")?;
        }
        self.xml.raw("</INodeSection>\n")?;
        Ok(())
    }

    fn references(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        self.xml.raw("<INodeReferenceSection>")?;
        while let Some(reference) = messages.next::<wire::i_node_reference_section::INodeReference>()? {
            self.xml.raw("<ref>")?.value("referredId", reference.referred_id() as i64)?;
            self.xml.bytes("name", reference.name())?;
            self.xml.value("dstSnapshotId", reference.dst_snapshot_id() as i32)?;
            self.xml.value("lastSnapshotId", reference.last_snapshot_id() as i32)?.raw("</ref>\n")?;
        }
        self.xml.raw("</INodeReferenceSection>")?;
        Ok(())
    }

    fn snapshots(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::SnapshotSection = messages.expect()?;
        self.xml.raw("<SnapshotSection>")?.value("snapshotCounter", section.snapshot_counter() as i32)?;
        self.xml.value("numSnapshots", section.num_snapshots() as i32)?;
        if !section.snapshottable_dir.is_empty() {
            self.xml.raw("<snapshottableDir>")?;
            for directory in &section.snapshottable_dir {
                self.xml.value("dir", *directory as i64)?;
            }
            self.xml.raw("</snapshottableDir>\n")?;
        }
        for _ in 0..section.num_snapshots() as i32 {
            let snapshot: wire::snapshot_section::Snapshot = messages.expect()?;
            self.xml.raw("<snapshot>")?.value("id", snapshot.snapshot_id() as i32)?.raw("<root>")?;
            self.inode_fields(&snapshot.root.clone().unwrap_or_default())?;
            self.xml.raw("</root></snapshot>")?;
        }
        self.xml.raw("</SnapshotSection>\n")?;
        Ok(())
    }

    fn directories(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        self.xml.raw("<INodeDirectorySection>")?;
        while let Some(entry) = messages.next::<wire::i_node_directory_section::DirEntry>()? {
            self.xml.raw("<directory>")?.value("parent", entry.parent() as i64)?;
            for child in &entry.children {
                self.xml.value("child", *child as i64)?;
            }
            for reference in &entry.ref_children {
                self.xml.value("refChild", *reference as i32)?;
            }
            self.xml.raw("</directory>\n")?;
        }
        self.xml.raw("</INodeDirectorySection>\n")?;
        Ok(())
    }

    fn files_under_construction(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        use wire::files_under_construction_section::FileUnderConstructionEntry;
        self.xml.raw("<FileUnderConstructionSection>")?;
        while let Some(entry) = messages.next::<FileUnderConstructionEntry>()? {
            self.xml.raw("<inode>")?.value("id", entry.inode_id() as i64)?.text("path", entry.full_path())?;
            self.xml.raw("</inode>\n")?;
        }
        self.xml.raw("</FileUnderConstructionSection>\n")?;
        Ok(())
    }

    fn secrets(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::SecretManagerSection = messages.expect()?;
        self.xml.raw("<SecretManagerSection>")?.value("currentId", section.current_id() as i32)?;
        self.xml.value("tokenSequenceNumber", section.token_sequence_number() as i32)?;
        self.xml.value("numDelegationKeys", section.num_keys() as i32)?;
        self.xml.value("numTokens", section.num_tokens() as i32)?;
        for _ in 0..section.num_keys() as i32 {
            self.delegation_key(&messages.expect()?)?;
        }
        for _ in 0..section.num_tokens() as i32 {
            let token = messages.expect()?;
            self.token(&token)?;
        }
        self.xml.raw("</SecretManagerSection>")?;
        Ok(())
    }

    pub(super) fn delegation_key(&mut self, key: &wire::secret_manager_section::DelegationKey) -> Result<(), Failure> {
        self.xml.raw("<delegationKey>")?.value("id", key.id() as i32)?.text("key", &hex(key.key()))?;
        if key.expiry_date.is_some() {
            self.xml.text("expiry", &utc(key.expiry_date() as i64))?;
        }
        self.xml.raw("</delegationKey>")?;
        Ok(())
    }

    pub(super) fn token(&mut self, token: &wire::secret_manager_section::PersistToken) -> Result<(), Failure> {
        self.xml.raw("<token>")?;
        token.version.map_or(Ok(()), |version| self.xml.value("version", version as i32).map(|_| ()))?;
        for (name, text) in [("owner", &token.owner), ("renewer", &token.renewer), ("realUser", &token.real_user)] {
            text.as_deref().map_or(Ok(()), |text| self.xml.text(name, text).map(|_| ()))?;
        }
        for (name, date) in [("issueDate", token.issue_date), ("maxDate", token.max_date)] {
            date.map_or(Ok(()), |date| self.xml.text(name, &utc(date as i64)).map(|_| ()))?;
        }
        for (name, number) in [("sequenceNumber", token.sequence_number), ("masterKeyId", token.master_key_id)] {
            number.map_or(Ok(()), |number| self.xml.value(name, number as i32).map(|_| ()))?;
        }
        let expiry = token.expiry_date;
        expiry.map_or(Ok(()), |date| self.xml.text("expiryDate", &utc(date as i64)).map(|_| ()))?;
        self.xml.raw("</token>")?;
        Ok(())
    }

    fn cache(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::CacheManagerSection = messages.expect()?;
        self.xml.raw("<CacheManagerSection>")?.value("nextDirectiveId", section.next_directive_id as i64)?;
        self.xml.value("numDirectives", section.num_directives as i32)?;
        self.xml.value("numPools", section.num_pools as i32)?;
        for _ in 0..section.num_pools as i32 {
            self.cache_pool(&messages.expect()?)?;
        }
        for _ in 0..section.num_directives as i32 {
            self.cache_directive(&messages.expect()?)?;
        }
        self.xml.raw("</CacheManagerSection>\n")?;
        Ok(())
    }

    pub(super) fn cache_pool(&mut self, pool: &hdfs::CachePoolInfoProto) -> Result<(), Failure> {
        self.xml.raw("<pool>")?.text("poolName", pool.pool_name())?.text("ownerName", pool.owner_name())?;
        self.xml.text("groupName", pool.group_name())?.value("mode", pool.mode())?;
        self.xml.value("limit", pool.limit())?.value("maxRelativeExpiry", pool.max_relative_expiry())?;
        self.xml.raw("</pool>\n")?;
        Ok(())
    }

    pub(super) fn cache_directive(&mut self, directive: &hdfs::CacheDirectiveInfoProto) -> Result<(), Failure> {
        let expiration = directive.expiration.unwrap_or_default();
        self.xml.raw("<directive>")?.value("id", directive.id())?.text("path", directive.path())?;
        self.xml.value("replication", directive.replication() as i32)?.text("pool", directive.pool())?;
        self.xml.raw("<expiration>")?.value("millis", expiration.millis)?;
        self.xml.flag("relative", expiration.is_relative)?.raw("</expiration>\n</directive>\n")?;
        Ok(())
    }
}

fn policy_state(policy: &hdfs::ErasureCodingPolicyProto) -> &'static str {
    match policy.state() {
        hdfs::ErasureCodingPolicyState::Disabled => "DISABLED",
        hdfs::ErasureCodingPolicyState::Enabled => "ENABLED",
        hdfs::ErasureCodingPolicyState::Removed => "REMOVED",
    }
}
