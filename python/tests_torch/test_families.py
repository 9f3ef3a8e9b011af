"""The table of families and the ready-made configurations agree with the signatures of the installed diffusers."""

import inspect
import unittest
from typing import Any

from support import ROOT

try:
    import diffusers
    import tomllib
except ImportError as error:
    raise unittest.SkipTest(f"not installed: {error}") from None

from kinora_engine.diffusers._arguments import _USUAL
from kinora_engine.diffusers._families import FAMILIES, Family
from kinora_engine.diffusers._modular import is_modular
from kinora_engine.diffusers._length import ARGUMENTS, HEAD

NEEDS: dict[str, tuple[str, ...]] = {
    "text_to_video": ("prompt",),
    "first_frame": ("image", "conditions", "mask"),
    "last_frame": ("last_image", "conditions", "mask"),
    "reference_images_max": ("reference_images",),
    "negative_prompt": ("negative_prompt",),
    "edit": ("strength", "mask"),
}
"""Arguments of a call, one of which a feature needs."""


def call(name: str) -> set[str]:
    """Arguments of a class's call, or inputs of its blocks."""
    if is_modular(name):
        blocks = getattr(getattr(diffusers, name), "default_blocks_name")
        return set(getattr(diffusers, blocks)().input_names)
    return set(inspect.signature(getattr(diffusers, name).__call__).parameters)


class Families(unittest.TestCase):
    def test_each_class_exists_and_has_an_argument_for_each_feature(self) -> None:
        for name, family in FAMILIES.items():
            with self.subTest(name):
                arguments = call(name)
                for feature, needed in NEEDS.items():
                    if getattr(family.features, feature):
                        self.assertTrue(arguments & set(needed), feature)
                self.assertIn("output_type", arguments)
                self.check_length(name, family, arguments)

    def check_length(self, name: str, family: Family, arguments: set[str]) -> None:
        if not family.features.edit:
            self.assertTrue(arguments & set(_USUAL["frames"]), "frames")
        if is_modular(name):
            return
        parts = set(inspect.signature(getattr(diffusers, name).__init__).parameters)
        if family.features.audio_output:
            self.assertIn("vocoder", parts)
        if family.chooses_length:
            self.assertLessEqual(ARGUMENTS, arguments)
            self.assertIn(HEAD, parts)

    def test_ltx_2_predicts_lengths_as_the_adapter_expects(self) -> None:
        from diffusers.pipelines.ltx2.duration_head import LTX2DurationHead

        self.assertTrue(callable(LTX2DurationHead.predict_num_frames))


class Cards(unittest.TestCase):
    def test_settings_name_arguments_of_their_pipeline(self) -> None:
        for path in sorted((ROOT.parent / "models" / "diffusers").glob("*.toml")):
            with self.subTest(path.stem):
                (engine,) = tomllib.loads(path.read_text())["engines"]
                settings: dict[str, Any] = engine["settings"]
                self.assertLessEqual(set(settings.get("arguments", {})), call(settings["pipeline"]))
                parts = set(inspect.signature(getattr(diffusers, settings["pipeline"]).__init__).parameters)
                self.assertLessEqual(set(settings.get("dtype", {})), {"default", *parts})


if __name__ == "__main__":
    unittest.main()
