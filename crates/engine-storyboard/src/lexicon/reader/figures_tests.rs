//! Which figures words make: families, players, drivers, what a colour belongs to.

use super::tests::{RED, deeds, subjects};
use super::*;
use crate::lexicon::{Hour, Season, Weather};
use crate::subject::Act;

#[test]
fn nouns_that_are_verbs_elsewhere_are_told_apart() {
    use Act::Wave;
    type Case = (
        &'static str,
        &'static [(&'static str, u32, Option<Act>)],
        &'static [&'static str],
    );
    const CASES: [Case; 8] = [
        ("a man cooks in a kitchen", &[("man", 1, None)], &["cooks"]),
        ("she cooks", &[], &["cooks"]),
        ("two cooks in a kitchen", &[("chef", 2, None)], &[]),
        (
            "a woman and a cook",
            &[("woman", 1, None), ("chef", 1, None)],
            &[],
        ),
        ("a girl waves", &[("girl", 1, Some(Wave))], &[]),
        (
            "a boy and a girl wave",
            &[("boy", 1, Some(Wave)), ("girl", 1, Some(Wave))],
            &[],
        ),
        ("un homme cuisine", &[("man", 1, None)], &["cuisine"]),
        (
            "a submarine dives",
            &[("submarine", 1, Some(Act::Swim))],
            &[],
        ),
    ];
    for (text, found, missed) in CASES {
        assert_eq!(deeds(text), found, "{text}");
        assert_eq!(read(text, "").lost.missed, missed, "{text}");
    }
    assert_eq!(read("a boat on the waves", "").place, Some(Place::Sea));
    assert_eq!(read("una cocina", "").place, Some(Place::Room));
}

#[test]
fn a_family_is_a_man_a_woman_and_a_child() {
    let family = |act| [("man", 1, act), ("woman", 1, act), ("girl", 1, act)];
    for text in [
        "a family",
        "una familia",
        "eine Familie",
        "семья",
        "一家人",
        "家族がいる",
    ] {
        assert_eq!(deeds(text), family(None), "{text}");
    }
    assert_eq!(deeds("a family walks"), family(Some(Act::Walk)));
    assert_eq!(deeds("a dancing family"), family(Some(Act::Dance)));
    let counts = |text: &str| -> Vec<u32> { deeds(text).iter().map(|deed| deed.1).collect() };
    assert_eq!(counts("two families"), [2, 2, 2]);
    assert!(subjects("a beach without a family").is_empty());
    let reds = read("a red family", "").roles;
    assert!(reds.iter().all(|role| role.colour == Some(RED)));
}

#[test]
fn seasons_and_stars_are_read_in_compounds() {
    let forest = read("ein Herbstwald im Nebel", "");
    assert_eq!(forest.place, Some(Place::Forest));
    assert_eq!(forest.season, Some(Season::Autumn));
    assert!(read("eine Schneelandschaft", "").has_weather(Weather::Snow));
    assert!(read("ein Winterwald", "").has_weather(Weather::Snow));
    assert_eq!(read("дом под звёздами", "").hour, Some(Hour::Night));
    for text in [
        "ein Herbstwald im Nebel",
        "дом под звёздами",
        "a hospital",
        "a groom",
    ] {
        assert_eq!(read(text, "").lost.missed, [] as [&str; 0], "{text}");
    }
}

#[test]
fn what_words_join_is_one_figure() {
    for (text, subjects) in [
        ("a woman plays the guitar", &[Subject::Woman][..]),
        ("a man drives a red car", &[Subject::Car]),
        ("ein Mann fährt ein Auto", &[Subject::Car]),
        ("a girl rides a bicycle", &[Subject::Bicycle]),
        ("a king rides a horse", &[Subject::Rider]),
        (
            "a man and a dog ride a bus",
            &[Subject::Man, Subject::Dog, Subject::Bus],
        ),
        ("a man passes a car", &[Subject::Man, Subject::Car]),
        (
            "three people: a king, a queen and a knight",
            &[Subject::King, Subject::Queen, Subject::Knight],
        ),
        ("two people, a king", &[Subject::Person, Subject::King]),
    ] {
        let reading = read(text, "");
        let shown: Vec<Subject> = reading.roles.iter().map(|role| role.subject).collect();
        assert_eq!(shown, subjects, "{text}");
        assert_eq!(reading.lost.missed, Vec::<String>::new(), "{text}");
    }
    let piano = read("a man plays the piano", "");
    let acts: Vec<Option<Act>> = piano.roles.iter().map(|role| role.act).collect();
    assert_eq!(acts, [Some(Act::Stand), Some(Act::Play)]);
    assert_eq!(read("a man rides a motorcycle", "").lost.missed, ["rides"]);
}

#[test]
fn colours_of_what_is_not_drawn_paint_nothing_else() {
    let blue = read("a blue car", "").colour_of(Subject::Car);
    let text = "Une danseuse en robe bleue danse dans un pré sous la neige";
    for (text, who) in [
        (text, Subject::Dancer),
        ("a woman in a blue dress on a meadow", Subject::Woman),
        ("ein Mann im blauen Mantel auf einer Wiese", Subject::Man),
        ("una mujer con un vestido azul en un campo", Subject::Woman),
    ] {
        let reading = read(text, "");
        assert!(reading.colour_of(who).is_some(), "{text}");
        assert!(reading.tints.is_empty(), "{text}: {:?}", reading.tints);
        assert!(blue.is_some());
    }
    for text in [
        "a red trombone beside a cat",
        "un trombón rojo junto a un gato",
        "eine rote Posaune neben einer Katze",
    ] {
        let reading = read(text, "");
        assert_eq!(reading.colour_of(Subject::Cat), None, "{text}");
        assert!(reading.tints.is_empty(), "{text}: {:?}", reading.tints);
    }
    // An unknown word may be a quality of what follows.
    assert!(
        read("a red tabby cat", "")
            .colour_of(Subject::Cat)
            .is_some()
    );
}

#[test]
fn who_holds_an_umbrella_stays_who_it_is() {
    for (text, holder) in [
        ("a woman with a yellow umbrella", Some(Subject::Woman)),
        ("a king under a red umbrella", Some(Subject::King)),
        ("an umbrella", None),
    ] {
        let reading = read(text, "");
        let holders: Vec<_> = reading.roles.iter().map(|role| role.holder).collect();
        assert_eq!(holders, [holder], "{text}");
    }
}
