//! What projects share: look-ups, connections to a host, bytes of an hour, time. One project that
//! takes all it can get, and a polite one beside it.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use kinora_http_fetch::{
    FetchCause, FetchError, FetchOptions, FetchProgress, LookupError, NameLookup, ReferenceFetcher,
    ReferenceRequest, SystemInterfaces, SystemResolver, WebhookPost,
};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::{Bench, PUBLIC, Server, Step, clock, ok, options, send};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(5);
/// Threads for look-ups that one project gets of the eight, when it is alone.
const LOOKUPS_OF_ONE: usize = 4;

/// Answers at once, but for names that begin with `slow`, which hang until it is dropped by the
/// test, `gone`, which do not exist, and `short`, for which this machine has no descriptors.
#[derive(Debug, Default)]
struct Names {
    asked: Mutex<Vec<String>>,
    released: Mutex<bool>,
    release: Condvar,
}

impl Names {
    fn asked(&self, prefix: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|host| host.starts_with(prefix)).count()
    }

    fn release(&self) {
        *self.released.lock().unwrap() = true;
        self.release.notify_all();
    }
}

impl NameLookup for Names {
    fn look_up_blocking(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.asked.lock().unwrap().push(host.to_owned());
        if host.starts_with("gone") {
            return Err(LookupError::NoSuchName);
        }
        if host.starts_with("short") {
            let error = io::Error::from_raw_os_error(libc::EMFILE);
            return Err(LookupError::Failed(Arc::new(error)));
        }
        if host.starts_with("slow") {
            let released = self.released.lock().unwrap();
            let _released = self.release.wait_while(released, |released| !*released);
        }
        Ok(vec![PUBLIC.parse().unwrap()])
    }
}

/// A fetcher that several projects use.
#[derive(Clone)]
struct Shared {
    fetcher: Arc<ReferenceFetcher>,
    folder: Arc<TempDir>,
}

impl Shared {
    fn new(options: FetchOptions, names: &Arc<Names>) -> Self {
        let resolver = SystemResolver::with_lookup(options.lookup_timeout, names.clone(), clock());
        let interfaces = Box::new(SystemInterfaces);
        let fetcher =
            ReferenceFetcher::with(options, Arc::new(resolver), interfaces, clock()).unwrap();
        Self {
            fetcher: Arc::new(fetcher),
            folder: Arc::new(tempfile::tempdir().unwrap()),
        }
    }

    async fn fetch(&self, project: &str, url: &str) -> Result<u64, FetchError> {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let to: PathBuf = self.folder.path().join(number.to_string());
        let request = ReferenceRequest {
            project,
            url,
            to: &to,
            bytes_max: 1 << 20,
            is_plain: |_| true,
        };
        self.fetcher.fetch(&request).await
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "never: {what}");
}

#[tokio::test]
async fn p15_look_ups_that_hang_hold_up_no_other_project() {
    let server = Server::start(|_| ok(b"polite")).await;
    let port = server.address.port();
    let names = Arc::new(Names::default());
    let patient = FetchOptions {
        lookup_timeout: LONG,
        ..options()
    };
    let shared = Shared::new(patient, &names);
    let mut hostile = JoinSet::new();
    for number in 0..100 {
        let shared = shared.clone();
        hostile.spawn(async move {
            let url = format!("http://slow{number}.test:{port}/");
            shared.fetch("hostile", &url).await
        });
    }
    until("the hostile project has its share", || {
        names.asked("slow") == LOOKUPS_OF_ONE
    })
    .await;
    for number in 0..20 {
        let url = format!("http://polite{number}.test:{port}/");
        let fetched = shared.fetch("polite", &url).await;
        assert_eq!(fetched.unwrap(), 6);
    }
    assert_eq!(
        names.asked("slow"),
        LOOKUPS_OF_ONE,
        "it got more than its share"
    );
    // Who hangs up waits no longer: what nobody asks for any more is not looked up.
    hostile.shutdown().await;
    names.release();
    let last = format!("http://last.test:{port}/");
    assert_eq!(shared.fetch("hostile", &last).await.unwrap(), 6);
    assert_eq!(names.asked("slow"), LOOKUPS_OF_ONE);
}

#[tokio::test]
async fn a_look_up_without_a_thread_is_no_fault_of_the_reference_and_one_without_an_answer_is() {
    let names = Arc::new(Names::default());
    let hasty = FetchOptions {
        lookup_timeout: SHORT,
        ..options()
    };
    let shared = Shared::new(hasty, &names);
    let mut failures = JoinSet::new();
    for number in 0..=LOOKUPS_OF_ONE {
        let shared = shared.clone();
        failures.spawn(async move {
            let url = format!("http://slow{number}.test/");
            shared.fetch("hostile", &url).await.unwrap_err()
        });
    }
    let failures = failures.join_all().await;
    let (waited, unanswered): (Vec<_>, Vec<_>) =
        failures.iter().partition(|error| !error.is_of_reference());
    assert_eq!(
        (waited.len(), unanswered.len()),
        (1, LOOKUPS_OF_ONE),
        "{failures:?}"
    );
    assert!(waited[0].retry_after().is_some());
    for error in unanswered {
        assert_eq!(
            error.reached(),
            Some(FetchProgress::LookupFailed),
            "{error:?}"
        );
    }
    names.release();
}

#[tokio::test]
async fn an_answer_is_not_remembered_and_a_failure_is_for_a_moment() {
    let server = Server::start(|_| ok(b"here")).await;
    let port = server.address.port();
    let names = Arc::new(Names::default());
    let shared = Shared::new(options(), &names);
    for _ in 0..3 {
        let here = format!("http://here.test:{port}/");
        assert_eq!(shared.fetch("project", &here).await.unwrap(), 4);
        let error = shared
            .fetch("project", "http://gone.test/")
            .await
            .unwrap_err();
        assert_eq!(
            error.reached(),
            Some(FetchProgress::NoSuchHost),
            "{error:?}"
        );
    }
    // A name may change its address: every fetch is judged by its own answer.
    assert_eq!(names.asked("here"), 3);
    assert_eq!(names.asked("gone"), 1);
}

#[tokio::test]
async fn p11_a_lack_of_descriptors_in_a_look_up_fails_no_reference() {
    let shared = Shared::new(options(), &Arc::new(Names::default()));
    let error = shared.fetch("project", "http://short.test/").await;
    let error = error.unwrap_err();
    assert!(matches!(error, FetchError::Later(_)), "{error:?}");
    assert_eq!((error.is_of_reference(), error.reached()), (false, None));
}

#[tokio::test]
async fn no_more_than_four_connections_to_one_host_and_projects_take_turns() {
    let server = Server::start(|path| match path {
        "/polite" => ok(b"polite"),
        _ => vec![Step::Hold],
    })
    .await;
    let names = Arc::new(Names::default());
    let shared = Shared::new(options(), &names);
    let mut holding = Vec::new();
    let port = server.address.port();
    for number in 0..12 {
        // One host by its address, whatever it is called.
        let url = match number % 2 {
            0 => server.url("/hold"),
            _ => format!("http://name{number}.test:{port}/hold"),
        };
        let shared = shared.clone();
        holding.push(tokio::spawn(
            async move { shared.fetch("busy", &url).await },
        ));
    }
    until("three connections", || server.heads().len() == 3).await;
    // The fourth is for others, one after the other.
    for _ in 0..3 {
        let polite = shared.fetch("polite", &server.url("/polite")).await;
        assert_eq!(polite.unwrap(), 6);
    }
    let other = {
        let (shared, url) = (shared.clone(), server.url("/hold"));
        tokio::spawn(async move { shared.fetch("other", &url).await })
    };
    until("a fourth connection", || server.heads().len() == 7).await;
    let polite = {
        let (shared, url) = (shared.clone(), server.url("/polite"));
        tokio::spawn(async move { shared.fetch("polite", &url).await })
    };
    // A connection becomes free: of the ten that wait for it, the polite project's is next. The
    // first to come has one of the three.
    holding[0].abort();
    assert_eq!(polite.await.unwrap().unwrap(), 6);
    let heads = server.heads();
    assert!(heads[..3].iter().all(|head| head.starts_with("GET /hold")));
    assert!(heads[7].starts_with("GET /polite"), "{heads:?}");
    other.abort();
    holding.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_host_without_a_free_connection_is_asked_later() {
    let server = Server::start(|_| vec![Step::Hold]).await;
    let names = Arc::new(Names::default());
    let hasty = FetchOptions {
        host_connections_max: 1,
        turn_timeout: SHORT,
        ..options()
    };
    let shared = Shared::new(hasty, &names);
    let holding = {
        let (shared, url) = (shared.clone(), server.url("/hold"));
        tokio::spawn(async move { shared.fetch("busy", &url).await })
    };
    until("one connection", || server.heads().len() == 1).await;
    let error = shared.fetch("polite", &server.url("/")).await.unwrap_err();
    assert!(
        matches!(error, FetchError::Later(FetchCause::HostBusy(_))),
        "{error:?}"
    );
    assert!(!error.is_of_reference());
    holding.abort();
}

#[tokio::test]
async fn the_bytes_of_a_body_that_broke_off_count_towards_the_hour() {
    let server = Server::start(|path| match path {
        "/cut" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n";
            send([head.as_bytes(), &[0; 700]].concat())
        }
        _ => ok(&[0; 600]),
    })
    .await;
    let bounded = FetchOptions {
        project_bytes_per_hour: Some(1_200),
        ..options()
    };
    let shared = Shared::new(bounded, &Arc::new(Names::default()));
    let error = shared.fetch("project", &server.url("/cut")).await;
    let broke_off = FetchProgress::BrokeOff {
        bytes: 700,
        declared: Some(900),
    };
    assert_eq!(error.unwrap_err().reached(), Some(broke_off));
    let error = shared.fetch("project", &server.url("/")).await.unwrap_err();
    assert!(
        matches!(error, FetchError::Later(FetchCause::Budget { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_project_that_has_had_its_bytes_of_the_hour_waits() {
    let server = Server::start(|_| ok(&[0; 600])).await;
    let names = Arc::new(Names::default());
    let bounded = FetchOptions {
        project_bytes_per_hour: Some(1_200),
        ..options()
    };
    let shared = Shared::new(bounded, &names);
    let url = server.url("/");
    for project in ["hungry", "polite"] {
        for _ in 0..2 {
            assert_eq!(shared.fetch(project, &url).await.unwrap(), 600);
        }
        let error = shared.fetch(project, &url).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Later(FetchCause::Budget { .. })),
            "{error:?}"
        );
        assert!(!error.is_of_reference() && error.retry_after() > Some(Duration::ZERO));
    }
    assert_eq!(
        server.heads().len(),
        4,
        "nobody is asked for what cannot be taken"
    );
}

#[tokio::test]
async fn p15_a_body_has_the_time_that_its_size_needs_and_an_endless_one_a_short_one() {
    let drip = |head: &str, bytes: &'static [u8]| {
        let mut steps = send(head);
        steps.push(Step::Repeat(bytes, TICK));
        steps
    };
    let server = Server::start(move |path| match path {
        "/small" => drip("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n", b"x"),
        "/unsized" => drip(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            b"1\r\nx\r\n",
        ),
        _ => vec![Step::Hold],
    })
    .await;
    // All of it could take a minute, and no rate is too low: what ends it is its size.
    let patient = FetchOptions {
        total_timeout: LONG,
        base_timeout: SHORT,
        unsized_timeout: 4 * SHORT,
        rate_window: LONG,
        rate_min_bytes: 60_000_000,
        ..options()
    };
    for path in ["/small", "/unsized", "/silent"] {
        let began = std::time::Instant::now();
        let error = Bench::nameless(patient.clone())
            .fails(&server.url(path))
            .await;
        assert!(
            matches!(error, FetchError::Timeout(FetchCause::TotalTimeout)),
            "{path}: {error:?}"
        );
        assert!(!error.is_transient(), "it is fetched once");
        assert!(began.elapsed() < LONG / 2, "{path}");
    }
}

/// Otherwise events to webhooks would be traffic without a bound against whoever a project names.
#[tokio::test]
async fn p15_what_a_project_posts_counts_towards_its_hour() {
    let server = Server::start(|_| ok(&[])).await;
    let bounded = FetchOptions {
        project_bytes_per_hour: Some(1_200),
        ..options()
    };
    let shared = Shared::new(bounded, &Arc::new(Names::default()));
    let url = server.url("/hook");
    for project in ["hungry", "polite"] {
        let post = || {
            shared.fetcher.post(WebhookPost {
                project,
                url: &url,
                headers: &[],
                body: vec![b'x'; 600].into(),
                limit: LONG,
            })
        };
        for _ in 0..2 {
            assert_eq!(post().await.unwrap(), 200);
        }
        let error = post().await.unwrap_err();
        assert!(error.retry_after() > Some(Duration::ZERO), "{error:?}");
        assert!(!error.is_of_reference(), "{error:?}");
    }
    assert_eq!(server.heads().len(), 4);
}
