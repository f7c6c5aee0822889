//! The shapes of the messages: what a walk over encoded bytes must know about each field, as statics that refer to each
//! other, and the link from each message type to its shape.

use heck::{ToSnakeCase, ToUpperCamelCase};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::{collections::HashMap, fmt::Write};

/// Rust text of the statics and of one `Shaped` implementation per message type.
pub fn generate(set: &FileDescriptorSet) -> String {
    let mut enums = HashMap::new();
    for file in &set.file {
        let scope = format!(".{}", file.package());
        file.enum_type.iter().for_each(|e| collect_enum(&mut enums, &scope, e));
        file.message_type.iter().for_each(|m| collect_enums(&mut enums, &scope, m));
    }
    let (mut out, mut names) = (String::new(), Vec::new());
    for file in &set.file {
        let module = format!("crate::packages::{}", file.package().replace('.', "::"));
        let scope = format!(".{}", file.package());
        for message in &file.message_type {
            emit(&mut out, &enums, &scope, &module, message);
            collect_names(&mut names, &scope, message);
        }
    }
    names.sort();
    out += "/// All shapes, sorted by name.\npub static SHAPES: &[&Shape] = &[\n";
    for name in names {
        writeln!(out, "&{},", ident(&name)).unwrap();
    }
    out + "];\n"
}

fn collect_names(names: &mut Vec<String>, scope: &str, message: &DescriptorProto) {
    let full = format!("{scope}.{}", message.name());
    message.nested_type.iter().for_each(|m| collect_names(names, &full, m));
    names.push(full);
}

fn collect_enum(enums: &mut HashMap<String, Vec<i32>>, scope: &str, e: &EnumDescriptorProto) {
    let mut values: Vec<i32> = e.value.iter().map(|v| v.number()).collect();
    values.sort();
    values.dedup();
    enums.insert(format!("{scope}.{}", e.name()), values);
}

fn collect_enums(enums: &mut HashMap<String, Vec<i32>>, scope: &str, message: &DescriptorProto) {
    let scope = format!("{scope}.{}", message.name());
    message.enum_type.iter().for_each(|e| collect_enum(enums, &scope, e));
    message.nested_type.iter().for_each(|m| collect_enums(enums, &scope, m));
}

fn ident(full_name: &str) -> String {
    full_name.trim_start_matches('.').replace('.', "_")
}

fn emit(out: &mut String, enums: &HashMap<String, Vec<i32>>, scope: &str, module: &str, message: &DescriptorProto) {
    let full = format!("{scope}.{}", message.name());
    let name = full.trim_start_matches('.');
    let id = ident(&full);
    let mut fields: Vec<&FieldDescriptorProto> = message.field.iter().collect();
    let declared: Vec<i32> = fields.iter().filter(|f| f.label() == Label::Required).map(|f| f.number()).collect();
    fields.sort_by_key(|f| f.number());
    assert!(fields.len() < 64, "{name}: walks keep one bit per field");
    writeln!(out, "static {id}: Shape = Shape {{ name: {name:?}, required: &{declared:?}, fields: &[").unwrap();
    for field in fields {
        let (repeated, kind) = (field.label() == Label::Repeated, kind(enums, field));
        let (number, name) = (field.number(), field.name());
        writeln!(out, "Field {{ number: {number}, name: {name:?}, repeated: {repeated}, kind: {kind} }},").unwrap();
    }
    *out += "] };\n";
    if !message.options.as_ref().is_some_and(|o| o.map_entry()) {
        let rust = format!("{module}::{}", message.name().to_upper_camel_case());
        writeln!(out, "impl Shaped for {rust} {{ const SHAPE: &'static Shape = &{id}; }}").unwrap();
    }
    let module = format!("{module}::{}", message.name().to_snake_case());
    for nested in &message.nested_type {
        emit(out, enums, &full, &module, nested);
    }
}

fn kind(enums: &HashMap<String, Vec<i32>>, field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Double | Type::Fixed64 | Type::Sfixed64 => "Kind::Fixed64".to_owned(),
        Type::Float | Type::Fixed32 | Type::Sfixed32 => "Kind::Fixed32".to_owned(),
        Type::String => "Kind::Text".to_owned(),
        Type::Bytes => "Kind::Bytes".to_owned(),
        Type::Enum => format!("Kind::Enum(&{:?})", enums[field.type_name()]),
        Type::Message => format!("Kind::Message(&{})", ident(field.type_name())),
        Type::Group => panic!("groups are not used by Hadoop"),
        _ => "Kind::Varint".to_owned(),
    }
}
