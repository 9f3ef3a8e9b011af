//! Hosts of references that fail for a moment: their tasks get further tries, within a bound, and hold neither
//! a slot nor a place of the fetch stage meanwhile.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use kinora_contract::limits::{FETCHES_MAX, FETCHES_PER_PROJECT_MAX, REFERENCE_TRIES_MAX};
use kinora_contract::{TaskId, TaskPhase, VideoInputs};
use kinora_store::faulty::StoreMethod as Store;

use crate::bench::{Bench, MODEL, Running, spec, until};
use crate::engines::{Act, Puppet};
use crate::references::picture;

const TRIES: usize = REFERENCE_TRIES_MAX as usize;
/// Begins a body of which [`CUT_BYTES`] arrive.
const CUT_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 40000\r\n\r\n";
const CUT_BYTES: usize = 12_345;

/// What a host does with a request.
#[derive(Clone, Debug)]
enum Answer {
    Picture,
    /// A status line without its version, and further headers.
    Status(String),
    /// These bytes, and then the end of the connection.
    Bytes(Vec<u8>),
    /// A reset, before any byte.
    Reset,
}

fn status(text: &str) -> Answer {
    Answer::Status(text.to_owned())
}

/// Each kind of hiccup that a request sees, and the message if it does not pass.
fn hiccups() -> Vec<(Answer, &'static str)> {
    let cut = [CUT_HEAD.as_bytes(), &[0; CUT_BYTES]].concat();
    let chunk = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let no_answer = "the server gave no valid HTTP answer in each of 4 tries.";
    vec![
        (
            status("408 A"),
            "the server answered 408 in each of 4 tries.",
        ),
        (
            status("425 A"),
            "the server answered 425 in each of 4 tries.",
        ),
        (
            status("429 A\r\nretry-after: 1"),
            "the server answered 429 in each of 4 tries.",
        ),
        (
            status("500 A"),
            "the server answered 500 in each of 4 tries.",
        ),
        (
            status("502 A"),
            "the server answered 502 in each of 4 tries.",
        ),
        (
            status("503 A"),
            "the server answered 503 in each of 4 tries.",
        ),
        (
            status("503 A\r\nretry-after: 2"),
            "the server answered 503 in each of 4 tries.",
        ),
        (
            status("504 A"),
            "the server answered 504 in each of 4 tries.",
        ),
        (Answer::Reset, no_answer),
        (Answer::Bytes(Vec::new()), no_answer),
        (Answer::Bytes(b"HTTP/1.1 20".to_vec()), no_answer),
        (
            Answer::Bytes(cut),
            "the server closed the connection after 12 of 40 kB in each of 4 tries.",
        ),
        (
            Answer::Bytes([chunk, &b"10\r\nfour"[..]].concat()),
            "the server closed the connection after 4 bytes in each of 4 tries.",
        ),
        (
            Answer::Bytes([chunk, &b"x\r\n"[..]].concat()),
            "the server sent a body that is not valid HTTP in each of 4 tries.",
        ),
    ]
}

/// A host whose answer follows from how many requests came before.
struct FlakyHost {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl FlakyHost {
    fn start(script: impl Fn(usize) -> Answer + Send + 'static) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    fn listen(listener: TcpListener, script: impl Fn(usize) -> Answer + Send + 'static) -> Self {
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let before = count.fetch_add(1, Ordering::SeqCst);
                // A client that hangs up is no concern of the next one.
                let _ = respond(stream.unwrap(), script(before));
            }
        });
        Self { address, requests }
    }

    /// Fails at first `failures` times, and serves the picture from then on.
    fn failing(failures: usize, answer: Answer) -> Self {
        Self::start(move |before| {
            if before < failures {
                answer.clone()
            } else {
                Answer::Picture
            }
        })
    }

    fn url(&self) -> String {
        format!("http://{}/picture?signature=secret", self.address)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn respond(mut stream: TcpStream, answer: Answer) -> std::io::Result<()> {
    if matches!(answer, Answer::Reset) {
        // A socket that is closed with unread bytes resets its connection.
        stream.peek(&mut [0])?;
        return Ok(());
    }
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let bytes = match answer {
        Answer::Picture => {
            let picture = picture();
            let length = picture.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            [head.as_bytes(), &picture].concat()
        }
        Answer::Status(status) => {
            format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").into_bytes()
        }
        Answer::Bytes(bytes) => bytes,
        Answer::Reset => Vec::new(),
    };
    stream.write_all(&bytes)?;
    stream.shutdown(Shutdown::Write)
}

async fn submit(bench: &Bench, project: &str, first: &str, last: Option<&str>) -> TaskId {
    let mut spec = spec(MODEL);
    spec.inputs = VideoInputs::Frames {
        first: first.to_owned(),
        last: last.map(str::to_owned),
    };
    bench.submit_spec_as(project, spec).await
}

/// A running worker whose own clock stands still, so that no try takes time.
fn start(bench: &Bench) -> (Running, Arc<Puppet>) {
    let engine = Arc::new(Puppet::new(Act::Good));
    let running = Running::start(bench.worker_without_time(&engine));
    (running, engine)
}

/// Waits until the stage has asked the store again and got nothing: the results of earlier fetches are stored.
async fn asked_in_vain(bench: &Bench) {
    let takes = || bench.store_plan.calls(Store::LeaseFetches);
    // One may be under way.
    let enough = takes() + 3;
    until("further looks for fetches", async || takes() >= enough).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_hiccup_of_any_kind_costs_no_task() {
    let hiccups = hiccups().into_iter().map(async |(hiccup, _)| {
        let bench = Bench::new();
        let host = FlakyHost::failing(1, hiccup.clone());
        let id = submit(&bench, "project", &host.url(), None).await;
        let (running, _engine) = start(&bench);
        let ended = bench.ends_after_pauses(id).await;
        assert!(ended.is_ok(), "{hiccup:?}: {ended:?}");
        assert_eq!(host.requests(), 2, "{hiccup:?}");
        assert_eq!(bench.task(id).await.attempt, 1);
        running.drained().await;
    });
    join_all(hiccups).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_fails_each_time_gets_a_few_requests_and_the_message_says_what_it_did() {
    let hiccups = hiccups().into_iter().map(async |(hiccup, message)| {
        let bench = Bench::new();
        let host = FlakyHost::failing(usize::MAX, hiccup);
        let id = submit(&bench, "project", &host.url(), None).await;
        let (running, _engine) = start(&bench);
        let (code, told) = bench.ends_after_pauses(id).await.unwrap_err();
        let wanted = format!("first_frame: {message}");
        assert_eq!((&*code, &*told), ("reference_unreachable", &*wanted));
        assert_eq!(host.requests(), TRIES, "{message}");
        let task = bench.task(id).await;
        assert_eq!(
            (task.started_at_ms, task.attempt),
            (None, 0),
            "it got a slot"
        );
        running.drained().await;
    });
    join_all(hiccups).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_connection_is_tried_again() {
    for (address, comes_back) in [("127.33.0.1:18033", true), ("127.33.0.2:18033", false)] {
        let bench = Bench::new();
        let url = format!("http://{address}/picture");
        let id = submit(&bench, "project", &url, None).await;
        let (running, _engine) = start(&bench);
        let settled = || bench.store_plan.calls(Store::CompleteFetch);
        until("the first refusal", async || settled() == 1).await;
        if comes_back {
            let listener = TcpListener::bind(address).unwrap();
            let host = FlakyHost::listen(listener, |_| Answer::Picture);
            bench.ends_after_pauses(id).await.unwrap();
            assert_eq!(host.requests(), 1);
        } else {
            let ended = bench.ends_after_pauses(id).await.unwrap_err();
            let message = "first_frame: the server gave no valid HTTP answer in each of 4 tries.";
            let wanted = ("reference_unreachable".to_owned(), message.to_owned());
            assert_eq!(ended, wanted);
            assert_eq!(settled(), TRIES as u64);
        }
        running.drained().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_says_no_is_asked_once() {
    let refusals = [400, 401, 403, 404, 405, 410, 451, 501, 505];
    let refusals = refusals.into_iter().map(async |code| {
        let bench = Bench::new();
        let answer = status(&format!("{code} No\r\nretry-after: 1"));
        let host = FlakyHost::failing(usize::MAX, answer);
        let id = submit(&bench, "project", &host.url(), None).await;
        let (running, _engine) = start(&bench);
        let (_, message) = bench.fails(id).await;
        assert_eq!(message, format!("first_frame: the server answered {code}."));
        assert_eq!(host.requests(), 1);
        running.drained().await;
    });
    join_all(refusals).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_tells_the_last_of_several_hiccups() {
    let bench = Bench::new();
    let host = FlakyHost::start(|before| match before {
        0 => Answer::Reset,
        1 => status("502 Bad Gateway"),
        _ => status("503 Service Unavailable"),
    });
    let id = submit(&bench, "project", &host.url(), None).await;
    let (running, _engine) = start(&bench);
    let (_, message) = bench.ends_after_pauses(id).await.unwrap_err();
    let wanted = "first_frame: the server answered 503 in the last of 4 tries.";
    assert_eq!(message, wanted);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_gets_the_pause_that_it_asks_for_within_the_bound() {
    // The header, and the seconds of the first pause.
    let asked = [("", 1), ("30", 30), ("0", 1), ("86400", 60), ("soon", 1)];
    let asked = asked.into_iter().map(async |(header, seconds)| {
        let bench = Bench::new();
        let answer = status(&format!("429 Slow Down\r\nretry-after: {header}"));
        let host = FlakyHost::failing(1, answer);
        let id = submit(&bench, "project", &host.url(), None).await;
        let (running, _engine) = start(&bench);
        until("the first request", async || host.requests() == 1).await;
        let settled = || bench.store_plan.calls(Store::CompleteFetch);
        until("its result", async || settled() == 1).await;
        asked_in_vain(&bench).await;
        bench.clock.advance(seconds * 1_000 - 1);
        asked_in_vain(&bench).await;
        assert_eq!(host.requests(), 1, "{header:?}: earlier than asked for");
        bench.clock.advance(1);
        bench.completes(id).await;
        assert_eq!(host.requests(), 2);
        running.drained().await;
    });
    join_all(asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_reference_that_failed_is_fetched_again() {
    let bench = Bench::new();
    let (good, flaky) = (
        FlakyHost::failing(0, Answer::Picture),
        FlakyHost::failing(2, status("503 Service Unavailable")),
    );
    let id = submit(&bench, "project", &flaky.url(), Some(&good.url())).await;
    let (running, _engine) = start(&bench);
    bench.ends_after_pauses(id).await.unwrap();
    assert_eq!((flaky.requests(), good.requests()), (3, 1));
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_a_task_that_pauses_after_a_hiccup_holds_no_place_of_its_project() {
    let bench = Bench::new();
    let (down, up) = (
        FlakyHost::failing(usize::MAX, status("503 Service Unavailable")),
        FlakyHost::failing(0, Answer::Picture),
    );
    let (running, engine) = start(&bench);
    let mut paused = Vec::new();
    for _ in 0..3 * FETCHES_PER_PROJECT_MAX {
        paused.push(submit(&bench, "hostile", &down.url(), None).await);
    }
    let all = paused.len();
    until("a request for each", async || down.requests() == all).await;
    // No time passes: these tasks pause for ever, and both projects go on.
    for project in ["hostile", "polite"] {
        let id = submit(&bench, project, &up.url(), None).await;
        bench.ends_in(project, id).await.unwrap();
    }
    assert_eq!(engine.started(), 2, "a paused task got a slot");
    assert_eq!((down.requests(), up.requests()), (all, 2));
    for id in paused {
        let phase = bench.phase_in("hostile", id).await;
        assert_eq!(phase, TaskPhase::Waiting);
    }
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_a_host_that_fails_for_one_project_delays_no_reference_of_another() {
    let bench = Bench::new();
    let down = FlakyHost::failing(usize::MAX, status("503 Service Unavailable"));
    let up = FlakyHost::failing(0, Answer::Picture);
    let (running, _engine) = start(&bench);
    let mut failing = Vec::new();
    for _ in 0..3 * FETCHES_MAX {
        failing.push(submit(&bench, "hostile", &down.url(), None).await);
    }
    // Between any two rounds of its retries the other project is served as if it were alone.
    for _ in 0..TRIES {
        let id = submit(&bench, "polite", &up.url(), None).await;
        bench.ends_in("polite", id).await.unwrap();
        bench.clock.advance(16_000);
    }
    for id in &failing {
        while !bench.phase_in("hostile", *id).await.is_terminal() {
            bench.clock.advance(1_000);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert_eq!(down.requests(), failing.len() * TRIES);
    assert_eq!(up.requests(), TRIES);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_during_a_pause_ends_the_tries() {
    let bench = Bench::new();
    let host = FlakyHost::failing(usize::MAX, Answer::Reset);
    let id = submit(&bench, "project", &host.url(), None).await;
    let (running, _engine) = start(&bench);
    until("the first request", async || host.requests() == 1).await;
    bench.cancel(id).await;
    bench.clock.advance(60_000);
    asked_in_vain(&bench).await;
    assert_eq!(host.requests(), 1);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_during_a_pause_hands_the_task_to_the_next_worker_which_counts_anew() {
    let bench = Bench::new();
    let host = FlakyHost::failing(usize::MAX, status("503 Service Unavailable"));
    let id = submit(&bench, "project", &host.url(), None).await;
    let (running, _engine) = start(&bench);
    let settled = || bench.store_plan.calls(Store::CompleteFetch);
    until("the first result", async || settled() == 1).await;
    running.drained().await;
    assert_eq!(bench.phase(id).await, TaskPhase::Waiting);
    let (next, _engine) = start(&bench);
    bench.ends_after_pauses(id).await.unwrap_err();
    assert_eq!(host.requests(), 1 + TRIES);
    next.drained().await;
}
