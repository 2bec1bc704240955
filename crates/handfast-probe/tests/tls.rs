//! HTTPS: certificates are verified, a private authority is trusted where the operator names it, and nothing is sent to whom
//! is not trusted.

mod support;

use std::{net::Ipv4Addr, sync::Arc};

use handfast_probe::report::Report;
use handfast_twins::{Answers, Served};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use support::{
    front::{Act, Front},
    probed, reasons, run_on, served, verdicts,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// An authority that nobody knows.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority of a test");
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A server that shows a certificate of this authority.
    fn server(&self, name: &str, spoil: impl FnOnce(&mut CertificateParams)) -> ServerConfig {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        spoil(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth();
        config.with_single_cert(vec![certificate.der().clone()], key).expect("they belong together")
    }
}

/// A flawed twin behind TLS, with a record of what got through.
struct Secured {
    url: String,
    front: Front,
    _twin: Served,
    task: JoinHandle<()>,
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn secured(config: ServerConfig) -> Secured {
    let twin = served("flawed", Answers::Json).await;
    let front = Front::of(&twin.url(), |_, _| Act::Forward).await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let url = format!("https://127.0.0.1:{}/mcp", listener.local_addr().expect("bound").port());
    let (acceptor, behind) = (TlsAcceptor::from(Arc::new(config)), front.origin().replace("http://", ""));
    let task = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                // A client that does not trust us leaves.
                let Ok(mut socket) = acceptor.accept(socket).await else { return };
                let Ok(mut front) = TcpStream::connect(behind).await else { return };
                let _ = copy_bidirectional(&mut socket, &mut front).await;
            });
        }
    });
    Secured { url, front, _twin: twin, task }
}

fn is_found(report: &Report) -> bool {
    report.checks.iter().all(|check| check.verdict.word() == "confirmed")
}

/// Not trusted: skipped, with the certificate named as the cause, and nothing sent.
fn assert_refused(server: &Secured, report: &Report, cause: &str) {
    assert_eq!(reasons(report), ["no-server-answered"; 2], "{cause}");
    assert!(report.checks[0].detail.contains(cause), "`{cause}` is not in `{}`", report.checks[0].detail);
    assert!(server.front.seen().is_empty(), "something was sent");
    assert_eq!(report.exit_code(false, &[]), 3);
}

#[tokio::test]
async fn an_unknown_authority_is_not_trusted() {
    let server = secured(Authority::new().server("127.0.0.1", |_| ())).await;

    let report = probed(&run_on(&server.url)).await;

    assert_refused(&server, &report, "certificate");
}

#[tokio::test]
async fn an_authority_that_the_operator_names_is_trusted() {
    let authority = Authority::new();
    let server = secured(authority.server("127.0.0.1", |_| ())).await;
    let mut run = run_on(&server.url);
    run.options.http.ca_certificates = Some(authority.pem.clone().into_bytes());

    let report = probed(&run).await;

    assert!(is_found(&report), "{}", verdicts(&report));
}

#[tokio::test]
async fn naming_one_authority_trusts_no_other() {
    let server = secured(Authority::new().server("127.0.0.1", |_| ())).await;
    let mut run = run_on(&server.url);
    run.options.http.ca_certificates = Some(Authority::new().pem.into_bytes());

    assert_refused(&server, &probed(&run).await, "certificate");
}

#[tokio::test]
async fn one_of_several_authorities_is_enough() {
    let (one, other) = (Authority::new(), Authority::new());
    let server = secured(other.server("127.0.0.1", |_| ())).await;
    let mut run = run_on(&server.url);
    run.options.http.ca_certificates = Some(format!("# ours\n{}\n# theirs\n{}", one.pem, other.pem).into_bytes());

    assert!(is_found(&probed(&run).await));
}

#[tokio::test]
async fn a_certificate_of_another_name_is_not_trusted_whoever_signed_it() {
    let authority = Authority::new();
    let server = secured(authority.server("mcp.example.com", |_| ())).await;
    let mut run = run_on(&server.url);
    run.options.http.ca_certificates = Some(authority.pem.clone().into_bytes());

    assert_refused(&server, &probed(&run).await, "not valid for");
}

#[tokio::test]
async fn nor_is_one_whose_time_is_over() {
    let authority = Authority::new();
    let expired = |params: &mut CertificateParams| params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let server = secured(authority.server("127.0.0.1", expired)).await;
    let mut run = run_on(&server.url);
    run.options.http.ca_certificates = Some(authority.pem.clone().into_bytes());

    assert_refused(&server, &probed(&run).await, "expired");
}

#[tokio::test]
async fn only_the_dangerous_option_trusts_everybody() {
    for (name, expired) in [("127.0.0.1", false), ("mcp.example.com", false), ("127.0.0.1", true)] {
        let spoil = |params: &mut CertificateParams| {
            if expired {
                params.not_after = rcgen::date_time_ymd(2020, 1, 1);
            }
        };
        let server = secured(Authority::new().server(name, spoil)).await;
        let mut run = run_on(&server.url);
        run.options.http.dangerous_accept_any_certificate = true;

        let report = probed(&run).await;

        assert!(is_found(&report), "{name}: {}", verdicts(&report));
    }
}

#[tokio::test]
async fn plain_http_and_https_do_not_answer_each_other() {
    let secured = secured(Authority::new().server("127.0.0.1", |_| ())).await;
    let plain = served("flawed", Answers::Json).await;
    for url in [secured.url.replace("https://", "http://"), plain.url().replace("http://", "https://")] {
        let mut run = run_on(&url);
        run.options.http.dangerous_accept_any_certificate = true;

        assert_eq!(reasons(&probed(&run).await), ["no-server-answered"; 2], "{url}");
    }
    assert!(secured.front.seen().is_empty());
}

#[tokio::test]
async fn what_is_no_certificate_is_an_error_of_the_operators() {
    let key = KeyPair::generate().expect("a key").serialize_pem();
    for pem in ["", "no certificate", &key, "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"] {
        let mut run = run_on("https://127.0.0.1:1/mcp");
        run.options.http.ca_certificates = Some(pem.as_bytes().to_vec());

        let unusable = run.probe(&|_| {}).await.expect_err("it cannot be used").to_string();

        assert!(unusable.contains("certificate"), "{pem}: {unusable}");
    }
}
