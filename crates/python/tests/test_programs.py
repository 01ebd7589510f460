"""Programs: compiling, errors, faults, what is shown of them."""

import array
import gc
import inspect
import os
import pydoc
import tempfile
import threading
import unittest
import warnings
import weakref

import nyala

PROGRAM = """
use std::slice::*;
// Scales elements.
//
// `b` may be `a`.
extern fn scale(a: &[f32], b: &mut [f32], n: i32, by: f32) -> () { for i in range(0, n) { b(i) = a(i) * by; } }
extern fn third(a: Slice[i32]) -> i32 { a(2) }
extern fn fail() -> () { panic("no") }
extern fn leave(code: i32) -> () { exit(code) }
extern fn halves(a: MutSlice[f64]) -> () { for i in par(0, a.length as i32) { if i == 7 { panic("seven") } a(i) /= 2.0; } }
extern fn lambda(x: i32) -> i32 { x }
extern fn twice(f: fn(f64) -> f64, x: f64) -> f64 { f(f(x)) }
extern fn address(a: &[f32]) -> &[f32] { a }
extern fn pair(x: i32) -> (i32, i32) { (x, x) }
extern fn functions(x: i32) -> i32 { x }
"""


def setUpModule():
    global m
    m = nyala.compile(PROGRAM, name="programs.impala", level=0)


class Compiling(unittest.TestCase):
    def test_errors_have_places(self):
        with self.assertRaises(nyala.CompileError) as raised:
            nyala.compile("extern fn f() -> i32 { 1f }\nextern fn g() -> i32 { h() }", name="wrong.impala")
        found = raised.exception.diagnostics
        self.assertEqual([d.code for d in found], ["type-mismatch", "unknown-name"])
        first = found[0]
        self.assertEqual((first.severity, first.file, first.line, first.column), ("error", "wrong.impala", 1, 24))
        self.assertEqual((first.end_line, first.end_column), (1, 26))
        self.assertEqual(first.message, "found `f32`, expected `i32`")
        self.assertEqual(first.hints, ["convert it with `as i32`"])
        self.assertEqual(str(raised.exception).splitlines()[:2], ["error[type-mismatch]: found `f32`, expected `i32`", " --> wrong.impala:1:24"])
        self.assertEqual(repr(first), "<error[type-mismatch]: found `f32`, expected `i32` at wrong.impala:1:24>")
        self.assertIsInstance(raised.exception, nyala.Error)

    def test_endless_evaluation_is_an_error(self):
        with self.assertRaises(nyala.CompileError) as raised:
            nyala.compile("fn @f(n: i32) -> i32 { if n == 0 { 0 } else { f(n + 1) } } extern fn g() -> i32 { f(1) }", budget=0.01)
        self.assertEqual(raised.exception.diagnostics[0].severity, "error")

    def test_warnings_are_warnings(self):
        text = "extern fn f() -> i32 { let mut x = 1; x }"
        with self.assertWarns(nyala.CompileWarning) as warned:
            program = nyala.compile(text, level=0)
        self.assertEqual(warned.filename, __file__)
        self.assertEqual(program.warnings[0].severity, "warning")
        code = program.warnings[0].code
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nyala.compile(text, level=0, allow=[code])
        with self.assertRaises(nyala.CompileError):
            nyala.compile(text, level=0, deny=[code])

    def test_options(self):
        text = "static N = 2; extern fn n() -> i32 { N }"
        self.assertEqual(nyala.compile(text, level=0, define={"N": 4}).n(), 4)
        self.assertEqual(nyala.compile(text, level=0, define={"N": "2 + 3"}).n(), 5)
        with self.assertRaisesRegex(ValueError, "`level` is 4, expected 0 to 3"):
            nyala.compile(text, level=4)
        with self.assertRaises(TypeError):
            nyala.compile(text, levels=4)
        with self.assertRaisesRegex(TypeError, "list of folders"):
            nyala.compile(text, libraries="/tmp")
        with self.assertRaises(nyala.CompileError):
            nyala.compile(text, cpu="no-such-cpu")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "three.impala"), "w") as file:
                file.write("fn three() -> i32 { 3 }")
            path = os.path.join(folder, "main.impala")
            with open(path, "w") as file:
                file.write("use three::*;\nextern fn six() -> i32 { 2 * three() }")
            self.assertEqual(nyala.load(path, level=0).six(), 6)
            program = nyala.compile("use three::*; extern fn f() -> i32 { three() }", level=0, libraries=[folder])
            self.assertEqual(program.f(), 3)
        with self.assertRaises(FileNotFoundError):
            nyala.load(path)


class Faults(unittest.TestCase):
    def check(self, code, message, place, function, *args):
        with self.assertRaises(nyala.Fault) as raised:
            function(*args)
        fault = raised.exception
        self.assertEqual((fault.code, fault.message), (code, message))
        if place:
            self.assertTrue(fault.place.startswith(place), fault.place)
        return fault

    def test_panics(self):
        for _ in range(3):
            self.check("panic", "no", "programs.impala:8:", m.fail)
            self.check("panic", "an index is out of the slice", None, m.third, array.array("i", [1, 2]))
        self.assertEqual(m.third(array.array("i", [1, 2, 3])), 3)

    def test_exit(self):
        fault = self.check("exit", "the program called `exit` with 3", None, m.leave, 3)
        self.assertEqual(fault.exit_code, 3)

    def test_faults_of_loops(self):
        self.check("panic", "seven", None, m.halves, array.array("d", 20 * [1]))
        few = array.array("d", 5 * [1])
        m.halves(few)
        self.assertEqual(few.tolist(), 5 * [0.5])

    def test_buffers_are_released_after_a_fault(self):
        numbers = array.array("i", [1, 2])
        self.check("panic", "an index is out of the slice", None, m.third, numbers)
        numbers.append(3)
        self.assertEqual(m.third(numbers), 3)

    def test_checked_code(self):
        checked = nyala.compile(
            "extern fn sum(n: i32) -> i32 { let mut a = [1, 2, 3]; a(0) = n; a(n) } extern fn next(n: i32) -> i32 { n + 1 }",
            checked=True,
            level=1,
        )
        self.assertEqual(checked.sum(1), 2)
        self.check("invalid-access", "access out of bounds", None, checked.sum, 3)
        with self.assertRaises(nyala.Fault) as raised:
            checked.next(2**31 - 1)
        self.assertEqual(raised.exception.code, "signed-overflow")


class Shown(unittest.TestCase):
    def test_names(self):
        self.assertIn("scale", dir(m))
        self.assertIn("emit", dir(m))
        self.assertIs(m.scale, m.scale)
        self.assertIs(m["scale"], m.scale)
        self.assertEqual(m["lambda"](3), 3)
        # Methods come first.
        self.assertEqual(m["functions"](3), 3)
        self.assertEqual(m.functions["third"], "fn third(a: Slice[i32]) -> i32")
        with self.assertRaisesRegex(AttributeError, "exports no function `nope`; it exports:\n    fn scale"):
            m.nope
        with self.assertRaises(KeyError):
            m["nope"]
        self.assertFalse(hasattr(m, "nope"))

    def test_signatures(self):
        self.assertEqual(str(inspect.signature(m.scale)), "(a: '&[f32]', b: '&mut [f32]', n: 'i32', by: 'f32') -> '()'")
        self.assertEqual(m.scale.__name__, "scale")
        self.assertEqual(repr(m.scale), "<nyala function scale(a: &[f32], b: &mut [f32], n: i32, by: f32)>")
        self.assertEqual(repr(m.third), "<nyala function third(a: Slice[i32]) -> i32>")
        self.assertTrue(repr(m).startswith("<nyala program programs.impala: scale, third, "))

    def test_documentation(self):
        told = "fn scale(a: &[f32], b: &mut [f32], n: i32, by: f32) -> ()\n\nScales elements.\n\n`b` may be `a`."
        self.assertEqual(m.scale.__doc__, told)
        self.assertEqual(inspect.getdoc(m.scale), told)
        self.assertIn("Scales elements.", pydoc.render_doc(m.scale, renderer=pydoc.plaintext))
        self.assertEqual(m.third.__doc__, "fn third(a: Slice[i32]) -> i32")

    def test_stages(self):
        self.assertIn("export cont third(", m.emit("residual", "third"))
        self.assertIn("third", m.emit("asm"))
        with self.assertRaises(ValueError):
            m.emit("assembler")
        with self.assertRaises(nyala.CompileError):
            m.emit("flat", "nope")

    def test_explanations(self):
        self.assertIn("third", m.third.explain())

    def test_what_python_does_not_have(self):
        with self.assertRaisesRegex(TypeError, "twice: `f` is int: pass something callable, or fix it"):
            m.twice(1, 2)
        with self.assertRaisesRegex(NotImplementedError, "address: its result is `&.f32.`"):
            m.address(array.array("f", [1]))
        with self.assertRaises(NotImplementedError):
            m.pair(1)


class Lives(unittest.TestCase):
    def test_functions_keep_programs(self):
        program = nyala.compile("extern fn f() -> i32 { 1 }", level=0)
        seen = weakref.ref(program)
        f = program.f
        del program
        gc.collect()
        self.assertEqual(f(), 1)
        self.assertIsNotNone(seen())
        del f
        gc.collect()
        self.assertIsNone(seen())

    def test_threads(self):
        wrong = []

        def work(seed):
            for i in range(200):
                numbers = array.array("i", [seed, i, seed * i])
                if m.third(numbers) != seed * i:
                    wrong.append((seed, i))
                try:
                    m.third(numbers[:2])
                    wrong.append(seed)
                except nyala.Fault:
                    pass

        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
