//! The commands that speak to a service: results alone on standard output, exit codes that say what
//! happened, and Ctrl-C that cancels.

mod exits;
mod interrupts;
mod made;
mod page;
mod tasks;

use std::path::Path;
use std::process::Command;

use kinora_test_e2e::{Client, Finished, kinora, media, run};

const QUICK: [&str; 6] = [
    "--model",
    "kinora-a1",
    "--size",
    "480x480",
    "--seconds",
    "2",
];

/// `kinora`, as a user of the service of `client` runs it in `folder`.
fn command(client: &Client, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = kinora();
    command
        .args(arguments)
        .current_dir(folder)
        .env("KINORA_URL", client.base_url())
        .env("KINORA_API_KEY", client.key());
    command
}

pub(crate) fn done(client: &Client, folder: &Path, arguments: &[&str]) -> Finished {
    run(command(client, folder, arguments))
}

/// Asserts that nothing on standard error would move a cursor, and returns it.
fn plain(done: &Finished) -> &str {
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!done.stderr.contains(is_control), "{:?}", done.stderr);
    &done.stderr
}

/// Asserts how a command ended, with nothing on standard output, and returns what it said.
pub(crate) fn refused(done: &Finished, code: i32) -> &str {
    assert_eq!(done.status.code(), Some(code), "{done:#?}");
    assert_eq!(done.stdout, "", "{done:#?}");
    plain(done)
}

fn assert_film(path: &Path, size: (u64, u64)) {
    media::assert_decodes(path);
    assert_eq!(media::picture_size(path), size);
}

fn only(client: &Client) -> String {
    let list = client.get("/v1/videos").ok();
    let tasks = list["data"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{list:#}");
    tasks[0]["id"].as_str().unwrap().to_owned()
}
