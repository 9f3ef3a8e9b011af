"""The engines for SGLang and FastVideo, with stand-ins that have the signatures of the published packages."""

import ast
import importlib.util
import os
import unittest
from pathlib import Path
from typing import Any

import support
from kinora_engine import Picture
from kinora_engine.testing import Host, HostError, command, job

STAND_INS = support.ROOT / "tests" / "stand_ins"
HAS_PILLOW = importlib.util.find_spec("PIL") is not None
TEXT = {"text_to_video": True, "negative_prompt": True, "first_frame": True, "audio_output": True}
DESCRIBE = {"size_multiple": 16, "frames": {"step": 4, "offset": 1}, "fps": 16, "features": TEXT}
RED = Picture(32, 32, b"\xff\0\0" * 1024)


class Library:
    """What holds for both."""

    name: str
    settings: dict[str, Any] = {}

    def host(self, **settings: Any) -> Host:
        environment = {"PYTHONPATH": os.pathsep.join([str(support.ROOT / "src"), str(STAND_INS)])}
        host = Host(command(f"kinora_engine.{self.name}:Generator"), env=environment)
        self.addCleanup(host.close)  # type: ignore[attr-defined]
        self.hello = host.open({"model": "here", "describe": DESCRIBE, **self.settings, **settings})
        return host

    def test_a_clip_has_its_frames_its_sound_and_the_fields_of_the_request(self: Any) -> None:
        host = self.host(arguments={"num_gpus": 2}, sampling={"guidance_scale": 4.5}, steps=12)
        self.assertEqual((self.hello["engine"]["name"], self.hello["size_multiple"], self.hello["fps"]), (self.name, 16, 16))
        result = host.run(job(prompt="kites", negative_prompt="rain", seed=200, width=64, audio=True))
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertEqual(result.frames, [bytes([200]) * (64 * 32 * 3)] * 9)
        self.assertEqual(len(result.sound), 27_000 * 8)
        self.assertEqual(result.phases[0]["name"], "generating")
        asked = next(line for line in host.log if line.startswith("asked"))
        for words in ("'num_gpus': 2", "'guidance_scale': 4.5", "'num_inference_steps': 12", "'kites'", "'rain'", "'here'"):
            self.assertIn(words, asked)

    @unittest.skipUnless(HAS_PILLOW, "Pillow is not installed")
    def test_a_first_frame_is_a_file_for_the_time_of_the_call(self: Any) -> None:
        host = self.host()
        self.assertEqual(host.run(job(first_frame=RED)).outcome, "done")
        self.assertTrue(any("PNG" in line for line in host.log), host.log)

    def test_a_call_that_ends_soon_after_a_cancel_leaves_the_engine_open(self: Any) -> None:
        host = self.host()
        running = host.start(job(prompt="naps"))
        running.wait_until(lambda result: bool(result.phases))
        running.cancel()
        self.assertEqual(running.result.outcome, "cancelled")
        self.assertEqual(host.run(job(prompt="kites")).outcome, "done")

    def test_a_call_that_goes_on_after_a_cancel_ends_the_process(self: Any) -> None:
        host = self.host(yield_seconds=1.0)
        running = host.start(job(prompt="sleeps"))
        running.wait_until(lambda result: bool(result.phases))
        running.cancel()
        self.assertEqual(running.result.outcome, "cancelled")
        self.assertNotEqual(host.process.wait(timeout=30), 0)

    def test_a_failed_call_fails_its_job_alone(self: Any) -> None:
        host = self.host()
        self.assertEqual(host.run(job(prompt="fails")).outcome, "failed")
        self.assertEqual(host.run(job(prompt="kites")).outcome, "done")

    def test_wrong_settings_are_refused(self: Any) -> None:
        edits = {**DESCRIBE, "features": {"edit": True}}
        for wrong in ({"describe": edits}, {"nothing": 1}, {"model": None}, {"yield_seconds": 31}, {"call_seconds": 0}):
            with self.subTest(wrong), self.assertRaises(HostError):
                self.host(**wrong)


class SGLang(Library, unittest.TestCase):
    name = "sglang"
    settings = {"sound_rate": 16_000}


class FastVideo(Library, unittest.TestCase):
    name = "fastvideo"

    def test_a_full_device_is_reported_as_such(self) -> None:
        self.assertEqual(self.host().run(job(prompt="full")).outcome, "out_of_memory")


class Signatures(unittest.TestCase):
    """The stand-ins have the real signatures and fields. Reads the sources, and imports nothing: both need a GPU to import."""

    def test_sglang(self) -> None:
        self.compare("sglang", "multimodal_gen/runtime/entrypoints/diffusion_generator.py", "DiffGenerator")
        self.compare("sglang", "multimodal_gen/configs/sample/sampling_params.py", "SamplingParams")
        self.compare("sglang", "multimodal_gen/runtime/entrypoints/utils.py", "GenerationResult")

    def test_fastvideo(self) -> None:
        self.compare("fastvideo", "entrypoints/video_generator.py", "VideoGenerator")
        self.compare("fastvideo", "api/results.py", "GenerationResult")
        for name in ("InputConfig", "SamplingConfig", "OutputConfig", "GenerationRequest"):
            self.compare("fastvideo", "api/schema.py", name)

    def compare(self, package: str, file: str, name: str) -> None:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            self.skipTest(f"{package} is not installed")
        real = members(Path(spec.origin).parent / file, name)
        for member, signature in members(STAND_INS / package / file, name).items():
            if member != "__init__":
                self.assertEqual(signature, real.get(member), f"{name}.{member}")


def members(file: Path, name: str) -> dict[str, str]:
    """Names and defaults of a class's fields and arguments of its methods."""
    tree = ast.parse(file.read_text())
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    result = {}
    for node in found.body:
        if isinstance(node, ast.AnnAssign):
            result[ast.unparse(node.target)] = "field"
        elif isinstance(node, ast.FunctionDef):
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
            result[node.name] = ast.unparse(node.args)
    return result
