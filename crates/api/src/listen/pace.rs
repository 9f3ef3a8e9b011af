//! The pace of a connection: how long it may be silent, take over a head, idle, or leave an
//! answer untaken. It lies directly on the socket, below TLS, and ends the connection with an
//! error that closes it. It knows of requests only what it is told: when one is being answered.

#![expect(
    clippy::disallowed_methods,
    reason = "limits of waiting for a client, by the runtime's own timers"
)]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Room;

/// What a client must take of an answer within [`Deadlines::write`] once it does not keep up.
const WRITE_BYTES_MIN: usize = 16 * 1024;
/// An answer that is in memory whole must be taken within about this many of these times, however
/// large it is: nobody holds much for long.
const WRITE_WINDOWS_MAX: u64 = 8;
/// A head that is longer counts against the memory for connections.
const HEAD_BYTES_FREE: usize = 8 * 1024;

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
pub(crate) struct Phase(Arc<Mutex<Now>>);

#[derive(Clone, Copy, Debug)]
struct Now {
    step: Step,
    /// `None` until a deadline is first counted from it: most requests come whole, and wait for nothing.
    since: Option<Instant>,
    /// What must be taken of the answer within [`Deadlines::write`].
    write_bytes_min: usize,
    /// Number of the latest request.
    request: u64,
}

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

impl Now {
    fn of(step: Step, request: u64) -> Self {
        Self {
            step,
            since: None,
            write_bytes_min: WRITE_BYTES_MIN,
            request,
        }
    }

    fn since_now(step: Step, request: u64) -> Self {
        Self {
            since: Some(Instant::now()),
            ..Self::of(step, request)
        }
    }
}

impl Phase {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Now::since_now(Step::Silent, 0))))
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self) -> Now {
        *self.lock()
    }

    /// When the present step began, as far as a deadline can tell.
    fn since(&self) -> Instant {
        *self.lock().since.get_or_insert_with(Instant::now)
    }

    /// The first bytes of a request have come.
    fn begin_head(&self) {
        let mut now = self.lock();
        *now = Now::of(Step::Head, now.request);
    }

    /// Back to the beginning: what was read so far was no request, but a TLS handshake.
    pub(crate) fn restart(&self) {
        let mut now = self.lock();
        *now = Now::since_now(Step::Silent, now.request);
    }

    /// A request is being answered until the returned value is dropped.
    pub(crate) fn answering(&self) -> Answering {
        let mut now = self.lock();
        let request = now.request.wrapping_add(1);
        *now = Now::of(Step::Answering, request);
        Answering {
            phase: self.clone(),
            request,
        }
    }
}

/// Kept until the last byte of an answer is handed over, and of its request taken.
#[derive(Debug)]
pub(crate) struct Answering {
    phase: Phase,
    request: u64,
}

impl Answering {
    /// The answer has `bytes`, all of them in memory until the client takes them.
    pub(crate) fn must_be_taken(&self, bytes: u64) {
        let each = usize::try_from(bytes / WRITE_WINDOWS_MAX).unwrap_or(usize::MAX);
        if each > WRITE_BYTES_MIN {
            self.phase.lock().write_bytes_min = each;
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut now = self.phase.lock();
        // The rest of an unwanted body may be dropped after a pipelined request has begun.
        if now.request == self.request {
            // Now, and not at the next look at the socket, which may be much later.
            *now = Now::since_now(Step::Idle, self.request);
        }
    }
}

/// A socket that keeps its connection's [`Deadlines`].
#[derive(Debug)]
pub(crate) struct PacedIo<T> {
    inner: T,
    deadlines: Deadlines,
    phase: Phase,
    room: Arc<Room>,
    /// What came of the head that is being read.
    head_bytes: usize,
    /// Since when the client has not kept up, and what it took meanwhile.
    stall: Option<(Instant, usize)>,
    read_alarm: Alarm,
    write_alarm: Alarm,
}

impl<T> PacedIo<T> {
    pub(crate) fn new(inner: T, deadlines: Deadlines, room: Arc<Room>) -> Self {
        Self {
            inner,
            deadlines,
            phase: Phase::new(),
            room,
            head_bytes: 0,
            stall: None,
            read_alarm: Alarm::default(),
            write_alarm: Alarm::default(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.clone()
    }

    /// `count` bytes came: if none were expected of a request yet, its head begins.
    fn arrived(&mut self, count: usize) -> io::Result<()> {
        let step = self.phase.get().step;
        if matches!(step, Step::Silent | Step::Idle) {
            self.phase.begin_head();
            self.head_bytes = 0;
        }
        if step == Step::Answering {
            return Ok(());
        }
        self.head_bytes += count;
        if self.head_bytes > HEAD_BYTES_FREE {
            let room = self.room.read_much();
            return room.map_err(|full| io::Error::new(io::ErrorKind::OutOfMemory, full));
        }
        Ok(())
    }

    /// When the wait for bytes must end.
    fn read_deadline(&self) -> Instant {
        match self.phase.get().step {
            Step::Silent => self.phase.since() + self.deadlines.first_byte,
            Step::Head => self.phase.since() + self.deadlines.head,
            Step::Idle => self.phase.since() + self.deadlines.idle,
            // Never: a body has a deadline of its own, which can still be answered. But hyper
            // may look for the next request before it lets go of this answer, and not again:
            // so look whenever the connection could have been idle for too long.
            Step::Answering => Instant::now() + self.deadlines.idle,
        }
    }

    /// `count` bytes were taken of `offered`.
    fn taken(&mut self, count: usize, offered: usize) {
        let Some((since, before)) = self.stall else {
            return;
        };
        let all = before + count;
        let behind = count < offered && all < self.phase.get().write_bytes_min;
        self.stall = behind.then_some((since, all));
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
                let count = buffer.filled().len() - before;
                if count > 0 {
                    self.arrived(count)?;
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
mod tests;
