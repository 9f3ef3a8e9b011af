//! What every test here needs: the settings of the folder, requests, pictures, and a sink that
//! keeps all.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kinora_contract::{
    FrameSize, ModelPreset, SPEC_VERSION, Size, VideoInputs, VideoLength, VideoSpec,
};
use kinora_engine::{
    CHANNELS, ClipPlan, ClipSink, Engine, EngineError, FrameJob, JobControl, JobMaterials,
    RgbPicture, SAMPLE_RATE_HZ,
};
use kinora_engine_sdcpp::{Model, START_LIMIT, ServerEngine, Settings};
use kinora_system::process::{ProcessEntry, living_processes};

const FOLDER: &str = "KINORA_SDCPP_WEIGHTS";
const PROGRAM: &str = "KINORA_SD_SERVER";

/// The least that Wan takes: one token of the transformer. Others are cropped to it.
pub(crate) const SIZE: Size = Size::new(16, 16);
pub(crate) const FPS: u32 = 5;

/// The settings of the folder, made quick; `None` where no folder is named.
pub(crate) fn settings() -> Option<Settings> {
    let folder = std::env::var_os(FOLDER).filter(|_| std::env::var_os(PROGRAM).is_some());
    let Some(folder) = folder.map(PathBuf::from) else {
        println!("{FOLDER} and {PROGRAM} are not set: nothing was tested");
        return None;
    };
    let text = std::fs::read_to_string(folder.join("settings.toml")).unwrap();
    let read: Settings = toml::from_str(&text).unwrap();
    let at = |path: &Path| folder.join(path);
    let given = |path: &Option<PathBuf>| path.as_deref().map(at);
    Some(Settings {
        diffusion_model: at(&read.diffusion_model),
        high_noise_diffusion_model: given(&read.high_noise_diffusion_model),
        vae: at(&read.vae),
        audio_vae: given(&read.audio_vae),
        text_encoder: at(&read.text_encoder),
        clip_vision: given(&read.clip_vision),
        embeddings_connectors: given(&read.embeddings_connectors),
        fps: Some(FPS),
        steps: Some(2),
        guidance: Some(1.0),
        ..read
    })
}

pub(crate) fn open(settings: Settings) -> ServerEngine {
    let begin = Instant::now();
    let model = Model::new("test", settings).unwrap();
    let program = std::env::var_os(PROGRAM).unwrap();
    let engine = ServerEngine::open(model, program.as_ref(), Vec::new(), START_LIMIT).unwrap();
    println!("opened in {:?}", begin.elapsed());
    engine
}

/// The example of this name, which cargo builds for these tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap();
    folder.join("examples").join(name)
}

/// The processes with an argument, or a program, of this name.
pub(crate) fn processes(name: &str) -> Vec<ProcessEntry> {
    let has_name = |entry: &ProcessEntry| {
        let line = std::fs::read_to_string(format!("/proc/{}/cmdline", entry.id));
        let line = line.unwrap_or_default();
        line.split('\0').any(|word| Path::new(word).ends_with(name))
    };
    let living = living_processes().unwrap().into_iter();
    living.filter(has_name).collect()
}

/// Those that are children of this one: the servers of one test.
pub(crate) fn children(name: &str) -> Vec<u32> {
    let own = processes(name).into_iter();
    let own = own.filter(|entry| entry.parent == std::process::id());
    own.map(|entry| entry.id).collect()
}

pub(crate) fn wait_for(what: &str, is_true: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A request, with sound where the model makes any.
pub(crate) fn spec(engine: &dyn Engine, inputs: VideoInputs) -> VideoSpec {
    VideoSpec {
        version: SPEC_VERSION,
        model: "test".to_owned(),
        prompt: "a fox (16:9) in the snow (well :.)".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(1),
        frame: FrameSize::Fixed(SIZE),
        seed: 7,
        generate_audio: engine.describe().features.audio_output,
        inputs,
        draft: false,
        final_of: None,
        edit: None,
    }
}

/// A request that starts from a picture, and ends with one where `last` says so.
pub(crate) fn frames(last: bool) -> VideoInputs {
    VideoInputs::Frames {
        first: "https://a.example/1.png".to_owned(),
        last: last.then(|| "https://a.example/2.png".to_owned()),
    }
}

/// A picture with a slope, so that no two of its pixels are alike.
pub(crate) fn picture(grey: u8) -> RgbPicture {
    let slope = (0..SIZE.pixels() as u32 * 3).map(|i| grey.saturating_add((i % 16) as u8));
    RgbPicture {
        size: SIZE,
        rgb: slope.collect(),
    }
}

/// All that a clip handed over.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Film {
    pub frames: Vec<Vec<u8>>,
    pub pcm: Vec<f32>,
}

impl ClipSink for Film {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        self.frames.push(rgb.to_vec());
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.pcm.extend_from_slice(pcm);
        Ok(())
    }
}

/// Makes a clip, and looks at what holds for each.
pub(crate) fn make(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
    preset: Option<&ModelPreset>,
    control: &JobControl,
) -> Result<Film, EngineError> {
    let clip = engine.plan(spec, materials)?;
    let mut film = Film::default();
    let job = FrameJob {
        spec,
        materials,
        clip,
        preset,
    };
    let begin = Instant::now();
    engine.generate(&job, &mut film, control)?;
    let (frames, size) = (clip.frames, clip.size);
    println!("{frames} frames of {size} in {:?}", begin.elapsed());
    looked_at(&film, &clip);
    Ok(film)
}

/// The same for an engine that can.
pub(crate) fn film(engine: &dyn Engine, spec: &VideoSpec, materials: &JobMaterials) -> Film {
    make(engine, spec, materials, None, &JobControl::default()).unwrap()
}

/// Makes the simplest clip under `control`, and forgets it.
pub(crate) fn generate(engine: &dyn Engine, control: &JobControl) -> Result<(), EngineError> {
    let spec = spec(engine, VideoInputs::Text);
    make(engine, &spec, &JobMaterials::default(), None, control).map(drop)
}

/// Makes a clip; returns it with each fraction that was seen on the way.
pub(crate) fn watched(
    engine: &dyn Engine,
    spec: &VideoSpec,
    materials: &JobMaterials,
) -> (Film, Vec<f64>) {
    let (control, mut seen) = (JobControl::default(), Vec::new());
    let mut look = || {
        let fraction = control.progress.fraction();
        if seen.last() != Some(&fraction) {
            seen.push(fraction);
        }
    };
    let film = thread::scope(|scope| {
        let making = scope.spawn(|| make(engine, spec, materials, None, &control));
        while !making.is_finished() {
            look();
            // A step takes far longer.
            thread::sleep(Duration::from_millis(1));
        }
        making.join().unwrap().unwrap()
    });
    look();
    (film, seen)
}

fn looked_at(film: &Film, clip: &ClipPlan) {
    assert_eq!(film.frames.len(), clip.frames as usize);
    let flat = |frame: &Vec<u8>| frame.iter().all(|byte| *byte == frame[0]);
    assert!(!film.frames.iter().any(flat), "frames have contents");
    let bytes = clip.size.pixels() as usize * 3;
    assert!(film.frames.iter().all(|frame| frame.len() == bytes));
    if clip.audio {
        let samples = clip.frames * SAMPLE_RATE_HZ / clip.fps * u32::from(CHANNELS);
        assert_eq!(film.pcm.len(), samples as usize);
        // The second half of a second: sound goes on to the end.
        let end = &film.pcm[film.pcm.len() / 2..];
        let moves = end.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(moves > end.len() / 10, "{moves} of {} samples", end.len());
    } else {
        assert!(film.pcm.is_empty());
    }
}
