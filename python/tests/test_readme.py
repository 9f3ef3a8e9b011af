"""The Python of the package's page is run as it stands there."""

import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import support

README = support.ROOT / "README.md"


class Readme(unittest.TestCase):
    def test_its_engine_runs_under_its_host(self) -> None:
        engine, use = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
        name = engine.splitlines()[0].removeprefix("# ")
        here = os.getcwd()
        found = mock.patch.dict(os.environ, PYTHONPATH=str(support.ROOT / "src"))
        with tempfile.TemporaryDirectory() as folder, found:
            (Path(folder) / name).write_text(engine)
            os.chdir(folder)
            try:
                exec(compile(use, str(README), "exec"), {})
            finally:
                os.chdir(here)
        self.assertEqual(name, "fade.py")

