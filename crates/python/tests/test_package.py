"""The package: stubs, notebooks, the time of an import."""

import ast
import inspect
import pathlib
import subprocess
import sys
import types
import unittest

import nyala
from nyala import _magic

PACKAGE = pathlib.Path(nyala.__file__).parent


class Stubs(unittest.TestCase):
    def test_stubs_have_what_there_is(self):
        stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
        items = {item.name: item for item in stub.body if isinstance(item, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(set(items) - {"load_ipython_extension"}, set(nyala.__all__))
        for name, item in items.items():
            there = getattr(nyala, name)
            if isinstance(item, ast.FunctionDef):
                own = [a.arg for a in item.args.posonlyargs + item.args.args + item.args.kwonlyargs]
                if name != "load":
                    self.assertEqual(own, list(inspect.signature(there).parameters), name)
                continue
            if name in ("Function", "Program", "Diagnostic", "Stats"):
                own = {i.name for i in item.body if isinstance(i, ast.FunctionDef)}
                own = {n for n in own if not n.startswith("_")}
                self.assertEqual(own, {n for n in vars(there) if not n.startswith("_")}, name)
        load = [a.arg for a in items["load"].args.kwonlyargs]
        self.assertEqual(load, [a.arg for a in items["compile"].args.kwonlyargs if a.arg != "name"])

    def test_it_is_typed(self):
        self.assertTrue((PACKAGE / "py.typed").exists())


class Imports(unittest.TestCase):
    def test_nothing_else_is_imported(self):
        """Neither NumPy nor LLVM, nor what is needed later."""
        program = "import nyala, sys; print(*sys.modules); print('libLLVM' in open('/proc/self/maps').read())"
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        modules, llvm = said.splitlines()
        later = {"numpy", "inspect", "html", "shlex", "nyala._describe", "nyala._pickled", "nyala._magic", "nyala.image"}
        self.assertEqual((later & set(modules.split()), llvm), (set(), "False"))


class Notebooks(unittest.TestCase):
    def test_cells(self):
        shell = types.SimpleNamespace(user_ns={"level": 1}, magics={})
        shell.register_magic_function = lambda f, kind, name: shell.magics.update({(kind, name): f})
        nyala.load_ipython_extension(shell)
        magic = shell.magics["cell", "impala"]
        magic("", "extern fn half(x: f64) -> f64 { x / 2.0 }")
        self.assertEqual(shell.user_ns["half"](3), 1.5)
        magic("m checked=True level=level", "extern fn next(x: i32) -> i32 { x + 1 }")
        self.assertEqual(shell.user_ns["m"].options["level"], 1)
        with self.assertRaises(nyala.Fault):
            shell.user_ns["m"].next(2**31 - 1)
        with self.assertRaises(nyala.CompileError):
            magic("", "extern fn half(x: f64) -> f64 { x / 2 }")
        with self.assertRaisesRegex(ValueError, "%%impala: `k` is neither a name nor an option"):
            magic("m k", "")

    def test_explanations_are_pages(self):
        m = nyala.compile(
            "extern fn @(?n) power(x: i32, n: i32) -> i32 { if n == 0 { 1 } else { x * power(x, n - 1) } }", level=0
        )
        for function in (m.power, m.power.fix(n=2)):
            explained = function.explain()
            self.assertIsInstance(explained, str)
            page = explained._repr_html_()
            self.assertTrue(page.startswith('<iframe srcdoc="&lt;!DOCTYPE html'), page[:80])
            self.assertIn("power", page)


if __name__ == "__main__":
    unittest.main()
