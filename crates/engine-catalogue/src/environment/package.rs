//! The Python package of engines, `kinora_engine`. No package registry has it, so it is part of this binary, and written into
//! a folder whose name has the hash of its content: a newer binary makes a folder of its own.

use std::io;
use std::path::{Path, PathBuf};

use kinora_system::durable;
use sha2::{Digest, Sha256};

use crate::embedded::PACKAGE;
use crate::environment::folder::{EngineFolder, remove, write};
use crate::environment::kind::EnvironmentError;

/// Name of the package, and of its folder.
const NAME: &str = "kinora_engine";

/// Writes the package below `engines` unless it is there; returns the folder for `PYTHONPATH`.
pub(super) fn write_package(engines: &Path) -> Result<PathBuf, EnvironmentError> {
    let parts = PACKAGE.iter().flat_map(|(path, text)| [*path, *text]);
    let folder = EngineFolder::open(engines, &format!("kinora-engine-{}", short_hash(parts)))?;
    let path = folder.path.clone();
    if folder.marker().is_some() {
        return Ok(path);
    }
    remove(&path.join(NAME))?;
    write_files(&path).map_err(EnvironmentError::at(&path))?;
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
    for (name, text) in PACKAGE {
        let path = folder.join(NAME).join(name);
        if let Some(parent) = path.parent() {
            durable::make_folder(parent)?;
        }
        write(&path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn each_file_of_the_package_is_embedded() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src/kinora_engine");
        let mut found = Vec::new();
        names(&source, &source, &mut found);
        let mut listed: Vec<&str> = PACKAGE.iter().map(|(path, _)| *path).collect();
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
