//! The data of flat SSA and its builders.

use crate::vector::VectorOp;
use hashbrown::HashTable;
use nyala_base::locality::spread;
use nyala_base::{Id, LocalityHasher, Span};
use nyala_ir::{AsmInfo, Effect, LaneOp, Op, Prim, Scope, Target, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::Hash;

nyala_base::define_id!(
    /// A function of a [`Module`].
    pub struct Func, "func"
);
nyala_base::define_id!(
    /// A global variable of a [`Module`].
    pub struct GlobalId, "global"
);
nyala_base::define_id!(
    /// A block of a [`Function`]; the first is its entry.
    pub struct Block, "b"
);
nyala_base::define_id!(
    /// A value of a [`Function`].
    pub struct Value, "v"
);

/// A program for one target.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The table of types to which every [`Ty`] of the module belongs.
    pub types: Types,
    /// Global variables, by [`GlobalId`].
    pub globals: Vec<Global>,
    /// Functions, by [`Func`].
    pub funcs: Vec<Function>,
    /// Kernels for other devices than the host, by platform.
    pub devices: Vec<DeviceModule>,
    target: Target,
}

/// The kernels that a program launches on one platform. The driver compiles them, and puts the code where the host finds
/// it ([`Module::set_bytes`]).
#[derive(Clone, Debug)]
pub struct DeviceModule {
    /// Index of the platform in [`PLATFORMS`](nyala_ir::lanes::PLATFORMS).
    pub platform: u32,
    /// Kernels, and all that they call and use.
    pub module: Module,
    /// The global of the host's module that holds the code.
    pub code: GlobalId,
    /// Each launch: the global of the host's module that names its place in the source, the place, the kernel.
    pub launches: Vec<(GlobalId, Span, Func)>,
}

/// A variable with an address that exists for the whole run of the program.
#[derive(Clone, Debug)]
pub struct Global {
    /// For humans; need not be unique.
    pub name: String,
    /// The type of the contents, not of the address.
    pub ty: Ty,
    /// Whether the program may write to it.
    pub mutable: bool,
    /// The address space it lies in; 0 is the generic one.
    pub space: u8,
    /// The contents when the program starts.
    pub init: Init,
}

/// The initial contents of a global; its type says how to read it.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// All bytes zero.
    Zero,
    /// Undefined bytes.
    Undef,
    /// A primitive (see [`Prim::normalize`]) or a pointer made from an integer.
    Bits(u64),
    /// An array of bytes.
    Bytes(Vec<u8>),
    /// The parts of a tuple, struct or array.
    Parts(Vec<Init>),
    /// The address of a global plus an offset in bytes.
    Global(GlobalId, u64),
    /// The code address of a function.
    Func(Func),
}

/// How a function is called from outside of its module, or where it is defined outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// Only called within the module, so by an internal convention.
    Internal,
    /// C code calls it through its address ([`Const::CFunc`]), by C's convention.
    Callback,
    /// Code outside calls it by this symbol, with C's convention.
    Exported(String),
    /// The host launches it by this symbol: a kernel. The numbers are the extents of a block, 0 where they are not known.
    Kernel(String, [u32; 3]),
    /// Has no body; defined elsewhere under this symbol, with C's convention.
    Foreign(String),
    /// Has no body; calls of it are this assembly.
    Asm(AsmInfo),
}

/// A function. A call's result is `()`, the one result, or a tuple of several.
#[derive(Clone, Debug)]
pub struct Function {
    /// For humans; need not be unique.
    pub name: String,
    /// How the function is called from outside, or where it is.
    pub linkage: Linkage,
    /// Types of the entry block's parameters.
    pub params: Vec<Ty>,
    /// Types of the results, in the order of [`Terminator::Return`].
    pub rets: Vec<Ty>,
    /// Empty for foreign functions. The first block is the entry, which nobody jumps to.
    pub blocks: Vec<BlockData>,
    /// Parameters, results and constants, by [`Value`]; some may be used nowhere.
    pub values: Vec<ValueData>,
    /// Where the function is in the source; [`Span::NONE`] if nowhere.
    pub span: Span,
    /// Whether it is the body of a loop in the source, made a function of its own by the vectorizer.
    pub is_body: bool,
    /// Whether it is a part of a large function, which LLVM does not join again ([`take_pieces`](crate::take_pieces)).
    pub is_piece: bool,
    /// Names of values, for those that the source names.
    names: FxHashMap<Value, Box<str>>,
    /// Constants with half of their hashes.
    consts: HashTable<(Value, u32)>,
}

/// The contents of a [`Block`].
#[derive(Clone, Debug)]
pub struct BlockData {
    /// For humans; need not be unique.
    pub name: String,
    /// Parameters, which each jump to the block gives values.
    pub params: Vec<Value>,
    /// Instructions in the order in which they are executed.
    pub insts: Vec<Inst>,
    /// How control leaves the block.
    pub term: Terminator,
}

/// Type and definition of a [`Value`].
#[derive(Clone, Debug)]
pub struct ValueData {
    /// The type of the value.
    pub ty: Ty,
    /// Where the value comes from.
    pub def: Def,
}

/// How a [`Value`] is defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    /// By a block as its parameter, or by an instruction as its result.
    Local,
    /// As a constant, outside of all blocks.
    Const(Const),
}

/// A value outside of all blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Const {
    /// A primitive (see [`Prim::normalize`]), or a pointer made from an integer.
    Bits(u64),
    /// Undefined: each use may see another value.
    Undef,
    /// Code address of a function with the internal convention.
    Func(Func),
    /// Code address of a function for callers that use C's convention; not for internal functions.
    CFunc(Func),
    /// Address of a global.
    Global(GlobalId),
}

/// Operands of an instruction, in order.
pub type Args = SmallVec<[Value; 3]>;

/// An instruction of a block.
#[derive(Clone, Debug)]
pub struct Inst {
    /// The operation, or the function that it calls.
    pub op: InstOp,
    /// Operands; for calls of code addresses, the address first.
    pub args: Args,
    /// The result; `None` for stores, fences, `vectorize` and `launch` only.
    pub result: Option<Value>,
    /// Where the operation is in the source; [`Span::NONE`] if nowhere.
    pub span: Span,
    /// For an operation on floats: it may be reassociated and contracted, and has no NaN or infinity as operand or
    /// result. For a store: it goes past the caches.
    pub fast: bool,
}

/// The operation of an [`Inst`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InstOp {
    /// An operation of the graph, without its `mem` operand and result.
    Op(Op),
    /// An operation of vectorized code.
    Vector(VectorOp),
    /// Calls a function of the module with the operands as arguments.
    Call(Func),
    /// Calls the code address that is the first operand; the types of the other operands and of the result are the
    /// signature.
    CallIndirect,
    /// `vectorize(lo, hi, free…)` runs `body(i, free…)` for each i from lo up to hi. The first number is how many at a
    /// time, as lanes of vectors. If the second number is not 0, it divides both bounds, and the first one divides
    /// their difference. The vectorizer removes it before code is generated.
    Vectorize(Func, u32, u32),
    /// `launch(device, grid.x, grid.y, grid.z, block.x, block.y, block.z, free…)` runs `kernel(free…)` once for each
    /// work item of a grid, on the platform with this index in [`PLATFORMS`](nyala_ir::lanes::PLATFORMS). The grid
    /// counts work items. `lower_launches` of the crate `kernels` removes it before code is generated.
    Launch(Func, u32),
}

/// How many operands of [`InstOp::Launch`] come before those that the kernel takes.
pub const N_LAUNCH: usize = 7;

/// The target of a jump, with the arguments for its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The block that is jumped to.
    pub block: Block,
    /// Values of the block's parameters, one for each.
    pub args: Vec<Value>,
}

/// The callee of a call in tail position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A function of the module.
    Func(Func),
    /// A code address.
    Indirect(Value),
}

/// How control leaves a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Terminator {
    /// Continues in a block of the function.
    Jump(Edge),
    /// Continues in one of two blocks.
    Branch {
        /// The condition, a `bool`.
        cond: Value,
        /// Taken if the condition is true.
        then: Edge,
        /// Taken if the condition is false.
        els: Edge,
    },
    /// Ends the function with these results.
    Return(Vec<Value>),
    /// Jumps to a function with the same results, after leaving this frame.
    TailCall {
        /// The function, or its code address.
        callee: Callee,
        /// The arguments, without the code address.
        args: Vec<Value>,
        /// The call in the source.
        span: Span,
    },
    /// Is never executed: undefined behavior if it is.
    Unreachable,
}

impl Init {
    /// The functions whose addresses are in it.
    pub fn functions(&self) -> Vec<Func> {
        let (mut found, mut work) = (Vec::new(), vec![self]);
        while let Some(init) = work.pop() {
            match init {
                Init::Func(f) => found.push(*f),
                Init::Parts(parts) => work.extend(parts),
                _ => {}
            }
        }
        found
    }
}

impl Terminator {
    /// Targets with their arguments, in order.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        let (a, b) = match self {
            Terminator::Jump(e) => (Some(e), None),
            Terminator::Branch { then, els, .. } => (Some(then), Some(els)),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }

    /// Targets with their arguments, in order, to be changed.
    pub fn edges_mut(&mut self) -> impl Iterator<Item = &mut Edge> {
        let (a, b) = match self {
            Terminator::Jump(e) => (Some(e), None),
            Terminator::Branch { then, els, .. } => (Some(then), Some(els)),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }

    /// Calls `f` with every value the terminator uses.
    pub fn for_each_use(&self, mut f: impl FnMut(Value)) {
        match self {
            Terminator::Jump(e) => e.args.iter().copied().for_each(f),
            Terminator::Branch { cond, then, els } => {
                f(*cond);
                then.args.iter().chain(&els.args).copied().for_each(f);
            }
            Terminator::Return(args) => args.iter().copied().for_each(f),
            Terminator::TailCall { callee, args, .. } => {
                if let Callee::Indirect(v) = callee {
                    f(*v);
                }
                args.iter().copied().for_each(f);
            }
            Terminator::Unreachable => {}
        }
    }

    /// Replaces every value the terminator uses.
    pub fn map_uses(&mut self, mut f: impl FnMut(Value) -> Value) {
        match self {
            Terminator::Jump(e) => e.args.iter_mut().for_each(|v| *v = f(*v)),
            Terminator::Branch { cond, then, els } => {
                *cond = f(*cond);
                then.args.iter_mut().chain(&mut els.args).for_each(|v| *v = f(*v));
            }
            Terminator::Return(args) => args.iter_mut().for_each(|v| *v = f(*v)),
            Terminator::TailCall { callee, args, .. } => {
                if let Callee::Indirect(v) = callee {
                    *v = f(*v);
                }
                args.iter_mut().for_each(|v| *v = f(*v));
            }
            Terminator::Unreachable => {}
        }
    }
}

impl Inst {
    /// Whether it may be removed if its result is unused: it has no effect, except that it may fault.
    pub fn is_droppable(&self) -> bool {
        match self.op {
            InstOp::Op(op) => op.effect() != Effect::Write || matches!(op, Op::Slot | Op::Alloc | Op::Scope),
            InstOp::Vector(op) => op.effect() != Effect::Write,
            InstOp::Call(_) | InstOp::CallIndirect | InstOp::Vectorize(..) | InstOp::Launch(..) => false,
        }
    }
}

impl Module {
    /// A module without globals and functions that takes over a table of types.
    pub fn new(types: Types) -> Module {
        Module { types, ..Module::default() }
    }

    /// The machine that the program is for; the host unless set.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Sets the machine that the program is for, and lays out the types for it.
    pub fn set_target(&mut self, target: Target) {
        self.types.set_spaces(target.spaces);
        self.target = target;
    }

    /// A function by its id.
    pub fn func(&self, func: Func) -> &Function {
        &self.funcs[func.idx()]
    }

    /// Adds a function without blocks. A [`FunctionBuilder`] fills it; a foreign function stays so.
    pub fn declare(&mut self, name: &str, linkage: Linkage, params: &[Ty], rets: &[Ty]) -> Func {
        // C gets several results as one struct.
        if rets.len() > 1 && linkage != Linkage::Internal {
            self.types.tuple(rets);
        }
        self.funcs.push(Function::new(name, linkage, params, rets));
        Func::from_idx(self.funcs.len() - 1)
    }

    /// Adds a global variable.
    pub fn add_global(&mut self, global: Global) -> GlobalId {
        self.globals.push(global);
        GlobalId::from_idx(self.globals.len() - 1)
    }

    /// Sets the contents of a global that holds bytes: their number as a `u64` of eight bytes, the lowest first, then the
    /// bytes, then a zero byte.
    pub fn set_bytes(&mut self, global: GlobalId, bytes: &[u8]) {
        let mut contents = (bytes.len() as u64).to_le_bytes().to_vec();
        contents.extend(bytes);
        contents.push(0);
        let u8 = self.types.prim(Prim::U8);
        let ty = self.types.array(u8, contents.len() as u64);
        let global = &mut self.globals[global.idx()];
        (global.ty, global.init) = (ty, Init::Bytes(contents));
    }

    /// The function that is exported under this symbol, if there is one.
    pub fn exported(&self, symbol: &str) -> Option<Func> {
        let matches = |f: &Function| matches!(&f.linkage, Linkage::Exported(s) if s == symbol);
        self.funcs.iter().position(matches).map(Func::from_idx)
    }

    /// The operation of work items or lanes that an instruction calls, and its scope.
    pub fn lane_op(&self, inst: &Inst) -> Option<(LaneOp, Scope)> {
        match inst.op {
            InstOp::Call(f) => LaneOp::of_symbol(self.funcs.get(f.idx()).filter(|f| f.is_foreign())?.symbol()?),
            _ => None,
        }
    }

    /// The type of a call's result: the only result, or a tuple of them.
    pub fn result_ty(types: &mut Types, rets: &[Ty]) -> Ty {
        match rets {
            [ty] => *ty,
            _ => types.tuple(rets),
        }
    }
}

impl Function {
    /// A function without blocks that belongs to no module yet; [`Module::declare`] makes one in a module.
    pub fn new(name: &str, linkage: Linkage, params: &[Ty], rets: &[Ty]) -> Function {
        Function {
            name: name.into(),
            linkage,
            params: params.into(),
            rets: rets.into(),
            blocks: Vec::new(),
            values: Vec::new(),
            span: Span::NONE,
            is_body: false,
            is_piece: false,
            names: FxHashMap::default(),
            consts: HashTable::new(),
        }
    }

    /// The linker's name of the function, if it has one.
    pub fn symbol(&self) -> Option<&str> {
        match &self.linkage {
            Linkage::Exported(symbol) | Linkage::Foreign(symbol) | Linkage::Kernel(symbol, _) => Some(symbol),
            Linkage::Internal | Linkage::Callback | Linkage::Asm(_) => None,
        }
    }

    /// Whether it is a C function or assembly, without a body.
    pub fn is_foreign(&self) -> bool {
        matches!(self.linkage, Linkage::Foreign(_) | Linkage::Asm(_))
    }

    /// Whether a call of it is a call of its first argument, by C's convention. It has no body.
    pub fn is_call_of_address(&self) -> bool {
        self.is_foreign() && self.symbol().is_some_and(nyala_ir::callbacks::is_call_of_address)
    }

    /// The contents of a block.
    pub fn block(&self, block: Block) -> &BlockData {
        &self.blocks[block.idx()]
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Ty {
        self.values[value.idx()].ty
    }

    /// Makes a parameter or result; the caller puts it into a block or an instruction.
    pub fn new_value(&mut self, ty: Ty, name: &str) -> Value {
        self.values.push(ValueData { ty, def: Def::Local });
        let v = Value::from_idx(self.values.len() - 1);
        self.set_name(v, name);
        v
    }

    /// The source's name of a value; may be empty, need not be unique.
    pub fn name(&self, value: Value) -> &str {
        self.names.get(&value).map_or("", |name| name)
    }

    /// Names a value, unless the name is empty.
    pub fn set_name(&mut self, value: Value, name: &str) {
        if !name.is_empty() {
            self.names.insert(value, name.into());
        }
    }

    /// Whether an operation may be fast: it computes with floats, or is a store.
    pub fn can_be_fast(&self, types: &Types, op: InstOp, args: &[Value]) -> bool {
        let is_float = |v: &Value| types.lane_prim(self.ty(*v)).is_some_and(Prim::is_float);
        match op {
            InstOp::Op(Op::Store) | InstOp::Vector(VectorOp::Store) => true,
            InstOp::Op(op) => op.can_be_fast() && args.last().is_some_and(is_float),
            _ => false,
        }
    }

    /// The value of a constant; one for each constant and type.
    pub fn constant(&mut self, constant: Const, ty: Ty) -> Value {
        let mut hasher = LocalityHasher::default();
        (constant, ty).hash(&mut hasher);
        let half = hasher.half();
        let is_it = |v: Value| self.ty(v) == ty && self.as_const(v) == Some(constant);
        if let Some(&(v, _)) = self.consts.find(spread(half), |&(v, h)| h == half && is_it(v)) {
            return v;
        }
        let v = Value::from_idx(self.values.len());
        self.values.push(ValueData { ty, def: Def::Const(constant) });
        self.consts.insert_unique(spread(half), (v, half), |&(_, h)| spread(h));
        v
    }

    /// The undefined value of a type.
    pub fn undef(&mut self, ty: Ty) -> Value {
        self.constant(Const::Undef, ty)
    }

    /// The constant of a value, if it is one.
    pub fn as_const(&self, value: Value) -> Option<Const> {
        match self.values[value.idx()].def {
            Def::Const(c) => Some(c),
            Def::Local => None,
        }
    }

    /// The bits of a literal, if the value is one.
    pub fn as_bits(&self, value: Value) -> Option<u64> {
        match self.as_const(value) {
            Some(Const::Bits(bits)) => Some(bits),
            _ => None,
        }
    }

    /// The value of an integer literal, if the value is one.
    pub fn as_index(&self, value: Value) -> Option<u64> {
        self.as_bits(value)
    }
}

/// Fills a function, block by block.
///
/// ```
/// use nyala_flat::*;
/// use nyala_ir::{Op, Prim};
/// let mut module = Module::default();
/// let i32 = module.types.i32();
/// let twice = module.declare("twice", Linkage::Exported("twice".into()), &[i32], &[i32]);
/// let mut b = FunctionBuilder::new(&mut module, twice);
/// let entry = b.entry(&["x"]);
/// let x = b.param(entry, 0);
/// let two = b.literal(Prim::I32, 2);
/// let y = b.op(Op::Mul, &[x, two], i32);
/// b.terminate(Terminator::Return(vec![y]));
/// assert_eq!(verify(&module), Ok(()));
/// ```
pub struct FunctionBuilder<'m> {
    /// The types of the function's module.
    pub types: &'m mut Types,
    /// The function under construction.
    pub function: &'m mut Function,
    current: Block,
    /// The source location of instructions built from now on.
    pub span: Span,
    /// Whether operations on floats built from now on are fast.
    pub fast: bool,
}

impl<'m> FunctionBuilder<'m> {
    /// A builder of a function that has no blocks yet; [`entry`](FunctionBuilder::entry) makes the first.
    pub fn new(module: &'m mut Module, func: Func) -> FunctionBuilder<'m> {
        FunctionBuilder {
            types: &mut module.types,
            function: &mut module.funcs[func.idx()],
            current: Block(0),
            span: Span::NONE,
            fast: false,
        }
    }

    /// Makes the entry block, with the function's parameters; parameters beyond `names` get no name.
    pub fn entry(&mut self, names: &[&str]) -> Block {
        let params = self.function.params.clone();
        let params: Vec<(Ty, &str)> =
            params.iter().enumerate().map(|(i, &ty)| (ty, names.get(i).copied().unwrap_or(""))).collect();
        self.block("entry", &params)
    }

    /// Adds a block and makes it the current one. Its terminator is `unreachable` until set.
    pub fn block(&mut self, name: &str, params: &[(Ty, &str)]) -> Block {
        let params = params.iter().map(|&(ty, name)| self.function.new_value(ty, name)).collect();
        self.function.blocks.push(BlockData {
            name: name.into(),
            params,
            insts: Vec::new(),
            term: Terminator::Unreachable,
        });
        self.current = Block::from_idx(self.function.blocks.len() - 1);
        self.current
    }

    /// Makes a block the current one: instructions built from now on are appended to it.
    pub fn switch_to(&mut self, block: Block) {
        self.current = block;
    }

    /// The block to which instructions are appended.
    pub fn current(&self) -> Block {
        self.current
    }

    /// The parameter of a block at an index from 0. Panics if the block has no such parameter.
    pub fn param(&self, block: Block, idx: usize) -> Value {
        self.function.blocks[block.idx()].params[idx]
    }

    /// A literal of a primitive type, by its bits; bits beyond the type's width are ignored.
    pub fn literal(&mut self, prim: Prim, bits: u64) -> Value {
        let ty = self.types.prim(prim);
        self.function.constant(Const::Bits(prim.normalize(bits)), ty)
    }

    /// The code address of a function.
    pub fn func_addr(&mut self, func: Func) -> Value {
        let ty = self.types.code();
        self.function.constant(Const::Func(func), ty)
    }

    /// The address of a global of type `ty`.
    pub fn global_addr(&mut self, global: GlobalId, ty: Ty) -> Value {
        let ty = self.types.ptr(ty);
        self.function.constant(Const::Global(global), ty)
    }

    fn push(&mut self, op: InstOp, args: &[Value], result: Option<Value>) {
        let fast = self.fast && self.function.can_be_fast(self.types, op, args);
        let inst = Inst { op, args: args.into(), result, span: self.span, fast };
        self.function.blocks[self.current.idx()].insts.push(inst);
    }

    /// An operation with a result of type `ty`.
    pub fn op(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        let result = self.function.new_value(ty, "");
        self.push(InstOp::Op(op), args, Some(result));
        result
    }

    /// Loads the value at a pointer. `None` if `ptr` is no pointer.
    pub fn load(&mut self, ptr: Value) -> Option<Value> {
        let ty = self.types.pointee(self.function.ty(ptr))?;
        Some(self.op(Op::Load, &[ptr], ty))
    }

    /// Stores a value where a pointer points.
    pub fn store(&mut self, ptr: Value, value: Value) {
        self.effect(Op::Store, &[ptr, value]);
    }

    /// An operation without result.
    pub fn effect(&mut self, op: Op, args: &[Value]) {
        self.push(InstOp::Op(op), args, None);
    }

    /// An operation of vectorized code with a result of type `ty`.
    pub fn vector_op(&mut self, op: VectorOp, args: &[Value], ty: Ty) -> Value {
        let result = self.function.new_value(ty, "");
        self.push(InstOp::Vector(op), args, Some(result));
        result
    }

    /// An operation of vectorized code without result.
    pub fn vector_effect(&mut self, op: VectorOp, args: &[Value]) {
        self.push(InstOp::Vector(op), args, None);
    }

    /// Runs a body for each number from the first argument up to the second, `lanes` at a time. If `align` is not 0, it
    /// divides both bounds, and `lanes` divides their difference.
    pub fn vectorize(&mut self, body: Func, lanes: u32, align: u32, args: &[Value]) {
        self.push(InstOp::Vectorize(body, lanes, align), args, None);
    }

    /// Launches a kernel on a platform: `args` are the device, three extents of the grid, three of a block, and what the
    /// kernel takes.
    pub fn launch(&mut self, kernel: Func, platform: u32, args: &[Value]) {
        self.push(InstOp::Launch(kernel, platform), args, None);
    }

    /// Makes a local variable; its contents are undefined each time this is executed.
    pub fn slot(&mut self, ty: Ty, name: &str) -> Value {
        let ty = self.types.ptr(ty);
        let result = self.function.new_value(ty, name);
        self.push(InstOp::Op(Op::Slot), &[], Some(result));
        result
    }

    /// Calls a function with results of these types.
    pub fn call(&mut self, func: Func, args: &[Value], rets: &[Ty]) -> Value {
        let ty = Module::result_ty(self.types, rets);
        let result = self.function.new_value(ty, "");
        self.push(InstOp::Call(func), args, Some(result));
        result
    }

    /// Calls a code address with results of these types.
    pub fn call_indirect(&mut self, code: Value, args: &[Value], rets: &[Ty]) -> Value {
        let ty = Module::result_ty(self.types, rets);
        let result = self.function.new_value(ty, "");
        let mut all: Args = smallvec::smallvec![code];
        all.extend_from_slice(args);
        self.push(InstOp::CallIndirect, &all, Some(result));
        result
    }

    /// Sets how control leaves the current block.
    pub fn terminate(&mut self, term: Terminator) {
        self.function.blocks[self.current.idx()].term = term;
    }
}

/// The type of a part of an aggregate, or of the place in it that a `lea` points to.
pub(crate) fn part_ty(types: &Types, aggregate: Ty, idx: Option<u64>) -> Option<Ty> {
    match types.kind(aggregate) {
        TyKind::Array(elem, _) | TyKind::IndefArray(elem) => Some(*elem),
        TyKind::Vector(prim, _) => Some(types.prim(*prim)),
        _ => types.part(aggregate, idx?),
    }
}
