"""The diffusers engine with tiny pipelines on the CPU. Needs the extra `diffusers`."""

import os
import time
import unittest

from support import Tiny, tiny

from kinora_engine.testing import job


class Wan(Tiny, unittest.TestCase):
    build = staticmethod(tiny.wan)

    def test_a_clip_has_the_planned_frames_and_repeats_itself(self) -> None:
        host = self.host()
        self.assertEqual((self.hello["engine"]["name"], self.hello["size_multiple"]), ("WanPipeline", 16))
        result = host.run(job(width=64, height=32))
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertEqual([len(frame) for frame in result.frames], [64 * 32 * 3] * 9)
        self.assertGreater(len(set(result.progress)), 3)
        self.assertEqual(result.progress[-1], 1.0)
        self.assertEqual(host.run(job(width=64, height=32)).frames, result.frames)
        self.assertNotEqual(host.run(job(width=64, height=32, seed=8)).frames, result.frames)

    def test_a_change_of_the_scheduler_changes_the_frames(self) -> None:
        expected = self.host().run(job()).frames
        # The folder's own shift is 7.
        self.assertEqual(self.host(scheduler={"shift": 7.0}).run(job()).frames, expected)
        self.assertNotEqual(self.host(scheduler={"shift": 3.0}).run(job()).frames, expected)

    def test_a_cancel_leaves_no_trace_in_a_step_cache(self) -> None:
        cache = {"type": "FirstBlockCacheConfig", "threshold": 0.5}
        # Many steps, so that the job is not done before it is stopped.
        host = self.host(cache=cache, steps=20)
        expected = host.run(job()).frames
        for wait in (0.05, 0.2, 0.5):
            running = host.start(job(width=128, height=128, frames=33))
            time.sleep(wait)
            running.cancel()
            self.assertEqual(running.result.outcome, "cancelled")
            self.assertEqual(host.run(job()).frames, expected)

    def test_frames_equal_those_of_a_plain_script(self) -> None:
        import torch
        from diffusers import DiffusionPipeline

        os.environ["HF_HUB_OFFLINE"] = "1"
        pipe = DiffusionPipeline.from_pretrained(self.folder.name, dtype=torch.float32)
        generator = torch.Generator("cpu").manual_seed(7)
        plain = pipe(prompt="waves", width=32, height=32, num_frames=9, num_inference_steps=3, generator=generator, output_type="np")
        expected = [(frame * 255 + 0.5).astype("uint8").tobytes() for frame in plain.frames[0]]
        frames = self.host().run(job()).frames
        differences = [abs(a - b) for left, right in zip(frames, expected, strict=True) for a, b in zip(left, right, strict=True)]
        self.assertLessEqual(max(differences), 1)


class LTX2(Tiny, unittest.TestCase):
    build = staticmethod(tiny.ltx2)

    def test_a_clip_has_frames_and_sound(self) -> None:
        host = self.host(arguments={"spatio_temporal_guidance_blocks": [1], "max_sequence_length": 16})
        self.assertEqual((self.hello["size_multiple"], self.hello["features"]["audio_output"]), (32, True))
        request = job(width=64, height=64, fps=24, frames=17, audio=True)
        result = host.run(request)
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertEqual((len(result.frames), len(result.sound)), (17, 34_000 * 8))
        self.assertTrue(any(result.sound))
        again = host.run(request)
        self.assertEqual((again.frames, again.sound), (result.frames, result.sound))


if __name__ == "__main__":
    unittest.main()
