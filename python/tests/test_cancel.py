"""A cancel stops Python and native code, and leaves no trace in the next job."""

import time
import unittest

import support
from kinora_engine.testing import job


class Cancel(unittest.TestCase):
    def test_it_stops_loops_sleeps_and_those_who_catch_exceptions(self) -> None:
        with support.host() as host:
            host.open()
            for prompt in ("checks", "busy", "sleeps", "swallows"):
                with self.subTest(prompt):
                    running = host.start(job(prompt=prompt))
                    running.wait_until(lambda result: len(result.frames) == 1)
                    seconds = running.cancel()
                    self.assertEqual(running.result.outcome, "cancelled")
                    self.assertLess(seconds, 2.5)
                    self.assertEqual(host.run(job(prompt="plain")).outcome, "done")
            # The clean-up of "checks" lasts longer than the grace before the signal.
            self.assertIn("cleaned up", host.log)

    def test_a_deferred_cancel_takes_effect_where_the_engine_allows_it(self) -> None:
        with support.host() as host:
            host.open()
            running = host.start(job(prompt="deferred"))
            running.wait_until(lambda result: bool(result.progress))
            running.cancel()
            self.assertEqual((running.result.outcome, running.result.frames), ("cancelled", []))
            self.assertEqual(host.run(job(prompt="plain")).outcome, "done")
            self.assertIn("came to its place", host.log)

    def test_a_cancel_before_the_work_begins(self) -> None:
        with support.host() as host:
            host.open()
            for _ in range(20):
                running = host.start(job(prompt="sleeps"))
                running.cancel()
                self.assertEqual(running.result.outcome, "cancelled")

    def test_a_cancel_after_the_end_does_not_reach_the_next_job(self) -> None:
        with support.host() as host:
            host.open()
            for _ in range(10):
                self.assertEqual(host.run(job(prompt="plain")).outcome, "done")
                host.send(b"c")
            running = host.start(job(prompt="sleeps"))
            running.wait_until(lambda result: len(result.frames) == 1)
            # Longer than the time after which a late signal would arrive.
            time.sleep(0.8)
            host.send(b"Z")
            self.assertEqual(running.result.outcome, "")
            running.cancel()

    def test_a_cancel_at_any_moment_of_short_jobs_ends_that_job_alone(self) -> None:
        with support.host() as host:
            host.open()
            for step in range(60):
                running = host.start(job(prompt="plain", frames=30))
                time.sleep(step / 20_000)
                running.cancel()
                self.assertIn(running.result.outcome, ("cancelled", "done"))
            result = host.run(job(prompt="plain"))
            self.assertEqual((result.outcome, len(result.frames)), ("done", 9))

    def test_frames_after_cancels_equal_those_of_a_fresh_process(self) -> None:
        with support.host() as fresh:
            fresh.open()
            expected = fresh.run(job(prompt="stateful")).frames
        with support.host() as host:
            host.open()
            for _ in range(10):
                running = host.start(job(prompt="stateful", seed=1))
                time.sleep(0.03)
                running.cancel()
                self.assertEqual(running.result.outcome, "cancelled")
                self.assertEqual(host.run(job(prompt="stateful")).frames, expected)
