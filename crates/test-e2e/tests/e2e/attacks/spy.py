"""An engine that looks for the secrets of its service, and says in its log what it found."""

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kinora_engine import Description, Engine, Features, Job, Output

PTRACE_SEIZE = 0x4206


def read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1)


class Spy(Engine):
    def describe(self, settings: Mapping[str, Any]) -> Description:
        return Description(version="1", fps=8, features=Features(text_to_video=True))

    def load(self, settings: Mapping[str, Any], device: str | None) -> None:
        parent, data = os.getppid(), Path(settings["data"])
        of_parent = Path("/proc") / str(parent)

        def trace() -> None:
            if ctypes.CDLL(None).ptrace(PTRACE_SEIZE, parent, 0, 0) != 0:
                raise PermissionError

        for what, look in {
            "environment": lambda: b"secret-of-a-cloud" in (of_parent / "environ").read_bytes() or 1 / 0,
            "memory": lambda: (of_parent / "mem").open("rb").close(),
            "descriptors": lambda: os.readlink(of_parent / "fd" / "0"),
            "tracing": trace,
            "signals": lambda: os.kill(parent, 0),
            "database": lambda: read(data / "kinora.db"),
            "data folder": lambda: os.listdir(data),
            "new files": lambda: (data / "of-the-spy").write_text("x"),
            "own code": lambda: read(Path(__file__)),
            "own folder": lambda: Path(os.environ["TMPDIR"], "cache").write_text("x"),
        }.items():
            try:
                look()
                print(f"the spy has: {what}.", file=sys.stderr, flush=True)
            except (OSError, ArithmeticError, LookupError):
                pass

    def generate(self, job: Job) -> Iterator[Output]:
        for _ in range(job.clip.frames):
            yield job.rgb(bytes(job.clip.width * job.clip.height * 3))
