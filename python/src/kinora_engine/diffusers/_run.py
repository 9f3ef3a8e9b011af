"""Runs one call of a pipeline: the same in each rank."""

from typing import Any

from ._hooks import watched
from ._length import chosen
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
        return pipe(**arguments, generator=generator)
