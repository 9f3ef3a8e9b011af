"""Both examples, over real pipes."""

import time
import unittest

import support
from kinora_engine import Picture
from kinora_engine.testing import job


@unittest.skipUnless(support.HAS_NUMPY, support.NEEDS_NUMPY)
class Examples(unittest.TestCase):
    def test_waves_make_frames_and_sound(self) -> None:
        first = Picture(32, 32, bytes([200, 100, 50]) * 1_024)
        with support.host("Waves", support.EXAMPLES / "waves.py") as host:
            host.open()
            result = host.run(job(audio=True, frames=16))
            self.assertEqual((result.outcome, result.message), ("done", ""))
            self.assertEqual((len(set(result.frames)), len(result.sound)), (16, 48_000 * 8))
            self.assertEqual(result.progress[-1], 1.0)
            self.assertEqual(host.run(job(frames=16)).frames, result.frames)
            self.assertNotEqual(host.run(job(frames=16, seed=8)).frames, result.frames)
            self.assertNotEqual(host.run(job(frames=16, prompt="other")).frames, result.frames)
            self.assertEqual(host.run(job(first_frame=first)).frames[0], first.bytes)
            self.assertEqual(host.run(job(draft=True)).outcome, "done")
            self.assertNotEqual(host.run(job(frames=16, preset={"waves": 3})).frames, result.frames)
            self.assertEqual(host.run(job(frames=16)).frames, result.frames)

    def test_twenty_jobs_with_cancels_between_give_the_frames_of_fresh_processes(self) -> None:
        expected = []
        for seed in range(2):
            with support.host("Waves", support.EXAMPLES / "waves.py") as fresh:
                fresh.open()
                expected.append(fresh.run(job(seed=seed)).frames)
        with support.host("Waves", support.EXAMPLES / "waves.py") as host:
            host.open()
            for round_number in range(10):
                running = host.start(job(width=512, height=512, frames=200, seed=round_number))
                time.sleep(0.02 * round_number)
                running.cancel()
                self.assertEqual(running.result.outcome, "cancelled")
                seed = round_number % 2
                self.assertEqual(host.run(job(seed=seed)).frames, expected[seed])

    def test_tint_keeps_the_source_at_strength_0(self) -> None:
        source = [Picture(32, 32, bytes([value, 2 * value, 255 - value]) * 1_024) for value in range(9)]
        with support.host("Tint", support.EXAMPLES / "tint.py") as host:
            host.open()
            result = host.run(job(source=source, strength=0.0))
            self.assertEqual((result.outcome, result.message), ("done", ""))
            self.assertEqual(result.frames, [picture.bytes for picture in source])
            tinted = host.run(job(source=source, strength=0.6))
            self.assertEqual(tinted.outcome, "done")
            self.assertNotEqual(tinted.frames, result.frames)
            short = host.run(job(source=source[:4], strength=0.6))
            self.assertIn("ended after 4 of 9 frames", short.message)
            preset = host.run(job(source=source, strength=0.6, preset={"waves": 3}))
            self.assertEqual((preset.outcome, preset.message), ("unsupported", "the job has a preset, and the engine takes none"))
