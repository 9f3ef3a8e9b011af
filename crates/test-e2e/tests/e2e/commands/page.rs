//! Completions, manual pages, and every example of `docs/cli.md`.

use std::path::PathBuf;

use kinora_test_e2e::{Block, blocks, kinora, media, readers_path, run};

use crate::cli::bare;
use crate::support::{quick, shared};

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let kinora = |arguments: &[&str]| {
        let mut command = kinora();
        command.args(arguments).current_dir(folder.path());
        run(command).ok()
    };
    for shell in ["bash", "zsh", "fish"] {
        let script = kinora(&["completions", shell]);
        for word in ["generate", "tasks", "no-wait"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(
            !script.contains("engine-host"),
            "{shell} completes what is not for people"
        );
    }
    let script = folder.path().join("kinora.bash");
    std::fs::write(&script, kinora(&["completions", "bash"])).unwrap();
    let mut bash = bare("bash");
    bash.arg("-n").arg(&script);
    run(bash).ok();
    assert_eq!(kinora(&["man", "pages"]), "pages\n");
    for name in [
        "kinora",
        "kinora-generate",
        "kinora-tasks-watch",
        "kinora-keys-create",
    ] {
        let page = std::fs::read_to_string(folder.path().join(format!("pages/{name}.1"))).unwrap();
        assert!(page.contains(".TH "), "{name}");
    }
    assert!(!folder.path().join("pages/kinora-engine-host.1").exists());
}

#[test]
fn every_example_of_the_page_runs_as_it_is() {
    let client = shared().newcomer();
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(kinora().get_program(), programs.join("kinora")).unwrap();
    let path = readers_path("docs/cli.md", &programs);
    let source = client.submit(&quick("kinora-a1"));
    client.wait_completed(source.id());
    let page = blocks("docs/cli.md").into_iter();
    let examples: Vec<Block> = page.filter(|block| block.kind == "example").collect();
    assert!(examples.len() > 8, "{examples:?}");
    for Block { name, text, .. } in examples {
        let mut command = bare("bash");
        command
            .args(["-euo", "pipefail", "-c", &text])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("HOME", folder.path())
            .env("KINORA_URL", client.base_url())
            .env("KINORA_API_KEY", client.key())
            .env("VIDEO_ID", source.id());
        let ended = run(command);
        assert!(ended.status.success(), "{name}: {ended:#?}");
    }
    let films: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mp4"))
        .collect();
    assert!(films.len() > 3, "{films:?}");
    for film in films {
        media::assert_decodes(&film);
    }
}
