//! The bytes of one file: those that a power loss leaves for certain, and the changes that it may undo.

use std::sync::Arc;

use super::loss::Loss;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A change of a file that no sync has covered.
#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Arc<[u8]> },
    SetLength(usize),
}

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    certain: Vec<u8>,
    /// In order, each with the moment in which the kernel was done with it.
    uncertain: Vec<(usize, Change)>,
    /// Its length as its users see it.
    length: usize,
}

impl Contents {
    pub(super) const fn length(&self) -> usize {
        self.length
    }

    pub(super) fn write(&mut self, at: usize, bytes: Arc<[u8]>, ended: usize) {
        self.length = self.length.max(at + bytes.len());
        self.uncertain.push((ended, Change::Write { at, bytes }));
    }

    pub(super) fn set_length(&mut self, length: usize, ended: usize) {
        self.length = length;
        self.uncertain.push((ended, Change::SetLength(length)));
    }

    /// A sync that began at `began` has ended.
    pub(super) fn sync(&mut self, began: usize) {
        for (ended, change) in std::mem::take(&mut self.uncertain) {
            if ended < began {
                change.apply(&mut self.certain);
            } else {
                self.uncertain.push((ended, change));
            }
        }
    }

    /// The bytes after a power loss.
    pub(super) fn after(&self, loss: &mut Loss<'_>) -> Vec<u8> {
        let mut bytes = self.certain.clone();
        for (_, change) in &self.uncertain {
            match loss {
                Loss::All => {}
                Loss::Nothing => change.apply(&mut bytes),
                Loss::Some(chance) => change.tear(&mut bytes, *chance),
            }
        }
        bytes
    }
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => put(to, *at, bytes),
            Self::SetLength(length) => to.resize(*length, 0),
        }
    }

    /// Applies it, or nothing of it, or a part.
    fn tear(&self, to: &mut Vec<u8>, chance: &mut dyn FnMut(u64) -> u64) {
        match (chance(4), self) {
            (0, _) => {}
            (1, _) => self.apply(to),
            (2, Self::Write { at, bytes }) => to.resize(to.len().max(at + bytes.len()), 0),
            (_, Self::Write { at, bytes }) => {
                let mut from = 0;
                while from < bytes.len() {
                    let sector_end = (at + from) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES;
                    let end = bytes.len().min(sector_end - at);
                    if chance(2) == 0 {
                        put(to, at + from, &bytes[from..end]);
                    }
                    from = end;
                }
            }
            (_, Self::SetLength(_)) if chance(2) == 0 => self.apply(to),
            (_, Self::SetLength(_)) => {}
        }
    }
}

fn put(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    to[at..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(contents: &mut Contents, at: usize, bytes: &[u8], ended: usize) {
        contents.write(at, bytes.into(), ended);
    }

    #[test]
    fn a_sync_covers_what_had_ended_before_it_began() {
        let mut contents = Contents::default();
        written(&mut contents, 0, b"aaaa", 1);
        written(&mut contents, 2, b"bb", 5);
        contents.sync(5);
        assert_eq!(contents.after(&mut Loss::All), b"aaaa");
        assert_eq!(contents.after(&mut Loss::Nothing), b"aabb");
        contents.sync(6);
        assert_eq!(contents.after(&mut Loss::All), b"aabb");
    }

    #[test]
    fn lengths_are_lost_as_bytes_are() {
        let mut contents = Contents::default();
        written(&mut contents, 2, b"x", 1);
        contents.sync(2);
        contents.set_length(1, 3);
        assert_eq!(contents.length(), 1);
        assert_eq!(contents.after(&mut Loss::All), b"\0\0x");
        contents.sync(4);
        assert_eq!(contents.after(&mut Loss::All), b"\0");
    }

    #[test]
    fn a_torn_write_is_there_in_whole_sectors_and_leaves_its_neighbours_alone() {
        let mut contents = Contents::default();
        written(&mut contents, 0, &[1; 4096], 1);
        contents.sync(2);
        written(&mut contents, 100, &[2; 3000], 3);
        // Torn, and then every second sector.
        let mut calls = 0;
        let mut chance = |bound: u64| {
            calls += 1;
            if bound == 4 { 3 } else { calls % 2 }
        };
        let bytes = contents.after(&mut Loss::Some(&mut chance));
        assert_eq!(bytes.len(), 4096);
        assert!(bytes[..100].iter().chain(&bytes[3100..]).all(|b| *b == 1));
        assert!(bytes[100..512].iter().all(|b| *b == 2));
        assert!(bytes[512..1024].iter().all(|b| *b == 1));
        assert!(bytes[1024..1536].iter().all(|b| *b == 2));
    }

    #[test]
    fn a_lost_write_may_leave_its_length() {
        let mut contents = Contents::default();
        written(&mut contents, 0, b"abc", 1);
        let bytes = contents.after(&mut Loss::Some(&mut |_| 2));
        assert_eq!(bytes, b"\0\0\0");
        assert!(contents.after(&mut Loss::Some(&mut |_| 0)).is_empty());
    }
}
