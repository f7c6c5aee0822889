//! What Hadoop 3.5.0's `Configuration` was seen to do with the same keys and values.
use super::*;

fn item(name: &str, value: &str) -> Item {
    Item { name: name.into(), value: (!value.is_empty()).then(|| value.into()), ..Item::default() }
}

fn final_item(name: &str, value: &str) -> Item {
    Item { is_final: true, ..item(name, value) }
}

/// A configuration of resources `0.xml`, `1.xml` ...
fn of(resources: Vec<Vec<Item>>) -> Configuration {
    let mut configuration = Configuration::empty(Environment::default());
    for (number, items) in resources.into_iter().enumerate() {
        configuration.add(items, &format!("{number}.xml"));
    }
    configuration
}

/// `name=value<source,source>` and `!` if final, for all properties.
fn shown(configuration: &Configuration) -> String {
    let show = |(name, property): (&str, &Property)| {
        let mark = if configuration.is_final(name) { "!" } else { "" };
        format!("{name}={}<{}>{mark}", property.value, property.sources.join(","))
    };
    configuration.properties().map(show).collect::<Vec<_>>().join(" ")
}

#[test]
fn later_wins_unless_final() {
    let conf =
        of(vec![vec![item("a", "1"), final_item("c", "1")], vec![item("a", "2"), item("c", "2"), item("c", "1")]]);
    assert_eq!(shown(&conf), "a=2<1.xml> c=1<0.xml>!");
    assert_eq!(conf.notices(), ["1.xml:an attempt to override final parameter: c;  Ignoring."]);
    // in one file, too
    let conf = of(vec![vec![final_item("a", "1"), item("a", "2")]]);
    assert_eq!(shown(&conf), "a=1<0.xml>!");
    // final without a value
    let conf = of(vec![vec![item("a", "1")], vec![final_item("a", "")], vec![item("a", "3")]]);
    assert_eq!(shown(&conf), "a=1<0.xml>!");
    assert_eq!(conf.notices(), ["2.xml:an attempt to override final parameter: a;  Ignoring."]);
    // no value changes nothing
    assert_eq!(shown(&of(vec![vec![item("a", "1")], vec![item("a", "")]])), "a=1<0.xml>");
}

#[test]
fn set_is_stronger_than_final_and_files() {
    let mut conf = of(vec![vec![final_item("f", "1"), item("a", "1")]]);
    conf.set("f", "2", "programmatically");
    conf.set(" a ", "5", "from command line");
    conf.add(vec![item("a", "9")], "late.xml");
    assert_eq!(shown(&conf), "a=5<from command line> f=2<programmatically>!");
}

#[test]
fn sources_of_the_file_are_kept() {
    let conf = of(vec![vec![Item { source: Some("s1,s2".into()), ..item("s", "1") }]]);
    assert_eq!(shown(&conf), "s=1<s1,s2,0.xml>");
}

#[test]
fn old_names() {
    for (resources, expected) in [
        (vec![vec![item("dfs.block.size", "1")]], "dfs.blocksize=1<0.xml>"),
        (vec![vec![item("dfs.block.size", "1")], vec![item("dfs.blocksize", "2")]], "dfs.blocksize=2<1.xml>"),
        (vec![vec![item("dfs.blocksize", "2")], vec![item("dfs.block.size", "1")]], "dfs.blocksize=1<1.xml>"),
        (vec![vec![item("dfs.blocksize", "2"), item("dfs.block.size", "1")]], "dfs.blocksize=1<0.xml>"),
        (vec![vec![final_item("dfs.blocksize", "2")], vec![item("dfs.block.size", "1")]], "dfs.blocksize=2<0.xml>!"),
    ] {
        let conf = of(resources);
        assert_eq!(shown(&conf), expected);
        assert_eq!(conf.get("dfs.block.size").unwrap(), conf.get("dfs.blocksize").unwrap());
    }
    let conf = of(vec![vec![item("dfs.block.size", "1")]]);
    assert_eq!(conf.notices(), ["dfs.block.size in 0.xml is deprecated. Instead, use dfs.blocksize"]);
}

#[test]
fn setting_an_old_name() {
    let mut conf = of(vec![vec![item("dfs.blocksize", "2")]]);
    conf.set("dfs.block.size", "5", "programmatically");
    assert_eq!(shown(&conf), "dfs.block.size=5<> dfs.blocksize=5<because dfs.block.size is deprecated>");
    conf.set("dfs.blocksize", "6", "programmatically");
    assert_eq!(shown(&conf), "dfs.block.size=6<> dfs.blocksize=6<programmatically>");
    let mut conf = of(vec![]);
    conf.set("dfs.blocksize", "5", "programmatically");
    assert_eq!(shown(&conf), "dfs.blocksize=5<programmatically>");
}

#[test]
fn core_site_loses_to_hdfs_default() {
    let mut conf = Configuration::empty(Environment::default());
    conf.add_defaults(Origin::Core);
    conf.add(
        vec![item("dfs.replication", "9"), final_item("dfs.blocksize", "9m"), item("dfs.hosts", "/x")],
        "core-site.xml",
    );
    conf.add_defaults(Origin::Hdfs);
    conf.add(vec![item("fs.trash.interval", "7")], "hdfs-site.xml");
    let value = |name| conf.raw(name).unwrap();
    assert_eq!([value("dfs.replication"), value("dfs.blocksize"), value("dfs.hosts")], ["3", "9m", "/x"]);
    assert_eq!(value("fs.trash.interval"), "7");
    assert_eq!(conf.notices(), ["hdfs-default.xml:an attempt to override final parameter: dfs.blocksize;  Ignoring."]);
}

#[test]
fn expansion() {
    let pairs = |list: &[(&str, &str)]| list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let environment = Environment {
        properties: pairs(&[("user.name", "root"), ("java.io.tmpdir", "/tmp")]),
        variables: pairs(&[("HOME", "/root"), ("EMPTY", "")]),
    };
    let mut conf = Configuration::empty(environment);
    for (key, value) in [
        ("a", "A"),
        ("b", "${a}B"),
        ("in", "a"),
        ("loop1", "${loop2}"),
        ("loop2", "${loop1}"),
        ("self", "s${self}"),
        ("e", ""),
        ("user.name", "conf"),
        ("d1", "end"),
    ] {
        conf.set(key, value, "test");
    }
    for depth in 2..=21 {
        conf.set(&format!("d{depth}"), &format!("${{d{}}}", depth - 1), "test");
    }
    let deep = |text: &str| format!("Variable substitution depth too large: 20 {text}");
    for (text, expected) in [
        ("${user.name}", "root"),
        ("${a}", "A"),
        ("${nope}", "${nope}"),
        ("x${a}y${b}z", "xAyABz"),
        ("${a}${a}${a}", "AAA"),
        ("x${nope}${a}", "x${nope}${a}"),
        ("${a}${nope}${a}", "A${nope}${a}"),
        ("${loop1}", &deep("${loop1}")),
        ("${self}", "${self}"),
        ("${env.HOME}", "/root"),
        ("${env.NOPE}", "${env.NOPE}"),
        ("${env.NOPE:-d}", "d"),
        ("${env.NOPE-d}", "d"),
        ("${env.EMPTY:-d}", "d"),
        ("${env.EMPTY-d}", ""),
        ("${env.HOME:-d}", "/root"),
        ("${env.NOPE:-${a}}", "A"),
        ("${env.NOPE:-}", ""),
        ("${env.NOPE:-x:-y}", "x:-y"),
        ("${env.NOPE-x:-y}", "x:-y"),
        ("${env.EMPTY-x:-y}", ""),
        ("${env.A-B}", "B"),
        ("${env.}", "${env.}"),
        ("${}", "${}"),
        ("${ a}", "${ a}"),
        ("$a", "$a"),
        ("${a", "${a"),
        ("$${a}", "$A"),
        ("a}${a}", "a}A"),
        ("${${in}}", "A"),
        ("${x${a}}", "${xA}"),
        ("${e}", ""),
        ("${d19}", "end"),
        ("${d20}", &deep("${d20}")),
        ("${java.io.tmpdir}", "/tmp"),
    ] {
        let got = conf.expand(text).unwrap_or_else(|e| e.to_string());
        assert_eq!(got, expected, "for {text}");
    }
    conf.set("k", "${k}", "test");
    assert_eq!(conf.get("k").unwrap().as_deref(), Some("${k}"));
}
