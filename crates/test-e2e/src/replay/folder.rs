//! The names in one folder: those that a power loss leaves for certain, and those that came or went and
//! that it may take back.

use std::collections::BTreeMap;

use super::loss::Loss;

/// A folder; what its names name goes by number.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// As its users see it.
    names: BTreeMap<String, usize>,
    certain: BTreeMap<String, usize>,
    /// In order, each with its moment.
    uncertain: Vec<(usize, Change)>,
}

/// Names that came or went at once.
type Change = Vec<(String, Option<usize>)>;

impl Folder {
    /// What `name` names, as the service sees it.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Gives names to files or folders, or takes them away, all at once.
    pub(super) fn set<'n>(
        &mut self,
        at: usize,
        changed: impl IntoIterator<Item = (&'n str, Option<usize>)>,
    ) {
        let owned = changed
            .into_iter()
            .map(|(name, node)| (name.to_owned(), node));
        let change: Change = owned.collect();
        apply(&change, &mut self.names);
        self.uncertain.push((at, change));
    }

    /// A sync that began at `began` has ended.
    pub(super) fn sync(&mut self, began: usize) {
        for (at, change) in std::mem::take(&mut self.uncertain) {
            if at < began {
                apply(&change, &mut self.certain);
            } else {
                self.uncertain.push((at, change));
            }
        }
    }

    /// The names after a power loss.
    pub(super) fn after(&self, loss: &mut Loss<'_>) -> BTreeMap<String, usize> {
        let mut names = self.certain.clone();
        for (_, change) in &self.uncertain {
            let stays = match loss {
                Loss::Nothing => true,
                Loss::All => false,
                Loss::Some(chance) => chance(2) == 0,
            };
            if stays {
                apply(change, &mut names);
            }
        }
        names
    }
}

fn apply(change: &Change, to: &mut BTreeMap<String, usize>) {
    for (name, node) in change {
        match node {
            Some(node) => to.insert(name.clone(), *node),
            None => to.remove(name),
        };
    }
}
