"""Batches of alignments on processes of Ray: the example, and a worker that dies."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import ray

import nyala.align

EXAMPLES = pathlib.Path(__file__).resolve().parents[4] / "examples/cluster"
sys.path.insert(0, str(EXAMPLES))

import batches


class Ray(unittest.TestCase):
    def test_batches_and_a_worker_that_dies(self):
        pairs = batches.make_pairs(60, length=50)
        expected = list(nyala.align.scores(*zip(*pairs), **batches.SCHEME))
        scheme = batches.SCHEME
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "died")

            @ray.remote(max_retries=3)
            def dies_once(pairs):
                import nyala.align

                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    return list(nyala.align.scores(*zip(*pairs), **scheme))
                os.kill(os.getpid(), signal.SIGKILL)

            batches.start(2)
            try:
                self.assertEqual(batches.scores_of(pairs, 7, dies_once), expected)
                self.assertTrue(os.path.exists(mark))
            finally:
                ray.shutdown()

    def test_the_example(self):
        script = [sys.executable, EXAMPLES / "batches.py", "--pairs", "300", "--batch", "100"]
        said = subprocess.run(script, capture_output=True, text=True, check=True).stdout
        expected = sum(nyala.align.scores(*zip(*batches.make_pairs(300)), **batches.SCHEME))
        self.assertRegex(said, rf"^2 workers: .* s, 300 scores, sum {expected}$")


if __name__ == "__main__":
    unittest.main()
