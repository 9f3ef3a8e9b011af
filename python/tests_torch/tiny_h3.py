"""MiniMax-H3 with random weights, in the published geometry of its decoder and clock but narrow: `tiny_h3.py:TinyH3` is an engine.

Its pipeline is made in the engine's process: saving one needs torchvision, for a processor that text alone hardly uses.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
from diffusers import (
    AutoencoderKLMiniMaxH3,
    AutoencoderKLMiniMaxH3Audio,
    MiniMaxH3Scheduler,
    MiniMaxH3Transformer3DModel,
)
from diffusers.modular_pipelines.minimax_h3.modular_blocks_minimax_h3 import MiniMaxH3Blocks
from tiny import tokenizer
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

from kinora_engine import Frames
from kinora_engine.diffusers import Pipeline
from kinora_engine.diffusers._settings import Settings


def text_encoder() -> Any:
    """As deep as the pipeline needs: it reads the hidden state after layer 50."""
    text = {
        "vocab_size": 300,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 51,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1]},
    }
    vision = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16, "deepstack_visual_indexes": [0]}
    return Qwen3VLForConditionalGeneration(Qwen3VLConfig(text_config=text, vision_config=vision))


def pipeline() -> Any:
    """The workflow `t2va`."""
    torch.manual_seed(0)
    vae = AutoencoderKLMiniMaxH3(
        block_out_channels=(4, 4, 4, 4, 4, 4),
        layers_per_block=1,
        norm_num_groups=2,
        decoder_num_layers=1,
        decoder_num_attention_heads=2,
        decoder_attention_head_dim=8,
    )
    normal = {"latents_mean": [0.0] * 32, "latents_std": [1.0] * 32}
    audio = AutoencoderKLMiniMaxH3Audio(encoder_dim=2, latent_dim=32, num_attention_heads=2, decoder_dim=128, **normal)
    transformer = MiniMaxH3Transformer3DModel(
        num_attention_heads=2,
        attention_head_dim=12,
        hidden_size=16,
        num_layers=2,
        num_refiner_layers=1,
        ffn_dim=16,
        text_dim=16,
        freq_dim=16,
        time_embed_hidden_dim=16,
        time_embed_dim=8,
        rope_freq_dim=2,
    )
    pipe = MiniMaxH3Blocks().get_workflow("t2va").init_pipeline()
    processor = SimpleNamespace(create_mm_token_type_ids=lambda rows: [[0] * len(row) for row in rows])
    pipe.update_components(
        vae=vae,
        audio_vae=audio,
        transformer=transformer,
        scheduler=MiniMaxH3Scheduler(shift=12.0),
        audio_scheduler=MiniMaxH3Scheduler(shift=3.0),
        text_encoder=text_encoder(),
        tokenizer=tokenizer(),
    )
    pipe.processor = processor
    return pipe


class TinyH3(Pipeline):
    """The engine, but for loading."""

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        self.settings = Settings.parse(settings)
        self._grid = Frames(17, 5)
        self._has_compiled = True
        self.ranks = None
        self.pipe = pipeline()
