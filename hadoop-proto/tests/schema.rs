//! The compiled schema against the descriptors of released Hadoop jars, field by field.

use hadoop_proto::services::{self, Retry};
use hadoop_proto::{FILE_DESCRIPTOR_SET, shape};
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use serde_json::{Map, Value, json};

const FACTS: [&str; 3] =
    [include_str!("facts/client.json"), include_str!("facts/server.json"), include_str!("facts/router.json")];

fn facts() -> Vec<Value> {
    FACTS.iter().map(|text| serde_json::from_str(text).expect("facts")).collect()
}

fn field_facts(field: &FieldDescriptorProto) -> Value {
    let label = match field.label() {
        Label::Optional => "optional",
        Label::Required => "required",
        Label::Repeated => "repeated",
    };
    let kind = match field.r#type() {
        Type::Bool => "bool",
        Type::Bytes => "bytes",
        Type::Double => "double",
        Type::Enum => "enum",
        Type::Fixed32 => "fixed32",
        Type::Fixed64 => "fixed64",
        Type::Float => "float",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Message => "message",
        Type::Sfixed32 => "sfixed32",
        Type::Sfixed64 => "sfixed64",
        Type::Sint32 => "sint32",
        Type::Sint64 => "sint64",
        Type::String => "string",
        Type::Uint32 => "uint32",
        Type::Uint64 => "uint64",
        other => panic!("{} has the type {other:?}, which Hadoop does not use", field.name()),
    };
    let mut rest = Map::new();
    if let Some(name) = &field.type_name {
        rest.insert("type_name".into(), name.trim_start_matches('.').into());
    }
    if let Some(value) = &field.default_value {
        rest.insert("default".into(), value.as_str().into());
    }
    let options = field.options.clone().unwrap_or_default();
    if options.packed() {
        rest.insert("packed".into(), true.into());
    }
    if options.deprecated() {
        rest.insert("deprecated".into(), true.into());
    }
    assert_eq!(field.oneof_index, None, "Hadoop has no oneof");
    let mut facts = vec![json!(field.name()), json!(field.number()), json!(label), json!(kind)];
    if !rest.is_empty() {
        facts.push(rest.into());
    }
    facts.into()
}

fn enum_facts(scope: &str, e: &EnumDescriptorProto) -> Value {
    let values: Vec<Value> = e.value.iter().map(|v| json!([v.name(), v.number()])).collect();
    json!({"name": format!("{scope}.{}", e.name()), "values": values})
}

fn message_facts(scope: &str, message: &DescriptorProto) -> Value {
    let name = format!("{scope}.{}", message.name());
    let mut facts = Map::new();
    facts.insert("name".into(), name.as_str().into());
    facts.insert("fields".into(), message.field.iter().map(field_facts).collect());
    if !message.nested_type.is_empty() {
        facts.insert("messages".into(), message.nested_type.iter().map(|m| message_facts(&name, m)).collect());
    }
    if !message.enum_type.is_empty() {
        facts.insert("enums".into(), message.enum_type.iter().map(|e| enum_facts(&name, e)).collect());
    }
    facts.into()
}

fn file_facts(file: &FileDescriptorProto) -> Value {
    let scope = file.package();
    let service = |s: &prost_types::ServiceDescriptorProto| {
        let name = |full: &str| full.trim_start_matches('.').to_owned();
        let methods: Vec<Value> =
            s.method.iter().map(|m| json!([m.name(), name(m.input_type()), name(m.output_type())])).collect();
        json!({"name": format!("{scope}.{}", s.name()), "methods": methods})
    };
    json!({
        "file": file.name(),
        "package": scope,
        "imports": file.dependency,
        "messages": file.message_type.iter().map(|m| message_facts(scope, m)).collect::<Vec<_>>(),
        "enums": file.enum_type.iter().map(|e| enum_facts(scope, e)).collect::<Vec<_>>(),
        "services": file.service.iter().map(service).collect::<Vec<_>>(),
    })
}

/// Compares part by part, so that a difference names its place.
fn same(place: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.iter().zip(theirs).enumerate().for_each(|(i, (a, b))| same(&format!("{place}[{i}]"), a, b));
            assert_eq!(ours.len(), theirs.len(), "{place}: our {ours:?}, Hadoop's {theirs:?}");
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let place = theirs.get("name").map_or(place, |n| n.as_str().expect("name"));
            ours.iter().filter(|(k, _)| theirs.contains_key(*k)).for_each(|(k, a)| same(place, a, &theirs[k]));
            let keys = |m: &Map<String, Value>| m.keys().cloned().collect::<std::collections::BTreeSet<_>>();
            assert_eq!(keys(ours), keys(theirs), "{place}");
        }
        _ => assert_eq!(ours, theirs, "{place}"),
    }
}

#[test]
fn schema_is_hadoops() {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let mut theirs: Vec<Value> = facts().iter().flat_map(|f| f["files"].as_array().expect("files").clone()).collect();
    theirs.sort_by_key(|f| f["file"].as_str().map(str::to_owned));
    let mut ours: Vec<Value> = set.file.iter().map(file_facts).collect();
    ours.sort_by_key(|f| f["file"].as_str().map(str::to_owned));
    let names = |files: &[Value]| files.iter().map(|f| f["file"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        same(theirs["file"].as_str().expect("file"), ours, theirs);
    }
    assert_eq!(shape::SHAPES.len(), 657);
}

#[test]
fn services_carry_hadoops_names_and_flags() {
    let facts = facts();
    let expected = facts.iter().filter_map(|f| f.get("protocols")).flat_map(|p| p.as_object().expect("protocols"));
    for (protocol, version) in expected {
        let service = services::by_protocol(protocol).unwrap_or_else(|| panic!("no service for {protocol}"));
        assert_eq!(Some(service.version), version.as_u64(), "{protocol}");
    }
    let client = services::by_protocol("org.apache.hadoop.hdfs.protocol.ClientProtocol").expect("client protocol");
    let flags = facts[0]["methods"].as_object().expect("flags");
    assert_eq!(client.methods.len(), flags.len());
    for (name, flags) in flags {
        let method = client.method(name).unwrap_or_else(|| panic!("no method {name}"));
        let retry = match method.retry {
            Retry::None => "none",
            Retry::Idempotent => "idempotent",
            Retry::AtMostOnce => "at_most_once",
        };
        let read_only = method.read_only.map_or(
            Value::Null,
            |r| json!({"activeOnly": r.active_only, "atimeAffected": r.writes_atime, "isCoordinated": r.coordinated}),
        );
        assert_eq!(json!([retry, read_only]), *flags, "{name}");
    }
}

#[test]
fn methods_are_found_by_name() {
    assert_eq!(services::by_protocol(""), None);
    for service in services::SERVICES {
        for (at, method) in service.methods.iter().enumerate() {
            assert_eq!(service.method_index(method.name), Some(at));
            assert!(shape::by_name(method.input).is_some() && shape::by_name(method.output).is_some());
        }
        assert_eq!(service.method("noSuchMethod"), None);
        assert_eq!(services::by_name(service.name), Some(service));
    }
}

/// Java refuses messages without their required fields, so prost must write them even when they are zero or empty.
#[test]
fn required_fields_are_written_when_zero() {
    let header = hadoop_proto::common::RpcRequestHeaderProto::default();
    assert_eq!(header.encode_to_vec(), [0x18, 0, 0x22, 0]);
    let listing = hadoop_proto::hdfs::GetListingRequestProto::default();
    assert_eq!(listing.encode_to_vec(), [0x0A, 0, 0x12, 0, 0x18, 0]);
    let summary = hadoop_proto::fsimage::FileSummary::default();
    assert_eq!(summary.encode_to_vec(), [0x08, 0, 0x10, 0]);
}
