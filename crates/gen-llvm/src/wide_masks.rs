//! Masks that go around loops, on machines that have no registers for masks: as vectors of integers that are as wide as the elements they
//! are about. Separate from the emission of instructions, since all masks that depend on each other have to be looked at together.
//!
//! Without this, LLVM keeps a mask of 16 lanes as 16 bytes from round to round. It packs comparisons of floats to bytes, and unpacks them
//! for each select, which takes a third of the instructions of a short loop. LLVM narrows such integers again where it sees that they
//! come from `bool`s, so they pass through `llvm.arithmetic.fence`, which is no instruction, but hides them:
//!
//! ```text
//! %v.w = phi <16 x float> [ %a.w, … ], [ %u.w, %loop ]      the mask, -1 or 0 in each lane
//! %v.i = bitcast <16 x float> %v.w to <16 x i32>
//! %v = icmp slt <16 x i32> %v.i, zeroinitializer            for selects, which need no more than the sign
//! %u.x = and <16 x i32> %v.i, …
//! %u.w = call <16 x float> @llvm.arithmetic.fence.v16f32(<16 x float> …)
//! ```
//!
//! Not wide are masks about elements of one or two bytes, which LLVM keeps well, those that fit one register of 128 bits, and those by
//! which memory is read or written: a volume renderer, whose loop is gathers, took 4 % longer.

use crate::diagnostics::bug;
use crate::function::FunctionEmitter;
use nyala_base::{Diagnostic, Id};
use nyala_flat::analysis::Cfg;
use nyala_flat::{Block, Edge, Function, Inst, InstOp, Terminator, Value, VectorOp};
use nyala_ir::{Arch, Op, Prim, Target, Ty, Types};
use rustc_hash::{FxHashMap, FxHashSet};

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// The wide masks of a function.
#[derive(Default)]
pub(crate) struct WideMasks {
    /// Bits of an element of each number of lanes, where there are wide masks.
    elements: FxHashMap<u32, u32>,
    masks: FxHashSet<Value>,
    /// Masks that are the same in all lanes.
    known: FxHashMap<Value, bool>,
    /// Integers that have a bit of such a mask each.
    bits: FxHashMap<Value, Value>,
    /// Integers that have bits of such registers of bytes each, and how many.
    pub parts: FxHashMap<Value, (u32, Vec<String>)>,
}

/// The number of lanes of a mask.
fn lanes(types: &Types, ty: Ty) -> Option<u32> {
    types.as_vector(ty).filter(|v| v.0 == Prim::Bool).map(|v| v.1)
}

impl WideMasks {
    /// Finds them: masks that a loop begins a round with, and what is made of these.
    pub fn of(types: &Types, function: &Function, cfg: &Cfg, target: &Target) -> WideMasks {
        let has_no_masks = match target.arch {
            Arch::X86_64 => !target.has_avx512(),
            Arch::Aarch64 => true,
            _ => false,
        };
        let of_value = |v: Value| lanes(types, function.ty(v));
        let is_loop = |b: Block| cfg.preds[b.idx()].iter().any(|p| cfg.position[p.idx()] >= cfg.position[b.idx()]);
        let headers = cfg.rpo.iter().filter(|b| is_loop(**b)).flat_map(|&b| &function.block(b).params);
        let mut waiting: Vec<Value> = headers.copied().filter(|&p| of_value(p).is_some()).collect();
        if !has_no_masks || waiting.is_empty() {
            return WideMasks::default();
        }
        // What masks are about, and what is made of them.
        let mut votes: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        let mut users: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for &b in &cfg.rpo {
            let block = function.block(b);
            for inst in &block.insts {
                let (InstOp::Op(op), Some(result)) = (inst.op, inst.result) else { continue };
                let about = if op == Op::Select { inst.args[1] } else { inst.args.first().copied().unwrap_or(result) };
                let element = types.as_vector(function.ty(about)).filter(|v| v.0 != Prim::Bool);
                if let Some((prim, n)) = element.filter(|_| op == Op::Select || of_value(result).is_some()) {
                    *votes.entry((n, prim.bits())).or_default() += 1;
                }
                if of_value(result).is_some() && matches!(op, Op::And | Op::Or | Op::Xor | Op::Select) {
                    inst.args.iter().for_each(|arg| users.entry(*arg).or_default().push(result));
                }
            }
            for edge in block.term.edges() {
                for (&param, &arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                    if of_value(param).is_some() && edge.block.idx() != 0 {
                        users.entry(arg).or_default().push(param);
                    }
                }
            }
        }
        let mut elements = FxHashMap::default();
        for n in waiting.iter().filter_map(|&v| of_value(v)).collect::<FxHashSet<u32>>() {
            let of_lanes = votes.iter().filter(|vote| vote.0.0 == n);
            // The wider of those that are as frequent.
            let most = of_lanes.max_by_key(|((_, bits), count)| (**count, *bits)).map(|vote| vote.0.1);
            elements.extend(most.filter(|&bits| bits >= 32 && n * bits > 128).map(|bits| (n, bits)));
        }
        let mut masks = FxHashSet::default();
        while let Some(v) = waiting.pop() {
            if of_value(v).is_some_and(|n| elements.contains_key(&n)) && masks.insert(v) {
                waiting.extend(users.get(&v).into_iter().flatten());
            }
        }
        // Loads and stores under a mask take it lane by lane, and want it narrow.
        let insts = || cfg.rpo.iter().flat_map(|&b| &function.block(b).insts);
        let reads = |inst: &&Inst| matches!(inst.op, InstOp::Vector(op) if op != VectorOp::MaskBits);
        for mask in insts().filter(reads).flat_map(|inst| &inst.args).filter(|arg| masks.contains(*arg)) {
            of_value(*mask).map(|n| elements.remove(&n));
        }
        masks.retain(|&v| of_value(v).is_some_and(|n| elements.contains_key(&n)));
        WideMasks { elements, masks, ..WideMasks::default() }
    }

    fn is_empty(&self) -> bool {
        self.masks.is_empty()
    }

    pub fn contains(&self, v: Value) -> bool {
        self.masks.contains(&v)
    }
}

impl FunctionEmitter<'_, '_> {
    /// The types of a wide mask: integers, and the floats that pass through a fence.
    fn wide_types(&self, v: Value) -> Result<(String, String, String)> {
        let n = lanes(&self.e.module.types, self.ty(v));
        let found = n.and_then(|n| Some((n, *self.wide.elements.get(&n)?)));
        let (n, bits) = found.ok_or_else(|| bug("a wide mask that is none"))?;
        let (float, short) = if bits == 64 { ("double", "f64") } else { ("float", "f32") };
        Ok((format!("<{n} x i{bits}>"), format!("<{n} x {float}>"), format!("v{n}{short}")))
    }

    /// A mask as a vector of integers. It is made here if the mask is not wide.
    fn as_integers(&mut self, v: Value) -> Result<String> {
        if self.wide.contains(v) {
            return Ok(format!("%v{}.i", v.idx()));
        }
        let ((ints, ..), mask, wide) = (self.wide_types(v)?, self.typed(v)?, self.temp());
        self.line(format_args!("{wide} = sext {mask} to {ints}"));
        Ok(wide)
    }

    /// Hides what the integers `from` are, as the floats `to`.
    fn fence(&mut self, v: Value, from: &str, to: &str) -> Result<()> {
        let ((ints, floats, suffix), open) = (self.wide_types(v)?, self.temp());
        let symbol = format!("llvm.arithmetic.fence.{suffix}");
        self.e.declare(&symbol, || format!("declare {floats} @{symbol}({floats})"));
        self.line(format_args!("{open} = bitcast {ints} {from} to {floats}"));
        self.line(format_args!("{to} = call {floats} @{symbol}({floats} {open})"));
        Ok(())
    }

    /// Makes the integers and the mask itself of what has passed the fence.
    pub fn after_fence(&mut self, v: Value) -> Result<()> {
        let ((ints, floats, _), name) = (self.wide_types(v)?, format!("%v{}", v.idx()));
        self.line(format_args!("{name}.i = bitcast {floats} {name}.w to {ints}"));
        self.line(format_args!("{name} = icmp slt {ints} {name}.i, zeroinitializer"));
        Ok(())
    }

    /// The type and the name of a block's parameter, if it is a wide mask.
    pub fn wide_param(&self, v: Value) -> Result<Option<(String, String)>> {
        match self.wide.contains(v) {
            true => Ok(Some((self.wide_types(v)?.1, format!("%v{}.w", v.idx())))),
            false => Ok(None),
        }
    }

    /// What an edge gives to a parameter that is a wide mask.
    pub fn wide_arg(&self, (b, nth): (Block, usize), i: usize, arg: Value) -> String {
        if self.wide.contains(arg) { format!("%v{}.w", arg.idx()) } else { format!("%b{}.{nth}.{i}.w", b.idx()) }
    }

    /// Makes what the edges give to wide masks that is not wide itself.
    pub fn widen_args(&mut self, b: Block, term: &Terminator) -> Result<()> {
        if self.wide.is_empty() {
            return Ok(());
        }
        let edges: Vec<Edge> = term.edges().cloned().collect();
        for (nth, edge) in edges.iter().enumerate() {
            let params = self.function.block(edge.block).params.clone();
            for (i, (&param, &arg)) in params.iter().zip(&edge.args).enumerate() {
                if self.wide.contains(param) && !self.wide.contains(arg) {
                    let (integers, to) = (self.as_integers(arg)?, self.wide_arg((b, nth), i, arg));
                    self.fence(param, &integers, &to)?;
                }
            }
        }
        Ok(())
    }

    /// Emits an instruction that makes or asks for a wide mask; false if this is none, or has to be emitted as well.
    pub fn emit_wide(&mut self, inst: &Inst) -> Result<bool> {
        let Some(result) = inst.result.filter(|_| !self.wide.is_empty() || !self.wide.parts.is_empty()) else {
            return Ok(false);
        };
        match inst.op {
            InstOp::Vector(VectorOp::MaskBits) if self.wide.contains(inst.args[0]) => {
                self.wide.bits.insert(result, inst.args[0]);
            }
            InstOp::Op(op @ (Op::Eq | Op::Ne)) if self.function.as_bits(inst.args[1]) == Some(0) => {
                if let Some(&mask) = self.wide.bits.get(&inst.args[0]) {
                    return self.any_lane(op, result, mask).map(|()| true);
                }
                let Some((step, parts)) = self.wide.parts.get(&inst.args[0]).cloned() else { return Ok(false) };
                let how = if op == Op::Eq { "eq" } else { "ne" };
                crate::vectors::any_of_parts(self, how, &format!("%v{}", result.idx()), step, &parts);
                return Ok(true);
            }
            InstOp::Op(Op::Splat) if lanes(&self.e.module.types, self.ty(result)).is_some() => {
                let known = self.function.as_bits(inst.args[0]);
                self.wide.known.extend(known.map(|bits| (result, bits != 0)));
            }
            InstOp::Op(op) if self.wide.contains(result) => {
                let (to, args) = (format!("%v{}", result.idx()), &inst.args);
                self.combine(op, &format!("{to}.x"), args, result)?;
                self.fence(result, &format!("{to}.x"), &format!("{to}.w"))?;
                self.after_fence(result)?;
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    /// `name` is whether a lane of a mask is true, or none is.
    fn any_lane(&mut self, op: Op, result: Value, mask: Value) -> Result<()> {
        let ((ints, _, suffix), own, any) = (self.wide_types(mask)?, self.as_integers(mask)?, self.temp());
        let (symbol, bits) = (
            format!("llvm.vector.reduce.or.{}", suffix.replace('f', "i")),
            if suffix.ends_with("64") { 64 } else { 32 },
        );
        self.e.declare(&symbol, || format!("declare i{bits} @{symbol}({ints})"));
        self.line(format_args!("{any} = call i{bits} @{symbol}({ints} {own})"));
        let text = if op == Op::Eq { "eq" } else { "ne" };
        self.line(format_args!("%v{} = icmp {text} i{bits} {any}, 0", result.idx()));
        Ok(())
    }

    /// Computes the integers of a mask from other masks.
    fn combine(&mut self, op: Op, to: &str, args: &[Value], result: Value) -> Result<()> {
        let (ints, ..) = self.wide_types(result)?;
        let word = match op {
            Op::And => "and",
            Op::Or => "or",
            Op::Xor => "xor",
            Op::Select => {
                let is_mask = lanes(&self.e.module.types, self.ty(args[0])).is_some();
                let known = |v: &Value| self.wide.known.get(v).copied();
                // An `and`, an `or`, or one of each lane.
                let (word, pair) = match (is_mask, known(&args[1]), known(&args[2])) {
                    (true, _, Some(false)) => ("and", [args[0], args[1]]),
                    (true, Some(true), _) => ("or", [args[0], args[2]]),
                    _ => ("select", [args[1], args[2]]),
                };
                let (a, b) = (self.as_integers(pair[0])?, self.as_integers(pair[1])?);
                match word {
                    "select" => {
                        let cond = self.typed(args[0])?;
                        self.line(format_args!("{to} = select {cond}, {ints} {a}, {ints} {b}"));
                    }
                    _ => {
                        // A lane of the other mask may be undefined where the condition decides alone.
                        let frozen = self.temp();
                        self.line(format_args!("{frozen} = freeze {ints} {b}"));
                        self.line(format_args!("{to} = {word} {ints} {a}, {frozen}"));
                    }
                }
                return Ok(());
            }
            other => return Err(bug(format!("a wide mask by `{}`", other.name()))),
        };
        let (a, b) = (self.as_integers(args[0])?, self.as_integers(args[1])?);
        self.line(format_args!("{to} = {word} {ints} {a}, {b}"));
        Ok(())
    }
}
