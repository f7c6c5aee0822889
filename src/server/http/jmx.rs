//! `/jmx`: beans by name pattern, or one attribute of one bean, as Hadoop's `JMXJsonServlet` answers.

use super::json::Json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A management bean as it prints.
#[derive(Clone, PartialEq, Debug)]
pub struct Bean {
    /// Object name, such as `Hadoop:service=NameNode,name=NameNodeInfo`.
    pub name: String,
    /// The Java class that tools may look for.
    pub modeler: String,
    /// Attributes in Hadoop's order.
    pub attributes: Vec<(Cow<'static, str>, Json)>,
}

impl Bean {
    /// From its parts.
    pub fn new<N: Into<Cow<'static, str>>>(name: &str, modeler: &str, attributes: Vec<(N, Json)>) -> Bean {
        let attributes = attributes.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Bean { name: name.to_owned(), modeler: modeler.to_owned(), attributes }
    }
}

/// Answers a query: `qry` selects beans by a name pattern, `get` one attribute. All errors are bodies of a good answer. `make` gives `None`
/// while what a bean tells of does not exist yet.
pub fn answer(qry: Option<&str>, get: Option<&str>, names: &[String], make: &dyn Fn(&str) -> Option<Bean>) -> String {
    let (pattern, attribute) = match get {
        Some(get) => match split_get(get) {
            Some((name, attribute)) => (name, Some(attribute)),
            None => {
                let message = "query format is not as expected.";
                return Json::object([("result", "ERROR".into()), ("message", message.into())]).pretty();
            }
        },
        None => (qry.unwrap_or("*:*"), None),
    };
    let Some(pattern) = Pattern::parse(pattern) else { return "{ }".to_owned() };
    let mut beans = Vec::new();
    for name in names.iter().filter(|name| pattern.matches(name)) {
        let Some(bean) = make(name) else { continue };
        debug_assert_eq!(bean.name, *name);
        let (json, complete) = print(bean, attribute);
        beans.push(json);
        if !complete {
            break;
        }
    }
    Json::object([("beans", Json::List(beans))]).pretty()
}

/// `name::attribute`, with exactly one separator (Java drops empty parts at the end).
fn split_get(get: &str) -> Option<(&str, &str)> {
    let mut parts: Vec<&str> = get.split("::").collect();
    while parts.last().is_some_and(|p| p.is_empty()) {
        parts.pop();
    }
    match parts[..] {
        [name, attribute] => Some((name, attribute)),
        _ => None,
    }
}

/// The bean, or its one attribute; and whether that exists.
fn print(bean: Bean, attribute: Option<&str>) -> (Json, bool) {
    let mut members =
        vec![("name".to_owned(), Json::Text(bean.name)), ("modelerType".to_owned(), Json::Text(bean.modeler))];
    let wanted = |name: &str| attribute.is_none_or(|a| a == name);
    let before = members.len();
    members.extend(bean.attributes.into_iter().filter(|(name, _)| wanted(name)).map(|(n, v)| (n.into_owned(), v)));
    let missing = attribute.filter(|_| members.len() == before);
    if let Some(attribute) = missing {
        members.push(("result".to_owned(), "ERROR".into()));
        members.push(("message".to_owned(), format!("No attribute with name {attribute} was found.").into()));
    }
    (Json::Object(members), missing.is_none())
}

/// An object name that may have wildcards (`javax.management.ObjectName`).
#[derive(Debug)]
struct Pattern<'a> {
    domain: &'a str,
    keys: BTreeMap<&'a str, &'a str>,
    /// Whether other keys may be there too.
    open: bool,
}

impl<'a> Pattern<'a> {
    fn parse(text: &'a str) -> Option<Pattern<'a>> {
        if text.is_empty() {
            return Some(Pattern { domain: "*", keys: BTreeMap::new(), open: true });
        }
        let (domain, list) = text.split_once(':')?;
        let (mut keys, mut open) = (BTreeMap::new(), false);
        for part in list.split(',') {
            if part == "*" && !open {
                open = true;
                continue;
            }
            let (key, value) = part.split_once('=').filter(|(k, v)| !k.is_empty() && !v.is_empty())?;
            if key.contains(['*', '?']) || keys.insert(key, value).is_some() {
                return None;
            }
        }
        Some(Pattern { domain, keys, open })
    }

    fn matches(&self, name: &str) -> bool {
        let Some(name) = Pattern::parse(name) else { return false };
        let domain = if self.domain.is_empty() { "DefaultDomain" } else { self.domain };
        wildcard(domain.as_bytes(), name.domain.as_bytes())
            && (self.open || self.keys.len() == name.keys.len())
            && self
                .keys
                .iter()
                .all(|(key, value)| name.keys.get(key).is_some_and(|v| wildcard(value.as_bytes(), v.as_bytes())))
    }
}

/// `*` is any run of characters, `?` is one.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut retry) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                (p, t) = (star + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "Hadoop:service=NameNode,name=NameNodeInfo";
    const MODELER: &str = "org.apache.hadoop.hdfs.server.namenode.FSNamesystem";

    fn ask(qry: Option<&str>, get: Option<&str>) -> String {
        let make = |name: &str| {
            let version = "3.5.0, rdbcc7cd797100e6b32cd84f85b53a5193a5f9af0";
            (name == INFO).then(|| Bean::new(INFO, MODELER, vec![("Threads", 1.into()), ("Version", version.into())]))
        };
        answer(qry, get, &[INFO.to_owned(), "Hadoop:service=NameNode,name=Absent".to_owned()], &make)
    }

    /// The bodies that Hadoop 3.5.0 gave.
    #[test]
    fn forms_of_queries_as_hadoop() {
        let golden = |name: &str| {
            std::fs::read_to_string(format!("{}/../../tests/golden/jmx/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
        };
        assert_eq!(ask(None, Some(&format!("{INFO}::Version"))), golden("get-one.json"));
        assert_eq!(ask(None, Some(&format!("{INFO}::NoSuchAttribute"))), golden("get-missing.json"));
        assert_eq!(ask(None, Some("nonsense")), golden("get-bad.json"));
        assert_eq!(ask(Some("Hadoop:service=Nothing"), None), golden("qry-missing.json"));
        assert_eq!(ask(Some("a b"), None), "{ }");
    }

    #[test]
    fn patterns() {
        let matches = |p: &str| Pattern::parse(p).is_some_and(|p| p.matches(INFO));
        for yes in [
            "",
            "*:*",
            "Hadoop:*",
            "Hadoop:service=NameNode,name=NameNodeInfo",
            "Hadoop:name=NameNodeInfo,service=NameNode",
            "Hadoop:service=NameNode,*",
            "Hadoop:service=NameNode,name=*",
            "Had*:name=NameNode*,*",
            "H?doop:*,name=*Info",
        ] {
            assert!(matches(yes), "{yes}");
        }
        for no in [
            "Hadoop",
            "Hadoop:",
            "java.lang:*",
            "Hadoop:service=NameNode",
            "Hadoop:service=DataNode,*",
            "Hadoop:a=b,a=b,*",
            ":*",
        ] {
            assert!(!matches(no), "{no}");
        }
        assert!(ask(None, None).contains("\"Threads\" : 1"));
    }
}
