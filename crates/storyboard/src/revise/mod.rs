//! What the words of an edit change in what a source shows: hour, weather, place, colours, mood,
//! subjects to add and to take away. It reads words and changes readings; it paints nothing and
//! knows no times.

mod order;
mod parts;

use super::lexicon::{
    Hour, Language, Meaning, Place, Reading, Role, Season, Tint, Weather, able, language_of,
    read_as,
};
use super::subject::Subject;
use parts::{Goes, Parts, Swap};

/// What an edit asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wish {
    /// What is to be there.
    wants: Reading,
    /// What is not.
    without: Reading,
    /// Whose place is taken, and who takes it.
    seats: Vec<(Vec<Role>, Vec<Role>)>,
}

/// The random choices of a source that its reading leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) place: Place,
    pub(super) hour: Hour,
}

impl Wish {
    /// The wish of an edit's prompt; what `avoid`, its negative prompt, names is taken away.
    pub(super) fn read(prompt: &str, avoid: &str) -> Self {
        let language = language_of(prompt);
        let Parts {
            mut kept,
            mut taken,
            swaps,
        } = parts::of(prompt);
        let mut seats = Vec::new();
        for swap in swaps {
            seats.extend(swapped(language, &swap, &mut kept, &mut taken));
        }
        let mut without = read_as(language, &taken, "");
        let avoided = read_as(language_of(avoid), avoid, "");
        let wants = read_as(language, &kept, avoid);
        let denied = wants.without.iter().filter_map(|meaning| match meaning {
            Meaning::Subject(subject) => Some(Role::of(*subject)),
            _ => None,
        });
        without
            .roles
            .extend(avoided.roles.iter().copied().chain(denied));
        let denied = wants.without.iter().filter_map(|meaning| match meaning {
            Meaning::Weather(weather) => Some(*weather),
            _ => None,
        });
        let denied: Vec<Weather> = avoided.weather.iter().copied().chain(denied).collect();
        extend(&mut without.weather, &denied);
        let denied = wants.without.iter().find_map(|meaning| match meaning {
            Meaning::Season(season) => Some(*season),
            _ => None,
        });
        without.season = without.season.or(avoided.season).or(denied);
        without.neon |= avoided.neon || wants.without.contains(&Meaning::Neon);
        Self {
            wants,
            without,
            seats,
        }
    }

    /// The words that nothing is drawn for.
    pub(super) fn missed(&self) -> impl Iterator<Item = &String> {
        let missed = self.wants.missed.iter();
        missed.filter(|word| !parts::is_order(&word.to_lowercase()))
    }

    /// What a source that shows `source` shows under this wish. `settled` is what it showed of
    /// what its words left open: another hour must not change the place, nor another place the
    /// hour.
    pub(super) fn revise(&self, source: &Reading, settled: Settled) -> Reading {
        let wants = &self.wants;
        let mut made = source.clone();
        let moves = !wants.places.is_empty() && wants.place.is_some_and(|at| at != settled.place);
        if moves {
            let timeless = matches!(settled.place, Place::Space | Place::Underwater);
            made.hour = made.hour.or((!timeless).then_some(settled.hour));
            made.place = wants.place;
            made.places.clone_from(&wants.places);
            made.neon = false;
            made.tints
                .retain(|tint| !matches!(tint, Tint::Ground(_) | Tint::Place(_)));
        }
        made.hour = wants.hour.or(made.hour);
        let stays = made.season.filter(|one| self.without.season != Some(*one));
        made.season = wants.season.or(stays);
        made.mood = wants.mood.or(made.mood);
        made.neon = (made.neon || wants.neon) && !self.without.neon;
        replace(&mut made.motions, &wants.motions);
        replace(&mut made.framing, &wants.framing);
        made.weather = self.weather(&made.weather);
        self.cast(&mut made);
        if let Some(act) = wants.loose {
            // "Make it sleep".
            for role in &mut made.roles {
                role.act = able(role.subject, act).or(role.act);
            }
        }
        self.colour(&mut made.tints);
        if made != *source {
            // With more words a place by chance would be another one.
            made.place = made.place.or(Some(settled.place));
        }
        after(source, made)
    }

    /// As [`Wish::revise`], but in the source's own light and weather: only places and things change.
    pub(super) fn recast(&self, source: &Reading, settled: Settled) -> Reading {
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
        after(source, recast)
    }

    /// The weather of `source` where it can stay beside the one that is wanted.
    fn weather(&self, source: &[Weather]) -> Vec<Weather> {
        let mut made = self.wants.weather.clone();
        // Winter brings its snow, and takes it along.
        let thaws = self.wants.season.is_some_and(|one| one != Season::Winter);
        let stays = |one: &&Weather| {
            let goes = thaws && is_snow(**one) || self.without.weather.contains(one);
            !goes && !self.wants.weather.iter().any(|new| excludes(*new, **one))
        };
        let stay: Vec<Weather> = source.iter().filter(stays).copied().collect();
        extend(&mut made, &stay);
        if made.is_empty() && self.without.weather.contains(&Weather::Clouds) {
            // Where no weather is named, clouds come by chance.
            made.push(Weather::Clear);
        }
        made
    }

    /// Takes subjects away and adds those that are new.
    fn cast(&self, made: &mut Reading) {
        let (wants, without) = (&self.wants.roles, &self.without);
        let heavenly = |role: &Role| matches!(role.subject, Subject::Sun | Subject::Moon);
        // There is one light in the sky.
        let lit = wants.iter().any(heavenly);
        made.roles.retain(|role| !(lit && heavenly(role)));
        for (old, new) in &self.seats {
            let mut new = new.iter();
            let old = |role: &&mut Role| {
                role.count > 0 && old.iter().any(|one| one.subject == role.subject)
            };
            for (seat, new) in made.roles.iter_mut().filter(old).zip(&mut new) {
                let act = seat.act.and_then(|act| able(new.subject, act));
                *seat = Role {
                    act: new.act.or(act),
                    ..*new
                };
            }
        }
        for role in &mut made.roles {
            if without.shows(role.subject) {
                // Its place stays empty: nobody else moves.
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

    /// Lets the wanted colours take the place of those of the same things.
    fn colour(&self, tints: &mut Vec<Tint>) {
        let wanted = &self.wants.tints;
        let replaced = |old: &Tint| wanted.iter().any(|new| same_thing(*old, *new));
        tints.retain(|old| !replaced(old));
        extend(tints, wanted);
    }

    /// Light, colour and weather of the wish.
    pub(super) fn air(&self) -> Reading {
        air(&self.wants)
    }
}

/// The words of an edit that name what is to go.
pub(super) fn taken(prompt: &str) -> String {
    let Parts { taken, swaps, .. } = parts::of(prompt);
    let olds = swaps.into_iter().map(|swap| swap.old);
    olds.fold(taken, |all, old| all + ", " + &old)
}

/// Adds what takes another's place to `kept` and what goes to `taken`, if it goes; answers both then.
fn swapped(
    language: Language,
    swap: &Swap,
    kept: &mut String,
    taken: &mut String,
) -> Option<(Vec<Role>, Vec<Role>)> {
    let Swap {
        old: old_text,
        new: new_text,
        joined,
        goes,
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
    let goes = match goes {
        Goes::Surely => true,
        Goes::ForThings => is_thing,
        Goes::Alone => is_thing && (alone || old.roles.is_empty()),
    };
    if !goes {
        let joined = if joined == "a" || joined == "an" {
            joined
        } else {
            ""
        };
        kept.push_str(&format!(", {old_text} {joined} {new_text}, "));
        return None;
    }
    kept.push_str(&format!(", {new_text}, "));
    if new.roles.iter().any(|one| old.shows(one.subject)) {
        // "Change the red car to a blue car".
        return None;
    }
    taken.push_str(&format!(", {old_text}, "));
    Some((old.roles, new.roles))
}

/// `made`, which knows what was before it if it is another picture than `source`.
fn after(source: &Reading, mut made: Reading) -> Reading {
    if made != *source {
        let past = Vec::new();
        made.past.push(Reading {
            past,
            ..source.clone()
        });
    }
    made
}

/// What a reading says of light, colour and weather, for a source that is only seen: without
/// place and subjects.
pub(super) fn air(reading: &Reading) -> Reading {
    Reading {
        hour: reading.hour,
        weather: reading.weather.clone(),
        mood: reading.mood,
        tints: reading.tints.iter().copied().filter(is_air).collect(),
        ..Reading::default()
    }
}

/// Whether a colour is one of the light, not of a thing.
fn is_air(tint: &Tint) -> bool {
    matches!(tint, Tint::Whole(_) | Tint::Heaven(_))
}

fn is_snow(weather: Weather) -> bool {
    use Weather::{Blizzard, Snow, Snowfall};
    matches!(weather, Snow | Snowfall | Blizzard)
}

/// Whether `old` cannot stay where `new` is wanted.
fn excludes(new: Weather, old: Weather) -> bool {
    use Weather::{Clear, Clouds, Fog, Rain, Snowfall, Storm};
    let falls = |one| matches!(one, Rain | Snowfall | Storm);
    match new {
        Clear => matches!(old, Clouds | Rain | Snowfall | Storm | Fog),
        Clouds | Rain | Snowfall | Storm | Fog if old == Clear => true,
        _ => falls(new) && falls(old),
    }
}

/// Whether two colours paint the same thing. One for everything replaces every other one.
fn same_thing(old: Tint, new: Tint) -> bool {
    matches!(
        (old, new),
        (_, Tint::Whole(_))
            | (Tint::Ground(_), Tint::Ground(_))
            | (Tint::Heaven(_), Tint::Heaven(_))
            | (Tint::Place(_), Tint::Place(_))
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

#[cfg(test)]
mod tests;
