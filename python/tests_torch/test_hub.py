"""A repository id instead of a folder: a stand-in for the hub serves a tiny Wan. Needs the extra `diffusers`."""

import tempfile
import unittest
from pathlib import Path
from typing import Any

from gpu_models.hub import Hub
from support import ENVIRONMENT, tiny

from kinora_engine.testing import Host, OpenFailed, Result, command, job

REPOSITORY = "kinora-tests/tiny-wan"
WEIGHTS = "transformer/diffusion_pytorch_model.safetensors"


class Repository(unittest.TestCase):
    folder: "tempfile.TemporaryDirectory[str]"

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        # Its weights are larger than one read of the hub's client, 10 MiB, so that a download can break off between two.
        tiny.wan(Path(cls.folder.name), ffn_dim=40_000)

    def setUp(self) -> None:
        self.hub = Hub({REPOSITORY: Path(self.folder.name)})
        self.addCleanup(self.hub.close)
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.online = {**ENVIRONMENT, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": self.hub.address, "HF_HOME": home.name}
        self.offline = {**self.online, "HF_HUB_OFFLINE": "1"}

    def run_once(self, model: str, environment: dict[str, str], **settings: Any) -> Result:
        with Host(command("kinora_engine.diffusers:Pipeline"), env=environment, timeout=120) as host:
            self.hello = host.open({"model": model, "dtype": "float32", "torch_device": "cpu", "steps": 3, **settings})
            result = host.run(job())
        self.assertEqual((result.outcome, result.message), ("done", ""))
        return result

    def refusal(self, model: str, environment: dict[str, str], **settings: Any) -> str:
        with self.assertRaises(OpenFailed) as raised:
            self.run_once(model, environment, **settings)
        return str(raised.exception)

    def test_the_first_start_downloads_and_the_second_needs_no_hub(self) -> None:
        expected = self.run_once(self.folder.name, self.offline).frames
        self.assertEqual(self.hub.requests, [])
        self.assertEqual(self.run_once(REPOSITORY, self.online).frames, expected)
        # Known only from the repository's files.
        self.assertEqual((self.hello["engine"]["name"], self.hello["size_multiple"]), ("WanPipeline", 16))
        downloads = self.hub.downloads()
        self.assertTrue(any(path.endswith(WEIGHTS) for path in downloads), downloads)
        self.assertEqual(len(downloads), len(set(downloads)), "each file once")
        self.hub.requests.clear()
        self.assertEqual(self.run_once(REPOSITORY, self.offline).frames, expected)
        self.assertEqual(self.hub.requests, [])
        self.assertEqual(self.run_once(REPOSITORY, self.online).frames, expected)
        self.assertEqual(self.hub.downloads(), [], "a later start asks the hub, and downloads nothing")

    def test_a_download_that_breaks_off_goes_on_where_it_was(self) -> None:
        self.hub.break_off[WEIGHTS] = 12_000_000
        self.run_once(REPOSITORY, self.online)
        weights = [path for path in self.hub.downloads() if WEIGHTS in path]
        self.assertEqual([path.partition(" ")[2] for path in weights], ["", f"bytes={10 << 20}-"])

    def test_a_wrong_id_says_what_to_do(self) -> None:
        advice = "no folder kinora-tests/none, nor a public repository: correct settings.model, or set HF_TOKEN"
        self.assertIn(advice, self.refusal("kinora-tests/none", self.online))
        # As all ready-made configurations do.
        self.assertIn(advice, self.refusal("kinora-tests/none", self.online, pipeline="WanPipeline"))

    def test_without_a_hub_the_refusal_says_where_to_look(self) -> None:
        advice = f"{REPOSITORY} is not in the cache, and the hub cannot be reached: check HF_ENDPOINT and HF_HUB_OFFLINE"
        self.assertIn(advice, self.refusal(REPOSITORY, self.offline))
        self.hub.close()
        self.assertIn(advice, self.refusal(REPOSITORY, self.online))


if __name__ == "__main__":
    unittest.main()
