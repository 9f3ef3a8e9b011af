//! Submits through the real router: plain, again, changed, several at once, torn off; and what
//! each answer must then be.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use futures_util::future::join_all;
use kinora_contract::spec::SPEC_VERSION;
use kinora_contract::{
    FrameSize, Priority, Size, TaskId, TaskPhase, TaskState, VideoInputs, VideoLength, VideoSpec,
};
use kinora_store::{InsertOutcome, NewTask, QueueBounds, SubmitBudgets};
use serde_json::json;
use tokio::task::unconstrained;

use crate::book::{BoundKey, Cause, number_of};
use crate::http::{Answer, Call};
use crate::world::{HOUR_MS, PROJECT_UNFINISHED_MAX, PROJECTS, PROMISE_MS, WAITING_MAX, World};

/// How long a key is kept: a promise of the contract, and no setting.
pub(crate) const KEY_KEPT_MS: u64 = 24 * HOUR_MS;

/// A submit, to be sent once or again. Its number is in its metadata, and so in its task.
#[derive(Clone, Debug)]
pub(crate) struct Submit {
    pub(crate) number: u64,
    pub(crate) project: usize,
    pub(crate) key: Option<String>,
    /// The draft whose final is asked for.
    pub(crate) draft: Option<TaskId>,
    pub(crate) body: String,
}

impl Submit {
    fn call(&self) -> Call {
        Call {
            idempotency_key: self.key.clone(),
            body: Some(self.body.clone()),
            ..Call::new("POST", "/v1/videos".to_owned())
        }
    }
}

/// What the book expects of a submit.
struct Expected {
    /// What the key is bound to, if it is.
    bound: Option<BoundKey>,
    full: bool,
    /// Whether places may be kept for the other project.
    promised: bool,
    /// Tasks of this number that were there before.
    before: BTreeSet<TaskId>,
}

impl World {
    /// A fresh request: of text, with references, a draft, or the final of `draft`.
    pub(crate) fn new_submit(&mut self, keyed: bool, draft: Option<(usize, TaskId)>) -> Submit {
        self.requests += 1;
        let number = self.requests;
        let project = draft.map_or_else(|| self.rng.below(2) as usize, |(project, _)| project);
        // A full database has a few free pages left, which short texts would not use up.
        let long = if self.full {
            " and a cloud".repeat(120)
        } else {
            String::new()
        };
        let metadata = json!({"request": number.to_string()});
        let body = match (draft, self.rng.below(4)) {
            (Some((_, id)), _) => {
                json!({"model": "kinora-a1", "draft_task_id": id.to_string(), "metadata": metadata})
            }
            (None, 0) => json!({
                "model": "kinora-a1", "prompt": format!("a boat{long}"), "metadata": metadata, "draft": true,
                "input_reference": "http://pictures.test/boat.png",
            }),
            (None, 1) => json!({
                "model": "kinora-b1", "prompt": format!("a tower{long}"), "metadata": metadata,
                "first_frame": "http://pictures.test/1.png",
                "last_frame": "http://pictures.test/2.png",
            }),
            (None, 2) => {
                json!({"model": "kinora-b1", "prompt": format!("a hill{long}"), "metadata": metadata})
            }
            (None, _) => {
                json!({"model": "kinora-a1", "prompt": format!("a road{long}"), "metadata": metadata})
            }
        };
        Submit {
            number,
            project,
            key: keyed.then(|| format!("key-{number}")),
            draft: draft.map(|(_, id)| id),
            body: body.to_string(),
        }
    }

    /// Sends `copies` of a request at once and judges the answers.
    pub(crate) async fn submit(&mut self, submit: &Submit, copies: usize) {
        let expected = self.expect(submit);
        let (router, key) = (self.service().router.clone(), &self.keys[submit.project]);
        let sent = (0..copies).map(|_| submit.call().send(router.clone(), key.clone()));
        let answers = join_all(sent).await;
        self.judge(submit, &expected, &answers).await;
    }

    /// Sends a request whose client goes away before the answer.
    pub(crate) async fn submit_torn(&mut self, submit: &Submit) {
        let expected = self.expect(submit);
        let router = self.service().router.clone();
        let sent = submit
            .call()
            .send(router, self.keys[submit.project].clone());
        // One that is refused at once is not listened to.
        let _ = unconstrained(sent).now_or_never();
        self.pass_through_inserts(submit.project).await;
        self.judge(submit, &expected, &[]).await;
    }

    /// Waits until the store has done whatever it was left with: a task for which there never is room comes behind it.
    async fn pass_through_inserts(&mut self, project: usize) {
        let random = [(); 10].map(|()| self.rng.next() as u8);
        let nobodys = NewTask {
            id: TaskId::from_parts(self.now_ms(), random),
            project: PROJECTS[project].to_owned(),
            spec: VideoSpec {
                version: SPEC_VERSION,
                model: "kinora-a1".to_owned(),
                prompt: "nothing".to_owned(),
                negative_prompt: None,
                seconds: VideoLength::Fixed(5),
                frame: FrameSize::Fixed(Size::new(1280, 720)),
                seed: 0,
                generate_audio: false,
                inputs: VideoInputs::Text,
                draft: false,
                final_of: None,
                edit: None,
            },
            files: Vec::new(),
            metadata: BTreeMap::new(),
            priority: Priority::Normal,
            idempotency: None,
            callback: None,
            trace: None,
            bounds: QueueBounds {
                project_bytes_max: 0,
                ..QueueBounds::NONE
            },
            cost: None,
            budgets: SubmitBudgets::default(),
        };
        let refused = self.witness.open().real.tasks.insert(nobodys).await;
        assert!(
            matches!(refused, Ok(InsertOutcome::QuotaFull(_))),
            "there is room: {refused:?}"
        );
    }

    fn expect(&mut self, submit: &Submit) -> Expected {
        let project = PROJECTS[submit.project];
        let now_ms = self.now_ms();
        let name = (project.to_owned(), submit.key.clone().unwrap_or_default());
        // Whatever the clock says: only a sweep frees it.
        let bound = self.book().keys.get(&name).cloned();
        if bound.as_ref().is_none_or(|key| key.maybe_free) {
            self.book().note(Cause::Submitted {
                request: submit.number,
            });
        }
        let unfinished =
            |phase: TaskPhase| matches!(phase, TaskPhase::Waiting | TaskPhase::Running);
        let waiting = self
            .book()
            .count(|task| task.state.phase() == TaskPhase::Waiting);
        let own = self
            .book()
            .count(|task| task.project == project && unfinished(task.state.phase()));
        let full = waiting >= WAITING_MAX || own >= PROJECT_UNFINISHED_MAX;
        // A place that was promised to the other project is kept for it for a while.
        let promised = self
            .book()
            .refused_at_ms
            .iter()
            .any(|(other, at_ms)| other != project && now_ms.abs_diff(*at_ms) <= PROMISE_MS);
        if full || promised {
            let mut book = self.book();
            let refused = &mut book.refused_at_ms;
            refused.insert(project.to_owned(), now_ms);
        }
        Expected {
            bound,
            full,
            promised,
            before: self.made_by(submit.number),
        }
    }

    fn made_by(&self, number: u64) -> BTreeSet<TaskId> {
        let book = self.book();
        book.tasks
            .iter()
            .filter(|(_, known)| number_of(&known.task) == Some(number))
            .map(|(id, _)| *id)
            .collect()
    }

    async fn judge(&mut self, submit: &Submit, expected: &Expected, answers: &[Answer]) {
        self.observe().await;
        let after = self.made_by(submit.number);
        let made = after.difference(&expected.before).next().copied();
        if let (Some(id), Some(key)) = (made, &submit.key) {
            let bound = BoundKey {
                request: submit.number,
                task: id,
                expires_at_ms: self.now_ms() + KEY_KEPT_MS,
                maybe_free: false,
            };
            let project = PROJECTS[submit.project].to_owned();
            self.book().keys.insert((project, key.clone()), bound);
        }
        if made.is_some() {
            assert!(!expected.full, "P12: accepted past the bounds: {submit:?}");
        }
        for answer in answers {
            self.trace()
                .result(&format!("{} {}", answer.status, answer.code()));
            let why = if self.injecting || !self.full {
                ""
            } else {
                ", disk full"
            };
            self.book().saw(format!("submit {}{why}", answer.status));
            if answer.has("idempotent-replayed")
                && submit.draft.is_some()
                && !self.has_draft(submit)
            {
                self.book()
                    .saw("final replayed without its draft".to_owned());
            }
            self.judge_one(submit, expected, made, answer);
        }
    }

    fn judge_one(
        &self,
        submit: &Submit,
        expected: &Expected,
        made: Option<TaskId>,
        answer: &Answer,
    ) {
        let bound = expected.bound.as_ref();
        match answer.status {
            200 => {
                let id: TaskId = answer.json()["id"].as_str().unwrap().parse().unwrap();
                let twin = bound
                    .filter(|key| key.request == submit.number)
                    .map(|key| key.task);
                let right =
                    Some(id) == made || (Some(id) == twin && answer.has("idempotent-replayed"));
                assert!(
                    right,
                    "P6: {submit:?} was answered with {id}, not {made:?} or {twin:?}"
                );
            }
            422 => {
                let other = bound.is_some_and(|key| key.request != submit.number);
                assert!(
                    other,
                    "P6: the key of {submit:?} was not reused: {answer:?}"
                );
            }
            429 => {
                let free = bound.is_none_or(|key| key.maybe_free);
                assert!(
                    (expected.full || expected.promised) && free,
                    "P12: refused within the bounds: {submit:?}"
                );
                assert!(answer.has("retry-after"), "P12: {answer:?}");
            }
            410 => {
                let expired = bound
                    .is_some_and(|key| self.book().phase(key.task) == Some(TaskPhase::Expired));
                assert!(expired, "P6: {submit:?}: {answer:?}");
            }
            400 => {
                assert_eq!(answer.code(), "draft_not_usable", "{submit:?}: {answer:?}");
                assert!(
                    bound.is_none_or(|key| key.maybe_free || key.request != submit.number),
                    "P6: a twin was judged again: {submit:?}: {answer:?}"
                );
                assert!(
                    !self.has_draft(submit),
                    "P4: a draft that is there cannot be used: {submit:?}"
                );
            }
            _ => self.may_be_away(answer),
        }
    }

    /// Whether the draft whose final is asked for can be used now.
    pub(crate) fn has_draft(&self, submit: &Submit) -> bool {
        let book = self.book();
        let draft = submit.draft.and_then(|id| book.tasks.get(&id));
        draft.is_some_and(|known| {
            matches!(known.task.state, TaskState::Completed(_))
                && known
                    .task
                    .expires_at_ms
                    .is_some_and(|end| self.now_ms() < end)
        })
    }

    /// The one answer that a fault of the service may have.
    pub(crate) fn may_be_away(&self, answer: &Answer) {
        assert!(
            self.may_fail() && answer.status == 503 && answer.has("retry-after"),
            "P11: with faults {}: {answer:?}",
            self.may_fail()
        );
    }
}
