//! The code blocks of the documents, which tests run as a reader would.
//!
//! A comment above a block says what it is, `<!-- KIND: NAME -->`.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::binary::workspace;

/// Programs that a fresh Debian machine lacks, by the start of their names, and the packages that have them.
const NOT_ON_A_BARE_MACHINE: [(&str, &str); 6] = [
    ("python", "python3"),
    ("pip", "python3-pip"),
    ("jq", "jq"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("npx", "npm"),
];

/// A fenced block of a page.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The language after its fence.
    pub language: String,
    /// Of the comment above it; empty without one.
    pub kind: String,
    /// Of the comment above it; empty without one.
    pub name: String,
    /// Its lines.
    pub text: String,
}

impl Block {
    /// Whether a reader is to run it.
    pub fn is_run_by_readers(&self) -> bool {
        ["sh", "bash", "shell", "console", "python"].contains(&&*self.language)
    }
}

/// The blocks of a page, in its order; `page` is its path in the repository.
pub fn blocks(page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(workspace().join(page)).unwrap();
    // A block in a list is indented.
    let (mut found, mut open, mut above) = (Vec::new(), None::<(Block, usize)>, "");
    for line in text.lines() {
        let bare = line.trim_start();
        if let Some(language) = bare.strip_prefix("```") {
            match open.take() {
                Some((block, _)) => found.push(block),
                None => open = Some((begun(language, above), line.len() - bare.len())),
            }
        } else if let Some((block, indent)) = &mut open {
            block.text.push_str(line.get(*indent..).unwrap_or_default());
            block.text.push('\n');
        }
        above = bare;
    }
    found
}

/// A value for `PATH` as the readers of a page have it, in `folder`, an empty one: the programs of this machine, without
/// Python, Node and jq unless the text of the page installs them (`apt install ...`).
pub fn readers_path(page: &str, folder: &Path) -> String {
    let text = std::fs::read_to_string(workspace().join(page)).unwrap();
    let mut installed = BTreeSet::new();
    for span in text.split("apt install ").skip(1) {
        let span = span.split(['`', '\n']).next().unwrap_or_default();
        installed.extend(span.split_whitespace());
    }
    // The package of virtual environments depends on Python.
    if installed.contains("python3-venv") {
        installed.insert("python3");
    }
    let is_absent = |name: &str| {
        let mut known = NOT_ON_A_BARE_MACHINE.iter();
        known.any(|(start, package)| name.starts_with(start) && !installed.contains(package))
    };
    let path = std::env::var_os("PATH").unwrap();
    for place in std::env::split_paths(&path) {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let link = folder.join(&name);
            if !is_absent(&name.to_string_lossy()) && !link.is_symlink() {
                symlink(entry.path(), link).unwrap();
            }
        }
    }
    folder.to_str().unwrap().to_owned()
}

/// An empty block under the line `above`.
fn begun(language: &str, above: &str) -> Block {
    let comment = above
        .strip_prefix("<!-- ")
        .and_then(|rest| rest.strip_suffix(" -->"));
    let (kind, name) = comment
        .and_then(|comment| comment.split_once(": "))
        .unwrap_or_default();
    Block {
        language: language.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        text: String::new(),
    }
}
