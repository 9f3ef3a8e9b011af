//! `kill -9` of API processes and workers, one after another, while a client submits through any of them. What was
//! acknowledged is there in the end, made once.

use super::{BTreeMap, Client, Cluster, Server, completed, elsewhere, setting};
use crate::dice::Dice;
use crate::support::{Download, square};

/// Kills of one run; `KINORA_CLUSTER_KILLS` asks for another number.
const KILLS: u64 = 200;
/// Tasks that may be unfinished before the client waits.
const UNFINISHED_MAX: usize = 6;

/// Two APIs and two workers.
struct Machines<'c> {
    cluster: &'c Cluster,
    apis: [Option<Server>; 2],
    /// Of each API.
    clients: [Client; 2],
    workers: [Option<Server>; 2],
}

impl<'c> Machines<'c> {
    fn start(cluster: &'c Cluster) -> Self {
        let apis = [cluster.api(), cluster.api()];
        let client = apis[0].client();
        Self {
            cluster,
            clients: apis.each_ref().map(|api| elsewhere(&client, api)),
            apis: apis.map(Some),
            workers: [Some(cluster.short_leased()), Some(cluster.short_leased())],
        }
    }

    /// Kills one of the four, and starts another in its place.
    fn kill(&mut self, which: usize) {
        let place = match which {
            0 | 1 => &mut self.apis[which],
            _ => &mut self.workers[which - 2],
        };
        if let Some(server) = place.take() {
            server.kill();
        }
        if which > 1 {
            *place = Some(self.cluster.short_leased());
            return;
        }
        let api = self.cluster.api();
        self.clients[which] = elsewhere(&self.clients[which], &api);
        *place = Some(api);
    }
}

#[test]
fn kills_of_any_process_lose_nothing_and_publish_nothing_twice() {
    let cluster = Cluster::new();
    let mut machines = Machines::start(&cluster);
    let kills = setting("KINORA_CLUSTER_KILLS", KILLS);
    let mut dice = Dice(setting("KINORA_CLUSTER_SEED", 0x1b_1a7e));
    // By the number of the order.
    let mut accepted: BTreeMap<u64, String> = BTreeMap::new();
    let mut unfinished = Vec::new();
    let mut orders = 0;
    for _ in 0..kills {
        while unfinished.len() < UNFINISHED_MAX {
            orders += 1;
            let order = format!("order-{orders}");
            let client = &machines.clients[dice.index(2)];
            let submit = client
                .request("POST", "/v1/videos")
                .json(&square("kinora-b1"));
            let id = submit.header("idempotency-key", order).send().video();
            accepted.insert(orders, id.id().to_owned());
            unfinished.push(id.id().to_owned());
        }
        machines.kill(dice.index(4));
        let client = &machines.clients[dice.index(2)];
        unfinished.retain(|id| !client.video(id).is_finished());
        // What was answered before the kill is answered again.
        let (number, id) = accepted.iter().nth(dice.index(accepted.len())).unwrap();
        let submit = client
            .request("POST", "/v1/videos")
            .json(&square("kinora-b1"));
        let again = submit.header("idempotency-key", format!("order-{number}"));
        assert_eq!(again.send().video().id(), id);
    }
    let client = &machines.clients[0];
    for id in accepted.values() {
        let video = client.wait_completed(id);
        Download::of(client, &video.content());
    }
    kinora_test_e2e::until("only files of results to be left", || {
        (cluster.objects().len() == kinora_test_e2e::RESULT_FILES * accepted.len()).then_some(())
    });
    assert_eq!(completed(&cluster), accepted.len());
    let listed = client.get("/v1/videos?limit=100").ok();
    assert_eq!(
        listed["data"].as_array().unwrap().len(),
        accepted.len().min(100)
    );
}
