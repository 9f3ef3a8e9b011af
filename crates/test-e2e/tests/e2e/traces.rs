//! Traces: the spans of a task go to a collector, below the caller's where there is one, and the collector's faults are
//! no concern of any task.

use std::collections::{BTreeMap, BTreeSet};

use kinora_test_e2e::{Answer, Judge, Receiver, Server, Setup, until};
use serde_json::Value;

use crate::metrics::{scraped, value};
use crate::support::square;

const CALLER: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER_SPAN: &str = "00f067aa0ba902b7";

/// A collector of traces.
pub(crate) struct Collector(Receiver);

/// A span, as a collector got it.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) begun_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) is_error: bool,
    /// Attributes of the process that sent it.
    pub(crate) resource: BTreeMap<String, String>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self(Receiver::start())
    }

    /// A process that exports to it.
    pub(crate) fn of(&self, setup: Setup) -> Setup {
        setup.set("KINORA_TRACES_ENDPOINT", self.0.url("otlp"))
    }

    pub(crate) fn receiver(&self) -> &Receiver {
        &self.0
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let posted = self.0.posted();
        posted.iter().flat_map(|one| spans(&one.event())).collect()
    }

    /// Waits until the trace of a task has so many spans.
    pub(crate) fn wait_for_trace(&self, task: &str, count: usize) -> Vec<Span> {
        until(&format!("{count} spans of {task}"), || {
            let trace = trace_of(&self.spans(), task);
            (trace.len() >= count).then_some(trace)
        })
    }
}

/// All spans of the trace that has one of this task.
pub(crate) fn trace_of(spans: &[Span], task: &str) -> Vec<Span> {
    let of_task = |span: &&Span| {
        span.attributes
            .get("kinora.task.id")
            .is_some_and(|id| id == task)
    };
    let Some(trace) = spans.iter().find(of_task).map(|span| &span.trace) else {
        return Vec::new();
    };
    let mut spans: Vec<Span> = spans
        .iter()
        .filter(|span| span.trace == *trace)
        .cloned()
        .collect();
    spans.sort_by_key(|span| (span.begun_ns, span.ended_ns));
    spans
}

/// The only span of this name.
pub(crate) fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let only = found.next().filter(|_| found.next().is_none());
    only.unwrap_or_else(|| panic!("not one {name}: {spans:#?}"))
}

/// Names of the spans below this one.
pub(crate) fn below<'a>(spans: &'a [Span], parent: &Span) -> BTreeSet<&'a str> {
    let is_below = |span: &&Span| span.parent.as_ref() == Some(&parent.id);
    spans
        .iter()
        .filter(is_below)
        .map(|span| &*span.name)
        .collect()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn spans(request: &Value) -> Vec<Span> {
    let of_process = |process: &Value| {
        let resource = attributes(&process["resource"]);
        let scopes = list(process, "scopeSpans").iter();
        let spans = scopes.flat_map(|scope| list(scope, "spans"));
        spans
            .map(|span| self::span(span, &resource))
            .collect::<Vec<_>>()
    };
    let processes = list(request, "resourceSpans");
    processes.iter().flat_map(of_process).collect()
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let one = |one: &Value| {
        let value = &one["value"];
        let value = value["stringValue"].as_str().or(value["intValue"].as_str());
        (
            one["key"].as_str().unwrap().to_owned(),
            value.unwrap().to_owned(),
        )
    };
    list(of, "attributes").iter().map(one).collect()
}

fn span(span: &Value, resource: &BTreeMap<String, String>) -> Span {
    let text = |name: &str| span[name].as_str().unwrap().to_owned();
    let id = |name: &str, digits: usize| {
        let id = text(name);
        assert!(
            id.len() == digits && u128::from_str_radix(&id, 16).unwrap() > 0,
            "{id}"
        );
        id
    };
    Span {
        trace: id("traceId", 32),
        id: id("spanId", 16),
        parent: span["parentSpanId"].as_str().map(str::to_owned),
        name: text("name"),
        kind: span["kind"].as_u64().unwrap(),
        begun_ns: text("startTimeUnixNano").parse().unwrap(),
        ended_ns: text("endTimeUnixNano").parse().unwrap(),
        attributes: attributes(span),
        is_error: span["status"]["code"] == 2,
        resource: resource.clone(),
    }
}

/// Stops a process in order.
pub(crate) fn stop(server: Server) -> String {
    server.terminate();
    let (status, log) = server.wait();
    assert!(status.success(), "{status}:\n{log}");
    log
}

/// Submits a task under this `traceparent`, and waits for its end; returns its id.
fn made_for(server: &Server, traceparent: &str) -> String {
    let client = server.client();
    let submit = client.request("POST", "/v1/videos");
    let submit = submit.header("traceparent", traceparent);
    let video = submit.json(&square("kinora-a1")).send().video();
    client.wait_completed(video.id()).id().to_owned()
}

#[test]
fn a_caller_s_trace_is_continued_unless_it_is_not_recorded() {
    let collector = Collector::start();
    let server = collector.of(Setup::default()).start();
    let unsampled = made_for(&server, &format!("00-{CALLER}-{CALLER_SPAN}-00"));
    let invalid = made_for(&server, &format!("00-{CALLER}-{CALLER_SPAN}"));
    let continued = made_for(&server, &format!("00-{CALLER}-{CALLER_SPAN}-01"));
    // Whose trace is recorded does not show.
    stop(server);
    let spans = collector.spans();
    assert!(trace_of(&spans, &unsampled).is_empty(), "{spans:#?}");
    let own = trace_of(&spans, &invalid);
    let root = named(&own, "POST /v1/videos");
    assert_eq!(root.parent, None);
    assert_ne!(root.trace, CALLER);
    let joined = trace_of(&spans, &continued);
    let submit = named(&joined, "POST /v1/videos");
    assert_eq!(submit.trace, CALLER);
    assert_eq!(submit.parent.as_deref(), Some(CALLER_SPAN));
    assert_eq!(below(&joined, submit), ["queue", "run"].into());
    let posted = collector.receiver().posted();
    assert!(
        posted.iter().all(|one| one.line == "POST /otlp/v1/traces"),
        "{posted:#?}"
    );
}

#[test]
fn a_replayed_submit_and_a_refused_one_have_no_spans() {
    let collector = Collector::start();
    let server = collector.of(Setup::default()).start();
    let client = server.client();
    let submit = || {
        let submit = client
            .request("POST", "/v1/videos")
            .header("idempotency-key", "k");
        submit.json(&square("kinora-a1")).send().video()
    };
    let video = submit();
    assert_eq!(submit().id(), video.id());
    let mut wrong = square("kinora-a1");
    wrong["seconds"] = 99.into();
    client.submit_json(&wrong).refused(400, "invalid_value");
    client.wait_completed(video.id());
    stop(server);
    let spans = collector.spans();
    named(&spans, "POST /v1/videos");
    named(&spans, "run");
}

#[test]
fn a_task_that_fails_has_the_error_on_its_spans() {
    let collector = Collector::start();
    let judge = Judge::start(|question| match question["stage"] == "result" {
        true => Answer::Refuse("Not this.".to_owned()),
        false => Answer::Allow,
    });
    let setup = Setup::default().set("KINORA_POLICY_URL", judge.url());
    let server = collector.of(setup).start();
    let client = server.client();
    let video = client.submit(&square("kinora-a1"));
    client.wait_for(video.id(), "failed");
    stop(server);
    let trace = trace_of(&collector.spans(), video.id());
    for span in &trace {
        let failed = ["run", "clear"].contains(&&*span.name);
        assert_eq!(span.is_error, failed, "{span:#?}");
        let error = span.attributes.get("error.type").map(String::as_str);
        assert_eq!(error, failed.then_some("content_policy"), "{span:#?}");
    }
    named(&trace, "run");
    named(&trace, "clear");
    assert!(
        !trace.iter().any(|span| span.name == "publish"),
        "{trace:#?}"
    );
}

#[test]
fn a_collector_that_is_away_costs_no_task_and_is_told_of_once() {
    let gone = Receiver::start();
    let endpoint = gone.url("");
    drop(gone);
    let server = Setup::default()
        .set("KINORA_TRACES_ENDPOINT", endpoint)
        .start();
    let client = server.client();
    for _ in 0..3 {
        let video = client.submit(&square("kinora-a1"));
        client.wait_completed(video.id());
    }
    server.wait_for_log(&["WARN", "traces not exported"]);
    let log = stop(server);
    assert_eq!(log.matches("traces not exported").count(), 1, "{log}");
    assert_eq!(log.matches("spans dropped").count(), 1, "{log}");
}

#[test]
fn a_collector_that_hangs_holds_up_neither_tasks_nor_the_stop() {
    let collector = Collector::start();
    collector.receiver().hang();
    let server = collector.of(Setup::default()).start();
    let client = server.client();
    for _ in 0..3 {
        let video = client.submit(&square("kinora-a1"));
        client.wait_completed(video.id());
    }
    collector.receiver().wait_for(1);
    let log = stop(server);
    assert!(log.contains("not exported before the stop"), "{log}");
}

#[test]
fn spans_that_a_collector_refuses_are_dropped_and_counted_until_it_takes_them_again() {
    let collector = Collector::start();
    collector.receiver().answer(500);
    let setup = Setup::default().set("KINORA_METRICS_LISTEN", "127.0.0.1:0");
    let server = collector.of(setup).start();
    let client = server.client();
    let video = client.submit(&square("kinora-a1"));
    client.wait_completed(video.id());
    server.wait_for_log(&["WARN", "traces not exported", "500"]);
    let counted = |outcome: &str| {
        let series = format!("kinora_spans_total{{outcome=\"{outcome}\"}}");
        value(&scraped(&server), &series).unwrap_or(0.0)
    };
    until("spans to be dropped", || {
        (counted("dropped") > 0.0).then_some(())
    });
    assert!(counted("exported") == 0.0);
    collector.receiver().answer(200);
    let video = client.submit(&square("kinora-a1"));
    client.wait_completed(video.id());
    server.wait_for_log(&["INFO", "traces exported again"]);
    collector.wait_for_trace(video.id(), 1);
    until("spans to be counted", || {
        (counted("exported") > 0.0).then_some(())
    });
    let log = stop(server);
    assert_eq!(log.matches("traces not exported").count(), 1, "{log}");
}

#[test]
fn spans_that_a_busy_collector_puts_off_are_sent_again() {
    let collector = Collector::start();
    collector.receiver().answer(503);
    let server = collector.of(Setup::default()).start();
    let client = server.client();
    let video = client.submit(&square("kinora-a1"));
    server.wait_for_log(&["WARN", "traces not exported", "503"]);
    let refused = collector.receiver().posted()[0].body.clone();
    collector.receiver().answer(200);
    server.wait_for_log(&["INFO", "traces exported again", "\"dropped\":0"]);
    client.wait_completed(video.id());
    stop(server);
    let posted = collector.receiver().posted();
    let again = posted.iter().filter(|one| one.body == refused);
    assert!(again.count() > 1, "{posted:#?}");
}

#[test]
fn a_share_of_none_and_no_collector_export_nothing() {
    let collector = Collector::start();
    let setup = Setup::default().set("KINORA_TRACES_SAMPLING_RATIO", 0);
    let server = collector.of(setup).start();
    let client = server.client();
    client.wait_completed(client.submit(&square("kinora-a1")).id());
    stop(server);
    assert!(collector.spans().is_empty());
    let server = Setup::default().start();
    made_for(&server, &format!("00-{CALLER}-{CALLER_SPAN}-01"));
    assert!(!stop(server).contains("traces"));
}

#[test]
fn settings_that_cannot_be_used_are_refused_without_their_secrets() {
    for (variable, text) in [
        ("KINORA_TRACES_ENDPOINT", "http://user:marked-secret@host"),
        ("KINORA_TRACES_ENDPOINT", "grpc://host:4317"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "marked-secret"),
        ("KINORA_TRACES_SAMPLING_RATIO", "1.5"),
    ] {
        let setup = Setup::default().set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
        let refused = setup.set(variable, text).try_start().unwrap_err();
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains("Traces cannot be exported"), "{told}");
        assert!(!told.contains("marked-secret"), "{told}");
    }
}
