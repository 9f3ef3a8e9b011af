//! What was made: `kinora usage` counts each task once, by project and model, and goes on counting it when it is gone.

use std::process::Command;

use kinora_test_e2e::{Client, DataFolder, Server, Setup, keys, kinora, run};
use serde_json::{Value, json};

use crate::support::{narrow, quick, slow, square};

fn command(data: &DataFolder, flags: &[&str]) -> Command {
    let mut command = kinora();
    command.arg("usage").args(flags);
    command.arg("--data").arg(data.path());
    command
}

fn usage(data: &DataFolder, flags: &[&str]) -> Vec<Value> {
    let flags = [flags, &["--json"]].concat();
    let printed = run(command(data, &flags)).ok();
    serde_json::from_str(&printed).unwrap()
}

fn client_of(server: &Server, project: &str) -> Client {
    let create = ["create", "--name", project, "--project", project];
    server.client_with(keys(server.data(), &create).ok().trim())
}

/// Sums of a project over all days, so that midnight changes nothing.
fn sum(rows: &[Value], project: &str, model: &str) -> [f64; 4] {
    let own = rows
        .iter()
        .filter(|row| row["project"] == project && row["model"] == model);
    own.fold([0.0; 4], |mut sum, row| {
        let fields = ["completed", "failed", "cancelled", "video_seconds"];
        for (part, field) in sum.iter_mut().zip(fields) {
            *part += row[field].as_f64().unwrap();
        }
        sum
    })
}

#[test]
fn what_was_made_is_counted_once_and_stays_when_tasks_are_gone() {
    let server = Server::start();
    let data = server.data().clone();
    let empty = run(command(&data, &[])).ok();
    assert!(empty.contains("No task has ended"), "{empty}");
    let (shop, lab) = (client_of(&server, "shop"), client_of(&server, "lab"));
    let mut broken = quick("kinora-a1");
    broken["first_frame"] = json!("http://127.0.0.1:1024/none.png");
    let [first, second, other, broken] = [
        shop.submit(&square("kinora-b1")),
        shop.submit(&square("kinora-b1")),
        lab.submit(&square("kinora-a1")),
        lab.submit(&broken),
    ];
    let seconds: f64 = [&first, &second]
        .map(|video| {
            shop.wait_completed(video.id())["duration"]
                .as_f64()
                .unwrap()
        })
        .iter()
        .sum();
    lab.wait_completed(other.id());
    lab.wait_for(broken.id(), "failed");
    shop.delete(&format!("/v1/videos/{}", first.id())).ok();
    let check = |data: &DataFolder| {
        let rows = usage(data, &[]);
        let [completed, failed, cancelled, video] = sum(&rows, "shop", "kinora-b1");
        assert_eq!([completed, failed, cancelled], [2.0, 0.0, 0.0], "{rows:#?}");
        assert!((video - seconds).abs() < 0.002, "{video} of {seconds} s");
        let [completed, failed, ..] = sum(&rows, "lab", "kinora-a1");
        assert_eq!([completed, failed], [1.0, 1.0], "{rows:#?}");
        let worked = |row: &Value| row["engine_seconds"].as_f64().unwrap();
        assert!(rows.iter().map(worked).sum::<f64>() > 0.0, "{rows:#?}");
    };
    check(&data);
    let own = usage(&data, &["--project", "lab", "--model", "kinora-a1"]);
    assert!(!own.is_empty() && own.iter().all(|row| row["project"] == "lab"));
    assert!(usage(&data, &["--until", "2020-01-01"]).is_empty());
    assert!(usage(&data, &["--since", "9999-01-01"]).is_empty());
    let csv = run(command(&data, &["--csv"])).ok();
    let mut lines = csv.lines();
    assert!(
        lines.next().unwrap().starts_with("day,project,model,"),
        "{csv}"
    );
    assert!(lines.any(|line| line.contains(",shop,kinora-b1,")), "{csv}");
    let wrong = run(command(&data, &["--since", "yesterday"]));
    assert!(!wrong.status.success() && wrong.stderr.contains("2026-11-22"));
    // A death of the service counts nothing again.
    server.kill();
    check(&data);
    drop(Setup::on(&data).start());
    check(&data);
}

#[test]
fn a_cancelled_task_is_counted_with_the_time_that_its_engine_took() {
    let server = narrow().start();
    let client = client_of(&server, "shop");
    let video = client.submit(&slow());
    client.wait_working(video.id());
    client
        .post(&format!("/v1/videos/{}/cancel", video.id()))
        .ok();
    let rows = usage(server.data(), &["--project", "shop"]);
    assert_eq!(sum(&rows, "shop", "kinora-a1"), [0.0, 0.0, 1.0, 0.0]);
    let engine = rows[0]["engine_seconds"].as_f64().unwrap();
    assert!(engine > 0.0, "{rows:#?}");
}
