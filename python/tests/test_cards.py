"""The ready-made configurations in models/diffusers promise what the adapter says of their pipelines. Nothing is downloaded."""

import json
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from typing import Any

import support
from kinora_engine.diffusers import Pipeline
from kinora_engine.fastvideo import Generator

try:
    import tomllib
except ImportError:  # Python 3.10
    raise unittest.SkipTest("no tomllib") from None

FOLDER = support.ROOT.parent / "models" / "diffusers"
PARTS: dict[str, dict[str, Any]] = {
    "wan2.2-ti2v-5b": {"vae/config.json": {"scale_factor_spatial": 16}, "transformer/config.json": {"patch_size": [1, 2, 2]}},
    "ltx-2.5": {"model_index.json": {"duration_head": ["ltx2", "LTX2DurationHead"]}},
}
"""Facts about a model that its class does not say."""


def cards() -> dict[str, dict[str, Any]]:
    """All of them, by name."""
    return {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}


class Cards(unittest.TestCase):
    def setUp(self) -> None:
        if not FOLDER.is_dir():
            self.skipTest("not in Kinora's repository")

    def test_each_has_one_engine_and_one_model_of_its_name(self) -> None:
        self.assertGreater(len(cards()), 10)
        for name, card in cards().items():
            with self.subTest(name):
                (engine,), (model,) = card["engines"], card["models"]
                self.assertEqual({engine["name"], model["id"], model["engine"]}, {name})
                self.assertEqual(engine["kind"], "process")
                self.assertEqual(engine["command"][1:], ["-m", "kinora_engine", "kinora_engine.diffusers:Pipeline"])
                self.assertIn(engine["settings"]["model"], (FOLDER / f"{name}.toml").read_text().partition("[[")[0])

    def test_each_promises_what_its_engine_says(self) -> None:
        for name, card in cards().items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                (engine,) = card["engines"]
                self.write(Path(folder), {"model_index.json": {}, **PARTS.get(name, {})})
                said = Pipeline().describe({**engine["settings"], "model": folder})
                promised = engine["describe"]
                self.assertEqual((promised["size_multiple"], promised["fps"]), (said.size_multiple, said.fps))
                self.assertEqual(promised["frames"], asdict(said.frames))
                self.assertEqual(promised["features"], {key: value for key, value in asdict(said.features).items() if value})

    def test_sizes_and_lengths_are_on_the_grid(self) -> None:
        for name, card in cards().items():
            with self.subTest(name):
                (engine,), (model,) = card["engines"], card["models"]
                multiple = engine["describe"]["size_multiple"]
                for size in model["sizes"]:
                    self.assertEqual([int(side) % multiple for side in size.split("x")], [0, 0])
                if engine["describe"]["features"].get("auto_duration"):
                    self.assertEqual(model["seconds_max"], 15)

    def test_without_guidance_none_promises_a_negative_prompt(self) -> None:
        """It would have no effect."""
        engines = [card["engines"][0] for card in cards().values()]
        unguided = [engine for engine in engines if engine["settings"].get("arguments", {}).get("guidance_scale") == 1]
        self.assertGreater(len(unguided), 2)
        for engine in unguided:
            self.assertNotIn("negative_prompt", engine["describe"]["features"], engine["name"])

    def test_those_of_fastvideo_promise_what_their_engine_says(self) -> None:
        paths = sorted(FOLDER.parent.glob("fastwan*.toml"))
        self.assertGreater(len(paths), 1)
        for path in paths:
            with self.subTest(path.stem):
                card = tomllib.loads(path.read_text())
                (engine,), (model,) = card["engines"], card["models"]
                self.assertEqual({engine["name"], model["id"], model["engine"]}, {path.stem})
                self.assertEqual(engine["command"][1:], ["-m", "kinora_engine", "kinora_engine.fastvideo:Generator"])
                self.assertEqual(engine["settings"]["describe"], engine["describe"])
                Generator().describe(engine["settings"])
                sides = [int(side) for size in model["sizes"] for side in size.split("x")]
                self.assertEqual({side % engine["describe"]["size_multiple"] for side in sides}, {0})

    def write(self, folder: Path, files: dict[str, Any]) -> None:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(content))


if __name__ == "__main__":
    unittest.main()
