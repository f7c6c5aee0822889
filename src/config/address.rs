//! Addresses as they stand in values: `host:port`, `hdfs://host:port`, the default file system; with Java's refusals.

use super::values::trim;

/// A host, by name or address, and a port. IPv6 addresses have no brackets here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPort {
    /// Name or address; not resolved.
    pub host: String,
    /// Port, 0 for any.
    pub port: u16,
}

impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format_address(&self.host, self.port))
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub fn format_address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// `NetUtils.createSocketAddr`: `host`, `host:port` or `scheme://host:port`.
pub fn socket_address(text: &str, default_port: u16) -> Result<HostPort, String> {
    let text = trim(text);
    let invalid = || format!("Does not contain a valid host:port authority: {text}");
    let (has_scheme, rest) = text.split_once("://").map_or((false, text), |(_, rest)| (true, rest));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if !has_scheme && !path.is_empty() {
        return Err(invalid());
    }
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or_else(invalid)?),
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    if !is_host(host) {
        return Err(invalid());
    }
    if port.is_empty() {
        return Ok(HostPort { host: host.into(), port: default_port });
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid());
    }
    let number: i32 = port.parse().map_err(|_| invalid())?;
    let port = u16::try_from(number).map_err(|_| format!("port out of range:{number}"))?;
    Ok(HostPort { host: host.into(), port })
}

/// What `java.net.URI` takes for a host: an address, or labels of letters, digits and inner hyphens of which the last
/// starts with a letter (so no underscores).
fn is_host(host: &str) -> bool {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let labels: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let good = |label: &&str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    labels.iter().all(good) && labels.last().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// A URI in its parts; only as far as values of this file need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uri<'a> {
    /// The scheme as written.
    pub scheme: Option<&'a str>,
    /// What stands between `//` and the path; none if empty.
    pub authority: Option<&'a str>,
    /// The path, not decoded.
    pub path: &'a str,
}

/// Takes a URI apart as `java.net.URI` does, with its messages.
pub fn parse_uri(text: &str) -> Result<Uri<'_>, String> {
    let illegal = |c: char| c <= ' ' || "\"<>\\^`{|}".contains(c);
    let scheme = match text.find([':', '/', '?', '#']).filter(|&at| text[at..].starts_with(':')) {
        Some(end) => {
            let good = |(at, c): (usize, char)| {
                c.is_ascii_alphabetic() || (at > 0 && (c.is_ascii_digit() || "+-.".contains(c)))
            };
            if let Some((at, _)) = text[..end].char_indices().find(|&each| !good(each)) {
                return Err(format!("Illegal character in scheme name at index {at}: {text}"));
            }
            Some(&text[..end])
        }
        None => None,
    };
    let start = scheme.map_or(0, |scheme| scheme.len() + 1);
    let (authority, from) = match text[start..].strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            if rest.is_empty() {
                return Err(format!("Expected authority at index {}: {text}", start + 2));
            }
            if rest[..end].contains(illegal) {
                return Err(format!("Illegal character in authority at index {}: {text}", start + 2));
            }
            (Some(&rest[..end]).filter(|authority| !authority.is_empty()), start + 2 + end)
        }
        None => (None, start),
    };
    if let Some(at) = text[from..].find(|c| illegal(c) || "[]".contains(c)) {
        return Err(format!("Illegal character in path at index {}: {text}", from + at));
    }
    let path = &text[from..];
    Ok(Uri { scheme, authority, path: path.split(['?', '#']).next().unwrap_or(path) })
}

/// The NameNode's address from `fs.defaultFS` (`DFSUtilClient.getNNAddress`), 8020 if it names no port.
pub fn namenode_address(default_file_system: &str) -> Result<HostPort, String> {
    let written = trim(default_file_system);
    let fixed = match written {
        "local" => "file:///".to_string(),
        name if !name.contains('/') => format!("hdfs://{name}"),
        name => name.to_string(),
    };
    let uri = parse_uri(&fixed)?;
    let refused = |why: &str| format!("Invalid URI for NameNode address (check fs.defaultFS): {fixed} {why}");
    let authority = uri.authority.ok_or_else(|| refused("has no authority."))?;
    if !uri.scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("hdfs")) {
        return Err(refused("is not of scheme 'hdfs'."));
    }
    socket_address(authority, 8020)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(result: Result<HostPort, String>) -> String {
        result.map_or_else(|problem| problem, |address| address.to_string())
    }

    /// Trial of three field reports: default or unparsable file-system address; the texts are Hadoop's.
    #[test]
    fn default_file_system() {
        let invalid = |rest: &str| format!("Invalid URI for NameNode address (check fs.defaultFS): {rest}");
        for (text, expected) in [
            ("file:///", invalid("file:/// has no authority.")),
            ("local", invalid("file:/// has no authority.")),
            ("hdfs:///", invalid("hdfs:/// has no authority.")),
            ("viewfs://c/", invalid("viewfs://c/ is not of scheme 'hdfs'.")),
            ("foo://localhost:1", invalid("foo://localhost:1 is not of scheme 'hdfs'.")),
            ("hdfs://nn_1:8020", "Does not contain a valid host:port authority: nn_1:8020".into()),
            ("hdfs://localhost:abc", "Does not contain a valid host:port authority: localhost:abc".into()),
            ("hdfs://localhost:99999", "port out of range:99999".into()),
            ("hdfs://", "Expected authority at index 7: hdfs://".into()),
            ("", "Expected authority at index 7: hdfs://".into()),
            ("hdfs://local host", "Illegal character in authority at index 7: hdfs://local host".into()),
            ("hdfs://nn1.example", "nn1.example:8020".into()),
            ("hdfs://localhost/", "localhost:8020".into()),
            ("hdfs://localhost:9000/x", "localhost:9000".into()),
            ("hdfs://localhost:", "localhost:8020".into()),
            ("localhost", "localhost:8020".into()),
            ("localhost:8021", "localhost:8021".into()),
            ("hdfs://127.0.0.1:0", "127.0.0.1:0".into()),
            ("hdfs://user@localhost:8020", "localhost:8020".into()),
            ("hdfs://[::1]:8020", "[::1]:8020".into()),
            (" hdfs://localhost:1 ", "localhost:1".into()),
            ("HDFS://localhost:1", "localhost:1".into()),
        ] {
            assert_eq!(shown(namenode_address(text)), expected, "for {text:?}");
        }
    }

    #[test]
    fn host_and_port() {
        let invalid = |text: &str| format!("Does not contain a valid host:port authority: {text}");
        for (text, expected) in [
            ("localhost:1", "localhost:1".into()),
            ("localhost", "localhost:50".into()),
            (" 127.0.0.1:7 ", "127.0.0.1:7".into()),
            ("hdfs://localhost:1", "localhost:1".into()),
            ("0.0.0.0:8020", "0.0.0.0:8020".into()),
            ("[::]:8020", "[::]:8020".into()),
            ("localhost:x", invalid("localhost:x")),
            (":5", invalid(":5")),
            ("nn_1:8020", invalid("nn_1:8020")),
            ("localhost:70000", "port out of range:70000".into()),
            ("localhost:1/x", invalid("localhost:1/x")),
            ("nn.1:5", invalid("nn.1:5")),
        ] {
            assert_eq!(shown(socket_address(text, 50)), expected, "for {text:?}");
        }
    }

    #[test]
    fn parts_of_a_uri() {
        let uri = parse_uri("qjournal://h1:8485;h2:8485/c").unwrap();
        assert_eq!((uri.scheme, uri.authority, uri.path), (Some("qjournal"), Some("h1:8485;h2:8485"), "/c"));
        assert_eq!(parse_uri("/a:b").unwrap(), Uri { scheme: None, authority: None, path: "/a:b" });
        assert_eq!(
            parse_uri("[DISK]file:///a").unwrap_err(),
            "Illegal character in scheme name at index 0: [DISK]file:///a"
        );
        assert_eq!(parse_uri("file:///a b").unwrap_err(), "Illegal character in path at index 9: file:///a b");
    }
}
