"""Modular pipelines: MiniMax-H3 with random weights."""

import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from support import ENVIRONMENT, ROOT, tiny

from kinora_engine.diffusers import _modular
from kinora_engine.diffusers._settings import Settings
from kinora_engine.testing import Host, command, job

SETTINGS = {"model": "here", "pipeline": "MiniMaxH3ModularPipeline", "workflow": "t2va", "dtype": "float32", "steps": 6}
CLIP = {"width": 64, "height": 64, "fps": 24, "frames": 124}


class H3(unittest.TestCase):
    def host(self, **settings: Any) -> Host:
        self.assertTrue(tiny)
        path = f"{ENVIRONMENT['PYTHONPATH']}:{ROOT / 'tests_torch'}"
        host = Host(command(f"{ROOT / 'tests_torch' / 'tiny_h3.py'}:TinyH3"), env={**ENVIRONMENT, "PYTHONPATH": path}, timeout=180)
        self.addCleanup(host.close)
        self.hello = host.open({**SETTINGS, **settings})
        return host

    def test_a_clip_has_frames_and_sound_and_repeats_itself(self) -> None:
        host = self.host()
        self.assertEqual((self.hello["frames"], self.hello["size_multiple"]), ({"step": 17, "offset": 5}, 32))
        result = host.run(job(**CLIP, audio=True))
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertEqual((len(result.frames), len(result.sound)), (124, 248_000 * 8))
        self.assertTrue(any(result.sound))
        self.assertGreater(len(set(result.progress)), 3)
        self.assertEqual(host.run(job(**CLIP)).frames, result.frames)
        self.assertNotEqual(host.run(job(**CLIP, seed=8)).frames, result.frames)

    def test_a_cancel_in_a_step_leaves_no_trace(self) -> None:
        host = self.host(steps=30)
        expected = host.run(job(**CLIP)).frames
        running = host.start(job(**CLIP, seed=9))
        running.wait_until(lambda result: any(fraction > 0 for fraction in result.progress))
        running.cancel()
        self.assertEqual(running.result.outcome, "cancelled")
        self.assertEqual(host.run(job(**CLIP)).frames, expected)


class Loading(unittest.TestCase):
    def test_a_part_that_could_not_be_loaded_is_named(self) -> None:
        pipe = mock.Mock(null_component_names=["vae"])
        diffusers = SimpleNamespace(ModularPipeline=mock.Mock(), ComponentsManager=mock.Mock())
        diffusers.ModularPipeline.from_pretrained.return_value = pipe
        with self.assertRaisesRegex(RuntimeError, "vae"):
            _modular.load_modular(diffusers, Settings.parse(SETTINGS), "float32", {})
        diffusers.ModularPipeline.from_pretrained.assert_called_once_with("here", components_manager=None, workflow="t2va")
        pipe.load_components.assert_called_once_with(dtype="float32")

    def test_the_signatures_are_those_of_the_installed_diffusers(self) -> None:
        import inspect

        import diffusers

        load = inspect.signature(diffusers.ModularPipeline.from_pretrained).parameters
        self.assertLessEqual({"components_manager", "workflow"}, set(load))
        self.assertIn("device", inspect.signature(diffusers.ComponentsManager.enable_auto_cpu_offload).parameters)


if __name__ == "__main__":
    unittest.main()
