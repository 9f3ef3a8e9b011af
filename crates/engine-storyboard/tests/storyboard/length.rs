//! The length that the engine chooses when it may.

use kinora_contract::{VideoLength, VideoSpec};
use kinora_engine::ClipPlanner;
use proptest::prelude::*;

use super::references;
use super::support::*;

fn seconds(spec: &VideoSpec, materials: &kinora_engine::JobMaterials) -> u32 {
    let spec = VideoSpec {
        seconds: VideoLength::Auto,
        ..spec.clone()
    };
    let clip = engine(1).plan(&spec, materials).unwrap();
    assert_eq!(clip, engine(1).plan(&spec, materials).unwrap());
    clip.frames / clip.fps
}

fn of(prompt: &str) -> u32 {
    seconds(&spec(prompt, SMALL, 5, 1), &NONE)
}

#[test]
fn more_beats_take_longer() {
    let beat = "A small boat leaves the old harbour at dawn. ";
    let lengths: Vec<u32> = (1..=6).map(|count| of(&beat.repeat(count))).collect();
    assert!(lengths.is_sorted(), "{lengths:?}");
    assert!(
        lengths[0] < lengths[1] && lengths[1] < lengths[3],
        "{lengths:?}"
    );
    assert_eq!(of("a cat"), 2);
    assert_eq!(of(&beat.repeat(80)), 15);
    assert!(of("Shot 1: a boat. Shot 2: waves. Shot 3: the moon.") >= 6);
    assert!(of("一只红色的热气球慢慢升起在绿色的山丘之上，阳光洒满大地。") >= 4);
}

#[test]
fn every_reference_image_is_given_time() {
    let length = |count: usize| {
        let images = vec![picture(SMALL, 0.3); count];
        let (spec, materials) = references::job(5, "a cat", images, Vec::new());
        seconds(&spec, &materials)
    };
    assert_eq!((length(1), length(4), length(9)), (2, 6, 14));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_length_is_always_within_bounds(prompt in "\\PC{1,600}") {
        prop_assert!((2..=15).contains(&of(&prompt)));
    }
}
