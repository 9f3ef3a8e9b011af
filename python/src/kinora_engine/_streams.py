"""Takes descriptors 0 and 1 for the protocol, before anything else can use them.

Afterwards descriptor 0 reads from /dev/null and descriptor 1 writes to standard error, so print(), native code and child processes
cannot disturb the protocol. Imports only what this needs: it runs before the engine's module is imported.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn


@dataclass(frozen=True)
class Streams:
    """The protocol's descriptors. Child processes do not inherit them."""

    input: int
    output: int
    watcher: "subprocess.Popen[bytes] | None"


def guard() -> Streams:
    """Moves the protocol away from descriptors 0 and 1, and starts the watcher."""
    sys.stdout.flush()
    # dup() gives descriptors that are closed on exec.
    protocol_in, protocol_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True, errors="backslashreplace")
    return Streams(protocol_in, protocol_out, _start_watcher(protocol_in))


def end_group() -> NoReturn:
    """Kills this process and everything that it started, at once.

    Kinora makes the engine the leader of a process group. A process that leads none was started by hand and kills only itself: its
    group may be the caller's.
    """
    pid = os.getpid()
    if os.getpgrp() == pid:
        os.killpg(pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    os._exit(1)


def _start_watcher(protocol_in: int) -> "subprocess.Popen[bytes] | None":
    # Not PR_SET_PDEATHSIG: it fires when the parent's *thread* that spawned this process ends.
    script = Path(__file__).with_name("_watch.py")
    command = [sys.executable, "-I", "-S", str(script), str(protocol_in), str(os.getpid())]
    try:
        return subprocess.Popen(command, pass_fds=[protocol_in], stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"kinora-engine: no watcher process: {error}", file=sys.stderr)
        return None
