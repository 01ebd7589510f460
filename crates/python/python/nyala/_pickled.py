"""Programs that arrive as pickles: their files and options, which are compiled here. Loaded when first needed."""

import threading
import weakref

from ._native import compile as _compile

_known = weakref.WeakValueDictionary()
_lock = threading.Lock()


def program(files, options):
    """Compiles a program, unless an equal one has arrived before and lives."""
    key = (tuple(files), repr(sorted(options.items())))
    with _lock:
        known = _known.get(key)
        if known is None:
            known = _known[key] = _compile(files, options)
        return known
