//! Which files each model has, and what its settings say.

use super::format::Format::{self, Gguf, Safetensors};
use super::tensor::{Kind, Tensor};
use super::{clip_vision, gemma, ltx, ltx_audio, ltx_vae, umt5, vae, wan};

/// A file: its key in the settings, how it is written, and what is in it.
pub(crate) type Part = (&'static str, Format, Vec<Tensor>);

pub(crate) struct Recipe {
    /// The lines of the settings that name no file, or one that is written for another key.
    pub settings: &'static str,
    pub parts: Vec<Part>,
}

/// The model of this name; `text` is whether its text encoder is more than an empty file.
pub(crate) fn recipe(name: &str, kind: Kind, text: bool) -> Result<Recipe, String> {
    let (settings, shape, vae) = match name {
        "wan" => ("family = \"wan\"\n", wan::SMALL, vae::WAN_21),
        "wan-vace" => ("family = \"wan-vace\"\n", wan::VACE, vae::WAN_21),
        "wan-i2v" => {
            let settings = "family = \"wan\"\nvariant = \"i2v\"\n";
            (settings, wan::SMALL_I2V, vae::WAN_21)
        }
        "wan-flf2v" => {
            let settings = "family = \"wan\"\nvariant = \"flf2v\"\n";
            (settings, wan::FLF2V, vae::WAN_21)
        }
        "wan2.2-ti2v" => {
            let settings = "family = \"wan\"\nvariant = \"ti2v\"\n";
            (settings, wan::TI2V, vae::WAN_22)
        }
        "wan2.2-i2v" => {
            let settings = "family = \"wan\"\nvariant = \"flf2v\"\n\
                high_noise_diffusion_model = \"diffusion_model.gguf\"\n";
            (settings, wan::I2V_22, vae::WAN_21)
        }
        "ltx" if !text => {
            return Err("the library runs no ltx without its text encoder".to_owned());
        }
        "ltx" => return Ok(ltx(kind)),
        other => return Err(format!("{other}: no such model")),
    };
    let words = if text {
        umt5::tensors(kind)
    } else {
        Vec::new()
    };
    let mut parts = vec![
        ("diffusion_model", Gguf, wan::tensors(kind, shape)),
        ("vae", Safetensors, vae::tensors(&vae)),
        ("text_encoder", Gguf, words),
    ];
    if shape.vision != wan::Vision::Nothing {
        parts.push(("clip_vision", Safetensors, clip_vision::tensors()));
    }
    Ok(Recipe { settings, parts })
}

fn ltx(kind: Kind) -> Recipe {
    let parts = vec![
        ("diffusion_model", Gguf, ltx::transformer(kind)),
        ("vae", Safetensors, ltx_vae::tensors()),
        ("audio_vae", Safetensors, ltx_audio::tensors()),
        ("text_encoder", Gguf, gemma::tensors(kind)),
        ("embeddings_connectors", Gguf, ltx::connectors(kind)),
    ];
    Recipe {
        settings: "family = \"ltx\"\n",
        parts,
    }
}
