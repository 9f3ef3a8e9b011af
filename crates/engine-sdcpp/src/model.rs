//! A model according to its settings: its features, and the parameters for a request. Opens and
//! loads nothing; refuses specs that the model does not support.

use std::fmt;

use kinora_contract::{EditSpec, ModelPreset, Size, VideoInputs, VideoLength, VideoSpec};
use kinora_engine::{
    ClipPlan, ClipPlanner, EngineDescription, EngineError, Features, FrameCrop, FrameSelection,
    JobMaterials, RenderGrid, frames_of_edit, refuse_unsupported,
};

use crate::LIBRARY;
use crate::generation::{self, Generation, Given};
use crate::settings::{Preset, Settings, SettingsError};

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

/// The request was accepted, but material is missing: not the client's fault.
fn missing<T>(what: &str) -> Result<T, EngineError> {
    Err(EngineError::Failed(format!("{what} is missing or broken")))
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
    /// [`SettingsError`] for invalid settings. [`crate::check`] checks the files themselves.
    pub fn new(name: impl Into<String>, settings: Settings) -> Result<Self, SettingsError> {
        let name = name.into();
        if name.is_empty() {
            return Err(SettingsError::Nameless);
        }
        settings.validate()?;
        let features = Features {
            // Without guidance the library ignores it.
            negative_prompt: settings.guidance() > 1.0,
            audio_output: settings.audio_vae.is_some(),
            ..settings.family.features(settings.variant())
        };
        Ok(Self {
            description: EngineDescription {
                name,
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
        let failed = |error: &dyn fmt::Display| EngineError::Failed(format!("preset: {error}"));
        let preset = Preset::read(preset).map_err(|error| failed(&error))?;
        let settings = self.settings.with_preset(&preset);
        settings.validate().map_err(|error| failed(&error))?;
        Ok(Self {
            settings,
            description: self.description.clone(),
        })
    }

    /// The model's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The library's parameters for a spec.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] for a spec that needs features the model lacks,
    /// [`EngineError::Failed`] if materials are missing.
    pub fn generation(
        &self,
        spec: &VideoSpec,
        materials: &JobMaterials,
    ) -> Result<Generation, EngineError> {
        refuse_unsupported(self.description.features, spec)?;
        let (initial, end) = self.pictures(spec, materials)?;
        let outline = self.outline(spec, materials)?;
        let settings = &self.settings;
        let traits = settings.traits();
        let grid = RenderGrid {
            size_multiple: traits.size_multiple,
            frame_step: traits.frame_step,
            frame_offset: 1,
        };
        let rendered = grid.size(outline.size);
        let frames = grid.frames(outline.frames);
        Ok(Generation {
            prompt: generation::literal(&spec.prompt),
            negative_prompt: generation::literal(
                spec.negative_prompt.as_deref().unwrap_or_default(),
            ),
            rendered,
            crop: FrameCrop::middle(outline.size, rendered),
            frames,
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
            guidance: settings.guidance(),
            high_noise_guidance: settings.high_noise_guidance(),
            moe_boundary: settings.moe_boundary(),
            sampler: settings.sampler,
            scheduler: settings.scheduler,
            flow_shift: settings.flow_shift,
            seed: i64::from(spec.seed),
            initial,
            end,
            strength: 1.0,
            control: outline.control_strength.is_some(),
            control_strength: outline.control_strength.unwrap_or(1.0),
            audio: spec.generate_audio,
            vae_tiling: settings.vae_tiling,
            loras: settings.loras.clone(),
        })
    }

    fn pictures(
        &self,
        spec: &VideoSpec,
        materials: &JobMaterials,
    ) -> Result<(Option<Given>, Option<Given>), EngineError> {
        match &spec.inputs {
            VideoInputs::Text => Ok((None, None)),
            VideoInputs::Frames { last, .. } => {
                let end = last.as_ref().map(|_| Given::LastFrame);
                if !is_usable(Given::FirstFrame, materials) {
                    return missing("the first frame");
                }
                if !end.is_none_or(|end| is_usable(end, materials)) {
                    return missing("the last frame");
                }
                Ok((Some(Given::FirstFrame), end))
            }
            VideoInputs::References { images, .. } => {
                let initial = (!images.is_empty()).then_some(Given::Image(0));
                if !initial.is_none_or(|image| is_usable(image, materials)) {
                    return missing("the reference image");
                }
                Ok((initial, None))
            }
        }
    }

    fn outline(
        &self,
        spec: &VideoSpec,
        materials: &JobMaterials,
    ) -> Result<ClipOutline, EngineError> {
        let outline = if let Some(edit) = &spec.edit {
            self.edited(edit, materials)?
        } else {
            let Some(size) = spec.render_size() else {
                return unsupported("a shape that follows an image");
            };
            let VideoLength::Fixed(seconds) = spec.seconds else {
                return unsupported("a length of the model's choice");
            };
            // The final follows its draft as closely as the model was trained to.
            let control_strength = match (&spec.final_of, &materials.source) {
                (None, _) => None,
                (Some(_), Some(_)) => Some(1.0),
                (Some(_), None) => return missing("the draft's video"),
            };
            ClipOutline {
                size,
                frames: seconds.saturating_mul(self.settings.fps()),
                control_strength,
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

    /// An edit has the size of its source, and its length at the model's own rate.
    fn edited(
        &self,
        edit: &EditSpec,
        materials: &JobMaterials,
    ) -> Result<ClipOutline, EngineError> {
        let source = materials.source.as_deref();
        let frames = source.and_then(|source| frames_of_edit(source, self.settings.fps()));
        let Some((source, frames)) = source.zip(frames) else {
            return missing("the source video");
        };
        Ok(ClipOutline {
            size: source.size(),
            frames,
            control_strength: Some(control_strength(edit.strength)),
        })
    }
}

/// Whether the picture is there, and its bytes match its size.
fn is_usable(given: Given, materials: &JobMaterials) -> bool {
    given.of(materials).is_some_and(|picture| {
        picture.size.pixels() > 0 && picture.rgb.len() as u64 == picture.size.pixels() * 3
    })
}

struct ClipOutline {
    size: Size,
    frames: u32,
    control_strength: Option<f32>,
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
