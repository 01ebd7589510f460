#!/bin/sh
# Measures kernels on an NVIDIA GPU, and runs the conformance list there.
#
#   bench/gpu.sh build [sm_90 [FOLDER]]    makes the folder, target/gpu, for this architecture and newer ones; needs cargo, cc, nvcc
#   target/gpu/run [FOLDER]                runs what lies beside it, writes FOLDER/results.md; needs a GPU and its driver only
#
# Nothing but the folder travels to the machine with the GPU; it has less than 50 MB. A step prints its name before it begins, and ends
# within five minutes. Each kernel and each program of the list is a step, so that what is wrong with one spoils no other; figures
# come first. nvcc is that of CUDA_HOME, of the path, or of `./x setup`. NYALA names a command that is built already.
set -eu

# The kernels of a program of the list, beside the words of the compiler if it has none for CUDA.
build() {
    gpu=${1:-sm_90} out=${2:-target/gpu}
    cd "$(dirname "$0")/.."
    for home in "${CUDA_HOME:-}" target/cuda/lib/python3*/site-packages/nvidia/cu13; do
        [ -x "$home/bin/nvcc" ] && break
        home=
    done
    nvcc=${home:+$home/bin/}nvcc
    command -v "$nvcc" > /dev/null || { echo "error: nvcc is not there; CUDA_HOME names its folder, or \`./x setup\` installs it"; exit 1; }
    # The compiler finds NVIDIA's math functions there.
    [ -z "$home" ] || { CUDA_HOME=$(cd "$home" && pwd); export CUDA_HOME; }
    if [ -z "${NYALA:-}" ]; then
        echo "the compiler ..."
        cargo build --quiet --release --package nyala --package nyala-runtime
        NYALA=${CARGO_TARGET_DIR:-target}/release/nyala
    fi
    rm -rf "$out"
    mkdir -p "$out"
    echo "the kernels that are measured ..."
    "$NYALA" build --cuda "$gpu" bench/gpu/kernels.impala bench/gpu/filters.impala -o "$out"/libkernels.a
    "$nvcc" -O3 -use_fast_math -std=c++17 -arch="$gpu" -fatbin -o "$out"/peers.fatbin bench/gpu/peers.cu
    cc -O2 -Wall -Wextra -Werror -o "$out"/measure bench/gpu/measure.c "$out"/libkernels.a -lpthread -ldl -lm
    "$NYALA" build --cuda "$gpu" bench/gpu/align.impala -o "$out"/libalign.a
    "$nvcc" -O3 -std=c++17 -arch="$gpu" -fatbin -o "$out"/align.fatbin bench/gpu/align.cu
    cc -O2 -Wall -Wextra -Werror -o "$out"/align bench/gpu/align.c "$out"/libalign.a -lpthread -ldl -lm
    "$NYALA" build --cuda "$gpu" bench/gpu/rays.impala -o "$out"/librays.a
    "$nvcc" -O3 -use_fast_math -std=c++17 -arch="$gpu" -fatbin -o "$out"/rays.fatbin bench/gpu/rays.cu
    cc -O2 -Wall -Wextra -Werror -o "$out"/rays bench/gpu/rays.c "$out"/librays.a -lpthread -ldl -lm
    rm "$out"/*.a
    for program in tests/device/conformance/*.impala; do
        conformance "$(basename "$program" .impala)" tests/device/platforms/cuda.impala tests/device/common.impala "$program"
    done
    conformance products tests/device/nvidia/products.impala
    conformance image -D PLATFORM=1 lib/image/tests/devices.impala tests/device/image.impala
    conformance ray -D PLATFORM=1 lib/ray/tests/device.impala tests/device/ray.impala
    conformance render -D PLATFORM=1 examples/render/device_checks.impala tests/device/render.impala
    "$NYALA" build --cuda "$gpu" examples/render/measure.impala -o "$out"/render
    strip "$out"/measure "$out"/align "$out"/rays "$out"/render "$out"/conformance-*
    { date -u '+%Y-%m-%d'; git rev-parse --short HEAD 2> /dev/null || true; echo "$gpu"; } | paste -sd ' ' > "$out"/made
    cp bench/gpu.sh "$out"/run
    size=$(du -sk "$out" | cut -f1)
    echo "$out: $size KiB"
    [ "$size" -lt 48828 ] || { echo "error: it has more than 50 MB"; exit 1; }
}

# An executable of a program of the list. One that has no kernels for CUDA is left out, with the compiler's reason.
conformance() {
    name=$1
    shift
    echo "conformance: $name ..."
    "$NYALA" build --cuda "$gpu" "$@" -o "$out/conformance-$name" 2> "$out"/said && { rm "$out"/said; return; }
    why=$(sed -n 's/^error\[not-on-platform\]: //p' "$out"/said | head -n 1)
    [ -n "$why" ] || { cat "$out"/said; exit 1; }
    rm "$out"/said
    echo "  left out: $why"
    echo "| $name | not for CUDA: $why | |" >> "$out"/left-out
}

# A step: its name, and the command. What it prints is in `said` afterwards; fails as the command does.
step() {
    printf '%s ... ' "$1"
    shift
    begin=$(date +%s) status=0
    timeout -k 5 300 "$@" > "$to/said" 2>&1 < /dev/null || status=$?
    seconds=$(($(date +%s) - begin))
    [ $status -ne 124 ] || echo "ended after $seconds s, since it took too long" >> "$to/said"
    echo "$seconds s, exit status $status"
    return $status
}

table() {
    echo "$1" | tee -a "$to/results.md"
}

# Words of a failed step, for the end of the results.
keep() {
    { printf '\n%s:\n\n```text\n' "$1"; head -n 40 "$to/said"; printf '```\n'; } >> "$to/failures"
    head -n 10 "$to/said"
    failed=$((failed + 1))
}

# A row of the table for each kernel that a program lists, a step each.
rows() {
    "$here/$1" list > "$to/kernels"
    while read -r kernel; do
        step "$kernel" "$here/$1" "$kernel" || keep "$kernel"
        row=$(grep "^| $kernel |" "$to/said") || row="| $kernel | | | | FAILED |"
        table "$row"
    done < "$to/kernels"
}

run() {
    here=$(cd "$(dirname "$0")" && pwd)
    to=${1:-$here}
    mkdir -p "$to"
    rm -f "$to/results.md" "$to/failures"
    failed=0
    if ! step "the GPU" "$here/measure" device; then
        cat "$to/said"
        rm "$to/said"
        exit 1
    fi
    table "$(cat "$to/said")"
    table "$(date -u '+%Y-%m-%d %H:%M') UTC; made $(cat "$here/made"); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
    table ""
    table "| kernel | ours, us | CUDA C++, us | theirs / ours | results |"
    table "|---|---|---|---|---|"
    rows measure
    table ""
    table "| alignments | ours, billions of cells in a second | CUDA C++ | ours / theirs | results |"
    table "|---|---|---|---|---|"
    rows align
    table ""
    table "| rays | ours, Mray/s | CUDA C++, Mray/s | ours / theirs | hits |"
    table "|---|---|---|---|---|"
    step "rays" "$here/rays" || keep "rays"
    table "$(grep '^|' "$to/said" || echo "| | | | | FAILED |")"
    table ""
    step "the path tracer" "$here/render" || keep "the path tracer"
    table "$(grep '^|' "$to/said" || echo "| the path tracer | FAILED |")"
    table ""
    table "| program | result | seconds |"
    table "|---|---|---|"
    for program in "$here"/conformance-*; do
        name=$(basename "$program") && name=${name#conformance-}
        good=true
        step "conformance: $name" "$program" || good=false
        n=$(grep -c ': ok$' "$to/said") || good=false
        [ "$(grep -c '' "$to/said")" = "$n" ] || good=false
        $good || keep "$name"
        $good && result="$n ok" || result="FAILED, $n ok"
        table "| $name | $result | $seconds |"
    done
    [ ! -e "$here/left-out" ] || table "$(cat "$here/left-out")"
    [ ! -e "$to/failures" ] || cat "$to/failures" >> "$to/results.md"
    rm -f "$to/said" "$to/kernels" "$to/failures"
    echo "$to/results.md: $failed failed"
    [ $failed = 0 ]
}

case "$(basename "$0") ${1:-}" in
"gpu.sh build") shift && build "$@" ;;
"run "*) run "$@" ;;
*)
    sed -n '2,9p' "$0" | cut -c3-
    exit 2
    ;;
esac
