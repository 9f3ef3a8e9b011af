//! Work beside a backlog: a step reads a bounded number of rows, however many others there are.

use std::time::Duration;

use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{NOW, id};
use kinora_store::{DeliveryDone, DeliveryNext, DeliveryRequest};
use kinora_testkit::postgres::Server;

use crate::harness::{database, open_now};

/// Only a failing test looks so often.
const LOOKS_MAX: u64 = 600;
const PAUSE: Duration = Duration::from_millis(100);

fn run(url: &str, statement: &str) -> String {
    tokio::task::block_in_place(|| Server::shared().run(url, statement))
}

/// Rows of a table that were read and changed so far, once at least `changed` have been: the server
/// counts a little later.
async fn counted(url: &str, table: &str, changed: u64) -> (u64, u64) {
    let ask = format!(
        "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) || ' ' || n_tup_upd \
         FROM pg_stat_user_tables WHERE relname = '{table}'"
    );
    for _ in 0..LOOKS_MAX {
        let answer = run(url, &ask);
        let (read, updated) = answer.split_once(' ').unwrap();
        let updated = updated.parse().unwrap();
        if updated >= changed {
            return (read.parse().unwrap(), updated);
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("the server has not counted {changed} changes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p08_a_delivery_costs_no_more_for_a_backlog() {
    const ROUNDS: u64 = 50;
    const EACH: u64 = 4;
    let url = database().await;
    let site = open_now(&url).await;
    let fill = format!(
        "INSERT INTO webhooks (id, project, url, secret, created_at_ms) \
           VALUES ('a', 'one', 'http://a', decode(repeat('00', 32), 'hex'), 0); \
         INSERT INTO deliveries (event, webhook, state, due_ms) \
           SELECT 'evt_' || n, 'a', 'pending', CASE WHEN n % 3 = 0 THEN {NOW} + 1000000 ELSE 0 END \
           FROM generate_series(1, 20000) n"
    );
    run(&url, &fill);
    let (before, _) = counted(&url, "deliveries", 0).await;
    for _ in 0..ROUNDS {
        let request = DeliveryRequest {
            count: 64,
            each: EACH as usize,
            lease_ms: 60_000,
        };
        let taken = site.webhooks.lease_deliveries(request).await.unwrap();
        assert_eq!(taken.len() as u64, EACH);
        for one in taken {
            let done = DeliveryDone {
                number: one.number,
                token: one.token,
                answer: Ok(204),
                next: DeliveryNext::Delivered,
            };
            site.webhooks.complete_delivery(done).await.unwrap();
        }
    }
    let changes = 2 * ROUNDS * EACH;
    let (after, _) = counted(&url, "deliveries", changes).await;
    let read = after - before;
    assert!(
        read < 50 * changes,
        "{read} rows read for {changes} changes"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p08_a_position_costs_no_more_for_a_backlog() {
    const WAITING: u64 = 20_000;
    let url = database().await;
    let site = open_now(&url).await;
    for (number, project) in [(1, "greedy"), (2, "polite")] {
        site.submit(number, project).await;
    }
    let copies = format!(
        "INSERT INTO tasks SELECT (jsonb_populate_record(t, jsonb_build_object(\
           'id', 'video_01k' || lpad(n::text, 23, '0'), 'seq', 100 + n, \
           'model', t.model || n % 3))).* \
         FROM tasks t, generate_series(1, {WAITING}) n WHERE t.project = 'greedy'; \
         ANALYZE tasks"
    );
    run(&url, &copies);
    let (before, _) = counted(&url, "tasks", 0).await;
    let mut readings = 0;
    let read = loop {
        readings += 1;
        let found = site.tasks.positions(&[id(1), id(2)]).await.unwrap();
        assert!(found.iter().all(Option::is_some), "{found:?}");
        let (after, _) = counted(&url, "tasks", 0).await;
        if after > before + 1_000 {
            break after - before;
        }
        assert!(readings < LOOKS_MAX);
        tokio::time::sleep(PAUSE).await;
    };
    // The heads of four lines.
    assert!(
        read < readings * 6_000,
        "{read} rows in {readings} readings"
    );
}
