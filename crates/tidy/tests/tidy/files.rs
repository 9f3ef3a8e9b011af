//! The files of the checkout that belong to it: everything but what `.gitignore` names.
//! It asks the folder and not git, so that it also works on an unpacked archive.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// From the root of the checkout, with `/` between folders.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Every text file, by path. Files that are no UTF-8 (fonts, pictures) are left out.
pub(crate) fn texts() -> Vec<SourceFile> {
    let root = root();
    let ignored = ignored_names(&root);
    let mut paths = Vec::new();
    walk(&root, &ignored, &mut paths);
    let read = |path: PathBuf| {
        let text = String::from_utf8(fs::read(&path).unwrap()).ok()?;
        let path = path
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .replace('\\', "/");
        Some(SourceFile { path, text })
    };
    let mut files: Vec<SourceFile> = paths.into_iter().filter_map(read).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(
        files.len() > 50,
        "only {} files under {}",
        files.len(),
        root.display()
    );
    files
}

/// Every Rust file.
pub(crate) fn rust() -> Vec<SourceFile> {
    texts()
        .into_iter()
        .filter(|file| file.has_extension("rs"))
        .collect()
}

/// The folders of the crates, by name.
pub(crate) fn crate_folders() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(Result::unwrap);
    let with_manifest = entries.filter(|entry| entry.path().join("Cargo.toml").is_file());
    let mut names: Vec<String> = with_manifest
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A manifest, by its path from the root.
pub(crate) fn manifest(path: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(path)).unwrap();
    text.parse()
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn walk(folder: &Path, ignored: &[String], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let kind = entry.file_type().unwrap();
        if ignored.iter().any(|pattern| matches(pattern, &name)) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), ignored, found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// The patterns of `.gitignore`, all of which are plain names or `*.extension`, and git's own.
fn ignored_names(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join(".gitignore")).unwrap();
    let lines = text.lines().map(|line| line.trim_matches('/'));
    let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    patterns
        .map(str::to_owned)
        .chain([".git".to_owned()])
        .collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(ending) => name.ends_with(ending),
        None => name == pattern.rsplit('/').next().unwrap_or(pattern),
    }
}
