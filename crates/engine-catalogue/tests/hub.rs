//! The hub's answers, from a server on a real socket that tells the truth, in pages, or lies.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's helpers fail the test"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use kinora_engine_catalogue::{
    Choice, GpuApi, GpuInfo, Hub, HubError, HubFile, Machine, Places, PreparedEnvironment, Wishes,
    card, choose, find,
};
use kinora_http_download::OriginToken;
use proptest::prelude::*;
use serde_json::{Value, json};
use url::Url;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// An answer: status, further header lines, body.
type Answer = (u16, String, String);

/// A hub that answers each path as `answer` says, and remembers the requests' heads.
struct FakeHub {
    base: Url,
    heads: Arc<Mutex<Vec<String>>>,
}

impl FakeHub {
    fn start(answer: impl Fn(&str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = heads.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(head) = read_head(stream.as_ref().unwrap()) else {
                    continue;
                };
                let path = head.split(' ').nth(1).unwrap().to_owned();
                seen.lock().unwrap().push(head);
                let (status, headers, body) = answer(&path);
                let length = body.len();
                // The client may have gone, for example from a body that is too long.
                let _ = write!(
                    stream.unwrap(),
                    "HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
            }
        });
        Self { base, heads }
    }

    fn resolve(
        &self,
        choice: &Choice,
        token: Option<OriginToken>,
    ) -> Result<Vec<HubFile>, HubError> {
        let hub = Hub::new(self.base.clone(), token, b"").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(hub.resolve(choice))
    }

    fn error(&self, choice: &Choice) -> String {
        self.resolve(choice, None).unwrap_err().to_string()
    }
}

fn read_head(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if head[before..].trim().is_empty() {
            return Some(head);
        }
    }
}

fn choice(name: &str, wishes: &Wishes) -> Choice {
    let gpu = |index: &str| GpuInfo {
        index: index.to_owned(),
        uuid: format!("GPU-{index}1111111"),
        name: "RTX 4090".to_owned(),
        memory_bytes: 24_564 << 20,
        free_bytes: None,
        api: GpuApi::Cuda {
            compute: "8.9".to_owned(),
            driver: "580.95.05".to_owned(),
        },
    };
    let machine = Machine {
        gpus: vec![gpu("0"), gpu("1")],
        problems: Vec::new(),
        memory_bytes: 128 << 30,
    };
    choose(find(name).unwrap(), &machine, wishes).unwrap()
}

fn ti2v() -> Choice {
    choice("wan2.2-ti2v-5b", &Wishes::default())
}

fn ok(body: &Value) -> Answer {
    (200, String::new(), body.to_string())
}

fn file(path: &str) -> Value {
    json!({"type": "file", "path": path, "size": 7, "oid": "1"})
}

/// A truthful hub: one commit for all repositories, and `tree` as their list.
fn hub_with(tree: Value) -> FakeHub {
    FakeHub::start(move |path| {
        if path.contains("/revision/") {
            return ok(&json!({"sha": COMMIT, "id": "a/b"}));
        }
        ok(&tree)
    })
}

#[test]
fn files_come_from_all_pages_with_lengths_and_sha256() {
    let sha256 = "AB".repeat(32);
    let large = json!({"type": "file", "path": "vae/a b#?.safetensors", "size": 5, "oid": "2",
        "lfs": {"oid": sha256, "size": 5_000_000_000_u64, "pointerSize": 134}});
    let second = json!([
        large,
        file("README.md"),
        file(".gitattributes"),
        file("vae/.hidden")
    ]);
    let first = json!([{"type": "directory", "path": "vae", "oid": "3"}, file("model_index.json")]);
    let tree = format!("/api/models/Wan-AI/Wan2.2-TI2V-5B-Diffusers/tree/{COMMIT}?recursive=true");
    let hub = FakeHub::start(move |path| match path {
        "/api/models/Wan-AI/Wan2.2-TI2V-5B-Diffusers/revision/main" => ok(&json!({"sha": COMMIT})),
        path if path == tree => {
            let link = format!("link: <{tree}&cursor=2>; rel=\"next\"\r\n");
            (200, link, first.to_string())
        }
        path if path.ends_with("&cursor=2") => ok(&second),
        _ => (404, String::new(), String::new()),
    });
    let files = hub.resolve(&ti2v(), None).unwrap();
    let [index, weights] = &files[..] else {
        panic!("{files:?}")
    };
    assert_eq!(
        (index.path.as_str(), index.bytes),
        ("model_index.json", Some(7))
    );
    assert_eq!(index.sha256, None);
    assert_eq!(weights.bytes, Some(5_000_000_000));
    assert_eq!(weights.sha256, Some("ab".repeat(32)));
    let address = format!(
        "{}Wan-AI/Wan2.2-TI2V-5B-Diffusers/resolve/{COMMIT}/vae/a%20b%23%3F.safetensors",
        hub.base
    );
    assert_eq!(weights.url.as_str(), address);
}

#[test]
fn only_the_hub_s_own_origin_sees_the_token() {
    let hub = hub_with(json!([file("model_index.json")]));
    let origin = hub.base.origin().ascii_serialization();
    for (origin, is_sent) in [(origin.as_str(), true), ("https://other.example", false)] {
        hub.heads.lock().unwrap().clear();
        let token = OriginToken::new(origin, "marked-secret").unwrap();
        hub.resolve(&ti2v(), Some(token)).unwrap();
        let heads = hub.heads.lock().unwrap();
        assert_eq!(heads.len(), 2);
        assert!(
            heads
                .iter()
                .all(|head| head.contains("Bearer marked-secret") == is_sent)
        );
    }
}

#[test]
fn a_renamed_repository_is_followed_at_the_same_hub_only() {
    let hub = |target: fn(&str) -> String| {
        FakeHub::start(move |path| match path {
            path if path.contains("THUDM") => (
                307,
                format!("location: {}\r\n", target(path)),
                String::new(),
            ),
            path if path.contains("/revision/") => ok(&json!({"sha": COMMIT})),
            _ => ok(&json!([file("model_index.json")])),
        })
    };
    let cogvideo = choice("cogvideox-5b", &Wishes::default());
    let renamed = hub(|path| path.replace("THUDM", "zai-org"));
    assert_eq!(renamed.resolve(&cogvideo, None).unwrap().len(), 1);
    let elsewhere = hub(|path| format!("http://127.0.0.1:9{path}"));
    assert!(elsewhere.error(&cogvideo).contains("HTTP 307"));
    assert!(hub(str::to_owned).error(&cogvideo).contains("in a circle"));
}

#[test]
fn refusals_say_what_to_do() {
    for (status, headers, expected) in [
        (401, "", "Accept the licence at http://127.0.0.1"),
        (401, "", "If that page does not exist"),
        (403, "x-error-code: GatedRepo\r\n", "set weights.token_file"),
        (
            404,
            "",
            "The hub has no repository Wan-AI/Wan2.2-TI2V-5B-Diffusers",
        ),
        (418, "", "the hub answered with HTTP 418"),
        (503, "", "Repeat the command later"),
        (429, "", "Repeat the command later"),
    ] {
        let headers = headers.to_owned();
        let hub = FakeHub::start(move |_| (status, headers.clone(), String::new()));
        let error = hub.resolve(&ti2v(), None).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        let is_unreachable = matches!(error, HubError::Unreachable(_));
        assert_eq!(is_unreachable, status == 503 || status == 429);
    }
    // A port on which nobody listens.
    let base = Url::parse("http://127.0.0.1:9").unwrap();
    let nowhere = FakeHub {
        base,
        heads: Arc::default(),
    };
    let error = nowhere.resolve(&ti2v(), None).unwrap_err();
    assert!(matches!(error, HubError::Unreachable(_)), "{error}");
}

#[test]
fn unusable_certificates_are_refused_with_what_to_do() {
    let base = Url::parse("https://hub.example").unwrap();
    let refused = Hub::new(base, None, b"no certificate").unwrap_err();
    assert!(refused.to_string().contains("SSL_CERT_FILE"), "{refused}");
}

#[test]
fn unusable_answers_are_refused() {
    let revision = |sha: Value| FakeHub::start(move |_| ok(&json!({"sha": sha})));
    for sha in [
        json!("main"),
        json!("z".repeat(40)),
        json!("../../../../../etc"),
        json!(7),
    ] {
        hub_error(&revision(sha));
    }
    let html = FakeHub::start(|_| (200, String::new(), "<html>".to_owned()));
    assert!(html.error(&ti2v()).contains("Check weights.hub_url"));
    let long = FakeHub::start(|_| (200, String::new(), " ".repeat((8 << 20) + 1)));
    assert!(long.error(&ti2v()).contains("larger than"));
    assert!(
        hub_with(json!([]))
            .error(&ti2v())
            .contains("has no file model_index.json")
    );
    let short = json!([{"type": "file", "path": "model_index.json", "lfs": {"oid": "ab"}}]);
    assert!(hub_with(short).error(&ti2v()).contains("SHA-256"));
    let linked = |target: &'static str| {
        FakeHub::start(move |path| {
            if path.contains("/revision/") {
                return ok(&json!({"sha": COMMIT}));
            }
            (
                200,
                format!("link: <{target}>; rel=\"next\"\r\n"),
                "[]".to_owned(),
            )
        })
    };
    assert!(
        linked("http://127.0.0.1:9/x")
            .error(&ti2v())
            .contains("another server")
    );
    assert!(
        linked("/endless")
            .error(&ti2v())
            .contains("more files than")
    );
}

fn hub_error(hub: &FakeHub) {
    assert!(matches!(
        hub.resolve(&ti2v(), None),
        Err(HubError::Refused(_))
    ));
}

#[test]
fn hostile_paths_are_refused() {
    let long = "a/".repeat(600);
    for path in [
        "vae/../../x",
        "/etc/passwd",
        "vae//x",
        "vae/",
        "..\\x/y",
        "vae/a\nb",
        "vae/a\0b",
        &long,
        &format!("vae/{}", "a".repeat(201)),
    ] {
        let hub = hub_with(json!([file("model_index.json"), file(path)]));
        let answer = hub.resolve(&ti2v(), None);
        match answer {
            Err(HubError::Refused(_)) => {}
            // Hidden names are left out before anybody looks at them.
            Ok(files) => assert!(path.contains("..") && files.len() == 1, "{path:?}"),
            Err(other) => panic!("{path:?}: {other}"),
        }
    }
}

#[test]
fn the_files_of_a_quantisation_are_found_by_their_names() {
    let wishes = Wishes {
        variant: Some("Q4_K_M".to_owned()),
        ..Wishes::default()
    };
    let choice = choice("wan2.2-ti2v-5b", &wishes);
    let names = [
        "Wan2.2-TI2V-5B-Q4_K_M.gguf",
        "Wan2.2-TI2V-5B-Q8_0.gguf",
        "split_files/vae/wan2.2_vae.safetensors",
        "umt5-xxl-encoder-Q8_0.gguf",
    ];
    let hub = hub_with(Value::Array(names.map(file).into()));
    let files = hub.resolve(&choice, None).unwrap();
    let found: Vec<String> = files
        .iter()
        .map(|file| format!("{}/{}", file.repository, file.path))
        .collect();
    assert_eq!(
        found,
        [
            "QuantStack/Wan2.2-TI2V-5B-GGUF/Wan2.2-TI2V-5B-Q4_K_M.gguf",
            "Comfy-Org/Wan_2.2_ComfyUI_Repackaged/split_files/vae/wan2.2_vae.safetensors",
            "city96/umt5-xxl-encoder-gguf/umt5-xxl-encoder-Q8_0.gguf",
        ]
    );
    let without = hub_with(Value::Array(
        names[1..].iter().map(|name| file(name)).collect(),
    ));
    let error = without.error(&choice);
    assert!(
        error.contains("has no file Wan2.2-TI2V-5B-Q4_K_M.gguf"),
        "{error}"
    );
    let engine = engine(&written(&choice, &files, &["/e/sd-server"]));
    assert_eq!(engine["kind"].as_str(), Some("sdcpp"));
    assert_eq!(engine["server"].as_str(), Some("/e/sd-server"));
    let model = |key: &str| engine["model"][key].clone();
    let path = "/w/QuantStack/Wan2.2-TI2V-5B-GGUF/0123456789ab/Wan2.2-TI2V-5B-Q4_K_M.gguf";
    assert_eq!(model("diffusion_model").as_str(), Some(path));
    assert_eq!(engine["files"][0]["path"].as_str(), Some(path));
    assert!(
        model("text_encoder")
            .as_str()
            .unwrap()
            .starts_with("/w/city96/")
    );
    assert_eq!(model("offload_to_cpu").as_bool(), Some(false));
    assert_eq!(model("backend").as_str(), Some("cuda0"));
}

fn places() -> Places {
    Places {
        weights: PathBuf::from("/w"),
        engines: PathBuf::from("/e"),
    }
}

fn written(choice: &Choice, files: &[HubFile], command: &[&str]) -> toml::Table {
    let environment = PreparedEnvironment {
        folder: PathBuf::from("/e"),
        command: command.iter().map(ToString::to_string).collect(),
        environment: [("PYTHONPATH".to_owned(), "/e/package".to_owned())].into(),
    };
    let text = card(choice, files, &places(), &environment);
    assert!(text.starts_with("# "), "{text}");
    let remove = format!("kinora models remove {}\n", choice.entry.name);
    assert!(text.contains(&remove), "{text}");
    toml::from_str(&text).unwrap()
}

fn engine(card: &toml::Table) -> toml::Table {
    card["engines"].as_array().unwrap()[0]
        .as_table()
        .unwrap()
        .clone()
}

#[test]
fn a_card_of_diffusers_has_the_folders_and_the_settings_of_the_machine() {
    let choice = choice("wan2.2-t2v-a14b-lightning", &Wishes::default());
    let folder = "Wan2.2-T2V-A14B-4steps-lora-rank64-Seko-V1.1";
    let lora = format!("{folder}/high_noise_model.safetensors");
    let hub = hub_with(json!([
        file("model_index.json"),
        file("vae/a.safetensors"),
        file(&lora)
    ]));
    let files = hub.resolve(&choice, None).unwrap();
    let card = written(&choice, &files, &["/e/python", "-m", "kinora_engine"]);
    let engine = engine(&card);
    let settings = &engine["settings"];
    let model = "/w/Wan-AI/Wan2.2-T2V-A14B-Diffusers/0123456789ab";
    assert_eq!(settings["model"].as_str(), Some(model));
    let loras = "/w/lightx2v/Wan2.2-Lightning/0123456789ab";
    assert_eq!(settings["loras"][1]["path"].as_str(), Some(loras));
    assert_eq!(settings["offload"].as_str(), Some("group"));
    assert_eq!(
        settings["offload_options"]["offload_type"].as_str(),
        Some("leaf_level")
    );
    assert_eq!(engine["command"][0].as_str(), Some("/e/python"));
    assert_eq!(
        engine["environment"]["PYTHONPATH"].as_str(),
        Some("/e/package")
    );
    assert_eq!(engine["devices"][0].as_str(), Some("GPU-01111111"));
    assert_eq!(engine["files"].as_array().unwrap().len(), files.len());
    assert_eq!(
        card["models"][0]["id"].as_str(),
        Some("wan2.2-t2v-a14b-lightning")
    );
    // It shares its GPU with other models: nine tenths of 24,564 MiB.
    let device = &card["devices"][0];
    assert_eq!(device["name"].as_str(), Some("GPU-01111111"));
    assert_eq!(device["memory_megabytes"].as_integer(), Some(23_181));
    assert_eq!(engine["device"], device["name"]);
    let needed = choice.needs_gigabytes * 1e3;
    assert_eq!(engine["memory_megabytes"].as_integer(), Some(needed as i64));
    let mut tables: Vec<_> = card.keys().collect();
    tables.sort();
    assert_eq!(tables, ["devices", "engines", "models"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_file_leaves_its_folder(path in "(vae/)?[.a/\\\\\u{0}-\u{20}%é]{0,12}") {
        let hub = hub_with(json!([file("model_index.json"), file(&path)]));
        for found in hub.resolve(&ti2v(), None).into_iter().flatten() {
            let place = places().weight_path(&found);
            prop_assert!(place.starts_with("/w/Wan-AI/Wan2.2-TI2V-5B-Diffusers/0123456789ab"));
            let is_plain = |one: Component<'_>| matches!(one, Component::Normal(_));
            prop_assert!(Path::new(&found.path).components().all(is_plain));
            prop_assert!(!found.path.contains(['\\', '\n', '\0']));
        }
    }
}
