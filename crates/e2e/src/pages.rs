//! The code blocks of the documents, which tests run as a reader would.
//!
//! A comment above a block says what it is, `<!-- KIND: NAME -->`.

use crate::binary::workspace;

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
