//! What edits make of readings.

use super::*;
use crate::lexicon::read;
use crate::subject::{Act, Subject};

const SETTLED: SceneSetting = SceneSetting {
    place: Place::Hills,
    hour: Hour::Golden,
};

fn subjects(reading: &Reading) -> Vec<Subject> {
    let shown = reading.roles.iter().filter(|role| role.count > 0);
    shown.map(|role| role.subject).collect()
}

fn settled(reading: &Reading) -> SceneSetting {
    SceneSetting {
        place: reading.place.unwrap_or(SETTLED.place),
        hour: reading.hour.unwrap_or(SETTLED.hour),
    }
}

fn revised(source: &str, edit: &str) -> Reading {
    let source = read(source, "");
    EditChange::read(edit, "").revise(&source, settled(&source))
}

#[test]
fn words_that_say_nothing_change_nothing() {
    for edit in ["the same again", "better", "nochmal", "再来一次"] {
        let source = read("a red boat on a lake at dawn", "");
        assert_eq!(
            revised("a red boat on a lake at dawn", edit),
            source,
            "{edit}"
        );
        assert_eq!(
            EditChange::read(edit, "").air(),
            Reading::default(),
            "{edit}"
        );
    }
}

#[test]
fn hour_and_weather_change_and_the_rest_stays() {
    let source = read("a red boat on the sea at noon, clouds", "");
    for edit in [
        "make it night",
        "hazlo de noche",
        "la nuit",
        "bei Nacht",
        "改成夜晚",
    ] {
        let made = revised("a red boat on the sea at noon, clouds", edit);
        assert_eq!(made.hour, Some(Hour::Night), "{edit}");
        let same = Reading {
            hour: source.hour,
            past: Vec::new(),
            ..made
        };
        assert_eq!(same, source, "{edit}");
    }
    let weather = |edit: &str| revised("a lake in the rain, fog", edit).weather;
    assert_eq!(
        weather("it snows, snow falls"),
        [Weather::Snow, Weather::Snowfall, Weather::Fog]
    );
    assert_eq!(weather("clear"), [Weather::Clear]);
    assert_eq!(weather("stop the rain"), [Weather::Fog]);
    assert_eq!(revised("a lake", "no clouds").weather, [Weather::Clear]);
}

#[test]
fn another_place_keeps_the_subjects_and_the_hour_by_chance() {
    let made = revised("a red car in a green forest", "in the desert");
    assert_eq!(made.place, Some(Place::Desert));
    assert_eq!(subjects(&made), [Subject::Car]);
    assert!(made.colour_of(Subject::Car).is_some());
    assert_eq!(made.hour, Some(SETTLED.hour));
    assert!(
        !made
            .tints
            .iter()
            .any(|tint| matches!(tint, ColourTint::Place(_)))
    );
    // A subject is no place: a boat that is added moves no hills to the sea.
    assert_eq!(revised("a forest", "add a boat").place, Some(Place::Forest));
}

#[test]
fn a_colour_repaints_its_thing_only() {
    let made = revised(
        "a red car and a green house in the city",
        "turn the car blue",
    );
    let blue = read("a blue car", "").colour_of(Subject::Car);
    assert!(blue.is_some() && made.colour_of(Subject::Car) == blue);
    assert!(made.colour_of(Subject::House).is_some());
    assert_eq!(made.roles.len(), 2);
}

#[test]
fn subjects_come_and_go() {
    let source = "a dog and a red boat on a lake";
    for (edit, shown) in [
        ("remove the dog", &[Subject::Boat][..]),
        ("without the boat, at night", &[Subject::Dog][..]),
        (
            "delete the dog and add a cat",
            &[Subject::Boat, Subject::Cat][..],
        ),
        (
            "replace the dog with a horse",
            &[Subject::Horse, Subject::Boat][..],
        ),
        (
            "turn the boat into a whale",
            &[Subject::Dog, Subject::Whale][..],
        ),
        (
            "a cat instead of the dog",
            &[Subject::Cat, Subject::Boat][..],
        ),
        ("quita el perro", &[Subject::Boat][..]),
        ("sin barco", &[Subject::Dog][..]),
        ("enlève le chien", &[Subject::Boat][..]),
        ("sans bateau", &[Subject::Dog][..]),
        ("entferne den Hund", &[Subject::Boat][..]),
        ("ohne Boot", &[Subject::Dog][..]),
        ("去掉狗", &[Subject::Boat][..]),
        ("把船去掉，改成夜晚", &[Subject::Dog][..]),
        ("把狗换成猫", &[Subject::Cat, Subject::Boat][..]),
    ] {
        let made = revised(source, edit);
        assert_eq!(subjects(&made), shown, "{edit}");
        let painted = made.colour_of(Subject::Boat).is_some();
        assert_eq!(painted, shown.contains(&Subject::Boat), "{edit}");
    }
    let change = EditChange::read("at night", "boats");
    let source = read(source, "");
    assert_eq!(
        subjects(&change.revise(&source, settled(&source))),
        [Subject::Dog]
    );
}

#[test]
fn there_is_one_light_in_the_sky() {
    assert_eq!(
        subjects(&revised("the sun over hills", "moonlight")),
        [Subject::Moon]
    );
}

#[test]
fn a_place_by_chance_stays_when_more_is_said() {
    let settled = SceneSetting {
        place: Place::Sea,
        ..SETTLED
    };
    let source = read("quiet", "");
    assert_eq!(source.place, None);
    let made = EditChange::read("at night", "").revise(&source, settled);
    assert_eq!(
        (made.place, made.hour),
        (Some(Place::Sea), Some(Hour::Night))
    );
}

#[test]
fn one_takes_the_seat_of_another() {
    let source = "a dog runs beside a red boat on a lake";
    for edit in [
        "change the dog to a cat",
        "turn the dog into a cat",
        "replace the dog with a cat",
        "swap the dog for a cat",
        "make the dog a cat",
        "a cat instead of the dog",
        "cambia el perro por un gato",
        "convierte el perro en un gato",
        "remplace le chien par un chat",
        "un chat au lieu du chien",
        "ersetze den Hund durch eine Katze",
        "verwandle den Hund in eine Katze",
        "eine Katze statt des Hundes",
        "sostituisci il cane con un gatto",
        "substitua o cachorro por um gato",
        "замени собаку на кошку",
        "استبدل الكلب بقطة",
        "कुत्ते को बिल्ली से बदलो",
        "把狗变成猫",
        "犬を猫に変えて",
        "개를 고양이로 바꿔",
    ] {
        let made = revised(source, edit);
        assert_eq!(subjects(&made), [Subject::Cat, Subject::Boat], "{edit}");
        assert_eq!(made.roles[0].act, Some(Act::Run), "{edit}");
        assert_eq!(made.roles.len(), 2, "{edit}");
    }
}

#[test]
fn what_only_changes_its_look_stays() {
    let source = "a red car and a dog in the city";
    for edit in [
        "change the car to blue",
        "turn the car blue in the rain",
        "change the red car to a blue car",
        "make the car a blue car",
        "make the car blue",
        "把车变成蓝色",
    ] {
        let made = revised(source, edit);
        let blue = read("a blue car", "").colour_of(Subject::Car);
        assert_eq!(subjects(&made), [Subject::Car, Subject::Dog], "{edit}");
        assert_eq!(made.colour_of(Subject::Car), blue, "{edit}");
    }
    let made = revised(source, "make the dog chase a cat");
    let all = [Subject::Car, Subject::Dog, Subject::Cat];
    assert_eq!(subjects(&made), all);
    let made = revised(source, "change the rain to snow");
    assert!(made.has_weather(Weather::Snowfall) && made.roles.len() == 2);
    let made = revised(source, "make it sleep");
    assert_eq!(made.role(Subject::Dog).unwrap().act, Some(Act::Sleep));
}

#[test]
fn seasons_change() {
    let autumn = "trees on a hill in autumn";
    for edit in [
        "in summer",
        "make it summer",
        "en verano",
        "im Sommer",
        "夏天",
    ] {
        let made = revised(autumn, edit);
        assert_eq!(made.season, Some(Season::Summer), "{edit}");
        let same = Reading {
            season: Some(Season::Autumn),
            past: Vec::new(),
            ..made
        };
        assert_eq!(same, read(autumn, ""), "{edit}");
    }
    let made = revised(autumn, "in winter");
    assert!(made.season == Some(Season::Winter) && made.has_weather(Weather::Snow));
    let made = revised("a hill in winter", "in autumn");
    assert!(made.season == Some(Season::Autumn) && !made.has_weather(Weather::Snow));
    assert_eq!(revised(autumn, "not in autumn").season, None);
    assert_eq!(revised(autumn, "at night").season, Some(Season::Autumn));
}

#[test]
fn words_of_orders_are_not_missed() {
    for edit in [
        "replace the dog with a cat",
        "stop the rain",
        "a cat instead of the dog, please",
        "make it night instead",
        "swap the dog for a cat",
        "turn the car into a boat",
        "change the sky to red",
        "keep the dog, remove the boat",
        "reemplaza el perro por un gato",
        "un chat au lieu du chien",
        "remplace le chien par un chat",
        "ersetze den Hund durch eine Katze",
        "eine Katze statt des Hundes",
        "verwandle den Hund in eine Katze",
        "sostituisci il cane con un gatto",
        "un gatto invece del cane",
        "substitua o cachorro por um gato",
        "замени собаку на кошку",
        "кошка вместо собаки",
        "استبدل الكلب بقطة",
        "कुत्ते को बिल्ली से बदलो",
        "把狗换成猫",
        "犬を猫に変えて",
        "개를 고양이로 바꿔",
    ] {
        let change = EditChange::read(edit, "");
        assert_eq!(change.lost().missed, [] as [&str; 0], "{edit}");
    }
    let change = EditChange::read("add a glimworfle", "");
    assert_eq!(change.lost().missed, ["glimworfle"]);
}

fn bare(text: &str) -> String {
    let words = text.split([' ', ',', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn edits_are_split() {
    for (text, wanted, removed) in [
        ("Make it night", "it night", ""),
        (
            "remove the dog and make it night",
            "it night",
            "the dog and",
        ),
        ("at night, without the boat", "at night", "the boat"),
        (
            "Get rid of the people. Add a cat.",
            "add a cat",
            "the people",
        ),
        ("turn the car blue", "the car blue", ""),
        (
            "turn the car blue in the rain",
            "the car blue in the rain",
            "",
        ),
        ("replace the dog", "", "the dog"),
        ("把车去掉", "", "车"),
    ] {
        let parts = split(text);
        assert_eq!(bare(&parts.wanted), wanted, "{text}");
        assert_eq!(bare(&parts.removed), removed, "{text}");
        assert_eq!(parts.swaps, [], "{text}");
    }
}

#[test]
fn one_thing_takes_the_place_of_another() {
    for (text, old, new, wanted) in [
        ("turn the car into a boat", "the car", "a boat", ""),
        (
            "change the dog to a cat at night",
            "the dog",
            "a cat",
            "at night",
        ),
        ("make the dog a cat", "the dog", "cat", ""),
        ("replace the dog with a cat", "the dog", "a cat", ""),
        ("a cat instead of the dog", "the dog", "a cat", ""),
        ("sustituye el perro por un gato", "el perro", "un gato", ""),
        ("un chat au lieu du chien", "du chien", "un chat", ""),
        (
            "ersetze den Hund durch eine Katze",
            "den hund",
            "eine katze",
            "",
        ),
        ("замени собаку на кошку", "собаку", "кошку", ""),
        ("把车变成蓝色", "车", "蓝色", ""),
        ("犬を猫に変えて", "犬", "猫", ""),
    ] {
        let parts = split(text);
        assert_eq!(bare(&parts.wanted), wanted, "{text}");
        assert_eq!(parts.swaps.len(), 1, "{text}");
        assert_eq!(bare(&parts.swaps[0].old), old, "{text}");
        assert_eq!(bare(&parts.swaps[0].new), new, "{text}");
    }
}

#[test]
fn the_verb_comes_first() {
    for (clause, ordered_is) in [
        ("犬を猫に変えて", Some("把 犬 换成 猫")),
        ("개를 고양이로 바꿔", Some("把 개 换成 고양이")),
        ("कुत्ते को बिल्ली से बदलो", Some("把 कुत्ते 换成 बिल्ली")),
        ("استبدل الكلب بقطة", Some("把 الكلب 换成 قطة")),
        ("make it night", None),
        ("犬を追加して", None),
    ] {
        assert_eq!(verb_first(clause).as_deref(), ordered_is, "{clause}");
    }
}
