//! One function of flat SSA as LLVM text.
//!
//! A value is an LLVM register or, if it has many scalars, memory of its own in the function's frame, copied when the
//! value is made; an `insert` into a value without other uses writes in place. All memory of the frame is allocated on
//! entry.

use crate::aliases::Aliases;
use crate::comparisons::Comparison;
use crate::debug_values::Variables;
use crate::diagnostics::{bug, too_large};
use crate::emit::{Emitter, address_text, prim_text};
use crate::gpu;
use crate::known_numbers::known_numbers;
use crate::lifetimes::Lifetimes;
use crate::masked;
use crate::nvptx::Subnormals;
use crate::origins::Scope;
use crate::types::RetClass;
use crate::wide_masks::WideMasks;
use nyala_base::{Diagnostic, Id, Span};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Arch, Effect, Op, Ty, TyKind, layout};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

pub(crate) struct FunctionEmitter<'e, 'm> {
    pub e: &'e mut Emitter<'m>,
    pub function: &'m Function,
    pub func: Func,
    cfg: Cfg,
    pub ret: RetClass,
    /// For each block whether its call in tail position must keep the frame.
    pub keeps_frame: Vec<bool>,
    pub n_uses: Vec<u32>,
    /// Values that LLVM must not compute later. See [`crate::masked`].
    selected_loads: Vec<bool>,
    in_memory: Vec<bool>,
    /// The block where each local value is defined.
    pub home: Vec<Block>,
    pub operands: Vec<String>,
    aliases: Aliases,
    lifetimes: Lifetimes,
    /// Loads of memory that the kernel does not write.
    read_only: FxHashSet<Value>,
    /// The suffix of the access to memory that is being emitted.
    pub access: String,
    /// Whether the instruction being emitted is fast.
    pub fast: bool,
    /// Literal lanes of vectors; `None` for undefined lanes.
    pub const_lanes: FxHashMap<Value, Vec<Option<u64>>>,
    /// Masks that are comparisons.
    pub comparisons: FxHashMap<Value, Comparison>,
    /// For signed sums the operand without its literal, and the literal.
    pub offsets: FxHashMap<Value, (String, i64)>,
    /// Addresses of the first elements of small arrays, with their number of elements and an element's bytes.
    pub tables: FxHashMap<Value, (u64, u64)>,
    /// Whether these are taken from indices.
    pub splits_offsets: bool,
    /// Sums and differences, in kernels for NVIDIA's GPUs.
    pub sums: FxHashMap<Value, (Op, [Value; 2])>,
    /// Floats that are not NaN, once somebody asks.
    known_numbers: Option<Vec<bool>>,
    /// Exponents of vectors that are fast exponentials.
    pub exponents: FxHashMap<Value, String>,
    /// Masks that are vectors of integers.
    pub wide: WideMasks,
    is_huge: bool,
    /// Those of a kernel for NVIDIA's GPUs; elsewhere they are kept.
    pub subnormals: Subnormals,
    pub call_attributes: &'static str,
    /// The debug scope of the function, and the suffix of each instruction with its location.
    pub scope: Option<Scope>,
    at: String,
    pub variables: Variables,
    pub allocas: String,
    pub body: String,
    n_temps: usize,
    /// On GPUs, jumps back in loops that are unrolled.
    unrolled: FxHashSet<(Block, Block)>,
    /// Bytes of the block's memory so far, on GPUs.
    pub shared_bytes: u64,
}

/// Functions with more blocks or instructions than these, or more instructions in a block, are not optimized.
const MAX_BLOCKS: usize = 4000;
const MAX_INSTS: usize = 40_000;
const MAX_INSTS_OF_BLOCK: usize = 16_000;
/// The blocks of such functions are cut into LLVM blocks of this many instructions.
const MAX_IN_BLOCK: usize = 1000;
/// With more instructions in a block than this, literals in indices become offsets. See Note [Offsets of addresses] in
/// `aggregates`.
const MAX_SUMS: usize = 1000;
/// Only tiny functions are inlined into functions with more calls than this.
const MAX_INLINED_CALLS: usize = 500;
/// Functions with as many wide vectors as this have more than there are registers.
const MANY_VECTORS: usize = 64;
/// The instructions of a tiny function, which are about as many as those of its call: the order of a sort, an element of a view.
pub(crate) const MAX_TINY: usize = 8;

/// Writes the definition of a function with a body.
pub(crate) fn emit_function(e: &mut Emitter, func: Func) -> Result<()> {
    let function = e.module.func(func);
    let cfg = Cfg::new(function);
    let ret = e.layouts.ret_class(&function.rets)?;
    let mut n_uses = vec![0; function.values.len()];
    let mut home = vec![Block(u32::MAX); function.values.len()];
    for &b in &cfg.rpo {
        let block = function.block(b);
        block.params.iter().for_each(|p| home[p.idx()] = b);
        for inst in &block.insts {
            inst.args.iter().for_each(|a| n_uses[a.idx()] += 1);
            if let Some(r) = inst.result {
                home[r.idx()] = b;
            }
        }
        block.term.for_each_use(|v| n_uses[v.idx()] += 1);
    }
    // See Note [Huge functions].
    let blocks = || cfg.rpo.iter().map(|&b| function.block(b));
    let is_huge = cfg.rpo.len() > MAX_BLOCKS
        || blocks().map(|b| b.insts.len()).sum::<usize>() > MAX_INSTS
        || blocks().any(|b| b.insts.len() > MAX_INSTS_OF_BLOCK);
    let is_call = |i: &&Inst| matches!(i.op, InstOp::Call(_) | InstOp::CallIndirect);
    let many_calls = blocks().map(|b| b.insts.iter().filter(is_call).count()).sum::<usize>() > MAX_INLINED_CALLS;
    let keeps_frame =
        nyala_flat::tail_calls::blocks_that_keep_frames(e.module, &mut e.escapes, &mut e.frames, func, &cfg);
    let lifetimes = Lifetimes::new(&e.module.types, function, &cfg);
    let in_memory = function.values.iter().map(|v| e.layouts.in_memory(v.ty)).collect();
    let selected_loads = masked::selected_loads(function, &cfg);
    let unrolled = if e.target().is_gpu() { gpu::loops_to_unroll(function, &cfg) } else { FxHashSet::default() };
    let subnormals = match e.target().arch {
        Arch::Nvptx64 => Subnormals::of(&e.module.types, function),
        _ => Subnormals::Kept,
    };
    let wide = match e.options.opt_level == 0 || is_huge {
        true => WideMasks::default(),
        false => WideMasks::of(&e.module.types, function, &cfg, e.target()),
    };
    let splits_offsets = e.target().is_gpu() || blocks().any(|b| b.insts.len() > MAX_SUMS);
    let read_only = nyala_flat::read_only(e.module, func).loads;
    let mut emitter = FunctionEmitter {
        e,
        function,
        func,
        cfg,
        ret,
        keeps_frame,
        n_uses,
        selected_loads,
        in_memory,
        home,
        operands: vec![String::new(); function.values.len()],
        aliases: Aliases::new(function),
        read_only,
        lifetimes,
        access: String::new(),
        fast: false,
        const_lanes: FxHashMap::default(),
        comparisons: FxHashMap::default(),
        offsets: FxHashMap::default(),
        tables: FxHashMap::default(),
        splits_offsets,
        sums: FxHashMap::default(),
        known_numbers: None,
        exponents: FxHashMap::default(),
        wide,
        is_huge,
        subnormals,
        call_attributes: if many_calls { "#4" } else { "#1" },
        scope: None,
        variables: Variables::new(function),
        at: String::new(),
        allocas: String::new(),
        body: String::new(),
        n_temps: 0,
        unrolled,
        shared_bytes: 0,
    };
    emitter.emit(func)
}

/// The staging area of a block parameter in memory, see [`FunctionEmitter::edge_copies`].
fn staging(value: &str) -> String {
    format!("{value}.in")
}

impl FunctionEmitter<'_, '_> {
    pub fn ty(&self, v: Value) -> Ty {
        self.function.ty(v)
    }

    pub fn in_memory(&self, v: Value) -> bool {
        self.in_memory[v.idx()]
    }

    pub fn line(&mut self, text: std::fmt::Arguments) {
        self.body.push_str("  ");
        let _ = self.body.write_fmt(text);
        self.body.push_str(&self.at);
        self.body.push('\n');
    }

    /// Whether the operation being emitted may be reassociated and contracted.
    pub fn is_fast(&self) -> bool {
        self.fast || self.e.options.fast_math
    }

    /// Whether a float, or each of a vector, is certainly not NaN.
    pub fn is_number(&mut self, v: Value) -> bool {
        let (types, function) = (&self.e.module.types, self.function);
        self.known_numbers.get_or_insert_with(|| known_numbers(types, function))[v.idx()]
    }

    pub fn temp(&mut self) -> String {
        self.n_temps += 1;
        format!("%t{}", self.n_temps)
    }

    /// Allocates memory in the frame for a value of type `ty`.
    pub fn alloca(&mut self, name: &str, ty: Ty) -> Result<()> {
        let text = self.e.layouts.memory(ty)?;
        let (_, align) = self.size_align(ty)?;
        let align = align.max(1);
        let _ = match self.e.target().arch {
            // Variables have a space of their own.
            Arch::AmdGcn => writeln!(
                self.allocas,
                "  {name}.own = alloca {text}, align {align}, addrspace(5)\n  {name} = addrspacecast ptr addrspace(5) {name}.own to ptr"
            ),
            _ => writeln!(self.allocas, "  {name} = alloca {text}, align {align}"),
        };
        Ok(())
    }

    /// Emits a local variable.
    pub fn slot(&mut self, result: Value, ty: Ty) -> Result<()> {
        let name = self.op(result);
        self.alloca(&name, ty)?;
        if self.lifetimes.begins.contains(&result) && self.e.target().arch != Arch::AmdGcn {
            self.lifetime("start", &name);
        }
        Ok(())
    }

    fn end_slots(&mut self, slots: Option<Vec<Value>>) {
        let has_lifetimes = self.e.target().arch != Arch::AmdGcn;
        for slot in slots.into_iter().flatten().filter(|_| has_lifetimes) {
            let name = self.op(slot);
            self.lifetime("end", &name);
        }
    }

    fn lifetime(&mut self, what: &str, slot: &str) {
        let symbol = format!("llvm.lifetime.{what}.p0");
        self.e.declare(&symbol, || format!("declare void @{symbol}(ptr)"));
        self.line(format_args!("call void @{symbol}(ptr {slot})"));
    }

    pub fn size_align(&self, ty: Ty) -> Result<(u64, u64)> {
        let types = &self.e.module.types;
        layout::size_align(types, ty).ok_or_else(|| too_large(&format!("the type `{}`", types.display(ty))))
    }

    pub fn copy(&mut self, to: &str, from: &str, ty: Ty) -> Result<()> {
        let (size, align) = self.size_align(ty)?;
        if to != from && from != "undef" {
            self.e.declare_memcpy();
            self.line(format_args!(
                "call void @llvm.memcpy.p0.p0.i64(ptr align {align} {to}, ptr align {align} {from}, i64 {size}, i1 false)"
            ));
        }
        Ok(())
    }

    /// The bytes of a vector, if the function has so many of these that LLVM stores some to the stack. Without the attribute it does so at
    /// any multiple of 16, and where a vector crosses a boundary of cache lines, the code takes up to twice the time.
    fn stack_alignment(&self) -> Option<u32> {
        let (types, target) = (&self.e.module.types, self.e.target());
        let is_wide = |ty: Ty| types.as_vector(ty).is_some_and(|(prim, n)| prim.bits() * n >= 256);
        let is_relevant = target.arch == Arch::X86_64 && target.vector_bits >= 256 && !self.is_huge;
        let values = || self.function.values.iter().filter(|v| v.def == Def::Local && is_wide(v.ty));
        (is_relevant && values().take(MANY_VECTORS).count() == MANY_VECTORS).then_some(target.vector_bits / 8)
    }

    fn emit(&mut self, func: Func) -> Result<()> {
        let function = self.function;
        self.scope = self.e.origins.as_mut().map(|o| o.function(&function.name, function.span));
        for (i, value) in function.values.iter().enumerate() {
            self.operands[i] = match value.def {
                Def::Local => format!("%v{i}"),
                Def::Const(constant) => self.constant(constant, value.ty)?,
            };
        }
        let Some(entry) = function.blocks.first() else {
            return Err(bug(format!("`{}` has no blocks", function.name)));
        };
        let (ret, heads) = self.e.head(func)?;
        let n_results = heads.len() - entry.params.len();
        let mut params: Vec<String> = heads[..n_results].iter().map(|head| format!("{head} %ret")).collect();
        let by_address = self.e.passes_vectors_by_address(&function.params);
        for (&p, head) in entry.params.iter().zip(&heads[n_results..]) {
            let (ty, name) = (self.ty(p), self.op(p));
            if by_address && self.e.layouts.has_vector(ty) {
                params.push(format!("{head} {name}.at"));
                self.read(&name, &format!("{name}.at"), ty)?;
            } else if self.is_mask(ty) {
                params.push(format!("{head} {name}.bytes"));
                self.narrow_bool(&name, &format!("{name}.bytes"), head);
            } else {
                params.push(format!("{head} {name}"));
            }
        }
        let prologue = std::mem::take(&mut self.body);
        // Definitions come before uses, except for operands of phis: these are written last.
        let mut bodies = Vec::new();
        for b in self.cfg.rpo.clone() {
            self.emit_block(b)?;
            bodies.push((b, std::mem::take(&mut self.body)));
        }
        self.go_to(Span::NONE);
        for (b, body) in bodies {
            let _ = writeln!(self.body, "b{}:", b.idx());
            self.emit_params(b)?;
            self.body.push_str(&body);
        }
        let name = self.e.internal_name(func);
        let cc = self.e.convention(&function.params);
        let attributes = if self.is_huge { "#3" } else { "#0" };
        let inlined = if function.is_piece { " noinline" } else { "" };
        let aligned = self.stack_alignment().map_or(String::new(), |bytes| format!(" alignstack({bytes})"));
        let attributes =
            format!("{attributes}{inlined}{aligned}{}{}", self.e.version_attributes(), self.subnormals.attribute());
        let scope = self.scope.map_or(String::new(), Scope::suffix);
        self.go_to(function.span);
        let at = self.at.clone();
        let linkage = self.e.linkage(func);
        let out = &mut self.e.out;
        let _ = writeln!(out, "define {linkage}{cc}{ret} {name}({}) {attributes}{scope} {{\nentry:", params.join(", "));
        out.push_str(&self.allocas);
        out.push_str(&prologue);
        let _ = writeln!(out, "  br label %b0{at}");
        out.push_str(&self.body);
        out.push_str("}\n\n");
        Ok(())
    }

    fn constant(&mut self, constant: Const, ty: Ty) -> Result<String> {
        Ok(match constant {
            Const::Bits(bits) => match self.e.module.types.as_prim(ty) {
                Some(prim) => prim_text(prim, bits),
                None => address_text(bits),
            },
            Const::Undef => "undef".into(),
            Const::Func(func) => self.e.internal_name(func),
            Const::CFunc(func) => self.e.c_name(func)?,
            Const::Global(global) => self.e.global_name(global),
        })
    }

    pub fn op(&self, v: Value) -> String {
        self.operands[v.idx()].clone()
    }

    /// The operand preceded by its register type.
    pub fn typed(&mut self, v: Value) -> Result<String> {
        let ty = self.e.layouts.register(self.ty(v))?;
        Ok(format!("{ty} {}", self.operands[v.idx()]))
    }

    /// Takes the line from the instructions emitted next.
    pub fn hide(&mut self, span: Span) {
        if let (Some(origins), Some(scope)) = (&mut self.e.origins, self.scope) {
            self.at = origins.suffix_without_line(scope, span);
        }
    }

    /// Sets the source location of the instructions emitted next.
    fn go_to(&mut self, span: Span) {
        if let (Some(origins), Some(scope)) = (&mut self.e.origins, self.scope) {
            self.at = origins.suffix(scope, span);
        }
    }

    fn emit_block(&mut self, b: Block) -> Result<()> {
        let function = self.function;
        let block = function.block(b);
        self.go_to(Span::NONE);
        let ended = self.lifetimes.ends_at.remove(&b);
        self.end_slots(ended);
        let ahead = self.ahead(block);
        for (i, inst) in block.insts.iter().enumerate() {
            match inst.result {
                Some(v) if ahead.contains(&v) => self.go_to(Span::NONE),
                _ => self.go_to(inst.span),
            }
            self.emit_inst(b, inst)?;
            let ended = self.lifetimes.ends_after.remove(&(b, i));
            self.end_slots(ended);
            if self.is_huge && (i + 1) % MAX_IN_BLOCK == 0 && i + 1 < block.insts.len() {
                self.part(b, (i + 1) / MAX_IN_BLOCK);
            }
        }
        if let (Some(last), Some(origins), Some(scope)) = (block.insts.last(), &mut self.e.origins, self.scope) {
            self.at = origins.suffix_of_jump(scope, last.span);
        }
        self.emit_terminator(b, &block.term)
    }

    /// The values that a block computes only for others, as before a loop that needs them. For a debugger that walks through code
    /// without optimization they have no line: nothing happens there yet.
    fn ahead(&self, block: &BlockData) -> FxHashSet<Value> {
        let mut ahead = FxHashSet::default();
        if self.e.options.opt_level > 0 || self.scope.is_none() {
            return ahead;
        }
        let mut needed = FxHashSet::default();
        block.term.for_each_use(|v| _ = needed.insert(v));
        for inst in block.insts.iter().rev() {
            match inst.result {
                Some(v) if is_movable(inst) && !needed.contains(&v) => _ = ahead.insert(v),
                _ => needed.extend(&inst.args),
            }
        }
        ahead
    }

    /// Ends the LLVM block with a jump to another one, in which `b` goes on.
    fn part(&mut self, b: Block, nth: usize) {
        let label = format!("b{}.part{nth}", b.idx());
        self.line(format_args!("br label %{label}"));
        let _ = writeln!(self.body, "{label}:");
    }

    /// The label of the LLVM block that has the end of `b`.
    fn last_label(&self, b: Block) -> String {
        let n_insts = self.function.block(b).insts.len();
        match n_insts.saturating_sub(1) / MAX_IN_BLOCK {
            nth if nth > 0 && self.is_huge => format!("%b{}.part{nth}", b.idx()),
            _ => format!("%b{}", b.idx()),
        }
    }

    /// Labels of the LLVM blocks from which a block is reached, with the edge taken: its block, its number there, and itself.
    fn incoming(&self, b: Block) -> Vec<(String, (Block, usize), &Edge)> {
        let mut preds = self.cfg.preds[b.idx()].clone();
        preds.sort_unstable();
        preds.dedup();
        let mut incoming = Vec::new();
        for p in preds {
            for (i, edge) in self.function.block(p).term.edges().enumerate() {
                if edge.block == b {
                    incoming.push((self.edge_label(p, i), (p, i), edge));
                }
            }
        }
        incoming
    }

    /// Whether a branch's edge needs a block of its own, for copies or because both edges have one target.
    fn needs_block(&self, p: Block, nth: usize) -> bool {
        let term = &self.function.block(p).term;
        let Terminator::Branch { then, els, .. } = term else { return false };
        let edge = if nth == 0 { then } else { els };
        let target = self.function.block(edge.block);
        let twice = nth == 1 && then.block == els.block && !target.params.is_empty();
        twice || target.params.iter().any(|&v| self.in_memory(v))
    }

    fn edge_label(&self, p: Block, nth: usize) -> String {
        if self.needs_block(p, nth) { format!("%b{}.{nth}", p.idx()) } else { self.last_label(p) }
    }

    fn emit_params(&mut self, b: Block) -> Result<()> {
        let function = self.function;
        if b.idx() == 0 {
            return Ok(());
        }
        let incoming: Vec<(String, (Block, usize), Edge)> =
            self.incoming(b).into_iter().map(|(label, from, e)| (label, from, e.clone())).collect();
        for (i, &param) in function.block(b).params.iter().enumerate() {
            let ty = self.ty(param);
            let name = self.op(param);
            if self.in_memory(param) {
                self.alloca(&name, ty)?;
                self.alloca(&staging(&name), ty)?;
                continue;
            }
            let wide = self.wide_param(param)?;
            let of_edge = |(label, from, edge): &(String, (Block, usize), Edge)| match &wide {
                Some(_) => format!("[ {}, {label} ]", self.wide_arg(*from, i, edge.args[i])),
                None => format!("[ {}, {label} ]", self.op(edge.args[i])),
            };
            let ways = incoming.iter().map(of_edge).collect::<Vec<_>>().join(", ");
            let (text, name) = match wide {
                Some(wide) => wide,
                None => (self.e.layouts.register(ty)?, name),
            };
            self.line(format_args!("{name} = phi {text} {ways}"));
        }
        for &param in &function.block(b).params {
            if self.wide.contains(param) {
                self.after_fence(param)?;
            }
        }
        Ok(())
    }

    /// Copies an edge's arguments to block parameters in memory. If one copy overwrites the source of another, all go
    /// through staging areas.
    fn edge_copies(&mut self, edge: &Edge) -> Result<()> {
        let function = self.function;
        let params = &function.block(edge.block).params;
        let mut moves = Vec::new();
        for (&param, &arg) in params.iter().zip(&edge.args) {
            if param != arg && self.in_memory(param) {
                moves.push((self.op(param), self.op(arg), self.ty(param)));
            }
        }
        let clash = moves.iter().any(|(_, from, _)| moves.iter().any(|(to, _, _)| to == from));
        if !clash {
            for (to, from, ty) in moves {
                self.copy(&to, &from, ty)?;
            }
            return Ok(());
        }
        for (to, from, ty) in &moves {
            self.copy(&staging(to), from, *ty)?;
        }
        for (to, _, ty) in &moves {
            self.copy(to, &staging(to), *ty)?;
        }
        Ok(())
    }

    fn emit_terminator(&mut self, b: Block, term: &Terminator) -> Result<()> {
        self.widen_args(b, term)?;
        match term {
            Terminator::Jump(edge) => {
                self.edge_copies(edge)?;
                let unrolled = match self.unrolled.contains(&(b, edge.block)) {
                    true => gpu::unrolled(self.e),
                    false => String::new(),
                };
                self.line(format_args!("br label %b{}{unrolled}", edge.block.idx()));
            }
            Terminator::Branch { cond, then, els } => {
                let own = [self.needs_block(b, 0), self.needs_block(b, 1)];
                let label = |nth: usize, edge: &Edge| {
                    if own[nth] { format!("%b{}.{nth}", b.idx()) } else { format!("%b{}", edge.block.idx()) }
                };
                let (cond, yes, no) = (self.op(*cond), label(0, then), label(1, els));
                self.line(format_args!("br i1 {cond}, label {yes}, label {no}"));
                for (nth, edge) in [then, els].into_iter().enumerate() {
                    if own[nth] {
                        let _ = writeln!(self.body, "b{}.{nth}:", b.idx());
                        self.edge_copies(edge)?;
                        self.line(format_args!("br label %b{}", edge.block.idx()));
                    }
                }
            }
            Terminator::Return(args) => self.emit_return(args)?,
            Terminator::TailCall { callee, args, .. } => self.emit_tail_call(b, *callee, args)?,
            Terminator::Unreachable => self.line(format_args!("unreachable")),
        }
        Ok(())
    }

    fn emit_return(&mut self, args: &[Value]) -> Result<()> {
        match (self.ret.clone(), args) {
            (RetClass::Direct(ty), _) if ty == "void" => self.line(format_args!("ret void")),
            (RetClass::Direct(ty), [one]) => {
                let value = self.op(*one);
                self.line(format_args!("ret {ty} {value}"));
            }
            (RetClass::Direct(ty), many) => {
                let mut all = "undef".to_string();
                for (i, &v) in many.iter().enumerate() {
                    let part = self.part_operand(v)?;
                    let next = self.temp();
                    self.line(format_args!("{next} = insertvalue {ty} {all}, {part}, {i}"));
                    all = next;
                }
                self.line(format_args!("ret {ty} {all}"));
            }
            (RetClass::Memory, many) => {
                for (i, &v) in many.iter().enumerate() {
                    let at = self.ret_part("%ret", i)?;
                    self.write(&at, v)?;
                }
                self.line(format_args!("ret void"));
            }
        }
        Ok(())
    }

    /// The address of the i-th result in memory.
    fn ret_part(&mut self, base: &str, i: usize) -> Result<String> {
        let rets = self.function.rets.clone();
        let offset = self.result_offset(&rets, i)?;
        let at = self.temp();
        self.line(format_args!("{at} = getelementptr inbounds i8, ptr {base}, i64 {offset}"));
        Ok(at)
    }

    fn result_offset(&self, rets: &[Ty], idx: usize) -> Result<u64> {
        let mut at = 0u64;
        for (i, &ty) in rets.iter().enumerate() {
            let (size, align) = self.size_align(ty)?;
            at = at.next_multiple_of(align);
            if i == idx {
                break;
            }
            at += size;
        }
        Ok(at)
    }

    /// Stores a value.
    pub fn write(&mut self, at: &str, v: Value) -> Result<()> {
        let ty = self.ty(v);
        let value = self.op(v);
        if self.in_memory(v) {
            return self.copy(at, &value, ty);
        }
        let text = self.e.layouts.memory(ty)?;
        let value = if self.e.layouts.is_bool(ty) { self.widen_bool(&value, ty)? } else { value };
        let align = self.vector_align(ty);
        let (past_caches, access) = (self.nontemporal(), self.access.clone());
        self.line(format_args!("store {text} {value}, ptr {at}{align}{past_caches}{access}"));
        Ok(())
    }

    /// The suffix of a store that is being emitted: `!nontemporal` if it is streaming.
    pub fn nontemporal(&mut self) -> String {
        if self.fast { format!(", !nontemporal {}", self.e.metadata("!{i32 1}")) } else { String::new() }
    }

    /// Declares the alias scopes of the call `scope` of a function with restricted parameters.
    pub fn declare_scopes(&mut self, scope: Value) {
        for list in self.aliases.scopes_of(self.e, scope) {
            self.e.declare("llvm.experimental.noalias.scope.decl", || {
                "declare void @llvm.experimental.noalias.scope.decl(metadata)".into()
            });
            self.line(format_args!("call void @llvm.experimental.noalias.scope.decl(metadata {list})"));
        }
    }

    /// Loads a value of type `ty` as `name`.
    pub fn read(&mut self, name: &str, at: &str, ty: Ty) -> Result<()> {
        if self.e.layouts.in_memory(ty) {
            self.alloca(name, ty)?;
            return self.copy(name, at, ty);
        }
        let text = self.e.layouts.memory(ty)?;
        let (align, access) = (self.vector_align(ty), self.access.clone());
        if self.e.layouts.is_bool(ty) {
            let byte = self.temp();
            self.line(format_args!("{byte} = load {text}, ptr {at}{align}{access}"));
            self.narrow_bool(name, &byte, &text);
        } else {
            self.line(format_args!("{name} = load {text}, ptr {at}{align}{access}"));
        }
        Ok(())
    }

    /// The address of a copy of a value, in memory that can also be read as a value of type `other`.
    pub fn spill_for(&mut self, v: Value, other: Ty) -> Result<String> {
        let (own, other_layout) = (self.size_align(self.ty(v))?, self.size_align(other)?);
        if own.1 >= other_layout.1 && own.0 >= other_layout.0 {
            return self.spill(v);
        }
        let at = self.temp();
        self.alloca(&at, other)?;
        if self.operands[v.idx()] != "undef" {
            self.write(&at, v)?;
        }
        Ok(at)
    }

    /// The address of a value in the frame, copied there if necessary.
    pub fn spill(&mut self, v: Value) -> Result<String> {
        if self.in_memory(v) && self.operands[v.idx()] != "undef" {
            return Ok(self.op(v));
        }
        let at = self.temp();
        self.alloca(&at, self.ty(v))?;
        if self.operands[v.idx()] != "undef" {
            self.write(&at, v)?;
        }
        Ok(at)
    }

    pub fn pointee(&self, ty: Ty) -> Result<Ty> {
        self.e.module.types.pointee(ty).ok_or_else(|| bug("an address of nothing"))
    }

    /// The alignment of an access to a vector, that of a lane: programs read vectors at any element of arrays.
    fn vector_align(&self, ty: Ty) -> String {
        let lane = self.e.module.types.as_vector(ty).map(|(p, _)| layout::prim_size(p));
        lane.map_or(String::new(), |align| format!(", align {align}"))
    }

    /// Converts a bool, or a vector of them, to its type in memory.
    pub fn widen_bool(&mut self, value: &str, ty: Ty) -> Result<String> {
        let (from, to, byte) = (self.e.layouts.register(ty)?, self.e.layouts.memory(ty)?, self.temp());
        self.line(format_args!("{byte} = zext {from} {value} to {to}"));
        Ok(byte)
    }

    /// Converts a bool, or a vector of them, from its type in memory; `memory` is the type of `byte`.
    pub fn narrow_bool(&mut self, name: &str, byte: &str, memory: &str) {
        let zero = if memory.starts_with('<') { "zeroinitializer" } else { "0" };
        self.line(format_args!("{name} = icmp ne {memory} {byte}, {zero}"));
    }

    /// Type and value of an aggregate's part.
    pub fn part_operand(&mut self, v: Value) -> Result<String> {
        let ty = self.ty(v);
        let value = self.op(v);
        let text = self.e.layouts.memory(ty)?;
        let value = if self.e.layouts.is_bool(ty) { self.widen_bool(&value, ty)? } else { value };
        Ok(format!("{text} {value}"))
    }

    /// Whether a type is a vector of bools. As arguments these are bytes: LLVM 22 fails to pass one lane of `i1` on
    /// AVX-512, and elsewhere makes each lane an argument.
    pub fn is_mask(&self, ty: Ty) -> bool {
        self.e.layouts.is_mask(ty)
    }

    fn emit_inst(&mut self, b: Block, inst: &Inst) -> Result<()> {
        self.fast = inst.fast;
        self.access = self.aliases.access(self.e, inst);
        if inst.result.is_some_and(|r| self.read_only.contains(&r)) {
            self.access.push_str(&format!(", !invariant.load {}", self.e.metadata("!{}")));
        }
        let emitted = self.emit_any(b, inst);
        self.access.clear();
        if let Some(r) = inst.result.filter(|r| self.selected_loads[r.idx()] && !self.in_memory(*r)) {
            self.freeze(r)?;
        }
        emitted
    }

    fn freeze(&mut self, v: Value) -> Result<()> {
        let (value, frozen) = (self.typed(v)?, self.temp());
        self.line(format_args!("{frozen} = freeze {value}"));
        self.operands[v.idx()] = frozen;
        Ok(())
    }

    fn emit_any(&mut self, b: Block, inst: &Inst) -> Result<()> {
        if self.emit_wide(inst)? {
            return Ok(());
        }
        match (inst.op, inst.result) {
            (InstOp::Call(func), Some(result)) => {
                let rets = self.e.module.func(func).rets.clone();
                self.emit_call(result, Callee::Func(func), &inst.args, &rets)
            }
            (InstOp::CallIndirect, Some(result)) => {
                let Some((&code, args)) = inst.args.split_first() else {
                    return Err(bug("an indirect call of nothing"));
                };
                // The result's type tells the signature: a tuple means several results, which the verifier ensures.
                let types = &self.e.module.types;
                let rets = match types.kind(self.ty(result)) {
                    TyKind::Tuple(elems) => elems.to_vec(),
                    _ => vec![self.ty(result)],
                };
                self.emit_call(result, Callee::Indirect(code), args, &rets)
            }
            (InstOp::Op(op), result) => crate::ops::emit_op(self, b, op, inst, result),
            (InstOp::Vector(op), result) => crate::vectors::emit_vector_op(self, op, inst, result),
            (InstOp::Vectorize(..), _) => Err(bug("`vectorize` in machine code")),
            (InstOp::Launch(..), _) => Err(bug("`launch` in machine code")),
            (InstOp::Call(_) | InstOp::CallIndirect, None) => Err(bug("a call without a result")),
        }
    }
}

// Note [Huge functions]
//
// Some of LLVM's passes take quadratic time in the size of a function or block: 8000 conditional statements in a row
// take minutes at -O3, 32,000 statements one minute in instruction selection. A function of that size is compiled as at
// -O0. Its blocks are cut, since MachineCombiner is quadratic in the size of a block, and runs for such functions, too. So
// the time is linear. Nothing is inlined into functions that would grow to that size. Only the allocation of registers
// stays that of the module: the fast one would make all other functions slow.

/// Whether an instruction may be computed anywhere.
fn is_movable(inst: &Inst) -> bool {
    matches!(inst.op, InstOp::Op(op) if op.effect() == Effect::Total && op != Op::DebugValue)
}
