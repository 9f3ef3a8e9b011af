//! An engine of open weights as an operator configures it: the table `[engines.model]`.

use std::path::Path;
use std::sync::Arc;

use kinora_engine::{
    ClipPlanner, Engine, EngineError, EngineKind, EngineOutput, FilesReport, FrameKind, KindError,
    SandboxNeeds,
};
use serde::Deserialize;

use crate::check::check;
use crate::model::Model;
use crate::settings::Settings;

/// Advice for an executable built without neural engines.
const NOT_BUILT_IN: &str = "this kinora was built without neural engines; build it with \
    `cargo build --release --features diffusion` (or diffusion-cuda, diffusion-vulkan, diffusion-metal)";

/// Open weights, run by stable-diffusion.cpp.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffusionKind {
    model: Settings,
}

impl EngineKind for DiffusionKind {
    fn check(&self, _confined: bool) -> Result<(), KindError> {
        self.model
            .validate()
            .map_err(|error| KindError(error.to_string()))
    }

    fn output(&self) -> EngineOutput<'_> {
        EngineOutput::Frames(self)
    }

    fn device(&self) -> Option<String> {
        self.model.backend.clone()
    }
}

impl FrameKind for DiffusionKind {
    fn planner(&self, name: &str) -> Result<Arc<dyn ClipPlanner>, KindError> {
        let model = Model::new(name, self.model.clone());
        let model = model.map_err(|error| KindError(error.to_string()))?;
        Ok(Arc::new(model))
    }

    #[cfg(feature = "native")]
    fn open(&self, name: &str) -> Result<Box<dyn Engine>, EngineError> {
        let model = Model::new(name, self.model.clone())
            .map_err(|error| EngineError::Failed(error.to_string()))?;
        Ok(Box::new(crate::Native::load(model)?))
    }

    #[cfg(not(feature = "native"))]
    fn open(&self, name: &str) -> Result<Box<dyn Engine>, EngineError> {
        Err(EngineError::Unsupported(format!("{name}: {NOT_BUILT_IN}")))
    }

    fn needs(&self) -> SandboxNeeds {
        SandboxNeeds {
            files: self
                .model
                .files()
                .map(|(_, path)| Path::to_owned(path))
                .collect(),
            // Drivers keep compiled kernels.
            scratch: true,
        }
    }

    fn check_files(&self) -> Option<FilesReport> {
        let report = check(&self.model);
        Some(FilesReport {
            is_good: report.is_good(),
            text: report.to_string(),
        })
    }

    fn not_built_in(&self) -> Option<&'static str> {
        (!cfg!(feature = "native")).then_some(NOT_BUILT_IN)
    }
}
