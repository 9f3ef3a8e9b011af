//! What is read: plain and encrypted, in any framing, through redirects, with exactly the
//! headers that are meant.

use std::sync::Arc;
use std::time::Duration;

use kinora_http::RootsError;
use kinora_http_fetch::{
    FetchCause, FetchError, FetchOptions, FetchOptionsError, FetchProgress, ReferenceFetcher,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::support::{
    Bench, PUBLIC, Script, Server, Step, clock, ok, options, redirect, request, send,
};

/// An authority of our own, as PEM, and a server's end for `name`.
fn certified(name: &str) -> (Vec<u8>, TlsAcceptor) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = ca.self_signed(&ca_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .unwrap();
    (pem.into_bytes(), TlsAcceptor::from(Arc::new(config)))
}

fn trusting(pem: Vec<u8>) -> FetchOptions {
    FetchOptions {
        extra_roots_pem: Some(pem),
        ..options()
    }
}

#[tokio::test]
async fn a_body_is_read_whole_in_every_framing() {
    let body: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let chunked: Vec<u8> = body
        .chunks(70_001)
        .flat_map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())
        .collect();
    let chunked = [
        &b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..],
        &chunked,
        b"0\r\n\r\n",
    ]
    .concat();
    let closed = [
        &b"HTTP/1.0 200 OK\r\ncontent-encoding: identity\r\n\r\n"[..],
        &body,
    ]
    .concat();
    let declared = ok(&body);
    let server = Server::start(move |path| match path {
        "/declared" => declared.clone(),
        "/chunked" => vec![Step::Send(chunked.clone())],
        _ => vec![Step::Send(closed.clone())],
    })
    .await;
    let bench = Bench::nameless(options());
    for path in ["/declared", "/chunked", "/closed"] {
        let read = bench
            .read(&server.url(path), body.len() as u64)
            .await
            .unwrap();
        assert!(read == body, "{path}");
        let error = bench
            .read(&server.url(path), body.len() as u64 - 1)
            .await
            .unwrap_err();
        assert!(matches!(error, FetchError::TooLarge), "{path}: {error:?}");
    }
}

#[tokio::test]
async fn exactly_four_headers_are_sent_and_the_query_but_not_the_fragment() {
    let server = Server::start(|_| ok(b"")).await;
    let bench = Bench::nameless(options());
    assert_eq!(
        bench
            .read(&server.url("//a b/ä?q=1&r=|#part"), 0)
            .await
            .unwrap(),
        b""
    );
    let expected = format!(
        "GET //a%20b/%C3%A4?q=1&r=| HTTP/1.1\r\nhost: {}\r\nuser-agent: kinora/{}\r\naccept: */*\r\naccept-encoding: identity\r\n\r\n",
        server.address,
        env!("CARGO_PKG_VERSION"),
    );
    assert_eq!(server.heads(), [expected]);
}

#[tokio::test]
async fn redirects_are_followed_five_times_and_not_six() {
    let server = Server::start(|path| match path[1..].parse::<u16>() {
        Ok(0) => ok(b"there"),
        Ok(left) => redirect(
            [301, 302, 303, 307, 308][usize::from(left) % 5],
            &format!("{}", left - 1),
        ),
        Err(_) => redirect(302, "/loop"),
    })
    .await;
    let bench = Bench::nameless(options());
    assert_eq!(bench.read(&server.url("/5"), 100).await.unwrap(), b"there");
    for path in ["/6", "/loop"] {
        let error = bench.fails(&server.url(path)).await;
        assert!(matches!(error, FetchError::Unreachable(_)), "{error:?}");
    }
    assert_eq!(
        server.heads().len(),
        3 * 6,
        "six requests each, and no more"
    );
}

#[tokio::test]
async fn https_is_read_under_a_certificate_that_names_the_host() {
    let (pem, tls) = certified("media.test");
    let server = Server::with_tls(Some(tls), |path| match path {
        "/onward" => redirect(302, "/there"),
        "/there" => ok(b"there"),
        _ => ok(&[7; 1_000_000]),
    })
    .await;
    let port = server.address.port();
    let bench = Bench::new(trusting(pem), Script::new(&[&[PUBLIC]]));
    let url = |path: &str| format!("https://media.test:{port}{path}");
    assert!(bench.read(&url("/"), 1 << 20).await.unwrap() == [7; 1_000_000]);
    assert_eq!(bench.read(&url("/onward"), 100).await.unwrap(), b"there");
    assert!(server.heads()[0].contains(&format!("host: media.test:{port}\r\n")));
    for wrong in [
        format!("https://other.test:{port}/"),
        format!("https://{PUBLIC}:{port}/"),
        format!("http://media.test:{port}/"),
    ] {
        let error = bench.fails(&wrong).await;
        assert!(
            matches!(error, FetchError::Unreachable(_)),
            "{wrong}: {error:?}"
        );
    }
    let stranger = Bench::new(options(), Script::new(&[&[PUBLIC]]));
    let error = stranger.fails(&url("/")).await;
    assert!(matches!(error, FetchError::Unreachable(_)), "{error:?}");
    assert_eq!(
        server.heads().len(),
        3,
        "no request without a valid certificate"
    );
}

#[tokio::test]
async fn https_is_never_redirected_to_http() {
    let plain = Server::start(|_| ok(b"in the clear")).await;
    let port = plain.address.port();
    let (pem, tls) = certified("secret.test");
    let server = Server::with_tls(Some(tls), move |_| {
        redirect(302, &format!("http://secret.test:{port}/"))
    })
    .await;
    let bench = Bench::new(trusting(pem), Script::new(&[&[PUBLIC]]));
    let url = format!("https://secret.test:{}/", server.address.port());
    let error = bench.fails(&url).await;
    assert!(
        matches!(error, FetchError::Unreachable(FetchCause::Downgrade)),
        "{error:?}"
    );
    assert!(plain.heads().is_empty());
    // The error names a wrong certificate, since there is a web server.
    let stranger = Bench::new(options(), Script::new(&[&[PUBLIC]]));
    let error = stranger.fails(&url).await;
    assert_eq!(
        error.reached(),
        Some(FetchProgress::BadCertificate),
        "{error:?}"
    );
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_certificate_may_name_an_address() {
    let (pem, tls) = certified(PUBLIC);
    let server = Server::with_tls(Some(tls), |_| ok(b"by address")).await;
    let bench = Bench::nameless(trusting(pem));
    let url = format!("https://{}/", server.address);
    assert_eq!(bench.read(&url, 100).await.unwrap(), b"by address");
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let server = Server::start(|_| ok(b"second")).await;
    let options = FetchOptions {
        allow_networks: vec!["127.77.0.0/16".parse().unwrap()],
        ..FetchOptions::default()
    };
    let bench = Bench::new(options, Script::new(&[&["127.77.0.9", PUBLIC]]));
    let url = format!("http://two.test:{}/", server.address.port());
    assert_eq!(bench.read(&url, 100).await.unwrap(), b"second");
}

#[tokio::test]
async fn an_existing_file_is_left_as_it_is() {
    let server = Server::start(|_| ok(b"new")).await;
    let bench = Bench::nameless(options());
    std::fs::write(bench.file(), b"old").unwrap();
    let fetched = bench
        .fetcher
        .fetch(&request(&server.url("/"), &bench.file(), 100))
        .await;
    assert!(matches!(fetched, Err(FetchError::Storage(_))));
    assert_eq!(std::fs::read(bench.file()).unwrap(), b"old");
    let nowhere = bench.folder.path().join("absent/file");
    let fetched = bench
        .fetcher
        .fetch(&request(&server.url("/"), &nowhere, 100))
        .await;
    assert_eq!(fetched.unwrap_err().failure().code, "storage_failed");
}

#[test]
fn options_that_cannot_work_are_refused() {
    let with = |pem: &str| FetchOptions {
        extra_roots_pem: Some(pem.into()),
        ..FetchOptions::default()
    };
    assert!(matches!(
        ReferenceFetcher::new(with(""), clock()),
        Err(FetchOptionsError::Roots(RootsError::Empty))
    ));
    let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
    assert!(matches!(
        ReferenceFetcher::new(with(broken), clock()),
        Err(FetchOptionsError::Roots(RootsError::Pem(_)))
    ));
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(
        ReferenceFetcher::new(with(empty), clock()),
        Err(FetchOptionsError::Roots(RootsError::Tls(_)))
    ));
    for limit in [Duration::ZERO, Duration::MAX] {
        let wrong = FetchOptions {
            total_timeout: limit,
            ..FetchOptions::default()
        };
        assert!(matches!(
            ReferenceFetcher::new(wrong, clock()),
            Err(FetchOptionsError::Duration("total_timeout"))
        ));
    }
    assert!(ReferenceFetcher::new(FetchOptions::default(), clock()).is_ok());
}

#[tokio::test]
async fn only_status_200_is_a_file() {
    let server = Server::start(|path| {
        send(format!(
            "HTTP/1.1 {} Some\r\ncontent-length: 2\r\n\r\nno",
            &path[1..]
        ))
    })
    .await;
    let bench = Bench::nameless(options());
    for status in [
        201, 204, 206, 300, 304, 305, 400, 401, 403, 404, 407, 416, 429, 500, 503,
    ] {
        let error = bench.fails(&server.url(&format!("/{status}"))).await;
        assert!(
            matches!(error, FetchError::Unreachable(_)),
            "{status}: {error:?}"
        );
    }
}
