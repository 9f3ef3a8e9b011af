//! Memory of NVIDIA devices, as reported by the driver. A machine without `nvidia-smi` has no such
//! metric and logs nothing. A separate thread asks: the driver may take seconds to answer, and
//! scrapes must not wait.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use metrics::gauge;

const PROGRAM: &str = "nvidia-smi";
const QUESTION: [&str; 2] = [
    "--query-gpu=index,memory.used,memory.total",
    "--format=csv,noheader,nounits",
];
/// Interval of queries.
const PAUSE: Duration = Duration::from_secs(30);
/// Interval of checks for an answer, and their number before the program is killed: 10 s.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 100;
/// Unit of the answers, in bytes.
const MEBIBYTE: f64 = 1_048_576.0;

/// Memory of one device, in bytes.
#[derive(Clone, Debug, PartialEq)]
struct DeviceMemory {
    /// Index of the device, as `nvidia-smi` reports it.
    device: String,
    used: f64,
    total: f64,
}

/// Keeps the gauges current while this process lives, if there is a driver.
pub(super) fn spawn_poller() {
    let thread = thread::Builder::new().name("device-memory".to_owned());
    let following = thread.spawn(|| {
        let mut shown = Vec::new();
        // `None` ends the thread: a machine without the program does not get one while this process
        // lives.
        while let Some(found) = query(PROGRAM) {
            update_gauges(&mut shown, found);
            thread::sleep(PAUSE);
        }
    });
    if let Err(error) = following {
        tracing::warn!(%error, "device memory not measured");
    }
}

/// Sets the gauges. A device that is missing in the answer gets no number instead of its last one.
fn update_gauges(shown: &mut Vec<DeviceMemory>, found: Vec<DeviceMemory>) {
    for gone in shown.iter() {
        if !found.iter().any(|one| one.device == gone.device) {
            set(&gone.device, f64::NAN, f64::NAN);
        }
    }
    for one in &found {
        set(&one.device, one.used, one.total);
    }
    *shown = found;
}

fn set(device: &str, used: f64, total: f64) {
    for (kind, bytes) in [("used", used), ("total", total)] {
        gauge!("kinora_device_memory_bytes", "device" => device.to_owned(), "kind" => kind)
            .set(bytes);
    }
}

/// Queries the driver; empty if it fails or does not answer in time, `None` if there is none.
fn query(program: &str) -> Option<Vec<DeviceMemory>> {
    let asked = Command::new(program)
        .args(QUESTION)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let text = wait_for_output(asked.ok()?, LOOKS);
    Some(text.map_or_else(Vec::new, |text| {
        text.lines().filter_map(parse_line).collect()
    }))
}

/// The output of a child that ends successfully; it is killed after `looks` checks. The output must
/// fit into a pipe, as one line per device does.
fn wait_for_output(mut child: Child, looks: u32) -> Option<String> {
    // Polled, because the standard library cannot wait for a child with a limit, and a driver in
    // trouble keeps nvidia-smi waiting for minutes.
    for _ in 0..looks {
        match child.try_wait() {
            Ok(Some(status)) => {
                let output = child.wait_with_output().ok()?;
                return String::from_utf8(output.stdout)
                    .ok()
                    .filter(|_| status.success());
            }
            Ok(None) => thread::sleep(LOOK),
            Err(_) => break,
        }
    }
    // It may have ended by now; either way, reap it.
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Parses a line of index, used and total MiB. Devices that share the machine's memory have no
/// numbers.
fn parse_line(line: &str) -> Option<DeviceMemory> {
    let mut fields = line.split(',').map(str::trim);
    let device = fields.next().filter(|index| !index.is_empty())?;
    let mut bytes = || Some(fields.next()?.parse::<u32>().ok().map(f64::from)? * MEBIBYTE);
    Some(DeviceMemory {
        device: device.to_owned(),
        used: bytes()?,
        total: bytes()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_device_and_what_is_no_number_is_left_out() {
        let memory = parse_line("1, 512, 81559").unwrap();
        assert_eq!(memory.device, "1");
        assert_eq!(
            (memory.used, memory.total),
            (512.0 * MEBIBYTE, 81_559.0 * MEBIBYTE)
        );
        for line in [
            "",
            "0",
            "0, 1",
            "0, [N/A], [N/A]",
            ", 1, 2",
            "No devices were found",
        ] {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_not_asked_again_and_one_that_fails_is() {
        assert_eq!(query("/nonexistent/nvidia-smi"), None);
        assert_eq!(query("false"), Some(Vec::new()));
    }

    #[test]
    fn one_that_does_not_answer_is_ended() {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(wait_for_output(child, 1), None);
    }
}
