"""The life of an engine process: guard the streams, open the engine, run jobs until standard input ends."""

import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from . import _cancel
from ._description import Description, hello
from ._engine import Engine
from ._errors import Mistake, ended
from ._line import Line, leave
from ._messages import InvalidMessage
from ._reader import Reader
from ._runner import run_job
from ._streams import Streams, guard

EXIT_NOT_OPENED = 1
EXIT_UNUSABLE = 70


def serve(engine: Callable[[], Engine]) -> NoReturn:
    """Runs an engine class for Kinora; the process ends here. Call it from the main thread.

    `python -m kinora_engine MODULE:CLASS` does the same, and guards standard output before it imports the module.
    """
    serve_found(lambda: engine, guard())


def serve_found(find: Callable[[], Callable[[], Engine]], streams: Streams) -> NoReturn:
    """Like `serve`, for a class that `find` imports after the streams are guarded."""
    _cancel.install()
    line = Line(streams.output)
    reader = Reader(streams.input)
    try:
        engine, description = _open(find, reader, line)
    except BaseException as error:
        _refuse(error, line)
    line.send(b"o")
    while run_job(engine, description, reader.job(), line):
        pass
    leave(line, EXIT_UNUSABLE)


def _open(find: Callable[[], Callable[[], Engine]], reader: Reader, line: Line) -> tuple[Engine, Description]:
    opened = reader.open()
    factory = find()
    engine = factory()
    if not isinstance(engine, Engine):
        raise Mistake(f"{_name(factory)} is no kinora_engine.Engine")
    engine._line = line
    description = engine.describe(opened.settings)
    if not isinstance(description, Description):
        raise Mistake(f"describe() returned a {type(description).__name__}; it must return a Description")
    line.send_json(b"h", hello(description, type(engine).__name__))
    line.start_alive()
    engine.load(opened.settings, opened.device)
    return engine, description


def _refuse(error: BaseException, line: Line) -> NoReturn:
    """Reports why the engine does not open, and ends the process."""
    if not isinstance(error, (InvalidMessage, Mistake)):
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    line.send_json(b"e", ended(error, cancel_asked=False))
    leave(line, EXIT_NOT_OPENED)


def _name(factory: Any) -> str:
    return getattr(factory, "__qualname__", type(factory).__name__)
