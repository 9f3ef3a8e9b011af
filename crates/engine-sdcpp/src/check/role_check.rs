//! Checks whether a file fits its role, by the same tensor names and shapes that the library uses to
//! identify models (`model_loader.cpp`, `wan.hpp`, `t5.hpp`, `ltxv.hpp`). Models that these do not
//! distinguish pass.

use super::header::{FileReport, TensorInfo, WeightHeader};
use crate::family::{Family, Role, Variant};
use crate::settings::Settings;

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

/// One more than the highest index after `part`, which must start the name or follow a dot: `blocks.3` must not match within
/// `sub_blocks.3`.
fn blocks(header: &WeightHeader, part: &str) -> u64 {
    let inner = format!(".{part}");
    let index = |tensor: &TensorInfo| {
        let after_dot = || tensor.name.split_once(&inner).map(|(_, rest)| rest);
        let rest = tensor.name.strip_prefix(part).or_else(after_dot)?;
        rest.split('.').next()?.parse::<u64>().ok()
    };
    let highest = header.tensors.iter().filter_map(index).max();
    highest.map_or(0, |highest| highest.saturating_add(1))
}

/// Checks the file with `header` for its role.
pub(super) fn check_file(report: &mut FileReport, header: &WeightHeader, settings: &Settings) {
    let role = report.role;
    let tells = telling_tensors(role, settings.family);
    if !tells.iter().any(|tail| find(header, tail).is_some()) {
        return report.lacks(tells[0]);
    }
    if has_part(header, "scaled_fp8") || has_part(header, ".scale_weight") {
        // The library ignores the scales and generates noise.
        report
            .misfit("has scaled FP8 weights, whose scales are ignored: use 16-bit or GGUF weights");
    }
    match (role, settings.family) {
        (Role::TextEncoder, Family::Ltx) => {
            let layers = blocks(header, "layers.").max(blocks(header, "blk."));
            if layers != GEMMA_LAYERS {
                report.misfit(format!(
                    "has {layers} layers; Gemma 3 12B, which LTX-2 needs, has {GEMMA_LAYERS}"
                ));
            }
        }
        (_, Family::Ltx) => {}
        (Role::DiffusionModel | Role::HighNoiseDiffusionModel, _) => wan(header, settings, report),
        (Role::Vae, _) => wan_vae(header, settings, report),
        (Role::TextEncoder, _) => umt5(header, report),
        _ => {}
    }
}

const GEMMA_LAYERS: u64 = 48;

/// Names, one per common format, of a tensor that the file must have.
fn telling_tensors(role: Role, family: Family) -> &'static [&'static str] {
    match role {
        Role::DiffusionModel | Role::HighNoiseDiffusionModel => match family {
            Family::Wan => &["blocks.0.cross_attn.norm_k.weight"],
            Family::WanVace => &["vace_patch_embedding.weight"],
            Family::Ltx => &["adaln_single.emb.timestep_embedder.linear_1.bias"],
        },
        Role::Vae if family == Family::Ltx => &[
            "per_channel_statistics.mean-of-means",
            "per_channel_statistics.mean_of_means",
        ],
        Role::Vae => &["decoder.middle.0.residual.0.gamma"],
        Role::AudioVae => &["vocoder.vocoder.conv_pre.weight"],
        Role::TextEncoder if family == Family::Ltx => &["embed_tokens.weight", "token_embd.weight"],
        Role::TextEncoder => &["shared.weight", "token_embd.weight"],
        Role::ClipVision => &[
            "vision_model.embeddings.class_embedding",
            "visual.class_embedding",
        ],
        Role::EmbeddingsConnectors => &[
            "text_embedding_projection.video_aggregate_embed.weight",
            "text_embedding_projection.aggregate_embed.weight",
        ],
    }
}

/// Input channels by kind of transformer: 16 or 48 of latents; with a first frame, 16 more and four
/// of a mask.
const LATENT: u64 = 16;
const LATENT_22: u64 = 48;
const WITH_FRAME: u64 = 36;

fn wan(header: &WeightHeader, settings: &Settings, report: &mut FileReport) {
    let blocks = blocks(header, "blocks.");
    // Latents and their conditioning: `[width][channels][1][2][2]`, flattened in some formats.
    let elements = find(header, "patch_embedding.weight").map_or(0, TensorInfo::elements);
    let width = find(header, "patch_embedding.bias").map_or(0, TensorInfo::elements);
    let channels = elements.checked_div(width.saturating_mul(4)).unwrap_or(0);
    let has_vision = has_part(header, "img_emb.");
    let has_last_frame = has_part(header, "img_emb.emb_pos");
    report.contents = Some(format!("{blocks} blocks, {channels} channels"));
    // The library aborts the process for any other number.
    if ![30, 40].contains(&blocks) {
        report.misfit(format!("has {blocks} blocks; Wan models have 30 or 40"));
        return;
    }
    if settings.family == Family::WanVace {
        return;
    }
    if find(header, "vace_patch_embedding.weight").is_some() {
        report.misfit("is a VACE model: set family = \"wan-vace\"");
        return;
    }
    // Channels tell what the weights were trained with: 16 of latents (T2V), 36 with a first
    // frame and its mask (I2V, FLF2V), 48 for the larger VAE of TI2V.
    let fits = match settings.variant() {
        Variant::T2v => channels == LATENT && !has_vision,
        Variant::I2v => channels == WITH_FRAME && !has_last_frame,
        // Wan 2.2 I2V accepts a last frame without embeddings of its own for it.
        Variant::Flf2v => channels == WITH_FRAME && (has_last_frame || !has_vision),
        Variant::Ti2v => channels == LATENT_22,
    };
    if !fits {
        let likely = match channels {
            LATENT => "t2v",
            LATENT_22 => "ti2v",
            WITH_FRAME if has_last_frame => "flf2v",
            WITH_FRAME => "i2v",
            _ => "no known variant",
        };
        let set = settings.variant().name();
        report.misfit(format!(
            "does not fit variant \"{set}\"; it looks like {likely}"
        ));
    }
}

fn wan_vae(header: &WeightHeader, settings: &Settings, report: &mut FileReport) {
    if !has_part(header, "encoder.conv1.weight") {
        report.lacks("encoder.conv1.weight");
    }
    // `[z][z][1][1][1]`: the bias has one element per latent channel.
    let latent = header.tensors.iter().find(|tensor| {
        let name = &tensor.name;
        name.ends_with("conv2.bias") && !name.contains("coder")
    });
    let Some(latent) = latent.map(TensorInfo::elements) else {
        return report.lacks("conv2.bias");
    };
    report.contents = Some(format!("{latent} latent channels"));
    let (wanted, which) = match (settings.family, settings.variant()) {
        (Family::Wan, Variant::Ti2v) => (LATENT_22, "the Wan 2.2 VAE (48 latent channels)"),
        _ => (LATENT, "the Wan 2.1 VAE (16 latent channels)"),
    };
    if latent != wanted {
        report.misfit(format!(
            "has {latent} latent channels; this model needs {which}"
        ));
    }
}

/// umt5-xxl is the only text encoder that the library supports for Wan.
fn umt5(header: &WeightHeader, report: &mut FileReport) {
    const WORDS: u64 = 256_384;
    const LAYERS: u64 = 24;
    let words = find(header, "shared.weight").or_else(|| find(header, "token_embd.weight"));
    let words = words.and_then(|tensor| tensor.shape.first().copied());
    let layers = blocks(header, "encoder.block.").max(blocks(header, "enc.blk."));
    report.contents = Some(format!("{} words, {layers} layers", words.unwrap_or(0)));
    if words != Some(WORDS) || layers != LAYERS {
        report.misfit("is not the encoder of umt5-xxl (256384 words, 24 layers)");
    }
    let each = [
        "block.1.layer.0.SelfAttention.relative_attention_bias.weight",
        "enc.blk.1.attn_rel_b.weight",
    ];
    if !each.iter().any(|tail| find(header, tail).is_some()) {
        report.lacks(each[0]);
    }
}

/// Files that the model needs in addition to those given.
pub(super) fn missing_files(
    settings: &Settings,
    headers: &[(Role, WeightHeader)],
) -> Vec<(Role, &'static str)> {
    let mut diffusion = headers
        .iter()
        .filter(|(role, _)| *role == Role::DiffusionModel);
    let Some((_, diffusion)) = diffusion.next() else {
        return Vec::new();
    };
    let projects =
        |(_, header): &(Role, WeightHeader)| has_part(header, "text_embedding_projection.");
    match settings.family {
        Family::Wan if settings.clip_vision.is_none() && has_part(diffusion, "img_emb.") => {
            let reason = "these weights look at the first frame through CLIP vision (ViT-H/14)";
            vec![(Role::ClipVision, reason)]
        }
        Family::Ltx
            if settings.embeddings_connectors.is_none() && !headers.iter().any(projects) =>
        {
            let reason = "no other file brings the projection of the text encoder's states";
            vec![(Role::EmbeddingsConnectors, reason)]
        }
        _ => Vec::new(),
    }
}
