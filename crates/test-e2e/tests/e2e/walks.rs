//! The README and the tutorial, walked through as a newcomer does: all blocks of a page, in its order, in one shell.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use kinora_test_e2e::{Client, Finished, kinora, media, readers_path, run, workspace};
use tempfile::TempDir;

use crate::cli::bare;
use crate::documents::to_run;
use crate::support::shared;

/// Where a newcomer stands: in a checkout after a build.
fn checkout() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("target/release");
    std::fs::create_dir_all(&place).unwrap();
    symlink(kinora().get_program(), place.join("kinora")).unwrap();
    folder
}

/// What a reader types on this page, as one script. Python runs where OpenAI's SDK is installed.
fn script(page: &str, client: &Client) -> String {
    let python = workspace().join(".venv/bin/python");
    let mut script = "curl() { command curl -sS --fail-with-body \"$@\"; }\n".to_owned();
    for block in to_run(page) {
        script += &match &*block.language {
            "python" => format!("{} - <<'PYTHON'\n{}PYTHON\n", python.display(), block.text),
            _ => block.text,
        };
    }
    script.replace("http://127.0.0.1:8080", client.base_url())
}

/// Runs a script as the reader of a page does, in a checkout.
fn run_as_reader(page: &str, script: &str, client: &Client) -> (Finished, TempDir) {
    let (folder, programs) = (checkout(), tempfile::tempdir().unwrap());
    let mut command = bare("bash");
    command
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(folder.path())
        .env("PATH", readers_path(page, programs.path()))
        .env("HOME", folder.path())
        .env("KINORA_URL", client.base_url())
        .env("KINORA_KEY", client.key());
    (run(command), folder)
}

/// Follows a page, and returns what was said and the videos that its reader has now.
fn walk(page: &str) -> (Finished, TempDir, Vec<PathBuf>) {
    let client = shared().newcomer();
    let (done, folder) = run_as_reader(page, &script(page, &client), &client);
    assert!(done.status.success(), "{page}: {done:#?}");
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut films: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mp4"))
        .collect();
    films.sort();
    for film in &films {
        media::assert_decodes(film);
    }
    (done, folder, films)
}

fn names(films: &[PathBuf]) -> Vec<&str> {
    let names = films
        .iter()
        .map(|film| film.file_name().unwrap().to_str().unwrap());
    names.collect()
}

#[test]
fn the_tutorial_leads_to_its_videos() {
    let (done, _folder, films) = walk("docs/tutorial.md");
    let expected = [
        "balloon.mp4",
        "boat.mp4",
        "cat.mp4",
        "lighthouse.mp4",
        "night.mp4",
    ];
    assert_eq!(names(&films), expected, "{done:#?}");
    // The draft, its final and the edit are of the size that the draft asked for, or its preview.
    let [.., lighthouse, night] = &films[..] else {
        panic!("{films:?}");
    };
    for film in [lighthouse, night] {
        assert_eq!(media::picture_size(film), (1280, 720), "{}", film.display());
    }
    assert!(!done.stdout.contains("\"failed\""), "{}", done.stdout);
}

#[test]
fn the_readme_leads_to_its_videos() {
    let (done, _folder, films) = walk("README.md");
    assert_eq!(names(&films), ["balloon.mp4", "cat.mp4"], "{done:#?}");
}

#[test]
fn the_tutorial_s_loop_ends_on_an_error() {
    let page = "docs/tutorial.md";
    let client = shared().newcomer();
    let functions: Vec<String> = to_run(page)
        .into_iter()
        .filter(|block| block.text.contains("wait_for() {"))
        .map(|block| block.text.replace("wait_for \"$VIDEO_ID\"", ""))
        .collect();
    assert_eq!(functions.len(), 1, "{functions:#?}");
    let script = functions[0].replace("http://127.0.0.1:8080", client.base_url());
    for (call, said) in [
        ("wait_for video_0", "video_not_found"),
        ("KINORA_KEY=mistyped; wait_for video_0", "invalid_api_key"),
    ] {
        let (done, _folder) = run_as_reader(page, &format!("{script}\n{call}"), &client);
        assert!(!done.status.success(), "{call}: {done:#?}");
        assert!(done.stdout.contains(said), "{call}: {done:#?}");
    }
}
