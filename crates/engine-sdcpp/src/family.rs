//! Facts about each family of models that hold before opening any file: the files it needs, its
//! grid of pixels and frames, and its possible inputs. Taken from the library's source
//! (`stable-diffusion.cpp`, `generate_video` and its callees).

use kinora_engine::{Features, RenderGrid};

use crate::names::named;

named! {
    /// A family of models; each translates requests into the library's parameters in its own way.
    Family {
        Wan = "wan", "Wan 2.1 and 2.2: video from text or from a first frame.";
        WanVace = "wan-vace", "Wan VACE: video from text, a reference image or another video.";
        Ltx = "ltx", "LTX-2: video with sound from text or from a first frame.";
    }
}

named! {
    /// The task for which the weights of a [`Family::Wan`] model were trained; file names show it.
    Variant {
        T2v = "t2v", "From text alone: `Wan2.1-T2V-1.3B`, `Wan2.1-T2V-14B`, `Wan2.2-T2V-A14B`.";
        I2v = "i2v", "From a required first frame: `Wan2.1-I2V-14B`, `Wan2.2-I2V-A14B`.";
        Flf2v = "flf2v", "From a first frame and an optional last frame: `Wan2.1-FLF2V-14B`, `Wan2.2-I2V-A14B`.";
        Ti2v = "ti2v", "From text or from a first frame: `Wan2.2-TI2V-5B`.";
    }
}

named! {
    /// The role of a weight file.
    Role {
        DiffusionModel = "diffusion_model", "The denoising transformer; of two experts, the low-noise one.";
        HighNoiseDiffusionModel = "high_noise_diffusion_model", "The high-noise expert (Wan 2.2 A14B).";
        Vae = "vae", "Converts latents to pixels and back.";
        AudioVae = "audio_vae", "Converts latents to sound (LTX-2).";
        TextEncoder = "text_encoder", "Converts words to embeddings: umt5-xxl for Wan, Gemma 3 12B for LTX-2.";
        ClipVision = "clip_vision", "Converts the first frame to embeddings (Wan 2.1 I2V and FLF2V).";
        EmbeddingsConnectors = "embeddings_connectors", "Connects the text encoder to the transformer (LTX-2).";
    }
}

/// Properties of a family and variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Traits {
    /// Both sides of a frame are multiples of the VAE's spatial reduction times the transformer's patch size. A clip has a
    /// multiple of the VAE's temporal reduction in frames, plus one.
    pub grid: RenderGrid,
    /// Frames per second of the training material.
    pub fps: u32,
    pub steps: u32,
    pub draft_steps: u32,
    pub guidance: f32,
}

impl Family {
    pub(crate) fn traits(self, variant: Variant) -> Traits {
        let grid = |size_multiple, frame_step| RenderGrid {
            size_multiple,
            frame_step,
            frame_offset: 1,
        };
        let wan = Traits {
            grid: grid(16, 4),
            fps: 16,
            steps: 30,
            draft_steps: 12,
            guidance: 5.0,
        };
        match (self, variant) {
            (Self::Wan, Variant::Ti2v) => Traits {
                grid: grid(32, 4),
                fps: 24,
                ..wan
            },
            (Self::Wan | Self::WanVace, _) => wan,
            (Self::Ltx, _) => Traits {
                grid: grid(32, 8),
                fps: 24,
                steps: 20,
                draft_steps: 8,
                guidance: 4.0,
            },
        }
    }

    /// The features of a model of this family, apart from those that its settings decide.
    ///
    /// Never supported: reference sound (there is no input for it) and a length chosen by the
    /// model. A draft predicts its final only if the final is made from the draft's video, since
    /// the same seed at another size gives another picture. So only VACE, which accepts a video,
    /// makes drafts.
    pub(crate) fn features(self, variant: Variant) -> Features {
        let (first_frame, last_frame) = match (self, variant) {
            (Self::Wan, Variant::T2v) | (Self::WanVace, _) => (false, false),
            (Self::Wan, Variant::I2v) => (true, false),
            (Self::Wan, Variant::Flf2v | Variant::Ti2v) | (Self::Ltx, _) => (true, true),
        };
        let takes_video = self == Self::WanVace;
        // Both were trained only with pictures.
        let needs_picture = matches!((self, variant), (Self::Wan, Variant::I2v | Variant::Flf2v));
        Features {
            text_to_video: !needs_picture,
            first_frame,
            last_frame,
            // The library gives VACE one reference and would drop the others.
            reference_images_max: u32::from(takes_video),
            draft: takes_video,
            edit: takes_video,
            ..Features::default()
        }
    }

    /// Whether the family uses files of this role.
    pub(crate) const fn takes(self, role: Role) -> bool {
        match role {
            Role::DiffusionModel | Role::Vae | Role::TextEncoder => true,
            Role::HighNoiseDiffusionModel => matches!(self, Self::Wan | Self::WanVace),
            Role::ClipVision => matches!(self, Self::Wan),
            Role::AudioVae | Role::EmbeddingsConnectors => matches!(self, Self::Ltx),
        }
    }
}
