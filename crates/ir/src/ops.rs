//! The op table: everything the compiler knows about an operation that is not code. Printer and reader keywords,
//! arity, result rule and effect class come from here.

/// The effect of an operation besides computing its result (`docs/design/targets.md`, Effects of operations).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// May be computed anywhere.
    Total,
    /// Reads memory or may fault: takes a `mem`, returns none, so equal ones merge.
    Partial,
    /// Takes a `mem` and returns the next one.
    Write,
    /// Lanes wait for each other: it may not be duplicated, nor moved to where fewer lanes execute it. Only calls have
    /// this effect ([`crate::LaneOp`]), no operation.
    Convergent(Scope),
}

/// Which lanes take part in an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// Those of a `vectorize`; in a kernel those that run in lockstep (a warp, a wavefront).
    Subgroup,
    /// All work items of a block.
    Block,
}

/// How the type of the result follows from the operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The type of this operand.
    Same(usize),
    /// `bool`.
    Bool,
    /// A bool, or a vector of as many bools as the operands have lanes.
    Truth,
    /// The next `mem`.
    Mem,
    /// Given by the code that builds the operation; printed as `op[ty](…)`.
    Stated,
    /// Follows from the operands by a rule of its own (`rules.rs`).
    Own,
}

macro_rules! ops {
    ($($variant:ident $name:literal $arity:literal $rule:expr, $effect:ident, $doc:literal;)*) => {
        /// A primitive operation. Those on numbers and bools work on vectors, too, lane by lane.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Op { $(#[doc = $doc] $variant,)* }

        impl Op {
            /// All operations, in the order of the table.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            /// Keyword in IR text.
            pub fn name(self) -> &'static str {
                match self { $(Op::$variant => $name,)* }
            }
            /// Number of operands, `-1` for any.
            pub fn arity(self) -> i32 {
                match self { $(Op::$variant => $arity,)* }
            }
            /// How the type of the result follows from the operands.
            pub fn rule(self) -> Rule {
                use Rule::*;
                match self { $(Op::$variant => $rule,)* }
            }
            /// The operation's effects besides computing its result.
            pub fn effect(self) -> Effect {
                match self { $(Op::$variant => Effect::$effect,)* }
            }
            /// The sentence of the table: operands, result, what is undefined.
            pub fn doc(self) -> &'static str {
                match self { $(Op::$variant => $doc,)* }
            }
        }
    };
}

ops! {
    Add "add" 2 Same(0), Total, "Sum; integers modulo 2^n.";
    Sub "sub" 2 Same(0), Total, "Difference; integers modulo 2^n.";
    Mul "mul" 2 Same(0), Total, "Product; integers modulo 2^n.";
    Div "div" 2 Same(0), Total, "Quotient of floats, or of integers where it cannot fault.";
    Rem "rem" 2 Same(0), Total, "Remainder, of the dividend's sign, where it cannot fault.";
    PDiv "pdiv" 3 Same(1), Partial, "`pdiv(mem, a, b)`: integer quotient; faults if `b` is 0 or the result overflows.";
    PRem "prem" 3 Same(1), Partial, "`prem(mem, a, b)`: integer remainder; faults as `pdiv` does.";
    And "and" 2 Same(0), Total, "Bitwise and; of bools too.";
    Or "or" 2 Same(0), Total, "Bitwise or; of bools too.";
    Xor "xor" 2 Same(0), Total, "Bitwise exclusive or; of bools too.";
    Shl "shl" 2 Same(0), Total, "Left shift, the amount taken modulo the width.";
    Shr "shr" 2 Same(0), Total, "Right shift, arithmetic if signed, the amount taken modulo the width.";
    Eq "eq" 2 Truth, Total, "Equal; numbers, bools, pointers. Floats: ordered.";
    Ne "ne" 2 Truth, Total, "Not equal; true if one is NaN.";
    Lt "lt" 2 Truth, Total, "Less.";
    Le "le" 2 Truth, Total, "Less or equal.";
    Gt "gt" 2 Truth, Total, "Greater.";
    Ge "ge" 2 Truth, Total, "Greater or equal.";
    Cast "cast" 1 Stated, Total, "Conversion of numbers and bools; float to integer saturates, to bool tests `!= 0`.";
    Bitcast "bitcast" 1 Stated, Total, "The same bits as another type of the same size; pointers and integers too.";
    Select "select" 3 Same(1), Total, "`select(c, a, b)`: `a` if `c`, else `b`; lane by lane if `c` is a vector.";
    Tuple "tuple" -1 Own, Total, "A tuple of the operands.";
    Struct "struct" -1 Stated, Total, "A struct of the operands, in the order of its fields.";
    Array "array" -1 Stated, Total, "An array or vector of the operands.";
    Splat "splat" 1 Stated, Total, "An array or vector with every element the operand.";
    Extract "extract" 2 Own, Total, "`extract(agg, idx)`: a part; the index a literal but for vectors. Out of range: undefined.";
    Shuffle "shuffle" 3 Own, Total, "`shuffle(a, b, idx)`: the lanes of two vectors, one after the other, that a third names; out of range: undefined.";
    Insert "insert" 3 Same(0), Total, "`insert(agg, idx, v)`: the aggregate with one part replaced.";
    Lea "lea" 2 Own, Total, "`lea(ptr, idx)`: address of a part of what `ptr` points to.";
    Load "load" 2 Own, Partial, "`load(mem, ptr)`.";
    Store "store" 3 Mem, Write, "`store(mem, ptr, v)`: the next mem.";
    Slot "slot" 1 Stated, Write, "`slot[T](mem)`: `(mem, &T)`, a new local variable of the function, its contents undefined.";
    Alloc "alloc" 2 Stated, Write, "`alloc[T](mem, n)`: `(mem, &[T])`, n (i64) elements on the heap, their contents undefined.";
    Atomic "atomic" 6 Own, Write, "`atomic(mem, op, ptr, v, order, scope)`: `(mem, T)`, the old value; the new one is `op` of it and v. Numbers are LLVM's ([`crate::scalar::ATOMICS`], [`crate::scalar::ORDERS`]), literals in compiled code. The scope says among whom it is atomic: an integer, a place in [`crate::scalar::SCOPES`], or the address of the name.";
    AtomicLoad "atomic_load" 4 Own, Write, "`atomic_load(mem, ptr, order, scope)`: `(mem, T)`.";
    AtomicStore "atomic_store" 5 Mem, Write, "`atomic_store(mem, ptr, v, order, scope)`: the next mem.";
    Cmpxchg "cmpxchg" 7 Own, Write, "`cmpxchg(mem, ptr, expected, new, success, failure, scope)`: `(mem, (T, bool))`, the old value, and whether it was the expected one and is replaced; two orders.";
    CmpxchgWeak "cmpxchg_weak" 7 Own, Write, "`cmpxchg` that may fail spuriously.";
    Fence "fence" 3 Mem, Write, "`fence(mem, order, scope)`: the next mem.";
    Prefetch "prefetch" 4 Mem, Write, "`prefetch(mem, ptr, write, locality)`: the next mem; asks for memory near `ptr`, which is going to be read or, if `write` (i32) is 1, written, and used again the more the higher `locality` (i32, 0 to 3). Never faults.";
    Aligned "aligned" 2 Same(0), Total, "`aligned(ptr, n)`: the address, of which the program promises that n, a power of two, divides it. It has an effect only if n is a literal.";
    Scope "scope" 1 Own, Write, "`scope(mem)`: `(mem, i32)`, a call of a function with restricted parameters.";
    Restrict "restrict" 3 Same(0), Total, "`restrict(ptr, scope, kind)`: the address, as a parameter of that call. Memory that is modified through one of kind 1 is not accessed through others of the call, nor through addresses derived from them. The kind is a literal, 0 or 1.";
    WorkItem "work_item" 3 Stated, Partial, "`work_item[i32](mem, what, axis)`: a number of the work item: `what` is a place in [`crate::WorkItem::ALL`], or [`crate::lanes::IN_KERNEL`], a literal; axes are 0 to 2, literals in compiled code. See [`crate::lanes`].";
    Pipeline "pipeline" 2 Mem, Write, "`pipeline(mem, interval)`: the next mem; asks for hardware that begins a round of the loop around it every `interval` (i32) cycles. Nothing on a CPU.";
    Watch "watch" 2 Mem, Write, "`watch(mem, v)`: the next mem; `ensure_no_branch(v)` stands there. Nothing at run time.";
    DebugValue "debug_value" 3 Mem, Write, "`debug_value(mem, v, nth)`: the next mem; the variable that is declared at the operation's place has the value `v`, for debuggers. It is the parameter `nth` of its function, a literal; 0 for others. Nothing at run time.";
    Known "known" 1 Bool, Total, "`?e`: whether partial evaluation knows `e`; false when nobody evaluates it partially.";
    Hlt "hlt" 1 Same(0), Total, "`$e`: the value, unknown to partial evaluation.";
    Unfold "unfold" 1 Same(0), Total, "`@@f`: the callee, to be unfolded whatever its filters say.";
    Run "run" 1 Same(0), Total, "`@f`: the callee, its call to be evaluated as far as it goes.";
    Popcount "popcount" 1 Same(0), Total, "Number of one bits of an integer.";
    Clz "clz" 1 Same(0), Total, "Number of zero bits above the highest one bit; the width for 0.";
    Ctz "ctz" 1 Same(0), Total, "Number of zero bits below the lowest one bit; the width for 0.";
    Pext "pext" 2 Same(0), Total, "The bits of an integer where another has ones, moved together to the low end.";
    Pdep "pdep" 2 Same(0), Total, "The low bits of an integer, moved to where another has ones, in order.";
    Bits "bits" 1 Stated, Total, "The bools of a vector as the low bits of an integer, lane 0 the lowest; its other bits are 0.";
    Sqrt "sqrt" 1 Same(0), Total, "Square root; exact.";
    Abs "abs" 1 Same(0), Total, "Absolute value of a float.";
    Floor "floor" 1 Same(0), Total, "Rounds down.";
    Ceil "ceil" 1 Same(0), Total, "Rounds up.";
    Trunc "trunc" 1 Same(0), Total, "Rounds toward zero.";
    Round "round" 1 Same(0), Total, "Rounds to the nearest, halves away from zero.";
    Fmin "fmin" 2 Same(0), Total, "The smaller, of zeros the negative one; the other if one is NaN: minimumNumber of IEEE 754-2019.";
    Fmax "fmax" 2 Same(0), Total, "The greater, of zeros the positive one; the other if one is NaN: maximumNumber of IEEE 754-2019.";
    Fma "fma" 3 Same(0), Total, "`a * b + c`, rounded once.";
    Copysign "copysign" 2 Same(0), Total, "The first operand with the sign of the second.";
    Rcp "rcp" 1 Same(0), Total, "About the reciprocal of an `f32`, as the processor's `rcpps` has it: within 1.5 / 4096 of it, and not the same on all processors.";
    Rsqrt "rsqrt" 1 Same(0), Total, "About the reciprocal of the square root of an `f32`, as the processor's `rsqrtps` has it.";
    Rcp14 "rcp14" 1 Same(0), Total, "About the reciprocal of an `f32` or `f64`, as `vrcp14ps` of AVX-512 has it: within 1 / 16384 of it.";
    Rsqrt14 "rsqrt14" 1 Same(0), Total, "About the reciprocal of the square root of an `f32` or `f64`, as `vrsqrt14ps` of AVX-512 has it.";
    Sin "sin" 1 Same(0), Total, "Sine.";
    Cos "cos" 1 Same(0), Total, "Cosine.";
    Tan "tan" 1 Same(0), Total, "Tangent.";
    Asin "asin" 1 Same(0), Total, "Arc sine.";
    Acos "acos" 1 Same(0), Total, "Arc cosine.";
    Atan "atan" 1 Same(0), Total, "Arc tangent.";
    Sinh "sinh" 1 Same(0), Total, "Hyperbolic sine.";
    Cosh "cosh" 1 Same(0), Total, "Hyperbolic cosine.";
    Tanh "tanh" 1 Same(0), Total, "Hyperbolic tangent.";
    Exp "exp" 1 Same(0), Total, "Exponential.";
    Exp2 "exp2" 1 Same(0), Total, "Power of two.";
    Expm1 "expm1" 1 Same(0), Total, "Exponential less one.";
    Log "log" 1 Same(0), Total, "Natural logarithm.";
    Log2 "log2" 1 Same(0), Total, "Binary logarithm.";
    Log10 "log10" 1 Same(0), Total, "Decimal logarithm.";
    Log1p "log1p" 1 Same(0), Total, "Logarithm of one more.";
    Cbrt "cbrt" 1 Same(0), Total, "Cube root.";
    Erf "erf" 1 Same(0), Total, "Error function.";
    Pow "pow" 2 Same(0), Total, "Power; a square is the rounded product.";
    Atan2 "atan2" 2 Same(0), Total, "Angle of a vector.";
}

/// Matches operations that tell partial evaluation what to do. Flat code has none of them.
#[macro_export]
macro_rules! annotation {
    () => {
        $crate::Op::Known | $crate::Op::Hlt | $crate::Op::Unfold | $crate::Op::Run
    };
}

/// Matches math functions of one float.
#[macro_export]
macro_rules! unary_math {
    () => {
        $crate::Op::Sqrt
            | $crate::Op::Abs
            | $crate::Op::Floor
            | $crate::Op::Ceil
            | $crate::Op::Trunc
            | $crate::Op::Round
            | $crate::Op::Rcp
            | $crate::Op::Rsqrt
            | $crate::Op::Rcp14
            | $crate::Op::Rsqrt14
            | $crate::Op::Sin
            | $crate::Op::Cos
            | $crate::Op::Tan
            | $crate::Op::Asin
            | $crate::Op::Acos
            | $crate::Op::Atan
            | $crate::Op::Sinh
            | $crate::Op::Cosh
            | $crate::Op::Tanh
            | $crate::Op::Exp
            | $crate::Op::Exp2
            | $crate::Op::Expm1
            | $crate::Op::Log
            | $crate::Op::Log2
            | $crate::Op::Log10
            | $crate::Op::Log1p
            | $crate::Op::Cbrt
            | $crate::Op::Erf
    };
}

/// Matches math functions of two floats.
#[macro_export]
macro_rules! binary_math {
    () => {
        $crate::Op::Fmin | $crate::Op::Fmax | $crate::Op::Copysign | $crate::Op::Pow | $crate::Op::Atan2
    };
}

impl Op {
    /// The operation with this keyword ([`Op::name`]).
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// Whether it is a math function of floats, exact or not.
    pub fn is_math(self) -> bool {
        self >= Op::Sqrt
    }

    /// Whether it is a math function whose result is the same everywhere, so that it folds (`docs/design/targets.md`,
    /// Math functions).
    pub fn is_exact_math(self) -> bool {
        self >= Op::Sqrt && self <= Op::Copysign
    }

    /// Whether it is an approximation instruction of x86-64, whose results differ between processors.
    pub fn is_approximate(self) -> bool {
        self >= Op::Rcp && self <= Op::Rsqrt14
    }

    /// Whether it works lane by lane on vectors; false for loads and stores.
    pub fn is_lane_wise(self) -> bool {
        matches!(
            self,
            Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Div
                | Op::Rem
                | Op::PDiv
                | Op::PRem
                | Op::And
                | Op::Or
                | Op::Xor
                | Op::Shl
                | Op::Shr
                | Op::Cast
                | Op::Select
                | Op::Popcount
                | Op::Clz
                | Op::Ctz
                | Op::Pext
                | Op::Pdep
        ) || self.is_comparison()
            || self.is_math()
    }

    /// Whether the operation may be fast on floats (see [`crate::World::set_fast`]).
    pub fn can_be_fast(self) -> bool {
        matches!(self, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::Select)
            || self.is_comparison()
            || self.is_math()
    }

    /// For operations that write memory, the positions of the address and of the value written among the operands.
    pub fn writes(self) -> Option<(usize, usize)> {
        match self {
            Op::Store | Op::AtomicStore => Some((1, 2)),
            Op::Atomic => Some((2, 3)),
            Op::Cmpxchg | Op::CmpxchgWeak => Some((1, 3)),
            _ => None,
        }
    }

    /// Positions of the operands that must be literals in compiled code: operations and memory orders of atomics.
    pub fn literal_operands(self) -> std::ops::Range<usize> {
        match self {
            Op::Atomic => 4..5,
            Op::AtomicLoad => 2..3,
            Op::AtomicStore => 3..4,
            Op::Cmpxchg | Op::CmpxchgWeak => 4..6,
            Op::Fence => 1..2,
            _ => 0..0,
        }
    }

    /// Position of the scope among the operands of an atomic operation or a fence.
    pub fn scope_operand(self) -> Option<usize> {
        match self {
            Op::Atomic | Op::AtomicLoad | Op::AtomicStore | Op::Cmpxchg | Op::CmpxchgWeak | Op::Fence => {
                Some(self.arity() as usize - 1)
            }
            _ => None,
        }
    }

    /// Whether it is one of `==`, `!=`, `<`, `<=`, `>`, `>=`.
    pub fn is_comparison(self) -> bool {
        matches!(self, Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge)
    }
}
