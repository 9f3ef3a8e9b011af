"""An engine by the standard library alone, which breaks the protocol as its argument says.

It computes all frames in steps before it sends the first one. In the first step and at a frame of its plainest jobs it
waits a while for a cancel, longer in longer clips, so that the check finds a job that lasts long enough on any machine.
"""

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib

FAULT = sys.argv[1]
STEPS = 4
CANCELLED_FRAME = 4
"""The check cancels, or refuses, one of the frames up to this one."""
FRAME_SECONDS = 0.04
"""How long a frame takes an engine that never looks for a cancel; the others wait as long for a cancel as all frames take."""
IS_DEAF = FAULT in ("never looks for a cancel", "has no time for a cancel")
FEATURES = {
    "text_to_video": True,
    "first_frame": True,
    "last_frame": True,
    "reference_images_max": 3,
    "reference_audios_max": 1,
    "negative_prompt": True,
    "draft": True,
    "edit": True,
}

source = os.fdopen(os.dup(0), "rb")
target = os.fdopen(os.dup(1), "wb")
writing = threading.Lock()
jobs = queue.Queue()
materials = queue.Queue()
source_frames = queue.Queue()
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
        elif kind == b"m":
            materials.put(body)
        elif kind in b"fnu":
            source_frames.put(body if kind == b"f" else None)
        elif kind == b"c":
            cancelled.set()
        elif kind != b"o" and FAULT == "dies of unknown messages":
            os._exit(3)


class Engine:
    def __init__(self):
        self.carried = 0
        self.patience_seconds = 0
        self.preset = {}
        if FAULT == "leaves a child":
            nothing = subprocess.DEVNULL
            subprocess.Popen(["sleep", "100000"], stdin=nothing, stdout=nothing, stderr=nothing)

    def run(self, job):
        is_plain = not (job["negative_prompt"] or job["draft"] or job["source"] or job["images"] or job["first_frame"])
        self.patience_seconds = FRAME_SECONDS * job["clip"]["frames"] if is_plain and not IS_DEAF else 0
        if FAULT != "leaves a step behind":
            self.carried = 0
        if FAULT == "hangs":
            threading.Event().wait()
        if FAULT == "refuses negative prompts" and job["negative_prompt"]:
            return {"outcome": "unsupported", "message": "no negative prompts"}
        if FAULT == "refuses finals" and job["final"]:
            return {"outcome": "unsupported", "message": "no finals"}
        latent = zlib.crc32(f"{job['prompt']} {job['seed']}".encode())
        for given in [*given_to(job), *frames_of_source(job)]:
            latent = zlib.crc32(given, latent)
        if FAULT != "keeps its preset" or "preset" in job:
            self.preset = job.get("preset", {})
        if FAULT != "ignores its preset":
            latent = zlib.crc32(json.dumps(self.preset).encode(), latent)
        for step in range(1, STEPS + 1):
            latent = zlib.crc32(struct.pack("<II", latent, self.carried))
            self.carried = latent
            self.report(step)
            if step == 1:
                cancelled.wait(self.patience_seconds)
            if cancelled.is_set() and FAULT != "ignores cancels" and not IS_DEAF:
                return {"outcome": "cancelled"}
        self.carried = 0
        return self.deliver(job["clip"], latent)

    def report(self, step):
        progress = step / (STEPS + 1)
        if FAULT == "lets its progress fall" and step % 2 == 0:
            progress = 0.0
        if FAULT == "reports percent":
            progress *= 100
        if FAULT != "reports no progress":
            send(b"p", struct.pack("<d", progress))

    def deliver(self, clip, latent):
        frame = struct.pack("<I", latent)[:3] * (clip["width"] * clip["height"])
        for number in range(1, clip["frames"] + 1):
            if FAULT == "never looks for a cancel":
                time.sleep(FRAME_SECONDS)
            send(b"f", frame)
            if IS_DEAF:
                continue
            if number == CANCELLED_FRAME:
                cancelled.wait(self.patience_seconds)
            if cancelled.is_set():
                if FAULT == "ignores cancels":
                    threading.Event().wait()
                return {"outcome": "cancelled"}
        send(b"p", struct.pack("<d", 1.0))
        return {"outcome": "done"}


def given_to(job):
    """The pictures and sounds of a job, without those that the fault ignores."""
    names = ["first frame"] * (job["first_frame"] is not None) + ["last frame"] * (job["last_frame"] is not None)
    names += [f"image {number}" for number in range(1, len(job["images"]) + 1)] + ["sound"] * job["audios"]
    given = [(name, materials.get()) for name in names]
    return [body for name, body in given if FAULT != f"ignores the {name}"]


def frames_of_source(job):
    """The frames of the source of an edit."""
    if job["edit"] is None or FAULT == "ignores the source":
        return
    send(b"s", struct.pack("<I", 1))
    send(b"n", struct.pack("<I", 1))
    while (frame := source_frames.get()) is not None:
        yield frame
        send(b"n", struct.pack("<I", 1))


def main():
    threading.Thread(target=read_all, daemon=True).start()
    yield_seconds = 30 if FAULT == "has no time for a cancel" else 1.5
    send_json(b"h", {"protocol": {"major": 1, "minor": 0}, "features": FEATURES, "yield_seconds": yield_seconds, "presets": True})
    engine = Engine()
    send(b"o")
    while True:
        send_json(b"e", engine.run(jobs.get()))


main()
