//! Combines gathers whose lanes are at constant distances from those of others: the indices of all are computed from
//! that of the first one, if that takes one operation; adjacent elements are read together, as elements of 4 or 8
//! bytes, which takes half the time (interpolation in tables and volumes, pixels of four bytes).
//!
//! ```text
//! j = add(i, splat(1))                           both = gather(p, i, 4, m)          simd[u64 * 4]
//! x = gather(p, i, 4, m)                         x = shuffle(bitcast(both), [0, 2, 4, 6])
//! y = gather(p, j, 4, m)                         y = shuffle(bitcast(both), [1, 3, 5, 7])
//! k = mul(add(h, splat(3)), splat(64))           k = add(i, splat(192))            i = mul(h, splat(64))
//! z = gather(p, k, 4, m)                         z = gather(p, k, 4, m)
//! ```
//!
//! Within a block, between writes. Runs after [`split`](crate::split), since shuffles are not split.

use crate::interleave::{emit, may_write, numbers};
use nyala_base::{Id, SideTable};
use nyala_flat::*;
use nyala_ir::{Op, Prim, Types, layout};

/// Maximal number of operations traced for one index.
const MAX_STEPS: usize = 64;
/// Maximal number of open groups, and of gathers in a group.
const MAX_OPEN: usize = 64;

/// An index as a sum of values times factors, and a number.
#[derive(Clone, PartialEq, Eq, Default)]
struct Sum {
    terms: Vec<(Value, i64)>,
    number: i64,
}

/// Gathers of one block whose addresses differ by constants only.
struct Group {
    at: Value,
    terms: Vec<(Value, i64)>,
    scale: i64,
    mask: Option<Value>,
    prim: Prim,
    /// The constant part of the first gather's index.
    number: i64,
    /// Instructions, in order, and their distances from the first in units of the scale.
    members: Vec<(usize, i64)>,
}

/// Combines gathers. With `wrap`, signed overflow is defined, so 32-bit sums are not decomposed.
pub fn combine(types: &mut Types, function: &mut Function, wrap: bool) {
    let is_gather = |i: &&Inst| i.op == InstOp::Vector(VectorOp::Gather);
    if function.blocks.iter().all(|b| b.insts.iter().filter(is_gather).count() < 2) {
        return;
    }
    let mut defs: SideTable<Value, Option<Inst>> = SideTable::default();
    for inst in function.blocks.iter().flat_map(|b| &b.insts) {
        if let Some(r) = inst.result {
            defs[r] = Some(inst.clone());
        }
    }
    for b in 0..function.blocks.len() {
        let groups = groups(types, function, &defs, b, wrap);
        if !groups.is_empty() {
            rewrite(types, function, b, &groups);
        }
    }
}

fn groups(
    types: &Types,
    function: &Function,
    defs: &SideTable<Value, Option<Inst>>,
    b: usize,
    wrap: bool,
) -> Vec<Group> {
    let (mut open, mut done): (Vec<Group>, Vec<Group>) = (Vec::new(), Vec::new());
    for (i, inst) in function.blocks[b].insts.iter().enumerate() {
        if may_write(inst) {
            done.append(&mut open);
        }
        let (InstOp::Vector(op @ VectorOp::Gather), &[at, index, scale, ..], Some(r)) =
            (inst.op, &inst.args[..], inst.result)
        else {
            continue;
        };
        let (Some((prim, _)), Some(scale)) = (types.as_vector(function.ty(r)), function.as_bits(scale)) else {
            continue;
        };
        let (mask, scale, sum) = (op.mask(&inst.args), scale as i64, sum_of(types, function, defs, index, wrap));
        let same = |g: &&mut Group| {
            let alike = g.at == at && g.scale == scale && g.mask == mask && g.prim == prim;
            alike && g.terms == sum.terms && g.members.len() < MAX_OPEN
        };
        let group = open.iter_mut().rev().take(MAX_OPEN).find(same);
        match group {
            Some(group) => {
                let steps = sum.number.wrapping_sub(group.number);
                if i32::try_from(steps).is_ok() && steps.checked_mul(scale).is_some() {
                    group.members.push((i, steps));
                }
            }
            None => {
                let (terms, number, members) = (sum.terms, sum.number, vec![(i, 0)]);
                open.push(Group { at, terms, scale, mask, prim, members, number });
            }
        }
    }
    done.append(&mut open);
    done.retain(|g| g.members.len() > 1);
    done
}

/// Decomposes an index into a sum of products with constants, as far as the sum has the same value: addresses are
/// computed modulo 2^64, and narrower signed integers do not overflow.
fn sum_of(types: &Types, function: &Function, defs: &SideTable<Value, Option<Inst>>, index: Value, wrap: bool) -> Sum {
    let prim = types.lane_prim(function.ty(index));
    let mut sum = Sum::default();
    if !matches!(prim, Some(Prim::I64 | Prim::U64)) && (wrap || prim != Some(Prim::I32)) {
        sum.terms.push((index, 1));
        return sum;
    }
    let number = |v: Value| match &defs[v] {
        Some(Inst { op: InstOp::Op(Op::Splat), args, .. }) => {
            let bits = function.as_bits(args[0])?;
            Some(if prim == Some(Prim::I32) { bits as i32 as i64 } else { bits as i64 })
        }
        _ => None,
    };
    let mut work = vec![(index, 1i64)];
    let mut n_steps = 0;
    while let Some((v, times)) = work.pop() {
        n_steps += 1;
        let op = defs[v].as_ref().filter(|_| n_steps <= MAX_STEPS);
        match op.map(|inst| (inst.op, &inst.args[..])) {
            _ if let Some(n) = number(v) => sum.number = sum.number.wrapping_add(times.wrapping_mul(n)),
            Some((InstOp::Op(Op::Add), &[a, b])) => work.extend([(a, times), (b, times)]),
            Some((InstOp::Op(Op::Sub), &[a, b])) => work.extend([(a, times), (b, times.wrapping_neg())]),
            Some((InstOp::Op(Op::Mul), &[a, b])) if let Some(n) = number(b) => work.push((a, times.wrapping_mul(n))),
            Some((InstOp::Op(Op::Mul), &[a, b])) if let Some(n) = number(a) => work.push((b, times.wrapping_mul(n))),
            _ => sum.terms.push((v, times)),
        }
    }
    sum.terms.sort_unstable_by_key(|t| t.0.idx());
    sum.terms.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 = first.1.wrapping_add(later.1);
        }
        same
    });
    sum.terms.retain(|t| t.1 != 0);
    sum
}

/// Groups of members, as indices into the group's list, that are read as one element; in the order of addresses.
fn chunks(group: &Group) -> Vec<Vec<usize>> {
    let size = layout::prim_size(group.prim) as i64;
    let mut order: Vec<usize> = (0..group.members.len()).collect();
    order.sort_by_key(|&m| group.members[m].1);
    order.dedup_by_key(|m| group.members[*m].1);
    let mut found = Vec::new();
    let mut rest = &order[..];
    while let Some(&first) = rest.first() {
        let at = |m: usize| (group.members[m].1 - group.members[first].1).wrapping_mul(group.scale);
        let n_beside = rest.iter().zip(0..).take_while(|&(&m, i)| at(m) == i * size).count();
        let n = [8 / size, 4 / size].into_iter().find(|&n| n > 1 && n as usize <= n_beside);
        let n = if group.prim == Prim::Bool { 1 } else { n.unwrap_or(1) as usize };
        found.push(rest[..n].to_vec());
        rest = &rest[n..];
    }
    found
}

fn rewrite(types: &mut Types, function: &mut Function, b: usize, groups: &[Group]) {
    let old = std::mem::take(&mut function.blocks[b].insts);
    let mut instead: Vec<Option<Vec<Inst>>> = vec![None; old.len()];
    for group in groups {
        let index = old[group.members[0].0].args[1];
        for chunk in chunks(group) {
            let place = |m: usize| group.members[m];
            // At the position of the first of them, after the index of the group's first gather.
            let Some(&early) = chunk.iter().min_by_key(|&&m| place(m).0) else { continue };
            let (i, low) = (place(early).0, place(chunk[0]).1);
            let like = &old[i];
            let mut made = Vec::new();
            let mut args = like.args.clone();
            if low != 0 {
                let ty = function.ty(index);
                let Some(lane) = types.part(ty, 0) else { continue };
                let steps = function.constant(Const::Bits(low as u64), lane);
                let steps = emit(function, &mut made, InstOp::Op(Op::Splat), &[steps], ty, like);
                args[1] = emit(function, &mut made, InstOp::Op(Op::Add), &[index, steps], ty, like);
            } else {
                args[1] = index;
            }
            if let [_] = chunk[..] {
                made.push(Inst { args, ..like.clone() });
                instead[i] = Some(made);
                continue;
            }
            let Some((_, n)) = like.result.and_then(|r| types.as_vector(function.ty(r))) else { continue };
            let whole = if layout::prim_size(group.prim) * chunk.len() as u64 == 8 { Prim::U64 } else { Prim::U32 };
            let (whole, parts) = (types.vector(whole, n), types.vector(group.prim, n * chunk.len() as u32));
            let all = emit(function, &mut made, like.op, &args, whole, like);
            let all = emit(function, &mut made, InstOp::Op(Op::Bitcast), &[all], parts, like);
            for (part, &m) in chunk.iter().enumerate() {
                let member = place(m).0;
                let lanes = (0..i64::from(n)).map(|k| k * chunk.len() as i64 + part as i64);
                let lanes = numbers(types, function, &mut made, lanes, like);
                let (op, args) = (InstOp::Op(Op::Shuffle), Args::from_slice(&[all, all, lanes]));
                made.push(Inst { op, args, ..old[member].clone() });
                instead[member] = Some(Vec::new());
            }
            instead[i] = Some(made);
        }
        // Gathers from the same addresses get the first one's result.
        for &(i, steps) in &group.members {
            let first = group.members.iter().find(|m| m.1 == steps).map(|m| m.0);
            if let (None, Some(first)) = (&instead[i], first.and_then(|f| old[f].result))
                && let Some(result) = old[i].result
            {
                let (op, args) = (InstOp::Op(Op::Bitcast), Args::from_slice(&[first]));
                instead[i] = Some(vec![Inst { op, args, result: Some(result), span: old[i].span, fast: false }]);
            }
        }
    }
    let mut insts = Vec::with_capacity(old.len());
    for (inst, instead) in old.into_iter().zip(instead) {
        insts.extend(instead.unwrap_or_else(|| vec![inst]));
    }
    function.blocks[b].insts = insts;
}
