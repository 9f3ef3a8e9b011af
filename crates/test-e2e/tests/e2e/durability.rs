//! Nothing that was acknowledged is lost, whenever the process dies: `kill -9` at the moments
//! that hurt, and a restart on the same folder.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kinora_test_e2e::{Client, DataFolder, Hold, RESULT_FILES, Setup, Video, raw, until};

use crate::support::{assert_plays, quick};

/// A service that never gives up on a task for having been killed too often.
fn patient(data: &DataFolder) -> Setup {
    Setup::on(data).set("KINORA_WORKER_ATTEMPTS_MAX", 100)
}

fn submit(client: &Client, ids: &mut Vec<String>, count: usize) {
    for number in 0..count {
        let model = ["kinora-a1", "kinora-b1"][number % 2];
        ids.push(client.submit(&quick(model)).id().to_owned());
    }
}

#[test]
fn p01_no_acknowledged_task_is_lost_whenever_the_process_is_killed() {
    let data = DataFolder::default();
    let mut ids = Vec::new();

    let server = patient(&data).start();
    submit(&server.client(), &mut ids, 3);
    server.kill(); // Right after the acknowledgement.

    // In the middle of the work; with bytes that are there, and a state that is not; right after the state.
    for point in ["worker.prepared", "worker.published", "worker.finished"] {
        let hold = Hold::at(point, 1);
        let server = hold.over(patient(&data)).start();
        submit(&server.client(), &mut ids, 2);
        hold.wait();
        server.kill();
    }

    let server = patient(&data).start();
    let client = server.client();
    for id in &ids {
        assert_plays(&client, &client.wait_completed(id));
    }
    let (_, videos) = client.get("/v1/videos?limit=100&order=asc").list();
    let listed: Vec<&str> = videos.iter().map(Video::id).collect();
    assert_eq!(listed, ids);
}

#[test]
fn p01_submits_that_were_answered_before_a_kill_are_there_after_it() {
    const WANTED: usize = 200;
    let server = Setup::default().set("KINORA_WORKER_SLOTS", 1).start();
    let (data, address) = (server.data().clone(), server.address());
    let key = server.client().key().to_owned();
    let acknowledged = Mutex::new(BTreeSet::new());
    let count = AtomicUsize::new(0);
    let hammer = || {
        let body = quick("kinora-b1").to_string();
        let request = format!(
            "POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        // Until the service is gone, in the middle of whatever it was doing.
        while let Some(reply) = raw::try_exchange(address, request.as_bytes()) {
            acknowledged
                .lock()
                .unwrap()
                .insert(reply.video().id().to_owned());
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(hammer);
        }
        until("enough submits", || {
            (count.load(Ordering::Relaxed) >= WANTED).then_some(())
        });
        server.kill();
    });
    let server = Setup::on(&data).start();
    let client = server.client();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() >= WANTED);
    for id in &acknowledged {
        client.video(id);
    }
}

/// Files in the making.
fn unfinished(data: &DataFolder) -> Vec<PathBuf> {
    let mut files = data.files("work/");
    files.extend(data.files("staging/"));
    files.retain(|path| !path.to_string_lossy().ends_with(".lock"));
    files
}

#[test]
fn p04_a_killed_service_leaves_no_half_file_under_a_result_address() {
    let data = DataFolder::default();
    let mut ids = Vec::new();
    // The first is what a start tries the storage with.
    let hold = Hold::at("blobs.synced", 2);
    let server = hold.over(patient(&data)).start();
    submit(&server.client(), &mut ids, 2);
    hold.wait();
    assert!(!unfinished(&data).is_empty());
    server.kill();
    let server = patient(&data).start();
    let client = server.client();
    for id in &ids {
        let done = client.wait_completed(id);
        assert_plays(&client, &done);
        let length = client
            .request("HEAD", &done.content())
            .send()
            .number("content-length");
        let files = data.files(id);
        let mp4: Vec<_> = files
            .iter()
            .filter(|path| path.ends_with("video.mp4"))
            .collect();
        assert_eq!(mp4.len(), 1, "{files:?}");
        assert_eq!(length, Some(std::fs::metadata(mp4[0]).unwrap().len()));
    }
    assert!(unfinished(&data).is_empty(), "{:?}", unfinished(&data));
}

#[test]
fn p03_what_a_killed_attempt_published_is_swept() {
    let data = DataFolder::default();
    let mut ids = Vec::new();
    // The first is what a start tries the storage with. Between a result's first file and its task's end lie its other files and one commit.
    let hold = Hold::at("blobs.linked", 2);
    let server = hold.over(patient(&data)).start();
    submit(&server.client(), &mut ids, 2);
    hold.wait();
    assert!(!data.files_of_tasks().is_empty());
    server.kill();
    let server = patient(&data).start();
    for id in &ids {
        server.client().wait_completed(id);
    }
    until("one attempt's files for each task", || {
        (data.files_of_tasks().len() == RESULT_FILES * ids.len()).then_some(())
    });
    for id in &ids {
        server.client().delete(&format!("/v1/videos/{id}"));
    }
    until("no file at all", || {
        data.files_of_tasks().is_empty().then_some(())
    });
}
