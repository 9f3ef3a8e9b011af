//! PgBouncer in transaction mode between the store and its database, with fewer connections than the store has.

use std::sync::Arc;

use kinora_contract::ManualClock;
use kinora_store::conformance::bench::Bench as _;
use kinora_store::conformance::fixtures::NOW;
use kinora_store::conformance::{handles, keys, restart, secrets};
use kinora_testkit::postgres::{Pooler, Server};

use crate::harness::{Databases, database, open_at};

/// Connections to each database.
const CONNECTIONS: u32 = 3;

/// `None` where PgBouncer is missing and nobody insists on it.
fn pooler() -> Option<Pooler> {
    let pooler = Pooler::before(Server::shared(), CONNECTIONS);
    let needed = std::env::var_os("KINORA_REQUIRE_PGBOUNCER").is_some();
    assert!(
        pooler.is_some() || !needed,
        "no PgBouncer is installed: on Debian, `apt-get install pgbouncer`"
    );
    pooler
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_work_through_a_pooler_and_hear_of_each_other_directly() {
    let Some(pooler) = pooler() else {
        return;
    };
    let pooler = Arc::new(pooler);
    // Each case has a database of its own.
    let through = || Databases::through(pooler.clone());
    handles::twins_on_two_handles_make_one_task(&through()).await;
    handles::two_handles_never_claim_the_same_task(&through()).await;
    handles::a_cancel_is_seen_by_the_worker_on_another_handle(&through()).await;
    handles::a_submit_is_heard_on_another_handle(&through()).await;
    handles::a_preview_is_read_on_another_handle(&through()).await;
    handles::a_change_is_read_on_another_handle(&through()).await;
    handles::two_handles_never_fetch_for_the_same_task(&through()).await;
    restart::everything_acknowledged_is_there_after_a_restart(&through()).await;
    keys::of_many_first_keys_one_is_added(&through()).await;
    secrets::two_handles_share_one_signing_key(&through()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_alone_everything_works_by_polling() {
    let Some(pooler) = pooler() else {
        return;
    };
    let url = pooler.address_of(&database().await);
    let clock = Arc::new(ManualClock::at(NOW));
    let both = [
        open_at(&url, clock.clone()).await,
        open_at(&url, clock).await,
    ];
    for number in 0..20 {
        both[number as usize % 2].submit(number, "one").await;
    }
    for turn in 0..20 {
        let claim = both[turn % 2].claim_one().await;
        both[1 - turn % 2].complete(&claim).await.unwrap();
    }
    let claims = both[0].claim(1).await;
    assert!(claims.is_empty(), "{claims:?}");
}
