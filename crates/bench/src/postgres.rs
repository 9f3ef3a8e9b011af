//! API processes over PostgreSQL beside one over SQLite, in turn and in the same run.

use std::net::SocketAddr;
use std::sync::Arc;

use kinora_testkit::postgres::{Server, Settings};

use crate::finish;
use crate::load::{self, Load};
use crate::outcome::Outcome;
use crate::rows::{CONNECTIONS, POLLED_TASKS, pairs, say};
use crate::servers::{Kinora, Servers};

/// Connections of raw statements; the server takes a hundred.
const RAW_CONNECTIONS: [u32; 2] = [1, 64];
/// Connections that send raw batches.
const BATCHERS: u32 = 4;

/// The servers that are compared, each with the tasks that it is asked for.
struct Compared<'k> {
    embedded: &'k Kinora,
    polls: Arc<Load>,
    over: [&'k Kinora; 2],
    polls_over: Arc<Load>,
}

/// Prints a row for each load and number of processes.
pub(crate) async fn compare(servers: &Servers) -> Outcome<()> {
    let database = Server::start(Settings {
        fsync: true,
        more: vec!["shared_buffers=256MB".to_owned()],
        ..Settings::default()
    });
    let url = database.database();
    kinora_store::migrate(&url).await?;
    let embedded = servers.kinora().await?;
    let (one, other) = (
        servers.kinora_over(&url).await?,
        servers.kinora_over(&url).await?,
    );
    let submit = servers.submit_request();
    let ids = load::submit_some(embedded.address, &submit, POLLED_TASKS).await?;
    let ids_over = load::submit_some(one.address, &submit, POLLED_TASKS).await?;
    let mut compared = Compared {
        embedded: &embedded,
        polls: Arc::new(servers.poll_requests(&ids)),
        over: [&one, &other],
        polls_over: Arc::new(servers.poll_requests(&ids_over)),
    };
    say(
        "| what | processes | connections | PostgreSQL/s | SQLite/s | ratio | p50 ms | p99 ms | SQLite p50 | SQLite p99 |",
    );
    say("|---|---|---|---|---|---|---|---|---|---|");
    compared.measure("poll, queued").await?;
    finish::finish_all(&embedded.work).await?;
    finish::finish_all(&one.work).await?;
    compared.measure("poll, finished").await?;
    let submit = Arc::new(submit);
    (compared.polls, compared.polls_over) = (submit.clone(), submit);
    compared.measure("durable submit").await?;
    raw(database, url).await
}

/// Prints what the same server does with raw statements, which no service stands before.
async fn raw(database: Server, url: String) -> Outcome<()> {
    let measured = move || {
        for connections in RAW_CONNECTIONS {
            let rate = database.raw_selects(&url, connections);
            say(&format!(
                "| raw select of one row | | {connections} | {rate:.0} |"
            ));
            let rate = database.raw_inserts(&url, 1, connections);
            say(&format!(
                "| raw insert of one row | | {connections} | {rate:.0} |"
            ));
        }
        for rows in [16, 64] {
            let rate = database.raw_inserts(&url, rows, BATCHERS);
            say(&format!(
                "| raw rows in inserts of {rows} | | {BATCHERS} | {rate:.0} |"
            ));
        }
    };
    Ok(tokio::task::spawn_blocking(measured).await?)
}

impl Compared<'_> {
    async fn measure(&self, what: &str) -> Outcome<()> {
        let embedded = [self.embedded.address];
        let over: Vec<SocketAddr> = self.over.iter().map(|one| one.address).collect();
        for processes in 1..=over.len() {
            let over = over.get(..processes).unwrap_or_default();
            for connections in CONNECTIONS {
                let theirs = (&embedded[..], &self.polls);
                let row = pairs(connections, (over, &self.polls_over), theirs).await?;
                say(&format!("| {what} | {processes} | {connections} | {row} |"));
            }
        }
        Ok(())
    }
}
