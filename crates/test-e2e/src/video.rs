//! The video object: which fields it may have in which state, of which type, and that a task
//! never goes back.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A judged video object.
#[derive(Clone, Debug, PartialEq)]
pub struct Video(Value);

impl Deref for Video {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl Video {
    /// Judges `value` as the video object of docs/api.md, and as a step of its task.
    pub fn judged(value: Value, tracker: &Tracker) -> Self {
        assert_video_object(&value);
        let video = Self(value);
        tracker.note(&video);
        video
    }

    /// `id`.
    pub fn id(&self) -> &str {
        self["id"].as_str().unwrap()
    }

    /// `status`.
    pub fn status(&self) -> &str {
        self["status"].as_str().unwrap()
    }

    /// `progress`.
    pub fn progress(&self) -> u64 {
        self["progress"].as_u64().unwrap()
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.status(), "completed" | "failed")
    }

    /// A field's text; panics when it has none.
    pub fn text(&self, name: &str) -> &str {
        self[name]
            .as_str()
            .unwrap_or_else(|| panic!("no text {name}: {self:#?}"))
    }

    /// Path of its content.
    pub fn content(&self) -> String {
        format!("/v1/videos/{}/content", self.id())
    }
}

type Judge = fn(&Value) -> bool;

fn is_size(value: &Value) -> bool {
    let sides = value.as_str().and_then(|text| text.split_once('x'));
    sides.is_some_and(|(width, height)| {
        width.parse::<u32>().is_ok() && height.parse::<u32>().is_ok()
    })
}

fn is_number_as_text(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.parse::<u32>().is_ok())
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

fn is_string_map(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|pairs| pairs.values().all(Value::is_string))
}

fn is_address(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.starts_with("http://"))
}

/// A code and a message, and the parameter that it is about where there is one: an error or a warning.
fn is_failure(value: &Value) -> bool {
    value.as_object().is_some_and(|error| {
        let param = error.get("param");
        error.len() == 2 + usize::from(param.is_some())
            && param.is_none_or(|param| param.as_str().is_some_and(|text| !text.is_empty()))
            && ["code", "message"].iter().all(|name| {
                error
                    .get(*name)
                    .and_then(Value::as_str)
                    .is_some_and(|t| !t.is_empty())
            })
    })
}

/// An amount, its currency, and whether it may still change.
fn is_cost(value: &Value) -> bool {
    let amount = value["amount"].as_f64().is_some_and(|amount| amount >= 0.0);
    let currency = value["currency"]
        .as_str()
        .is_some_and(|code| code.len() == 3);
    amount && currency && value["estimated"].is_boolean()
}

/// Fields of every object.
const ALWAYS: &[(&str, Judge)] = &[
    ("id", |value| {
        value
            .as_str()
            .is_some_and(|text| text.starts_with("video_"))
    }),
    ("object", |value| value == "video"),
    ("model", Value::is_string),
    ("status", Value::is_string),
    ("progress", |value| {
        value.as_u64().is_some_and(|percent| percent <= 100)
    }),
    ("created_at", Value::is_u64),
    ("prompt", Value::is_string),
    ("seconds", |value| {
        value == "auto" || is_number_as_text(value)
    }),
    ("size", |value| value == "adaptive" || is_size(value)),
    ("seed", |value| {
        value
            .as_u64()
            .is_some_and(|seed| seed <= u64::from(u32::MAX))
    }),
    ("metadata", is_string_map),
    ("polling_url", |value| {
        value
            .as_str()
            .is_some_and(|text| text.starts_with("http") && text.contains("/v1/videos/video_"))
    }),
];

/// Fields of every completed object, and of no other.
const COMPLETED: &[(&str, Judge)] = &[
    ("result_url", is_address),
    ("url", is_address),
    ("unsigned_urls", Value::is_array),
    ("thumbnail_url", is_address),
    ("duration", is_positive),
    ("fps", is_positive),
    ("frames", Value::is_u64),
    ("has_audio", Value::is_boolean),
];

/// Fields of completed objects whose film could be decoded, together.
const FRAMES: &[(&str, Judge)] = &[
    ("first_frame_url", is_address),
    ("last_frame_url", is_address),
];

/// Fields of every failed object, and of no other.
const FAILED: &[(&str, Judge)] = &[("error", is_failure), ("fail_reason", Value::is_string)];

/// Fields that some objects have.
const SOMETIMES: &[(&str, Judge)] = &[
    ("started_at", Value::is_u64),
    ("completed_at", Value::is_u64),
    ("expires_at", Value::is_u64),
    ("queue_position", Value::is_u64),
    ("priority", |value| value == "low" || value == "high"),
    ("engine", |value| {
        value.as_str().is_some_and(|text| text.contains('/'))
    }),
    ("draft", Value::is_boolean),
    ("draft_task_id", Value::is_string),
    ("edit_task_id", Value::is_string),
    ("remixed_from_video_id", Value::is_string),
    ("cost", is_cost),
    ("warnings", |value| {
        let warnings = value.as_array().filter(|warnings| !warnings.is_empty());
        warnings.is_some_and(|warnings| warnings.iter().all(is_failure))
    }),
];

fn assert_video_object(value: &Value) {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value:#}"));
    let status = value["status"].as_str().unwrap_or_default();
    let statuses = ["queued", "in_progress", "completed", "failed"];
    assert!(statuses.contains(&status), "status: {value:#}");
    assert_group(value, ALWAYS, true);
    assert_group(value, COMPLETED, status == "completed");
    assert_group(value, FAILED, status == "failed");
    let has_frames = status == "completed" && value.get(FRAMES[0].0).is_some();
    assert_group(value, FRAMES, has_frames);
    for (name, judge) in SOMETIMES {
        assert!(value.get(name).is_none_or(judge), "{name}: {value:#}");
    }
    let groups = [ALWAYS, COMPLETED, FRAMES, FAILED, SOMETIMES].concat();
    for name in object.keys() {
        assert!(
            groups.iter().any(|(known, _)| known == name),
            "{name}: {value:#}"
        );
    }
    let finished = matches!(status, "completed" | "failed");
    // Final with the end of the task.
    let cost = value.get("cost");
    assert!(
        cost.is_none_or(|cost| cost["estimated"] == !finished),
        "{value:#}"
    );
    for name in ["completed_at", "expires_at"] {
        assert_eq!(value.get(name).is_some(), finished, "{name}: {value:#}");
    }
    let times = ["created_at", "started_at", "completed_at"].map(|name| value.get(name));
    let times: Vec<u64> = times
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
        .collect();
    assert!(times.is_sorted(), "time runs backwards: {value:#}");
    // Absent where it is not known yet.
    let has_place = value.get("queue_position").is_some();
    assert!(!has_place || status == "queued", "{value:#}");
    assert_eq!(
        value["progress"] == 100,
        status == "completed",
        "progress: {value:#}"
    );
    if status == "completed" {
        let decided = is_number_as_text(&value["seconds"]) && is_size(&value["size"]);
        assert!(decided, "undecided to the end: {value:#}");
    }
    assert_eq!(value.get("result_url"), value.get("url"), "{value:#}");
    let listed = value.get("unsigned_urls").map(|urls| &urls[0]);
    assert_eq!(value.get("result_url"), listed, "{value:#}");
    let message = value.get("error").map(|error| &error["message"]);
    assert_eq!(value.get("fail_reason"), message, "{value:#}");
    if status != "failed" {
        let started = status != "queued";
        assert_eq!(
            value.get("started_at").is_some(),
            started,
            "started_at: {value:#}"
        );
    }
}

fn assert_group(value: &Value, fields: &[(&str, Judge)], wanted: bool) {
    for (name, judge) in fields {
        match value.get(name) {
            Some(field) => assert!(wanted && judge(field), "{name}: {value:#}"),
            None => assert!(!wanted, "no {name}: {value:#}"),
        }
    }
}

/// What was last seen of each task: nobody may go back from it.
#[derive(Clone, Debug, Default)]
pub struct Tracker(Arc<Mutex<HashMap<String, Video>>>);

impl Tracker {
    fn note(&self, now: &Video) {
        let mut seen = self.0.lock().unwrap();
        if let Some(before) = seen.get(now.id()) {
            let both = format!("{before:#?}\nthen {now:#?}");
            assert!(now.progress() >= before.progress(), "progress fell: {both}");
            assert!(
                rank(now.status()) >= rank(before.status()),
                "a step back: {both}"
            );
            let fixed = ["model", "created_at", "prompt", "seed", "metadata"];
            assert!(
                fixed.iter().all(|name| before[*name] == now[*name]),
                "changed: {both}"
            );
            if before.is_finished() {
                let lasting = ["status", "completed_at", "error", "frames", "expires_at"];
                assert!(
                    lasting.iter().all(|name| before[*name] == now[*name]),
                    "changed: {both}"
                );
            }
        }
        seen.insert(now.id().to_owned(), now.clone());
    }
}

fn rank(status: &str) -> u8 {
    match status {
        "queued" => 0,
        "in_progress" => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use serde_json::json;

    use super::*;

    fn object(status: &str, progress: u64) -> Value {
        let mut object = json!({
            "id": "video_1", "object": "video", "model": "m", "status": status,
            "progress": progress, "created_at": 1, "prompt": "p", "seconds": "2",
            "size": "854x480", "seed": 7, "metadata": {"a": "b"},
            "polling_url": "http://a/v1/videos/video_1",
        });
        let more = match status {
            "queued" => json!({"queue_position": 0}),
            "in_progress" => json!({"started_at": 2, "engine": "e/1"}),
            "failed" => json!({
                "completed_at": 3, "expires_at": 4, "fail_reason": "Why.",
                "error": {"code": "cancelled", "message": "Why."},
            }),
            _ => json!({
                "started_at": 2, "completed_at": 3, "expires_at": 4, "result_url": "http://a",
                "url": "http://a", "unsigned_urls": ["http://a"], "thumbnail_url": "http://b", "first_frame_url": "http://c",
                "last_frame_url": "http://d", "duration": 2.0, "fps": 24.0,
                "frames": 48, "has_audio": false,
            }),
        };
        object
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        object
    }

    fn is_refused(value: &Value) -> bool {
        catch_unwind(|| assert_video_object(value)).is_err()
    }

    #[test]
    fn objects_of_every_state_pass_and_each_fault_does_not() {
        for (status, progress) in [
            ("queued", 0),
            ("in_progress", 5),
            ("completed", 100),
            ("failed", 5),
        ] {
            let good = object(status, progress);
            assert_video_object(&good);
            let faults = [
                ("status", json!("cancelled")),
                ("progress", json!(101)),
                ("progress", json!(if progress == 100 { 99 } else { 100 })),
                ("seconds", json!(2)),
                ("created_at", json!(if status == "queued" { -1 } else { 9 })),
                ("size", json!("wide")),
                ("seed", json!(-1)),
                ("code", json!(0)),
                ("data", json!({})),
                ("works", json!([])),
                ("url", json!("http://elsewhere")),
                ("fail_reason", json!("Another.")),
                ("error", json!(null)),
                (
                    "seconds",
                    json!(if progress == 100 { "auto" } else { "soon" }),
                ),
            ];
            for (name, value) in faults {
                let mut bad = good.clone();
                bad[name] = value;
                assert!(is_refused(&bad), "{status} with {name} {}", bad[name]);
            }
            let needless = ["engine", "started_at", "queue_position"];
            for name in good
                .as_object()
                .unwrap()
                .keys()
                .filter(|one| !needless.contains(&&***one))
            {
                let mut bad = good.clone();
                bad.as_object_mut().unwrap().remove(name);
                assert!(is_refused(&bad), "{status} without {name}");
            }
        }
    }

    #[test]
    fn a_task_that_goes_back_is_noticed() {
        for (before, after) in [
            (object("in_progress", 50), object("in_progress", 49)),
            (object("in_progress", 0), object("queued", 0)),
            (object("completed", 100), object("failed", 100)),
        ] {
            let tracker = Tracker::default();
            Video::judged(before, &tracker);
            let gone_back = catch_unwind(|| Video::judged(after, &tracker));
            assert!(gone_back.is_err());
        }
    }
}
