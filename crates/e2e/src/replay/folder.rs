//! The names in one folder: those that a power loss leaves for certain, and those that came or went and
//! that it may take back.

use std::collections::BTreeMap;

use super::disk::Loss;

/// A folder; what its names name goes by number.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// As its users see it.
    names: BTreeMap<String, usize>,
    certain: BTreeMap<String, usize>,
    /// In order: names that came or went, each with the moment.
    uncertain: Vec<(usize, String, Option<usize>)>,
}

impl Folder {
    /// What `name` names, as the service sees it.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Gives `name` to a file or folder, or takes it away.
    pub(super) fn set(&mut self, at: usize, name: &str, node: Option<usize>) {
        set(&mut self.names, name, node);
        self.uncertain.push((at, name.to_owned(), node));
    }

    /// A sync that began at `began` has ended.
    pub(super) fn sync(&mut self, began: usize) {
        for (at, name, node) in std::mem::take(&mut self.uncertain) {
            if at < began {
                set(&mut self.certain, &name, node);
            } else {
                self.uncertain.push((at, name, node));
            }
        }
    }

    /// The names after a power loss.
    pub(super) fn after(&self, loss: &mut Loss<'_>) -> BTreeMap<String, usize> {
        let mut names = self.certain.clone();
        for (_, name, node) in &self.uncertain {
            let stays = match loss {
                Loss::Nothing => true,
                Loss::All => false,
                Loss::Some(chance) => chance(2) == 0,
            };
            if stays {
                set(&mut names, name, *node);
            }
        }
        names
    }
}

fn set(names: &mut BTreeMap<String, usize>, name: &str, node: Option<usize>) {
    match node {
        Some(node) => names.insert(name.to_owned(), node),
        None => names.remove(name),
    };
}
