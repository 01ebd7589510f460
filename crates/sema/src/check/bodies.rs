//! Bodies of functions, lambdas and loops over generators, and initializers of statics, as data: how they nest, and
//! which outer variables they use. Bodies have numbers, in the order in which they are entered: those inside of a body
//! have greater ones.

use crate::program::{FnId, GlobalExpr, Local, LocalId, LoopId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The body that is being checked.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    pub owner: u32,
    pub current_loop: Option<LoopId>,
    /// The innermost named function.
    pub function: Option<FnId>,
    /// In the initializer of a static, the number of its body: it may not use variables of bodies with smaller numbers.
    pub static_floor: Option<u32>,
    /// In a method, the number of its body: it may not use variables of bodies with smaller numbers.
    pub method_floor: Option<u32>,
    /// In a filter, where most calls are not allowed.
    pub in_filter: bool,
    /// The number of blocks around the code.
    pub blocks: u32,
    /// In `defer { … }`, the number of blocks around that: continuations declared there leave it.
    pub deferred_in: Option<u32>,
}

/// All bodies so far.
pub(super) struct Bodies {
    /// The named function around each body, or that it belongs to. The first stands for code outside of all bodies.
    functions: Vec<Option<FnId>>,
    /// For each body in another one, the body around it.
    parents: FxHashMap<u32, u32>,
    lambdas: FxHashMap<GlobalExpr, u32>,
    fns: FxHashMap<FnId, u32>,
    /// Pairs of a body and an outer variable that it uses.
    shared: Vec<(u32, LocalId)>,
}

/// The outer variables that bodies use.
pub(super) struct Shared {
    /// By the body of a function or lambda; those that bodies inside of it use are included.
    pub by_body: FxHashMap<u32, Vec<LocalId>>,
    /// The bodies that such variables reach through, those that declare them included.
    pub around: FxHashSet<u32>,
}

impl Bodies {
    pub fn new() -> Self {
        Bodies {
            functions: vec![None],
            parents: FxHashMap::default(),
            lambdas: FxHashMap::default(),
            fns: FxHashMap::default(),
            shared: Vec::new(),
        }
    }

    /// Adds the initializer of a static. Returns its number.
    pub fn add_initializer(&mut self) -> u32 {
        self.functions.push(None);
        self.functions.len() as u32 - 1
    }

    /// Adds a body in `parent`. Returns its number.
    pub fn add(&mut self, function: Option<FnId>, parent: u32) -> u32 {
        self.functions.push(function);
        let body = self.functions.len() as u32 - 1;
        self.parents.insert(body, parent);
        body
    }

    pub fn note_fn(&mut self, id: FnId, body: u32) {
        self.fns.insert(id, body);
    }

    pub fn note_lambda(&mut self, e: GlobalExpr, body: u32) {
        self.lambdas.insert(e, body);
    }

    /// The body uses a variable of another one.
    pub fn note_shared(&mut self, body: u32, local: LocalId) {
        self.shared.push((body, local));
    }

    pub fn function(&self, body: u32) -> Option<FnId> {
        self.functions.get(body as usize).copied().flatten()
    }

    pub fn of_fn(&self, id: FnId) -> Option<u32> {
        self.fns.get(&id).copied()
    }

    pub fn of_lambda(&self, e: GlobalExpr) -> Option<u32> {
        self.lambdas.get(&e).copied()
    }

    /// The lambdas and their bodies, in no order.
    pub fn lambdas(&self) -> impl Iterator<Item = (GlobalExpr, u32)> {
        self.lambdas.iter().map(|(e, body)| (*e, *body))
    }

    pub fn outer_variables(&self, locals: &[Local]) -> Shared {
        let mut by_body: FxHashMap<u32, Vec<LocalId>> = FxHashMap::default();
        let mut around: FxHashSet<u32> = FxHashSet::default();
        for &(body, local) in &self.shared {
            let declared_in = locals[local.0 as usize].owner;
            let mut at = Some(body);
            while let Some(body) = at.filter(|body| *body != declared_in) {
                let used = by_body.entry(body).or_default();
                if !used.contains(&local) {
                    used.push(local);
                }
                around.insert(body);
                at = self.parents.get(&body).copied();
            }
            around.insert(declared_in);
        }
        // Bodies of loops are no values.
        let values: FxHashSet<u32> = self.lambdas.values().chain(self.fns.values()).copied().collect();
        by_body.retain(|body, _| values.contains(body));
        Shared { by_body, around }
    }
}
