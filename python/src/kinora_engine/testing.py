"""A small host for tests of engines: starts a command, opens it and runs jobs over real pipes.

    with Host(command("waves.py:Waves")) as host:
        host.open()
        result = host.run(job(frames=8, width=64, height=48))
        assert result.outcome == "done"

It does not replace `kinora engine check`, which tests more of the protocol.
"""

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from ._materials import Audio, Picture
from ._version import PROTOCOL_MAJOR, PROTOCOL_MINOR
from ._wire import read_message, write_message

TIMEOUT_SECONDS = 60.0


def command(target: str) -> list[str]:
    """The command for `MODULE:CLASS` or `FILE.py:CLASS`, with this Python."""
    return [sys.executable, "-m", "kinora_engine", target]


@dataclass
class JobRequest:
    """A job for `Host.start`; `job` makes one."""

    head: dict[str, Any]
    materials: list[bytes] = field(default_factory=list)
    source: list[bytes] = field(default_factory=list)


def job(
    *,
    prompt: str = "waves",
    negative_prompt: str | None = None,
    seed: int = 7,
    draft: bool = False,
    final: bool = False,
    strength: float | None = None,
    width: int = 32,
    height: int = 32,
    fps: int = 16,
    frames: int | None = 9,
    frames_max: int | None = None,
    audio: bool = False,
    first_frame: Picture | None = None,
    last_frame: Picture | None = None,
    images: Sequence[Picture] = (),
    audios: Sequence[Audio] = (),
    source: Sequence[Picture] = (),
    preset: Mapping[str, Any] | None = None,
) -> JobRequest:
    """A job with its materials. All pictures of `source` have one size; its rate is the clip's."""
    clip: dict[str, Any] = {"width": width, "height": height, "fps": fps, "frames": frames, "audio": audio}
    if frames is None:
        clip["frames_max"] = frames_max
    head = {
        "prompt": prompt,
        "negative_prompt": negative_prompt,
        "seed": seed,
        "draft": draft,
        "final": final,
        "edit": None if strength is None else {"strength": strength},
        "clip": clip,
        "first_frame": _size(first_frame),
        "last_frame": _size(last_frame),
        "images": [_size(image) for image in images],
        "audios": len(audios),
        "source": None,
    }
    if preset:
        head["preset"] = dict(preset)
    if source:
        head["source"] = {"width": source[0].width, "height": source[0].height, "fps": fps, "frames": len(source)}
    pictures = [picture.bytes for picture in (first_frame, last_frame, *images) if picture is not None]
    return JobRequest(head, pictures + [sound.bytes for sound in audios], [picture.bytes for picture in source])


@dataclass
class Result:
    """What an engine sent for a job."""

    outcome: str = ""
    message: str = ""
    code: str | None = None
    frames: list[bytes] = field(default_factory=list)
    sound: bytes = b""
    progress: list[float] = field(default_factory=list)
    previews: list[Picture] = field(default_factory=list)
    phases: list[dict[str, Any]] = field(default_factory=list)
    decided: int | None = None
    plays: int = 0
    closed_plays: int = 0
    alive: int = 0


class HostError(Exception):
    """The engine broke the protocol, died, or did not answer in time."""


class OpenFailed(HostError):
    """The engine answered the open message with `e`."""


class Host:
    """One engine process, the leader of a process group."""

    def __init__(
        self,
        engine_command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.timeout = timeout
        self.log: list[str] = []
        self.process = subprocess.Popen(
            engine_command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else {**os.environ, **env},
            cwd=cwd,
            start_new_session=True,
        )
        self._inbox: queue.SimpleQueue[tuple[bytes, bytes] | None] = queue.SimpleQueue()
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self._input = self.process.stdin
        _start(self._read, self.process.stdout)
        self._logger = _start(self._read_log, self.process.stderr)

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, settings: Mapping[str, Any] | None = None, device: str | None = None, name: str = "test") -> dict[str, Any]:
        """Opens the engine and returns its hello.

        Raises:
            OpenFailed: with the engine's message.
        """
        protocol = {"major": PROTOCOL_MAJOR, "minor": PROTOCOL_MINOR}
        self.send_json(b"o", {"protocol": protocol, "name": name, "settings": dict(settings or {}), "device": device})
        hello: dict[str, Any] | None = None
        while True:
            kind, body = self.receive()
            if kind == b"h":
                hello = json.loads(body)
            elif kind == b"e":
                raise OpenFailed(json.loads(body).get("message", ""))
            elif kind == b"o":
                if hello is None:
                    raise HostError("the engine opened without a hello")
                return hello

    def start(self, request: JobRequest) -> "Running":
        """Sends a job and returns at once."""
        self.send_json(b"j", request.head)
        for material in request.materials:
            self.send(b"m", material)
        return Running(self, request)

    def run(self, request: JobRequest) -> Result:
        """Runs a job to its end."""
        return self.start(request).finish()

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Sends any message. If the engine has ended, `receive` says so."""
        try:
            write_message(self._input.fileno(), kind, body)
        except BrokenPipeError:
            # Its last messages and its log say more.
            pass

    def send_json(self, kind: bytes, body: Mapping[str, Any]) -> None:
        """Sends a message with a JSON body."""
        self.send(kind, json.dumps(body).encode())

    def receive(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """The next message.

        Raises:
            HostError: there is none.
        """
        try:
            message = self._inbox.get(timeout=self.timeout if timeout is None else timeout)
        except queue.Empty:
            raise HostError(f"no message for {self.timeout:g} s; log: {self.log[-12:]}") from None
        if message is None:
            self._logger.join(timeout=2.0)
            raise HostError(f"the engine's output ended; log: {self.log[-12:]}")
        return message

    def close(self) -> None:
        """Kills the engine's process group and waits for the engine."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(timeout=self.timeout)
        self._input.close()

    def _read(self, stream: IO[bytes]) -> None:
        try:
            while (message := read_message(stream)) is not None:  # type: ignore[arg-type]
                self._inbox.put(message)
        finally:
            self._inbox.put(None)
            stream.close()

    def _read_log(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self.log.append(line.decode("utf-8", "replace").rstrip())


class Running:
    """A job that was sent to an engine."""

    def __init__(self, host: Host, request: JobRequest) -> None:
        self.result = Result()
        self._host = host
        self._source = request.source
        self._positions: dict[bytes, int] = {}

    def cancel(self) -> float:
        """Cancels the job and waits for its end. Returns the seconds from the cancel to the end."""
        began = time.monotonic()
        self._host.send(b"c")
        self.finish()
        return time.monotonic() - began

    def wait_until(self, reached: Callable[[Result], bool]) -> Result:
        """Waits until the result so far satisfies `reached`, or the job ends."""
        while not self.result.outcome and not reached(self.result):
            self._take(*self._host.receive())
        return self.result

    def finish(self) -> Result:
        """Waits for the job's end."""
        return self.wait_until(lambda _: False)

    def _take(self, kind: bytes, body: bytes) -> None:
        result = self.result
        if kind == b"f":
            result.frames.append(body)
        elif kind == b"a":
            result.sound += body
        elif kind == b"p":
            result.progress.append(struct.unpack("<d", body)[0])
        elif kind == b"v":
            width, height = struct.unpack_from("<II", body)
            result.previews.append(Picture(width, height, body[8:]))
        elif kind == b"d":
            result.decided = json.loads(body)["frames"]
        elif kind == b"g":
            result.phases.append(json.loads(body))
        elif kind == b"k":
            result.alive += 1
        elif kind in (b"s", b"n", b"c"):
            self._play(kind, body)
        elif kind == b"e":
            ended = json.loads(body)
            result.message, result.code = ended.get("message", ""), ended.get("code")
            result.outcome = ended["outcome"]

    def _play(self, kind: bytes, number: bytes) -> None:
        if kind == b"s":
            self.result.plays += 1
            self._positions[number] = 0
        elif kind == b"c":
            self.result.closed_plays += 1
            self._positions.pop(number, None)
        elif (position := self._positions[number]) < len(self._source):
            self._positions[number] = position + 1
            self._host.send(b"f", self._source[position])
        else:
            self._host.send(b"n")


def _size(picture: Picture | None) -> dict[str, int] | None:
    return None if picture is None else {"width": picture.width, "height": picture.height}


def _start(work: Callable[[IO[bytes]], None], stream: IO[bytes]) -> threading.Thread:
    thread = threading.Thread(target=work, args=(stream,), daemon=True)
    thread.start()
    return thread
