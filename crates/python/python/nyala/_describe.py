"""Programs in Python's words: signatures, documentation, classes of structs. Loaded when first needed."""

import collections
import html
import inspect
import keyword


def signature(function):
    """What `inspect.signature` shows."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    params = []
    for i, (name, text) in enumerate(function.parameters):
        # Python has other keywords, and no parameters without names.
        if not name.isidentifier() or keyword.iskeyword(name):
            name = f"_{i}"
        params.append(inspect.Parameter(name, kind, annotation=text))
    return inspect.Signature(params, return_annotation=function.result)


def doc(function):
    """The comment above the function, and the function as the program writes it."""
    return f"{function.text}\n\n{function.comment}".rstrip()


class Explanation(str):
    """A text that a notebook shows as a page."""

    def __new__(cls, text, function):
        made = super().__new__(cls, text)
        made._function = function
        return made

    def _repr_html_(self):
        page = html.escape(self._function._explain_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 1px solid #888"></iframe>'

    def __reduce__(self):
        return str, (str(self),)


class _Dtype:
    """The attribute `dtype` of structs' classes, made when it is asked for: it needs NumPy."""

    def __init__(self, described):
        self.described = described
        self.made = None

    def __get__(self, instance, owner):
        if self.made is None:
            self.made = _dtype(self.described)
        return self.made


def _dtype(described):
    import numpy

    if isinstance(described, str):
        return numpy.dtype(described)
    if isinstance(described, tuple):
        of, n = described
        return numpy.dtype((_dtype(of), (n,)))
    size, *fields = described
    names, offsets, of = zip(*fields) if fields else ((), (), ())
    formats = [_dtype(field) for field in of]
    return numpy.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size}, align=True)


def struct(name, described):
    """The class of a struct's values: a named tuple, with the type of elements for NumPy as `dtype`."""
    plain = "".join(c if c.isalnum() else "_" for c in name).strip("_")
    if not plain.isidentifier():
        plain = "Struct"
    fields = [field for field, _, _ in described[1:]]
    base = collections.namedtuple(plain, fields, rename=True, module="nyala")
    inner = {"__slots__": (), "__doc__": base.__doc__, "__module__": "nyala", "dtype": _Dtype(described)}
    return type(plain, (base,), inner)
