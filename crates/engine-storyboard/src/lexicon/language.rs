//! The languages that the engine reads, and the forms of their words.

/// The language of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    #[default]
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
        let endings: &[&str] = match self {
            Self::English if word.ends_with("'s") || word.ends_with("ss") => &[],
            Self::English | Self::Spanish | Self::Portuguese => &["s"],
            Self::French => &["s", "x"],
            Self::German => &["en", "er", "n", "e", "s"],
            Self::Italian => &["i", "e"],
            Self::Russian => &["ы", "и", "ов", "ей", "ами", "ями"],
            Self::Arabic => &["ات", "ون", "ين"],
            Self::Hindi => &["ें", "ों", "याँ", "ियां", "े"],
            Self::Korean => return word.contains('들'),
            Self::Chinese | Self::Japanese | Self::Other => &[],
        };
        endings.iter().any(|ending| word.ends_with(ending))
    }

    /// Whether an unknown word looks like an adjective or an adverb.
    pub(super) fn describes(self, word: &str) -> bool {
        let endings: &[&str] = match self {
            Self::English => &[
                "ly", "ful", "ous", "less", "ish", "able", "ible", "ive", "ic", "esque",
            ],
            Self::Spanish | Self::Portuguese => {
                &["mente", "oso", "osa", "osos", "osas", "ible", "ível"]
            }
            Self::Italian => &["mente", "oso", "osa", "osi", "ose", "bile"],
            Self::French => &[
                "ment", "eux", "euse", "euses", "ique", "iques", "able", "ible",
            ],
            Self::German => &[
                "lich", "liche", "lichen", "licher", "liches", "isch", "ische", "ischen", "ischer",
                "ige", "igen", "iger", "iges", "ig", "bar", "voll", "volle", "vollen",
            ],
            Self::Russian => &[
                "ый", "ий", "ая", "яя", "ое", "ее", "ые", "ие", "ой", "ого", "его", "ому", "ым",
                "ых", "но",
            ],
            _ => &[],
        };
        word.chars().count() >= 5 && endings.iter().any(|ending| word.ends_with(ending))
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
        // The same word, or a regular plural: "cats", "boxes", "ponies", "wolves".
        let endings = [("", ""), ("", "s"), ("", "es"), ("y", "ies"), ("f", "ves")];
        return endings.into_iter().any(|(end, plural)| {
            let head = base.strip_suffix(end);
            head.is_some_and(|head| form.strip_prefix(head) == Some(plural))
        });
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
