"""What `./gpu-models` reads and writes. No GPU is needed."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import support

ROOT = support.ROOT.parent
if not (ROOT / "models").is_dir():
    raise unittest.SkipTest("not in Kinora's repository")
sys.path.insert(0, str(support.ROOT))
try:
    from gpu_models import cards, film, machine, report, sources, stand_ins
except ImportError as error:  # Python 3.10 without pip
    raise unittest.SkipTest(str(error)) from None

DOCUMENT = f"""# Page

{report.BEGIN}
{report.END}

The rest.
"""


def result(model: str, **steps: Any) -> dict[str, Any]:
    return {"model": model, "source": "", "engine": "diffusers", "machine": {"gpu": "NVIDIA H200", "left_mib": 0}, "steps": steps}


class Machine(unittest.TestCase):
    def test_lines_of_nvidia_smi_are_gpus_and_others_are_not(self) -> None:
        said = "0, NVIDIA H200, 580.159.03, 143771, 12\n1, NVIDIA GB10, 580.95.05, [N/A], [N/A]\nNo devices were found\n"
        first, second = machine.parse_gpus(said)
        self.assertEqual(first, machine.Gpu(0, "NVIDIA H200", "580.159.03", 143_771, 12))
        self.assertEqual((second.index, second.memory_mib, second.used_mib), (1, 0, 0))

    def test_the_stand_in_for_nvidia_smi_answers_as_it_is_asked(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.dict(os.environ, PATH=stand_ins.path_with_gpu(Path(folder))):
                (gpu,) = machine.gpus()
                self.assertEqual((gpu.name, gpu.memory_mib), ("stand-in", 81_559))
                self.assertEqual(machine.gpu_used(), 1.0)

    def test_memory_and_time_are_of_all_descendants(self) -> None:
        hold = "import sys; held = bytearray(64 << 20); print(flush=True); sys.stdin.read()"
        command = ["sh", "-c", f"{sys.executable} -c '{hold}'; true"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            found = list(machine.family(process.pid))
            self.assertGreater(len(found), 1)
            self.assertGreater(sum(map(machine.resident, found)), 64)
            for pid in reversed(found):
                os.kill(pid, 9)


class Commands(unittest.TestCase):
    def test_steps_are_announced_by_a_count_and_a_name(self) -> None:
        self.assertEqual(sources.announced("1/5 machine: NVIDIA H200\n"), "machine")
        self.assertEqual(sources.announced("3/5 engine\n"), "engine")
        for line in ("", "downloading 2/5 of it", "12.1 GB of 34 GB", "1/x machine"):
            self.assertEqual(sources.announced(line), "")

    def test_steps_have_times_and_a_failure_has_the_last_lines(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "kinora"
            program.write_text('#!/bin/sh\necho "1/2 engine"\necho "2/2 check"\necho "no $3"\n[ "$3" = good ]\n')
            program.chmod(0o755)
            catalogue = sources.Catalogue(str(program), Path(folder))
            seconds = catalogue.add("good", Path(folder) / "log")
            self.assertEqual(list(seconds), ["engine", "check", "all"])
            self.assertGreaterEqual(seconds["all"], seconds["engine"] + seconds["check"])
            with self.assertRaisesRegex(RuntimeError, "no bad"):
                catalogue.add("bad", Path(folder) / "log")


class Cards(unittest.TestCase):
    def test_every_ready_made_card_is_read_again_as_it_was(self) -> None:
        read = {path: cards.read(path) for path in (ROOT / "models").rglob("*.toml")}
        # Those of providers have keys to settings of the whole service.
        found = {path: card for path, card in read.items() if set(card) == {"engines", "models"}}
        self.assertGreater(len(found), 20)
        for path, card in found.items():
            with self.subTest(path.stem):
                self.assertEqual(cards.tomllib.loads(cards.text(card)), card)

    def test_a_card_says_how_its_model_runs(self) -> None:
        self.assertEqual(cards.how(cards.read(stand_ins.READY_MADE / "ltx-2.3.toml")), "diffusers, offload model")
        self.assertIn("Q8_0", cards.how(cards.read(ROOT / "models" / "wan2.2-ti2v-5b.toml")))

    def test_a_tiny_model_keeps_its_card_but_for_size_and_device(self) -> None:
        for name in stand_ins.TINY:
            card = cards.read(stand_ins.READY_MADE / f"{name}.toml")
            small = stand_ins.on_the_cpu(name, card)
            self.assertEqual((cards.shortest(small), cards.longest(small)), (2, 2))
            self.assertEqual(cards.engine(small)["describe"], cards.engine(card)["describe"])
            self.assertTrue(cards.is_pipeline(small))

    def test_two_engines_share_a_device_and_keep_their_names(self) -> None:
        card = cards.read(ROOT / "models" / "diffusers" / "wan2.1-t2v-1.3b.toml")
        other = cards.renamed(card, "twin")
        both = cards.joined([cards.changed(one, device="shared") for one in (card, other)], [{"name": "shared"}])
        read = cards.tomllib.loads(cards.text(both))
        self.assertEqual([engine["name"] for engine in read["engines"]], ["wan2.1-t2v-1.3b", "twin"])
        self.assertEqual([engine["device"] for engine in read["engines"]], ["shared", "shared"])
        self.assertEqual([model["engine"] for model in read["models"]], ["wan2.1-t2v-1.3b", "twin"])
        self.assertNotIn("device", cards.engine(card))


class Films(unittest.TestCase):
    def test_the_boxes_of_an_mp4_say_what_is_in_it(self) -> None:
        found = film.read((ROOT / "docs" / "pictures" / "balloon.mp4").read_bytes())
        self.assertEqual(found, film.Film(854, 480, 120, True))

    def test_other_bytes_are_refused(self) -> None:
        for content in (b"", b"<html>", struct.pack(">I4s", 8, b"moov"), struct.pack(">I4s", 3, b"moov") * 9):
            with self.assertRaises(ValueError):
                film.read(content)


class Reports(unittest.TestCase):
    FIRST = {"seconds": 61.25, "load": 40.0, "size": "1280x704", "frames": 48, "fps": 24.0, "sound": False}

    def test_a_line_has_figures_and_failures_have_their_reasons_below(self) -> None:
        steps = {"add": {"engine": 90.04, "weights": 300.0, "all": 400.0}, "first_clip": self.FIRST, "swap": {"failed": "a | b\nc"}}
        written = report.written(DOCUMENT, [result("wan", **steps, ratio={"skipped": "only for diffusers"})])
        self.assertIn("| wan | diffusers | NVIDIA H200 | 90.0 | 300.0 | – | 1280x704, 2 s | 61.2 |", written)
        self.assertIn("- wan, swap: a / b c\n", written)
        self.assertTrue(written.startswith("# Page\n") and written.endswith(f"{report.END}\n\nThe rest.\n"))
        heads, line, row = [text for text in written.splitlines() if text.startswith("|")]
        self.assertEqual({heads.count("|"), row.count("|")}, {line.count("|")})

    def test_models_of_other_days_stay_and_the_same_model_is_replaced(self) -> None:
        old = report.written(DOCUMENT, [result("ltx", swap={"failed": "x"}), result("wan", add={"failed": "y"})])
        new = report.written(old, [result("wan", first_clip=self.FIRST)])
        self.assertEqual(new.count("| ltx |"), 1)
        self.assertEqual(new.count("| wan |"), 1)
        self.assertIn("- ltx, swap: x", new)
        self.assertNotIn("- wan, add", new)
        self.assertEqual(report.written(new, [result("wan", first_clip=self.FIRST)]), new)

    def test_the_page_about_models_has_the_marks(self) -> None:
        page = (ROOT / "docs" / "models.md").read_text()
        self.assertIn("| wan |", report.written(page, [result("wan", first_clip=self.FIRST)]))

    def test_a_page_without_marks_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "gpu-models:begin"):
            report.written("# Page\n", [])


if __name__ == "__main__":
    unittest.main()
