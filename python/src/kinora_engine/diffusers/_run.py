"""Runs one call of a pipeline: the same in each rank."""

from typing import Any

from ._caches import reset
from ._hooks import watched
from ._length import chosen
from ._load import denoisers
from ._modular import is_modular, result_of
from ._watch import Watch


def run(pipe: Any, arguments: dict[str, Any], seed: int, watch: Watch, is_compiled: bool) -> Any:
    """The pipeline's result.

    Raises:
        Cancelled: the watch stopped the call.
        Exception: as the pipeline raises it.
    """
    import torch

    # On the CPU, so that the same seed gives the same noise on every device.
    generator = torch.Generator("cpu").manual_seed(seed)
    with watched(pipe, watch, is_compiled), chosen(pipe, watch):
        result = pipe(**arguments, generator=generator)
    return result_of(result) if is_modular(pipe) else result


def clean(pipe: Any) -> None:
    """Clears step caches and half-done offloading; otherwise a stopped job changes the next one's frames."""
    for denoiser in denoisers(pipe):
        reset(denoiser)
    if not is_modular(pipe):
        pipe.maybe_free_model_hooks()
