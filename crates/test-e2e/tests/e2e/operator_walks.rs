//! The pages for operators, walked through as they are: all commands of a page, in its order. Only the folders, the
//! addresses and the ids that a page makes up are a test's own.

use std::fs;
use std::process::Command;

use kinora_test_e2e::{
    Block, DataFolder, Host, Running, Server, Setup, blocks, kinora, media, readers_path, run,
    until,
};
use kinora_testkit::postgres::Server as Postgres;
use serde_json::Value;

use crate::cli::bare;
use crate::documents::to_run;
use crate::support::{Download, shared, square};

/// What an operator has who reads a page: a machine with the program, a data folder and room for backups.
struct Machine {
    data: DataFolder,
    /// What the page says, and what it is here.
    own: Vec<(String, String)>,
    path: String,
}

impl Machine {
    /// The machine of somebody who reads this page.
    fn of_reader(page: &str, data: &DataFolder) -> Self {
        let place = |name: &str| data.beside(name).to_str().unwrap().to_owned();
        for folder in ["backups", "etc", "bin"] {
            fs::create_dir(data.beside(folder)).unwrap();
        }
        let programs = data.beside("bin");
        std::os::unix::fs::symlink(kinora().get_program(), programs.join("kinora")).unwrap();
        Self {
            path: readers_path(page, &programs),
            data: data.clone(),
            own: vec![
                ("/var/lib/kinora".to_owned(), place("data")),
                ("/backups".to_owned(), place("backups")),
                ("/etc/kinora".to_owned(), place("etc")),
            ],
        }
    }

    /// With this in the place of what the page says.
    fn with(mut self, page: &str, own: impl Into<String>) -> Self {
        self.own.push((page.to_owned(), own.into()));
        self
    }

    fn shell(&self, text: &str) -> Command {
        let own = self.own.iter();
        let text = own.fold(text.to_owned(), |text, (page, own)| text.replace(page, own));
        let mut command = bare("bash");
        let root = self.data.beside("");
        command
            .args(["-euo", "pipefail", "-c", &text])
            .current_dir(&root)
            .env("PATH", &self.path)
            .env("HOME", root)
            .env("KINORA_DATA", self.data.path());
        command
    }

    /// What these commands print.
    fn says(&self, text: &str) -> String {
        let done = run(self.shell(text));
        assert!(done.status.success(), "{text}\n{done:#?}");
        done.stdout
    }
}

/// A service with a finished task; its machine, whose operator reads this page, and the task's id.
fn service(page: &str) -> (Machine, Server, String) {
    let data = DataFolder::default();
    let server = Setup::on(&data).start();
    let client = server.client();
    let video = client.submit(&square("kinora-a1"));
    client.wait_completed(video.id());
    let machine = Machine::of_reader(page, &data);
    (machine, server, video.id().to_owned())
}

fn all_text(page: &str) -> String {
    to_run(page).into_iter().map(|block| block.text).collect()
}

/// The video of the task plays in a service on this folder.
fn assert_serves(data: &DataFolder, id: &str) {
    let server = Setup::on(data).start();
    let client = server.client();
    let file = Download::of(&client, &client.video(id).content());
    media::assert_decodes(&file.path());
}

#[test]
fn the_page_of_operations_works_as_it_is() {
    let (machine, server, _) = service("docs/operations.md");
    let client = server.client();
    // The file of a first start, which this test's start has taken away already.
    fs::write(machine.data.path().join("first-key"), client.key()).unwrap();
    // The last in the table: the one that was rotated.
    let rotated = "$(kinora keys list | awk '$2 == \"web\" {id = $1} END {print id}')";
    let machine = machine.with("key_abcdefghijkl", rotated);
    let script = all_text("docs/operations.md") + "echo \"$KINORA_KEY\"\n";
    let said = machine.says(&script);
    assert!(said.ends_with(&format!("{}\n", client.key())), "{said}");
    assert!(!machine.data.path().join("first-key").exists());
    let usage = fs::read_to_string(machine.data.beside("usage.csv")).unwrap();
    assert!(usage.starts_with("day,"), "{usage}");
    let log = machine.says("kinora keys log --project shop --json");
    let log: Value = serde_json::from_str(&log).unwrap();
    let actions: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["revoked", "rotated", "created"], "{said}");
}

#[test]
fn the_page_of_backups_works_as_it_is() {
    let (machine, _server, id) = service("docs/backup.md");
    let restored = machine.data.beside("data-restored");
    let own = to_run("docs/backup.md");
    assert_eq!(own.len(), 2, "{own:#?}");
    for Block { text, .. } in own {
        if restored.exists() {
            fs::remove_dir_all(&restored).unwrap();
        }
        // On the day of the page.
        machine.says(&format!("date() {{ echo 2026-11-22; }}\n{text}"));
    }
    let copy = DataFolder::to_restore(&machine.data);
    fs::rename(restored, copy.path()).unwrap();
    assert_serves(&copy, &id);
}

#[test]
fn the_page_of_moves_works_as_it_is() {
    let (machine, server, id) = service("docs/moving.md");
    server.terminate();
    assert!(server.wait().0.success());
    let moved = DataFolder::to_restore(&machine.data);
    let config = format!("data = \"{}\"\n", moved.path().display());
    fs::write(machine.data.beside("etc").join("new.toml"), config).unwrap();
    let said = run(machine.shell(&format!(
        "unset KINORA_DATA\n{}",
        all_text("docs/moving.md")
    )));
    assert!(said.status.success(), "{said:#?}");
    assert_serves(&moved, &id);
}

#[test]
fn the_page_of_several_machines_works_as_it_is() {
    let database = Postgres::shared().database();
    let data = DataFolder::default();
    let page = "postgres://kinora@db.example.com/kinora?sslmode=verify-full";
    let machine =
        Machine::of_reader("docs/many-machines.md", &data).with(page, format!("'{database}'"));
    let config = format!("[store]\nurl = \"{database}\"\n");
    fs::write(data.beside("kinora.toml"), config).unwrap();
    let [first, workers, key] = &to_run("docs/many-machines.md")[..] else {
        panic!("the page has other commands");
    };
    // The reader goes on in another terminal beside what does not end.
    let (mut variables, mut processes) = (String::new(), Vec::new());
    for line in first.text.lines() {
        if line.starts_with("export ") {
            variables += &format!("{line}\n");
        } else if ["serve", "worker"].contains(&line.split(' ').nth(1).unwrap()) {
            let mut process = machine.shell(&format!("{variables}exec {line}"));
            let own = format!("data-{}", processes.len());
            process
                .env("KINORA_DATA", data.beside(&own))
                .env("KINORA_LISTEN", "127.0.0.1:0");
            processes.push(Running::start(process));
        } else {
            machine.says(&format!("{variables}{line}"));
        }
    }
    assert_eq!(processes.len(), 2, "{}", first.text);
    until("the worker to be alive", || {
        let living = machine.says(&format!("{variables}kinora workers --json"));
        (living.trim() != "[]").then_some(())
    });
    let said = machine.says(&format!("{variables}{}", workers.text));
    assert_eq!(said.matches("serving").count(), 2, "{said}");
    machine.says(&key.text);
    let key = fs::read_to_string(data.beside("etc").join("signing.key")).unwrap();
    assert_eq!(key.trim().len(), 64);
}

#[test]
fn a_model_of_ones_own_works_as_its_page_says() {
    let page = blocks("docs/models.md");
    let mut configs = page.iter().filter(|block| block.language == "toml");
    let own = configs.find(|block| block.text.contains("house-1"));
    let server = Setup::default().config(&own.unwrap().text).start();
    let client = server.client();
    let machine = Machine::of_reader("docs/models.md", &DataFolder::default());
    let machine = machine.with("localhost:8080", client.base_url());
    let [_, own] = &to_run("docs/models.md")[..] else {
        panic!("the page has other commands");
    };
    let text = &own.text;
    // The service of the page is the one above.
    let (start, call) = text.split_once('\n').unwrap();
    assert_eq!(start, "kinora serve --config house.toml");
    let call = format!("export KINORA_KEY={}\n{call}", client.key());
    let answer = machine.says(&call.replace("curl ", "curl -sS --fail-with-body "));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let made = client.wait_completed(answer["id"].as_str().unwrap());
    assert_eq!(
        (&made["size"], made["model"].as_str()),
        (&"640x1152".into(), Some("house-1"))
    );
}

#[test]
fn the_files_of_a_model_come_and_go_as_its_page_says() {
    let page = blocks("docs/models.md");
    let mut configs = page.iter().filter(|block| block.language == "toml");
    let config = configs.find(|block| block.text.contains("waves.bin"));
    let publisher = Host::start();
    publisher.serve("waves/waves.bin", "waves\n");
    let machine = Machine::of_reader("docs/models.md", &DataFolder::default());
    fs::write(machine.data.beside("waves.toml"), &config.unwrap().text).unwrap();
    let [files, _] = &to_run("docs/models.md")[..] else {
        panic!("the page has other commands");
    };
    // The address of the page is nobody's.
    let mirror = publisher.url("");
    let said = machine.says(&format!(
        "export KINORA_WEIGHTS_MIRROR={mirror}\n{}",
        files.text
    ));
    for part in [
        "SHA-256 is right",
        "installed",
        "1/1",
        "1 file removed, 6 bytes freed",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!machine.data.beside("weights/waves.bin").exists());
    assert_eq!(publisher.asked_for("waves/waves.bin"), 1);
}

/// Has the page's server choose a free port, and prints it.
const ANY_PORT: &str = r#"
import http.server
class AnyPort(http.server.ThreadingHTTPServer):
    def __init__(self, address, handler):
        assert address == ("127.0.0.1", 9000), address
        super().__init__((address[0], 0), handler)
        print("port", self.server_port, flush=True)
http.server.ThreadingHTTPServer = AnyPort
"#;

#[test]
fn the_policy_service_of_the_page_allows_and_refuses() {
    let [program] = &to_run("docs/policy.md")[..] else {
        panic!("the page has other programs");
    };
    let mut python = bare("python3");
    python.args(["-c", &format!("{ANY_PORT}{}", program.text)]);
    let judge = Running::start(python);
    let port = judge.wait_for_output("port ");
    let port = port.strip_prefix("port ").unwrap();
    let page = blocks("docs/policy.md");
    let config = page.iter().find(|block| block.language == "toml").unwrap();
    let address = format!("127.0.0.1:{port}");
    let server = Setup::default()
        .config(&config.text.replace("10.0.0.7:9000", &address))
        .set("POLICY_TOKEN", "a-token-that-the-page-does-not-look-at")
        .start();
    let client = server.client();
    let mut body = square("kinora-a1");
    body["prompt"] = "A forbidden boat".into();
    let refused = client.submit_json(&body);
    let refused = refused.refused_for(400, "content_policy", None);
    assert_eq!(refused["message"], "This word is not allowed here.");
    let allowed = client.submit(&square("kinora-a1"));
    client.wait_completed(allowed.id());
}

#[test]
fn exiftool_shows_what_the_page_of_provenance_says() {
    let client = shared().newcomer();
    let video = client.submit(&square("kinora-a1"));
    let video = client.wait_completed(video.id());
    let machine = Machine::of_reader("docs/provenance.md", &DataFolder::default());
    let file = Download::of(&client, &video.content());
    fs::copy(file.path(), machine.data.beside("video.mp4")).unwrap();
    let said = machine.says(&all_text("docs/provenance.md"));
    for wanted in ["algorithmicMedia", "Creator Tool", video.id()] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}
