"""Objects of diffusers and of libraries beside it, from tables of the settings.

A table with `type` becomes an object of that class, and its other keys are the arguments: `{"type": "FirstBlockCacheConfig", "threshold":
0.05}`. A name without a module is a class of diffusers; others are written out, as `torchao.quantization.Int8WeightOnlyConfig`.
"""

import importlib
from typing import Any

_DTYPES = {"compute_dtype", "taylor_factors_dtype", "weight_dtype", "activation_dtype"}
"""Arguments that take a type of torch, which a configuration can only name. Others with such names take the name itself."""


def made(value: Any) -> Any:
    """The value, with objects instead of tables that have a `type`.

    Raises:
        ValueError: a class cannot be imported, or does not take the arguments.
    """
    if isinstance(value, list):
        return [made(item) for item in value]
    if not isinstance(value, dict):
        return value
    arguments = {name: dtype(item) if name in _DTYPES and isinstance(item, str) else made(item) for name, item in value.items()}
    if "type" not in arguments:
        return arguments
    name = arguments.pop("type")
    kind = _class(name)
    try:
        return kind(**arguments)
    except (TypeError, ValueError, ImportError) as error:
        raise ValueError(f"{name}: {error}") from error


def dtype(name: str) -> Any:
    """The type of torch.

    Raises:
        ValueError: it has none of this name.
    """
    import torch

    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{name!r} is not a type of torch, such as bfloat16 or float32")
    return found


def _class(name: str) -> Any:
    module, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module or "diffusers"), last)
    except ImportError as error:
        raise ValueError(f"{name} needs a package that is not installed: {error}") from error
    except AttributeError:
        raise ValueError(f"there is no class {name}") from None
