"""A job's preset: the settings of its model, over those of the engine. A wrong one fails the job, and says what is wrong.

Keys: `steps`, `draft_steps`, `scheduler` and `arguments` as in the settings, `loras`, and further arguments of the call by their own
names, such as `guidance_scale`. `loras` lists the active ones among those of the settings: names, or `{"name": "style", "weight": 0.8}`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ._settings import Settings

KEYS = ("steps", "draft_steps", "scheduler", "arguments", "loras")
OF_JOBS = {"prompt", "width", "height", "num_frames", "frames", "num_inference_steps", "generator", "output_type"}
"""Arguments of a call that follow from the job, so that those of a preset would be ignored."""


def for_job(settings: Settings, preset: dict[str, Any], known: set[str]) -> Settings:
    """The settings of a job with this preset: its `scheduler` has the changes to the loaded one. `known` are the arguments of the call.

    Raises:
        ValueError: the preset has an unknown key or an impossible value.
    """
    further = {name: value for name, value in preset.items() if name not in KEYS}
    unknown = sorted(set(further) - (known - OF_JOBS))
    if unknown:
        raise ValueError(f"unknown keys in the preset: {', '.join(unknown)}; known are {', '.join(KEYS)}, and arguments of the pipeline's call")
    arguments = {**_table(preset, "arguments"), **further}
    taken = sorted(set(arguments) & OF_JOBS)
    if taken:
        raise ValueError(f"the preset's arguments name {', '.join(taken)}, which follow from the job; the number of steps is `steps`")
    return replace(
        settings,
        steps=_steps(preset, "steps", settings.steps),
        draft_steps=_steps(preset, "draft_steps", settings.draft_steps),
        scheduler=_table(preset, "scheduler"),
        arguments={**settings.arguments, **arguments},
        loras=_loras(settings, preset["loras"]) if "loras" in preset else settings.loras,
    )


def _table(preset: dict[str, Any], key: str) -> dict[str, Any]:
    value = preset.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"the preset's {key} is {value!r}; it is a table")
    return value


def _steps(preset: dict[str, Any], key: str, otherwise: int) -> int:
    value = preset.get(key, otherwise)
    if key in preset and (type(value) is not int or value < 1):
        raise ValueError(f"the preset's {key} is {value!r}; it is a whole number, 1 or more")
    return int(value)


def _loras(settings: Settings, chosen: Any) -> list[dict[str, Any]]:
    """The LoRAs of the settings, of which those in the preset are active."""
    if settings.compile:
        raise ValueError("a preset's loras need compile = false: each change of LoRAs would compile the blocks again")
    weights: dict[str, Any] = {}
    for one in chosen if isinstance(chosen, list) else [chosen]:
        lora = {"name": one} if isinstance(one, str) else one
        if not isinstance(lora, dict) or not set(lora) <= {"name", "weight"} or "name" not in lora:
            raise ValueError(f"the preset's loras have {one!r}; write a list of names, or of tables with name and weight")
        weights[lora["name"]] = lora.get("weight")
    names = [lora["name"] for lora in settings.loras]
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise ValueError(f"the preset names LoRAs that settings.loras does not load: {', '.join(unknown)}; it loads {', '.join(names) or 'none'}")
    return [{**lora, "active": lora["name"] in weights, **_scale(weights.get(lora["name"]))} for lora in settings.loras]


def _scale(weight: Any) -> dict[str, float]:
    return {} if weight is None else {"scale": float(weight)}


def activate(pipe: Any, loras: list[dict[str, Any]]) -> None:
    """Switches on the active ones among loaded LoRAs, with their scales, and all others off. No weight is loaded or copied."""
    active = [lora for lora in loras if lora.get("active", True)]
    if not active:
        pipe.disable_lora()
        return
    pipe.enable_lora()
    pipe.set_adapters([lora["name"] for lora in active], [float(lora.get("scale", 1.0)) for lora in active])


@contextmanager
def scheduled(pipe: Any, changes: dict[str, Any]) -> Iterator[None]:
    """Within this, the pipeline has a scheduler with these values.

    Raises:
        ValueError: the scheduler has no such value.
    """
    if not changes:
        yield
        return
    own = pipe.scheduler
    unknown = sorted(set(changes) - set(own.config))
    if unknown:
        raise ValueError(f"the preset's scheduler has {', '.join(unknown)}, which {type(own).__name__} does not know")
    pipe.scheduler = type(own).from_config(own.config, **changes)
    try:
        yield
    finally:
        pipe.scheduler = own
