//! One client whose tasks fail at once: what they leave in memory is bounded in bytes.

use kinora_test_e2e::{Server, Setup};
use serde_json::json;

use super::scale;
use crate::support::quick;

/// Memory of the process that is resident now, in MiB.
fn resident_mib(server: &Server) -> u64 {
    let path = format!("/proc/{}/status", server.process_id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap();
    kib / 1024
}

/// The cache of ended tasks may take 64 MiB; the rest is what the allocator keeps.
const GROWTH_MIB_MAX: u64 = 160;

#[test]
fn p15_fat_tasks_that_fail_at_once_leave_a_bounded_trace_in_memory() {
    let server = Setup::default().start();
    let (hostile, polite) = (server.newcomer(), server.client());
    let warm = polite.submit(&quick("kinora-b1"));
    polite.wait_completed(warm.id());
    let before = resident_mib(&server);
    let url = |number: usize| format!("http://127.0.0.1/{number}/{}", "u".repeat(2_000));
    let mut fat = quick("kinora-a1");
    fat["prompt"] = json!("\u{1f30a}".repeat(5_000));
    fat["negative_prompt"] = json!("n".repeat(2_500));
    fat["reference_images"] = json!((0..9).map(url).collect::<Vec<_>>());
    let mut last = None;
    for _ in 0..scale(150, 6_000) {
        let reply = hostile.submit_json(&fat);
        // The bound on unfinished tasks may be met for a moment.
        if reply.status == 200 {
            last = Some(reply.video().id().to_owned());
        }
    }
    let failed = hostile.wait_for(&last.unwrap(), "failed");
    assert_eq!(failed["error"]["code"], "reference_forbidden_address");
    let grown = resident_mib(&server).saturating_sub(before);
    assert!(grown < GROWTH_MIB_MAX, "{grown} MiB more than before");
    let video = polite.submit(&quick("kinora-b1"));
    polite.wait_completed(video.id());
}
