//! The settings of an engine whose dialect is a file or a built-in one.

use kinora_engine::EngineKind as _;
use kinora_engine_upstreams::dialects::RemoteKind;

use crate::files::TASKS;

fn kind(settings: &str) -> Result<RemoteKind, String> {
    let kind: RemoteKind = toml::from_str(settings).map_err(|error| error.to_string())?;
    kind.check(false).map_err(|error| error.to_string())?;
    Ok(kind)
}

#[test]
fn an_engine_names_a_file_and_what_its_model_takes_besides() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.toml");
    std::fs::write(
        &file,
        TASKS.replace("title =", "base_url = \"https://e.org/v1\"\ntitle ="),
    )
    .unwrap();
    let engine = |more: &str| {
        kind(&format!(
            "dialect = \"{}\"\nmodel = \"m\"\n{more}",
            file.display()
        ))
    };
    let features = |more: &str| engine(more).unwrap().dialect().unwrap().features();
    assert!(!features("").last_frame);
    let own = "body = { last = \"{last_frame}\", image = \"{first_frame}\", was = \"{size@own}\" }\n\
               lookup = { own = { \"1280x720\" = \"x\" } }";
    assert!(features(own).last_frame);
    let missing = kind("dialect = \"./missing.toml\"").unwrap();
    let told = missing.dialect().unwrap_err().to_string();
    assert!(told.contains("./missing.toml: cannot be read"), "{told}");
}

#[test]
fn settings_that_no_run_could_use_are_refused_with_what_to_do() {
    kind("dialect = \"kinora\"\nbase_urls = [\"http://h/v1\"]").unwrap();
    for (settings, told) in [
        ("dialect = \"kinora\"", "base_urls must name a server"),
        (
            "dialect = \"klingon\"",
            "unknown dialect 'klingon'; use one of: kinora",
        ),
        (
            "dialect = \"kinora\"\nbase_urls = [\"http://h/v1\", \"http://h/v1/\"]",
            "twice",
        ),
        (
            "dialect = \"kinora\"\nbase_urls = [\"ftp://h/v1\"]",
            "'ftp://h/v1' is not the base URL of a server",
        ),
        (
            "dialect = \"kinora\"\nbase_urls = [\"http://h/v1\"]\npoll_milliseconds = 0",
            "poll_milliseconds must be at least 1",
        ),
        (
            "dialect = \"kinora\"\nbase_urls = [\"http://h/v1\"]\nbody = { a = \"{promt}\" }",
            "unknown placeholder",
        ),
        (
            "dialect = \"kinora\"\nbase_urls = [\"http://h/v1\"]\nbody = { a = \"{size@s}\" }",
            "no [lookup.s]",
        ),
    ] {
        let refused = kind(settings).unwrap_err();
        assert!(refused.contains(told), "{settings}: {refused}");
    }
}
