//! What must hold on a disk that a power loss left, by what the service had said before.

use std::collections::{BTreeMap, BTreeSet};

use kinora_test_e2e::replay::Entry;
use kinora_test_e2e::{DataFolder, Setup};
use serde_json::Value;

use super::load::Recorded;
use crate::orders::{Order, Target, faults_of_database, files_that_are_not_whole, listed};

/// Orders that are placed again on each image.
const REPEATS: usize = 3;

/// Knows what the service said, and when.
pub(super) struct Witness<'r> {
    key: &'r str,
    /// The JSON of every 200, with its moment.
    said: Vec<(usize, Value)>,
    orders: &'r [Order],
}

/// What had been said of the tasks before a moment.
#[derive(Debug, Default)]
struct Said<'r> {
    tasks: BTreeSet<&'r str>,
    /// Those that had ended, and how.
    ended: BTreeMap<&'r str, &'r str>,
    deleted: BTreeSet<&'r str>,
}

impl<'r> Said<'r> {
    /// Adds an answer; returns whether it promises something that no answer before it did.
    fn add(&mut self, answer: &'r Value) -> bool {
        let text = |name: &str| answer[name].as_str().unwrap_or_default();
        let id = text("id");
        match (text("object"), text("status")) {
            ("video", status @ ("completed" | "failed")) => {
                self.tasks.insert(id);
                self.ended.insert(id, status).is_none()
            }
            ("video", _) => self.tasks.insert(id),
            ("video.deleted", _) => self.deleted.insert(id),
            _ => false,
        }
    }
}

impl<'r> Witness<'r> {
    pub(super) fn of(recorded: &'r Recorded) -> Self {
        let answers = recorded.recording.answers.iter();
        let said: Vec<(usize, Value)> = answers
            .filter_map(|answer| Some((answer.at, json_of(&answer.bytes)?)))
            .collect();
        let witness = Self {
            key: &recorded.key,
            said,
            orders: &recorded.orders,
        };
        // Every answer to a client is in the recording.
        let all = witness.said_before(usize::MAX);
        for id in recorded.orders.iter().filter_map(|one| one.id.as_deref()) {
            assert!(all.tasks.contains(id), "no recorded answer names {id}");
        }
        let completed = all.ended.values().any(|status| *status == "completed");
        assert!(completed && !all.deleted.is_empty(), "{all:?}");
        witness
    }

    fn said_before(&self, moment: usize) -> Said<'_> {
        let mut before = Said::default();
        for (_, answer) in self.said.iter().take_while(|(at, _)| *at < moment) {
            before.add(answer);
        }
        before
    }

    /// The moments of the answers that promised something new.
    pub(super) fn promises(&self) -> Vec<usize> {
        let mut before = Said::default();
        let promises = self.said.iter().filter(|(_, answer)| before.add(answer));
        promises.map(|(at, _)| *at).collect()
    }

    /// The last task that was accepted and that nobody wanted to be deleted, with the moment of the answer.
    pub(super) fn last_accepted(&self) -> (usize, &str) {
        let kept = self.orders.iter().filter(|one| !one.was_to_be_deleted());
        let kept: BTreeSet<&str> = kept.filter_map(|one| one.id.as_deref()).collect();
        let (mut before, mut last) = (Said::default(), None);
        for (at, answer) in &self.said {
            let id = answer["id"].as_str().unwrap_or_default();
            if before.add(answer) && answer["status"] == "queued" && kept.contains(id) {
                last = Some((*at, id));
            }
        }
        last.unwrap()
    }

    /// What does not hold on a disk that was cut off at `moment`.
    pub(super) fn judge(&self, image: &[Entry], moment: usize) -> Vec<String> {
        let folder = DataFolder::with_key(self.key);
        for entry in image {
            entry.write(&folder.path()).unwrap();
        }
        // What it runs is not looked at.
        let setup = Setup::on(&folder)
            .set("KINORA_WORKER_SLOTS", 1)
            .set("START_PAUSE_SECONDS_MAX", 0);
        let server = match setup.try_start() {
            Ok(server) => server,
            Err(ended) => return vec![format!("the service does not start: {ended:#?}")],
        };
        let before = self.said_before(moment);
        let mut wrong = Vec::new();
        match listed(&server.client().forgetful()) {
            Ok(tasks) => {
                wrong.extend(self.judge_tasks(&before, &tasks));
                let to = Target::of(&server);
                wrong.extend(files_that_are_not_whole(&tasks, &to));
                wrong.extend(self.judge_repeats(&before, &to));
            }
            Err(refused) => wrong.push(format!("everything is lost: {refused}")),
        }
        server.kill();
        wrong.extend(faults_of_database(&folder.path()));
        wrong
    }

    fn judge_tasks(&self, before: &Said<'_>, tasks: &BTreeMap<String, Value>) -> Vec<String> {
        let mut wrong = Vec::new();
        let deleted_later: BTreeSet<&str> = self
            .orders
            .iter()
            .filter(|order| order.was_to_be_deleted())
            .filter_map(|order| order.id.as_deref())
            .collect();
        for id in &before.tasks {
            match tasks.get(*id) {
                Some(_) if before.deleted.contains(id) => wrong.push(format!("{id} came back")),
                // Its deletion may have been stored, and not been answered yet.
                None if !deleted_later.contains(id) => wrong.push(format!("{id} is lost")),
                _ => {}
            }
        }
        for (id, status) in &before.ended {
            let now = tasks.get(*id).and_then(|task| task["status"].as_str());
            if now.is_some_and(|now| now != *status) {
                wrong.push(format!("{id} was {status} and is {now:?}"));
            }
        }
        let mut prompts = BTreeSet::new();
        for (id, task) in tasks {
            if !prompts.insert(task["prompt"].to_string()) {
                wrong.push(format!("{id} is another's double: {task}"));
            }
        }
        wrong
    }

    /// Orders that were answered are answered with the same task when they are placed again.
    fn judge_repeats(&self, before: &Said<'_>, to: &Target) -> Vec<String> {
        let stands = |order: &&Order| {
            let id = order.id.as_deref();
            id.is_some_and(|id| before.tasks.contains(id)) && !order.was_to_be_deleted()
        };
        let last = self.orders.iter().rev().filter(stands).take(REPEATS);
        last.filter_map(|order| {
            let now = order.place_again(to);
            (order.id.as_ref() != Some(&now)).then(|| format!("{order:?} became {now}"))
        })
        .collect()
    }
}

/// The JSON body of a 200.
fn json_of(answer: &[u8]) -> Option<Value> {
    answer.strip_prefix(b"HTTP/1.1 200 ")?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    serde_json::from_slice(&answer[end + 4..]).ok()
}
