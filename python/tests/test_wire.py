"""Framing, and a process that meets unknown or invalid messages."""

import io
import os
import random
import threading
import unittest

import support
from kinora_engine._wire import WireError, read_message, write_message
from kinora_engine.testing import HostError, job


class Framing(unittest.TestCase):
    def test_every_message_is_read_as_it_was_written(self) -> None:
        noise = random.Random(1)
        messages = [(bytes([noise.randrange(65, 123)]), noise.randbytes(size)) for size in (0, 1, 5, 65_536, 3_000_000)]
        reading, writing = os.pipe()

        def write() -> None:
            for message in messages:
                write_message(writing, *message)
            os.close(writing)

        writer = threading.Thread(target=write)
        writer.start()
        with os.fdopen(reading, "rb") as stream:
            self.assertEqual([read_message(stream) for _ in messages], messages)
            self.assertIsNone(read_message(stream))
        writer.join()

    def test_torn_and_oversized_messages_are_errors(self) -> None:
        for data in (b"f", b"f\x05\0\0\0abc", b"f\xff\xff\xff\xff", b"f\x01\0\0\x10"):
            with self.assertRaises(WireError):
                read_message(io.BytesIO(data))

    def test_any_bytes_end_in_messages_or_an_error(self) -> None:
        noise = random.Random(2)
        for _ in range(2_000):
            stream = io.BytesIO(noise.randbytes(noise.randrange(40)))
            try:
                while read_message(stream) is not None:
                    pass
            except WireError:
                pass


class Unknown(unittest.TestCase):
    def test_unknown_kinds_are_skipped_before_within_and_between_jobs(self) -> None:
        noise = random.Random(3)
        kinds = [kind.encode() for kind in "ABXZadghikpqrtvwxyz"]
        with support.host() as host:
            host.send(b"Z", noise.randbytes(100))
            host.open()
            for seed in range(3):
                for _ in range(50):
                    host.send(noise.choice(kinds), noise.randbytes(noise.randrange(70_000)))
                running = host.start(job(prompt="plain", seed=seed))
                host.send(noise.choice(kinds), b"{}")
                result = running.finish()
                self.assertEqual((result.outcome, len(result.frames)), ("done", 9))

    def test_an_invalid_job_ends_the_process(self) -> None:
        for body in (b"{", b"[]", b"{}", b'{"prompt": "x", "seed": 1, "clip": null}'):
            with support.host() as host:
                host.open()
                host.send(b"j", body)
                with self.assertRaises(HostError):
                    host.receive(timeout=10)
                    while True:
                        host.receive(timeout=10)
                self.assertIn("invalid job message", " ".join(host.log))
