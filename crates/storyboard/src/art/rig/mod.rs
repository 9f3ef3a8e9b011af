//! Drawings as data: SVG files whose groups are named parts that turn about joints. It reads the subset that
//! `drawings/README.md` describes and poses parts as the caller decides.

mod parse;
mod part;

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use roxmltree::Document;
use tiny_skia::Transform;

use super::Look;
use super::drawings;
use crate::pen::Pen;
use parse::part;
pub(super) use part::Pose;
use part::{Part, draw, joint};

/// A drawing in a square of 100 by 100, y down.
#[derive(Clone, Debug)]
pub(super) struct Rig {
    root: Part,
}

impl Rig {
    /// The drawing of that name, parsed at its first use; `None` if there is none.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        static RIGS: OnceLock<Mutex<BTreeMap<String, Option<&'static Rig>>>> = OnceLock::new();
        let rigs = RIGS.get_or_init(Mutex::default);
        let mut rigs = rigs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rigs.get(name) {
            return *known;
        }
        // Leaks once per drawing, so the number of drawings bounds the leak.
        let rig = drawings::source(name)
            .and_then(|svg| Self::parse(svg).ok())
            .map(|rig| &*Box::leak(Box::new(rig)));
        rigs.insert(name.to_owned(), rig);
        rig
    }

    /// Reads an SVG.
    ///
    /// # Errors
    /// A sentence that names the element outside the subset.
    pub(super) fn parse(svg: &str) -> Result<Self, String> {
        let document = Document::parse(svg).map_err(|error| error.to_string())?;
        Ok(Self {
            root: part(document.root_element(), 0)?,
        })
    }

    /// Draws it. `pose` gives the pose of each part by its name.
    pub(super) fn draw(&self, pen: &mut Pen, look: &Look, pose: &dyn Fn(&str) -> Pose) {
        draw(&self.root, pen, look, pose);
    }

    /// The joint of the first part of that name, at rest.
    pub(super) fn joint(&self, name: &str) -> Option<(f32, f32)> {
        joint(&self.root, name, Transform::identity())
    }

    /// The names of its parts.
    #[cfg(test)]
    pub(super) fn parts(&self) -> Vec<&str> {
        fn walk<'a>(part: &'a Part, names: &mut Vec<&'a str>) {
            names.push(&part.name);
            for item in &part.items {
                if let part::Item::Part(part) = item {
                    walk(part, names);
                }
            }
        }
        let mut names = Vec::new();
        walk(&self.root, &mut names);
        names
    }
}
