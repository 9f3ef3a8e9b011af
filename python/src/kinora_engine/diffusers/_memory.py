"""What to do when a device's memory does not suffice: keep more of the weights in main memory."""

import gc
import sys
import traceback
from dataclasses import replace

from ._modular import is_modular
from ._settings import Settings

LEAVES = {"offload_type": "leaf_level"}
"""Each layer by itself: no other group is as small, and it needs no number of blocks."""


def with_more_offload(settings: Settings) -> Settings | None:
    """The settings with the next offload, which needs less of the device; `None` if there is none.

    From `none` to `model` to `group` by layers. Several ranks would have to load again together, so they have none.
    """
    if not settings.retry_out_of_memory or settings.ranks > 1:
        return None
    if settings.offload == "none":
        return replace(settings, offload="model", offload_options={})
    if is_modular(settings.pipeline):
        return None
    is_by_blocks = settings.offload == "group" and settings.offload_options.get("offload_type") != "leaf_level"
    if settings.offload == "model" or is_by_blocks:
        return replace(settings, offload="group", offload_options=dict(LEAVES))
    return None


def forget(error: BaseException) -> None:
    """Lets go of all that an error's call stack holds, which are tensors."""
    cause: BaseException | None = error
    while cause is not None:
        if cause.__traceback__ is not None:
            traceback.clear_frames(cause.__traceback__)
            cause.__traceback__ = None
        cause.__cause__, cause.__context__, cause = None, None, cause.__cause__ or cause.__context__


def give_back() -> None:
    """Returns the memory of unreachable tensors to the device."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def note(settings: Settings, more: Settings, error: BaseException) -> None:
    """Says in the log what happens."""
    text = f"out of memory with offload = {settings.offload!r}; once more with {more.offload!r}: {error}"
    print(f"kinora-engine: {text}", file=sys.stderr, flush=True)

