//! Finds the words of an edit that ask for more than light, colours and weather. Edits of other engines' videos cannot
//! change more.

use super::language::Language;
use super::scan::tokens;
use super::scan::{Item, scan};
use super::{Meaning, Place, moves};
use crate::subject::Subject;

/// Parts of words for moonlight, which asks for no moon.
const LIGHT: &str = "light lit licht schein clair claro chiaro luar свет 光 明かり 빛 ضوء चाँदनी";

/// The words of `text` that ask for other shapes, as written. `taken` if the edit removes all that `text` names.
pub(crate) fn shapes(language: Language, text: &str, taken: bool) -> Vec<String> {
    let mut items = scan(&tokens(text), language).items;
    for item in &mut items {
        item.denied |= taken;
    }
    let asks =
        |(index, item): (usize, &Item)| is_shape(&items, index).then(|| item.written.clone());
    items.iter().enumerate().filter_map(asks).collect()
}

fn is_shape(items: &[Item], index: usize) -> bool {
    let item = &items[index];
    let light = item
        .meanings
        .iter()
        .any(|one| matches!(one, Meaning::Hour(_) | Meaning::Weather(_)));
    let weather = items
        .iter()
        .flat_map(|item| &item.meanings)
        .any(|one| matches!(one, Meaning::Weather(_)));
    let lower = item.written.to_lowercase();
    let moves = moves::framing(items, index).is_some();
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
