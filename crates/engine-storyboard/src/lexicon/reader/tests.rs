//! Sentences of twelve languages, and what is read in them.

use super::*;
use crate::lexicon::{Hour, Meaning, Weather};
use crate::raster::colour::Rgb;
use crate::subject::Act;

pub(super) const RED: Rgb = Rgb::hex(0xd3_2f2f);
const BLUE: Rgb = Rgb::hex(0x2f_66c8);
const YELLOW: Rgb = Rgb::hex(0xf2_c832);

pub(super) fn subjects(text: &str) -> Vec<Subject> {
    let roles = read(text, "").roles;
    roles.iter().map(|role| role.subject).collect()
}

/// Noun, count and action of every role.
pub(super) fn deeds(text: &str) -> Vec<(&'static str, u32, Option<Act>)> {
    let roles = read(text, "").roles;
    roles
        .iter()
        .map(|role| (role.subject.facts().noun, role.count, role.act))
        .collect()
}

#[test]
fn numbers_bind_to_their_nouns() {
    for (text, counts) in [
        ("two cats", &[("cat", 2)][..]),
        ("a cat", &[("cat", 1)]),
        (
            "three red boats and a lighthouse",
            &[("boat", 3), ("lighthouse", 1)],
        ),
        ("5 birds over a house", &[("bird", 5), ("house", 1)]),
        ("horses on a hill", &[("horse", 3)]),
        ("a flock of birds", &[("flock of birds", 1)]),
        ("a doctor and a nurse", &[("doctor", 2)]),
        ("birds over a lake", &[("bird", 5)]),
        ("a cat and two dogs", &[("cat", 1), ("dog", 2)]),
        ("the dog's ball", &[("dog", 1), ("ball", 1)]),
    ] {
        let roles = read(text, "").roles;
        let found: Vec<(&str, u32)> = roles
            .iter()
            .map(|role| (role.subject.facts().noun, role.count))
            .collect();
        assert_eq!(found, counts, "{text}");
    }
}

#[test]
fn colours_and_sizes_bind_to_their_nouns() {
    let roles = read("a blue cat next to a yellow dog", "").roles;
    assert_eq!(roles[0].colour, Some(BLUE));
    assert_eq!(roles[1].colour, Some(YELLOW));
    let roles = read("a red car and a blue car", "").roles;
    let colours: Vec<_> = roles.iter().map(|role| role.colour).collect();
    assert_eq!(colours, [Some(RED), Some(BLUE)]);
    let roles = read("a huge cat beside a tiny house", "").roles;
    assert!(roles[0].size > 1.2 && roles[1].size < 0.8);
    let tints = |text: &str| read(text, "").tints;
    assert_eq!(
        tints("a red sky"),
        [crate::lexicon::ColourTint::Heaven(RED)]
    );
    assert_eq!(tints("red hills"), [crate::lexicon::ColourTint::Place(RED)]);
}

#[test]
fn actions_bind_to_who_does_them() {
    use Act::{Dance, Fly, Jump, Land, Move, Run, Sleep, Swim};
    for (text, found) in [
        ("a dog runs", &[("dog", 1, Some(Run))][..]),
        ("a running dog", &[("dog", 1, Some(Run))]),
        (
            "a cat sleeps and a dog runs",
            &[("cat", 1, Some(Sleep)), ("dog", 1, Some(Run))],
        ),
        (
            "a man and a dog run",
            &[("man", 1, Some(Run)), ("dog", 1, Some(Run))],
        ),
        ("a duck swims on the lake", &[("duck", 1, Some(Swim))]),
        ("an eagle lands", &[("eagle", 1, Some(Land))]),
        ("two women dancing", &[("woman", 2, Some(Dance))]),
        ("a rabbit jumped over it", &[("rabbit", 1, Some(Jump))]),
        (
            "a red car drives past a house",
            &[("car", 1, Some(Move)), ("house", 1, None)],
        ),
        (
            "a cat watches a flying bird",
            &[("cat", 1, Some(Act::Stand)), ("bird", 1, Some(Fly))],
        ),
    ] {
        assert_eq!(deeds(text), found, "{text}");
    }
    assert_eq!(read("a house runs", "").lost.missed, ["runs"]);
    assert_eq!(
        read("the snow falls and the wind blows", "").lost.missed,
        [] as [&str; 0]
    );
}

#[test]
fn what_is_denied_stays_away() {
    let reading = read("a street without rain, no people or cars, and a cat", "");
    assert!(!reading.has_weather(Weather::Rain));
    assert_eq!(reading.roles.len(), 1);
    assert!(reading.shows(Subject::Cat));
    assert!(reading.without.contains(&Meaning::Subject(Subject::Car)));
    let reading = read("a red car and a dog in the rain", "cars, rain");
    assert!(reading.shows(Subject::Dog) && reading.roles.len() == 1);
    assert!(reading.weather.is_empty() && reading.tints.is_empty());
}

#[test]
fn time_changes_within_a_shot() {
    let hours = |text: &str| {
        let reading = read(text, "");
        (reading.hour, reading.turns)
    };
    assert_eq!(
        hours("night turns into day"),
        (Some(Hour::Night), Some(Hour::Day))
    );
    assert_eq!(
        hours("a city from day to night"),
        (Some(Hour::Day), Some(Hour::Night))
    );
    assert_eq!(hours("a starry lake"), (Some(Hour::Night), None));
    assert_eq!(hours("a star at golden hour"), (Some(Hour::Golden), None));
}

#[test]
fn what_is_not_drawn_is_named() {
    let missed = |text: &str| read(text, "").lost.missed;
    assert_eq!(missed("a cat plays the xylophone"), ["xylophone"]);
    assert_eq!(missed("a man juggles two axes"), ["juggles", "axes"]);
    assert!(missed("a beautiful, highly detailed sunset over the sea, 4k").is_empty());
}

#[test]
fn words_of_other_languages_mean_nothing() {
    for (text, found) in [
        ("two friends in a chat", &[Subject::Person][..]),
        ("a pair of boots in the hall, one boot is red", &[]),
        ("I see a kind smile", &[]),
        ("the price tag of a coat", &[]),
    ] {
        assert_eq!(subjects(text), found, "{text}");
    }
    assert_eq!(read("the price tag of a coat", "").hour, None);
    assert_eq!(read("I see a kind smile", "").place, None);
}

#[test]
fn a_subject_is_shown_where_it_is_at_home() {
    for (text, place) in [
        ("a whale", Place::Underwater),
        ("a spaceship", Place::Space),
        ("a camel in the city", Place::City),
        ("a cup of coffee", Place::Table),
        ("a woman drinks a cup of coffee", Place::Hills),
        ("an apple and a candle", Place::Table),
    ] {
        assert_eq!(read(text, "").place, Some(place), "{text}");
    }
}

/// A prompt, its hour and place, and of each subject noun, count and act.
type Sentence = (
    &'static str,
    Option<Hour>,
    Place,
    &'static [(&'static str, u32, Option<Act>)],
);

/// A sentence or two of each language.
const SENTENCES: [Sentence; 13] = [
    (
        "dos gatos duermen en la ventana de noche",
        Some(Hour::Night),
        Place::Room,
        &[("cat", 2, Some(Act::Sleep))],
    ),
    (
        "un chat noir dort dans la chambre",
        None,
        Place::Room,
        &[("cat", 1, Some(Act::Sleep))],
    ),
    (
        "drei Hunde rennen am Strand bei Sonnenuntergang",
        Some(Hour::Golden),
        Place::Sea,
        &[("dog", 3, Some(Act::Run)), ("sun", 1, None)],
    ),
    (
        "das Kind am Fenster",
        None,
        Place::Room,
        &[("person", 1, None)],
    ),
    (
        "ein rotes Boot auf dem See",
        None,
        Place::Lake,
        &[("boat", 1, None)],
    ),
    (
        "una donna balla in piazza all'alba",
        Some(Hour::Dawn),
        Place::City,
        &[("woman", 1, Some(Act::Dance)), ("sun", 1, None)],
    ),
    (
        "um cavalo corre na praia",
        None,
        Place::Sea,
        &[("horse", 1, Some(Act::Run))],
    ),
    (
        "две собаки бегут по лугу",
        None,
        Place::Hills,
        &[("dog", 2, Some(Act::Run))],
    ),
    (
        "قطة تنام في الغرفة",
        None,
        Place::Room,
        &[("cat", 1, Some(Act::Sleep))],
    ),
    (
        "एक घोड़ा जंगल में दौड़ता है",
        None,
        Place::Forest,
        &[("horse", 1, Some(Act::Run))],
    ),
    (
        "两只猫在草地上跳舞",
        None,
        Place::Hills,
        &[("cat", 2, Some(Act::Dance))],
    ),
    (
        "夕焼けの海を飛ぶ三羽の鳥",
        Some(Hour::Golden),
        Place::Sea,
        &[("sun", 1, None), ("bird", 3, Some(Act::Fly))],
    ),
    (
        "토끼 두 마리가 숲속에서 뛰어오른다",
        None,
        Place::Forest,
        &[("rabbit", 2, Some(Act::Jump))],
    ),
];

#[test]
fn twelve_languages_are_read() {
    for (text, hour, place, found) in SENTENCES {
        let reading = read(text, "");
        assert_eq!(reading.hour, hour, "{text}");
        assert_eq!(reading.place, Some(place), "{text}");
        assert_eq!(deeds(text), found, "{text}");
        assert_eq!(reading.lost.missed, [] as [&str; 0], "{text}");
    }
}

#[test]
fn denials_are_read_in_every_language() {
    for text in [
        "eine Straße ohne Menschen",
        "una calle sin gente",
        "une rue sans personne",
        "una strada senza gente",
        "uma rua sem gente",
        "улица без людей",
        "شارع بدون ناس",
        "街道上没有人",
        "人のいない街",
        "사람 없는 거리",
    ] {
        let reading = read(text, "");
        assert_eq!(reading.place, Some(Place::City), "{text}");
        assert!(reading.roles.is_empty(), "{text}: {:?}", reading.roles);
    }
}

#[test]
fn the_language_of_a_text_is_known() {
    for (text, language) in [
        ("a boat", Language::English),
        ("", Language::English),
        ("il gatto e la luna", Language::Italian),
        ("o gato na janela", Language::Portuguese),
        ("el perro en la playa", Language::Spanish),
        ("le chien sur la plage", Language::French),
        ("der Hund am Strand", Language::German),
        ("красный шар", Language::Russian),
        ("red 气球", Language::Chinese),
        ("猫がいる", Language::Japanese),
        ("แมวบนหลังคา", Language::Other),
        ("γάτα στη θάλασσα", Language::Other),
        ("חתול על הגג", Language::Other),
    ] {
        assert_eq!(language_of(text), language, "{text}");
    }
}
