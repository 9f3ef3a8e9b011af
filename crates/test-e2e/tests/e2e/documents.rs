//! Which test runs each command of the documents, and why none runs the others.

use std::path::{Component, Path, PathBuf};

use kinora_test_e2e::{Block, blocks, workspace};

/// The pages whose commands tests run, and which of them: those under a comment of one of these kinds, or, for `""`,
/// without a comment.
const RUN: [(&str, &[&str]); 12] = [
    ("README.md", &[""]),
    ("docs/tutorial.md", &[""]),
    ("docs/api.md", &["example", "preparation", "call"]),
    ("docs/cli.md", &["example"]),
    ("docs/webhooks.md", &[""]),
    ("docs/operations.md", &[""]),
    ("docs/models.md", &[""]),
    ("docs/provenance.md", &[""]),
    ("docs/policy.md", &[""]),
    ("docs/backup.md", &[""]),
    ("docs/many-machines.md", &[""]),
    ("docs/moving.md", &[""]),
];

/// The commands that no test runs: page, a part of the block, reason.
const EXCUSED: [(&str, &str, &str); 29] = [
    (
        "docs/providers.md",
        "RUNWAYML_API_SECRET=... kinora serve",
        "the tests of providers run each configuration in front of a stand-in",
    ),
    (
        "docs/money.md",
        "--budget-per-day 10 --budget-per-month 200",
        "the tests of budgets create such keys",
    ),
    (
        "docs/storyboard.md",
        "git clone https://github.com/Vchitect/VBench",
        "a download; a sample of its prompts is in the engine's own tests",
    ),
    (
        "README.md",
        "cargo run --release -- serve\n",
        "the walk starts the same program itself",
    ),
    (
        "README.md",
        "export KINORA_KEY=",
        "the key is in the line that the reader's own service has printed",
    ),
    (
        "README.md",
        "--base-url https://video.example.com",
        "the folder and the address are those of the reader's server",
    ),
    (
        "docs/tutorial.md",
        "cargo run --release -- serve\n",
        "the walk starts the same program itself",
    ),
    (
        "docs/tutorial.md",
        "export KINORA_KEY=",
        "the key is in the line that the reader's own service has printed",
    ),
    (
        "docs/tutorial.md",
        "pip install openai",
        "./test has installed the SDK already, in the version that it names",
    ),
    (
        "docs/cli.md",
        "kinora serve\n",
        "the walk starts the same program itself",
    ),
    (
        "docs/cli.md",
        "export KINORA_KEY=",
        "the key is the one that the reader's own service has printed",
    ),
    (
        "docs/api.md",
        "/v1/videos/events -H",
        "the stream does not end by itself; the tests of events read it",
    ),
    (
        "docs/webhooks.md",
        "v1,AAAA",
        "the answer is that of the reader's own receiver",
    ),
    (
        "README.md",
        "kinora models add wan2.2-ti2v-5b",
        "needs a GPU and the publishers' servers; `catalogue.rs` adds models from stand-ins",
    ),
    (
        "docs/models.md",
        "kinora models add wan2.2-ti2v-5b",
        "needs a GPU and the publishers' servers; `catalogue.rs` adds models from stand-ins",
    ),
    (
        "docs/models.md",
        "kinora models pull wan2.1-t2v-1.3b",
        "needs sd-server and the publishers' servers; ./neural runs engines with random weights, and another block of the page \
         has its other commands",
    ),
    (
        "docs/storyboard.md",
        "--example contact_sheet --",
        "builds a release of a tool for developers; clippy compiles it",
    ),
    (
        "docs/storyboard.md",
        "--example contact_sheets --",
        "builds a release of a tool for developers; clippy compiles it",
    ),
    (
        "docs/benchmarks.md",
        "./bench",
        "takes an hour, and its figures mean something on an idle machine alone",
    ),
    (
        "docs/provenance.md",
        "c2pa.Builder",
        "the tests of signatures have it sign their videos",
    ),
    (
        "docs/provenance.md",
        "c2pa.Reader",
        "the tests of signatures read signed videos by the same reader, with an authority of their own",
    ),
    (
        "docs/deployment.md",
        "pgbackrest",
        "needs pgBackRest with a repository of its own; nothing of Kinora takes part",
    ),
    (
        "deploy/compose/README.md",
        "SITE_ADDRESS=video.example.com",
        "needs Docker, and a name that is the reader's own",
    ),
    (
        "deploy/compose/README.md",
        "sudo ./init",
        "needs Docker, which tests cannot demand; deploy/check validates the file and its commands",
    ),
    (
        "deploy/helm/kinora/README.md",
        "helm install",
        "needs a cluster; deploy/check renders the chart and compares it with the schemas of Kubernetes",
    ),
    (
        "deploy/systemd/README.md",
        "systemctl enable",
        "needs root and systemd; deploy/check verifies the units",
    ),
    (
        "docs/dialects.md",
        "kinora doctor --config kinora.toml",
        "the provider is invented; the tests of the doctor read dialects",
    ),
    (
        "docs/dialects.md",
        "kinora engine try clip-1 \"A red balloon",
        "the provider is invented; `trials.rs` runs the command",
    ),
    (
        "docs/dialects.md",
        "kinora engine try clip-1 \"It rises\"",
        "the provider is invented; `trials.rs` runs the command",
    ),
];

/// The same for several blocks of a page that have one reason.
const EXCUSED_PAGES: [(&str, &str); 2] = [
    (
        "CONTRIBUTING.md",
        "builds and tests everything: it is the run of which these tests are a part",
    ),
    (
        "python/README.md",
        "python/tests/test_readme.py runs its Python; its shell installs packages and torch, as ./engines-test does",
    ),
];

/// Why no test runs this block, if none does.
fn excuse(page: &str, block: &Block) -> Option<&'static str> {
    let of_page = EXCUSED_PAGES.iter().find(|(excused, _)| *excused == page);
    let mut all = EXCUSED.iter();
    let own = all.find(|(excused, part, _)| *excused == page && block.text.contains(part));
    of_page.map(|(_, why)| *why).or(own.map(|(_, _, why)| *why))
}

/// The commands of a page that a walk has to run, in its order.
pub(crate) fn to_run(page: &str) -> Vec<Block> {
    let commands = blocks(page).into_iter().filter(Block::is_run_by_readers);
    let kept: Vec<Block> = commands
        .filter(|block| excuse(page, block).is_none())
        .collect();
    assert!(!kept.is_empty(), "{page} has no commands");
    kept
}

/// Every page of the site, by its path in the repository.
fn pages() -> Vec<String> {
    let summary = std::fs::read_to_string(workspace().join("docs/SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1);
    let links = links.map(|rest| rest.split(')').next().unwrap());
    let pages: Vec<String> = links
        .map(|link| resolved(&format!("docs/{link}")))
        .collect();
    assert!(pages.len() > 25, "{pages:?}");
    pages
}

/// A path without `..`.
fn resolved(path: &str) -> String {
    let mut whole = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => assert!(whole.pop(), "{path}"),
            part => whole.push(part),
        }
    }
    whole.to_str().unwrap().to_owned()
}

#[test]
fn every_command_of_every_page_is_run_or_excused() {
    let pages = pages();
    for page in &pages {
        let kinds = RUN.iter().find(|(run, _)| run == page);
        let kinds = kinds.map_or(&[][..], |(_, kinds)| kinds);
        let commands = blocks(page).into_iter().filter(Block::is_run_by_readers);
        let untested: Vec<String> = commands
            .filter(|block| !kinds.contains(&&*block.kind) && excuse(page, block).is_none())
            .map(|block| block.text)
            .collect();
        assert!(untested.is_empty(), "{page}: no test runs {untested:#?}");
    }
    let known = |page: &str| pages.iter().any(|known| known == page);
    for (page, _) in RUN {
        assert!(known(page), "{page} is no page of docs/SUMMARY.md");
    }
}

#[test]
fn every_excuse_is_of_one_block_and_says_why() {
    for (page, part, why) in EXCUSED {
        let commands = blocks(page).into_iter().filter(Block::is_run_by_readers);
        let meant = commands.filter(|block| block.text.contains(part));
        assert_eq!(meant.count(), 1, "{page}: {part}");
        assert!(why.len() > 20, "{page}: {part}: {why}");
    }
    for (page, _) in EXCUSED_PAGES {
        assert!(blocks(page).iter().any(Block::is_run_by_readers), "{page}");
    }
}
