"""Builds Wan 2.1, or Wan 2.2 TI2V (5b), in its published shapes with random weights: `python full.py 1.3b|14b|5b FOLDER [TEXT_ENCODER]`.

The weights are made on the GPU if there is one, in bfloat16. TEXT_ENCODER is the folder of one that was built before, to be
linked instead of built again (11.4 GB); it may come later. Shapes: the `config.json` files of Wan-AI's repositories in diffusers' format.
"""

import sys
from pathlib import Path

import torch
from diffusers import AutoencoderKLWan, UniPCMultistepScheduler, WanPipeline, WanTransformer3DModel
from tiny import tokenizer
from transformers import UMT5Config, UMT5EncoderModel

HEADS_WIDTH_LAYERS_CHANNELS = {"1.3b": (12, 8_960, 30, 16), "14b": (40, 13_824, 40, 16), "5b": (24, 14_336, 30, 48)}
"""Heads of 128 channels each, width of the feed-forward layers, layers, channels of the latents."""


def transformer(size: str) -> WanTransformer3DModel:
    """The denoiser."""
    heads, width, layers, channels = HEADS_WIDTH_LAYERS_CHANNELS[size]
    return WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=heads,
        attention_head_dim=128,
        in_channels=channels,
        out_channels=channels,
        text_dim=4_096,
        freq_dim=256,
        ffn_dim=width,
        num_layers=layers,
        cross_attn_norm=True,
        qk_norm="rms_norm_across_heads",
        rope_max_seq_len=1_024,
    )


def decoder(size: str) -> AutoencoderKLWan:
    """The decoder, with its encoder."""
    if size != "5b":
        return AutoencoderKLWan()
    shape = {"base_dim": 160, "decoder_base_dim": 256, "z_dim": 48, "in_channels": 12, "out_channels": 12, "is_residual": True, "patch_size": 2}
    normal = {"latents_mean": [0.0] * 48, "latents_std": [1.0] * 48}
    return AutoencoderKLWan(**shape, **normal, scale_factor_spatial=16, scale_factor_temporal=4)


def text_encoder() -> UMT5EncoderModel:
    """umt5-xxl."""
    config = UMT5Config(
        vocab_size=256_384,
        d_model=4_096,
        d_kv=64,
        d_ff=10_240,
        num_layers=24,
        num_heads=64,
        feed_forward_proj="gated-gelu",
    )
    return UMT5EncoderModel(config)


def build(size: str, folder: Path, encoder: Path | None) -> None:
    """Builds the pipeline and saves it."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        parts = {"vae": decoder(size), "transformer": transformer(size), "text_encoder": None if encoder else text_encoder()}
    scheduler = UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0)
    WanPipeline(**parts, scheduler=scheduler, tokenizer=tokenizer(), expand_timesteps=size == "5b").save_pretrained(folder)
    if encoder:
        (folder / "text_encoder").symlink_to(encoder.resolve())
        index = folder / "model_index.json"
        missing = '"text_encoder": [\n    null,\n    null\n  ]'
        text = index.read_text()
        assert missing in text, text
        index.write_text(text.replace(missing, '"text_encoder": [\n    "transformers",\n    "UMT5EncoderModel"\n  ]'))


if __name__ == "__main__":
    build(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
