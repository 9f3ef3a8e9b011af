//! Applies the words of an edit to the reading of its source: hour, weather, place, colours, mood, added and removed
//! subjects. First it splits the words into things to show, things to remove, and replacements, after putting the verb
//! first in languages that put it last. It paints nothing and knows no times.

use crate::lexicon::{
    ColourTint, Hour, Language, LostWords, Meaning, Place, Reading, Role, Season, Weather, is_cjk,
    is_one_of, language_of, possible_act, read_as,
};

/// The changes that an edit asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EditChange {
    /// The things to show.
    wants: Reading,
    /// The things to remove.
    without: Reading,
    /// Roles to replace, and their replacements.
    replaced: Vec<(Vec<Role>, Vec<Role>)>,
}

/// The place and the hour that a source shows, by its words or by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SceneSetting {
    pub(crate) place: Place,
    pub(crate) hour: Hour,
}

impl EditChange {
    /// Reads an edit's prompt. The things that its negative prompt `avoid` names are removed.
    pub(crate) fn read(prompt: &str, avoid: &str) -> Self {
        let language = language_of(prompt);
        let EditParts {
            mut wanted,
            mut removed,
            swaps,
        } = split(prompt);
        let mut replaced = Vec::new();
        for swap in swaps {
            replaced.extend(split_swap(language, &swap, &mut wanted, &mut removed));
        }
        let mut without = read_as(language, &removed, "");
        let avoided = read_as(language_of(avoid), avoid, "");
        let wants = read_as(language, &wanted, avoid);
        // "No dog" in the prompt of an edit removes a dog, as one in the negative prompt does.
        let denied = wants.without.iter().filter_map(Meaning::subject);
        let denied = denied.map(Role::new);
        without
            .roles
            .extend(avoided.roles.iter().copied().chain(denied));
        let denied = wants.without.iter().filter_map(Meaning::weather);
        let denied: Vec<Weather> = avoided.weather.iter().copied().chain(denied).collect();
        extend(&mut without.weather, &denied);
        let denied = wants.without.iter().find_map(Meaning::season);
        without.season = without.season.or(avoided.season).or(denied);
        without.neon |= avoided.neon || wants.without.contains(&Meaning::Neon);
        Self {
            wants,
            without,
            replaced,
        }
    }

    /// The words that are not drawn as they say.
    pub(crate) fn lost(&self) -> LostWords {
        let mut lost = self.wants.lost.clone();
        lost.missed.retain(|word| is_content(word));
        lost.styles.retain(|word| is_content(word));
        lost
    }

    /// The reading `source` with all changes of the edit. `settled` is the place and the hour that the source shows,
    /// by chance or not: a new hour must not change the place, nor a new place the hour.
    pub(crate) fn revise(&self, source: &Reading, settled: SceneSetting) -> Reading {
        let wants = &self.wants;
        let mut made = source.clone();
        let moves = !wants.places.is_empty() && wants.place.is_some_and(|at| at != settled.place);
        if moves {
            // Elsewhere the hour that chance gave stays. That of space (always night) and of the
            // deep says nothing about the next place.
            let timeless = matches!(settled.place, Place::Space | Place::Underwater);
            made.hour = made.hour.or((!timeless).then_some(settled.hour));
            made.place = wants.place;
            made.places.clone_from(&wants.places);
            made.neon = false;
            made.tints
                .retain(|tint| !matches!(tint, ColourTint::Ground(_) | ColourTint::Place(_)));
        }
        made.hour = wants.hour.or(made.hour);
        let stays = made.season.filter(|one| self.without.season != Some(*one));
        made.season = wants.season.or(stays);
        made.mood = wants.mood.or(made.mood);
        made.neon = (made.neon || wants.neon) && !self.without.neon;
        replace(&mut made.motions, &wants.motions);
        replace(&mut made.framing, &wants.framing);
        made.weather = self.weather(&made.weather);
        self.revise_roles(&mut made);
        if let Some((act, _)) = wants.loose.first() {
            // "Make it sleep".
            for role in &mut made.roles {
                role.act = possible_act(role.subject, *act).or(role.act);
            }
        }
        self.colour(&mut made.tints);
        if made != *source {
            // More words would choose another place by chance.
            made.place = made.place.or(Some(settled.place));
        }
        with_past(source, made)
    }

    /// Like [`EditChange::revise`], but changes only places and things and keeps the source's light and weather.
    pub(crate) fn recast(&self, source: &Reading, settled: SceneSetting) -> Reading {
        let made = self.revise(source, settled);
        let moves = made.place.or(Some(settled.place)) != source.place.or(Some(settled.place));
        let recast = Reading {
            hour: if moves {
                source.hour.or(Some(settled.hour))
            } else {
                source.hour
            },
            weather: source.weather.clone(),
            mood: source.mood,
            neon: source.neon,
            season: source.season,
            motions: source.motions.clone(),
            framing: source.framing.clone(),
            tints: if moves {
                made.tints
            } else {
                source.tints.clone()
            },
            past: source.past.clone(),
            ..made
        };
        with_past(source, recast)
    }

    /// The wanted weather, with the weather of `source` that is compatible with it.
    fn weather(&self, source: &[Weather]) -> Vec<Weather> {
        let mut made = self.wants.weather.clone();
        // Snow goes with the winter.
        // Spring in a snowed-in source melts the snow, although nobody says "no snow".
        let thaws = self.wants.season.is_some_and(|one| one != Season::Winter);
        let stay: Vec<Weather> = source
            .iter()
            .filter(|one| {
                let goes = thaws && is_snow(**one) || self.without.weather.contains(one);
                !goes && !self.wants.weather.iter().any(|new| excludes(*new, **one))
            })
            .copied()
            .collect();
        extend(&mut made, &stay);
        if made.is_empty() && self.without.weather.contains(&Weather::Clouds) {
            // Without any weather the scene would have clouds by chance.
            made.push(Weather::Clear);
        }
        made
    }

    /// Removes, replaces and adds subjects.
    fn revise_roles(&self, made: &mut Reading) {
        let (wants, without) = (&self.wants.roles, &self.without);
        // The sky has one sun or moon.
        let lit = wants.iter().any(|role| role.subject.is_orb());
        made.roles.retain(|role| !(lit && role.subject.is_orb()));
        for (old, new) in &self.replaced {
            let mut new = new.iter();
            let seats = made
                .roles
                .iter_mut()
                .filter(|role| role.count > 0 && old.iter().any(|one| one.subject == role.subject));
            for (seat, new) in seats.zip(&mut new) {
                let act = seat.act.and_then(|act| possible_act(new.subject, act));
                *seat = Role {
                    act: new.act.or(act),
                    ..*new
                };
            }
        }
        for role in &mut made.roles {
            if without.shows(role.subject) {
                // Its place stays empty, so that no other figure moves.
                role.count = 0;
            }
        }
        let before = made.roles.len();
        for new in wants {
            // "Add a red car and a blue car" adds two.
            let old = made
                .roles
                .iter_mut()
                .take(before)
                .find(|role| role.subject == new.subject);
            match old {
                Some(old) => {
                    old.colour = new.colour.or(old.colour);
                    old.act = new.act.or(old.act);
                    old.count = old.count.max(new.count);
                    if new.size != 1.0 {
                        old.size = new.size;
                    }
                }
                None => made.roles.push(*new),
            }
        }
    }

    /// Replaces the colours of things that get a new one.
    fn colour(&self, tints: &mut Vec<ColourTint>) {
        let wanted = &self.wants.tints;
        tints.retain(|old| !wanted.iter().any(|new| same_thing(*old, *new)));
        extend(tints, wanted);
    }

    /// The light, colours and weather that the edit asks for.
    pub(crate) fn air(&self) -> Reading {
        air(&self.wants)
    }
}

/// Whether a word is about the picture, and not only an order.
fn is_content(word: &str) -> bool {
    !is_order(&word.to_lowercase())
}

/// The words of an edit that name things to remove.
pub(crate) fn removed_words(prompt: &str) -> String {
    let EditParts { removed, swaps, .. } = split(prompt);
    let olds = swaps.into_iter().map(|swap| swap.old);
    olds.fold(removed, |all, old| all + ", " + &old)
}

/// Adds the replacement to `wanted` and, if the swap removes it, the old thing to `removed`. Returns both if so.
fn split_swap(
    language: Language,
    swap: &ThingSwap,
    wanted: &mut String,
    removed: &mut String,
) -> Option<(Vec<Role>, Vec<Role>)> {
    let ThingSwap {
        old: old_text,
        new: new_text,
        joined,
        condition,
    } = swap;
    let (old, new) = (
        read_as(language, old_text, ""),
        read_as(language, new_text, ""),
    );
    let last = old_text.split_whitespace().last().unwrap_or_default();
    let alone = old.roles.len() == 1 && !read_as(language, last, "").roles.is_empty();
    let is_thing = !new.roles.is_empty()
        || !new.weather.is_empty()
        || new.place.is_some()
        || new.hour.is_some()
        || new.season.is_some();
    let removes = match condition {
        SwapCondition::Always => true,
        SwapCondition::ForThings => is_thing,
        SwapCondition::ForSingleThings => is_thing && (alone || old.roles.is_empty()),
    };
    if !removes {
        let joined = if joined == "a" || joined == "an" {
            joined
        } else {
            ""
        };
        wanted.push_str(&format!(", {old_text} {joined} {new_text}, "));
        return None;
    }
    wanted.push_str(&format!(", {new_text}, "));
    if new.roles.iter().any(|one| old.shows(one.subject)) {
        // "Change the red car to a blue car".
        return None;
    }
    removed.push_str(&format!(", {old_text}, "));
    Some((old.roles, new.roles))
}

/// `made`, with `source` in its past if the two differ.
fn with_past(source: &Reading, mut made: Reading) -> Reading {
    if made != *source {
        // Flat: `made` was cloned from `source`, so that the versions before are in its past
        // already.
        let past = Vec::new();
        made.past.push(Reading {
            past,
            ..source.clone()
        });
    }
    made
}

/// The light, colours and weather of a reading, without place and subjects, for edits of other engines' videos.
pub(crate) fn air(reading: &Reading) -> Reading {
    Reading {
        hour: reading.hour,
        weather: reading.weather.clone(),
        mood: reading.mood,
        tints: reading.tints.iter().copied().filter(is_air).collect(),
        ..Reading::default()
    }
}

/// Whether a colour is for the light and not for a thing.
fn is_air(tint: &ColourTint) -> bool {
    matches!(tint, ColourTint::Whole(_) | ColourTint::Heaven(_))
}

fn is_snow(weather: Weather) -> bool {
    use Weather::{Blizzard, Snow, Snowfall};
    matches!(weather, Snow | Snowfall | Blizzard)
}

/// Whether `new` excludes `old`.
fn excludes(new: Weather, old: Weather) -> bool {
    use Weather::{Clear, Clouds, Fog, Rain, Snowfall, Storm};
    match new {
        Clear => matches!(old, Clouds | Rain | Snowfall | Storm | Fog),
        Clouds | Rain | Snowfall | Storm | Fog if old == Clear => true,
        _ => [new, old]
            .iter()
            .all(|one| matches!(one, Rain | Snowfall | Storm)),
    }
}

/// Whether two colours paint the same thing. A colour for the whole picture replaces all others.
fn same_thing(old: ColourTint, new: ColourTint) -> bool {
    matches!(
        (old, new),
        (_, ColourTint::Whole(_))
            | (ColourTint::Ground(_), ColourTint::Ground(_))
            | (ColourTint::Heaven(_), ColourTint::Heaven(_))
            | (ColourTint::Place(_), ColourTint::Place(_))
    )
}

fn extend<T: Copy + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !list.contains(one) {
            list.push(*one);
        }
    }
}

fn replace<T: Clone>(list: &mut Vec<T>, by: &[T]) {
    if !by.is_empty() {
        *list = by.to_vec();
    }
}

/// Words that remove the things behind them, lower case.
const REMOVES: &str = "remove removes removing delete erase without no stop minus \
     quita quitar elimina eliminar borra sin \
     enlève enlever retire retirer supprime supprimer efface sans \
     entferne entfernen lösche löschen ohne kein keine keinen \
     去掉 删除 移除 去除 没有 不要 替换 代替";
/// Phrases with the same effect, and the one word that replaces each.
const PHRASES: [(&str, &str); 12] = [
    ("get rid of", "remove"),
    ("take away", "remove"),
    ("take out", "remove"),
    ("leave out", "remove"),
    ("instead of", "instead-of"),
    ("rather than", "instead-of"),
    ("en lugar d", "instead-of d"),
    ("en vez d", "instead-of d"),
    ("au lieu d", "instead-of d"),
    ("à la place d", "instead-of d"),
    ("invece d", "instead-of d"),
    ("em vez d", "instead-of d"),
];
/// Words between a replacement and the old thing: "a cat instead of the dog".
const INSTEAD: &str = "instead-of anstelle anstatt statt вместо";
/// Words that begin the next request.
const BEGINS: &str = "add put place set let give paint move show but then at with by \
     pon haz añade pero por con mets ajoute rends mais par avec setze füge aber durch mit \
     加上 添加 变成 改成 换成 让";
/// Verbs that replace their object and, behind the colon, the words that join the replacement; by the condition on
/// which they remove the object.
const SWAPS: [(SwapCondition, &[&str]); 3] = [
    (
        SwapCondition::Always,
        &[
            "replace replaces swap exchange: with by for",
            "reemplaza reemplace sustituye: con por",
            "remplace remplacez remplacer: par avec",
            "ersetze ersetzen tausche: durch mit gegen",
        ],
    ),
    (
        SwapCondition::ForThings,
        &[
            "turn turns transform transforms change changes convert converts: into to",
            "convierte transforma cambia: en a por",
            "transforme transformez change changez: en par",
            "verwandle verwandeln ändere mach mache: in zu zum zur",
            "sostituisci trasforma cambia: con in",
            "substitua substitui troque transforme mude: por com pelo pela em para",
            "замени поменяй преврати измени حول حوّل: на в إلى",
            "把 将: 换成 变成 改成 变为",
        ],
    ),
    (SwapCondition::ForSingleThings, &["make makes: into a an"]),
];

/// The verbs, joining words and condition of each swap.
fn swaps() -> impl Iterator<Item = (&'static str, &'static str, SwapCondition)> {
    SWAPS.iter().flat_map(|(condition, swaps)| {
        let parts = swaps.iter().filter_map(|swap| swap.split_once(':'));
        parts.map(|(verbs, joins)| (verbs, joins, *condition))
    })
}

/// Other words of edits that need no drawing.
const FILLERS: &str = "instead please keep keeps leave stays stay still rest everything else edit version \
     stattdessen bitte lass plutôt garde mantén deja invece mantieni mantenha оставь пожалуйста";

/// The condition on which a swap removes the old thing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SwapCondition {
    /// Always: "replace the dog".
    Always,
    /// If the new one is a thing: "turn the car into a boat", but not "change the car to blue".
    ForThings,
    /// If the new one is a thing and the old one is a single thing: "make the dog a cat".
    ForSingleThings,
}

/// A thing, its replacement, and the word between them.
#[derive(Clone, Debug, PartialEq)]
struct ThingSwap {
    old: String,
    new: String,
    joined: String,
    condition: SwapCondition,
}

/// The words of an edit by their purpose.
#[derive(Clone, Debug, Default, PartialEq)]
struct EditParts {
    /// Words for things to show.
    wanted: String,
    /// Words for things to remove.
    removed: String,
    swaps: Vec<ThingSwap>,
}

/// The purpose of the words that follow.
#[derive(Clone, Debug, PartialEq)]
enum SplitState {
    Wanted,
    Removed,
    /// The object of this verb; the words behind it decide its purpose.
    Object(String),
    /// The replacement.
    Replacement(String, SwapCondition),
    /// The old thing, behind its replacement.
    Replaced,
}

/// Whether a word only gives an order and needs no drawing.
fn is_order(word: &str) -> bool {
    let swaps = swaps().flat_map(|(verbs, joins, _)| [verbs, joins]);
    let mut all = [REMOVES, INSTEAD, BEGINS, FILLERS].into_iter().chain(swaps);
    all.any(|words| is_one_of(words, word))
}

/// The words of scripts without spaces, which the splitter surrounds with spaces first.
fn unspaced() -> impl Iterator<Item = &'static str> {
    let swaps = swaps().flat_map(|(verbs, joins, _)| [verbs, joins]);
    let words = [REMOVES, BEGINS].into_iter().chain(swaps);
    let words = words.flat_map(str::split_whitespace);
    words.filter(|word| word.chars().all(is_cjk))
}

/// The condition of a swap with this verb and this joining word; `None` if they do not go together.
fn swap_condition(verb: &str, word: &str) -> Option<SwapCondition> {
    swaps()
        .find(|(verbs, joins, _)| is_one_of(verbs, verb) && is_one_of(joins, word))
        .map(|(_, _, condition)| condition)
}

fn always_removes(verb: &str) -> bool {
    swaps()
        .any(|(verbs, _, condition)| condition == SwapCondition::Always && is_one_of(verbs, verb))
}

fn ends_clause(c: char) -> bool {
    matches!(
        c,
        ',' | '.' | ';' | '!' | '?' | '，' | '。' | '；' | '、' | '،' | '।' | '\n'
    )
}

/// The parts of `text`.
fn split(text: &str) -> EditParts {
    let mut text = text.to_lowercase();
    for (phrase, word) in PHRASES {
        text = text.replace(phrase, word);
    }
    // One word at a time: verbs and joining words change the purpose of those that follow, and the
    // end of a clause files them.
    let mut splitter = EditSplitter {
        parts: EditParts::default(),
        state: SplitState::Wanted,
        old: String::new(),
        new: String::new(),
    };
    for clause in text.split_inclusive(ends_clause) {
        let mut clause = verb_first(clause).unwrap_or_else(|| clause.to_owned());
        // Chinese verbs stand between other characters: blanks around them make words of them.
        for word in unspaced() {
            clause = clause.replace(word, &format!(" {word} "));
        }
        for word in clause.split_inclusive(' ') {
            splitter.word(word);
        }
        splitter.flush();
        for side in [&mut splitter.parts.wanted, &mut splitter.parts.removed] {
            side.push_str(", ");
        }
    }
    splitter.parts
}

struct EditSplitter {
    parts: EditParts,
    state: SplitState,
    /// Words of this clause for a thing that it removes or may remove.
    old: String,
    /// Words of this clause for things to show.
    new: String,
}

impl EditSplitter {
    fn word(&mut self, word: &str) {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if let SplitState::Object(verb) = &self.state {
            if let Some(condition) =
                swap_condition(verb, bare).filter(|_| !self.old.trim().is_empty())
            {
                self.state = SplitState::Replacement(bare.to_owned(), condition);
                return;
            }
            if is_one_of(REMOVES, bare) {
                // "把狗去掉".
                self.parts.removed.push_str(&std::mem::take(&mut self.old));
                self.state = SplitState::Wanted;
                return;
            }
        }
        if is_one_of(INSTEAD, bare) && self.state == SplitState::Wanted {
            self.state = SplitState::Replaced;
        } else if is_one_of(REMOVES, bare) || is_one_of(INSTEAD, bare) {
            self.flush();
            self.state = SplitState::Removed;
        } else if swaps().any(|(verbs, ..)| is_one_of(verbs, bare)) {
            self.flush();
            self.state = SplitState::Object(bare.to_owned());
        } else {
            if is_one_of(BEGINS, bare) {
                self.flush();
            }
            match self.state {
                SplitState::Wanted | SplitState::Replacement(..) => self.new.push_str(word),
                SplitState::Removed | SplitState::Object(_) | SplitState::Replaced => {
                    self.old.push_str(word);
                }
            }
        }
    }

    /// Files the words so far by their purpose.
    fn flush(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        let EditParts {
            wanted,
            removed,
            swaps,
        } = &mut self.parts;
        match std::mem::replace(&mut self.state, SplitState::Wanted) {
            SplitState::Wanted => wanted.push_str(&new),
            SplitState::Removed => removed.push_str(&old),
            SplitState::Object(verb) if always_removes(&verb) => removed.push_str(&old),
            SplitState::Object(_) => wanted.push_str(&old),
            SplitState::Replacement(joined, condition) => swaps.push(ThingSwap {
                old,
                new,
                joined,
                condition,
            }),
            SplitState::Replaced => swaps.push(ThingSwap {
                old,
                new,
                joined: String::new(),
                condition: SwapCondition::Always,
            }),
        }
    }
}

/// The verb and the joining word of every reordered clause.
const VERB: &str = "把";
const JOIN: &str = "换成";
/// Endings of the old thing, endings of the new thing, and stems of the verb.
const LAST: [(&[&str], &[&str], &[&str]); 3] = [
    (
        &["を"],
        &["に", "へ", "と"],
        &["変え", "換え", "替え", "かえ", "して"],
    ),
    (&["를", "을"], &["으로", "로"], &["바꾸", "바꿔", "교체"]),
    (&[" को"], &[" से", " में"], &["बदल"]),
];
/// Arabic: forms of the verb, and the first letter of the new thing.
const ARABIC: ([&str; 2], char) = (["استبدل", "بدّل"], 'ب');

/// `clause` with its verb first; `None` if it has none of these forms.
fn verb_first(clause: &str) -> Option<String> {
    verb_last(clause).or_else(|| arabic(clause))
}

fn verb_last(clause: &str) -> Option<String> {
    LAST.iter().find_map(|(ends, joins, verbs)| {
        let verb = verbs.iter().filter_map(|verb| clause.rfind(verb)).max()?;
        let head = &clause[..verb];
        let (at, end) = ends
            .iter()
            .filter_map(|end| Some((head.find(end)?, end)))
            .min()?;
        let rest = head[at + end.len()..].trim();
        let new = joins.iter().find_map(|join| rest.strip_suffix(join))?;
        let old = &head[..at];
        Some(format!("{VERB} {old} {JOIN} {new}"))
    })
}

fn arabic(clause: &str) -> Option<String> {
    let (verbs, join) = ARABIC;
    let words: Vec<&str> = clause.split_whitespace().collect();
    let verb = words.iter().position(|word| verbs.contains(word))?;
    let new = words[verb..]
        .iter()
        .position(|word| word.starts_with(join) && word.chars().count() > 2)?;
    let (old, new) = words[verb + 1..].split_at(new.checked_sub(1)?);
    let new = new.join(" ");
    let new = new.strip_prefix(join)?;
    Some(format!("{VERB} {} {JOIN} {new}", old.join(" ")))
}

#[cfg(test)]
mod tests;
