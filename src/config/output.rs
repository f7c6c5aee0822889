//! The configuration as `/conf` shows it, with secrets blotted out. Properties stand in the order of their names
//! (Hadoop's order is that of its hash table).

use super::{Configuration, Property, values};
use regex::Regex;

/// The key whose patterns name the secrets.
pub(super) const SENSITIVE_KEY: &str = "hadoop.security.sensitive-config-keys";

/// Patterns used when it is not set at all.
const SENSITIVE: &str = "secret$,password$,ssl.keystore.pass$,fs.s3a.server-side-encryption.key,\
fs.s3a.*.server-side-encryption.key,fs.s3a.encryption.algorithm,fs.s3a.encryption.key,fs.s3a.secret.key,\
fs.s3a.*.secret.key,fs.s3a.session.key,fs.s3a.*.session.key,fs.s3a.session.token,fs.s3a.*.session.token,\
fs.azure.account.key.*,fs.azure.oauth2.*,fs.adl.oauth2.*,fs.gs.encryption.*,fs.gs.proxy.*,fs.gs.auth.*,credential$,\
oauth.*secret,oauth.*password,oauth.*token,hadoop.security.sensitive-config-keys";

impl Configuration {
    /// The whole configuration as XML, or the one property `name`; none if there is no such property.
    pub fn to_xml(&self, name: Option<&str>) -> Option<String> {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?><configuration>\n");
        let redactor = Redactor::new(self);
        let selected: Vec<_> = self.properties().filter(|(known, _)| name.is_none_or(|name| name == *known)).collect();
        if name.is_some() && selected.is_empty() {
            return None;
        }
        for (name, property) in selected {
            text += &format!(
                "<property><name>{}</name><value>{}</value><final>{}</final>",
                escape_xml(name),
                escape_xml(redactor.value(name, &property.value, "******")),
                self.is_final(name)
            );
            for source in &property.sources {
                text += &format!("<source>{}</source>", escape_xml(source));
            }
            text += "</property>\n";
        }
        text += "</configuration>";
        Some(text)
    }

    /// The whole configuration as JSON, or the one property `name`; none if there is no such property.
    /// Quirk: as_a_real_server_answers: values are expanded here but not in XML.
    pub fn to_json(&self, name: Option<&str>) -> Option<String> {
        let redactor = Redactor::new(self);
        let one = |(name, property): (&str, &Property)| {
            let expanded = self.expand(&property.value);
            let value = expanded.as_deref().unwrap_or(&property.value);
            serde_json::json!({
                "key": name,
                "value": redactor.value(name, value, "<redacted>"),
                "isFinal": self.is_final(name),
                "resource": property.sources.first().map_or("Unknown", String::as_str),
            })
        };
        let whole = match name {
            Some(name) => {
                // an old name is answered with the value of the new one
                let old = || Some(Property { value: self.raw(name)?.to_string(), sources: Vec::new() });
                let property =
                    self.properties().find(|(known, _)| *known == name).map(|(_, property)| property.clone());
                serde_json::json!({ "property": one((name, &property.or_else(old)?)) })
            }
            None => serde_json::json!({ "properties": self.properties().map(one).collect::<Vec<_>>() }),
        };
        Some(whole.to_string())
    }
}

/// Hides the values of keys that match a pattern of `hadoop.security.sensitive-config-keys`.
struct Redactor(Vec<Regex>);

impl Redactor {
    /// A pattern that is no regular expression hides everything: better than showing a secret.
    fn new(configuration: &Configuration) -> Redactor {
        let patterns = configuration.raw(SENSITIVE_KEY).unwrap_or(SENSITIVE);
        let compile = |pattern: &String| Regex::new(pattern).unwrap_or_else(|_| Regex::new("").expect("matches all"));
        Redactor(values::trimmed_strings(patterns).iter().map(compile).collect())
    }

    fn value<'a>(&self, name: &str, value: &'a str, hidden: &'a str) -> &'a str {
        if self.0.iter().any(|pattern| pattern.is_match(name)) { hidden } else { value }
    }
}

/// As Java's serializer: quotes stay, a carriage return does not; what XML cannot hold is left out.
fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '\r' => escaped += "&#13;",
            '\n' | '\t' => escaped.push(c),
            c if c < ' ' => {}
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;
    use crate::config::xml::Item;
    use std::collections::BTreeMap;

    fn of(pairs: &[(&str, &str)]) -> Configuration {
        let item = |(name, value): &(&str, &str)| Item {
            name: name.to_string(),
            value: Some(value.to_string()),
            ..Item::default()
        };
        let mut configuration = Configuration::empty(Environment::default());
        configuration.add(pairs.iter().map(item).collect(), "dep0.xml");
        configuration
    }

    fn one_xml(name: &str, value: &str, source: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?><configuration>\n<property><name>{name}</name>\
             <value>{value}</value><final>false</final>{source}</property>\n</configuration>"
        )
    }

    #[test]
    fn one_property() {
        let conf = of(&[("v", "<a>&\"'\nx\ty\rz"), ("w", "${v}")]);
        let source = "<source>dep0.xml</source>";
        assert_eq!(conf.to_xml(Some("v")).unwrap(), one_xml("v", "&lt;a&gt;&amp;\"'\nx\ty&#13;z", source));
        assert_eq!(conf.to_xml(Some("w")).unwrap(), one_xml("w", "${v}", source));
        let old = of(&[("dfs.blocksize", "2")]);
        let json = r#"{"property":{"key":"dfs.block.size","value":"2","isFinal":false,"resource":"Unknown"}}"#;
        assert_eq!(
            (old.to_xml(Some("dfs.block.size")), old.to_json(Some("dfs.block.size"))),
            (None, Some(json.into()))
        );
        let json = r#"{"property":{"key":"v","value":"<a>&\"'\nx\ty\rz","isFinal":false,"resource":"dep0.xml"}}"#;
        assert_eq!(conf.to_json(Some("v")).unwrap(), json);
        assert_eq!((conf.to_xml(Some("nope")), conf.to_json(Some("nope"))), (None, None));
    }

    #[test]
    fn sources() {
        let mut conf = Configuration::empty(Environment::default());
        let item = Item { name: "s".into(), value: Some("1".into()), source: Some("s1,s2".into()), is_final: true };
        conf.add(vec![item], "dep0.xml");
        assert!(conf.to_xml(None).unwrap().contains("<source>s1,s2</source><source>dep0.xml</source></property>"));
        let json = r#"{"properties":[{"key":"s","value":"1","isFinal":true,"resource":"s1,s2"}]}"#;
        assert_eq!(conf.to_json(None).unwrap(), json);
        conf.set("dfs.block.size", "5", "programmatically");
        assert_eq!(conf.to_xml(Some("dfs.block.size")).unwrap(), one_xml("dfs.block.size", "5", ""));
        assert!(conf.to_json(Some("dfs.block.size")).unwrap().ends_with("\"resource\":\"Unknown\"}}"));
    }

    /// The names whose values are hidden.
    fn hidden(conf: &Configuration) -> Vec<&str> {
        let redactor = Redactor::new(conf);
        conf.properties().filter(|(name, p)| redactor.value(name, &p.value, "?") == "?").map(|(name, _)| name).collect()
    }

    #[test]
    fn secrets_are_hidden() {
        let names = [
            "A.SECRET",
            "a.secret",
            "fs.azure.account.key.foo",
            "fs.s3a.bucket.secret.key",
            "my.credential",
            "oauth.x.token",
            "password",
            "secret.thing",
            "ssl.keystore.passx",
        ];
        let by_default = [
            "a.secret",
            "fs.azure.account.key.foo",
            "fs.s3a.bucket.secret.key",
            "my.credential",
            "oauth.x.token",
            "password",
        ];
        assert_eq!(hidden(&of(&names.map(|name| (name, "1")))), by_default);
        let own = [
            ("hadoop.security.sensitive-config-keys", "foo$,^bar, baz"),
            ("x.foo", "1"),
            ("x.bar", "1"),
            ("bar", "2"),
            ("zbazz", "3"),
            ("a.secret", "4"),
        ];
        assert_eq!(hidden(&of(&own)), ["bar", "x.foo", "zbazz"]);
        assert_eq!(hidden(&of(&[("hadoop.security.sensitive-config-keys", "[")])).len(), 1);
    }

    /// The same lines as often, in any order; shows only those that are not.
    #[track_caller]
    fn assert_same<'a>(ours: impl Iterator<Item = &'a str>, golden: impl Iterator<Item = &'a str>) {
        let mut surplus: BTreeMap<&str, i32> = BTreeMap::new();
        ours.for_each(|line| *surplus.entry(line).or_default() += 1);
        golden.for_each(|line| *surplus.entry(line).or_default() -= 1);
        surplus.retain(|_, count| *count != 0);
        assert!(surplus.is_empty(), "{surplus:#?}");
    }

    /// Replays the site files of the recorded server and compares with what it answered, in any order.
    #[test]
    fn as_a_real_server_answers() {
        let golden = include_str!("../../tests/golden/web/conf.xml");
        let property = |line: &str| {
            let field = |tag: &str| {
                let (_, rest) = line.split_once(&format!("<{tag}>"))?;
                Some(quick_xml::escape::unescape(rest.split_once(&format!("</{tag}>"))?.0).unwrap().into_owned())
            };
            Some((field("name")?, field("value")?, field("source")?))
        };
        let mut environment = Environment::default();
        environment.properties.insert("user.home".into(), "/root".into());
        let mut conf = Configuration::with_defaults(environment);
        for (name, value, source) in golden.split("</property>").filter_map(property) {
            match source.as_str() {
                "core-default.xml" | "hdfs-default.xml" => {}
                "programmatically" => conf.set(&name, &value, &source),
                _ => conf.add(vec![Item { name, value: Some(value), ..Item::default() }], &source),
            }
        }
        assert_same(conf.to_xml(None).unwrap().split('\n'), golden.split('\n'));
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/web/conf-accept-json.json")).unwrap();
        let ours: serde_json::Value = serde_json::from_str(&conf.to_json(None).unwrap()).unwrap();
        let lines = |body: &serde_json::Value| -> Vec<String> {
            body["properties"].as_array().unwrap().iter().map(|property| property.to_string()).collect()
        };
        let (ours, golden) = (lines(&ours), lines(&golden));
        assert_same(ours.iter().map(String::as_str), golden.iter().map(String::as_str));
    }
}
