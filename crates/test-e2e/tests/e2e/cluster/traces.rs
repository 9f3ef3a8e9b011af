//! A task of several processes is one trace.

use kinora_test_e2e::{Host, Receiver, Setup, studio};
use serde_json::json;

use super::Cluster;
use crate::support::{reaching_from, square};
use crate::traces::{Collector, Span, below, named};

const SECRET: &str = "marked-secret";
/// POST, fetch, queue, run, prepare, make, open, render, encode, clear, publish, finish, webhook.
const SPANS: usize = 13;

#[test]
fn what_two_processes_do_for_a_task_is_one_trace_without_secrets() {
    let cluster = Cluster::new();
    let (collector, receiver, host) = (Collector::start(), Receiver::start(), Host::start());
    let process = |setup: Setup| {
        let setup = reaching_from(cluster.process(setup));
        collector.of(setup).set(
            "OTEL_EXPORTER_OTLP_HEADERS",
            format!("authorization=Bearer%20{SECRET}"),
        )
    };
    let api = process(Setup::on(&cluster.machine()).without_worker()).start();
    let worker = process(Setup::on(&cluster.machine()).as_worker()).start();
    let hook = receiver.url(&format!("hook?key={SECRET}"));
    cluster.command(&["webhooks", "add", "--project", "default", "--url", &hook]);
    let image = format!("a.png?key={SECRET}");
    let image = host.serve(&image, studio::picture("a.png", (300, 300), "red"));
    let mut body = square("kinora-b1");
    body["prompt"] = json!(format!("A boat, {SECRET}"));
    body["metadata"] = json!({"note": SECRET});
    body["first_frame"] = json!(image);
    let client = api.client();
    let video = client.wait_completed(client.submit(&body).id());
    receiver.wait_for(1);
    let trace = collector.wait_for_trace(video.id(), SPANS);
    assert_eq!(trace.len(), SPANS, "{trace:#?}");
    assert_tree(&trace, video.id());
    for span in &trace {
        let by_api = ["POST /v1/videos", "webhook"].contains(&&*span.name);
        let process = if by_api { &api } else { &worker };
        let instance = &span.resource["service.instance.id"];
        let number = format!("-{}", process.process_id());
        assert!(instance.ends_with(&number), "{span:#?}");
        assert_eq!(span.resource["service.name"], "kinora");
    }
    for posted in collector.receiver().posted() {
        assert_eq!(posted.header("authorization"), format!("Bearer {SECRET}"));
        assert_eq!(posted.header("content-type"), "application/json");
        for secret in [SECRET, client.key(), "127.0.0.1", "paper boat", "A boat"] {
            assert!(!posted.body.contains(secret), "{secret}: {posted:#?}");
        }
    }
    for process in [&api, &worker] {
        assert!(!process.log().contains(SECRET), "{}", process.log());
    }
}

/// Asserts that these are the spans of a completed task, each where it belongs.
fn assert_tree(trace: &[Span], id: &str) {
    let submit = named(trace, "POST /v1/videos");
    assert_eq!((&submit.parent, submit.kind), (&None, 2));
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/videos"),
        ("http.response.status_code", "200"),
        ("kinora.task.id", id),
        ("kinora.model", "kinora-b1"),
    ] {
        assert_eq!(submit.attributes[name], value, "{name}");
    }
    let under_submit = ["fetch", "queue", "run", "webhook"].into();
    assert_eq!(below(trace, submit), under_submit, "{trace:#?}");
    let run = named(trace, "run");
    let under_run = ["prepare", "make", "clear", "publish", "finish"].into();
    assert_eq!(below(trace, run), under_run, "{trace:#?}");
    assert_eq!(run.attributes["kinora.attempt"], "1");
    assert_eq!(run.attributes["kinora.task.id"], id);
    let make = named(trace, "make");
    assert_eq!(below(trace, make), ["open", "render", "encode"].into());
    let webhook = named(trace, "webhook");
    assert_eq!(
        (
            webhook.kind,
            &*webhook.attributes["http.response.status_code"]
        ),
        (3, "200")
    );
    for span in trace {
        assert!(
            span.begun_ns <= span.ended_ns && !span.is_error,
            "{span:#?}"
        );
        if span.parent.as_ref() == Some(&run.id) {
            let is_within = run.begun_ns <= span.begun_ns && span.ended_ns <= run.ended_ns;
            assert!(is_within, "{run:#?} {span:#?}");
        }
    }
}
