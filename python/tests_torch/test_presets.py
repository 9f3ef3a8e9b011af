"""Presets of the diffusers engine: one loaded pipeline makes clips as several models, and none leaves a trace in another's."""

import importlib.util
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from support import Tiny, tiny

from kinora_engine.diffusers._arguments import known_arguments
from kinora_engine.diffusers._load import load_pipeline
from kinora_engine.diffusers._preset import for_job
from kinora_engine.diffusers._run import clean, run
from kinora_engine.diffusers._settings import Settings
from kinora_engine.testing import Host, Result, job

HAS_PEFT = importlib.util.find_spec("peft") is not None
STYLES = ("ink", "anime")


def save_lora(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """Random weights for a tiny Wan, and the settings that load them."""
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for block in range(2):
        for layer in ("to_q", "to_v"):
            prefix = f"transformer.blocks.{block}.attn1.{layer}"
            weights[f"{prefix}.lora_A.weight"] = torch.randn(4, 24, generator=generator)
            weights[f"{prefix}.lora_B.weight"] = torch.randn(24, 4, generator=generator)
    save_file(weights, folder / f"{name}.safetensors")
    return {"name": name, "path": str(folder / f"{name}.safetensors")}


class Watch:
    """Watches nothing."""

    def inside(self) -> None:
        pass

    def before(self) -> None:
        pass

    def step(self, fraction: float) -> None:
        pass


@unittest.skipUnless(HAS_PEFT, "peft is not installed")
class Presets(Tiny, unittest.TestCase):
    build = staticmethod(tiny.wan)

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.weights = Path(folder.name)
        self.loras = [{**save_lora(self.weights, name, seed), "active": False} for seed, name in enumerate(STYLES)]

    def made(self, host: Host, **preset: Any) -> bytes:
        result: Result = host.run(job(preset=preset))
        self.assertEqual((result.outcome, result.message), ("done", ""))
        return b"".join(result.frames)

    def refused(self, host: Host, **preset: Any) -> str:
        result = host.run(job(preset=preset))
        self.assertEqual((result.outcome, result.frames), ("failed", []))
        return result.message

    def test_each_preset_has_a_clip_of_its_own_and_leaves_nothing_behind(self) -> None:
        plain = self.made(self.host())
        host = self.host(loras=self.loras)
        self.assertTrue(self.hello["presets"])
        presets: list[dict[str, Any]] = [
            {},
            {"loras": ["ink"]},
            {"loras": ["anime"]},
            {"loras": [{"name": "anime", "weight": 0.5}]},
            {"loras": ["ink", "anime"]},
            {"steps": 2},
            {"guidance_scale": 1.0},
            {"scheduler": {"shift": 3.0}},
        ]
        clips = [self.made(host, **preset) for preset in presets]
        self.assertEqual(len(set(clips)), len(presets))
        self.assertTrue(clips[0] == plain, "loras that are not active do nothing")
        # Their files are gone: nothing is loaded again.
        for file in self.weights.iterdir():
            file.unlink()
        for preset, clip in [*zip(presets, clips), *reversed(list(zip(presets, clips)))]:
            self.assertTrue(self.made(host, **preset) == clip, preset)
        self.assertTrue(self.made(host, loras=[]) == plain)
        self.assertTrue(self.made(host, arguments={"guidance_scale": 1.0}) == self.made(host, guidance_scale=1.0))

    def test_a_preset_makes_the_clip_of_an_engine_with_these_settings(self) -> None:
        host = self.host(loras=self.loras, scheduler={"shift": 5.0})
        (ink, _) = self.loras
        settings: dict[str, Any] = {"scheduler": {"shift": 3.0}, "steps": 2, "arguments": {"guidance_scale": 2.0}}
        preset = {**settings, "loras": [{"name": "ink", "weight": 0.7}]}
        alone = self.host(**settings, loras=[{**ink, "active": True, "scale": 0.7}])
        self.assertTrue(self.made(host, **preset) == self.made(alone))

    def test_active_loras_work_without_a_preset_and_a_preset_can_switch_them_off(self) -> None:
        host = self.host(loras=[{**self.loras[0], "active": True}, self.loras[1]])
        active = self.made(host)
        self.assertTrue(active == self.made(host, loras=["ink"]))
        self.assertTrue(self.made(host, loras=[]) == self.made(self.host()))
        self.assertTrue(self.made(host) == active)

    def test_a_wrong_preset_fails_its_job_and_no_other(self) -> None:
        host = self.host(loras=self.loras)
        before = self.made(host)
        for preset, message in [
            ({"loras": ["oil"]}, "LoRAs that settings.loras does not load: oil; it loads ink, anime"),
            ({"loras": [7]}, "write a list of names"),
            ({"stesp": 4}, "unknown keys in the preset: stesp; known are steps"),
            ({"prompt": "x"}, "unknown keys in the preset: prompt"),
            ({"arguments": {"num_inference_steps": 4}}, "the number of steps is `steps`"),
            ({"steps": 0}, "the preset's steps is 0"),
            ({"scheduler": {"shfit": 1.0}}, "shfit, which FlowMatchEulerDiscreteScheduler does not know"),
        ]:
            with self.subTest(message):
                self.assertIn(message, self.refused(host, **preset))
        self.assertTrue(self.made(host) == before)

    def test_a_stopped_job_leaves_no_preset_behind(self) -> None:
        host = self.host(loras=self.loras)
        before = self.made(host)
        running = host.start(job(width=128, height=128, frames=33, preset={"loras": ["ink"], "steps": 50, "scheduler": {"shift": 3.0}}))
        running.wait_until(lambda result: any(fraction > 0 for fraction in result.progress))
        running.cancel()
        self.assertEqual(running.result.outcome, "cancelled")
        self.assertTrue(self.made(host) == before)

    def test_all_ranks_have_the_preset(self) -> None:
        request = job(width=64, height=32, preset={"loras": ["ink"], "scheduler": {"shift": 3.0}})
        plain, alone = (b"".join(self.host(loras=self.loras).run(one).frames) for one in (job(width=64, height=32), request))
        together = self.host(ranks=2, loras=self.loras).run(request)
        self.assertEqual((together.outcome, together.message), ("done", ""))

        def difference(clip: bytes) -> int:
            return max(abs(one - two) for one, two in zip(clip, b"".join(together.frames), strict=True))

        self.assertLessEqual(difference(alone), 1)
        self.assertGreater(difference(plain), 10)

    def test_weights_are_switched_and_neither_loaded_nor_copied(self) -> None:
        settings = Settings.parse(
            {"model": self.folder.name, "dtype": "float32", "torch_device": "cpu", "steps": 2, "loras": self.loras},
        )
        pipe = load_pipeline(settings)
        known = known_arguments(pipe)
        arguments = {"prompt": "waves", "width": 32, "height": 32, "num_frames": 5, "num_inference_steps": 2, "output_type": "pt"}

        def weights() -> dict[str, int]:
            return {name: value.data_ptr() for name, value in pipe.transformer.state_dict().items()}

        def made(preset: dict[str, Any]) -> Any:
            result = run(pipe, arguments, 7, Watch(), for_job(settings, preset, known)).frames
            clean(pipe)
            return result

        before = weights()
        self.assertTrue(all(any(f"lora_A.{name}." in key for key in before) for name in STYLES))
        with mock.patch.object(type(pipe), "load_lora_weights", side_effect=AssertionError), mock.patch("builtins.open", side_effect=AssertionError):
            first, ink, anime, last = (made(preset) for preset in ({}, {"loras": ["ink"]}, {"loras": ["anime"]}, {}))
        self.assertEqual(weights(), before)
        self.assertTrue(torch.equal(first, last))
        self.assertFalse(torch.equal(first, ink) or torch.equal(first, anime) or torch.equal(ink, anime))

    def test_compiled_blocks_keep_their_loras(self) -> None:
        settings = Settings.parse({"model": self.folder.name, "compile": True, "loras": self.loras})
        with self.assertRaisesRegex(ValueError, "a preset's loras need compile = false"):
            for_job(settings, {"loras": ["ink"]}, set())
        self.assertEqual(for_job(settings, {"steps": 4}, set()).steps, 4)


@unittest.skipUnless(HAS_PEFT, "peft is not installed")
class TwoExperts(Tiny, unittest.TestCase):
    """A preset of few steps, as Lightning: a LoRA for each expert."""

    build = staticmethod(tiny.wan_a14b)

    def test_the_loras_of_both_experts_are_switched(self) -> None:
        folder = Path(self.folder.name)
        loras = [save_lora(folder, "high", 1), {**save_lora(folder, "low", 2), "load_into_transformer_2": True}]
        host = self.host(steps=4, loras=[{**lora, "active": False} for lora in loras])
        plain = b"".join(host.run(job()).frames)
        fast = b"".join(host.run(job(preset={"loras": ["high", "low"]})).frames)
        self.assertTrue(fast == b"".join(self.host(steps=4, loras=loras).run(job()).frames))
        self.assertTrue(fast != plain)
        self.assertTrue(b"".join(host.run(job()).frames) == plain)


if __name__ == "__main__":
    unittest.main()
