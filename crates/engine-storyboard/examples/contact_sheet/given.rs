//! What a contact sheet's clip is made from: pictures from PNG files, sound and a source video
//! from raw ones, as the sheet itself writes them. It converts nothing; ffmpeg does that.

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinora_contract::id::TaskId;
use kinora_contract::{EditSpec, FrameSize, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    EngineError, JobMaterials, RgbPicture, SourceVideo, StereoSound, VideoPlayback,
};

/// The value that follows `--name`, the first of them.
pub(crate) fn argument(name: &str) -> Option<String> {
    arguments(name).into_iter().next()
}

fn arguments(name: &str) -> Vec<String> {
    let words: Vec<String> = std::env::args().collect();
    let named = |pair: &&[String]| pair[0].strip_prefix("--") == Some(name);
    words
        .windows(2)
        .filter(named)
        .map(|pair| pair[1].clone())
        .collect()
}

/// A PNG of 8 bits per component.
fn picture(path: &str) -> Result<RgbPicture, Box<dyn Error>> {
    let mut decoder = png::Decoder::new(BufReader::new(File::open(path)?));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let info = reader.next_frame(&mut bytes)?;
    bytes.truncate(info.buffer_size());
    let rgb = match info.color_type.samples() {
        few @ 1..=2 => bytes.chunks(few).flat_map(|one| [one[0]; 3]).collect(),
        many => bytes
            .chunks(many)
            .flat_map(|one| [one[0], one[1], one[2]])
            .collect(),
    };
    let size = Size::new(info.width, info.height);
    Ok(RgbPicture { size, rgb })
}

/// Interleaved stereo `f32`, little endian, 48 kHz: `ffmpeg … -f f32le -ac 2 -ar 48000`.
fn sound(path: &str) -> Result<StereoSound, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let samples = bytes.as_chunks::<4>().0.iter();
    let pcm = samples.map(|one| f32::from_le_bytes(*one)).collect();
    Ok(StereoSound { pcm })
}

/// A file of raw frames: `ffmpeg … -f rawvideo -pix_fmt rgb24`.
#[derive(Debug)]
struct Raw {
    path: PathBuf,
    size: Size,
    frames: u32,
}

impl Raw {
    fn open(path: &str, size: Size) -> Result<Self, Box<dyn Error>> {
        let frames = Path::new(path).metadata()?.len() / (size.pixels() * 3);
        Ok(Self {
            path: path.into(),
            size,
            frames: frames.try_into()?,
        })
    }
}

impl SourceVideo for Raw {
    fn size(&self) -> Size {
        self.size
    }

    fn fps(&self) -> u32 {
        24
    }

    fn frames(&self) -> u32 {
        self.frames
    }

    fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
        let file = File::open(&self.path).map_err(|error| failed(&error))?;
        let frame_bytes = self.size.pixels() as usize * 3;
        Ok(Box::new(Playing(BufReader::new(file), frame_bytes)))
    }
}

struct Playing(BufReader<File>, usize);

impl VideoPlayback for Playing {
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let mut rgb = vec![0; self.1];
        match self.0.read_exact(&mut rgb) {
            Ok(()) => Ok(Some(rgb)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn failed(error: &std::io::Error) -> EngineError {
    EngineError::Failed(error.to_string())
}

/// The materials that the command line names.
pub(crate) fn materials(size: Size) -> Result<JobMaterials, Box<dyn Error>> {
    let one = |name: &str| argument(name).map(|path| picture(&path)).transpose();
    let raw = argument("source")
        .map(|path| Raw::open(&path, size))
        .transpose()?;
    let script = script(size)?;
    let made = || -> Result<Raw, Box<dyn Error>> {
        // A source that can be made again is never read.
        let frames = 24 * seconds()?;
        let path = PathBuf::new();
        Ok(Raw { path, size, frames })
    };
    let source = match raw {
        None if !script.is_empty() => Some(made()?),
        raw => raw,
    };
    Ok(JobMaterials {
        first_frame: one("first-frame")?,
        last_frame: one("last-frame")?,
        images: arguments("image")
            .iter()
            .map(|path| picture(path))
            .collect::<Result<_, _>>()?,
        audios: arguments("audio")
            .iter()
            .map(|path| sound(path))
            .collect::<Result<_, _>>()?,
        source: source.map(|raw| Arc::new(raw) as Arc<dyn SourceVideo>),
        script,
    })
}

fn seconds() -> Result<u32, Box<dyn Error>> {
    Ok(argument("seconds").unwrap_or("5".to_owned()).parse()?)
}

/// The specs of a source that was made from the prompts `--made-from`, all but the first as edits.
fn script(size: Size) -> Result<Vec<Arc<VideoSpec>>, Box<dyn Error>> {
    let mut links: Vec<Arc<VideoSpec>> = Vec::new();
    for prompt in arguments("made-from") {
        let edit = (!links.is_empty()).then(|| edit(1.0));
        let seconds = VideoLength::Fixed(seconds()?);
        let text = JobMaterials::default();
        links.push(Arc::new(VideoSpec {
            prompt,
            edit,
            seconds,
            ..spec(size, &text)?
        }));
    }
    Ok(links)
}

fn edit(strength: f64) -> EditSpec {
    EditSpec {
        task_id: TaskId::from_parts(1, [1; 10]),
        strength,
    }
}

/// The spec that the command line and its `materials` make.
pub(crate) fn spec(size: Size, materials: &JobMaterials) -> Result<VideoSpec, Box<dyn Error>> {
    let or = |name: &str, default: &str| argument(name).unwrap_or(default.to_owned());
    let url = || "https://example.com/reference".to_owned();
    let inputs = if materials.first_frame.is_some() {
        VideoInputs::Frames {
            first: url(),
            last: materials.last_frame.as_ref().map(|_| url()),
        }
    } else if materials.images.is_empty() {
        VideoInputs::Text
    } else {
        VideoInputs::References {
            images: materials.images.iter().map(|_| url()).collect(),
            audios: materials.audios.iter().map(|_| url()).collect(),
        }
    };
    let edit = edit(or("strength", "0.6").parse()?);
    Ok(VideoSpec {
        version: 1,
        model: "storyboard".to_owned(),
        prompt: or("prompt", "a red balloon over green hills"),
        negative_prompt: argument("avoid"),
        seconds: match or("seconds", "5").as_str() {
            "auto" => VideoLength::Auto,
            fixed => VideoLength::Fixed(fixed.parse()?),
        },
        frame: FrameSize::Fixed(size),
        seed: or("seed", "42").parse()?,
        generate_audio: true,
        inputs,
        draft: or("draft", "false").parse()?,
        final_of: None,
        edit: materials.source.as_ref().map(|_| edit),
    })
}
