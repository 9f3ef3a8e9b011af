//! The files of configured models: which each needs, where they come from and which are present.
//! Looks at names and lengths; reads no file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kinora_contract::CardRecord;
use kinora_engine::EngineOutput;
use serde_json::Value;

use crate::cli::HomeArgs;
use crate::config::{Config, EngineFile, EngineSettings};
use crate::failure::Failure;
use crate::output::count;
use crate::shell_hint;

/// A file that an engine reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WeightFile {
    pub(crate) path: PathBuf,
    /// Source of the file, if configured.
    pub(crate) source: Option<EngineFile>,
}

/// State of a file, by its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// Present, with the configured length if there is one. Holds the length.
    Complete(u64),
    /// Absent. Holds the bytes of an unfinished download.
    Missing(u64),
    /// Present with another length than configured.
    WrongLength { found: u64, expected: u64 },
    /// Unknown, with the error.
    Unreadable(String),
}

impl WeightFile {
    pub(crate) fn state(&self) -> FileState {
        let expected = self.source.as_ref().and_then(|source| source.bytes);
        match fs::metadata(&self.path) {
            Ok(there) => match expected {
                Some(expected) if expected != there.len() => FileState::WrongLength {
                    found: there.len(),
                    expected,
                },
                _ => FileState::Complete(there.len()),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                FileState::Missing(kinora_http_download::partial_bytes(&self.path).unwrap_or(0))
            }
            Err(error) => FileState::Unreadable(error.to_string()),
        }
    }
}

/// The files of an engine: those that its settings name, and further ones with a source.
pub(crate) fn files_of_engine(engine: &EngineSettings) -> Vec<WeightFile> {
    let listed = engine.files.iter().map(|file| file.path.clone());
    let mut weights: Vec<WeightFile> = Vec::new();
    for path in engine.own_files().into_iter().chain(listed) {
        if !weights.iter().any(|weight| weight.path == path) {
            let source = engine.files.iter().find(|file| file.path == path);
            weights.push(WeightFile {
                source: source.cloned(),
                path,
            });
        }
    }
    weights
}

/// Files that no `[[engines.files]]` names, since the engine's command gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByEngine {
    /// The repository of the model hub that the command's settings name, if they name one.
    pub(crate) repository: Option<String>,
    /// The hub's cache in the command's environment, if it is not the default one.
    pub(crate) cache: Option<String>,
}

/// `None`: the configuration knows the engine's files, or it has none.
pub(crate) fn by_engine(engine: &EngineSettings) -> Option<ByEngine> {
    let EngineOutput::Frames(frames) = engine.settings.output() else {
        return None;
    };
    let program = frames
        .program()
        .filter(|_| files_of_engine(engine).is_empty())?;
    let model = program.settings.get("model").and_then(Value::as_str);
    Some(ByEngine {
        repository: model.filter(|name| is_repository(name)).map(str::to_owned),
        cache: program.environment.get("HF_HOME").cloned(),
    })
}

/// Whether the name is the id of a repository, `OWNER/NAME`, and not a path.
fn is_repository(name: &str) -> bool {
    let parts = name.split_once('/');
    parts.is_some_and(|(owner, name)| is_repository_part(owner) && is_repository_part(name))
        && !Path::new(name).exists()
}

fn is_repository_part(part: &str) -> bool {
    part.starts_with(|one: char| one.is_ascii_alphanumeric())
        && part
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one))
}

/// The models with these ids or aliases.
pub(crate) fn find_models<'c>(
    config: &'c Config,
    names: &[String],
) -> Result<Vec<&'c CardRecord>, Failure> {
    names.iter().map(|name| config.model(name)).collect()
}

/// The files of these models, each once.
pub(crate) fn files_of_models(
    config: &Config,
    models: &[&CardRecord],
) -> Result<Vec<WeightFile>, Failure> {
    let mut weights: Vec<WeightFile> = Vec::new();
    for model in models {
        for weight in files_of_engine(&config.engine(&model.engine)?) {
            match weights.iter_mut().find(|one| one.path == weight.path) {
                // Another engine may say where it comes from.
                Some(one) => one.source = one.source.take().or(weight.source),
                // Compared by path as written: two spellings of one path count twice, which costs a
                // line of output.
                None => weights.push(weight),
            }
        }
    }
    Ok(weights)
}

/// Models with missing files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MissingFiles {
    /// One for each engine.
    models: Vec<String>,
    /// Their missing files, each once.
    files: Vec<WeightFile>,
}

/// The models with missing files, if there are any.
pub(crate) fn missing_files(config: &Config) -> Option<MissingFiles> {
    let mut missing = MissingFiles::default();
    let mut seen = Vec::new();
    for model in &config.models {
        // One model stands for all of an engine, so that the advice names each file once and stays
        // one line.
        if seen.contains(&&model.engine) {
            continue;
        }
        seen.push(&model.engine);
        let Ok(engine) = config.engine(&model.engine) else {
            continue;
        };
        let absent = files_of_engine(&engine)
            .into_iter()
            .filter(|weight| matches!(weight.state(), FileState::Missing(_)));
        let absent: Vec<WeightFile> = absent.collect();
        if !absent.is_empty() {
            missing.models.push(model.id.clone());
        }
        for weight in absent {
            if !missing.files.iter().any(|one| one.path == weight.path) {
                missing.files.push(weight);
            }
        }
    }
    (!missing.files.is_empty()).then_some(missing)
}

impl MissingFiles {
    /// The missing files, and the command that downloads them.
    pub(crate) fn advice(&self, home: &HomeArgs) -> String {
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let mut text = format!(
            "{} missing for {}",
            count(number, "file"),
            self.models.join(", ")
        );
        if self.files.iter().any(|file| file.source.is_some()) {
            let words = format!("models pull {}", self.models.join(" "));
            text = format!(
                "{text}; download with: {}",
                shell_hint::command(&words, home)
            );
        }
        for file in self.files.iter().filter(|file| file.source.is_none()) {
            let path = file.path.display();
            text = format!("{text}; the configuration has no url for {path}: put it there");
        }
        text
    }
}

/// Logs which files are missing and how to get them, if this process has a worker.
pub(crate) fn log_missing(config: &Config, home: &HomeArgs) {
    if !config.worker.enabled {
        return;
    }
    if let Some(missing) = missing_files(config) {
        tracing::warn!(
            "{}. Tasks of these models fail until then",
            missing.advice(home)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(folder: &std::path::Path) -> Config {
        let engine = |name: &str, files: &str| {
            format!(
                "[[engines]]\nname = \"{name}\"\nkind = \"process\"\ncommand = [\"sh\"]\n\
                 describe = {{ fps = 16, features = {{ text_to_video = true }} }}\n{files}\
                 [[models]]\nid = \"{name}-model\"\naliases = [\"{name}-alias\"]\nengine = \"{name}\"\n"
            )
        };
        let file = |name: &str| {
            let path = folder.join(name);
            format!(
                "[[engines.files]]\npath = \"{}\"\nurl = \"https://a/{name}\"\nbytes = 3\n",
                path.display()
            )
        };
        let text = engine("one", &(file("a") + &file("b"))) + &engine("two", &file("b"));
        let path = folder.join("kinora.toml");
        fs::write(&path, text).unwrap();
        let config = Config::read(Some(&path), &[]).unwrap();
        config.check().unwrap();
        config
    }

    #[test]
    fn models_are_found_by_id_and_alias_and_share_files() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let models = find_models(&config, &names)?;
            files_of_models(&config, &models).map(|weights| weights.len())
        };
        assert_eq!(of(&["one-model"]).unwrap(), 2);
        assert_eq!(of(&["two-alias"]).unwrap(), 1);
        assert_eq!(of(&["one-alias", "two-model"]).unwrap(), 2);
        let error = of(&["three"]).unwrap_err().to_string();
        for part in ["'three'", "one-model, two-model", "--config"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_id_of_a_repository_is_told_from_a_path() {
        for id in ["Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "a/b_c.d"] {
            assert!(is_repository(id), "{id}");
        }
        // The last is a folder of this crate, in which tests run.
        for path in [
            "",
            "wan",
            "/srv/wan",
            "./wan",
            "../wan",
            "a/b/c",
            "a/",
            "a b/c",
            "src/config",
        ] {
            assert!(!is_repository(path), "{path}");
        }
    }

    #[test]
    fn the_state_of_a_file_is_that_of_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        let weight = files_of_engine(&config.engines[1]).remove(0);
        assert_eq!(weight.state(), FileState::Missing(0));
        fs::write(folder.path().join(".b.part"), "12").unwrap();
        assert_eq!(weight.state(), FileState::Missing(2));
        fs::write(&weight.path, "1234").unwrap();
        let (found, expected) = (4, 3);
        assert_eq!(weight.state(), FileState::WrongLength { found, expected });
        fs::write(&weight.path, "123").unwrap();
        assert_eq!(weight.state(), FileState::Complete(3));
    }

    #[test]
    fn one_command_gets_all_missing_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        let home = HomeArgs {
            data: None,
            config: Some("k.toml".into()),
        };
        let advice = missing_files(&config).unwrap().advice(&home);
        assert!(
            advice.starts_with("2 files missing for one-model, two-model; "),
            "{advice}"
        );
        let command = "models pull one-model two-model --config k.toml";
        assert!(advice.ends_with(command), "{advice}");
        fs::write(folder.path().join("b"), "123").unwrap();
        let advice = missing_files(&config).unwrap().advice(&home);
        assert!(
            advice.contains("models pull one-model --config"),
            "{advice}"
        );
        fs::write(folder.path().join("a"), "123").unwrap();
        assert_eq!(missing_files(&config), None);
        config.engines.clear();
        assert_eq!(missing_files(&config), None);
    }
}
