//! The Python package of engines, `kinora_engine`. No package registry has it, so it is part of this binary, and written into
//! a folder whose name has the hash of its content: a newer binary makes a folder of its own.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kinora_system::durable;
use sha2::{Digest, Sha256};

use crate::environment::folder::{EngineFolder, remove};
use crate::environment::kind::EnvironmentError;

/// Name of the package, and of its folder.
const PACKAGE: &str = "kinora_engine";

macro_rules! package_files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../python/src/kinora_engine/", $path)))),*]
    };
}

/// Path and text of each file.
const FILES: &[(&str, &str)] = package_files![
    "__init__.py",
    "__main__.py",
    "_cancel.py",
    "_checks.py",
    "_description.py",
    "_engine.py",
    "_errors.py",
    "_job.py",
    "_library.py",
    "_line.py",
    "_materials.py",
    "_messages.py",
    "_outputs.py",
    "_pixels.py",
    "_reader.py",
    "_resample.py",
    "_runner.py",
    "_serve.py",
    "_soundtrack.py",
    "_source.py",
    "_stereo.py",
    "_streams.py",
    "_target.py",
    "_version.py",
    "_watch.py",
    "_wire.py",
    "diffusers/__init__.py",
    "diffusers/_arguments.py",
    "diffusers/_caches.py",
    "diffusers/_decode.py",
    "diffusers/_families.py",
    "diffusers/_files.py",
    "diffusers/_hooks.py",
    "diffusers/_index.py",
    "diffusers/_length.py",
    "diffusers/_load.py",
    "diffusers/_memory.py",
    "diffusers/_modular.py",
    "diffusers/_objects.py",
    "diffusers/_pipeline.py",
    "diffusers/_preset.py",
    "diffusers/_rank.py",
    "diffusers/_ranks.py",
    "diffusers/_run.py",
    "diffusers/_settings.py",
    "diffusers/_together.py",
    "diffusers/_watch.py",
    "diffusers/_weights.py",
    "fastvideo.py",
    "py.typed",
    "sglang.py",
    "testing.py",
];

/// Writes the package below `engines` unless it is there; returns the folder for `PYTHONPATH`.
pub(super) fn write_package(engines: &Path) -> Result<PathBuf, EnvironmentError> {
    let parts = FILES.iter().flat_map(|(path, text)| [*path, *text]);
    let folder = EngineFolder::open(engines, &format!("kinora-engine-{}", short_hash(parts)))?;
    let path = folder.path().to_owned();
    if folder.marker().is_some() {
        return Ok(path);
    }
    remove(&path.join(PACKAGE))?;
    write_files(&path).map_err(|error| EnvironmentError::file(&path, &error))?;
    folder.mark("")?;
    Ok(path)
}

/// The first 12 hexadecimal digits of the SHA-256 of `parts`.
pub(super) fn short_hash<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    digest[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn write_files(folder: &Path) -> io::Result<()> {
    for (name, text) in FILES {
        let path = folder.join(PACKAGE).join(name);
        if let Some(parent) = path.parent() {
            durable::make_folder(parent)?;
        }
        let mut file = File::create(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    let subfolders = fs::read_dir(folder.join(PACKAGE))?.flatten();
    for entry in subfolders.filter(|entry| entry.path().is_dir()) {
        durable::sync_folder(&entry.path())?;
    }
    durable::sync_folder(&folder.join(PACKAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path, below: &Path, into: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(below).unwrap().to_str().unwrap();
            if path.is_dir() && !name.ends_with("__pycache__") {
                names(&path, below, into);
            } else if path.is_file() {
                into.push(name.to_owned());
            }
        }
        into.sort();
    }

    #[test]
    fn the_list_has_each_file_of_the_package() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src/kinora_engine");
        let mut found = Vec::new();
        names(&source, &source, &mut found);
        let mut listed: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        listed.sort_unstable();
        assert_eq!(listed, found);
    }

    #[test]
    fn the_package_is_written_once_and_again_if_it_is_incomplete() {
        let engines = tempfile::tempdir().unwrap();
        let folder = write_package(engines.path()).unwrap();
        let main = folder.join("kinora_engine/__main__.py");
        let text = fs::read_to_string(&main).unwrap();
        assert!(text.contains("python -m kinora_engine"));
        assert!(folder.join("kinora_engine/diffusers/_load.py").exists());
        fs::write(&main, "changed").unwrap();
        assert_eq!(write_package(engines.path()).unwrap(), folder);
        assert_eq!(fs::read_to_string(&main).unwrap(), "changed");
        // As after a process that died before the end.
        fs::remove_file(folder.join("ready")).unwrap();
        write_package(engines.path()).unwrap();
        assert_eq!(fs::read_to_string(&main).unwrap(), text);
    }

    #[test]
    fn a_hash_depends_on_where_parts_end() {
        assert_ne!(short_hash(["ab", "c"]), short_hash(["a", "bc"]));
        assert_eq!(short_hash(["ab", "c"]).len(), 12);
    }
}
