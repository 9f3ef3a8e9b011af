//! An engine of open weights as an operator configures it: a server of stable-diffusion.cpp, and the
//! table `[engines.model]`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::ModelPreset;
use kinora_engine::{
    ClipPlanner, Engine, EngineError, EngineKind, EngineOutput, FilesReport, FrameKind, KindError,
    SandboxNeeds,
};
use serde::Deserialize;

use crate::arguments;
use crate::check::check;
use crate::engine::{START_LIMIT, ServerEngine};
use crate::model::Model;
use crate::program;
use crate::settings::Settings;

/// Open weights, run by the server of stable-diffusion.cpp.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdcppKind {
    /// The program `sd-server`: a path, or a name in `PATH`.
    #[serde(default = "default_server")]
    server: PathBuf,
    /// Further arguments of the program.
    #[serde(default)]
    arguments: Vec<String>,
    model: Settings,
}

fn default_server() -> PathBuf {
    program::PROGRAM.into()
}

impl EngineKind for SdcppKind {
    fn check(&self, _confined: bool) -> Result<(), KindError> {
        if self.server.as_os_str().is_empty() {
            return Err(KindError("`server` is empty".to_owned()));
        }
        if let Some(argument) = arguments::reserved(&self.arguments) {
            return Err(KindError(format!(
                "arguments: {argument} is set by Kinora; see the settings of `model`"
            )));
        }
        self.model.validate()
    }

    fn output(&self) -> EngineOutput<'_> {
        EngineOutput::Frames(self)
    }

    fn check_preset(&self, preset: &ModelPreset) -> Result<(), KindError> {
        self.model.with_preset(preset).map(drop)
    }

    fn device(&self) -> Option<String> {
        self.model.backend.clone()
    }
}

impl FrameKind for SdcppKind {
    fn planner(&self, name: &str) -> Result<Arc<dyn ClipPlanner>, KindError> {
        Ok(Arc::new(Model::new(name, self.model.clone())?))
    }

    fn open(&self, name: &str) -> Result<Box<dyn Engine>, EngineError> {
        let model = Model::new(name, self.model.clone());
        let model = model.map_err(|error| EngineError::Failed(error.to_string()))?;
        let arguments = self.arguments.clone();
        let engine = ServerEngine::open(model, &self.server, arguments, START_LIMIT)?;
        Ok(Box::new(engine))
    }

    fn needs(&self) -> SandboxNeeds {
        let files = self.model.files().map(|(_, path)| Path::to_owned(path));
        SandboxNeeds {
            files: files.chain(self.model.loras_folder.clone()).collect(),
            // Drivers keep compiled kernels.
            scratch: true,
            starts_programs: true,
            ..program::needs(&self.server)
        }
    }

    fn unavailable(&self) -> Option<String> {
        program::find(&self.server).err()
    }

    fn check_files(&self) -> Option<FilesReport> {
        let report = check(&self.model);
        let version = program::version(&self.server);
        let is_good = report.is_good() && version.is_ok();
        let server =
            version.unwrap_or_else(|why| format!("{}\n  wrong: {why}", self.server.display()));
        Some(FilesReport {
            is_good,
            text: format!("server: {server}\n{report}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MODEL: &str =
        "[model]\nfamily = \"wan\"\ndiffusion_model = \"d\"\nvae = \"v\"\ntext_encoder = \"t\"\n";

    #[test]
    fn a_preset_is_checked_with_the_settings_that_it_changes() {
        let check = |preset: &Value| read("").check_preset(preset.as_object().unwrap());
        check(&json!({"steps": 4, "guidance": 1.0, "sampler": "lcm"})).unwrap();
        for (preset, named) in [
            (json!({"guidance_scale": 1.0}), "unknown field"),
            (json!({"steps": 0}), "steps: 0"),
            (json!({"sampler": "quick"}), "unknown variant"),
            (
                json!({"loras": [{"path": "a.safetensors"}]}),
                "loras_folder",
            ),
        ] {
            let error = check(&preset).unwrap_err();
            assert!(error.0.contains(named), "{error}");
        }
    }

    fn read(more: &str) -> SdcppKind {
        toml::from_str(&format!("{more}\n{MODEL}")).unwrap()
    }

    #[test]
    fn the_server_is_found_in_path_unless_a_path_is_given() {
        assert_eq!(read("").server, Path::new("sd-server"));
        assert!(program::find(Path::new("sh")).is_ok_and(|path| path.is_absolute()));
        assert!(program::find(Path::new("/no/such/sd-server")).is_err());
        let needs = read("server = \"/bin/sh\"").needs();
        assert!(
            needs.starts_programs && needs.programs.contains(&"/bin/sh".into()),
            "{needs:?}"
        );
    }

    #[test]
    fn arguments_of_an_operator_leave_ours_alone() {
        assert!(
            read("arguments = [\"--vae-conv-direct\"]")
                .check(true)
                .is_ok()
        );
        let refused = read("arguments = [\"--listen-ip\", \"0.0.0.0\"]").check(true);
        assert!(refused.unwrap_err().0.contains("--listen-ip"));
        assert!(read("server = \"\"").check(true).is_err());
    }

    #[test]
    fn a_server_that_is_missing_is_a_fault_of_the_files() {
        let report = read("server = \"/no/such/sd-server\"")
            .check_files()
            .unwrap();
        assert!(
            !report.is_good && report.text.contains("docs/models.md"),
            "{}",
            report.text
        );
    }
}
