//! Settings of one model: its files, its sampling, and how the library uses the machine. A setting
//! that does not apply to the family is an error, never ignored.

use std::path::{Component, Path, PathBuf};

use kinora_contract::ModelPreset;
use serde::{Deserialize, Serialize};

use crate::family::{Family, Role, Traits, Variant};

/// The server takes no more.
const STEPS_MAX: u32 = 100;
const GUIDANCE_MAX: f32 = 30.0;
const FLOW_SHIFT_MAX: f32 = 100.0;
const FPS_MAX: u32 = 60;
const THREADS_MAX: u32 = 1024;

/// The settings of one model. The family determines the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The family of models.
    pub family: Family,
    /// The task the weights were trained for; only for Wan, text to video by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,

    /// The transformer; of two experts, the low-noise one.
    pub diffusion_model: PathBuf,
    /// The high-noise expert; Wan 2.2 A14B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_noise_diffusion_model: Option<PathBuf>,
    /// Converts latents to pixels and back.
    pub vae: PathBuf,
    /// Converts latents to sound; LTX-2. Without it clips have no sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_vae: Option<PathBuf>,
    /// umt5-xxl for Wan, Gemma 3 12B for LTX-2.
    pub text_encoder: PathBuf,
    /// CLIP vision (ViT-H/14); Wan 2.1 I2V and FLF2V.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_vision: Option<PathBuf>,
    /// Connects the text encoder to the transformer; LTX-2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings_connectors: Option<PathBuf>,
    /// The folder below which `loras` are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loras_folder: Option<PathBuf>,
    /// LoRAs that every clip uses, unless a preset names others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loras: Vec<Lora>,

    /// Denoising steps of both experts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Denoising steps of a draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_steps: Option<u32>,
    /// Classifier-free guidance. At 1.0, right for distilled models, a step takes half the time,
    /// and negative prompts are not offered because they would have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<f32>,
    /// Guidance of the high-noise expert; `guidance` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_noise_guidance: Option<f32>,
    /// The noise level (0.0 to 1.0) below which the low-noise expert takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moe_boundary: Option<f32>,
    /// The sampler; the library's choice for the model by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampler: Option<Sampler>,
    /// The scheduler; the library's choice by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// Shift of the noise levels towards high noise; the library's choice by default (Wan 5.0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_shift: Option<f32>,
    /// Frames per second; the family's training rate by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fps: Option<u32>,

    /// Computes attention without holding its whole matrix in memory.
    #[serde(default = "on")]
    pub flash_attention: bool,
    /// Keeps weights in main memory and moves them to the accelerator when needed.
    #[serde(default)]
    pub offload_to_cpu: bool,
    /// Runs the transformer in slices that fit into this much accelerator memory; -1.0 takes all
    /// free memory but 1 GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_vram_gib: Option<f32>,
    /// Assigns parts to devices, in the library's notation: `cuda0`, `te=cpu,vae=cuda0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Maps weight files into memory instead of reading them.
    #[serde(default = "on")]
    pub mmap: bool,
    /// CPU threads; one per physical core by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// As [`Settings::steps`].
    pub steps: Option<u32>,
    /// As [`Settings::guidance`].
    pub guidance: Option<f32>,
    /// As [`Settings::flow_shift`].
    pub flow_shift: Option<f32>,
    /// As [`Settings::sampler`].
    pub sampler: Option<Sampler>,
    /// As [`Settings::scheduler`].
    pub scheduler: Option<Scheduler>,
    /// As [`Settings::loras`]; an empty list uses none.
    pub loras: Option<Vec<Lora>>,
}

impl Preset {
    /// The preset that the settings of a model are.
    ///
    /// # Errors
    /// An unknown setting, or a value of another type.
    pub fn read(preset: &ModelPreset) -> Result<Self, serde_json::Error> {
        serde_json::from_value(preset.clone().into())
    }
}

/// Why settings are invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The name that clients see is empty.
    #[error("the engine's name is empty")]
    Nameless,
    /// A path is empty, contains a NUL byte, or is not UTF-8.
    #[error("{0}: not a usable path")]
    Path(Role),
    /// The family does not use this file.
    #[error("{role}: not used by {family} models")]
    Useless {
        /// The file's role.
        role: Role,
        /// The family.
        family: Family,
    },
    /// The family does not use this setting.
    #[error("{key}: not used by {family}")]
    Meaningless {
        /// The setting.
        key: &'static str,
        /// The family, or the missing part of it.
        family: &'static str,
    },
    /// A number is out of range.
    #[error("{key}: {value} is not within {range}")]
    Range {
        /// The setting.
        key: &'static str,
        /// The given value.
        value: f64,
        /// The allowed values.
        range: String,
    },
    /// A LoRA cannot be found by its name.
    #[error(
        "loras: '{0}' is not a path below loras_folder; write it like 'lightning/low.safetensors', and set loras_folder"
    )]
    Lora(String),
    /// A text contains a NUL byte.
    #[error("{0}: has a NUL byte")]
    Nul(&'static str),
}

impl Settings {
    /// Settings with only a model's files; the family determines the rest.
    pub fn new(
        family: Family,
        diffusion_model: impl Into<PathBuf>,
        vae: impl Into<PathBuf>,
        text_encoder: impl Into<PathBuf>,
    ) -> Self {
        Self {
            family,
            variant: None,
            diffusion_model: diffusion_model.into(),
            high_noise_diffusion_model: None,
            vae: vae.into(),
            audio_vae: None,
            text_encoder: text_encoder.into(),
            clip_vision: None,
            embeddings_connectors: None,
            loras_folder: None,
            loras: Vec::new(),
            steps: None,
            draft_steps: None,
            guidance: None,
            high_noise_guidance: None,
            moe_boundary: None,
            sampler: None,
            scheduler: None,
            flow_shift: None,
            fps: None,
            flash_attention: true,
            offload_to_cpu: false,
            max_vram_gib: None,
            backend: None,
            mmap: true,
            threads: None,
            vae_tiling: false,
        }
    }

    /// The file given for `role`.
    pub fn file(&self, role: Role) -> Option<&Path> {
        match role {
            Role::DiffusionModel => Some(&self.diffusion_model),
            Role::HighNoiseDiffusionModel => self.high_noise_diffusion_model.as_deref(),
            Role::Vae => Some(&self.vae),
            Role::AudioVae => self.audio_vae.as_deref(),
            Role::TextEncoder => Some(&self.text_encoder),
            Role::ClipVision => self.clip_vision.as_deref(),
            Role::EmbeddingsConnectors => self.embeddings_connectors.as_deref(),
        }
    }

    /// Every given file, in the order of the settings.
    pub fn files(&self) -> impl Iterator<Item = (Role, &Path)> {
        Role::ALL
            .into_iter()
            .filter_map(|role| Some((role, self.file(role)?)))
    }

    /// These settings with those of `preset` in their place. A preset with its own `guidance` has it for both experts.
    #[must_use]
    pub fn with_preset(&self, preset: &Preset) -> Self {
        let preset = preset.clone();
        let high_noise_guidance = self
            .high_noise_guidance
            .filter(|_| preset.guidance.is_none());
        Self {
            steps: preset.steps.or(self.steps),
            // A draft takes no more steps than its final.
            draft_steps: match (self.draft_steps, preset.steps) {
                (Some(draft), Some(steps)) => Some(draft.min(steps)),
                (draft, _) => draft,
            },
            guidance: preset.guidance.or(self.guidance),
            high_noise_guidance,
            flow_shift: preset.flow_shift.or(self.flow_shift),
            sampler: preset.sampler.or(self.sampler),
            scheduler: preset.scheduler.or(self.scheduler),
            loras: preset.loras.unwrap_or_else(|| self.loras.clone()),
            ..self.clone()
        }
    }

    pub(crate) fn variant(&self) -> Variant {
        self.variant.unwrap_or_default()
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
    pub fn validate(&self) -> Result<(), SettingsError> {
        for (role, path) in self.files() {
            let text = path.to_str().unwrap_or_default();
            if text.is_empty() || text.contains('\0') {
                return Err(SettingsError::Path(role));
            }
            if !self.family.takes(role) {
                let family = self.family;
                return Err(SettingsError::Useless { role, family });
            }
        }
        self.check_applicability()?;
        self.check_loras()?;
        self.check_ranges()
    }

    fn check_loras(&self) -> Result<(), SettingsError> {
        for lora in &self.loras {
            let mut parts = Path::new(&lora.path).components();
            let is_below = parts.all(|part| matches!(part, Component::Normal(_)));
            let is_named = !lora.path.is_empty() && !lora.path.contains('\0') && is_below;
            if !is_named || self.loras_folder.is_none() {
                return Err(SettingsError::Lora(lora.path.clone()));
            }
            check_float("loras.weight", Some(lora.weight), -10.0, 10.0)?;
            if lora.high_noise && self.high_noise_diffusion_model.is_none() {
                return meaningless(
                    "loras.high_noise",
                    "a model without high_noise_diffusion_model",
                );
            }
        }
        Ok(())
    }

    fn check_applicability(&self) -> Result<(), SettingsError> {
        match (self.family, self.variant) {
            (Family::WanVace, Some(_)) => return meaningless("variant", "wan-vace"),
            (Family::Ltx, Some(_)) => return meaningless("variant", "ltx"),
            _ => {}
        }
        if self.high_noise_diffusion_model.is_none() {
            let alone = "a model without high_noise_diffusion_model";
            if self.high_noise_guidance.is_some() {
                return meaningless("high_noise_guidance", alone);
            }
            if self.moe_boundary.is_some() {
                return meaningless("moe_boundary", alone);
            }
        }
        if self.guidance() <= 1.0 && self.high_noise_guidance() > 1.0 {
            // The library then never reads the negative prompt.
            return meaningless("high_noise_guidance", "a model with guidance 1.0");
        }
        if self.draft_steps.is_some() && !self.family.features(self.variant()).draft {
            return meaningless("draft_steps", "a model that makes no drafts");
        }
        if self
            .backend
            .as_ref()
            .is_some_and(|text| text.contains('\0'))
        {
            return Err(SettingsError::Nul("backend"));
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), SettingsError> {
        let steps = self.steps();
        check_integer("steps", self.steps, STEPS_MAX)?;
        check_integer("draft_steps", self.draft_steps, steps)?;
        check_integer("fps", self.fps, FPS_MAX)?;
        check_integer("threads", self.threads, THREADS_MAX)?;
        check_float("guidance", self.guidance, 1.0, GUIDANCE_MAX)?;
        let high_noise = self.high_noise_guidance;
        check_float("high_noise_guidance", high_noise, 1.0, GUIDANCE_MAX)?;
        check_float("moe_boundary", self.moe_boundary, 0.0, 1.0)?;
        check_float("flow_shift", self.flow_shift, 0.01, FLOW_SHIFT_MAX)?;
        match self.max_vram_gib {
            // -1.0 is the library's own value for "all free memory but 1 GiB".
            Some(gib) if (gib + 1.0).abs() < f32::EPSILON => Ok(()),
            other => check_float("max_vram_gib", other, 0.1, 10_000.0),
        }
    }
}

fn meaningless(key: &'static str, family: &'static str) -> Result<(), SettingsError> {
    Err(SettingsError::Meaningless { key, family })
}

fn check_integer(key: &'static str, value: Option<u32>, max: u32) -> Result<(), SettingsError> {
    match value {
        Some(value) if !(1..=max).contains(&value) => Err(SettingsError::Range {
            key,
            value: value.into(),
            range: format!("1 to {max}"),
        }),
        _ => Ok(()),
    }
}

fn check_float(
    key: &'static str,
    value: Option<f32>,
    min: f32,
    max: f32,
) -> Result<(), SettingsError> {
    match value {
        // NaN is in no range.
        Some(value) if !(min..=max).contains(&value) => Err(SettingsError::Range {
            key,
            value: value.into(),
            range: format!("{min} to {max}"),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal, $label:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $(#[doc = $label] #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them, in the library's order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in settings, which is also the library's.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
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
