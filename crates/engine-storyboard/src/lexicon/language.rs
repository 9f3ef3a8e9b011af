//! The languages that the engine reads, and the forms of their words.

/// The language of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Language {
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

/// Languages with Latin letters; on a tie of votes the first one wins.
pub(super) const LATIN: [Language; 6] = [
    Language::English,
    Language::Spanish,
    Language::French,
    Language::German,
    Language::Italian,
    Language::Portuguese,
];

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

    /// Whether an unknown word looks like an adjective or an adverb.
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

/// Whether `form`, which has the stem of the noun `base`, is a form of it, and not of a verb or an adjective beside it:
/// "boxes" and not "boxing", "Lachse" and not "lachen".
pub(super) fn is_form(language: Language, base: &str, form: &str) -> bool {
    let (bases, forms) = (base.split(' '), form.split(' '));
    bases.clone().count() == forms.clone().count()
        && bases
            .zip(forms)
            .all(|(base, form)| is_noun_form(language, base, form))
}

fn is_noun_form(language: Language, base: &str, form: &str) -> bool {
    let (base, form) = (folded(base), folded(form));
    if language == Language::English {
        let form = form
            .strip_suffix("'s")
            .or(form.strip_suffix('\''))
            .unwrap_or(&form);
        // The regular plurals: "cats", "boxes", "ponies", "wolves".
        let many = |end: &str, plural: &str| {
            base.strip_suffix(end)
                .is_some_and(|head| form.strip_prefix(head) == Some(plural))
        };
        return form == base
            || many("", "s")
            || many("", "es")
            || many("y", "ies")
            || many("f", "ves");
    }
    if language == Language::Arabic {
        return form.contains(&base);
    }
    // The last vowel may change ("gato", "gata"; "собака", "собаку"), and the "l" of "cheval" becomes a "u".
    let changes: &[char] = match language {
        Language::German => &['e'],
        Language::Russian => &['а', 'я', 'о', 'е', 'и', 'ы', 'у', 'ю', 'ь', 'й'],
        _ => &['a', 'e', 'i', 'o', 'u', 'l'],
    };
    let tilde = (language == Language::Portuguese)
        .then(|| base.strip_suffix("ao"))
        .flatten();
    let head = tilde
        .or_else(|| base.strip_suffix(changes))
        .unwrap_or(&base);
    let Some(end) = form.strip_prefix(head) else {
        return false;
    };
    // "Taub" is no "Taube"; Russian plurals lose the vowel: "собак".
    if end.is_empty() && head != base && language != Language::Russian {
        return false;
    }
    let verbal: &[&str] = match language {
        Language::German => &[
            "t", "te", "ten", "end", "ende", "enden", "ender", "ig", "ige", "igen", "iger", "lich",
            "isch",
        ],
        Language::French => &["er", "ait", "ent", "ez", "ant", "é", "ée"],
        Language::Spanish | Language::Portuguese => &[
            "ar", "er", "ir", "ando", "endo", "ou", "amos", "am", "an", "ada", "ado",
        ],
        Language::Italian => &[
            "are", "ere", "ire", "ando", "endo", "ano", "ono", "ata", "ato",
        ],
        Language::Russian => &["ать", "ить", "ает", "ит", "ают", "ный", "ная", "ное", "ные"],
        _ => &[],
    };
    !verbal.contains(&end)
}

/// Without the marks of umlauts and accents.
fn folded(word: &str) -> String {
    word.chars()
        .map(|c| match c {
            'ä' | 'á' | 'à' | 'â' | 'ã' => 'a',
            'ö' | 'ó' | 'ò' | 'ô' | 'õ' => 'o',
            'ü' | 'ú' | 'ù' | 'û' => 'u',
            'é' | 'è' | 'ê' => 'e',
            'í' | 'ì' | 'î' => 'i',
            'ё' => 'е',
            other => other,
        })
        .collect()
}
