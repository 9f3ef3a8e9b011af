//! The real server with weights; without them nothing is tested here, and that is said.

use std::time::Instant;

use kinora_contract::limits::PROMPT_CHARS_MAX;
use kinora_contract::{FrameSize, Size, VideoInputs, VideoSpec};
use kinora_engine::{ClipPlanner, EngineError, JobControl, JobMaterials, conformance};
use kinora_engine_sdcpp::{Family, Model, START_LIMIT, ServerEngine, Settings, Variant, check};

use crate::given;
use crate::support::{
    FPS, SIZE, children, film, frames, make, open, picture, settings, spec, watched,
};

/// Set where a clip takes minutes: leaves out the longest prompt, which takes far more, and what
/// ends a clip early, which no model has a part in.
const QUICK: &str = "KINORA_SDCPP_QUICK";

#[test]
fn from_words_and_pictures_to_frames() {
    let Some(settings) = settings() else { return };
    println!("{}", check(&settings));
    let family = settings.family;
    let engine = open(settings);
    let (asked, materials) = simplest(&engine);
    let (first, fractions) = watched(&engine, &asked, &materials);
    assert_eq!(first.frames.len(), FPS as usize);
    // Words, two steps, frames.
    assert!(
        fractions.is_sorted() && fractions.len() > 4,
        "{fractions:?}"
    );
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
fn simplest(engine: &ServerEngine) -> (VideoSpec, JobMaterials) {
    if engine.describe().features.text_to_video {
        return (spec(engine, VideoInputs::Text), JobMaterials::default());
    }
    let materials = JobMaterials {
        first_frame: Some(picture(90)),
        ..JobMaterials::default()
    };
    (spec(engine, frames(false)), materials)
}

#[test]
fn a_cancel_in_the_middle_of_a_step_is_obeyed_at_once() {
    let Some(settings) = settings() else { return };
    let engine = open(settings);
    let (spec, materials) = simplest(&engine);
    let control = JobControl::default();
    let server = children("sd-server")[0];
    std::thread::scope(|scope| {
        let making = scope.spawn(|| make(&engine, &spec, &materials, None, &control));
        // The first step is done, and the second one under way.
        while control.progress.fraction() < 0.4 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let begun = Instant::now();
        control.cancel.cancel();
        assert!(matches!(
            making.join().unwrap(),
            Err(EngineError::Cancelled)
        ));
        println!("cancelled in {:?}", begun.elapsed());
    });
    assert!(!children("sd-server").contains(&server));
    film(&engine, &spec, &materials);
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
    let (_, fractions) = watched(&engine, &spec, &materials);
    println!("on the way: {fractions:?}");
    assert!(fractions.is_sorted() && fractions.len() > 6);
}

#[test]
fn where_weights_lie_and_tiles_change_no_outline() {
    let Some(settings) = settings() else { return };
    if !matches!(settings.variant, None | Some(Variant::Ti2v)) || settings.family != Family::Wan {
        println!("no model of words: nothing was tested");
        return;
    }
    let least = Settings {
        fps: Some(1),
        steps: Some(1),
        ..settings
    };
    let made = |settings: Settings, size| {
        let engine = open(settings);
        let spec = VideoSpec {
            frame: FrameSize::Fixed(size),
            ..spec(&engine, VideoInputs::Text)
        };
        film(&engine, &spec, &JobMaterials::default())
    };
    let offloaded = Settings {
        offload_to_cpu: true,
        mmap: false,
        ..least.clone()
    };
    assert!(made(least.clone(), SIZE) == made(offloaded, SIZE));
    let tiled = Settings {
        vae_tiling: true,
        ..least
    };
    // More than one tile of the VAE, which are 256 pixels wide.
    made(tiled, Size::new(288, 160));
}

/// A model of which one file is missing does not load, and the server says why.
#[test]
fn a_missing_file_is_told() {
    let Some(settings) = settings() else { return };
    let broken = Settings {
        vae: "/no/such/vae.safetensors".into(),
        ..settings
    };
    let model = Model::new("test", broken).unwrap();
    let program = std::env::var_os("KINORA_SD_SERVER").unwrap();
    let error = ServerEngine::open(model, program.as_ref(), Vec::new(), START_LIMIT).unwrap_err();
    println!("{error}");
    let why = error.to_string();
    assert!(why.contains("vae"), "{why}");
    assert!(!why.contains("ggml_print_backtrace"), "{why}");
}
