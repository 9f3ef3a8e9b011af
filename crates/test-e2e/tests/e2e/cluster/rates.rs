//! A key's requests per minute, over two API processes.

use std::time::Instant;

use super::Cluster;

/// Requests per minute of the limited key: a process takes one at a time from what both share.
const LIMIT: u64 = 60;

#[test]
fn p12_a_key_s_requests_per_minute_hold_over_two_apis() {
    let cluster = Cluster::new();
    let apis = [cluster.api(), cluster.api()];
    let limit = LIMIT.to_string();
    let key = cluster.command(&[
        "keys",
        "create",
        "--name",
        "limited",
        "--requests-per-minute",
        &limit,
    ]);
    let clients = apis.each_ref().map(|api| api.client_with(key.trim()));
    let begun = Instant::now();
    let (mut admitted, mut last) = (0, None);
    for number in 0..3 * LIMIT {
        let reply = clients[number as usize % 2].get("/v1/models");
        match reply.status {
            200 => admitted += 1,
            _ => {
                reply.refused(429, "rate_limit_exceeded");
                last = Some(reply);
            }
        }
    }
    // What the bucket held, and what has come since then: one a second.
    let come = begun.elapsed().as_secs() + 1;
    assert!(
        (LIMIT..=LIMIT + come).contains(&admitted),
        "{admitted} of {LIMIT}, and {come} more"
    );
    // A refusal of one tells when the other has room as well.
    let refused = last.unwrap();
    assert_eq!(
        refused.number("retry-after"),
        Some(1),
        "{}",
        refused.shown()
    );
    assert_eq!(refused.header("x-ratelimit-remaining-requests"), Some("0"));
    for client in &clients {
        kinora_test_e2e::until("a request to be let in", || {
            (client.get("/v1/models").status == 200).then_some(())
        });
    }
    // Another key is not held up by it.
    for api in &apis {
        assert_eq!(api.client_with(&cluster.key).get("/v1/models").status, 200);
    }
}
