"""The cell magic `%%impala` of notebooks."""

import shlex

from . import compile


def impala(shell, line, cell):
    """Compiles a cell: `%%impala` makes its functions names of the notebook, `%%impala m` makes it the program `m`. Options follow,
    as in `%%impala m checked=True level=2`."""
    name, options = None, {}
    for word in shlex.split(line):
        option, equals, value = word.partition("=")
        if equals:
            options[option] = eval(value, shell.user_ns)
        elif name is None and word.isidentifier():
            name = word
        else:
            raise ValueError(f"%%impala: `{word}` is neither a name nor an option, as in `m checked=True`")
    program = compile(cell, name=options.pop("name", "<cell>"), **options)
    if name is not None:
        shell.user_ns[name] = program
    else:
        shell.user_ns.update({function: program[function] for function in program.functions})
    return None


def register(shell):
    shell.register_magic_function(lambda line, cell: impala(shell, line, cell), "cell", "impala")
