//! A model according to its settings: its features, and the parameters for a request. Opens and
//! loads nothing; refuses specs that the model does not support.

use kinora_contract::{ModelPreset, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlan, ClipPlanner, EngineDescription, EngineError, Features, FrameCrop, FrameSelection,
    JobMaterials, KindError, SourceVideo, frames_of_edit, refuse_unsupported,
};

use crate::LIBRARY;
use crate::generation::{self, Generation};
use crate::settings::Settings;

/// No video is larger; this also keeps every product within the library's `int`.
const SIDE_MAX: u32 = 8192;
/// More frames than any allowed length has at any allowed rate.
const FRAMES_MAX: u32 = 3600;

/// A model for planning; it is not loaded.
#[derive(Clone, Debug)]
pub struct Model {
    settings: Settings,
    description: EngineDescription,
}

fn unsupported<T>(what: &str) -> Result<T, EngineError> {
    Err(EngineError::Unsupported(what.to_owned()))
}

/// Material of a job. The request was accepted: if any is missing, it is not the client's fault.
fn given<T>(material: Option<T>, what: &str) -> Result<T, EngineError> {
    material.ok_or_else(|| EngineError::Failed(format!("{what} is missing or broken")))
}

impl ClipPlanner for Model {
    fn describe(&self) -> &EngineDescription {
        &self.description
    }

    /// The requested size, and the requested seconds at the model's own rate. An edit has the size
    /// and the length of its source.
    fn plan(&self, spec: &VideoSpec, materials: &JobMaterials) -> Result<ClipPlan, EngineError> {
        Ok(self.generation(spec, materials)?.clip())
    }
}

impl Model {
    /// The model described by `settings`, with a `name` that clients see.
    ///
    /// # Errors
    /// The first invalid setting. [`crate::check`] checks the files themselves.
    pub fn new(name: impl Into<String>, settings: Settings) -> Result<Self, KindError> {
        settings.validate()?;
        let features = Features {
            // Without guidance the library ignores it.
            negative_prompt: settings.guidance() > 1.0,
            audio_output: settings.audio_vae.is_some(),
            ..settings.family.features(settings.variant())
        };
        Ok(Self {
            description: EngineDescription {
                name: name.into(),
                version: LIBRARY.to_owned(),
                features,
                is_trained: true,
                final_from_video: features.draft,
            },
            settings,
        })
    }

    /// The model with the settings of a preset. What it offers stays the same.
    ///
    /// # Errors
    /// [`EngineError::Failed`] for a preset that [`EngineKind::check_preset`](kinora_engine::EngineKind::check_preset)
    /// refuses.
    pub(crate) fn with_preset(&self, preset: &ModelPreset) -> Result<Self, EngineError> {
        let settings = self.settings.with_preset(preset);
        Ok(Self {
            settings: settings.map_err(|error| EngineError::Failed(format!("preset: {error}")))?,
            description: self.description.clone(),
        })
    }

    /// The model's settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What to ask the server for a spec.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] for a spec that needs features the model lacks,
    /// [`EngineError::Failed`] if materials are missing.
    pub(crate) fn generation<'a>(
        &self,
        spec: &VideoSpec,
        materials: &'a JobMaterials,
    ) -> Result<Generation<'a>, EngineError> {
        refuse_unsupported(self.description.features, spec)?;
        let settings = &self.settings;
        let (mut initial, mut end) = (None, None);
        match &spec.inputs {
            VideoInputs::Text => {}
            VideoInputs::Frames { last, .. } => {
                initial = Some(given(materials.first_frame.as_ref(), "the first frame")?);
                if last.is_some() {
                    end = Some(given(materials.last_frame.as_ref(), "the last frame")?);
                }
            }
            VideoInputs::References { images, .. } => {
                if !images.is_empty() {
                    initial = Some(given(materials.images.first(), "the reference image")?);
                }
            }
        }
        let outline = self.outline(spec, materials)?;
        let grid = settings.traits().grid;
        let rendered = grid.size(outline.size);
        let negative_prompt = spec.negative_prompt.as_deref().unwrap_or_default();
        Ok(Generation {
            prompt: generation::literal(&spec.prompt),
            negative_prompt: generation::literal(negative_prompt),
            rendered,
            crop: FrameCrop::middle(outline.size, rendered),
            frames: grid.frames(outline.frames),
            // Frames beyond the requested length are cut off, unless the last one was given.
            keep: match end {
                Some(_) => FrameSelection::Spread(outline.frames),
                None => FrameSelection::First(outline.frames),
            },
            fps: settings.fps(),
            steps: if spec.draft {
                settings.draft_steps()
            } else {
                settings.steps()
            },
            seed: spec.seed,
            initial,
            end,
            control: outline.control,
            control_strength: outline.control_strength,
            audio: spec.generate_audio,
        })
    }

    fn outline<'a>(
        &self,
        spec: &VideoSpec,
        materials: &'a JobMaterials,
    ) -> Result<ClipOutline<'a>, EngineError> {
        let (source, fps) = (materials.source.as_deref(), self.settings.fps());
        let outline = if let Some(edit) = &spec.edit {
            let frames = source.and_then(|source| frames_of_edit(source, fps));
            let (source, frames) = given(source.zip(frames), "the source video")?;
            ClipOutline {
                size: source.size(),
                frames,
                control: Some(source),
                control_strength: control_strength(edit.strength),
            }
        } else {
            let Some(size) = spec.render_size() else {
                return unsupported("a shape that follows an image");
            };
            let VideoLength::Fixed(seconds) = spec.seconds else {
                return unsupported("a length of the model's choice");
            };
            let is_final = spec.final_of.is_some();
            ClipOutline {
                size,
                frames: seconds.saturating_mul(fps),
                control: is_final
                    .then(|| given(source, "the draft's video"))
                    .transpose()?,
                // The final follows its draft as closely as the model was trained to.
                control_strength: 1.0,
            }
        };
        let sides = 1..=SIDE_MAX;
        if outline.frames == 0 || outline.frames > FRAMES_MAX {
            return unsupported("a clip of this length");
        }
        if !sides.contains(&outline.size.width) || !sides.contains(&outline.size.height) {
            return unsupported("frames of this size");
        }
        Ok(outline)
    }
}

/// The shape of a clip, and the video that it follows.
struct ClipOutline<'a> {
    size: Size,
    frames: u32,
    control: Option<&'a dyn SourceVideo>,
    control_strength: f32,
}

/// How closely an edit follows its source: `1 - strength`.
///
/// VACE adds the features of the control frames to the transformer's own, times this factor, which
/// was 1.0 in training; 0.0 leaves only the prompt. So both ends of `edit_strength` behave as the
/// contract says, and the source's influence falls evenly between them.
fn control_strength(edit_strength: f64) -> f32 {
    (1.0 - edit_strength.clamp(0.0, 1.0)) as f32
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
