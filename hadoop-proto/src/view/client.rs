//! Views of what clients ask most.

use super::{Text, numeric, view};
use crate::hdfs;

numeric! {
    hdfs::CryptoProtocolVersionProto: v => hdfs::CryptoProtocolVersionProto::try_from(v as i32).ok();
    hdfs::AddBlockFlagProto: v => hdfs::AddBlockFlagProto::try_from(v as i32).ok();
    hdfs::datanode_info_proto::AdminState: v => hdfs::datanode_info_proto::AdminState::try_from(v as i32).ok();
}

view! {
    /// `GetFileInfoRequestProto`.
    GetFileInfoRequest<'a> of hdfs::GetFileInfoRequestProto {
        required src: Text<'a> = 1;
    }

    /// `GetListingRequestProto`; `start_after` is a name, not text.
    GetListingRequest<'a> of hdfs::GetListingRequestProto {
        required src: Text<'a> = 1;
        required start_after: &'a [u8] = 2;
        required need_location: bool = 3;
    }

    /// `GetBlockLocationsRequestProto`.
    GetBlockLocationsRequest<'a> of hdfs::GetBlockLocationsRequestProto {
        required src: Text<'a> = 1;
        required offset: u64 = 2;
        required length: u64 = 3;
    }

    /// `FsPermissionProto`.
    FsPermission<'a> of hdfs::FsPermissionProto {
        required perm: u32 = 1;
    }

    /// `CreateRequestProto`; `create_flag` is a set of `CreateFlagProto` bits.
    CreateRequest<'a> of hdfs::CreateRequestProto {
        required src: Text<'a> = 1;
        required masked: FsPermission<'a> = 2;
        required client_name: Text<'a> = 3;
        required create_flag: u32 = 4;
        required create_parent: bool = 5;
        required replication: u32 = 6;
        required block_size: u64 = 7;
        repeated crypto_protocol_version: hdfs::CryptoProtocolVersionProto = 8;
        optional unmasked: FsPermission<'a> = 9;
        optional ec_policy_name: Text<'a> = 10;
        optional storage_policy: Text<'a> = 11;
    }

    /// `ExtendedBlockProto`; the numbers are signed in Java.
    ExtendedBlock<'a> of hdfs::ExtendedBlockProto {
        required pool_id: Text<'a> = 1;
        required block_id: u64 = 2;
        required generation_stamp: u64 = 3;
        default(0) num_bytes: u64 = 4;
    }

    /// `DatanodeIDProto`.
    DatanodeId<'a> of hdfs::DatanodeIdProto {
        required ip_addr: Text<'a> = 1;
        required host_name: Text<'a> = 2;
        required datanode_uuid: Text<'a> = 3;
        required xfer_port: u32 = 4;
        required info_port: u32 = 5;
        required ipc_port: u32 = 6;
        default(0) info_secure_port: u32 = 7;
    }

    /// `DatanodeInfoProto`, as far as a request needs it: who, where, in which state of administration.
    DatanodeInfo<'a> of hdfs::DatanodeInfoProto {
        required id: DatanodeId<'a> = 1;
        optional location: Text<'a> = 8;
        optional admin_state: hdfs::datanode_info_proto::AdminState = 10;
        optional upgrade_domain: Text<'a> = 14;
    }

    /// `AddBlockRequestProto`.
    AddBlockRequest<'a> of hdfs::AddBlockRequestProto {
        required src: Text<'a> = 1;
        required client_name: Text<'a> = 2;
        optional previous: ExtendedBlock<'a> = 3;
        repeated exclude_nodes: DatanodeInfo<'a> = 4;
        default(0) file_id: u64 = 5;
        repeated favored_nodes: Text<'a> = 6;
        repeated flags: hdfs::AddBlockFlagProto = 7;
    }

    /// `CompleteRequestProto`.
    CompleteRequest<'a> of hdfs::CompleteRequestProto {
        required src: Text<'a> = 1;
        required client_name: Text<'a> = 2;
        optional last: ExtendedBlock<'a> = 3;
        default(0) file_id: u64 = 4;
    }

    /// `MkdirsRequestProto`.
    MkdirsRequest<'a> of hdfs::MkdirsRequestProto {
        required src: Text<'a> = 1;
        required masked: FsPermission<'a> = 2;
        required create_parent: bool = 3;
        optional unmasked: FsPermission<'a> = 4;
    }

    /// `DeleteRequestProto`.
    DeleteRequest<'a> of hdfs::DeleteRequestProto {
        required src: Text<'a> = 1;
        required recursive: bool = 2;
    }

    /// `RenameRequestProto`.
    RenameRequest<'a> of hdfs::RenameRequestProto {
        required src: Text<'a> = 1;
        required dst: Text<'a> = 2;
    }

    /// `Rename2RequestProto`.
    Rename2Request<'a> of hdfs::Rename2RequestProto {
        required src: Text<'a> = 1;
        required dst: Text<'a> = 2;
        required overwrite_dest: bool = 3;
        optional move_to_trash: bool = 4;
    }

    /// `RenewLeaseRequestProto`.
    RenewLeaseRequest<'a> of hdfs::RenewLeaseRequestProto {
        required client_name: Text<'a> = 1;
        repeated namespaces: Text<'a> = 2;
    }
}
