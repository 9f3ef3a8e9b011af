//! Bounds of the queue, and settings that are refused instead of ignored.

use kinora_test_e2e::{DataFolder, Setup, kinora, run};

use crate::support::shared;

#[test]
fn a_variable_that_names_no_setting_is_refused_by_name() {
    for (variable, value) in [
        ("KINORA_WORKER_SLOTZ", "2"),
        ("KINORA_QUEUE", "2"),
        ("KINORA_WORKER_SLOTS", "many"),
        ("KINORA_WORKER_SLOTS", "-1"),
        ("KINORA_LISTEN", "everywhere"),
        ("KINORA_BASE_URL", "example.com"),
        ("KINORA_CONFIG", "/nowhere/kinora.toml"),
    ] {
        let setup = Setup::on(&DataFolder::default()).set(variable, value);
        let mut command = setup.command();
        // The flag would win over the variable.
        if variable == "KINORA_LISTEN" {
            command = kinora();
            command
                .args(["serve", "--data"])
                .arg(DataFolder::default().path());
            command.env(variable, value);
        }
        let done = run(command);
        let setting = variable.trim_start_matches("KINORA_").to_ascii_lowercase();
        let dotted = setting.replacen('_', ".", 1);
        let named = [variable, &setting, &dotted, value]
            .iter()
            .any(|one| done.stderr.contains(one));
        assert!(
            !done.status.success() && named,
            "{variable}={value}: {done:#?}"
        );
        assert!(!done.stderr.contains("panicked"), "{done:#?}");
    }
}

#[test]
fn a_file_with_an_unknown_key_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kinora.toml");
    for (text, named) in [
        ("[worker]\nslotz = 2\n", "slotz"),
        ("lisen = \"127.0.0.1:0\"\n", "lisen"),
        ("[queue]\nwaiting_max = \"many\"\n", "waiting_max"),
        ("listen = \n", "kinora.toml"),
    ] {
        std::fs::write(&path, text).unwrap();
        let mut command = Setup::on(&DataFolder::default()).command();
        command.arg("--config").arg(&path);
        let done = run(command);
        assert!(
            !done.status.success() && done.stderr.contains(named),
            "{text}: {done:#?}"
        );
    }
}

#[test]
fn the_printed_file_loads_and_changes_nothing() {
    let mut command = kinora();
    command.arg("config");
    let printed = run(command).ok();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kinora.toml");
    std::fs::write(&path, &printed).unwrap();
    let server = Setup::default()
        .set("KINORA_CONFIG", path.display())
        .start();
    let models = server.client().get("/v1/models").ok();
    assert_eq!(models, shared().client().get("/v1/models").ok());

    // It is read at all: the same file with one more line is refused for that line.
    std::fs::write(&path, format!("nonsense = 1\n{printed}")).unwrap();
    let mut command = Setup::on(&DataFolder::default()).command();
    command.arg("--config").arg(&path);
    let done = run(command);
    assert!(
        !done.status.success() && done.stderr.contains("nonsense"),
        "{done:#?}"
    );
}
