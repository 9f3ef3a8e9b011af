//! Reads what servers say of jobs: the few fields that matter, from any JSON, and the film among what a node put
//! out. Every text is bounded, and none reaches a client.

use kinora_contract::FailureCode;
use serde_json::Value;

use crate::servers::{AnswerError, shown};

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// Waiting.
    Pending,
    /// In progress.
    Running,
    /// Done.
    Completed,
    /// Ended without a film.
    Failed {
        /// The failure code for the client.
        code: FailureCode,
        /// Node and error; private.
        text: String,
    },
    /// A word that this protocol does not have.
    Unknown(String),
}

/// A job as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobAnswer {
    pub(crate) state: JobState,
    /// What each node put out, by node; `Null` if the answer does not say.
    pub(crate) outputs: Value,
}

/// Reads `GET /api/jobs/{id}`.
pub(crate) fn job(body: &[u8], id: &str) -> Result<JobAnswer, AnswerError> {
    let sent: Value = serde_json::from_slice(body)?;
    if sent["id"].as_str() != Some(id) {
        return Err(AnswerError::OtherJob);
    }
    let word = sent["status"].as_str();
    let state = match word.ok_or(AnswerError::Status)? {
        "pending" => JobState::Pending,
        "in_progress" => JobState::Running,
        "completed" => JobState::Completed,
        // Before 0.9.0 an interrupted job has failed, too, without an error.
        "failed" => match sent.get("execution_error") {
            None => ended_badly(sent.get("execution_status")),
            error => failed(error),
        },
        "cancelled" => interrupted(),
        other => JobState::Unknown(shown(other.as_bytes())),
    };
    let outputs = sent.get("outputs").cloned().unwrap_or_default();
    Ok(JobAnswer { state, outputs })
}

/// Whether a 404 comes from `GET /api/jobs/{id}`, which says in JSON that it does not know the job. The 404 of a server
/// or a proxy that lacks the call says nothing of the job.
pub(crate) fn is_of_jobs(body: &[u8]) -> bool {
    let sent: Result<Value, _> = serde_json::from_slice(body);
    sent.is_ok_and(|sent| sent.get("error").is_some())
}

/// Finds the event that ended a job among its messages, `[[name, data], ...]`.
fn ended_badly(status: Option<&Value>) -> JobState {
    let messages = status.and_then(|status| status.get("messages")?.as_array());
    let named = |name: &str| {
        let mut all = messages.into_iter().flatten();
        all.find(|one| one[0].as_str() == Some(name))
    };
    match named("execution_interrupted") {
        Some(_) => interrupted(),
        None => failed(named("execution_error").and_then(|one| one.get(1))),
    }
}

fn interrupted() -> JobState {
    JobState::Failed {
        code: FailureCode::GenerationFailed,
        text: "somebody interrupted the job at its server".to_owned(),
    }
}

fn failed(error: Option<&Value>) -> JobState {
    let text = |name: &str| {
        error
            .and_then(|error| error.get(name)?.as_str())
            .unwrap_or("?")
    };
    let kind = text("exception_type");
    let told = format!(
        "node {} ({}): {kind}: {}",
        text("node_id"),
        text("node_type"),
        text("exception_message")
    );
    JobState::Failed {
        // torch.OutOfMemoryError, torch.cuda.OutOfMemoryError.
        code: if kind.ends_with("OutOfMemoryError") {
            FailureCode::OutOfMemory
        } else {
            FailureCode::GenerationFailed
        },
        text: shown(told.as_bytes()),
    }
}

/// The identifier of `POST /prompt`'s answer.
pub(crate) fn accepted(body: &[u8]) -> Result<String, AnswerError> {
    let sent: Value = serde_json::from_slice(body)?;
    let id = sent["prompt_id"].as_str();
    id.map(str::to_owned).ok_or(AnswerError::Id)
}

/// What a refused graph lacks at this server, for an operator; `None` if every server would refuse it.
pub(crate) fn lacks(body: &[u8]) -> Option<String> {
    let sent: Value = serde_json::from_slice(body).ok()?;
    let error = sent.get("error")?;
    if error["type"].as_str() == Some("missing_node_type") {
        let message = error["message"].as_str().unwrap_or("a node's class");
        return Some(shown(message.as_bytes()));
    }
    let nodes = sent.get("node_errors")?.as_object()?;
    let errors = nodes
        .values()
        .filter_map(|node| node.get("errors")?.as_array());
    let mut missing = errors
        .flatten()
        .filter(|one| one["type"].as_str() == Some("value_not_in_list"));
    let details = missing.next()?.get("details")?.as_str()?;
    Some(shown(details.as_bytes()))
}

/// Endings of films, the one that Kinora can check first.
const ENDINGS: [&str; 5] = ["mp4", "m4v", "mov", "webm", "mkv"];

/// A file at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilmLocation {
    pub(crate) filename: String,
    pub(crate) subfolder: String,
}

/// What a job has put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilmSearch {
    /// A film.
    Film(FilmLocation),
    /// Other files, by name.
    Others(Vec<String>),
    /// Nothing (yet).
    Nothing,
}

/// Looks for the film of `node`. Temporary files and inputs that a server lists too do not count.
pub(crate) fn film_of(outputs: &Value, node: &str) -> FilmSearch {
    let keys = outputs.get(node).and_then(Value::as_object);
    let lists = keys
        .into_iter()
        .flatten()
        .filter_map(|(_, value)| value.as_array());
    let files: Vec<FilmLocation> = lists
        .flatten()
        .filter(|item| item["type"].as_str() == Some("output"))
        .filter_map(|item| {
            Some(FilmLocation {
                filename: item.get("filename")?.as_str()?.to_owned(),
                subfolder: item["subfolder"].as_str().unwrap_or_default().to_owned(),
            })
        })
        .collect();
    for ending in ENDINGS {
        let film = files.iter().find(|file| {
            let found = file.filename.rsplit_once('.');
            found.is_some_and(|(_, one)| one.eq_ignore_ascii_case(ending))
        });
        if let Some(film) = film {
            return FilmSearch::Film(film.clone());
        }
    }
    if files.is_empty() {
        FilmSearch::Nothing
    } else {
        FilmSearch::Others(files.into_iter().map(|file| file.filename).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_read_in_each_of_its_states() {
        let of = |status: &str| {
            let body = format!(r#"{{"id":"a","status":"{status}","outputs":{{"9":{{}}}}}}"#);
            job(body.as_bytes(), "a").unwrap().state
        };
        assert_eq!(of("pending"), JobState::Pending);
        assert_eq!(of("in_progress"), JobState::Running);
        assert_eq!(of("completed"), JobState::Completed);
        assert!(matches!(of("cancelled"), JobState::Failed { .. }));
        assert!(matches!(of("failed"), JobState::Failed { .. }));
        assert_eq!(of("odd"), JobState::Unknown("odd".to_owned()));
        assert!(matches!(
            job(b"{\"id\":\"b\"}", "a"),
            Err(AnswerError::OtherJob)
        ));
        assert!(matches!(
            job(b"{\"id\":\"a\"}", "a"),
            Err(AnswerError::Status)
        ));
    }

    #[test]
    fn an_interrupted_job_is_known_by_its_messages_where_its_state_does_not_say_so() {
        let sent = serde_json::json!({"id": "a", "status": "failed", "execution_status":
            {"status_str": "error", "messages": [["execution_interrupted", {"node_id": "3"}]]}});
        let seen = job(sent.to_string().as_bytes(), "a").unwrap();
        assert_eq!(seen.state, interrupted());
    }

    #[test]
    fn only_the_answer_of_jobs_says_that_a_job_is_unknown() {
        assert!(is_of_jobs(br#"{"error": "Job not found"}"#));
        assert!(!is_of_jobs(b"") && !is_of_jobs(b"404: Not Found") && !is_of_jobs(b"null"));
    }

    #[test]
    fn memory_that_ran_out_has_its_own_code() {
        let error = serde_json::json!({
            "node_id": "3", "node_type": "KSampler",
            "exception_type": "torch.OutOfMemoryError", "exception_message": "Allocation\nfailed",
        });
        let JobState::Failed { code, text } = failed(Some(&error)) else {
            panic!("it failed");
        };
        assert_eq!(code, FailureCode::OutOfMemory);
        assert_eq!(
            text,
            "node 3 (KSampler): torch.OutOfMemoryError: Allocation failed"
        );
    }

    #[test]
    fn a_refusal_says_what_this_server_lacks() {
        let missing = serde_json::json!({"error": {"type": "prompt_outputs_failed_validation"},
            "node_errors": {"4": {"errors": [{"type": "value_not_in_list",
                "details": "ckpt_name: 'a.safetensors' not in ['b.safetensors']"}]}}});
        assert!(
            lacks(missing.to_string().as_bytes())
                .unwrap()
                .contains("a.safetensors")
        );
        let class = br#"{"error": {"type": "missing_node_type", "message": "Node 'X' not found"}}"#;
        assert_eq!(lacks(class).unwrap(), "Node 'X' not found");
        assert_eq!(lacks(br#"{"error": {"type": "invalid_prompt"}}"#), None);
    }

    fn film(name: &str) -> FilmSearch {
        FilmSearch::Film(FilmLocation {
            filename: name.to_owned(),
            subfolder: "kinora".to_owned(),
        })
    }

    fn file(name: &str, kind: &str) -> Value {
        json!({"filename": name, "subfolder": "kinora", "type": kind})
    }

    #[test]
    fn a_film_is_found_under_any_key_and_by_its_ending() {
        let core = json!({"9": {"images": [file("a.mp4", "output")], "animated": [true]}});
        assert_eq!(film_of(&core, "9"), film("a.mp4"));
        let suite = json!({"9": {"gifs": [file("a.png", "output"), file("b.MP4", "output")]}});
        assert_eq!(film_of(&suite, "9"), film("b.MP4"));
        let both = json!({"9": {"x": [file("a.webm", "output")], "y": [file("b.mp4", "output")]}});
        assert_eq!(film_of(&both, "9"), film("b.mp4"));
    }

    #[test]
    fn previews_inputs_and_other_nodes_do_not_count() {
        let outputs = json!({
            "8": {"images": [file("other.mp4", "output")]},
            "9": {"images": [file("temp.mp4", "temp"), file("in.mp4", "input")], "text": ["a"]},
        });
        assert_eq!(film_of(&outputs, "9"), FilmSearch::Nothing);
        assert_eq!(film_of(&Value::Null, "9"), FilmSearch::Nothing);
        let stills = json!({"9": {"images": [file("a.png", "output")]}});
        assert_eq!(
            film_of(&stills, "9"),
            FilmSearch::Others(vec!["a.png".to_owned()])
        );
    }
}
