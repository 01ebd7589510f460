# Random pairs of sequences: what `lib/align` finds (kernels.impala) beside parasail and edlib.
#
#   peers.py LIBRARY KIND SEED PAIRS
#
# Prints `N pairs agree`, or what differs, and ends with 1. Neither has gaps of two pieces.
import ctypes
import sys

import edlib
import numpy
import parasail

GROUP = 500
MOST = 600
FREE_ENDS = {
    0: "nw", 1: "sg_qb", 2: "sg_qe", 3: "sg_qx", 4: "sg_db", 8: "sg_de", 12: "sg_dx", 15: "sg",
    5: "sg_qb_db", 6: "sg_qe_db", 9: "sg_qb_de", 10: "sg_qe_de",
}
MATRICES = [None, parasail.blosum45, parasail.blosum62, parasail.blosum80, parasail.pam250]


class Case(ctypes.Structure):
    names = ["ends", "open", "extend", "long_open", "long_extend", "matrix", "equal", "other"]
    _fields_ = [(name, ctypes.c_int32) for name in names]


def starts_of(texts):
    return (ctypes.c_int64 * (len(texts) + 1))(*numpy.cumsum([0] + [len(t) for t in texts]).tolist())


# The first of those best for a free end may lie at the border, where these libraries do not look.
def border(case, n, m):
    gap = lambda k: -(case.open + k * case.extend) if k else 0
    found = []
    if case.ends & 8:
        found.append(0 if case.ends & 1 else gap(n))
    if case.ends & 2:
        found.append(0 if case.ends & 4 else gap(m))
    return max(found, default=-(10**9))


def pairs_of(rng, letters, count):
    letters = numpy.frombuffer(letters, numpy.uint8)
    for _ in range(count):
        n, m = (int(2 ** rng.uniform(0, numpy.log2(MOST))) for _ in range(2))
        a = rng.choice(letters, n)
        if rng.random() < 0.3:
            b = rng.choice(letters, m)
        else:
            changes = rng.choice([0.01, 0.05, 0.15, 0.4])
            kept = a[rng.random(n) > changes / 3]
            b = numpy.where(rng.random(len(kept)) < changes / 3, rng.choice(letters, len(kept)), kept)
            at = numpy.flatnonzero(rng.random(len(b)) < changes / 3)
            b = numpy.insert(b, at, rng.choice(letters, len(at)))
            if len(b) == 0:
                b = a
        yield a.tobytes(), b.tobytes()


def main():
    library = ctypes.CDLL(sys.argv[1])
    kind, seed, wanted_pairs = map(int, sys.argv[2:])
    is_local, has_matrix, has_open = kind >= 4, kind % 4 == 3, kind % 4 != 0
    rng = numpy.random.default_rng(seed)
    done = 0
    while done < wanted_pairs:
        case = Case(ends=15 if is_local else int(rng.choice(list(FREE_ENDS))))
        case.extend = int(rng.integers(0, 5))
        case.open = int(rng.integers(0, 13)) if has_open else 0
        case.matrix = int(rng.integers(1, 5)) if has_matrix else 0
        case.equal, case.other = int(rng.integers(0, 6)), int(rng.integers(-6, 1))
        is_distance = kind == 0 and rng.random() < 0.3
        if is_distance:
            case.ends, case.extend, case.equal, case.other = int(rng.choice([0, 8, 12])), 1, 0, -1
        letters = b"ARNDCQEGHILKMFPSTWYV" if has_matrix or rng.random() < 0.3 else b"ACGT"
        pairs = list(pairs_of(rng, letters, GROUP))
        a, b = [p[0] for p in pairs], [p[1] for p in pairs]
        found = (ctypes.c_int32 * GROUP)()
        library.scores_in_lanes(
            ctypes.byref(case), GROUP, b"".join(a), starts_of(a), b"".join(b), starts_of(b), found
        )
        matrix = MATRICES[case.matrix] or parasail.matrix_create(letters.decode(), case.equal, case.other)
        align = getattr(parasail, ("sw" if is_local else FREE_ENDS[case.ends]) + "_scan_32")
        for (x, y), ours in zip(pairs, found):
            if is_distance:
                mode = {0: "NW", 8: "SHW", 12: "HW"}[case.ends]
                theirs = -edlib.align(x, y, mode=mode, task="distance")["editDistance"]
                if case.ends == 0 and library.edit_distance_of(x, ctypes.c_int64(len(x)), y, ctypes.c_int64(len(y))) != -theirs:
                    print("edit_distance differs from edlib:", x, y)
                    sys.exit(1)
            else:
                theirs = align(x.decode(), y.decode(), case.open + case.extend, case.extend, matrix).score
            theirs = max(theirs, border(case, len(x), len(y)))
            if ours != theirs:
                shown = {name: getattr(case, name) for name in Case.names}
                print(f"{ours} here, {theirs} of {'edlib' if is_distance else align.__name__}: kind {kind}, {shown}\n{x}\n{y}")
                sys.exit(1)
        done += GROUP
    print(f"{done} pairs agree")


main()
