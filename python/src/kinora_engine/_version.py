"""Versions of this package and of the protocol that it speaks."""

import sys

VERSION = "0.1.0"
PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 1


def sdk_name() -> str:
    """The hello's `sdk`, such as `kinora-engine/0.1.0 (python 3.11)`."""
    return f"kinora-engine/{VERSION} (python {sys.version_info.major}.{sys.version_info.minor})"
