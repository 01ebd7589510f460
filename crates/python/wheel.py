"""Makes the wheel of the package from what is built: `wheel.py VERSION MACHINE LIBRARY LLVM FOLDER`. `./x dist` runs it. The standard
library suffices, and building needs no tool of Python's."""

import base64
import hashlib
import os
import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
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


def main(version, machine, library, llvm, folder):
    library, llvm = pathlib.Path(library), pathlib.Path(llvm)
    major, minor = oldest_glibc([library, llvm])
    tag = f"cp311-abi3-manylinux_{major}_{minor}_{machine}"
    info = f"nyala-{version}.dist-info"
    files = {f"nyala/{path.name}": path.read_bytes() for path in sorted((HERE / "python/nyala").glob("*.py*")) if path.is_file()}
    files["nyala/py.typed"] = b""
    files["nyala/_native.abi3.so"] = library.read_bytes()
    files[f"nyala/{llvm.name}"] = llvm.read_bytes()
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        files[f"{info}/licenses/{name}"] = (HERE / "../.." / name).read_bytes()
    page = (HERE / "../../docs/python.md").read_text()
    files[f"{info}/METADATA"] = METADATA.format(version=version, page=page).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=tag).encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    out = pathlib.Path(folder) / f"nyala-{version}-{tag}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data in files.items():
            # Equal inputs, equal bytes: without the time.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(out, os.path.getsize(out))


main(*sys.argv[1:])
