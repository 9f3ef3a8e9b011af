"""`python -m kinora_engine TARGET`, where TARGET is `MODULE:CLASS`, `FILE.py:CLASS`, or a name in the entry-point group `kinora.engines`."""

import sys

from ._streams import guard

USAGE = "usage: python -m kinora_engine MODULE:CLASS | FILE.py:CLASS | NAME"


def main() -> None:
    """Serves the engine that the command line names."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(USAGE)
    target = sys.argv[1]
    if sys.stdin.isatty():
        sys.exit(f"{USAGE}\nKinora starts this command; standard input must be its pipe, not a terminal.")
    streams = guard()
    from ._serve import serve_found
    from ._target import find_engine

    serve_found(lambda: find_engine(target), streams)


if __name__ == "__main__":
    main()
