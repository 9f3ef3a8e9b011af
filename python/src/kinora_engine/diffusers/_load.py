"""Loads a pipeline and sets its switches for memory and speed. Call it inside a phase: it imports torch."""

from importlib.util import find_spec
from typing import Any

from ._caches import enable
from ._files import INDEX, missing, read_json
from ._index import pipeline_class
from ._modular import is_modular, load_modular, place_modular
from ._preset import activate
from ._settings import Settings
from ._together import rank_device, share_denoiser
from ._weights import dtypes, quantization, single_files

NEEDS_AV = ("LTX2ConditionPipeline", "LTX2ImageToVideoPipeline")
"""Pipelines that compress a first and a last frame as a film would be, before they use it."""
DENOISERS = ("transformer", "transformer_2", "transformer_ref", "unet")


def load_pipeline(settings: Settings, rank: int = 0) -> Any:
    """A pipeline, ready to run on the device of this rank.

    Raises:
        Exception: as diffusers raises it.
    """
    import diffusers
    import torch

    options = {**settings.components, **single_files(diffusers, settings)}
    if settings.quantization:
        options["quantization_config"] = quantization(settings)
    pipe = _loaded(diffusers, settings, options)
    pipe.set_progress_bar_config(disable=True)
    if settings.scheduler:
        pipe.scheduler = type(pipe.scheduler).from_config(pipe.scheduler.config, **settings.scheduler)
    _load_loras(pipe, settings)
    if settings.vae_tiling:
        pipe.vae.enable_tiling()
    if settings.vae_slicing:
        pipe.vae.enable_slicing()
    for denoiser in denoisers(pipe):
        if settings.attention:
            denoiser.set_attention_backend(settings.attention)
        if settings.cache:
            enable(pipe, denoiser, settings.cache)
        if settings.ranks > 1:
            share_denoiser(denoiser, settings)
        if settings.compile:
            denoiser.compile_repeated_blocks()
    _place(pipe, torch, settings, rank_device(settings, rank))
    return pipe


def _loaded(diffusers: Any, settings: Settings, options: dict[str, Any]) -> Any:
    types = dtypes(settings)
    class_name = settings.pipeline or pipeline_class(settings.model)
    if class_name in NEEDS_AV and find_spec("av") is None:
        raise ValueError(f"{class_name} needs the package av for first and last frames: pip install av")
    if is_modular(class_name):
        return load_modular(diffusers, settings, types, options)
    # By its own class: `DiffusionPipeline` ignores a part that is given to it, if the class could do without the part.
    base = getattr(diffusers, settings.pipeline) if settings.pipeline else getattr(diffusers, class_name, diffusers.DiffusionPipeline)
    try:
        return base.from_pretrained(settings.model, dtype=types, **options)
    except OSError as error:
        if read_json(settings.model, INDEX) is not None:
            raise
        # Of diffusers, it names a stack trace and `local_files_only`, which operators do not have.
        raise ValueError(missing(settings.model)) from error


def denoisers(pipe: Any) -> list[Any]:
    """The networks that run once a step or more."""
    found = (getattr(pipe, name, None) for name in DENOISERS)
    return [denoiser for denoiser in found if denoiser is not None]


def _load_loras(pipe: Any, settings: Settings) -> None:
    for lora in settings.loras:
        arguments = {key: value for key, value in lora.items() if key not in ("name", "path", "scale", "active")}
        pipe.load_lora_weights(lora["path"], adapter_name=lora["name"], **arguments)
    if settings.loras:
        activate(pipe, settings.loras)


def _place(pipe: Any, torch: Any, settings: Settings, device: str) -> None:
    options = settings.offload_options
    if is_modular(pipe):
        place_modular(pipe, settings, device)
    elif settings.offload == "model":
        pipe.enable_model_cpu_offload(device=device, **options)
    elif settings.offload == "sequential":
        pipe.enable_sequential_cpu_offload(device=device, **options)
    elif settings.offload == "group":
        pipe.enable_group_offload(onload_device=torch.device(device), **options)
    else:
        pipe.to(device)
