//! Plans the clips of a command without running it, by what the configuration promises for it
//! (`[engines.describe]`). Refuses numbers that no engine has.

use kinora_contract::limits::SECONDS_MAX;
use kinora_contract::{Features, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlan, ClipPlanner, EngineCapabilities, EngineDescription, EngineError, JobMaterials,
    KindError, RenderGrid, frames_of_edit, refuse_unsupported,
};
use serde::Deserialize;

/// Frame rate for engines that accept any; edits keep the rate of their source.
const FPS_DEFAULT: u32 = 24;
/// More frames than any allowed length has at any allowed rate.
const FRAMES_MAX: u32 = 3_600;

/// Plans a command's clips without running it: the requested size and length, at the engine's
/// own rate if it has one. The host renders them on the engine's grid and crops the centre.
#[derive(Clone, Debug)]
pub struct PromisedPlanner {
    description: EngineDescription,
    /// 0: any.
    fps: u32,
}

fn unsupported<T>(what: &str) -> Result<T, EngineError> {
    Err(EngineError::Unsupported(what.to_owned()))
}

impl PromisedPlanner {
    /// A planner for the engine `name` with the promised capabilities.
    pub fn new(name: &str, version: &str, is_trained: bool, promises: EngineCapabilities) -> Self {
        Self {
            description: EngineDescription {
                name: name.to_owned(),
                version: version.to_owned(),
                features: promises.features,
                is_trained,
                final_from_video: promises.features.draft,
            },
            fps: promises.fps,
        }
    }

    /// An edit has the size of its source, and its length at the engine's own rate, or else its rate.
    fn edited(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        let source = materials.source.as_deref();
        let fps = match (self.fps, source) {
            (0, Some(source)) => source.fps().min(FPS_MAX),
            (fps, _) => fps,
        };
        let frames = source.and_then(|source| frames_of_edit(source, fps));
        let Some((source, frames)) = source.zip(frames) else {
            // The request was accepted: not the client's fault.
            return Err(EngineError::Failed(
                "the source video is missing".to_owned(),
            ));
        };
        Ok(ClipPlan {
            size: source.size(),
            fps,
            frames,
            audio: spec.generate_audio,
        })
    }
}

impl ClipPlanner for PromisedPlanner {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    fn decides_length(&self, spec: &VideoSpec) -> bool {
        spec.seconds == VideoLength::Auto && spec.edit.is_none()
    }

    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        refuse_unsupported(self.description.features, spec)?;
        let fps = match self.fps {
            0 => FPS_DEFAULT,
            fps => fps,
        };
        let clip = match (&spec.edit, spec.render_size(), spec.seconds) {
            (Some(_), ..) => self.edited(spec, materials)?,
            (None, Some(size), seconds) => ClipPlan {
                size,
                fps,
                frames: match seconds {
                    VideoLength::Fixed(seconds) => seconds.saturating_mul(fps),
                    // The engine decides while it works; plan (and reserve) for the longest
                    // allowed clip.
                    VideoLength::Auto => SECONDS_MAX * fps,
                },
                audio: spec.generate_audio,
            },
            (None, None, _) => return unsupported("a shape that follows an image"),
        };
        if clip.frames == 0 || clip.frames > FRAMES_MAX {
            return unsupported("a clip of this length");
        }
        Ok(clip)
    }
}

/// No model has a coarser grid, and products with it stay far below overflow.
const STEP_MAX: u32 = 1_024;
/// No common screen is faster.
const FPS_MAX: u32 = 120;

/// The table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DescribeTable {
    features: Features,
    #[serde(default = "one")]
    size_multiple: u32,
    #[serde(default)]
    frames: FrameSteps,
    /// Frames per second; 0: any.
    #[serde(default)]
    fps: u32,
    /// Whether its pictures come from a trained model.
    #[serde(default = "yes")]
    pub is_trained: bool,
    /// Version of the engine and its model, for tasks and files.
    #[serde(default = "first_version")]
    pub version: String,
}

/// `{ step = 4, offset = 1 }`: clips have 4 n + 1 frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameSteps {
    step: u32,
    #[serde(default)]
    offset: u32,
}

impl Default for FrameSteps {
    fn default() -> Self {
        Self { step: 1, offset: 0 }
    }
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

fn first_version() -> String {
    "1".to_owned()
}

impl DescribeTable {
    pub(crate) fn promises(&self) -> EngineCapabilities {
        EngineCapabilities {
            features: self.features,
            grid: RenderGrid {
                size_multiple: self.size_multiple,
                frame_step: self.frames.step,
                frame_offset: self.frames.offset,
            },
            fps: self.fps,
            // Its models say whether they have settings.
            presets: false,
        }
    }

    /// Refuses numbers that no engine has.
    pub(crate) fn check(&self) -> Result<(), KindError> {
        if !(1..=STEP_MAX).contains(&self.size_multiple) {
            return wrong("size_multiple must be between 1 and 1024");
        }
        if !(1..=STEP_MAX).contains(&self.frames.step) || self.frames.offset > STEP_MAX {
            return wrong("frames.step must be between 1 and 1024, and frames.offset at most 1024");
        }
        if self.fps > FPS_MAX {
            return wrong("fps must be at most 120, or 0 for an engine that takes any");
        }
        Ok(())
    }
}

fn wrong(what: &str) -> Result<(), KindError> {
    Err(KindError(format!("describe.{what}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kinora_contract::{EditSpec, FrameSize, SPEC_VERSION, Size, TaskId, VideoInputs};
    use kinora_engine::{SourceVideo, VideoPlayback};

    use super::*;

    fn planner(features: &str) -> PromisedPlanner {
        planner_at("fps = 16", features)
    }

    fn planner_at(fps: &str, features: &str) -> PromisedPlanner {
        let table = format!("{fps}\nfeatures = {{ {features} }}");
        let describe: DescribeTable = toml::from_str(&table).unwrap();
        PromisedPlanner::new("wan", "1", true, describe.promises())
    }

    fn spec() -> VideoSpec {
        VideoSpec {
            version: SPEC_VERSION,
            model: "model".to_owned(),
            prompt: "A kite over a beach".to_owned(),
            negative_prompt: None,
            seconds: VideoLength::Fixed(5),
            frame: FrameSize::Fixed(Size::new(854, 480)),
            seed: 11,
            generate_audio: false,
            inputs: VideoInputs::Text,
            draft: false,
            final_of: None,
            edit: None,
        }
    }

    #[test]
    fn a_clip_has_the_requested_size_and_length_at_the_engine_s_rate() {
        let clip = planner("text_to_video = true").plan(&spec(), &JobMaterials::default());
        let clip = clip.unwrap();
        assert_eq!(
            (clip.size, clip.fps, clip.frames),
            (Size::new(854, 480), 16, 80)
        );
        assert!(!clip.audio);
    }

    #[derive(Debug)]
    struct Source;

    impl SourceVideo for Source {
        fn size(&self) -> Size {
            Size::new(640, 360)
        }

        fn fps(&self) -> u32 {
            30
        }

        fn frames(&self) -> u32 {
            60
        }

        fn play(&self) -> Result<Box<dyn VideoPlayback>, EngineError> {
            unsupported("a plan needs no frames")
        }
    }

    #[test]
    fn an_engine_that_takes_any_rate_makes_clips_at_the_default_one_and_edits_at_that_of_their_source()
     {
        let edit = VideoSpec {
            edit: Some(EditSpec {
                task_id: TaskId::from_parts(0, [0; 10]),
                strength: 0.5,
            }),
            ..spec()
        };
        let materials = JobMaterials {
            source: Some(Arc::new(Source)),
            ..JobMaterials::default()
        };
        let features = "text_to_video = true, edit = true";
        for (fps, made, edited) in [
            ("", (24, 120), (30, 60)),
            ("fps = 0", (24, 120), (30, 60)),
            ("fps = 16", (16, 80), (16, 32)),
        ] {
            let planner = planner_at(fps, features);
            let clip = planner.plan(&spec(), &JobMaterials::default()).unwrap();
            assert_eq!((clip.fps, clip.frames), made, "{fps}");
            let clip = planner.plan(&edit, &materials).unwrap();
            assert_eq!((clip.fps, clip.frames), edited, "{fps}");
        }
    }

    #[test]
    fn a_length_that_the_engine_decides_is_planned_as_the_longest() {
        let planner = planner("text_to_video = true, auto_duration = true");
        assert!(!planner.decides_length(&spec()));
        let spec = VideoSpec {
            seconds: VideoLength::Auto,
            ..spec()
        };
        assert!(planner.decides_length(&spec));
        let clip = planner.plan(&spec, &JobMaterials::default()).unwrap();
        assert_eq!(clip.frames, 15 * 16);
    }

    #[test]
    fn what_the_operator_did_not_promise_is_refused() {
        let refused = |planner: PromisedPlanner, spec: VideoSpec| {
            let plan = planner.plan(&spec, &JobMaterials::default());
            matches!(plan, Err(EngineError::Unsupported(_)))
        };
        let text = || planner("text_to_video = true");
        assert!(refused(planner("first_frame = true"), spec()));
        for spec in [
            VideoSpec {
                generate_audio: true,
                ..spec()
            },
            VideoSpec {
                draft: true,
                ..spec()
            },
            VideoSpec {
                negative_prompt: Some("text".to_owned()),
                ..spec()
            },
            VideoSpec {
                seconds: VideoLength::Auto,
                ..spec()
            },
            VideoSpec {
                inputs: VideoInputs::Frames {
                    first: "a".to_owned(),
                    last: None,
                },
                ..spec()
            },
        ] {
            assert!(refused(text(), spec));
        }
    }
}
