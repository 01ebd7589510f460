"""The programs in Python of docs/python.md and README.md, each page one after the other."""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]


class Pages(unittest.TestCase):
    def check(self, page, least):
        blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), least)
        os.chdir(ROOT)
        names = {}
        for block in blocks:
            exec(compile(block, str(page), "exec"), names)

    def test_the_page(self):
        self.check("docs/python.md", 6)

    def test_the_readme(self):
        self.check("README.md", 1)


if __name__ == "__main__":
    unittest.main()
