//! Videos made by a command: the file, and the result alone on standard output.

use kinora_test_e2e::{kinora, run, studio};
use serde_json::Value;

use super::{QUICK, assert_film, done, only, plain, refused};
use crate::support::shared;

#[test]
fn a_command_makes_a_video_and_prints_its_path_alone() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        &[
            "generate",
            "A red boat on a lake",
            "-o",
            "out.mp4",
            "--seed",
            "7",
        ],
        &QUICK[..],
    ];
    let made = done(&client, folder.path(), &arguments.concat());
    assert_eq!(
        (made.stdout.as_str(), plain(&made)),
        ("out.mp4\n", ""),
        "{made:#?}"
    );
    assert!(made.status.success());
    assert_film(&folder.path().join("out.mp4"), (480, 480));
    let task = client.video(&only(&client));
    assert_eq!(
        (&task["seed"], &task["prompt"]),
        (&7.into(), &"A red boat on a lake".into())
    );
    let entries = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 1, "no partial file is left");
}

#[test]
fn without_a_model_the_first_that_fits_is_taken() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    for (flags, model) in [
        (&["--seconds", "auto"][..], "kinora-b1"),
        (&["--draft"], "kinora-a1"),
    ] {
        let arguments = [
            &[
                "generate",
                "A boat.",
                "--no-wait",
                "--json",
                "--aspect-ratio",
                "1:1",
            ],
            flags,
        ];
        let made = done(&client, folder.path(), &arguments.concat()).ok();
        let task: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(task["model"], model);
        client.post(&format!(
            "/v1/videos/{}/cancel",
            task["id"].as_str().unwrap()
        ));
    }
}

#[test]
fn json_is_the_task_and_where_its_file_is() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["generate", "A paper boat", "--json"], &QUICK[..]].concat();
    let made = done(&client, folder.path(), &arguments).ok();
    let task: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(task["status"], "completed");
    let id = task["id"].as_str().unwrap();
    assert_eq!(task["file"], format!("{id}.mp4"));
    assert_film(&folder.path().join(format!("{id}.mp4")), (480, 480));
    let mut sent = client.get(&format!("/v1/videos/{id}")).ok();
    sent["file"] = task["file"].clone();
    // The same task, but for what is signed anew.
    for name in [
        "id",
        "model",
        "prompt",
        "seed",
        "engine",
        "duration",
        "object",
        "expires_at",
    ] {
        assert_eq!(task[name], sent[name], "{name}");
    }
}

#[test]
fn a_draft_its_final_and_an_edit_of_it() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let made = done(&client, folder.path(), arguments).ok();
        serde_json::from_str::<Value>(&made).unwrap()
    };
    let draft = run(&[
        "generate",
        "A harbour",
        "--draft",
        "--json",
        "-o",
        "draft.mp4",
        "--size",
        "720x720",
        "--seconds",
        "2",
    ]);
    assert_eq!(
        (&draft["draft"], &draft["size"]),
        (&true.into(), &"480x480".into())
    );
    let id = draft["id"].as_str().unwrap();
    let last = run(&["final", id, "--json", "-o", "final.mp4"]);
    assert_eq!(last["draft_task_id"], id);
    assert_eq!(last["seed"], draft["seed"]);
    assert_film(&folder.path().join("final.mp4"), (720, 720));
    let last = last["id"].as_str().unwrap();
    let edit = run(&[
        "edit",
        last,
        "At night",
        "--strength",
        "0.8",
        "--json",
        "-o",
        "edit.mp4",
    ]);
    assert_eq!(edit["edit_task_id"], last);
    assert_film(&folder.path().join("edit.mp4"), (720, 720));
}

#[test]
fn one_command_makes_a_video_without_any_server() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = kinora();
    command
        .args([
            "generate",
            "--local",
            "A red boat on a lake",
            "-o",
            "out.mp4",
        ])
        .args(QUICK)
        .current_dir(folder.path())
        .env("TMPDIR", &temporary)
        // A store of somebody else, which is not for this.
        .env("KINORA_STORE_URL", "postgres://127.0.0.1:9/x");
    let made = run(command);
    assert_eq!(
        (made.stdout.as_str(), plain(&made)),
        ("out.mp4\n", ""),
        "{made:#?}"
    );
    assert_film(&folder.path().join("out.mp4"), (480, 480));
    assert_eq!(
        std::fs::read_dir(temporary).unwrap().count(),
        0,
        "nothing is left"
    );
}

#[test]
fn pictures_of_this_machine_are_uploaded_and_listed_and_deleted() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let picture = studio::picture("day.png", (300, 300), "red");
    std::fs::write(folder.path().join("day.png"), picture).unwrap();
    let run = |arguments: &[&str]| {
        let ended = done(&client, folder.path(), arguments);
        plain(&ended);
        ended.ok()
    };
    assert!(run(&["files", "list"]).contains("No files"));
    let frames = ["--first-frame", "day.png", "--last-frame", "./day.png"];
    let arguments = [
        &["generate", "Day turns into night", "-o", "out.mp4"],
        &frames[..],
        &QUICK,
    ];
    assert_eq!(run(&arguments.concat()), "out.mp4\n");
    assert_film(&folder.path().join("out.mp4"), (480, 480));

    let table = run(&["files", "list"]);
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(
        table.contains("day.png") && table.contains("user_data"),
        "{table}"
    );
    let list = run(&["files", "list", "--json", "--limit", "1"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    assert_eq!(run(&["files", "delete", id]), format!("{id}\n"));
    let again = done(&client, folder.path(), &["files", "delete", id]);
    let says = refused(&again, 4);
    assert!(
        says.contains(id) && says.contains("file_not_found"),
        "{says}"
    );

    std::fs::write(folder.path().join("text.png"), "hello").unwrap();
    let arguments = [
        "generate",
        "A boat",
        "--no-wait",
        "--first-frame",
        "text.png",
    ];
    let bad = done(&client, folder.path(), &arguments);
    let says = refused(&bad, 4);
    assert!(
        says.contains("text.png: ") && says.contains("unsupported_file"),
        "{says}"
    );
    only(&client);
}
