//! A loaded model from prompt to frames and sound, through the C++ library. Needs weights: the
//! folder that `KINORA_DIFFUSION_WEIGHTS` names, as the example `random_weights` writes it; without
//! it, nothing is tested here, and that is said.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod given;
mod machine;
mod support;

use kinora_contract::limits::PROMPT_CHARS_MAX;
use kinora_contract::{FrameSize, Size, VideoInputs, VideoSpec};
use kinora_engine::{ClipPlanner, JobMaterials, conformance};
use kinora_engine_diffusion::{Family, Model, Native, Settings, check};
use support::{FPS, film, frames, open, picture, settings, spec, watched};

/// Set where a clip takes minutes: leaves out the longest prompt, which takes far more, and what
/// ends a clip early, which no model has a part in.
const QUICK: &str = "KINORA_DIFFUSION_QUICK";

#[test]
fn from_words_and_pictures_to_frames() {
    let Some(settings) = settings() else { return };
    println!("{}", check(&settings));
    let family = settings.family;
    let engine = open(settings);
    let (asked, materials) = simplest(&engine);
    let (first, shown) = watched(&engine, &asked, &materials);
    assert_eq!(first.frames.len(), FPS as usize);
    assert_eq!(shown.len(), 2, "a preview of each step");
    assert!(shown.iter().all(|(_, picture)| picture.size.pixels() > 0));
    if engine.describe().features.first_frame {
        given::first_and_last(&engine);
    }
    if family == Family::WanVace {
        given::source_and_reference(&engine);
    }
    if std::env::var_os(QUICK).is_some() {
        println!("{QUICK} is set: no long prompt, nothing that ends early");
        conformance::outline(&engine, &asked, &materials).unwrap();
        conformance::repeats(&engine, &asked, &materials).unwrap();
        return;
    }
    // Not a multiple of sixteen: rendered larger and cropped. And the longest prompt there is.
    let odd = VideoSpec {
        prompt: "狐".repeat(PROMPT_CHARS_MAX),
        frame: FrameSize::Fixed(Size::new(22, 18)),
        ..asked.clone()
    };
    film(&engine, &odd, &materials);
    conformance::check(&engine, &asked, &materials).unwrap();
}

/// A request of words alone, or of a first frame where words are not enough.
fn simplest(engine: &Native) -> (VideoSpec, JobMaterials) {
    match engine.describe().features.text_to_video {
        true => (spec(engine, VideoInputs::Text), JobMaterials::default()),
        false => {
            let materials = JobMaterials {
                first_frame: Some(picture(90)),
                ..JobMaterials::default()
            };
            (spec(engine, frames(false)), materials)
        }
    }
}

/// Two experts take turns; here the same file is both.
#[test]
fn the_steps_of_two_experts_are_one_row() {
    let Some(settings) = settings().filter(|settings| settings.family == Family::Wan) else {
        println!("no Wan model: nothing was tested");
        return;
    };
    let settings = Settings {
        high_noise_diffusion_model: Some(settings.diffusion_model.clone()),
        steps: Some(4),
        ..settings
    };
    let engine = open(settings);
    let (spec, materials) = simplest(&engine);
    let (_, shown) = watched(&engine, &spec, &materials);
    let fractions: Vec<f64> = shown.iter().map(|(fraction, _)| *fraction).collect();
    println!("at each step: {fractions:?}");
    assert_eq!(fractions.len(), 4, "a preview of each step");
    // Seen before or after the step is counted.
    let grows = |pair: &[f64]| pair[0] < pair[2];
    assert!(fractions.is_sorted() && fractions.windows(3).all(grows));
}

/// Without an accelerator the library ends the process where it makes sound; that is said before.
#[test]
fn sound_on_the_processor_is_refused() {
    let Some(settings) = settings().filter(|settings| settings.family == Family::Ltx) else {
        println!("no LTX model: nothing was tested");
        return;
    };
    let settings = Settings {
        audio_vae: Some(settings.vae.clone()),
        backend: Some("cpu".to_owned()),
        ..settings
    };
    let refused = Native::load(Model::new("test", settings).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("audio_vae"), "{refused}");
}
