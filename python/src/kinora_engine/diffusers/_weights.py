"""Which types a pipeline's weights have, how they are quantised, and which files they come from. Imports torch."""

from typing import Any

from ._files import INDEX, read_json
from ._modular import INDEX as MODULAR_INDEX
from ._objects import dtype, made
from ._settings import DTYPE, Settings

EVERY = "default"
"""In a table of types, the name for all other parts."""


def dtypes(settings: Settings) -> Any:
    """One type for all parts, or types by the name of the part.

    Raises:
        ValueError: a type or a part does not exist.
    """
    if isinstance(settings.dtype, str):
        return dtype(settings.dtype)
    known = read_json(settings.model, INDEX) or read_json(settings.model, MODULAR_INDEX)
    unknown = [] if known is None else sorted(set(settings.dtype) - set(known) - {EVERY})
    if unknown:
        raise ValueError(f"settings.dtype names {', '.join(unknown)}, which {settings.model} does not have")
    return {name: dtype(value) for name, value in {EVERY: DTYPE, **settings.dtype}.items()}


def quantization(settings: Settings) -> Any:
    """A `diffusers.PipelineQuantizationConfig`.

    Raises:
        ValueError: a library is missing, or does not take an argument.
    """
    try:
        return made({"type": "PipelineQuantizationConfig", **settings.quantization})
    except ValueError as error:
        raise ValueError(f"settings.quantization: {error}") from error


def single_files(diffusers: Any, settings: Settings) -> dict[str, Any]:
    """Parts that have a file of their own, by name. Their configuration is that of the model's folder.

    Raises:
        ValueError: the model has no such part, or diffusers does not read it from a single file.
    """
    types = dtypes(settings)
    parts = {}
    for name, path in settings.single_files.items():
        library, kind = (read_json(settings.model, INDEX) or {}).get(name) or ("", "")
        part: Any = getattr(diffusers, kind) if library == "diffusers" else None
        if not hasattr(part, "from_single_file"):
            raise ValueError(f"settings.single_files: {settings.model} has no {name} that diffusers reads from a single file")
        own = types.get(name, types[EVERY]) if isinstance(types, dict) else types
        quantized = {"quantization_config": diffusers.GGUFQuantizationConfig(compute_dtype=own)} if path.endswith(".gguf") else {}
        parts[name] = part.from_single_file(path, config=settings.model, subfolder=name, dtype=own, **quantized)
    return parts
