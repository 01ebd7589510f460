//! A module: types, constants and variables, each once; capabilities; and the order in which all is written.

use crate::arenas::Arenas;
use crate::function::emit_function;
use crate::kernels::Arguments;
use crate::{Flavor, KNOWN_FUNCTION, Result, bug, lacks};
use nyala_base::{Id, Span};
use nyala_flat::structure::Loops;
use nyala_flat::{Func, GlobalId, Init, InstOp, MathFunctions, Module};
use nyala_ir::{Op, Prim, Ty, TyKind, WorkItem, layout};
use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{self, Capability, Decoration, Op as Code, StorageClass, Word};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A type or constant, by what it is made of.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Void,
    Bool,
    Int(u32),
    Float(u32),
    Vector(Word, u32),
    Array(Word, u64),
    Struct(Vec<Word>),
    Pointer(u32, Word),
    Function(Vec<Word>),
    Number(Word, u64),
    Truth(bool),
    Null(Word),
    Composite(Word, Vec<Word>),
    BuiltIn(u32),
    /// A specialization constant.
    Extent(u32),
    Fused,
}

/// The number of the specialization constant that says whether `Fma` rounds once; 0 to 2 are the extents of a block.
const FUSED: u32 = 3;

/// An aggregate with more numbers is not read or written as a whole.
pub(crate) const MAX_NUMBERS: u64 = 1 << 12;

/// A number of the grid on the axis x, where a launch may be several dispatches.
#[derive(Clone, Copy)]
pub(crate) enum Grid {
    /// The first block of the dispatch.
    First,
    /// How many blocks the launch has.
    Blocks,
}

/// State of the emission of one module.
pub(crate) struct Emitter<'m> {
    pub module: &'m Module,
    pub loops: &'m [Loops],
    /// The type of each function's result.
    pub results: Vec<Ty>,
    pub library: MathFunctions,
    pub flavor: Flavor,
    pub arenas: Option<Arenas>,
    /// Variables of arenas; of statics and of the block's memory for OpenCL.
    pub variables: FxHashMap<usize, Word>,
    pub statics: FxHashMap<GlobalId, Word>,
    /// The functions, declared before they are written.
    pub funcs: Vec<Word>,
    pub out: dr::Module,
    next: Word,
    known: FxHashMap<Key, Word>,
    capabilities: BTreeSet<u32>,
    math: Option<Word>,
    /// Variables of the module that a function uses, in order.
    pub used: Vec<BTreeSet<Word>>,
    pub current: usize,
    /// The functions that each function calls.
    pub calls: Vec<BTreeSet<usize>>,
    /// Variables in the block's memory, with their sizes in bytes.
    pub shared: FxHashMap<Word, u64>,
    /// The variable by which blocks vote.
    pub votes: Option<Word>,
    /// Variables that the device sets.
    pub inputs: BTreeSet<Word>,
    /// Where the arguments of kernels are.
    pub arguments: FxHashMap<Func, Arguments>,
    /// Float types whose rounding kernels state.
    pub floats: BTreeSet<u32>,
    /// Variables for numbers of the grid on the axis x, which kernels get from the runtime.
    grid: [Option<Word>; 2],
    /// Whether accesses to device memory may depend on other work items'.
    pub is_volatile: bool,
}

impl<'m> Emitter<'m> {
    pub fn new(
        module: &'m Module,
        loops: &'m [Loops],
        results: Vec<Ty>,
        library: MathFunctions,
        flavor: Flavor,
    ) -> Emitter<'m> {
        let arenas = (flavor == Flavor::Vulkan).then(|| Arenas::new(module));
        let is_volatile = module.funcs.iter().any(crate::flow::has_fences);
        let mut e = Emitter {
            module,
            loops,
            results,
            library,
            flavor,
            arenas,
            variables: FxHashMap::default(),
            statics: FxHashMap::default(),
            funcs: Vec::new(),
            out: dr::Module::new(),
            next: 1,
            known: FxHashMap::default(),
            capabilities: BTreeSet::new(),
            math: None,
            used: vec![BTreeSet::new(); module.funcs.len()],
            current: 0,
            calls: vec![BTreeSet::new(); module.funcs.len()],
            shared: FxHashMap::default(),
            votes: None,
            inputs: BTreeSet::new(),
            arguments: FxHashMap::default(),
            floats: BTreeSet::new(),
            grid: [None; 2],
            is_volatile,
        };
        e.funcs = (0..module.funcs.len()).map(|_| e.id()).collect();
        e
    }

    pub fn is_vulkan(&self) -> bool {
        self.flavor == Flavor::Vulkan
    }

    pub fn emit(mut self) -> Result<dr::Module> {
        match self.flavor {
            Flavor::Vulkan => {
                self.need(Capability::Shader);
                self.need(Capability::PhysicalStorageBufferAddresses);
                self.need(Capability::Int64);
            }
            Flavor::OpenCl => {
                self.need(Capability::Kernel);
                self.need(Capability::Addresses);
                self.need(Capability::Int64);
            }
        }
        self.find_grid();
        for func in (0..self.module.funcs.len()).map(Func::from_idx) {
            if !self.module.func(func).blocks.is_empty() {
                self.current = func.idx();
                emit_function(&mut self, func)?;
            }
        }
        crate::kernels::entry_points(&mut self)?;
        self.finish()
    }

    fn finish(mut self) -> Result<dr::Module> {
        let (addressing, memory, version) = match self.flavor {
            Flavor::Vulkan => (spirv::AddressingModel::PhysicalStorageBuffer64, spirv::MemoryModel::GLSL450, (1, 6)),
            Flavor::OpenCl => {
                // The operations among the lanes of a subgroup, as the extensions `cl_khr_subgroup_…` have them.
                let has_lanes = self.capabilities.contains(&(Capability::GroupNonUniform as u32));
                let version = if has_lanes { (1, 3) } else { (1, 2) };
                (spirv::AddressingModel::Physical64, spirv::MemoryModel::OpenCL, version)
            }
        };
        self.out.capabilities = self
            .capabilities
            .iter()
            .filter_map(|&c| Capability::from_u32(c))
            .map(|c| Instruction::new(Code::Capability, None, None, vec![Operand::Capability(c)]))
            .collect();
        let model = vec![Operand::AddressingModel(addressing), Operand::MemoryModel(memory)];
        self.out.memory_model = Some(Instruction::new(Code::MemoryModel, None, None, model));
        let mut header = dr::ModuleHeader::new(self.next);
        header.set_version(version.0, version.1);
        self.out.header = Some(header);
        Ok(self.out)
    }

    /// Makes variables for the numbers of the grid that the module asks for.
    fn find_grid(&mut self) {
        if !self.is_vulkan() {
            return;
        }
        for function in &self.module.funcs {
            for inst in function.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.op == InstOp::Op(Op::WorkItem)) {
                let number = |i: usize| inst.args.get(i).and_then(|&a| function.as_bits(a));
                let what = match (number(0), number(1)) {
                    (Some(what), Some(0)) if what == WorkItem::Block.number() => Grid::First,
                    (Some(what), Some(0)) if what == WorkItem::Blocks.number() => Grid::Blocks,
                    _ => continue,
                };
                if self.grid[what as usize].is_none() {
                    let ty = self.int(32);
                    self.grid[what as usize] = Some(self.variable(StorageClass::Private, ty, None));
                }
            }
        }
    }

    /// The variable of a number of the grid, if the module asks for it.
    pub fn grid(&mut self, what: Grid) -> Option<Word> {
        let variable = self.grid[what as usize]?;
        Some(self.uses(variable))
    }

    /// A new number for a result.
    pub fn id(&mut self) -> Word {
        self.next += 1;
        self.next - 1
    }

    /// Notes that the module needs a capability.
    pub fn need(&mut self, capability: Capability) {
        self.capabilities.insert(capability as u32);
    }

    /// The set of math functions.
    pub fn math(&mut self) -> Word {
        if let Some(set) = self.math {
            return set;
        }
        let id = self.id();
        let name = if self.is_vulkan() { "GLSL.std.450" } else { "OpenCL.std" };
        let operands = vec![Operand::LiteralString(name.into())];
        self.out.ext_inst_imports.push(Instruction::new(Code::ExtInstImport, None, Some(id), operands));
        self.math = Some(id);
        id
    }

    /// Appends to types, constants and variables.
    fn push(&mut self, code: Code, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let id = self.id();
        self.out.types_global_values.push(Instruction::new(code, ty, Some(id), operands));
        id
    }

    fn once(&mut self, key: Key, make: impl FnOnce(&mut Self) -> Word) -> Word {
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        let id = make(self);
        self.known.insert(key, id);
        id
    }

    pub fn decorate(&mut self, id: Word, decoration: Decoration, operands: Vec<Operand>) {
        let all = [vec![Operand::IdRef(id), Operand::Decoration(decoration)], operands].concat();
        self.out.annotations.push(Instruction::new(Code::Decorate, None, None, all));
    }

    /// Names a result for people.
    pub fn name(&mut self, id: Word, name: &str) {
        if !name.is_empty() {
            let operands = vec![Operand::IdRef(id), Operand::LiteralString(name.into())];
            self.out.debug_names.push(Instruction::new(Code::Name, None, None, operands));
        }
    }

    pub fn void(&mut self) -> Word {
        self.once(Key::Void, |e| e.push(Code::TypeVoid, None, Vec::new()))
    }

    pub fn bool_ty(&mut self) -> Word {
        self.once(Key::Bool, |e| e.push(Code::TypeBool, None, Vec::new()))
    }

    /// Integers of so many bits.
    pub fn int(&mut self, bits: u32) -> Word {
        match bits {
            8 => self.need(Capability::Int8),
            16 => self.need(Capability::Int16),
            _ => {}
        }
        self.once(Key::Int(bits), |e| {
            e.push(Code::TypeInt, None, vec![Operand::LiteralBit32(bits), Operand::LiteralBit32(0)])
        })
    }

    /// The type of a number or bool in a register.
    pub fn prim(&mut self, prim: Prim) -> Word {
        if !prim.is_float() {
            return if prim == Prim::Bool { self.bool_ty() } else { self.int(prim.bits()) };
        }
        match prim {
            Prim::F16 => self.need(Capability::Float16),
            Prim::F64 => self.need(Capability::Float64),
            _ => {}
        }
        self.floats.insert(prim.bits());
        self.once(Key::Float(prim.bits()), |e| e.push(Code::TypeFloat, None, vec![Operand::LiteralBit32(prim.bits())]))
    }

    pub fn vector(&mut self, elem: Word, n: u32) -> Word {
        self.once(Key::Vector(elem, n), |e| {
            e.push(Code::TypeVector, None, vec![Operand::IdRef(elem), Operand::LiteralBit32(n)])
        })
    }

    pub fn array(&mut self, elem: Word, n: u64) -> Word {
        let u32 = self.int(32);
        let length = self.number(u32, 32, n);
        self.once(Key::Array(elem, n), |e| {
            e.push(Code::TypeArray, None, vec![Operand::IdRef(elem), Operand::IdRef(length)])
        })
    }

    pub fn structure(&mut self, parts: &[Word]) -> Word {
        self.once(Key::Struct(parts.to_vec()), |e| e.new_structure(parts))
    }

    /// A type of its own, which can be decorated.
    pub fn new_structure(&mut self, parts: &[Word]) -> Word {
        self.push(Code::TypeStruct, None, parts.iter().map(|&p| Operand::IdRef(p)).collect())
    }

    pub fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        self.once(Key::Pointer(class as u32, to), |e| {
            e.push(Code::TypePointer, None, vec![Operand::StorageClass(class), Operand::IdRef(to)])
        })
    }

    pub fn function_ty(&mut self, ret: Word, params: &[Word]) -> Word {
        let all = [&[ret], params].concat();
        self.once(Key::Function(all.clone()), |e| {
            e.push(Code::TypeFunction, None, all.iter().map(|&p| Operand::IdRef(p)).collect())
        })
    }

    /// The literal of an integer or float type of so many bits.
    pub fn number(&mut self, ty: Word, bits: u32, value: u64) -> Word {
        let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
        self.once(Key::Number(ty, value), |e| {
            let literal = match bits {
                64 => Operand::LiteralBit64(value),
                _ => Operand::LiteralBit32(value as u32),
            };
            e.push(Code::Constant, Some(ty), vec![literal])
        })
    }

    /// An integer literal of 32 bits.
    pub fn u32(&mut self, value: u32) -> Word {
        let ty = self.int(32);
        self.number(ty, 32, value.into())
    }

    pub fn truth(&mut self, value: bool) -> Word {
        let ty = self.bool_ty();
        let code = if value { Code::ConstantTrue } else { Code::ConstantFalse };
        self.once(Key::Truth(value), |e| e.push(code, Some(ty), Vec::new()))
    }

    /// The literal of a primitive type.
    pub fn literal(&mut self, prim: Prim, bits: u64) -> Word {
        if prim == Prim::Bool {
            return self.truth(bits & 1 != 0);
        }
        let ty = self.prim(prim);
        self.number(ty, prim.bits(), bits)
    }

    /// A float literal.
    pub fn float(&mut self, prim: Prim, value: f64) -> Word {
        let bits = match prim {
            Prim::F64 => value.to_bits(),
            Prim::F32 => u64::from((value as f32).to_bits()),
            _ => nyala_ir::scalar::float_bits(prim, value),
        };
        self.literal(prim, bits)
    }

    /// The zero of a type.
    pub fn null(&mut self, ty: Word) -> Word {
        self.once(Key::Null(ty), |e| e.push(Code::ConstantNull, Some(ty), Vec::new()))
    }

    pub fn composite(&mut self, ty: Word, parts: Vec<Word>) -> Word {
        self.once(Key::Composite(ty, parts.clone()), |e| {
            e.push(Code::ConstantComposite, Some(ty), parts.into_iter().map(Operand::IdRef).collect())
        })
    }

    /// The extent of a block on an axis, if the launch says it.
    pub fn extent(&mut self, axis: u32) -> Word {
        let ty = self.int(32);
        self.once(Key::Extent(axis), |e| {
            let id = e.push(Code::SpecConstant, Some(ty), vec![Operand::LiteralBit32(1)]);
            e.decorate(id, Decoration::SpecId, vec![Operand::LiteralBit32(axis)]);
            id
        })
    }

    /// A number that is 1 if the device's `Fma` rounds once.
    pub fn fused(&mut self) -> Word {
        let ty = self.int(32);
        self.once(Key::Fused, |e| {
            let id = e.push(Code::SpecConstant, Some(ty), vec![Operand::LiteralBit32(1)]);
            e.decorate(id, Decoration::SpecId, vec![Operand::LiteralBit32(FUSED)]);
            id
        })
    }

    /// A variable of the module.
    pub fn variable(&mut self, class: StorageClass, ty: Word, init: Option<Word>) -> Word {
        let pointer = self.pointer(class, ty);
        let operands = std::iter::once(Operand::StorageClass(class)).chain(init.map(Operand::IdRef)).collect();
        self.push(Code::Variable, Some(pointer), operands)
    }

    /// Notes that the function uses a variable of the module.
    pub fn uses(&mut self, variable: Word) -> Word {
        self.used[self.current].insert(variable);
        variable
    }

    /// A variable that the device sets.
    pub fn built_in(&mut self, what: spirv::BuiltIn, ty: Word) -> Word {
        let id = self.once(Key::BuiltIn(what as u32), |e| {
            let id = e.variable(StorageClass::Input, ty, None);
            e.decorate(id, Decoration::BuiltIn, vec![Operand::BuiltIn(what)]);
            e.inputs.insert(id);
            id
        });
        self.uses(id)
    }

    /// A limitation at a place.
    pub fn lacks(&self, span: Span, what: &str, remedy: &str) -> Box<nyala_base::Diagnostic> {
        lacks(self.flavor, span, what, remedy)
    }

    /// Whether an address in this space is a number of 64 bits.
    pub fn is_number(&self, space: u8) -> bool {
        space == 0 || self.is_vulkan() && space <= 2
    }

    /// The storage class of a space.
    pub fn class(&self, space: u8) -> StorageClass {
        match (space, self.flavor) {
            (3, _) => StorageClass::Workgroup,
            (4, Flavor::Vulkan) => StorageClass::Private,
            (4, Flavor::OpenCl) => StorageClass::UniformConstant,
            (5, Flavor::Vulkan) => StorageClass::Private,
            (5, Flavor::OpenCl) => StorageClass::Function,
            (_, Flavor::Vulkan) => StorageClass::PhysicalStorageBuffer,
            (_, Flavor::OpenCl) => StorageClass::CrossWorkgroup,
        }
    }

    /// The type of an address in a register.
    pub fn address(&mut self, space: u8) -> Word {
        match () {
            () if self.is_number(space) => self.int(64),
            () if self.is_vulkan() => self.int(32),
            () => {
                let byte = self.int(8);
                let class = self.class(space);
                self.pointer(class, byte)
            }
        }
    }

    /// The type of a value in a register.
    pub fn ty(&mut self, ty: Ty, span: Span) -> Result<Word> {
        if let TyKind::Ptr { space, .. } = self.module.types.kind(ty) {
            return Ok(self.address(*space));
        }
        // Parts before what is made of them.
        let mut made: FxHashMap<Ty, Word> = FxHashMap::default();
        let mut work = vec![ty];
        while let Some(&ty) = work.last() {
            if made.contains_key(&ty) {
                work.pop();
                continue;
            }
            let types = &self.module.types;
            let kind = types.kind(ty).clone();
            let parts: Vec<Ty> = match &kind {
                TyKind::Tuple(_) | TyKind::Struct(_) => {
                    (0..types.n_parts(ty).unwrap_or(0)).filter_map(|i| types.part(ty, i)).collect()
                }
                TyKind::Array(elem, _) => vec![*elem],
                _ => Vec::new(),
            };
            let missing: Vec<Ty> = parts.iter().copied().filter(|p| !made.contains_key(p)).collect();
            if !missing.is_empty() {
                work.extend(missing);
                continue;
            }
            let parts: Vec<Word> = parts.iter().map(|p| made[p]).collect();
            let id = match kind {
                TyKind::Prim(prim) => self.prim(prim),
                TyKind::Vector(prim, n) => {
                    let elem = self.prim(prim);
                    self.array(elem, n.into())
                }
                // An address in an aggregate is as in memory.
                TyKind::Ptr { .. } => self.int(64),
                TyKind::Tuple(_) | TyKind::Struct(_) => self.structure(&parts),
                TyKind::Array(_, 0) => self.structure(&[]),
                TyKind::Array(_, n) => self.array(parts[0], n),
                TyKind::Mem | TyKind::IndefArray(_) => self.structure(&[]),
                TyKind::Cn(_) | TyKind::Code => return Err(self.lacks(span, "a function as a value", KNOWN_FUNCTION)),
            };
            made.insert(ty, id);
        }
        made.get(&ty).copied().ok_or_else(|| bug("a type without parts"))
    }

    /// The numbers that an aggregate holds, up to a limit.
    pub fn check_size(&self, ty: Ty, span: Span) -> Result<()> {
        let size = layout::size_align(&self.module.types, ty).map_or(u64::MAX, |s| s.0);
        // Numbers have a byte at least; large ones are counted well enough.
        if size > 8 * MAX_NUMBERS {
            let ty = self.module.types.display(ty);
            let what = format!("reading or writing `{ty}`, of {size} bytes, as a whole");
            return Err(self.lacks(span, &what, "read and write its parts by their addresses"));
        }
        Ok(())
    }

    /// The bytes of statics in an array of so many bytes.
    pub fn initial(&self, statics: &[(GlobalId, u64)], size: u64) -> Result<Vec<u8>> {
        let types = &self.module.types;
        let mut bytes = vec![0u8; size as usize];
        let mut put = |at: u64, value: &[u8]| {
            let at = at as usize;
            if let Some(to) = bytes.get_mut(at..at + value.len()) {
                to.copy_from_slice(value);
            }
        };
        for &(id, at) in statics {
            let global = &self.module.globals[id.idx()];
            let mut work = vec![(&global.init, global.ty, at)];
            while let Some((init, ty, at)) = work.pop() {
                match init {
                    Init::Zero | Init::Undef => {}
                    Init::Bits(bits) => {
                        let n = layout::size_align(types, ty).map_or(0, |s| s.0) as usize;
                        put(at, &bits.to_le_bytes()[..n.min(8)]);
                    }
                    Init::Bytes(all) => put(at, all),
                    Init::Parts(parts) => {
                        for (i, part) in parts.iter().enumerate() {
                            let part_ty = types.part(ty, i as u64).ok_or_else(|| bug("a static with other parts"))?;
                            let offset = layout::offset(types, ty, i as u64).unwrap_or(0);
                            work.push((part, part_ty, at + offset));
                        }
                    }
                    Init::Global(..) | Init::Func(_) => {
                        let what = format!("an address in the static `{}`", global.name);
                        return Err(self.lacks(Span::NONE, &what, "keep an index in it instead"));
                    }
                }
            }
        }
        Ok(bytes)
    }
}
