"""One clip by two processes on the CPU: context parallelism over gloo, cancels, failures and deaths."""

import os
import signal
import unittest
from pathlib import Path
from unittest import mock

from support import Tiny, tiny

from kinora_engine import Frames
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
        while not is_gone(rank):
            pass

    def test_a_setting_that_ranks_cannot_have_is_refused(self) -> None:
        cache = {"type": "FirstBlockCacheConfig"}
        for settings in ({"ranks": 0}, {"ranks": 2, "cache": cache}, {"ranks": 2, "parallel": {"ring_degree": 3}}):
            with self.assertRaises(HostError):
                self.host(**settings)

    def others(self, host: Host) -> list[int]:
        return children(host.process.pid, "kinora_engine.diffusers._rank")


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
