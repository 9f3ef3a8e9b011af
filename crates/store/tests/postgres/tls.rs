//! Encrypted connections: to the right server, or none.

use std::sync::Arc;

use kinora_contract::ManualClock;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::NOW;
use kinora_store::{OpenOptions, migrate, open};
use kinora_testkit::postgres::{Server, Settings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::harness::{exact, open_now};

/// An authority's certificate, and a certificate and key of `localhost` that it has signed.
fn certified() -> (String, String, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let signed = server
        .signed_by(&key, &Issuer::new(authority, authority_key))
        .unwrap();
    (root, signed.pem(), key.serialize_pem())
}

/// Why the store is not opened; the reason shows no password.
async fn refusal(url: &str) -> String {
    let options = OpenOptions {
        postgres: exact(),
        ..OpenOptions::new(Arc::new(ManualClock::at(NOW)))
    };
    let error = open(url, &options).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("secret"), "{shown}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p14_a_connection_is_encrypted_to_the_right_server_or_refused() {
    let (root, certificate, key) = certified();
    let server = Server::start(Settings {
        files: vec![("server.crt", certificate), ("server.key", key)],
        more: [
            "ssl=on",
            "ssl_cert_file=../server.crt",
            "ssl_key_file=../server.key",
        ]
        .map(str::to_owned)
        .into(),
        ..Settings::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (file("right.pem", &root), file("wrong.pem", &certified().0));
    let (nothing, none) = (file("nothing.pem", ""), folder.path().join("none.pem"));
    let name = server.database().rsplit('/').next().unwrap().to_owned();
    let port = server.port();
    let at = |host: &str, parameters: &str| {
        format!("postgres://kinora:secret@{host}:{port}/{name}?{parameters}")
    };
    let url = at(
        "localhost",
        &format!("sslmode=verify-full&sslrootcert={right}"),
    );
    migrate(&url).await.unwrap();
    let site = open_now(&url).await;
    site.submit(1, "one").await;
    let plain = "SELECT count(*) FILTER (WHERE NOT ssl), count(*) > 1 FROM pg_stat_ssl \
                 JOIN pg_stat_activity USING (pid) WHERE application_name = 'kinora'";
    assert_eq!(server.run(&name, plain), "0|t");

    for (url, says) in [
        (
            at("localhost", &format!("sslmode=require&sslrootcert={wrong}")),
            "`sslrootcert`",
        ),
        (at("localhost", "sslmode=verify-ca"), "`sslrootcert`"),
        (
            at("127.0.0.1", &format!("sslmode=require&sslrootcert={right}")),
            "by a name that",
        ),
        (
            at(
                "localhost",
                &format!("sslmode=require&sslrootcert={nothing}"),
            ),
            "nothing.pem",
        ),
        (
            at(
                "localhost",
                &format!("sslmode=require&sslrootcert={}", none.display()),
            ),
            "none.pem",
        ),
    ] {
        let refused = refusal(&url).await;
        assert!(refused.contains(says), "{url}: {refused}");
    }
    let plain = Server::shared().port();
    let url = format!("postgres://kinora:secret@127.0.0.1:{plain}/postgres?sslmode=require");
    let refused = refusal(&url).await;
    assert!(refused.contains("switch `ssl` on"), "{refused}");
}
