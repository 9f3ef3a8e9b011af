//! The upstreams as an engine: what every maker of films must keep to, over scripted servers.

use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kinora_contract::{FailureCode, VideoSpec};
use kinora_engine::{Control, EngineError, FilmEngine, FilmJob, Keeper};
use kinora_remote::dialect::{KINORA, OPENAI, SGLANG};
use kinora_remote::{Dialect, EngineOptions, Options, Remote, RemoteEngine, SystemTimer};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, answer, task, well};
use crate::support::{JumpTimer, is_absent, request};

const MP4: &[u8] = b"\0\0\0\x18ftypisom";
const SUBMIT: &str = "POST /v1/videos";

/// Keeps tokens in memory, or cannot.
#[derive(Default)]
struct Shelf {
    tokens: Mutex<Vec<String>>,
    is_away: bool,
}

#[async_trait]
impl Keeper for Shelf {
    async fn keep(&self, token: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        if self.is_away {
            return Err("the store is away".into());
        }
        self.tokens.lock().unwrap().push(token.to_owned());
        Ok(())
    }
}

/// An engine on one server, and what a worker gives it.
struct Studio {
    engine: RemoteEngine,
    shelf: Shelf,
    control: Control,
    cancel: CancellationToken,
    folder: tempfile::TempDir,
}

impl Studio {
    fn new(dialect: &'static Dialect, server: &Server) -> Self {
        let options = Options::new(dialect, vec![server.upstream("a")]);
        let remote = Remote::new(options, Arc::new(JumpTimer::default())).unwrap();
        Self {
            engine: RemoteEngine::new(remote, studio(false)),
            shelf: Shelf::default(),
            control: Control::default(),
            cancel: CancellationToken::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("film.mp4")
    }

    async fn film(&self, spec: &VideoSpec, kept: Option<&str>) -> Result<(), EngineError> {
        let job = FilmJob {
            key: "video_0001",
            spec,
            references: &[],
            kept,
            to: &self.to(),
            control: &self.control,
            cancel: &self.cancel,
            keeper: &self.shelf,
        };
        self.engine.film(&job).await
    }
}

fn studio(sound: bool) -> EngineOptions {
    EngineOptions {
        name: "studio".to_owned(),
        model: Some("wan-2.2".to_owned()),
        sound,
    }
}

#[tokio::test]
async fn an_engine_offers_what_its_dialect_can_say_and_sound_where_it_was_told_so() {
    for dialect in Dialect::ALL {
        for sound in [false, true] {
            let options = Options::new(dialect, vec![Server::well("t", MP4).await.upstream("a")]);
            let remote = Remote::new(options, Arc::new(SystemTimer::default())).unwrap();
            let engine = RemoteEngine::new(remote, studio(sound));
            let (offered, can) = (engine.describe().features, dialect.features());
            assert_eq!(offered.restricted_to(can), offered);
            assert_eq!(offered.audio_output, sound && can.audio_output);
            assert_eq!(engine.has_sound_switch(), offered.audio_output);
        }
    }
    assert!(KINORA.features().negative_prompt && SGLANG.features().negative_prompt);
    assert!(!OPENAI.features().negative_prompt);
}

#[tokio::test]
async fn a_film_is_brought_with_signs_of_life_and_its_ticket_is_followed_by_the_next_attempt() {
    let server = Server::well("t", MP4).await;
    let studio = Studio::new(&KINORA, &server);
    studio.film(&request().spec, None).await.unwrap();
    assert_eq!(std::fs::read(studio.to()).unwrap(), MP4);
    assert!(studio.control.progress.reports() >= 3);
    assert!(studio.control.progress.fraction() > 0.3);
    let kept = studio.shelf.tokens.lock().unwrap().clone();
    assert_eq!(kept.len(), 1);

    let again = Studio::new(&KINORA, &server);
    again.film(&request().spec, Some(&kept[0])).await.unwrap();
    assert_eq!(server.count(SUBMIT), 1);
    assert_eq!(
        server.seen()[0].header("idempotency-key"),
        Some("video_0001")
    );

    let other = Studio::new(&KINORA, &server);
    other
        .film(&request().spec, Some("half a frame"))
        .await
        .unwrap();
    assert_eq!(server.count(SUBMIT), 2, "what is no ticket is not followed");
}

/// A server whose task goes on for ever, and who hears of the first look at it.
async fn endless() -> (Server, Arc<Notify>) {
    let asked = Arc::new(Notify::new());
    let polled = asked.clone();
    let server = Server::start(move |seen, before| {
        if seen.line == "GET /v1/videos/t" {
            polled.notify_one();
            return task("t", "in_progress", 10);
        }
        well("t", MP4, seen, before)
    });
    (server.await, asked)
}

#[tokio::test]
async fn a_cancel_is_answered_as_one_and_passed_on_and_a_drop_is_not() {
    let spec = request().spec;
    let (server, asked) = endless().await;
    let left = Studio::new(&KINORA, &server);
    tokio::select! {
        ended = left.film(&spec, None) => panic!("{ended:?}"),
        () = asked.notified() => {}
    }
    assert_eq!(server.count("POST /v1/videos/t/cancel"), 0);
    assert!(is_absent(&left.to()));

    let (server, asked) = endless().await;
    let studio = Studio::new(&KINORA, &server);
    let (ended, ()) = tokio::join!(studio.film(&spec, None), async {
        asked.notified().await;
        studio.cancel.cancel();
    });
    assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
    assert_eq!(server.count("POST /v1/videos/t/cancel"), 1);
    assert!(is_absent(&studio.to()));
}

#[tokio::test]
async fn each_failure_has_its_code_and_leaves_no_file() {
    let told = |ended: Result<(), EngineError>| match ended {
        Err(EngineError::Told { code, .. }) => code,
        other => panic!("{other:?}"),
    };
    let spec = request().spec;
    let failing = Server::start(|seen, _| match seen.line.as_str() {
        SUBMIT => task("t", "queued", 0),
        _ => answer(
            200,
            "",
            r#"{"id":"t","status":"failed","error":{"code":"out_of_memory","message":"x"}}"#,
        ),
    })
    .await;
    let studio = Studio::new(&KINORA, &failing);
    assert_eq!(
        told(studio.film(&spec, None).await),
        FailureCode::OutOfMemory
    );
    assert!(is_absent(&studio.to()));

    let refusing = Server::start(|_, _| answer(400, "", "no")).await;
    let studio = Studio::new(&KINORA, &refusing);
    assert_eq!(
        told(studio.film(&spec, None).await),
        FailureCode::GenerationFailed
    );

    let server = Server::well("t", MP4).await;
    let mut studio = Studio::new(&KINORA, &server);
    studio.shelf.is_away = true;
    assert_eq!(
        told(studio.film(&spec, None).await),
        FailureCode::StorageFailed
    );
    assert_eq!(server.count("POST /v1/videos/t/cancel"), 1);
    assert!(is_absent(&studio.to()));
}

#[tokio::test]
async fn each_server_is_asked_whether_it_would_serve_us() {
    let servers = [
        Server::well("t", MP4).await,
        Server::start(|_, _| answer(401, "", "who?")).await,
        Server::start(|_, _| answer(502, "", "")).await,
    ];
    let named = servers.iter().zip(["well", "wrong key", "broken"]);
    let upstreams = named.map(|(server, name)| server.upstream(name)).collect();
    let options = Options::new(&KINORA, upstreams);
    let remote = Remote::new(options, Arc::new(JumpTimer::default())).unwrap();
    let asked = remote.ask_all().await;
    let served: Vec<_> = asked
        .iter()
        .map(|(name, found)| (&**name, found.is_ok()))
        .collect();
    assert_eq!(
        served,
        [("well", true), ("wrong key", false), ("broken", false)]
    );
}
