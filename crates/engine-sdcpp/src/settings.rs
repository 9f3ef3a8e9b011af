//! Settings of one model: its files, its sampling, and how the library uses the machine. A setting
//! that does not apply to the family is an error, never ignored.

use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use kinora_contract::ModelPreset;
use kinora_engine::KindError;
use serde::Deserialize;

use crate::family::{Family, Role, Traits, Variant};
use crate::names::named;

/// The server takes no more.
const STEPS_MAX: u32 = 100;
const GUIDANCE_MAX: f32 = 30.0;
const FLOW_SHIFT_MAX: f32 = 100.0;
const FPS_MAX: u32 = 60;
const THREADS_MAX: u32 = 1024;

/// The settings of one model. The family determines the defaults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The family of models.
    pub family: Family,
    /// The task the weights were trained for; only for Wan, text to video by default.
    pub variant: Option<Variant>,

    /// The transformer; of two experts, the low-noise one.
    pub diffusion_model: PathBuf,
    /// The high-noise expert; Wan 2.2 A14B.
    pub high_noise_diffusion_model: Option<PathBuf>,
    /// Converts latents to pixels and back.
    pub vae: PathBuf,
    /// Converts latents to sound; LTX-2. Without it clips have no sound.
    pub audio_vae: Option<PathBuf>,
    /// umt5-xxl for Wan, Gemma 3 12B for LTX-2.
    pub text_encoder: PathBuf,
    /// CLIP vision (ViT-H/14); Wan 2.1 I2V and FLF2V.
    pub clip_vision: Option<PathBuf>,
    /// Connects the text encoder to the transformer; LTX-2.
    pub embeddings_connectors: Option<PathBuf>,
    /// The folder below which `loras` are found.
    pub loras_folder: Option<PathBuf>,
    /// LoRAs that every clip uses, unless a preset names others.
    #[serde(default)]
    pub loras: Vec<Lora>,

    /// Denoising steps of both experts together.
    pub steps: Option<u32>,
    /// Denoising steps of a draft.
    pub draft_steps: Option<u32>,
    /// Classifier-free guidance. At 1.0, right for distilled models, a step takes half the time,
    /// and negative prompts are not offered because they would have no effect.
    pub guidance: Option<f32>,
    /// Guidance of the high-noise expert; `guidance` by default.
    pub high_noise_guidance: Option<f32>,
    /// The noise level (0.0 to 1.0) below which the low-noise expert takes over.
    pub moe_boundary: Option<f32>,
    /// The sampler; the library's choice for the model by default.
    pub sampler: Option<Sampler>,
    /// The scheduler; the library's choice by default.
    pub scheduler: Option<Scheduler>,
    /// Shift of the noise levels towards high noise; the library's choice by default (Wan 5.0).
    pub flow_shift: Option<f32>,
    /// Frames per second; the family's training rate by default.
    pub fps: Option<u32>,

    /// Computes attention without holding its whole matrix in memory.
    #[serde(default = "on")]
    pub flash_attention: bool,
    /// Keeps weights in main memory and moves them to the accelerator when needed.
    #[serde(default)]
    pub offload_to_cpu: bool,
    /// Runs the transformer in slices that fit into this much accelerator memory; -1.0 takes all
    /// free memory but 1 GiB.
    pub max_vram_gib: Option<f32>,
    /// Assigns parts to devices, in the library's notation: `cuda0`, `te=cpu,vae=cuda0`.
    pub backend: Option<String>,
    /// Maps weight files into memory instead of reading them.
    #[serde(default = "on")]
    pub mmap: bool,
    /// CPU threads; one per physical core by default.
    pub threads: Option<u32>,
    /// Decodes frames in tiles: less memory, more time.
    #[serde(default)]
    pub vae_tiling: bool,
}

const fn on() -> bool {
    true
}

const fn full_weight() -> f32 {
    1.0
}

/// A LoRA of [`Settings::loras_folder`], and how strongly it works.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// Its file, relative to the folder, as in `lightning/low.safetensors`.
    pub path: String,
    /// The factor of its changes; 1.0 as in training.
    #[serde(default = "full_weight")]
    pub weight: f32,
    /// Whether it changes the high-noise expert instead of the other one.
    #[serde(default)]
    pub high_noise: bool,
}

/// A model's own sampling, on an engine that other models use too: each key replaces the
/// engine's. Sizes, lengths and features stay the engine's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Preset {
    steps: Option<u32>,
    guidance: Option<f32>,
    flow_shift: Option<f32>,
    sampler: Option<Sampler>,
    scheduler: Option<Scheduler>,
    /// An empty list uses none.
    loras: Option<Vec<Lora>>,
}

impl Settings {
    /// Every given file, in the order of the settings.
    pub(crate) fn files(&self) -> impl Iterator<Item = (Role, &Path)> {
        let files = [
            (Role::DiffusionModel, Some(&self.diffusion_model)),
            (
                Role::HighNoiseDiffusionModel,
                self.high_noise_diffusion_model.as_ref(),
            ),
            (Role::Vae, Some(&self.vae)),
            (Role::AudioVae, self.audio_vae.as_ref()),
            (Role::TextEncoder, Some(&self.text_encoder)),
            (Role::ClipVision, self.clip_vision.as_ref()),
            (
                Role::EmbeddingsConnectors,
                self.embeddings_connectors.as_ref(),
            ),
        ];
        files
            .into_iter()
            .filter_map(|(role, path)| Some((role, path?.as_path())))
    }

    /// These settings with those of a model in their place.
    ///
    /// # Errors
    /// An unknown setting, a value of another type, or the first invalid setting.
    pub(crate) fn with_preset(&self, preset: &ModelPreset) -> Result<Self, KindError> {
        let preset: Preset = serde_json::from_value(preset.clone().into())
            .map_err(|error| KindError(error.to_string()))?;
        let mut changed = self.clone();
        if let Some(steps) = preset.steps {
            changed.steps = Some(steps);
            // A draft takes no more steps than its final.
            changed.draft_steps = self.draft_steps.map(|draft| draft.min(steps));
        }
        if preset.guidance.is_some() {
            // For both experts.
            (changed.guidance, changed.high_noise_guidance) = (preset.guidance, None);
        }
        changed.flow_shift = preset.flow_shift.or(self.flow_shift);
        changed.sampler = preset.sampler.or(self.sampler);
        changed.scheduler = preset.scheduler.or(self.scheduler);
        if let Some(loras) = preset.loras {
            changed.loras = loras;
        }
        changed.validate()?;
        Ok(changed)
    }

    pub(crate) fn variant(&self) -> Variant {
        self.variant.unwrap_or(Variant::T2v)
    }

    pub(crate) fn traits(&self) -> Traits {
        self.family.traits(self.variant())
    }

    pub(crate) fn fps(&self) -> u32 {
        self.fps.unwrap_or(self.traits().fps)
    }

    pub(crate) fn steps(&self) -> u32 {
        self.steps.unwrap_or(self.traits().steps)
    }

    /// A draft never takes more steps than its final.
    pub(crate) fn draft_steps(&self) -> u32 {
        let steps = self.steps();
        self.draft_steps
            .unwrap_or_else(|| self.traits().draft_steps.min(steps))
    }

    pub(crate) fn guidance(&self) -> f32 {
        self.guidance.unwrap_or(self.traits().guidance)
    }

    pub(crate) fn high_noise_guidance(&self) -> f32 {
        self.high_noise_guidance.unwrap_or_else(|| self.guidance())
    }

    /// Wan 2.2's own boundaries: 0.875 from text, 0.9 from a picture.
    pub(crate) fn moe_boundary(&self) -> f32 {
        let own = match self.variant() {
            Variant::T2v => 0.875,
            Variant::I2v | Variant::Flf2v | Variant::Ti2v => 0.9,
        };
        self.moe_boundary.unwrap_or(own)
    }

    /// Checks the settings without opening a file.
    ///
    /// # Errors
    /// The first invalid setting.
    pub(crate) fn validate(&self) -> Result<(), KindError> {
        for (role, path) in self.files() {
            let text = path.to_str().unwrap_or_default();
            if text.is_empty() || text.contains('\0') {
                let key = role.name();
                return Err(KindError(format!("{key}: its path is empty or no text")));
            }
            if !self.family.takes(role) {
                let by = format_args!("{} models", self.family.name());
                return Err(not_used(role.name(), by));
            }
        }
        self.check_applicability()?;
        self.loras
            .iter()
            .try_for_each(|lora| self.check_lora(lora))?;
        self.check_ranges()
    }

    fn check_lora(&self, lora: &Lora) -> Result<(), KindError> {
        let path = &lora.path;
        let mut parts = Path::new(path).components();
        let is_below = parts.all(|part| matches!(part, Component::Normal(_)));
        let is_named = !path.is_empty() && !path.contains('\0') && is_below;
        if !is_named || self.loras_folder.is_none() {
            return Err(KindError(format!(
                "loras: '{path}' is not a path below loras_folder; write it like 'lightning/low.safetensors', and set loras_folder"
            )));
        }
        check_range("loras.weight", Some(lora.weight), -10.0, 10.0)?;
        if lora.high_noise && self.high_noise_diffusion_model.is_none() {
            return Err(not_used("loras.high_noise", ONE_EXPERT));
        }
        Ok(())
    }

    fn check_applicability(&self) -> Result<(), KindError> {
        let has_one_expert = self.high_noise_diffusion_model.is_none();
        if self.variant.is_some() && self.family != Family::Wan {
            return Err(not_used("variant", self.family.name()));
        }
        if has_one_expert && self.high_noise_guidance.is_some() {
            return Err(not_used("high_noise_guidance", ONE_EXPERT));
        }
        if has_one_expert && self.moe_boundary.is_some() {
            return Err(not_used("moe_boundary", ONE_EXPERT));
        }
        if self.guidance() <= 1.0 && self.high_noise_guidance() > 1.0 {
            // The library then never reads the negative prompt.
            return Err(not_used("high_noise_guidance", "a model with guidance 1.0"));
        }
        if self.draft_steps.is_some() && !self.family.features(self.variant()).draft {
            return Err(not_used("draft_steps", "a model that makes no drafts"));
        }
        if self
            .backend
            .as_ref()
            .is_some_and(|text| text.contains('\0'))
        {
            return Err(KindError("backend: it contains a NUL byte".to_owned()));
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), KindError> {
        check_range("steps", self.steps, 1, STEPS_MAX)?;
        check_range("draft_steps", self.draft_steps, 1, self.steps())?;
        check_range("fps", self.fps, 1, FPS_MAX)?;
        check_range("threads", self.threads, 1, THREADS_MAX)?;
        check_range("guidance", self.guidance, 1.0, GUIDANCE_MAX)?;
        let high_noise = self.high_noise_guidance;
        check_range("high_noise_guidance", high_noise, 1.0, GUIDANCE_MAX)?;
        check_range("moe_boundary", self.moe_boundary, 0.0, 1.0)?;
        check_range("flow_shift", self.flow_shift, 0.01, FLOW_SHIFT_MAX)?;
        // -1.0 is the library's own value for "all free memory but 1 GiB".
        let vram = self.max_vram_gib.filter(|gib| *gib != -1.0);
        check_range("max_vram_gib", vram, 0.1, 10_000.0)
    }
}

/// A model with one transformer.
const ONE_EXPERT: &str = "a model without high_noise_diffusion_model";

fn not_used(key: &str, by: impl Display) -> KindError {
    KindError(format!("{key}: not used by {by}"))
}

fn check_range<T: PartialOrd + Display + Copy>(
    key: &str,
    value: Option<T>,
    min: T,
    max: T,
) -> Result<(), KindError> {
    match value {
        // NaN is in no range.
        Some(value) if !(min..=max).contains(&value) => {
            let what = format!("{key}: {value} is not within {min} to {max}");
            Err(KindError(what))
        }
        _ => Ok(()),
    }
}

named! {
    /// The method of a step from one noise level to the next.
    Sampler {
        Euler = "euler", "Euler";
        EulerA = "euler_a", "Euler, ancestral";
        Heun = "heun", "Heun";
        Dpm2 = "dpm2", "DPM2";
        DpmPp2sA = "dpm++2s_a", "DPM++ 2S, ancestral";
        DpmPp2m = "dpm++2m", "DPM++ 2M";
        DpmPp2mV2 = "dpm++2mv2", "DPM++ 2M, modified";
        Ipndm = "ipndm", "iPNDM";
        IpndmV = "ipndm_v", "iPNDM for varying steps";
        Lcm = "lcm", "LCM, for distilled models";
        DdimTrailing = "ddim_trailing", "DDIM, trailing";
        Tcd = "tcd", "TCD, for distilled models";
        ResMultistep = "res_multistep", "RES, multistep";
        Res2s = "res_2s", "RES 2S";
        ErSde = "er_sde", "ER-SDE";
        EulerCfgPp = "euler_cfg_pp", "Euler with CFG++";
        EulerACfgPp = "euler_a_cfg_pp", "Euler, ancestral, with CFG++";
        EulerGe = "euler_ge", "Euler, gradient estimation";
    }
}

named! {
    /// The sequence of noise levels.
    Scheduler {
        Discrete = "discrete", "As in training";
        Karras = "karras", "Karras";
        Exponential = "exponential", "Exponential";
        Ays = "ays", "Align your steps";
        Gits = "gits", "GITS";
        SgmUniform = "sgm_uniform", "SGM, uniform";
        Simple = "simple", "Simple";
        Smoothstep = "smoothstep", "Smooth step";
        KlOptimal = "kl_optimal", "KL-optimal";
        Lcm = "lcm", "LCM";
        BongTangent = "bong_tangent", "Bong tangent";
        Ltx2 = "ltx2", "LTX-2's own";
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
pub(crate) mod tests;
