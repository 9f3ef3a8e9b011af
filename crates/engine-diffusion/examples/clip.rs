//! Makes one clip from the weights of a folder and says what it cost: seconds to open, per step
//! and in all, and the most memory. For measuring a machine, with true weights or random ones.

#![allow(
    clippy::disallowed_methods,
    reason = "measurements are made in real time"
)]

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use kinora_contract::{FrameSize, SPEC_VERSION, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    CHANNELS, ClipPlanner, ClipSink, Engine, EngineError, FrameJob, JobControl, JobMaterials,
    RgbPicture, SAMPLE_RATE_HZ,
};
use kinora_engine_diffusion::{Model, Native, Settings, check};

const HELP: &str = "\
Makes one clip from the weights of a folder and says what it cost.

  cargo run --release -p kinora-engine-diffusion --features native --example clip -- FOLDER [KEY=VALUE ...]

FOLDER holds settings.toml, whose paths are relative to it (random_weights writes one).
KEY is prompt, size (832x480), seconds (5), seed (1), repeat (1), sound (false), frame (a file for
the first frame that comes out, as PPM), first and last (greys from 0 to 255: frames that go in), or
any key of the settings: steps=20 guidance=1.0 threads=8 backend=cpu fps=16.

For example, the least that Wan takes:
  ... --example clip -- weights size=16x16 seconds=1 fps=1 steps=1 guidance=1.0
";

struct Options {
    settings: Settings,
    spec: VideoSpec,
    repeat: u32,
    frame: Option<String>,
    first: Option<u8>,
    last: Option<u8>,
}

fn options(arguments: &[String]) -> Result<Options, Box<dyn Error>> {
    let (folder, pairs) = arguments.split_first().ok_or("give a folder")?;
    let folder = Path::new(folder);
    let mut table: toml::Table = fs::read_to_string(folder.join("settings.toml"))?.parse()?;
    let mut spec = VideoSpec {
        version: SPEC_VERSION,
        model: "clip".to_owned(),
        prompt: "a fox in the snow".to_owned(),
        negative_prompt: None,
        seconds: VideoLength::Fixed(5),
        frame: FrameSize::Fixed(Size::new(832, 480)),
        seed: 1,
        generate_audio: false,
        inputs: VideoInputs::Text,
        draft: false,
        final_of: None,
        edit: None,
    };
    let (mut repeat, mut frame, mut first, mut last) = (1, None, None, None);
    for pair in pairs {
        let (key, value) = pair.split_once('=').ok_or("give KEY=VALUE")?;
        match key {
            "prompt" => value.clone_into(&mut spec.prompt),
            "size" => spec.frame = FrameSize::Fixed(value.parse()?),
            "seconds" => spec.seconds = VideoLength::Fixed(value.parse()?),
            "seed" => spec.seed = value.parse()?,
            "repeat" => repeat = value.parse()?,
            "sound" => spec.generate_audio = value.parse()?,
            "frame" => frame = Some(value.to_owned()),
            "first" => first = Some(value.parse()?),
            "last" => last = Some(value.parse()?),
            _ => {
                let number = format!("value = {value}").parse::<toml::Table>();
                let text = || toml::Value::String(value.to_owned());
                let value = number.ok().and_then(|mut table| table.remove("value"));
                table.insert(key.to_owned(), value.unwrap_or_else(text));
            }
        }
    }
    for (key, value) in &mut table {
        let is_file = fs::exists(folder.join(value.as_str().unwrap_or("\0")));
        if key != "family" && is_file.is_ok_and(|is_file| is_file) {
            let path = folder.join(value.as_str().unwrap_or_default());
            *value = toml::Value::String(path.display().to_string());
        }
    }
    Ok(Options {
        settings: table.try_into()?,
        spec,
        repeat,
        frame,
        first,
        last,
    })
}

#[derive(Default)]
struct First(Vec<u8>, u32, usize);

impl ClipSink for First {
    fn frame(&mut self, rgb: &[u8]) -> Result<(), EngineError> {
        if self.0.is_empty() {
            self.0.extend_from_slice(rgb);
        }
        self.1 += 1;
        Ok(())
    }

    fn audio(&mut self, pcm: &[f32]) -> Result<(), EngineError> {
        self.2 += pcm.len() / CHANNELS as usize;
        Ok(())
    }
}

/// A first frame of one grey, where one is given, and a last.
fn materials(spec: &mut VideoSpec, first: Option<u8>, last: Option<u8>) -> JobMaterials {
    const SIZE: Size = Size::new(64, 64);
    if first.is_some() {
        spec.inputs = VideoInputs::Frames {
            first: "https://a.example/1.png".to_owned(),
            last: last.map(|_| "https://a.example/2.png".to_owned()),
        };
    }
    let picture = |grey| RgbPicture {
        size: SIZE,
        rgb: vec![grey; SIZE.pixels() as usize * 3],
    };
    JobMaterials {
        first_frame: first.map(picture),
        last_frame: last.map(picture),
        ..JobMaterials::default()
    }
}

/// The most memory that this process ever had, as Linux tells it.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".to_owned(), |line| line.trim().to_owned())
}

/// Makes a clip; and when each step was done, in seconds, which its preview tells.
fn generate(native: &Native, job: &FrameJob<'_>) -> Result<(First, Vec<f64>), EngineError> {
    let (control, begin) = (JobControl::default(), Instant::now());
    let (mut first, mut steps) = (First::default(), Vec::new());
    let mut look = || {
        let shown = control.preview.take();
        steps.extend(shown.map(|_| begin.elapsed().as_secs_f64()));
    };
    let made = thread::scope(|scope| {
        let making = scope.spawn(|| native.generate(job, &mut first, &control));
        while !making.is_finished() {
            look();
            thread::sleep(Duration::from_millis(10));
        }
        making.join()
    });
    look();
    made.unwrap_or_else(|_| Err(EngineError::Failed("it panicked".to_owned())))?;
    Ok((first, steps))
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let Options {
        settings,
        mut spec,
        repeat,
        frame,
        first,
        last,
    } = options(arguments)?;
    let mut out = io::stdout();
    write!(out, "{}", check(&settings))?;
    let begin = Instant::now();
    let native = Native::load(Model::new("clip", settings)?)?;
    writeln!(out, "opened in {:.1} s", begin.elapsed().as_secs_f64())?;
    let materials = materials(&mut spec, first, last);
    let clip = native.plan(&spec, &materials)?;
    for _ in 0..repeat {
        let begin = Instant::now();
        let job = FrameJob {
            spec: &spec,
            materials: &materials,
            clip,
            preset: None,
        };
        let (first, steps) = generate(&native, &job)?;
        let all = begin.elapsed().as_secs_f64();
        let (begun, ended) = (steps.first().copied(), steps.last().copied());
        let later = steps.len().saturating_sub(1).max(1) as f64;
        let span = ended.unwrap_or(0.0) - begun.unwrap_or(0.0);
        writeln!(
            out,
            "{} frames of {}: first step done after {:.1} s, further ones {:.2} s each, \
             frames {:.1} s after the last, {all:.1} s in all, {:.2} s of sound; most memory {}",
            first.1,
            clip.size,
            begun.unwrap_or(0.0),
            span / later,
            all - ended.unwrap_or(0.0),
            first.2 as f64 / f64::from(SAMPLE_RATE_HZ),
            memory()
        )?;
        if let Some(path) = &frame {
            let head = format!("P6\n{} {}\n255\n", clip.size.width, clip.size.height);
            fs::write(path, [head.as_bytes(), &first.0].concat())?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asks = |one: &String| one == "--help" || one == "-h";
    if arguments.is_empty() || arguments.iter().any(asks) {
        let written = io::stdout().write_all(HELP.as_bytes());
        return if written.is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere left to say that standard error is closed.
            let _ = writeln!(io::stderr(), "{error}; --help tells more");
            ExitCode::FAILURE
        }
    }
}
