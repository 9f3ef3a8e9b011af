//! The jobs of a server: queue, work and history in one list. A job gets on by one step at each look.

use serde_json::{Value, json};

use crate::comfyui::behaviour::{Behaviour, Works};

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Running,
    Done,
    Failed(&'static str),
    Interrupted,
}

#[derive(Clone, Debug)]
struct Job {
    id: String,
    graph: Value,
    state: State,
    /// Looks into its history that come too early.
    lag: u32,
    /// Whether an identical graph was done before, so that nothing is saved.
    is_cached: bool,
}

/// All jobs since the last restart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs(Vec<Job>);

impl Jobs {
    pub(crate) fn submit(&mut self, id: &str, graph: Value, behaviour: &Behaviour) {
        let is_cached = self.0.iter().any(|job| job.graph == graph);
        self.0.push(Job {
            id: id.to_owned(),
            graph,
            state: State::Pending,
            lag: behaviour.lag,
            is_cached,
        });
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|job| job.id == id)
    }

    fn get_mut(&mut self, id: &str) -> Option<&mut Job> {
        self.0.iter_mut().rev().find(|job| job.id == id)
    }

    /// `GET /api/jobs/{id}`.
    pub(crate) fn look(&mut self, id: &str, behaviour: &Behaviour) -> Option<Value> {
        let job = self.get_mut(id)?;
        let mut sent = json!({"id": id, "outputs_count": 0});
        let status = match &job.state {
            State::Pending => "pending",
            State::Running => "in_progress",
            State::Done => "completed",
            State::Failed(kind) => {
                sent["execution_error"] = error(kind);
                "failed"
            }
            State::Interrupted => "cancelled",
        };
        sent["status"] = json!(status);
        if job.state == State::Done && job.lag == 0 {
            sent["outputs"] = outputs(job, behaviour);
        }
        job.state = match (&job.state, &behaviour.works) {
            (State::Pending, _) => State::Running,
            (State::Running, Works::Well) => State::Done,
            (State::Running, Works::Badly(kind)) => State::Failed(kind),
            (other, _) => other.clone(),
        };
        Some(sent)
    }

    /// `GET /history/{id}`.
    pub(crate) fn history(&mut self, id: &str, behaviour: &Behaviour) -> Value {
        let Some(job) = self.get_mut(id) else {
            return json!({});
        };
        if job.lag > 0 && job.state == State::Done {
            job.lag -= 1;
            return json!({});
        }
        let (word, messages) = match &job.state {
            State::Pending | State::Running => return json!({}),
            State::Done => ("success", json!([["execution_success", {}]])),
            State::Failed(kind) => ("error", json!([["execution_error", error(kind)]])),
            State::Interrupted => ("error", json!([["execution_interrupted", {}]])),
        };
        let status =
            json!({"status_str": word, "completed": word == "success", "messages": messages});
        json!({id: {"outputs": outputs(job, behaviour), "status": status}})
    }

    /// Removes a job that waits; returns whether it did.
    pub(crate) fn delete(&mut self, id: &str) -> bool {
        let before = self.0.len();
        self.0
            .retain(|job| job.id != id || job.state != State::Pending);
        self.0.len() < before
    }

    /// Interrupts a job at work; returns whether it did.
    pub(crate) fn interrupt(&mut self, id: &str) -> bool {
        let running = self.get_mut(id).filter(|job| job.state == State::Running);
        running.map(|job| job.state = State::Interrupted).is_some()
    }
}

fn error(kind: &str) -> Value {
    json!({"node_id": "3", "node_type": "KSampler", "exception_type": kind, "exception_message": "it broke"})
}

fn outputs(job: &Job, behaviour: &Behaviour) -> Value {
    if job.is_cached {
        return json!({});
    }
    let nodes = job.graph.as_object().into_iter().flatten();
    let saves = nodes.filter(|(_, node)| node["class_type"] == "SaveVideo");
    let put_out = saves.map(|(id, node)| {
        let prefix = node["inputs"]["filename_prefix"].as_str().unwrap_or_default();
        let (folder, name) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let file = |kind: &str| json!({"filename": format!("{name}_00001_.mp4"), "subfolder": folder, "type": kind});
        let items = json!({behaviour.key: [file("temp"), file("output")], "animated": [true]});
        (id.clone(), items)
    });
    Value::Object(put_out.collect())
}
