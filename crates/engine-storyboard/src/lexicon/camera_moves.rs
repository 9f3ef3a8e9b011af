//! Reads camera moves from words: a camera verb and a direction near it, as in "pans slowly to the left", "zooms
//! out" or "schwenkt nach links".

use super::scan::ScanItem;
use super::{CameraVerb, Framing, Meaning, MoveDirection};
use crate::subject::Act;

/// Maximum number of tokens between a verb and its direction.
const NEAR: usize = 5;
/// Maximum number of tokens for verbs that subjects do too.
const NEXT: usize = 1;

fn way_of(item: &ScanItem) -> Option<MoveDirection> {
    item.meanings.iter().find_map(|meaning| match meaning {
        Meaning::Way(way) => Some(*way),
        // "The camera rises".
        Meaning::Act(Act::Rise) => Some(MoveDirection::Up),
        Meaning::Act(Act::Fall) => Some(MoveDirection::Down),
        _ => None,
    })
}

/// The direction behind a verb; in "from left to right" the second one.
fn named(items: &[ScanItem], from: usize, near: usize) -> Option<MoveDirection> {
    let near = items
        .iter()
        .take_while(|item| item.at < from + near && !item.is_stop());
    let mut comes_from = false;
    let mut first = None;
    for item in near {
        if item.says(Meaning::From) {
            comes_from = true;
        } else if let Some(way) = way_of(item) {
            if !comes_from {
                return Some(way);
            }
            comes_from = false;
            first = first.or(Some(way));
        }
    }
    // "From the left" means to the right.
    first.map(|way| match way {
        MoveDirection::Left => MoveDirection::Right,
        MoveDirection::Right => MoveDirection::Left,
        MoveDirection::Up => MoveDirection::Down,
        MoveDirection::Down => MoveDirection::Up,
        other => other,
    })
}

/// The move of the camera verb at `items[index]`, if it is one.
pub(super) fn framing(items: &[ScanItem], index: usize) -> Option<Framing> {
    let item = &items[index];
    let verb = item.meanings.iter().find_map(Meaning::verb)?;
    let near = match verb {
        CameraVerb::Near => NEXT,
        _ => NEAR,
    };
    let end = item.at + item.count;
    // "A slow left pan", and languages with the verb at the end: "nach links schwenken".
    let before = items[..index].iter().rev().take_while(|one| !one.is_stop());
    let before = before
        .take_while(|one| one.at + one.count + 2 >= item.at)
        .find_map(way_of);
    let alone = match verb {
        CameraVerb::Pan => Some(MoveDirection::Right),
        CameraVerb::Tilt => Some(MoveDirection::Up),
        CameraVerb::Zoom => Some(MoveDirection::In),
        CameraVerb::Other | CameraVerb::Near => None,
    };
    // "Near" verbs are those that subjects do too: only a direction right behind them is the
    // camera's.
    let before = before.filter(|_| verb != CameraVerb::Near);
    let way = named(&items[index + 1..], end, near).or(before).or(alone)?;
    Some(match way {
        MoveDirection::Left => Framing::PanLeft,
        MoveDirection::Right => Framing::PanRight,
        MoveDirection::Up => Framing::TiltUp,
        MoveDirection::Down => Framing::TiltDown,
        // A camera cannot tilt in.
        MoveDirection::In | MoveDirection::Out if verb == CameraVerb::Tilt => Framing::TiltUp,
        MoveDirection::In => Framing::PushIn,
        MoveDirection::Out => Framing::PullOut,
    })
}

#[cfg(test)]
mod tests {
    use super::Framing;
    use crate::lexicon::reader::read;

    #[test]
    fn cameras_go_where_the_words_say() {
        for (text, framing) in [
            ("the camera pans left over the sea", Framing::PanLeft),
            ("panning slowly to the left", Framing::PanLeft),
            ("a slow left pan across the city", Framing::PanLeft),
            ("pan right", Framing::PanRight),
            ("the camera pans from left to right", Framing::PanRight),
            ("a right-to-left pan", Framing::PanLeft),
            ("it pans over the hills", Framing::PanRight),
            ("zooms out of the forest", Framing::PullOut),
            ("the camera zooms in on a cat", Framing::PushIn),
            ("slow zoom", Framing::PushIn),
            ("tilting up to the sky", Framing::TiltUp),
            ("the camera tilts down", Framing::TiltDown),
            ("crane up over the roofs", Framing::TiltUp),
            ("the camera moves slowly backwards", Framing::PullOut),
            ("pull back from the house", Framing::PullOut),
            ("dolly out", Framing::PullOut),
            (
                "la cámara se mueve hacia la izquierda sobre el mar",
                Framing::PanLeft,
            ),
            (
                "la caméra avance, panoramique vers la gauche sur la mer",
                Framing::PanLeft,
            ),
            (
                "die Kamera schwenkt langsam nach rechts über den See",
                Framing::PanRight,
            ),
            ("die Kamera zoomt heraus", Framing::PullOut),
            ("镜头向左平移", Framing::PanLeft),
        ] {
            assert_eq!(read(text, "").framing.first(), Some(&framing), "{text}");
        }
    }

    #[test]
    fn what_is_no_camera_moves_none() {
        for text in [
            "un pan sobre la mesa",
            "a boy pushes a cart up the hill",
            "a camera on a table",
            "train tracks",
        ] {
            assert_eq!(read(text, "").framing, [], "{text}");
        }
    }
}
