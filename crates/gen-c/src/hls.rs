//! C++ for high-level synthesis, as data: the language of tools that make circuits for FPGAs, with AMD's (Xilinx's) pragmas
//! and channels. Kernels have one work item. What only the tools need is in pragmas, so that any compiler of C++ takes the text.
//!
//! A kernel that is launched by itself has ports for its parameters. Kernels that are connected by channels are called by one
//! more, in which they run at the same time. A function `KERNEL_call` beside each kernel takes the addresses of the arguments: the
//! runtime calls it in simulations.

use crate::dialect::{Dialect, Halves, Interface, Kernels, OF_KERNELS_IN_CPP, PLAIN_KERNELS, Parameter, Port, Role};
use nyala_ir::Prim;
use std::fmt::Write;

/// C++ for high-level synthesis.
pub const HLS: Dialect = Dialect {
    name: "HLS C++",
    extensions,
    prims: &[
        (Prim::Bool, "bool"),
        (Prim::I8, "int8_t"),
        (Prim::I16, "int16_t"),
        (Prim::I32, "int"),
        (Prim::I64, "int64_t"),
        (Prim::U8, "uint8_t"),
        (Prim::U16, "uint16_t"),
        (Prim::U32, "unsigned"),
        (Prim::U64, "uint64_t"),
        (Prim::F16, "uint16_t"),
        (Prim::F32, "float"),
        (Prim::F64, "double"),
    ],
    spaces: &[(0, ""), (1, ""), (2, "const"), (3, ""), (4, ""), (5, "")],
    channel: "hls::stream<T>",
    pipeline: "#pragma HLS PIPELINE II={0}",
    // There is one work item, so nothing among several.
    kernels: Some(Kernels { kernel: "extern \"C\" ", interface, ..PLAIN_KERNELS }),
    halves: Halves::Bits { widen: [WIDEN; 2], narrow: NARROW, direct: &[] },
    reserved: RESERVED,
    restrict: "",
    ..OF_KERNELS_IN_CPP
};

/// Numbers of 16 bits, whose type the tools have in a header of their own.
const WIDEN: &str = "    union { unsigned bits; float x; } u;
    unsigned sign = (x & 0x8000u) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ffu;
    if (exponent == 31) {
        u.bits = sign | 0x7f800000u | fraction << 13;
    } else if (exponent != 0) {
        u.bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        u.x = (float)fraction * 5.9604644775390625e-8f;
        u.bits |= sign;
    }
    return u.x;";
macro_rules! narrow {
    ($first:literal) => {
        concat!(
            "    union { float x; unsigned bits; } u;\n",
            $first,
            "    unsigned sign = u.bits >> 16 & 0x8000u;
    u.bits &= 0x7fffffffu;
    if (u.bits > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (u.bits >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (u.bits < 0x38800000u) {
        u.x += 0.5f;
        return (uint16_t)(sign | (u.bits - 0x3f000000u));
    }
    u.bits += 0xfffu + (u.bits >> 13 & 1);
    return (uint16_t)(sign | (u.bits - 0x38000000u) >> 13);"
        )
    };
}
const NARROW: [&str; 2] = [
    narrow!("    u.x = x;\n"),
    // Rounded to odd first, so that rounding twice makes no difference.
    narrow!(
        "    u.x = (float)x;
    if ((double)u.x != x && (u.bits & 1) == 0) u.bits += fabs((double)u.x) > fabs(x) ? -1 : 1;
"
    ),
];

/// A function for simulations: the channel of a variable of the program.
const SIMULATION: &str = "\
#ifndef __SYNTHESIS__
#include <map>
template <typename T> static hls::stream<T> &channel_of(void *at) {
    static std::map<void *, hls::stream<T>> all;
    return all[at];
}
#endif
";

/// The files that a text needs.
fn extensions(text: &str) -> String {
    let mut lines = String::new();
    if text.contains("hls::stream<") {
        lines.push_str("#include <hls_stream.h>\n");
    }
    lines.push_str("#include <math.h>\n#include <stdint.h>\n#include <string.h>\n");
    if text.contains("printf(") {
        lines.push_str("#include <stdio.h>\n");
    }
    if text.contains("channel_of<") {
        lines.push_str(SIMULATION);
    }
    lines
}

/// Pragmas for a kernel's ports, or for kernels that run at the same time; and the function that simulations call.
fn interface(kernel: &Interface) -> [String; 2] {
    let Interface { name, params, role } = kernel;
    let mut pragmas = String::new();
    let mut pragma = |text: String| {
        let _ = writeln!(pragmas, "#pragma HLS {text}");
    };
    if *role != Role::Part {
        let mut memories = 0;
        for Parameter { name, kind, .. } in params {
            match kind {
                Port::Channel => pragma(format!("INTERFACE axis port={name}")),
                Port::Value => pragma(format!("INTERFACE s_axilite port={name}")),
                Port::Memory => {
                    // Each address has a port of its own.
                    pragma(format!("INTERFACE m_axi port={name} offset=slave bundle=gmem{memories}"));
                    pragma(format!("INTERFACE s_axilite port={name}"));
                    memories += 1;
                }
            }
        }
        pragma("INTERFACE s_axilite port=return".into());
    }
    if *role == Role::Whole {
        pragma("DATAFLOW".into());
        return [pragmas, String::new()];
    }
    let arg = |(i, param): (usize, &Parameter)| match (param.kind, param.ty.as_str()) {
        (Port::Channel, ty) => format!("channel_of<{ty}>(*(void **)args[{i}])"),
        (_, ty) if ty.ends_with('*') => format!("*({ty}*)args[{i}]"),
        (_, ty) => format!("*({ty} *)args[{i}]"),
    };
    let args: Vec<String> = params.iter().enumerate().map(arg).collect();
    let call = format!(
        "\n#ifndef __SYNTHESIS__\nextern \"C\" void {name}_call(void **args) {{\n    {name}({});\n}}\n#endif\n",
        args.join(", ")
    );
    [pragmas, call]
}

/// Keywords of C++, and what the headers define.
const RESERVED: &str = "\
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const constexpr \
const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend \
goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public \
register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this \
thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq \
hls std main args channel_of INFINITY NAN NULL abs acos acosf acosh asin asinf asinh atan atan2 atan2f atanf atanh cbrt \
cbrtf ceil ceilf copysign copysignf cos cosf cosh coshf erf erfc erff exp exp2 exp2f expf expm1 expm1f fabs fabsf fdim floor \
floorf fma fmaf fmax fmin fmod fmodf frexp hypot isfinite isinf isnan j0 j1 jn ldexp lgamma log log10 log10f log1p log1pf log2 \
log2f logb logf memcmp memcpy memmove memset modf nan pow powf remainder rint round roundf signbit sin sinf sinh sinhf sqrt \
sqrtf strcat strcpy strlen tan tanf tanh tanhf tgamma trunc truncf y0 y1 yn printf code gamma signgam index ap_int ap_uint half \
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t size_t ptrdiff_t";
