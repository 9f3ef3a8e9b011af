//! Colours of nouns without a drawing: clothes pass their colour to the wearer; for other things the colour is
//! dropped.

use super::language::Language;
use super::reading::Mention;
use super::scan::Item;
use super::scan::Token;
use crate::subject::Body;

/// Maximum number of tokens between clothes and their wearer.
const WORN: usize = 8;

const CLOTHES: [&str; 69] = [
    "dress",
    "coat",
    "robe",
    "skirt",
    "shirt",
    "jacket",
    "suit",
    "hat",
    "scarf",
    "cloak",
    "gown",
    "sweater",
    "uniform",
    "costume",
    "trousers",
    "jeans",
    "hoodie",
    "kimono",
    "cape",
    "raincoat",
    "manteau",
    "jupe",
    "chemise",
    "veste",
    "chapeau",
    "écharpe",
    "pull",
    "pantalon",
    "tenue",
    "vestido",
    "abrigo",
    "falda",
    "camisa",
    "chaqueta",
    "sombrero",
    "bufanda",
    "traje",
    "capa",
    "pantalón",
    "vestito",
    "abito",
    "cappotto",
    "gonna",
    "camicia",
    "giacca",
    "cappello",
    "sciarpa",
    "mantello",
    "casaco",
    "saia",
    "chapéu",
    "cachecol",
    "jaqueta",
    "kleid",
    "mantel",
    "hemd",
    "jacke",
    "hut",
    "schal",
    "anzug",
    "umhang",
    "платье",
    "платьем",
    "пальто",
    "юбке",
    "рубашке",
    "куртке",
    "шляпе",
    "плаще",
];

/// The owner of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The mention that wears it, by index.
    Wearer(usize),
    /// A thing without a drawing.
    Undrawn,
}

/// The tokens of a text with its unknown words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    pub(super) tokens: &'a [Token],
    /// Unknown words and their token indices.
    pub(super) unknown: &'a [(String, usize)],
    pub(super) language: Language,
}

impl Text<'_> {
    fn is_cloth(&self, at: usize) -> bool {
        let token = self.tokens.get(at);
        token.is_some_and(|token| CLOTHES.contains(&token.text.as_str()))
    }

    fn is_unknown(&self, at: usize) -> bool {
        let token = self.tokens.get(at);
        let text = token.map(|token| &token.written);
        // The list has an unknown word once, at its first position.
        text.is_some_and(|text| self.unknown.iter().any(|(one, _)| one == text))
    }

    /// Whether the token at `at` is a noun without a drawing.
    pub(super) fn is_undrawn(&self, at: usize) -> bool {
        let spaced = self.tokens.get(at).is_some_and(|token| !token.unspaced);
        spaced && self.unknown.iter().any(|(_, one)| *one == at)
    }

    /// The owner of the colour at `items[index]`; `None` if the colour is for a drawn thing beside it.
    pub(super) fn owner(
        &self,
        items: &[Item],
        index: usize,
        mentions: &[Mention],
    ) -> Option<Owner> {
        let (at, end) = (items[index].at, items[index].at + items[index].count);
        let after = (end..end + 2).find(|one| self.is_cloth(*one));
        let before = (at.saturating_sub(2)..at).find(|one| self.is_cloth(*one));
        if let Some(cloth) = after.or(before) {
            let away = |one: &Mention| items[one.item].at.abs_diff(cloth);
            let wearers = mentions
                .iter()
                .filter(|one| one.role.subject.facts().body == Body::Person);
            let near = wearers.filter(|one| away(one) <= WORN);
            let nearest = near.min_by_key(|one| (items[one.item].at > cloth, away(one)))?;
            let wearer = mentions.iter().position(|one| one.item == nearest.item)?;
            return Some(Owner::Wearer(wearer));
        }
        let follows = matches!(
            self.language,
            Language::Spanish | Language::French | Language::Italian | Language::Portuguese
        );
        let drawn = |at: usize| {
            let mut named = mentions.iter().map(|one| items[one.item].at);
            named.any(|one| one == at)
        };
        let undrawn = if follows {
            at > 0 && self.is_unknown(at - 1)
        } else {
            // An unknown word before a known thing may only describe it: the car of "a red plaid car" is red.
            self.is_unknown(end) && !drawn(end + 1)
        };
        undrawn.then_some(Owner::Undrawn)
    }
}
