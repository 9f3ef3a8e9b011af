"""One clip by two processes on the CPU: context parallelism over gloo, cancels, failures and deaths."""

import io
import os
import signal
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

from support import Tiny, tiny

from kinora_engine import Frames, OutOfMemory
from kinora_engine.diffusers import Pipeline, _rank, _ranks
from kinora_engine.testing import Host, HostError, job

LONG = 400
"""Steps that take far longer than any of these tests waits."""


def children(pid: int, name: str) -> list[int]:
    """Children of a process whose command line contains a name."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if name in Path(f"/proc/{child}/cmdline").read_text()]


def is_gone(pid: int) -> bool:
    """Whether a process has ended, whoever has to reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


class Ranks(Tiny, unittest.TestCase):
    build = staticmethod(tiny.wan)

    def test_two_ranks_make_the_frames_of_one(self) -> None:
        alone = self.host().run(job(width=64, height=32))
        together = self.host(ranks=2).run(job(width=64, height=32))
        self.assertEqual((together.outcome, together.message), ("done", ""))
        self.assertGreater(len(set(together.progress)), 3)
        pairs = zip(b"".join(alone.frames), b"".join(together.frames), strict=True)
        self.assertLessEqual(max(abs(one - two) for one, two in pairs), 1)

    def test_the_sequence_is_split(self) -> None:
        # 27 tokens, which two ranks cannot share; a rank alone can make this clip.
        host = self.host(ranks=2)
        expected = host.run(job()).frames
        odd = job(width=48, height=48)
        failed = host.run(odd)
        self.assertEqual(failed.outcome, "failed")
        self.assertIn("divisible", failed.message)
        # All ranks failed alike, so they go on.
        self.assertEqual(host.run(job()).frames, expected)
        self.assertEqual(self.host().run(odd).outcome, "done")

    def test_a_cancel_stops_all_ranks_at_the_same_step(self) -> None:
        host = self.host(ranks=2, steps=LONG)
        for _ in range(3):
            running = host.start(job())
            running.wait_until(lambda result: any(fraction > 0 for fraction in result.progress))
            running.cancel()
            self.assertEqual(running.result.outcome, "cancelled")
            self.assertLess(max(running.result.progress), 0.8)

    def test_a_cancelled_job_leaves_no_trace_in_the_next(self) -> None:
        host = self.host(ranks=2, steps=40)
        expected = host.run(job()).frames
        running = host.start(job(width=64, height=64, frames=33))
        running.wait_until(lambda result: any(fraction > 0 for fraction in result.progress))
        running.cancel()
        self.assertEqual(running.result.outcome, "cancelled")
        self.assertEqual(host.run(job()).frames, expected)

    def test_a_killed_rank_ends_the_engine(self) -> None:
        for is_busy in (False, True):
            host = self.host(ranks=2, steps=LONG)
            (rank,) = self.others(host)
            if is_busy:
                running = host.start(job(frames=33))
                running.wait_until(lambda result: any(fraction > 0 for fraction in result.progress))
            os.kill(rank, signal.SIGKILL)
            self.assertEqual(host.process.wait(timeout=30), -signal.SIGKILL)

    def test_no_rank_outlives_the_first(self) -> None:
        host = self.host(ranks=2)
        (rank,) = self.others(host)
        self.assertEqual(os.getpgid(rank), host.process.pid)
        host.process.kill()
        host.process.wait(timeout=30)
        deadline = time.monotonic() + 30
        while not is_gone(rank):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_a_setting_that_ranks_cannot_have_is_refused(self) -> None:
        cache = {"type": "FirstBlockCacheConfig"}
        for settings in ({"ranks": 0}, {"ranks": 2, "cache": cache}, {"ranks": 2, "parallel": {"ring_degree": 3}}):
            with self.assertRaises(HostError):
                self.host(**settings)

    def others(self, host: Host) -> list[int]:
        return children(host.process.pid, "kinora_engine.diffusers._rank")


class Others(unittest.TestCase):
    """A rank beside the first, which is a pipe here."""

    def setUp(self) -> None:
        self.ended = threading.Event()
        for name, value in (("end_group", self.ended.set), ("ANSWER_SECONDS", 0.2)):
            patched = mock.patch.object(_ranks, name, value)
            patched.start()
            self.addCleanup(patched.stop)
        reading, writing = os.pipe()
        self.answers = os.fdopen(writing, "wb")
        process = mock.Mock(stdin=io.BytesIO(), stdout=os.fdopen(reading, "rb"))
        with mock.patch.object(_ranks.subprocess, "Popen", return_value=process):
            self.rank = _ranks.Rank(1, 0)
        self.ranks = object.__new__(_ranks.Ranks)
        self.ranks._ranks, self.ranks._is_stuck = [self.rank], False

    def tearDown(self) -> None:
        self.answers.close()
        self.assertTrue(self.ended.wait(30), "a rank that ended has to end all")
        # They must not meet the real `end_group`, which ends this process.
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer) or thread.name == "kinora-rank-1":
                thread.join(30)
        self.rank._output.close()

    def test_its_error_is_the_error_of_the_call(self) -> None:
        for outcome, kind in ((_rank.FAILED, RuntimeError), (_rank.OUT_OF_MEMORY, OutOfMemory)):
            _rank.send(self.answers, (outcome, "why"))
            error = self.ranks.end()
            self.assertIsInstance(error, kind)
            self.assertIn("rank 1: why", str(error))
        _rank.send(self.answers, (_rank.DONE, ""))
        self.assertIsNone(self.ranks.end())
        self.ranks.check()

    def test_one_that_does_not_answer_cannot_take_another_call(self) -> None:
        self.assertIn("did not end", str(self.ranks.end()))
        with self.assertRaises(RuntimeError):
            self.ranks.check()

    def test_a_failure_that_the_first_does_not_come_for_ends_all(self) -> None:
        _rank.send(self.answers, (_rank.FAILED, "alone"))
        self.assertTrue(self.ended.wait(30))

    def test_a_failure_that_the_first_came_for_ends_nothing(self) -> None:
        _rank.send(self.answers, (_rank.FAILED, "alike"))
        self.assertIsNotNone(self.ranks.end())
        # Unlike the failure, this answer may wait as long as the first rank decodes.
        _rank.send(self.answers, (_rank.DONE, ""))
        self.assertFalse(self.ended.wait(1.0))


class Watches(unittest.TestCase):
    def test_all_ranks_use_the_length_that_the_first_decided(self) -> None:
        made = mock.Mock()
        made.clip.frames_max = 58
        with mock.patch.object(_ranks, "from_first", side_effect=lambda value: value) as said:
            self.assertEqual(_ranks.Leader(made, Frames(8, 1)).length(74), 57)
        said.assert_called_once_with(57)
        with mock.patch.object(_rank, "from_first", return_value=57):
            self.assertEqual(_rank.Follower().length(65), 57)

    def test_ltx_2_is_refused_since_diffusers_cannot_split_it(self) -> None:
        with self.assertRaisesRegex(ValueError, "LTX2Pipeline"):
            Pipeline().describe({"model": "here", "pipeline": "LTX2Pipeline", "ranks": 2})


if __name__ == "__main__":
    unittest.main()
