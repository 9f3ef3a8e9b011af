//! The last lines of a process's standard error, to explain why it died.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::job_span::JobSpan;

const LINES: usize = 12;
const LINE_BYTES_MAX: u64 = 1_000;

/// How libraries report exhausted memory, in lower case.
const OUT_OF_MEMORY: &[&str] = &[
    "out of memory",
    "bad_alloc",
    "failed to allocate",
    "memory allocation of",
    "cannot allocate memory",
];

/// The last few lines, shared with the thread that reads them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Stores and logs lines until the end of the stream.
    pub(crate) fn follow(&self, engine: &str, from: impl Read, job_span: &JobSpan) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            match from
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
            {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if line.is_empty() {
                continue;
            }
            job_span.log(|| tracing::debug!(engine, "{line}"));
            let mut lines = self.lines();
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }

    /// The lines, joined.
    pub(crate) fn text(&self) -> String {
        Vec::from(self.lines().clone()).join(" | ")
    }

    /// Whether the lines report exhausted memory.
    pub(crate) fn reports_exhausted_memory(&self) -> bool {
        let text = self.text().to_lowercase();
        OUT_OF_MEMORY.iter().any(|words| text.contains(words))
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_long_ones_cut() {
        let text: String = (0..40).map(|line| format!("line {line}\n\n")).collect();
        let tail = Tail::default();
        let span = JobSpan::current();
        tail.follow("engine", (text + &"x".repeat(2_500)).as_bytes(), &span);
        let kept = tail.text();
        assert!(kept.starts_with("line 31 | "), "{kept}");
        assert!(!kept.contains("line 30"));
        assert!(kept.ends_with(&format!(" | {}", "x".repeat(500))));
        assert!(!tail.reports_exhausted_memory());
        let last = &b"CUDA error: out of memory at ggml-cuda.cu"[..];
        tail.follow("engine", last, &span);
        assert!(tail.reports_exhausted_memory());
    }
}
