//! Clients that place orders, cancel some, delete some and poll, and remember every answer,
//! whatever happens to the service meanwhile. An order that was not answered is placed again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kinora_test_e2e::{Client as HttpClient, Reply, Server, raw, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::dice::Dice;

/// Orders of one client that may be under way; further ones are cancelled.
const OPEN_MAX: usize = 2;

/// Where the service is at the moment.
#[derive(Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    key: String,
}

impl Target {
    pub(crate) fn of(server: &Server) -> Self {
        Self {
            address: server.address(),
            key: server.client().key().to_owned(),
        }
    }

    /// One call; `None` when it breaks off.
    pub(crate) fn call(&self, head: &str, body: &str, more: &str) -> Option<Reply> {
        let (key, length) = (&self.key, body.len());
        let request = format!(
            "{head} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n{body}"
        );
        raw::try_exchange(self.address, request.as_bytes())
    }

    /// As [`Self::call`]; `None` also when the service has no answer for the moment.
    fn answered(&self, head: &str, body: &str, more: &str) -> Option<Reply> {
        let reply = self.call(head, body, more)?;
        (!matches!(reply.status, 429 | 503)).then_some(reply)
    }
}

/// What a client knows of its order.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Open,
    /// Told to be cancelled; not answered yet.
    Cancelling,
    /// Its status, which stands.
    Ended(String),
    /// Told to be deleted; not answered yet.
    Deleting,
    Deleted,
}

/// What clients have reached together.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    pub(crate) orders: usize,
    pub(crate) completed: usize,
}

/// Lets all clients act at the same time, again and again, each with a pause in between, until `enough`
/// is reached.
pub(crate) fn keep_busy(
    clients: &mut [Client],
    to: &Target,
    pause: Duration,
    enough: impl Fn(&Reached) -> bool,
) {
    let (over, reached) = (AtomicBool::new(false), Mutex::new(Reached::default()));
    thread::scope(|scope| {
        let _over = SetAtEnd(&over);
        for client in clients {
            let (over, reached) = (&over, &reached);
            scope.spawn(move || {
                let _over = SetAtEnd(over);
                while !over.load(Ordering::Relaxed) {
                    let (orders, completed) = (client.orders.len(), client.completed());
                    client.act(to);
                    let mut reached = reached.lock().unwrap();
                    reached.orders += client.orders.len() - orders;
                    // One that was deleted does not count again.
                    reached.completed += client.completed().saturating_sub(completed);
                    drop(reached);
                    thread::sleep(pause);
                }
            });
        }
        until("enough to look at", || {
            let ended = over.load(Ordering::Relaxed) || enough(&reached.lock().unwrap());
            ended.then_some(())
        });
    });
}

/// Sets the flag when its owner ends, also by a panic: the test would wait for the others.
struct SetAtEnd<'f>(&'f AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An order.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) body: Value,
    /// Its Idempotency-Key.
    pub(crate) key: String,
    /// Its task, once that was answered.
    pub(crate) id: Option<String>,
    cancelled: bool,
    told: Told,
}

/// A client.
pub(crate) struct Client {
    name: u64,
    dice: Dice,
    pub(crate) orders: Vec<Order>,
}

impl Client {
    pub(crate) fn new(name: u64, seed: u64) -> Self {
        Self {
            name,
            dice: Dice(seed),
            orders: Vec::new(),
        }
    }

    /// Orders that it knows to be completed.
    fn completed(&self) -> usize {
        let completed = |order: &&Order| order.told == Told::Ended("completed".to_owned());
        self.orders.iter().filter(completed).count()
    }

    /// Does one thing or another; `None` when it was not answered.
    pub(crate) fn act(&mut self, to: &Target) -> Option<()> {
        if let Some(done) = self.repeat(to) {
            return done;
        }
        match self.dice.below(10) {
            0..=5 => {
                self.write_order();
                self.place(self.orders.len() - 1, to)
            }
            6..=8 => {
                let open = self.any(|order| order.told == Told::Open);
                open.map_or(Some(()), |number| self.poll(number, to))
            }
            _ => {
                let ended = self.any(|order| matches!(order.told, Told::Ended(_)))?;
                if self.dice.below(3) == 0 {
                    self.orders[ended].told = Told::Deleting;
                    self.delete(ended, to)
                } else {
                    self.poll(ended, to)
                }
            }
        }
    }

    /// Does again what was not answered; `None` where there is nothing.
    fn repeat(&mut self, to: &Target) -> Option<Option<()>> {
        if let Some(number) = self.any(|order| order.id.is_none()) {
            return Some(self.place(number, to));
        }
        if let Some(number) = self.any(|order| order.told == Told::Cancelling) {
            return Some(self.cancel(number, to));
        }
        let number = self.any(|order| order.told == Told::Deleting)?;
        Some(self.delete(number, to))
    }

    fn any(&mut self, wanted: impl Fn(&Order) -> bool) -> Option<usize> {
        let numbers = 0..self.orders.len();
        let fitting: Vec<usize> = numbers.filter(|n| wanted(&self.orders[*n])).collect();
        (!fitting.is_empty()).then(|| fitting[self.dice.index(fitting.len())])
    }

    fn write_order(&mut self) {
        let open = self.orders.iter().filter(|one| one.told == Told::Open);
        let cancelled = open.count() >= OPEN_MAX || self.dice.below(3) > 0;
        let key = format!("order-{}-{}", self.name, self.orders.len());
        let body = json!({
            "model": "kinora-b1", "prompt": format!("A paper boat, {key}"), "seconds": 2,
            "size": "480x480", "seed": self.dice.below(1000),
        });
        let told = if cancelled {
            Told::Cancelling
        } else {
            Told::Open
        };
        self.orders.push(Order {
            body,
            key,
            id: None,
            cancelled,
            told,
        });
    }

    fn place(&mut self, number: usize, to: &Target) -> Option<()> {
        let order = &mut self.orders[number];
        let id = order.place(to)?;
        let before = order.id.replace(id.clone());
        assert!(before.is_none_or(|before| before == id), "{order:?}");
        Some(())
    }

    fn cancel(&mut self, number: usize, to: &Target) -> Option<()> {
        let order = &mut self.orders[number];
        let reply = to.answered(&format!("POST {}/cancel", order.path()), "", "")?;
        match reply.status {
            // It had ended before.
            409 => order.told = Told::Open,
            _ => order.told = Told::Ended(status(&reply)),
        }
        Some(())
    }

    fn delete(&mut self, number: usize, to: &Target) -> Option<()> {
        let order = &mut self.orders[number];
        let reply = to.answered(&format!("DELETE {}", order.path()), "", "")?;
        // The answer to an earlier try may not have come.
        assert!(matches!(reply.status, 200 | 404), "{}", reply.shown());
        order.told = Told::Deleted;
        Some(())
    }

    fn poll(&mut self, number: usize, to: &Target) -> Option<()> {
        let order = &mut self.orders[number];
        let reply = to.answered(&format!("GET {}", order.path()), "", "")?;
        let status = status(&reply);
        match &order.told {
            Told::Ended(before) => assert_eq!(*before, status, "{order:?}"),
            _ if matches!(&*status, "completed" | "failed") => order.told = Told::Ended(status),
            _ => {}
        }
        Some(())
    }

    /// Brings every order to its end, and gives those that did not end as they should: lost ones, and
    /// ones that failed although nobody cancelled them.
    pub(crate) fn settle(&mut self, to: &Target) -> Vec<String> {
        until("an answer to every order", || match self.repeat(to) {
            Some(_) => None,
            None => Some(()),
        });
        let mut wrong = Vec::new();
        for order in &self.orders {
            let end = until("the end of an order", || {
                let reply = to.answered(&format!("GET {}", order.path()), "", "")?;
                let ended = reply.status != 200 || reply.video().is_finished();
                ended.then_some(reply)
            });
            let code = |reply: &Reply| reply.json()["error"]["code"].clone();
            let right = match (&order.told, end.status) {
                (Told::Deleted, 404) => true,
                (Told::Ended(before), 200) if *before != status(&end) => false,
                (told, 200) if *told != Told::Deleted => {
                    status(&end) == "completed" || order.cancelled && code(&end) == "cancelled"
                }
                _ => false,
            };
            if !right {
                wrong.push(format!("{order:?}: {}", end.shown()));
            }
        }
        wrong
    }
}

impl Order {
    fn path(&self) -> String {
        format!("/v1/videos/{}", self.id.as_deref().unwrap_or_default())
    }

    /// As [`Self::place`], until there is an answer.
    pub(crate) fn place_again(&self, to: &Target) -> String {
        until("an answer to an order", || self.place(to))
    }

    /// Places it, for the first time or again; gives the task.
    pub(crate) fn place(&self, to: &Target) -> Option<String> {
        let key = format!("Idempotency-Key: {}\r\n", self.key);
        let reply = to.answered("POST /v1/videos", &self.body.to_string(), &key)?;
        Some(reply.video().id().to_owned())
    }

    /// Whether a client has asked for its end.
    pub(crate) fn was_to_be_deleted(&self) -> bool {
        matches!(self.told, Told::Deleting | Told::Deleted)
    }
}

fn status(reply: &Reply) -> String {
    reply.video().status().to_owned()
}

/// All tasks of a project by id.
pub(crate) fn listed(client: &HttpClient) -> Result<BTreeMap<String, Value>, String> {
    let (mut found, mut after) = (BTreeMap::new(), String::new());
    loop {
        let reply = client.get(&format!("/v1/videos?limit=100{after}"));
        if reply.status != 200 {
            return Err(reply.shown());
        }
        let (page, videos) = reply.list();
        for video in &videos {
            if found
                .insert(video.id().to_owned(), (**video).clone())
                .is_some()
            {
                return Err(format!("listed twice: {video:?}"));
            }
        }
        if page["has_more"] != true {
            return Ok(found);
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
}

/// Files of completed tasks whose bytes are not those that were recorded with the task.
pub(crate) fn files_that_are_not_whole(
    tasks: &BTreeMap<String, Value>,
    to: &Target,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let completed = tasks
        .iter()
        .filter(|(_, task)| task["status"] == "completed");
    for (id, _) in completed {
        for variant in ["video", "thumbnail", "spritesheet", "last_frame"] {
            let reply = to.call(
                &format!("GET /v1/videos/{id}/content?variant={variant}"),
                "",
                "",
            );
            let whole = reply.as_ref().is_some_and(|reply| {
                let digest = Sha256::digest(&reply.body);
                let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                let recorded = reply.header("etag") == Some(&*format!("\"{hash}\""));
                reply.status == 200 && recorded && !reply.body.is_empty()
            });
            if !whole {
                let status = reply.map(|reply| reply.status);
                wrong.push(format!("{variant} of {id} is not whole ({status:?})"));
            }
        }
    }
    wrong
}

/// What SQLite finds wrong with the database of a data folder whose service is stopped.
pub(crate) fn faults_of_database(folder: &Path) -> Option<String> {
    let check = || {
        let conn = rusqlite::Connection::open(folder.join("kinora.db"))?;
        conn.pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0))
    };
    match check() {
        Ok(verdict) if verdict == "ok" => None,
        Ok(verdict) => Some(verdict),
        Err(error) => Some(error.to_string()),
    }
}
