//! Syntax trees to the graph: names, types and code in one pass.
//!
//! One pass, since a template is checked anew for each of its types, as C++ has it. The program is lowered twice: into a graph of its own when it is
//! checked, which is thrown away, and into that of the whole program.
//!
//! **Variables** are slots, which are promoted to values later. **Statements** are continuations `cn(mem)`; what stands behind a `return` goes into one that
//! nothing reaches. **Pointers** lead to any number of elements. **Functions** that are not `static` are exported; those without a body
//! are Impala's, or C's.

mod calls;
mod conversions;
mod exprs;
mod functions;
mod header;
mod initializers;
mod intrinsics;
mod ispc;
mod jumps;
mod lanes;
mod library;
mod link;
mod operators;
mod overloads;
mod pointers;
mod shorts;
mod soa;
mod specified;
mod statements;
mod switches;
mod tasks;
mod templates;
mod uses;

use crate::diagnostics::{sierra_constant, sierra_lanes, sierra_name, sierra_type};
use crate::types::{Field, Kind, MAX_LENGTH, Signature, Ty, Types};
use crate::vecimp;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, FileId, Id, Sink, Sources, Span};
use nyala_c_syntax::Dialect;
use nyala_c_syntax::diagnostics::c_syntax;
use nyala_c_syntax::syntax::{self, *};
use nyala_ir::{self as ir, Builtin, Cont, Global, Linkage, Op, Prim, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function that other code calls.
pub struct Callable {
    pub name: String,
    pub place: Span,
    /// Its types in Impala: `(i32, &[f32]) -> f32`.
    pub signature: String,
}

/// What other code can have of a program.
#[derive(Default)]
pub struct Exports {
    pub callables: Vec<Callable>,
    /// The text of a header for C, without what guards it.
    pub header: String,
}

/// Adds what files in Sierra have to `world`; signed arithmetic may wrap around, a gang of ISPC's programs has `gang` lanes, and the processor may hold
/// conditions of lanes in registers of their own. Returns the functions that are exported.
pub fn lower(
    sources: &Sources,
    files: &[FileId],
    wrap: bool,
    gang: u32,
    has_masks: bool,
    world: &mut World,
    sink: &mut Sink,
) -> Exports {
    let texts = crate::texts::Texts::default();
    // The trees of those in VecImp have their names.
    let is_vecimp = |file| sources.name(file).ends_with(vecimp::ENDING);
    let of_vecimp = |&file: &FileId| is_vecimp(file).then(|| vecimp::program(file, sources.text(file), sink));
    let programs: Vec<Option<vecimp::syntax::Program>> = files.iter().map(of_vecimp).collect();
    let mut lowerer = Lowerer {
        w: world,
        sink,
        sources,
        gang: gang.clamp(2, lanes::MAX_LANES as u32),
        has_masks,
        is_ispc: false,
        wrap,
        types: Types::new(),
        scopes: Vec::new(),
        functions: Vec::new(),
        symbols: FxHashMap::default(),
        cur: None,
        result: None,
        targets: Vec::new(),
        switches: Vec::new(),
        reached: FxHashSet::default(),
        is_constant: false,
        mode: None,
        returned: None,
        is_scalar: false,
        loops: FxHashMap::default(),
        leaving: None,
        known: FxHashMap::default(),
        sets: Vec::new(),
        variables: FxHashMap::default(),
        structs_of_files: FxHashMap::default(),
        pointers: pointers::Pointers::default(),
        templates: templates::Templates::default(),
        uses: None,
        around: Vec::new(),
        locals: FxHashMap::default(),
        values: FxHashMap::default(),
        rest_is_cheap: true,
        lane_references: Vec::new(),
        library: FxHashMap::default(),
        statics: FxHashMap::default(),
        instance: None,
        is_in_foreach: false,
        has_jumps: false,
        labels: FxHashMap::default(),
        pending: None,
        borrowed: None,
        given: FxHashMap::default(),
        n_library_templates: 0,
    };
    let parsed = |lowerer: &mut Lowerer<'_, '_>, file, is_ispc| {
        (lowerer.is_ispc, lowerer.types.is_ispc) = (is_ispc, is_ispc);
        let macros = if is_ispc { ispc::macros(lowerer.gang) } else { Vec::new() };
        let tokens = crate::preprocess::preprocess(sources, &texts, file, &macros, lowerer.sink);
        nyala_c_syntax::parser::parse(tokens, if is_ispc { Dialect::Ispc } else { Dialect::Sierra }, lowerer.sink)
    };
    let is_ispc = |file| sources.name(file).ends_with(crate::ISPC_ENDING);
    let library = sources.names().position(|name| name == crate::ISPC_LIBRARY.0).map(FileId::from_idx);
    // Few programs need it.
    let is_needed = || {
        let texts = sources.names().enumerate().filter(|(_, name)| *name != crate::ISPC_LIBRARY.0);
        let mut texts = texts.map(|(i, _)| sources.text(FileId::from_idx(i)));
        texts.any(|text| {
            ["RNGState", "ldexp", "frexp", "saturating", "avg_", "srgb8", "rdrand"]
                .iter()
                .any(|word| text.contains(word))
        })
    };
    if let Some(library) = library.filter(|_| files.iter().any(|&file| is_ispc(file)) && is_needed()) {
        let items = parsed(&mut lowerer, library, true);
        lowerer.library_items(&items);
    }
    for (&file, program) in files.iter().zip(&programs) {
        let is_ispc = is_ispc(file);
        let items = match program {
            Some(program) => {
                (lowerer.is_ispc, lowerer.types.is_ispc) = (false, false);
                vecimp::translate(program)
            }
            None => parsed(&mut lowerer, file, is_ispc),
        };
        // VecImp's numbers do.
        lowerer.wrap = wrap || program.is_some();
        lowerer.items(&items);
    }
    lowerer.link();
    Exports { callables: lowerer.callables(), header: lowerer.header() }
}

/// The continuation that is being built, and its current memory.
#[derive(Clone, Copy)]
struct Cur {
    k: Cont,
    mem: Val,
}

#[derive(Clone, Copy)]
enum Entity {
    Variable(Variable),
    Constant(i64, Ty),
    /// Functions of one name: a place in [`Lowerer::sets`].
    Functions(usize),
    Type(Ty),
    /// A reference in each lane: a place in [`Lowerer::lane_references`].
    Lanes(usize),
    /// A template of structs.
    Template(usize),
    /// A variable whose declaration is left out on a way to this place.
    Skipped(SkippedBy),
}

#[derive(Clone, Copy)]
enum SkippedBy {
    Goto,
    /// Or by `default`: only a reference is.
    Case,
}

#[derive(Clone, Copy)]
struct Variable {
    address: Val,
    ty: Ty,
    is_const: bool,
}

struct Function<'s> {
    name: String,
    /// Its code, while its file is lowered.
    source: Option<templates::Source<'s>>,
    declared: Span,
    params: Vec<Ty>,
    result: Ty,
    is_static: bool,
    /// Declared `extern "C"`: of several functions with its name, it is the one that other code knows.
    is_c: bool,
    is_used: bool,
    /// The lanes of the mode in which it runs; its first parameter is their mask then.
    simd: Option<u32>,
    k: Cont,
    is_defined: bool,
    /// It is of ISPC's dialect, and not for other code.
    is_own: bool,
    of_ispc: bool,
    /// Its last parameters are the numbers of the task.
    is_task: bool,
    /// The function belongs to the library: it is lowered when it is called first.
    is_library: bool,
    is_waiting: bool,
    /// What parameters are without an argument.
    defaults: Vec<Option<std::rc::Rc<Expr<'s>>>>,
}

/// A variable that all files know.
#[derive(Clone, Copy)]
struct Shared {
    variable: Variable,
    global: Global,
    declared: Span,
    is_defined: bool,
}

/// The value of an expression.
#[derive(Clone)]
enum Value {
    Plain(Val, Ty),
    /// It lies at an address, and may be changed unless it is constant.
    Place(Variable),
    /// It lies at an address in each lane.
    Lanes(Lanes),
    /// An element among others that lie side by side.
    Soa(soa::SoaPlace),
    /// Elements of a short vector, `v.xz`, which has the type.
    Parts(Vec<Value>, Ty),
}

impl Value {
    fn ty(&self) -> Ty {
        let (Value::Plain(_, ty)
        | Value::Place(Variable { ty, .. })
        | Value::Lanes(Lanes { ty, .. })
        | Value::Soa(soa::SoaPlace { ty, .. })
        | Value::Parts(_, ty)) = self;
        *ty
    }
}

/// Places with an address in each lane.
#[derive(Clone)]
struct Lanes {
    at: At,
    n: u32,
    /// The type of what lies at an address, which part of it the place is, and the place's type in one lane.
    base: Ty,
    steps: Vec<Step>,
    /// For `soa<n>`: each lane's index of its element within the block, which becomes the last step.
    minor: Option<Val>,
    ty: Ty,
    is_const: bool,
}

/// To a part: a field, or the element with a number of each lane.
#[derive(Clone, Copy)]
enum Step {
    Field(u64),
    Lane(Val),
}

#[derive(Clone, Copy)]
enum At {
    /// A pointer, and an index with lanes.
    Index(Val, Val),
    /// The bits of the addresses.
    Addresses(Val),
}

/// Where `break` and `continue` go on.
#[derive(Clone, Copy)]
struct Targets {
    after: Cont,
    /// `None` in a `switch` that no loop is around.
    next: Option<Cont>,
    is_switch: bool,
    /// A `switch` of a value with lanes.
    is_of_lanes: bool,
    /// The end of the region around the loop or `switch`, in SIMD mode.
    region: Option<Cont>,
    /// In SIMD mode: the address of the mask of lanes that have continued, in the loop around.
    continued: Option<Val>,
    /// No lane may leave it by `break` or `return`.
    is_foreach: bool,
    /// `foreach_active` or `foreach_unique`, which no lane may leave by `break`.
    is_turn: bool,
}

type Lowered<T> = Result<T, Box<Diagnostic>>;

struct Lowerer<'s, 'w> {
    w: &'w mut World,
    sink: &'w mut Sink,
    sources: &'s Sources,
    /// The lanes of a gang, and whether the file is of ISPC's dialect.
    gang: u32,
    /// The processor has registers for conditions of lanes.
    has_masks: bool,
    is_ispc: bool,
    /// Signed arithmetic is modulo 2ⁿ.
    wrap: bool,
    types: Types,
    /// Variables of functions that exist once, by their declarators, and the instance of a template that is lowered.
    statics: FxHashMap<(usize, Option<usize>), Variable>,
    instance: Option<usize>,
    /// The body of a `foreach`, which is lowered twice.
    is_in_foreach: bool,
    /// The function has `goto`, to these labels.
    has_jumps: bool,
    labels: jumps::Labels<'s>,
    /// Where a function that launches tasks notes those that it has to wait for.
    pending: Option<tasks::Pending>,
    /// Where a function that calls `alloca` notes what it has to give back.
    borrowed: Option<Val>,
    /// Values of arguments that are known, by their expressions.
    given: FxHashMap<usize, (Val, Ty)>,
    /// Names of ISPC's library, and the number of its templates.
    library: FxHashMap<&'s str, (Entity, Span)>,
    n_library_templates: usize,
    /// Names with their places, from the file's to the innermost block's.
    scopes: Vec<FxHashMap<&'s str, (Entity, Span)>>,
    functions: Vec<Function<'s>>,
    /// The functions that all files know.
    symbols: FxHashMap<&'s str, Vec<usize>>,
    /// Functions of one name that a file knows.
    sets: Vec<Vec<overloads::Candidate>>,
    /// Variables that all files know.
    variables: FxHashMap<&'s str, Shared>,
    /// Structs of files, by their places and names: one macro may have several.
    structs_of_files: FxHashMap<(Span, &'s str), Ty>,
    pointers: pointers::Pointers,
    templates: templates::Templates<'s>,
    /// Where a function with lanes reads its variables.
    uses: Option<uses::Uses<'s>>,
    /// The statements around the code that matter to lanes.
    around: Vec<uses::Around>,
    locals: FxHashMap<Val, uses::Local<'s>>,
    /// The values of variables with lanes that do not change, by their addresses: so indices show what they are made of.
    values: FxHashMap<Val, Val>,
    /// The function's references of each lane.
    lane_references: Vec<Lanes>,
    /// What follows in the region may run while no lane is active.
    rest_is_cheap: bool,
    cur: Option<Cur>,
    /// In a function: where it returns to, and its result's type.
    result: Option<(Val, Ty)>,
    targets: Vec<Targets>,
    /// Those `switch`es around that declare variables above a label.
    switches: Vec<switches::Variables<'s>>,
    /// Blocks that others lead to, so far. The rest has no body, and is gone.
    reached: FxHashSet<Cont>,
    /// A constant is lowered, which needs no memory, and not code.
    is_constant: bool,
    mode: Option<lanes::Mode>,
    returned: Option<lanes::Returned>,
    /// The code is in a statement that leaves SIMD mode.
    is_scalar: bool,
    /// For loops of the function whose conditions have no lanes, by their bodies: how many lanes leave them one by one.
    loops: FxHashMap<usize, Option<u32>>,
    /// Lanes have left the loop that is tried.
    leaving: Option<u32>,
    /// Types of expressions of the function, by their addresses, that were needed before their values.
    known: FxHashMap<usize, Ty>,
}

impl<'s> Lowerer<'s, '_> {
    /// The functions of a file. Their bodies are kept while the file is lowered.
    fn items(&mut self, items: &[Item<'s>]) {
        self.scopes = vec![FxHashMap::default()];
        self.statics.clear();
        let mut bodies = Vec::new();
        for item in items {
            let done = match item {
                Item::Function(f) => self.signature(f.storage, &f.specifier, &f.declarator).map(|id| {
                    self.functions[id].source = Some(templates::Source::Function(f.clone()));
                    bodies.push((id, f));
                }),
                Item::Declaration(d) => self.global_declaration(d),
                Item::Template(t) => self.declare_template(t),
                Item::Specialization(s) => self.specialization(s),
            };
            self.report(done);
        }
        for (id, function) in bodies {
            self.scopes.truncate(1);
            let done = self.function(id, function);
            self.report(done);
        }
        self.instances_of_file();
        self.functions.iter_mut().filter(|f| !f.is_library).for_each(|f| f.source = None);
    }

    fn report(&mut self, done: Lowered<()>) {
        if let Err(diagnostic) = done {
            self.sink.push(*diagnostic);
        }
    }

    // Names.

    fn declare(&mut self, name: Name<'s>, entity: Entity) -> Lowered<()> {
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        if let Some((old, before)) = scope.insert(name.text, (entity, name.span)) {
            // `typedef struct S { … } S;`
            if let (Entity::Type(old), Entity::Type(new)) = (old, entity)
                && old == new
            {
                return Ok(());
            }
            return Err(Box::new(sierra_name::twice(name.span, name.text, before)));
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<Entity> {
        let found = self.scopes.iter().rev().find_map(|s| s.get(name));
        found.or_else(|| self.library.get(name).filter(|_| self.is_ispc)).map(|e| e.0)
    }

    // Items.

    fn global_declaration(&mut self, declaration: &Declaration<'s>) -> Lowered<()> {
        let base = self.specified(&declaration.specifier)?;
        for (declarator, init) in &declaration.declared {
            let Some(name) = declarator.name else { continue };
            if declarator.params.is_some() {
                if declaration.storage == Storage::Typedef {
                    let hint = "call functions by their names";
                    return Err(Box::new(limitation::not_supported(declarator.span, "types of functions", hint)));
                }
                self.signature_of(declaration.storage, base, &declaration.specifier, declarator)?;
                continue;
            }
            if declaration.storage == Storage::Typedef {
                let ty = self.declared_type(base, declaration.specifier.is_const, declarator)?;
                self.declare(name, Entity::Type(ty))?;
                continue;
            }
            self.static_variable(declaration, base, declarator, init.as_ref())?;
        }
        Ok(())
    }

    /// A variable that exists once.
    fn static_variable(
        &mut self,
        declaration: &Declaration<'s>,
        base: Ty,
        declarator: &Declarator<'s>,
        init: Option<&Init<'s>>,
    ) -> Lowered<()> {
        let Some(name) = declarator.name else { return Ok(()) };
        // Code may be lowered several times, and has one variable all the same.
        let key = (std::ptr::from_ref(declarator) as usize, self.instance);
        let is_local = self.scopes.len() > 1 && declaration.storage == Storage::Static;
        if let Some(&known) = self.statics.get(&key).filter(|_| is_local) {
            return self.declare(name, Entity::Variable(known));
        }
        let is_const = Self::is_const(&declaration.specifier, declarator);
        let ty = self.initialized_type(base, declaration.specifier.is_const, declarator, init)?;
        self.complete(ty, declarator.span)?;
        self.w.set_origin(name.span);
        let is_extern = matches!(declaration.storage, Storage::Extern | Storage::ExternC);
        let is_of_file = self.scopes.len() == 1;
        let shared = match self.variables.get(name.text).copied() {
            Some(shared) if is_extern || is_of_file && declaration.storage == Storage::Automatic && !is_const => {
                if shared.variable.ty != ty || shared.variable.is_const != is_const {
                    return Err(Box::new(sierra_type::differs(name.span, name.text, shared.declared)));
                }
                if shared.is_defined && (init.is_some() || !is_extern) {
                    return Err(Box::new(sierra_name::twice(name.span, name.text, shared.declared)));
                }
                Some(shared)
            }
            _ => None,
        };
        if is_extern && init.is_none() {
            let shared = shared.unwrap_or_else(|| {
                let ir = self.types.ir(ty, self.w);
                let global = self.w.declare_global(name.text, ir, true);
                let address = self.w.global_val(global);
                let variable = Variable { address, ty, is_const };
                Shared { variable, global, declared: name.span, is_defined: false }
            });
            self.variables.insert(name.text, shared);
            let scope = self.scopes.last_mut();
            scope.map(|s| s.entry(name.text).or_insert((Entity::Variable(shared.variable), name.span)));
            return Ok(());
        }
        let was_constant = std::mem::replace(&mut self.is_constant, true);
        let cur = self.cur.take();
        let val = match init {
            Some(init) => self.initial_value(ty, init),
            None => Ok(self.zero(ty)),
        };
        self.is_constant = was_constant;
        self.cur = cur;
        let val = val?;
        let ir = self.types.ir(ty, self.w);
        let global = shared.map_or_else(|| self.w.declare_global(name.text, ir, !is_const), |s| s.global);
        self.w.set_init(global, val);
        let address = self.w.global_val(global);
        let variable = Variable { address, ty, is_const };
        let is_shared = is_of_file && (is_extern || declaration.storage == Storage::Automatic && !is_const);
        if is_shared {
            let known = Shared { variable, global, declared: name.span, is_defined: true };
            self.variables.insert(name.text, known);
            // The declaration of what is defined here.
            if let (Some(shared), Some(scope)) = (shared, self.scopes.last_mut())
                && matches!(scope.get(name.text), Some((Entity::Variable(v), _)) if v.address == shared.variable.address)
            {
                return Ok(());
            }
        }
        if is_local {
            self.statics.insert(key, variable);
        }
        self.declare(name, Entity::Variable(variable))
    }

    fn signature(
        &mut self,
        storage: Storage,
        specifier: &Specifier<'s>,
        declarator: &Declarator<'s>,
    ) -> Lowered<usize> {
        let base = self.specified(specifier)?;
        self.signature_of(storage, base, specifier, declarator)
    }

    fn signature_of(
        &mut self,
        storage: Storage,
        base: Ty,
        specifier: &Specifier<'s>,
        declarator: &Declarator<'s>,
    ) -> Lowered<usize> {
        let (Some(name), Some(declared)) = (declarator.name, &declarator.params) else {
            return Err(Box::new(c_syntax::unexpected(declarator.span, "", "a function")));
        };
        let (found, names) = self.signature_type(storage, base, specifier, declarator, declared)?;
        let is_static = storage == Storage::Static;
        let is_c = storage == Storage::ExternC;
        let set = match self.scopes.first().and_then(|s| s.get(name.text)) {
            Some(&(Entity::Functions(set), _)) => Some(set),
            Some(&(_, before)) => return Err(Box::new(sierra_name::twice(name.span, name.text, before))),
            None => None,
        };
        let in_set = |l: &Self, id: usize| l.functions[id].params == found.params;
        let of_file = set.and_then(|set| overloads::functions(&self.sets[set]).find(|&id| in_set(self, id)));
        let of_others = self.symbols.get(name.text).filter(|_| !is_static).into_iter().flatten().copied();
        let known = of_file.or(of_others.into_iter().find(|&id| in_set(self, id)));
        let id = match known {
            Some(id) => {
                let before = &self.functions[id];
                if before.result != found.result || before.simd != found.simd {
                    return Err(Box::new(sierra_type::differs(name.span, name.text, before.declared)));
                }
                id
            }
            None => self.new_function(name.text, name.span, found, &names, is_static),
        };
        self.functions[id].is_c |= is_c;
        if self.is_ispc {
            self.note_ispc(id, storage, specifier, declared);
        }
        if known.is_none() && !is_static {
            self.symbols.entry(name.text).or_default().push(id);
        }
        if of_file.is_none() {
            let set = self.set_of(name)?;
            self.sets[set].push(overloads::Candidate::Function(id));
        }
        Ok(id)
    }

    /// The types of a function, and the names of its parameters in the graph.
    fn signature_type(
        &mut self,
        storage: Storage,
        base: Ty,
        specifier: &Specifier<'s>,
        declarator: &Declarator<'s>,
        declared: &[(Specifier<'s>, Declarator<'s>)],
    ) -> Lowered<(Signature, Vec<&'s str>)> {
        let is_own = self.is_ispc && !matches!(storage, Storage::Export | Storage::ExternC | Storage::Typedef);
        let mut result = if is_own && declarator.is_reference && declarator.reference_lanes.is_none() {
            let to = self.referred_type(base, specifier.is_const, declarator)?;
            self.complete(to, declarator.span)?;
            let is_const = declarator.pointers.last().map_or(specifier.is_const, |p| p.0);
            self.types.reference(to, is_const)
        } else {
            self.declared_type(base, specifier.is_const, declarator)?
        };
        if matches!(storage, Storage::Export | Storage::ExternC) {
            result = self.address_type(result, declarator.span)?;
        }
        let simd = match &specifier.simd {
            Some(n) => Some(self.length(n)?).filter(|n| *n > 1),
            None => self.mode_of_gang(storage, specifier),
        };
        if result != Types::VOID {
            self.complete(result, declarator.span)?;
        }
        let mut params = Vec::new();
        let mut names = vec!["m"];
        for (specifier, declarator) in declared {
            let base = self.specified(specifier)?;
            let mut ty = self.param_type(base, specifier.is_const, declarator)?;
            if matches!(storage, Storage::Export | Storage::ExternC) {
                ty = self.address_type(ty, declarator.span)?;
            }
            params.push(ty);
            names.push(declarator.name.map_or("x", |n| n.text));
        }
        if specifier.words.is_task {
            params.extend([self.types.prim(Prim::I32); ispc::TASK.len()]);
            names.extend(ispc::TASK);
        }
        names.push("return");
        if simd.is_some() {
            names.insert(1, "mask");
        }
        if self.is_ispc && matches!(storage, Storage::Export | Storage::ExternC) {
            self.check_no_slices(&params, declarator.span)?;
        }
        if let Some(name) = declarator.name {
            self.check_operator(name, &params)?;
        }
        Ok((Signature { params, result, simd }, names))
    }

    fn new_function(
        &mut self,
        name: &str,
        declared: Span,
        signature: Signature,
        names: &[&str],
        is_static: bool,
    ) -> usize {
        let ty = self.code_type(&signature);
        self.w.set_origin(declared);
        let k = self.w.declare(name, ty, names);
        let Signature { params, result, simd } = signature;
        let (name, is_defined, is_c, is_used) = (name.into(), false, false, false);
        let source = None;
        self.functions.push(Function {
            name,
            source,
            declared,
            params,
            result,
            is_static,
            is_c,
            is_used,
            simd,
            k,
            is_defined,
            is_own: false,
            of_ispc: self.is_ispc,
            is_task: false,
            is_library: false,
            is_waiting: false,
            defaults: Vec::new(),
        });
        self.functions.len() - 1
    }

    /// The type of a function in the graph.
    fn code_type(&mut self, signature: &Signature) -> ir::Ty {
        let mut types = vec![self.w.types.mem()];
        if let Some(n) = signature.simd {
            types.push(self.mask_type(n));
        }
        types.extend(signature.params.iter().map(|&ty| self.types.ir(ty, self.w)));
        let ret = self.return_type(signature.result);
        types.push(ret);
        self.w.types.cn(&types)
    }

    /// A parameter that is declared as an array is a pointer.
    fn param_type(&mut self, base: Ty, is_const: bool, declarator: &Declarator<'s>) -> Lowered<Ty> {
        if declarator.reference_lanes.is_some() {
            let hint = "take a pointer in each lane";
            let what = "parameters that are references in each lane";
            return Err(Box::new(limitation::not_supported(declarator.span, what, hint)));
        }
        if declarator.is_reference {
            let ty = self.referred_type(base, is_const, declarator)?;
            self.complete(ty, declarator.span)?;
            let is_const = declarator.pointers.last().map_or(is_const, |p| p.0);
            return Ok(self.types.reference(ty, is_const));
        }
        if let Some(params) = &declarator.params {
            let what = "parameters that are functions";
            let hint = format!(
                "write a pointer to a function: `{}`",
                if params.is_empty() { "int (*f)()" } else { "int (*f)(int)" }
            );
            return Err(Box::new(limitation::not_supported(declarator.span, what, &hint)));
        }
        let Some((_, inner)) = declarator.lengths.split_first().filter(|_| declarator.function.is_none()) else {
            let ty = self.declared_type(base, is_const, declarator)?;
            self.complete(ty, declarator.span)?;
            return Ok(ty);
        };
        if !inner.is_empty() && !self.is_ispc {
            let hint = "take a pointer, and compute the index";
            return Err(Box::new(limitation::not_supported(
                declarator.span,
                "parameters that are arrays of arrays",
                hint,
            )));
        }
        let mut ty = self.rated(base, declarator)?;
        let mut target_is_const = is_const;
        for (is_const, varying) in &declarator.pointers {
            ty = self.pointer_type(ty, target_is_const, varying.as_ref(), declarator.span)?;
            target_is_const = *is_const;
        }
        for length in inner.iter().rev() {
            ty = self.array_of(ty, length.as_ref(), declarator.span)?;
        }
        let ty = self.pointer_to(ty, target_is_const);
        self.depth(ty, declarator.span)?;
        Ok(ty)
    }

    fn return_type(&mut self, result: Ty) -> ir::Ty {
        let mem = self.w.types.mem();
        if result == Types::VOID {
            return self.w.types.cn(&[mem]);
        }
        let result = self.types.ir(result, self.w);
        self.w.types.cn(&[mem, result])
    }

    fn callables(&self) -> Vec<Callable> {
        let mut found = Vec::new();
        let is_known = |f: &Function<'s>| f.is_c || self.symbols.get(&*f.name).is_none_or(|ids| ids.len() < 2);
        for f in self
            .functions
            .iter()
            .filter(|f| f.is_defined && !f.is_static && !f.is_own && f.name != "main" && is_known(f))
        {
            let params: Option<Vec<String>> = f.params.iter().map(|&ty| self.types.impala(ty)).collect();
            let result = if f.result == Types::VOID { Some("()".into()) } else { self.types.impala(f.result) };
            if let (Some(params), Some(result)) = (params, result) {
                let signature = format!("({}) -> {result}", params.join(", "));
                found.push(Callable { name: f.name.clone(), place: f.declared, signature });
            }
        }
        found
    }

    // Code.

    fn block(&mut self, name: &str) -> Cont {
        let mem = self.w.types.mem();
        let ty = self.w.types.cn(&[mem]);
        self.w.declare(name, ty, &["m"])
    }

    fn go_on_in(&mut self, k: Cont) {
        let mem = self.w.param(k, 0);
        self.cur = Some(Cur { k, mem });
    }

    /// Ends the current continuation with a call. `args` are without the memory. What follows goes into a block that nothing reaches.
    fn end(&mut self, callee: Val, args: &[Val]) {
        let Some(cur) = self.cur else { return };
        if self.reached.contains(&cur.k) {
            let all: Vec<Val> = std::iter::once(cur.mem).chain(args.iter().copied()).collect();
            self.w.define(cur.k, callee, &all);
            let targets = args.iter().chain([&callee]).filter_map(|&v| self.w.as_cont(v));
            self.reached.extend(targets);
        }
        let rest = self.block("unreached");
        self.go_on_in(rest);
    }

    fn is_reached(&self) -> bool {
        self.cur.is_some_and(|cur| self.reached.contains(&cur.k))
    }

    fn jump(&mut self, k: Cont, args: &[Val]) {
        // A continuation that is a value must have a body.
        if !self.is_reached() {
            return;
        }
        let callee = self.w.cont_val(k);
        self.end(callee, args);
    }

    fn branch(&mut self, condition: Val, then: Cont, otherwise: Cont) {
        if !self.is_reached() {
            return;
        }
        let callee = self.w.builtin(Builtin::Branch);
        let (then, otherwise) = (self.w.cont_val(then), self.w.cont_val(otherwise));
        self.end(callee, &[condition, then, otherwise]);
    }

    /// The current memory: constants have none.
    fn mem(&self, span: Span) -> Lowered<Val> {
        match self.cur.filter(|_| !self.is_constant) {
            Some(cur) => Ok(cur.mem),
            None => Err(Box::new(sierra_constant::error(span))),
        }
    }

    fn set_mem(&mut self, mem: Val) {
        if let Some(cur) = &mut self.cur {
            cur.mem = mem;
        }
    }

    /// The address of a new variable with this value.
    fn slot(&mut self, val: Val) -> Val {
        let ty = self.w.ty(val);
        let Some(cur) = self.cur else {
            let ptr = self.w.types.ptr(ty);
            return self.w.undef(ptr);
        };
        let made = self.w.op_ty(Op::Slot, ty, &[cur.mem]);
        let (mem, address) = (self.w.extract(made, 0), self.w.extract(made, 1));
        let mem = self.w.op(Op::Store, &[mem, address, val]);
        self.set_mem(mem);
        address
    }

    fn store(&mut self, address: Val, val: Val, span: Span) -> Lowered<()> {
        let mem = self.mem(span)?;
        self.w.set_origin(span);
        let mem = self.w.op(Op::Store, &[mem, address, val]);
        self.set_mem(mem);
        Ok(())
    }

    fn load(&mut self, address: Val, span: Span) -> Lowered<Val> {
        self.w.set_origin(span);
        if self.is_constant {
            // The value of a constant variable.
            let mem = self.w.types.mem();
            let mem = self.w.undef(mem);
            let val = self.w.op(Op::Load, &[mem, address]);
            return if self.w.is_op(val, Op::Load) { Err(Box::new(sierra_constant::error(span))) } else { Ok(val) };
        }
        let mem = self.mem(span)?;
        Ok(self.w.op(Op::Load, &[mem, address]))
    }

    /// The address of a part, by its number.
    fn part(&mut self, address: Val, number: u64) -> Val {
        let number = self.w.lit_i64(number as i64);
        self.w.op(Op::Lea, &[address, number])
    }
}
