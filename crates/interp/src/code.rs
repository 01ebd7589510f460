//! The register programs that functions are compiled to.

use crate::leaves::{Layout, Leaf};
use crate::restricted::Access;
use nyala_base::Span;
use nyala_ir::{Op, Prim};
use std::rc::Rc;

/// A word of a frame.
pub type Reg = u32;
/// Index of a compiled function.
pub type FuncIdx = u32;
/// Index into [`Machine`](crate::machine::Machine)'s entry points.
pub type EntryIdx = u32;

/// None of the entry points.
pub const NO_ENTRY: EntryIdx = u32::MAX;

/// What an uninitialized word of a local variable holds. A program computes it with a chance of one in 2^64.
pub const POISON: u64 = 0x7ff4_6e79_616c_a5a5;

/// One instruction. `d` is where the result goes; lists are ranges of [`Code::lists`].
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
    /// A scalar out of an aggregate must be initialized.
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
    /// Any arithmetic, checked.
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
    /// The same bits as a number of another type.
    Renormalize {
        from: Prim,
        to: Prim,
        d: Reg,
        a: Reg,
    },
    /// A call of a function with restricted parameters begins.
    BeginRestricted {
        d: Reg,
    },
    /// An access at the address, by a parameter of the call.
    Restricted {
        call: Reg,
        a: Reg,
        access: Access,
    },
    /// Copies an address that a number divides; reports one that it does not.
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
    /// The lane of `n` that a register names.
    Lane {
        d: Reg,
        a: Reg,
        idx: Reg,
        n: u32,
    },
    /// Replaces that lane of the `n` that begin at `d`.
    SetLane {
        d: Reg,
        idx: Reg,
        s: Reg,
        n: u32,
    },
    /// The lane of two vectors of `n` lanes that a register names.
    PickLane {
        d: Reg,
        a: Reg,
        b: Reg,
        idx: Reg,
        n: u32,
    },
    /// The bools of `n` registers as bits of an integer.
    Bits {
        prim: Prim,
        d: Reg,
        a: Reg,
        n: u32,
    },
    /// `d = a + b * size`, the index extended by its sign.
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
    /// The old value of a location, which becomes `op` of it and `s`.
    Atomic {
        d: Reg,
        a: Reg,
        op: Reg,
        s: Reg,
        leaf: Leaf,
    },
    /// The old value of a location, and whether it is `expected` and is replaced by `s`.
    Cmpxchg {
        d: Reg,
        a: Reg,
        expected: Reg,
        s: Reg,
        leaf: Leaf,
    },
    /// A value as bytes, then as another value.
    Reinterpret {
        d: Reg,
        a: Reg,
        from: u32,
        to: u32,
    },
    /// Memory for a local variable of the frame, uninitialized.
    Slot {
        d: Reg,
        layout: u32,
        /// A new one each time, which does not end with the frame.
        outlives: bool,
    },
    Alloc {
        d: Reg,
        n: Reg,
        layout: u32,
    },
    /// A function value with captured words.
    MakeClosure {
        d: Reg,
        entry: EntryIdx,
        list: u32,
    },
    /// A continuation of this frame as a value.
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
    /// Compares integers or bools.
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
    /// Compares signed integers.
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
    /// Calls a function; the list has its parameters' words, then the captured ones. The last of all is a continuation of
    /// this frame that is made here, unless `then` is [`NO_ENTRY`].
    Call {
        func: FuncIdx,
        list: u32,
        leave: Leave,
        then: EntryIdx,
    },
    /// Ends the function as [`Leave::Free`] with a call of itself, whose arguments are where its parameters were.
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
    /// A loop of lanes, or a kernel: the list has the arguments of the builtin but for `mem`.
    Lanes {
        is_kernel: bool,
        list: u32,
        leave: Leave,
    },
    /// A number of the work item.
    WorkItem {
        d: Reg,
        what: Reg,
        axis: Reg,
    },
    /// What cannot happen.
    Fail {
        text: u32,
    },
    /// What the interpreter cannot do, and perhaps nobody.
    Refuse {
        text: u32,
        by_all: bool,
    },
}

impl Inst {
    /// Registers that must be initialized here.
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

    /// Where a branch goes on if its condition holds, and where otherwise.
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

/// What becomes of the frame at a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// A continuation of this frame goes along.
    Stay,
    /// The function is over; no local variable of it is in memory.
    Free,
    /// The function is over, and with it the local variables that are in memory.
    FreeSlots,
    /// The function is over, but who knows whether its frame is: marking will tell.
    Forget,
    /// A local variable's address goes along: the frame ends when the callee returns.
    Release,
    /// A local variable's address goes to a function that does not return, or to a block of another function: the frame ends
    /// with that one's.
    Keep,
}

/// Instructions and what they refer to by index: of one function, then of all.
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

    /// Appends another function's code; gives the index of its first instruction.
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
    /// Words of parameters; they come first.
    pub n_params: u32,
    /// Captured words; they come next.
    pub n_captured: u32,
    /// The parameter that is the return continuation.
    pub ret: Option<Reg>,
    /// Where the continuation stands that a released frame goes on with.
    pub release: Reg,
    /// It may be one of this very frame, which then ends when it is abandoned.
    pub may_hold_own: bool,
    /// Registers that hold functions or continuations.
    pub closures: Vec<Reg>,
    /// Which of the captured words do.
    pub captured_closures: Vec<Reg>,
    /// Registers that hold addresses of memory of the frame, zero if it has none yet.
    pub slots: Vec<Reg>,
    /// Entry points of its blocks, to be moved with the code.
    pub entries: Vec<EntryIdx>,
}

/// Where a closure's code begins.
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
