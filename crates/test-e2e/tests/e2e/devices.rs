//! Engines that share a device: two commands, of which one fits, and never both are alive.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kinora_test_e2e::{Client, DataFolder, Server, Setup, keys, kinora, run, until};
use serde_json::{Value, json};

use crate::metrics::{scraped, value};
use crate::processes::{package, python_command};

/// Tasks for each of the two models.
const TASKS: usize = 3;

/// `sea` and `lake`, the same command, of which the device holds one.
fn sharing(idle_seconds: u32) -> Setup {
    sharing_on(&DataFolder::default(), idle_seconds)
}

/// The same on this folder, whose path the commands have in the variable `OWNER`.
fn sharing_on(data: &DataFolder, idle_seconds: u32) -> Setup {
    let owner = data.path();
    let command = json!(python_command("examples/waves.py:Waves"));
    let engine = |name: &str| {
        format!(
            "[[engines]]\n\
             name = \"{name}\"\n\
             kind = \"process\"\n\
             device = \"gpu0\"\n\
             memory_megabytes = 600\n\
             command = {command}\n\
             environment = {{ PYTHONPATH = {package:?}, OWNER = {owner:?} }}\n\
             settings = {{ waves = 2 }}\n\
             [engines.describe]\n\
             size_multiple = 2\n\
             fps = 8\n\
             features = {{ text_to_video = true }}\n\
             [[models]]\n\
             id = \"{name}\"\n\
             engine = \"{name}\"\n\
             sizes = [\"256x256\"]\n\
             seconds = [2, 15]\n",
            package = package()
        )
    };
    let setup = Setup::on(data).set("KINORA_METRICS_LISTEN", "127.0.0.1:0");
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
    submit_long(client, model, 2)
}

fn submit_long(client: &Client, model: &str, seconds: u32) -> String {
    let body = json!({"model": model, "prompt": "Waves", "seed": 3, "seconds": seconds});
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

/// The living processes of engines that a service on this folder has started, also one that is gone.
fn of_owner(data: &DataFolder) -> Vec<String> {
    let owner = format!("OWNER={}", data.path().display());
    let processes = std::fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_engine = |number: &String| {
        let read = |name: &str| {
            let bytes = std::fs::read(format!("/proc/{number}/{name}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        // It leads its group. Its watcher, which does not, has the same command line until it has become one.
        let stat = read("stat");
        let group = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(2));
        group == Some(number)
            && read("cmdline").contains("-m\0kinora_engine\0")
            && read("environ").contains(&owner)
    };
    numbers.filter(is_engine).collect()
}

/// The largest number that `count` had at a time while `act` ran.
fn most_during(count: impl Fn() -> usize + Sync, act: impl FnOnce()) -> usize {
    let (done, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                most.fetch_max(count(), Ordering::SeqCst);
                thread::yield_now();
            }
        });
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        done.store(true, Ordering::SeqCst);
        acted.unwrap();
    });
    most.load(Ordering::SeqCst)
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
    let most = most_during(
        || alive(&server),
        || {
            let ids: Vec<String> = (0..TASKS)
                .flat_map(|_| ["sea", "lake"].map(|model| submit(&client, model)))
                .collect();
            for id in ids {
                client.wait_completed(&id);
            }
        },
    );
    assert_eq!(most, 1);
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
    let unloads = "kinora_device_unloads_total{device=\"gpu0\",engine=\"sea\",reason=\"idle\"}";
    let used = "kinora_device_room_bytes{device=\"gpu0\",kind=\"used\"}";
    // The process ends before its room is counted as free.
    let text = until("its room to be free", || {
        let text = scraped(&server);
        (value(&text, used) == Some(0.0)).then_some(text)
    });
    assert_eq!(value(&text, unloads), Some(2.0), "{text}");
}

#[test]
fn after_a_kill_the_engine_is_gone_and_the_tasks_are_made_on_an_empty_device() {
    let data = DataFolder::default();
    let server = sharing_on(&data, 0).start();
    let client = server.client();
    let running = submit_long(&client, "sea", 15);
    client.wait_working(&running);
    let waiting = submit(&client, "lake");
    let orphan = of_owner(&data);
    let mut again = None;
    let most = most_during(
        || of_owner(&data).len(),
        || {
            server.kill();
            let server = again.insert(sharing_on(&data, 0).start());
            let client = server.client();
            for id in [&running, &waiting] {
                client.wait_completed(id);
            }
        },
    );
    assert_eq!((orphan.len(), most), (1, 1), "one at a time, in all");
    let left = of_owner(&data);
    assert!(left.len() == 1 && left != orphan, "{orphan:?}, {left:?}");
    let server = again.unwrap();
    let text = scraped(&server);
    for model in ["sea", "lake"] {
        assert!((loads(&server, model) - 1.0).abs() < f64::EPSILON, "{text}");
        let series = format!("kinora_tasks_completed_total{{model=\"{model}\"}}");
        assert_eq!(value(&text, &series), Some(1.0), "{text}");
    }
    let device = until("the last engine is shown", || {
        Some(shown(&server)).filter(|device| device["engines"][1]["state"] == "idle")
    });
    assert_eq!(device["engines"][0]["state"], "away");
    assert_eq!(
        (&device["used_megabytes"], &device["swaps"]),
        (&json!(600), &json!(1))
    );
}
