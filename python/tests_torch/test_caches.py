"""Step caches: which pipelines can have them, and that nothing of a job stays in them."""

import importlib
import inspect
import re
import unittest
from types import SimpleNamespace
from typing import Any

import diffusers
import torch
from diffusers.models import cache_utils
from support import Tiny, tiny

from kinora_engine.diffusers import _caches
from kinora_engine.diffusers._families import FAMILIES
from kinora_engine.diffusers._modular import is_modular
from kinora_engine.diffusers._run import clean
from kinora_engine.testing import OpenFailed, job

FIRST_BLOCK = {"type": "FirstBlockCacheConfig", "threshold": 0.5}
BROADCAST = {"block_skip_range": 2, "timestep_skip_range": [-1, 1001]}


def source(name: str) -> str:
    """The code of a pipeline class; of a modular one, that of its denoising loop."""
    module = inspect.getmodule(getattr(diffusers, name))
    assert module is not None
    if is_modular(name):
        module = importlib.import_module(f"{module.__package__}.denoise")
    return inspect.getsource(module)


class Tables(unittest.TestCase):
    def test_they_agree_with_the_installed_diffusers(self) -> None:
        for name in FAMILIES:
            with self.subTest(name):
                code = source(name)
                self.assertEqual("cache_context(" not in code, name in _caches.WITHOUT_CONTEXT)
                self.assertEqual('"step_index"' in code, name in _caches.WITH_STEPS)

    def test_each_cache_of_diffusers_has_a_place(self) -> None:
        applied = re.findall(r"isinstance\(config, (\w+)\)", inspect.getsource(cache_utils))
        known = {*_caches.IN_CONTEXT, *_caches.BY_TIMESTEP, _caches.IN_STEPS, _caches.FOR_IMAGES}
        self.assertEqual(set(applied), known)

    def test_a_cache_that_would_fail_or_do_nothing_is_refused(self) -> None:
        for name, kind in (
            ("WanVideoToVideoPipeline", "FirstBlockCacheConfig"),
            ("Kandinsky5T2VPipeline", "MagCacheConfig"),
            ("MiniMaxH3ModularPipeline", "TaylorSeerCacheConfig"),
            ("LTX2Pipeline", "SeaCacheConfig"),
            ("WanPipeline", "TextKVCacheConfig"),
            ("WanPipeline", None),
        ):
            with self.subTest(name), self.assertRaisesRegex(ValueError, "settings.cache"):
                _caches.refuse(name, {"type": kind})
        for name, kind in (("WanPipeline", "SeaCacheConfig"), ("Unknown", "SeaCacheConfig"), ("LTX2Pipeline", "MagCacheConfig")):
            _caches.refuse(name, {"type": kind})
        _caches.refuse("WanVideoToVideoPipeline", {})


class Wan(Tiny, unittest.TestCase):
    build = staticmethod(tiny.wan)

    def test_each_cache_runs_and_a_job_leaves_no_trace_in_it(self) -> None:
        plain = self.host(steps=8).run(job()).frames
        for cache in (
            {"type": "FirstBlockCacheConfig", "threshold": 10.0},
            {"type": "MagCacheConfig", "threshold": 10.0, "num_inference_steps": 8, "mag_ratios": [1.0] * 8},
            {"type": "TaylorSeerCacheConfig", "disable_cache_before_step": 3, "taylor_factors_dtype": "float32", "cache_identifiers": [r"blocks\.\d+"]},
            {"type": "SeaCacheConfig", "threshold": 10.0},
            {"type": "PyramidAttentionBroadcastConfig", **{f"spatial_attention_{name}": value for name, value in BROADCAST.items()}},
        ):
            with self.subTest(cache["type"]):
                host = self.host(cache=cache, steps=8)
                first = host.run(job())
                self.assertEqual((first.outcome, first.message), ("done", ""))
                self.assertTrue(first.frames != plain, "the cache did nothing")
                self.assertTrue(host.run(job()).frames == first.frames, "the first job changed the second")
                host.close()

    def test_a_pipeline_without_contexts_is_refused_at_the_opening(self) -> None:
        with self.assertRaisesRegex(OpenFailed, "FirstBlockCacheConfig: WanVideoToVideoPipeline .* sets no cache context"):
            self.host(pipeline="WanVideoToVideoPipeline", cache=FIRST_BLOCK)


class Clean(unittest.TestCase):
    def test_it_clears_the_caches_of_a_modular_pipeline(self) -> None:
        class SomeModularPipeline(SimpleNamespace):
            pass

        torch.manual_seed(0)
        parts = [tiny._wan_parts()["transformer"] for _ in range(2)]
        for part in parts:
            part.enable_cache(diffusers.FirstBlockCacheConfig(threshold=0.5))
        pipe = SomeModularPipeline(transformer=parts[0], transformer_2=parts[1])
        for part in parts:
            with part.cache_context("cond"):
                part(torch.zeros(1, 16, 3, 4, 4), torch.tensor([1]), torch.zeros(1, 4, 32))
        self.assertEqual([self.kept(part) for part in parts], [["cond"], ["cond"]])
        clean(pipe)
        self.assertEqual([self.kept(part) for part in parts], [[], []])

    def kept(self, part: Any) -> list[str]:
        """Names of the contexts that have a state."""
        (hook,) = part.blocks[0]._diffusers_hook.hooks.values()
        return list(hook.state_manager._state_cache)


if __name__ == "__main__":
    unittest.main()
