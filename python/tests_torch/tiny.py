"""Builds tiny diffusers pipelines with random weights: `python tiny.py NAME FOLDER`. Nothing is downloaded."""

import copy
import math
import sys
from pathlib import Path
from typing import Any

import torch
from diffusers import (
    AutoencoderKLWan,
    FlowMatchEulerDiscreteScheduler,
    WanImageToVideoPipeline,
    WanPipeline,
    WanTransformer3DModel,
    WanVACEPipeline,
    WanVACETransformer3DModel,
)
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, UMT5Config, UMT5EncoderModel

LOUDNESS = 100.0
LTX25_SECONDS = 3.1
"""What the tiny LTX-2.5 predicts for any prompt."""


def tokenizer() -> Any:
    """One token a byte, without merges."""
    symbols = ["<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE(vocab={symbol: index for index, symbol in enumerate(symbols)}, merges=[], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def _wan_parts(**more: Any) -> dict[str, Any]:
    """The parts that all pipelines of the family have; `more` are arguments of the transformer."""
    torch.manual_seed(0)
    vae = AutoencoderKLWan(base_dim=3, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1, temperal_downsample=[False, True, True])
    # Random biases would outweigh the pictures.
    for name, parameter in vae.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    arguments = {
        "patch_size": (1, 2, 2),
        "num_attention_heads": 2,
        "attention_head_dim": 12,
        "in_channels": 16,
        "out_channels": 16,
        "text_dim": 32,
        "freq_dim": 256,
        "ffn_dim": 32,
        "num_layers": 2,
        "cross_attn_norm": True,
        "qk_norm": "rms_norm_across_heads",
        "rope_max_seq_len": 32,
        **more,
    }
    kind = WanVACETransformer3DModel if "vace_layers" in more else WanTransformer3DModel
    config = UMT5Config(vocab_size=300, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    return {
        "vae": vae,
        "transformer": kind(**arguments),
        "scheduler": FlowMatchEulerDiscreteScheduler(shift=7.0),
        "text_encoder": UMT5EncoderModel(config),
        "tokenizer": tokenizer(),
    }


def _louder(layer: Any, first_channel: int = 0) -> None:
    """Makes pictures count: as random weights are, they change no frame by as much as one level of 255."""
    with torch.no_grad():
        layer.weight[:, first_channel:] *= LOUDNESS


def wan(folder: Path, **more: Any) -> None:
    """A text-to-video pipeline: 16-pixel grid, 4n+1 frames. `more` are arguments of the transformer."""
    WanPipeline(**_wan_parts(**more)).save_pretrained(folder)


def wan_a14b(folder: Path) -> None:
    """Two experts, of which the second has the last of three steps: Wan 2.2 A14B."""
    parts = _wan_parts()
    second = copy.deepcopy(parts["transformer"])
    with torch.no_grad():
        second.proj_out.weight *= -1
    WanPipeline(**parts, transformer_2=second, boundary_ratio=0.9).save_pretrained(folder)


def wan_ti2v(folder: Path) -> None:
    """The decoder of Wan 2.2 TI2V 5B, with steps of 16 pixels and so a grid of 32."""
    parts = _wan_parts(in_channels=48, out_channels=48)
    normal = {"latents_mean": [0.0] * 48, "latents_std": [1.0] * 48}
    shape = {"base_dim": 3, "z_dim": 48, "in_channels": 12, "out_channels": 12, "is_residual": True, "patch_size": 2, "num_res_blocks": 1}
    scale = {"scale_factor_spatial": 16, "scale_factor_temporal": 4, "temperal_downsample": [False, True, True]}
    parts["vae"] = AutoencoderKLWan(**shape, **scale, **normal, dim_mult=[1, 1, 1, 1])
    WanPipeline(**parts, expand_timesteps=True).save_pretrained(folder)


def wan_i2v(folder: Path) -> None:
    """It needs a first frame, and has no encoder of pictures: that of Wan 2.2."""
    parts = _wan_parts(in_channels=36)
    _louder(parts["transformer"].patch_embedding, first_channel=20)
    WanImageToVideoPipeline(**parts, image_encoder=None, image_processor=None, boundary_ratio=None).save_pretrained(folder)


def wan_vace(folder: Path) -> None:
    """It works from a control video too."""
    parts = _wan_parts(vace_layers=[0], vace_in_channels=96)
    _louder(parts["transformer"].vace_patch_embedding)
    WanVACEPipeline(**parts).save_pretrained(folder)


def cogvideox(folder: Path) -> None:
    """With rotary positions, as CogVideoX 5B. It needs `max_sequence_length = 16`."""
    from diffusers import AutoencoderKLCogVideoX, CogVideoXDDIMScheduler, CogVideoXPipeline, CogVideoXTransformer3DModel
    from transformers import T5Config, T5EncoderModel

    torch.manual_seed(0)
    vae = AutoencoderKLCogVideoX(block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2)
    transformer = CogVideoXTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        out_channels=4,
        time_embed_dim=2,
        text_embed_dim=32,
        num_layers=2,
        sample_width=4,
        sample_height=4,
        sample_frames=9,
        max_text_seq_length=16,
        use_rotary_positional_embeddings=True,
    )
    text_encoder = T5EncoderModel(T5Config(vocab_size=300, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4))
    parts = {"vae": vae, "transformer": transformer, "text_encoder": text_encoder}
    CogVideoXPipeline(**parts, tokenizer=tokenizer(), scheduler=CogVideoXDDIMScheduler()).save_pretrained(folder)


def hunyuanvideo15(folder: Path) -> None:
    """HunyuanVideo 1.5, which has neither a callback nor a guidance scale."""
    from diffusers import AutoencoderKLHunyuanVideo15, ClassifierFreeGuidance, HunyuanVideo15Pipeline, HunyuanVideo15Transformer3DModel
    from transformers import ByT5Tokenizer, Qwen2_5_VLTextConfig, Qwen2_5_VLTextModel, T5Config, T5EncoderModel

    torch.manual_seed(0)
    vae = AutoencoderKLHunyuanVideo15(block_out_channels=(32, 32, 32, 32, 32), latent_channels=4, layers_per_block=1)
    transformer = HunyuanVideo15Transformer3DModel(
        in_channels=9,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=16,
        num_layers=2,
        num_refiner_layers=1,
        mlp_ratio=2.0,
        text_embed_dim=16,
        text_embed_2_dim=32,
        image_embed_dim=12,
        rope_axes_dim=(4, 6, 6),
        target_size=32,
        task_type="t2v",
    )
    text = {
        "vocab_size": 300,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1]},
    }
    chat = tokenizer()
    chat.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    HunyuanVideo15Pipeline(
        vae=vae,
        transformer=transformer,
        text_encoder=Qwen2_5_VLTextModel(Qwen2_5_VLTextConfig(**text)),
        tokenizer=chat,
        text_encoder_2=T5EncoderModel(T5Config(vocab_size=400, d_model=32, d_kv=8, d_ff=37, num_layers=1, num_heads=4)),
        tokenizer_2=ByT5Tokenizer(),
        scheduler=FlowMatchEulerDiscreteScheduler(shift=7.0),
        guider=ClassifierFreeGuidance(guidance_scale=6.0),
    ).save_pretrained(folder)


def ltx2(folder: Path) -> None:
    """A text-to-video pipeline with 16 kHz stereo sound."""
    _ltx2().save_pretrained(folder)


def ltx2_condition(folder: Path) -> None:
    """The same from a first and a last frame."""
    from diffusers import LTX2ConditionPipeline

    _ltx2(LTX2ConditionPipeline).save_pretrained(folder)


def ltx25(folder: Path) -> None:
    """The same with the part of LTX-2.5 that predicts a clip's length."""
    from diffusers.pipelines.ltx2.duration_head import LTX2DurationHead

    head = LTX2DurationHead(
        video_cross_attention_dim=32, audio_cross_attention_dim=32, pooler_hidden_dim=8, num_pooler_heads=2, mlp_hidden_dim=8
    )
    # It predicts the logarithm of the seconds.
    torch.nn.init.zeros_(head.mlp_out.weight)
    torch.nn.init.constant_(head.mlp_out.bias, math.log(LTX25_SECONDS))
    _ltx2(duration_head=head).save_pretrained(folder)


def _ltx2(kind: Any = None, **parts: Any) -> Any:
    """A pipeline of this class, or of `LTX2Pipeline`."""
    from diffusers import (
        AutoencoderKLLTX2Audio,
        AutoencoderKLLTX2Video,
        LTX2Pipeline,
        LTX2VideoTransformer3DModel,
    )
    from diffusers.pipelines.ltx2 import LTX2TextConnectors
    from diffusers.pipelines.ltx2.vocoder import LTX2Vocoder
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration

    torch.manual_seed(0)
    text = {
        "vocab_size": 300,
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "pad_token_id": 0,
    }
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
    text_encoder = Gemma3ForConditionalGeneration(Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4))
    vae = AutoencoderKLLTX2Video(
        latent_channels=4,
        block_out_channels=(8,),
        decoder_block_out_channels=(8,),
        layers_per_block=(1,),
        decoder_layers_per_block=(1, 1),
        spatio_temporal_scaling=(True,),
        decoder_spatio_temporal_scaling=(True,),
        decoder_inject_noise=(False, False),
        downsample_type=("spatial",),
        upsample_residual=(False,),
        upsample_factor=(1,),
        patch_size=4,
        patch_size_t=1,
        encoder_causal=True,
        decoder_causal=False,
    )
    vae.use_framewise_encoding = False
    vae.use_framewise_decoding = False
    audio_vae = AutoencoderKLLTX2Audio(
        base_channels=4,
        output_channels=2,
        ch_mult=(1,),
        num_res_blocks=1,
        attn_resolutions=None,
        in_channels=2,
        resolution=32,
        latent_channels=2,
        norm_type="pixel",
        causality_axis="height",
        dropout=0.0,
        mid_block_add_attention=False,
        sample_rate=16_000,
        mel_hop_length=160,
        is_causal=True,
        mel_bins=8,
    )
    vocoder = LTX2Vocoder(
        in_channels=16,
        hidden_channels=32,
        out_channels=2,
        upsample_kernel_sizes=[32, 20],
        upsample_factors=[16, 10],
        resnet_kernel_sizes=[3],
        resnet_dilations=[[1, 3, 5]],
        output_sampling_rate=16_000,
    )
    transformer = LTX2VideoTransformer3DModel(
        in_channels=4,
        out_channels=4,
        patch_size=1,
        patch_size_t=1,
        num_attention_heads=2,
        attention_head_dim=8,
        cross_attention_dim=16,
        audio_in_channels=4,
        audio_out_channels=4,
        audio_num_attention_heads=2,
        audio_attention_head_dim=4,
        audio_cross_attention_dim=8,
        num_layers=2,
        qk_norm="rms_norm_across_heads",
        caption_channels=32,
        rope_double_precision=False,
        rope_type="split",
    )
    heads = {"num_attention_heads": 4, "attention_head_dim": 8, "num_layers": 1, "num_learnable_registers": None}
    connectors = LTX2TextConnectors(
        caption_channels=32,
        text_proj_in_factor=3,
        connector_rope_base_seq_len=32,
        rope_theta=10_000.0,
        rope_double_precision=False,
        causal_temporal_positioning=False,
        rope_type="split",
        **{f"video_connector_{name}": value for name, value in heads.items()},
        **{f"audio_connector_{name}": value for name, value in heads.items()},
    )
    return (kind or LTX2Pipeline)(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=vae,
        audio_vae=audio_vae,
        text_encoder=text_encoder,
        tokenizer=tokenizer(),
        connectors=connectors,
        transformer=transformer,
        vocoder=vocoder,
        **parts,
    )


if __name__ == "__main__":
    KINDS = (wan, wan_a14b, wan_ti2v, wan_i2v, wan_vace, cogvideox, hunyuanvideo15, ltx2, ltx2_condition, ltx25)
    BUILDERS = {builder.__name__: builder for builder in KINDS}
    BUILDERS[sys.argv[1]](Path(sys.argv[2]))
