//! What differs between the dialects, as tables of words.
//!
//! Separate, since a word is looked up here only: the grammar asks whether it is a name.

use nyala_ir::Prim;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Sierra,
    /// That of ISPC's programs.
    Ispc,
    StagedC,
}

/// Words that are no names: of all dialects.
const C: [&str; 33] = [
    "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "false",
    "float", "for", "goto", "if", "inline", "int", "long", "return", "short", "signed", "sizeof", "static", "struct",
    "switch", "true", "typedef", "union", "unsigned", "void", "while",
];

/// Words that are no names in Sierra and in ISPC's programs.
const OF_LANES: [&str; 8] = ["delete", "new", "NULL", "operator", "template", "typename", "uniform", "varying"];

/// Words that are no names in Sierra: its own, and those of C++ that it lacks.
const SIERRA: [&str; 19] = [
    "auto",
    "class",
    "constexpr",
    "current_mask",
    "for_each_active",
    "for_each_unique",
    "namespace",
    "nullptr",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "scalar",
    "simd",
    "this",
    "throw",
    "try",
    "using",
];

const ISPC: [&str; 25] = [
    "cbreak",
    "ccontinue",
    "creturn",
    "cdo",
    "cfor",
    "cif",
    "cwhile",
    "export",
    "foreach",
    "foreach_active",
    "foreach_tiled",
    "foreach_unique",
    "launch",
    "noinline",
    "register",
    "soa",
    "sync",
    "task",
    "unmasked",
    "volatile",
    "invoke_sycl",
    "__attribute__",
    "__declspec",
    "__regcall",
    "__vectorcall",
];

/// `always` and `never` are values.
const STAGED: [&str; 3] = ["always", "never", "stage"];

/// Names of numbers that are no keywords.
const NUMBERS: [(&str, Prim); 17] = [
    ("int8", Prim::I8),
    ("int16", Prim::I16),
    ("int32", Prim::I32),
    ("int64", Prim::I64),
    ("uint8", Prim::U8),
    ("uint16", Prim::U16),
    ("uint32", Prim::U32),
    ("uint64", Prim::U64),
    ("int8_t", Prim::I8),
    ("int16_t", Prim::I16),
    ("int32_t", Prim::I32),
    ("int64_t", Prim::I64),
    ("uint8_t", Prim::U8),
    ("uint16_t", Prim::U16),
    ("uint32_t", Prim::U32),
    ("uint64_t", Prim::U64),
    ("size_t", Prim::U64),
];

/// More of them in ISPC's.
const NUMBERS_OF_ISPC: [(&str, Prim); 5] = [
    ("float16", Prim::F16),
    ("intptr_t", Prim::I64),
    ("ptrdiff_t", Prim::I64),
    ("uint", Prim::U32),
    ("uintptr_t", Prim::U64),
];

impl Dialect {
    pub(crate) fn is_keyword(self, word: &str) -> bool {
        let own: [&[&str]; 2] = match self {
            Dialect::Sierra => [&OF_LANES, &SIERRA],
            Dialect::Ispc => [&OF_LANES, &ISPC],
            Dialect::StagedC => [&STAGED, &[]],
        };
        C.contains(&word) || own.iter().any(|words| words.contains(&word))
    }

    /// The number that a name means, unless the program has another meaning for it.
    pub(crate) fn number(self, name: &str) -> Option<Prim> {
        let known: [&[(&str, Prim)]; 2] = match self {
            Dialect::Sierra => [&NUMBERS, &[]],
            Dialect::Ispc => [&NUMBERS, &NUMBERS_OF_ISPC],
            Dialect::StagedC => [&[], &[]],
        };
        known.into_iter().flatten().find(|n| n.0 == name).map(|n| n.1)
    }

    /// Types that are around a program.
    pub(crate) fn types(self) -> &'static [&'static str] {
        match self {
            Dialect::Sierra => &[],
            Dialect::Ispc => &["RNGState"],
            Dialect::StagedC => &["stage"],
        }
    }
}
