//! The upstreams as an engine: what every maker of films must keep to, in every dialect, over
//! scripted servers; and what it offers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kinora_contract::{FailureCode, VideoSpec};
use kinora_engine::FilmEngine;
use kinora_engine::conformance::film::{self, FilmSite, KEY, WorkFate};
use kinora_engine_upstreams::dialects::{
    RemoteEngine, RemoteOptions, RemoteServers, RepeatRule, ServerDialect, ServerOptions,
};

use crate::common::{JumpTimer, MP4, clock};
use crate::server::{Seen, Server, Step, answer, task, well};
use crate::support::{built_in, request};

const SUBMIT: &str = "POST /v1/videos";
const LOOK: &str = "GET /v1/videos/t";

/// An engine on one server, at which every work is called `t`.
struct Studio {
    engine: RemoteEngine,
    dialect: Arc<ServerDialect>,
    server: Server,
    fate: Arc<Mutex<WorkFate>>,
    folder: tempfile::TempDir,
}

impl Studio {
    async fn open(dialect: Arc<ServerDialect>) -> Self {
        let fate = Arc::new(Mutex::new(WorkFate::Succeeding));
        let (told, spoken) = (fate.clone(), dialect.clone());
        let server = Server::start(move |seen, before| {
            let fate = *told.lock().unwrap();
            fare(&spoken, fate, seen, before)
        })
        .await;
        Self {
            engine: RemoteEngine::new(remote(&dialect, &[&server], false), "studio"),
            dialect,
            server,
            fate,
            folder: tempfile::tempdir().unwrap(),
        }
    }
}

fn fare(dialect: &ServerDialect, fate: WorkFate, seen: &Seen, before: usize) -> Vec<Step> {
    match (fate, seen.line.as_str()) {
        (WorkFate::Silent, _) => vec![Step::Hold],
        (_, SUBMIT) if !has_key(dialect, seen) => answer(400, "", "whose is it?"),
        (WorkFate::Endless, LOOK) => task("t", "in_progress", 10),
        (WorkFate::Failing, LOOK) => answer(
            200,
            "",
            r#"{"id":"t","status":"failed","error":{"code":"out_of_memory","message":"x"}}"#,
        ),
        _ => well("t", MP4, seen, before),
    }
}

/// Whether a submit says whose it is, where there are words for it.
fn has_key(dialect: &ServerDialect, seen: &Seen) -> bool {
    match dialect.repeat() {
        RepeatRule::WithKey => seen.header("idempotency-key") == Some(KEY),
        RepeatRule::Freely | RepeatRule::Never => true,
    }
}

impl FilmSite for Studio {
    fn engine(&self) -> &dyn FilmEngine {
        &self.engine
    }

    fn spec(&self) -> VideoSpec {
        request().spec
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("film.mp4")
    }

    fn turn(&self, fate: WorkFate) {
        *self.fate.lock().unwrap() = fate;
    }

    fn film(&self) -> Vec<u8> {
        MP4.to_vec()
    }

    fn failure(&self) -> FailureCode {
        match self.dialect.name == "kinora" {
            true => FailureCode::OutOfMemory,
            false => FailureCode::GenerationFailed,
        }
    }

    fn begun(&self) -> usize {
        self.server.count(SUBMIT)
    }

    fn looks(&self) -> usize {
        self.server.count(LOOK)
    }

    fn cancelled(&self) -> usize {
        self.server.count(match self.dialect.name.as_str() {
            "kinora" => "POST /v1/videos/t/cancel",
            _ => "DELETE /v1/videos/t",
        })
    }
}

/// The built-in dialects whose servers have the API of `/v1/videos`, as these scripts do.
fn dialects() -> impl Iterator<Item = Arc<ServerDialect>> {
    ["kinora", "openai", "vllm-omni", "sglang"]
        .into_iter()
        .map(built_in)
}

fn remote(dialect: &Arc<ServerDialect>, servers: &[&Server], sound: bool) -> RemoteServers {
    let named = servers.iter().zip(["a", "b", "c"]);
    let upstreams = named.map(|(server, name)| server.upstream(name)).collect();
    let options = RemoteOptions {
        model: Some("wan-2.2".to_owned()),
        sound,
        ..RemoteOptions::new(dialect.clone(), ServerOptions::new(upstreams))
    };
    RemoteServers::new(options, Arc::new(JumpTimer::default()), clock()).unwrap()
}

#[tokio::test]
async fn an_engine_offers_what_its_dialect_can_say_and_sound_where_it_was_told_so() {
    for dialect in dialects() {
        for sound in [false, true] {
            let server = Server::well("t", MP4).await;
            let engine = RemoteEngine::new(remote(&dialect, &[&server], sound), "studio");
            let (offered, can) = (engine.describe().features, dialect.features());
            assert_eq!(offered.restricted_to(can), offered);
            assert_eq!(offered.audio_output, sound && can.audio_output);
            assert_eq!(engine.has_sound_switch(), offered.audio_output);
            // Of all that a request may say, a dialect may lack the seed alone.
            let warned = !engine.warnings(&request().spec).is_empty();
            assert_eq!(warned, dialect.name == "openai", "{}", dialect.name);
        }
    }
    let negative = |dialect| built_in(dialect).features().negative_prompt;
    assert!(negative("kinora") && negative("sglang") && !negative("openai"));
}

#[tokio::test]
async fn an_engine_of_any_dialect_keeps_what_makers_of_films_promise() {
    for dialect in dialects() {
        let kept = film::check(async || Studio::open(dialect.clone()).await).await;
        kept.unwrap_or_else(|broken| panic!("{}: {broken}", dialect.name));
    }
}

#[tokio::test]
async fn each_server_is_asked_whether_it_would_serve_us() {
    let servers = [
        Server::well("t", MP4).await,
        Server::start(|_, _| answer(401, "", "who?")).await,
        Server::start(|_, _| answer(502, "", "")).await,
    ];
    let [well, wrong_key, broken] = &servers;
    let remote = remote(&built_in("kinora"), &[well, wrong_key, broken], false);
    let asked = remote.ask_all().await;
    let served: Vec<_> = asked
        .iter()
        .map(|one| (&*one.server, one.refusal.is_none()))
        .collect();
    assert_eq!(served, [("a", true), ("b", false), ("c", false)]);
}
