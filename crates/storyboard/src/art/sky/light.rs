//! The colours of objects in the sky that emit light.

use crate::art::Look;
use crate::colour::Rgb;
use crate::subject::Subject;

/// Whether the words name a colour that `subject` does not have by nature.
pub(super) fn is_named(look: &Look, subject: Subject) -> bool {
    let natural = look.shown(subject.facts().colour.unwrap_or(look.main));
    let main = look.main;
    (main.r - natural.r).abs() + (main.g - natural.g).abs() + (main.b - natural.b).abs() > 0.02
}

/// The main colour of an object that emits light or has its own sun: the scene's light does not dim it.
pub(super) fn own_light(look: &Look, subject: Subject) -> Rgb {
    match subject.facts().colour {
        Some(natural) if !is_named(look, subject) => natural,
        _ => look.main.lift(0.08),
    }
}
