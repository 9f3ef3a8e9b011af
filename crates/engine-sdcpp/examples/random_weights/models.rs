//! Which files each model has, and what its settings say.

use super::format::Format;
use super::tensor::{Kind, Tensor};
use super::{clip_vision, gemma, ltx, ltx_audio, ltx_vae, umt5, vae, wan};

/// A file: its key in the settings, how it is written, and what is in it.
pub(crate) struct Part {
    pub key: &'static str,
    pub format: Format,
    pub tensors: Vec<Tensor>,
}

pub(crate) struct Recipe {
    /// The lines of the settings that name no file, or one that is written for another key.
    pub settings: &'static str,
    pub parts: Vec<Part>,
}

fn gguf(key: &'static str, tensors: Vec<Tensor>) -> Part {
    let format = Format::Gguf;
    Part {
        key,
        format,
        tensors,
    }
}

fn safetensors(key: &'static str, tensors: Vec<Tensor>) -> Part {
    let format = Format::Safetensors;
    Part {
        format,
        ..gguf(key, tensors)
    }
}

/// The model of this name; `text` is whether its text encoder is more than an empty file.
pub(crate) fn recipe(name: &str, kind: Kind, text: bool) -> Result<Recipe, String> {
    let wan = |settings, shape, vae: vae::Vae| {
        let mut parts = vec![
            gguf("diffusion_model", wan::tensors(kind, shape)),
            safetensors("vae", vae::tensors(&vae)),
        ];
        let words = if text {
            umt5::tensors(kind)
        } else {
            Vec::new()
        };
        parts.push(gguf("text_encoder", words));
        Recipe { settings, parts }
    };
    let with_vision = |mut recipe: Recipe| {
        let vision = safetensors("clip_vision", clip_vision::tensors());
        recipe.parts.push(vision);
        recipe
    };
    Ok(match name {
        "wan" => wan("family = \"wan\"\n", wan::SMALL, vae::WAN_21),
        "wan-vace" => wan("family = \"wan-vace\"\n", wan::VACE, vae::WAN_21),
        "wan-i2v" => {
            let settings = "family = \"wan\"\nvariant = \"i2v\"\n";
            with_vision(wan(settings, wan::SMALL_I2V, vae::WAN_21))
        }
        "wan-flf2v" => {
            let settings = "family = \"wan\"\nvariant = \"flf2v\"\n";
            with_vision(wan(settings, wan::FLF2V, vae::WAN_21))
        }
        "wan2.2-ti2v" => {
            let settings = "family = \"wan\"\nvariant = \"ti2v\"\n";
            wan(settings, wan::TI2V, vae::WAN_22)
        }
        "wan2.2-i2v" => {
            let settings = "family = \"wan\"\nvariant = \"flf2v\"\n\
                high_noise_diffusion_model = \"diffusion_model.gguf\"\n";
            wan(settings, wan::I2V_22, vae::WAN_21)
        }
        "ltx" if !text => {
            return Err("the library runs no ltx without its text encoder".to_owned());
        }
        "ltx" => Recipe {
            settings: "family = \"ltx\"\n",
            parts: vec![
                gguf("diffusion_model", ltx::transformer(kind)),
                safetensors("vae", ltx_vae::tensors()),
                safetensors("audio_vae", ltx_audio::tensors()),
                gguf("text_encoder", gemma::tensors(kind)),
                gguf("embeddings_connectors", ltx::connectors(kind)),
            ],
        },
        other => return Err(format!("{other}: no such model")),
    })
}
