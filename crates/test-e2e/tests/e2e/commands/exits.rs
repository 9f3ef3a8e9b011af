//! Exit codes, and what is said with them: never on standard output.

use std::net::TcpListener;

use kinora_contract::KeyText;
use kinora_test_e2e::{kinora, run};
use serde_json::Value;

use super::{QUICK, assert_film, command, done, only, refused};
use crate::cli::bare;
use crate::support::shared;

#[test]
fn a_failed_task_is_exit_code_1_with_its_reason() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:2000/cat.png";
    let arguments = [
        "generate",
        "A cat",
        "--model",
        "kinora-a1",
        "--first-frame",
        url,
    ];
    let failed = done(&client, folder.path(), &arguments);
    let said = refused(&failed, 1);
    assert!(
        said.contains("reference_forbidden_address") && said.contains("video_"),
        "{said}"
    );
    let failed = done(
        &client,
        folder.path(),
        &[&arguments[..], &["--json"]].concat(),
    );
    assert_eq!(failed.status.code(), Some(1));
    let task: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!(task["error"]["param"], "first_frame");
}

#[test]
fn wrong_usage_is_exit_code_2_and_says_what_to_do() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cat.png"), "").unwrap();
    for (arguments, says) in [
        (
            &["generate", "A cat", "--image", "dog.png"][..],
            "No such file or directory",
        ),
        (
            &["generate", "A cat", "--audio", "example.com/a.wav"],
            "http://",
        ),
        (&["generate"], "kinora generate"),
        (&["generate", "A cat", "--local", "--no-wait"], "--no-wait"),
        (&["tasks", "delete"], "<ID>"),
    ] {
        let refusal = done(&client, folder.path(), arguments);
        assert!(refused(&refusal, 2).contains(says), "{refusal:#?}");
    }
    let mut wrong = kinora();
    wrong
        .args(["tasks", "list"])
        .env("KINORA_URL", "localhost:8080");
    assert!(refused(&run(wrong), 2).contains("KINORA_URL"));
}

#[test]
fn where_no_file_can_be_made_nothing_is_submitted() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("films")).unwrap();
    for output in ["nowhere/x.mp4", "films", "films/.."] {
        let arguments = [&["generate", "A cat", "-o", output], &QUICK[..]].concat();
        let refusal = done(&client, folder.path(), &arguments);
        assert!(refused(&refusal, 2).contains(output), "{refusal:#?}");
    }
    let list = client.get("/v1/videos").ok();
    assert_eq!(list["data"].as_array().map(Vec::len), Some(0), "{list:#}");
    let entries = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 1, "nothing is left of the look");
}

#[test]
fn a_video_that_cannot_be_written_is_exit_code_6_with_the_way_to_save_it() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["generate", "A cat.", "-o", "x.mp4"], &QUICK[..]].concat();
    let generate = command(&client, folder.path(), &arguments);
    // A disk that is full after a kibibyte: the write fails, as no signal ends the program.
    let mut full = bare("bash");
    full.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "bash"])
        .arg(generate.get_program())
        .args(generate.get_args())
        .current_dir(folder.path())
        .env("KINORA_URL", client.base_url())
        .env("KINORA_API_KEY", client.key());
    let ended = run(full);
    let advice = format!("kinora tasks download {}", only(&client));
    assert!(refused(&ended, 6).contains(&advice), "{ended:#?}");
    let download = ["tasks", "download", &only(&client), "-o", "x.mp4"];
    assert_eq!(done(&client, folder.path(), &download).ok(), "x.mp4\n");
    assert_film(&folder.path().join("x.mp4"), (480, 480));
}

#[test]
fn no_server_is_exit_code_3_and_a_wrong_key_is_4() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let client = shared().newcomer();
    let list = ["tasks", "list"];
    let mut away = command(&client, folder.path(), &list);
    away.env("KINORA_URL", format!("http://{nobody}"));
    let away = run(away);
    assert!(refused(&away, 3).contains(&nobody.to_string()), "{away:#?}");

    let mut stranger = command(&client, folder.path(), &list);
    stranger.env("KINORA_API_KEY", "kinora_wrong");
    let stranger = run(stranger);
    let said = refused(&stranger, 4);
    assert!(
        said.contains("KINORA_API_KEY") && !said.contains("kinora_wrong"),
        "{said}"
    );
    let mut keyless = command(&client, folder.path(), &list);
    keyless.env_remove("KINORA_API_KEY");
    let keyless = run(keyless);
    let said = refused(&keyless, 4);
    assert!(
        said.contains("needs an API key") && said.contains("export KINORA_KEY="),
        "{said}"
    );
    // The variable that has the wrong key is named, and what is wrong with it.
    for (key, code, flaw) in [
        ("kinora_wrong", 4, "mistyped"),
        ("kinora_\u{2026}", 4, "mistyped"),
        (
            KeyText::from_random(&[7; 64]).unwrap().reveal(),
            4,
            "revoked",
        ),
    ] {
        let mut mistaken = command(&client, folder.path(), &list);
        mistaken.env_remove("KINORA_API_KEY").env("KINORA_KEY", key);
        let mistaken = run(mistaken);
        let said = refused(&mistaken, code);
        let is_named = said.contains("KINORA_KEY") && !said.contains("KINORA_API_KEY");
        assert!(
            is_named && said.contains(flaw) && !said.contains(key),
            "{said}"
        );
    }
    // The name of the first start's greeting is taken as well.
    let mut greeted = command(&client, folder.path(), &list);
    greeted
        .env_remove("KINORA_API_KEY")
        .env("KINORA_KEY", client.key());
    run(greeted).ok();

    let refusal = done(
        &client,
        folder.path(),
        &["generate", "A cat", "--model", "nobody"],
    );
    let said = refused(&refusal, 4);
    assert!(
        said.contains("model_not_found") && said.contains("request "),
        "{said}"
    );
}

#[test]
fn where_the_usual_address_has_no_server_the_ways_on_are_named() {
    // Whoever has that port here is not to be asked.
    let mut command = bare("unshare");
    command.args(["--user", "--map-root-user", "--net"]);
    command
        .arg(kinora().get_program())
        .args(["generate", "A cat"]);
    let ended = run(command);
    let said = refused(&ended, 3);
    for part in [
        "http://127.0.0.1:8080",
        "kinora serve",
        "KINORA_URL",
        "generate --local",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
