//! Metrics for Prometheus: what tasks and requests do is counted, and only where the operator asks for it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use kinora_test_e2e::{Host, Server, Setup, until};

use crate::support::{busy_on, narrow, quick, reaching_from};

pub(crate) fn measured(setup: Setup) -> Setup {
    setup.set("KINORA_METRICS_LISTEN", "127.0.0.1:0")
}

/// Where its metrics are.
fn address(server: &Server) -> String {
    let log = server.log();
    let line = log.lines().find(|line| line.contains("metrics served"));
    let event: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
    format!("http://{}", event["address"].as_str().unwrap())
}

pub(crate) fn scraped(server: &Server) -> String {
    let reply = server.anonymous().at(&address(server)).get("/metrics");
    assert_eq!(reply.status, 200);
    let media_type = reply.header("content-type").unwrap();
    assert_eq!(media_type, "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(reply.body).unwrap()
}

/// The value of the series whose line begins like this.
pub(crate) fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| {
        line.strip_prefix(series)
            .is_some_and(|rest| rest.starts_with(' '))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn what_tasks_and_requests_do_is_counted() {
    let server = measured(Setup::default()).start();
    let client = server.client();
    let video = client.submit(&quick("kinora-a1"));
    client.wait_completed(video.id());
    client.get("/v1/videos/made-up-path/and-more");
    let text = scraped(&server);
    let a = "{model=\"kinora-a1\"}";
    for (series, wanted) in [
        (format!("kinora_tasks_accepted_total{a}"), 1.0),
        (format!("kinora_attempts_total{a}"), 1.0),
        (format!("kinora_tasks_completed_total{a}"), 1.0),
        (format!("kinora_task_waiting_seconds_count{a}"), 1.0),
        (format!("kinora_task_running_seconds_count{a}"), 1.0),
        ("kinora_stage_seconds_count{stage=\"make\"}".to_owned(), 1.0),
        (
            "kinora_stage_seconds_count{stage=\"publish\"}".to_owned(),
            1.0,
        ),
        (format!("kinora_model_served{a}"), 1.0),
        (
            "kinora_tasks{model=\"kinora-a1\",state=\"waiting\"}".to_owned(),
            0.0,
        ),
        ("kinora_workers{state=\"serving\"}".to_owned(), 1.0),
        ("kinora_store_readable".to_owned(), 1.0),
        ("kinora_store_writable".to_owned(), 1.0),
        (
            "kinora_http_requests_total{route=\"/v1/videos\",method=\"POST\",status=\"200\"}"
                .to_owned(),
            1.0,
        ),
        (
            "kinora_http_requests_total{route=\"other\",method=\"GET\",status=\"404\"}".to_owned(),
            1.0,
        ),
    ] {
        assert_eq!(value(&text, &series), Some(wanted), "{series}\n{text}");
    }
    assert!(value(&text, "kinora_store_commit_seconds_count").unwrap() >= 3.0);
    assert!(value(&text, "kinora_store_read_seconds_count").unwrap() >= 1.0);
    let puts = "kinora_blob_seconds_count{operation=\"put\"}";
    assert!(value(&text, puts).unwrap() >= 3.0, "{text}");
    assert!(value(&text, "process_resident_memory_bytes").unwrap() > 1e6);
    assert!(!text.contains("made-up-path"), "clients name no series");
}

#[test]
fn a_failure_is_counted_by_its_code_and_the_queue_is_shown() {
    let (server, _) = busy_on(measured(narrow()));
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    let text = scraped(&server);
    let waiting = "kinora_tasks{model=\"kinora-b1\",state=\"waiting\"}";
    assert_eq!(value(&text, waiting), Some(1.0), "{text}");
    let running = "kinora_tasks{model=\"kinora-a1\",state=\"running\"}";
    assert_eq!(value(&text, running), Some(1.0), "{text}");
    for (stage, wanted) in [("references", 0.0), ("fetching", 0.0), ("slot", 1.0)] {
        let series = format!("kinora_tasks_waiting{{model=\"kinora-b1\",stage=\"{stage}\"}}");
        assert_eq!(value(&text, &series), Some(wanted), "{text}");
    }
    let oldest = |text: &str, model: &str| {
        let series = format!("kinora_oldest_waiting_seconds{{model=\"{model}\"}}");
        value(text, &series)
    };
    let text = until("the age of the task that waits", || {
        let text = scraped(&server);
        let has_aged = oldest(&text, "kinora-b1").unwrap() > 0.0;
        has_aged.then_some(text)
    });
    assert_eq!(oldest(&text, "kinora-a1"), Some(0.0), "{text}");
    client
        .post(&format!("/v1/videos/{}/cancel", video.id()))
        .ok();
    let text = scraped(&server);
    assert_eq!(value(&text, waiting), Some(0.0), "{text}");
    assert_eq!(oldest(&text, "kinora-b1"), Some(0.0), "{text}");
    let failed = "kinora_tasks_failed_total{model=\"kinora-b1\",code=\"cancelled\"}";
    assert_eq!(value(&text, failed), Some(1.0), "{text}");
}

#[test]
fn a_model_that_nobody_serves_or_waits_for_any_more_is_at_0() {
    let server = measured(Setup::default().without_worker()).start();
    let client = server.client();
    let video = client.submit(&quick("kinora-b1"));
    let waiting = "kinora_tasks{model=\"kinora-b1\",state=\"waiting\"}";
    assert_eq!(value(&scraped(&server), waiting), Some(1.0));
    client
        .post(&format!("/v1/videos/{}/cancel", video.id()))
        .ok();
    let text = scraped(&server);
    for series in [
        waiting,
        "kinora_oldest_waiting_seconds{model=\"kinora-b1\"}",
        "kinora_model_served{model=\"kinora-b1\"}",
    ] {
        assert_eq!(value(&text, series), Some(0.0), "{series}\n{text}");
    }
}

#[test]
fn a_fetch_that_fails_is_counted_by_the_code_of_its_task() {
    let host = Host::start();
    let server = measured(reaching_from(Setup::default())).start();
    let client = server.client();
    let mut body = quick("kinora-b1");
    body["first_frame"] = host.url("gone.png").into();
    let video = client.submit(&body);
    client.wait_for(video.id(), "failed");
    let text = scraped(&server);
    let series = "kinora_fetches_total{outcome=\"failed\",code=\"reference_unreachable\"}";
    assert_eq!(value(&text, series), Some(1.0), "{text}");
}

#[test]
fn memory_of_devices_is_shown_where_the_driver_tells_it() {
    let programs = tempfile::tempdir().unwrap();
    let fake = programs.path().join("nvidia-smi");
    fs::write(&fake, "#!/bin/sh\necho 0, 1000, 81559\necho 1, 0, 2048\n").unwrap();
    fs::set_permissions(&fake, Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        programs.path().display(),
        std::env::var("PATH").unwrap()
    );
    let told = measured(Setup::default().set("PATH", path)).start();
    let empty = tempfile::tempdir().unwrap();
    let none = measured(Setup::default().set("PATH", empty.path().display())).start();
    let series = |device: u8, kind: &str| {
        format!("kinora_device_memory_bytes{{device=\"{device}\",kind=\"{kind}\"}}")
    };
    let text = until("the memory of the devices", || {
        let text = scraped(&told);
        value(&text, &series(1, "total")).is_some().then_some(text)
    });
    for (device, kind, mebibytes) in [
        (0, "used", 1000.0),
        (0, "total", 81_559.0),
        (1, "used", 0.0),
    ] {
        let found = value(&text, &series(device, kind));
        assert_eq!(found, Some(mebibytes * 1_048_576.0), "{text}");
    }
    assert!(!scraped(&none).contains("kinora_device_memory_bytes{"));
    assert!(!none.log().contains("nvidia"), "{}", none.log());
}

#[test]
fn without_an_address_there_are_none() {
    let server = Setup::default().start();
    assert_eq!(server.anonymous().get("/metrics").status, 404);
    assert_eq!(server.logged(&["metrics served"]), 0);
    let other = measured(Setup::default()).start();
    assert_eq!(other.anonymous().get("/metrics").status, 404);
    let reply = other.anonymous().at(&address(&other)).get("/v1/videos");
    assert_eq!(reply.status, 404, "the API is not there");
}
