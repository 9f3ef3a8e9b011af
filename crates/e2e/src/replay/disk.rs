//! A disk as the operations of a recording leave it, and what of it a power loss leaves.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contents::Contents;
use super::folder::Folder;
use super::op::Op;
use super::recording::Recording;

/// What a power loss takes of whatever is not certain.
pub enum Loss<'c> {
    /// Nothing: the disk as the service sees it.
    Nothing,
    /// All of it.
    All,
    /// Each change or not, or a part of it, by chance: gives a number below its argument.
    Some(&'c mut dyn FnMut(u64) -> u64),
}

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
            Op::MakeFolder { path } if path.is_empty() => {}
            Op::MakeFolder { path } => {
                self.nodes.push(Node::Folder(Folder::default()));
                self.name(at, path, Some(self.nodes.len() - 1));
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
            self.name(at, path, Some(self.nodes.len() - 1));
            self.nodes.len() - 1
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
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.find(parent);
        let parent = parent.unwrap_or_else(|| panic!("{path} is in no folder"));
        let Node::Folder(folder) = &mut self.nodes[parent] else {
            panic!("{path} is in a file");
        };
        folder.set(at, name, node);
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
mod tests {
    use super::*;

    /// The entries of a disk, one a line: folders, and files with their bytes.
    fn shown(disk: &Disk, loss: Loss<'_>) -> String {
        let line = |entry: Entry| match entry.bytes {
            Some(bytes) => format!("{}={}\n", entry.path.display(), bytes.escape_ascii()),
            None => format!("{}/\n", entry.path.display()),
        };
        disk.after(loss).into_iter().skip(1).map(line).collect()
    }

    fn open(fd: u32, path: &str, flags: &str) -> Op {
        let (path, flags) = (path.to_owned(), flags.to_owned());
        Op::Open { fd, path, flags }
    }

    fn write(fd: u32, bytes: &[u8]) -> Op {
        let bytes = bytes.into();
        Op::Write {
            fd,
            at: None,
            bytes,
            ended: 0,
        }
    }

    fn sync(fd: u32) -> Op {
        let path = String::new();
        Op::Sync {
            fd,
            path,
            began: 1000,
        }
    }

    fn after(ops: impl IntoIterator<Item = Op>) -> Disk {
        let mut disk = Disk::default();
        ops.into_iter()
            .enumerate()
            .for_each(|(at, op)| disk.apply(at, &op));
        disk
    }

    #[test]
    fn a_file_is_there_once_it_and_its_folder_are_synced() {
        let new = || {
            vec![
                open(3, "a", "O_RDWR|O_CREAT"),
                write(3, b"x"),
                write(3, b"y"),
            ]
        };
        let folder = || [open(4, "", "O_RDONLY"), sync(4)];
        assert_eq!(shown(&after(new()), Loss::All), "");
        assert_eq!(shown(&after(new()), Loss::Nothing), "a=xy\n");
        let named = after(new().into_iter().chain(folder()));
        assert_eq!(shown(&named, Loss::All), "a=\n");
        let unnamed = after(new().into_iter().chain([sync(3)]));
        assert_eq!(shown(&unnamed, Loss::All), "");
        let both = after(new().into_iter().chain([sync(3)]).chain(folder()));
        assert_eq!(shown(&both, Loss::All), "a=xy\n");
    }

    #[test]
    fn a_second_name_is_as_uncertain_as_the_first_and_names_the_same_bytes() {
        let path = |path: &str| path.to_owned();
        let mut disk = after([
            Op::MakeFolder { path: path("f") },
            open(3, "a", "O_WRONLY|O_CREAT"),
            write(3, b"x"),
            Op::Link {
                from: path("a"),
                to: path("f/b"),
            },
            Op::Unlink { path: path("a") },
            sync(3),
            open(4, "f", "O_RDONLY|O_DIRECTORY"),
            sync(4),
        ]);
        assert_eq!(shown(&disk, Loss::Nothing), "f/\nf/b=x\n");
        // The folder's own name was never synced.
        assert_eq!(shown(&disk, Loss::All), "");
        disk.apply(10, &open(5, "", "O_RDONLY"));
        disk.apply(11, &sync(5));
        assert_eq!(shown(&disk, Loss::All), "f/\nf/b=x\n");
        disk.apply(12, &Op::Unlink { path: path("f/b") });
        disk.apply(13, &Op::RemoveFolder { path: path("f") });
        assert_eq!(shown(&disk, Loss::All), "f/\nf/b=x\n");
        assert_eq!(shown(&disk, Loss::Nothing), "");
        // Each of the two may have gone.
        assert_eq!(shown(&disk, Loss::Some(&mut |_| 0)), "");
        assert_eq!(shown(&disk, Loss::Some(&mut |_| 1)), "f/\nf/b=x\n");
    }

    #[test]
    fn descriptors_have_positions_of_their_own() {
        let disk = after([
            open(3, "a", "O_RDWR|O_CREAT"),
            write(3, b"abcdef"),
            open(4, "a", "O_WRONLY|O_APPEND"),
            Op::Seek { fd: 3, to: 1 },
            write(3, b"X"),
            write(4, b"end"),
            Op::Close { fd: 3 },
            open(3, "a", "O_WRONLY"),
            write(3, b"Y"),
        ]);
        assert_eq!(shown(&disk, Loss::Nothing), "a=YXcdefend\n");
        let cut = after([
            open(3, "a", "O_RDWR|O_CREAT"),
            write(3, b"abc"),
            open(4, "a", "O_WRONLY|O_CREAT|O_TRUNC"),
        ]);
        assert_eq!(shown(&cut, Loss::Nothing), "a=\n");
    }

    #[test]
    fn bytes_are_copied_from_position_to_position_also_out_of_a_file_without_a_name() {
        let disk = after([
            open(3, "", "O_RDWR|O_TMPFILE"),
            write(3, b"abcdef"),
            Op::Seek { fd: 3, to: 1 },
            open(4, "a", "O_WRONLY|O_CREAT"),
            write(4, b"X"),
            Op::Copy {
                from: 3,
                to: 4,
                length: 2,
                ended: 0,
            },
            Op::Copy {
                from: 3,
                to: 4,
                length: 3,
                ended: 0,
            },
        ]);
        assert_eq!(shown(&disk, Loss::Nothing), "a=Xbcdef\n");
    }

    #[test]
    #[should_panic(expected = "is not there")]
    fn a_file_that_came_in_another_way_is_noticed() {
        after([open(3, "a", "O_RDONLY")]);
    }
}
