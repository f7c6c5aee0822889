//! A Hadoop KMS over HTTP (Hadoop's `KMSClientProvider`, `LoadBalancingKMSClientProvider`): calls under `/v1`, the user named in the query.

use crate::keys::{EncryptedKey, KeyError, KeyProvider};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The servers of one provider address; they know the same keys.
#[derive(Debug)]
pub struct Kms {
    bases: Vec<String>,
    user: String,
    next: AtomicUsize,
    agent: ureq::Agent,
}

impl Kms {
    /// From `kms://http@host;host:port/path`. `user` is who asks.
    ///
    /// # Errors
    /// What is wrong with the address, or not supported of it.
    pub fn new(address: &str, user: &str, timeout: Duration) -> Result<Kms, String> {
        let wrong = || format!("{address} is no address of a key server");
        let rest = address.strip_prefix("kms://").ok_or_else(wrong)?;
        let (scheme, rest) = rest.split_once('@').ok_or_else(wrong)?;
        if scheme != "http" {
            return Err(format!("{address}: only http is supported for key servers"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (hosts, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let base = |host: &str| format!("http://{host}:{port}/{}", path.trim_end_matches('/'));
        let bases: Vec<String> = hosts.split(';').filter(|host| !host.is_empty()).map(base).collect();
        if bases.is_empty() {
            return Err(wrong());
        }
        let config = ureq::Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false);
        let agent = config.build().new_agent();
        Ok(Kms { bases, user: user.to_owned(), next: AtomicUsize::new(0), agent })
    }

    /// Asks one server after the other until one answers.
    fn call(&self, resource: &str, query: &str, body: Option<&Value>) -> Result<Value, KeyError> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut failure = KeyError("no key server".to_owned());
        for at in 0..self.bases.len() {
            let base = &self.bases[(first + at) % self.bases.len()];
            let url = format!("{base}/v1/{resource}?{query}user.name={}", escaped(&self.user));
            match self.ask(&url, body) {
                Ok((200..=299, answer)) => return Ok(answer),
                Ok((status, answer)) => return Err(refusal(status, &answer)),
                Err(error) => failure = KeyError(format!("{base}: {error}")),
            }
        }
        Err(failure)
    }

    fn ask(&self, url: &str, body: Option<&Value>) -> Result<(u16, Value), ureq::Error> {
        let mut response = match body {
            None => self.agent.get(url).call()?,
            Some(body) => {
                self.agent.post(url).header("Content-Type", "application/json").send(body.to_string().as_str())?
            }
        };
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
        // an error page is no JSON: its status says enough
        Ok((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
    }
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
        Kms::new(&format!("kms://http@127.0.0.1:{port}/kms"), "hdfs", Duration::from_secs(20)).unwrap()
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
        let timeout = Duration::from_secs(1);
        let two = Kms::new("kms://http@a;b:9600/kms", "u", timeout).unwrap();
        assert_eq!(two.bases, ["http://a:9600/kms", "http://b:9600/kms"]);
        for wrong in ["", "kms://", "kms://http@a/kms", "kms://http@:1/kms", "kms://https@a:1/kms", "jceks://file/x"] {
            assert!(Kms::new(wrong, "u", timeout).is_err(), "{wrong}");
        }
    }
}
