//! The pace of a connection: how long it may stay silent, send a head, idle, or leave an answer
//! unread. It wraps the socket directly, below TLS, and ends the connection with an I/O error. The
//! service tells it when a request is being answered.

#![expect(
    clippy::disallowed_methods,
    reason = "deadlines for the runtime's timers, which know no other clock (docs/decisions.md)"
)]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::memory::ConnectionMemory;

/// Bytes that a slow client must read within each [`ConnectionDeadlines::write`].
const WRITE_BYTES_MIN: usize = 16 * 1024;
/// A client must read an answer that is whole in memory within about this many of these periods,
/// regardless of its size, so nobody holds much memory for long.
const WRITE_WINDOWS_MAX: u64 = 8;
/// Longer heads count against the memory for connections.
const HEAD_BYTES_FREE: usize = 8 * 1024;

/// How long a connection may take; each step has its own start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionDeadlines {
    /// Limit from the start of the connection to its first byte.
    pub(crate) first_byte: Duration,
    /// Limit from the first byte of a request to the end of its headers.
    pub(crate) head: Duration,
    /// Limit from the end of an answer to the first byte of the next request.
    pub(crate) idle: Duration,
    /// How long a client may stop reading its answer.
    pub(crate) write: Duration,
}

/// The connection's current step, and since when; shared between its socket and its service.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPhase(Arc<Mutex<PhaseState>>);

#[derive(Clone, Copy, Debug)]
struct PhaseState {
    step: ConnectionStep,
    /// `None` until a deadline needs it: most requests arrive whole and never wait.
    since: Option<Instant>,
    /// Bytes of the answer that the client must read within [`ConnectionDeadlines::write`].
    write_bytes_min: usize,
    /// Number of the latest request.
    request: u64,
    unsent: UnsentPieces,
}

/// The pieces of a gradual answer that have not reached the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsentPieces {
    /// Everything was sent.
    Nothing,
    /// A piece is on its way to the socket.
    Piece,
    /// The socket takes no more: the client does not read.
    Stuck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionStep {
    /// Nothing has arrived yet.
    Silent,
    /// The head of a request is arriving.
    Head,
    /// A request is being answered.
    Answering,
    /// The last answer is complete; the next request has not begun.
    Idle,
}

impl PhaseState {
    fn new(step: ConnectionStep, request: u64) -> Self {
        Self {
            step,
            since: None,
            write_bytes_min: WRITE_BYTES_MIN,
            request,
            unsent: UnsentPieces::Nothing,
        }
    }

    fn since_now(step: ConnectionStep, request: u64) -> Self {
        Self {
            since: Some(Instant::now()),
            ..Self::new(step, request)
        }
    }
}

impl ConnectionPhase {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(PhaseState::since_now(
            ConnectionStep::Silent,
            0,
        ))))
    }

    fn lock(&self) -> MutexGuard<'_, PhaseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the current step began, as far as a deadline can tell.
    fn since(&self) -> Instant {
        *self.lock().since.get_or_insert_with(Instant::now)
    }

    /// The first bytes of a request have arrived.
    fn begin_head(&self) {
        let mut now = self.lock();
        *now = PhaseState::new(ConnectionStep::Head, now.request);
    }

    /// Starts over: the bytes so far were a TLS handshake, not a request.
    pub(crate) fn restart(&self) {
        let mut now = self.lock();
        *now = PhaseState::since_now(ConnectionStep::Silent, now.request);
    }

    /// Records whether the socket took everything; returns whether a gradual answer waits for that.
    fn record_sent(&self, unsent: UnsentPieces) -> bool {
        let mut now = self.lock();
        // `Nothing` also means that no gradual answer is in progress: then nobody needs to be
        // woken.
        let is_news = now.unsent != UnsentPieces::Nothing && now.unsent != unsent;
        if is_news {
            now.unsent = unsent;
        }
        is_news
    }

    /// A request is being answered until the returned value is dropped.
    pub(crate) fn answering(&self) -> ActiveResponse {
        let mut now = self.lock();
        let request = now.request.wrapping_add(1);
        *now = PhaseState::new(ConnectionStep::Answering, request);
        ActiveResponse {
            phase: self.clone(),
            request,
        }
    }
}

/// Held until the last byte of an answer is sent and its request has been read.
#[derive(Debug)]
pub(crate) struct ActiveResponse {
    phase: ConnectionPhase,
    request: u64,
}

impl ActiveResponse {
    /// Requires the client to read an answer of `bytes`, all in memory until then.
    pub(crate) fn require_reading(&self, bytes: u64) {
        // Example with a write limit of 30 s: the client must read 16 KiB in each 30 s, so a page
        // of 100 KiB may take over three minutes. A list of 8 MiB in memory would take four hours;
        // an eighth of it, 1 MiB, in each 30 s frees its memory within four minutes.
        let each = usize::try_from(bytes / WRITE_WINDOWS_MAX).unwrap_or(usize::MAX);
        if each > WRITE_BYTES_MIN {
            self.phase.lock().write_bytes_min = each;
        }
    }

    /// Records that a piece of a gradual answer follows.
    pub(crate) fn record_piece(&self) {
        self.phase.lock().unsent = UnsentPieces::Piece;
    }

    /// The state of the answer's pieces.
    pub(crate) fn unsent(&self) -> UnsentPieces {
        self.phase.lock().unsent
    }
}

impl Drop for ActiveResponse {
    fn drop(&mut self) {
        let mut now = self.phase.lock();
        // The rest of an unwanted body may be dropped after a pipelined request has begun.
        if now.request == self.request {
            // Now rather than at the next poll of the socket, which may come much later.
            *now = PhaseState::since_now(ConnectionStep::Idle, self.request);
        }
    }
}

/// A socket that enforces its connection's [`ConnectionDeadlines`].
#[derive(Debug)]
pub(crate) struct PacedIo<T> {
    inner: T,
    deadlines: ConnectionDeadlines,
    phase: ConnectionPhase,
    room: Arc<ConnectionMemory>,
    /// Bytes received of the current head.
    head_bytes: usize,
    /// Since when the client has fallen behind, and how many bytes it has read since.
    stall: Option<(Instant, usize)>,
    read_alarm: LazyTimer,
    write_alarm: LazyTimer,
}

impl<T> PacedIo<T> {
    pub(crate) fn new(
        inner: T,
        deadlines: ConnectionDeadlines,
        room: Arc<ConnectionMemory>,
    ) -> Self {
        Self {
            inner,
            deadlines,
            phase: ConnectionPhase::new(),
            room,
            head_bytes: 0,
            stall: None,
            read_alarm: LazyTimer::default(),
            write_alarm: LazyTimer::default(),
        }
    }

    pub(crate) fn phase(&self) -> ConnectionPhase {
        self.phase.clone()
    }

    /// Counts `count` received bytes; the first ones of a request begin its head.
    fn record_read(&mut self, count: usize) -> io::Result<()> {
        let step = self.phase.lock().step;
        if matches!(step, ConnectionStep::Silent | ConnectionStep::Idle) {
            self.phase.begin_head();
            self.head_bytes = 0;
        }
        if step == ConnectionStep::Answering {
            return Ok(());
        }
        self.head_bytes += count;
        if self.head_bytes > HEAD_BYTES_FREE {
            let room = self.room.reserve_reading();
            return room.map_err(|full| io::Error::new(io::ErrorKind::OutOfMemory, full));
        }
        Ok(())
    }

    /// When the wait for bytes must end.
    fn read_deadline(&self) -> Instant {
        // Not in the `match`, which would hold the lock.
        let step = self.phase.lock().step;
        match step {
            ConnectionStep::Silent => self.phase.since() + self.deadlines.first_byte,
            ConnectionStep::Head => self.phase.since() + self.deadlines.head,
            ConnectionStep::Idle => self.phase.since() + self.deadlines.idle,
            // Never: a body has its own deadline, which still allows an answer. But hyper may poll
            // for the next request before it drops this answer, and then not again: so wake up
            // whenever the connection could have been idle for too long.
            ConnectionStep::Answering => Instant::now() + self.deadlines.idle,
        }
    }

    /// The client read `count` bytes of `offered`.
    fn record_written(&mut self, count: usize, offered: usize) {
        let Some((since, before)) = self.stall else {
            return;
        };
        let all = before + count;
        // A stall begins when the socket takes no more. It is over once the socket takes all that
        // was offered, or the client has read enough since it began; a client that drips single
        // bytes never gets there.
        let behind = count < offered && all < self.phase.lock().write_bytes_min;
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
                    self.record_read(count)?;
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
                self.record_written(count, bytes.len());
                if count == bytes.len() && self.phase.record_sent(UnsentPieces::Nothing) {
                    // The connection asks for the next piece before it writes, so wake it to ask
                    // again.
                    cx.waker().wake_by_ref();
                }
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                if self.phase.record_sent(UnsentPieces::Stuck) {
                    cx.waker().wake_by_ref();
                }
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

/// A timer that is only reset when it fires too early: deadlines mostly move later, and then a
/// request costs no timer at all.
#[derive(Debug, Default)]
struct LazyTimer(Option<Pin<Box<Sleep>>>);

impl LazyTimer {
    fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            // A deadline that has moved later leaves the timer alone: when it fires too early, it
            // is set again. One that has moved earlier must be set now. A request that is answered
            // at once never touches the timer.
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
