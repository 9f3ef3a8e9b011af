//! `docs/webhooks.md`, walked through as its readers do: an operator at the machine of the service, a client beside
//! it, and a receiver that verifies.

use std::process::Command;

use kinora_test_e2e::{
    Block, Client, DataFolder, Posted, Receiver, keys, kinora, readers_path, run, workspace,
};
use serde_json::json;
use tempfile::TempDir;

use crate::cli::bare;
use crate::documents::to_run;
use crate::webhooks::{list, log, serve, verifies, wait_logged};

/// What the page says where a reader puts values of their own.
const ID: &str = "wh_abcdefghijkl";
const ADDRESS: &str = "https://shop.example.com/videos";
const REDELIVER: &str = "redeliver 4711";
const SECRET: &str = "whsec_…";

/// A test event, and the ends of two tasks with a callback each: what is posted before the page makes one again.
const TOLD: usize = 5;

/// What a receiver has around the page's code, `{}`: the request, a queue, and an interest in whether it works.
const AROUND: &str = r#"
import json, os
body, headers = os.environ["BODY"].encode(), json.loads(os.environ["HEADERS"])
sent, queue = json.loads(body), []
def enqueue(*one):
    queue.append(one)
{}
if "receive" in globals():
    assert receive(body, headers) == 204 and queue == [(sent["id"], sent["data"]["id"])], queue
    assert receive(body + b" ", headers) == 400
else:
    assert event == sent, event
"#;

/// A reader of the page, with what they have so far.
struct Reader {
    data: DataFolder,
    client: Client,
    receiver: Receiver,
    folder: TempDir,
    secret: String,
}

impl Reader {
    /// The webhook with an address.
    fn id(&self) -> Option<String> {
        let known = list(&self.data);
        let own = known.iter().find(|one| one["url"].is_string())?;
        Some(own["id"].as_str().unwrap().to_owned())
    }

    /// The text of a block with the reader's own values.
    fn own(&self, text: &str) -> String {
        let text = text
            .replace(ADDRESS, &self.receiver.url("videos"))
            .replace("http://127.0.0.1:8080", self.client.base_url())
            .replace(SECRET, &self.secret);
        let Some(id) = self.id() else {
            return text;
        };
        let text = text.replace(ID, &id);
        if !text.contains(REDELIVER) {
            return text;
        }
        self.receiver.wait_for(TOLD);
        let newest = wait_logged(&self.data, &id, |one| one["state"] == "delivered");
        text.replace(REDELIVER, &format!("redeliver {}", newest["number"]))
    }

    /// The end of a task as the webhook was told of it.
    fn completed(&self) -> Posted {
        let told = self.receiver.wait_for(TOLD).into_iter();
        let mut completed = told
            .filter(|one| one.line == "POST /videos" && one.event()["type"] == "video.completed");
        completed.next().unwrap()
    }

    fn python(&self, text: &str) {
        let mut command = Command::new(workspace().join(".venv/bin/python"));
        command.args(["-c", &AROUND.replace("{}", &self.own(text))]);
        let told = self.completed();
        command
            .env("HEADERS", json!(told.headers).to_string())
            .env("BODY", told.body)
            .env_remove("OPENAI_API_KEY");
        let done = run(command);
        assert!(done.status.success(), "{text}\n{done:#?}");
    }

    fn shell(&self, text: &str) -> String {
        let curl = "curl() { command curl -sS --fail-with-body \"$@\"; }";
        let mut command = bare("bash");
        command
            .args([
                "-euo",
                "pipefail",
                "-c",
                &format!("{curl}\n{}", self.own(text)),
            ])
            .current_dir(self.folder.path())
            .env("PATH", readers_path("docs/webhooks.md", self.folder.path()))
            .env("KINORA_DATA", self.data.path())
            .env("KINORA_URL", self.client.base_url())
            .env("KINORA_KEY", self.client.key());
        if text.contains("$TIMESTAMP") {
            let told = self.completed();
            command
                .env("SECRET", &self.secret)
                .env("ID", told.header("webhook-id"))
                .env("TIMESTAMP", told.header("webhook-timestamp"))
                .env("BODY", &told.body);
        }
        let done = run(command);
        assert!(done.status.success(), "{text}\n{done:#?}");
        done.stdout
    }

    /// Does what a block says, and looks at what comes of it.
    fn follow(&mut self, Block { language, text, .. }: &Block) {
        if language == "python" {
            return self.python(text);
        }
        let printed = self.shell(text);
        let first = printed.lines().next().unwrap_or_default();
        if self.secret.is_empty() {
            self.secret = first.to_owned();
        }
        if text.contains("$TIMESTAMP") {
            let signature = self.completed().header("webhook-signature").to_owned();
            assert_eq!(format!("v1,{}", printed.trim()), signature);
        }
        if text.contains("webhooks rotate") {
            assert_ne!(first, self.secret);
            self.secret = first.to_owned();
        }
    }
}

#[test]
fn the_page_of_webhooks_works_as_it_is() {
    let data = DataFolder::default();
    let server = serve(&data).start();
    let key = keys(&data, &["create", "--name", "shop", "--project", "shop"]).ok();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(kinora().get_program(), folder.path().join("kinora")).unwrap();
    let mut reader = Reader {
        client: server.client_with(key.trim()),
        receiver: Receiver::start(),
        secret: String::new(),
        folder,
        data,
    };
    let own = to_run("docs/webhooks.md");
    assert!(own.len() > 7, "{own:#?}");
    own.iter().for_each(|block| reader.follow(block));

    let id = reader.id().unwrap();
    let told = reader.receiver.wait_for(TOLD + 1);
    let callbacks = told.iter().filter(|one| one.line == "POST /videos/4711");
    assert_eq!(callbacks.count(), 2, "by curl and by the command line");
    let newest = &log(&reader.data, &id)[0]["event"];
    let of_newest = |one: &&Posted| newest == one.header("webhook-id");
    assert!(told.iter().filter(of_newest).count() > 1, "made again");
    // The event after the rotation is believed with the new secret as well.
    let tested = reader.shell(&format!("kinora webhooks test {ID}"));
    assert!(tested.contains("answered 200"), "{tested}");
    let posted = reader.receiver.posted();
    assert!(verifies(posted.last().unwrap(), &reader.secret));
}
