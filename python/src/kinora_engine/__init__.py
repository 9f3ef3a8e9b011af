"""Write video engines for Kinora: subclass `Engine`, and start it with `python -m kinora_engine MODULE:CLASS`.

This package speaks version 1 of Kinora's engine protocol (docs/engine-protocol.md). It imports only the standard library; numpy,
torch and Pillow objects are recognised by their attributes.
"""

from ._description import Description, Features, Frames
from ._engine import Engine
from ._errors import Broken, Cancelled, ContentPolicy, OutOfMemory, Unsupported
from ._job import Clip, Job
from ._materials import Audio, Picture
from ._outputs import Frame, FrameStream, Output, Sound
from ._serve import serve
from ._source import Source
from ._version import VERSION as __version__

__all__ = [
    "Audio",
    "Broken",
    "Cancelled",
    "Clip",
    "ContentPolicy",
    "Description",
    "Engine",
    "Features",
    "Frame",
    "FrameStream",
    "Frames",
    "Job",
    "OutOfMemory",
    "Output",
    "Picture",
    "Sound",
    "Source",
    "Unsupported",
    "__version__",
    "serve",
]
