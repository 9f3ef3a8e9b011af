//! From text to a [`Reading`]: tokens, longest phrase first, in one language, colours bound to the nearest
//! thing they can paint, and everything that a negation or the negative prompt names left out.

use super::super::colour::Rgb;
use super::language::Language;
use super::{Meaning, Place, Reading, Subject, Tint, moves};

/// Scripts that write words without spaces between them.
pub(in super::super) fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x2e80..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Words of spaced scripts, and single characters of unspaced ones.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if is_cjk(c) {
            tokens.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            tokens.push(c.to_string());
        } else if c.is_alphanumeric() || matches!(c, '\'' | '’' | '-') {
            word.push(if c == '’' { '\'' } else { c });
        } else {
            tokens.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            if matches!(c, '.' | '!' | '?' | ';' | ',' | '。' | '，' | '、') {
                tokens.push(",".to_owned());
            }
        }
    }
    tokens.extend((!word.is_empty()).then_some(word));
    tokens
}

fn lookup(word: &str, language: Language) -> Option<&'static [Meaning]> {
    let known = |word: &str| {
        language
            .means(word)
            .or_else(|| Language::Unspaced.means(word))
    };
    let plural = |ending: &&str| word.strip_suffix(*ending).and_then(known);
    known(word)
        .or_else(|| word.strip_suffix("'s").and_then(known))
        .or_else(|| {
            ["l'", "d'"]
                .iter()
                .find_map(|article| word.strip_prefix(article))
                .and_then(known)
        })
        .or_else(|| language.plurals().iter().find_map(plural))
        .or_else(|| word.rsplit_once('-').and_then(|(_, last)| known(last)))
}

/// The meanings at `tokens[at..]`, longest phrase first, and how many tokens they took.
fn phrase(tokens: &[String], at: usize, language: Language) -> Option<(&'static [Meaning], usize)> {
    let longest = 5.min(tokens.len() - at);
    let longer = (2..=longest).rev().find_map(|count| {
        let words = &tokens[at..at + count];
        let glue = if words.iter().all(|word| word.chars().all(is_cjk)) {
            ""
        } else {
            " "
        };
        lookup(&words.join(glue), language).map(|meanings| (meanings, count))
    });
    longer
        .or_else(|| moves::at(tokens, at, language).map(|meanings| (meanings, 1)))
        .or_else(|| lookup(&tokens[at], language).map(|meanings| (meanings, 1)))
}

/// Every known phrase with the index of its first token.
fn known(tokens: &[String], language: Language) -> Vec<(usize, &'static [Meaning])> {
    let (mut found, mut at) = (Vec::new(), 0);
    // A negation holds for the next few words, up to the next known one or a comma.
    let mut denied_until = 0;
    while at < tokens.len() {
        let Some((meanings, count)) = phrase(tokens, at, language) else {
            at += 1;
            continue;
        };
        if meanings.contains(&Meaning::Not) {
            denied_until = at + count + 3;
        } else if at < denied_until {
            denied_until = 0;
        } else {
            found.push((at, meanings));
        }
        at += count;
    }
    found
}

/// What a colour at `index` of `found` paints: the next thing within four tokens, else the one
/// just before it (as Romance languages order them).
fn paints(found: &[(usize, &[Meaning])], index: usize, colour: Rgb) -> Tint {
    let place = found[index].0;
    let target = |meanings: &[Meaning]| {
        meanings.iter().find_map(|meaning| match meaning {
            Meaning::Subject(Subject::Sun | Subject::Moon) | Meaning::Heaven => {
                Some(Tint::Heaven(colour))
            }
            Meaning::Subject(subject) => Some(Tint::Subject(*subject, colour)),
            Meaning::Ground => Some(Tint::Ground(colour)),
            Meaning::Place(_) => Some(Tint::Place(colour)),
            Meaning::Hour(_) => Some(Tint::Heaven(colour)),
            _ => None,
        })
    };
    let after = found[index + 1..]
        .iter()
        .take_while(|(at, _)| *at <= place + 4);
    // "El faro rojo junto al mar": a thing right before wins over one that is farther after.
    let next_touches = found.get(index + 1).is_some_and(|(at, _)| *at == place + 1);
    let touched = found[..index]
        .last()
        .filter(|(at, _)| *at + 1 == place && !next_touches);
    if let Some(tint) = touched.and_then(|(_, meanings)| target(meanings)) {
        return tint;
    }
    after
        .take_while(|(_, meanings)| !matches!(meanings, [Meaning::Colour(_)]))
        .find_map(|(_, meanings)| target(meanings))
        .unwrap_or(Tint::Whole(colour))
}

/// The language of a text.
pub(in super::super) fn language_of(text: &str) -> Language {
    Language::of(&tokens(text))
}

/// Reads `text`, leaving out everything that `avoid` names.
#[cfg(test)]
pub(in super::super) fn read(text: &str, avoid: &str) -> Reading {
    read_as(language_of(text), text, avoid)
}

/// Reads `text`, which is in that language, leaving out everything that `avoid` names, be it in the same
/// language or in its own.
pub(in super::super) fn read_as(language: Language, text: &str, avoid: &str) -> Reading {
    let avoid = tokens(avoid);
    let banned: Vec<Meaning> = [language, Language::of(&avoid)]
        .into_iter()
        .flat_map(|language| known(&avoid, language))
        .flat_map(|(_, meanings)| meanings)
        .copied()
        .collect();
    let found = known(&tokens(text), language);
    let mut reading = Reading::default();
    for (index, (_, meanings)) in found.iter().enumerate() {
        for meaning in meanings.iter().filter(|meaning| !banned.contains(meaning)) {
            match *meaning {
                Meaning::Hour(hour) => {
                    // "A star at golden hour": a plain hour word beats one that only implies it.
                    let implied = meanings.len() > 1 && reading.hour.is_some();
                    if !implied {
                        reading.hour = Some(reading.hour.unwrap_or(hour));
                    }
                }
                Meaning::Weather(weather) => push_new(&mut reading.weather, weather),
                Meaning::Place(place) => {
                    reading.place = Some(reading.place.unwrap_or(place));
                    push_new(&mut reading.places, place);
                }
                Meaning::Subject(subject) => push_new(&mut reading.subjects, subject),
                Meaning::Colour(colour) => reading.tints.push(paints(&found, index, colour)),
                Meaning::Motion(motion) => push_new(&mut reading.motions, motion),
                Meaning::Framing(framing) => push_new(&mut reading.framing, framing),
                Meaning::Mood(mood) => reading.mood = Some(reading.mood.unwrap_or(mood)),
                Meaning::Neon => reading.neon = true,
                Meaning::Ground | Meaning::Heaven | Meaning::Not | Meaning::Then => {}
            }
        }
    }
    let banned_subject =
        |tint: &Tint| matches!(tint, Tint::Subject(one, _) if !reading.subjects.contains(one));
    reading.tints.retain(|tint| !banned_subject(tint));
    settle(&mut reading);
    reading
}

/// Resolves what two words said at once.
fn settle(reading: &mut Reading) {
    let places = reading.places.clone();
    let both = |a, b| places.contains(&a) && places.contains(&b);
    // The more particular place wins whatever the order of the words.
    let special = [
        Place::Underwater,
        Place::Space,
        Place::Room,
        Place::Sky,
        Place::City,
    ];
    if let Some(place) = special.into_iter().find(|place| places.contains(place)) {
        reading.place = Some(place);
    } else if both(Place::Mountains, Place::Lake) {
        reading.place = Some(Place::Lake);
    }
    if places.len() > 1 && reading.place == Some(Place::Abstract) {
        reading.place = places
            .iter()
            .copied()
            .find(|place| *place != Place::Abstract);
    }
    if reading.place.is_none() || reading.place == Some(Place::Abstract) {
        let home = reading.subjects.iter().find_map(|subject| subject.home());
        reading.place = home.or(reading.place);
    }
    if reading.subjects.contains(&Subject::Whale) && reading.place == Some(Place::Hills) {
        reading.place = Some(Place::Underwater);
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) && list.len() < 6 {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::language::words;
    use super::super::table::GROUPS;
    use super::super::{Hour, Weather};
    use super::*;

    const RED: Rgb = Rgb::hex(0xd3_2f2f);

    #[test]
    fn every_word_is_lower_case_and_in_one_group_of_its_language() {
        let mut seen = std::collections::BTreeSet::new();
        for (language, word) in GROUPS.iter().flat_map(|(columns, _)| words(columns)) {
            assert_eq!(word, word.to_lowercase());
            assert!(!word.is_empty() && word == word.trim(), "{word:?}");
            assert!(seen.insert((language, word)), "{word:?} is listed twice");
            assert!(lookup(word, language).is_some());
        }
    }

    #[test]
    fn words_are_looked_up_in_the_language_of_the_text_only() {
        for (text, subjects) in [
            ("two friends in a chat", &[][..]),
            ("un chat noir sur le toit", &[Subject::Cat][..]),
            ("a pair of boots in the hall, one boot is red", &[][..]),
            ("ein rotes Boot auf dem See", &[Subject::Boat][..]),
            ("I see a kind smile", &[][..]),
            ("das Kind am Fenster", &[Subject::Person][..]),
            ("the price tag of a coat", &[][..]),
            ("der Hund und die Katze", &[Subject::Dog, Subject::Cat][..]),
            ("dos gatos en la calle", &[Subject::Cat][..]),
        ] {
            let reading = read(text, "");
            assert_eq!(reading.subjects, subjects, "{text}");
        }
        assert_eq!(read("the price tag of a coat", "").hour, None);
        assert_eq!(read("ein sonniger Tag", "").hour, Some(Hour::Day));
        assert_eq!(read("I see a kind smile", "").place, None);
    }

    #[test]
    fn times_weather_and_places_are_read_in_many_languages() {
        let rows = [
            (
                "Snowy mountains at night",
                Hour::Night,
                Some(Weather::Snow),
                Place::Mountains,
            ),
            (
                "el mar al atardecer con lluvia",
                Hour::Golden,
                Some(Weather::Rain),
                Place::Sea,
            ),
            (
                "la forêt dans le brouillard à l'aube",
                Hour::Dawn,
                Some(Weather::Fog),
                Place::Forest,
            ),
            ("die Wüste am Mittag", Hour::Day, None, Place::Desert),
            (
                "雨夜的城市街道",
                Hour::Night,
                Some(Weather::Rain),
                Place::City,
            ),
            ("夕焼けの海", Hour::Golden, None, Place::Sea),
            ("a starry lake", Hour::Night, None, Place::Lake),
        ];
        for (text, hour, weather, place) in rows {
            let reading = read(text, "");
            assert_eq!(reading.hour, Some(hour), "{text}");
            assert_eq!(reading.weather.first().copied(), weather, "{text}");
            assert_eq!(reading.place, Some(place), "{text}");
        }
    }

    #[test]
    fn a_colour_paints_what_it_stands_beside() {
        let tints = |text: &str| read(text, "").tints;
        assert_eq!(
            tints("a red hot-air balloon"),
            [Tint::Subject(Subject::Balloon, RED)]
        );
        assert_eq!(
            tints("un globo rojo sobre el mar"),
            [Tint::Subject(Subject::ToyBalloon, RED)]
        );
        assert_eq!(
            tints("红色的气球"),
            [Tint::Subject(Subject::ToyBalloon, RED)]
        );
        assert_eq!(tints("a red sky"), [Tint::Heaven(RED)]);
        assert_eq!(tints("red hills"), [Tint::Place(RED)]);
        assert!(matches!(
            tints("teal and orange")[..],
            [Tint::Whole(_), Tint::Whole(_)]
        ));
    }

    #[test]
    fn what_is_denied_stays_away() {
        let reading = read("a street without rain, no people, and a cat", "");
        assert!(!reading.has(Weather::Rain));
        assert_eq!(reading.subjects, [Subject::Cat]);
        let reading = read("a red car and a dog in the rain", "cars, rain");
        assert_eq!(reading.subjects, [Subject::Dog]);
        assert!(reading.weather.is_empty() && reading.tints.is_empty());
    }

    #[test]
    fn plurals_and_possessives_are_known() {
        let subjects = |text: &str| read(text, "").subjects;
        assert_eq!(subjects("horses and foxes"), [Subject::Horse]);
        assert_eq!(subjects("the cat's whiskers"), [Subject::Cat]);
        assert_eq!(subjects("Leuchttürme catalogue carpet"), []);
    }

    #[test]
    fn a_subject_is_shown_where_it_is_at_home() {
        assert_eq!(read("a whale", "").place, Some(Place::Underwater));
        assert_eq!(read("a spaceship", "").place, Some(Place::Space));
        assert_eq!(read("a camel in the city", "").place, Some(Place::City));
    }
}
