"""Modular pipelines of diffusers, such as MiniMax-H3: made of blocks, whose inputs stand for the arguments of a call.

They have no `model_index.json`, load their parts in a second step, and return a state.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ._settings import Settings

INDEX = "modular_model_index.json"
OFFLOADS = ("none", "model")


def is_modular(pipe: Any) -> bool:
    """Whether the pipeline, or the class of this name, is a modular one."""
    name = pipe if isinstance(pipe, str) else type(pipe).__name__
    return name.endswith("ModularPipeline")


def load_modular(diffusers: Any, settings: Settings, dtype: Any, options: dict[str, Any]) -> Any:
    """A modular pipeline with all parts that its workflow needs.

    Raises:
        RuntimeError: parts are missing; diffusers has logged why.
    """
    manager = diffusers.ComponentsManager() if settings.offload == "model" else None
    workflow = settings.workflow or None
    pipe = diffusers.ModularPipeline.from_pretrained(settings.model, components_manager=manager, workflow=workflow)
    pipe.load_components(dtype=dtype, **options)
    if pipe.null_component_names:
        raise RuntimeError(f"{settings.model}: could not load {', '.join(pipe.null_component_names)}")
    return pipe


def place_modular(pipe: Any, settings: Settings, device: str) -> None:
    """Moves the parts to the device, or lets them wait in main memory for their turn."""
    if settings.offload == "model":
        pipe._components_manager.enable_auto_cpu_offload(device=device)
    else:
        pipe.to(device)


def inputs(pipe: Any) -> set[str]:
    """Names of the inputs that a call takes."""
    return set(pipe._blocks.input_names)


def result_of(state: Any) -> Any:
    """A call's result in the form of other pipelines."""
    return SimpleNamespace(frames=state.get("videos"), audio=state.get("audio"), sampling_rate=state.get("sampling_rate"))


def loops(block: Any) -> Iterator[Any]:
    """The blocks that have a progress bar."""
    if hasattr(block, "progress_bar"):
        yield block
    for inner in (getattr(block, "sub_blocks", None) or {}).values():
        yield from loops(inner)
