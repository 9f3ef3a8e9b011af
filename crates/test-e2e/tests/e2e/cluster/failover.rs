//! A primary that dies under APIs and workers, and a standby that takes its place: what a client was told is accepted is
//! completed, once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kinora_test_e2e::{Client, until};
use kinora_testkit::postgres::{Server as Postgres, Settings};

use super::outage::order;
use super::{Cluster, Server, assert_made_once};
use crate::support::Download;

/// Tasks that are accepted before the primary dies, and as many by the one that takes its place.
const BETWEEN: usize = 10;

/// What the clients see.
#[derive(Default)]
struct Seen {
    accepted: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Seen {
    /// Submits until it is to stop. What is refused is repeated under the same key.
    fn submit(&self, client: &Client, name: &str) {
        let mut number = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let reply = order(client, &format!("{name}-{number}"));
            if reply.status == 200 {
                let id = reply.video().id().to_owned();
                self.accepted.lock().unwrap().push(id);
                number += 1;
            } else {
                reply.refused(503, "storage_unavailable");
            }
            std::thread::yield_now();
        }
    }

    fn count(&self) -> usize {
        self.accepted.lock().unwrap().len()
    }

    fn wait_for_more(&self) {
        let before = self.count();
        until("more tasks to be accepted", || {
            (self.count() >= before + BETWEEN).then_some(())
        });
    }
}

/// Ends the clients, also where a test fails.
struct Stop<'s>(&'s Seen);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

#[test]
fn p01_a_standby_takes_over_under_load_and_every_acknowledged_task_is_completed_once() {
    let primary = Postgres::start(Settings::default());
    let database = primary.database();
    let name = database.rsplit('/').next().unwrap();
    let standby = primary.standby(None);
    let cluster = Cluster::on(format!(
        "postgres://kinora@127.0.0.1:{},127.0.0.1:{}/{name}?target_session_attrs=read-write",
        primary.port(),
        standby.port(),
    ));
    let apis = [cluster.api_of_many(), cluster.api_of_many()];
    let workers = [cluster.worker(), cluster.worker()];
    let clients = apis.each_ref().map(Server::client);
    let seen = Seen::default();
    std::thread::scope(|scope| {
        let stop = Stop(&seen);
        for (client, name) in clients.iter().zip(["one", "other"]) {
            scope.spawn(|| seen.submit(client, name));
        }
        seen.wait_for_more();
        primary.kill();
        standby.promote();
        seen.wait_for_more();
        drop(stop);
    });
    let accepted = seen.accepted.into_inner().unwrap();
    for id in &accepted {
        let video = clients[0].wait_completed(id);
        Download::of(&clients[1], &video.content());
    }
    assert_made_once(&cluster, &workers, &accepted);
    let count = |of: &str| -> usize { standby.run(name, of).parse().unwrap() };
    assert_eq!(count("SELECT sum(completed) FROM tallies"), accepted.len());
    assert_eq!(count("SELECT count(*) FROM tasks"), accepted.len());
}
