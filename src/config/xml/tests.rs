//! What Hadoop 3.5.0's own reader was seen to do with the same files.
use super::parse_text as parse;
use super::*;

/// A directory of its own for a test's files, gone afterwards.
struct Files(PathBuf);

impl Files {
    fn new(name: &str, files: &[(&str, &str)]) -> Files {
        let directory = std::env::temp_dir().join(format!("ironroot-xml-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            std::fs::write(directory.join(name), text).unwrap();
        }
        Files(directory)
    }
    fn read(&self) -> Result<Vec<Item>, ConfigError> {
        read_file(&self.0.join("main.xml"), "main.xml").map(|items| items.expect("there"))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `name=value` pairs, `name!` for no value.
fn pairs(items: &[Item]) -> String {
    let show = |item: &Item| match &item.value {
        Some(value) => format!("{}={}", item.name, value),
        None => format!("{}!", item.name),
    };
    items.iter().map(show).collect::<Vec<_>>().join(";")
}

#[track_caller]
fn check(body: &str, expected: &str) {
    assert_eq!(
        pairs(&parse(&format!("<?xml version=\"1.0\"?>\n<configuration>{body}</configuration>")).unwrap()),
        expected
    );
}

#[test]
fn empty_value_is_none() {
    check(
        "<property><name>a</name><value></value></property><property><name>b</name><value/></property>\
         <property><name>c</name><value> </value></property><property><name>d</name></property>\
         <property><value>x</value></property><property><name></name><value>x</value></property>",
        "a!;b!;c= ;d!",
    );
    check("<property name=\"a\" value=\"\"/>", "a=");
    check("<property><name>a</name><value>1</value><value></value></property>", "a=1");
}

#[test]
fn final_is_exact() {
    let body = ["true", "TRUE", " true ", "yes", ""]
        .map(|f| format!("<property><name>a</name><value>1</value><final>{f}</final></property>"))
        .concat();
    let finals: Vec<bool> = parse(&format!("<c>{body}</c>")).unwrap().iter().map(|item| item.is_final).collect();
    assert_eq!(finals, [true, false, false, false, false]);
}

#[test]
fn liberties_of_the_reader() {
    check("<property><name> a </name><value>\n  v w \n</value></property>", "a=\n  v w \n");
    check("<property name=\"a\" value=\"1\" final=\"true\"/><property name=\"b\" value=\"2\">\n</property>", "a=1;b=2");
    check("<property><name>a</name><value>x<!-- c -->y</value></property>", "a=xy");
    check("<property><name>a</name><value><![CDATA[<z>]]>&amp;&#65;</value></property>", "a=<z>&A");
    check("<property><description>d <b>bold</b></description><name>a</name><value>1</value></property>", "a=1");
    check("<configuration><property><name>a</name><value>1</value></property></configuration>", "a=1");
    check("<foo>bar</foo><property><name>a</name><value>1<b>2</b>3</value></property>", "a=123");
    check("<property><name>a</name><name>b</name><value>1</value><value>2</value></property>", "b=2");
    check("stray <property>txt<name>a</name>more<value>1</value></property>", "a=1");
    assert_eq!(pairs(&parse("<conf><property><name>a</name><value>1</value></property></conf>").unwrap()), "a=1");
    assert_eq!(pairs(&parse("\u{feff}<c><property><name>a</name><value>1</value></property></c>").unwrap()), "a=1");
    let items = parse("<c><property><name>a</name><value>1</value><source>s1,s2</source><tag>T</tag></property></c>");
    assert_eq!(items.unwrap()[0].source.as_deref(), Some("s1,s2"));
}

#[test]
fn line_ends_are_one() {
    let files =
        Files::new("crlf", &[("main.xml", "<c><property><name>a</name><value>x\r\ny\rz</value></property></c>")]);
    assert_eq!(pairs(&files.read().unwrap()), "a=x\ny\nz");
}

#[test]
fn encodings() {
    let body =
        |head: &str| [head.as_bytes(), b"\n<c><property><name>a</name><value>\xe9</value></property></c>"].concat();
    let latin = body("<?xml version='1.0' encoding='ISO-8859-1'?>");
    assert_eq!(pairs(&parse(&decode(latin).unwrap()).unwrap()), "a=\u{e9}");
    assert_eq!(decode(body("<?xml version='1.0'?>")), Err(2));
}

#[test]
fn mistakes_name_file_and_line() {
    for (body, line) in [
        ("<configuration>\n<property>\n<name>a</name>\n<value>1\n</property></configuration>", 5),
        ("<configuration>\n<property><name>a</name><value>1</value></property>", 2),
        ("", 1),
        ("hello", 1),
        ("<a/>\n<b/>", 2),
        ("<configuration>\n\n<property><name>a</name><value>&nope;</value></property></configuration>", 3),
        ("<configuration>\n<property", 2),
        ("<configuration>\n<property name=a/></configuration>", 2),
    ] {
        let text = parse(body).expect_err(body).to_string();
        assert!(text.starts_with(&format!("error parsing conf main.xml: line {line}: ")), "{body:?} gave {text}");
    }
}

const HEAD: &str = "<configuration xmlns:xi=\"http://www.w3.org/2001/XInclude\">";
const INCLUDED: &str = "<configuration><property><name>i</name><value>inc</value></property></configuration>";

#[track_caller]
fn check_include(test: &str, body: &str, expected: &str) {
    let text = format!("{HEAD}{body}<property><name>j</name><value>9</value></property></configuration>");
    let files = Files::new(test, &[("main.xml", &text), ("inc.xml", INCLUDED)]);
    assert_eq!(pairs(&files.read().unwrap()), expected);
}

#[test]
fn includes() {
    let fallback = "<xi:fallback><property><name>f</name><value>fb</value></property></xi:fallback>";
    check_include("plain", "<xi:include href=\"inc.xml\" parse=\"xml\"/>", "i=inc;j=9");
    check_include("any-namespace", "<include href=\"inc.xml\"/>", "i=inc;j=9");
    check_include("missing", &format!("<xi:include href=\"nope.xml\">{fallback}</xi:include>"), "f=fb;j=9");
    check_include("there", &format!("<xi:include href=\"inc.xml\">{fallback}</xi:include>"), "i=inc;j=9");
    check_include("empty-fallback", "<xi:include href=\"nope.xml\"><xi:fallback/></xi:include>", "j=9");
    check_include("no-href", "<xi:include/>", "j=9");
    let nested = "<xi:include href=\"nope.xml\"><xi:fallback><xi:include href=\"inc.xml\"/></xi:fallback></xi:include>";
    check_include("nested", nested, "i=inc;j=9");
}

#[test]
fn include_by_absolute_path_and_uri() {
    let files = Files::new("absolute", &[("inc.xml", INCLUDED)]);
    for prefix in ["", "file://"] {
        let target = files.0.join("inc.xml");
        let text = format!("{HEAD}<xi:include href=\"{prefix}{}\"/></configuration>", target.display());
        std::fs::write(files.0.join("main.xml"), text).unwrap();
        assert_eq!(pairs(&files.read().unwrap()), "i=inc");
    }
}

#[test]
fn include_without_fallback_and_of_itself() {
    let missing =
        Files::new("lost", &[("main.xml", &format!("{HEAD}<xi:include href=\"nope.xml\"/></configuration>"))]);
    let text = missing.read().unwrap_err().to_string();
    assert!(text.starts_with("Fetch fail on include for 'nope.xml' with no fallback while loading '"), "{text}");
    let circle =
        Files::new("self", &[("main.xml", &format!("{HEAD}\n<xi:include href=\"main.xml\"/></configuration>"))]);
    let text = circle.read().unwrap_err().to_string();
    assert!(text.contains("line 2: the file includes itself"), "{text}");
}

#[test]
fn no_such_file_is_no_error() {
    assert_eq!(read_file(Path::new("/nope/x.xml"), "x.xml").unwrap(), None);
}
