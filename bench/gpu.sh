#!/bin/sh
# Measures kernels on an NVIDIA GPU, and runs the conformance list there.
#
#   bench/gpu.sh build [sm_90]    makes the executables in target/gpu; needs nvcc (CUDA_HOME names its folder) and cargo
#   bench/gpu.sh run              runs them; needs a GPU and its driver only
#
# The machine with the GPU needs no Rust toolchain: copy target/gpu and this script there.
set -eu
cd "$(dirname "$0")/.."
out=target/gpu
case "${1:-}" in
build)
    gpu=${2:-sm_90}
    nvcc=nvcc
    [ -n "${CUDA_HOME:-}" ] && nvcc=$CUDA_HOME/bin/nvcc
    cargo build --quiet --release --package nyala --package nyala-runtime
    nyala=target/release/nyala
    mkdir -p $out
    "$nyala" build --cuda "$gpu" bench/gpu/kernels.impala -o $out/libkernels.a
    "$nvcc" -O3 -use_fast_math -std=c++17 -arch="$gpu" -o $out/measure bench/gpu/measure.cu $out/libkernels.a -lpthread -ldl -lm
    for program in tests/device/conformance/*.impala; do
        name=$(basename "$program" .impala)
        "$nyala" build --cuda "$gpu" tests/device/platforms/cuda.impala tests/device/common.impala "$program" -o "$out/conformance-$name"
    done
    strip $out/measure $out/conformance-*
    rm -f $out/libkernels.a
    du -sh $out
    ;;
run)
    failed=0
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
    for program in "$out"/conformance-*; do
        "$program" > "$out/said" 2>&1 || failed=1
        grep -v ': ok$' "$out/said" && failed=1
        echo "$(basename "$program"): $(grep -c ': ok$' "$out/said") ok"
    done
    "$out/measure" || failed=1
    exit $failed
    ;;
*)
    sed -n '2,7p' "$0" | cut -c3-
    exit 2
    ;;
esac
