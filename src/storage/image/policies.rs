//! The built-in erasure coding policies as a fresh image holds them.

use hadoop_proto::wire::Sink;

/// Id, name, codec, data units, parity units; all with cells of 1 MiB.
const BUILT_IN: [(u64, &str, &str, u64, u64); 5] = [
    (1, "RS-6-3-1024k", "rs", 6, 3),
    (2, "RS-3-2-1024k", "rs", 3, 2),
    (3, "RS-LEGACY-6-3-1024k", "rs-legacy", 6, 3),
    (4, "XOR-2-1-1024k", "xor", 2, 1),
    (5, "RS-10-4-1024k", "rs", 10, 4),
];
/// State of a policy that nobody enabled.
const DISABLED: u64 = 1;

/// The `ErasureCodingSection` message of a file system whose policies were never touched.
pub fn built_in() -> Vec<u8> {
    let mut section = Vec::new();
    for (id, name, codec, data, parity) in BUILT_IN {
        let mut schema = Vec::new();
        schema.put_bytes_field(1, codec.as_bytes());
        schema.put_varint_field(2, data);
        schema.put_varint_field(3, parity);
        let mut policy = Vec::new();
        policy.put_bytes_field(1, name.as_bytes());
        policy.put_bytes_field(2, &schema);
        policy.put_varint_field(3, 1 << 20);
        policy.put_varint_field(4, id);
        policy.put_varint_field(5, DISABLED);
        section.put_bytes_field(1, &policy);
    }
    section
}
