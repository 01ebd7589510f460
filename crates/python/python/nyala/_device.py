"""Arrays in the memory of devices, which other packages export by DLPack. Loaded when a program is compiled with `device`.

What the code gets is an address of the device, so that nothing here reads the memory. The array that is returned for it is one of NumPy's in
name only: it says type, shape and strides, which are compared with the parameter as those of other arrays.
"""

import ctypes
import functools
import re

from ._native import Error

# Kinds of memory as DLPack numbers them.
_NAMES = {1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 11: "rocm_host", 13: "cuda_managed", 14: "oneapi"}
_OF_CUDA = (2, 13)
_CODES = {0: "i", 1: "u", 2: "f", 6: "b"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("n_dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def name(kind, number):
    return f"{_NAMES.get(kind, f'device of kind {kind}')}:{number}"


@functools.cache
def _driver():
    """The driver's library and its number of devices. What is missing is an `Error`."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise Error("there is no device `cuda`: the driver's library libcuda.so.1 is not installed") from None
    n = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(n)) or n.value == 0:
        raise Error("there is no device `cuda`: the driver finds none")
    return driver, n.value


@functools.cache
def _context(number):
    """The context that other packages use, too: the device's primary one."""
    driver, _ = _driver()
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _check(driver.cuDeviceGet(ctypes.byref(device), number))
    _check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    return context


def _check(status):
    if status:
        raise Error(f"CUDA's driver fails with the error {status}")


def number(device):
    """The number of a device of CUDA, as in "cuda" and "cuda:1", which is there."""
    found = re.fullmatch(r"cuda(?::(\d+))?", device) if isinstance(device, str) else None
    if found is None:
        raise ValueError(f"`device` is {device!r}, expected \"cuda\", or with a number, \"cuda:1\"")
    number, n = int(found[1] or 0), _driver()[1]
    if number >= n:
        raise Error(f"there is no device `cuda:{number}`: the driver has {n}")
    return number


def wait(number):
    """Waits for all that runs on a device of CUDA, whoever has launched it."""
    driver, _ = _driver()
    _check(driver.cuCtxSetCurrent(_context(number)))
    _check(driver.cuCtxSynchronize())


class _View:
    """What NumPy asks of memory that it does not own."""

    def __init__(self, owner, interface):
        self.owner = owner
        self.__array_interface__ = interface


def view(value, wanted):
    """An array in the memory of a device of CUDA, of which nothing is read. Other values are a TypeError, whose text goes on `x is`."""
    import numpy

    kind = type(value).__name__
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        raise TypeError(f"{kind}, expected an array of cuda:{wanted} with DLPack")
    device, at = value.__dlpack_device__()
    if device not in _OF_CUDA or at != wanted:
        raise TypeError(f"{kind} in the memory of {name(int(device), at)}, expected that of cuda:{wanted}")
    # Without a stream the array is ready as soon as the driver, which is asked before the code runs, has waited for everything. JAX takes
    # the number for "no stream" for a handle.
    capsule = value.__dlpack__()
    # The memory is there as long as the capsule, which is not taken over.
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    if tensor.lanes != 1 or tensor.code not in _CODES or tensor.bits % 8:
        raise TypeError(f"{kind} of elements that NumPy does not have")
    n, size = tensor.n_dimensions, tensor.bits // 8
    interface = {
        "version": 3,
        "data": ((tensor.data or 0) + tensor.offset, False),
        "shape": tuple(tensor.shape[:n]),
        "strides": tuple(size * stride for stride in tensor.strides[:n]) if tensor.strides else None,
        "typestr": f"{'|' if size == 1 else '<'}{_CODES[tensor.code]}{size}",
    }
    return numpy.asarray(_View(capsule, interface))
