"""An engine by the standard library alone, which breaks the protocol as its argument says.

It computes all frames in steps before it sends the first one. Where a check cancels a job, it waits for the cancel, so that
no machine is too slow or too fast for it.
"""

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import zlib

FAULT = sys.argv[1]
STEPS = 4
CANCELLED_AT_A_FRAME = 5
CANCELLED_IN_A_STEP = 10
"""The jobs that the check cancels first, by their numbers."""
CANCELLED_FRAME = 4
"""The check cancels, or refuses, one of the frames up to this one."""
PATIENCE_SECONDS = 200
"""A check that cancels other jobs fails the test, and does not hang it."""

source = os.fdopen(os.dup(0), "rb")
target = os.fdopen(os.dup(1), "wb")
writing = threading.Lock()
jobs = queue.Queue()
cancelled = threading.Event()


def send(kind, body=b""):
    with writing:
        target.write(struct.pack("<cI", kind, len(body)) + body)
        target.flush()


def send_json(kind, body):
    send(kind, json.dumps(body).encode())


def read(length):
    data = source.read(length)
    if len(data) < length:
        if FAULT == "leaves a child":
            os._exit(1)
        os.killpg(0, signal.SIGKILL)
    return data


def read_all():
    while True:
        kind, length = struct.unpack("<cI", read(5))
        body = read(length)
        if kind == b"j":
            cancelled.clear()
            jobs.put(json.loads(body))
        elif kind == b"c":
            cancelled.set()
        elif kind not in b"omfnu" and FAULT == "dies of unknown messages":
            os._exit(3)


class Engine:
    def __init__(self):
        self.number = 0
        self.carried = 0
        if FAULT == "leaves a child":
            nothing = subprocess.DEVNULL
            subprocess.Popen(["sleep", "100000"], stdin=nothing, stdout=nothing, stderr=nothing)

    def run(self, job):
        self.number += 1
        if FAULT != "leaves a step behind":
            self.carried = 0
        if FAULT == "hangs":
            threading.Event().wait()
        if FAULT == "refuses negative prompts" and job["negative_prompt"]:
            return {"outcome": "unsupported", "message": "no negative prompts"}
        if FAULT == "refuses finals" and job["final"]:
            return {"outcome": "unsupported", "message": "no finals"}
        latent = zlib.crc32(f"{job['prompt']} {job['seed']}".encode())
        for step in range(1, STEPS + 1):
            latent = zlib.crc32(struct.pack("<II", latent, self.carried))
            self.carried = latent
            send(b"p", struct.pack("<d", step / (STEPS + 1)))
            if step == 1 and self.number == CANCELLED_IN_A_STEP:
                cancelled.wait(PATIENCE_SECONDS)
            if cancelled.is_set() and FAULT != "ignores cancels":
                return {"outcome": "cancelled"}
        self.carried = 0
        return self.deliver(job["clip"], latent)

    def deliver(self, clip, latent):
        frame = struct.pack("<I", latent)[:3] * (clip["width"] * clip["height"])
        for number in range(1, clip["frames"] + 1):
            send(b"f", frame)
            if number == CANCELLED_FRAME and self.number == CANCELLED_AT_A_FRAME:
                cancelled.wait(PATIENCE_SECONDS)
            if cancelled.is_set():
                if FAULT == "ignores cancels":
                    threading.Event().wait()
                return {"outcome": "cancelled"}
        send(b"p", struct.pack("<d", 1.0))
        return {"outcome": "done"}


def main():
    threading.Thread(target=read_all, daemon=True).start()
    features = {"text_to_video": True, "negative_prompt": True, "draft": True}
    send_json(b"h", {"protocol": {"major": 1, "minor": 0}, "features": features})
    engine = Engine()
    send(b"o")
    while True:
        send_json(b"e", engine.run(jobs.get()))


main()
