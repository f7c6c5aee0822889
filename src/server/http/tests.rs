//! The pages over real sockets.

use super::jmx::Bean;
use super::*;
use observe::progress::{Phase, StepKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

struct OneKey;

impl Configuration for OneKey {
    fn xml(&self, name: Option<&str>) -> Option<String> {
        name.is_none_or(|n| n == "a").then(|| "<configuration/>".to_owned())
    }
    fn json(&self, name: Option<&str>) -> Option<String> {
        name.is_none_or(|n| n == "a").then(|| "{}".to_owned())
    }
}

struct Loaded;

impl Node for Loaded {
    fn is_active(&self) -> bool {
        true
    }
    fn host(&self) -> &str {
        "localhost"
    }
    fn bean(&self, name: &str) -> Option<Bean> {
        (name == BEANS[1]).then(|| Bean::new(name, "m", vec![("State", "active".into())]))
    }
}

async fn start() -> (Server, Arc<Web>) {
    let settings = WebSettings { frame_options: Some("SAMEORIGIN".to_owned()), ..WebSettings::default() };
    let web = Arc::new(Web::new(Arc::default(), Box::new(OneKey), settings));
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    (Server::start(listener, web.clone()).unwrap(), web)
}

/// Sends a request and gives back head and body.
async fn ask(server: &Server, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let (line, headers) = request.split_once('\n').unwrap_or((request, ""));
    let message = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(message.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

#[tokio::test]
async fn before_and_after_the_load() {
    let (server, web) = start().await;
    let (head, body) = ask(&server, "GET /isActive").await;
    assert!(head.starts_with("http/1.1 405") && body.contains("I am not active!"), "{head}\n{body}");
    assert_eq!(ask(&server, "GET /jmx").await.1, "{\n  \"beans\" : [ ]\n}");
    assert!(web.node.set(Arc::new(Loaded)).is_ok());
    let (head, body) = ask(&server, "GET /isActive").await;
    assert!(head.starts_with("http/1.1 200") && head.contains("x-frame-options: sameorigin"), "{head}");
    assert_eq!(body, "I am Active!");
    let (head, body) = ask(&server, "GET /jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus&callback=f").await;
    assert!(
        head.contains("access-control-allow-origin: *") && head.contains("application/json; charset=utf8"),
        "{head}"
    );
    assert!(body.contains("\"State\" : \"active\""), "{body}");
    let address = server.address();
    server.stop().await;
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn methods_and_paths_that_do_not_exist() {
    let (server, _) = start().await;
    for (request, status) in [
        ("TRACE /jmx", 405),
        ("TRACE /", 405),
        ("POST /jmx", 405),
        ("PUT /startupProgress", 405),
        ("GET /nothing-here", 404),
        ("GET /", 302),
        ("HEAD /jmx", 200),
        ("GET /conf?name=a", 200),
        ("GET /conf?name=b", 404),
        ("GET /jmx?get=nonsense", 200),
    ] {
        let (head, _) = ask(&server, request).await;
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{request}: {head}");
    }
    let (head, body) = ask(&server, "GET /nothing-here").await;
    assert!(
        head.contains("must-revalidate,no-cache,no-store") && body.contains("<td>/nothing-here</td>"),
        "{head}\n{body}"
    );
}

#[tokio::test]
async fn configuration_follows_the_accept_header() {
    let (server, _) = start().await;
    assert_eq!(ask(&server, "GET /conf?format=json").await.1, "<configuration/>");
    assert_eq!(ask(&server, "GET /conf\nAccept: application/json\r\n").await.1, "{}");
    assert_eq!(ask(&server, "GET /conf?name=b\nAccept: application/json\r\n").await.1, "");
}

#[test]
fn start_up_progress_as_hadoop_lists_it() {
    let progress = StartupProgress::default();
    progress.begin(Phase::LoadingImage, Some(("/n/fsimage_0".to_owned(), 399)));
    let step = progress.step(Phase::LoadingImage, Some(StepKind::Inodes), None);
    step.set_total(4);
    step.add(1);
    let mut text = progress::json(&progress.snapshot()).compact();
    while let Some(at) = text.find("\"elapsedTime\":").map(|at| at + 14).filter(|at| text.as_bytes()[*at] != b'"') {
        let end = at + text[at..].find([',', '}']).unwrap();
        text.replace_range(at - 14..end, "\"t\":0");
    }
    assert_eq!(
        text,
        "{\"t\":0,\"percentComplete\":0.0625,\"phases\":[{\"name\":\"LoadingFsImage\",\"desc\":\"Loading fsimage\",\"status\":\"RUNNING\",\
         \"percentComplete\":0.25,\"t\":0,\"file\":\"/n/fsimage_0\",\"size\":399,\"steps\":[{\"name\":\"Inodes\",\"desc\":\"inodes\",\"count\":1,\
         \"total\":4,\"percentComplete\":0.25,\"t\":0}]},{\"name\":\"LoadingEdits\",\"desc\":\"Loading edits\",\"status\":\"PENDING\",\
         \"percentComplete\":0.0,\"t\":0,\"steps\":[]},{\"name\":\"SavingCheckpoint\",\"desc\":\"Saving checkpoint\",\"status\":\"PENDING\",\
         \"percentComplete\":0.0,\"t\":0,\"steps\":[]},{\"name\":\"SafeMode\",\"desc\":\"Safe mode\",\"status\":\"PENDING\",\
         \"percentComplete\":0.0,\"t\":0,\"steps\":[]}]}"
    );
}

/// Answers as Hadoop's server gives them.
#[tokio::test]
async fn logs_their_levels_and_threads() {
    let folder = std::env::temp_dir().join(format!("ironroot-logs-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(folder.join("nn.log"), "first\nsecond\n").unwrap();
    std::fs::write(folder.join("b&c d.out"), "x").unwrap();
    let filter = Arc::new(parking_lot::Mutex::new(String::new()));
    let told = filter.clone();
    let levels = Levels::new(levels::Level::Info, "info".to_owned(), move |f| *told.lock() = f.to_owned());
    let settings = |readers: Option<&str>| WebSettings {
        static_user: "dr.who".to_owned(),
        log_readers: readers.map(AccessList::parse),
        ..WebSettings::default()
    };
    let open = WebSettings {
        logs: Some(Logs { folder: folder.clone(), aliases: true }),
        levels: Some(Arc::new(levels)),
        ..settings(None)
    };
    let serve = async |settings: WebSettings| {
        let web = Arc::new(Web::new(Arc::default(), Box::new(OneKey), settings));
        Server::start(bind("127.0.0.1:0".parse().unwrap()).await.unwrap(), web).unwrap()
    };
    let server = serve(open).await;
    let (head, _) = ask(&server, "GET /logs").await;
    assert!(head.starts_with("http/1.1 302") && head.contains("location: http://x/logs/"), "{head}");
    let (head, body) = ask(&server, "GET /logs/").await;
    assert!(head.contains("content-type: text/html;charset=utf-8"), "{head}");
    assert!(body.contains("<td class=\"name\"><a href=\"/logs/b&c%20d.out\">b&amp;c d.out&nbsp;</a></td>"), "{body}");
    assert!(body.contains("<td class=\"size\">13 bytes&nbsp;</td>") && body.contains("/logs/sub/"), "{body}");
    let (head, body) = ask(&server, "GET /logs/sub/../nn.log").await;
    assert!(head.starts_with("http/1.1 200") && head.contains("accept-ranges: bytes"), "{head}");
    assert_eq!(body, "first\nsecond\n");
    let (head, body) = ask(&server, "GET /logs/nn.log\nRange: bytes=6-8\r\n").await;
    assert!(head.starts_with("http/1.1 206") && head.contains("content-range: bytes 6-8/13"), "{head}");
    assert_eq!(body, "sec");
    for nothing in ["/logs/none", "/logs/%2e%2e/etc/passwd", "/logs/..%2f..%2fetc/passwd", "/logs/%00", "/logs/%"] {
        assert!(ask(&server, &format!("GET {nothing}")).await.0.starts_with("http/1.1 404"), "{nothing}");
    }
    let name = "org.apache.hadoop.ipc.Server";
    let (_, body) = ask(&server, &format!("GET /logLevel?log={name}&level=debug")).await;
    let effective = "<!-- OUTPUT -->Effective Level: <b>DEBUG</b><br />";
    assert!(body.contains("<!-- OUTPUT -->Setting Level to debug ...<br />") && body.contains(effective), "{body}");
    assert_eq!(*filter.lock(), "info,rpc=debug,server::service=debug");
    let (_, body) = ask(&server, &format!("GET /logLevel?log={name}&level=%3Cb%3E")).await;
    assert!(body.contains("<!-- OUTPUT -->Bad Level : <b>&lt;b&gt;</b><br />") && body.contains(effective), "{body}");
    assert!(ask(&server, "GET /stacks").await.1.starts_with("Process Thread Dump: \n"));
    assert!(ask(&server, "POST /logLevel").await.0.starts_with("http/1.1 405"));
    for (page, allowed) in [
        ("/logLevel", "get, head, trace, options"),
        ("/imagetransfer", "get, head, put, trace, options"),
        ("/logs/", "get,head,post,options"),
    ] {
        let (head, _) = ask(&server, &format!("OPTIONS {page}")).await;
        assert!(head.starts_with("http/1.1 200") && head.contains(&format!("allow: {allowed}\r")), "{page}: {head}");
    }

    let server = serve(settings(Some("hdfs"))).await;
    for (page, status) in [("/logs/", 403), ("/logLevel", 403), ("/stacks", 200)] {
        let (head, _) = ask(&server, &format!("GET {page}")).await;
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{page}: {head}");
    }
    let server = serve(settings(Some("dr.who"))).await;
    assert!(ask(&server, "GET /logs/").await.0.starts_with("http/1.1 404"), "no logs are served");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn what_only_administrators_may_see() {
    let asked = async |administrators: &str| {
        let settings = WebSettings {
            static_user: "dr.who".to_owned(),
            administrators: Some(AccessList::parse(administrators)),
            ..WebSettings::default()
        };
        let web = Arc::new(Web::new(Arc::default(), Box::new(OneKey), settings));
        let server = Server::start(bind("127.0.0.1:0".parse().unwrap()).await.unwrap(), web).unwrap();
        let mut heads = Vec::new();
        for page in ["/jmx", "/conf", "/isActive"] {
            let (head, body) = ask(&server, &format!("GET {page}")).await;
            let told = body.contains("Unauthenticated users are not authorized to access this page.");
            assert_eq!(told, head.starts_with("http/1.1 403"), "{body}");
            heads.push(head.split(' ').nth(1).unwrap().to_owned());
        }
        heads
    };
    assert_eq!(asked("hdfs,alice staff").await, ["403", "403", "405"]);
    assert_eq!(asked("hdfs,dr.who").await, ["200", "200", "405"]);
    assert_eq!(asked("*").await, ["200", "200", "405"]);
}
