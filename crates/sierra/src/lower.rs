//! Syntax trees to the graph: names, types and code in one pass.
//!
//! One pass, since a template will be checked anew for each of its types, as C++ has it. The program is lowered twice: into a graph of its own when it is
//! checked, which is thrown away, and into that of the whole program.
//!
//! **Variables** are slots, which are promoted to values later. **Statements** are continuations `cn(mem)`; what stands behind a `return` goes into one that
//! nothing reaches. **Pointers** lead to any number of elements. **Functions** that are not `static` are exported; those without a body
//! are Impala's, or C's.

mod calls;
mod conversions;
mod exprs;
mod initializers;
mod intrinsics;
mod lanes;
mod operators;
mod statements;

use crate::diagnostics::{sierra_constant, sierra_lanes, sierra_name, sierra_syntax, sierra_type};
use crate::syntax::{self, *};
use crate::types::{Field, Kind, MAX_LENGTH, Ty, Types};
use crate::vecimp;
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, FileId, Id, Sink, Sources, Span};
use nyala_ir::{self as ir, Builtin, Cont, Linkage, Op, Prim, Val, World};
use rustc_hash::{FxHashMap, FxHashSet};

/// A function that other code calls.
pub struct Callable {
    pub name: String,
    pub place: Span,
    /// Its types in Impala: `(i32, &[f32]) -> f32`.
    pub signature: String,
}

/// Adds what files in Sierra have to `world`; signed arithmetic may wrap around. Returns the functions that are exported.
pub fn lower(sources: &Sources, files: &[FileId], wrap: bool, world: &mut World, sink: &mut Sink) -> Vec<Callable> {
    // The trees of those in VecImp have their names.
    let is_vecimp = |file| sources.name(file).ends_with(vecimp::ENDING);
    let of_vecimp = |&file: &FileId| is_vecimp(file).then(|| vecimp::program(file, sources.text(file), sink));
    let programs: Vec<Option<vecimp::syntax::Program>> = files.iter().map(of_vecimp).collect();
    let mut lowerer = Lowerer {
        w: world,
        sink,
        wrap,
        types: Types::new(),
        scopes: Vec::new(),
        functions: Vec::new(),
        symbols: FxHashMap::default(),
        cur: None,
        result: None,
        targets: Vec::new(),
        reached: FxHashSet::default(),
        is_constant: false,
        mode: None,
        returned: None,
        is_scalar: false,
        loops: FxHashMap::default(),
        leaving: None,
        known: FxHashMap::default(),
    };
    for (&file, program) in files.iter().zip(&programs) {
        let items = match program {
            Some(program) => vecimp::translate(program),
            None => crate::parser::parse(file, sources.text(file), lowerer.sink),
        };
        // VecImp's numbers do.
        lowerer.wrap = wrap || program.is_some();
        lowerer.items(&items);
    }
    lowerer.link();
    lowerer.callables()
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
    /// A place in [`Lowerer::functions`].
    Function(usize),
    Type(Ty),
}

#[derive(Clone, Copy)]
struct Variable {
    address: Val,
    ty: Ty,
    is_const: bool,
}

struct Function {
    name: String,
    declared: Span,
    params: Vec<Ty>,
    result: Ty,
    is_static: bool,
    /// The lanes of the mode in which it runs; its first parameter is their mask then.
    simd: Option<u32>,
    k: Cont,
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
}

/// Places with an address in each lane.
#[derive(Clone)]
struct Lanes {
    at: At,
    n: u32,
    /// The type of what lies at an address, which fields of it the place is, and the place's type in one lane.
    base: Ty,
    fields: Vec<u64>,
    ty: Ty,
    is_const: bool,
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
    /// The end of the region around the loop or `switch`, in SIMD mode.
    region: Option<Cont>,
    /// In SIMD mode: the address of the mask of lanes that have continued, in the loop around.
    continued: Option<Val>,
}

type Lowered<T> = Result<T, Box<Diagnostic>>;

struct Lowerer<'s, 'w> {
    w: &'w mut World,
    sink: &'w mut Sink,
    /// Signed arithmetic is modulo 2ⁿ.
    wrap: bool,
    types: Types,
    /// Names with their places, from the file's to the innermost block's.
    scopes: Vec<FxHashMap<&'s str, (Entity, Span)>>,
    functions: Vec<Function>,
    /// The functions that all files know.
    symbols: FxHashMap<&'s str, usize>,
    cur: Option<Cur>,
    /// In a function: where it returns to, and its result's type.
    result: Option<(Val, Ty)>,
    targets: Vec<Targets>,
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
    fn items(&mut self, items: &[Item<'s>]) {
        self.scopes = vec![FxHashMap::default()];
        let mut bodies = Vec::new();
        for item in items {
            let done = match item {
                Item::Function(f) => self.signature(f.storage, &f.specifier, &f.declarator).map(|id| {
                    bodies.push((id, f));
                }),
                Item::Declaration(d) => self.global_declaration(d),
            };
            self.report(done);
        }
        for (id, function) in bodies {
            let done = self.function(id, function);
            self.report(done);
        }
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
        self.scopes.iter().rev().find_map(|s| s.get(name)).map(|e| e.0)
    }

    // Types.

    fn specified(&mut self, specifier: &Specifier<'s>) -> Lowered<Ty> {
        let ty = self.specified_lane(specifier)?;
        match &specifier.varying {
            Some(n) => {
                let n = self.length(n)?;
                self.with_lanes(ty, n, specifier.span)
            }
            None => Ok(ty),
        }
    }

    fn specified_lane(&mut self, specifier: &Specifier<'s>) -> Lowered<Ty> {
        match &specifier.kind {
            SpecifierKind::Void => Ok(Types::VOID),
            SpecifierKind::Prim(prim) => Ok(self.types.prim(*prim)),
            SpecifierKind::Auto => Err(Box::new(sierra_type::not_deduced(specifier.span))),
            SpecifierKind::Named(name) => match self.find(name.text) {
                Some(Entity::Type(ty)) => Ok(ty),
                _ => Err(Box::new(sierra_name::error(name.span, name.text))),
            },
            SpecifierKind::Struct(name, fields) => self.struct_type(*name, fields.as_deref(), specifier.span),
            SpecifierKind::Enum(name, values) => self.enum_type(*name, values.as_deref()),
        }
    }

    fn struct_type(&mut self, name: Option<Name<'s>>, fields: Option<&[Declaration<'s>]>, span: Span) -> Lowered<Ty> {
        let known = name.and_then(|name| match fields {
            None => self.find(name.text),
            // One that is defined in an inner block is another.
            Some(_) => self.scopes.last().and_then(|s| s.get(name.text)).map(|e| e.0),
        });
        let known = match known {
            Some(Entity::Type(ty)) if self.types.as_struct(ty).is_some() => Some(ty),
            _ => None,
        };
        let ty = match known {
            Some(ty) => ty,
            None => {
                let text = name.map_or("struct", |name| name.text);
                let (_, ty) = self.types.declare_struct(text, span, self.w);
                if let Some(name) = name {
                    self.declare(name, Entity::Type(ty))?;
                }
                ty
            }
        };
        let (Some(fields), Kind::Struct(id)) = (fields, self.types.kind(ty)) else { return Ok(ty) };
        let id = *id;
        if let (Some(data), Some(name)) = (self.types.as_struct(ty).filter(|s| s.fields.is_some()), name) {
            return Err(Box::new(sierra_name::twice(name.span, name.text, data.declared)));
        }
        let mut found: Vec<Field> = Vec::new();
        let mut places: FxHashMap<&str, Span> = FxHashMap::default();
        for declaration in fields {
            let base = self.specified(&declaration.specifier)?;
            for (declarator, init) in &declaration.declared {
                let ty = self.declared_type(base, declaration.specifier.is_const, declarator)?;
                let name = declarator.name.unwrap_or(Name { text: "", span: declarator.span });
                if declarator.params.is_some() {
                    let hint = "write functions that take the struct";
                    return Err(Box::new(limitation::not_supported(declarator.span, "functions in structs", hint)));
                }
                if init.is_some() {
                    let hint = "assign the field of each variable";
                    return Err(Box::new(limitation::not_supported(declarator.span, "values of fields", hint)));
                }
                self.complete(ty, declarator.span)?;
                if let Some(before) = places.insert(name.text, name.span) {
                    return Err(Box::new(sierra_name::twice(name.span, name.text, before)));
                }
                found.push(Field { name: name.text.into(), ty });
            }
        }
        self.types.set_fields(id, found, self.w);
        Ok(ty)
    }

    /// An enumeration is an `int`, as in C.
    fn enum_type(&mut self, name: Option<Name<'s>>, values: Option<&[(Name<'s>, Option<Expr<'s>>)]>) -> Lowered<Ty> {
        let int = self.types.prim(Prim::I32);
        let Some(values) = values else {
            let known = name.and_then(|name| self.find(name.text));
            return match (known, name) {
                (Some(Entity::Type(ty)), _) => Ok(ty),
                (_, Some(name)) => Err(Box::new(sierra_name::error(name.span, name.text))),
                _ => Ok(int),
            };
        };
        if let Some(name) = name {
            self.declare(name, Entity::Type(int))?;
        }
        let mut next = 0i64;
        for (name, value) in values {
            if let Some(value) = value {
                next = self.constant_int(value)?;
            }
            if i32::try_from(next).is_err() {
                return Err(Box::new(sierra_syntax::literal(name.span, name.text, "`int`")));
            }
            self.declare(*name, Entity::Constant(next, int))?;
            next += 1;
        }
        Ok(int)
    }

    /// The type of a variable, field or result, from that of the specifier.
    fn declared_type(&mut self, base: Ty, is_const: bool, declarator: &Declarator<'s>) -> Lowered<Ty> {
        if declarator.is_reference {
            let hint = "take a pointer";
            return Err(Box::new(limitation::not_supported(
                declarator.span,
                "references that are no parameters or variables of functions",
                hint,
            )));
        }
        self.referred_type(base, is_const, declarator)
    }

    fn referred_type(&mut self, base: Ty, is_const: bool, declarator: &Declarator<'s>) -> Lowered<Ty> {
        let mut ty = base;
        let mut target_is_const = is_const;
        for (is_const, varying) in &declarator.pointers {
            ty = self.pointer_type(ty, target_is_const, varying.as_ref(), declarator.span)?;
            target_is_const = *is_const;
        }
        if declarator.params.is_some() {
            return Ok(ty);
        }
        for length in declarator.lengths.iter().rev() {
            let Some(length) = length else {
                return Err(Box::new(sierra_constant::length(declarator.span)));
            };
            self.complete(ty, declarator.span)?;
            let n = self.constant_int(length)?;
            let total = self.elements(ty).checked_mul(n.try_into().unwrap_or(0));
            if n < 1 || total.is_none_or(|total| total > MAX_LENGTH) {
                return Err(Box::new(sierra_constant::length(length.span)));
            }
            ty = self.types.array(ty, n as u64);
            self.depth(ty, declarator.span)?;
        }
        Ok(ty)
    }

    fn pointer_type(&mut self, to: Ty, is_const: bool, varying: Option<&Expr<'s>>, span: Span) -> Lowered<Ty> {
        let ty = self.types.pointer(to, is_const);
        self.depth(ty, span)?;
        match varying {
            Some(n) => {
                let n = self.length(n)?;
                self.with_lanes(ty, n, span)
            }
            None => Ok(ty),
        }
    }

    /// The elements of an array of arrays; 1 for other types.
    fn elements(&self, mut ty: Ty) -> u64 {
        let mut n = 1u64;
        while let Kind::Array(of, length) = *self.types.kind(ty) {
            n = n.saturating_mul(length);
            ty = of;
        }
        n
    }

    fn depth(&self, ty: Ty, span: Span) -> Lowered<()> {
        if self.types.is_too_deep(ty) {
            return Err(Box::new(sierra_type::too_deep(span, crate::types::MAX_DEPTH)));
        }
        Ok(())
    }

    fn complete(&self, ty: Ty, span: Span) -> Lowered<()> {
        if self.types.is_complete(ty) {
            return Ok(());
        }
        Err(Box::new(sierra_type::incomplete(span, &self.types.show(ty))))
    }

    fn type_name(&mut self, (specifier, declarator): &TypeName<'s>) -> Lowered<Ty> {
        let base = self.specified(specifier)?;
        self.declared_type(base, specifier.is_const, declarator)
    }

    fn is_const(specifier: &Specifier, declarator: &Declarator) -> bool {
        declarator.pointers.last().map_or(specifier.is_const, |p| p.0)
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
        if declaration.storage == Storage::Extern {
            let hint = "write functions that read and write it";
            return Err(Box::new(limitation::not_supported(declarator.span, "variables of other files", hint)));
        }
        let is_const = Self::is_const(&declaration.specifier, declarator);
        let ty = self.initialized_type(base, declaration.specifier.is_const, declarator, init)?;
        self.complete(ty, declarator.span)?;
        self.w.set_origin(name.span);
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
        let global = self.w.declare_global(name.text, ir, !is_const);
        self.w.set_init(global, val);
        let address = self.w.global_val(global);
        self.declare(name, Entity::Variable(Variable { address, ty, is_const }))
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
            return Err(Box::new(sierra_syntax::unexpected(declarator.span, "", "a function")));
        };
        let result = self.declared_type(base, specifier.is_const, declarator)?;
        let simd = match &specifier.simd {
            Some(n) => Some(self.length(n)?).filter(|n| *n > 1),
            None => None,
        };
        if result != Types::VOID {
            self.complete(result, declarator.span)?;
        }
        let mut params = Vec::new();
        let mut names = vec!["m"];
        for (specifier, declarator) in declared {
            let base = self.specified(specifier)?;
            params.push(self.param_type(base, specifier.is_const, declarator)?);
            names.push(declarator.name.map_or("x", |n| n.text));
        }
        let is_static = storage == Storage::Static;
        let known = match self.find(name.text) {
            Some(Entity::Function(id)) => Some(id),
            Some(_) => {
                let before = self.scopes.first().and_then(|s| s.get(name.text)).map_or(name.span, |e| e.1);
                return Err(Box::new(sierra_name::twice(name.span, name.text, before)));
            }
            None if is_static => None,
            None => self.symbols.get(name.text).copied(),
        };
        if let Some(id) = known {
            let before = &self.functions[id];
            if before.params != params || before.result != result || before.simd != simd {
                return Err(Box::new(sierra_type::differs(name.span, name.text, before.declared)));
            }
            if let Some(scope) = self.scopes.first_mut() {
                scope.entry(name.text).or_insert((Entity::Function(id), name.span));
            }
            return Ok(id);
        }
        names.push("return");
        let mut types = vec![self.w.types.mem()];
        if let Some(n) = simd {
            types.push(self.mask_type(n));
            names.insert(1, "mask");
        }
        types.extend(params.iter().map(|&ty| self.types.ir(ty, self.w)));
        let ret = self.return_type(result);
        types.push(ret);
        let ty = self.w.types.cn(&types);
        self.w.set_origin(name.span);
        let k = self.w.declare(name.text, ty, &names);
        let id = self.functions.len();
        let function = Function {
            name: name.text.into(),
            declared: name.span,
            params,
            result,
            is_static,
            simd,
            k,
            is_defined: false,
        };
        self.functions.push(function);
        if !is_static {
            self.symbols.insert(name.text, id);
        }
        if let Some(scope) = self.scopes.first_mut() {
            scope.insert(name.text, (Entity::Function(id), name.span));
        }
        Ok(id)
    }

    /// A parameter that is declared as an array is a pointer.
    fn param_type(&mut self, base: Ty, is_const: bool, declarator: &Declarator<'s>) -> Lowered<Ty> {
        if declarator.is_reference {
            let ty = self.referred_type(base, is_const, declarator)?;
            self.complete(ty, declarator.span)?;
            let is_const = declarator.pointers.last().map_or(is_const, |p| p.0);
            return Ok(self.types.reference(ty, is_const));
        }
        let Some((_, inner)) = declarator.lengths.split_first() else {
            let ty = self.declared_type(base, is_const, declarator)?;
            self.complete(ty, declarator.span)?;
            return Ok(ty);
        };
        if !inner.is_empty() {
            let hint = "take a pointer, and compute the index";
            return Err(Box::new(limitation::not_supported(
                declarator.span,
                "parameters that are arrays of arrays",
                hint,
            )));
        }
        let mut ty = base;
        let mut target_is_const = is_const;
        for (is_const, varying) in &declarator.pointers {
            ty = self.pointer_type(ty, target_is_const, varying.as_ref(), declarator.span)?;
            target_is_const = *is_const;
        }
        let ty = self.types.pointer(ty, target_is_const);
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

    fn function(&mut self, id: usize, function: &syntax::Function<'s>) -> Lowered<()> {
        let (k, result, declared, simd) = {
            let f = &self.functions[id];
            (f.k, f.result, f.declared, f.simd)
        };
        let Some(name) = function.declarator.name else { return Ok(()) };
        if std::mem::replace(&mut self.functions[id].is_defined, true) {
            return Err(Box::new(sierra_name::twice(name.span, name.text, declared)));
        }
        self.functions[id].declared = name.span;
        self.scopes.truncate(1);
        self.scopes.push(FxHashMap::default());
        self.reached.insert(k);
        self.go_on_in(k);
        let mut params: Vec<Val> = self.w.params(k)[1..].to_vec();
        self.result = params.last().map(|&ret| (ret, result));
        let types = self.functions[id].params.clone();
        self.known.clear();
        self.loops.clear();
        let mask = simd.map(|_| params.remove(0));
        // `simd(1)`: lanes cannot return one by one, and values may have any numbers of lanes.
        let is_scalar = simd.is_none() && function.specifier.simd.is_some();
        let (of_params, of_result) = if is_scalar { (&[][..], Types::VOID) } else { (&types[..], result) };
        self.begin_lanes(simd, mask, of_params, of_result);
        for (i, (specifier, declarator)) in function.declarator.params.iter().flatten().enumerate() {
            let Some(name) = declarator.name else { continue };
            self.w.set_origin(name.span);
            if let Kind::Reference { to, is_const } = *self.types.kind(types[i]) {
                let zero = self.w.lit_i64(0);
                let address = self.w.op(Op::Lea, &[params[i], zero]);
                self.declare(name, Entity::Variable(Variable { address, ty: to, is_const }))?;
                continue;
            }
            let address = self.slot(params[i]);
            let is_const = declarator.lengths.is_empty() && Self::is_const(specifier, declarator);
            self.declare(name, Entity::Variable(Variable { address, ty: types[i], is_const }))?;
        }
        self.statements(&function.body);
        self.w.set_origin(function.end);
        self.end_of_function(name.text);
        self.scopes.truncate(1);
        Ok(())
    }

    /// Gives a function a mask if lanes may return from it one by one.
    fn begin_lanes(&mut self, simd: Option<u32>, mask: Option<Val>, params: &[Ty], result: Ty) {
        self.mode = None;
        self.returned = None;
        let lanes = |ty: Ty| match *self.types.kind(ty) {
            Kind::Reference { to, .. } => self.types.lanes(to),
            _ => self.types.lanes(ty),
        };
        let of_types = params.iter().chain([&result]).find_map(|&ty| lanes(ty));
        let Some(n) = simd.or(of_types) else { return };
        let all = self.all_lanes(n, true);
        let none = self.all_lanes(n, false);
        let mask = mask.map_or(all, |bools| self.mask_of_bools(bools));
        let (active, returned) = (self.slot(mask), self.slot(none));
        let value = (result != Types::VOID).then(|| {
            let zero = self.zero(result);
            self.slot(zero)
        });
        let epilogue = self.block("epilogue");
        self.mode = Some(lanes::Mode { n, mask: active, end: epilogue, is_implicit: simd.is_none(), has_left: false });
        self.returned = Some(lanes::Returned { mask: returned, value, epilogue });
    }

    fn end_of_function(&mut self, name: &str) {
        let Some((ret, ty)) = self.result.take() else { return };
        self.mode = None;
        if let Some(returned) = self.returned.take() {
            self.jump(returned.epilogue, &[]);
            self.go_on_in(returned.epilogue);
            match returned.value.map(|at| self.load(at, Span::NONE)) {
                Some(Ok(val)) => self.end(ret, &[val]),
                _ => self.end(ret, &[]),
            }
            return;
        }
        if ty == Types::VOID {
            self.end(ret, &[]);
        } else if name == "main" {
            let zero = self.zero(ty);
            self.end(ret, &[zero]);
        } else {
            let callee = self.w.builtin(Builtin::Unreachable);
            self.end(callee, &[]);
        }
    }

    /// Exports functions, and joins those without a body with other code.
    fn link(&mut self) {
        // What the rest of the program declares, and exports.
        let mut declared: FxHashMap<String, Vec<Cont>> = FxHashMap::default();
        let mut exported: FxHashMap<String, Cont> = FxHashMap::default();
        for k in (0..self.w.n_conts()).map(Cont::from_idx) {
            match &*self.w.cont(k).linkage {
                Linkage::Foreign(symbol) => declared.entry(symbol.clone()).or_default().push(k),
                Linkage::Exported(symbol) => _ = exported.insert(symbol.clone(), k),
                _ => {}
            }
        }
        let functions = std::mem::take(&mut self.functions);
        for f in &functions {
            if !f.is_defined {
                let found = exported.get(&f.name).copied();
                let other = found.unwrap_or_else(|| self.w.foreign(&f.name, self.w.cont(f.k).ty));
                self.join(f, f.k, other);
            } else if !f.is_static && self.is_exportable(f) {
                if exported.contains_key(&f.name) {
                    self.sink.push(sierra_name::exported(f.declared, &f.name));
                    continue;
                }
                self.w.cont_mut(f.k).linkage = Linkage::Exported(f.name.clone()).into();
                for other in declared.remove(&f.name).unwrap_or_default() {
                    self.join(f, other, f.k);
                }
            }
        }
        self.functions = functions;
    }

    /// Whether other code can call a function: it knows nothing of lanes.
    fn is_exportable(&self, f: &Function) -> bool {
        let has_lanes = |ty: Ty| match *self.types.kind(ty) {
            Kind::Reference { to, .. } => self.types.is_varying(to),
            _ => self.types.is_varying(ty),
        };
        f.simd.is_none() && !f.params.iter().chain([&f.result]).any(|&ty| has_lanes(ty))
    }

    /// Lets `from` be `to`.
    fn join(&mut self, f: &Function, from: Cont, to: Cont) {
        let types = [from, to].map(|k| self.w.cont(k).ty);
        if types[0] != types[1] {
            let [here, there] = types.map(|ty| self.w.types.display(ty));
            let (here, there) = if from == f.k { (here, there) } else { (there, here) };
            self.sink.push(sierra_type::foreign(f.declared, &f.name, &there, &here));
            return;
        }
        let params = self.w.params(from).to_vec();
        let callee = self.w.cont_val(to);
        self.w.define(from, callee, &params);
        self.w.cont_mut(from).linkage = Linkage::Internal.into();
    }

    fn callables(&self) -> Vec<Callable> {
        let mut found = Vec::new();
        for f in self.functions.iter().filter(|f| f.is_defined && !f.is_static && f.name != "main") {
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
