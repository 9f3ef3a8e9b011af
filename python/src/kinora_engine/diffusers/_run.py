"""Runs one call of a pipeline: the same in each rank."""

from typing import Any

from ._caches import reset
from ._hooks import watched
from ._length import chosen
from ._load import denoisers
from ._modular import is_modular, result_of
from ._preset import activate, scheduled
from ._settings import Settings
from ._watch import Watch


def run(pipe: Any, arguments: dict[str, Any], seed: int, watch: Watch, settings: Settings) -> Any:
    """The pipeline's result. `settings` are those of the job.

    Raises:
        Cancelled: the watch stopped the call.
        Exception: as the pipeline raises it.
    """
    import torch

    # Always, since the last job may have had others. Compiled blocks have the same LoRAs for ever.
    if settings.loras and not settings.compile:
        activate(pipe, settings.loras)
    # On the CPU, so that the same seed gives the same noise on every device.
    generator = torch.Generator("cpu").manual_seed(seed)
    with scheduled(pipe, settings.scheduler), watched(pipe, watch, settings.compile), chosen(pipe, watch):
        result = pipe(**arguments, generator=generator)
    return result_of(result) if is_modular(pipe) else result


def clean(pipe: Any) -> None:
    """Clears step caches and half-done offloading; otherwise a stopped job changes the next one's frames."""
    for denoiser in denoisers(pipe):
        reset(denoiser)
    if not is_modular(pipe):
        pipe.maybe_free_model_hooks()
