//! Log lines on their way to standard error. A request puts its line here and continues: a separate
//! thread writes, and may wait for the reader indefinitely. Lines that find no room meanwhile are
//! dropped and counted, and the log reports their number once the reader continues.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Maximum bytes of waiting lines. The writer may hold as many again while it writes.
const BYTES_MAX: usize = 1 << 20;
/// Pause of the writer after a write, in which lines gather. Under load, lines then wake it once
/// per pause and not each time.
const GATHERING: Duration = Duration::from_millis(2);
/// Pause of the writer when standard error is a full, non-blocking pipe.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// The queue. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct LogQueue(Arc<QueueState>);

#[derive(Debug)]
struct QueueState {
    waiting: Mutex<WaitingLines>,
    /// There are lines to write, or no more will come.
    news: Condvar,
    /// All lines are written.
    written: Condvar,
    /// The writing thread: its own lines are never dropped.
    writer: OnceLock<ThreadId>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct WaitingLines {
    bytes: Vec<u8>,
    lines: u64,
    dropped: u64,
    /// Whether the thread is writing lines that it has taken.
    writing: bool,
    /// Whether the writer waits to be woken. `notify_one` is a system call even without a waiter.
    asleep: bool,
    closing: bool,
}

/// Lost lines and their report.
#[derive(Debug, Default)]
struct LostLines {
    /// Lost lines that are not reported yet.
    unreported: u64,
    /// Lost lines that the current batch reports, if it can be written.
    in_report: u64,
}

impl LogQueue {
    /// Creates a queue and a thread that writes its lines to `out`.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Self::with_limit(BYTES_MAX);
        let own = queue.clone();
        let thread = thread::Builder::new().name("log-writer".to_owned());
        thread.spawn(move || own.write_batches(out))?;
        Ok(queue)
    }

    fn with_limit(bytes_max: usize) -> Self {
        Self(Arc::new(QueueState {
            waiting: Mutex::default(),
            news: Condvar::new(),
            written: Condvar::new(),
            writer: OnceLock::new(),
            bytes_max,
        }))
    }

    /// Waits until all lines that wait now are written, for at most `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let flushed = self
            .0
            .written
            .wait_timeout_while(self.waiting(), limit, |waiting| {
                waiting.writing || !waiting.bytes.is_empty()
            });
        drop(flushed);
    }

    /// Ends the thread after the last line, and waits for it for at most `limit`.
    pub(super) fn close(&self, limit: Duration) {
        self.waiting().closing = true;
        self.0.news.notify_one();
        self.flush(limit);
    }

    fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        // A full queue drops the line instead of waiting. The log must never slow down a request,
        // even if journald or the reader of a pipe hangs for minutes. Only the writer's own lines
        // always fit: they report how many were lost.
        let fits = waiting.bytes.len() + line.len() <= self.0.bytes_max;
        if fits || self.0.writer.get() == Some(&thread::current().id()) {
            waiting.bytes.extend_from_slice(line);
            waiting.lines += 1;
            // Only the line that finds the writer asleep wakes it. Under load the writer is busy or
            // gathers, so 1,000 lines cost one wake-up and not 1,000.
            let wakes = std::mem::take(&mut waiting.asleep);
            // Not under the lock: the writer would wake only to wait for it.
            drop(waiting);
            if wakes {
                self.0.news.notify_one();
            }
        } else {
            waiting.dropped += 1;
        }
    }

    fn write_batches(&self, mut out: impl Write) {
        // Only here: no other thread has this id.
        let _ = self.0.writer.set(thread::current().id());
        // The report of lost lines goes through the subscriber like any other event, so it has the
        // format and the time of a log line. It arrives in this queue and is written with the next
        // batch; until then its number counts as `telling`.
        let (mut batch, mut losses) = (Vec::new(), LostLines::default());
        while let Some((lines, dropped)) = self.next_batch(&mut batch) {
            losses.unreported += dropped;
            let written = write(&mut out, &batch);
            if losses.record(written.is_ok(), lines) {
                let dropped = losses.in_report;
                tracing::error!(
                    dropped,
                    "log lines dropped: standard error was not read in time"
                );
            }
            self.gather();
        }
    }

    /// Lets lines gather, unless some wait already or no more will come.
    fn gather(&self) {
        let mut waiting = self.waiting();
        waiting.writing = false;
        // Group commit for log lines. A pause of 2 ms is nothing to a reader, and under load
        // hundreds of lines share one write. With lines waiting already, or at the end, there is
        // nothing to gather.
        let (is_empty, closing) = (waiting.bytes.is_empty(), waiting.closing);
        drop(waiting);
        if is_empty {
            self.0.written.notify_all();
        }
        if is_empty && !closing {
            thread::sleep(GATHERING);
        }
    }

    /// Takes the waiting lines once there are any; returns their number, and how many were dropped
    /// after them. `None` when no more will come.
    fn next_batch(&self, batch: &mut Vec<u8>) -> Option<(u64, u64)> {
        let waited = self.0.news.wait_while(self.waiting(), |waiting| {
            waiting.asleep = waiting.bytes.is_empty() && !waiting.closing;
            waiting.asleep
        });
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
        if waiting.bytes.is_empty() {
            return None;
        }
        batch.clear();
        // Swapped, not copied: two buffers take turns and keep their capacity.
        std::mem::swap(batch, &mut waiting.bytes);
        waiting.writing = true;
        let lines = std::mem::take(&mut waiting.lines);
        Some((lines, std::mem::take(&mut waiting.dropped)))
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl LostLines {
    /// Records whether a batch of `lines` was written; returns whether there are losses to report.
    /// While nothing can be written, a further line about that is useless.
    const fn record(&mut self, written: bool, lines: u64) -> bool {
        if !written {
            // The lines of the failed batch are lost, and what it would have reported is unreported
            // again; the report itself is nobody's line. For example, 25 lines were dropped, and
            // the batch has their report and 3 more lines: after its failure, 4 + 25 - 1 = 28 lines
            // are lost.
            let own_line = if self.in_report > 0 { 1 } else { 0 };
            self.unreported += lines + self.in_report - own_line;
            self.in_report = 0;
            return false;
        }
        self.in_report = self.unreported;
        self.unreported = 0;
        self.in_report > 0
    }
}

/// Writes all of `bytes`, however long the reader takes.
fn write(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // O_NONBLOCK belongs to the open file and not to the descriptor, so a parent or sibling
            // that shares standard error may have set it.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(FULL_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// One line on its way to the queue: the subscriber writes each in a single call.
#[derive(Debug)]
pub(super) struct QueuedLine<'a>(&'a LogQueue);

impl Write for QueuedLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = QueuedLine<'a>;

    fn make_writer(&'a self) -> QueuedLine<'a> {
        QueuedLine(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Standard error with a reader that takes a piece when the test says so.
    struct SlowReader {
        takes: mpsc::Receiver<io::Result<()>>,
        taken: mpsc::Sender<String>,
    }

    impl Write for SlowReader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.takes
                .recv()
                .unwrap_or_else(|_| Err(ErrorKind::BrokenPipe.into()))?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            // Nobody looks any more at the end of a test.
            let _ = self.taken.send(text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Reader = (mpsc::Sender<io::Result<()>>, mpsc::Receiver<String>);

    /// A queue whose thread logs to it: by its own subscriber, so that other tests' lines go elsewhere.
    fn slow(bytes_max: usize) -> (LogQueue, Reader) {
        let ((take, takes), (taken, read)) = (mpsc::channel(), mpsc::channel());
        let queue = LogQueue::with_limit(bytes_max);
        let own = queue.clone();
        thread::spawn(move || {
            let lines = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_writer(own.clone());
            let log = tracing_subscriber::registry().with(lines);
            tracing::subscriber::with_default(log, || {
                own.write_batches(SlowReader { takes, taken });
            });
        });
        (queue, (take, read))
    }

    #[test]
    fn a_reader_that_does_not_read_holds_up_nobody_and_all_is_written_in_order() {
        let (queue, (take, read)) = slow(1 << 20);
        let lines: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        // It returns although nothing is read.
        for line in lines.split_inclusive('\n') {
            assert_eq!(
                queue.make_writer().write(line.as_bytes()).unwrap(),
                line.len()
            );
        }
        let mut got = String::new();
        while got != lines {
            take.send(Ok(())).unwrap();
            got += &read.recv_timeout(PATIENCE).unwrap();
            assert!(lines.starts_with(&got), "{got}");
        }
        queue.flush(PATIENCE);
    }

    #[test]
    fn the_end_waits_for_the_last_line_and_not_for_a_reader_that_is_gone() {
        let (queue, (take, read)) = slow(1 << 20);
        queue.push(b"last words\n");
        // Its reader hangs: the end comes all the same.
        queue.close(Duration::from_millis(1));
        take.send(Ok(())).unwrap();
        queue.close(PATIENCE);
        assert_eq!(read.try_recv().unwrap(), "last words\n");
    }

    #[test]
    fn lines_without_room_are_dropped_and_their_number_is_told_afterwards() {
        let (queue, (take, read)) = slow(100);
        queue.push(b"taken\n");
        // The thread has it, and the room is free again.
        while !queue.waiting().writing {
            thread::yield_now();
        }
        for _ in 0..25 {
            queue.push(b"123456789\n");
        }
        assert_eq!(queue.waiting().bytes.len(), 100);
        take.send(Ok(())).unwrap();
        assert_eq!(read.recv_timeout(PATIENCE).unwrap(), "taken\n");
        // Not a word of it while writing fails.
        take.send(Err(ErrorKind::StorageFull.into())).unwrap();
        while queue.waiting().writing || !queue.waiting().bytes.is_empty() {
            thread::yield_now();
        }
        queue.push(b"room again\n");
        take.send(Ok(())).unwrap();
        assert_eq!(read.recv_timeout(PATIENCE).unwrap(), "room again\n");
        take.send(Ok(())).unwrap();
        let told = read.recv_timeout(PATIENCE).unwrap();
        assert!(
            told.contains("log lines dropped") && told.contains("dropped=25"),
            "{told}"
        );
    }
}
