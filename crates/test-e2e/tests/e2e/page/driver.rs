//! The program that drives the browser, `node/page/run.mjs`.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use kinora_test_e2e::workspace;
use serde_json::Value;

/// One at a time, and one for all scenarios: a browser is large, and takes a second of a processor to start.
static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

/// Runs a scenario, as a line for the program, and does by `obey` what it asks for.
pub(super) fn run(scenario: &Value, obey: impl FnMut(&str)) {
    let mut kept = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    // Not put back after a failure: the next scenario gets another one.
    let mut driver = kept.take().unwrap_or_else(Driver::start);
    let name = &scenario["scenario"];
    assert!(driver.passes(scenario, obey), "{name} failed");
    *kept = Some(driver);
}

/// It ends with this process, whose pipe it reads.
struct Driver {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Driver {
    fn start() -> Self {
        let folder = workspace().join("crates/test-e2e/node");
        let library = folder.join("node_modules/playwright-core/package.json");
        assert!(
            library.exists(),
            "{} is missing: ./test installs it",
            library.display()
        );
        let mut child = Command::new("node")
            .arg(folder.join("page/run.mjs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, to, from }
    }

    /// Has a scenario run, and obeys what it asks for. Whether it passed.
    fn passes(&mut self, scenario: &Value, mut obey: impl FnMut(&str)) -> bool {
        writeln!(self.to, "{scenario}").unwrap();
        for line in &mut self.from {
            let line = line.unwrap();
            println!("{line}");
            if line == "passed" {
                return true;
            }
            if let Some(word) = line.strip_prefix("ask ") {
                obey(word);
                writeln!(self.to, "done").unwrap();
            }
        }
        false
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It has ended already if a scenario failed, and not if what it asked for did.
        drop(self.child.kill());
        self.child.wait().unwrap();
    }
}
