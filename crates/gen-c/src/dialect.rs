//! Members of the C family, as data: how each spells types, literals, qualifiers and functions, and what it lacks. The
//! emitter is the same for all of them, and asks the table.

use nyala_ir::{LaneOp, Op, Prim, Scope, WorkItem};

/// A language of the C family.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// The name in messages.
    pub name: &'static str,
    /// Lines before everything else.
    pub prologue: &'static str,
    /// Lines before these, as the text needs them.
    pub extensions: fn(&str) -> String,
    /// Names of the primitive types.
    pub prims: &'static [(Prim, &'static str)],
    /// Ends of integer literals, by type; none where a plain literal has the right type.
    pub suffixes: &'static [(Prim, &'static str)],
    /// Ends of floating-point literals, by type.
    pub float_suffixes: &'static [(Prim, &'static str)],
    /// The integer that holds an address.
    pub address: &'static str,
    /// Qualifiers of pointers and globals, by address space.
    pub spaces: &'static [(u8, &'static str)],
    /// The specifiers of a function that only this file calls.
    pub internal: &'static str,
    /// The specifiers of a small function that is to be inlined.
    pub inline: &'static str,
    /// The type of a channel between kernels, with `T` for that of its elements; empty if there are none.
    pub channel: &'static str,
    /// Conversions of `printf`, for each kind of [`printed`](nyala_ir::lanes::printed): the conversion and the type of the argument;
    /// empty if kernels do not print. A string has to be known.
    pub printf: &'static [(&'static str, &'static str, &'static str)],
    /// The line in a loop whose rounds begin every `{0}` cycles; empty if that is not said.
    pub pipeline: &'static str,
    /// The syntax of kernels; `None` if there are none.
    pub kernels: Option<Kernels>,
    /// Expressions for the numbers of a work item, on each axis.
    pub work_items: &'static [(WorkItem, [&'static str; 3])],
    /// The qualifier of a pointer that no other one overlaps; empty if there is none.
    pub restrict: &'static str,
    /// Names of math functions in single and in double precision.
    pub math: &'static [(Op, [&'static str; 2])],
    /// Functions that count bits of integers of 32 and of 64 bits; those of zeros are not called for 0.
    pub counts: &'static [(Op, [&'static str; 2])],
    /// The attribute of a type or member that is aligned to N bytes.
    pub aligned: &'static str,
    /// How the bits of a value are read as another type.
    pub bits: Bits,
    /// How floats of 16 bits are written.
    pub halves: Halves,
    /// A value of a struct or union from its parts, around the list in braces.
    pub compound: Compound,
    /// The attribute of a type through which any memory may be accessed; empty if all types may.
    pub may_alias: &'static str,
    /// The address of nothing.
    pub null: &'static str,
    /// Infinity in single and in double precision.
    pub infinity: [&'static str; 2],
    /// The statement that is never executed.
    pub unreachable: &'static str,
    /// The definition of the function NAME that stops the program because an integer was divided by zero.
    pub division_fault: &'static str,
    /// The attribute after a declared name that may be unused.
    pub unused: &'static str,
    /// Lines of a file with a function that calls itself on every path to its end.
    pub recursion: &'static str,
    /// Lines of a file in which some lanes of vectors are read from memory, and others are not.
    pub masked_loads: &'static str,
    /// Words that are no names: keywords, and functions that the compiler knows.
    pub reserved: &'static str,
    /// Features of the language.
    pub has: Features,
}

/// Features that a language of the C family may have or lack.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Pointers to functions.
    pub function_pointers: bool,
    /// `goto`.
    pub goto: bool,
    /// Recursive functions.
    pub recursion: bool,
    /// Integers of 64 bits.
    pub long: bool,
    /// Floats of 64 bits.
    pub double: bool,
    /// Functions that only the compiler knows, by the names that programs declare.
    pub device_functions: bool,
    /// GCC's `__builtin_…` functions, and C's `memcpy`.
    pub builtins: bool,
    /// Jumps past the declaration of a variable with a value, which C++ forbids.
    pub jumps_past_declarations: bool,
    /// Names of symbols that differ from the function's name, by `__asm__`.
    pub symbols: bool,
}

/// The syntax that only kernels need.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// The qualifiers before the definition of a kernel.
    pub kernel: &'static str,
    /// The attribute for the extents of a block, where they are known.
    pub bounds: fn([u32; 3]) -> String,
    /// The qualifiers before the declaration of memory of the block.
    pub shared: &'static str,
    /// The statement before and after which memory is written and read as the program says.
    pub fence: &'static str,
    /// Operations among work items, with `{0}` and `{1}` for their arguments; one that is missing is a limitation.
    pub lanes: &'static [(LaneOp, Scope, &'static str)],
    /// Operations of subgroups that need an extension where some lanes do not come to them. The text of a kernel with such an operation is
    /// under a condition, and a note before it is for the runtime: `// KERNEL needs EXTENSION`.
    pub parted: &'static [(LaneOp, &'static str)],
    /// Functions that these operations call, by name, which are written where they are called.
    pub functions: &'static [(&'static str, &'static str)],
    /// The body of a function that gets the value `v`, of type `T`, of a lane. `None` if the language has such a function.
    pub get: Option<&'static str>,
    /// The declaration of the variable by which a block votes, which is `{votes}` in these operations.
    pub votes: &'static str,
    /// Lines at the begin of a kernel's body, and definitions after it.
    pub interface: fn(&Interface) -> [String; 2],
    /// Expressions for the place of the work item in the grid, on each axis; `None` if that is computed.
    pub global_ids: Option<[&'static str; 3]>,
    /// The qualifier of what their addresses point to, besides its space.
    pub atomic_place: &'static str,
    /// Functions for atomic operations; others are made of `cmpxchg`.
    pub atomics: &'static [Atomic],
    /// The end of their names, and of the fence's, where the host and other devices take part.
    pub of_system: &'static str,
}

/// A kernel as others see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The kernel's name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Parameter>,
    /// How it is called.
    pub role: Role,
}

/// A parameter of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type; that of the elements, if it is a channel.
    pub ty: String,
    /// Its kind.
    pub kind: Port,
}

/// Kinds of parameters of kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Port {
    /// A number or an aggregate.
    Value,
    /// The address of memory.
    Memory,
    /// A channel.
    Channel,
}

/// How a kernel is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// By itself.
    Alone,
    /// By itself, or from a kernel that calls several.
    Part,
    /// It calls other kernels, which run at the same time.
    Whole,
}

/// An operation of [`ATOMICS`](nyala_ir::scalar::ATOMICS), or `cmpxchg`, the type on which the function works, its name.
pub type Atomic = (&'static str, Prim, &'static str);

/// How the bits of a value are read as another type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bits {
    /// By `memcpy`.
    Memcpy,
    /// By the members of a union.
    Union,
    /// By functions `as_TYPE`.
    AsType,
}

/// How floats of 16 bits are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halves {
    /// The language does not have them.
    None,
    /// A type of the language.
    Type,
    /// Their bits, in an unsigned integer. Numbers of 16 bits are computed in single precision, where results are exact
    /// before they are rounded, or rounded once without a difference.
    Bits {
        /// Bodies of the functions that convert the bits `x` to single and to double precision.
        widen: [&'static str; 2],
        /// Bodies of the functions that round `x` of single and of double precision, and return the bits.
        narrow: [&'static str; 2],
        /// Bodies of functions that compute on bits `a`, `b` and `c`.
        direct: &'static [(Op, &'static str)],
    },
}

/// How a value of a struct is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compound {
    /// C: `(T){a, b}`.
    Literal,
    /// C++: `T{a, b}`.
    Braces,
}

impl Compound {
    /// The value of the type with these parts, which stand in braces.
    pub fn value(self, ty: &str, parts: &str) -> String {
        match self {
            Compound::Literal => format!("({ty}){parts}"),
            Compound::Braces => format!("{ty}{parts}"),
        }
    }
}

impl Dialect {
    /// The name of a primitive type. `None` if the language has no such type.
    pub fn prim(&self, prim: Prim) -> Option<&'static str> {
        let missing = match prim {
            Prim::F16 => self.halves == Halves::None,
            Prim::F64 => !self.has.double,
            Prim::I64 | Prim::U64 => !self.has.long,
            _ => false,
        };
        if missing {
            return None;
        }
        self.prims.iter().find(|p| p.0 == prim).map(|p| p.1)
    }

    /// Whether a pointer may mean any memory: the space 0 has a qualifier, be it none, or there are no spaces.
    pub fn has_generic_addresses(&self) -> bool {
        self.spaces.is_empty() || self.spaces.iter().any(|s| s.0 == 0)
    }

    /// The qualifier of an address space, followed by a space; empty if it has none.
    pub fn space(&self, space: u8) -> String {
        let word = self.spaces.iter().find(|s| s.0 == space).map_or("", |s| s.1);
        if word.is_empty() { String::new() } else { format!("{word} ") }
    }

    /// Whether variables may be declared where a jump passes by.
    pub fn late_declarations(&self) -> bool {
        self.has.jumps_past_declarations
    }

    /// The end of a literal.
    pub fn suffix(&self, prim: Prim) -> &'static str {
        let all = self.suffixes.iter().chain(self.float_suffixes);
        all.clone().find(|s| s.0 == prim).map_or("", |s| s.1)
    }

    /// The name of a math function on numbers of single or double precision.
    pub fn math(&self, op: Op, prim: Prim) -> Option<&'static str> {
        let names = self.math.iter().find(|m| m.0 == op)?;
        Some(names.1[(prim == Prim::F64) as usize])
    }
}

/// Math functions of C's library, for `f32` and `f64`. CUDA C++ has them by the same names.
pub(crate) const MATH: &[(Op, [&str; 2])] = &[
    (Op::Sqrt, ["sqrtf", "sqrt"]),
    (Op::Abs, ["fabsf", "fabs"]),
    (Op::Floor, ["floorf", "floor"]),
    (Op::Ceil, ["ceilf", "ceil"]),
    (Op::Trunc, ["truncf", "trunc"]),
    (Op::Round, ["roundf", "round"]),
    (Op::Fma, ["fmaf", "fma"]),
    (Op::Copysign, ["copysignf", "copysign"]),
    (Op::Rem, ["fmodf", "fmod"]),
    (Op::Sin, ["sinf", "sin"]),
    (Op::Cos, ["cosf", "cos"]),
    (Op::Tan, ["tanf", "tan"]),
    (Op::Asin, ["asinf", "asin"]),
    (Op::Acos, ["acosf", "acos"]),
    (Op::Atan, ["atanf", "atan"]),
    (Op::Sinh, ["sinhf", "sinh"]),
    (Op::Cosh, ["coshf", "cosh"]),
    (Op::Tanh, ["tanhf", "tanh"]),
    (Op::Exp, ["expf", "exp"]),
    (Op::Exp2, ["exp2f", "exp2"]),
    (Op::Expm1, ["expm1f", "expm1"]),
    (Op::Log, ["logf", "log"]),
    (Op::Log2, ["log2f", "log2"]),
    (Op::Log10, ["log10f", "log10"]),
    (Op::Log1p, ["log1pf", "log1p"]),
    (Op::Cbrt, ["cbrtf", "cbrt"]),
    (Op::Erf, ["erff", "erf"]),
    (Op::Pow, ["powf", "pow"]),
    (Op::Atan2, ["atan2f", "atan2"]),
];

/// Conversions of C's `printf`, where `int` has 32 bits and `long long` 64.
pub(crate) const PRINTF: &[(&str, &str, &str)] = &[
    ("bool", "%s", ""),
    ("char", "%c", "int"),
    ("f32", "%g", "double"),
    ("f64", "%g", "double"),
    ("i8", "%d", "int"),
    ("i16", "%d", "int"),
    ("i32", "%d", "int"),
    ("i64", "%lld", "long long"),
    ("u8", "%u", "unsigned"),
    ("u16", "%u", "unsigned"),
    ("u32", "%u", "unsigned"),
    ("u64", "%llu", "unsigned long long"),
    ("string", "", ""),
];

/// C11 with the extensions that GCC and Clang share.
pub const C: Dialect = Dialect {
    name: "C",
    extensions: |_| String::new(),
    prologue: "\
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
",
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
        (Prim::F16, "_Float16"),
        (Prim::F32, "float"),
        (Prim::F64, "double"),
    ],
    suffixes: &[(Prim::U32, "u"), (Prim::I64, "ll"), (Prim::U64, "ull")],
    float_suffixes: &[(Prim::F32, "f"), (Prim::F16, "f")],
    address: "uintptr_t",
    spaces: &[],
    internal: "static ",
    inline: "static inline ",
    channel: "",
    printf: &[],
    pipeline: "",
    kernels: None,
    work_items: &[],
    restrict: "restrict",
    math: MATH,
    counts: &[
        (Op::Popcount, ["__builtin_popcount", "__builtin_popcountll"]),
        (Op::Clz, ["__builtin_clz", "__builtin_clzll"]),
        (Op::Ctz, ["__builtin_ctz", "__builtin_ctzll"]),
    ],
    aligned: "__attribute__((aligned(N)))",
    bits: Bits::Memcpy,
    halves: Halves::Type,
    compound: Compound::Literal,
    may_alias: "__attribute__((may_alias))",
    null: "NULL",
    infinity: ["INFINITY", "(double)INFINITY"],
    unreachable: "abort()",
    division_fault: "void NAME(void) {\n    raise(SIGFPE);\n    abort();\n}",
    unused: " __attribute__((unused))",
    recursion: "\
// A function that never returns seems to recurse without end; it is left by a function that it calls.
#if defined(__clang__) || __GNUC__ >= 12
#pragma GCC diagnostic ignored \"-Winfinite-recursion\"
#endif
",
    masked_loads: "\
// gcc takes a masked load for one of all lanes, and warns of lanes that are never stored.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"
#endif
",
    reserved: crate::names::RESERVED,
    has: Features {
        function_pointers: true,
        goto: true,
        recursion: true,
        long: true,
        double: true,
        device_functions: false,
        builtins: true,
        jumps_past_declarations: true,
        symbols: true,
    },
};

/// What languages for kernels have in common: C without its library, calls by address and recursion.
pub(crate) const OF_KERNELS: Dialect = Dialect {
    prologue: "",
    float_suffixes: &[(Prim::F32, "f")],
    unreachable: "__builtin_unreachable()",
    division_fault: "",
    unused: "",
    recursion: "",
    masked_loads: "",
    has: Features { function_pointers: false, recursion: false, builtins: false, symbols: false, ..C.has },
    ..C
};

/// Those of them that are C++.
pub(crate) const OF_KERNELS_IN_CPP: Dialect = Dialect {
    printf: PRINTF,
    restrict: "__restrict__",
    bits: Bits::Union,
    compound: Compound::Braces,
    may_alias: "",
    null: "nullptr",
    has: Features { jumps_past_declarations: false, ..OF_KERNELS.has },
    ..OF_KERNELS
};

/// Syntax of kernels without anything that only some languages need.
pub(crate) const PLAIN_KERNELS: Kernels = Kernels {
    kernel: "",
    bounds: |_| String::new(),
    shared: "",
    fence: "",
    lanes: &[],
    parted: &[],
    functions: &[],
    get: None,
    votes: "",
    interface: |_| [String::new(), String::new()],
    global_ids: None,
    atomic_place: "",
    atomics: &[],
    of_system: "",
};
