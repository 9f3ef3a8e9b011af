//! References: fetched ahead of their turn and once, kept for a rerun, gone with their task.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kinora_blobs::faulty::{BlobMethod, Fault};
use kinora_blobs::{BlobStore, DiskReserve};
use kinora_contract::{FrameSize, Resolution, Size, TaskId, TaskPhase, VideoInputs, VideoLength};
use kinora_store::faulty::StoreMethod as Store;
use kinora_worker::ReferenceGatherer;

use crate::bench::{Bench, LEASE_MS, MODEL, NOW, Running, fetcher, spec, until};
use crate::engines::{Act, Puppet};

/// A grey 300 x 300 picture: a binary-free PNG would be larger than this GIF.
pub(crate) fn picture() -> Vec<u8> {
    let mut gif = b"GIF89a\x2c\x01\x2c\x01\x80\x00\x00\x80\x80\x80\x00\x00\x00".to_vec();
    gif.extend(b"\x2c\x00\x00\x00\x00\x2c\x01\x2c\x01\x00\x02");
    // LZW of 90,000 zeros: clear codes keep every code three bits wide (GIF89a, appendix F).
    let mut bits = Vec::new();
    for _ in 0..90_000 / 2 {
        bits.extend([4_u8, 0, 0]);
    }
    bits.push(5);
    let mut bytes: Vec<u8> = bits
        .chunks(8)
        .flat_map(|codes| {
            let word = codes.iter().enumerate().fold(0_u32, |word, (at, code)| {
                word | u32::from(*code) << (3 * at)
            });
            word.to_le_bytes()[..3].to_vec()
        })
        .collect();
    bytes.push(0);
    for block in bytes.chunks(255) {
        gif.push(block.len() as u8);
        gif.extend(block);
    }
    gif.extend(b"\x00;");
    gif
}

/// Serves `answer` to everybody, and counts.
fn serve(answer: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/picture", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            count.fetch_add(1, Ordering::SeqCst);
            let length = answer.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"
            )
            .unwrap();
            let _ = stream.write_all(&answer);
        }
    });
    (url, asked)
}

async fn submit(bench: &Bench, url: &str) -> TaskId {
    let mut spec = spec(MODEL);
    spec.inputs = VideoInputs::Frames {
        first: url.to_owned(),
        last: None,
    };
    spec.frame = FrameSize::Adaptive(Resolution::P480);
    spec.seconds = VideoLength::Auto;
    bench.submit_spec(spec).await
}

/// Keys of references that are kept.
async fn kept(bench: &Bench) -> usize {
    let keys = bench.keys().await;
    keys.iter()
        .filter(|key| key.starts_with("references/"))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_fetched_once_and_goes_with_the_end_of_its_task() {
    let bench = Bench::new();
    let (url, asked) = serve(picture());
    let id = submit(&bench, &url).await;
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    until("the engine at work", async || engine.at_work() == 1).await;
    assert_eq!(kept(&bench).await, 1);
    // What the picture and the engine decided is seen while it runs.
    let task = bench.task(id).await;
    let wanted = FrameSize::Fixed(Size::new(480, 480));
    assert_eq!(
        (task.spec.frame, task.spec.seconds),
        (wanted, VideoLength::Fixed(1))
    );
    engine.release();
    bench.completes(id).await;
    until("the reference gone", async || kept(&bench).await == 0).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_file_is_copied_and_judged_and_one_that_is_gone_fails_its_task() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let running = Running::start(bench.worker(&engine));
    let upload = async |name: &str, bytes: Vec<u8>| {
        let key = format!("uploads/{name}");
        bench.blobs.put_bytes(&key, bytes.into()).await.unwrap();
        format!("upload:{key}")
    };
    let good = submit(&bench, &upload("good", picture()).await).await;
    until("the engine at work", async || engine.at_work() == 1).await;
    // The task has a copy of its own.
    assert_eq!(kept(&bench).await, 1);
    bench.blobs.delete("uploads/good").await.unwrap();
    engine.release();
    bench.completes(good).await;

    let bad = submit(&bench, &upload("bad", b"hello".to_vec()).await).await;
    let gone = submit(&bench, "upload:uploads/good").await;
    for (id, code, says) in [
        (bad, "unsupported_image", "first_frame: the file is text"),
        (
            gone,
            "reference_unreachable",
            "first_frame: the file was deleted",
        ),
    ] {
        let (found, message) = bench.fails(id).await;
        assert_eq!(found, code);
        assert!(message.starts_with(says), "{message}");
    }
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_cannot_be_read_for_a_moment_costs_no_task() {
    for fault in [Fault::Before, Fault::After] {
        let bench = Bench::new();
        bench.blob_plan.fail_next(BlobMethod::Read, 2, fault);
        let (url, asked) = serve(picture());
        let id = submit(&bench, &url).await;
        let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
        bench.completes(id).await;
        assert_eq!(bench.blob_plan.calls(BlobMethod::Read), 3);
        assert_eq!(bench.task(id).await.attempt, 1);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        running.drained().await;
        assert_eq!(bench.staged(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p15_below_the_reserve_of_free_space_nothing_is_fetched_and_the_task_waits() {
    let bench = Bench::new();
    let (url, asked) = serve(picture());
    let id = submit(&bench, &url).await;
    let engine = Arc::new(Puppet::new(Act::Good));
    let mut full = bench.worker(&engine);
    let references = ReferenceGatherer::new(fetcher(), bench.scratch.clone())
        .with_reserve(DiskReserve::without_room());
    full.references = Arc::new(references);
    let running = Running::start(full);
    let settled = || bench.store_plan.calls(Store::CompleteFetch);
    until("the fetch given back", async || settled() > 0).await;
    running.drained().await;
    let task = bench.task(id).await;
    assert_eq!((task.state.phase(), task.attempt), (TaskPhase::Waiting, 0));
    assert_eq!((asked.load(Ordering::SeqCst), kept(&bench).await), (0, 0));
    // With room it is made, once the pause is over.
    bench.clock.advance(LEASE_MS);
    let running = Running::start(bench.worker(&engine));
    bench.completes(id).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_does_not_fetch_again() {
    let bench = Bench::new();
    let (url, asked) = serve(picture());
    let id = submit(&bench, &url).await;
    let engine = Arc::new(Puppet::at_first(Act::Silent));
    let running = Running::start(bench.worker_without_time(&engine));
    until("the engine at work", async || engine.started() == 1).await;
    bench.heartbeats_go_round().await;
    // Its lease runs out: the sweep gives the task to the queue, and so back to this worker.
    bench.clock.advance(2 * LEASE_MS);
    bench.completes(id).await;
    assert_eq!(
        (bench.task(id).await.attempt, asked.load(Ordering::SeqCst)),
        (2, 1)
    );
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_cannot_be_had_fails_its_task_while_it_waits() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let blocker = bench.submit().await;
    let running = Running::start(bench.worker(&engine));
    until("the engine at work", async || engine.at_work() == 1).await;
    let (text, _) = serve(b"<html>Not found</html>".to_vec());
    let page = "first_frame: the server sent an HTML page: is hot-linking not allowed, or does the file need a login?";
    let private = "first_frame: the URL leads to an address that is not allowed.";
    for (url, code, message) in [
        (text, "unsupported_image", page),
        (
            "http://10.0.0.1/x".to_owned(),
            "reference_forbidden_address",
            private,
        ),
    ] {
        let id = submit(&bench, &url).await;
        let told = (code.to_owned(), message.to_owned());
        assert_eq!(bench.fails(id).await, told);
        assert!(
            bench.task(id).await.started_at_ms.is_none(),
            "it got a slot"
        );
    }
    engine.release();
    bench.completes(blocker).await;
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_misses_its_references_gives_its_slot_back_until_they_are_fetched_again() {
    let bench = Bench::new();
    let engine = Arc::new(Puppet::new(Act::Held));
    let blocker = bench.submit().await;
    let (url, asked) = serve(picture());
    let id = submit(&bench, &url).await;
    let running = Running::start(bench.worker(&engine));
    until("the engine at work", async || engine.at_work() == 1).await;
    until("the fetch", async || kept(&bench).await == 1).await;
    let settled = || bench.store_plan.calls(Store::CompleteFetch);
    until("it is at hand", async || settled() == 1).await;
    for key in bench.keys().await {
        bench.blobs.delete(&key).await.unwrap();
    }
    engine.release();
    bench.completes(blocker).await;
    bench.completes(id).await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(bench.store_plan.calls(Store::Release), 1);
    assert_eq!(
        bench.task(id).await.attempt,
        1,
        "it was no fault of the task"
    );
    running.drained().await;
}

/// As when the draft of a final, whose references it uses, is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_goes_after_it_was_found_is_fetched_again() {
    let bench = Bench::new();
    bench.held.remove_before_read();
    let (url, asked) = serve(picture());
    let id = submit(&bench, &url).await;
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    bench.completes(id).await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(bench.task(id).await.attempt, 1);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_store_that_is_away_holds_up_a_fetch_and_fails_no_task() {
    let bench = Bench::new();
    // Nothing else puts a file meanwhile; looks are also taken for the store's mark.
    bench
        .blob_plan
        .fail_next(BlobMethod::PutFile, 1, Fault::Before);
    let (url, _) = serve(picture());
    let id = submit(&bench, &url).await;
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let settled = || bench.store_plan.calls(Store::CompleteFetch);
    until("the fetch given back", async || settled() == 1).await;
    assert_eq!(bench.phase(id).await, TaskPhase::Waiting);
    // The call that gives it back may still be under way, and its pause begins with the call's end.
    let ends = async || {
        let phase = bench.phase(id).await;
        if phase == TaskPhase::Waiting {
            bench.clock.advance(1_000);
        }
        phase.is_terminal()
    };
    until("the task ends", ends).await;
    bench.completes(id).await;
    assert_eq!(bench.task(id).await.attempt, 1);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_gives_fetches_to_the_next_worker() {
    let bench = Bench::new();
    bench.held.hold(true);
    let (url, _) = serve(picture());
    let id = submit(&bench, &url).await;
    let engine = Arc::new(Puppet::new(Act::Good));
    let running = Running::start(bench.worker(&engine));
    until("a put under way", async || bench.files_begun() == 1).await;
    running.drained().await;
    assert_eq!(bench.phase(id).await, TaskPhase::Waiting);
    bench.held.hold(false);
    until("the end of its put", async || bench.held.ended() == 1).await;
    let next = Running::start(bench.worker(&engine));
    bench.completes(id).await;
    next.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_a_clock_that_jumps_fetches_nothing_twice() {
    let bench = Bench::new();
    bench.held.hold(true);
    let (url, asked) = serve(picture());
    let id = submit(&bench, &url).await;
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    until("a put under way", async || bench.files_begun() == 1).await;
    bench.clock.set(NOW + 100 * LEASE_MS);
    let takes = || bench.store_plan.calls(Store::LeaseFetches);
    // One may be under way.
    let enough = takes() + 3;
    until("further looks for work", async || takes() >= enough).await;
    bench.held.hold(false);
    bench.completes(id).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_picture_fails_its_task_and_stays_nowhere() {
    let bench = Bench::new();
    let (url, _) = serve(b"<html>Not found</html>".to_vec());
    let id = submit(&bench, &url).await;
    let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
    let (code, message) = bench.fails(id).await;
    assert_eq!(code, "unsupported_image");
    assert!(
        message.starts_with("first_frame: the server sent an HTML page"),
        "{message}"
    );
    until("the reference gone", async || kept(&bench).await == 0).await;
    running.drained().await;
}
