//! Checks whether a file fits its role, by the same tensor names and shapes that the library uses to
//! identify models (`model_loader.cpp`, `wan.hpp`, `t5.hpp`, `ltxv.hpp`). Models that these do not
//! distinguish pass.

use super::header::{FileProblem, TensorInfo, WeightHeader};
use crate::family::{Family, Role, Variant};
use crate::settings::Settings;

#[derive(Debug, Default)]
pub(super) struct RoleFindings {
    pub contents: Option<String>,
    pub problems: Vec<FileProblem>,
}

impl RoleFindings {
    fn misfit(&mut self, why: impl Into<String>) {
        self.problems.push(FileProblem::Misfit(why.into()));
    }
}

/// Finds a tensor named `tail`, with any prefix.
fn find<'a>(header: &'a WeightHeader, tail: &str) -> Option<&'a TensorInfo> {
    header.tensors.iter().find(|tensor| {
        tensor
            .name
            .strip_suffix(tail)
            .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    })
}

fn has_part(header: &WeightHeader, part: &str) -> bool {
    header
        .tensors
        .iter()
        .any(|tensor| tensor.name.contains(part))
}

/// One more than the highest index after `part`, which must start the name or follow a dot.
fn blocks(header: &WeightHeader, part: &str) -> u64 {
    header
        .tensors
        .iter()
        .filter_map(|tensor| {
            // At the start or after a dot: `blocks.3` must not match within `sub_blocks.3`.
            let (place, _) = tensor.name.match_indices(part).find(|(place, _)| {
                *place == 0 || tensor.name.as_bytes().get(place - 1) == Some(&b'.')
            })?;
            let rest = &tensor.name[place + part.len()..];
            rest.split('.').next()?.parse::<u64>().ok()
        })
        .max()
        .map_or(0, |highest| highest.saturating_add(1))
}

/// Checks the file for `role`.
pub(super) fn check_file(role: Role, header: &WeightHeader, settings: &Settings) -> RoleFindings {
    let mut judgement = RoleFindings::default();
    let tells = telling_tensors(role, settings.family);
    let told = tells.iter().any(|tail| find(header, tail).is_some());
    if !told && let Some(tail) = tells.first() {
        judgement
            .problems
            .push(FileProblem::NoTensor((*tail).to_owned()));
        return judgement;
    }
    if has_part(header, "scaled_fp8") || has_part(header, ".scale_weight") {
        // The library ignores the scales and generates noise.
        judgement
            .misfit("has scaled FP8 weights, whose scales are ignored: use 16-bit or GGUF weights");
    }
    match (role, settings.family) {
        (Role::DiffusionModel | Role::HighNoiseDiffusionModel, Family::Wan | Family::WanVace) => {
            wan(header, settings, &mut judgement);
        }
        (Role::Vae, Family::Wan | Family::WanVace) => wan_vae(header, settings, &mut judgement),
        (Role::TextEncoder, Family::Wan | Family::WanVace) => umt5(header, &mut judgement),
        (Role::TextEncoder, Family::Ltx) => {
            let layers = blocks(header, "layers.").max(blocks(header, "blk."));
            if layers != GEMMA_LAYERS {
                judgement.misfit(format!(
                    "has {layers} layers; Gemma 3 12B, which LTX-2 needs, has {GEMMA_LAYERS}"
                ));
            }
        }
        _ => {}
    }
    judgement
}

const GEMMA_LAYERS: u64 = 48;

/// Names, one per common format, of a tensor that the file must have.
fn telling_tensors(role: Role, family: Family) -> &'static [&'static str] {
    match (role, family) {
        (Role::DiffusionModel | Role::HighNoiseDiffusionModel, Family::Wan) => WAN_TELLS,
        (Role::DiffusionModel | Role::HighNoiseDiffusionModel, Family::WanVace) => {
            &["vace_patch_embedding.weight"]
        }
        (Role::DiffusionModel | Role::HighNoiseDiffusionModel, Family::Ltx) => {
            &["adaln_single.emb.timestep_embedder.linear_1.bias"]
        }
        (Role::Vae, Family::Wan | Family::WanVace) => &["decoder.middle.0.residual.0.gamma"],
        (Role::Vae, Family::Ltx) => &[
            "per_channel_statistics.mean-of-means",
            "per_channel_statistics.mean_of_means",
        ],
        (Role::AudioVae, _) => &["vocoder.vocoder.conv_pre.weight"],
        (Role::TextEncoder, Family::Wan | Family::WanVace) => {
            &["shared.weight", "token_embd.weight"]
        }
        (Role::TextEncoder, Family::Ltx) => &["embed_tokens.weight", "token_embd.weight"],
        (Role::ClipVision, _) => &[
            "vision_model.embeddings.class_embedding",
            "visual.class_embedding",
        ],
        (Role::EmbeddingsConnectors, _) => &[
            "text_embedding_projection.video_aggregate_embed.weight",
            "text_embedding_projection.aggregate_embed.weight",
        ],
    }
}

const WAN_TELLS: &[&str] = &["blocks.0.cross_attn.norm_k.weight"];

/// The properties of a Wan transformer.
struct WanShape {
    blocks: u64,
    /// Input channels: latents and their conditioning.
    channels: u64,
    clip_vision: bool,
    last_frame: bool,
}

impl WanShape {
    fn from_header(header: &WeightHeader) -> Self {
        let embedding = find(header, "patch_embedding.weight");
        let width = find(header, "patch_embedding.bias").map_or(0, TensorInfo::elements);
        // `[width][channels][1][2][2]`, flattened in some formats.
        let per_channel = width.saturating_mul(4);
        let elements = embedding.map_or(0, TensorInfo::elements);
        Self {
            blocks: blocks(header, "blocks."),
            channels: elements.checked_div(per_channel).unwrap_or(0),
            clip_vision: has_part(header, "img_emb."),
            last_frame: has_part(header, "img_emb.emb_pos"),
        }
    }
}

/// Input channels by kind of transformer: 16 or 48 of latents; with a first frame, 16 more and four
/// of a mask.
const LATENT: u64 = 16;
const LATENT_22: u64 = 48;
const WITH_FRAME: u64 = 36;

fn wan(header: &WeightHeader, settings: &Settings, judgement: &mut RoleFindings) {
    let shape = WanShape::from_header(header);
    let (blocks, channels) = (shape.blocks, shape.channels);
    judgement.contents = Some(format!("{blocks} blocks, {channels} channels"));
    // The library aborts the process for any other number.
    if ![30, 40].contains(&blocks) {
        judgement.misfit(format!("has {blocks} blocks; Wan models have 30 or 40"));
        return;
    }
    if settings.family == Family::WanVace {
        return;
    }
    if find(header, "vace_patch_embedding.weight").is_some() {
        judgement.misfit("is a VACE model: set family = \"wan-vace\"");
        return;
    }
    // Channels tell what the weights were trained with: 16 of latents (T2V), 36 with a first
    // frame and its mask (I2V, FLF2V), 48 for the larger VAE of TI2V.
    let fits = match settings.variant() {
        Variant::T2v => channels == LATENT && !shape.clip_vision,
        Variant::I2v => channels == WITH_FRAME && !shape.last_frame,
        // Wan 2.2 I2V accepts a last frame without embeddings of its own for it.
        Variant::Flf2v => channels == WITH_FRAME && (shape.last_frame || !shape.clip_vision),
        Variant::Ti2v => channels == LATENT_22,
    };
    if !fits {
        let likely = match channels {
            LATENT => "t2v",
            LATENT_22 => "ti2v",
            WITH_FRAME if shape.last_frame => "flf2v",
            WITH_FRAME => "i2v",
            _ => "no known variant",
        };
        let set = settings.variant();
        judgement.misfit(format!(
            "does not fit variant \"{set}\"; it looks like {likely}"
        ));
    }
}

fn wan_vae(header: &WeightHeader, settings: &Settings, judgement: &mut RoleFindings) {
    if !has_part(header, "encoder.conv1.weight") {
        let tail = "encoder.conv1.weight".to_owned();
        judgement.problems.push(FileProblem::NoTensor(tail));
    }
    // `[z][z][1][1][1]`: the bias has one element per latent channel.
    let latent = header.tensors.iter().find(|tensor| {
        let name = &tensor.name;
        name.ends_with("conv2.bias") && !name.contains("coder")
    });
    let Some(latent) = latent.map(TensorInfo::elements) else {
        judgement
            .problems
            .push(FileProblem::NoTensor("conv2.bias".to_owned()));
        return;
    };
    judgement.contents = Some(format!("{latent} latent channels"));
    let (wanted, which) = match (settings.family, settings.variant()) {
        (Family::Wan, Variant::Ti2v) => (LATENT_22, "the Wan 2.2 VAE (48 latent channels)"),
        _ => (LATENT, "the Wan 2.1 VAE (16 latent channels)"),
    };
    if latent != wanted {
        judgement.misfit(format!(
            "has {latent} latent channels; this model needs {which}"
        ));
    }
}

/// umt5-xxl is the only text encoder that the library supports for Wan.
fn umt5(header: &WeightHeader, judgement: &mut RoleFindings) {
    const WORDS: u64 = 256_384;
    const LAYERS: u64 = 24;
    let words = find(header, "shared.weight").or_else(|| find(header, "token_embd.weight"));
    let words = words.and_then(|tensor| tensor.shape.first().copied());
    let layers = blocks(header, "encoder.block.").max(blocks(header, "enc.blk."));
    judgement.contents = Some(format!("{} words, {layers} layers", words.unwrap_or(0)));
    if words != Some(WORDS) || layers != LAYERS {
        judgement.misfit("is not the encoder of umt5-xxl (256384 words, 24 layers)");
    }
    let each = [
        "block.1.layer.0.SelfAttention.relative_attention_bias.weight",
        "enc.blk.1.attn_rel_b.weight",
    ];
    if !each.iter().any(|tail| find(header, tail).is_some()) {
        judgement
            .problems
            .push(FileProblem::NoTensor(each[0].to_owned()));
    }
}

/// Files that the model needs in addition to those given.
pub(super) fn missing_files(
    settings: &Settings,
    headers: &[(Role, WeightHeader)],
) -> Vec<(Role, &'static str)> {
    let mut missing = Vec::new();
    let diffusion = headers
        .iter()
        .find(|(role, _)| *role == Role::DiffusionModel);
    let Some((_, diffusion)) = diffusion else {
        return missing;
    };
    if settings.family == Family::Wan
        && has_part(diffusion, "img_emb.")
        && settings.file(Role::ClipVision).is_none()
    {
        let reason = "these weights look at the first frame through CLIP vision (ViT-H/14)";
        missing.push((Role::ClipVision, reason));
    }
    let projection = "text_embedding_projection.";
    if settings.family == Family::Ltx
        && settings.file(Role::EmbeddingsConnectors).is_none()
        && !headers
            .iter()
            .any(|(_, header)| has_part(header, projection))
    {
        let reason = "no other file brings the projection of the text encoder's states";
        missing.push((Role::EmbeddingsConnectors, reason));
    }
    missing
}
