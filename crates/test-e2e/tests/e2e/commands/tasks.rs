//! `kinora tasks`.

use serde_json::Value;

use super::{assert_film, done, plain, refused};
use crate::support::{busy, quick, shared, slow};

#[test]
fn all_waiting_tasks_are_cancelled_by_one_command() {
    let (server, blocker) = busy();
    let client = server.newcomer();
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| done(&client, folder.path(), arguments).ok();
    for model in ["kinora-a1", "kinora-a1", "kinora-b1"] {
        client.submit(&quick(model));
    }
    let of_model = ["tasks", "cancel", "--waiting", "--model", "kinora-b1"];
    assert_eq!(run(&of_model), "1 task cancelled\n");
    let json = run(&["tasks", "cancel", "--waiting", "--json"]);
    assert_eq!(json, "{\"cancelled\":2}\n");
    assert_eq!(
        run(&["tasks", "cancel", "--waiting"]),
        "0 tasks cancelled\n"
    );
    let unknown = ["tasks", "cancel", "--waiting", "--model", "none"];
    let unknown = done(&client, folder.path(), &unknown);
    assert!(refused(&unknown, 4).contains("'none'"), "{unknown:?}");
    for wrong in [
        &["tasks", "cancel"][..],
        &["tasks", "cancel", "--model", "kinora-a1", "video_x"],
        &["tasks", "cancel", "--waiting", "video_x"],
    ] {
        assert_eq!(done(&client, folder.path(), wrong).status.code(), Some(2));
    }
    let blocker = format!("/v1/videos/{}", blocker.id());
    server.client().delete(&blocker).ok();
}

#[test]
fn tasks_are_listed_shown_watched_saved_cancelled_and_deleted() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let ended = done(&client, folder.path(), arguments);
        plain(&ended);
        ended.ok()
    };
    assert!(run(&["tasks", "list"]).contains("No tasks"));
    let made = client.submit(&quick("kinora-b1"));
    let id = made.id();
    assert_eq!(run(&["tasks", "watch", id]), "completed\n");
    let changes = run(&["tasks", "watch", id, "--json"]);
    let last: Value = serde_json::from_str(changes.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["id"], &last["status"]),
        (&id.into(), &"completed".into())
    );
    assert_eq!(run(&["tasks", "download", id, "-o", "b.mp4"]), "b.mp4\n");
    assert_film(&folder.path().join("b.mp4"), (854, 480));

    let table = run(&["tasks", "list"]);
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains(id) && table.contains("completed"), "{table}");
    let list: Value =
        serde_json::from_str(&run(&["tasks", "list", "--json", "--limit", "1"])).unwrap();
    assert_eq!(list[0]["id"], id);
    let shown = run(&["tasks", "show", id]);
    assert!(
        shown.contains("kinora-b1") && shown.contains("A paper boat"),
        "{shown}"
    );
    let shown: Value = serde_json::from_str(&run(&["tasks", "show", id, "--json"])).unwrap();
    assert_eq!(shown["frames"], client.video(id)["frames"]);

    let finished = done(&client, folder.path(), &["tasks", "cancel", id]);
    assert!(
        refused(&finished, 4).contains("not_cancellable"),
        "{finished:#?}"
    );
    let other = client.submit(&slow());
    assert_eq!(
        run(&["tasks", "cancel", other.id()]),
        format!("{}\n", other.id())
    );
    let watched = done(&client, folder.path(), &["tasks", "watch", other.id()]);
    assert_eq!(
        (watched.status.code(), watched.stdout.as_str()),
        (Some(1), "failed\n")
    );
    assert_eq!(
        run(&["tasks", "delete", id, other.id()]),
        format!("{id}\n{}\n", other.id())
    );
    let gone = done(&client, folder.path(), &["tasks", "show", id]);
    assert!(refused(&gone, 4).contains("video_not_found"), "{gone:#?}");
}
