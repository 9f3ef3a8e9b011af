//! Devices and servers that break without dying: no task fails that another place completes, the broken place gets no
//! more than a probe, and it is back at work once it is mended.

mod processes;
mod servers;
mod upstream;
mod workers;

use kinora_test_e2e::{Client, Finished, Server, Video, kinora, run, until};
use serde_json::{Value, json};

/// The smallest clip of the model that these tests serve.
fn body(prompt: &str) -> Value {
    json!({"model": "wan", "prompt": prompt, "size": "256x256", "seconds": 2})
}

/// Submits so many tasks, and waits for the end of all.
fn ended(client: &Client, count: usize) -> Vec<Video> {
    let submit = |number| client.submit(&body(&format!("Boat {number}")));
    let ids: Vec<String> = (0..count)
        .map(|number| submit(number).id().to_owned())
        .collect();
    let wait = |id: &String| {
        until(&format!("{id} to end"), || {
            Some(client.video(id)).filter(Video::is_finished)
        })
    };
    ids.iter().map(wait).collect()
}

/// Makes so many tasks; none may fail.
fn assert_all_complete(client: &Client, count: usize) {
    for video in ended(client, count) {
        assert_eq!(video.status(), "completed", "{video:#?}");
    }
}

/// A command beside the service, on its data folder.
fn beside(server: &Server, words: &[&str]) -> Finished {
    let mut command = kinora();
    command.args(words).arg("--data").arg(server.data().path());
    run(command)
}

/// The service's places, as `kinora workers` lists them.
fn places(server: &Server) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&beside(server, &["workers", "--json"]).ok()).unwrap();
    let workers = listed.as_array().unwrap().iter();
    workers
        .flat_map(|worker| worker["places"].as_array().unwrap().clone())
        .collect()
}

/// The place whose name ends so.
fn place(server: &Server, name: &str) -> Value {
    let mut places = places(server).into_iter();
    let found = places.find(|place| place["name"].as_str().unwrap().ends_with(name));
    found.unwrap_or_else(|| panic!("no place {name}"))
}

/// Waits until the place has so many failures; its record is some seconds old.
fn wait_for_failures(server: &Server, name: &str, count: u64) -> Value {
    until(&format!("{name} to fail"), || {
        Some(place(server, name)).filter(|place| place["failures"].as_u64() >= Some(count))
    })
}

/// Makes tasks until the place takes them again.
fn wait_until_back(server: &Server, client: &Client, name: &str) {
    until(&format!("{name} to be back"), || {
        assert_all_complete(client, 3);
        (place(server, name)["state"] == "available").then_some(())
    });
}
