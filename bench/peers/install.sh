#!/bin/sh
# Installs peers that come from PyPI into out/peers: Zig, Intel's OpenCL compiler for CPUs, Halide, OpenCV, Numba, OpenBLAS, MKL, BLIS,
# Embree, Polars.
# Nothing outside that folder changes; deleting it undoes this. `./x bench` measures what it finds there. About 3.5 GB.
set -eu
cd "$(dirname "$0")/../.."
[ -d out/peers ] || python3 -m venv out/peers
out/peers/bin/pip install --quiet --disable-pip-version-check \
    ziglang==0.17.1 dpcpp-cpp-rt==2026.2.0 pyopencl==2026.1.4 numpy==2.4.6 \
    halide==21.0.0 opencv-python-headless==5.0.0.93 numba==0.68.1 \
    scipy-openblas64==0.3.34.481.3 mkl==2026.2.0 blis==1.3.4 embreex==4.4.0.post1 polars==2.1.0
# Without an entry the loader of pyopencl finds no compiler.
mkdir -p out/peers/vendors
library=$(find "$PWD/out/peers/lib" -maxdepth 1 -name libintelocl.so)
[ -n "$library" ] || { echo "install.sh: no libintelocl.so came" >&2; exit 1; }
echo "$library" > out/peers/vendors/intel.icd
out/peers/bin/python -m ziglang version
OCL_ICD_VENDORS="$PWD/out/peers/vendors" LD_LIBRARY_PATH="$PWD/out/peers/lib" \
    out/peers/bin/python -c 'import pyopencl; print(*(p.name + ", " + p.version for p in pyopencl.get_platforms()), sep="\n")'
