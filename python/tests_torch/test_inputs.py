"""What a job brings besides its prompt reaches the pipeline: each clip is that of a direct call with the same arguments."""

import importlib.util
import os
import unittest
from typing import Any

import diffusers
import torch
from PIL import Image
from support import Tiny, tiny

from kinora_engine import Picture
from kinora_engine.testing import OpenFailed, Result, job

SIZE = 32
FRAMES = 9
SEED = 7
HAS_AV = importlib.util.find_spec("av") is not None
GREY = Image.new("RGB", (SIZE, SIZE), (128, 128, 128))
BLACK, WHITE = (Image.new("L", (SIZE, SIZE), shade) for shade in (0, 255))


def picture(red: int, green: int) -> Picture:
    """A slope of this colour."""
    return Picture(SIZE, SIZE, bytes(value for row in range(SIZE) for _ in range(SIZE) for value in (red, green, 7 * row)))


ONE, TWO = picture(250, 20), picture(10, 200)
FILM = [picture(25 * number, 255 - 25 * number) for number in range(FRAMES)]


class Inputs(Tiny):
    settings: dict[str, Any] = {}

    def setUp(self) -> None:
        self.engine = self.host(**self.settings)

    def compared(self, request: Any, **arguments: Any) -> list[bytes]:
        """The frames of the engine, after a comparison with a direct call with these arguments."""
        result: Result = self.engine.run(request)
        assert isinstance(self, unittest.TestCase)
        self.assertEqual((result.outcome, result.message), ("done", ""))
        direct = self.direct({**self.settings.get("arguments", {}), **arguments})
        self.assertEqual(len(result.frames), len(direct))
        pairs = zip(b"".join(result.frames), b"".join(direct), strict=True)
        self.assertLessEqual(max(abs(one - two) for one, two in pairs), 1)
        return result.frames

    def direct(self, arguments: dict[str, Any]) -> list[bytes]:
        """What the pipeline makes when it is called without the adapter."""
        os.environ["HF_HUB_OFFLINE"] = "1"
        kind = getattr(diffusers, self.settings.get("pipeline", "DiffusionPipeline"))
        pipe = kind.from_pretrained(self.folder.name, dtype=torch.float32)
        pipe.set_progress_bar_config(disable=True)
        made = pipe(
            prompt="waves",
            width=SIZE,
            height=SIZE,
            num_inference_steps=self.settings.get("steps", 3),
            generator=torch.Generator("cpu").manual_seed(SEED),
            output_type="np",
            **arguments,
        )
        return [(frame * 255 + 0.5).astype("uint8").tobytes() for frame in made.frames[0]]

    def differ(self, *clips: list[bytes]) -> None:
        """Checks that no two clips are equal."""
        assert isinstance(self, unittest.TestCase)
        self.assertEqual(len({b"".join(frames) for frames in clips}), len(clips))


class TwoExperts(Inputs, unittest.TestCase):
    build = staticmethod(tiny.wan_a14b)
    settings = {"arguments": {"guidance_scale": 3.0, "guidance_scale_2": 4.0}}

    def test_text(self) -> None:
        clip = self.compared(job(), num_frames=FRAMES)
        other = self.host(arguments={**self.settings["arguments"], "guidance_scale_2": 1.0}).run(job())
        self.differ(clip, other.frames)


class CoarseDecoder(Inputs, unittest.TestCase):
    build = staticmethod(tiny.wan_ti2v)

    def test_text(self) -> None:
        self.assertEqual((self.hello["size_multiple"], self.hello["fps"]), (32, 24))
        self.compared(job(fps=24), num_frames=FRAMES)


class CogVideoX(Inputs, unittest.TestCase):
    build = staticmethod(tiny.cogvideox)
    settings = {"arguments": {"max_sequence_length": 16}}

    def test_text(self) -> None:
        self.compared(job(fps=8), num_frames=FRAMES)


class HunyuanVideo15(Inputs, unittest.TestCase):
    build = staticmethod(tiny.hunyuanvideo15)

    def test_text(self) -> None:
        self.compared(job(fps=24), num_frames=FRAMES)
        # It has no callback: steps are told by its progress bar.
        self.assertGreater(len(set(self.engine.run(job(fps=24)).progress)), 3)


class FromFrames(Inputs, unittest.TestCase):
    build = staticmethod(tiny.wan_i2v)

    def test_a_first_and_a_last_frame(self) -> None:
        known = {"num_frames": FRAMES, "image": ONE.pil()}
        alone = self.compared(job(first_frame=ONE), **known)
        both = self.compared(job(first_frame=ONE, last_frame=TWO), **known, last_image=TWO.pil())
        other = self.compared(job(first_frame=ONE, last_frame=ONE), **known, last_image=ONE.pil())
        self.differ(alone, both, other)


class Vace(Inputs, unittest.TestCase):
    build = staticmethod(tiny.wan_vace)

    def test_reference_images(self) -> None:
        none = self.compared(job(), num_frames=FRAMES)
        one = self.compared(job(images=[ONE]), num_frames=FRAMES, reference_images=[ONE.pil()])
        two = self.compared(job(images=[ONE, TWO]), num_frames=FRAMES, reference_images=[ONE.pil(), TWO.pil()])
        self.differ(none, one, two)

    def test_frames_at_both_ends(self) -> None:
        # As in the example of diffusers 0.42.1, pipelines/wan/pipeline_wan_vace.py.
        between = FRAMES - 2
        ends = {"video": [ONE.pil(), *[GREY] * between, TWO.pil()], "mask": [BLACK, *[WHITE] * between, BLACK]}
        both = self.compared(job(first_frame=ONE, last_frame=TWO), num_frames=FRAMES, **ends)
        last = {"video": [*[GREY] * (FRAMES - 1), TWO.pil()], "mask": [*[WHITE] * (FRAMES - 1), BLACK]}
        one = self.compared(job(last_frame=TWO), num_frames=FRAMES, **last)
        image = self.compared(job(last_frame=TWO, images=[ONE]), num_frames=FRAMES, **last, reference_images=[ONE.pil()])
        self.differ(both, one, image)

    def test_an_edit(self) -> None:
        film = {"video": [frame.pil() for frame in FILM], "mask": [WHITE] * FRAMES, "num_frames": FRAMES}
        weak = self.compared(job(source=FILM, strength=0.25), **film, conditioning_scale=0.75)
        strong = self.compared(job(source=FILM, strength=1.0), **film, conditioning_scale=0.0)
        self.differ(weak, strong)


class VideoToVideo(Inputs, unittest.TestCase):
    build = staticmethod(tiny.wan)
    settings = {"pipeline": "WanVideoToVideoPipeline", "steps": 5, "draft_steps": 2}

    def test_an_edit(self) -> None:
        film = [frame.pil() for frame in FILM]
        weak = self.compared(job(source=FILM, strength=0.4), video=film, strength=0.4)
        strong = self.compared(job(source=FILM, strength=1.0), video=film, strength=1.0)
        self.differ(weak, strong)

    def test_a_source_that_is_shorter_ends_with_its_last_frame_again(self) -> None:
        film = [frame.pil() for frame in FILM[:6]]
        self.compared(job(source=FILM[:6], strength=0.4), video=film + film[-1:] * 3, strength=0.4)

    def test_it_offers_edits_but_neither_text_nor_drafts(self) -> None:
        offered = [name for name, value in self.hello["features"].items() if value]
        self.assertEqual(offered, ["negative_prompt", "edit"])


class Conditions(Inputs, unittest.TestCase):
    build = staticmethod(tiny.ltx2_condition)
    settings = {"arguments": {"spatio_temporal_guidance_blocks": [1], "max_sequence_length": 16}}

    def setUp(self) -> None:
        if HAS_AV:
            super().setUp()

    @unittest.skipUnless(HAS_AV, "av is not installed")
    def test_first_and_last_frames_of_ltx_2(self) -> None:
        from diffusers.pipelines.ltx2.pipeline_ltx2_condition import LTX2VideoCondition as Condition

        first, last = Condition(frames=ONE.pil(), index=0), Condition(frames=TWO.pil(), index=-1)
        clips = []
        pairs: list[tuple[dict[str, Picture], Any]] = [
            ({}, None),
            ({"first_frame": ONE}, [first]),
            ({"last_frame": TWO}, [last]),
            ({"first_frame": ONE, "last_frame": TWO}, [first, last]),
        ]
        for pictures, conditions in pairs:
            request = job(fps=24, **pictures)  # type: ignore[arg-type]
            clips.append(self.compared(request, num_frames=FRAMES, frame_rate=24, conditions=conditions))
        self.differ(*clips)

    @unittest.skipIf(HAS_AV, "av is installed")
    def test_without_av_the_opening_says_what_to_install(self) -> None:
        with self.assertRaisesRegex(OpenFailed, "pip install av"):
            self.host(**self.settings)


if __name__ == "__main__":
    unittest.main()
