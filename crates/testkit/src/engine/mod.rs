//! An engine for tests of everything around an engine: it uses every input in a way that a test can see or hear in the
//! result, and costs nearly nothing. It paints coloured bars, holds each still for as long as it can, and reads no words.

mod scenes;

use kinora_contract::{Features, VideoLength, VideoSpec};
use kinora_engine::{
    CHANNELS, ClipPlan, ClipPlanner, ClipSink, Engine, EngineDescription, EngineError, FrameJob,
    JobControl, JobMaterials, SAMPLE_RATE_HZ, WorkStage, refuse_unsupported,
};

use scenes::SceneFrames;

/// Frames per second, but of an edit, which has its source's.
const FPS: u32 = 24;
/// Length of a clip whose request leaves it open: a second more for each sentence.
const AUTO_SECONDS: u32 = 2;

/// The engine. Equal specs, with equal materials, give equal clips.
///
/// - Text alone: eight bars whose colours depend on prompt and seed, and move on by one place each second.
/// - A first frame is held for the first third, a last frame for the last; the bars are between them.
/// - Reference images follow each other, each for an equal part, under a strip of the bars.
/// - Reference sounds follow each other; without one there is silence.
/// - An edit mixes its source with the bars, by its strength.
#[derive(Debug)]
pub struct BarsEngine {
    description: EngineDescription,
}

impl Default for BarsEngine {
    fn default() -> Self {
        Self {
            description: EngineDescription {
                name: "bars".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                features: Features {
                    reference_images_max: 9,
                    reference_audios_max: 3,
                    ..Features::ALL
                },
                is_trained: false,
                final_from_video: false,
            },
        }
    }
}

impl ClipPlanner for BarsEngine {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        refuse_unsupported(self.description.features, spec)?;
        if let (Some(_), Some(source)) = (&spec.edit, &materials.source) {
            return Ok(ClipPlan {
                size: source.size(),
                fps: source.fps(),
                frames: source.frames(),
                audio: spec.generate_audio,
            });
        }
        let size = spec.render_size();
        let seconds = match spec.seconds {
            VideoLength::Fixed(seconds) => seconds,
            VideoLength::Auto => AUTO_SECONDS + spec.prompt.matches('.').count().min(8) as u32,
        };
        Ok(ClipPlan {
            size: size.ok_or_else(|| {
                EngineError::Unsupported("a shape that follows an image".to_owned())
            })?,
            fps: FPS,
            frames: seconds * FPS,
            audio: spec.generate_audio,
        })
    }
}

impl Engine for BarsEngine {
    fn generate(
        &self,
        job: &FrameJob<'_>,
        sink: &mut dyn ClipSink,
        control: &JobControl,
    ) -> Result<(), EngineError> {
        generate(job, sink, control)
    }
}

/// Generates the clip of any planner.
///
/// # Errors
/// As [`Engine::generate`].
pub fn generate(
    job: &FrameJob<'_>,
    sink: &mut dyn ClipSink,
    control: &JobControl,
) -> Result<(), EngineError> {
    control.report(WorkStage::Preparing, 0.0)?;
    if job.clip.audio {
        sink.audio(&sound(job))?;
    }
    let mut scenes = SceneFrames::new(job)?;
    for number in 0..job.clip.frames {
        let done = f64::from(number) / f64::from(job.clip.frames);
        control.report(WorkStage::Generating, done)?;
        sink.frame(scenes.frame(number)?)?;
    }
    control.report(WorkStage::Finishing, 1.0)
}

/// The reference sounds, one after the other, cut to the clip's length or followed by silence, which costs little to
/// encode.
fn sound(job: &FrameJob<'_>) -> Vec<f32> {
    let samples = u64::from(job.clip.frames) * u64::from(SAMPLE_RATE_HZ) / u64::from(job.clip.fps);
    let given = job.materials.audios.iter().flat_map(|sound| &sound.pcm);
    let mut pcm: Vec<f32> = given.copied().collect();
    pcm.resize(samples as usize * usize::from(CHANNELS), 0.0);
    pcm
}
