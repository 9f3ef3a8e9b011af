//! Decides which words are not drawn as they say: places that the scene does not have, relations, words for which it has
//! something near, and words of an edit that ask for other shapes. It changes nothing else of a reading.

use super::language::Language;
use super::scan::{ScanItem, scan_phrases, tokenize};
use super::{CameraVerb, Framing, Meaning, MoveDirection, Place, Reading, camera_moves};
use crate::subject::{Stance, Subject};

/// Maximum number of tokens between a relation and its thing.
const NEAR: usize = 4;

/// Reads "a cat on the left of a dog" if these two are all that is shown: the scene can follow it.
pub(super) fn read_relation(reading: &mut Reading, items: &[ScanItem]) {
    let found = items.iter().enumerate().find_map(|(index, item)| {
        item.meanings.iter().find_map(|one| match one {
            Meaning::Beside(way)
            | Meaning::Way(way @ (MoveDirection::Left | MoveDirection::Right)) => {
                Some((index, *way))
            }
            _ => None,
        })
    });
    let Some((index, way)) = found else {
        return;
    };
    let before: Vec<Subject> = items[..index]
        .iter()
        .filter_map(ScanItem::subject)
        .collect();
    let after = items[index..].iter().find_map(ScanItem::subject);
    let asks = items[index].has_meaning(|one| matches!(one, Meaning::Beside(_)));
    // Chinese names both before: "猫在狗的左边".
    let pair = match (before.as_slice(), after) {
        ([one], Some(other)) if asks => (*one, other),
        ([one, other], None) => (*one, *other),
        _ => return,
    };
    let singles = [pair.0, pair.1]
        .iter()
        .all(|subject| reading.role(*subject).is_some_and(|role| role.count == 1));
    if pair.0 != pair.1 && reading.roles.len() == 2 && singles {
        reading.order = match way {
            MoveDirection::Left => Some(pair),
            _ => Some((pair.1, pair.0)),
        };
    }
}

/// Sorts the words of `items` into those that are drawn and those that are not.
pub(super) fn sort_words(reading: &mut Reading, items: &[ScanItem]) {
    for index in 0..items.len() {
        let item = &items[index];
        if item.is_stop() {
            continue;
        }
        let umbrella = Subject::Umbrella;
        let strays = item.subject() == Some(umbrella) && !reading.shows(umbrella);
        let unrelated = is_unrelated(reading, items, index);
        let lost = &mut reading.lost;
        let is_lost = lost.missed.contains(&item.written) || lost.styles.contains(&item.written);
        let loose = reading.loose.iter().any(|(_, word)| *word == item.written);
        if is_lost || loose {
            continue;
        }
        if item.denied {
            lost.drawn.push(item.written.clone());
        } else if is_elsewhere(item, reading.place) || is_idle(items, index) || strays {
            lost.missed.push(item.written.clone());
        } else if unrelated {
            lost.styles.push(item.written.clone());
        } else if let Some(near) = &item.near {
            lost.near.push((item.written.clone(), near.clone()));
        } else {
            lost.drawn.push(item.written.clone());
        }
    }
}

/// Whether it names only a place that the scene has not.
fn is_elsewhere(item: &ScanItem, shown: Option<Place>) -> bool {
    // "Water" names no place, but a scene without any does not show it.
    let wet = matches!(shown, Some(Place::Sea | Place::Lake | Place::Underwater));
    if item.says(Meaning::Water) {
        return !wet;
    }
    // A beach has sand too.
    if item.says(Meaning::Ground)
        && shown == Some(Place::Sea)
        && item.says(Meaning::Place(Place::Desert))
    {
        return false;
    }
    let mut elsewhere = false;
    for one in &item.meanings {
        match one {
            Meaning::Place(place) => elsewhere |= shown != Some(*place) && !includes(shown, *place),
            Meaning::Ground | Meaning::Heaven => {}
            // It names more than places.
            _ => return false,
        }
    }
    elsewhere
}

/// Whether the scene `shown` shows `place` too: mountains stand behind a lake.
fn includes(shown: Option<Place>, place: Place) -> bool {
    match shown {
        Some(Place::Lake | Place::Hills) => place == Place::Mountains,
        Some(Place::Underwater) => place == Place::Sea,
        Some(Place::Table) => place == Place::Room,
        _ => false,
    }
}

/// Whether it is a verb of the camera that moves none.
fn is_idle(items: &[ScanItem], index: usize) -> bool {
    items[index].says(Meaning::Verb(CameraVerb::Near))
        && camera_moves::framing(items, index).is_none()
}

/// Whether it is a relation that the scene does not show.
fn is_unrelated(reading: &Reading, items: &[ScanItem], index: usize) -> bool {
    let item = &items[index];
    item.meanings.iter().any(|one| match one {
        Meaning::Beside(_) => reading.order.is_none(),
        Meaning::Way(MoveDirection::Left | MoveDirection::Right) => {
            reading.order.is_none()
                && !reading.framing.contains(&Framing::PanLeft)
                && !reading.framing.contains(&Framing::PanRight)
        }
        Meaning::Relation => !holds_by_itself(items, index),
        _ => false,
    })
}

/// Whether "above the sea" is so by itself: what flies is above all, and everything is under the sky.
fn holds_by_itself(items: &[ScanItem], index: usize) -> bool {
    let end = items[index].at + items[index].count;
    let close = items[index + 1..].iter();
    let mut close = close.take_while(|next| next.at < end + NEAR && !next.is_stop());
    // "Mountains in the background".
    // A relation to a place holds by itself in either order of the words.
    let mut behind = items[..index]
        .iter()
        .rev()
        .take_while(|one| !one.is_stop() && one.at + one.count + NEAR > items[index].at);
    let behind =
        behind.any(|one| one.has_meaning(|one| matches!(one, Meaning::Place(_) | Meaning::Heaven)));
    let before = items[..index].iter().rev().find_map(ScanItem::subject);
    let flies = before.is_some_and(|one| one.facts().stance == Stance::Flies);
    behind || close.any(|next| next.has_meaning(is_around) || flies && next.subject().is_some())
}

/// Whether it surrounds the scene: a place, or what is in the sky.
fn is_around(meaning: &Meaning) -> bool {
    use Meaning::{Heaven, Hour, Place, Weather};
    matches!(meaning, Place(_) | Heaven | Hour(_) | Weather(_))
        || meaning.subject().is_some_and(Subject::is_orb)
}

/// Parts of words for moonlight, which asks for no moon.
const LIGHT: &str = "light lit licht schein clair claro chiaro luar свет 光 明かり 빛 ضوء चाँदनी";

/// The words of `text` that ask for other shapes, as written. `taken` if the edit removes all that `text` names.
pub(crate) fn shape_words(language: Language, text: &str, taken: bool) -> Vec<String> {
    let mut items = scan_phrases(&tokenize(text), language).items;
    for item in &mut items {
        item.denied |= taken;
    }
    items
        .iter()
        .enumerate()
        .filter(|(index, _)| is_shape(&items, *index))
        .map(|(_, item)| item.written.clone())
        .collect()
}

fn is_shape(items: &[ScanItem], index: usize) -> bool {
    let item = &items[index];
    let light = item.has_meaning(|one| matches!(one, Meaning::Hour(_) | Meaning::Weather(_)));
    let weather = items
        .iter()
        .any(|item| item.has_meaning(|one| one.weather().is_some()));
    let lower = item.written.to_lowercase();
    let moves = camera_moves::framing(items, index).is_some();
    moves
        || item.meanings.iter().any(|meaning| match meaning {
            Meaning::Subject(Subject::Sun) | Meaning::Season(_) => !light,
            Meaning::Subject(Subject::Moon) => !LIGHT.split(' ').any(|one| lower.contains(one)),
            Meaning::Place(place) => *place != Place::Abstract,
            Meaning::Subject(_) | Meaning::Framing(_) | Meaning::Motion(_) => true,
            // "Snow falls" is weather. An edit can add weather to a video but not remove it.
            Meaning::Act(_) => !weather,
            Meaning::Weather(_) => item.denied,
            _ => false,
        })
}
