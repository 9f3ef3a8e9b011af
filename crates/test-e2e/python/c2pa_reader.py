"""Asks the C2PA project's own reader about a file: `c2pa_reader.py FILE ANCHORS` prints its report as JSON.

It trusts the certificates in ANCHORS alone, and asks nobody over the network.
"""

import json
import sys

import c2pa

path, anchors = sys.argv[1:]
with open(anchors, encoding="utf-8") as file:
    settings = {
        "trust": {"trust_anchors": file.read()},
        "verify": {"verify_trust": True, "ocsp_fetch": False, "remote_manifest_fetch": False},
    }
with open(path, "rb") as film, c2pa.Context.from_dict(settings) as context:
    with c2pa.Reader("video/mp4", film, context=context) as reader:
        print(json.dumps(json.loads(reader.json())))
