"""Alignments of sequences, by the library `align`: `nyala.align.scores(reads, references, matrix="blosum62")`.

A sequence is a `str` of ASCII, `bytes`, or another array of bytes. What an alignment scores is given by name:

    ends: which ends may be left out: "global" none, "local" those of both, "overlap" any but not parts of both, or four truth values:
        the start and the end of the first sequence, then of the second
    gaps: what a gap of n letters costs: a number, for each letter; (open, extend), `open + n * extend`; or the lesser of two such, as
        (open, extend, open, extend)
    match, mismatch: what equal letters score, and others
    matrix: instead of these a substitution matrix: "blosum45", "blosum62", "blosum80", "pam250"

A scheme is compiled when it is used first, which takes some seconds; its code is kept between runs.
"""

import array as _array
import collections as _collections
import functools as _functools

from . import compile as _compile

Alignment = _collections.namedtuple("Alignment", "score a_start a_end b_start b_end cigar")
Alignment.__doc__ = """The letters `a[a_start:a_end]` with `b[b_start:b_end]`. `cigar` has the operations as in SAM files, with = and X for
equal letters and others, I for letters of the first sequence alone, D for those of the second."""

_ENDS = {"global": "global()", "local": "local()", "overlap": "overlap()"}
_MATRICES = ("blosum45", "blosum62", "blosum80", "pam250")

_HEAD = """
use align::*;
use std::slice::*;
fn @of_all() -> Scheme {{ {scheme} }}
fn @part(letters: Slice[u8], starts: Slice[i64], i: i32) -> Str {{ letters.part(starts(i), starts(i + 1)) }}
"""

# Each is compiled alone: a program has what is called of it only.
_PROGRAMS = {
    "scores": """
extern fn f(a: Slice[u8], a_starts: Slice[i64], b: Slice[u8], b_starts: Slice[i64], out: MutSlice[i32]) -> () {{
    let pairs = Pairs {{ count: out.length as i32, a: |i| part(a, a_starts, i), b: |i| part(b, b_starts, i) }};
    for i, score in score_pairs(of_all(), pairs, par) {{ out(i) = score; }}
}}
""",
    "search": """
extern fn f(query: Slice[u8], b: Slice[u8], b_starts: Slice[i64], out: MutSlice[i32]) -> () {{
    for i, score in search(of_all(), query, out.length as i32, |i| part(b, b_starts, i), par) {{ out(i) = score; }}
}}
""",
    "score": """
extern fn f(a: Slice[u8], b: Slice[u8]) -> i32 {{ score(of_all(), a, b).score }}
""",
    "align": """
struct Found {{ score: i32, a_start: i32, a_end: i32, b_start: i32, b_end: i32, n: i64 }}
extern fn f(a: Slice[u8], b: Slice[u8], ops: MutSlice[u8], runs: MutSlice[i32]) -> Found {{
    let mut n = 0i64;
    let x = align(of_all(), a, b, |op, run| {{ ops(n) = op; runs(n) = run; n++; }});
    Found {{ score: x.score, a_start: x.a_start, a_end: x.a_end, b_start: x.b_start, b_end: x.b_end, n: n }}
}}
""",
    "edit_distance": """
extern fn f(a: Slice[u8], b: Slice[u8]) -> i32 {{ edit_distance(a, b) }}
""",
}


@_functools.lru_cache(maxsize=256)
def _compiled(name, scheme):
    # Its kernels are large: at full speed LLVM takes four times as long for code that is no faster.
    level = 1 if name == "align" else 3
    return _compile((_HEAD + _PROGRAMS[name]).format(scheme=scheme), name="<alignment>", level=level)


def _number(name, value, least=-1000, most=1000):
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"`{name}` is {value!r}, expected an integer of {least} to {most}")
    return value


def _scheme(ends="global", gaps=(2, 1), match=2, mismatch=-1, matrix=None):
    if ends in _ENDS:
        ends = _ENDS[ends]
    elif isinstance(ends, tuple) and len(ends) == 4 and all(isinstance(end, bool) for end in ends):
        ends = f"semi_global({', '.join(str(end).lower() for end in ends)})"
    else:
        raise ValueError(f"`ends` is {ends!r}, expected one of {', '.join(map(repr, _ENDS))}, or four truth values")
    gaps = gaps if isinstance(gaps, tuple) else (gaps,)
    kind = {1: "linear", 2: "affine", 4: "two_piece"}.get(len(gaps))
    if kind is None:
        raise ValueError(f"`gaps` is {gaps!r}, expected one, two or four integers")
    gaps = f"{kind}({', '.join(str(_number('gaps', gap, 0)) for gap in gaps)})"
    if matrix is None:
        return f"simple_scheme({ends}, {gaps}, {_number('match', match)}, {_number('mismatch', mismatch)})"
    if matrix not in _MATRICES:
        raise ValueError(f"`matrix` is {matrix!r}, expected one of {', '.join(map(repr, _MATRICES))}")
    return f"matrix_scheme({ends}, {gaps}, {matrix}())"


def _letters(sequence):
    if isinstance(sequence, str):
        return sequence.encode("ascii")
    with memoryview(sequence) as view:
        if view.format not in ("B", "b", "c") or not view.c_contiguous:
            raise TypeError("a sequence is a `str`, `bytes`, or an array of bytes side by side")
    return sequence


def _joined(sequences):
    """Sequences one after the other, and where they start."""
    letters, starts = bytearray(), _array.array("q", [0])
    for sequence in sequences:
        letters += memoryview(_letters(sequence))
        starts.append(len(letters))
    return letters, starts


def _room(n, out):
    if n >= 1 << 31:
        raise ValueError(f"{n} sequences are too many")
    if out is None:
        return _array.array("i", bytes(4 * n))
    with memoryview(out) as view:
        if view.shape != (n,):
            raise ValueError(f"`out` has the shape {view.shape}, expected {(n,)}")
    return out


def scores(a, b, *, out=None, **scheme):
    """The scores of a[i] with b[i] for all i, in lanes and on all processors, as an array of integers."""
    (a, a_starts), (b, b_starts) = _joined(a), _joined(b)
    if len(a_starts) != len(b_starts):
        raise ValueError(f"{len(a_starts) - 1} sequences cannot be paired with {len(b_starts) - 1}")
    out = _room(len(a_starts) - 1, out)
    _compiled("scores", _scheme(**scheme)).f(a, a_starts, b, b_starts, out)
    return out


def search(query, sequences, *, out=None, **scheme):
    """The scores of one sequence with each of many, in lanes and on all processors, as an array of integers."""
    letters, starts = _joined(sequences)
    out = _room(len(starts) - 1, out)
    _compiled("search", _scheme(**scheme)).f(_letters(query), letters, starts, out)
    return out


def score(a, b, **scheme):
    """The score of the best alignment of two sequences."""
    return _compiled("score", _scheme(**scheme)).f(_letters(a), _letters(b))


def align(a, b, **scheme):
    """The best alignment of two sequences: an `Alignment`. Its memory grows with the sum of their lengths."""
    a, b = _letters(a), _letters(b)
    program = _compiled("align", _scheme(**scheme))
    room = len(a) + len(b) + 1
    ops, runs = bytearray(room), _array.array("i", bytes(4 * room))
    *found, n = program.f(a, b, ops, runs)
    # From the end to the start; runs that meet are one.
    cigar, last, length = [], None, 0
    for i in reversed(range(n)):
        if ops[i] != last and length:
            cigar.append(f"{length}{last:c}")
            length = 0
        last, length = ops[i], length + runs[i]
    if length:
        cigar.append(f"{length}{last:c}")
    return Alignment(*found, "".join(cigar))


def edit_distance(a, b):
    """How many letters are to be changed, inserted or removed to make one sequence of the other."""
    return _compiled("edit_distance", "simple_scheme(global(), linear(1), 0, -1)").f(_letters(a), _letters(b))
