"""The JSON bodies equal the golden files, which Kinora's own tests read too."""

import io
import json
import unittest
from typing import Any
from unittest import mock

import support
from kinora_engine import Cancelled, ContentPolicy, Description, Features, Frames, OutOfMemory, Unsupported
from kinora_engine import _description
from kinora_engine._description import hello
from kinora_engine._errors import ended
from kinora_engine._job import Clip
from kinora_engine._messages import parse_job, parse_open
from kinora_engine._source import SourceHead
from kinora_engine._wire import read_message

GOLDEN = support.ROOT / "tests" / "golden"


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


class Golden(unittest.TestCase):
    def test_hello(self) -> None:
        features = Features(text_to_video=True, negative_prompt=True)
        description = Description(features, 16, Frames(4, 1), 16, "WanPipeline", "diffusers 0.42.1")
        with mock.patch.object(_description, "sdk_name", lambda: "kinora-engine/0.1.0 (python 3.11)"):
            self.assertEqual(hello(description, "Pipeline"), json.loads(golden("hello.json")))

    def test_session(self) -> None:
        lines = [line.split("#")[0] for line in golden("session.txt").decode().splitlines() if line[:1] in ("<", ">")]
        kinds = []
        for line in lines:
            stream = io.BytesIO(bytes.fromhex(line[1:]))
            message = read_message(stream)
            assert message is not None
            self.assertEqual(stream.read(), b"")
            kinds.append(line[0] + message[0].decode())
            if kinds[-1] == ">j":
                parse_job(message[1])
        self.assertEqual(kinds[:4], [">o", "<h", "<k", "<o"])
        self.assertEqual(kinds[-2:], [">c", "<e"])

    def test_open(self) -> None:
        opened = parse_open(golden("open.json"))
        settings = {"model": "/srv/weights/Wan2.1-T2V-1.3B-Diffusers", "steps": 30}
        self.assertEqual((opened.name, opened.settings, opened.device), ("wan", settings, "0"))

    def test_job(self) -> None:
        head = parse_job(golden("job.json"))
        self.assertEqual(head.prompt, "A red balloon drifts over a calm sea at dawn")
        self.assertEqual((head.seed, head.first_frame, head.materials), (7, (832, 480), 1))
        self.assertEqual(head.clip, Clip(832, 480, 16, 81, False))

    def test_an_edit(self) -> None:
        head = parse_job(golden("job-edit.json"))
        self.assertEqual((head.strength, head.source), (0.6, SourceHead(832, 480, 16, 81)))

    def test_a_late_clip(self) -> None:
        head = parse_job(golden("job-late.json"))
        self.assertEqual(head.clip, Clip(768, 512, 24, None, True, 361))
        self.assertEqual((head.pictures, head.materials), ([(768, 512), (640, 640), (320, 200)], 4))

    def test_a_job_with_a_preset(self) -> None:
        preset = {"steps": 4, "guidance_scale": 1.0, "loras": ["lightning", {"name": "anime", "weight": 0.8}]}
        self.assertEqual(parse_job(golden("job-preset.json")).preset, preset)
        self.assertEqual(parse_job(golden("job.json")).preset, {})

    def test_unknown_keys_are_ignored(self) -> None:
        for name, parse in (("open.json", parse_open), ("job.json", parse_job)):
            value: dict[str, Any] = json.loads(golden(name))
            self.assertEqual(parse(json.dumps({**value, "new": [1]}).encode()), parse(golden(name)))

    def test_ended(self) -> None:
        bodies = [
            ended(None, False),
            ended(Cancelled(), True),
            ended(Unsupported("no such size"), False),
            ended(OutOfMemory("device 0"), False),
            ended(type("AcceleratorError", (RuntimeError,), {})("CUDA error: an illegal memory access was encountered"), False),
            ended(ValueError("bad step"), False),
            ended(ContentPolicy("refused"), False),
        ]
        self.assertEqual(bodies, json.loads(golden("ended.json")))
