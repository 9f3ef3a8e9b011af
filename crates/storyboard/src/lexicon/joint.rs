//! Merges mentions that describe one figure: players, drivers and riders, and people listed after their number.
//! It changes mentions and reads no places.

use super::Meaning;
use super::reading::{Bound, Mention};
use super::scan::Item;
use crate::subject::{Act, Body, Stance, Subject};

/// Words for driving or riding the thing behind them. Words for passing it are not in this list.
const DRIVES: [&str; 15] = [
    "drive", "drives", "driving", "ride", "rides", "riding", "row", "rows", "rowing", "conduce",
    "fährt", "fahren", "guida", "dirige", "едет",
];

/// Merges the mentions that describe one figure.
pub(super) fn join(bound: &mut Bound, items: &[Item]) {
    list(&mut bound.mentions, items);
    play(&mut bound.mentions);
    drive(bound, items);
}

fn is_person(mention: &Mention) -> bool {
    mention.role.subject.facts().body == Body::Person
}

/// "Three people: a king, a queen and a knight" means these three.
fn list(mentions: &mut Vec<Mention>, items: &[Item]) {
    let found = mentions.iter().enumerate().find_map(|(at, all)| {
        let many = all.role.subject == Subject::Person && all.role.count > 1;
        let stop = items.get(all.item + 1).is_some_and(Item::is_stop);
        let mut left = all.role.count;
        let listed = mentions[at + 1..].iter().take_while(|one| {
            let ours = is_person(one) && left > 0;
            left = left.saturating_sub(one.role.count);
            ours
        });
        let sum = listed.fold(0_u32, |sum, one| sum.saturating_add(one.role.count));
        (many && stop && sum == all.role.count).then_some(at)
    });
    if let Some(at) = found {
        mentions.remove(at);
    }
}

/// The drawing of a player includes the guitar; a person at a piano stands without one.
fn play(mentions: &mut Vec<Mention>) {
    let plays = |one: &Mention| {
        let act = one.role.act.unwrap_or(one.role.subject.facts().usual);
        is_person(one) && act == Act::Play
    };
    if !mentions.iter().any(plays) {
        return;
    }
    let named = |wanted: Subject| mentions.iter().any(|one| one.role.subject == wanted);
    if named(Subject::Guitar) {
        mentions.retain(|one| one.role.subject != Subject::Guitar);
    } else if named(Subject::Piano) {
        for one in mentions.iter_mut() {
            if plays(one) {
                one.role.act = Some(Act::Stand);
            } else if one.role.subject == Subject::Piano {
                one.role.act = Some(Act::Play);
            }
        }
    }
}

/// Puts a driver into the car and a rider onto the horse. A warning names combinations without a drawing.
fn drive(bound: &mut Bound, items: &[Item]) {
    let found = bound
        .mentions
        .windows(2)
        .enumerate()
        .find_map(|(at, pair)| {
            let [who, what] = pair else {
                return None;
            };
            let between = items.get(who.item + 1..what.item)?;
            let verb = between
                .iter()
                .find(|item| DRIVES.contains(&item.written.to_lowercase().as_str()))?;
            // Beside a person in the bus an animal rides along.
            let animal = at == 0 && who.role.subject.facts().body == Body::Quadruped;
            let fits = (animal || is_person(who))
                && !between
                    .iter()
                    .any(|item| item.is_stop() || item.says(Meaning::And));
            fits.then(|| (at, verb.written.clone()))
        });
    let Some((at, verb)) = found else {
        return;
    };
    let (who, what) = (bound.mentions[at].role, &mut bound.mentions[at + 1].role);
    let facts = what.subject.facts();
    if who.subject.facts().body == Body::Quadruped {
        bound.idle.push(verb);
        return;
    }
    if what.subject == Subject::Horse {
        what.subject = Subject::Rider;
        what.act = Some(Act::Run);
    } else if carries(what.subject) {
        what.act = Some(Act::Move);
    } else {
        let mount = facts.body == Body::Quadruped || what.subject == Subject::Motorcycle;
        bound.idle.extend(mount.then_some(verb));
        return;
    }
    what.count = what.count.max(who.count);
    bound.mentions.remove(at);
}

/// Whether its drawing shows a driver when it moves, or hides the people inside.
fn carries(subject: Subject) -> bool {
    let facts = subject.facts();
    let rolls = facts.body == Body::Vehicle && facts.stance == Stance::Rolls;
    rolls && subject != Subject::Motorcycle || subject == Subject::Canoe
}
