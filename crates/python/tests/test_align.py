"""Alignments of sequences."""

import array
import unittest

import nyala.align


class Alignments(unittest.TestCase):
    def test_two_sequences(self):
        self.assertEqual(nyala.align.score("GATTACA", b"GATACA"), 9)
        scheme = dict(ends="local", gaps=4, match=2, mismatch=-3)
        found = nyala.align.align("TTACGTACGTACGTTT", "GACGTACGACGTG", **scheme)
        self.assertEqual((found.score, found.cigar), (18, "7=1I4="))
        self.assertEqual("TTACGTACGTACGTTT"[found.a_start : found.a_end], "ACGTACGTACGT")
        self.assertEqual(nyala.align.align("", "", **scheme), (0, 0, 0, 0, 0, ""))
        self.assertEqual(nyala.align.edit_distance("kitten", "sitting"), 3)

    def test_many_sequences(self):
        a, b = ["GATTACA", "ACGT"], ["GATACA", "ACCT"]
        scores = nyala.align.scores(a, b)
        self.assertEqual(list(scores), [nyala.align.score(x, y) for x, y in zip(a, b)])
        out = array.array("i", [0, 0])
        self.assertIs(nyala.align.scores(a, b, out=out), out)
        self.assertEqual(list(out), list(scores))
        proteins = ["MKWVTFISLL", "WVTFAS", ""]
        found = nyala.align.search("WVTFISL", proteins, ends="local", gaps=(11, 1), matrix="blosum62")
        self.assertEqual(list(found), [38, 29, 0])
        self.assertEqual(list(nyala.align.scores([], [])), [])

    def test_messages(self):
        for kind, text, f in (
            (ValueError, "`ends` is 'all', expected one of 'global'", lambda: nyala.align.score("A", "A", ends="all")),
            (ValueError, "`gaps` is -1, expected an integer of 0 to 1000", lambda: nyala.align.score("A", "A", gaps=-1)),
            (ValueError, "expected one, two or four", lambda: nyala.align.score("A", "A", gaps=(1, 2, 3))),
            (ValueError, "`matrix` is 'b', expected one of 'blosum45'", lambda: nyala.align.score("A", "A", matrix="b")),
            (ValueError, "1 sequences cannot be paired with 0", lambda: nyala.align.scores(["A"], [])),
            (ValueError, "`out` has the shape .2,., expected .1,.", lambda: nyala.align.scores(["A"], ["A"], out=array.array("i", [0, 0]))),
            (TypeError, "a sequence is a `str`", lambda: nyala.align.score(array.array("i", [1]), "A")),
            (TypeError, "unexpected keyword argument 'gap'", lambda: nyala.align.score("A", "A", gap=1)),
        ):
            with self.assertRaisesRegex(kind, text):
                f()


if __name__ == "__main__":
    unittest.main()
