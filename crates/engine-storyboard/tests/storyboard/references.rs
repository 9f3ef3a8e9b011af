//! Reference images are shown in order; reference sound is heard and moves the picture.

use kinora_contract::{Size, VideoInputs, VideoSpec};
use kinora_engine::{
    ClipPlanner, JobMaterials, RgbPicture, SAMPLE_RATE_HZ, StereoSound, conformance,
};

use super::support::*;

pub(crate) fn job(
    seconds: u32,
    prompt: &str,
    images: Vec<RgbPicture>,
    audios: Vec<StereoSound>,
) -> (VideoSpec, JobMaterials) {
    let urls = |count: usize| vec!["https://example.com/a".to_owned(); count];
    let spec = VideoSpec {
        inputs: VideoInputs::References {
            images: urls(images.len()),
            audios: urls(audios.len()),
        },
        ..spec(prompt, SMALL, seconds, 3)
    };
    let materials = JobMaterials {
        images,
        audios,
        ..NONE.clone()
    };
    (spec, materials)
}

fn flat(colour: [u8; 3]) -> RgbPicture {
    let size = Size::new(320, 240);
    let rgb = colour.repeat(size.pixels() as usize);
    RgbPicture { size, rgb }
}

/// Noise whose loudness swells twice a second.
fn swelling(seconds: f64, loudness: f64) -> StereoSound {
    let mut state = 1_u32;
    let count = (seconds * f64::from(SAMPLE_RATE_HZ)) as usize;
    let pcm = (0..count).flat_map(|at| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f64::from(state >> 8) / f64::from(1 << 23) - 1.0;
        let t = at as f64 / f64::from(SAMPLE_RATE_HZ);
        let swell = 0.5 - 0.5 * (t * std::f64::consts::TAU).cos();
        [(noise * swell * swell * loudness) as f32; 2]
    });
    StereoSound { pcm: pcm.collect() }
}

#[test]
fn every_image_is_shown_in_order_however_short_the_clip() {
    let colours: [[u8; 3]; 9] = [
        [200, 30, 30],
        [30, 180, 40],
        [40, 50, 210],
        [200, 190, 30],
        [190, 40, 190],
        [30, 180, 190],
        [220, 120, 30],
        [70, 70, 70],
        [90, 40, 140],
    ];
    for (count, seconds) in [(9, 2), (9, 12), (3, 5), (1, 4), (4, 15)] {
        let images = colours[..count].iter().map(|one| flat(*one)).collect();
        let (spec, materials) = job(seconds, "A walk by the sea. Then home.", images, Vec::new());
        let tape = whole_of(&spec, &materials);
        let nearest = |frame: &Vec<u8>| {
            let own = mean(frame, SMALL, (0.3, 0.7), (0.2, 0.6));
            let apart = |colour: &[u8; 3]| {
                let parts = colour.iter().zip(own);
                parts.map(|(a, b)| (f64::from(*a) - b).abs()).sum::<f64>()
            };
            let best = (0..count)
                .min_by(|a, b| apart(&colours[*a]).total_cmp(&apart(&colours[*b])))
                .unwrap();
            // The hour's light moves a colour by less than 30, a dissolve by more than 60.
            (apart(&colours[best]) < 40.0).then_some(best)
        };
        let mut seen: Vec<usize> = tape.frames.iter().filter_map(nearest).collect();
        for image in 0..count {
            let shown = seen.iter().filter(|one| **one == image).count();
            let even = tape.frames.len() / count;
            assert!(
                shown >= 3 && shown >= even * 2 / 5,
                "{count} in {seconds} s: {image} in {shown} frames"
            );
        }
        seen.dedup();
        assert!(seen.is_sorted(), "{count} in {seconds} s: {seen:?}");
    }
}

#[test]
fn the_reference_sound_is_heard_as_it_is() {
    let (one, two) = (swelling(2.0, 0.6), swelling(1.5, 0.4));
    let input = [one.pcm.clone(), two.pcm.clone()].concat();
    let (spec, materials) = job(5, "a slow walk", vec![flat([90, 90, 90])], vec![one, two]);
    let pcm = whole_of(&spec, &materials).pcm;
    assert_eq!(pcm.len(), 5 * 48_000 * 2);
    assert!(pcm.iter().all(|sample| sample.abs() <= 1.0));
    let wide = |pcm: &[f32]| pcm.iter().map(|s| f64::from(*s)).collect::<Vec<f64>>();
    let first = 19 * 9_600;
    let heard = correlation(&wide(&pcm[..first]), &wide(&input[..first]));
    assert!(heard > 0.99, "the first: {heard:.3}");
    // The join takes 40 ms; from there on the second, that much earlier.
    let (from, count) = (2 * 96_000, 96_000);
    let heard = correlation(
        &wide(&pcm[from..from + count]),
        &wide(&input[from + 3_840..from + 3_840 + count]),
    );
    assert!(heard > 0.9, "the second: {heard:.3}");
    let end = &pcm[pcm.len() - 200..];
    assert!(end.iter().all(|sample| sample.abs() < 0.01));
}

#[test]
fn the_picture_moves_with_the_loudness() {
    let sound = swelling(5.0, 0.7);
    let (spec, materials) = job(
        5,
        "static shot",
        vec![flat([150, 140, 130])],
        vec![sound.clone()],
    );
    let tape = whole_of(&spec, &materials);
    let range = 12..96;
    let loud: Vec<f64> = range
        .clone()
        .map(|frame| {
            let part = &sound.pcm[frame * 4_000..(frame + 1) * 4_000];
            part.iter()
                .map(|s| f64::from(*s).powi(2))
                .sum::<f64>()
                .sqrt()
        })
        .collect();
    let light: Vec<f64> = range
        .map(|at| mean(&tape.frames[at], SMALL, (0.2, 0.8), (0.2, 0.6))[0])
        .collect();
    let together = correlation(&loud, &light);
    assert!(together > 0.7, "{together:.2}");
    let spread =
        light.iter().copied().fold(0.0, f64::max) - light.iter().copied().fold(255.0, f64::min);
    assert!((4.0..40.0).contains(&spread), "{spread:.1}");
}

#[test]
fn without_a_sound_track_the_picture_still_moves_with_the_loudness() {
    let (heard, materials) = job(
        2,
        "a walk",
        vec![flat([9, 90, 90])],
        vec![swelling(2.0, 0.5)],
    );
    let silent = VideoSpec {
        generate_audio: false,
        ..heard.clone()
    };
    assert!(engine(1).plan(&heard, &materials).unwrap().audio);
    assert!(!engine(1).plan(&silent, &materials).unwrap().audio);
    let tape = whole_of(&silent, &materials);
    assert!(tape.pcm.is_empty());
    assert!(tape.frames == whole_of(&heard, &materials).frames);
}

#[test]
fn clips_from_references_conform() {
    let images = vec![
        picture(Size::new(300, 300), 0.1),
        picture(Size::new(300, 700), 0.5),
    ];
    let (spec, materials) = job(
        3,
        "a fox. Then a boat.",
        images.clone(),
        vec![swelling(1.0, 1.0)],
    );
    conformance::check(&engine(2), &spec, &materials).unwrap();
    let (mut spec, materials) = job(3, "a fox. Then a boat.", images, Vec::new());
    spec.generate_audio = false;
    conformance::check(&engine(2), &spec, &materials).unwrap();
}

#[test]
fn pictures_of_another_shape_are_shown_whole() {
    let images = vec![
        picture(Size::new(300, 700), 0.05),
        picture(Size::new(640, 480), 0.4),
        picture(Size::new(700, 300), 0.7),
    ];
    let (spec, materials) = job(
        6,
        "Portraits of a family, at golden hour.",
        images,
        Vec::new(),
    );
    let tape = whole_of(&spec, &materials);
    sheet("references", &tape.frames, SMALL);
    // The tall picture's left and right thirds are its own dark, soft ground.
    let frame = &tape.frames[12];
    let side = mean(frame, SMALL, (0.02, 0.2), (0.2, 0.6));
    let middle = mean(frame, SMALL, (0.45, 0.55), (0.2, 0.6));
    assert!(side.iter().sum::<f64>() < 0.75 * middle.iter().sum::<f64>());
}
