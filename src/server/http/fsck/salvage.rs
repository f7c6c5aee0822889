//! `-move`: what can still be read of a file that lost blocks goes below `/lost+found`, a new file for each run of readable blocks (Hadoop's
//! `copyBlocksToLostFound`). All is done as calls of the name node's own user.

use super::Check;
use super::copy::copy_block;
use super::walk::Entry;
use crate::service::own_call;
use hadoop_proto::hdfs::hdfs_file_status_proto::FileType;
use hadoop_proto::hdfs::{
    AddBlockRequestProto, AddBlockResponseProto, CompleteRequestProto, CompleteResponseProto, CreateRequestProto,
    CreateResponseProto, ExtendedBlockProto, FsPermissionProto, GetBlockLocationsRequestProto,
    GetBlockLocationsResponseProto, GetFileInfoRequestProto, GetFileInfoResponseProto, LocatedBlockProto,
    MkdirsRequestProto, MkdirsResponseProto,
};
use ops::Operation;
use std::time::Duration;

/// Where the remains go.
const LOST_AND_FOUND: &str = "/lost+found";
/// A new file, or what is in the place of one.
const CREATE_OR_OVERWRITE: u32 = 3;
/// How often the end of a file is tried.
const COMPLETE_TRIES: u32 = 60;

/// A file being written below `/lost+found`.
struct Chain {
    path: String,
    last: Option<ExtendedBlockProto>,
}

impl Check {
    /// Copies the remains of a file. What went wrong is kept: the whole check fails at its end then.
    pub(super) async fn move_away(&mut self, file: &Entry) {
        if let Err(error) = self.salvage(file).await {
            tracing::error!("copyBlocksToLostFound: error processing {}: {error}", file.path);
            self.internal_error = true;
        }
    }

    async fn salvage(&mut self, file: &Entry) -> Result<(), String> {
        if !self.lost_and_found().await? {
            return Err("failed to initialize lost+found".to_owned());
        }
        let target = format!("{LOST_AND_FOUND}{}", file.path);
        if self.status(&target).await?.is_some() {
            tracing::warn!(
                "Fsck: can't copy the remains of {} to lost+found, because {target} already exists.",
                file.path
            );
            return Ok(());
        }
        self.make_directory(&target, file.mode).await?;
        let asked = GetBlockLocationsRequestProto { src: file.path.clone(), offset: 0, length: i64::MAX as u64 };
        let found: GetBlockLocationsResponseProto = self.own(Operation::GetBlockLocations, &asked).await?;
        let blocks = found.locations.map(|locations| locations.blocks).unwrap_or_default();
        let (mut chains, mut open, mut failed) = (0, None, false);
        for block in &blocks {
            if block.locs.is_empty() {
                self.end(open.take()).await?;
                continue;
            }
            let mut chain = match open.take() {
                Some(chain) => chain,
                None => {
                    let path = format!("{target}/{chains}");
                    chains += 1;
                    self.create(path, file.block_size).await?
                }
            };
            let copied = self.add(&mut chain, block).await;
            if let Err(error) = &copied {
                tracing::error!("Fsck: could not copy block blk_{} to {target}: {error}", block.b.block_id);
                (failed, self.internal_error) = (true, true);
                self.end(Some(chain)).await?;
            } else {
                open = Some(chain);
            }
        }
        self.end(open).await?;
        let how = if failed { "there were errors copying" } else { "copied" };
        tracing::info!("Fsck: {how} the remains of the corrupted file {} to {LOST_AND_FOUND}", file.path);
        Ok(())
    }

    /// Whether there is a directory for lost files; made at first use.
    async fn lost_and_found(&mut self) -> Result<bool, String> {
        match self.status(LOST_AND_FOUND).await? {
            Some(FileType::IsDir) => Ok(true),
            Some(_) => {
                tracing::warn!("Cannot use {LOST_AND_FOUND} : a regular file with this name exists.");
                Ok(false)
            }
            None => self.make_directory(LOST_AND_FOUND, 0o755).await.map(|()| true),
        }
    }

    async fn own<Q: hadoop_proto::Message, R>(&self, operation: Operation, asked: &Q) -> Result<R, String>
    where
        R: hadoop_proto::Message + Default + hadoop_proto::shape::Shaped,
    {
        own_call(&self.shared, operation, asked).await.map_err(|refused| refused.message)
    }

    async fn status(&self, path: &str) -> Result<Option<FileType>, String> {
        let asked = GetFileInfoRequestProto { src: path.to_owned() };
        let found: GetFileInfoResponseProto = self.own(Operation::GetFileInfo, &asked).await?;
        Ok(found.fs.map(|status| status.file_type()))
    }

    async fn make_directory(&self, path: &str, mode: u16) -> Result<(), String> {
        let masked = FsPermissionProto { perm: mode.into() };
        let asked = MkdirsRequestProto { src: path.to_owned(), masked, create_parent: true, unmasked: None };
        let made: MkdirsResponseProto = self.own(Operation::Mkdirs, &asked).await?;
        if made.result { Ok(()) } else { Err(format!("failed to create directory {path}")) }
    }

    async fn create(&self, path: String, block_size: u64) -> Result<Chain, String> {
        let asked = CreateRequestProto {
            src: path.clone(),
            masked: FsPermissionProto { perm: 0o644 },
            client_name: self.client_name(),
            create_flag: CREATE_OR_OVERWRITE,
            create_parent: true,
            replication: self.shared.engine.settings().replication.into(),
            block_size,
            ..CreateRequestProto::default()
        };
        let _: CreateResponseProto = self.own(Operation::Create, &asked).await?;
        Ok(Chain { path, last: None })
    }

    fn client_name(&self) -> String {
        format!("fsck_{}", self.shared.identity.rpc_address)
    }

    async fn add(&self, chain: &mut Chain, block: &LocatedBlockProto) -> Result<(), String> {
        let client = self.client_name();
        let asked = AddBlockRequestProto {
            src: chain.path.clone(),
            client_name: client.clone(),
            previous: chain.last.clone(),
            ..AddBlockRequestProto::default()
        };
        let added: AddBlockResponseProto = self.own(Operation::AddBlock, &asked).await?;
        match copy_block(block, &added.block, &client).await {
            Ok(bytes) => {
                chain.last = Some(ExtendedBlockProto { num_bytes: Some(bytes), ..added.block.b });
                Ok(())
            }
            Err(error) => {
                let asked = hadoop_proto::hdfs::AbandonBlockRequestProto {
                    b: added.block.b,
                    src: chain.path.clone(),
                    holder: client,
                    ..Default::default()
                };
                let _: hadoop_proto::hdfs::AbandonBlockResponseProto =
                    self.own(Operation::AbandonBlock, &asked).await?;
                Err(error.to_string())
            }
        }
    }

    /// Closes a file once its last block was reported.
    async fn end(&self, chain: Option<Chain>) -> Result<(), String> {
        let Some(Chain { path, last }) = chain else { return Ok(()) };
        let asked = CompleteRequestProto { src: path.clone(), client_name: self.client_name(), last, file_id: None };
        for _ in 0..COMPLETE_TRIES {
            let done: CompleteResponseProto = self.own(Operation::Complete, &asked).await?;
            if done.result {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        Err(format!("{path} could not be closed"))
    }
}
