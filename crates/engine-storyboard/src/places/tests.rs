//! Where scenes put their figures: on ground that is there, apart from each other, and behind what hides
//! them. It looks at places, not at pixels.

use crate::lexicon::{Hour, Place, Reading, Role};
use crate::rng::Rng;
use crate::scene::actor::Actor;
use crate::scene::palette::Palette;
use crate::scene::scene_builder::{SceneBuilder, SceneElement};
use crate::subject::{Act, Subject};

const WIDTH: f32 = 320.0;
const HEIGHT: f32 = 180.0;

/// The elements of a scene of `roles` in `place`.
fn scene(place: Place, roles: &[Role], seed: u64) -> Vec<SceneElement> {
    let reading = Reading {
        place: Some(place),
        roles: roles.to_vec(),
        ..Reading::default()
    };
    let mut stage = SceneBuilder {
        width: WIDTH,
        height: HEIGHT,
        pixels: 1.0,
        unit: HEIGHT,
        seconds: 4.0,
        palette: Palette::new(&reading, Hour::Day, &mut Rng::new(seed)),
        reading: &reading,
        place,
        rng: Rng::new(seed),
        nearness: 1.0,
        elements: Vec::new(),
        events: Vec::new(),
        bare: false,
        paved: false,
        previous_places: Vec::new(),
        placed: Vec::new(),
    };
    super::build(&mut stage);
    stage.elements
}

fn figures(elements: &[SceneElement]) -> Vec<(usize, &Actor)> {
    let mut figures = Vec::new();
    for (index, one) in elements.iter().enumerate() {
        if let SceneElement::Actor(actor) = one {
            figures.push((index, actor.as_ref()));
        }
    }
    figures
}

fn foot(elements: &[SceneElement], subject: Subject) -> f32 {
    let all = figures(elements);
    let found = all.iter().find(|(_, actor)| actor.subject == subject);
    found
        .unwrap_or_else(|| panic!("{subject:?} is missing"))
        .1
        .y
}

fn of(subjects: &[Subject]) -> Vec<Role> {
    subjects.iter().copied().map(Role::new).collect()
}

#[test]
fn everybody_named_is_in_every_place() {
    let cast = [
        Subject::Person,
        Subject::Dog,
        Subject::Cup,
        Subject::Car,
        Subject::Lighthouse,
        Subject::Boat,
    ];
    let places = [
        Place::Sea,
        Place::Mountains,
        Place::Forest,
        Place::Desert,
        Place::City,
        Place::Hills,
        Place::Lake,
        Place::Space,
        Place::Underwater,
        Place::Room,
        Place::Table,
    ];
    for place in places {
        let elements = scene(place, &of(&cast), 3);
        for subject in cast {
            let _row = foot(&elements, subject);
        }
        assert_eq!(figures(&elements).len(), cast.len(), "{place:?}");
    }
}

#[test]
fn things_stand_on_the_table_and_people_behind_it() {
    for seed in 0..4 {
        let elements = scene(Place::Table, &of(&[Subject::Chef, Subject::Cup]), seed);
        let all = figures(&elements);
        let at = |subject| {
            all.iter()
                .find(|(_, one)| one.subject == subject)
                .unwrap()
                .0
        };
        let top = elements[at(Subject::Chef)..at(Subject::Cup)]
            .iter()
            .any(|one| matches!(one, SceneElement::Plane(_)));
        assert!(top, "no table top between them");
        let cup = foot(&elements, Subject::Cup);
        assert!((0.7..0.9).contains(&(cup / HEIGHT)), "{cup}");
    }
}

#[test]
fn a_cat_keeps_the_sill_and_people_get_a_floor() {
    for seed in 0..4 {
        let alone = foot(
            &scene(Place::Room, &of(&[Subject::Cat]), seed),
            Subject::Cat,
        );
        let girl = scene(Place::Room, &of(&[Subject::Girl, Subject::Cat]), seed);
        // Nobody stands in the wall: its foot is at seven tenths of the height.
        assert!(foot(&girl, Subject::Girl) > HEIGHT * 0.78);
        assert!(foot(&girl, Subject::Cat) > HEIGHT * 0.78);
        assert!(alone < HEIGHT * 0.82, "{alone}");
        let mut runs = Role::new(Subject::Cat);
        runs.act = Some(Act::Run);
        let floor = foot(&scene(Place::Room, &[runs], seed), Subject::Cat);
        assert!(floor > alone + HEIGHT * 0.02, "{floor} {alone}");
    }
}

#[test]
fn nobody_on_the_sill_sits_behind_a_curtain() {
    for seed in 0..16 {
        let mut cats = Role::new(Subject::Cat);
        cats.count = 3;
        let elements = scene(Place::Room, &[cats], seed);
        for (_, cat) in figures(&elements) {
            // The window reaches half a unit to each side of the middle or a little aside.
            let aside = (cat.x - WIDTH * 0.5).abs() + cat.size * 0.3;
            assert!(
                aside < HEIGHT * 0.52 + WIDTH * 0.05,
                "{aside} (seed {seed})"
            );
        }
    }
}

#[test]
fn in_town_houses_cars_and_people_keep_to_their_rows() {
    for seed in 0..4 {
        let cast = [
            Subject::Tower,
            Subject::Car,
            Subject::Person,
            Subject::Bench,
        ];
        let elements = scene(Place::City, &of(&cast), seed);
        let [tower, car, person, bench] = cast.map(|one| foot(&elements, one));
        assert!(tower + HEIGHT * 0.02 < car, "{tower} {car}");
        assert!(car + HEIGHT * 0.02 < person, "{car} {person}");
        assert!((person - bench).abs() < HEIGHT * 0.06, "{person} {bench}");
    }
}

#[test]
fn several_boats_lie_at_several_distances() {
    for place in [Place::Sea, Place::Lake] {
        let mut fleet = Role::new(Subject::Boat);
        fleet.count = 4;
        let elements = scene(place, &[fleet], 5);
        let boats = figures(&elements);
        assert_eq!(boats.len(), 4);
        for pair in boats.windows(2) {
            let (far, near) = (pair[0].1, pair[1].1);
            // They are painted from far to near, and the far are smaller.
            assert!(far.y <= near.y && far.size <= near.size, "{place:?}");
        }
        let (first, last) = (boats[0].1, boats[3].1);
        assert!(last.y - first.y > HEIGHT * 0.04, "{place:?}");
    }
}

#[test]
fn people_behind_a_table_show_from_the_waist_up() {
    let cast = [Subject::Woman, Subject::Pizza, Subject::Lemon];
    let elements = scene(Place::Table, &of(&cast), 8);
    let all = figures(&elements);
    let woman = all.iter().find(|(_, one)| one.subject == Subject::Woman);
    let head = woman.map(|(_, one)| one.y - one.size).unwrap();
    assert!(head < HEIGHT * 0.4 && head > 0.0, "{head}");
}

#[test]
fn a_tree_on_the_shore_hides_no_boat() {
    for seed in 0..8 {
        let elements = scene(Place::Sea, &of(&[Subject::Palm, Subject::Boat]), seed);
        let all = figures(&elements);
        let apart = (all[0].1.x - all[1].1.x).abs();
        assert!(apart > HEIGHT * 0.3, "{apart} with seed {seed}");
    }
}

#[test]
fn flowers_and_things_are_small_beside_people() {
    let size = |roles: &[Subject], wanted| {
        let elements = scene(Place::Hills, &of(roles), 1);
        let all = figures(&elements);
        all.iter()
            .find(|(_, one)| one.subject == wanted)
            .unwrap()
            .1
            .size
    };
    for small in [
        Subject::Tulip,
        Subject::Guitar,
        Subject::Chest,
        Subject::Cat,
    ] {
        let alone = size(&[small], small);
        let beside = size(&[small, Subject::Person], small);
        assert!(beside < alone * 0.8, "{small:?}: {beside} of {alone}");
        assert!(beside < 0.75 * size(&[small, Subject::Person], Subject::Person));
    }
}

#[test]
fn who_stands_has_a_shadow_and_who_flies_has_none() {
    let elements = scene(Place::Hills, &of(&[Subject::Horse, Subject::Plane]), 2);
    for (_, actor) in figures(&elements) {
        assert_eq!(actor.shadow > 0.0, actor.subject == Subject::Horse);
    }
}
