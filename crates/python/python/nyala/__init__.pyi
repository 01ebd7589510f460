from collections.abc import Iterable, Mapping
from inspect import Signature
from os import PathLike
from typing import Any, Literal

__version__: str

class Error(Exception): ...

class CompileError(Error):
    diagnostics: list[Diagnostic]

class Fault(Error):
    code: str
    message: str
    place: str | None
    rendered: str
    exit_code: int | None

class InternalError(Error): ...
class CompileWarning(UserWarning): ...

class Diagnostic:
    @property
    def severity(self) -> Literal["error", "warning", "info"]: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def column(self) -> int | None: ...
    @property
    def end_line(self) -> int | None: ...
    @property
    def end_column(self) -> int | None: ...
    @property
    def hints(self) -> list[str]: ...
    @property
    def rendered(self) -> str: ...

class Stats:
    @property
    def partial_evaluation(self) -> float: ...
    @property
    def total(self) -> float: ...
    @property
    def warnings(self) -> list[Diagnostic]: ...

class Function:
    __name__: str
    __qualname__: str
    __signature__: Signature
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def program(self) -> Program: ...
    @property
    def text(self) -> str: ...
    @property
    def comment(self) -> str: ...
    @property
    def parameters(self) -> list[tuple[str, str]]: ...
    @property
    def result(self) -> str: ...
    def fix(self, **values: Any) -> Function: ...
    def stats(self) -> Stats | None: ...
    def explain(self) -> str: ...

class Program:
    # Functions, and classes of structs.
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    @property
    def functions(self) -> dict[str, str]: ...
    @property
    def warnings(self) -> list[Diagnostic]: ...
    @property
    def files(self) -> list[tuple[str, str]]: ...
    @property
    def options(self) -> dict[str, Any]: ...
    @property
    def variants(self) -> dict[str, int]: ...
    def emit(
        self, stage: Literal["graph", "residual", "flat", "llvm", "asm", "c"], function: str | None = None
    ) -> str: ...

def compile(
    text: str,
    *,
    name: str = "<string>",
    checked: bool = False,
    level: int = 3,
    cpu: str | None = None,
    libraries: Iterable[str | PathLike[str]] = (),
    define: Mapping[str, str | int | float | bool] = {},
    wrap: bool = False,
    partial_evaluation: bool = True,
    budget: float = 1.0,
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    cache: bool = True,
    variants: int = 1024,
    device: str | None = None,
) -> Program: ...
def load(
    path: str | PathLike[str],
    *,
    checked: bool = False,
    level: int = 3,
    cpu: str | None = None,
    libraries: Iterable[str | PathLike[str]] = (),
    define: Mapping[str, str | int | float | bool] = {},
    wrap: bool = False,
    partial_evaluation: bool = True,
    budget: float = 1.0,
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    cache: bool = True,
    variants: int = 1024,
    device: str | None = None,
) -> Program: ...
def flush() -> None: ...
def load_ipython_extension(shell: Any) -> None: ...
