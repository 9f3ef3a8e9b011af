//! The features of models, and the parameters of requests.

use std::sync::Arc;

use kinora_contract::{EditSpec, FrameSize, Resolution, SPEC_VERSION, TaskId, size::listed_sizes};
use kinora_engine::{RgbPicture, SourceVideo, VideoPlayback};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::settings::tests::settings;

fn model(more: &Value) -> Model {
    Model::new("test", settings(more)).unwrap()
}

fn of(family: &str) -> Model {
    model(&json!({ "family": family }))
}

fn wan(variant: &str) -> Model {
    model(&json!({ "variant": variant }))
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
    assert_eq!(features(&of("wan")), nothing);
    let pictured = |features| Features {
        text_to_video: false,
        ..features
    };
    assert_eq!(features(&wan("i2v")), pictured(first));
    assert_eq!(features(&wan("flf2v")), pictured(both));
    assert_eq!(features(&wan("ti2v")), both);
    let vace = Features {
        reference_images_max: 1,
        draft: true,
        edit: true,
        ..nothing
    };
    assert_eq!(features(&of("wan-vace")), vace);
    assert_eq!(features(&of("ltx")), both);
    let loud = model(&json!({"family": "ltx", "audio_vae": "audio.safetensors"}));
    assert!(features(&loud).audio_output);
    let distilled = model(&json!({"guidance": 1.0}));
    assert!(!features(&distilled).negative_prompt);
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
    assert_refused(&of("wan"), |spec| spec.inputs = frames(false));
    assert_refused(&wan("i2v"), |spec| spec.inputs = frames(true));
    assert_refused(&wan("i2v"), |spec| spec.inputs = VideoInputs::Text);
    assert_refused(&of("wan-vace"), |spec| spec.inputs = references(2, 0));
    assert_refused(&of("wan-vace"), |spec| spec.inputs = references(1, 1));
    assert_refused(&of("ltx"), |spec| spec.generate_audio = true);
    assert_refused(&of("ltx"), |spec| spec.draft = true);
    assert_refused(&of("wan"), |spec| spec.final_of = Some(task()));
    assert_refused(&of("wan"), |spec| spec.seconds = VideoLength::Auto);
    assert_refused(&of("wan"), |spec| spec.edit = Some(edit(0.5)));
    let unguided = model(&json!({"guidance": 1.0}));
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
    let failed = wan("i2v").plan(&first, &JobMaterials::default());
    assert!(matches!(failed, Err(EngineError::Failed(_))), "{failed:?}");
    let last_of_draft = VideoSpec {
        final_of: Some(task()),
        ..spec(size, 5)
    };
    let failed = of("wan-vace").plan(&last_of_draft, &JobMaterials::default());
    assert!(matches!(failed, Err(EngineError::Failed(_))), "{failed:?}");
}

#[test]
fn five_seconds_of_wan_are_eighty_of_eighty_one_frames() {
    let (model, none) = (of("wan"), JobMaterials::default());
    let made = model
        .generation(&spec(Size::new(854, 480), 5), &none)
        .unwrap();
    assert_eq!(made.rendered, Size::new(864, 480));
    assert_eq!((made.crop.left, made.crop.top), (5, 0));
    assert_eq!((made.frames, made.keep), (81, FrameSelection::First(80)));
    assert_eq!((made.steps, made.seed, made.fps), (30, 7, 16));
    assert_eq!(made.prompt, "a \\(quiet) fox");
    assert_eq!((made.initial, made.end), (None, None));
    assert!(made.control.is_none());
}

#[test]
fn ltx_works_on_its_own_grid() {
    let (model, none) = (of("ltx"), JobMaterials::default());
    let made = model
        .generation(&spec(Size::new(1280, 720), 5), &none)
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
    let given = everything();
    let made = wan("flf2v").generation(&both, &given).unwrap();
    assert_eq!(made.initial, given.first_frame.as_ref());
    assert_eq!(made.end, given.last_frame.as_ref());
    assert_eq!(made.keep, FrameSelection::Spread(80));
    assert_eq!(made.keep.source(79, made.frames), 80);
}

#[test]
fn an_edit_is_as_large_and_as_long_as_its_source() {
    let edited = |strength| VideoSpec {
        edit: Some(edit(strength)),
        ..spec(Size::new(1280, 720), 15)
    };
    let (vace, given) = (of("wan-vace"), everything());
    let made = vace.generation(&edited(0.0), &given).unwrap();
    assert_eq!(made.clip().size, Size::new(854, 480));
    assert_eq!((made.clip().frames, made.fps), (32, 16));
    assert!(made.control.is_some() && (made.control_strength - 1.0).abs() < 1e-6);
    // 16 frames of the model are 24 of the source.
    assert_eq!(made.control_frame(16, 24, 48), 24);
    assert_eq!(made.control_frame(32, 24, 48), 47);
    let free = vace.generation(&edited(1.0), &given).unwrap();
    assert!(free.control_strength.abs() < 1e-6);
}

#[test]
fn a_draft_is_small_and_quick_and_its_final_follows_it() {
    let (vace, none, given) = (of("wan-vace"), JobMaterials::default(), everything());
    let draft = VideoSpec {
        draft: true,
        ..spec(Size::new(1920, 1080), 4)
    };
    let made = vace.generation(&draft, &none).unwrap();
    assert_eq!(made.clip().size, Size::new(854, 480));
    assert_eq!((made.steps, made.control.is_some()), (12, false));
    let last = VideoSpec {
        final_of: Some(task()),
        ..spec(Size::new(1920, 1080), 4)
    };
    let made = vace.generation(&last, &given).unwrap();
    assert_eq!(made.clip().size, Size::new(1920, 1080));
    assert_eq!(
        (made.steps, made.control.is_some(), made.clip().frames),
        (30, true, 64)
    );
}

#[test]
fn an_undecided_shape_is_refused() {
    let adaptive = VideoSpec {
        frame: FrameSize::Adaptive(Resolution::P480),
        ..spec(Size::new(2, 2), 5)
    };
    assert!(of("wan").plan(&adaptive, &JobMaterials::default()).is_err());
}

fn any_model() -> impl Strategy<Value = Model> {
    prop_oneof![
        Just(of("wan")),
        Just(wan("ti2v")),
        Just(of("wan-vace")),
        Just(of("ltx")),
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
        let none = JobMaterials::default();
        let made = model.generation(&spec, &none).unwrap();
        let grid = model.settings().traits().grid;
        prop_assert_eq!(made.rendered.width % grid.size_multiple, 0);
        prop_assert_eq!(made.rendered.height % grid.size_multiple, 0);
        prop_assert!(made.crop.left + made.crop.size.width <= made.rendered.width);
        prop_assert!(made.crop.top + made.crop.size.height <= made.rendered.height);
        prop_assert!(made.rendered.width - size.width < grid.size_multiple);
        prop_assert_eq!(made.frames % grid.frame_step, 1);
        prop_assert!(made.frames >= made.keep.count());
        prop_assert!(made.frames - made.keep.count() < grid.frame_step);
        let clip = made.clip();
        prop_assert_eq!((clip.size, clip.frames), (size, seconds * clip.fps));
        prop_assert!(made.seed == seed);
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
        let (model, none) = (of("wan-vace"), JobMaterials::default());
        let made = model.generation(&spec(Size::new(64, 64), 3), &none).unwrap();
        let picked: Vec<u32> =
            (0..made.frames).map(|i| made.control_frame(i, fps, frames)).collect();
        prop_assert!(picked.is_sorted() && picked.iter().all(|index| *index < frames));
    }
}
