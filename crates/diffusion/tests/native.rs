//! A loaded model from prompt to frames, through the C++ library. Needs weights: the folder that
//! `KINORA_DIFFUSION_WEIGHTS` names, as the example `random_weights` writes it; without it, nothing
//! is tested here, and that is said.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use kinora_contract::limits::PROMPT_CHARS_MAX;
use kinora_contract::{FrameSize, Inputs, SPEC_VERSION, Seconds, Size, VideoSpec};
use kinora_diffusion::{Family, Model, Native, Settings, check};
use kinora_engine::{
    Clip, Control, Description, Engine, EngineError, Footage, Job, Materials, Picture, Playback,
    Sink, conformance,
};

const FOLDER: &str = "KINORA_DIFFUSION_WEIGHTS";

/// The least that the library takes: one token of the transformer, two frames of latents.
const SIZE: Size = Size::new(16, 16);
const FPS: u32 = 5;

fn settings() -> Option<Settings> {
    let folder = PathBuf::from(std::env::var_os(FOLDER)?);
    let text = std::fs::read_to_string(folder.join("settings.toml")).unwrap();
    let read: Settings = toml::from_str(&text).unwrap();
    let at = |path: &Path| folder.join(path);
    Some(Settings {
        diffusion_model: at(&read.diffusion_model),
        vae: at(&read.vae),
        text_encoder: at(&read.text_encoder),
        fps: Some(FPS),
        steps: Some(2),
        guidance: Some(1.0),
        ..read
    })
}

fn spec(inputs: Inputs) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "test".to_owned(),
        prompt: "a fox (16:9) in the snow".to_owned(),
        negative_prompt: None,
        seconds: Seconds::Fixed(1),
        frame: FrameSize::Fixed(SIZE),
        seed: 7,
        generate_audio: false,
        inputs,
        draft: false,
        final_of: None,
        edit: None,
    }
}

#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

impl Sink for Frames {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        self.0.push(rgb.to_vec());
        Ok(())
    }

    fn audio(&mut self, _pcm: &[f32]) -> Result<(), EngineError> {
        Err(EngineError::Failed("sound of a silent model".to_owned()))
    }
}

fn frames(engine: &dyn Engine, spec: &VideoSpec, materials: &Materials) -> Vec<Vec<u8>> {
    let clip = engine.plan(spec, materials).unwrap();
    let mut sink = Frames::default();
    let job = Job {
        spec,
        materials,
        clip,
    };
    let begin = Instant::now();
    engine
        .generate(&job, &mut sink, &Control::default())
        .unwrap();
    println!("{} of {} in {:?}", sink.0.len(), clip.size, begin.elapsed());
    sink.0
}

#[test]
fn from_words_to_frames() {
    let Some(settings) = settings() else {
        println!("{FOLDER} is not set: nothing was tested");
        return;
    };
    println!("{}", check(&settings));
    let begin = Instant::now();
    let family = settings.family;
    let native = Native::load(Model::new("test", settings).unwrap()).unwrap();
    println!("opened in {:?}", begin.elapsed());
    let seen: Arc<Mutex<Vec<Picture>>> = Arc::default();
    let previews = Arc::clone(&seen);
    native.on_preview(move |picture| previews.lock().unwrap().push(picture));
    let engine = native;

    let first = frames(&engine, &spec(Inputs::Text), &Materials::default());
    assert_eq!(first.len(), 5);
    let flat = |frame: &Vec<u8>| frame.iter().all(|byte| *byte == frame[0]);
    assert!(!first.iter().any(flat), "frames have contents");
    let previewed = seen.lock().unwrap().len();
    assert_eq!(previewed, 2, "a preview for each step");

    // Not a multiple of sixteen: rendered larger and cropped. And the longest prompt there is.
    let odd = VideoSpec {
        prompt: "狐".repeat(PROMPT_CHARS_MAX),
        frame: FrameSize::Fixed(Size::new(22, 18)),
        ..spec(Inputs::Text)
    };
    let cropped = frames(&engine, &odd, &Materials::default());
    assert!(cropped.iter().all(|frame| frame.len() == 22 * 18 * 3));

    if family == Family::WanVace {
        controlled(&engine);
    }
    conformance::check(&engine, &spec(Inputs::Text), &Materials::default()).unwrap();
}

/// Two experts take turns; here the same file is both.
#[test]
fn the_steps_of_two_experts_are_one_row() {
    let Some(settings) = settings().filter(|settings| settings.family == Family::Wan) else {
        println!("{FOLDER} names no Wan model: nothing was tested");
        return;
    };
    let settings = Settings {
        high_noise_diffusion_model: Some(settings.diffusion_model.clone()),
        steps: Some(4),
        ..settings
    };
    let native = Native::load(Model::new("test", settings).unwrap()).unwrap();
    let control = Control::default();
    let progress = control.progress.clone();
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    let fractions = Arc::clone(&seen);
    native.on_preview(move |_| fractions.lock().unwrap().push(progress.fraction()));
    let (spec, materials) = (spec(Inputs::Text), Materials::default());
    let clip = native.plan(&spec, &materials).unwrap();
    let job = Job {
        spec: &spec,
        materials: &materials,
        clip,
    };
    let mut sink = Frames::default();
    native.generate(&job, &mut sink, &control).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    println!("before each step: {seen:?}");
}

/// A source of frames of one colour.
#[derive(Debug)]
struct Grey(u8);

impl Footage for Grey {
    fn size(&self) -> Size {
        SIZE
    }

    fn fps(&self) -> u32 {
        3
    }

    fn frames(&self) -> u32 {
        3
    }

    fn play(&self) -> Result<Box<dyn Playback>, EngineError> {
        Ok(Box::new(Shown(self.0, 3)))
    }
}

struct Shown(u8, u32);

impl Playback for Shown {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(left) = self.1.checked_sub(1) else {
            return Ok(None);
        };
        self.1 = left;
        Ok(Some(vec![self.0; SIZE.pixels() as usize * 3]))
    }
}

/// Whether a source and a reference image have their say.
fn controlled(engine: &dyn Engine) {
    let edited = |grey: u8, strength: f64| {
        let materials = Materials {
            source: Some(Arc::new(Grey(grey))),
            ..Materials::default()
        };
        let edit = kinora_contract::Edit {
            task_id: "video_00000000000000000000000000".parse().unwrap(),
            strength,
        };
        let spec = VideoSpec {
            edit: Some(edit),
            ..spec(Inputs::Text)
        };
        frames(engine, &spec, &materials)
    };
    let (dark, light) = (edited(10, 0.2), edited(240, 0.2));
    assert_eq!((dark.len(), light.len()), (5, 5));
    assert_ne!(dark, light, "the source is looked at");
    assert_eq!(edited(10, 1.0), edited(240, 1.0), "at 1.0 it is not");

    let referred = |grey: u8| {
        let inputs = Inputs::References {
            images: vec!["https://a.example/1.png".to_owned()],
            audios: Vec::new(),
        };
        let picture = Picture {
            size: SIZE,
            rgb: vec![grey; SIZE.pixels() as usize * 3],
        };
        let materials = Materials {
            images: vec![picture],
            ..Materials::default()
        };
        frames(engine, &spec(inputs), &materials)
    };
    assert_ne!(referred(10), referred(240), "the reference is looked at");
}
