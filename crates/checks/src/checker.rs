//! Inserts the checks into one function: block by block, instruction by instruction.

use super::arithmetic::Late;
use super::code::Code;
use super::lent::Confined;
use super::needed::{needed, put_where_needed};
use super::versions::{Counted, Version, counted, version_loops};
use super::{Checks, Tables, Texts, object_ty};
use nyala_base::{Id, Span};
use nyala_flat::analysis::Cfg;
use nyala_flat::*;
use nyala_ir::{Op, Prim, Ty, TyKind, Types, layout};
use rustc_hash::{FxHashMap, FxHashSet};

/// Limit on the instructions between an address and the address from which it was computed.
const MAX_STEPS: usize = 1000;

/// Indices of words in an object: the runtime's record of a block of memory, with its bounds.
const LOW: u64 = 0;
pub const SIZE: u64 = 1;
/// For accesses of 1, 2, 4 and 8 bytes: the word that holds the offset below which an access must begin.
const LIMITS: [(u64, u64); 4] = [(1, SIZE), (2, 2), (4, 3), (8, 4)];
pub const MASK: u64 = 5;
const SHADOW: u64 = 6;
pub const STATE: u64 = 7;

/// Bits of a check of lanes, which the runtime knows as well.
const READS_LANES: u64 = 1 << 9;
const NOTES_LANES: u64 = 1 << 10;

/// Numbers of faults, which the runtime knows as well.
const ACCESS: u64 = 0;
pub const OVERFLOW: u64 = 1;
pub const UNINITIALIZED: u64 = 2;
pub const DIVISION: u64 = 3;
const UNDEFINED: u64 = 4;

/// Functions of the runtime that get addresses, and do not write there.
const READERS: [&str; 6] =
    ["nyala_parallel", "nyala_spawn", "nyala_retain", "nyala_release", "nyala_retain_shared", "nyala_release_shared"];

/// An access of memory.
pub struct Access {
    pub address: Value,
    /// The number of bytes.
    pub size: u64,
    /// Whether it writes. Otherwise it reads. An atomic update counts as a write.
    pub writes: bool,
    pub mask: Option<Value>,
}

/// How an address was computed: from the address `root`, by adding.
pub struct Origin {
    pub root: Value,
    /// A number of bytes that is added.
    pub bytes: i64,
    pub terms: Vec<(Value, i64)>,
}

/// Bounds of the memory that the root of an address points to.
#[derive(Clone, Copy)]
pub enum Bounds {
    /// Those in an object of the runtime; and the distance of the root from the start of that memory, in bytes.
    Object(Value, Value),
    /// A variable or static of this size; the root is its start.
    Known(u64),
}

pub struct Checker<'a, 't> {
    pub module: &'a mut Module,
    pub code: Code<'a>,
    pub checks: Checks,
    texts: &'a Texts<'t>,
    pub tables: &'a Tables,
    chained: &'a FxHashSet<Func>,
    /// The global that holds a text of a report, by text.
    places: &'a mut FxHashMap<String, GlobalId>,
    pub defs: FxHashMap<Value, Inst>,
    /// For roots of addresses: the runtime's object, and the distance of the root from the start of its memory. `None` until
    /// the code has reached the definition of the root.
    objects: FxHashMap<Value, Option<(Value, Value)>>,
    /// Variables that are allocated on the heap, because their addresses leave the function.
    pub moved: FxHashSet<Value>,
    /// The shadow of each variable that stays on the stack, and of statics: a variable or static whose bytes tell which bytes of the first
    /// are initialized.
    pub shadows: FxHashMap<Value, Value>,
    /// Values that are used on every path from their definition. Others may have been moved before the branch that guards them
    /// (see `needed.rs`).
    pub needed: FxHashSet<Value>,
    /// Where values with parts are read, which may be uninitialized. In lanes, each part is read by itself.
    pub wholes: FxHashSet<Span>,
    /// For vectors that are loaded and of which only some elements are used: which ones.
    pub picked: FxHashMap<Value, Vec<bool>>,
    /// Instructions that need no check, by block and index: the guard of their loop has tested them.
    pub exempt: FxHashSet<(Block, usize)>,
    /// Arithmetic that is checked after its loop has ended, by block and index; the definitions of the variables for that; and for
    /// each block behind a loop the variables that it tests, with the place to report.
    pub late: FxHashMap<(Block, usize), Late>,
    pub variables: Vec<Inst>,
    pub reports: FxHashMap<Block, Vec<(Value, Span)>>,
    /// For each block behind a loop, the areas that the loop has initialized: first address, number of bytes, object.
    pub filled: FxHashMap<Block, Vec<[Value; 3]>>,
    /// The parameter that lists the calls which led to this function.
    calls: Option<Value>,
    /// The entry that this function adds to the list for the functions that it calls.
    frame: Option<Value>,
    /// If the function is confined.
    pub confined: Option<Confined<'a>>,
}

impl<'a, 't> Checker<'a, 't> {
    pub fn new(
        module: &'a mut Module,
        types: &'a mut Types,
        function: &'a mut Function,
        (checks, texts): (Checks, &'a Texts<'t>),
        tables: &'a Tables,
        chained: &'a FxHashSet<Func>,
        places: &'a mut FxHashMap<String, GlobalId>,
    ) -> Self {
        Checker {
            module,
            code: Code::new(types, function),
            checks,
            texts,
            tables,
            chained,
            places,
            defs: FxHashMap::default(),
            objects: FxHashMap::default(),
            moved: FxHashSet::default(),
            shadows: FxHashMap::default(),
            needed: FxHashSet::default(),
            wholes: FxHashSet::default(),
            picked: FxHashMap::default(),
            exempt: FxHashSet::default(),
            late: FxHashMap::default(),
            variables: Vec::new(),
            reports: FxHashMap::default(),
            filled: FxHashMap::default(),
            calls: None,
            frame: None,
            confined: None,
        }
    }
}

impl Checker<'_, '_> {
    pub fn run(&mut self, is_chained: bool) {
        // Shadows are only read for bytes that are known to lie within their block.
        let versions = match self.checks.bounds || self.checks.overflow && !self.checks.uninit {
            true => version_loops(self.code.types, self.code.function),
            false => Vec::new(),
        };
        // Promotion of variables to values leaves more values that are used on some paths only.
        if self.checks.overflow {
            let guards: Vec<Block> = versions.iter().map(|v| v.guard).collect();
            put_where_needed(self.code.types, self.code.function, &guards);
        }
        let insts: Vec<Inst> = self.code.function.blocks.iter().flat_map(|b| b.insts.iter().cloned()).collect();
        self.defs.extend(insts.iter().filter_map(|i| Some((i.result?, i.clone()))));
        if self.checks.overflow {
            self.needed = needed(self.code.function);
        }
        if self.checks.needs_objects() {
            let asks = |i: &&Inst| matches!(i.op, InstOp::Call(f) if Some(f) == self.tables.is_written);
            self.wholes = insts.iter().filter(asks).map(|i| i.span).collect();
            self.find_picked(&insts);
            self.place_variables(&insts);
            self.find_shadows_of_statics();
            for inst in &insts {
                let access = self.access(inst);
                let is_masked = access.as_ref().is_some_and(|access| access.mask.is_some());
                if let Some(address) = access.map(|access| access.address).or(self.asked(inst)) {
                    let root = self.origin(address).root;
                    let is_gather = matches!(inst.op, InstOp::Vector(VectorOp::Gather | VectorOp::Scatter));
                    let is_none = match self.code.function.as_const(root) {
                        Some(Const::Undef) => true,
                        Some(Const::Bits(0)) => is_gather,
                        _ => false,
                    };
                    // Statics need an object, too, if lanes index them.
                    let is_static = matches!(self.code.function.as_const(root), Some(Const::Global(_)));
                    let in_lanes = is_gather || is_masked && self.checks.uninit;
                    if !is_none && (in_lanes && is_static || self.known_size(root).is_none()) {
                        self.objects.insert(root, None);
                    }
                }
            }
        }
        let bytes = self.bytes();
        if is_chained {
            let calls = self.code.function.new_value(bytes, "calls");
            self.code.function.params.push(bytes);
            self.code.function.blocks[0].params.push(calls);
            self.calls = Some(calls);
        }
        let cfg = Cfg::new(self.code.function);
        let tree = cfg.dominator_tree();
        let guards: FxHashMap<Block, (&Version, Counted)> = versions
            .iter()
            .filter_map(|v| Some((v.guard, (v, counted(self.code.types, self.code.function, (&cfg, &tree), v.fast)?))))
            .collect();
        // Definitions come before uses.
        for b in cfg.rpo {
            let old = std::mem::take(&mut self.code.function.blocks[b.idx()].insts);
            (self.code.current, self.code.span) = (b, old.first().map_or(self.code.function.span, |i| i.span));
            if b.idx() == 0 {
                self.begin(&insts, bytes);
            }
            for param in self.code.function.block(b).params.clone() {
                self.define_object(param);
            }
            for written in self.filled.remove(&b).unwrap_or_default() {
                self.call(self.tables.wrote, &written, None);
            }
            for (variable, span) in self.reports.remove(&b).unwrap_or_default() {
                self.check_late(variable, span);
            }
            for (i, inst) in old.into_iter().enumerate() {
                self.inst(inst, (b, i));
            }
            if let Some((version, found)) = guards.get(&b) {
                self.guard(version, found);
            }
            self.end();
        }
        let variables = std::mem::take(&mut self.variables);
        self.code.function.blocks[0].insts.splice(0..0, variables);
    }

    /// The start of the function: variables on the heap, the entry of lists of calls, objects of constants.
    fn begin(&mut self, insts: &[Inst], bytes: Ty) {
        let i64 = self.code.types.i64();
        for inst in insts {
            let (Some(result), span) = (inst.result, inst.span) else { continue };
            if !self.moved.contains(&result) {
                continue;
            }
            let ty = self.code.function.ty(result);
            let size = self.code.types.pointee(ty).and_then(|ty| layout::size_align(self.code.types, ty));
            let (size, align) = size.unwrap_or((0, 1));
            let args = [size, align].map(|n| self.code.function.constant(Const::Bits(n), i64));
            self.code.span = span;
            let made = self.call(self.tables.variable, &args, Some(bytes));
            self.push(InstOp::Op(Op::Bitcast), &[made], Some(result));
            self.define_object(result);
        }
        self.lend(insts);
        self.begin_shadows();
        let chains = |i: &Inst| matches!(i.op, InstOp::Call(f) if self.chained.contains(&f));
        if insts.iter().any(chains) {
            let pair = self.code.types.tuple(&[bytes, bytes]);
            let slot_ty = self.code.types.ptr(pair);
            let frame = self.op(Op::Slot, &[], slot_ty);
            let around = self.calls_value(bytes);
            self.store_part(frame, 1, around);
            self.frame = Some(frame);
        }
        let constants: Vec<Value> =
            self.objects.keys().copied().filter(|&v| self.code.function.as_const(v).is_some()).collect();
        for v in constants {
            self.define_object(v);
        }
    }

    /// Emits an old instruction, which was at this block and index, with its checks.
    fn inst(&mut self, inst: Inst, place: (Block, usize)) {
        self.code.span = inst.span;
        if inst.result.is_some_and(|r| self.moved.contains(&r)) {
            return;
        }
        let is_exempt = self.exempt.contains(&place);
        if let Some((op, prim)) = self.checked_arithmetic(&inst).filter(|_| !is_exempt) {
            return self.arithmetic(op, prim, inst, self.late.get(&place).copied());
        }
        if self.checks.overflow {
            self.division(&inst);
        }
        match inst.op {
            InstOp::Op(Op::Alloc) if self.checks.needs_objects() => return self.alloc(inst),
            InstOp::Call(callee) => return self.call_of_program(callee, inst),
            _ => {}
        }
        let access = self.access(&inst);
        if self.confined.is_some() {
            self.confine(&inst, access.as_ref());
        }
        match &access {
            Some(access) if !is_exempt => self.check(&inst, access),
            // Shadows of variables are read in each round.
            Some(access) => self.check_shadow(&inst, access),
            None => {}
        }
        self.code.insts.push(inst.clone());
        if let Some(access) = access.filter(|a| a.writes && self.checks.uninit) {
            let is_scatter = matches!(inst.op, InstOp::Vector(VectorOp::Scatter));
            let is_noted = is_exempt || is_scatter && self.checks_lanes(&inst).is_some();
            if self.has_shadow(&inst, &access) {
                self.note_in_shadow(&inst, &access);
            } else if !is_noted {
                self.note_write(&inst, &access, !is_scatter);
            }
        }
        if let Some(result) = inst.result {
            self.define_object(result);
        }
    }

    /// Gives the old terminator to the last of the blocks into which an old block was split.
    fn end(&mut self) {
        let mut term =
            std::mem::replace(&mut self.code.function.blocks[self.code.current.idx()].term, Terminator::Unreachable);
        match &mut term {
            Terminator::Return(_) => {
                let mut moved: Vec<Value> = self.moved.iter().copied().collect();
                moved.sort_unstable();
                let bytes = self.bytes();
                for variable in moved {
                    let address = self.op(Op::Bitcast, &[variable], bytes);
                    self.call(self.tables.end, &[address], None);
                }
            }
            Terminator::TailCall { callee: Callee::Func(f), args, .. } if self.chained.contains(f) => {
                let bytes = self.bytes();
                args.push(self.calls_value(bytes));
            }
            _ => {}
        }
        let block = &mut self.code.function.blocks[self.code.current.idx()];
        (block.insts, block.term) = (std::mem::take(&mut self.code.insts), term);
    }

    // Instructions.

    pub fn push(&mut self, op: InstOp, args: &[Value], result: Option<Value>) {
        self.code.push(op, args, result)
    }

    pub fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.code.op(op, args, ty)
    }

    pub fn call(&mut self, callee: Func, args: &[Value], ret: Option<Ty>) -> Value {
        self.code.call(callee, args, ret)
    }

    pub fn literal(&mut self, prim: Prim, bits: u64) -> Value {
        self.code.literal(prim, bits)
    }

    pub fn cast(&mut self, v: Value, prim: Prim) -> Value {
        self.code.cast(v, prim)
    }

    /// The type of pointers to bytes.
    pub fn bytes(&mut self) -> Ty {
        let u8 = self.code.types.prim(Prim::U8);
        self.code.types.ptr(u8)
    }

    /// An address as an integer.
    pub fn number(&mut self, address: Value) -> Value {
        let u64 = self.code.types.prim(Prim::U64);
        self.op(Op::Bitcast, &[address], u64)
    }

    pub fn store_part(&mut self, place: Value, part: u64, v: Value) {
        let (idx, ty) = (self.literal(Prim::I64, part), self.code.function.ty(v));
        let ty = self.code.types.ptr(ty);
        let at = self.op(Op::Lea, &[place, idx], ty);
        self.push(InstOp::Op(Op::Store), &[at, v], None);
    }

    pub fn word(&mut self, object: Value, word: u64) -> Value {
        let u64 = self.code.types.prim(Prim::U64);
        let (idx, ty) = (self.literal(Prim::I64, word), self.code.types.ptr(u64));
        let at = self.op(Op::Lea, &[object, idx], ty);
        self.op(Op::Load, &[at], u64)
    }

    fn global_text(&mut self, text: String) -> Value {
        let u8 = self.code.types.prim(Prim::U8);
        let bytes: Vec<u8> = text.bytes().filter(|&b| b != 0).chain([0]).collect();
        let ty = self.code.types.array(u8, bytes.len() as u64);
        let id = *self.places.entry(text).or_insert_with(|| {
            let init = Init::Bytes(bytes);
            self.module.add_global(Global { name: "site".into(), ty, mutable: false, space: 0, init })
        });
        let (array, plain) = (self.code.types.ptr(ty), self.code.types.ptr(u8));
        let address = self.code.function.constant(Const::Global(id), array);
        self.op(Op::Bitcast, &[address], plain)
    }

    fn site(&mut self) -> Value {
        let text = (self.texts.site)(self.code.span);
        self.global_text(text)
    }

    fn calls_value(&mut self, bytes: Ty) -> Value {
        self.calls.unwrap_or_else(|| self.code.function.constant(Const::Bits(0), bytes))
    }

    fn statics(&mut self, bytes: Ty) -> Value {
        let (id, ty) = self.tables.statics;
        let ty = self.code.types.ptr(ty);
        let address = self.code.function.constant(Const::Global(id), ty);
        self.op(Op::Bitcast, &[address], bytes)
    }

    /// Continues if a condition holds; otherwise reports a fault at an address.
    pub fn require(&mut self, holds: Value, what: u64, address: Value, object: Option<Value>) {
        let before = self.code.begin_report();
        self.report(what, address, object);
        self.code.end_report(holds, before);
    }

    fn report(&mut self, what: u64, address: Value, object: Option<Value>) {
        let (bytes, object_ty) = (self.bytes(), object_ty(self.code.types));
        let object = object.unwrap_or_else(|| self.code.function.constant(Const::Bits(0), object_ty));
        let (what, site, calls) = (self.literal(Prim::I32, what), self.site(), self.calls_value(bytes));
        self.call(self.tables.fail, &[what, address, object, site, calls], None);
    }

    // Addresses.

    /// The access of memory that an instruction makes.
    pub fn access(&self, inst: &Inst) -> Option<Access> {
        let size = |address: Value| {
            let pointee = self.code.types.pointee(self.code.function.ty(address))?;
            Some(layout::size_align(self.code.types, pointee)?.0).filter(|&n| n > 0)
        };
        let lanes = |v: Value| {
            let (prim, n) = self.code.types.as_vector(self.code.function.ty(v))?;
            Some(layout::prim_size(prim) * u64::from(n))
        };
        let args = &inst.args;
        let access = |address, size, writes, mask| Some(Access { address, size, writes, mask });
        match inst.op {
            InstOp::Op(Op::Load | Op::AtomicLoad) => access(args[0], size(args[0])?, false, None),
            InstOp::Op(Op::Store | Op::AtomicStore) => access(args[0], size(args[0])?, true, None),
            InstOp::Op(op @ (Op::Atomic | Op::Cmpxchg | Op::CmpxchgWeak)) => {
                let address = args[op.writes()?.0 - 1];
                access(address, size(address)?, false, None)
            }
            InstOp::Vector(op @ (VectorOp::Load | VectorOp::Gather)) => {
                access(args[0], lanes(inst.result?)?, false, op.mask(args))
            }
            InstOp::Vector(op @ (VectorOp::Store | VectorOp::Scatter)) => {
                access(args[0], lanes(args[op.written()?])?, true, op.mask(args))
            }
            _ => None,
        }
    }

    /// The address that a call asks or tells of, if it stands for code that looks at the shadow there.
    pub fn asked(&self, inst: &Inst) -> Option<Value> {
        match inst.op {
            InstOp::Call(f) if Some(f) == self.tables.is_written || Some(f) == self.tables.keep => Some(inst.args[0]),
            _ => None,
        }
    }

    pub fn origin(&self, address: Value) -> Origin {
        let mut origin = Origin { root: address, bytes: 0, terms: Vec::new() };
        for _ in 0..MAX_STEPS {
            let Some(inst) = self.defs.get(&origin.root) else { break };
            match inst.op {
                InstOp::Op(Op::Bitcast | Op::Aligned | Op::Restrict)
                    if self.code.types.pointee(self.code.function.ty(inst.args[0])).is_some() =>
                {
                    origin.root = inst.args[0];
                }
                InstOp::Op(Op::Lea) => {
                    let (base, idx) = (inst.args[0], inst.args[1]);
                    let Some(pointee) = self.code.types.pointee(self.code.function.ty(base)) else { break };
                    let step = self.code.types.part(pointee, 0).and_then(|ty| layout::size_align(self.code.types, ty));
                    let is_array = matches!(self.code.types.kind(pointee), TyKind::Array(..) | TyKind::IndefArray(_));
                    let literal = self.code.function.as_bits(idx).map(|bits| {
                        match self.code.types.as_prim(self.code.function.ty(idx)) {
                            Some(prim) => prim.normalize(bits),
                            None => bits,
                        }
                    });
                    match (literal, step) {
                        (Some(n), _) if !is_array => {
                            let Some(offset) = layout::offset(self.code.types, pointee, n) else { break };
                            origin.bytes = origin.bytes.wrapping_add(offset as i64);
                        }
                        (Some(n), Some((size, align))) => {
                            let step = size.next_multiple_of(align.max(1)) as i64;
                            origin.bytes = origin.bytes.wrapping_add((n as i64).wrapping_mul(step));
                        }
                        (None, Some((size, align))) => {
                            origin.terms.push((idx, size.next_multiple_of(align.max(1)) as i64));
                        }
                        _ => break,
                    }
                    origin.root = base;
                }
                _ => break,
            }
        }
        origin
    }

    /// The size of the variable or static at an address, if the function accesses it directly.
    pub fn known_size(&self, root: Value) -> Option<u64> {
        let is_own = self.defs.get(&root).is_some_and(|i| i.op == InstOp::Op(Op::Slot)) && !self.moved.contains(&root);
        let ty = match self.code.function.as_const(root) {
            Some(Const::Global(id)) if id.idx() < self.module.globals.len() => self.module.globals[id.idx()].ty,
            None if is_own => self.code.types.pointee(self.code.function.ty(root))?,
            _ => return None,
        };
        layout::size_align(self.code.types, ty).map(|s| s.0)
    }

    /// Called after the definition of an address: asks the runtime for its object, if an access needs it.
    fn define_object(&mut self, v: Value) {
        if self.objects.get(&v) != Some(&None) {
            return;
        }
        if self.is_lent(v) {
            // Without an object there are no bounds.
            let none = self.literal(Prim::U64, 0);
            let found = self.lent_object(v).map(|object| (object, none));
            self.objects.insert(v, found);
            return;
        }
        let (u8, ty) = (self.code.types.prim(Prim::U8), object_ty(self.code.types));
        let bytes = self.code.types.ptr(u8);
        let (number, statics) = (self.number(v), self.statics(bytes));
        let object = self.call(self.tables.object, &[number, statics], Some(ty));
        let (low, u64) = (self.word(object, LOW), self.code.types.prim(Prim::U64));
        let ahead = self.op(Op::Sub, &[number, low], u64);
        self.objects.insert(v, Some((object, ahead)));
    }

    pub fn bounds(&self, root: Value) -> Option<Bounds> {
        match self.objects.get(&root) {
            Some(&Some((object, ahead))) => Some(Bounds::Object(object, ahead)),
            _ => self.known_size(root).map(Bounds::Known),
        }
    }

    // Checks.

    fn check(&mut self, inst: &Inst, access: &Access) {
        let &Access { address, mut size, mask, .. } = access;
        if self.checks.null && !self.checks.bounds {
            let number = self.number(address);
            let least = self.literal(Prim::U64, 1 << 16);
            let bool_ty = self.code.types.bool();
            let holds = self.op(Op::Ge, &[number, least], bool_ty);
            self.require(holds, ACCESS, number, None);
        }
        if !self.checks.needs_objects() {
            return;
        }
        let origin = self.origin(address);
        if matches!(inst.op, InstOp::Vector(VectorOp::Gather | VectorOp::Scatter)) {
            return self.check_lanes(inst, origin.root, mask);
        }
        let Some(bounds) = self.bounds(origin.root) else { return };
        // A mask is passed as the bits of a `u64`.
        if mask.is_some() && self.lanes_of(inst).is_none_or(|n| n > 64) {
            return;
        }
        if let (Bounds::Known(all), true, None) = (bounds, origin.terms.is_empty(), mask)
            && origin.bytes >= 0
            && (origin.bytes as u64).checked_add(size).is_some_and(|end| end <= all)
        {
            return self.check_shadow(inst, access);
        }
        let (u64, bool_ty) = (self.code.types.prim(Prim::U64), self.code.types.bool());
        let mut offset = self.offset(&origin);
        // The access reaches from the first active lane to the last one.
        let mut is_idle = None;
        let mut extent = None;
        if let (Some(mask), Some(lanes)) = (mask, self.lanes_of(inst)) {
            let bits = self.push_vector(VectorOp::MaskBits, &[mask], u64);
            let zero = self.literal(Prim::U64, 0);
            is_idle = Some(self.op(Op::Eq, &[bits, zero], bool_ty));
            let step = self.literal(Prim::U64, size / lanes);
            let first = self.op(Op::Ctz, &[bits], u64);
            let skipped = self.op(Op::Mul, &[first, step], u64);
            offset = self.op(Op::Add, &[offset, skipped], u64);
            let (all, above) = (self.literal(Prim::U64, 64), self.op(Op::Clz, &[bits], u64));
            let count = self.op(Op::Sub, &[all, above], u64);
            let count = self.op(Op::Sub, &[count, first], u64);
            extent = Some(self.op(Op::Mul, &[count, step], u64));
            size = 1;
        }
        let number = self.number(address);
        let (object, from_low) = match bounds {
            Bounds::Object(object, ahead) => (Some(object), self.op(Op::Add, &[ahead, offset], u64)),
            Bounds::Known(_) => (None, offset),
        };
        if self.checks.bounds {
            let word = LIMITS.iter().find(|(n, _)| *n == size && extent.is_none()).map(|(_, word)| *word);
            let limit = match bounds {
                Bounds::Object(object, _) => self.word(object, word.unwrap_or(SIZE)),
                Bounds::Known(all) => {
                    self.literal(Prim::U64, if word.is_some() { all.saturating_sub(size - 1) } else { all })
                }
            };
            let mut holds = self.op(Op::Lt, &[from_low, limit], bool_ty);
            if word.is_none() {
                let extent = extent.unwrap_or_else(|| self.literal(Prim::U64, size));
                let end = self.op(Op::Add, &[from_low, extent], u64);
                let ends = self.op(Op::Le, &[end, limit], bool_ty);
                holds = self.op(Op::And, &[holds, ends], bool_ty);
            }
            if let Some(is_idle) = is_idle {
                holds = self.op(Op::Or, &[holds, is_idle], bool_ty);
            }
            self.require(holds, ACCESS, number, object);
        }
        if let (true, Bounds::Object(object, _)) = (self.must_be_initialized(inst, access), bounds) {
            match inst.result.and_then(|r| self.picked.get(&r)).cloned() {
                Some(picked) => self.check_picked(inst, (number, object), mask, &picked),
                None => match mask {
                    Some(mask) => self.check_lanes_initialized(inst, number, object, mask),
                    None => self.check_initialized(inst, number, size, object),
                },
            }
        }
        self.check_shadow(inst, access);
    }

    /// The distance of an address from its root, in bytes.
    pub fn offset(&mut self, origin: &Origin) -> Value {
        let u64 = self.code.types.prim(Prim::U64);
        let mut offset = self.literal(Prim::U64, origin.bytes as u64);
        for &(idx, step) in &origin.terms {
            let (idx, step) = (self.cast(idx, Prim::I64), self.literal(Prim::U64, step as u64));
            let idx = self.cast(idx, Prim::U64);
            let product = self.op(Op::Mul, &[idx, step], u64);
            offset = self.op(Op::Add, &[offset, product], u64);
        }
        offset
    }

    pub fn push_vector(&mut self, op: VectorOp, args: &[Value], ty: Ty) -> Value {
        let result = self.code.function.new_value(ty, "");
        self.push(InstOp::Vector(op), args, Some(result));
        result
    }

    pub fn lanes_of(&self, inst: &Inst) -> Option<u64> {
        let v = match inst.op {
            InstOp::Vector(op) => op.written().map_or(inst.result, |i| Some(inst.args[i])),
            _ => None,
        }?;
        Some(self.code.types.as_vector(self.code.function.ty(v))?.1.into())
    }

    /// The number of lanes that a gather or scatter has, if the runtime checks them.
    fn checks_lanes(&self, inst: &Inst) -> Option<u64> {
        self.lanes_of(inst).filter(|&n| n <= 64 && self.checks.bounds)
    }

    fn check_lanes(&mut self, inst: &Inst, root: Value, mask: Option<Value>) {
        // With null as the root, the indices are themselves addresses, each into an object of its own.
        let object = match (self.code.function.as_bits(root), self.bounds(root)) {
            (Some(0), _) => {
                let ty = object_ty(self.code.types);
                self.code.function.constant(Const::Bits(0), ty)
            }
            (_, Some(Bounds::Object(object, _))) => object,
            _ => return,
        };
        let Some(n) = self.checks_lanes(inst) else { return };
        let Some((prim, _)) = self.code.types.as_vector(self.code.function.ty(inst.args[1])) else { return };
        let Some(access) = self.access(inst) else { return };
        let size = access.size;
        let (u8, u64) = (self.code.types.prim(Prim::U8), self.code.types.prim(Prim::U64));
        let bytes = self.code.types.ptr(u8);
        let index_ty = self.code.function.ty(inst.args[1]);
        let slot_ty = self.code.types.ptr(index_ty);
        let slot = self.op(Op::Slot, &[], slot_ty);
        self.push(InstOp::Op(Op::Store), &[slot, inst.args[1]], None);
        let indices = self.op(Op::Bitcast, &[slot], bytes);
        let bits = match mask {
            Some(mask) => self.push_vector(VectorOp::MaskBits, &[mask], u64),
            None => self.literal(Prim::U64, u64::MAX >> (64 - n.min(64))),
        };
        let mut shape = n | u64::from(layout::prim_size(prim) == 4) << 8 | (size / n) << 16;
        if self.checks.uninit && access.writes {
            shape |= NOTES_LANES;
        }
        if self.must_be_initialized(inst, &access) {
            shape |= READS_LANES;
        }
        let (base, shape) = (self.number(inst.args[0]), self.literal(Prim::U64, shape));
        let (statics, site, calls) = (self.statics(bytes), self.site(), self.calls_value(bytes));
        let args = [base, indices, inst.args[2], shape, bits, object, statics, site, calls];
        self.call(self.tables.lanes, &args, None);
    }

    /// Where the bytes lie that tell whether those at an address are initialized.
    pub fn shadow(&mut self, number: Value, object: Value, prim: Prim) -> Value {
        let u64 = self.code.types.prim(Prim::U64);
        let (mask, shadow) = (self.word(object, MASK), self.word(object, SHADOW));
        let at = self.op(Op::And, &[number, mask], u64);
        let at = self.op(Op::Add, &[at, shadow], u64);
        let ty = self.code.types.prim(prim);
        let ty = self.code.types.ptr(ty);
        self.op(Op::Bitcast, &[at], ty)
    }

    /// Whether an instruction reads a number. A struct or array that is read as a whole may have parts that are uninitialized.
    pub fn reads_numbers(&self, inst: &Inst) -> bool {
        let is_scalar = inst.result.is_some_and(|r| {
            matches!(self.code.types.kind(self.code.function.ty(r)), TyKind::Prim(_) | TyKind::Ptr { .. })
        });
        is_scalar || matches!(inst.op, InstOp::Op(Op::Atomic | Op::Cmpxchg | Op::CmpxchgWeak))
    }

    /// Whether what an access reads must be initialized.
    pub fn must_be_initialized(&self, inst: &Inst, access: &Access) -> bool {
        let in_lanes = matches!(inst.op, InstOp::Vector(_));
        let is_whole = in_lanes && self.wholes.contains(&inst.span);
        self.checks.uninit && !access.writes && !is_whole && (in_lanes || self.reads_numbers(inst))
    }

    fn check_initialized(&mut self, inst: &Inst, number: Value, size: u64, object: Value) {
        let (u8, bool_ty) = (self.code.types.prim(Prim::U8), self.code.types.bool());
        let is_vector = matches!(inst.op, InstOp::Vector(_));
        match word_of(size).filter(|_| !is_vector) {
            Some(prim) => {
                let at = self.shadow(number, object, prim);
                let ty = self.code.types.prim(prim);
                let found = self.op(Op::Load, &[at], ty);
                let all = self.literal(prim, u64::MAX);
                let holds = self.op(Op::Eq, &[found, all], bool_ty);
                self.require(holds, UNINITIALIZED, number, Some(object));
            }
            None => {
                let bytes = self.code.types.ptr(u8);
                let (size, site, calls) = (self.literal(Prim::U64, size), self.site(), self.calls_value(bytes));
                self.call(self.tables.initialized, &[number, size, object, site, calls], None);
            }
        }
    }

    fn note_write(&mut self, inst: &Inst, access: &Access, is_consecutive: bool) {
        let &Access { address, size, mask, .. } = access;
        let origin = self.origin(address);
        let Some(Bounds::Object(object, _)) = self.bounds(origin.root) else { return };
        let number = self.number(if is_consecutive { address } else { origin.root });
        match (mask, word_of(size)) {
            _ if !is_consecutive => {
                let (low, all) = (self.word(object, LOW), self.word(object, SIZE));
                self.call(self.tables.wrote, &[low, all, object], None);
            }
            (Some(mask), _) => self.note_lanes(inst, number, object, mask),
            (None, Some(prim)) => {
                let at = self.shadow(number, object, prim);
                let all = self.literal(prim, u64::MAX);
                self.push(InstOp::Op(Op::Store), &[at, all], None);
            }
            (None, None) => {
                let size = self.literal(Prim::U64, size);
                self.call(self.tables.wrote, &[number, size, object], None);
            }
        }
    }

    fn alloc(&mut self, inst: Inst) {
        let Some(result) = inst.result else { return };
        let elem = self.code.types.pointee(self.code.function.ty(result)).and_then(|ty| self.code.types.part(ty, 0));
        let size = elem.and_then(|ty| layout::size_align(self.code.types, ty));
        let (size, align) = size.unwrap_or((1, 1));
        let bytes = self.bytes();
        let n = self.cast(inst.args[0], Prim::I64);
        let step = self.literal(Prim::I64, size.next_multiple_of(align.max(1)));
        let align = self.literal(Prim::I64, align);
        let made = self.call(self.tables.alloc_array, &[n, step, align], Some(bytes));
        self.push(InstOp::Op(Op::Bitcast), &[made], Some(result));
        self.define_object(result);
    }

    fn call_of_program(&mut self, callee: Func, mut inst: Inst) {
        let stand_ins = [
            (self.tables.overflow_in_lanes, OVERFLOW),
            (self.tables.division_in_lanes, DIVISION),
            (self.tables.undefined, UNDEFINED),
        ];
        for (report, what) in stand_ins {
            if Some(callee) == report {
                let none = self.literal(Prim::U64, 0);
                return self.report(what, none, None);
            }
        }
        match (&inst.args[..], inst.result) {
            (&[address, size], Some(result)) if Some(callee) == self.tables.is_written => {
                return self.is_written(address, size, result);
            }
            (&[address, size, is_defined], _) if Some(callee) == self.tables.keep => {
                return self.keep(address, size, is_defined);
            }
            _ => {}
        }
        let bytes = self.bytes();
        let symbol = self.module.func(callee).symbol().map(str::to_string);
        let is_foreign = self.module.func(callee).is_foreign() && callee.idx() < self.tables.n_funcs;
        if self.chained.contains(&callee)
            && let Some(frame) = self.frame
        {
            let place = (self.texts.place)(self.code.span);
            let place = self.global_text(place);
            self.store_part(frame, 0, place);
            let list = self.op(Op::Bitcast, &[frame], bytes);
            inst.args.push(list);
        }
        if let (true, Some("nyala_panic_at"), &[_, text]) = (is_foreign, symbol.as_deref(), &inst.args[..]) {
            let text = self.op(Op::Bitcast, &[text], bytes);
            let (site, calls) = (self.site(), self.calls_value(bytes));
            return self.push(InstOp::Call(self.tables.panic), &[text, site, calls], inst.result);
        }
        if is_foreign && self.checks.needs_objects() {
            match (symbol.as_deref(), &inst.args[..]) {
                (Some("nyala_alloc"), &[n]) if self.code.function.ty(n) == self.code.types.i64() => {
                    let made = self.call(self.tables.alloc, &[n], Some(bytes));
                    if let Some(result) = inst.result {
                        self.push(InstOp::Op(Op::Bitcast), &[made], Some(result));
                        self.define_object(result);
                    }
                    return;
                }
                (Some("nyala_free"), &[p]) => {
                    let p = self.op(Op::Bitcast, &[p], bytes);
                    let (site, calls) = (self.site(), self.calls_value(bytes));
                    let op = InstOp::Call(self.tables.free);
                    return self.push(op, &[p, site, calls], inst.result);
                }
                (Some("nyala_environment" | "nyala_variable"), _) => {
                    inst.op = InstOp::Call(self.tables.environment);
                }
                _ => {}
            }
        }
        let (args, result) = (inst.args.clone(), inst.result);
        self.code.insts.push(inst);
        let writes = is_foreign && !symbol.as_deref().is_some_and(|symbol| READERS.contains(&symbol));
        if writes && self.checks.uninit {
            for arg in args {
                if self.code.types.pointee(self.code.function.ty(arg)).is_none() {
                    continue;
                }
                let (number, statics) = (self.number(arg), self.statics(bytes));
                self.call(self.tables.given, &[number, statics], None);
            }
        }
        if let Some(result) = result {
            self.define_object(result);
        }
    }
}

/// The unsigned type of this size in bytes.
pub fn word_of(size: u64) -> Option<Prim> {
    Some(match size {
        1 => Prim::U8,
        2 => Prim::U16,
        4 => Prim::U32,
        8 => Prim::U64,
        _ => return None,
    })
}
