//! A server that stops answering while its connections stay: clients are told soon, and nothing is done twice.

use std::time::{Duration, Instant};

use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::{id, task};
use kinora_testkit::postgres::Server;

use crate::harness::{database, is_unavailable, open_now};
use crate::proxy::Proxy;

/// Far less than the lane waits for a commit, and far more than a client.
const SOON: Duration = Duration::from_secs(20);
/// Only a failing test takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p11_clients_of_a_server_that_does_not_answer_are_told_soon() {
    let url = database().await;
    let proxy = Proxy::before(Server::shared().port());
    let site = open_now(&proxy.address_of(&url)).await;
    site.submit(1, "one").await;
    proxy.hang(true);
    let begun = Instant::now();
    let asked = tokio::join!(
        site.tasks.insert(task(2, "one")),
        site.tasks.get("one", id(1)),
        site.keys.find_key(&[7; 32], 0),
        site.tasks.delete("one", id(9)),
    );
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(is_unavailable(&asked.0) && is_unavailable(&asked.1));
    assert!(is_unavailable(&asked.2) && is_unavailable(&asked.3));
    proxy.hang(false);
    // Whether the task was stored or not, the sums know it, and others follow.
    for number in 3.. {
        match site.tasks.insert(task(number, "one")).await {
            Ok(_) => break,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    }
    let agree = "SELECT tasks = (SELECT count(*) FROM tasks) FROM projects";
    let agree = tokio::task::block_in_place(|| Server::shared().run(&url, agree));
    assert_eq!(agree, "t");
}
