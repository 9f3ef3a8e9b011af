//! Results that cannot be stored for a while cost no task: on a volume of their own that becomes read-only or
//! full, or whose folders are removed. Submits go on, claims stop, `/readyz` says so, and when results can be
//! stored again all goes on by itself.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use kinora_test_e2e::{Client, Host, Server, Setup, studio, until};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{quick, reaching_from};

const SLOTS: usize = 2;

/// A service whose results are stored on a small file system that only it sees.
struct Volume {
    server: Server,
    folder: TempDir,
}

impl Volume {
    /// With these options of tmpfs.
    fn mounted(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let server = Setup::default()
            .set("KINORA_RESULTS_URL", format!("file:{path}/results"))
            .set("KINORA_WORKER_SLOTS", SLOTS)
            .set("KINORA_QUOTA_FREE_BYTES_MIN", 0)
            .mounting(&format!("mount -t tmpfs -o {options} tmpfs {path}"))
            .start();
        Self { server, folder }
    }

    /// As this process sees it.
    fn path(&self) -> PathBuf {
        self.server.inside(self.folder.path())
    }

    fn remount(&self, how: &str) {
        // A file that is open for writing forbids it for a moment.
        until("the volume to be mounted again", || {
            let done = self.run(&["mount", "-o", &format!("remount,bind,{how}")]);
            done.then_some(())
        });
    }

    /// Runs a command on the folder, where the service sees it; whether it succeeded.
    fn run(&self, command: &[&str]) -> bool {
        let status = Command::new("nsenter")
            .args(["--user", "--mount", "--preserve-credentials", "--target"])
            .arg(self.server.process_id().to_string())
            .args(command)
            .arg(self.folder.path())
            .status();
        status.unwrap().success()
    }

    /// Accepted tasks outlast a time in which results cannot be stored: from `begin` to `end`.
    fn outlasts(&self, begin: impl FnOnce(), end: impl FnOnce()) {
        let client = self.server.client();
        let before = client.submit(&quick("kinora-b1"));
        client.wait_completed(before.id());
        becomes_ready(&self.server);
        let starts = || self.server.logged(&["\"task started\""]);
        let started = starts();
        begin();
        let mut ids = submit(&client, 6);
        becomes_unready(&self.server);
        // They are only queued: reads and submits go on.
        ids.extend(submit(&client, 2));
        client.get("/v1/videos").list();
        let since = Instant::now();
        until("some probes to fail", || {
            (since.elapsed() > Duration::from_secs(4)).then_some(())
        });
        for id in &ids {
            assert!(!client.video(id).is_finished(), "{id}");
        }
        // None is begun in vain but those that found out.
        let in_vain = starts() - started;
        assert!(in_vain <= SLOTS, "{in_vain}\n{}", self.server.log());
        end();
        // Before any of them is completed, and asked by nobody.
        becomes_ready(&self.server);
        for id in &ids {
            client.wait_completed(id);
        }
    }
}

fn submit(client: &Client, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| client.submit(&quick("kinora-b1")).id().to_owned())
        .collect()
}

fn becomes_ready(server: &Server) {
    until("the service to be ready", || {
        (server.anonymous().get("/readyz").status == 200).then_some(())
    });
}

fn becomes_unready(server: &Server) {
    let refused = until("the service not to be ready", || {
        let reply = server.anonymous().get("/readyz");
        (reply.status != 200).then_some(reply)
    });
    refused.refused(503, "storage_unavailable");
    assert!(refused.number("retry-after").is_some());
    assert_eq!(server.anonymous().get("/healthz").status, 200);
}

#[test]
fn p11_a_volume_for_results_that_becomes_read_only_costs_no_task() {
    let volume = Volume::mounted("size=64m");
    volume.outlasts(|| volume.remount("ro"), || volume.remount("rw"));
}

#[test]
fn p11_a_volume_for_results_that_is_not_mounted_costs_no_task_and_nothing_is_stored_in_its_place() {
    let volume = Volume::mounted("size=64m");
    let client = volume.server.client();
    let known = client.submit(&quick("kinora-b1"));
    let known = client.wait_completed(known.id());
    let hide = || {
        assert!(volume.run(&["mount", "-t", "tmpfs", "tmpfs"]));
        client
            .get(&known.content())
            .refused(503, "storage_unavailable");
    };
    let show = || {
        assert_eq!(fs::read_dir(volume.path()).unwrap().count(), 0);
        assert!(volume.run(&["umount"]));
    };
    volume.outlasts(hide, show);
    assert_eq!(client.get(&known.content()).status, 200);
}

#[test]
fn p11_a_full_volume_for_results_costs_no_task() {
    let volume = Volume::mounted("size=24m");
    let ballast = volume.path().join("ballast");
    let fill = || {
        let room = 30 << 20;
        // Writes as much as there is room for.
        assert!(fs::write(&ballast, vec![7; room]).is_err());
    };
    volume.outlasts(fill, || fs::remove_file(&ballast).unwrap());
}

#[test]
fn p11_a_volume_for_results_without_inodes_costs_no_task() {
    let volume = Volume::mounted("size=64m,nr_inodes=200");
    let ballast = volume.path().join("ballast");
    let fill = || {
        fs::create_dir(&ballast).unwrap();
        let last = (0..).find(|number| fs::write(ballast.join(number.to_string()), "").is_err());
        assert!(last.is_some());
    };
    volume.outlasts(fill, || fs::remove_dir_all(&ballast).unwrap());
}

#[test]
fn p11_folders_that_are_removed_are_made_again() {
    let server = reaching_from(Setup::default()).start();
    let (client, host) = (server.client(), Host::start());
    let picture = studio::picture("still.png", (320, 256), "teal");
    let mut with_reference = quick("kinora-b1");
    with_reference["first_frame"] = json!(host.serve("still.png", picture));
    let data = server.data().path();
    for gone in ["results/staging", "results/objects", "work"] {
        for body in [quick("kinora-b1"), with_reference.clone()] {
            fs::remove_dir_all(data.join(gone)).unwrap();
            let ids = [client.submit(&body), client.submit(&body)];
            for video in ids {
                client.wait_completed(video.id());
            }
        }
    }
    server.wait_for_log(&["result store folder missing; created it again", "staging"]);
    server.wait_for_log(&["scratch folder missing; created it again"]);
    becomes_ready(&server);
}
