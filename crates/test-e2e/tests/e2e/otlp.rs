//! What a collector is sent, read with OpenTelemetry's own messages, which know nothing of ours.

use std::process::Command;

use kinora_test_e2e::{Setup, run, workspace};
use serde_json::{Value, json};

use crate::support::{slow, square};
use crate::traces::{Collector, Span, named, stop};

/// A span as the script of the messages prints it.
fn shown(span: &Span) -> Value {
    json!({
        "trace": span.trace, "id": span.id, "parent": span.parent, "name": span.name, "kind": span.kind,
        "begun_ns": span.begun_ns, "ended_ns": span.ended_ns, "attributes": span.attributes,
        "is_error": span.is_error, "resource": span.resource,
    })
}

#[test]
fn exports_are_the_messages_of_opentelemetry() {
    let collector = Collector::start();
    let server = collector.of(Setup::default()).start();
    let client = server.client();
    let made = client.submit(&square("kinora-a1"));
    client.wait_completed(made.id());
    // Its run ends with an error.
    let cancelled = client.submit(&slow());
    client.wait_working(cancelled.id());
    let cancel = client.post(&format!("/v1/videos/{}/cancel", cancelled.id()));
    assert_eq!(cancel.status, 200, "{}", cancel.shown());
    stop(server);

    let posted = collector.receiver().posted();
    let bodies: Vec<&str> = posted.iter().map(|one| &*one.body).collect();
    for one in &posted {
        assert_eq!(one.header("content-type"), "application/json");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bodies.json");
    std::fs::write(&file, json!(bodies).to_string()).unwrap();
    let python = workspace().join(".venv/bin/python");
    assert!(python.exists(), "./test installs the messages");
    let mut command = Command::new(python);
    command
        .arg(workspace().join("crates/test-e2e/python/otlp.py"))
        .arg(file);
    let read: Value = serde_json::from_str(&run(command).ok()).unwrap();
    let spans = collector.spans();
    let expected: Vec<Value> = spans.iter().map(shown).collect();
    assert_eq!(read, json!(expected));
    let of_made: Vec<Span> = spans
        .iter()
        .filter(|span| !span.is_error)
        .cloned()
        .collect();
    named(&of_made, "publish");
    assert!(spans.iter().any(|span| span.is_error), "{spans:#?}");
}
