//! Compresses the files of `assets/` and writes the table that `src/lib.rs` includes. One hash over all
//! files names the folder from which the page loads them, so that browsers may keep them for ever.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The page itself, which is not in the folder that the hash names.
const PAGE: &str = "index.html";

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo reads this line from standard output.
    writeln!(std::io::stdout(), "cargo::rerun-if-changed=assets")?;
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("assets");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = Vec::new();
    collect(&folder, &folder, &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    let version = format!("{:016x}", hasher.finish());
    let scripts: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let preloads = preloads(&version, &scripts)?;

    let mut table = format!("const VERSION: &str = {version:?};\n\nconst FILES: &[File] = &[\n");
    let mut page = String::new();
    for (number, (name, bytes)) in files.iter().enumerate() {
        let text = String::from_utf8(bytes.clone())?;
        let text = text
            .replace("{{folder}}", &format!("studio/{version}"))
            .replace("    <!-- preloads -->\n", &preloads);
        let (plain, packed) = (
            out.join(format!("{number}")),
            out.join(format!("{number}.gz")),
        );
        fs::write(&plain, &text)?;
        fs::write(&packed, compressed(text.as_bytes())?)?;
        let row = format!(
            "File {{ name: {name:?}, plain: include_bytes!({plain:?}), packed: include_bytes!({packed:?}) }}"
        );
        if name == PAGE {
            page = row;
        } else {
            writeln!(table, "    {row},")?;
        }
    }
    writeln!(table, "];\n\nconst PAGE: File = {page};")?;
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

/// All files under `folder`, by their path from `root`.
fn collect(
    root: &Path,
    folder: &Path,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
            continue;
        }
        let name = path
            .strip_prefix(root)?
            .to_str()
            .ok_or("a name that is no UTF-8")?;
        files.push((name.replace('\\', "/"), fs::read(&path)?));
    }
    Ok(())
}

/// Lets the browser load all modules at once; otherwise it finds them import by import.
fn preloads(version: &str, names: &[&str]) -> Result<String, std::fmt::Error> {
    let mut lines = String::new();
    for name in names.iter().filter(|name| name.ends_with(".js")) {
        writeln!(
            lines,
            "    <link rel=\"modulepreload\" href=\"studio/{version}/{name}\">"
        )?;
    }
    Ok(lines)
}

fn compressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
