//! A day of a cluster in little: traffic that rises and falls, cancels and deletions, and between them restarts, deaths, a
//! database and a bucket that are away. In the end every task that was accepted is what its client made of it.

use std::collections::BTreeSet;

use kinora_test_e2e::{RESULT_FILES, Setup, until};
use kinora_testkit::postgres::{Server as Postgres, Settings};
use kinora_testkit::s3::Fault;

use super::{BTreeMap, Client, Cluster, Server, elsewhere, setting};
use crate::dice::Dice;
use crate::support::{Download, square};

/// Tasks of the day; `KINORA_CLUSTER_DAY_TASKS` asks for another number.
const TASKS: usize = 24;
/// Hundredths of them, hour by hour.
const HOURS: [usize; 24] = [
    1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 6, 5, 5, 6, 6, 7, 8, 9, 8, 6, 4, 3, 1,
];
/// Tasks that may be unfinished when an hour ends.
const UNFINISHED_MAX: usize = 60;
/// Requests that meet a bucket in trouble.
const MET_MIN: u64 = 4;

struct Day<'c> {
    cluster: &'c Cluster,
    postgres: &'c Postgres,
    apis: [Server; 2],
    workers: [Server; 2],
    /// Of each API: those of the projects.
    clients: [[Client; 2]; 2],
    dice: Dice,
    orders: usize,
    /// Tasks and their projects.
    accepted: BTreeMap<String, usize>,
    unfinished: Vec<String>,
    cancelled: BTreeSet<String>,
}

fn worker(cluster: &Cluster) -> Server {
    let setup = cluster.process(Setup::on(&cluster.machine()).as_worker());
    let setup = setup.set("KINORA_WORKER_LEASE_SECONDS", 5);
    setup.start()
}

impl<'c> Day<'c> {
    fn begin(cluster: &'c Cluster, postgres: &'c Postgres) -> Self {
        let apis = [cluster.api_of_many(), cluster.api_of_many()];
        let projects = ["one", "two"].map(|name| cluster.project(&apis[0], name));
        Self {
            cluster,
            postgres,
            clients: apis
                .each_ref()
                .map(|api| projects.each_ref().map(|project| elsewhere(project, api))),
            apis,
            workers: [worker(cluster), worker(cluster)],
            dice: Dice(setting("KINORA_CLUSTER_SEED", 0xda7)),
            orders: 0,
            accepted: BTreeMap::new(),
            unfinished: Vec::new(),
            cancelled: BTreeSet::new(),
        }
    }

    /// A client of the project, at any API.
    fn client(&mut self, project: usize) -> Client {
        self.clients[self.dice.index(2)][project].clone()
    }

    /// Starts another API in the place of this one, which it returns.
    fn replace_api(&mut self, which: usize) -> Server {
        let api = self.cluster.api_of_many();
        for client in &mut self.clients[which] {
            *client = elsewhere(client, &api);
        }
        std::mem::replace(&mut self.apis[which], api)
    }

    fn submit(&mut self) {
        let project = self.dice.index(2);
        self.orders += 1;
        let client = self.client(project);
        let submit = client
            .request("POST", "/v1/videos")
            .json(&square("kinora-b1"));
        let order = format!("order-{}", self.orders);
        let id = submit
            .header("idempotency-key", order)
            .send()
            .video()
            .id()
            .to_owned();
        self.unfinished.push(id.clone());
        self.accepted.insert(id, project);
    }

    /// What clients do besides: they cancel some, and delete some that have ended.
    fn change_a_mind(&mut self) {
        let place = self.dice.index(self.accepted.len());
        let Some((id, project)) = self.accepted.iter().nth(place) else {
            return;
        };
        let (id, project) = (id.clone(), *project);
        let client = self.client(project);
        if client.video(&id).is_finished() {
            client.delete(&format!("/v1/videos/{id}")).ok();
            self.accepted.remove(&id);
            self.unfinished.retain(|one| *one != id);
            return;
        }
        let reply = client.post(&format!("/v1/videos/{id}/cancel"));
        // It may have ended meanwhile.
        assert!(matches!(reply.status, 200 | 409), "{}", reply.shown());
        if reply.status == 200 {
            self.cancelled.insert(id);
        }
    }

    fn befall(&mut self, hour: usize) {
        match hour {
            3 => {
                for place in &mut self.workers {
                    let old = std::mem::replace(place, worker(self.cluster));
                    old.terminate();
                    assert!(old.wait().0.success());
                }
            }
            8 => std::mem::replace(&mut self.workers[0], worker(self.cluster)).kill(),
            11 => {
                self.postgres.stop();
                let refused = self.client(0).submit_json(&square("kinora-b1"));
                refused.refused(503, "storage_unavailable");
                self.postgres.resume();
                for api in &self.apis {
                    until("an API to be ready", || {
                        (api.anonymous().get("/readyz").status == 200).then_some(())
                    });
                }
            }
            14 => {
                for which in 0..self.apis.len() {
                    let old = self.replace_api(which);
                    old.terminate();
                    assert!(old.wait().0.success());
                }
            }
            17 => {
                let before = self.cluster.s3.faults_met();
                self.cluster.s3.fail(Fault::Status(503));
                self.submit();
                until("requests to fail", || {
                    (self.cluster.s3.faults_met() >= before + MET_MIN).then_some(())
                });
                self.cluster.s3.recover();
            }
            20 => self.replace_api(1).kill(),
            _ => {}
        }
    }

    fn pass_hour(&mut self, hour: usize, submits: usize) {
        for _ in 0..submits {
            self.submit();
            if self.dice.index(6) == 0 {
                self.change_a_mind();
            }
        }
        self.befall(hour);
        while self.unfinished.len() > UNFINISHED_MAX {
            let id = self.unfinished[0].clone();
            let client = self.client(self.accepted[&id]);
            until("the oldest task to end", || {
                client.video(&id).is_finished().then_some(())
            });
            self.unfinished.remove(0);
        }
    }

    fn end(mut self) {
        let mut completed = 0;
        for (id, project) in self.accepted.clone() {
            let client = self.client(project);
            let ended = until("the end of a task", || {
                let video = client.video(&id);
                video.is_finished().then_some(video)
            });
            let wanted = match self.cancelled.contains(&id) {
                true => "failed",
                false => "completed",
            };
            assert_eq!(ended.status(), wanted, "{ended:#?}");
            if wanted == "completed" {
                completed += 1;
                Download::of(&client, &ended.content());
            }
        }
        until("only files of results to be left", || {
            (self.cluster.objects().len() == RESULT_FILES * completed).then_some(())
        });
        println!(
            "{} tasks, of which {completed} are completed and kept",
            self.orders
        );
    }
}

#[test]
fn a_day_with_all_that_happens_in_it_loses_nothing() {
    let postgres = Postgres::start(Settings {
        fsync: true,
        ..Settings::default()
    });
    let cluster = Cluster::on(postgres.database());
    let mut day = Day::begin(&cluster, &postgres);
    let (tasks, mut share) = (setting("KINORA_CLUSTER_DAY_TASKS", TASKS), 0);
    for (hour, percent) in HOURS.into_iter().enumerate() {
        let before = share * tasks / 100;
        share += percent;
        day.pass_hour(hour, share * tasks / 100 - before);
    }
    day.end();
}
