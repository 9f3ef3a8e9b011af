//! Runs a program to its end and passes on the lines that it prints. A dropped future kills the program.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Number of lines that an error repeats.
const LINES_MAX: usize = 15;
/// The rest of a longer line is dropped.
const LINE_BYTES_MAX: usize = 2000;
/// Maximum time for a program that only says what it is. The first start of a large library reads gigabytes.
const QUESTION_LIMIT: Duration = Duration::from_mins(5);
/// Number of attempts to start a program that is busy, and the wait after each.
const BUSY_MAX: u32 = 100;
const BUSY_WAIT: Duration = Duration::from_millis(20);

/// How a program ended.
#[derive(Debug)]
pub(super) struct ProgramEnd {
    /// Whether it ended with status 0.
    pub(super) is_success: bool,
    /// The last lines that it printed, on both streams, and how it ended otherwise.
    pub(super) lines: Vec<String>,
}

impl ProgramEnd {
    /// All lines as one text.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Runs `command`; `on_line` gets each line that is not empty.
///
/// If this process is killed, the program's next line finds no reader, and that ends pip as well.
pub(super) async fn run(command: &mut Command, on_line: &dyn Fn(&str)) -> io::Result<ProgramEnd> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = spawn(command).await?;
    let last = RefCell::new(VecDeque::new());
    let keep = |line: &str| {
        on_line(line);
        let mut last = last.borrow_mut();
        if last.len() == LINES_MAX {
            last.pop_front();
        }
        last.push_back(line.to_owned());
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (status, ..) = tokio::join!(
        child.wait(),
        read_lines(stdout, &keep),
        read_lines(stderr, &keep)
    );
    let status = status?;
    let mut lines: Vec<String> = last.into_inner().into();
    if !status.success() {
        lines.push(format!("({status})"));
    }
    Ok(ProgramEnd {
        is_success: status.success(),
        lines,
    })
}

/// Spawns `command`. A program that was just written is busy as long as a process that another thread spawned meanwhile still
/// has this process's open files, for some milliseconds.
async fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_MAX {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                sleep(BUSY_WAIT).await;
            }
            spawned => return spawned,
        }
    }
    command.spawn()
}

/// Runs a program that answers a question; an end by itself, also one in time, is `Ok`.
pub(super) async fn ask(command: &mut Command) -> io::Result<ProgramEnd> {
    let asked = timeout(QUESTION_LIMIT, run(command, &|_| {})).await;
    asked.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
}

async fn read_lines(stream: Option<impl AsyncRead + Unpin>, keep: &dyn Fn(&str)) {
    let Some(mut stream) = stream else {
        return;
    };
    let (mut buffer, mut line) = ([0; 4096], Vec::new());
    loop {
        // A stream that breaks has ended; the status says the rest.
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        // Progress bars overwrite their line.
        for byte in &buffer[..count] {
            match byte {
                b'\n' | b'\r' => keep_line(&mut line, keep),
                byte if line.len() < LINE_BYTES_MAX => line.push(*byte),
                _ => {}
            }
        }
        if count == 0 {
            return keep_line(&mut line, keep);
        }
    }
}

fn keep_line(line: &mut Vec<u8>, keep: &dyn Fn(&str)) {
    let text = String::from_utf8_lossy(line);
    let text = text.replace('\t', " ");
    let text: String = text.chars().filter(|one| !one.is_control()).collect();
    if !text.trim().is_empty() {
        keep(text.trim_end());
    }
    line.clear();
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn lines_of_both_streams_arrive_and_the_last_are_kept() {
        let seen = Mutex::new(Vec::new());
        let script = "printf 'a\\rb\\n\\nc'; printf 'oops\\033[31m\\n' >&2; exit 3";
        let push = |line: &str| seen.lock().unwrap().push(line.to_owned());
        let end = run(&mut shell(script), &push).await.unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        assert_eq!(seen, ["a", "b", "c", "oops[31m"]);
        assert!(!end.is_success);
        assert!(end.text().ends_with("(exit status: 3)"), "{end:?}");

        let many = "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); done";
        let end = run(&mut shell(many), &|_| {}).await.unwrap();
        assert_eq!(end.lines.len(), LINES_MAX);
        assert_eq!(end.lines.last().unwrap(), "99");
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_cut() {
        let long = "head -c 100000 /dev/zero | tr '\\0' x";
        let end = run(&mut shell(long), &|_| {}).await.unwrap();
        assert_eq!(end.text().len(), LINE_BYTES_MAX);
    }
}
