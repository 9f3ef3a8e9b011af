//! No spelling, answer or redirect leads to an address that is not public. The canary listens on
//! every address of the machine; run as root in an empty network namespace that owns the
//! forbidden addresses, it would also see packets to those.

use kinora_contract::FailureCode;
use kinora_http_fetch::{FetchError, FetchOptions, ReferenceFetcher};

use crate::support::{
    Bench, Canary, PUBLIC, Script, Server, clock, ok, options, redirect, request,
};

/// Hosts of URLs that lead inside, each in one more disguise.
const HOSTS: &[&str] = &[
    // Loopback, as text and as every number that the URL standard reads as an address.
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.255",
    "127.0.0.1.",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0X7F000001",
    "0x7f.1",
    "0x7f.0.0.1",
    "0x7F.0x0.0x0.0x1",
    "0177.0.0.1",
    "0177.0.0.01",
    "0177.1",
    "00000177.0.0.1",
    "127.0x1",
    "127.0.0.0x1",
    "0x7f.0.1",
    "0177.0x0.1",
    "127.1.",
    "0x7f000001.",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "１２７.０.０.１",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "１２７。１",
    "0x7f．1",
    "0",
    "0.0.0.0",
    "0x0",
    "00",
    "0.0.0.0.",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:1::1]",
    "[2001:0:7f00:1::]",
    "[2001::80ff:fffe]",
    "[2a00:1450::5efe:127.0.0.1]",
    "[2a00:1450::200:5efe:127.0.0.1]",
    "[::ffff:0.0.0.0]",
    // Private networks.
    "10.0.0.1",
    "10.1",
    "167772161",
    "0xa000001",
    "012.0.0.1",
    "0xa.1",
    "[::ffff:10.0.0.1]",
    "[::ffff:a00:1]",
    "[::10.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[2002:a00:1::1]",
    "172.16.0.1",
    "172.31.255.254",
    "2886729729",
    "[::ffff:172.16.0.1]",
    "192.168.0.1",
    "192.168.1",
    "3232235521",
    "0xc0a80001",
    "0300.0250.0.1",
    "[::ffff:192.168.0.1]",
    "[64:ff9b::c0a8:1]",
    "[2002:c0a8:1::]",
    "100.64.0.1",
    "198.18.0.1",
    "[fc00::1]",
    "[fd12:3456::1]",
    // The metadata services of clouds.
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
    "169.254.170.2",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fe80::a9fe:a9fe]",
    "１６９.254.１６９.254",
    // The rest.
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "0xffffffff",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "[ff02::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[5f00::1]",
];

/// What a resolver may answer, to the same end.
const ANSWERS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::1",
    "2001:0:7f00:1::1",
    "2001::80ff:fffe",
    "2a00:1450::5efe:127.0.0.1",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
];

fn forbidden(error: &FetchError) -> bool {
    matches!(error, FetchError::Forbidden(_))
        && error.failure().code == FailureCode::ReferenceForbiddenAddress.as_str()
}

#[tokio::test]
async fn p09_no_spelling_of_a_host_reaches_inside() {
    let canary = Canary::everywhere().await;
    for host in HOSTS {
        for scheme in ["http", "https"] {
            let bench = Bench::nameless(FetchOptions::default());
            let error = bench
                .fails(&format!("{scheme}://{host}:{}/secret", canary.port))
                .await;
            assert!(forbidden(&error), "{scheme} {host}: {error:?}");
            assert_eq!(canary.contacts().await, 0, "{scheme} {host}");
        }
    }
}

#[tokio::test]
async fn p09_no_redirect_reaches_inside() {
    let canary = Canary::everywhere().await;
    let port = canary.port;
    let server = Server::start(move |path| {
        let index: usize = path[1..].parse().unwrap();
        let status = [301, 302, 303, 307, 308][index % 5];
        redirect(status, &format!("http://{}:{port}/secret", HOSTS[index]))
    })
    .await;
    let bench = Bench::nameless(options());
    for (index, host) in HOSTS.iter().enumerate() {
        let error = bench.fails(&server.url(&format!("/{index}"))).await;
        assert!(forbidden(&error), "{host}: {error:?}");
        assert_eq!(canary.contacts().await, 0, "{host}");
    }
    assert_eq!(server.heads().len(), HOSTS.len());
}

#[tokio::test]
async fn p09_no_answer_of_a_resolver_reaches_inside_alone_or_among_public_ones() {
    let canary = Canary::everywhere().await;
    let server = Server::start(|_| ok(b"never asked")).await;
    for answer in ANSWERS {
        for answers in [
            &[*answer][..],
            &[PUBLIC, answer],
            &[answer, PUBLIC],
            &[PUBLIC, PUBLIC, PUBLIC, PUBLIC, PUBLIC, answer],
        ] {
            for port in [canary.port, server.address.port()] {
                let script = Script::new(&[answers]);
                let bench = Bench::new(options(), script.clone());
                let error = bench.fails(&format!("http://name.test:{port}/")).await;
                assert!(forbidden(&error), "{answers:?}: {error:?}");
                assert_eq!(script.asked(), ["name.test"]);
            }
        }
        assert_eq!(canary.contacts().await, 0, "{answer}");
    }
    assert!(server.heads().is_empty(), "a mixed answer was dialled");
}

#[tokio::test]
async fn p09_a_name_that_changes_its_answer_is_dialled_where_it_was_judged() {
    let (_server, canary) = Canary::beside(|_| ok(b"public")).await;
    let port = canary.port;
    let script = Script::new(&[&[PUBLIC], &["127.0.0.1"]]);
    let bench = Bench::new(options(), script.clone());
    let url = format!("http://rebind.test:{port}/");
    assert_eq!(bench.read(&url, 100).await.unwrap(), b"public");
    assert_eq!(script.asked().len(), 1, "asked once for one hop");
    assert!(forbidden(&bench.fails(&url).await));
    assert_eq!(canary.contacts().await, 0);
}

#[tokio::test]
async fn p09_a_redirect_to_the_same_name_is_resolved_and_judged_anew() {
    let (server, canary) = Canary::beside(|_| redirect(302, "/again")).await;
    let port = canary.port;
    let script = Script::new(&[&[PUBLIC], &[PUBLIC], &["127.0.0.1"]]);
    let bench = Bench::new(options(), script.clone());
    let error = bench.fails(&format!("http://rebind.test:{port}/")).await;
    assert!(forbidden(&error), "{error:?}");
    assert_eq!(script.asked(), ["rebind.test"; 3], "once per hop");
    assert_eq!(server.heads().len(), 2);
    assert_eq!(canary.contacts().await, 0);
}

#[tokio::test]
async fn p09_the_resolver_of_the_system_is_judged_too() {
    let canary = Canary::everywhere().await;
    let fetcher = ReferenceFetcher::new(FetchOptions::default(), clock()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://localhost:{}/", canary.port);
    let fetched = fetcher
        .fetch(&request(&url, &folder.path().join("x"), 100))
        .await;
    assert!(forbidden(&fetched.unwrap_err()));
    assert_eq!(canary.contacts().await, 0);
}

#[tokio::test]
async fn other_schemes_ports_and_user_information_are_forbidden_also_in_redirects() {
    let places = [
        "ftp://example.test/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "data:,x",
        "javascript:1",
        "ws://example.test/",
        "http://user@8.8.8.8/",
        "http://u:p@8.8.8.8/",
        "http://:p@8.8.8.8/",
        "http://8.8.8.8:22/",
        "http://8.8.8.8:25/",
        "http://8.8.8.8:1023/",
        "http://8.8.8.8:0/",
        "https://8.8.8.8:993/",
        "http://name.test:22/",
    ];
    let server =
        Server::start(move |path| redirect(302, places[path[1..].parse::<usize>().unwrap()])).await;
    let bench = Bench::new(options(), Script::new(&[&["8.8.8.8"]]));
    for (index, place) in places.iter().enumerate() {
        let error = bench.fails(place).await;
        assert!(forbidden(&error), "{place}: {error:?}");
        let error = bench.fails(&server.url(&format!("/{index}"))).await;
        assert!(forbidden(&error), "redirect to {place}: {error:?}");
    }
}

#[tokio::test]
async fn an_allowed_network_is_dialled_and_nothing_beside_it() {
    let server = Server::start(|_| ok(b"ours")).await;
    let port = server.address.port();
    let bench = Bench::new(options(), Script::new(&[&[PUBLIC]]));
    for host in [
        "127.77.0.1",
        "2135752705",
        "0x7f.77.1",
        "[::ffff:127.77.0.1]",
        "media.test",
    ] {
        let read = bench.read(&format!("http://{host}:{port}/"), 100).await;
        assert_eq!(read.unwrap(), b"ours", "{host}");
    }
    for host in [
        "127.77.0.2",
        "[64:ff9b::127.77.0.1]",
        "[2002:7f4d:1::]",
        "[::127.77.0.1]",
    ] {
        let error = bench.fails(&format!("http://{host}:{port}/")).await;
        assert!(forbidden(&error), "{host}: {error:?}");
    }
    // The rule of ports holds there too.
    let error = bench.fails(&format!("http://{PUBLIC}:9/")).await;
    assert!(forbidden(&error), "{error:?}");
    let named = FetchOptions {
        allow_networks: vec![format!("{PUBLIC}:9").parse().unwrap()],
        ..FetchOptions::default()
    };
    let bench = Bench::nameless(named);
    // Nobody listens there.
    let error = bench.fails(&format!("http://{PUBLIC}:9/")).await;
    assert!(matches!(error, FetchError::Unreachable(_)), "{error:?}");
    let error = bench.fails(&format!("http://{PUBLIC}:{port}/")).await;
    assert!(forbidden(&error), "{error:?}");
}

#[tokio::test]
async fn p09_a_denied_network_is_not_dialled_although_it_is_allowed() {
    let server = Server::start(|_| ok(b"never asked")).await;
    let bench = Bench::nameless(FetchOptions {
        deny_networks: vec!["127.77.0.0/24".parse().unwrap()],
        ..options()
    });
    let error = bench.fails(&server.url("/")).await;
    assert!(forbidden(&error), "{error:?}");
    assert!(server.heads().is_empty());
}

#[test]
fn the_tables_are_as_long_as_promised() {
    let redirects = HOSTS.len();
    assert!(2 * HOSTS.len() + redirects + 4 * ANSWERS.len() >= 150);
    let distinct: std::collections::HashSet<_> = HOSTS.iter().collect();
    assert_eq!(distinct.len(), HOSTS.len());
}
