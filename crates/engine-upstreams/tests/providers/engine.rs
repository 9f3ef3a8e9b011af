//! The providers as engines: what every maker of films must keep to, for each of them.

use std::path::PathBuf;

use kinora_contract::{FailureCode, VideoSpec};
use kinora_engine::FilmEngine;
use kinora_engine::conformance::film::{self, FilmSite, WorkFate};
use kinora_engine_upstreams::dialects::{EngineOptions, RemoteEngine};
use kinora_testkit::providers::{Fate, TestProvider};

use crate::case::{CASES, Case};
use crate::stage::{servers, spec};

/// An engine on one provider.
struct Studio {
    case: &'static Case,
    engine: RemoteEngine,
    server: TestProvider,
    folder: tempfile::TempDir,
}

impl Studio {
    fn open(case: &'static Case) -> Self {
        let (server, folder) = (case.server(), tempfile::tempdir().unwrap());
        let options = EngineOptions {
            name: "studio".to_owned(),
            model: Some(case.model.to_owned()),
            sound: case.sound,
            keeps_undecodable: false,
        };
        let remote = servers(case, &server, &folder, case.key);
        Self {
            case,
            engine: RemoteEngine::new(remote, options),
            server,
            folder,
        }
    }
}

impl FilmSite for Studio {
    fn engine(&self) -> &dyn FilmEngine {
        &self.engine
    }

    fn spec(&self) -> VideoSpec {
        spec(self.case)
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("film.mp4")
    }

    fn turn(&self, fate: WorkFate) {
        let endless = self.case.cancels.unwrap_or(Fate::Endless);
        self.server.set(|one| {
            one.is_silent = fate == WorkFate::Silent;
            one.fate = match fate {
                WorkFate::Succeeding => Fate::Succeeding,
                WorkFate::Endless => endless,
                WorkFate::Failing => Fate::Failing,
                WorkFate::Silent => one.fate,
            };
        });
    }

    fn film(&self) -> Vec<u8> {
        b"\0\0\0\x18ftypisom".to_vec()
    }

    fn failure(&self) -> FailureCode {
        FailureCode::GenerationFailed
    }

    fn begun(&self) -> usize {
        self.server.submits().len()
    }

    fn looks(&self) -> usize {
        self.server.looks()
    }

    fn cancelled(&self) -> usize {
        self.server.cancelled()
    }

    fn can_cancel(&self) -> bool {
        self.case.cancels.is_some()
    }

    fn reports_progress(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn an_engine_of_any_provider_keeps_what_makers_of_films_promise() {
    for case in CASES {
        let kept = film::check(async || Studio::open(case)).await;
        kept.unwrap_or_else(|broken| panic!("{}: {broken}", case.dialect));
    }
}
