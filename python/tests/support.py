"""Shared by the tests: paths, and hosts whose engines find this package."""

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from kinora_engine.testing import Host, command  # noqa: E402

ENGINES = ROOT / "tests" / "engines.py"
EXAMPLES = ROOT / "examples"
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
NEEDS_NUMPY = "numpy is not installed"


def host(name: str = "Script", file: Path = ENGINES) -> Host:
    """A process of an engine, not opened."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return Host(command(f"{file}:{name}"), env={"PYTHONPATH": path})
