//! What was answered 503 is not done after all: the log of the store may hold the commit whose sync failed, and
//! a restart would find it there. `strace` makes syncs fail under the running service.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kinora_test_e2e::{DataFolder, Server, Setup, until};

use crate::support::{quick, slow};

/// Makes every sync of the service's database fail until it is dropped, or the service dies.
struct FailingSyncs(Child);

/// In a user namespace of its own, whose processes may be traced from outside of it without being their parent.
fn traceable(setup: Setup) -> Setup {
    setup.under(&["unshare", "--user", "--map-root-user"])
}

impl FailingSyncs {
    fn under(server: &Server) -> Self {
        let id = server.process_id().to_string();
        let strace = Command::new("nsenter")
            .args(["--user", "--preserve-credentials", "--target", &id])
            .args(["strace", "-f", "-qq", "-o", "/dev/null"])
            .args(["-e", "trace=fdatasync"])
            .args(["-e", "inject=fdatasync:error=EIO", "-p", &id])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let threads = PathBuf::from(format!("/proc/{id}/task"));
        until("every thread to be traced", || {
            let mut threads = std::fs::read_dir(&threads).unwrap();
            let traced = |path: PathBuf| {
                let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
                !status.contains("TracerPid:\t0\n")
            };
            let all = threads.all(|thread| traced(thread.unwrap().path()));
            all.then_some(())
        });
        Self(strace)
    }
}

impl Drop for FailingSyncs {
    fn drop(&mut self) {
        // It may have ended with the service.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

#[test]
fn p01_what_was_answered_503_does_not_come_back_after_a_restart() {
    let data = DataFolder::default();
    let server = traceable(Setup::on(&data).set("KINORA_WORKER_SLOTS", 1)).start();
    let client = server.client();
    let kept = [client.submit(&slow()), client.submit(&quick("kinora-b1"))];
    let failing = FailingSyncs::under(&server);
    let mut body = quick("kinora-a1");
    body["prompt"] = "A boat that nobody ordered".into();
    let refused = client.submit_json(&body);
    refused.refused(503, "storage_unavailable");
    let cancel = client.post(&format!("/v1/videos/{}/cancel", kept[1].id()));
    cancel.refused(503, "storage_unavailable");
    server
        .anonymous()
        .get("/readyz")
        .refused(503, "storage_unavailable");
    server.kill();
    drop(failing);

    let server = Setup::on(&data).start();
    let client = server.client();
    let (_, listed) = client.get("/v1/videos?limit=100").list();
    assert_eq!(listed.len(), kept.len(), "{listed:#?}");
    for video in &kept {
        assert_ne!(client.video(video.id()).status(), "failed");
    }
}

/// A sync that fails once fails the submits that waited for it; the service goes on by itself.
#[test]
fn p11_syncs_that_fail_for_a_while_refuse_submits_and_the_service_recovers_without_traffic() {
    let server = traceable(Setup::default()).start();
    let client = server.client();
    let failing = FailingSyncs::under(&server);
    client
        .submit_json(&quick("kinora-b1"))
        .refused(503, "storage_unavailable");
    server
        .anonymous()
        .get("/readyz")
        .refused(503, "storage_unavailable");
    drop(failing);
    until("the service to be ready", || {
        (server.anonymous().get("/readyz").status == 200).then_some(())
    });
    let (_, listed) = client.get("/v1/videos").list();
    assert!(listed.is_empty(), "{listed:#?}");
    let video = client.submit(&quick("kinora-b1"));
    client.wait_completed(video.id());
}
