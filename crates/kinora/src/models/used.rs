//! The paths that engines name, wherever their settings name them: what of the files and programs of added models is in use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml::Value;

use crate::config::{Config, EngineSettings};
use crate::weights;

/// Paths, each as it was written and as it is without links.
#[derive(Debug, Default)]
pub(super) struct UsedPaths(BTreeSet<PathBuf>);

impl UsedPaths {
    /// Those of all engines of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        let engines = config.engines.iter().map(Self::of_engine);
        let mut used = Self(engines.flat_map(|engine| engine.0).collect());
        for engine in &config.engines_set_aside {
            used.add(&engine.table);
        }
        used
    }

    /// Those of one engine.
    pub(super) fn of_engine(engine: &EngineSettings) -> Self {
        let mut used = Self::default();
        for file in weights::files_of_engine(engine) {
            used.add_path(&file.path);
        }
        for value in engine.definition.table.values() {
            used.add(value);
        }
        used
    }

    /// Adds all texts in `value`: which of them are paths, only the engine knows.
    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.add_path(Path::new(text));
                // PYTHONPATH may have several, and `--option=PATH` has one.
                for part in text.split([':', '=', ',']) {
                    self.add_path(Path::new(part));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Table(table) => table.values().for_each(|item| self.add(item)),
            _ => {}
        }
    }

    fn add_path(&mut self, path: &Path) {
        if let Ok(path) = std::path::absolute(path) {
            self.0.insert(real(&path));
            self.0.insert(path);
        }
    }

    /// Whether `path` is used: itself, something in it, or a folder around it that is not outside of `root`.
    pub(super) fn has(&self, path: &Path, root: &Path) -> bool {
        let forms = [(path.to_owned(), root.to_owned()), (real(path), real(root))];
        forms.iter().any(|(path, root)| {
            self.0.iter().any(|used| {
                used.starts_with(path) || (path.starts_with(used) && used.starts_with(root))
            })
        })
    }

    /// Whether all those below `root` exist.
    pub(super) fn are_present_below(&self, root: &Path) -> bool {
        let mut below = self.0.iter().filter(|path| path.starts_with(root));
        below.all(|path| path.exists())
    }
}

/// `path` without links and `..`, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_used_wherever_a_table_names_it() {
        let data = tempfile::tempdir().unwrap();
        let data = data.path();
        std::fs::create_dir_all(data.join("weights/o/r/c")).unwrap();
        std::os::unix::fs::symlink(data.join("weights/o"), data.join("link")).unwrap();
        let text = r#"
            model = "DATA/link/r/c"
            settings.loras = [{ path = "DATA/weights/o/s/../t/lora" }]
            environment.PYTHONPATH = "/opt:DATA/engines/a"
            command = ["x", "--path=DATA/engines/b/bin/x", "/", "DATA"]
        "#;
        let table: toml::Table =
            toml::from_str(&text.replace("DATA", data.to_str().unwrap())).unwrap();
        let mut used = UsedPaths::default();
        used.add(&Value::Table(table));
        let has = |path: &str| {
            let root = path.split_once('/').unwrap().0;
            used.has(&data.join(path), &data.join(root))
        };
        for path in [
            "weights/o/r/c",
            "weights/o/r/c/file",
            "engines/a",
            "engines/b",
        ] {
            assert!(has(path), "{path}");
        }
        // `/` and the data folder are around everything, and mean nothing here.
        for path in ["weights/o/r/d", "engines/c", "engines/opt"] {
            assert!(!has(path), "{path}");
        }
    }
}
