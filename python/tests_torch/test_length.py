"""`seconds: "auto"` with the diffusers engine: a tiny LTX-2.5, and the rules for lengths."""

import unittest
from types import SimpleNamespace
from unittest import mock

import torch
from support import Tiny, tiny

from kinora_engine import Frames, Unsupported
from kinora_engine.diffusers import _decode, _length
from kinora_engine.testing import job

SETTINGS = {"arguments": {"spatio_temporal_guidance_blocks": [1], "max_sequence_length": 16}}
BY_8 = Frames(8, 1)


class LTX25(Tiny, unittest.TestCase):
    build = staticmethod(tiny.ltx25)

    def test_the_model_decides_the_length_within_the_bounds_of_the_job(self) -> None:
        host = self.host(**SETTINGS)
        self.assertTrue(self.hello["features"]["auto_duration"])
        # 3.1 s at 24 frames per second are 74 frames, of which 73 are on the grid; then the job's own bounds.
        for frames_max, decided in ((361, 73), (70, 65), (65, 65)):
            result = host.run(job(width=32, height=32, fps=24, frames=None, frames_max=frames_max, audio=True))
            self.assertEqual((result.outcome, result.message), ("done", ""))
            self.assertEqual((result.decided, len(result.frames)), (decided, decided))
            self.assertEqual(len(result.sound), decided * 2_000 * 8)

    def test_the_length_of_a_job_that_names_one_stays(self) -> None:
        result = self.host(**SETTINGS).run(job(width=32, height=32, fps=24, frames=17))
        self.assertEqual((result.outcome, result.decided, len(result.frames)), ("done", None, 17))


class LTX23(Tiny, unittest.TestCase):
    build = staticmethod(tiny.ltx2)

    def test_a_model_without_the_head_does_not_offer_automatic_lengths(self) -> None:
        host = self.host(**SETTINGS)
        self.assertFalse(self.hello["features"]["auto_duration"])
        result = host.run(job(width=32, height=32, fps=24, frames=None, frames_max=121))
        self.assertEqual(result.outcome, "unsupported")

    def test_a_wrong_promise_ends_the_job_and_says_why(self) -> None:
        host = self.host(**SETTINGS, describe={"features": {"auto_duration": True}})
        result = host.run(job(width=32, height=32, fps=24, frames=None, frames_max=121))
        self.assertEqual(result.outcome, "unsupported")
        self.assertIn("duration_head", result.message)


class Decide(unittest.TestCase):
    def test_a_length_is_on_the_grid_and_allowed(self) -> None:
        for wanted, frames_max, decided in ((100, 361, 97), (97, 361, 97), (500, 361, 361), (500, 360, 353), (0, 361, 1), (3, 361, 1)):
            self.assertEqual(self.decided(wanted, frames_max, BY_8), decided)
        self.assertEqual(self.decided(50, 361, Frames(17, 5)), 39)
        self.assertEqual(self.decided(2, 361, Frames(17, 5)), 5)
        self.assertEqual(self.decided(10, 361, Frames(4, 0)), 8)

    def test_a_job_without_room_for_the_grid_is_refused(self) -> None:
        with self.assertRaises(Unsupported):
            self.decided(50, 4, Frames(17, 5))

    def decided(self, wanted: int, frames_max: int, grid: Frames) -> int:
        made = mock.Mock()
        made.clip.frames_max = frames_max
        length = _length.decide(made, wanted, grid)
        made.decide.assert_called_once_with(length)
        return length


class ChosenWithoutAHead(unittest.TestCase):
    """A stand-in for pipelines that choose a length in some other way."""

    def test_the_length_is_that_of_the_frames_cut_to_the_grid_and_the_job(self) -> None:
        for made, frames_max, left in ((20, 361, 17), (20, 10, 9)):
            captured = _decode.Captured()
            self.assertEqual(self.sent(SimpleNamespace(frames=[list(range(made))]), captured, frames_max), left)
            captured.video = torch.zeros(1, 3, made, 4, 4)
            self.assertEqual(self.sent(SimpleNamespace(), captured, frames_max), left)

    def sent(self, result: SimpleNamespace, captured: _decode.Captured, frames_max: int) -> int:
        asked = mock.Mock(clip=SimpleNamespace(frames=None, frames_max=frames_max, audio=False), rgb=list)
        asked.decide = lambda frames: setattr(asked, "frames", frames)
        (frames,) = _decode.outputs(SimpleNamespace(), result, captured, asked, BY_8)
        self.assertEqual(asked.frames, len(frames))
        return len(frames)


class Sound(unittest.TestCase):
    def test_its_rate_is_said_by_the_result_the_pipeline_or_the_vocoder(self) -> None:
        vocoder = SimpleNamespace(config=SimpleNamespace(output_sampling_rate=24_000))
        for pipe, result, rate in (
            (SimpleNamespace(), SimpleNamespace(audio=["s"], sampling_rate=32_000), 32_000),
            (SimpleNamespace(audio_sample_rate=44_100, vocoder=object()), SimpleNamespace(audio=["s"]), 44_100),
            (SimpleNamespace(vocoder=vocoder), SimpleNamespace(audio=["s"]), 24_000),
        ):
            self.assertEqual(_decode._sound(pipe, result), ("s", rate))
        for pipe, result in ((SimpleNamespace(vocoder=vocoder), SimpleNamespace()), (SimpleNamespace(), SimpleNamespace(audio=["s"]))):
            with self.assertRaises(RuntimeError):
                _decode._sound(pipe, result)


if __name__ == "__main__":
    unittest.main()
