"""Reads a model's JSON files, and describes the engine from them. Imports neither torch nor diffusers."""

from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version

from .._description import Description, Features, Frames
from . import _caches as caches
from ._families import FAMILIES, UNSPLIT, Family
from ._files import INDEX, missing, read_json
from ._length import HEAD
from ._modular import INDEX as MODULAR_INDEX
from ._modular import OFFLOADS as MODULAR_OFFLOADS
from ._modular import is_modular
from ._settings import Settings


def describe(settings: Settings) -> Description:
    """The engine's description.

    Raises:
        ValueError: the model cannot be found, or its class is unknown and `settings.describe` does not describe it.
    """
    class_name = settings.pipeline or pipeline_class(settings.model)
    family = FAMILIES.get(class_name)
    if family is None and not {"size_multiple", "frames", "features"} <= set(settings.describe):
        raise ValueError(f"{class_name} is not known: settings.describe needs size_multiple, frames, fps and features")
    family = _corrected(family or Family(Features(), 1, Frames(), 0), class_name, settings)
    _refuse(class_name, settings)
    said = settings.describe
    chooses = family.chooses_length and _has_part(settings.model, HEAD)
    # A draft is made without a video, and its final from the draft's video.
    draft = settings.draft_steps > 0 and family.features.edit and family.features.text_to_video
    features = asdict(replace(family.features, draft=draft, auto_duration=chooses))
    unknown = sorted(set(said.get("features", {})) - set(features))
    if unknown:
        raise ValueError(f"unknown features in settings.describe: {', '.join(unknown)}")
    return Description(
        features=Features(**{**features, **said.get("features", {})}),
        size_multiple=int(said.get("size_multiple", family.size_multiple)),
        frames=Frames(**said["frames"]) if "frames" in said else family.frames,
        fps=int(said.get("fps", family.fps)),
        name=class_name,
        version=_diffusers_version(),
        yield_seconds=settings.yield_seconds,
        presets=True,
    )


def pipeline_class(model: str) -> str:
    """The class that `model_index.json` names.

    Raises:
        ValueError: the file cannot be had.
    """
    index = read_json(model, INDEX) or read_json(model, MODULAR_INDEX)
    if index is None:
        raise ValueError(missing(model))
    return str(index["_class_name"])


def _refuse(class_name: str, settings: Settings) -> None:
    """Refuses settings that the class cannot have."""
    caches.refuse(class_name, settings.cache)
    if settings.ranks > 1 and class_name in UNSPLIT:
        raise ValueError(f"settings.ranks must be 1: diffusers 0.42.1 cannot split {class_name} over ranks")
    if is_modular(class_name) and settings.offload not in MODULAR_OFFLOADS:
        raise ValueError(f"settings.offload of {class_name} is one of {', '.join(MODULAR_OFFLOADS)}")


def _has_part(model: str, name: str) -> bool:
    """Whether `model_index.json` names a class for an optional part."""
    part = (read_json(model, INDEX) or {}).get(name)
    return isinstance(part, list) and part[-1] is not None


def _corrected(family: Family, class_name: str, settings: Settings) -> Family:
    """Wan's grid depends on its decoder: 16 pixels, but 32 for TI2V-5B, which also runs at 24 frames per second."""
    if not class_name.startswith("Wan"):
        return family
    vae = read_json(settings.model, "vae/config.json") or {}
    transformer = read_json(settings.model, "transformer/config.json") or {}
    patch = transformer.get("patch_size") or [1, 2, 2]
    scale = int(vae.get("scale_factor_spatial") or 8)
    if scale == 16:
        family = replace(family, fps=24)
    return replace(family, size_multiple=scale * int(patch[1]))


def _diffusers_version() -> str:
    try:
        return f"diffusers {version('diffusers')}"
    except PackageNotFoundError:
        return ""
