"""The package as it is installed: its wheel in the folder that KINORA_WHEEL names, and an engine that another package brings."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

WHEEL = os.environ.get("KINORA_WHEEL", "")
if not WHEEL:
    raise unittest.SkipTest("KINORA_WHEEL names no folder with the installed package")
sys.path.insert(0, WHEEL)

import kinora_engine  # noqa: E402
from kinora_engine.testing import Host, OpenFailed, command, job  # noqa: E402

ENGINE = """
from kinora_engine import Description, Engine, Features


class Still(Engine):
    def describe(self, settings):
        return Description(features=Features(text_to_video=True), size_multiple=2)

    def generate(self, job):
        for _ in range(job.frames):
            yield job.rgb(bytes([job.seed]) * (job.clip.width * job.clip.height * 3))
"""
FILES = {
    "stills.py": ENGINE,
    "stills-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: stills\nVersion: 1.0\n",
    "stills-1.0.dist-info/entry_points.txt": "[kinora.engines]\nstill = stills:Still\n",
}
"""An installed distribution with an engine."""


class Wheel(unittest.TestCase):
    def test_it_is_what_this_test_imports_and_it_is_whole(self) -> None:
        installed = Path(WHEEL).resolve() / "kinora_engine"
        self.assertEqual(Path(kinora_engine.__file__).resolve().parent, installed)
        source = Path(__file__).resolve().parent.parent / "src" / "kinora_engine"
        files = [path.relative_to(source) for path in source.rglob("*") if path.suffix == ".py" or path.name == "py.typed"]
        self.assertGreater(len(files), 40)
        self.assertEqual([name for name in files if not (installed / name).is_file()], [])

    def test_all_that_its_pages_name_is_imported_without_other_packages(self) -> None:
        modules = "kinora_engine kinora_engine.testing kinora_engine.diffusers kinora_engine.sglang kinora_engine.fastvideo"
        # Neither site-packages nor this folder.
        code = f"import sys; sys.path.insert(0, {WHEEL!r}); [__import__(name) for name in {modules.split()!r}]"
        subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)

    def test_an_engine_is_found_by_its_entry_point(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in FILES.items():
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            environment = {"PYTHONPATH": os.pathsep.join([WHEEL, folder])}
            with Host(command("still"), env=environment) as host:
                hello = host.open()
                self.assertEqual(hello["size_multiple"], 2)
                result = host.run(job(width=4, height=2, frames=3, seed=9))
                self.assertEqual((result.outcome, result.frames), ("done", [bytes([9]) * 24] * 3))
            with Host(command("stil"), env=environment) as host, self.assertRaisesRegex(OpenFailed, r"kinora.engines \(installed: .*still"):
                host.open()


if __name__ == "__main__":
    unittest.main()
