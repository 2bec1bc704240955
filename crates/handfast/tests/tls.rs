//! A real PostgreSQL over TLS: its certificate is verified, or there is no connection.
#![cfg(feature = "postgres")]

#[path = "support/child.rs"]
mod child;

use std::{fs, path::Path, time::Duration};

use handfast::store::{PostgresOptions, PostgresStore};
use handfast_testbed::{Cluster, give};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Connects, trusting the roots that its environment names, and tells what came of it.
#[tokio::test]
async fn child_that_connects() {
    let Some(url) = child::told() else { return };
    let options = PostgresOptions { timeout: Duration::from_secs(10), ..PostgresOptions::default() };
    match PostgresStore::connect(&url, options).await {
        Ok(_) => child::tell("said: connected"),
        Err(error) => child::tell(&format!("said: {error}")),
    }
}

/// What the child says that trusts this root and no other.
fn connecting(url: &str, root: &Path) -> String {
    let program = std::process::Command::new(std::env::current_exe().expect("this program"));
    let mut command = child::by(program, "child_that_connects", url);
    let output = command.env("SSL_CERT_FILE", root).env_remove("SSL_CERT_DIR").output().expect("it runs");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = out.lines().find_map(|line| line.strip_prefix("said: "));
    said.unwrap_or_else(|| panic!("{out}")).to_owned()
}

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a root");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("root.pem"), issuer.pem()).expect("written");
        Self { issuer, folder }
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("root.pem")
    }

    /// A server that shows a certificate for this name, and its URL.
    fn server(&self, name: &str) -> (Cluster, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let files = [("key", key.serialize_pem()), ("cert", certificate.pem())].map(|(file, pem)| {
            let path = self.folder.path().join(format!("{name}.{file}"));
            fs::write(&path, pem).expect("written");
            #[cfg(unix)]
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("closed");
            give(&path);
            path.display().to_string()
        });
        #[cfg(unix)]
        fs::set_permissions(self.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711)).expect("open");
        let [key, cert] = files;
        let tls = ["ssl=on".to_owned(), format!("ssl_key_file={key}"), format!("ssl_cert_file={cert}")];
        over_tcp(&tls)
    }
}

/// A server on a free port of this machine.
fn over_tcp(settings: &[String]) -> (Cluster, String) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut all =
        vec!["-c".to_owned(), "listen_addresses=127.0.0.1".into(), "-c".into(), format!("port={}", free.port())];
    all.extend(settings.iter().flat_map(|setting| ["-c".to_owned(), setting.clone()]));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    (Cluster::start(&all), format!("postgres://handfast@localhost:{}/postgres", free.port()))
}

#[test]
fn a_certificate_is_accepted_from_a_trusted_root_for_the_right_name_alone() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (_right, url) = ours.server("localhost");
    let (_wrong, wrong_url) = ours.server("db.example");

    assert_eq!(connecting(&url, &ours.root()), "connected");
    assert_eq!(connecting(&format!("{url}?sslmode=require"), &ours.root()), "connected");
    for (url, root) in [(&url, theirs.root()), (&wrong_url, ours.root())] {
        let said = connecting(url, &root);
        assert!(said.starts_with("cannot use the database: ") && said.contains("certificate"), "{said}");
    }
}

#[test]
fn where_tls_is_required_nothing_is_sent_without_it() {
    let (_plain, url) = over_tcp(&[]);
    let root = Authority::new();

    assert_eq!(connecting(&url, &root.root()), "connected", "to this machine TLS is preferred only");
    let said = connecting(&format!("{url}?sslmode=require"), &root.root());
    assert!(said.contains("does not support TLS"), "{said}");
}
