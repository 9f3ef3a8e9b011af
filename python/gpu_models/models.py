"""What `./gpu-models` runs of `kinora models`, and how it reads the answers: all in this file."""

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Commands:
    """The binary, its data folder, and the variables and options that `models add` gets."""

    kinora: str
    data: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()

    def fitting(self) -> list[str]:
        """The names in the catalogue that fit this machine.

        Raises:
            RuntimeError: the command failed.
        """
        command = [self.kinora, "models", "list", "--available", "--json", "--data", str(self.data)]
        ended = subprocess.run(command, capture_output=True, text=True, env=self._environment())
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(command[1:5])} ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")
        listed = json.loads(ended.stdout)
        entries: list[dict[str, Any]] = listed if isinstance(listed, list) else listed["models"]
        return [str(entry["name"]) for entry in entries if entry["fits"]]

    def add(self, name: str, log: Path) -> dict[str, float]:
        """Adds a model: the seconds of each step that the command announces (`3/5 engine`), by its name, and of `all`.

        Raises:
            RuntimeError: it failed; with its last lines.
        """
        command = [self.kinora, "models", "add", name, "--yes", "--data", str(self.data), *self.options]
        begun = time.monotonic()
        steps, lines = [("", begun)], list[str]()
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with log.open("w") as file, subprocess.Popen(command, text=True, env=self._environment(), **pipes) as process:
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                lines.append(line.strip())
                if step := announced(line):
                    steps.append((step, time.monotonic()))
        if process.returncode != 0:
            raise RuntimeError(f"models add ended with {process.returncode}: {' '.join(lines[-5:])[-1_000:]}")
        ended = time.monotonic()
        ends = [moment for _, moment in steps[1:]] + [ended]
        return {name: end - start for (name, start), end in zip(steps, ends) if name} | {"all": ended - begun}

    def card(self, name: str) -> Path:
        """Where `add` writes a model's card."""
        return self.data / "models.d" / f"{name}.toml"

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables}


def announced(line: str) -> str:
    """`plan` of `2/5 plan: …`, and `engine` of `3/5 engine`; empty for other lines."""
    count, _, rest = line.strip().partition(" ")
    parts = count.split("/")
    is_step = len(parts) == 2 and all(part.isdigit() for part in parts)
    return rest.partition(":")[0].strip() if is_step else ""
