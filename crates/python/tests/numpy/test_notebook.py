"""The notebook of the examples, executed."""

import os
import pathlib
import unittest

import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parents[4] / "examples/notebook"


class Notebook(unittest.TestCase):
    def test_the_notebook_runs(self):
        # Of what the notebook's server and its client use, not of the package.
        os.environ["PYTHONWARNINGS"] = "ignore"
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
        notebook = nbformat.read(FOLDER / "photograph.ipynb", as_version=4)
        client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}})
        client.execute()
        data = [out.get("data", {}) for cell in notebook.cells for out in cell.get("outputs", [])]
        pages = [kinds["text/html"] for kinds in data if "iframe" in kinds.get("text/html", "")]
        self.assertEqual(len(pages), 1)
        self.assertIn("nyala", data[-1]["text/plain"])


if __name__ == "__main__":
    unittest.main()
