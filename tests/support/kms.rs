//! Hadoop's key server (KMS), brought by Maven at first use like Hadoop itself.
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use super::hadoop::{Hadoop, hadoop};
use super::process::Process;
use super::site::Site;
use super::work::{free_port, wait_until};

const POM: &str = include_str!("kms-pom.xml");
const CLASS: &str = "org.apache.hadoop.crypto.key.kms.server.KMSWebServer";

/// A running key server with an empty key store.
pub struct KeyServer {
    hadoop: &'static Hadoop,
    /// `kms://http@...`, for `hadoop.security.key.provider.path`.
    pub address: String,
    folder: std::path::PathBuf,
    _process: Process,
}

impl KeyServer {
    /// Starts one with its files below `work`; None, said aloud, when this machine cannot have it.
    pub fn start(work: &Path) -> Option<KeyServer> {
        let hadoop = hadoop()?;
        let jars = match hadoop.fetch_beside("kms", POM) {
            Ok(jars) => jars,
            Err(reason) => {
                super::skip(&reason);
                return None;
            }
        };
        let (folder, port) = (work.join("kms"), free_port());
        let mut site = Site::new(folder.clone());
        site.set("hadoop.kms.key.provider.uri", format!("jceks://file@{}/keys", folder.display()));
        site.set("hadoop.kms.authentication.type", "simple");
        site.set("hadoop.kms.http.host", "127.0.0.1");
        site.set("hadoop.kms.http.port", port);
        for right in ["MANAGEMENT", "GENERATE_EEK", "DECRYPT_EEK", "READ"] {
            site.set(&format!("default.key.acl.{right}"), "*");
        }
        // the server's own names for the same file
        let written = site.write().to_owned();
        for name in ["kms-site.xml", "kms-acls.xml"] {
            std::fs::copy(written.join("core-site.xml"), written.join(name)).expect("own folder");
        }
        let mut java = hadoop.bare_java(&format!("{}:{}/*", written.display(), jars.display()), "256m", "ERROR");
        for kind in ["home", "config", "log", "temp"] {
            java.arg(format!("-Dkms.{kind}.dir={}", written.display()));
        }
        let process = Process::start(java.arg(CLASS).current_dir(&written), &work.join("kms.log"));
        wait_until(Duration::from_secs(60), "the key server listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        let address = format!("kms://http@127.0.0.1:{port}/kms");
        Some(KeyServer { hadoop, address, folder: written, _process: process })
    }

    /// `hadoop key WORDS`.
    #[track_caller]
    pub fn keys(&self, site: &Site, words: &[&str]) {
        let mut java = self.hadoop.java(site, "256m", "ERROR");
        java.arg("org.apache.hadoop.crypto.key.KeyShell").args(words).args(["-provider", &self.address]);
        let output = java.current_dir(&self.folder).output().expect("java");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
