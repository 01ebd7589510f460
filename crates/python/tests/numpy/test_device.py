"""Arrays in the memory of devices, without a device: with objects that say that they are there, and a stand-in for the driver."""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

import nyala

ROOT = pathlib.Path(__file__).resolve().parents[4]
PROGRAM = """
use std::slice::*;
extern fn sum(a: Slice[f32]) -> f32 { let mut s = 0f; for x in a.each() { s += x; } s }
extern fn half(x: f64) -> f64 { x / 2.0 }
"""


class OnDevice:
    """An array that says that it is in the memory of a device. The host's stands for it."""

    def __init__(self, array, kind=2, number=0):
        self.array, self.kind, self.number = array, kind, number

    def __dlpack_device__(self):
        return self.kind, self.number

    def __dlpack__(self, *, stream=None):
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        device = (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor") + 8)
        device[:] = self.kind, self.number
        return capsule


WITH_DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy, nyala, test_device
m = nyala.compile('''
    use std::slice::*;
    extern fn address(a: &[f32]) -> i64 { a as i64 }
    extern fn size(a: Slice2[f32]) -> (i64) { a.width * 1000i64 + a.stride }
    use std::device::*;
    extern fn double(n: i32, a: &mut [f32]) -> () { for i in cuda(0).range(0, n) { a(i) = 2f * a(i); } }
''', device="cuda", level=0)
a = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
on = test_device.OnDevice
assert m.address(on(a)) == a.ctypes.data
assert m.size(on(a[:, 1:3])) == 2004
# Memory that the program did not allocate, which the driver knows.
m.double(12, on(a))
for wrong, text in [
    (a, "address: `a` is ndarray in the memory of cpu:0, expected that of cuda:0"),
    (on(a, number=1), "address: `a` is OnDevice in the memory of cuda:1, expected that of cuda:0"),
    (on(a.astype(float)), "address: `a` is float64, expected float32"),
    ([1.0], "address: `a` is list, expected an array of cuda:0 with DLPack"),
]:
    try:
        m.address(wrong)
    except TypeError as e:
        assert str(e).startswith(text), e
    else:
        raise AssertionError(text)
try:
    m.address(on(a.T))
except ValueError as e:
    assert "strided" in str(e), e
else:
    raise AssertionError("strided")
try:
    nyala.compile("extern fn f() -> () {}", device="cuda:1")
except nyala.Error as e:
    assert str(e) == "there is no device `cuda:1`: the driver has 1", e
else:
    raise AssertionError("there is no second device")
print("right", flush=True)
"""


class Devices(unittest.TestCase):
    def test_programs_for_the_host_refuse_them(self):
        m = nyala.compile(PROGRAM, level=0)
        there = OnDevice(numpy.zeros(3, numpy.float32), number=1)
        text = "sum: `a` is OnDevice, which exports no memory: it is that of cuda:1, which slices and addresses of programs take that"
        with self.assertRaisesRegex(ValueError, f"^{text} are compiled with device=\"cuda\"$"):
            m.sum(there)
        with self.assertRaisesRegex(ValueError, "^half: `x` is OnDevice, which exports no memory: it is that of rocm:0"):
            m.half(OnDevice(numpy.zeros(3), kind=10))
        self.assertEqual(m.sum(OnDevice(numpy.ones(3, numpy.float32), kind=1)), 3)

    def test_devices_that_are_not_there(self):
        for name in ("opencl", "cuda:x", 1):
            with self.assertRaisesRegex(ValueError, "^`device` is .*, expected \"cuda\", or with a number, \"cuda:1\"$"):
                nyala.compile(PROGRAM, device=name)
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            text = "^there is no device `cuda`: the driver's library libcuda.so.1 is not installed$"
            with self.assertRaisesRegex(nyala.Error, text):
                nyala.compile(PROGRAM, device="cuda")

    def test_addresses_of_a_device(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "libcuda.so.1"
            source = ROOT / "crates/xtask/tests/all/driver/cuda.c"
            subprocess.run(["cc", "-w", "-shared", "-fPIC", source, "-o", library], check=True)
            program = [sys.executable, "-c", WITH_DRIVER, pathlib.Path(__file__).parent]
            env = {**os.environ, "LD_LIBRARY_PATH": folder, "FAKE_CUDA": "others"}
            said = subprocess.run(program, env=env, capture_output=True, text=True)
            self.assertEqual(said.returncode, 0, said.stderr)
            lines = said.stdout.split("\n")
            self.assertIn("right", lines)
            self.assertIn("launch double_kernel: 1 1 1 blocks of 256 1 1: wild 12", lines)
            # Before and after each call that runs: none for those that are refused.
            self.assertEqual(lines.count("wait for everything"), 6)


if __name__ == "__main__":
    unittest.main()
