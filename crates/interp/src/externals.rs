//! Objects outside of functions: globals, foreign functions, entry points.

use crate::code::{Entry, EntryIdx, FuncIdx};
use crate::diagnostics;
use crate::fault::{Fault, bug, limitation};
use crate::heap::{Closure, MAX_ENTRIES, NONE};
use crate::leaves::{Layouts, Leaf};
use crate::races::{Race, Races};
use crate::scope::Program;
use nyala_base::SideTable;
use nyala_ir::facts::Nest;
use nyala_ir::lanes::DEVICE_ARGS;
use nyala_ir::{Cont, Global, LaneOp, Linkage, Node, Op, Prim, Scope, Ty, TyKind, Val, World, layout};
use nyala_runtime::{CheckedMemory, FfiType, Library, ON_DEVICE, find_symbol};
use rustc_hash::FxHashMap;

type Result<T> = std::result::Result<T, Box<Fault>>;

/// How the interpreter executes a foreign function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForeignKind {
    Call(usize),
    /// Allocates from the checked memory.
    Alloc,
    AllocArray,
    Free,
    /// Ends the program with a message.
    Panic,
    Sync(usize),
    /// Reads a channel.
    ReadChannel(usize),
    /// Like the plain ones, with a device as first argument; whether the memory is the device's alone.
    DeviceAlloc(usize, bool),
    DeviceFree(usize),
    DeviceCopy(usize),
    /// Allocates, with a size and an alignment as arguments.
    AlignedAlloc,
    /// An operation across lanes, or a query of the lane.
    Lanes(LaneOp, Scope),
    /// There is none: it is a fault to call it.
    Missing(Cont),
}

#[derive(Clone, Debug)]
pub struct Foreign {
    pub name: String,
    pub kind: ForeignKind,
    pub args: Vec<FfiType>,
    /// Which arguments are devices: the interpreter is all of them.
    pub devices: &'static [usize],
    pub ret: FfiType,
    /// Whether its type is not `-> !`.
    pub returns: bool,
}

/// The tables that compiled functions refer to.
pub struct Linker<'w> {
    pub program: Program<'w>,
    pub layouts: Layouts<'w>,
    pub memory: CheckedMemory,
    /// Accesses of the iterations of parallel loops.
    pub races: Races,
    /// The race that ends the program.
    pub race: Option<(Race, bool)>,
    pub entries: Vec<Entry>,
    /// The continuation of each function.
    pub funcs: Vec<Cont>,
    func_idx: FxHashMap<Cont, FuncIdx>,
    func_entries: FxHashMap<FuncIdx, EntryIdx>,
    pub foreigns: Vec<Foreign>,
    foreign_idx: FxHashMap<Cont, u32>,
    foreign_entries: FxHashMap<u32, EntryIdx>,
    globals: SideTable<Global, usize>,
    libraries: &'w [Library],
}

/// The entry points that every program has.
pub const HALT: EntryIdx = 0;
pub const RELEASE: EntryIdx = 1;
pub const LANE_END: EntryIdx = 2;

/// Marks a closure in memory, in the word after it.
pub const CLOSURE_MARK: u64 = 0x6e79_616c_6161_666e;

fn ffi_type(w: &World, ty: Ty) -> Option<FfiType> {
    Some(match w.types.kind(ty) {
        TyKind::Prim(p) => match p {
            Prim::Bool => FfiType::Bool,
            Prim::I8 => FfiType::I8,
            Prim::I16 => FfiType::I16,
            Prim::I32 => FfiType::I32,
            Prim::I64 => FfiType::I64,
            Prim::U8 => FfiType::U8,
            Prim::U16 => FfiType::U16,
            Prim::U32 => FfiType::U32,
            Prim::U64 => FfiType::U64,
            Prim::F16 => FfiType::F16,
            Prim::F32 => FfiType::F32,
            Prim::F64 => FfiType::F64,
        },
        TyKind::Ptr { .. } | TyKind::Code => FfiType::Ptr,
        _ => return None,
    })
}

impl<'w> Linker<'w> {
    pub fn new(w: &'w World, nest: &'w Nest, libraries: &'w [Library]) -> Linker<'w> {
        Linker {
            program: Program::new(w, nest),
            layouts: Layouts::new(w),
            memory: CheckedMemory::default(),
            races: Races::default(),
            race: None,
            entries: vec![Entry::Halt, Entry::Release, Entry::LaneEnd],
            funcs: Vec::new(),
            func_idx: FxHashMap::default(),
            func_entries: FxHashMap::default(),
            foreigns: Vec::new(),
            foreign_idx: FxHashMap::default(),
            foreign_entries: FxHashMap::default(),
            globals: SideTable::default(),
            libraries,
        }
    }

    pub fn new_entry(&mut self, entry: Entry) -> Result<EntryIdx> {
        if self.entries.len() >= MAX_ENTRIES {
            return Err(limitation("the program has too many continuations for the interpreter"));
        }
        self.entries.push(entry);
        Ok(self.entries.len() as EntryIdx - 1)
    }

    pub fn func(&mut self, k: Cont) -> FuncIdx {
        if let Some(&f) = self.func_idx.get(&k) {
            return f;
        }
        self.funcs.push(k);
        let f = self.funcs.len() as FuncIdx - 1;
        self.func_idx.insert(k, f);
        f
    }

    pub fn func_entry(&mut self, func: FuncIdx) -> Result<EntryIdx> {
        if let Some(&e) = self.func_entries.get(&func) {
            return Ok(e);
        }
        let e = self.new_entry(Entry::Func(func))?;
        self.func_entries.insert(func, e);
        Ok(e)
    }

    pub fn foreign_entry(&mut self, foreign: u32) -> Result<EntryIdx> {
        if let Some(&e) = self.foreign_entries.get(&foreign) {
            return Ok(e);
        }
        let e = self.new_entry(Entry::Foreign(foreign))?;
        self.foreign_entries.insert(foreign, e);
        Ok(e)
    }

    pub fn foreign(&mut self, k: Cont) -> Result<u32> {
        if let Some(&f) = self.foreign_idx.get(&k) {
            return Ok(f);
        }
        let w = self.program.w;
        let data = w.cont(k);
        let Linkage::Foreign(symbol) = &*data.linkage else {
            return Err(bug(format!("`{}` is no foreign function", w.name(k))));
        };
        let limitation = |what: &str| -> Box<Fault> {
            let message = format!("foreign function `{symbol}`: {what} cannot be passed to C yet");
            diagnostics::limitation::error(data.origin, message, "pass it by a pointer").into()
        };
        let returns = self.program.returns(data.ty);
        let params = w.types.cn_params(data.ty).and_then(|p| p.get(1..)).unwrap_or(&[]);
        let (args, ret) = params.split_at(params.len() - returns as usize);
        let mut arg_tys = Vec::new();
        for &arg in args {
            if self.layouts.count(arg) > 0 {
                let shown = format!("an argument of type `{}`", w.types.display(arg));
                arg_tys.push(ffi_type(w, arg).ok_or_else(|| limitation(&shown))?);
            }
        }
        let results = ret.first().and_then(|&ret| w.types.cn_params(ret)).unwrap_or(&[]);
        let results: Vec<Ty> = results.iter().skip(1).copied().collect();
        let results: Vec<Ty> = results.into_iter().filter(|&t| self.layouts.count(t) > 0).collect();
        let ret = match results[..] {
            [] => FfiType::Void,
            [ty] => ffi_type(w, ty).ok_or_else(|| limitation("its result"))?,
            _ => return Err(limitation("several results")),
        };
        let kind = match symbol.as_str() {
            "nyala_alloc" => ForeignKind::Alloc,
            "nyala_alloc_array" => ForeignKind::AllocArray,
            "nyala_free" => ForeignKind::Free,
            "nyala_panic" | "nyala_panic_at" => ForeignKind::Panic,
            nyala_ir::lanes::CHANNEL_READ => {
                ForeignKind::ReadChannel(nyala_runtime::nyala_channel_read as *const () as usize)
            }
            "nyala_sync" => ForeignKind::Sync(nyala_runtime::nyala_sync as *const () as usize),
            "anydsl_aligned_malloc" => ForeignKind::AlignedAlloc,
            "anydsl_aligned_free" => ForeignKind::Free,
            _ if let Some((op, scope)) = LaneOp::of_symbol(symbol) => ForeignKind::Lanes(op, scope),
            _ => match find_symbol(symbol, self.libraries) {
                Some(address) => match symbol.as_str() {
                    "anydsl_alloc" => ForeignKind::DeviceAlloc(address, true),
                    "anydsl_alloc_host" | "anydsl_alloc_unified" => ForeignKind::DeviceAlloc(address, false),
                    "anydsl_release" | "anydsl_release_host" => ForeignKind::DeviceFree(address),
                    "anydsl_copy" => ForeignKind::DeviceCopy(address),
                    _ => ForeignKind::Call(address),
                },
                None if let Some(name) = nyala_ir::lanes::device_function(symbol) => {
                    let message = format!("the function `{name}` of a device, under the interpreter");
                    let hint =
                        "only CUDA's compiler may know it: launch the kernel by `cuda`, and run it on such a device";
                    return Err(diagnostics::limitation::error(data.origin, message, hint).into());
                }
                None => ForeignKind::Missing(k),
            },
        };
        let devices = DEVICE_ARGS.iter().find(|(name, _)| name == symbol).map_or(&[][..], |(_, positions)| positions);
        self.foreigns.push(Foreign { name: symbol.clone(), kind, args: arg_tys, devices, ret, returns });
        let f = self.foreigns.len() as u32 - 1;
        self.foreign_idx.insert(k, f);
        Ok(f)
    }

    /// The address of a global, which is allocated and initialized on the first request.
    pub fn global(&mut self, g: Global) -> Result<usize> {
        let mut pending = Vec::new();
        let address = self.global_address(g, &mut pending)?;
        while let Some((g, address)) = pending.pop() {
            let data = self.program.w.global(g);
            let layout = self.layouts.layout(data.ty)?;
            let words = match data.init {
                Some(init) => self.constant(init, &mut pending)?,
                None => vec![0; layout.leaves.len()],
            };
            self.memory.write_bytes(address, &vec![0; layout.size]).map_err(memory_fault)?;
            for ((leaf, offset), word) in layout.leaves.iter().zip(words) {
                self.store(address + offset, *leaf, word)?;
            }
        }
        Ok(address)
    }

    fn global_address(&mut self, g: Global, pending: &mut Vec<(Global, usize)>) -> Result<usize> {
        if self.globals[g] == 0 {
            let layout = self.layouts.layout(self.program.w.global(g).ty)?;
            let align = layout.align.max(if layout.size >= 16 { 16 } else { 1 });
            let address = self.memory.allocate(layout.size, align).map_err(memory_fault)?;
            self.globals[g] = address;
            pending.push((g, address));
        }
        Ok(self.globals[g])
    }

    /// The words of an initializer.
    fn constant(&mut self, v: Val, pending: &mut Vec<(Global, usize)>) -> Result<Vec<u64>> {
        let w = self.program.w;
        let mut done: FxHashMap<Val, Vec<u64>> = FxHashMap::default();
        let mut work = vec![(v, false)];
        while let Some((v, operands_done)) = work.pop() {
            if done.contains_key(&v) {
                continue;
            }
            let args = w.args(v);
            if !operands_done && !args.is_empty() {
                work.push((v, true));
                work.extend(args.iter().map(|&a| (a, false)));
                continue;
            }
            let words = match w.node(v) {
                Node::Lit(bits) => vec![bits],
                Node::Undef => vec![0; self.layouts.layout(w.ty(v))?.leaves.len()],
                Node::Global(g) => vec![self.global_address(g, pending)? as u64],
                Node::Cont(k) => {
                    let entry = match *w.cont(k).linkage {
                        Linkage::Foreign(_) => {
                            let f = self.foreign(k)?;
                            self.foreign_entry(f)?
                        }
                        _ => {
                            let f = self.func(k);
                            self.func_entry(f)?
                        }
                    };
                    vec![(entry as u64) << 44 | NONE as u64]
                }
                Node::Op(Op::Tuple | Op::Struct | Op::Array) => args.iter().flat_map(|a| done[a].clone()).collect(),
                Node::Op(Op::Splat) => {
                    let n = w.types.n_parts(w.ty(v)).unwrap_or(0) as usize;
                    self.layouts.layout(w.ty(v))?;
                    done[&args[0]].repeat(n)
                }
                Node::Op(Op::Insert) => {
                    let mut words = done[&args[0]].clone();
                    let at = self.layouts.part_start(w.ty(v), w.as_lit(args[1]).unwrap_or(0)) as usize;
                    let part = &done[&args[2]];
                    words[at..at + part.len()].copy_from_slice(part);
                    words
                }
                Node::Op(Op::Extract) => {
                    let at = self.layouts.part_start(w.ty(args[0]), w.as_lit(args[1]).unwrap_or(0)) as usize;
                    let n = self.layouts.layout(w.ty(v))?.leaves.len();
                    done[&args[0]][at..at + n].to_vec()
                }
                Node::Op(Op::Bitcast | Op::Hlt | Op::Unfold | Op::Run) => done[&args[0]].clone(),
                Node::Op(Op::Lea) => {
                    let pointee = w.types.pointee(w.ty(args[0])).unwrap_or(w.ty(args[0]));
                    let offset = layout::offset(&w.types, pointee, w.as_lit(args[1]).unwrap_or(0)).unwrap_or(0);
                    vec![done[&args[0]][0].wrapping_add(offset)]
                }
                _ => {
                    return Err(bug("an initializer that is not constant"));
                }
            };
            done.insert(v, words);
        }
        Ok(done.remove(&v).unwrap_or_default())
    }

    /// Allocates checked memory.
    pub fn allocate(&mut self, size: usize, align: usize) -> Result<usize> {
        let at = self.memory.allocate(size, align).map_err(memory_fault)?;
        self.races.forget(at, size);
        Ok(at)
    }

    /// Allocates memory that the program may give back.
    pub fn give(&mut self, size: usize, align: usize) -> Result<usize> {
        let at = self.allocate(size, align)?;
        self.memory.give(at);
        Ok(at)
    }

    /// Notes an access by the code before `pc`, of a leaf, which becomes `written`. It is a fault if iterations race.
    #[inline]
    pub fn note(&mut self, address: usize, leaf: Leaf, written: Option<u64>, pc: usize) -> Result<()> {
        if self.races.is_active() { self.note_access(address, leaf, written, pc) } else { Ok(()) }
    }

    #[cold]
    fn note_access(&mut self, address: usize, leaf: Leaf, written: Option<u64>, pc: usize) -> Result<()> {
        let size = leaf.size();
        let mask = if size < 8 { (1 << (8 * size)) - 1 } else { u64::MAX };
        let is_same = || {
            let old = self.memory.load(address, size.min(8));
            old.is_ok_and(|old| written.is_some_and(|new| old & mask == new & mask))
        };
        match self.races.access((address, size), written.is_some(), pc, is_same) {
            None => Ok(()),
            Some(race) => {
                self.race = Some((race, written.is_some()));
                // `Machine::locate` knows the places.
                Err(bug("a race without its places"))
            }
        }
    }

    /// Writes one word of a value to memory.
    #[inline]
    pub fn store(&mut self, address: usize, leaf: Leaf, word: u64) -> Result<()> {
        match leaf {
            Leaf::Cn => {
                self.memory.store(address, 8, word).map_err(memory_fault)?;
                self.memory.store(address + 8, 8, CLOSURE_MARK).map_err(memory_fault)
            }
            leaf => self.memory.store(address, leaf.size(), word).map_err(memory_fault),
        }
    }

    /// Reads one word of a value from memory.
    #[inline]
    pub fn load(&mut self, address: usize, leaf: Leaf) -> Result<u64> {
        match leaf {
            Leaf::Prim(Prim::Bool) => Ok((self.memory.load(address, 1).map_err(memory_fault)? != 0) as u64),
            Leaf::Prim(p) => Ok(p.normalize(self.memory.load(address, leaf.size()).map_err(memory_fault)?)),
            Leaf::Ptr => self.memory.load(address, 8).map_err(memory_fault),
            Leaf::Cn => {
                let word = self.memory.load(address, 8).map_err(memory_fault)?;
                let mark = self.memory.load(address + 8, 8).map_err(memory_fault)?;
                let known = (Closure(word).entry() as usize) < self.entries.len();
                if mark != CLOSURE_MARK || !known {
                    return Err(diagnostics::undefined_call::no_function_in_memory().into());
                }
                Ok(word)
            }
        }
    }
}

#[cold]
pub fn memory_fault(fault: nyala_runtime::MemoryFault) -> Box<Fault> {
    use nyala_runtime::MemoryFault::*;
    let hint = match fault {
        Uninitialized => return diagnostics::uninitialized_read::error(fault.to_string()).into(),
        OutOfMemory => return diagnostics::budget_spent::memory().into(),
        Null => "test the pointer first",
        OutOfBounds => "indices of an array of `n` elements go from `0` to `n - 1`",
        Dangling => "variables live as long as their function runs, blocks on the heap until they are given back",
        Wild => "look for a cast or computation that makes an address of a number",
        OnDevice => ON_DEVICE,
        NotABlock => "give back what was allocated, once, by the address that allocation gave",
    };
    diagnostics::invalid_access::error(fault.to_string(), hint).into()
}
