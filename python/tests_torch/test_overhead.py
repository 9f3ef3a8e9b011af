"""What the comparison of clips computes."""

import math
import unittest

import overhead


class Steps(unittest.TestCase):
    def test_a_step_takes_the_time_between_the_first_and_the_last_that_were_seen(self) -> None:
        self.assertEqual(overhead.step_seconds([(10.0, 1.0), (13.0, 2.0), (16.0, 4.0)]), 2.0)
        for seen in ([], [(10.0, 1.0)], [(10.0, 1.0), (12.0, 1.0)]):
            self.assertTrue(math.isnan(overhead.step_seconds(seen)))


if __name__ == "__main__":
    unittest.main()
