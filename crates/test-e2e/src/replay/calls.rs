//! System calls out of the lines that `strace -f` wrote: another thread's calls may come between the
//! beginning of one and its end.

use std::collections::HashMap;

use super::words;

/// The end of a call that never ended.
pub(super) const NEVER: usize = usize::MAX;

/// A system call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    /// What follows the bracket that opens the arguments.
    text: String,
    /// The lines on which it began and ended; the second is [`NEVER`] where the process died first.
    pub(super) began: usize,
    pub(super) ended: usize,
}

impl Call {
    /// Its arguments, as `strace` shows them.
    pub(super) fn arguments(&self) -> Vec<&str> {
        let parsed = words::arguments(&self.text);
        let (arguments, _) =
            parsed.unwrap_or_else(|| panic!("no arguments: {}({:.200}", self.name, self.text));
        arguments
    }

    /// What it returned, where it succeeded.
    pub(super) fn result(&self) -> Option<u64> {
        if self.ended == NEVER {
            return None;
        }
        let (_, rest) = words::arguments(&self.text)?;
        let digits = |c: char| c.is_ascii_digit();
        let value = rest.trim_start().strip_prefix('=')?.trim_start();
        let end = value.find(|c| !digits(c)).unwrap_or(value.len());
        value[..end].parse().ok()
    }
}

/// The calls of a log in the order in which they began, and how many lines it has.
pub(super) fn calls<'l>(lines: impl Iterator<Item = &'l str>) -> (Vec<Call>, usize) {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut count = 0;
    for (at, line) in lines.enumerate() {
        count = at + 1;
        let Some((thread, text)) = line.split_once(' ') else {
            continue;
        };
        let text = text.trim_start();
        // Signals, and ends of threads.
        if text.starts_with("---") || text.starts_with("+++") {
            continue;
        }
        if let Some(resumed) = text.strip_prefix("<... ") {
            let rest = resumed.split_once(" resumed>").map(|(_, rest)| rest);
            if let (Some(call), Some(rest)) = (open.remove(thread), rest) {
                calls[call].ended = at;
                calls[call].text.push_str(rest);
            }
            continue;
        }
        let Some((name, text)) = text.split_once('(') else {
            continue;
        };
        let (text, ended) = match text.strip_suffix("<unfinished ...>") {
            // Closed, so that its arguments can be read if the rest never comes.
            Some(begun) => (begun.trim_end(), NEVER),
            None => (text, at),
        };
        if ended == NEVER {
            open.insert(thread, calls.len());
        }
        calls.push(Call {
            name: name.to_owned(),
            text: text.to_owned(),
            began: at,
            ended,
        });
    }
    for call in open.into_values() {
        calls[call].text.push(')');
    }
    (calls, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"10 write(3</a>, "one", 3) = 3
11 fsync(3</a> <unfinished ...>
10 write(3</a>, "<unfinished ...>", 16 <unfinished ...>
11 <... fsync resumed>)             = 0
--- nothing ---
10 --- SIGCHLD {si_signo=SIGCHLD} ---
10 <... write resumed>)             = 16
12 openat(AT_FDCWD</>, "/a", O_RDONLY) = -1 ENOENT (No such file or directory)
12 openat(AT_FDCWD</>, "/a", O_RDONLY <unfinished ...>
11 fdatasync(3</a> <unfinished ...>
12 <... openat resumed>) = 4</a>
11 +++ killed by SIGKILL +++
"#;

    #[test]
    fn a_call_ends_where_it_is_resumed() {
        let (calls, lines) = calls(LOG.lines());
        let of = |call: &Call| (call.name.clone(), call.began, call.ended, call.result());
        let found: Vec<_> = calls.iter().map(of).collect();
        let wanted = [
            ("write", 0, 0, Some(3)),
            ("fsync", 1, 3, Some(0)),
            ("write", 2, 6, Some(16)),
            ("openat", 7, 7, None),
            ("openat", 8, 10, Some(4)),
            ("fdatasync", 9, NEVER, None),
        ];
        assert_eq!(
            found,
            wanted.map(|(name, began, ended, result)| (name.to_owned(), began, ended, result))
        );
        assert_eq!(lines, 12);
        assert_eq!(
            calls[2].arguments(),
            ["3</a>", "\"<unfinished ...>\"", "16"]
        );
        assert_eq!(calls[5].arguments(), ["3</a>"]);
    }
}
