//! First and last frame: the caller's pictures at the ends, one calm camera between.

use kinora_contract::{Size, VideoInputs, VideoSpec};
use kinora_engine::{JobMaterials, RgbPicture, conformance};

use super::support::*;

fn job(size: Size, first: RgbPicture, last: Option<RgbPicture>) -> (VideoSpec, JobMaterials) {
    let url = || "https://example.com/a.png".to_owned();
    let spec = VideoSpec {
        inputs: VideoInputs::Frames {
            first: url(),
            last: last.as_ref().map(|_| url()),
        },
        ..spec("The light fades at dusk. Then a calm evening.", size, 4, 7)
    };
    let materials = JobMaterials {
        first_frame: Some(first),
        last_frame: last,
        ..NONE.clone()
    };
    (spec, materials)
}

#[test]
fn the_clip_begins_with_the_picture_whatever_its_size_and_shape() {
    for (size, own) in [
        (SMALL, Size::new(640, 360)),
        (SMALL, Size::new(480, 480)),
        (Size::new(180, 320), Size::new(640, 360)),
        (Size::new(320, 136), Size::new(260, 640)),
    ] {
        let first = picture(own, 0.1);
        let wanted = covering(&first, size);
        let (spec, materials) = job(size, first, None);
        let tape = tape_of(&spec, &materials, 2, 1);
        let near = psnr(&tape.frames[0], &wanted);
        assert!(near > 40.0, "{own} in {size}: {near:.1} dB");
    }
}

#[test]
fn the_clip_ends_with_the_last_picture() {
    let (first, last) = (
        picture(Size::new(500, 400), 0.1),
        picture(Size::new(700, 300), 0.6),
    );
    let wanted = [covering(&first, SMALL), covering(&last, SMALL)];
    let (spec, materials) = job(SMALL, first, Some(last));
    let tape = whole_of(&spec, &materials);
    sheet("first_last", &tape.frames, SMALL);
    let ends = [&tape.frames[0], &tape.frames[tape.frames.len() - 1]];
    for (frame, wanted) in ends.into_iter().zip(&wanted) {
        let near = psnr(frame, wanted);
        assert!(near > 40.0, "{near:.1} dB");
    }
    smooth(&tape.frames);
}

/// No frame jumps out of the flow.
fn smooth(frames: &[Vec<u8>]) {
    let steps: Vec<f64> = frames
        .windows(2)
        .map(|pair| change(&pair[0], &pair[1]))
        .collect();
    let most = steps.iter().copied().fold(0.0, f64::max);
    assert!(most < 6.0, "a step of {most:.2}: {steps:.1?}");
    let jerk = steps
        .windows(2)
        .map(|two| (two[1] - two[0]).abs())
        .fold(0.0, f64::max);
    assert!(jerk < 1.0, "the pace jumps by {jerk:.2}");
}

#[test]
fn the_camera_moves_smoothly_and_letters_come_in() {
    let (spec, materials) = job(SMALL, picture(Size::new(640, 480), 0.3), None);
    let tape = whole_of(&spec, &materials);
    sheet("first", &tape.frames, SMALL);
    smooth(&tape.frames[..90]);
    assert!(change(&tape.frames[0], &tape.frames[60]) > 3.0);
    let white = |frame: &[u8]| {
        let low = &frame[frame.len() * 3 / 4..];
        low.chunks_exact(3)
            .filter(|p| p.iter().all(|v| *v > 200))
            .count()
    };
    assert!(white(&tape.frames[30]) > white(&tape.frames[0]) + 30);
}

#[test]
fn frames_of_the_caller_stay_for_half_a_second() {
    let (first, last) = (
        picture(Size::new(500, 400), 0.1),
        picture(Size::new(700, 300), 0.6),
    );
    for (last, title) in [(None, "first"), (Some(last), "first and last")] {
        let (spec, materials) = job(SMALL, first.clone(), last.clone());
        let frames = whole_of(&spec, &materials).frames;
        assert!(frames[..=12].iter().all(|one| *one == frames[0]), "{title}");
        assert_ne!(frames[24], frames[0], "{title}");
        let end = &frames[frames.len() - 1];
        let held = frames.iter().rev().take_while(|one| *one == end).count();
        let wanted = if last.is_some() { 13 } else { 1 };
        assert!((wanted..wanted + 3).contains(&held), "{title}: {held}");
        // The camera starts softly: no jolt after the rest.
        let steps: Vec<f64> = frames[12..40]
            .windows(2)
            .map(|pair| change(&pair[0], &pair[1]))
            .collect();
        assert!(steps[0] < 0.5, "{title}: {:.2}", steps[0]);
    }
}

#[test]
fn clips_from_frames_conform() {
    let (spec, materials) = job(SMALL, picture(Size::new(300, 300), 0.2), None);
    conformance::check(&engine(2), &spec, &materials).unwrap();
    let last = Some(picture(Size::new(300, 400), 0.8));
    let (spec, materials) = job(SMALL, picture(Size::new(300, 300), 0.2), last);
    conformance::check(&engine(3), &spec, &materials).unwrap();
}
