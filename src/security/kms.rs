//! A Hadoop KMS over HTTP (Hadoop's `KMSClientProvider`, `LoadBalancingKMSClientProvider`): calls under `/v1`, the user named in the query.

use crate::keys::{EncryptedKey, KeyError, KeyProvider};
use crate::keystore;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A file with certificates of those who are trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truststore {
    /// Where it is; read again when it has changed.
    pub path: PathBuf,
    /// Its password; without one its integrity is not looked at.
    pub password: Option<String>,
}

/// How servers are asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asking {
    /// How long an answer may take (`hadoop.security.kms.client.timeout`).
    pub timeout: Duration,
    /// How often more a server is asked that does not know us (`hadoop.security.kms.client.authentication.retry-count`).
    pub authentications: u32,
    /// How often another server is asked (`hadoop.security.kms.client.failover.max.retries`); by default as often as there are servers.
    pub failovers: Option<u32>,
    /// Pause after all have failed (`...failover.sleep.base.millis`), twice as long each time ...
    pub pause: Duration,
    /// ... but no longer than this (`...failover.sleep.max.millis`).
    pub pause_max: Duration,
    /// Whom to trust over TLS (`ssl.client.truststore.location` of `ssl-client.xml`); by default the authorities that browsers trust.
    pub truststore: Option<Truststore>,
}

impl Default for Asking {
    fn default() -> Asking {
        Asking {
            timeout: Duration::from_secs(60),
            authentications: 1,
            failovers: None,
            pause: Duration::from_millis(100),
            pause_max: Duration::from_secs(2),
            truststore: None,
        }
    }
}

/// The servers of one provider address; they know the same keys.
#[derive(Debug)]
pub struct Kms {
    bases: Vec<String>,
    user: String,
    next: AtomicUsize,
    asking: Asking,
    /// With the time of the truststore that it was made from.
    agent: Mutex<(Option<SystemTime>, ureq::Agent)>,
}

impl Kms {
    /// From `kms://http@host;host:port/path` or `kms://https@...`. `user` is who asks.
    ///
    /// # Errors
    /// What is wrong with the address or the truststore.
    pub fn new(address: &str, user: &str, asking: Asking) -> Result<Kms, String> {
        let wrong = || format!("{address} is no address of a key server");
        let rest = address.strip_prefix("kms://").ok_or_else(wrong)?;
        let (scheme, rest) = rest.split_once('@').ok_or_else(wrong)?;
        if !matches!(scheme, "http" | "https") {
            return Err(wrong());
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (hosts, port) = match authority.split_once(':') {
            Some((hosts, port)) => {
                let port: u16 = port.parse().map_err(|_| format!("Could not parse port in kms uri [{address}]"))?;
                (hosts, format!(":{port}"))
            }
            None => (authority, String::new()),
        };
        let base = |host: &str| format!("{scheme}://{host}{port}/{}", path.trim_end_matches('/'));
        let bases: Vec<String> = hosts.split(';').filter(|host| !host.is_empty()).map(base).collect();
        if bases.is_empty() {
            return Err(wrong());
        }
        let asking = Asking { truststore: asking.truststore.filter(|_| scheme == "https"), ..asking };
        let agent = Mutex::new((changed(&asking), agent(&asking)?));
        Ok(Kms { bases, user: user.to_owned(), next: AtomicUsize::new(0), asking, agent })
    }

    /// The client, made anew where the truststore has changed; one that cannot be read changes nothing.
    fn agent(&self) -> ureq::Agent {
        let mut known = self.agent.lock();
        let changed = changed(&self.asking);
        if changed != known.0 {
            match agent(&self.asking) {
                Ok(agent) => *known = (changed, agent),
                Err(problem) => tracing::warn!("the truststore is not read again: {problem}"),
            }
        }
        known.1.clone()
    }

    /// Asks one server after the other until one answers, as often as is allowed; but for who may not do it at all.
    fn call(&self, resource: &str, query: &str, body: Option<&Value>) -> Result<Value, KeyError> {
        let (first, count) = (self.next.fetch_add(1, Ordering::Relaxed), self.bases.len());
        let last = self.asking.failovers.map_or(count, |failovers| failovers as usize).max(count - 1);
        for failed in 0.. {
            let base = &self.bases[(first + failed) % count];
            let url = format!("{base}/v1/{resource}");
            let failure = match self.ask_by_name(&format!("{url}?{query}user.name={}", escaped(&self.user)), body) {
                Ok((200..=299, answer)) => return Ok(answer),
                Ok((status, answer)) => {
                    let failure = refusal(status, &answer);
                    if is_forbidden(&answer) {
                        return Err(failure);
                    }
                    failure
                }
                Err(error) => KeyError(told(&error, &url)),
            };
            tracing::warn!("key server {base}: {failure}");
            if failed >= last {
                return Err(failure);
            }
            if (failed + 1).is_multiple_of(count) {
                std::thread::sleep(self.pause_after(failed));
            }
        }
        unreachable!("the last server's failure is returned")
    }

    /// None the first time, then longer and longer, by chance half of that to half more.
    fn pause_after(&self, failed: usize) -> Duration {
        let doubled = self.asking.pause.saturating_mul(1 << failed.min(20));
        let pause = if failed == 0 { Duration::ZERO } else { doubled.min(self.asking.pause_max) };
        pause.mul_f64(0.5 + rand::random::<f64>())
    }

    /// Asks again where the server does not believe who asks.
    fn ask_by_name(&self, url: &str, body: Option<&Value>) -> Result<(u16, Value), ureq::Error> {
        let mut answer = self.ask(url, body)?;
        for _ in 0..self.asking.authentications {
            if answer.0 != 401 {
                break;
            }
            answer = self.ask(url, body)?;
        }
        Ok(answer)
    }

    fn ask(&self, url: &str, body: Option<&Value>) -> Result<(u16, Value), ureq::Error> {
        let agent = self.agent();
        let mut response = match body {
            None => agent.get(url).call()?,
            Some(body) => agent.post(url).header("Content-Type", "application/json").send(body.to_string().as_str())?,
        };
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
        // an error page is no JSON: its status says enough
        Ok((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
    }
}

/// When the truststore was changed last.
fn changed(asking: &Asking) -> Option<SystemTime> {
    std::fs::metadata(&asking.truststore.as_ref()?.path).and_then(|found| found.modified()).ok()
}

fn agent(asking: &Asking) -> Result<ureq::Agent, String> {
    let mut tls = TlsConfig::builder();
    if let Some(Truststore { path, password }) = &asking.truststore {
        let trusted = keystore::trusted(path, password.as_deref())?;
        let certificates: Vec<_> = trusted.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        tls = tls.root_certs(RootCerts::new_with_certs(&certificates));
    }
    let config = ureq::Agent::config_builder().timeout_global(Some(asking.timeout)).http_status_as_error(false);
    Ok(config.tls_config(tls.build()).build().new_agent())
}

/// What a client is told of a server that did not answer.
fn told(error: &ureq::Error, url: &str) -> String {
    match error {
        ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => format!("Failed to connect to: {url}"),
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            format!("Failed to connect to: {url}")
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => format!("SSLHandshakeException: {error}"),
        other => format!("{url}: {other}"),
    }
}

/// Whether a server's exception says that no other server need be asked.
fn is_forbidden(answer: &Value) -> bool {
    let class = answer["RemoteException"]["javaClassName"].as_str().unwrap_or_default();
    matches!(class.rsplit('.').next(), Some("AuthorizationException" | "AccessControlException"))
}

impl KeyProvider for Kms {
    fn cipher(&self, key: &str) -> Result<Option<String>, KeyError> {
        let found = self.call(&format!("key/{}/_metadata", escaped(key)), "", None)?;
        Ok(found.get("cipher").and_then(Value::as_str).map(str::to_owned))
    }

    fn current_version(&self, key: &str) -> Result<String, KeyError> {
        let found = self.call(&format!("key/{}/_currentversion", escaped(key)), "", None)?;
        let version = found.get("versionName").and_then(Value::as_str);
        version.map(str::to_owned).ok_or_else(|| KeyError(format!("Key {key} has no version")))
    }

    fn generate(&self, key: &str, count: usize) -> Result<Vec<EncryptedKey>, KeyError> {
        let query = format!("eek_op=generate&num_keys={count}&");
        keys(&self.call(&format!("key/{}/_eek", escaped(key)), &query, None)?)
    }

    fn reencrypt(&self, key: &str, old: &[EncryptedKey]) -> Result<Vec<EncryptedKey>, KeyError> {
        let each = |old: &EncryptedKey| {
            json!({
                "versionName": &*old.version,
                "iv": BASE64.encode(&old.iv),
                "encryptedKeyVersion": { "name": key, "versionName": "EEK", "material": BASE64.encode(&old.material) },
            })
        };
        let body = Value::Array(old.iter().map(each).collect());
        keys(&self.call(&format!("key/{}/_reencryptbatch", escaped(key)), "", Some(&body))?)
    }
}

/// What the server's exception says.
fn refusal(status: u16, answer: &Value) -> KeyError {
    let exception = &answer["RemoteException"];
    match (exception["javaClassName"].as_str(), exception["message"].as_str()) {
        (_, Some(message)) => KeyError(message.to_owned()),
        (Some(class), None) => KeyError(class.to_owned()),
        _ => KeyError(format!("HTTP status [{status}]")),
    }
}

fn keys(answer: &Value) -> Result<Vec<EncryptedKey>, KeyError> {
    let one = |value: &Value| {
        let bytes = |text: &Value| BASE64.decode(text.as_str()?.trim_end_matches('=')).ok();
        Some(EncryptedKey {
            version: value["versionName"].as_str()?.into(),
            iv: bytes(&value["iv"])?.into(),
            material: bytes(&value["encryptedKeyVersion"]["material"])?.into(),
        })
    };
    let found: Option<Vec<EncryptedKey>> = answer.as_array().and_then(|all| all.iter().map(one).collect());
    found.ok_or_else(|| KeyError("The key server's answer is no list of keys".to_owned()))
}

/// Text in a path or a query.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    /// Answers one request with a body and gives the request's first line and body back.
    fn serve_once(status: &'static str, body: &'static str) -> (u16, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = vec![0; 65_536];
            let mut length = 0;
            loop {
                length += stream.read(&mut seen[length..]).unwrap();
                let text = String::from_utf8_lossy(&seen[..length]).into_owned();
                let Some((head, rest)) = text.split_once("\r\n\r\n") else { continue };
                let lower = head.to_ascii_lowercase();
                let wanted = lower.split("content-length: ").nth(1).and_then(|n| n.lines().next()?.parse().ok());
                if rest.len() >= wanted.unwrap_or(0) {
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    stream.write_all(answer.as_bytes()).unwrap();
                    return format!("{}|{rest}", head.lines().next().unwrap());
                }
            }
        });
        (port, served)
    }

    fn kms(port: u16) -> Kms {
        let asking = Asking { timeout: Duration::from_secs(20), failovers: Some(0), ..Asking::default() };
        Kms::new(&format!("kms://http@127.0.0.1:{port}/kms"), "hdfs", asking).unwrap()
    }

    /// The answers are those of a KMS of Hadoop 3.4.1.
    #[test]
    fn what_a_server_says() {
        let keys = r#"[ { "encryptedKeyVersion" : { "material" : "SK3CqUX8bR-f_W8NOlY3Jg", "name" : "k1", "versionName" : "EEK" }, "versionName" : "k1@0", "iv" : "WJE20Vx9xKTKrl08AB9jkQ" } ]"#;
        let (port, served) = serve_once("200 OK", keys);
        let made = kms(port).generate("k 1", 3).unwrap();
        let line = served.join().unwrap();
        assert_eq!(line, "GET /kms/v1/key/k%201/_eek?eek_op=generate&num_keys=3&user.name=hdfs HTTP/1.1|");
        assert_eq!((&*made[0].version, made[0].iv.len(), made[0].material[0]), ("k1@0", 16, 0x48));

        let (port, served) = serve_once("200 OK", keys);
        assert_eq!(kms(port).reencrypt("k1", &made).unwrap(), made);
        let line = served.join().unwrap();
        assert!(line.starts_with("POST /kms/v1/key/k1/_reencryptbatch?user.name=hdfs"), "{line}");
        assert!(line.contains(r#""material":"SK3CqUX8bR-f_W8NOlY3Jg""#), "{line}");

        let (port, _) = serve_once("200 OK", "{ }");
        assert_eq!(kms(port).cipher("none"), Ok(None));
        let (port, _) = serve_once("200 OK", r#"{ "name" : "k1", "cipher" : "AES/CTR/NoPadding", "versions" : 1 }"#);
        assert_eq!(kms(port).cipher("k1"), Ok(Some("AES/CTR/NoPadding".into())));
        let (port, _) = serve_once("200 OK", r#"{ "material" : "x", "name" : "k1", "versionName" : "k1@4" }"#);
        assert_eq!(kms(port).current_version("k1"), Ok("k1@4".into()));
        let text = r#"{ "RemoteException" : { "message" : "No KeyVersion exists for key 'nokey' ", "exception" : "IOException", "javaClassName" : "java.io.IOException" } }"#;
        let (port, _) = serve_once("500 Internal Server Error", text);
        assert_eq!(kms(port).generate("nokey", 1), Err(KeyError("No KeyVersion exists for key 'nokey' ".into())));
        let (port, _) = serve_once("403 Forbidden", "<html>");
        assert_eq!(kms(port).generate("k", 1), Err(KeyError("HTTP status [403]".into())));
    }

    #[test]
    fn addresses() {
        let bases = |address| Kms::new(address, "u", Asking::default()).unwrap().bases;
        assert_eq!(bases("kms://http@a;b:9600/kms"), ["http://a:9600/kms", "http://b:9600/kms"]);
        assert_eq!(bases("kms://https@a/kms/"), ["https://a/kms"]);
        for wrong in ["", "kms://", "kms://ftp@a/kms", "kms://http@:1/kms", "kms://http@a:x/kms", "jceks://file/x"] {
            assert!(Kms::new(wrong, "u", Asking::default()).is_err(), "{wrong}");
        }
        let truststore = Some(Truststore { path: "/nowhere/trust.jks".into(), password: None });
        let refused = Kms::new("kms://https@a/kms", "u", Asking { truststore, ..Asking::default() }).unwrap_err();
        assert!(refused.starts_with("/nowhere/trust.jks: "), "{refused}");
    }

    /// Counts what reaches a server that always answers the same.
    fn serve(address: &str, port: u16, status: &'static str, body: &'static str) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind((address, port)).unwrap();
        let (port, served) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let count = served.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut seen = [0; 65_536];
                let mut length = 0;
                while !seen[..length].windows(4).any(|end| end == b"\r\n\r\n") {
                    length += stream.read(&mut seen[length..]).unwrap();
                }
                count.fetch_add(1, Ordering::Relaxed);
                let answer =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        (port, served)
    }

    const KEY: &str = r#"{ "name" : "k1", "cipher" : "AES/CTR/NoPadding", "versions" : 1 }"#;

    /// Numbers of attempts are those of `LoadBalancingKMSClientProvider`: all servers at least once, and one more than failovers are allowed.
    #[test]
    fn another_server_is_asked_when_one_fails() {
        let fast = |failovers| Asking { pause: Duration::from_millis(1), failovers, ..Asking::default() };
        let (port, served) = serve("127.0.0.2", 0, "200 OK", KEY);
        let both = format!("kms://http@127.0.0.1;127.0.0.2:{port}/kms");
        let kms = Kms::new(&both, "hdfs", fast(None)).unwrap();
        for asked in 1..=4 {
            assert_eq!(kms.cipher("k1"), Ok(Some("AES/CTR/NoPadding".into())));
            assert_eq!(served.load(Ordering::Relaxed), asked);
        }

        let text = r#"{ "RemoteException" : { "message" : "no", "javaClassName" : "java.io.IOException" } }"#;
        let (port, failing) = serve("127.0.0.1", 0, "500 Internal Server Error", text);
        let one = format!("kms://http@127.0.0.1:{port}/kms");
        for (failovers, attempts) in [(None, 2), (Some(0), 1), (Some(3), 4)] {
            failing.store(0, Ordering::Relaxed);
            let kms = Kms::new(&one, "hdfs", fast(failovers)).unwrap();
            assert_eq!(kms.cipher("k1"), Err(KeyError("no".into())));
            assert_eq!(failing.load(Ordering::Relaxed), attempts, "{failovers:?}");
        }

        let text = r#"{ "RemoteException" : { "message" : "not you", "javaClassName" : "org.apache.hadoop.security.authorize.AuthorizationException" } }"#;
        let (port, forbidding) = serve("127.0.0.1", 0, "403 Forbidden", text);
        let kms = Kms::new(&format!("kms://http@127.0.0.1:{port}/kms"), "hdfs", fast(None)).unwrap();
        assert_eq!(kms.cipher("k1"), Err(KeyError("not you".into())));
        assert_eq!(forbidding.load(Ordering::Relaxed), 1, "nobody else is asked");

        let (port, unknown) = serve("127.0.0.1", 0, "401 Unauthorized", "");
        let kms = Kms::new(&format!("kms://http@127.0.0.1:{port}/kms"), "hdfs", fast(Some(0))).unwrap();
        assert_eq!(kms.cipher("k1"), Err(KeyError("HTTP status [401]".into())));
        assert_eq!(unknown.load(Ordering::Relaxed), 2, "once more");

        let nobody = Kms::new("kms://http@127.0.0.1:1/kms", "hdfs", fast(None)).unwrap();
        let text = "Failed to connect to: http://127.0.0.1:1/kms/v1/key/k1/_metadata";
        assert_eq!(nobody.cipher("k1"), Err(KeyError(text.into())));
    }
}
