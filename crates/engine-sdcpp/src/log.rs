//! Reads what the server prints: lines for our log, bars that show its progress, and the last lines
//! as the cause of a failure.

use std::collections::VecDeque;
use std::io::{BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kinora_engine::EngineError;
use tracing::Level;

use crate::progress::{ProgressBar, Tracker};

/// Number of lines that explain a failure.
const LINES_MAX: usize = 12;
/// Number of complaints that are kept from the beginning: the first one is often the cause of the others.
const FIRST_MAX: usize = 3;
/// Longer lines are cut.
const LINE_BYTES_MAX: usize = 4_096;
/// Ends a progress bar: it erases the rest of the terminal's line.
const BAR_END: &[u8] = b"\x1b[K";

/// What a server has printed so far. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ServerLog(Arc<Mutex<LogState>>);

#[derive(Debug)]
struct LogState {
    tracker: Tracker,
    /// Number of lines and bars.
    entries: u64,
    /// The last lines of any severity.
    lines: VecDeque<String>,
    /// The first and the last lines that complain, of this job.
    first: Vec<String>,
    complaints: VecDeque<String>,
}

impl ServerLog {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(LogState {
            tracker: Tracker::new(1),
            entries: 0,
            lines: VecDeque::new(),
            first: Vec::new(),
            complaints: VecDeque::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a job with `steps` denoising steps.
    pub(crate) fn begin_job(&self, steps: u32) {
        let mut state = self.lock();
        state.tracker = Tracker::new(steps);
        state.first.clear();
        state.complaints.clear();
    }

    /// Number of lines and bars so far, and the fraction of the job that is done.
    pub(crate) fn progress(&self) -> (u64, f64) {
        let state = self.lock();
        (state.entries, state.tracker.fraction)
    }

    /// Reads `output` until it ends.
    pub(crate) fn collect(&self, output: impl Read, is_error_output: bool) {
        let mut line = Vec::new();
        for byte in BufReader::new(output).bytes().map_while(Result::ok) {
            let is_end = matches!(byte, b'\r' | b'\n');
            if !is_end && line.len() < LINE_BYTES_MAX {
                line.push(byte);
            }
            // A bar stands without a line's end until the next one overwrites it.
            if is_end || line.ends_with(BAR_END) {
                self.record(&line, is_error_output);
                line.clear();
            }
        }
        self.record(&line, is_error_output);
    }

    fn record(&self, bytes: &[u8], is_error_output: bool) {
        let bytes = bytes.strip_suffix(BAR_END).unwrap_or(bytes);
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        if let Some(bar) = ProgressBar::parse(text) {
            let mut state = self.lock();
            state.entries += 1;
            return state.tracker.count(bar);
        }
        let (level, text) = split_level(text, is_error_output);
        match level {
            Level::ERROR => tracing::error!(target: "stable_diffusion", "{text}"),
            Level::WARN => tracing::warn!(target: "stable_diffusion", "{text}"),
            Level::DEBUG => tracing::debug!(target: "stable_diffusion", "{text}"),
            _ => tracing::trace!(target: "stable_diffusion", "{text}"),
        }
        let mut state = self.lock();
        state.entries += 1;
        // The server says what it is doing only in its log.
        state.tracker.log(text);
        push(&mut state.lines, text);
        if level <= Level::WARN {
            if state.first.len() < FIRST_MAX {
                state.first.push(text.to_owned());
            }
            push(&mut state.complaints, text);
        }
    }

    /// The error of a job that failed because of `what`.
    pub(crate) fn failure(&self, what: &str) -> EngineError {
        let state = self.lock();
        state.error(what, &state.complaints)
    }

    /// The error of a server that ended, as `what` says.
    pub(crate) fn last_words(&self, what: &str) -> EngineError {
        let state = self.lock();
        state.error(what, &state.lines)
    }
}

impl LogState {
    /// The error `what` with the lines that explain it: the first complaints, and the `last` lines. Complaints alone decide what it
    /// is, each for itself: the server also tells where it allocates, and what it does without.
    fn error(&self, what: &str, last: &VecDeque<String>) -> EngineError {
        let first = self.first.iter().filter(|line| !last.contains(line));
        let lines: Vec<&str> = first.chain(last).map(String::as_str).collect();
        let mut cause = what.to_owned();
        if !lines.is_empty() {
            cause += ": ";
            cause += &lines.join(" | ");
        }
        let complaints = self.first.iter().chain(&self.complaints);
        let complaints = complaints.map(|line| line.to_lowercase());
        let complaints: Vec<String> = complaints.chain([what.to_lowercase()]).collect();
        let has = |reports: fn(&str) -> bool| complaints.iter().any(|line| reports(line));
        if has(reports_exhausted_memory) {
            EngineError::OutOfMemory(cause)
        } else if has(reports_lost_device) {
            EngineError::Broken(cause)
        } else {
            EngineError::Failed(cause)
        }
    }
}

/// Splits `[WARN ] text` (`log_print` in `log.cpp`) into our level and the text. Lines without a mark come from other libraries,
/// which print only errors to standard error.
fn split_level(line: &str, is_error_output: bool) -> (Level, &str) {
    for (mark, level) in [
        ("[DEBUG]", Level::TRACE),
        ("[INFO ]", Level::DEBUG),
        ("[WARN ]", Level::WARN),
        ("[ERROR]", Level::ERROR),
    ] {
        if let Some(text) = line.strip_prefix(mark) {
            return (level, text.trim_start());
        }
    }
    let unmarked = if is_error_output {
        Level::WARN
    } else {
        Level::DEBUG
    };
    (unmarked, line)
}

fn push(lines: &mut VecDeque<String>, text: &str) {
    if lines.len() == LINES_MAX {
        lines.pop_front();
    }
    lines.push_back(text.to_owned());
}

/// How ggml's backends and the library report exhausted memory.
fn reports_exhausted_memory(line: &str) -> bool {
    let words = [
        "out of memory",
        "out of device memory",
        "outofdevicememory",
        "insufficient memory",
        "bad_alloc",
        "cannot allocate",
    ];
    words.iter().any(|word| line.contains(word))
        || (line.contains("alloc") && line.contains("fail"))
}

/// How drivers report a device, or a context on it, that serves nothing any more, whatever the job. Other errors of CUDA, such as
/// an invalid argument, come of the job.
fn reports_lost_device(line: &str) -> bool {
    let words = [
        "illegal memory access",
        "illegal instruction",
        "misaligned address",
        "unspecified launch failure",
        "launch timed out",
        "device-side assert",
        "uncorrectable ecc",
        "cublas_status_not_initialized",
        "cudnn_status_not_initialized",
        "no cuda-capable device",
        "device lost",
        "errordevicelost",
        "xid ",
    ];
    words.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str, is_error_output: bool) -> ServerLog {
        let log = ServerLog::new();
        log.begin_job(3);
        log.collect(text.as_bytes(), is_error_output);
        log
    }

    #[test]
    fn lines_and_bars_are_told_apart() {
        let log = log(
            "[INFO ] stable-diffusion.cpp:1 - get_learned_condition completed, taking 1.00s\n\
             \r  |####    | 400/825 - 1.20GB/s\x1b[K\r  |####| 825/825 - 1.20GB/s\x1b[K\n\
             \r  |=>      | 1/3 - 2.00s/it\x1b[K\r  |====>   | 2/3 - 2.00it/s\x1b[K",
            false,
        );
        // Two of three steps, which are most of a clip.
        let (entries, done) = log.progress();
        assert_eq!(entries, 5);
        assert!(done > 0.6 && done < 0.7, "{done}");
    }

    #[test]
    fn a_failure_is_one_of_memory_of_a_device_or_of_the_job() {
        let said = |line: &str, is_error_output| {
            log(&format!("[INFO ] x\n{line}\n"), is_error_output).failure("nothing came")
        };
        for line in [
            "[ERROR] ggml_extend.hpp:1 - allocating 900.00 MiB on device 0: cudaMalloc failed: out of memory",
            "[WARN ] failed to alloc compute buffer: allocation of size 1 failed",
        ] {
            let error = said(line, false);
            assert!(matches!(error, EngineError::OutOfMemory(_)), "{error}");
        }
        // Printed by ggml before it aborts.
        let error = said("CUDA error: an illegal memory access was encountered", true);
        assert!(matches!(error, EngineError::Broken(_)), "{error}");
        for line in [
            "CUDA error: invalid argument",
            "[WARN ] no flash attention: allocator is old\n[ERROR] validation failed",
            "[INFO ] allocating 9 MiB, retried where it failed",
        ] {
            for error in [said(line, true), log(line, true).last_words("ended")] {
                assert!(matches!(error, EngineError::Failed(_)), "{error}");
            }
        }
        let error = said("[ERROR] model metadata validation failed", false);
        let EngineError::Failed(cause) = error else {
            panic!("{error}");
        };
        assert_eq!(cause, "nothing came: model metadata validation failed");
    }

    #[test]
    fn only_the_first_and_last_lines_are_kept_and_long_ones_are_cut() {
        let many: String = (0..50).map(|number| format!("w{number}\n")).collect();
        let cause = log(&(many + &"x".repeat(1 << 20)), true).last_words("ended");
        let cause = cause.to_string();
        assert!(cause.contains("w0 | w1 | w2 | w39 |") && cause.contains("w49"));
        assert!(cause.len() < LINE_BYTES_MAX + 200);
    }

    #[test]
    fn a_job_begins_without_the_complaints_of_the_one_before() {
        let log = log("[ERROR] out of memory\n", false);
        log.begin_job(1);
        assert!(matches!(log.failure("x"), EngineError::Failed(_)));
    }
}
