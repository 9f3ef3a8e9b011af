"""Imports the engine that a command line names."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ._engine import Engine
from ._errors import Mistake

GROUP = "kinora.engines"


def find_engine(target: str) -> Callable[[], Engine]:
    """The class that `MODULE:CLASS`, `FILE.py:CLASS` or an entry point's name stands for.

    Raises:
        Mistake: there is none.
        Exception: the module cannot be imported.
    """
    place, colon, name = target.rpartition(":")
    if not colon:
        return _entry_point(target)
    module = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise Mistake(f"{place} has no class {name}")
    return found  # type: ignore[no-any-return]


def _entry_point(name: str) -> Callable[[], Engine]:
    points = entry_points(group=GROUP)
    for point in points:
        if point.name == name:
            return point.load()  # type: ignore[no-any-return]
    known = ", ".join(sorted(point.name for point in points)) or "none"
    raise Mistake(f"no engine is installed as {name!r} in the entry-point group {GROUP} (installed: {known})")


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise Mistake(f"{path} is no file")
    # The modules beside the file can be imported, as if Python had run it.
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise Mistake(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
