//! The pace of a connection: how long it may be silent, take over a head, idle, or leave an
//! answer untaken. It lies directly on the socket, below TLS, and ends the connection with an
//! error that closes it. It knows of requests only what it is told: when one is being answered.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// What a client must take of an answer within [`Deadlines::write`] once it does not keep up.
const WRITE_BYTES_MIN: usize = 16 * 1024;

/// How long a connection may take, each step counted from its own beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// From the start of the connection to its first byte.
    pub(crate) first_byte: Duration,
    /// From the first byte of a request to the end of its headers.
    pub(crate) head: Duration,
    /// From the end of an answer to the first byte of the next request.
    pub(crate) idle: Duration,
    /// While a client does not take what is sent to it.
    pub(crate) write: Duration,
}

/// What a connection is doing, and since when: shared between its socket and its service.
#[derive(Clone, Debug)]
pub(crate) struct Phase(Arc<Mutex<(Step, Instant)>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing has come yet.
    Silent,
    /// The head of a request is coming.
    Head,
    /// A request is being answered.
    Answering,
    /// An answer is over, the next request has not begun.
    Idle,
}

impl Phase {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((Step::Silent, Instant::now()))))
    }

    fn get(&self) -> (Step, Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, step: Step) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (step, Instant::now());
    }

    /// Back to the beginning: what was read so far was no request, but a TLS handshake.
    pub(crate) fn restart(&self) {
        self.set(Step::Silent);
    }

    /// A request is being answered until the returned value is dropped.
    pub(crate) fn answering(&self) -> Answering {
        self.set(Step::Answering);
        Answering(self.clone())
    }
}

/// Kept until the last byte of an answer is handed over, and of its request taken.
#[derive(Debug)]
pub(crate) struct Answering(Phase);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.set(Step::Idle);
    }
}

/// A socket that keeps its connection's [`Deadlines`].
#[derive(Debug)]
pub(crate) struct PacedIo<T> {
    inner: T,
    deadlines: Deadlines,
    phase: Phase,
    /// Since when the client has not kept up, and what it took meanwhile.
    stall: Option<(Instant, usize)>,
    read_alarm: Alarm,
    write_alarm: Alarm,
}

impl<T> PacedIo<T> {
    pub(crate) fn new(inner: T, deadlines: Deadlines) -> Self {
        Self {
            inner,
            deadlines,
            phase: Phase::new(),
            stall: None,
            read_alarm: Alarm::default(),
            write_alarm: Alarm::default(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.clone()
    }

    /// Bytes came: if none were expected of a request yet, its head begins.
    fn arrived(&self) {
        if matches!(self.phase.get().0, Step::Silent | Step::Idle) {
            self.phase.set(Step::Head);
        }
    }

    /// When the wait for bytes must end.
    fn read_deadline(&self) -> Instant {
        let (step, since) = self.phase.get();
        match step {
            Step::Silent => since + self.deadlines.first_byte,
            Step::Head => since + self.deadlines.head,
            Step::Idle => since + self.deadlines.idle,
            // Never: a body has a deadline of its own, which can still be answered. But hyper
            // may look for the next request before it lets go of this answer, and not again:
            // so look whenever the connection could have been idle for too long.
            Step::Answering => Instant::now() + self.deadlines.idle,
        }
    }

    /// `count` bytes were taken of `offered`.
    fn taken(&mut self, count: usize, offered: usize) {
        self.stall = self.stall.and_then(|(since, before)| {
            let all = before + count;
            (count < offered && all < WRITE_BYTES_MIN).then_some((since, all))
        });
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for PacedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buffer) {
            Poll::Ready(done) => {
                if buffer.filled().len() > before {
                    self.arrived();
                }
                Poll::Ready(done)
            }
            Poll::Pending => {
                let deadline = self.read_deadline();
                ready!(self.read_alarm.poll(deadline, cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for PacedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.inner).poll_write(cx, bytes) {
            Poll::Ready(Ok(count)) => {
                self.taken(count, bytes.len());
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let (since, _) = *self.stall.get_or_insert_with(|| (Instant::now(), 0));
                let deadline = since + self.deadlines.write;
                ready!(self.write_alarm.poll(deadline, cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A timer that is set back only when it rings too early: deadlines mostly move away, and then
/// a request costs no timer at all.
#[derive(Debug, Default)]
struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            if sleep.deadline() > deadline {
                sleep.as_mut().reset(deadline);
            }
            ready!(sleep.as_mut().poll(cx));
            if sleep.deadline() == deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    const SECOND: Duration = Duration::from_secs(1);

    fn paced(buffer: usize) -> (PacedIo<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(buffer);
        let deadlines = Deadlines {
            first_byte: SECOND,
            head: 2 * SECOND,
            idle: 10 * SECOND,
            write: 3 * SECOND,
        };
        (PacedIo::new(ours, deadlines), theirs)
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
}
