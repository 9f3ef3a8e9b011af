//! The same service under TLS: round trips, the deadlines and caps below it, and certificates
//! that cannot be served.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use kinora_test_e2e::{Server, Setup, raw, until};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use tempfile::TempDir;

use super::{HEALTH, assert_closed, submit_head};

struct Certificate {
    folder: TempDir,
    der: CertificateDer<'static>,
}

impl Certificate {
    fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("cert.pem", made.cert.pem());
        write("key.pem", made.signing_key.serialize_pem());
        Self {
            der: made.cert.der().clone(),
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn setup(&self) -> Setup {
        Setup::default()
            .set(
                "KINORA_HTTP_TLS_CERTIFICATE",
                self.path("cert.pem").display(),
            )
            .set("KINORA_HTTP_TLS_KEY", self.path("key.pem").display())
    }

    fn connect(&self, server: &Server) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(session, raw::connect(server.address()))
    }
}

#[test]
fn a_service_with_a_certificate_speaks_https() {
    let certificate = Certificate::new();
    let server = certificate.setup().start();
    assert!(server.greeting().contains("https://127.0.0.1"));
    let mut stream = certificate.connect(&server);
    let body = json!({"model": "kinora-a1"}).to_string();
    let lines = format!("content-length: {}\r\n", body.len());
    for _ in 0..2 {
        let request = submit_head(&server, &lines) + &body;
        stream.write_all(request.as_bytes()).unwrap();
        raw::answer(&mut stream).refused(400, "missing_required_parameter");
    }
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    stream.write_all(b"GARBAGE\r\n\r\n").unwrap();
    raw::answer(&mut stream).refused(400, "invalid_value");
}

#[test]
fn nothing_is_served_in_the_clear_beside_it() {
    let certificate = Certificate::new();
    let server = certificate.setup().start();
    let mut stream = raw::connect(server.address());
    stream.write_all(HEALTH).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    // At most an alert of TLS.
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn p08_deadlines_and_caps_hold_under_tls_as_well() {
    let certificate = Certificate::new();
    let server = certificate
        .setup()
        .set("CONNECTION_FIRST_BYTE_SECONDS", 1)
        .set("CONNECTION_HEADER_SECONDS", 1)
        .set("CONNECTION_IDLE_SECONDS", 1)
        .set("KINORA_HTTP_CONNECTIONS_PER_ADDRESS_MAX", 1)
        .start();
    assert_closed(raw::connect(server.address()));
    until("a handshake to begin", || {
        let mut stream = raw::connect(server.address());
        // The beginning of a ClientHello, and no more.
        stream.write_all(&[0x16, 3, 1, 2, 0, 1]).ok()?;
        assert_closed(stream);
        Some(())
    });
    let mut idle = until("a place to be free", || {
        let mut stream = certificate.connect(&server);
        stream.write_all(HEALTH).ok()?;
        Some(stream)
    });
    assert_eq!(raw::answer(&mut idle).status, 200);
    assert_closed(raw::connect(server.address()));
    let _ = idle.read_to_end(&mut Vec::new());
}

#[test]
fn a_certificate_that_cannot_be_served_is_named_at_the_start() {
    let (certificate, other) = (Certificate::new(), Certificate::new());
    let nowhere = certificate.path("nowhere.pem");
    for (variable, path, named) in [
        ("KINORA_HTTP_TLS_CERTIFICATE", &nowhere, "nowhere.pem"),
        ("KINORA_HTTP_TLS_KEY", &nowhere, "nowhere.pem"),
        (
            "KINORA_HTTP_TLS_KEY",
            &certificate.path("cert.pem"),
            "private key",
        ),
        (
            "KINORA_HTTP_TLS_KEY",
            &other.path("key.pem"),
            "do not match",
        ),
        ("KINORA_HTTP_TLS_KEY", &PathBuf::new(), "http.tls_key"),
    ] {
        let setup = certificate.setup().set(variable, path.display());
        let log = setup.try_start().unwrap_err();
        assert!(log.stderr.contains(named), "{named}: {log:#?}");
    }
}
