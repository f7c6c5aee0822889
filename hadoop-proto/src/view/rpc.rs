//! Views of the headers that precede each request.

use super::{Sint32, Text, numeric, view};
use crate::common;
use crate::common::rpc_request_header_proto::OperationProto;

numeric! {
    common::RpcKindProto: v => common::RpcKindProto::try_from(v as i32).ok();
    OperationProto: v => OperationProto::try_from(v as i32).ok();
}

view! {
    /// `RpcRequestHeaderProto`: the call, its retry state and its caller.
    RpcRequestHeader<'a> of common::RpcRequestHeaderProto {
        optional rpc_kind: common::RpcKindProto = 1;
        optional rpc_op: OperationProto = 2;
        required call_id: Sint32 = 3;
        required client_id: &'a [u8] = 4;
        default(Sint32(-1)) retry_count: Sint32 = 5;
        optional trace_info: TraceInfo<'a> = 6;
        optional caller_context: CallerContext<'a> = 7;
        optional state_id: i64 = 8;
        optional router_federated_state: &'a [u8] = 9;
        optional authorization_header: &'a [u8] = 10;
    }

    /// `RPCTraceInfoProto`: the caller's span.
    TraceInfo<'a> of common::RpcTraceInfoProto {
        optional trace_id: i64 = 1;
        optional parent_id: i64 = 2;
        optional span_context: &'a [u8] = 3;
    }

    /// `RPCCallerContextProto`: free text of the caller for the audit log.
    CallerContext<'a> of common::RpcCallerContextProto {
        required context: Text<'a> = 1;
        optional signature: &'a [u8] = 2;
    }

    /// `RequestHeaderProto`: method and protocol.
    RequestHeader<'a> of common::RequestHeaderProto {
        required method_name: Text<'a> = 1;
        required declaring_class_protocol_name: Text<'a> = 2;
        required client_protocol_version: u64 = 3;
    }
}
