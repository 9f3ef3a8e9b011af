"""Jobs over real pipes: outcomes, checks, materials, sources and late clips."""

import struct
import unittest

import support
from kinora_engine import Audio, Picture
from kinora_engine.testing import HostError, OpenFailed, Result, job

FRAME = 32 * 32 * 3


def picture(value: int) -> Picture:
    return Picture(32, 32, bytes([value]) * FRAME)


class Jobs(unittest.TestCase):
    def run_one(self, prompt: str, **words: object) -> Result:
        with support.host() as host:
            host.open()
            return host.run(job(prompt=prompt, **words))  # type: ignore[arg-type]

    def test_frames_arrive_in_order(self) -> None:
        result = self.run_one("plain", seed=3, frames=40, width=640, height=360)
        self.assertEqual(result.outcome, "done")
        self.assertEqual([frame[0] for frame in result.frames], list(range(3, 43)))

    def test_errors_become_outcomes(self) -> None:
        cases = [
            ("memory", "out_of_memory", "MemoryError"),
            ("torch_memory", "out_of_memory", "CUDA out of memory"),
            ("allocator", "out_of_memory", "can't allocate memory"),
            ("refuses", "unsupported", "only at night"),
            ("policy", "failed", "not this"),
            ("breaks", "failed", "KeyError: 'a key'"),
            ("runtime", "failed", "mat1 and mat2"),
        ]
        with support.host() as host:
            host.open()
            for prompt, outcome, words in cases:
                with self.subTest(prompt):
                    result = host.run(job(prompt=prompt))
                    self.assertEqual(result.outcome, outcome)
                    self.assertIn(words, result.message)
                    self.assertEqual(result.code, "content_policy" if prompt == "policy" else None)

    def test_a_broken_device_ends_the_process(self) -> None:
        cases = [
            ("poisoned", "illegal memory access"),
            ("accelerator", "device-side assert"),
            ("lost", "the device is gone"),
        ]
        for prompt, words in cases:
            with self.subTest(prompt), support.host() as host:
                host.open()
                result = host.run(job(prompt=prompt))
                self.assertEqual(result.outcome, "broken")
                self.assertIn(words, result.message)
                self.assertEqual(host.process.wait(timeout=30), 70)

    def test_mistakes_are_explained(self) -> None:
        cases = [
            ("small", "3069 bytes are no whole frames of 32x32"),
            ("few", "ended after 1 of 9 frames"),
            ("many", "frame 10 of a clip of 9 frames"),
            ("wrong", "yielded a bytes; yield job.rgb(frames)"),
            ("silent", "look at job.clip.audio"),
        ]
        with support.host() as host:
            host.open()
            for prompt, words in cases:
                with self.subTest(prompt):
                    result = host.run(job(prompt=prompt))
                    self.assertEqual(result.outcome, "failed")
                    self.assertIn(words, result.message)

    def test_sound_is_resampled_and_as_long_as_the_picture(self) -> None:
        result = self.run_one("sounds", audio=True, frames=16)
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertEqual(len(result.sound), 48_000 * 8)
        middle = struct.unpack_from("<2f", result.sound, 24_000 * 8)
        for sample in middle:
            self.assertAlmostEqual(sample, 0.25, places=3)

    def test_missing_sound_fails(self) -> None:
        self.assertIn("0.00 s of sound", self.run_one("plain", audio=True, frames=16).message)

    def test_a_late_clip_is_decided_before_its_frames(self) -> None:
        with support.host() as host:
            host.open()
            result = host.run(job(prompt="late", seed=5, frames=None, frames_max=20))
            self.assertEqual((result.outcome, result.decided, len(result.frames)), ("done", 5, 5))
            result = host.run(job(prompt="late", seed=21, frames=None, frames_max=20))
            self.assertIn("1 to 20 are allowed", result.message)
            result = host.run(job(prompt="undecided", frames=None, frames_max=20))
            self.assertIn("job.decide", result.message)

    def test_a_source_plays_again_and_twice_at_once(self) -> None:
        source = [picture(value) for value in range(9)]
        result = self.run_one("echo", source=source, strength=0.5)
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertEqual([frame[0] for frame in result.frames], [1, 3, 5, 7, 9, 11, 13, 15, 16])
        self.assertEqual((result.plays, result.closed_plays), (2, 2))

    def test_a_seventeenth_play_is_refused(self) -> None:
        result = self.run_one("replays", source=[picture(1)], strength=0.5, frames=1)
        self.assertIn("played 16 times", result.message)
        self.assertEqual(result.plays, 16)

    def test_materials_arrive_in_their_order(self) -> None:
        images = [picture(2), picture(3)]
        ends = {"first_frame": picture(1), "last_frame": picture(4)}
        result = self.run_one("materials", images=images, audios=[Audio(bytes(16))], frames=4, **ends)
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertEqual([frame[0] for frame in result.frames], [1, 2, 3, 4])

    def test_progress_never_falls_and_phases_are_declared(self) -> None:
        result = self.run_one("signs", first_frame=picture(1))
        self.assertEqual(result.outcome, "done")
        self.assertEqual(result.progress[:2], [0.5, 0.5])
        self.assertEqual(result.progress[-1], 1.0)
        self.assertEqual(result.phases, [{"name": "compiling", "limit_seconds": 900}])
        self.assertEqual((result.previews[0].width, len(result.previews[0].bytes)), (32, FRAME))
        self.assertGreaterEqual(result.alive, 1)

    def test_the_last_progress_comes_by_itself_if_the_job_is_done(self) -> None:
        self.assertEqual(self.run_one("plain").progress[-1:], [1.0])
        failed = self.run_one("short")
        self.assertEqual((failed.outcome, failed.progress[-1:]), ("failed", []))

    def test_a_job_beyond_the_description_is_unsupported(self) -> None:
        with support.host("Narrow") as host:
            host.open()
            for words in ({"width": 24}, {"frames": 8}, {"fps": 24}, {"draft": True}, {"audio": True}, {"images": [picture(1)]}):
                with self.subTest(words=str(words)):
                    self.assertEqual(host.run(job(prompt="plain", **words)).outcome, "unsupported")  # type: ignore[arg-type]
            self.assertEqual(host.run(job(prompt="plain")).outcome, "done")


class Opening(unittest.TestCase):
    def test_failures_are_reported(self) -> None:
        cases = [
            ("Refuses", "FileNotFoundError: no weights here"),
            ("Missing", "has no class Missing"),
            ("picture", "has no class picture"),
        ]
        for name, words in cases:
            with self.subTest(name), support.host(name) as host:
                with self.assertRaisesRegex(OpenFailed, words):
                    host.open()
                host.process.wait(timeout=10)

    def test_another_major_version_is_refused(self) -> None:
        with support.host() as host:
            host.send_json(b"o", {"protocol": {"major": 2, "minor": 0}, "name": "x", "settings": {}, "device": None})
            kind, body = host.receive()
            self.assertEqual(kind, b"e")
            self.assertIn(b"version 2", body)

    def test_an_engine_that_cannot_reset_ends(self) -> None:
        with support.host("BadReset") as host:
            host.open()
            self.assertEqual(host.run(job(prompt="breaks")).outcome, "failed")
            with self.assertRaises(HostError):
                host.run(job(prompt="plain"))
