//! Narrows arithmetic on integers of which only low bits matter, or which are known to be small: twice as many lanes
//! fit into a register. Programs compute with bytes in `i32`, and convert the result, which costs nothing in scalar
//! code.
//!
//! ```text
//! a: i32 = cast(x)        x, y: u8        a: u16 = cast(x)
//! b: i32 = cast(y)                        b: u16 = cast(y)
//! s: i32 = add(a, b)                      s: u16 = add(a, b)
//! h: i32 = shr(s, 1i32)                   h: u16 = shr(s, 1u16)
//! r: u8 = cast(h)                         r: u8 = cast(h)
//! ```
//!
//! Works on the function before it is widened, on varying values only. It uses three facts:
//!
//! 1. The *range* of a value, by one pass in the order of the blocks; values carried by loops have unknown ranges.
//! 2. Its *demand*: how many low bits its users need, computed backward, up to a fixed point. Sums, products, bit
//!    operations, selects and parameters of blocks need as many bits of their operands as are needed of them; a right
//!    shift needs as many more as it shifts by; a conversion to fewer bits needs these. Comparisons, quotients and
//!    remainders need the whole values of their operands: as many bits as the ranges fit in. All other users need all
//!    bits.
//! 3. Operations that use each other's results form a *group*, which has one width: the greatest demand in it. A group
//!    is narrowed if it pays ([`Group::gain`]); conversions are inserted where values enter it.
//!
//! Groups compute with unsigned integers, which wrap around, so the low bits stay correct; operations that need whole
//! values treat them as signed where their ranges say so. Conversions pass on at least a demand for all bits of the
//! narrower type, so a value that stays wide never gets wrong high bits.
//!
//! Not done: values that are small, but of which all bits are needed: they would have to be converted back.

use crate::shapes::{Shape, Shapes};
use nyala_base::{Id, SideTable, Span};
use nyala_flat::structure::Regions;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, Types};
use rustc_hash::{FxHashMap, FxHashSet};

/// Inclusive bounds of an integer, as a number of its type.
type Range = (i128, i128);

/// The definition of a value.
#[derive(Clone, Copy, Default)]
enum Definition {
    #[default]
    None,
    Inst(usize, usize),
    /// A parameter of a block that is not the entry.
    Param(usize, usize),
}

struct Narrowing<'a> {
    types: &'a mut Types,
    function: &'a mut Function,
    regions: &'a Regions,
    shapes: &'a Shapes,
    definition: SideTable<Value, Definition>,
    range: SideTable<Value, Option<Range>>,
    demand: SideTable<Value, u32>,
    /// For values of groups and comparisons a link to another value of the group, or to itself (union-find).
    link: SideTable<Value, Option<Value>>,
}

/// Values that are computed with the same number of bits, identified by one of them.
#[derive(Default)]
struct Group {
    members: Vec<Value>,
    bits: u32,
    /// Number of wide register operations that are saved.
    gain: f64,
}

/// Rewrites the function in place; returns the values that got a narrower type.
pub fn narrow(types: &mut Types, function: &mut Function, regions: &Regions, shapes: &Shapes) -> Vec<Value> {
    let mut n = Narrowing {
        types,
        function,
        regions,
        shapes,
        definition: SideTable::default(),
        range: SideTable::default(),
        demand: SideTable::default(),
        link: SideTable::default(),
    };
    if !n.has_small_types() {
        return Vec::new();
    }
    n.find_definitions();
    n.find_ranges();
    n.find_demands();
    let groups = n.find_groups();
    n.rewrite(groups)
}

/// The least width of 8, 16, 32 or 64 bits for numbers in a range, and whether they are signed then.
fn fit((lo, hi): Range) -> Option<(u32, bool)> {
    [8, 16, 32, 64].into_iter().find_map(|bits| fits((lo, hi), bits).map(|signed| (bits, signed)))
}

/// Whether numbers in a range fit into this many bits: true as signed, false as unsigned ones.
fn fits((lo, hi): Range, bits: u32) -> Option<bool> {
    if lo >= -(1 << (bits - 1)) && hi < 1 << (bits - 1) {
        return Some(true);
    }
    (lo >= 0 && hi < 1 << bits).then_some(false)
}

fn hull(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}

fn full(prim: Prim) -> Range {
    match prim {
        Prim::Bool => (0, 1),
        p if p.is_signed() => (-1 << (p.bits() - 1), (1 << (p.bits() - 1)) - 1),
        p => (0, (1 << p.bits()) - 1),
    }
}

fn unsigned(bits: u32) -> Prim {
    match bits {
        8 => Prim::U8,
        16 => Prim::U16,
        32 => Prim::U32,
        _ => Prim::U64,
    }
}

fn signed(bits: u32) -> Prim {
    match bits {
        8 => Prim::I8,
        16 => Prim::I16,
        32 => Prim::I32,
        _ => Prim::I64,
    }
}

/// The range of an operation's result, from the ranges of its operands.
fn range_of(op: Op, prim: Prim, args: &[Range]) -> Range {
    let bits = i128::from(prim.bits());
    let exact = match (op, args) {
        (Op::Add, &[a, b]) => Some((a.0 + b.0, a.1 + b.1)),
        (Op::Sub, &[a, b]) => Some((a.0 - b.1, a.1 - b.0)),
        (Op::Mul, &[a, b]) => {
            let all = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(x, y)| x.checked_mul(y));
            let all: Option<Vec<i128>> = all.into_iter().collect();
            all.and_then(|all| Some((all.iter().copied().min()?, all.iter().copied().max()?)))
        }
        (Op::Div, &[a, (lo, hi)]) if lo == hi && lo > 0 => Some((a.0 / lo, a.1 / lo)),
        (Op::Rem, &[a, (lo, hi)]) if lo == hi && lo > 0 => {
            Some((if a.0 < 0 { -(lo - 1).min(-a.0) } else { 0 }, if a.1 > 0 { (lo - 1).min(a.1) } else { 0 }))
        }
        (Op::And, &[a, b]) if a.0 >= 0 && b.0 >= 0 => Some((0, a.1.min(b.1))),
        (Op::And, &[a, b]) if a.0 >= 0 || b.0 >= 0 => Some((0, if a.0 >= 0 { a.1 } else { b.1 })),
        (Op::Or | Op::Xor, &[a, b]) if a.0 >= 0 && b.0 >= 0 => {
            Some((0, (1i128 << (128 - a.1.max(b.1).leading_zeros())) - 1))
        }
        (Op::Shl, &[a, (lo, hi)]) if lo == hi && (0..bits).contains(&lo) => Some((a.0 << lo, a.1 << lo)),
        (Op::Shr, &[a, (lo, hi)]) if lo == hi && (0..bits).contains(&lo) => Some((a.0 >> lo, a.1 >> lo)),
        (Op::Select, &[_, a, b]) => Some(hull(a, b)),
        (Op::Popcount | Op::Clz | Op::Ctz, _) => Some((0, bits)),
        _ => None,
    };
    let (lo, hi) = full(prim);
    exact.filter(|r| r.0 >= lo && r.1 <= hi).unwrap_or((lo, hi))
}

impl Narrowing<'_> {
    fn prim(&self, v: Value) -> Option<Prim> {
        self.types.as_prim(self.function.ty(v))
    }

    fn bits(&self, v: Value) -> u32 {
        self.prim(v).map_or(0, Prim::bits)
    }

    /// Whether there is a conversion from or to small integers; without any, nothing can be gained.
    fn has_small_types(&self) -> bool {
        let is_small = |v: Value| self.prim(v).is_some_and(|p| p.is_int() && p.bits() < 64);
        self.function.blocks.iter().flat_map(|b| &b.insts).any(|inst| {
            inst.op == InstOp::Op(Op::Cast) && (is_small(inst.args[0]) || inst.result.is_some_and(is_small))
        })
    }

    fn find_definitions(&mut self) {
        for &b in &self.regions.order {
            let block = &self.function.blocks[b];
            if b != 0 {
                block.params.iter().enumerate().for_each(|(i, &p)| self.definition[p] = Definition::Param(b, i));
            }
            for (i, inst) in block.insts.iter().enumerate() {
                if let Some(r) = inst.result {
                    self.definition[r] = Definition::Inst(b, i);
                }
            }
        }
    }

    fn find_ranges(&mut self) {
        for &b in &self.regions.order {
            let here = self.regions.position[b];
            let from_before = self.regions.preds[b].iter().all(|&p| self.regions.position[p] < here);
            for i in 0..self.function.blocks[b].params.len() {
                let p = self.function.blocks[b].params[i];
                let Some(prim) = self.prim(p).filter(|p| !p.is_float()) else { continue };
                let known = match b != 0 && from_before {
                    true => self.incoming(b, i).into_iter().map(|a| self.range(a, prim)).reduce(hull),
                    false => None,
                };
                self.range[p] = Some(known.unwrap_or(full(prim)));
            }
            for i in 0..self.function.blocks[b].insts.len() {
                let inst = &self.function.blocks[b].insts[i];
                let (InstOp::Op(op), Some(r)) = (inst.op, inst.result) else { continue };
                let Some(prim) = self.prim(r).filter(|p| !p.is_float()) else { continue };
                let range = match op {
                    // The range of a converted float is unknown.
                    Op::Cast => {
                        let known = self.prim(inst.args[0]).filter(|p| !p.is_float() && prim.is_int());
                        let (lo, hi) = full(prim);
                        known
                            .map(|p| self.range(inst.args[0], p))
                            .filter(|r| r.0 >= lo && r.1 <= hi)
                            .unwrap_or((lo, hi))
                    }
                    _ => {
                        let args: Vec<Range> = inst.args.iter().map(|&a| self.range(a, prim)).collect();
                        range_of(op, prim, &args)
                    }
                };
                self.range[r] = Some(range);
            }
        }
    }

    /// The range of an operand; if unknown, the range of its type.
    fn range(&self, v: Value, prim: Prim) -> Range {
        let own = self.prim(v).filter(|p| !p.is_float());
        match (self.function.as_bits(v), own) {
            (Some(bits), Some(p)) if p.is_signed() => (i128::from(bits as i64), i128::from(bits as i64)),
            (Some(bits), Some(_)) => (bits.into(), bits.into()),
            _ => self.range[v].unwrap_or(full(own.unwrap_or(prim))),
        }
    }

    /// The arguments for a parameter of a block.
    fn incoming(&self, b: usize, i: usize) -> Vec<Value> {
        let mut preds = self.regions.preds[b].clone();
        preds.dedup();
        let edges = preds.into_iter().flat_map(|p| self.function.blocks[p].term.edges());
        edges.filter(|e| e.block.idx() == b).map(|e| e.args[i]).collect()
    }

    /// Calls `ask` with the number of bits that an instruction needs of each operand, if `demand` bits are needed of
    /// its result.
    fn asks(&self, inst: &Inst, demand: u32, mut ask: impl FnMut(Value, u32)) {
        let whole = |v: Value| self.bits(v);
        let (op, may_be_narrow) = match (inst.op, inst.result) {
            (InstOp::Op(Op::Cast), Some(_)) => (Op::Cast, true),
            (InstOp::Op(op), Some(r)) => (op, self.needs(r, demand).is_some_and(|bits| bits < self.old_bits(r))),
            (InstOp::Op(op), None) => (op, false),
            _ => (Op::Store, false),
        };
        match (op, &inst.args[..], inst.result) {
            // An instruction that stays wide needs its operands whole.
            _ if !may_be_narrow => inst.args.iter().for_each(|&a| ask(a, whole(a))),
            (Op::Add | Op::Sub | Op::Mul | Op::Or | Op::Xor, &[a, b], Some(_)) => {
                ask(a, demand.min(whole(a)));
                ask(b, demand.min(whole(b)));
            }
            (Op::And, &[a, b], Some(_)) => {
                let masked = |by: Value| match self.function.as_bits(by) {
                    Some(bits) => (64 - bits.leading_zeros()).max(1),
                    None => 64,
                };
                ask(a, demand.min(masked(b)).min(whole(a)));
                ask(b, demand.min(masked(a)).min(whole(b)));
            }
            (Op::Select, &[c, a, b], Some(_)) => {
                ask(c, 1);
                ask(a, demand.min(whole(a)));
                ask(b, demand.min(whole(b)));
            }
            (Op::Shl, &[a, by], Some(_)) => {
                ask(a, demand.min(whole(a)));
                ask(by, whole(by));
            }
            (Op::Shr, &[a, by], Some(_)) => {
                let (more, exact) = (self.amount(by).map(|k| demand + k), self.whole_bits(inst));
                ask(a, more.unwrap_or(64).min(exact).min(whole(a)));
                ask(by, whole(by));
            }
            (Op::Div | Op::Rem | Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge, &[a, b], Some(_)) => {
                let bits = self.whole_bits(inst);
                ask(a, bits.min(whole(a)));
                ask(b, bits.min(whole(b)));
            }
            (Op::Cast, &[a], Some(r)) => match self.prim(r) {
                Some(p) if p.is_int() => ask(a, p.bits().min(whole(a))),
                _ => ask(a, whole(a)),
            },
            _ => inst.args.iter().for_each(|&a| ask(a, whole(a))),
        }
    }

    /// The amount of a shift, if it is constant.
    fn amount(&self, by: Value) -> Option<u32> {
        let bits = self.prim(by)?.bits();
        Some((self.function.as_bits(by)? % u64::from(bits)) as u32)
    }

    /// The number of bits that suffice for an operation that needs whole operands; 64 if unknown.
    fn whole_bits(&self, inst: &Inst) -> u32 {
        let (InstOp::Op(op), Some(prim)) = (inst.op, self.prim(inst.args[0])) else { return 64 };
        if !prim.is_int() {
            return 64;
        }
        let is_divided = matches!(op, Op::Div | Op::Rem);
        if is_divided && self.function.as_bits(inst.args[1]).is_none_or(|bits| bits as i64 <= 0) {
            return 64;
        }
        fit(self.operands(inst, prim)).map_or(64, |(bits, _)| bits)
    }

    /// The range that includes the operands of an operation.
    fn operands(&self, inst: &Inst, prim: Prim) -> Range {
        match inst.op {
            InstOp::Op(Op::Shr) => self.range(inst.args[0], prim),
            _ => hull(self.range(inst.args[0], prim), self.range(inst.args[1], prim)),
        }
    }

    fn find_demands(&mut self) {
        let mut work: Vec<Value> = Vec::new();
        let mut demand = std::mem::take(&mut self.demand);
        let mut ask = |work: &mut Vec<Value>, v: Value, bits: u32| {
            if bits > demand[v] {
                demand[v] = bits;
                work.push(v);
            }
        };
        for &b in &self.regions.order {
            let block = &self.function.blocks[b];
            // Values without a demand may still pass one on.
            for (i, _) in block.params.iter().enumerate().filter(|&(_, &p)| b != 0 && self.needs(p, 0).is_none()) {
                self.incoming(b, i).into_iter().for_each(|a| ask(&mut work, a, self.bits(a)));
            }
            for inst in &block.insts {
                self.asks(inst, 0, |v, bits| ask(&mut work, v, bits));
            }
            match &block.term {
                Terminator::Jump(_) => {}
                Terminator::Branch { cond, .. } => ask(&mut work, *cond, 1),
                term => term.for_each_use(|v| ask(&mut work, v, self.bits(v))),
            }
        }
        while let Some(v) = work.pop() {
            let own = demand[v];
            let mut ask = |v: Value, bits: u32| {
                if bits > demand[v] {
                    demand[v] = bits;
                    work.push(v);
                }
            };
            match self.definition[v] {
                Definition::Inst(b, i) => self.asks(&self.function.blocks[b].insts[i], own, ask),
                Definition::Param(b, i) => self.incoming(b, i).into_iter().for_each(|a| ask(a, own.min(self.bits(a)))),
                Definition::None => {}
            }
        }
        self.demand = demand;
    }

    fn find(&mut self, v: Value) -> Value {
        let mut v = v;
        while let Some(next) = self.link[v].filter(|&n| n != v) {
            self.link[v] = self.link[next];
            v = next;
        }
        v
    }

    fn unite(&mut self, a: Value, b: Value) {
        let (a, b) = (self.find(a), self.find(b));
        // The older value stands for both.
        self.link[a.max(b)] = Some(a.min(b));
    }

    fn is_varying(&self, v: Value) -> bool {
        let home = self.shapes.home[v];
        self.shapes.at(self.function, self.regions, v, home) == Some(Shape::Varying)
    }

    /// The number of bits to compute a value with, if `demand` bits of it are needed; `None` if it cannot be in a
    /// group.
    fn needs(&self, v: Value, demand: u32) -> Option<u32> {
        if !self.is_varying(v) {
            return None;
        }
        let (b, i) = match self.definition[v] {
            Definition::None => return None,
            Definition::Param(..) => return self.prim(v).filter(|p| p.is_int()).map(|_| demand),
            Definition::Inst(b, i) => (b, i),
        };
        let inst = &self.function.blocks[b].insts[i];
        let InstOp::Op(op) = inst.op else { return None };
        let of = if op.is_comparison() { inst.args[0] } else { v };
        if !self.prim(of).is_some_and(Prim::is_int) {
            return None;
        }
        match op {
            Op::Add | Op::Sub | Op::And | Op::Or | Op::Xor => Some(demand),
            // Machines have no products of bytes.
            Op::Mul => Some(demand.max(16)),
            // A mask for lanes of another width would have to be converted.
            Op::Select => match self.comparison(inst.args[0]) {
                Some(c) if self.is_varying(c) => self.needs(c, 1).map(|bits| bits.max(demand)),
                _ => Some(demand),
            },
            Op::Shl => self.amount(inst.args[1]).map(|k| demand.max(k + 1)),
            Op::Shr => {
                let k = self.amount(inst.args[1])?;
                Some((demand + k).min(self.whole_bits(inst)).max(demand).max(k + 1))
            }
            Op::Div | Op::Rem => Some(self.whole_bits(inst).max(demand).max(16)),
            op if op.is_comparison() => Some(self.whole_bits(inst)),
            _ => None,
        }
    }

    /// The comparison of integers that computes a condition.
    fn comparison(&self, cond: Value) -> Option<Value> {
        let Definition::Inst(b, i) = self.definition[cond] else { return None };
        let inst = &self.function.blocks[b].insts[i];
        let is_comparison = matches!(inst.op, InstOp::Op(op) if op.is_comparison());
        (is_comparison && self.prim(inst.args[0]).is_some_and(Prim::is_int)).then_some(cond)
    }

    /// The width of a value of a group, or of a comparison's operands.
    fn old_bits(&self, v: Value) -> u32 {
        match self.definition[v] {
            Definition::Inst(b, i) if self.prim(v) == Some(Prim::Bool) => {
                self.bits(self.function.blocks[b].insts[i].args[0])
            }
            _ => self.bits(v),
        }
    }

    /// Operands of a value that may be in its group.
    fn operands_of(&self, v: Value) -> Vec<Value> {
        match self.definition[v] {
            Definition::None => Vec::new(),
            Definition::Param(b, i) => self.incoming(b, i),
            Definition::Inst(b, i) => {
                let inst = &self.function.blocks[b].insts[i];
                match inst.op {
                    InstOp::Op(Op::Shl | Op::Shr) => vec![inst.args[0]],
                    InstOp::Op(Op::Select) => inst.args[1..].to_vec(),
                    _ => inst.args.to_vec(),
                }
            }
        }
    }

    /// The groups that pay.
    fn find_groups(&mut self) -> Vec<Group> {
        let mut members: Vec<(Value, u32)> = Vec::new();
        for &b in &self.regions.order {
            let block = &self.function.blocks[b];
            for v in block.params.iter().copied().chain(block.insts.iter().filter_map(|i| i.result)) {
                if let Some(bits) = self.needs(v, self.demand[v]).filter(|&bits| bits < self.old_bits(v)) {
                    members.push((v, bits));
                }
            }
        }
        members.iter().for_each(|&(v, _)| self.link[v] = Some(v));
        for &(v, _) in &members {
            let mut others = self.operands_of(v);
            if let Definition::Inst(b, i) = self.definition[v]
                && self.function.blocks[b].insts[i].op == InstOp::Op(Op::Select)
            {
                others.extend(self.comparison(self.function.blocks[b].insts[i].args[0]));
            }
            for other in others.into_iter().filter(|&o| self.link[o].is_some()).collect::<Vec<_>>() {
                self.unite(v, other);
            }
        }
        let mut groups: FxHashMap<Value, Group> = FxHashMap::default();
        for &(v, bits) in &members {
            let group = groups.entry(self.find(v)).or_default();
            group.members.push(v);
            group.bits = group.bits.max(bits.next_power_of_two().max(8));
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|g| g.members[0]);
        groups.retain(|g| g.members.iter().all(|&v| g.bits < self.old_bits(v)) && self.is_sound(g));
        self.find_gains(&mut groups);
        groups.retain(|g| g.gain > 0.0);
        groups
    }

    /// Whether operations that need whole values get them in the group's width. All operations keep the bits of that
    /// width correct, since entering values are converted from whole ones; except that a right shift of a number that
    /// does not fit leaves wrong bits above the demanded ones.
    fn is_sound(&self, group: &Group) -> bool {
        let (mut has_whole, mut has_wrong) = (false, false);
        for &v in &group.members {
            let Definition::Inst(b, i) = self.definition[v] else { continue };
            let inst = &self.function.blocks[b].insts[i];
            let InstOp::Op(op) = inst.op else { continue };
            let is_whole = self.is_whole(op, inst, group.bits);
            has_whole |= is_whole;
            has_wrong |= op == Op::Shr && !is_whole;
        }
        !(has_whole && has_wrong)
    }

    /// Whether an operation in this width treats its operands as whole numbers.
    fn is_whole(&self, op: Op, inst: &Inst, bits: u32) -> bool {
        match op {
            Op::Shr => self.whole_bits(inst) <= bits,
            op => matches!(op, Op::Div | Op::Rem) || op.is_comparison(),
        }
    }

    /// Computes the gain of each group, in operations on the wide type: operations saved, conversions saved or made
    /// cheaper, minus new conversions. New ones count twice: a value that is loaded or computed wide often is better
    /// left so.
    fn find_gains(&self, groups: &mut [Group]) {
        let mut of: SideTable<Value, Option<usize>> = SideTable::default();
        for (i, g) in groups.iter().enumerate() {
            g.members.iter().for_each(|&v| of[v] = Some(i));
        }
        for group in groups.iter_mut() {
            let mut seen: FxHashSet<Value> = FxHashSet::default();
            for &v in &group.members {
                let saved = 1.0 - f64::from(group.bits) / f64::from(self.old_bits(v));
                if matches!(self.definition[v], Definition::Inst(..)) {
                    group.gain += saved;
                }
                for a in self.operands_of(v) {
                    let is_free = self.function.as_const(a).is_some() || !self.is_varying(a);
                    if is_free || of[a].is_some() || !seen.insert(a) {
                        continue;
                    }
                    group.gain += match self.converted(a).map(|from| self.bits(from)) {
                        Some(bits) if bits == group.bits => 1.0,
                        Some(bits) if bits < group.bits => saved,
                        Some(_) => 0.0,
                        None => -2.0,
                    };
                }
            }
        }
        for inst in self.function.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.op == InstOp::Op(Op::Cast)) {
            if let (Some(group), Some(r)) = (of[inst.args[0]], inst.result) {
                groups[group].gain += if self.bits(r) == groups[group].bits { 1.0 } else { 0.5 };
            }
        }
    }

    /// The integer that a value is converted from.
    fn converted(&self, v: Value) -> Option<Value> {
        let Definition::Inst(b, i) = self.definition[v] else { return None };
        let inst = &self.function.blocks[b].insts[i];
        (inst.op == InstOp::Op(Op::Cast) && self.prim(inst.args[0]).is_some_and(Prim::is_int)).then(|| inst.args[0])
    }

    fn rewrite(&mut self, groups: Vec<Group>) -> Vec<Value> {
        let mut bits_of: SideTable<Value, u32> = SideTable::default();
        for group in &groups {
            group.members.iter().for_each(|&v| bits_of[v] = group.bits);
        }
        // Values that enter groups, converted to the group's width; the conversion stands after the definition.
        let mut entering: FxHashMap<(Value, u32), Value> = FxHashMap::default();
        let mut behind: SideTable<Value, Vec<Inst>> = SideTable::default();
        for group in &groups {
            let prim = unsigned(group.bits);
            for &v in &group.members {
                for a in self.operands_of(v) {
                    if bits_of[a] == 0 && !entering.contains_key(&(a, group.bits)) {
                        let new = self.enter(a, prim, &mut behind);
                        entering.insert((a, group.bits), new);
                    }
                }
            }
        }
        for &b in &self.regions.order {
            let mut insts = Vec::new();
            for p in self.function.blocks[b].params.clone() {
                insts.append(&mut behind[p]);
            }
            for inst in std::mem::take(&mut self.function.blocks[b].insts) {
                let result = inst.result;
                match result.map_or(0, |r| bits_of[r]) {
                    0 => insts.push(inst),
                    bits => self.narrow_inst(inst, bits, &entering, &mut insts),
                }
                if let Some(r) = result {
                    insts.append(&mut behind[r]);
                }
            }
            let mut term = std::mem::replace(&mut self.function.blocks[b].term, Terminator::Unreachable);
            for edge in term.edges_mut() {
                let params = &self.function.blocks[edge.block.idx()].params;
                for (arg, &p) in edge.args.iter_mut().zip(params) {
                    *arg = entering.get(&(*arg, bits_of[p])).copied().unwrap_or(*arg);
                }
            }
            self.function.blocks[b].term = term;
            self.function.blocks[b].insts = insts;
        }
        let mut narrowed: Vec<Value> = entering.into_values().collect();
        for group in &groups {
            let ty = self.types.prim(unsigned(group.bits));
            for &v in &group.members {
                if self.prim(v) != Some(Prim::Bool) {
                    self.function.values[v.idx()].ty = ty;
                    narrowed.push(v);
                }
            }
        }
        narrowed
    }

    /// Converts a value that enters a group to the group's type.
    fn enter(&mut self, v: Value, prim: Prim, behind: &mut SideTable<Value, Vec<Inst>>) -> Value {
        let ty = self.types.prim(prim);
        match self.function.as_const(v) {
            Some(Const::Bits(bits)) => return self.function.constant(Const::Bits(prim.normalize(bits)), ty),
            Some(_) => return self.function.undef(ty),
            None => {}
        }
        let (from, name) = (self.converted(v).unwrap_or(v), self.function.name(v).to_string());
        let new = self.function.new_value(ty, &name);
        let span = match self.definition[v] {
            Definition::Inst(b, i) => self.function.blocks[b].insts[i].span,
            _ => Span::NONE,
        };
        behind[v].push(cast(from, new, span));
        new
    }

    /// Emits the operation in this width, with conversions where it treats its operands as signed.
    fn narrow_inst(
        &mut self,
        mut inst: Inst,
        bits: u32,
        entering: &FxHashMap<(Value, u32), Value>,
        insts: &mut Vec<Inst>,
    ) {
        let InstOp::Op(op) = inst.op else { return insts.push(inst) };
        let (old, prim) = (inst.clone(), self.prim(inst.args[0]).unwrap_or(Prim::Bool));
        let ty = self.types.prim(unsigned(bits));
        let first = usize::from(op == Op::Select);
        let n_numbers = if matches!(op, Op::Shl | Op::Shr) { 1 } else { inst.args.len() };
        for a in &mut inst.args[first..n_numbers] {
            *a = entering.get(&(*a, bits)).copied().unwrap_or(*a);
        }
        if matches!(op, Op::Shl | Op::Shr) {
            let k = self.amount(inst.args[1]).unwrap_or(0);
            inst.args[1] = self.function.constant(Const::Bits(k.into()), ty);
        }
        let is_whole = self.is_whole(op, &old, bits);
        let is_signed = is_whole && fits(self.operands(&old, prim), bits) == Some(true);
        if !is_signed || matches!(op, Op::Eq | Op::Ne) {
            return insts.push(inst);
        }
        let ty = self.types.prim(signed(bits));
        for a in &mut inst.args {
            *a = self.as_signed(*a, ty, inst.span, insts);
        }
        if op.is_comparison() {
            return insts.push(inst);
        }
        let Some(result) = inst.result else { return };
        let own = self.function.new_value(ty, "");
        inst.result = Some(own);
        let span = inst.span;
        insts.push(inst);
        insts.push(cast(own, result, span));
    }

    /// Converts a number of a group to a signed type.
    fn as_signed(&mut self, v: Value, ty: Ty, span: Span, insts: &mut Vec<Inst>) -> Value {
        if let (Some(bits), Some(prim)) = (self.function.as_bits(v), self.types.as_prim(ty)) {
            return self.function.constant(Const::Bits(prim.normalize(bits)), ty);
        }
        let new = self.function.new_value(ty, "");
        insts.push(cast(v, new, span));
        new
    }
}

fn cast(from: Value, to: Value, span: Span) -> Inst {
    Inst { op: InstOp::Op(Op::Cast), args: Args::from_slice(&[from]), result: Some(to), span, fast: false }
}
