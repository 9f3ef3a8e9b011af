"""A `kinora serve` of its own, and a client of it. All that `./gpu-models` asks over HTTP or reads in the log is here."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

START_SECONDS = 60.0
POLL_SECONDS = 0.05
"""Long enough that the polls of a clip take little of a processor."""


class Service:
    """The process, on a free port of the loopback until the block ends. `log` is the file of its messages."""

    def __init__(self, kinora: str, data: Path, log: Path, config: Path | None = None) -> None:
        self.log = log
        self._kinora = [kinora, "serve", "--data", str(data), "--listen", "127.0.0.1:0", "--log-format", "json"]
        if config is not None:
            self._kinora += ["--config", str(config)]
        # What engines write to standard error is in the log too.
        environment = {"KINORA_WORKER_SLOTS": "1", "KINORA_LOG_LEVEL": "info,kinora_engine_host=debug", **os.environ}
        with log.open("w") as output:
            self.process = subprocess.Popen(self._kinora, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            self.base = self._address()
            self._key = (data / "first-key").read_text().strip()
        except Exception:
            self.__exit__()
            raise

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def _address(self) -> str:
        begun = time.monotonic()
        while time.monotonic() - begun < START_SECONDS:
            for line in self.logged('"message":"serving","address":"'):
                return "http://" + str(line["address"])
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"kinora serve did not start: {' '.join(self.log.read_text().splitlines()[-1:])[-1_000:]}")

    def logged(self, text: str) -> list[dict[str, Any]]:
        """The fields of the log's lines that have this text."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if text in line and line.startswith("{")]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON."""
        content = None if body is None else json.dumps(body).encode()
        return json.loads(self._request(method, self.base + path, content, "application/json"))

    def submit(self, model: str, **more: Any) -> str:
        """The new task's id."""
        return str(self.call("POST", "/v1/videos", {"model": model, **more})["id"])

    def video(self, task: str) -> Any:
        """The task object."""
        return self.call("GET", f"/v1/videos/{task}")

    def cancel(self, task: str) -> None:
        """Cancels a task that waits or runs."""
        self.call("POST", f"/v1/videos/{task}/cancel")

    def film(self, video: Any) -> bytes:
        """The MP4 of a completed task."""
        return self._request("GET", video["result_url"], None, "")

    def upload(self, name: str, content: bytes) -> str:
        """The address of a new file, for requests."""
        mark = uuid.uuid4().hex
        head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        answer = self._request("POST", f"{self.base}/v1/files", body, f"multipart/form-data; boundary={mark}")
        return str(json.loads(answer)["url"])

    def wait(self, task: str, ready: Callable[[Any], bool], patience: float) -> Any:
        """The task object, as soon as it is ready.

        Raises:
            RuntimeError: the task failed.
            TimeoutError: it took longer than `patience` seconds. The task is cancelled.
        """
        begun = time.monotonic()
        while not ready(video := self.video(task)):
            if video["status"] == "failed":
                # The log says more than clients may see.
                causes = [str(line.get("error")) for line in self.logged('"message":"run failed"')]
                raise RuntimeError(f"the task failed with {video['error']['code']}: {''.join(causes[-1:]) or video['error']['message']}")
            if time.monotonic() - begun > patience:
                self.cancel(task)
                raise TimeoutError(f"after {patience:.0f} s the task is {video['status']}, at {video['progress']} %")
            time.sleep(POLL_SECONDS)
        return video

    def engine(self) -> int:
        """The id of the engine process that was started last."""
        return int(self.logged("engine process started")[-1]["process_id"])

    def _request(self, method: str, url: str, body: bytes | None, kind: str) -> bytes:
        headers: dict[str, str] = {"Authorization": f"Bearer {self._key}", "Content-Type": kind}
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {url} answered {error.code}: {error.read().decode(errors='replace')[:500]}") from error
