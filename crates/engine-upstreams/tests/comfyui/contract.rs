//! What every maker of films must keep to, with both ways to stop a job.

use std::path::PathBuf;

use kinora_contract::{FailureCode, VideoSpec};
use kinora_engine::FilmEngine;
use kinora_engine::conformance::film::{self, FilmSite, WorkFate};
use kinora_engine_upstreams::comfyui::ComfyEngine;
use kinora_testkit::comfyui::{TestComfy, Works, workflow};

use crate::common::MP4;
use crate::support::{BINDINGS, card, engine, spec};

struct Studio {
    engine: ComfyEngine,
    server: TestComfy,
    folder: tempfile::TempDir,
}

impl Studio {
    fn open(has_cancel: bool) -> Self {
        let server = TestComfy::start();
        server.set(|behaviour| behaviour.has_cancel = has_cancel);
        Self {
            engine: engine(card(&workflow(), BINDINGS), &[&server]),
            server,
            folder: tempfile::tempdir().unwrap(),
        }
    }
}

impl FilmSite for Studio {
    fn engine(&self) -> &dyn FilmEngine {
        &self.engine
    }

    fn spec(&self) -> VideoSpec {
        spec()
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("film.mp4")
    }

    fn turn(&self, fate: WorkFate) {
        self.server.set(|behaviour| match fate {
            WorkFate::Succeeding => behaviour.works = Works::Well,
            WorkFate::Endless => behaviour.works = Works::Endless,
            WorkFate::Failing => behaviour.works = Works::Badly("torch.OutOfMemoryError"),
            WorkFate::Silent => behaviour.is_silent = true,
        });
    }

    fn film(&self) -> Vec<u8> {
        MP4.to_vec()
    }

    fn failure(&self) -> FailureCode {
        FailureCode::OutOfMemory
    }

    fn begun(&self) -> usize {
        self.server.begun().len()
    }

    fn looks(&self) -> usize {
        self.server.looks()
    }

    fn cancelled(&self) -> usize {
        self.server.stopped().len()
    }
}

#[tokio::test]
async fn a_workflow_keeps_what_makers_of_films_promise() {
    for has_cancel in [true, false] {
        let kept = film::check(async || Studio::open(has_cancel)).await;
        kept.unwrap_or_else(|broken| panic!("has_cancel = {has_cancel}: {broken}"));
    }
}
