//! The register programs that functions are compiled to.

use crate::leaves::{Layout, Leaf};
use crate::restricted::Access;
use nyala_base::Span;
use nyala_ir::{Builtin, Op, Prim};
use std::rc::Rc;

/// A word of a frame.
pub type Reg = u32;
/// Index of a compiled function.
pub type FuncIdx = u32;
/// Index into [`Machine`](crate::machine::Machine)'s entry points.
pub type EntryIdx = u32;

/// Stands for no entry point.
pub const NO_ENTRY: EntryIdx = u32::MAX;

/// The content of an uninitialized word of a local variable. A program computes this value with a probability of 2^-64.
pub const POISON: u64 = 0x7ff4_6e79_616c_a5a5;

/// One instruction. `d` is the result's register, or its first one; lists are ranges of [`Code::lists`].
#[derive(Clone, Copy, Debug)]
pub enum Inst {
    Const {
        d: Reg,
        index: u32,
    },
    Copy {
        d: Reg,
        s: Reg,
    },
    /// Copies a scalar local variable; it must be initialized.
    CopyChecked {
        d: Reg,
        s: Reg,
    },
    CopyMany {
        d: Reg,
        s: Reg,
        n: u32,
    },
    /// Makes words uninitialized.
    Poison {
        d: Reg,
        n: u32,
    },
    /// Checks that a scalar taken out of an aggregate is initialized.
    CheckInit {
        a: Reg,
    },
    AddI32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    SubI32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulI32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddI32Imm {
        d: Reg,
        a: Reg,
        imm: i32,
    },
    AddI64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    SubI64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulI64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddI64Imm {
        d: Reg,
        a: Reg,
        imm: i32,
    },
    AddF32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulF32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddF64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulF64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    SubF32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    SubF64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// `&&` or `||` of two values: each operand may decide, whether the other one is initialized or not.
    BoolOp {
        deciding: bool,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    And {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Or {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Xor {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// Arithmetic of any kind, checked.
    Arith {
        op: Op,
        prim: Prim,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Compare {
        op: Op,
        prim: Prim,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Cast {
        from: Prim,
        to: Prim,
        d: Reg,
        a: Reg,
    },
    /// Reinterprets the bits of a number as a number of another type.
    Renormalize {
        from: Prim,
        to: Prim,
        d: Reg,
        a: Reg,
    },
    /// Begins a call of a function with restricted parameters.
    BeginRestricted {
        d: Reg,
    },
    /// Checks an access to the address by a parameter of the call.
    Restricted {
        call: Reg,
        a: Reg,
        access: Access,
    },
    /// Copies an address, and faults unless it is divisible by `n`.
    Aligned {
        d: Reg,
        a: Reg,
        n: Reg,
    },
    Math {
        op: Op,
        prim: Prim,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Select {
        d: Reg,
        cond: Reg,
        a: Reg,
        b: Reg,
        n: u32,
    },
    /// Copies the lane with index `idx` of a vector of `n` lanes.
    Lane {
        d: Reg,
        a: Reg,
        idx: Reg,
        n: u32,
    },
    /// Replaces the lane with index `idx` of the vector of `n` lanes that begins at `d`.
    SetLane {
        d: Reg,
        idx: Reg,
        s: Reg,
        n: u32,
    },
    /// Copies the lane with index `idx` of two concatenated vectors of `n` lanes each.
    PickLane {
        d: Reg,
        a: Reg,
        b: Reg,
        idx: Reg,
        n: u32,
    },
    /// Packs the bools in `n` registers into the bits of an integer.
    Bits {
        prim: Prim,
        d: Reg,
        a: Reg,
        n: u32,
    },
    /// Computes `d = a + b * size`; the index `b` is sign-extended.
    Lea {
        d: Reg,
        a: Reg,
        b: Reg,
        size: u32,
    },
    LeaImm {
        d: Reg,
        a: Reg,
        offset: u32,
    },
    Load {
        d: Reg,
        a: Reg,
        leaf: Leaf,
    },
    /// Reads from `a + b * size`.
    LoadAt {
        d: Reg,
        a: Reg,
        b: Reg,
        size: u32,
        leaf: Leaf,
    },
    LoadMany {
        d: Reg,
        a: Reg,
        layout: u32,
    },
    Store {
        a: Reg,
        s: Reg,
        leaf: Leaf,
    },
    StoreAt {
        a: Reg,
        b: Reg,
        size: u32,
        s: Reg,
        leaf: Leaf,
    },
    StoreMany {
        a: Reg,
        s: Reg,
        layout: u32,
    },
    /// Replaces the value of a location by `op` of it and `s`. The result is the old value.
    Atomic {
        d: Reg,
        a: Reg,
        op: Reg,
        s: Reg,
        leaf: Leaf,
    },
    /// Replaces the value of a location by `s` if it is `expected`. The results are the old value, and whether it was
    /// replaced.
    Cmpxchg {
        d: Reg,
        a: Reg,
        expected: Reg,
        s: Reg,
        leaf: Leaf,
    },
    /// Reinterprets the bytes of a value as a value of another type.
    Reinterpret {
        d: Reg,
        a: Reg,
        from: u32,
        to: u32,
    },
    /// Allocates memory for a local variable of the frame, uninitialized.
    Slot {
        d: Reg,
        layout: u32,
        /// Each execution allocates a new variable, which does not end with the frame.
        outlives: bool,
    },
    Alloc {
        d: Reg,
        n: Reg,
        layout: u32,
    },
    /// Makes a function value with captured words.
    MakeClosure {
        d: Reg,
        entry: EntryIdx,
        list: u32,
    },
    /// Makes a value of a continuation of this frame.
    MakeCont {
        d: Reg,
        entry: EntryIdx,
    },
    Jump {
        to: u32,
    },
    Branch {
        cond: Reg,
        then: u32,
        els: u32,
    },
    BranchCompare {
        op: Op,
        prim: Prim,
        a: Reg,
        b: Reg,
        then: u32,
        els: u32,
    },
    /// Branches on the equality of integers or bools.
    BranchEq {
        a: Reg,
        b: Reg,
        then: u32,
        els: u32,
    },
    BranchEqImm {
        a: Reg,
        imm: i32,
        then: u32,
        els: u32,
    },
    /// Branches on `a < b`, for signed integers.
    BranchLt {
        a: Reg,
        b: Reg,
        then: u32,
        els: u32,
    },
    BranchLtImm {
        a: Reg,
        imm: i32,
        then: u32,
        els: u32,
    },
    /// Calls a function. The list has the words of its parameters, then the captured ones. A continuation of this frame
    /// that is made here follows as the last word, unless `then` is [`NO_ENTRY`].
    Call {
        func: FuncIdx,
        list: u32,
        leave: Leave,
        then: EntryIdx,
    },
    /// Ends the function as [`Leave::Free`] does, with a call of itself whose arguments are already in the parameters'
    /// registers.
    Again {
        to: u32,
    },
    /// Calls a value; the list has the arguments' words.
    CallValue {
        callee: Reg,
        list: u32,
        leave: Leave,
    },
    /// Calls a foreign function; the list has the arguments' words, the return continuation last.
    CallForeign {
        foreign: u32,
        list: u32,
        leave: Leave,
    },
    /// Starts a loop of lanes, a kernel, or a parallel loop. The list has the arguments of the builtin except `mem`.
    Lanes {
        builtin: Builtin,
        list: u32,
        leave: Leave,
    },
    /// Begins an atomic operation at an address, whose accesses follow, or is a fence. `order` is LLVM's number.
    Synchronize {
        /// `None` for a fence.
        a: Option<Reg>,
        order: u8,
        reads: bool,
        writes: bool,
    },
    /// Ends an atomic operation.
    EndAtomic,
    /// A number of the current work item.
    WorkItem {
        d: Reg,
        what: Reg,
        axis: Reg,
    },
    /// Reports something that cannot happen, as a bug of the compiler.
    Fail {
        text: u32,
    },
    /// Refuses something that the interpreter does not support, or with `by_all`, no engine does.
    Refuse {
        text: u32,
        by_all: bool,
    },
}

impl Inst {
    /// The registers that the instruction checks to be initialized.
    pub fn checked(&self) -> [Option<Reg>; 2] {
        match *self {
            Inst::AddI32 { a, b, .. }
            | Inst::SubI32 { a, b, .. }
            | Inst::MulI32 { a, b, .. }
            | Inst::AddI64 { a, b, .. }
            | Inst::SubI64 { a, b, .. }
            | Inst::MulI64 { a, b, .. }
            | Inst::Arith { a, b, .. }
            | Inst::Compare { a, b, .. }
            | Inst::BranchCompare { a, b, .. }
            | Inst::BranchEq { a, b, .. }
            | Inst::BranchLt { a, b, .. } => [Some(a), Some(b)],
            Inst::AddI32Imm { a, .. }
            | Inst::AddI64Imm { a, .. }
            | Inst::Cast { a, .. }
            | Inst::Branch { cond: a, .. }
            | Inst::BranchEqImm { a, .. }
            | Inst::BranchLtImm { a, .. } => [Some(a), None],
            _ => [None, None],
        }
    }

    /// The target of a branch if its condition holds, and the target if not.
    pub fn branch_targets(&mut self) -> Option<[&mut u32; 2]> {
        match self {
            Inst::Branch { then, els, .. }
            | Inst::BranchCompare { then, els, .. }
            | Inst::BranchEq { then, els, .. }
            | Inst::BranchEqImm { then, els, .. }
            | Inst::BranchLt { then, els, .. }
            | Inst::BranchLtImm { then, els, .. } => Some([then, els]),
            _ => None,
        }
    }
}

/// How a call treats the current frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// The frame stays: the call gets a continuation of it.
    Stay,
    /// The function is over, and none of its local variables are in memory.
    Free,
    /// The function is over, and its local variables in memory are freed.
    FreeSlots,
    /// The function is over, but the frame may still be in use: it is found by marking.
    Forget,
    /// The call gets the address of a local variable: the frame ends when the callee returns.
    Release,
    /// A function that does not return, or a block of another function, gets the address of a local variable: the frame
    /// ends together with the frame of that function.
    Keep,
}

/// Instructions and the tables that they index, of one function at first, then of all.
#[derive(Debug, Default)]
pub struct Code {
    pub insts: Vec<Inst>,
    pub spans: Vec<Span>,
    pub consts: Vec<u64>,
    /// Source registers of calls, one list after the other, each preceded by its length.
    pub lists: Vec<Reg>,
    pub layouts: Vec<Rc<Layout>>,
    pub texts: Vec<String>,
}

impl Code {
    pub fn list(&self, at: u32) -> &[Reg] {
        let n = self.lists[at as usize] as usize;
        &self.lists[at as usize + 1..at as usize + 1 + n]
    }

    /// Appends another function's code. Returns the index of its first instruction.
    pub fn append(&mut self, other: Code) -> u32 {
        let start = self.insts.len() as u32;
        let (consts, lists) = (self.consts.len() as u32, self.lists.len() as u32);
        let (layouts, texts) = (self.layouts.len() as u32, self.texts.len() as u32);
        self.insts.extend(other.insts.into_iter().map(|mut inst| {
            match &mut inst {
                Inst::Const { index, .. } | Inst::LeaImm { offset: index, .. } => *index += consts,
                Inst::LoadMany { layout, .. }
                | Inst::StoreMany { layout, .. }
                | Inst::Slot { layout, .. }
                | Inst::Alloc { layout, .. } => *layout += layouts,
                Inst::Reinterpret { from, to, .. } => {
                    *from += layouts;
                    *to += layouts;
                }
                Inst::MakeClosure { list, .. }
                | Inst::Call { list, .. }
                | Inst::CallValue { list, .. }
                | Inst::CallForeign { list, .. }
                | Inst::Lanes { list, .. } => *list += lists,
                Inst::Jump { to } | Inst::Again { to } => *to += start,
                Inst::Fail { text } | Inst::Refuse { text, .. } => *text += texts,
                _ => {}
            }
            inst.branch_targets().into_iter().flatten().for_each(|to| *to += start);
            inst
        }));
        self.spans.extend(other.spans);
        self.consts.extend(other.consts);
        self.lists.extend(other.lists);
        self.layouts.extend(other.layouts);
        self.texts.extend(other.texts);
        start
    }
}

/// A compiled function.
#[derive(Debug, Default)]
pub struct Function {
    pub name: String,
    /// Its first instruction.
    pub start: u32,
    pub n_regs: u32,
    /// The number of words of parameters, which are the first registers.
    pub n_params: u32,
    /// The number of captured words, which are the next registers.
    pub n_captured: u32,
    /// The parameter that is the return continuation.
    pub ret: Option<Reg>,
    /// The register with the continuation at which a released frame goes on.
    pub release: Reg,
    /// That continuation may be one of this very frame, which then ends when it is abandoned.
    pub may_hold_own: bool,
    /// Registers that hold functions or continuations.
    pub closures: Vec<Reg>,
    /// Those of the captured words that hold functions or continuations.
    pub captured_closures: Vec<Reg>,
    /// Registers that hold addresses of the frame's variables in memory, 0 for those not allocated yet.
    pub slots: Vec<Reg>,
    /// Entry points of its blocks, to be moved with the code.
    pub entries: Vec<EntryIdx>,
}

/// The target of a closure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The end of the run: what `run` returns.
    Halt,
    /// Ends the frame, if nothing else may hold it, then goes on with its function's return continuation.
    Release,
    /// A function, not necessarily compiled yet.
    Func(FuncIdx),
    /// A continuation in a function's frame.
    Block {
        func: FuncIdx,
        pc: u32,
        params: Reg,
    },
    Foreign(u32),
    /// The end of a lane.
    LaneEnd,
}
