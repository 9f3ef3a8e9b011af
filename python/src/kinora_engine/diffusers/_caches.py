"""Step caches of diffusers. Source: `hooks`, and the calls of `cache_context` in the pipelines, of diffusers 0.42.1.

Most caches keep a state for each kind of call, whose name they take from `cache_context` around the call. In a pipeline without it, they
fail each call or do nothing, so the adapter refuses them.
"""

from typing import Any

from ._families import FAMILIES
from ._objects import made

IN_CONTEXT = {"FirstBlockCacheConfig", "MagCacheConfig", "TaylorSeerCacheConfig"}
"""Caches that fail each call outside a `cache_context`."""
IN_STEPS = "SeaCacheConfig"
"""The cache that also needs the number and the sigma of the step, and does nothing without them."""
BY_TIMESTEP = {"PyramidAttentionBroadcastConfig", "FasterCacheConfig"}
"""Caches that ask the pipeline for its `current_timestep`."""
FOR_IMAGES = "TextKVCacheConfig"
"""The cache that knows the blocks of an image model only, and does nothing to others."""

WITHOUT_CONTEXT = {
    "WanVideoToVideoPipeline",
    "HunyuanVideoImageToVideoPipeline",
    "HunyuanSkyreelsImageToVideoPipeline",
    "LTX2DFRPipeline",
    "MiniMaxH3ModularPipeline",
    "SanaVideoPipeline",
    "SanaImageToVideoPipeline",
    "Kandinsky5T2VPipeline",
    "Kandinsky5I2VPipeline",
    "AnyFlowPipeline",
    "AnyFlowFARPipeline",
    "EasyAnimatePipeline",
    "AnimateDiffPipeline",
    "AnimateDiffVideoToVideoPipeline",
}
"""Known pipelines that set no `cache_context`."""
WITH_STEPS = {"WanPipeline"}
"""Known pipelines whose `cache_context` has the number and the sigma of the step."""


def refuse(class_name: str, cache: dict[str, Any]) -> None:
    """Refuses a cache that would fail each call of this pipeline, or do nothing. Unknown pipelines may have any.

    Raises:
        ValueError: with the reason.
    """
    if not cache:
        return
    kind = cache.get("type")
    if not isinstance(kind, str):
        raise ValueError('settings.cache needs type, the class of its configuration, such as "FirstBlockCacheConfig"')
    reason = ""
    if kind == FOR_IMAGES:
        reason = "has blocks that it does not know"
    elif kind in IN_CONTEXT and class_name in WITHOUT_CONTEXT:
        reason = "sets no cache context"
    elif kind == IN_STEPS and class_name in FAMILIES and class_name not in WITH_STEPS:
        reason = "does not say the step and its sigma"
    if reason:
        raise ValueError(f"settings.cache cannot be {kind}: {class_name} of diffusers 0.42.1 {reason}")


def enable(pipe: Any, denoiser: Any, cache: dict[str, Any]) -> None:
    """Gives a denoiser a cache.

    Raises:
        ValueError: the denoiser or the pipeline cannot have this one.
    """
    if not hasattr(denoiser, "enable_cache"):
        raise ValueError(f"settings.cache: {type(denoiser).__name__} can have no cache")
    arguments = dict(cache)
    if arguments["type"] in BY_TIMESTEP:
        if not hasattr(type(pipe), "current_timestep"):
            raise ValueError(f"settings.cache cannot be {arguments['type']}: {type(pipe).__name__} has no current_timestep")
        arguments["current_timestep_callback"] = lambda: pipe.current_timestep
    denoiser.enable_cache(made(arguments))


def reset(denoiser: Any) -> None:
    """Forgets what a cache kept of a job."""
    if hasattr(denoiser, "_reset_stateful_cache"):
        denoiser._reset_stateful_cache()
