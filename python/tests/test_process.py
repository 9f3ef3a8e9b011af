"""The process: nothing disturbs the protocol, and everything ends with standard input."""

import os
import re
import signal
import time
import unittest

import support
from kinora_engine.testing import Host, job


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pid: int, seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_running(pid)


class Process(unittest.TestCase):
    def test_prints_and_child_processes_reach_only_the_log(self) -> None:
        with support.host() as host:
            host.open()
            result = host.run(job(prompt="prints"))
            self.assertEqual((result.outcome, len(result.frames)), ("done", 9))
            time.sleep(0.2)
            for line in ("from print", "from a child", "from descriptor 1", "0"):
                self.assertIn(line, host.log)

    def grandchild(self, host: Host) -> int:
        host.open()
        host.start(job(prompt="grandchild")).wait_until(lambda result: len(result.frames) == 1)
        time.sleep(0.2)
        found = re.search(r"child (\d+)", " ".join(host.log))
        assert found is not None
        self.assertTrue(is_running(int(found[1])))
        return int(found[1])

    def test_the_group_ends_with_standard_input(self) -> None:
        with support.host() as host:
            child = self.grandchild(host)
            host._input.close()
            self.assertEqual(host.process.wait(timeout=5), -signal.SIGKILL)
            self.assertTrue(wait_for_end(child))

    def test_the_group_ends_also_while_the_interpreter_is_blocked(self) -> None:
        with support.host() as host:
            child = self.grandchild(host)
            # Stands for native code that never lets the reader's thread run.
            os.kill(host.process.pid, signal.SIGSTOP)
            host._input.close()
            self.assertEqual(host.process.wait(timeout=5), -signal.SIGKILL)
            self.assertTrue(wait_for_end(child))

    def test_the_group_ends_with_the_engine(self) -> None:
        with support.host() as host:
            child = self.grandchild(host)
            os.kill(host.process.pid, signal.SIGKILL)
            host.process.wait(timeout=5)
            self.assertTrue(wait_for_end(child))

    def test_alive_comes_about_once_a_second(self) -> None:
        with support.host() as host:
            host.open()
            running = host.start(job(prompt="sleeps"))
            began = time.monotonic()
            running.wait_until(lambda result: result.alive == 3)
            self.assertTrue(1.5 < time.monotonic() - began < 5.0)
