//! Engines that share a device: two commands, of which one fits, and never both are alive.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kinora_e2e::{Client, Server, Setup, keys, kinora, run, until};
use serde_json::{Value, json};

use crate::metrics::{scraped, value};
use crate::processes::{package, python_command};

/// Tasks for each of the two models.
const TASKS: usize = 3;

/// `sea` and `lake`, the same command, of which the device holds one.
fn sharing(idle_seconds: u32) -> Setup {
    let command = json!(python_command("examples/waves.py:Waves"));
    let engine = |name: &str| {
        format!(
            "[[engines]]\n\
             name = \"{name}\"\n\
             kind = \"process\"\n\
             device = \"gpu0\"\n\
             memory_megabytes = 600\n\
             command = {command}\n\
             environment = {{ PYTHONPATH = {package:?} }}\n\
             settings = {{ waves = 2 }}\n\
             [engines.describe]\n\
             size_multiple = 2\n\
             fps = 8\n\
             features = {{ text_to_video = true }}\n\
             [[models]]\n\
             id = \"{name}\"\n\
             engine = \"{name}\"\n\
             sizes = [\"256x256\"]\n\
             seconds = [2]\n",
            package = package()
        )
    };
    let setup = Setup::default().set("KINORA_METRICS_LISTEN", "127.0.0.1:0");
    setup.set("KINORA_WORKER_SLOTS", 2).config(&format!(
        "[[devices]]\n\
         name = \"gpu0\"\n\
         memory_megabytes = 1000\n\
         idle_seconds = {idle_seconds}\n\
         {}{}",
        engine("sea"),
        engine("lake")
    ))
}

fn submit(client: &Client, model: &str) -> String {
    let body = json!({"model": model, "prompt": "Waves", "seed": 3});
    client.submit(&body).id().to_owned()
}

/// The only device of the only worker, as `kinora top --json` and `GET /v1/operations` show it.
fn shown(server: &Server) -> Value {
    let mut top = kinora();
    top.args(["top", "--json", "--data"])
        .arg(server.data().path());
    let overview: Value = serde_json::from_str(&run(top).ok()).unwrap();
    overview["workers"][0]["devices"][0].clone()
}

/// The engines' processes that are alive.
fn alive(server: &Server) -> usize {
    let is_engine = |number: &u32| {
        let command = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("kinora_engine")
    };
    server
        .children()
        .iter()
        .filter(|one| is_engine(one))
        .count()
}

fn loads(server: &Server, engine: &str) -> f64 {
    let series = format!("kinora_device_loads_total{{device=\"gpu0\",engine=\"{engine}\"}}");
    value(&scraped(server), &series).unwrap_or(0.0)
}

#[test]
fn of_two_commands_on_a_device_with_room_for_one_never_both_are_alive() {
    let server = sharing(0).start();
    let client = server.client();
    let (done, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                most.fetch_max(alive(&server), Ordering::SeqCst);
                thread::yield_now();
            }
        });
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let ids: Vec<String> = (0..TASKS)
                .flat_map(|_| ["sea", "lake"].map(|model| submit(&client, model)))
                .collect();
            for id in ids {
                client.wait_completed(&id);
            }
        }));
        done.store(true, Ordering::SeqCst);
        made.unwrap();
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(alive(&server), 1, "the last one stays");
    let loads = loads(&server, "sea") + loads(&server, "lake");
    assert!((2.0..2.0 * TASKS as f64).contains(&loads), "{loads}");
    let device = until("the engine is shown", || {
        Some(shown(&server)).filter(|device| device["used_megabytes"] == 600)
    });
    assert_eq!(
        (&device["name"], &device["memory_megabytes"]),
        (&json!("gpu0"), &json!(1000))
    );
    let operator = keys(
        server.data(),
        &["create", "--name", "ops", "--project", "ops", "--operator"],
    );
    let reply = server
        .client_with(operator.ok().trim())
        .get("/v1/operations");
    let engines = &reply.ok()["workers"][0]["devices"][0]["engines"];
    assert_eq!(engines.as_array().unwrap().len(), 2, "{engines}");
}

#[test]
fn a_command_ends_when_it_has_been_idle_and_starts_again_for_a_task() {
    let server = sharing(1).start();
    let client = server.client();
    for _ in 0..2 {
        client.wait_completed(&submit(&client, "sea"));
        until("the process to end", || (alive(&server) == 0).then_some(()));
    }
    assert!((loads(&server, "sea") - 2.0).abs() < f64::EPSILON);
    let text = scraped(&server);
    let series = "kinora_device_unloads_total{device=\"gpu0\",engine=\"sea\",reason=\"idle\"}";
    assert_eq!(value(&text, series), Some(2.0), "{text}");
    let used = "kinora_device_room_bytes{device=\"gpu0\",kind=\"used\"}";
    assert_eq!(value(&text, used), Some(0.0), "{text}");
}
