//! The clip as announced: conformance, sameness, sizes, refusals, streaming.

use kinora_contract::size::listed_sizes;
use kinora_contract::{FrameSize, Resolution, Size, VideoInputs, VideoSpec};
use kinora_engine::{ClipPlanner, EngineError, JobMaterials, RgbPicture, conformance};

use super::support::*;

#[test]
fn the_engine_conforms() {
    let prompt = "A boat at sea. Then a fox in the forest at night.";
    conformance::check(&engine(2), &spec(prompt, SMALL, 4, 7), &NONE).unwrap();
    let silent = VideoSpec {
        generate_audio: false,
        ..spec("a red kite", SMALL, 2, 1)
    };
    conformance::check(&engine(3), &silent, &NONE).unwrap();
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let spec = spec(
        "snow falls on a village at dusk. Then a train in the rain.",
        SMALL,
        5,
        99,
    );
    let one = tape(&spec, 1, usize::MAX);
    for threads in [2, 5] {
        let many = tape(&spec, threads, usize::MAX);
        assert!(
            one.frames == many.frames,
            "{threads} threads paint other frames"
        );
        assert!(one.pcm == many.pcm, "{threads} threads make other sound");
    }
}

#[test]
fn another_seed_is_another_composition() {
    let frame = |seed| {
        tape(&spec("mountains by a lake", SMALL, 2, seed), 2, 10)
            .frames
            .remove(9)
    };
    let apart = change(&frame(1), &frame(2));
    assert!(
        apart > 6.0,
        "seeds 1 and 2 differ by only {apart:.1} of 255"
    );
}

#[test]
fn every_listed_size_is_planned_and_painted_exactly() {
    for size in listed_sizes() {
        let spec = spec("a lighthouse on a cliff", size, 2, 3);
        let clip = engine(2).plan(&spec, &NONE).unwrap();
        assert_eq!((clip.size, clip.fps, clip.frames), (size, 24, 48));
        let tape = tape(&spec, 2, 1);
        assert_eq!(tape.frames[0].len() as u64, size.pixels() * 3, "{size}");
    }
}

#[test]
fn everything_that_a_card_can_ask_for_is_offered() {
    let features = engine(1).describe().features;
    assert!(features.first_frame && features.last_frame && features.audio_output);
    assert!(features.auto_duration && features.draft && features.edit);
    assert_eq!(features.reference_images_max, 9);
    assert_eq!(features.reference_audios_max, 3);
}

#[test]
fn a_spec_without_its_material_is_refused_in_words() {
    let plain = spec("a cat", SMALL, 2, 1);
    let url = || "https://example.com/a".to_owned();
    let frames = |last: Option<String>| VideoInputs::Frames { first: url(), last };
    let lacking = [
        frames(None),
        frames(Some(url())),
        VideoInputs::References {
            images: vec![url()],
            audios: Vec::new(),
        },
    ];
    for inputs in lacking {
        let spec = VideoSpec {
            inputs,
            ..plain.clone()
        };
        let plan = engine(1).plan(&spec, &NONE);
        assert!(matches!(plan, Err(EngineError::Failed(_))), "{plan:?}");
    }
    let adaptive = VideoSpec {
        frame: FrameSize::Adaptive(Resolution::P480),
        ..plain.clone()
    };
    let plan = engine(1).plan(&adaptive, &NONE);
    assert!(matches!(plan, Err(EngineError::Unsupported(_))), "{plan:?}");
    let broken = JobMaterials {
        first_frame: Some(RgbPicture {
            size: SMALL,
            rgb: vec![0; 7],
        }),
        ..NONE.clone()
    };
    let spec = VideoSpec {
        inputs: frames(None),
        ..plain
    };
    let plan = engine(1).plan(&spec, &broken);
    assert!(matches!(plan, Err(EngineError::Failed(_))), "{plan:?}");
}

#[test]
fn frames_come_out_before_the_clip_is_painted() {
    // A clip of 15 s at this size is 8.4 GB; a sink that stops after three frames must not
    // have waited for it, nor have more painted than the threads' own few frames.
    let spec = spec("a red kite on the beach", Size::new(2520, 1080), 15, 2);
    let tape = tape(&spec, 2, 3);
    assert_eq!(tape.frames.len(), 3);
    assert!(tape.pcm.len() <= 3 * 4_000);
}
