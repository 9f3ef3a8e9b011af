"""Conversions of pixels and sound, without a process."""

import math
import unittest

import support
from kinora_engine import Picture
from kinora_engine._errors import Mistake
from kinora_engine._pixels import frames_of, picture_of
from kinora_engine._resample import _linear, resample
from kinora_engine._stereo import stereo


class Pixels(unittest.TestCase):
    def test_bytes_hold_one_or_many_frames(self) -> None:
        data = bytes(range(24))
        self.assertEqual(list(frames_of(data, 2, 2)), [data[:12], data[12:]])
        self.assertEqual(list(frames_of([memoryview(data)[:12], Picture(2, 2, data[12:])], 2, 2)), [data[:12], data[12:]])
        for wrong in (b"", data[:-1], [Picture(1, 4, data[:12])], 7):
            with self.assertRaises(Mistake):
                list(frames_of(wrong, 2, 2))

    @unittest.skipUnless(support.HAS_NUMPY, support.NEEDS_NUMPY)
    def test_arrays_of_every_layout_give_the_same_frames(self) -> None:
        import numpy as np

        frames = np.random.default_rng(1).integers(0, 256, (5, 4, 6, 3), np.uint8)
        expected = [frame.tobytes() for frame in frames]
        floats = frames.astype(np.float32) / 255
        layouts = [
            frames,
            frames[None],
            frames.transpose(0, 3, 1, 2),
            floats,
            floats.astype(np.float64).transpose(0, 3, 1, 2)[None],
            list(frames),
            (frame.transpose(2, 0, 1) for frame in floats),
        ]
        for value in layouts:
            self.assertEqual(list(frames_of(value, 6, 4)), expected)
        self.assertEqual(list(frames_of(frames[0], 6, 4)), expected[:1])
        self.assertEqual(picture_of(frames[0]), Picture(6, 4, expected[0]))

    @unittest.skipUnless(support.HAS_NUMPY, support.NEEDS_NUMPY)
    def test_wrong_arrays_are_explained(self) -> None:
        import numpy as np

        cases = [
            (np.zeros((6, 4, 3), np.uint8), r"shape \[6, 4, 3\] do not fit a clip of 6x4"),
            (np.zeros((4, 6, 3), np.int64), "int64"),
            (np.full((4, 6, 3), np.nan), "no numbers"),
            (np.full((4, 6, 3), 255.0), "scale them to 0..1"),
            (np.zeros((2, 5, 4, 6, 3), np.uint8), "several clips"),
        ]
        for value, words in cases:
            with self.assertRaisesRegex(Mistake, words):
                list(frames_of(value, 6, 4))


class Sounds(unittest.TestCase):
    def test_linear_interpolation_keeps_a_slow_tone(self) -> None:
        from array import array

        tone = array("f", (math.sin(index // 2 * 0.01) for index in range(4_000)))
        out = _linear(tone, 24_000)
        self.assertEqual(len(out), 8_000)
        for index in range(0, 7_900, 2):
            self.assertAlmostEqual(out[index], math.sin(index / 2 * 0.005), places=3)

    @unittest.skipUnless(support.HAS_NUMPY, support.NEEDS_NUMPY)
    def test_the_filter_keeps_tones_and_removes_those_above_the_new_limit(self) -> None:
        import numpy as np

        for rate in (8_000, 16_000, 22_050, 24_000, 44_100, 96_000):
            time = np.arange(rate, dtype=np.float64) / rate
            sound = np.repeat(np.sin(2 * np.pi * 1_000 * time)[:, None], 2, axis=1).astype("<f4") * 0.5
            out = np.frombuffer(resample(sound.tobytes(), rate), "<f4").reshape(-1, 2)
            self.assertEqual(out.shape, (48_000, 2))
            ideal = 0.5 * np.sin(2 * np.pi * 1_000 * np.arange(48_000) / 48_000)
            self.assertLess(np.abs(out[500:-500, 0] - ideal[500:-500]).max(), 1e-3, rate)
        time = np.arange(96_000) / 96_000
        high = np.repeat(np.sin(2 * np.pi * 30_000 * time)[:, None], 2, axis=1).astype("<f4")
        out = np.frombuffer(resample(high.tobytes(), 96_000), "<f4")
        self.assertLess(np.abs(out[1_000:-1_000]).max(), 1e-3)

    @unittest.skipUnless(support.HAS_NUMPY, support.NEEDS_NUMPY)
    def test_arrays_of_every_form_give_the_same_sound(self) -> None:
        import numpy as np

        sound = np.random.default_rng(1).uniform(-1, 1, (50, 2)).astype("<f4")
        for value in (sound, sound.T, sound.T[None], sound.astype(np.float64)):
            self.assertEqual(stereo(value, None), sound.tobytes())
        integers = (sound * 32_767).astype(np.int16)
        close = np.frombuffer(stereo(integers, None), "<f4").reshape(-1, 2)
        self.assertLess(np.abs(close - sound).max(), 1e-4)
        mono = np.frombuffer(stereo(sound[:, 0], None), "<f4").reshape(-1, 2)
        self.assertTrue((mono[:, 0] == mono[:, 1]).all())
        for wrong in (np.zeros((4, 4)), np.zeros(4, np.int64), np.full(4, np.nan)):
            with self.assertRaises(Mistake):
                stereo(wrong, None)

    def test_plain_numbers_and_bytes(self) -> None:
        self.assertEqual(stereo([0.5, 2.0], None), stereo([0.5, 0.5, 1.0, 1.0], 2))
        self.assertEqual(stereo(bytes(16), None), bytes(16))
        for wrong in (bytes(3), [float("nan")], 5, bytes(4)):
            with self.assertRaises(Mistake):
                stereo(wrong, None)
