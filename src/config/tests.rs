//! No text an administrator may write leads to a panic.
use super::settings::{Settings, identify};
use super::{Configuration, Environment, address, registry, values, xml};
use proptest::prelude::*;

proptest! {
    #[test]
    fn values_are_total(text in "\\PC{0,12}|[-+0-9a-zA-Z.:/ ,\\[\\]@_%]{0,24}") {
        let _ = (values::int(&text), values::long(&text), values::long_bytes(&text), values::double(&text));
        let _ = values::time_duration(&text, values::Unit::Seconds);
        let _ = (values::boolean(&text), values::trimmed_strings(&text));
        let _ = (address::socket_address(&text, 1), address::parse_uri(&text), address::namenode_address(&text));
    }

    #[test]
    fn expansion_is_total(texts in proptest::collection::vec("[a-c${}:. -]{0,12}|\\$\\{(env\\.)?[a-c]:?-?[a-c]?\\}", 3)) {
        let mut configuration = Configuration::empty(Environment::default());
        for (name, text) in ["a", "b", "c"].into_iter().zip(&texts) {
            configuration.set(name, text, "test");
        }
        for name in ["a", "b", "c"] {
            let _ = configuration.get(name);
        }
    }

    #[test]
    fn site_files_are_total(words in proptest::collection::vec(0..FRAGMENTS.len(), 0..12), noise in "\\PC{0,6}") {
        let text: String = words.into_iter().map(|at| FRAGMENTS[at]).collect();
        let _ = xml::parse_text(&format!("{text}{noise}"));
        let _ = xml::parse_text(&format!("<configuration>{text}</configuration>"));
    }

    /// Any value of any key we honour is read or refused.
    #[test]
    fn settings_are_total(at in any::<prop::sample::Index>(), value in "-?[0-9]{1,19}|[0-9]{1,3}[a-z]|true|\\PC{0,8}|/[a-z,]{0,8}") {
        let keys: Vec<_> = registry().keys().filter(|key| key.honoured).map(|key| key.name).collect();
        let mut configuration = Configuration::with_defaults(Environment::default());
        configuration.set("fs.defaultFS", "hdfs://localhost", "test");
        configuration.set(keys[at.index(keys.len())], &value, "test");
        if let Ok(identity) = identify(&mut configuration, |_| true) {
            let _ = Settings::read(&configuration, identity).map(|settings| settings.unsupported());
        }
    }
}

const FRAGMENTS: [&str; 16] = [
    "<property>",
    "</property>",
    "<name>a</name>",
    "<value>b</value>",
    "<value/>",
    "<final>true</final>",
    "<include/>",
    "<include>",
    "</include>",
    "<fallback>",
    "</fallback>",
    "&amp;",
    "&#0;",
    "<![CDATA[x]]>",
    "<!-- ",
    "<property name='a' value='&x;'/>",
];

/// Whether the settings of a name node can be read with this value of a key; if not, what is said.
fn read_with(key: &str, value: &str) -> Result<(), String> {
    let mut configuration = Configuration::with_defaults(Environment::default());
    configuration.set("fs.defaultFS", "hdfs://localhost", "test");
    configuration.set(key, value, "test");
    let identity = identify(&mut configuration, |_| true).expect("one name node");
    Settings::read(&configuration, identity).map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_list_of_ports_has_each_once_and_no_gaps() {
    let read = |ports| read_with("dfs.namenode.rpc-address.auxiliary-ports", ports);
    assert_eq!(read(" 8021, 8022,"), Ok(()));
    for (ports, text) in [
        ("8021,,8022", "For input string: \"\""),
        (",8021", "For input string: \"\""),
        ("8021,8021", "There is already a listener binding to: 8021"),
    ] {
        assert!(read(ports).is_err_and(|error| error.contains(text)), "{ports}: {:?}", read(ports));
    }
}

/// Windows of counts that Hadoop refuses.
#[test]
fn windows_of_who_asks_most_have_bounds() {
    let read = |minutes| read_with("dfs.namenode.top.windows.minutes", minutes);
    assert_eq!((read("35791"), read("+3, 1,1")), (Ok(()), Ok(())));
    for (minutes, text) in [
        ("0", "minimum reporting period is 1 min!"),
        ("35792", "Out of range: 2147520000"),
        ("2147483647", "Out of range: 128849018820000"),
        ("2147483648", "For input string: \"2147483648\""),
        ("1,,2", "For input string: \"\""),
    ] {
        assert!(read(minutes).is_err_and(|error| error.contains(text)), "{minutes}: {:?}", read(minutes));
    }
}
