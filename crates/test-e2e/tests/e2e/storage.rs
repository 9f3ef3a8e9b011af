//! A disk that is full, in each place where it hurts: reads go on, nothing is half accepted, and
//! when there is room again the service goes on by itself. The disk is a small tmpfs that only
//! the service sees.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use kinora_test_e2e::{Client, Form, Host, Server, Setup, studio, until};
use serde_json::json;

use crate::support::{quick, reaching_from, slow};
use crate::uploads::day;

/// A service whose data lie on a file system of `mebibytes`, of which it reserves some.
fn on_small_disk(mebibytes: u32, reserve_bytes: u64) -> Server {
    // What is made takes the room that it would.
    let setup = reaching_from(Setup::default().painted());
    let setup = setup.set("KINORA_QUOTA_FREE_BYTES_MIN", reserve_bytes);
    let data = setup.data_path();
    setup
        .set("KINORA_DATA", data.display())
        .mounting(&format!(
            "mkdir -p \"$KINORA_DATA\" && \
             mount -t tmpfs -o size={mebibytes}m tmpfs \"$KINORA_DATA\""
        ))
        .start()
}

/// A file that takes all room but `left` bytes.
struct Ballast(PathBuf);

impl Ballast {
    fn load(server: &Server, left: u64) -> Self {
        let folder = server.inside(&server.data().path());
        let path = folder.join("ballast");
        let mut file = fs::File::create(&path).unwrap();
        let mut written = 0;
        let page = [7_u8; 4096];
        while file.write_all(&page).is_ok() {
            written += page.len() as u64;
        }
        file.set_len(written.saturating_sub(left)).unwrap();
        Self(path)
    }

    fn drop_it(self) {
        fs::remove_file(&self.0).unwrap();
    }
}

fn assert_reads_go_on(client: &Client, id: &str) {
    client.video(id);
    client.get("/v1/videos").list();
    assert_eq!(client.get("/v1/models").status, 200);
}

/// By itself: nobody submits meanwhile.
fn becomes_ready(server: &Server) {
    until("the service to be ready", || {
        (server.anonymous().get("/readyz").status == 200).then_some(())
    });
}

/// Files in the making, on the service's own disk.
fn staged(server: &Server) -> usize {
    let folder: &Path = &server.data().path().join("work");
    let of_process = |entry: std::io::Result<fs::DirEntry>| {
        let entries = fs::read_dir(entry.unwrap().path());
        entries.map_or(0, Iterator::count)
    };
    let processes = fs::read_dir(server.inside(folder)).unwrap();
    processes.map(of_process).sum()
}

#[test]
fn p11_a_full_disk_refuses_submits_and_recovers_by_itself() {
    let server = on_small_disk(24, 0);
    let client = server.client();
    let before = client.submit(&quick("kinora-b1"));
    client.wait_completed(before.id());
    let ballast = Ballast::load(&server, 0);
    let mut refused = None;
    // The log may have a little room of its own left.
    until("a submit to be refused", || {
        let reply = client.submit_json(&json!({
            "model": "kinora-b1", "prompt": "x".repeat(5000), "seconds": 2, "resolution": "480p",
        }));
        refused = (reply.status != 200).then_some(reply);
        refused.is_some().then_some(())
    });
    let refused = refused.unwrap();
    refused.refused(503, "storage_unavailable");
    assert!(
        refused
            .number("retry-after")
            .is_some_and(|s| (1..=120).contains(&s))
    );
    assert_reads_go_on(&client, before.id());
    server
        .anonymous()
        .get("/readyz")
        .refused(503, "storage_unavailable");
    let (_, listed) = client.get("/v1/videos?limit=100").list();
    ballast.drop_it();
    becomes_ready(&server);
    // Nothing of the refused one is there, and the next is taken without a restart.
    let after = until("a submit to be taken again", || {
        let reply = client.submit_json(&quick("kinora-a1"));
        (reply.status == 200).then(|| reply.video())
    });
    client.wait_completed(after.id());
    let (_, all) = client.get("/v1/videos?limit=100").list();
    assert_eq!(all.len(), listed.len() + 1);
}

#[test]
fn p11_a_disk_too_full_for_the_result_keeps_the_task_for_later_and_leaves_nothing() {
    let server = on_small_disk(24, 0);
    let client = server.client();
    let ballast = Ballast::load(&server, 150_000);
    let mut body = quick("kinora-a1");
    body["resolution"] = json!("1080p");
    let kept = client.submit(&body);
    server.wait_for_log(&["because of this machine", kept.id()]);
    // A task that was begun shows so while it waits to be begun again.
    assert_eq!(client.video(kept.id()).status(), "in_progress");
    until("nothing to be left of the attempt", || {
        (staged(&server) == 0).then_some(())
    });
    ballast.drop_it();
    client.wait_completed(kept.id());
}

#[test]
fn p11_a_disk_too_full_for_a_reference_holds_the_task_up_until_there_is_room() {
    let server = on_small_disk(24, 0);
    let client = server.client();
    let host = Host::start();
    let picture = studio::landscape("large.bmp.png", (1600, 1200));
    assert!(picture.len() > 300_000, "{} bytes", picture.len());
    let ballast = Ballast::load(&server, 150_000);
    let mut body = quick("kinora-b1");
    body["first_frame"] = json!(host.serve("large.png", picture));
    let waiting = client.submit(&body);
    server.wait_for_log(&["references could not be stored", waiting.id()]);
    assert_eq!(client.video(waiting.id()).status(), "queued");
    ballast.drop_it();
    client.wait_completed(waiting.id());
    assert_eq!(staged(&server), 0);
}

#[test]
fn p11_a_disk_too_full_for_an_upload_refuses_it_and_keeps_nothing_of_it() {
    let server = on_small_disk(24, 0);
    let client = server.client();
    let picture = studio::landscape("large.png", (1600, 1200));
    assert!(picture.len() > 300_000, "{} bytes", picture.len());
    let large = Form::default().part("; name=\"file\"; filename=\"large.png\"", &picture);
    let upload = || client.request("POST", "/v1/files").form(&large).send();
    let ballast = Ballast::load(&server, 150_000);
    let refused = upload();
    refused.refused(503, "storage_unavailable");
    assert!(refused.number("retry-after").is_some());
    until("nothing to be left of the upload", || {
        (staged(&server) == 0).then_some(())
    });
    assert_eq!(client.get("/v1/files").ok()["data"], json!([]));
    ballast.drop_it();
    becomes_ready(&server);
    let file = until("an upload to be taken again", || {
        let reply = upload();
        (reply.status == 200).then(|| reply.ok())
    });
    let mut body = quick("kinora-b1");
    body["first_frame"] = file["url"].clone();
    client.wait_completed(client.submit(&body).id());
}

/// What was accepted before can still be published.
#[test]
fn p11_below_the_reserve_of_free_space_submits_stop_and_results_are_published() {
    // 2 % of 256 MiB are less than the configured reserve, and enough for a clip and the log of its progress.
    let server = on_small_disk(256, 1 << 30);
    let client = server.client();
    let running = client.submit(&quick("kinora-a1"));
    let ballast = Ballast::load(&server, 4_500_000);
    let unready = until("the service not to be ready", || {
        let reply = server.anonymous().get("/readyz");
        (reply.status != 200).then_some(reply)
    });
    unready.refused(503, "storage_unavailable");
    let refused = client.submit_json(&quick("kinora-b1"));
    refused.refused(503, "storage_unavailable");
    assert!(refused.number("retry-after").is_some());
    let upload = client.request("POST", "/v1/files").form(&day());
    upload.send().refused(503, "storage_unavailable");
    assert!(server.data().files("uploads").is_empty());
    client.wait_completed(running.id());
    ballast.drop_it();
    becomes_ready(&server);
    until("a submit to be taken again", || {
        let reply = client.submit_json(&quick("kinora-b1"));
        (reply.status == 200).then_some(())
    });
}

/// The log of what was deleted again must not take the room that the rest needs.
#[test]
fn p11_submits_and_deletes_without_end_fit_on_a_small_disk() {
    const PAIRS: usize = 2_500;
    let server = on_small_disk(48, 0);
    let live = server.client().submit(&slow());
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = server.client();
                while done.fetch_add(1, Ordering::Relaxed) < PAIRS {
                    let id = client.submit(&quick("kinora-b1")).id().to_owned();
                    client.delete(&format!("/v1/videos/{id}")).ok();
                }
            });
        }
    });
    server.client().video(live.id());
}
