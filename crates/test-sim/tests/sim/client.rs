//! What else clients do through the real router, and what each answer must then be.

use kinora_blobs::measure_bytes;
use kinora_contract::{Artifact, FailureCode, StoredFile, TaskId, TaskPhase, TaskState};

use crate::book::Cause;
use crate::http::{Answer, Call};
use crate::world::{PROJECTS, World};

impl World {
    /// Any task that was ever seen, with its project.
    pub(crate) fn any_task(&mut self) -> Option<(TaskId, usize)> {
        let all: Vec<_> = {
            let book = self.book();
            let known = book.tasks.iter();
            let known = known.map(|(id, known)| (*id, known.task.project.clone()));
            known.chain(book.gone.clone()).collect()
        };
        let (id, project) = self.rng.pick(&all)?;
        Some((id, usize::from(project == PROJECTS[1])))
    }

    async fn ask(&self, project: usize, method: &'static str, path: String) -> Answer {
        let answer =
            Call::new(method, path).send(self.service().router.clone(), self.keys[project].clone());
        let answer = answer.await;
        self.trace().result(&answer.status.to_string());
        answer
    }

    /// `GET /v1/videos/{id}`; now and then with the other project's key.
    pub(crate) async fn get(&mut self, id: TaskId, project: usize) {
        let stranger = self.rng.percent(10);
        let asked = if stranger { 1 - project } else { project };
        let answer = self.ask(asked, "GET", format!("/v1/videos/{id}")).await;
        let book = self.book();
        let known = book.tasks.get(&id).filter(|_| !stranger);
        match (answer.status, known) {
            (200, Some(known)) => {
                let (object, task) = (answer.json(), &known.task);
                assert_eq!(
                    object["status"],
                    task.status().unwrap().as_str(),
                    "P2: {object}"
                );
                assert_eq!(object["progress"], task.progress, "P2: {object}");
                assert_eq!(
                    object["metadata"]["request"], task.metadata["request"],
                    "P7: {object}"
                );
                let done = matches!(task.state, TaskState::Completed(_));
                assert_eq!(object["result_url"].is_string(), done, "P4: {object}");
            }
            (410, Some(known)) => assert_eq!(known.task.state, TaskState::Expired),
            (404, None) => {}
            (200, None) => panic!("P7: a task that is gone or foreign was shown: {answer:?}"),
            (404, Some(known)) => panic!("P1: {known:?} was denied: {answer:?}"),
            _ => self.may_be_away(&answer),
        }
    }

    /// `GET /v1/videos`, page by page.
    pub(crate) async fn list(&mut self) {
        let project = self.rng.below(2) as usize;
        let (mut listed, mut after) = (Vec::new(), String::new());
        loop {
            let answer = self
                .ask(project, "GET", format!("/v1/videos?limit=7{after}"))
                .await;
            if answer.status != 200 {
                return self.may_be_away(&answer);
            }
            let page = answer.json();
            let ids = page["data"].as_array().unwrap().iter();
            listed.extend(ids.map(|object| object["id"].as_str().unwrap().to_owned()));
            if page["has_more"] != true {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        let book = self.book();
        let own = book.tasks.iter().rev().filter(|(_, known)| {
            known.task.project == PROJECTS[project] && known.task.status().is_some()
        });
        let own: Vec<String> = own.map(|(id, _)| id.to_string()).collect();
        assert_eq!(listed, own, "P1: the list is not what was accepted");
    }

    /// `POST /v1/videos/{id}/cancel`.
    pub(crate) async fn cancel(&mut self, id: TaskId, project: usize) {
        let before = self.book().phase(id);
        self.book().note(Cause::Cancelled {
            task: id,
            failure: FailureCode::Cancelled.into(),
        });
        let answer = self
            .ask(project, "POST", format!("/v1/videos/{id}/cancel"))
            .await;
        self.observe().await;
        match answer.status {
            200 => {
                assert!(
                    before.is_some_and(|phase| !phase.is_terminal()),
                    "P2: {before:?} was cancelled"
                );
                assert_eq!(
                    self.book().phase(id),
                    Some(TaskPhase::Failed),
                    "P2: not cancelled: {answer:?}"
                );
            }
            409 => assert!(
                matches!(before, Some(TaskPhase::Completed | TaskPhase::Failed)),
                "P2: {before:?}"
            ),
            410 => assert_eq!(before, Some(TaskPhase::Expired)),
            404 => assert_eq!(before, None, "P1: {answer:?}"),
            _ => self.may_be_away(&answer),
        }
    }

    /// `DELETE /v1/videos/{id}`.
    pub(crate) async fn delete(&mut self, id: TaskId, project: usize) {
        let before = self.book().phase(id);
        self.book().note(Cause::Deleted { task: id });
        let answer = self
            .ask(project, "DELETE", format!("/v1/videos/{id}"))
            .await;
        self.observe().await;
        match answer.status {
            200 => assert_eq!(
                self.book().phase(id),
                None,
                "P2: an acknowledged delete is lost"
            ),
            404 => assert_eq!(before, None, "P1: {answer:?}"),
            _ => self.may_be_away(&answer),
        }
    }

    /// `GET /v1/videos/{id}/content`, every byte of one variant.
    pub(crate) async fn content(&mut self, id: TaskId, project: usize) {
        let names = [
            "video",
            "thumbnail",
            "spritesheet",
            "first_frame",
            "last_frame",
        ];
        let name = names[self.rng.below(names.len() as u64) as usize];
        let answer = self
            .ask(
                project,
                "GET",
                format!("/v1/videos/{id}/content?variant={name}"),
            )
            .await;
        let book = self.book();
        let state = book.tasks.get(&id).map(|known| &known.task.state);
        match (answer.status, state) {
            (404, Some(TaskState::Completed(artifact))) => {
                assert_eq!(file_of(artifact, name), None, "P4: {id} {name}");
            }
            (200, Some(TaskState::Completed(artifact))) => {
                let Some(file) = file_of(artifact, name) else {
                    panic!("P4: {id} has no {name}");
                };
                match &answer.body {
                    Some(bytes) => {
                        assert_eq!(measure_bytes(&file.key, bytes), *file, "P4: {id} {name}");
                    }
                    None => assert!(self.may_fail(), "P4: {id} {name} broke off"),
                }
            }
            (409, Some(TaskState::Waiting | TaskState::Running | TaskState::Failed(_))) => {}
            (410, Some(TaskState::Expired)) | (404, None) => {}
            (200 | 404 | 409 | 410, _) => panic!("P4: {state:?} gave {answer:?}"),
            _ => self.may_be_away(&answer),
        }
    }
}

/// The file of a result that a variant names.
fn file_of<'a>(artifact: &'a Artifact, variant: &str) -> Option<&'a StoredFile> {
    match variant {
        "video" => Some(&artifact.video),
        "thumbnail" => Some(&artifact.thumbnail),
        "spritesheet" => Some(&artifact.spritesheet),
        "first_frame" => artifact.first_frame.as_ref(),
        _ => artifact.last_frame.as_ref(),
    }
}
