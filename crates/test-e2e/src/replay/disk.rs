//! A disk as the operations of a recording leave it, and what of it a power loss leaves.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contents::Contents;
use super::folder::Folder;
use super::loss::Loss;
use super::op::Op;
use super::recording::Recording;

/// A file or folder of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Relative to the data folder.
    pub path: PathBuf,
    /// Its bytes; `None` for a folder.
    pub bytes: Option<Vec<u8>>,
}

/// A disk that holds the data folder.
#[derive(Debug)]
pub struct Disk {
    /// Files and folders by number; the first is the data folder, which is there from the start.
    nodes: Vec<Node>,
    open: HashMap<u32, Opened>,
    /// How many operations of the recording it has seen.
    seen: usize,
}

#[derive(Debug)]
enum Node {
    File(Contents),
    Folder(Folder),
}

/// An open file description.
#[derive(Debug)]
struct Opened {
    node: usize,
    position: usize,
    appends: bool,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            nodes: vec![Node::Folder(Folder::default())],
            open: HashMap::new(),
            seen: 0,
        }
    }
}

impl Disk {
    /// Goes on through `recording` up to, and without, `moment`.
    pub fn advance(&mut self, recording: &Recording, moment: usize) {
        while let Some((at, op)) = recording.ops.get(self.seen).filter(|(at, _)| *at < moment) {
            self.apply(*at, op);
            self.seen += 1;
        }
    }

    fn apply(&mut self, at: usize, op: &Op) {
        match op {
            Op::Open { fd, path, flags } => self.open(at, *fd, path, flags),
            Op::Close { fd } => {
                self.open.remove(fd);
            }
            Op::Seek { fd, to } => self.opened(*fd).position = *to,
            Op::Write {
                fd,
                at: place,
                bytes,
                ended,
            } => self.write(*fd, *place, bytes.clone(), *ended),
            Op::Copy {
                from,
                to,
                length,
                ended,
            } => self.copy(*from, *to, *length, *ended),
            Op::SetLength { fd, length, ended } => {
                let node = self.opened(*fd).node;
                self.file(node).set_length(*length, *ended);
            }
            Op::Sync { fd, began, .. } => {
                let node = self.opened(*fd).node;
                match &mut self.nodes[node] {
                    Node::File(contents) => contents.sync(*began),
                    Node::Folder(folder) => folder.sync(*began),
                }
            }
            Op::Link { from, to } => {
                let node = self.find(from).unwrap_or_else(|| panic!("no file {from}"));
                self.name(at, to, Some(node));
            }
            Op::Rename { from, to } => self.rename(at, from, to),
            Op::MakeFolder { path } => {
                self.folder(at, path);
            }
            Op::Unlink { path } | Op::RemoveFolder { path } => self.name(at, path, None),
        }
    }

    fn write(&mut self, fd: u32, place: Option<usize>, bytes: Arc<[u8]>, ended: usize) {
        let opened = self.opened(fd);
        let (node, position, appends) = (opened.node, opened.position, opened.appends);
        let end = self.file(node).length();
        let from = place.unwrap_or(if appends { end } else { position });
        if place.is_none() {
            self.opened(fd).position = from + bytes.len();
        }
        self.file(node).write(from, bytes, ended);
    }

    fn copy(&mut self, from: u32, to: u32, length: usize, ended: usize) {
        let opened = self.opened(from);
        let (node, position) = (opened.node, opened.position);
        opened.position += length;
        let bytes = self.file(node).after(&mut Loss::Nothing);
        let copied = &bytes[position..position + length];
        self.write(to, None, copied.into(), ended);
    }

    fn open(&mut self, at: usize, fd: u32, path: &str, flags: &str) {
        let has = |flag| flags.split('|').any(|one| one == flag);
        // A file without a name, in the folder `path`.
        let named = if has("O_TMPFILE") {
            self.nodes.push(Node::File(Contents::default()));
            Some(self.nodes.len() - 1)
        } else {
            self.find(path)
        };
        let node = named.unwrap_or_else(|| {
            assert!(has("O_CREAT"), "{path} was opened and is not there");
            self.nodes.push(Node::File(Contents::default()));
            let node = self.nodes.len() - 1;
            self.name(at, path, Some(node));
            node
        });
        if has("O_TRUNC") && self.file(node).length() > 0 {
            self.file(node).set_length(0, at);
        }
        let opened = Opened {
            node,
            position: 0,
            appends: has("O_APPEND"),
        };
        self.open.insert(fd, opened);
    }

    fn opened(&mut self, fd: u32) -> &mut Opened {
        let opened = self.open.get_mut(&fd);
        opened.unwrap_or_else(|| panic!("nobody saw descriptor {fd} being opened"))
    }

    fn file(&mut self, node: usize) -> &mut Contents {
        match &mut self.nodes[node] {
            Node::File(contents) => contents,
            Node::Folder(_) => panic!("bytes of a folder"),
        }
    }

    /// What `path` names, as the service sees it.
    fn find(&self, path: &str) -> Option<usize> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        parts.try_fold(0, |node, part| match &self.nodes[node] {
            Node::Folder(folder) => folder.get(part),
            Node::File(_) => None,
        })
    }

    /// Gives a name to `node`, or takes it away.
    fn name(&mut self, at: usize, path: &str, node: Option<usize>) {
        let (parent, name) = split(path);
        self.folder(at, parent).set(at, [(name, node)]);
    }

    /// Within one folder both names change together; in two folders each may be lost.
    fn rename(&mut self, at: usize, from: &str, to: &str) {
        let node = self.find(from);
        assert!(node.is_some(), "no file {from}");
        let ((old_parent, old), (new_parent, new)) = (split(from), split(to));
        if old_parent == new_parent {
            let folder = self.folder(at, old_parent);
            folder.set(at, [(old, None), (new, node)]);
        } else {
            self.name(at, to, node);
            self.name(at, from, None);
        }
    }

    /// The folder at `path`, which is made where it is not there: the call that made it may be seen to
    /// end only after another thread has used it.
    fn folder(&mut self, at: usize, path: &str) -> &mut Folder {
        let node = self.find(path).unwrap_or_else(|| {
            self.nodes.push(Node::Folder(Folder::default()));
            let node = self.nodes.len() - 1;
            self.name(at, path, Some(node));
            node
        });
        match &mut self.nodes[node] {
            Node::Folder(folder) => folder,
            Node::File(_) => panic!("{path} is a file"),
        }
    }

    /// What is there after a power loss: folders before what they hold.
    pub fn after(&self, mut loss: Loss<'_>) -> Vec<Entry> {
        let mut image = Image::default();
        self.add(0, PathBuf::new(), &mut loss, &mut image);
        image.entries
    }

    fn add(&self, node: usize, path: PathBuf, loss: &mut Loss<'_>, image: &mut Image) {
        let bytes = match &self.nodes[node] {
            Node::File(contents) => {
                // A file with two names has the same bytes under both.
                let bytes = image.bytes.entry(node);
                Some(bytes.or_insert_with(|| contents.after(loss)).clone())
            }
            Node::Folder(_) => None,
        };
        image.entries.push(Entry {
            path: path.clone(),
            bytes,
        });
        if let Node::Folder(folder) = &self.nodes[node] {
            for (name, node) in folder.after(loss) {
                self.add(node, path.join(name), loss, image);
            }
        }
    }
}

/// The folder of `path`, and its name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[derive(Default)]
struct Image {
    entries: Vec<Entry>,
    bytes: HashMap<usize, Vec<u8>>,
}

impl Entry {
    /// Writes it below `folder`, open to its owner alone.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let path = folder.join(&self.path);
        let Some(bytes) = &self.bytes else {
            return DirBuilder::new().mode(0o700).create(path);
        };
        let mut options = OpenOptions::new();
        let mut file: File = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests;
