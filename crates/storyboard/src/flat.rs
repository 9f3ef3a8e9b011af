//! What lies flat in a scene, planes and washes: those that follow each other are laid together,
//! row by row, so that a row is at hand from the first to the last of them.

use super::canvas::Canvas;
use super::resample::Scratch;
use super::stage::Element;
use super::view::View;
use super::{layer, wash};

/// A flat element seen through one view.
#[derive(Debug)]
pub(crate) enum Flat<'a> {
    Plane(layer::Seen<'a>),
    Wash(wash::Seen<'a>),
}

impl<'a> Flat<'a> {
    /// `None` of an element that is not flat.
    pub(crate) fn of(element: &'a Element, view: &View) -> Option<Self> {
        match element {
            Element::Plane(layer) => Some(Self::Plane(layer::Seen::new(layer, view))),
            Element::Wash(wash) => Some(Self::Wash(wash::Seen::new(wash, view))),
            _ => None,
        }
    }

    /// Whether it hides everything behind it in row `y` of the frame.
    pub(crate) fn hides(&self, y: usize) -> bool {
        match self {
            Self::Plane(plane) => plane.hides(y),
            Self::Wash(_) => false,
        }
    }
}

/// Lays `flats`, back to front, the first of which is the scene's element `at`; in row `y` only
/// those from element `first[y]` on.
pub(crate) fn lay_all(
    flats: &mut [Flat<'_>],
    at: usize,
    first: &[usize],
    canvas: &mut Canvas,
    scratch: &mut Scratch,
) {
    for (y, first) in first.iter().enumerate() {
        let row = canvas.row(y);
        for flat in flats.iter_mut().skip(first.saturating_sub(at)) {
            match flat {
                Flat::Plane(plane) => plane.lay(y, row, scratch),
                Flat::Wash(wash) => wash.lay(y, row, scratch),
            }
        }
    }
}
