//! The features of models, and the parameters of requests.

use std::sync::Arc;

use kinora_contract::{FrameSize, Resolution, SPEC_VERSION, TaskId, size::listed_sizes};
use kinora_engine::{RgbPicture, SourceVideo, VideoPlayback};
use proptest::prelude::*;

use super::*;
use crate::{Family, Variant};

fn settings(family: Family) -> Settings {
    Settings::new(family, "model.gguf", "vae.safetensors", "text.gguf")
}

fn model(settings: Settings) -> Model {
    Model::new("test", settings).unwrap()
}

fn of(family: Family) -> Model {
    model(settings(family))
}

fn wan(variant: Variant) -> Model {
    model(Settings {
        variant: Some(variant),
        ..settings(Family::Wan)
    })
}

fn spec(size: Size, seconds: u32) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "test".to_owned(),
        prompt: "a (quiet) fox".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(seconds),
        frame: FrameSize::Fixed(size),
        seed: 7,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    }
}

fn task() -> TaskId {
    "video_00000000000000000000000000".parse().unwrap()
}

fn edit(strength: f64) -> EditSpec {
    EditSpec {
        task_id: task(),
        strength,
    }
}

fn picture() -> Option<RgbPicture> {
    Some(RgbPicture {
        size: Size::new(2, 2),
        rgb: vec![9; 12],
    })
}

fn frames(last: bool) -> VideoInputs {
    VideoInputs::Frames {
        first: "https://a.example/1.png".to_owned(),
        last: last.then(|| "https://a.example/2.png".to_owned()),
    }
}

fn references(images: usize, audios: usize) -> VideoInputs {
    let urls = |count| vec!["https://a.example/x".to_owned(); count];
    VideoInputs::References {
        images: urls(images),
        audios: urls(audios),
    }
}

#[derive(Debug)]
struct Source(Size, u32, u32);

impl SourceVideo for Source {
    fn size(&self) -> Size {
        self.0
    }
    fn fps(&self) -> u32 {
        self.1
    }
    fn frames(&self) -> u32 {
        self.2
    }
    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        Err(EngineError::Failed("not played here".to_owned()))
    }
}

fn everything() -> JobMaterials {
    JobMaterials {
        first_frame: picture(),
        last_frame: picture(),
        images: picture().into_iter().collect(),
        audios: Vec::new(),
        source: Some(Arc::new(Source(Size::new(854, 480), 24, 48))),
        script: Vec::new(),
    }
}

#[test]
fn a_model_offers_what_its_family_can_and_nothing_else() {
    let features = |model: &Model| model.describe().features;
    let nothing = Features {
        text_to_video: true,
        negative_prompt: true,
        ..Features::default()
    };
    let first = Features {
        first_frame: true,
        ..nothing
    };
    let both = Features {
        last_frame: true,
        ..first
    };
    assert_eq!(features(&of(Family::Wan)), nothing);
    let pictured = |features| Features {
        text_to_video: false,
        ..features
    };
    assert_eq!(features(&wan(Variant::I2v)), pictured(first));
    assert_eq!(features(&wan(Variant::Flf2v)), pictured(both));
    assert_eq!(features(&wan(Variant::Ti2v)), both);
    let vace = Features {
        reference_images_max: 1,
        draft: true,
        edit: true,
        ..nothing
    };
    assert_eq!(features(&of(Family::WanVace)), vace);
    assert_eq!(features(&of(Family::Ltx)), both);
    let loud = Settings {
        audio_vae: Some("audio.safetensors".into()),
        ..settings(Family::Ltx)
    };
    assert!(features(&model(loud)).audio_output);
    let distilled = Settings {
        guidance: Some(1.0),
        ..settings(Family::Wan)
    };
    assert!(!features(&model(distilled)).negative_prompt);
}

fn assert_refused(model: &Model, change: impl FnOnce(&mut VideoSpec)) {
    let mut spec = spec(Size::new(854, 480), 5);
    change(&mut spec);
    let refused = model.plan(&spec, &everything());
    assert!(
        matches!(refused, Err(EngineError::Unsupported(_))),
        "{:?} {spec:?}: {refused:?}",
        model.settings()
    );
}

#[test]
fn what_is_not_offered_is_refused_and_never_dropped() {
    assert_refused(&of(Family::Wan), |spec| spec.inputs = frames(false));
    assert_refused(&wan(Variant::I2v), |spec| spec.inputs = frames(true));
    assert_refused(&wan(Variant::I2v), |spec| spec.inputs = VideoInputs::Text);
    assert_refused(&of(Family::WanVace), |spec| spec.inputs = references(2, 0));
    assert_refused(&of(Family::WanVace), |spec| spec.inputs = references(1, 1));
    assert_refused(&of(Family::Ltx), |spec| spec.generate_audio = true);
    assert_refused(&of(Family::Ltx), |spec| spec.draft = true);
    assert_refused(&of(Family::Wan), |spec| spec.final_of = Some(task()));
    assert_refused(&of(Family::Wan), |spec| spec.seconds = VideoLength::Auto);
    assert_refused(&of(Family::Wan), |spec| spec.edit = Some(edit(0.5)));
    let unguided = model(Settings {
        guidance: Some(1.0),
        ..settings(Family::Wan)
    });
    assert_refused(&unguided, |spec| {
        spec.negative_prompt = Some("blur".to_owned());
    });
}

#[test]
fn missing_material_is_the_service_s_fault() {
    let size = Size::new(854, 480);
    let first = VideoSpec {
        inputs: frames(false),
        ..spec(size, 5)
    };
    let failed = wan(Variant::I2v).plan(&first, &JobMaterials::default());
    assert!(matches!(failed, Err(EngineError::Failed(_))), "{failed:?}");
    let last_of_draft = VideoSpec {
        final_of: Some(task()),
        ..spec(size, 5)
    };
    let failed = of(Family::WanVace).plan(&last_of_draft, &JobMaterials::default());
    assert!(matches!(failed, Err(EngineError::Failed(_))), "{failed:?}");
}

#[test]
fn five_seconds_of_wan_are_eighty_of_eighty_one_frames() {
    let made = of(Family::Wan)
        .generation(&spec(Size::new(854, 480), 5), &JobMaterials::default())
        .unwrap();
    assert_eq!(made.rendered, Size::new(864, 480));
    assert_eq!((made.crop.left, made.crop.top), (5, 0));
    assert_eq!((made.frames, made.keep), (81, FrameSelection::First(80)));
    assert_eq!((made.steps, made.seed, made.fps), (30, 7, 16));
    assert_eq!(made.prompt, "a \\(quiet) fox");
    assert_eq!((made.initial, made.end, made.control), (None, None, false));
}

#[test]
fn ltx_works_on_its_own_grid() {
    let made = of(Family::Ltx)
        .generation(&spec(Size::new(1280, 720), 5), &JobMaterials::default())
        .unwrap();
    assert_eq!(made.rendered, Size::new(1280, 736));
    assert_eq!((made.frames, made.keep), (121, FrameSelection::First(120)));
    // Its prompts go through the same parser.
    assert_eq!(made.prompt, "a \\(quiet) fox");
}

#[test]
fn a_given_last_frame_stays_the_last() {
    let both = VideoSpec {
        inputs: frames(true),
        ..spec(Size::new(854, 480), 5)
    };
    let made = wan(Variant::Flf2v)
        .generation(&both, &everything())
        .unwrap();
    assert_eq!(made.initial, Some(Given::FirstFrame));
    assert_eq!(made.end, Some(Given::LastFrame));
    assert_eq!(made.keep, FrameSelection::Spread(80));
    assert_eq!(made.keep.source(79, made.frames), 80);
}

#[test]
fn an_edit_is_as_large_and_as_long_as_its_source() {
    let edited = |strength| VideoSpec {
        edit: Some(edit(strength)),
        ..spec(Size::new(1280, 720), 15)
    };
    let vace = of(Family::WanVace);
    let made = vace.generation(&edited(0.0), &everything()).unwrap();
    assert_eq!(made.clip().size, Size::new(854, 480));
    assert_eq!((made.clip().frames, made.fps), (32, 16));
    assert!(made.control && (made.control_strength - 1.0).abs() < 1e-6);
    // 16 frames of the model are 24 of the source.
    assert_eq!(made.control_frame(16, 24, 48), 24);
    assert_eq!(made.control_frame(32, 24, 48), 47);
    let free = vace.generation(&edited(1.0), &everything()).unwrap();
    assert!(free.control_strength.abs() < 1e-6);
}

#[test]
fn a_draft_is_small_and_quick_and_its_final_follows_it() {
    let vace = of(Family::WanVace);
    let draft = VideoSpec {
        draft: true,
        ..spec(Size::new(1920, 1080), 4)
    };
    let made = vace.generation(&draft, &JobMaterials::default()).unwrap();
    assert_eq!(made.clip().size, Size::new(854, 480));
    assert_eq!((made.steps, made.control), (12, false));
    let last = VideoSpec {
        final_of: Some(task()),
        ..spec(Size::new(1920, 1080), 4)
    };
    let made = vace.generation(&last, &everything()).unwrap();
    assert_eq!(made.clip().size, Size::new(1920, 1080));
    assert_eq!(
        (made.steps, made.control, made.clip().frames),
        (30, true, 64)
    );
}

#[test]
fn an_undecided_shape_is_refused() {
    let adaptive = VideoSpec {
        frame: FrameSize::Adaptive(Resolution::P480),
        ..spec(Size::new(2, 2), 5)
    };
    assert!(
        of(Family::Wan)
            .plan(&adaptive, &JobMaterials::default())
            .is_err()
    );
}

fn any_model() -> impl Strategy<Value = Model> {
    prop_oneof![
        Just(of(Family::Wan)),
        Just(wan(Variant::Ti2v)),
        Just(of(Family::WanVace)),
        Just(of(Family::Ltx)),
    ]
}

proptest! {
    #[test]
    fn what_is_rendered_has_room_for_what_is_handed_over(
        model in any_model(),
        size in proptest::sample::select(listed_sizes()),
        seconds in 1_u32..=15,
        seed: u32,
    ) {
        let spec = VideoSpec { seed, ..spec(size, seconds) };
        let made = model.generation(&spec, &JobMaterials::default()).unwrap();
        let traits = model.settings().traits();
        prop_assert_eq!(made.rendered.width % traits.size_multiple, 0);
        prop_assert_eq!(made.rendered.height % traits.size_multiple, 0);
        prop_assert!(made.crop.left + made.crop.size.width <= made.rendered.width);
        prop_assert!(made.crop.top + made.crop.size.height <= made.rendered.height);
        prop_assert!(made.rendered.width - size.width < traits.size_multiple);
        prop_assert_eq!(made.frames % traits.frame_step, 1);
        prop_assert!(made.frames >= made.keep.count());
        prop_assert!(made.frames - made.keep.count() < traits.frame_step);
        let clip = made.clip();
        prop_assert_eq!((clip.size, clip.frames), (size, seconds * clip.fps));
        prop_assert!(made.seed >= 0 && made.seed == i64::from(seed));
        prop_assert_eq!(model.plan(&spec, &JobMaterials::default()).unwrap(), clip);
    }

    #[test]
    fn spread_frames_keep_both_ends_and_their_order(rendered in 2_u32..500, dropped in 0_u32..8) {
        let count = rendered.saturating_sub(dropped).max(2);
        let keep = FrameSelection::Spread(count);
        let picked: Vec<u32> = (0..count).map(|i| keep.source(i, rendered)).collect();
        prop_assert_eq!(picked[0], 0);
        prop_assert_eq!(*picked.last().unwrap(), rendered - 1);
        prop_assert!(picked.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn control_frames_never_run_backwards_or_out(fps in 1_u32..60, frames in 1_u32..400) {
        let made = of(Family::WanVace)
            .generation(&spec(Size::new(64, 64), 3), &JobMaterials::default())
            .unwrap();
        let picked: Vec<u32> =
            (0..made.frames).map(|i| made.control_frame(i, fps, frames)).collect();
        prop_assert!(picked.is_sorted() && picked.iter().all(|index| *index < frames));
    }
}
