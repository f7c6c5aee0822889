//! The service table: descriptors joined with `schema/protocols.tsv` (names on the wire) and `schema/methods.tsv` (flags).

use prost_types::{FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto};
use std::{collections::HashMap, fmt::Write, fs};

/// Rows of a tab-separated table by the join of their first `keys` columns.
fn table(path: &str, keys: usize) -> HashMap<String, Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        (columns[..keys].join("."), columns[keys..].to_vec())
    })
    .collect()
}

/// Rust text of `SERVICES`, sorted by name; rows of the tables that match no service or method stop the build.
pub fn generate(set: &FileDescriptorSet) -> String {
    let mut protocols = table("schema/protocols.tsv", 1);
    let mut flags = table("schema/methods.tsv", 2);
    let mut services: Vec<(&str, &ServiceDescriptorProto)> =
        set.file.iter().flat_map(|f| f.service.iter().map(|s| (f.package(), s))).collect();
    services.sort_by_key(|(_, s)| s.name().to_owned());
    let mut out = String::from("/// All services, sorted by name.\npub static SERVICES: &[Service] = &[\n");
    for (package, service) in services {
        let name = service.name();
        let protocol = protocols.remove(name);
        let (wire, version) = protocol.as_ref().map_or(("", "0"), |p| (p[0].as_str(), p[1].as_str()));
        let mut order: Vec<usize> = (0..service.method.len()).collect();
        order.sort_by_key(|&i| service.method[i].name());
        writeln!(out, "Service {{ name: {name:?}, package: {package:?}, protocol: {wire:?}, version: {version}, by_name: &{order:?}, methods: &[").unwrap();
        for method in &service.method {
            out += &method_row(method, flags.remove(&format!("{name}.{}", method.name())));
        }
        out += "] },\n";
    }
    assert!(protocols.is_empty() && flags.is_empty(), "rows without a service: {protocols:?} {flags:?}");
    out + "];\n"
}

fn method_row(method: &MethodDescriptorProto, flags: Option<Vec<String>>) -> String {
    let retry = match flags.as_ref().map(|f| f[0].as_str()) {
        None | Some("none") => "None",
        Some("idempotent") => "Idempotent",
        Some("at_most_once") => "AtMostOnce",
        Some(other) => panic!("retry {other}"),
    };
    let read_only = match flags.as_ref().map(|f| f[1].as_str()) {
        None | Some("-") => "None".to_owned(),
        Some(list) => {
            let has = |flag| list.split(',').any(|f| f == flag);
            let (active_only, atime, coordinated) = (has("active_only"), has("atime"), has("coordinated"));
            format!(
                "Some(ReadOnly {{ active_only: {active_only}, writes_atime: {atime}, coordinated: {coordinated} }})"
            )
        }
    };
    let (input, output) = (method.input_type().trim_start_matches('.'), method.output_type().trim_start_matches('.'));
    format!(
        "Method {{ name: {:?}, input: {input:?}, output: {output:?}, retry: Retry::{retry}, read_only: {read_only} }},\n",
        method.name()
    )
}
