"""A rank beside the first: `python -m kinora_engine.diffusers._rank PLACE`. It makes each call of the first rank with it.

Messages are pickles with their length, over standard input and output, from and to the first rank only. The process ends with its
input, whatever it is doing.
"""

import os
import pickle
import struct
import sys
import traceback
from typing import IO, Any

from .._errors import Cancelled, is_out_of_memory
from .._streams import guard
from ._load import load_pipeline
from ._run import clean, run
from ._settings import Settings
from ._together import from_first, join

DONE, FAILED, OUT_OF_MEMORY = "done", "failed", "out_of_memory"


class Follower:
    """The watch of this rank: it stops where the first one does."""

    def inside(self) -> None:
        """Nothing: between blocks, ranks wait for each other."""

    def before(self) -> None:
        """Stops if the first rank stops."""
        if from_first(0):
            raise Cancelled

    def step(self, fraction: float) -> None:
        """Stops if the first rank stops."""
        self.before()

    def length(self, frames: int) -> int:
        """The length that the first rank decided."""
        return from_first(0)


def send(stream: IO[bytes], message: Any) -> None:
    """Writes a message."""
    body = pickle.dumps(message)
    stream.write(struct.pack("<Q", len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Reads a message; `None` at the end of the stream."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    return pickle.loads(stream.read(struct.unpack("<Q", head)[0]))


def ended(error: BaseException | None) -> tuple[str, str]:
    """The answer after loading or after a call."""
    if error is None or isinstance(error, Cancelled):
        return (DONE, "")
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    return (OUT_OF_MEMORY if is_out_of_memory(error) else FAILED, f"{type(error).__name__}: {error}")


def load(opened: dict[str, Any], place: int) -> Any:
    """Meets the other ranks and loads the pipeline."""
    settings = Settings.parse(opened["settings"])
    join(place, opened["rank"], settings)
    return load_pipeline(settings, opened["rank"])


def make(pipe: Any, call: dict[str, Any]) -> BaseException | None:
    """Makes a call, and returns its error, if any."""
    try:
        run(pipe, call["arguments"], call["seed"], Follower(), call["settings"])
    except BaseException as error:
        return error
    finally:
        clean(pipe)
    return None


def main() -> None:
    """Loads the pipeline, and makes calls until the input ends."""
    streams = guard()
    first_in, first_out = os.fdopen(streams.input, "rb"), os.fdopen(streams.output, "wb")
    error: BaseException | None = None
    pipe = None
    try:
        pipe = load(receive(first_in), int(sys.argv[1]))
    except BaseException as raised:
        error = raised
    send(first_out, ended(error))
    while (call := receive(first_in)) is not None:
        send(first_out, ended(make(pipe, call)))
    os._exit(0)


if __name__ == "__main__":
    main()
