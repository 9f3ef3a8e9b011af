//! Defaults, overrides, and invalid settings.

use super::*;
use crate::cli::{HomeArgs, ServeArgs};

fn read(file: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kinora.toml");
    std::fs::write(&path, file).unwrap();
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let config = Config::read(Some(&path), &variables).map_err(|failure| failure.to_string())?;
    config.check().map_err(|failure| failure.to_string())?;
    Ok(config)
}

#[test]
fn the_default_file_is_complete_and_agrees_with_the_contract() {
    use kinora_contract::limits;
    let config = read("", &[]).unwrap();
    assert_eq!(config.worker.attempts_max, limits::ATTEMPTS_MAX);
    assert_eq!(
        u64::from(config.results.retention_hours),
        limits::RETENTION_HOURS
    );
    assert_eq!(
        u64::from(config.results.failed_retention_hours),
        limits::FAILED_RETENTION_HOURS
    );
    let cards: Vec<_> = kinora_contract::built_in_cards()
        .into_iter()
        .map(|card| card.id)
        .collect();
    let served: Vec<_> = config
        .models
        .iter()
        .map(|model| model.card.clone().unwrap_or_default())
        .collect();
    assert_eq!(served, cards);
    let is_as_built_in = |model: &CardRecord| model.card.as_ref() == Some(&model.id);
    assert!(config.models.iter().all(is_as_built_in));
}

#[test]
fn variables_override_the_file_and_the_file_the_defaults() {
    let file = "listen = \"127.0.0.1:9000\"\n[worker]\nslots = 3";
    let config = read(file, &[("KINORA_WORKER_SLOTS", "7")]).unwrap();
    assert_eq!(config.listen, "127.0.0.1:9000".parse().unwrap());
    assert_eq!(config.worker.slots, 7);
    let built_in = StoryboardKind {
        system_fonts: true,
        ..StoryboardKind::default()
    };
    assert_eq!(config.storyboard, built_in);
    let told = [
        ("KINORA_STORYBOARD_MARK_TEXT", "Studio {seed}"),
        ("KINORA_STORYBOARD_CAPTION", "false"),
    ];
    let storyboard = read("[storyboard]\nmark = false", &told)
        .unwrap()
        .storyboard;
    assert_eq!(storyboard.mark_text, "Studio {seed}");
    assert!(!storyboard.caption && !storyboard.mark && storyboard.system_fonts);
    assert_eq!(config.worker.lease_seconds, 30);
}

#[test]
fn flags_override_all_and_are_judged() {
    let mut args = ServeArgs {
        home: HomeArgs::default(),
        listen: Some("localhost:8081".parse().unwrap()),
        base_url: Some("https://video.example.com".to_owned()),
        no_worker: false,
        log_format: Some(LogFormat::Text),
        open: true,
        accept_loss: false,
    };
    let config = Config::for_serving_under(&args, &[]).unwrap();
    assert_eq!(config.listen.to_string(), "localhost:8081");
    assert_eq!(config.base_url, "https://video.example.com");
    assert_eq!(config.log.format, LogFormat::Text);
    assert!(!config.accept_loss && config.opens_browser);
    let said = [("KINORA_ACCEPT_LOSS".to_owned(), "1".to_owned())];
    assert!(Config::for_serving_under(&args, &said).unwrap().accept_loss);
    let unclear = [("KINORA_ACCEPT_LOSS".to_owned(), "perhaps".to_owned())];
    assert!(Config::for_serving_under(&args, &unclear).is_err());
    args.accept_loss = true;
    assert!(Config::for_serving_under(&args, &[]).unwrap().accept_loss);
    args.base_url = Some("https://video.example.com/?a=b".to_owned());
    let error = Config::for_serving_under(&args, &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("base_url"), "{error}");
}

#[test]
fn a_setting_of_an_earlier_version_is_named_and_ignored() {
    let file = "[http]\nidle_timeout_seconds = 60\n[storyboard]\nthreads = 2\n[[engines]]\nname = \"sketches\"\n\
                kind = \"storyboard\"\nthreads = 1";
    let variables = [
        ("KINORA_WORKER_SWEEP_SECONDS", "9"),
        ("KINORA_WORKER_SLOTS", "3"),
    ];
    let config = read(file, &variables).unwrap();
    let named = [
        "http.idle_timeout_seconds",
        "storyboard.threads",
        "threads of the engine sketches",
        "KINORA_WORKER_SWEEP_SECONDS",
    ];
    assert_eq!(config.removed, named);
    assert_eq!(config.worker.slots, 3);
    // Only the setting itself, and not what is like it.
    assert!(read("[http]\nidle_timeout = 60", &[]).is_err());
    assert!(read("", &[("KINORA_WORKER_SWEEP", "9")]).is_err());
    assert!(Config::defaults().removed.is_empty());
}

#[test]
fn what_is_wrong_is_named() {
    for (file, variables, named) in [
        ("lisen = \"127.0.0.1:1\"", &[][..], "lisen"),
        ("[worker]\nslotz = 3", &[], "slotz"),
        ("[worker]\nslots = -1", &[], "slots"),
        ("[media]\nqp = 99", &[], "media.qp"),
        ("[media]\nmark = \"one\\ntwo\"", &[], "media.mark"),
        (
            "[policy]\ntimeout_seconds = 61",
            &[],
            "policy.timeout_seconds",
        ),
        ("[policy]\non_timeout = \"perhaps\"", &[], "perhaps"),
        (
            "[results]\nsign_command = [\"c2patool\", \"{input}\"]",
            &[],
            "results.sign_command",
        ),
        ("[storyboard]\nmark_text = \" \"", &[], "mark_text"),
        ("[storyboard]\ncaptions = false", &[], "captions"),
        ("base_url = \"example.com\"", &[], "base_url"),
        ("listen = \":8080\"", &[], "listen: ':8080' names no host"),
        ("[log]\nlevel = \"kinora_api=loud\"", &[], "log.level"),
        ("[results]\nurl = \"s3:bucket\"", &[], "s3://BUCKET/PREFIX"),
        ("[results]\nurl = \"ftp://host\"", &[], "results.url"),
        (
            "[results]\ndelivery = \"redirect\"",
            &[],
            "results.delivery",
        ),
        ("[results.s3]\nendpont = \"\"", &[], "endpont"),
        (
            "[http]\nrequest_timeout_seconds = 0",
            &[],
            "http.request_timeout_seconds",
        ),
        (
            "[http]\nbuffered_megabytes_max = 15",
            &[],
            "http.buffered_megabytes_max",
        ),
        ("[http]\ntls_key = \"key.pem\"", &[], "http.tls_certificate"),
        ("listen = ", &[], "kinora.toml"),
        (
            "[[engines]]\nname = \"studio\"\nkind = \"remote\"\ndialect = \"klingon\"\nbase_urls = []",
            &[],
            "klingon",
        ),
        (
            "[[engines]]\nname = \"studio\"\nkind = \"remote\"\ndialect = \"kinora\"\nbase_url = \"x\"",
            &[],
            "base_url",
        ),
        (
            "",
            &[("KINORA_WORKER_SLOTS", "many")],
            "KINORA_WORKER_SLOTS",
        ),
    ] {
        let error = read(file, variables).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
}
