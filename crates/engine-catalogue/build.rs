//! Writes the tables of embedded texts that `src/embedded.rs` includes.

use std::env;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names of tables, and their folders in the repository.
const TABLES: [(&str, &str); 3] = [
    ("ENTRIES", "crates/engine-catalogue/catalogue"),
    ("CARDS", "models"),
    ("PACKAGE", "python/src/kinora_engine"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let repository = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let (mut tables, mut cargo) = (String::new(), std::io::stdout());
    for (table, folder) in TABLES {
        let folder = repository.join(folder);
        let mut files = Vec::new();
        collect(&folder, "", &mut files)?;
        files.sort();
        tables += &format!("pub(crate) const {table}: &[(&str, &str)] = &[\n");
        for (name, path) in files {
            // Python's files one by one: compiled ones beside them would change the folder with each run. A new module
            // comes with a change of one that imports it.
            writeln!(cargo, "cargo::rerun-if-changed={}", path.display())?;
            tables += &format!("    ({name:?}, include_str!({path:?})),\n");
        }
        tables += "];\n";
        if table != "PACKAGE" {
            writeln!(cargo, "cargo::rerun-if-changed={}", folder.display())?;
        }
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("embedded.rs"), tables)?;
    Ok(())
}

/// The files below `folder` with their names, which begin with `prefix`.
fn collect(
    folder: &Path,
    prefix: &str,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = format!("{prefix}{}", name.ok_or("a name that is no UTF-8")?);
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else if let Some(name) = name.strip_suffix(".toml") {
            files.push((name.to_owned(), path));
        } else if name.ends_with(".py") || name.ends_with(".typed") {
            files.push((name, path));
        }
    }
    Ok(())
}
