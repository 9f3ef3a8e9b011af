//! Each deadline, met and missed, on a paused clock.

use super::*;
use crate::memory::{MemoryBudget, MemoryOwner};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const SECOND: Duration = Duration::from_secs(1);

fn paced(buffer: usize) -> (PacedIo<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(buffer);
    let deadlines = ConnectionDeadlines {
        first_byte: SECOND,
        head: 2 * SECOND,
        idle: 10 * SECOND,
        write: 3 * SECOND,
    };
    let room = ConnectionMemory::new(MemoryBudget::new(u64::MAX), MemoryOwner::Proxies);
    (PacedIo::new(ours, deadlines, Arc::new(room)), theirs)
}

/// How long it takes until reading fails.
async fn fails_after(io: &mut PacedIo<DuplexStream>) -> Duration {
    let begun = Instant::now();
    loop {
        if let Err(error) = io.read_u8().await {
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            return begun.elapsed();
        }
    }
}

fn drip(mut to: DuplexStream) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while to.write_u8(b'x').await.is_ok() {
            tokio::time::sleep(SECOND / 2).await;
        }
    })
}

fn about(taken: Duration, expected: Duration) {
    assert!(
        taken >= expected && taken < expected + SECOND / 4,
        "{taken:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn silence_ends_at_the_first_byte_s_deadline() {
    let (mut io, _theirs) = paced(64);
    about(fails_after(&mut io).await, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_dripped_head_ends_at_the_head_s_deadline_however_it_drips() {
    let (mut io, theirs) = paced(64);
    drip(theirs);
    about(fails_after(&mut io).await, 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn between_requests_there_is_more_time_and_a_next_head_has_its_own() {
    let (mut io, mut theirs) = paced(64);
    for _ in 0..3 {
        theirs.write_u8(b'x').await.unwrap();
        io.read_u8().await.unwrap();
        let answering = io.phase().answering();
        tokio::time::sleep(20 * SECOND).await;
        drop(answering);
        let silent = tokio::time::timeout(9 * SECOND, io.read_u8()).await;
        assert!(silent.is_err(), "closed too early: {silent:?}");
    }
    about(fails_after(&mut io).await, SECOND);

    let (mut io, theirs) = paced(64);
    drop(io.phase().answering());
    drip(theirs);
    about(fails_after(&mut io).await, 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_unseen_leaves_the_connection_idle_all_the_same() {
    let (mut io, _theirs) = paced(64);
    let answering = io.phase().answering();
    tokio::spawn(async move {
        tokio::time::sleep(25 * SECOND).await;
        drop(answering);
    });
    about(fails_after(&mut io).await, 35 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn while_a_request_is_answered_reading_has_no_deadline() {
    let (mut io, _theirs) = paced(64);
    let _answering = io.phase().answering();
    let waited = tokio::time::timeout(1000 * SECOND, io.read_u8()).await;
    assert!(waited.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_request_is_not_the_end_of_the_one_that_follows_it() {
    let (mut io, _theirs) = paced(64);
    let first = io.phase().answering();
    let second = io.phase().answering();
    drop(first);
    let waited = tokio::time::timeout(1000 * SECOND, io.read_u8()).await;
    assert!(waited.is_err(), "the second is still being answered");
    drop(second);
    about(fails_after(&mut io).await, 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_takes_fails() {
    let (mut io, _theirs) = paced(64);
    let begun = Instant::now();
    let error = io.write_all(&[0; 1000]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    about(begun.elapsed(), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn who_takes_single_bytes_has_not_kept_up_but_who_takes_enough_has() {
    for (each, outcome) in [(1, false), (8 * 1024, true)] {
        let (mut io, mut theirs) = paced(8 * 1024);
        let reader = tokio::spawn(async move {
            let mut chunk = vec![0; each];
            while theirs.read(&mut chunk).await.is_ok_and(|count| count > 0) {
                tokio::time::sleep(SECOND).await;
            }
        });
        let written = io.write_all(&vec![0; 256 * 1024]).await;
        assert_eq!(written.is_ok(), outcome, "{written:?}");
        drop(io);
        reader.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn p15_a_large_answer_must_be_taken_faster() {
    const LARGE: usize = 1 << 20;
    // Of 1 MiB, 128 KiB every three seconds: 64 KiB a second is enough, 16 is not.
    for (each, outcome) in [(16 * 1024, false), (64 * 1024, true)] {
        let (mut io, mut theirs) = paced(8 * 1024);
        let answering = io.phase().answering();
        answering.require_reading(LARGE as u64);
        let reader = tokio::spawn(async move {
            let mut chunk = vec![0; each];
            while theirs.read_exact(&mut chunk).await.is_ok() {
                tokio::time::sleep(SECOND).await;
            }
        });
        let written = io.write_all(&vec![0; LARGE]).await;
        assert_eq!(written.is_ok(), outcome, "{each}: {written:?}");
        drop(io);
        reader.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn p15_a_long_head_needs_room_in_memory() {
    let deadlines = paced(1).0.deadlines;
    for (room, outcome) in [(1 << 20, true), (1 << 10, false)] {
        let (ours, mut theirs) = duplex(64 * 1024);
        let room = ConnectionMemory::new(MemoryBudget::new(room), MemoryOwner::Proxies);
        let mut io = PacedIo::new(ours, deadlines, Arc::new(room));
        theirs.write_all(&[b'x'; HEAD_BYTES_FREE]).await.unwrap();
        let mut head = vec![0; HEAD_BYTES_FREE];
        io.read_exact(&mut head).await.unwrap();
        theirs.write_u8(b'x').await.unwrap();
        assert_eq!(io.read_u8().await.is_ok(), outcome);
    }
}
