//! The README and the tutorial, walked through as a newcomer does: all blocks of a page, in its order, in one shell. And
//! the rule that no block of the first pages goes untested silently.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use kinora_e2e::{Block, Client, Finished, blocks, kinora, media, run, workspace};
use tempfile::TempDir;

use crate::cli::bare;
use crate::support::shared;

/// Where a newcomer stands: in a checkout after a build, with curl, Python and OpenAI's SDK.
fn checkout() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for place in ["target/release", "bin"] {
        let place = folder.path().join(place);
        std::fs::create_dir_all(&place).unwrap();
        symlink(kinora().get_program(), place.join("kinora")).unwrap();
    }
    folder
}

/// What a reader types on this page, as one script.
fn script(page: &str, client: &Client) -> String {
    let python = workspace().join(".venv/bin/python");
    let mut script = "curl() { command curl -sS --fail-with-body \"$@\"; }\n".to_owned();
    for block in blocks(page) {
        if !block.is_run_by_readers() || block.reason_not_to_run().is_some() {
            continue;
        }
        script += &match &*block.language {
            "python" => format!("{} - <<'PYTHON'\n{}PYTHON\n", python.display(), block.text),
            _ => block.text,
        };
    }
    script.replace("http://127.0.0.1:8080", client.base_url())
}

/// Follows a page, and returns what was said and the videos that its reader has now.
fn walk(page: &str) -> (Finished, TempDir, Vec<PathBuf>) {
    let client = shared().newcomer();
    let folder = checkout();
    let programs = folder.path().join("bin");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = bare("bash");
    command
        .args(["-euo", "pipefail", "-c", &script(page, &client)])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("HOME", folder.path())
        .env("KINORA_URL", client.base_url())
        .env("KINORA_KEY", client.key());
    let done = run(command);
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

/// The pages that a newcomer follows, and the kinds of blocks that other tests run. Pages without a kind are walked.
const FIRST_PAGES: [(&str, &[&str]); 6] = [
    ("README.md", &[""]),
    ("docs/tutorial.md", &[""]),
    ("docs/studio.md", &[]),
    ("docs/api.md", &["example", "preparation", "call"]),
    ("docs/cli.md", &["example"]),
    ("docs/webhooks.md", &[""]),
];

#[test]
fn every_block_of_the_first_pages_is_run_or_says_why_not() {
    let is_run = |block: &Block, kinds: &[&str]| kinds.contains(&&*block.kind);
    let says_why = |block: &Block| block.reason_not_to_run().is_some_and(|why| why.len() > 10);
    for (page, kinds) in FIRST_PAGES {
        let pages = blocks(page).into_iter().filter(Block::is_run_by_readers);
        let untested: Vec<String> = pages
            .filter(|block| !is_run(block, kinds) && !says_why(block))
            .map(|block| block.text)
            .collect();
        assert!(untested.is_empty(), "{page}: no test runs {untested:#?}");
    }
}
