"""Makes the wheel and the source distribution of the package. `./x dist` runs it with what it has built:

    package.py wheel LIBRARY LLVM FOLDER
    package.py sdist FOLDER

`pip install` runs it from the sources (`pyproject.toml`): then cargo builds the library. The standard library suffices, and building needs no
tool of Python's."""

import base64
import gzip
import hashlib
import io
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
METADATA = """\
Metadata-Version: 2.1
Name: nyala
Version: {version}
Summary: Impala in Python: programs that are specialized and compiled when they are loaded, and called with arrays
License: MIT OR Apache-2.0
Requires-Python: >=3.11
Description-Content-Type: text/markdown

{page}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: nyala
Root-Is-Purelib: false
Tag: {tag}
"""


def oldest_glibc(files):
    """The oldest C library that has all that the files ask for, as in (2, 34)."""
    asked = [re.findall(rb"GLIBC_(\d+)\.(\d+)", file.read_bytes()) for file in files]
    return max((int(major), int(minor)) for found in asked for major, minor in found)


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def metadata():
    page = (ROOT / "docs/python.md").read_text()
    return METADATA.format(version=version(), page=page).encode()


def make_wheel(library, llvm, folder):
    """Makes the wheel from the library and LLVM's. Returns its path."""
    strip = shutil.which("strip")
    with tempfile.TemporaryDirectory() as place:
        stripped = pathlib.Path(place) / "_native.abi3.so"
        shutil.copy(library, stripped)
        if strip:
            # Places in the source are for backtraces of the compiler's bugs.
            subprocess.run([strip, "--strip-debug", stripped], check=True)
        major, minor = oldest_glibc([stripped, llvm])
        native = stripped.read_bytes()
    tag = f"cp311-abi3-manylinux_{major}_{minor}_{platform.machine()}"
    info = f"nyala-{version()}.dist-info"
    files = {f"nyala/{path.name}": path.read_bytes() for path in sorted((HERE / "python/nyala").glob("*.py*")) if path.is_file()}
    files["nyala/py.typed"] = b""
    files["nyala/_native.abi3.so"] = native
    files[f"nyala/{llvm.name}"] = llvm.read_bytes()
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    files[f"{info}/METADATA"] = metadata()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=tag).encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    out = pathlib.Path(folder) / f"nyala-{version()}-{tag}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in files.items():
            # Equal inputs, equal bytes: without the time.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return out


def make_sdist(folder):
    """Makes the source distribution: all that the repository has, with what Python's tools look for at the top. Returns its path."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]
    files = {name: (ROOT / name).read_bytes() for name in paths}
    files["PKG-INFO"] = metadata()
    files["pyproject.toml"] = (HERE / "pyproject.toml").read_bytes().replace(b'backend-path = ["."]', b'backend-path = ["crates/python"]')
    top = f"nyala-{version()}"
    out = pathlib.Path(folder) / f"{top}.tar.gz"
    # Equal inputs, equal bytes: without times, users and permissions beyond the necessary.
    with gzip.GzipFile(out, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(data)
            is_executable = name in paths and (ROOT / name).stat().st_mode & 0o100
            entry.mode = 0o755 if is_executable else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return out


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Called by pip (PEP 517), as is the next one."""
    command = ["cargo", "build", "--release", "--package", "nyala-python", "--message-format", "json-render-diagnostics"]
    try:
        said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    except FileNotFoundError:
        sys.exit("nyala: `cargo` is missing: install the Rust toolchain by rustup")
    library = llvm = None
    for message in map(json.loads, said.splitlines()):
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "nyala_python":
            library = pathlib.Path(next(name for name in message["filenames"] if name.endswith(".so")))
        if message["reason"] == "build-script-executed":
            llvm = dict(message["env"]).get("NYALA_LLVM_LIBRARY", llvm)
    return make_wheel(library, pathlib.Path(llvm), wheel_directory).name


def build_sdist(sdist_directory, config_settings=None):
    return make_sdist(sdist_directory).name


if __name__ == "__main__":
    if sys.argv[1] == "wheel":
        print(make_wheel(*map(pathlib.Path, sys.argv[2:])))
    else:
        print(make_sdist(sys.argv[2]))
