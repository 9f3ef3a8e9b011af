"""A small process beside the engine: kills the engine's process group when Kinora is gone.

The engine's own reader does the same, but it cannot run while native code holds the interpreter. Runs as a script, without the package:
`_watch.py DESCRIPTOR ENGINE_PID`. The descriptor is the reading end of Kinora's pipe; this process never reads from it.
"""

import os
import select
import signal
import sys

FALLBACK_POLL_MS = 500


def main(descriptor: int, engine: int) -> None:
    """Waits until the pipe has no writer or the engine is gone, then kills."""
    poll = select.poll()
    poll.register(descriptor, 0)  # A hang-up is always reported; pending input is not asked for.
    timeout_ms: int | None = FALLBACK_POLL_MS
    try:
        poll.register(os.pidfd_open(engine), select.POLLIN)
        timeout_ms = None
    except (AttributeError, OSError):
        pass  # Another system, or a sandbox: watch for a new parent instead.
    while not poll.poll(timeout_ms) and os.getppid() == engine:
        pass
    if os.getpgrp() == engine:
        os.killpg(engine, signal.SIGKILL)
    elif os.getppid() == engine:
        os.kill(engine, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(int(sys.argv[1]), int(sys.argv[2]))
