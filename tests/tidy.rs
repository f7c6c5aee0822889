//! What Cargo cannot see: sizes, layers' homes, banned calls, headers, and notes that must have a test.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Longest function, in lines.
const FUNCTION_LINES_MAX: usize = 70;
/// Longest file, in lines. Registries (pure tables) are exempt.
const FILE_LINES_MAX: usize = 1_000;
/// Tables that are allowed any length, and why: one row per item, no logic.
const REGISTRIES: [&str; 2] = ["src/ops/table.rs", "src/config/registry.rs"];
/// Crates that never touch the outside.
const CORE: [&str; 8] = ["vocab", "mem", "record", "edit", "namespace", "blocks", "state", "ops"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the product, by path relative to the root.
fn sources() -> Vec<(String, String)> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let mut files = Vec::new();
    for top in ["src", "hadoop-proto", "tests", "bench"] {
        walk(&root().join(top), &mut files);
    }
    files.sort();
    assert!(files.len() > 50, "the walk found the sources");
    files
        .into_iter()
        .map(|p| {
            let name = p.strip_prefix(root()).expect("below root").to_string_lossy().into_owned();
            (name, fs::read_to_string(&p).expect("source is UTF-8"))
        })
        .collect()
}

/// Fails with all findings at once.
fn report(title: &str, findings: &[String]) {
    let mut text = String::new();
    for f in findings {
        let _ = writeln!(text, "  {f}");
    }
    assert!(findings.is_empty(), "{title}:\n{text}");
}

/// Calls a function with every function's name and line count.
struct Functions<'a>(&'a mut dyn FnMut(&str, usize));

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        (self.0)(&f.sig.ident.to_string(), lines(f.block.span()));
        visit::visit_item_fn(self, f);
    }
    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        (self.0)(&f.sig.ident.to_string(), lines(f.block.span()));
        visit::visit_impl_item_fn(self, f);
    }
}

fn lines(span: proc_macro2::Span) -> usize {
    span.end().line - span.start().line + 1
}

#[test]
fn files_and_functions_fit_on_a_screen() {
    let mut findings = Vec::new();
    for (name, text) in sources() {
        let registry = REGISTRIES.contains(&name.as_str());
        let count = text.lines().count();
        if count > FILE_LINES_MAX && !registry {
            findings.push(format!("{name}: {count} lines"));
        }
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut each = |function: &str, lines: usize| {
            if lines > FUNCTION_LINES_MAX && !registry {
                findings.push(format!("{name}: fn {function} has {lines} lines"));
            }
        };
        Functions(&mut each).visit_file(&file);
    }
    report("too long", &findings);
}

/// All string literals of a file outside its test modules.
fn literals(text: &str) -> Vec<String> {
    fn collect(tokens: TokenStream, out: &mut Vec<String>) {
        for token in tokens {
            match token {
                TokenTree::Group(g) => collect(g.stream(), out),
                TokenTree::Literal(l) => {
                    if let syn::Lit::Str(s) = syn::Lit::new(l) {
                        out.push(s.value());
                    }
                }
                _ => {}
            }
        }
    }
    let mut file = syn::parse_file(text).expect("parses");
    file.items.retain(|item| !matches!(item, syn::Item::Mod(m) if m.ident == "tests"));
    // documentation is a literal inside an attribute: it may name what it likes
    struct Strip;
    impl syn::visit_mut::VisitMut for Strip {
        fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
            attributes.retain(|a| !a.path().is_ident("doc"));
        }
    }
    syn::visit_mut::VisitMut::visit_file_mut(&mut Strip, &mut file);
    let mut out = Vec::new();
    collect(quote::ToTokens::into_token_stream(&file), &mut out);
    out
}

fn is_product(name: &str) -> bool {
    name.starts_with("src/")
        && !name.contains("/tests/")
        && !name.ends_with("/tests.rs")
        && !name.ends_with("_tests.rs")
}

#[test]
fn java_class_names_live_at_the_rim() {
    let homes = [
        "src/observe/remote_exception",
        "src/rpc/",
        "src/server/",
        "src/config/",
        "src/storage/image/compress",
        "src/security/",
        "src/tools/image/web/",
    ];
    let mut findings = Vec::new();
    for (name, text) in sources() {
        if !is_product(&name) || homes.iter().any(|h| name.starts_with(h)) {
            continue;
        }
        for literal in literals(&text) {
            if literal.contains("org.apache.hadoop.") || literal.starts_with("java.") {
                findings.push(format!("{name}: {literal:?}"));
            }
        }
    }
    report("Java class names outside their homes", &findings);
}

#[test]
fn hadoop_keys_live_in_config() {
    let prefixes = ["dfs.", "ipc.", "hadoop.", "fs.", "net.", "io."];
    let mut findings = Vec::new();
    for (name, text) in sources() {
        if !is_product(&name) || name.starts_with("src/config/") {
            continue;
        }
        for literal in literals(&text) {
            let key =
                literal.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
            if key && prefixes.iter().any(|p| literal.starts_with(p)) {
                findings.push(format!("{name}: {literal:?}"));
            }
        }
    }
    report("configuration keys outside src/config", &findings);
}

#[test]
fn the_core_never_touches_the_outside() {
    let banned = [
        "std::fs",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "ToSocketAddrs",
        "std::thread",
        "std::process",
        "std::env",
        "SystemTime",
        "Instant::now",
        "tokio::",
        "parking_lot",
        "tracing::",
        "println!",
        "eprintln!",
    ];
    let mut findings = Vec::new();
    for (name, text) in sources() {
        let core = CORE.iter().any(|c| name.starts_with(&format!("src/{c}/")));
        if !core || !is_product(&name) {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for (i, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or("");
            for b in banned {
                if line.contains(b) {
                    findings.push(format!("{name}:{}: {b}", i + 1));
                }
            }
        }
    }
    report("the core reads no clock, file, net or thread", &findings);
}

#[test]
fn folders_say_what_they_are_for() {
    let labels = ["Purpose:", "Called by:", "Calls:", "Never:", "Invariants:"];
    let mut findings = Vec::new();
    for (name, text) in sources() {
        let folder = is_product(&name) && (name.ends_with("/lib.rs") || name.ends_with("/mod.rs"));
        if !folder {
            continue;
        }
        let header: Vec<&str> = text.lines().take_while(|l| l.starts_with("//!")).collect();
        for label in labels {
            if !header.iter().any(|l| l.trim_start_matches("//!").trim_start().starts_with(label)) {
                findings.push(format!("{name}: no `{label}` line"));
            }
        }
    }
    report("folder headers", &findings);
}

#[test]
fn unsafe_stays_in_its_fences() {
    let mut findings = Vec::new();
    for (name, text) in sources() {
        let fence = name.starts_with("src/mem/") || name.starts_with("src/os/") || name == "src/main.rs";
        for (i, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            let opens = code.contains("unsafe {") || code.contains("unsafe impl") || code.contains("unsafe fn");
            if opens && name.starts_with("src/") && !fence {
                findings.push(format!("{name}:{}: unsafe outside the fences", i + 1));
            }
        }
    }
    report("unsafe", &findings);
}

#[test]
fn every_quirk_has_a_test_of_its_name() {
    let sources = sources();
    let mut tests = BTreeSet::new();
    for (_, text) in &sources {
        for line in text.lines() {
            if let Some(rest) = line.trim().trim_start_matches("async ").strip_prefix("fn ") {
                tests.insert(rest.split(['(', '<']).next().unwrap_or("").to_string());
            }
        }
    }
    // a scenario is a test of its name
    let scenarios = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenario")).expect("scenarios");
    let stems = scenarios
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.strip_suffix(".txt").map(str::to_owned));
    tests.extend(stems);
    let mut findings = Vec::new();
    for (name, text) in &sources {
        if name == "tests/tidy.rs" {
            continue;
        }
        for (i, line) in text.lines().enumerate() {
            let Some(at) = line.find("Quirk: ") else { continue };
            if !line.trim_start().starts_with("//") {
                continue;
            }
            // `Quirk: some_test_name: what is odd`
            let test = line[at + 7..].split(':').next().unwrap_or("").trim().trim_matches('`');
            if !tests.contains(test) {
                findings.push(format!("{name}:{}: no test `{test}` (form: `Quirk: test_name: what`)", i + 1));
            }
        }
    }
    report("quirks", &findings);
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let words = ["this session", "sub-agent", "subagent", "/work/", "../shared", "todo!(", "unimplemented!("];
    let mut findings = Vec::new();
    for (name, text) in sources() {
        if name == "tests/tidy.rs" {
            continue;
        }
        for (i, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            for w in words {
                if lower.contains(w) {
                    findings.push(format!("{name}:{}: {w}", i + 1));
                }
            }
        }
    }
    report("words that do not belong here", &findings);
}
