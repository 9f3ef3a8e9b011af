"""A pipeline whose device is too small is loaded again with more offload, once, without torch: a stand-in plays the pipeline."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import support  # noqa: F401
from kinora_engine import OutOfMemory
from kinora_engine._cancel import Cancel
from kinora_engine._job import Clip, Job, Request
from kinora_engine._line import Port
from kinora_engine.diffusers import Pipeline, _pipeline
from kinora_engine.diffusers._settings import Settings

ORDER = ("none", "model", "group")
"""Offloads, each of which needs less than the one before."""


class Wan:
    """A pipeline that runs if its offload is at least `needs`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cleaned = 0

    def __call__(self, prompt: str, negative_prompt: str, width: int, height: int, num_frames: int, num_inference_steps: int) -> None:
        """Only its arguments count."""

    def maybe_free_model_hooks(self) -> None:
        """Counts."""
        self.cleaned += 1


class Device:
    """Counts loads and calls; each fails if the offload is less than it needs."""

    def __init__(self, load_needs: str = "none", call_needs: str = "none", error: type[Exception] = MemoryError) -> None:
        self.loads: list[str] = []
        self.calls: list[str] = []
        self._needs = (load_needs, call_needs)
        self._error = error

    def load(self, settings: Settings) -> Wan:
        """Stands in for `load_pipeline`."""
        self.loads.append(settings.offload)
        self._check(settings, self._needs[0])
        return Wan(settings)

    def run(self, pipe: Wan, *_: Any) -> SimpleNamespace:
        """Stands in for `run`."""
        self.calls.append(pipe.settings.offload)
        self._check(pipe.settings, self._needs[1])
        return SimpleNamespace(frames=[["frame"]])

    def _check(self, settings: Settings, needs: str) -> None:
        if needs not in ORDER or ORDER.index(settings.offload) < ORDER.index(needs):
            raise self._error("20 GiB of 24 are in use")


class Asked(Job):
    """A job of one frame of 16x16 that is asked from here: frames are kept as they came, and phases are counted."""

    def __init__(self) -> None:
        request = Request("Waves", None, 1, False, False, None, None, None, (), ())
        self.port = mock.create_autospec(Port, instance=True)
        super().__init__(request, Clip(16, 16, 8, 1, False), None, self.port, Cancel())

    @property
    def phases(self) -> list[str]:
        """The names of all phases that were begun."""
        return [call.kwargs["name"] for call in self.port.begin_phase.call_args_list]

    def rgb(self, frames: Any) -> Any:
        """Converts nothing."""
        return list(frames)


class OutOfMemoryCase(unittest.TestCase):
    def engine(self, device: Device, **settings: Any) -> Pipeline:
        """An engine with its pipeline loaded onto the device."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (Path(folder.name) / "model_index.json").write_text("{}")
        for name, stand_in in (("load_pipeline", device.load), ("run", device.run)):
            patch = mock.patch.object(_pipeline, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)
        errors = contextlib.redirect_stderr(io.StringIO())
        self.log = errors.__enter__()
        self.addCleanup(errors.__exit__, None, None, None)
        engine = Pipeline()
        engine.load({"model": folder.name, "pipeline": "WanPipeline", **settings}, None)
        return engine

    def test_a_call_that_runs_out_is_made_again_with_the_next_offload_which_stays(self) -> None:
        device = Device(call_needs="model")
        engine, first = self.engine(device), Asked()
        self.assertEqual(list(engine.generate(first)), [["frame"]])
        self.assertEqual((device.loads, device.calls), (["none", "model"], ["none", "model"]))
        self.assertEqual(first.phases, ["loading again with offload = model"])
        self.assertIn("out of memory with offload = 'none'; once more with 'model': 20 GiB", self.log.getvalue())
        engine.reset()
        list(engine.generate(Asked()))
        self.assertEqual((device.loads, device.calls), (["none", "model"], ["none", "model", "model"]))

    def test_from_model_the_next_is_by_layers(self) -> None:
        device = Device(call_needs="group")
        engine = self.engine(device, offload="model")
        list(engine.generate(Asked()))
        self.assertEqual(device.loads, ["model", "group"])
        self.assertEqual(engine.settings.offload_options, {"offload_type": "leaf_level"})

    def test_a_second_failure_is_final_and_says_both(self) -> None:
        device = Device(call_needs="more than there is")
        engine = self.engine(device)
        with self.assertRaisesRegex(OutOfMemory, "20 GiB.*with offload = 'model': 20 GiB"):
            list(engine.generate(Asked()))
        self.assertEqual(device.calls, ["none", "model"])

    def test_without_a_further_offload_the_failure_stands(self) -> None:
        for settings in ({"offload": "sequential"}, {"retry_out_of_memory": False}):
            device = Device(call_needs="more than there is")
            with mock.patch(f"{__name__}.ORDER", (*ORDER, "sequential")), self.subTest(settings):
                engine = self.engine(device, **settings)
                with self.assertRaises(MemoryError):
                    list(engine.generate(Asked()))
                self.assertEqual(len(device.calls), 1)

    def test_other_errors_are_not_tried_again(self) -> None:
        device = Device(call_needs="model", error=ValueError)
        engine = self.engine(device)
        with self.assertRaises(ValueError):
            list(engine.generate(Asked()))
        self.assertEqual((device.loads, device.calls), (["none"], ["none"]))

    def test_a_pipeline_that_does_not_fit_when_it_is_loaded_is_loaded_again(self) -> None:
        device = Device(load_needs="model")
        engine = self.engine(device)
        self.assertEqual(list(engine.generate(Asked())), [["frame"]])
        self.assertEqual((device.loads, device.calls), (["none", "model"], ["model"]))
        device = Device(load_needs="group")
        with self.assertRaises(MemoryError):
            self.engine(device)

    def test_an_engine_that_could_not_load_again_ends_its_process(self) -> None:
        device = Device(call_needs="model")
        engine = self.engine(device)
        with mock.patch.object(_pipeline, "load_pipeline", side_effect=OSError("the folder is gone")):
            with self.assertRaisesRegex(OutOfMemory, "the folder is gone"):
                list(engine.generate(Asked()))
        with self.assertRaises(RuntimeError):
            engine.reset()


if __name__ == "__main__":
    unittest.main()
