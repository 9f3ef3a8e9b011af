"""What these tests share: a model in a folder, and engines that run it. Needs the extra `diffusers`."""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests_torch"), str(ROOT)]

from kinora_engine.testing import Host, command  # noqa: E402

__all__ = ["ENVIRONMENT", "ROOT", "Tiny", "tiny"]

PATH = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
ENVIRONMENT = {"PYTHONPATH": PATH, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
try:
    import tiny
except ImportError as error:
    raise unittest.SkipTest(f"torch or diffusers is not installed: {error}") from None


class Tiny:
    """A model in a folder, and engines that run it."""

    folder: "tempfile.TemporaryDirectory[str]"
    build: Any

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.build(Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def host(self, **settings: Any) -> Host:
        host = Host(command("kinora_engine.diffusers:Pipeline"), env=ENVIRONMENT, timeout=120)
        self.addCleanup(host.close)  # type: ignore[attr-defined]
        self.hello = host.open({"model": self.folder.name, "dtype": "float32", "torch_device": "cpu", "steps": 3, **settings})
        return host
