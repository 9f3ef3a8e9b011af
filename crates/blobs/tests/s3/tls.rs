//! Encrypted connections: to a server whose authority is public or named, and to no other.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::{Bytes, S3Options, TestS3, assert_unavailable, open, options, read, url};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// An authority's certificate, and how a server is `localhost` by its word.
fn certified() -> (String, ServerConfig) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let signed = server
        .signed_by(&key, &Issuer::new(authority, authority_key))
        .unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], key)
        .unwrap();
    (root, config)
}

/// Listens before `server` with this certificate; returns the address.
async fn encrypted(server: &TestS3, config: ServerConfig) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = server.endpoint().replace("http://", "");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, plain) = (acceptor.clone(), plain.clone());
            tokio::spawn(async move {
                // A client that does not trust it breaks off.
                let Ok(mut inner) = acceptor.accept(stream).await else {
                    return;
                };
                let mut outer = TcpStream::connect(plain).await.unwrap();
                let _ = copy_bidirectional(&mut inner, &mut outer).await;
            });
        }
    });
    format!("https://localhost:{port}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_certificate_of_a_private_authority_is_trusted_where_that_is_named() {
    let server = TestS3::start();
    let (root, config) = certified();
    let endpoint = encrypted(&server, config).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let opened = |ca_file: Option<PathBuf>| {
        let options = S3Options {
            endpoint: endpoint.clone(),
            allow_http: false,
            ca_file,
            ..options(&server)
        };
        open(&url("kinora"), &options)
    };
    let bytes = Bytes::from_static(b"a film");
    for other in [None, Some(file("other.pem", &certified().0))] {
        let store = opened(other).unwrap();
        let put = store.put_bytes("results/one", bytes.clone()).await;
        assert_unavailable(put, "localhost");
    }
    assert_eq!(server.keys().len(), 0);
    // Several in one file.
    let roots = format!("{}{root}", certified().0);
    let store = opened(Some(file("right.pem", &roots))).unwrap();
    store.put_bytes("results/one", bytes.clone()).await.unwrap();
    assert_eq!(read(&*store, "results/one").await.unwrap(), bytes);
    for (name, text) in [
        ("empty.pem", ""),
        ("wrong.pem", "-----BEGIN CERTIFICATE-----\nno\n"),
    ] {
        let error = opened(Some(file(name, text))).unwrap_err().to_string();
        assert!(error.contains("ca_file") && error.contains(name), "{error}");
    }
    let missing = folder.path().join("missing.pem");
    assert!(opened(Some(missing)).is_err());
}
