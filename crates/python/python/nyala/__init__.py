"""Impala in Python: programs that are compiled when they are loaded, and called with arrays.

    m = nyala.load("blur.impala")
    m.blur(src, out=dst, radius=5)
"""

import os as _os
import warnings as _warnings

from ._native import (
    CompileError,
    Diagnostic,
    Error,
    Fault,
    Function,
    InternalError,
    Program,
    Stats,
    __version__,
    flush,
)
from ._native import compile as _compile

__all__ = [
    "CompileError",
    "CompileWarning",
    "Diagnostic",
    "Error",
    "Fault",
    "Function",
    "InternalError",
    "Program",
    "Stats",
    "compile",
    "flush",
    "load",
]


class CompileWarning(UserWarning):
    """What the compiler warns of. The text is what the command `nyala` shows."""


def compile(
    text,
    *,
    name="<string>",
    checked=False,
    level=3,
    cpu=None,
    libraries=(),
    define={},
    wrap=False,
    partial_evaluation=True,
    budget=1.0,
    allow=(),
    deny=(),
    cache=True,
    variants=1024,
    device=None,
):
    """Compiles a program, given as text.

    name: of the file, for diagnostics; files that the program uses are looked for beside it
    checked: whether the code checks its accesses and arithmetic while it runs, and raises `Fault`
    level: of optimization, 0 to 3
    cpu: that code is made for, as LLVM names it; this machine's by default
    libraries: folders in which libraries are looked for
    define: initializers of top-level statics, as Impala expressions by name
    wrap: whether signed arithmetic wraps around
    partial_evaluation: whether its annotations are heeded
    budget: of partial evaluation, as a multiple of the usual one
    allow, deny: codes of warnings that are not reported, or are errors
    cache: whether machine code is kept between runs
    variants: how many variants of functions the program keeps
    device: "cuda", or "cuda:1", for functions whose arrays are in the memory of that device, and come by DLPack

    Raises CompileError if the program is wrong.
    """
    return _program([(name, text)], **_options(locals()))


def load(path, **options):
    """Compiles a program, given as a file. The options are those of `compile`, but for `name`."""
    if "name" in options:
        raise TypeError("load: the name is the file's: there is no option `name`")
    path = _os.fspath(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # Filters of warnings count from here.
    options = {**_DEFAULTS, **options}
    return _program([(path, text)], **options)


def _options(given):
    return {name: value for name, value in given.items() if name not in ("text", "name")}


_DEFAULTS = dict(compile.__kwdefaults__)
del _DEFAULTS["name"]


def _program(files, *, libraries, define, **options):
    if isinstance(libraries, (str, _os.PathLike)):
        raise TypeError("`libraries` is a list of folders, not one of them")
    options["libraries"] = [_os.fspath(folder) for folder in libraries]
    options["define"] = [(name, _expression(value)) for name, value in dict(define).items()]
    options["allow"], options["deny"] = list(options["allow"]), list(options["deny"])
    program = _compile(files, options)
    for warning in program.warnings:
        _warnings.warn(str(warning), CompileWarning, stacklevel=3)
    return program


def _expression(value):
    """A value as Impala writes it; a text is an expression already."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def load_ipython_extension(shell):
    """Called by `%load_ext nyala`: there is a cell magic `%%impala` then."""
    from ._magic import register

    register(shell)
