//! What a server answers, and what it remembers of having been asked.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::comfyui::behaviour::Behaviour;
use crate::comfyui::classes;
use crate::comfyui::jobs::Jobs;
use crate::comfyui::socket::Sockets;
use crate::http::{Answer, Request};

/// Everything that a server knows.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) behaviour: Behaviour,
    pub(crate) jobs: Jobs,
    pub(crate) sockets: Sockets,
    pub(crate) requests: Vec<Request>,
    /// The names of all jobs that began, in their order; one that ran twice is there twice.
    pub(crate) begun: Vec<String>,
    /// The names of jobs that were stopped.
    pub(crate) stopped: Vec<String>,
    /// The graph of each begun job.
    pub(crate) graphs: Vec<Value>,
    /// Uploaded files by name, with their folder.
    pub(crate) uploads: BTreeMap<String, Vec<u8>>,
    /// Looks at its memory that are left until it is free, since it was told to free it.
    pub(crate) freeing: Option<u32>,
    /// Bytes that it has freed and PyTorch still holds.
    pub(crate) freed: u64,
    /// Number of looks at jobs that were there.
    pub(crate) looks: usize,
}

impl State {
    /// Answers a request; `None` closes the connection without an answer.
    pub(crate) fn answer(&mut self, request: &Request) -> Option<Answer> {
        if let Some((name, value)) = self.behaviour.wants
            && request.header(name) != Some(value)
        {
            return Some(Answer::json(401, &json!({"error": "unauthorized"})));
        }
        let (method, path) = request.line.split_once(' ').unwrap_or_default();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        Some(match (method, &segments[..]) {
            ("GET", ["system_stats"]) => self.stats(),
            ("POST", ["free"]) => {
                let order = request.json();
                if order["unload_models"] == true && order["free_memory"] == true {
                    self.freeing = self.behaviour.frees_after;
                }
                Answer::json(200, &json!({}))
            }
            ("GET", ["object_info", class]) => {
                let info = classes::info(class, &self.behaviour);
                let found = info.map_or(json!({}), |info| json!({*class: info}));
                Answer::json(200, &found)
            }
            ("POST", ["prompt"]) => return self.submit(&request.json()),
            ("GET", ["api", "jobs", id]) if self.behaviour.has_jobs => self.look(id),
            ("POST", ["api", "jobs", id, "cancel"]) => self.cancel(id),
            ("GET", ["history", id]) => Answer::json(200, &self.jobs.history(id, &self.behaviour)),
            ("GET", ["queue"]) => self.queue(),
            ("POST", ["queue"]) => {
                let ids = request.json()["delete"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                for id in ids.iter().filter_map(Value::as_str) {
                    if self.jobs.delete(id) {
                        self.stopped.push(id.to_owned());
                    }
                }
                Answer::json(200, &json!({}))
            }
            ("POST", ["interrupt"]) => {
                let body = request.json();
                let id = body["prompt_id"].as_str().unwrap_or_default();
                if self.jobs.interrupt(id) {
                    self.stopped.push(id.to_owned());
                }
                Answer::json(200, &json!({}))
            }
            ("POST", ["upload", "image"]) => self.upload(request),
            ("GET", ["view"]) => self.view(request),
            _ => Answer::no_route(method),
        })
    }

    fn queue(&mut self) -> Answer {
        let foreign = json!([0, "a job of somebody else", {}, {}, []]);
        let running: Vec<Value> = match self.behaviour.works_for {
            0 => Vec::new(),
            _ => vec![foreign],
        };
        self.behaviour.works_for = self.behaviour.works_for.saturating_sub(1);
        Answer::json(200, &json!({"queue_running": running, "queue_pending": []}))
    }

    /// Memory is freed some looks after the order, as by a server that is still busy.
    fn stats(&mut self) -> Answer {
        if self.behaviour.fails > 0 {
            self.behaviour.fails -= 1;
            return Answer::json(500, &json!({}));
        }
        match &mut self.freeing {
            _ if self.behaviour.works_for > 0 => {}
            Some(0) => self.free(),
            Some(looks) => *looks -= 1,
            None => {}
        }
        let Behaviour {
            version,
            held,
            unseen,
            device_bytes,
            ..
        } = self.behaviour;
        let device = match device_bytes {
            Some(total) => {
                json!({"name": "cuda:0", "type": "cuda", "index": 0, "vram_total": total,
                "vram_free": total - held - unseen + self.freed, "torch_vram_total": held, "torch_vram_free": self.freed})
            }
            // The memory of the machine under both names: what PyTorch holds is not known.
            None => json!({"name": "cpu", "type": "cpu", "index": null, "vram_total": held,
                "vram_free": held, "torch_vram_total": held, "torch_vram_free": held}),
        };
        Answer::json(
            200,
            &json!({"system": {"comfyui_version": version}, "devices": [device]}),
        )
    }

    /// Frees some memory, which PyTorch returns when all of it is free.
    fn free(&mut self) {
        let Behaviour {
            held,
            unseen,
            frees_at_a_time,
            ..
        } = &mut self.behaviour;
        self.freed += frees_at_a_time.unwrap_or(u64::MAX).min(*held - self.freed);
        if self.freed == *held {
            (*held, *unseen, self.freed) = (0, 0, 0);
        }
    }

    fn submit(&mut self, sent: &Value) -> Option<Answer> {
        if self.behaviour.lost > 0 {
            self.behaviour.lost -= 1;
            return None;
        }
        let given = sent["prompt_id"].as_str().unwrap_or_default();
        if !is_uuid(given) {
            let error = json!({"type": "invalid_prompt_id", "message": "prompt_id must be a UUID"});
            return Some(Answer::json(
                400,
                &json!({"error": error, "node_errors": {}}),
            ));
        }
        let (graph, uploads) = (&sent["prompt"], &self.uploads);
        let refusal = classes::refusal(graph, &self.behaviour, |file| uploads.contains_key(file));
        if let Some(refusal) = refusal {
            return Some(Answer::json(400, &refusal));
        }
        if self.behaviour.refuses_duplicates && self.jobs.has(given) {
            return Some(Answer::json(
                409,
                &json!({"error": "prompt_id already exists"}),
            ));
        }
        let id = match self.behaviour.names_jobs {
            true => "00000000-0000-4000-8000-000000000000",
            false => given,
        };
        self.jobs.submit(id, graph.clone(), &self.behaviour);
        self.begun.push(id.to_owned());
        self.graphs.push(graph.clone());
        if self.behaviour.unanswered > 0 {
            self.behaviour.unanswered -= 1;
            return None;
        }
        let answer = json!({"prompt_id": id, "number": self.begun.len(), "node_errors": {}});
        Some(Answer::json(200, &answer))
    }

    fn look(&mut self, id: &str) -> Answer {
        match self.jobs.look(id, &self.behaviour) {
            Some(job) => {
                self.looks += 1;
                Answer::json(200, &job)
            }
            None => Answer::json(404, &json!({"error": "Job not found"})),
        }
    }

    fn cancel(&mut self, id: &str) -> Answer {
        if !self.behaviour.has_cancel {
            return Answer::no_route("POST");
        }
        let is_stopped = self.jobs.delete(id) || self.jobs.interrupt(id);
        if is_stopped {
            self.stopped.push(id.to_owned());
        }
        Answer::json(200, &json!({"cancelled": is_stopped}))
    }

    fn upload(&mut self, request: &Request) -> Answer {
        let form = request.form();
        let field = |name: &str| {
            let found = form.iter().find(|(one, ..)| one == name);
            found.map(|(_, _, bytes)| String::from_utf8_lossy(bytes).into_owned())
        };
        let file = form.iter().find(|(name, ..)| name == "image");
        let Some((_, Some(name), bytes)) = file else {
            return Answer::json(400, &json!({}));
        };
        let folder = field("subfolder").unwrap_or_default();
        let whole = match folder.is_empty() {
            true => name.clone(),
            false => format!("{folder}/{name}"),
        };
        self.uploads.insert(whole, bytes.clone());
        Answer::json(
            200,
            &json!({"name": name, "subfolder": folder, "type": "input"}),
        )
    }

    fn view(&self, request: &Request) -> Answer {
        let name = request.parameter("filename");
        let is_film = name.ends_with(".mp4") && request.parameter("type") == "output";
        match is_film {
            true => Answer {
                status: 200,
                kind: "video/mp4",
                headers: String::new(),
                body: self.behaviour.film.clone(),
            },
            false => Answer::no_route("GET"),
        }
    }
}

/// As ComfyUI demands of a name: a UUID in lower case.
fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'))
}
