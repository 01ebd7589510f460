//! The data of a continuation besides its identity: names, type, filter, linkage, and where in the world's pool its
//! parameters and its body are. The record is small: filter and linkage are boxed, for few have one, and names are in a
//! table.

use crate::types::Ty;
use crate::world::{Cont, Val, World};
use nyala_base::Span;
use std::ops::{Deref, DerefMut, Range};

/// Assembly of the target machine, in LLVM's format: called like a C function, with inputs as arguments and outputs as
/// results.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct AsmInfo {
    /// `$0`, `$1`, … are the operands in the order of their constraints, `$$` is a dollar.
    pub template: String,
    /// Outputs, inputs, clobbers, separated by commas: `=r,=*m,r,0,~{memory}`. A constraint with a `*` takes an address
    /// as argument; outputs come first.
    pub constraints: String,
    /// Whether the assembly has effects that its operands do not show.
    pub volatile: bool,
    /// Whether the stack must be aligned as for a call.
    pub align_stack: bool,
    /// Whether the template is in Intel's syntax instead of AT&T's.
    pub intel: bool,
}

impl AsmInfo {
    /// For each argument whether it is the address of its operand (a constraint with `*`), and the number of results.
    pub fn operands(&self) -> (Vec<bool>, usize) {
        let (mut args, mut n_results) = (Vec::new(), 0);
        for constraint in self.constraints.split(',').filter(|c| !c.is_empty()) {
            match constraint.strip_prefix('=') {
                Some(output) if output.trim_start_matches('&').starts_with('*') => args.push(true),
                Some(_) => n_results += 1,
                None if constraint.starts_with('~') => {}
                None => args.push(constraint.starts_with('*')),
            }
        }
        (args, n_results)
    }

    /// Whether the assembly may read or write memory.
    pub fn touches_memory(&self) -> bool {
        self.volatile || self.constraints.contains('*') || self.constraints.contains("~{memory}")
    }
}

/// How a function can be named from outside the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Linkage {
    /// Only the program itself calls it.
    #[default]
    Internal,
    /// Callable from C under this symbol; a root.
    Exported(String),
    /// A C function of this symbol, defined elsewhere; has no body.
    Foreign(String),
    /// Assembly; has no body.
    Asm(AsmInfo),
}

impl Linkage {
    /// Whether the function's code lies elsewhere.
    pub fn is_external(&self) -> bool {
        matches!(self, Linkage::Foreign(_) | Linkage::Asm(_))
    }
}

/// When calls of a continuation are specialized (`001` 4.1): conditions over its own parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Or-ed into the condition of every parameter. `None`: false.
    pub all: Option<Val>,
    /// By parameter position, `mem` and return continuation included; may be shorter than the parameters. `None`: false.
    pub params: Vec<Option<Val>>,
}

impl Filter {
    /// Whether no call is specialized.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.params.iter().all(Option::is_none)
    }
}

/// How a continuation ends: a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Body<'w> {
    /// A continuation, a builtin, or a value of continuation type.
    pub callee: Val,
    /// Operands, `mem` first.
    pub args: &'w [Val],
    /// Where the call stands in the source.
    pub origin: Span,
}

/// A continuation; its parameters and body are in the pool of its world.
#[derive(Clone, Debug)]
pub struct ContData {
    /// The names of the continuation and of its parameters.
    pub names: Names,
    /// `cn(…)`.
    pub ty: Ty,
    pub(crate) params: Pooled,
    pub(crate) body: Option<(Val, Pooled, Span)>,
    /// When calls of it are specialized.
    pub filter: Rare<Filter>,
    /// How it can be named from outside.
    pub linkage: Rare<Linkage>,
    /// Where it stands in the source.
    pub origin: Span,
}

/// The names of a continuation and its parameters, as a place in the name table of the world and of worlds
/// [like](crate::World::like) it. Copies share the place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Names {
    at: u32,
    /// A bit for each of the first 64 original parameters: whether it is left. Parameters beyond keep their places.
    kept: u64,
}

impl Names {
    /// The names of a copy with these parameters, in ascending order.
    pub fn keep(self, params: impl Iterator<Item = usize>) -> Names {
        let kept = params.filter_map(|i| self.place(i)).fold(0, |kept, i| kept | 1 << i);
        Names { kept, ..self }
    }

    /// The original position of parameter `i` among those left, if it is one of the first 64.
    pub fn place(self, i: usize) -> Option<usize> {
        let mut left = self.kept;
        for _ in 0..i.min(64) {
            left &= left.wrapping_sub(1);
        }
        (left != 0).then(|| left.trailing_zeros() as usize)
    }
}

/// Names of continuations, each with those of its parameters, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    text: String,
    /// Where each name ends in the text.
    ends: Vec<usize>,
    /// For each [`Names`] the number of the continuation's own name.
    first: Vec<u32>,
}

impl NameTable {
    pub fn add(&mut self, own: &str, params: &[&str]) -> Names {
        // Entry 0 is the empty name.
        if self.first.is_empty() && !(own.is_empty() && params.is_empty()) {
            self.add("", &[]);
        }
        let at = self.first.len() as u32;
        self.first.push(self.ends.len() as u32);
        for name in [own].iter().chain(params) {
            self.text.push_str(name);
            self.ends.push(self.text.len());
        }
        Names { at, kept: u64::MAX }
    }

    fn get(&self, names: Names, i: usize) -> Option<&str> {
        let of = |at: u32| self.first.get(at as usize).map_or(self.ends.len(), |&first| first as usize);
        let at = of(names.at) + i;
        let start = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before]);
        (at < of(names.at + 1)).then(|| &self.text[start(at)..self.ends[at]])
    }

    pub fn own(&self, names: Names) -> &str {
        self.get(names, 0).unwrap_or("")
    }

    pub fn param(&self, names: Names, i: usize) -> Option<&str> {
        let i = if names.kept == u64::MAX { i } else { names.place(i)? };
        self.get(names, i + 1)
    }
}

impl World {
    /// The name of a continuation; empty if it has none.
    ///
    /// ```
    /// use nyala_ir::World;
    /// let mut w = World::new();
    /// let (i32, mem) = (w.types.prim(nyala_ir::Prim::I32), w.types.mem());
    /// let (ret, few) = (w.types.cn(&[mem, i32]), w.types.cn(&[mem, i32]));
    /// let ty = w.types.cn(&[mem, i32, i32, ret]);
    /// let f = w.declare("f", ty, &["m", "x", "y", "ret"]);
    /// let mut copy = World::like(&w);
    /// let k = copy.reserve(few);
    /// copy.set_params(k, w.cont(f).names.keep([0, 2].into_iter()));
    /// assert_eq!((copy.name(k), copy.param_name(k, 1), copy.param_name(k, 2)), ("f", Some("y"), None));
    /// assert_eq!((w.param_name(f, 3), w.param_name(f, 4)), (Some("ret"), None));
    /// assert_eq!(w.param_name(f, 9), None);
    /// ```
    pub fn name(&self, k: Cont) -> &str {
        self.names.own(self.cont(k).names)
    }

    /// The name of parameter `i` of a continuation, if it has one.
    pub fn param_name(&self, k: Cont, i: usize) -> Option<&str> {
        self.names.param(self.cont(k).names, i)
    }
}

/// Values in the pool: where they begin, and their number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pooled {
    pub start: u32,
    pub len: u32,
}

impl Pooled {
    pub fn range(self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// A part that most continuations lack: boxed, so that a missing one takes only the size of a pointer.
#[derive(Clone, Debug, Default)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> From<T> for Rare<T> {
    fn from(value: T) -> Rare<T> {
        Rare(Some(Box::new(value)))
    }
}

impl Deref for Rare<Filter> {
    type Target = Filter;
    fn deref(&self) -> &Filter {
        static NONE: Filter = Filter { all: None, params: Vec::new() };
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Rare<Filter> {
    fn deref_mut(&mut self) -> &mut Filter {
        self.0.get_or_insert_default()
    }
}

impl Deref for Rare<Linkage> {
    type Target = Linkage;
    fn deref(&self) -> &Linkage {
        self.0.as_deref().unwrap_or(&Linkage::Internal)
    }
}
