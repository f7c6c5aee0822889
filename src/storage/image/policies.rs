//! Erasure coding policies in an image: section ERASURE_CODING, one message.

use hadoop_proto::wire::{Cursor, Sink, Value, WireError};
use namespace::erasure_coding::Policies;
use std::sync::Arc;
use vocab::erasure_coding::{ErasureCodingPolicy, LAST, PolicyState, Units};

/// Bytes of an `ErasureCodingSection`. Of the built-in policies it holds no more than number and state.
pub fn encode(policies: &Policies) -> Vec<u8> {
    let mut section = Vec::new();
    for policy in policies.all().values() {
        let mut m = Vec::new();
        if !policy.is_built_in() {
            m.put_bytes_field(1, policy.name.as_bytes());
            m.put_bytes_field(2, &schema(policy));
            m.put_varint_field(3, policy.stripe.cell_size.into());
        }
        m.put_varint_field(4, policy.id.into());
        m.put_varint_field(5, policy.state as u64);
        section.put_bytes_field(1, &m);
    }
    section
}

/// Bytes of an `ECSchemaProto`.
fn schema(policy: &ErasureCodingPolicy) -> Vec<u8> {
    let mut m = Vec::new();
    m.put_bytes_field(1, policy.codec.as_bytes());
    m.put_varint_field(2, policy.units.data.cast_unsigned().into());
    m.put_varint_field(3, policy.units.parity.cast_unsigned().into());
    for (key, value) in &policy.options {
        let mut option = Vec::new();
        option.put_bytes_field(1, key.as_bytes());
        option.put_bytes_field(2, value.as_bytes());
        m.put_bytes_field(4, &option);
    }
    m
}

/// What is wrong with a policy.
#[derive(Debug)]
pub enum PolicyError {
    /// Its bytes.
    Wire(WireError),
    /// Its values.
    Content(String),
}

impl From<WireError> for PolicyError {
    fn from(error: WireError) -> PolicyError {
        PolicyError::Wire(error)
    }
}

/// The policies of an `ErasureCodingSection`, and the built-in ones that it does not name.
///
/// # Errors
/// See [`PolicyError`].
pub fn decode(section: &[u8]) -> Result<Policies, PolicyError> {
    let mut policies = Policies::default();
    for field in Cursor::new(section).fields() {
        if let (1, Value::Bytes(message)) = field? {
            let policy = decode_policy(message, &policies)?;
            policies.insert(policy);
        }
    }
    Ok(policies)
}

fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

fn decode_policy(message: &[u8], known: &Policies) -> Result<ErasureCodingPolicy, PolicyError> {
    let (mut name, mut schema, mut cell_size, mut id, mut state) = (None, None, 0, 0, None);
    for field in Cursor::new(message).fields() {
        match field? {
            (1, Value::Bytes(bytes)) => name = Some(text(bytes)),
            (2, Value::Bytes(bytes)) => schema = Some(bytes),
            (3, Value::Varint(v)) => cell_size = v as u32,
            (4, Value::Varint(v)) => id = v,
            (5, Value::Varint(v)) => state = PolicyState::of(v),
            _ => {}
        }
    }
    let wrong = |what: &str| PolicyError::Content(format!("erasure coding policy {id} {what}"));
    let id = u8::try_from(id).ok().filter(|id| (1..=LAST).contains(id)).ok_or_else(|| wrong("has no legal number"))?;
    let state = || state.ok_or_else(|| wrong("says no state"));
    if let Some(built_in) = known.by_id(id).filter(|p| p.is_built_in()) {
        return Ok(ErasureCodingPolicy { state: state()?, ..built_in.clone() });
    }
    let (codec, data, parity, mut options) = decode_schema(schema.ok_or_else(|| wrong("has no schema"))?)?;
    options.sort();
    let units = data.zip(parity).map(|(data, parity)| Units { data: data as i32, parity: parity as i32 });
    let units = units.filter(|units| units.is_legal()).ok_or_else(|| wrong("has no legal number of units"))?;
    if cell_size.cast_signed() <= 0 {
        return Err(wrong("has no cells"));
    }
    let policy = ErasureCodingPolicy::new(id, &codec, units, cell_size, options);
    Ok(ErasureCodingPolicy { name: name.unwrap_or_else(|| policy.name.clone()), state: state()?, ..policy })
}

type Options = Vec<(Arc<str>, Arc<str>)>;

type Schema = (Arc<str>, Option<u64>, Option<u64>, Options);

fn decode_schema(message: &[u8]) -> Result<Schema, WireError> {
    let (mut codec, mut data, mut parity, mut options) = (text(b""), None, None, Vec::new());
    for field in Cursor::new(message).fields() {
        match field? {
            (1, Value::Bytes(bytes)) => codec = text(bytes),
            (2, Value::Varint(v)) => data = Some(v),
            (3, Value::Varint(v)) => parity = Some(v),
            (4, Value::Bytes(bytes)) => {
                let mut option = (text(b""), text(b""));
                for field in Cursor::new(bytes).fields() {
                    match field? {
                        (1, Value::Bytes(key)) => option.0 = text(key),
                        (2, Value::Bytes(value)) => option.1 = text(value),
                        _ => {}
                    }
                }
                options.push(option);
            }
            _ => {}
        }
    }
    Ok((codec, data, parity, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_dropped_between_decode_and_encode() {
        let mut policies = Policies::default();
        let options = vec![("zkey".into(), "v".into()), ("note".into(), "made for tests".into())];
        let policy = ErasureCodingPolicy::new(66, "rs", Units { data: 4, parity: 2 }, 262_144, options);
        policies.insert(ErasureCodingPolicy { state: PolicyState::Removed, ..policy });
        policies.set_state("XOR-2-1-1024k", PolicyState::Enabled);
        let read = decode(&encode(&policies)).expect("decodes");
        assert_eq!(read.all(), policies.all());
        assert_eq!(&*read.by_id(66).expect("is there").name, "RS-4-2-256k");
    }

    #[test]
    fn policies_of_units_that_are_no_numbers_of_blocks_are_kept_and_not_used() {
        let policy = |id, data, parity| ErasureCodingPolicy::new(id, "rs", Units { data, parity }, 65_536, Vec::new());
        let all = [(64, -1, 2), (65, 3, -1), (66, i32::MAX, i32::MAX), (67, i32::MIN, 1), (68, 20, -10)];
        let mut policies = Policies::default();
        all.into_iter().for_each(|(id, data, parity)| policies.insert(policy(id, data, parity)));
        let section = encode(&policies);
        // as Java writes -1 without a sign
        assert!(section.windows(6).any(|bytes| bytes == [0x10, 0xff, 0xff, 0xff, 0xff, 0x0f]));
        let read = decode(&section).expect("decodes");
        assert_eq!(read.all(), policies.all());
        assert!(all.into_iter().all(|(id, ..)| !read.by_id(id).expect("is there").stripe.is_usable()));
        policies.insert(policy(69, 16, 1));
        assert!(decode(&encode(&policies)).is_err());
    }

    #[test]
    fn policies_of_no_units_are_kept_and_not_used() {
        // of a Java image: id 64, RS-0-2-64k, enabled, and id 65, RS-2-0-64k
        let one = |name: &[u8], data: u8, parity: u8, id: u8, state: u8| {
            let mut m = vec![0x0a, name.len() as u8];
            m.extend_from_slice(name);
            m.extend_from_slice(&[0x12, 8, 0x0a, 2, b'r', b's', 0x10, data, 0x18, parity]);
            m.extend_from_slice(&[0x18, 0x80, 0x80, 4, 0x20, id, 0x28, state]);
            let mut section = vec![0x0a, m.len() as u8];
            section.append(&mut m);
            section
        };
        let mut section = encode(&Policies::default());
        section.extend(one(b"RS-0-2-64k", 0, 2, 64, 2));
        section.extend(one(b"RS-2-0-64k", 2, 0, 65, 1));
        let policies = decode(&section).expect("decodes");
        assert_eq!(encode(&policies), section);
        let enabled = policies.by_id(64).expect("is there");
        assert_eq!((enabled.state, &*enabled.name), (PolicyState::Enabled, "RS-0-2-64k"));
        assert!([64, 65].iter().all(|id| policies.by_id(*id).is_some_and(|p| !p.stripe.is_usable())));
    }

    #[test]
    fn a_fresh_section_is_the_one_that_hadoop_writes() {
        let expected: Vec<u8> = (1..=5).flat_map(|id| [0x0a, 4, 0x20, id, 0x28, 1]).collect();
        assert_eq!(encode(&Policies::default()), expected);
    }

    #[test]
    fn numbers_and_units_are_checked() {
        for (bytes, what) in [
            (&[0x20u8, 200, 1][..], "has no legal number"),
            (&[0x20, 70], "has no schema"),
            (&[0x20, 70, 0x12, 0], "has no legal number of units"),
            (&[0x20, 70, 0x12, 4, 0x10, 17, 0x18, 0], "has no legal number of units"),
            (&[0x20, 70, 0x12, 4, 0x10, 0, 0x18, 0], "has no cells"),
            (&[0x20, 1], "says no state"),
            (&[0x20, 1, 0x28, 9], "says no state"),
        ] {
            let mut section = Vec::new();
            section.put_bytes_field(1, bytes);
            match decode(&section) {
                Err(PolicyError::Content(text)) => assert!(text.contains(what), "{text}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
