//! Executes most instructions: those that work on the words of a frame, on memory, or from one frame to another,
//! without the rest of the machine. They run in a loop that keeps the state it needs in registers.

use super::*;
use nyala_ir::scalar::{eval_cast, eval_comparison};
use nyala_ir::{Op, Prim};
use std::cell::Cell;

/// The current position in the program.
struct At {
    /// A reference to the current frame, with entry point 0.
    own: Closure,
    pc: usize,
    /// The steps that may still be taken.
    left: u64,
}

/// Larger copies are left to the main loop.
const MAX_COPIED: u32 = 16;

impl Machine<'_> {
    /// Runs up to an instruction of another kind, which is left as the next one.
    #[inline(never)]
    pub(super) fn simple(&mut self) -> Result<()> {
        let left = self.max_steps.saturating_sub(self.steps);
        let mut at = At { own: self.heap.closure(0, self.frame), pc: self.pc, left };
        let result = self.simple_from(&mut at);
        let record = &self.heap.records[at.own.frame() as usize];
        if let Kind::Frame(func) = record.kind {
            self.func = func;
        }
        (self.frame, self.base, self.pc) = (at.own.frame(), record.base as usize, at.pc);
        self.steps += left - at.left;
        result
    }

    #[inline(always)]
    fn simple_from(&mut self, at: &mut At) -> Result<()> {
        let wrap = self.options.wrap;
        // Whether no frame ends together with another one.
        let is_plain = self.kept.is_empty();
        let Machine { heap, code, calls, l, max_steps, .. } = self;
        let Parts { words, records, free } = heap.parts();
        let (insts, consts, lists, calls) = (&code.insts[..], &code.consts[..], &code.lists[..], &calls[..]);
        let words = Cell::from_mut(words).as_slice_of_cells();
        let mut frame = &words[records[at.own.frame() as usize].base as usize..];
        macro_rules! get {
            ($r:expr) => {
                frame[$r as usize].get()
            };
        }
        macro_rules! set {
            ($d:expr, $bits:expr) => {{
                let bits = $bits;
                frame[$d as usize].set(bits);
            }};
        }
        macro_rules! i32_op {
            ($op:expr, $f:ident, $d:expr, $x:expr, $y:expr) => {{
                let (x, y): (u64, u64) = ($x, $y);
                // An uninitialized word is no `i32`, and neither is its sum with one. Differences and products may be.
                let r = x.$f(y);
                let is_usual = r as i32 as i64 as u64 == r && ($op == Op::Add || x != POISON && y != POISON);
                set!($d, if is_usual { r } else { eval::arith($op, Prim::I32, x, y, wrap)? })
            }};
        }
        macro_rules! i64_op {
            ($op:expr, $f:ident, $d:expr, $x:expr, $y:expr) => {{
                let (x, y): (u64, u64) = ($x, $y);
                let (r, overflow) = (x as i64).$f(y as i64);
                let is_usual = !overflow && x != POISON && y != POISON;
                set!($d, if is_usual { r as u64 } else { eval::arith($op, Prim::I64, x, y, wrap)? })
            }};
        }
        macro_rules! float_op {
            ($float:ident, $bits:ident, $op:tt, $d:expr, $a:expr, $b:expr) => {{
                let (a, b): (u64, u64) = (get!($a), get!($b));
                if a == POISON || b == POISON {
                    return Err(eval::uninitialized());
                }
                let (x, y) = ($float::from_bits(a as $bits), $float::from_bits(b as $bits));
                set!($d, u64::from((x $op y).to_bits()))
            }};
        }
        macro_rules! initialized {
            ($word:expr) => {{
                let word = $word;
                if word == POISON {
                    return Err(eval::uninitialized());
                }
                word
            }};
        }
        macro_rules! step {
            () => {{
                let Some(left) = at.left.checked_sub(1) else {
                    return Err(budget_spent::steps(*max_steps).into());
                };
                at.left = left;
            }};
        }
        // Goes on in another frame, and releases the current one if it is over.
        macro_rules! go {
            ($own:expr, $frame:expr, $pc:expr, $leave:expr) => {{
                if $leave == Leave::Free {
                    records[at.own.frame() as usize].release(at.own.frame(), free);
                }
                (at.own, at.pc, frame) = ($own, $pc as usize, $frame);
            }};
        }
        loop {
            let inst = &insts[at.pc];
            at.pc += 1;
            match *inst {
                Inst::Const { d, index } => set!(d, consts[index as usize]),
                Inst::Copy { d, s } => set!(d, get!(s)),
                Inst::CopyChecked { d, s } => {
                    let bits = get!(s);
                    if bits == POISON {
                        return Err(uninitialized_read::error("read of an uninitialized variable").into());
                    }
                    set!(d, bits);
                }
                Inst::CopyMany { d, s, n } if n <= MAX_COPIED => copy(frame, s, d, n),
                Inst::Poison { d, n } => frame[d as usize..][..n as usize].iter().for_each(|word| word.set(POISON)),
                Inst::CheckInit { a } => {
                    if get!(a) == POISON {
                        return Err(uninitialized_read::error("use of an uninitialized part of a value").into());
                    }
                }
                Inst::AddI32 { d, a, b } => i32_op!(Op::Add, wrapping_add, d, get!(a), get!(b)),
                Inst::SubI32 { d, a, b } => i32_op!(Op::Sub, wrapping_sub, d, get!(a), get!(b)),
                Inst::MulI32 { d, a, b } => i32_op!(Op::Mul, wrapping_mul, d, get!(a), get!(b)),
                Inst::AddI32Imm { d, a, imm } => i32_op!(Op::Add, wrapping_add, d, get!(a), imm as i64 as u64),
                Inst::AddI64 { d, a, b } => i64_op!(Op::Add, overflowing_add, d, get!(a), get!(b)),
                Inst::SubI64 { d, a, b } => i64_op!(Op::Sub, overflowing_sub, d, get!(a), get!(b)),
                Inst::MulI64 { d, a, b } => i64_op!(Op::Mul, overflowing_mul, d, get!(a), get!(b)),
                Inst::AddI64Imm { d, a, imm } => i64_op!(Op::Add, overflowing_add, d, get!(a), imm as i64 as u64),
                Inst::AddF32 { d, a, b } => float_op!(f32, u32, +, d, a, b),
                Inst::SubF32 { d, a, b } => float_op!(f32, u32, -, d, a, b),
                Inst::MulF32 { d, a, b } => float_op!(f32, u32, *, d, a, b),
                Inst::AddF64 { d, a, b } => float_op!(f64, u64, +, d, a, b),
                Inst::SubF64 { d, a, b } => float_op!(f64, u64, -, d, a, b),
                Inst::MulF64 { d, a, b } => float_op!(f64, u64, *, d, a, b),
                Inst::And { d, a, b } => set!(d, initialized!(get!(a)) & initialized!(get!(b))),
                Inst::Or { d, a, b } => set!(d, initialized!(get!(a)) | initialized!(get!(b))),
                Inst::Xor { d, a, b } => set!(d, initialized!(get!(a)) ^ initialized!(get!(b))),
                Inst::BoolOp { deciding, d, a, b } => {
                    let (x, y): (u64, u64) = (get!(a), get!(b));
                    set!(
                        d,
                        match u64::from(deciding) {
                            decides if x == decides || y == decides => decides,
                            _ if x == POISON || y == POISON => POISON,
                            decides => decides ^ 1,
                        }
                    )
                }
                Inst::Arith { op, prim, d, a, b } => set!(d, eval::arith(op, prim, get!(a), get!(b), wrap)?),
                Inst::Compare { op, prim, d, a, b } => set!(d, compare(op, prim, get!(a), get!(b))? as u64),
                Inst::Cast { from, to, d, a } => set!(d, eval_cast(from, to, initialized!(get!(a)))),
                Inst::Renormalize { from, to, d, a } => set!(d, eval::renormalize(from, to, get!(a))),
                Inst::Select { d, cond, a, b, n } if n <= MAX_COPIED => {
                    copy(frame, if get!(cond) != 0 { a } else { b }, d, n);
                }
                Inst::Lea { d, a, b, size } => set!(d, get!(a).wrapping_add(get!(b).wrapping_mul(u64::from(size)))),
                Inst::LeaImm { d, a, offset } => set!(d, get!(a).wrapping_add(consts[offset as usize])),
                Inst::Load { d, a, leaf } => {
                    let place = get!(a) as usize;
                    set!(d, l.load(place, leaf)?);
                    l.note(place, leaf, None, at.pc)?;
                }
                Inst::Store { a, s, leaf } if !matches!(leaf, Leaf::Cn | Leaf::Ptr) && get!(s) != POISON => {
                    l.note(get!(a) as usize, leaf, Some(get!(s)), at.pc)?;
                    l.store(get!(a) as usize, leaf, get!(s))?;
                }
                Inst::LoadAt { d, a, b, size, leaf } => {
                    let index = initialized!(get!(b));
                    let place = get!(a).wrapping_add(index.wrapping_mul(u64::from(size))) as usize;
                    set!(d, l.load(place, leaf)?);
                    l.note(place, leaf, None, at.pc)?;
                }
                Inst::StoreAt { a, b, size, s, leaf } if !matches!(leaf, Leaf::Cn | Leaf::Ptr) && get!(s) != POISON => {
                    let index = initialized!(get!(b));
                    let place = get!(a).wrapping_add(index.wrapping_mul(u64::from(size))) as usize;
                    l.note(place, leaf, Some(get!(s)), at.pc)?;
                    l.store(place, leaf, get!(s))?;
                }
                Inst::MakeCont { d, entry } => set!(d, at.own.at(entry).0),
                Inst::Jump { to } => {
                    step!();
                    at.pc = to as usize;
                }
                Inst::Again { to } if is_plain => {
                    step!();
                    let record = &mut records[at.own.frame() as usize];
                    record.renew();
                    at.own = record.closure(0, at.own.frame());
                    at.pc = to as usize;
                }
                Inst::Call { func, list, leave: leave @ (Leave::Stay | Leave::Free), then }
                    if leave == Leave::Stay || is_plain =>
                {
                    let n = lists[list as usize];
                    let n_made = u32::from(then != NO_ENTRY);
                    let call = calls.get(func as usize).filter(|call| call.n_words == n + n_made);
                    let first = call.and_then(|call| free.get_mut(call.class as usize));
                    let (Some(call), Some(first)) = (call, first) else {
                        at.pc -= 1;
                        return Ok(());
                    };
                    let new = *first;
                    let Some(record) = records.get_mut(new as usize) else {
                        at.pc -= 1;
                        return Ok(());
                    };
                    step!();
                    *first = record.next;
                    (record.kind, record.called_at) = (Kind::Frame(func), at.pc as u32);
                    let (own, callee) = (record.closure(0, new), &words[record.base as usize..]);
                    pass(frame, &lists[list as usize + 1..][..n as usize], callee);
                    if then != NO_ENTRY {
                        callee[n as usize].set(at.own.at(then).0);
                    }
                    go!(own, callee, call.start, leave);
                }
                // A continuation of another frame gets its arguments in its parameters' registers.
                Inst::CallValue { callee, list, leave: leave @ (Leave::Free | Leave::Forget) }
                    if leave == Leave::Forget || is_plain =>
                {
                    let closure = Closure(get!(callee));
                    let entry = l.entries.get(closure.entry() as usize);
                    let record = records.get(closure.frame() as usize);
                    let (Some(&Entry::Block { pc, params, .. }), Some(record)) = (entry, record) else {
                        at.pc -= 1;
                        return Ok(());
                    };
                    if closure.frame() == at.own.frame() || !record.is(closure) {
                        at.pc -= 1;
                        return Ok(());
                    }
                    step!();
                    let (n, other) = (lists[list as usize] as usize, &words[record.base as usize..]);
                    pass(frame, &lists[list as usize + 1..][..n], &other[params as usize..]);
                    go!(closure.at(0), other, pc, leave);
                }
                Inst::Branch { cond, then, els } => {
                    at.pc = if initialized!(get!(cond)) != 0 { then } else { els } as usize;
                }
                Inst::BranchCompare { op, prim, a, b, then, els } => {
                    at.pc = if compare(op, prim, get!(a), get!(b))? { then } else { els } as usize;
                }
                Inst::BranchEq { a, b, then, els } => {
                    let (x, y) = (initialized!(get!(a)), initialized!(get!(b)));
                    at.pc = if x == y { then } else { els } as usize;
                }
                Inst::BranchEqImm { a, imm, then, els } => {
                    at.pc = if initialized!(get!(a)) == imm as i64 as u64 { then } else { els } as usize;
                }
                Inst::BranchLt { a, b, then, els } => {
                    let (x, y) = (initialized!(get!(a)), initialized!(get!(b)));
                    at.pc = if (x as i64) < y as i64 { then } else { els } as usize;
                }
                Inst::BranchLtImm { a, imm, then, els } => {
                    at.pc = if (initialized!(get!(a)) as i64) < i64::from(imm) { then } else { els } as usize;
                }
                _ => {
                    at.pc -= 1;
                    return Ok(());
                }
            }
        }
    }
}

/// Copies words of a frame to the parameters of another one.
#[inline(always)]
fn pass(frame: &[Cell<u64>], list: &[Reg], to: &[Cell<u64>]) {
    for (to, &r) in to[..list.len()].iter().zip(list) {
        to.set(frame[r as usize].get());
    }
}

/// Copies words within a frame, which may overlap.
fn copy(frame: &[Cell<u64>], from: Reg, to: Reg, n: u32) {
    let (from, to) = (&frame[from as usize..][..n as usize], &frame[to as usize..][..n as usize]);
    match from.as_ptr() < to.as_ptr() {
        true => from.iter().zip(to).rev().for_each(|(from, to)| to.set(from.get())),
        false => from.iter().zip(to).for_each(|(from, to)| to.set(from.get())),
    }
}

#[inline(always)]
fn compare(op: Op, prim: Prim, a: u64, b: u64) -> Result<bool> {
    if a == POISON || b == POISON {
        return Err(eval::uninitialized());
    }
    if prim.is_float() {
        return Ok(eval_comparison(op, prim, a, b));
    }
    // With the sign bit flipped, signed numbers are ordered like unsigned ones.
    let turn = u64::from(prim.is_signed()) << 63;
    let (x, y) = (a ^ turn, b ^ turn);
    Ok(match op {
        Op::Eq => x == y,
        Op::Ne => x != y,
        Op::Lt => x < y,
        Op::Le => x <= y,
        Op::Gt => x > y,
        _ => x >= y,
    })
}
