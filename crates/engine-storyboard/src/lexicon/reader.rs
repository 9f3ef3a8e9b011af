//! Reads a text in one language as a [`Reading`], without the things that a negation or the negative prompt
//! excludes.

use super::binding::TokenText;
use super::binding::bind;
use super::dictionary::detect;
use super::language::Language;
use super::lost_words::{read_relation, sort_words};
use super::reading::BoundWords;
use super::scan::tokenize;
use super::scan::{PhraseScan, ScanItem, scan_phrases};
use super::{
    FadeEnd, Hour, LostWords, Meaning, Place, Reading, Role, SoundWishes, Weather, camera_moves,
};
use crate::subject::{Act, BodyKind, Stance, Subject};

/// Maximum number of subjects in a shot.
const ROLES_MAX: usize = 6;

/// The language of a text.
pub(crate) fn language_of(text: &str) -> Language {
    let tokens = tokenize(text);
    detect(tokens.iter().map(|token| token.text.as_str()))
}

/// The word of `text` for `subject`, as written.
pub(crate) fn word_for(language: Language, text: &str, subject: Subject) -> Option<String> {
    let mut items = scan_phrases(&tokenize(text), language).items.into_iter();
    items
        .find(|item| !item.denied && item.says(Meaning::Subject(subject)))
        .map(|item| item.written)
}

/// Reads `text` without the things that `avoid` names.
#[cfg(test)]
pub(crate) fn read(text: &str, avoid: &str) -> Reading {
    read_as(language_of(text), text, avoid)
}

/// Reads `text` in `language` without the things that `avoid` names, which may be in another language.
pub(crate) fn read_as(language: Language, text: &str, avoid: &str) -> Reading {
    let banned = banned(language, avoid);
    let tokens = tokenize(text);
    let PhraseScan {
        mut items,
        unknown,
        styles,
        parts,
    } = scan_phrases(&tokens, language);
    for item in &mut items {
        // Colours and numbers in a negative prompt belong to its things, and would ban those of the
        // prompt.
        item.denied |= item
            .meanings
            .iter()
            .any(|meaning| !is_quality(meaning) && banned.contains(meaning));
    }
    let colourable = [unknown.as_slice(), parts.as_slice()].concat();
    let written = TokenText {
        tokens: &tokens,
        unknown: &colourable,
        language,
    };
    let bound = bind(&items, &written);
    let mut reading = Reading {
        lost: LostWords {
            missed: unknown.into_iter().map(|(word, _)| word).collect(),
            styles: styles.into_iter().map(|(word, _)| word).collect(),
            ..LostWords::default()
        },
        hearing: SoundWishes {
            silent: banned.contains(&Meaning::Sound),
            no_music: banned.contains(&Meaning::Music),
        },
        ..Reading::default()
    };
    for index in 0..items.len() {
        add_item(&mut reading, &items, index);
    }
    add_roles(&mut reading, &items, bound);
    let city = Meaning::Place(Place::City);
    let streets = items.iter().filter(|item| !item.denied && item.says(city));
    if streets.clone().next().is_some() && streets.clone().all(|item| item.says(Meaning::Neon)) {
        yield_city(&mut reading);
    }
    resolve_conflicts(&mut reading);
    read_relation(&mut reading, &items);
    sort_words(&mut reading, &items);
    reading
}

/// The meanings of the words in the negative prompt.
fn banned(language: Language, avoid: &str) -> Vec<Meaning> {
    let tokens = tokenize(avoid);
    // A negative prompt is often English under a prompt that is not.
    let mut languages = vec![
        language,
        detect(tokens.iter().map(|token| token.text.as_str())),
    ];
    languages.dedup();
    let items = languages
        .into_iter()
        .flat_map(|language| scan_phrases(&tokens, language).items);
    items.flat_map(|item| item.meanings).collect()
}

/// Whether a meaning describes things and is not one.
fn is_quality(meaning: &Meaning) -> bool {
    use Meaning::{And, Colour, Count, From, Not, NotAfter, Or, Size, Way};
    matches!(meaning, Colour(_) | Count(_) | Size(_) | Way(_))
        || matches!(meaning, And | Or | Not | NotAfter | From)
}

/// Adds an item's meanings for the scene to `reading`.
fn add_item(reading: &mut Reading, items: &[ScanItem], index: usize) {
    let item = &items[index];
    if item.denied {
        reading.without.extend(item.meanings.iter().copied());
        return;
    }
    if let Some(framing) = camera_moves::framing(items, index) {
        push_new(&mut reading.framing, framing);
    }
    for meaning in &item.meanings {
        match *meaning {
            Meaning::Hour(hour) => add_hour(reading, items, index, hour),
            Meaning::Weather(weather) => push_new(&mut reading.weather, weather),
            Meaning::Season(season) => reading.season = reading.season.or(Some(season)),
            Meaning::Place(place) => {
                reading.place = Some(reading.place.unwrap_or(place));
                push_new(&mut reading.places, place);
            }
            Meaning::Motion(motion) => push_new(&mut reading.motions, motion),
            Meaning::Framing(framing) => push_new(&mut reading.framing, framing),
            Meaning::Mood(mood) => reading.mood = Some(reading.mood.unwrap_or(mood)),
            Meaning::Fade(FadeEnd::In) => reading.fades.from_black = true,
            Meaning::Fade(FadeEnd::Out) => reading.fades.to_black = true,
            Meaning::Silence => reading.hearing.silent = true,
            // "A lake, silent" has no sound; "a silent lake" is only calm.
            Meaning::AloneSilence => reading.hearing.silent |= stands_alone(items, index),
            Meaning::NoMusic => reading.hearing.no_music = true,
            Meaning::Crescent => reading.crescent = true,
            Meaning::Neon => reading.neon = true,
            _ => {}
        }
    }
}

/// Whether a word stands alone between the signs that end clauses.
fn stands_alone(items: &[ScanItem], index: usize) -> bool {
    let (at, end) = (items[index].at, items[index].at + items[index].count);
    let opens = at == 0
        || index
            .checked_sub(1)
            .is_some_and(|one| items[one].is_stop() && items[one].at + 1 == at);
    let closes = items
        .get(index + 1)
        .is_none_or(|next| next.is_stop() && next.at == end);
    opens && closes && items.len() > 1
}

/// Sets the shot's hour from the first one named; a later one can be the hour that it turns into.
fn add_hour(reading: &mut Reading, items: &[ScanItem], index: usize, hour: Hour) {
    // "Stars" and "neon" only imply the night; "sunset" is an hour.
    let implied = !items[index]
        .meanings
        .iter()
        .all(|one| matches!(one, Meaning::Hour(_) | Meaning::Subject(Subject::Sun)));
    let Some(first) = reading.hour else {
        reading.hour = Some(hour);
        reading.implied = implied;
        return;
    };
    let before = &items[..index];
    let becomes = before.iter().rev().take_while(|item| !item.is_stop());
    let becomes = becomes.take(3).any(|item| item.says(Meaning::Become));
    let comes_from = before.iter().any(|item| item.says(Meaning::From));
    if first != hour && (becomes || comes_from && !implied) {
        reading.turns = reading.turns.or(Some(hour));
    } else if reading.implied && !implied {
        // "A star at golden hour": a word for an hour wins over one that only implies it.
        reading.hour = Some(hour);
        reading.implied = false;
    }
}

/// Makes roles from mentions. Several mentions of a subject are one role, unless their colours or sizes differ.
fn add_roles(reading: &mut Reading, items: &[ScanItem], bound: BoundWords) {
    let BoundWords {
        mentions,
        tints,
        loose,
        idle,
        unowned,
    } = bound;
    reading.tints = tints;
    reading.loose = loose;
    reading.lost.missed.extend(idle);
    reading.lost.styles.extend(unowned);
    let mut names: Vec<String> = Vec::new();
    for mention in mentions {
        let role = mention.role;
        let same = reading.roles.iter().position(|one| {
            let apart = one.colour.is_some() && role.colour.is_some() && one.colour != role.colour
                || one.size != role.size && one.size != 1.0 && role.size != 1.0;
            one.subject == role.subject && !apart
        });
        match same {
            Some(same) => {
                let one = &mut reading.roles[same];
                let written = &names[same];
                one.colour = one.colour.or(role.colour);
                one.act = one.act.or(role.act);
                // "A doctor and a nurse" are two figures, "a dog … the dog" is one.
                let other = *written != items[mention.item].written.to_lowercase();
                let more = mention.counted || joined(items, mention.item);
                one.count = if other && more {
                    one.count.saturating_add(role.count)
                } else {
                    one.count.max(role.count)
                };
            }
            None if reading.roles.len() < ROLES_MAX => {
                names.push(items[mention.item].written.to_lowercase());
                reading.roles.push(role);
            }
            None => reading
                .lost
                .missed
                .push(items[mention.item].written.clone()),
        }
    }
}

/// Whether "and" stands just before an item.
fn joined(items: &[ScanItem], index: usize) -> bool {
    index
        .checked_sub(1)
        .is_some_and(|before| items[before].says(Meaning::And))
}

/// Neon is of a city only if the words name no other place.
fn yield_city(reading: &mut Reading) {
    reading.places.retain(|place| *place != Place::City);
    match reading.places.first() {
        Some(other) => reading.place = Some(*other),
        None => reading.places.push(Place::City),
    }
}

/// Resolves conflicts between words.
fn resolve_conflicts(reading: &mut Reading) {
    let places = reading.places.clone();
    // The more specific place wins, whatever the order of the words.
    let special = [
        Place::Underwater,
        Place::Space,
        Place::Table,
        Place::Room,
        Place::Sky,
        Place::City,
    ];
    let water = [Place::Sea, Place::Lake]
        .into_iter()
        .find(|place| places.contains(place));
    let mut roles = reading.roles.iter();
    let floats = roles.any(|role| role.subject.facts().stance == Stance::Floats);
    if let Some(place) = water.filter(|_| floats) {
        // "A boat on a canal of the city" needs the water.
        reading.place = Some(place);
    } else if let Some(place) = special.into_iter().find(|place| places.contains(place)) {
        reading.place = Some(place);
    } else if places.contains(&Place::Mountains) && places.contains(&Place::Lake) {
        reading.place = Some(Place::Lake);
    } else if reading.place == Some(Place::Hills) {
        // Any other place is more specific than hills.
        let other = [Place::Forest, Place::Desert]
            .into_iter()
            .find(|place| places.contains(place));
        reading.place = water.or(other).or(reading.place);
    }
    if places.len() > 1 && reading.place == Some(Place::Abstract) {
        reading.place = places
            .iter()
            .copied()
            .find(|place| *place != Place::Abstract);
    }
    if reading.place.is_none() || reading.place == Some(Place::Abstract) {
        reading.place = home_place(&reading.roles).or(reading.place);
    }
    if reading.shows(Subject::Whale) && reading.place == Some(Place::Hills) {
        reading.place = Some(Place::Underwater);
    }
    if reading.place == Some(Place::Table) && !reading.roles.iter().all(fits_table) {
        reading.place = Some(Place::Room);
    }
    // The table is the scene then, and not one of its figures.
    let lies = reading.roles.iter().any(fits_table);
    if lies
        && reading.shows(Subject::Table)
        && reading
            .roles
            .iter()
            .all(|role| fits_table(role) || role.subject == Subject::Table)
    {
        reading.place = Some(Place::Table);
        reading.roles.retain(fits_table);
    }
    if reading.weather.is_empty() && reading.without.contains(&Meaning::Weather(Weather::Clouds)) {
        // Without any weather the scene would have clouds by chance.
        reading.weather.push(Weather::Clear);
    }
    if reading.roles.iter().any(|role| role.act == Some(Act::Read)) {
        // The drawing of a reader includes the book.
        reading.roles.retain(|role| role.subject != Subject::Book);
    }
    merge_umbrella(&mut reading.roles);
    drop_umbrella(reading);
}

/// The drawing of an umbrella has a person under it: beside a couple it would be a stranger's.
fn drop_umbrella(reading: &mut Reading) {
    let has_others = reading.roles.iter().any(|role| {
        let person = role.subject.facts().body == BodyKind::Person && role.holder.is_none();
        person && role.subject != Subject::Umbrella
    });
    if has_others {
        reading
            .roles
            .retain(|role| role.subject != Subject::Umbrella || role.holder.is_some());
    }
}

/// The usual place of the first subject that needs a certain one, else of the first that has one.
fn home_place(roles: &[Role]) -> Option<Place> {
    let bound = roles.iter().find(|role| {
        matches!(role.subject.facts().stance, Stance::Floats | Stance::Swims)
            || role.subject.facts().body == BodyKind::Building
    });
    let first = bound
        .and_then(usual_place)
        .or_else(|| roles.iter().find_map(usual_place))?;
    if first == Place::Table && !roles.iter().all(fits_table) {
        let other = roles
            .iter()
            .filter(|role| !fits_table(role))
            .find_map(usual_place);
        return other.or(Some(Place::Room));
    }
    Some(first)
}

/// The place in which a role is at home.
fn usual_place(role: &Role) -> Option<Place> {
    role.subject.facts().home
}

fn fits_table(role: &Role) -> bool {
    role.subject.facts().stance == Stance::Lies
}

/// Someone with an umbrella is one figure.
fn merge_umbrella(roles: &mut Vec<Role>) {
    let Some(umbrella) = roles
        .iter()
        .position(|role| role.subject == Subject::Umbrella)
    else {
        return;
    };
    let holder = roles.iter().position(|role| {
        let walks = role.subject.facts().stance == Stance::Walks;
        let apart = matches!(
            role.subject,
            Subject::Umbrella | Subject::Couple | Subject::Crowd | Subject::Rider | Subject::Skier
        );
        role.subject.facts().body == BodyKind::Person && walks && !apart
    });
    if let Some(holder) = holder {
        let Role {
            subject,
            count,
            act,
            size,
            ..
        } = roles[holder];
        let role = &mut roles[umbrella];
        role.count = role.count.max(count);
        role.act = act.or(role.act);
        role.size = size;
        role.holder = Some(subject);
        roles.remove(holder);
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) && list.len() < 6 {
        list.push(item);
    }
}

#[cfg(test)]
mod figures_tests;
#[cfg(test)]
mod tests;
