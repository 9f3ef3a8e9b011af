//! The languages that the engine reads, and the forms of their words.

/// The language of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Language {
    English,
    Spanish,
    French,
    German,
    Italian,
    Portuguese,
    Russian,
    Arabic,
    Hindi,
    Chinese,
    Japanese,
    Korean,
    /// A language that the engine does not read.
    Other,
}

impl Language {
    /// Whether `word`, an inflected noun, is a plural.
    pub(super) fn is_plural(self, word: &str) -> bool {
        let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
        match self {
            Self::English => ends(&["s"]) && !ends(&["'s", "ss"]),
            Self::Spanish | Self::Portuguese => ends(&["s"]),
            Self::French => ends(&["s", "x"]),
            Self::German => ends(&["en", "er", "n", "e", "s"]),
            Self::Italian => ends(&["i", "e"]),
            Self::Russian => ends(&["ы", "и", "ов", "ей", "ами", "ями"]),
            Self::Arabic => ends(&["ات", "ون", "ين"]),
            Self::Hindi => ends(&["ें", "ों", "याँ", "ियां", "े"]),
            Self::Korean => word.contains('들'),
            Self::Chinese | Self::Japanese | Self::Other => false,
        }
    }

    /// Whether an unknown word looks like an adjective or an adverb, which no warning names.
    pub(super) fn describes(self, word: &str) -> bool {
        let ends = |endings: &[&str]| {
            let long = word.chars().count() >= 5;
            long && endings.iter().any(|ending| word.ends_with(ending))
        };
        match self {
            Self::English => ends(&[
                "ly", "ful", "ous", "less", "ish", "able", "ible", "ive", "ic", "esque",
            ]),
            Self::Spanish | Self::Portuguese => {
                ends(&["mente", "oso", "osa", "osos", "osas", "ible", "ível"])
            }
            Self::Italian => ends(&["mente", "oso", "osa", "osi", "ose", "bile"]),
            Self::French => ends(&[
                "ment", "eux", "euse", "euses", "ique", "iques", "able", "ible",
            ]),
            Self::German => ends(&[
                "lich", "liche", "lichen", "licher", "liches", "isch", "ische", "ischen", "ischer",
                "ige", "igen", "iger", "iges", "ig", "bar", "voll", "volle", "vollen",
            ]),
            Self::Russian => ends(&[
                "ый", "ий", "ая", "яя", "ое", "ее", "ые", "ие", "ой", "ого", "его", "ому", "ым",
                "ых", "но",
            ]),
            _ => false,
        }
    }

    /// Whether this form of a verb describes the noun behind it: "a running dog", "飞的鸟".
    pub(super) fn leads(self, word: &str) -> bool {
        match self {
            Self::English => word.ends_with("ing"),
            Self::German => ["ende", "ender", "enden", "endes"]
                .iter()
                .any(|ending| word.ends_with(ending)),
            Self::Russian => ["щий", "щая", "щее", "щие"]
                .iter()
                .any(|ending| word.ends_with(ending)),
            Self::Chinese | Self::Japanese | Self::Korean => true,
            _ => false,
        }
    }
}
