//! Templates: functions and structs for each of some types and integers, made where they are used.
//!
//! A function's code is made behind all functions of the file, so that nothing is recursive on the depth of what needs what; its type is made at once.
//! How deep instances need each other, and how many there are, is limited. An error in an instance says which uses led to it.

use super::*;
use std::collections::VecDeque;
use std::rc::Rc;

/// Limits on how deep instances need each other, and on their number.
const MAX_DEPTH: usize = 64;
const MAX_INSTANCES: usize = 10_000;
/// The uses that an error shows.
const MAX_SHOWN: usize = 5;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    Type(Ty),
    Value(i64),
}

type Chain = Vec<(Span, String)>;

/// The code of a function.
#[derive(Clone)]
pub(super) enum Source<'s> {
    Function(Rc<syntax::Function<'s>>),
    Template(usize, Vec<Arg>),
}

/// A function whose code is still to be made.
struct Waiting<'s> {
    source: Source<'s>,
    id: usize,
    chain: Chain,
}

#[derive(Default)]
pub(super) struct Templates<'s> {
    all: Vec<Rc<Template<'s>>>,
    functions: FxHashMap<(usize, Vec<Arg>), usize>,
    /// By the place and name of the template, which may be in a header.
    structs: FxHashMap<(Span, &'s str, Vec<Arg>), Ty>,
    origins: FxHashMap<Ty, (Span, &'s str, Vec<Arg>)>,
    waiting: VecDeque<Waiting<'s>>,
    /// Functions as they are in SIMD mode, by those that did not ask for it, and the number of lanes.
    in_simd_mode: FxHashMap<(usize, u32), usize>,
    /// The uses that led here.
    chain: Chain,
    n_made: usize,
}

impl<'s> Lowerer<'s, '_> {
    pub(super) fn declare_template(&mut self, template: &Rc<Template<'s>>) -> Lowered<()> {
        let at = self.templates.all.len();
        self.templates.all.push(template.clone());
        if matches!(template.of, Templated::Struct(_)) {
            return self.declare(template.name, Entity::Template(at));
        }
        let set = self.set_of(template.name)?;
        self.sets[set].push(overloads::Candidate::Template(at));
        Ok(())
    }

    /// The code of the functions that a file needs.
    pub(super) fn instances_of_file(&mut self) {
        while let Some(Waiting { source, id, chain }) = self.templates.waiting.pop_front() {
            let n_faults = self.sink.diagnostics.len();
            self.scopes.truncate(1);
            // Code of the library has its names only.
            let is_library = self.functions[id].is_library
                || matches!(source, Source::Template(at, _) if at < self.n_library_templates);
            let own = is_library.then(|| std::mem::take(&mut self.scopes));
            if is_library {
                self.scopes.push(FxHashMap::default());
            }
            self.templates.chain = chain;
            self.functions[id].source = Some(source.clone());
            let done = match source {
                Source::Function(function) => self.function(id, &function),
                Source::Template(template, args) => {
                    let template = self.templates.all[template].clone();
                    let Templated::Function(function) = &template.of else { continue };
                    let scope = self.bound(&template, &args);
                    self.in_scope(scope, |l| l.function(id, function))
                }
            };
            self.report(done);
            if let Some(own) = own {
                self.scopes = own;
            }
            let chain = std::mem::take(&mut self.templates.chain);
            let faults = self.sink.diagnostics.split_off(n_faults);
            self.sink.diagnostics.extend(faults.into_iter().map(|fault| of_chain(fault, &chain)));
        }
    }

    /// The names of the library's items, whose code is made when it is needed.
    pub(super) fn library_items(&mut self, items: &[Item<'s>]) {
        self.scopes = vec![FxHashMap::default()];
        for item in items {
            let done = match item {
                Item::Function(f) => self.signature(f.storage, &f.specifier, &f.declarator).map(|id| {
                    self.functions[id].source = Some(Source::Function(f.clone()));
                    self.functions[id].is_library = true;
                }),
                Item::Declaration(d) => self.global_declaration(d),
                Item::Template(t) => self.declare_template(t),
                Item::Specialization(s) => self.specialization(s),
            };
            self.report(done);
        }
        self.library = self.scopes.pop().unwrap_or_default();
        self.n_library_templates = self.templates.all.len();
    }

    /// Makes the code of a function of the library, unless it is there.
    pub(super) fn wait_for(&mut self, id: usize) {
        let f = &mut self.functions[id];
        if f.is_library
            && !std::mem::replace(&mut f.is_waiting, true)
            && let Some(source) = f.source.clone()
        {
            self.templates.waiting.push_back(Waiting { source, id, chain: Vec::new() });
        }
    }

    /// Code among the names of the file, and these.
    fn in_scope<T>(
        &mut self,
        scope: FxHashMap<&'s str, (Entity, Span)>,
        lower: impl FnOnce(&mut Self) -> Lowered<T>,
    ) -> Lowered<T> {
        let inner = self.scopes.split_off(1.min(self.scopes.len()));
        self.scopes.push(scope);
        let done = lower(self);
        self.scopes.truncate(1);
        self.scopes.extend(inner);
        done
    }

    fn bound(&mut self, template: &Template<'s>, args: &[Arg]) -> FxHashMap<&'s str, (Entity, Span)> {
        let mut scope = FxHashMap::default();
        for (param, arg) in template.params.iter().zip(args) {
            let entity = match arg {
                Arg::Type(ty) => Entity::Type(*ty),
                Arg::Value(n) => {
                    let prim = match &param.integer {
                        Some(Specifier { kind: SpecifierKind::Prim(prim), .. }) if !prim.is_float() => *prim,
                        _ => Prim::I32,
                    };
                    Entity::Constant(*n, self.types.prim(prim))
                }
            };
            scope.insert(param.name.text, (entity, param.name.span));
        }
        scope
    }

    fn shown(&self, name: &str, args: &[Arg]) -> String {
        let args: Vec<String> = args
            .iter()
            .map(|arg| match arg {
                Arg::Type(ty) => self.types.show(*ty),
                Arg::Value(n) => n.to_string(),
            })
            .collect();
        format!("{name}<{}>", args.join(", "))
    }

    fn arguments_of(&mut self, template: &Template<'s>, args: &[TemplateArg<'s>]) -> Lowered<Vec<Arg>> {
        let mut found = Vec::new();
        for (param, arg) in template.params.iter().zip(args) {
            found.push(match (arg, &param.integer) {
                (TemplateArg::Type(ty), None) => Arg::Type(self.type_name(ty)?),
                (TemplateArg::Value(e), Some(_)) => Arg::Value(self.constant_int(e)?),
                (TemplateArg::Type(ty), Some(_)) => {
                    let ty = (ty.0.span, self.type_name(ty)?);
                    return Err(Box::new(sierra_type::mismatch(ty.0, &self.types.show(ty.1), "an integer")));
                }
                (TemplateArg::Value(e), None) => {
                    return Err(Box::new(sierra_type::mismatch(e.span, "a value", "a type")));
                }
            });
        }
        Ok(found)
    }

    /// Counts an instance.
    fn enter(&mut self, span: Span) -> Lowered<()> {
        self.templates.n_made += 1;
        if self.templates.chain.len() >= MAX_DEPTH || self.templates.n_made > MAX_INSTANCES {
            let fault = sierra_type::endless_template(span, MAX_DEPTH, MAX_INSTANCES);
            return Err(Box::new(fault));
        }
        Ok(())
    }

    // Structs.

    pub(super) fn struct_instance(&mut self, template: usize, name: Name<'s>, args: &[TemplateArg<'s>]) -> Lowered<Ty> {
        let template = self.templates.all[template].clone();
        if template.params.len() != args.len() {
            let fault = sierra_type::template_args(name.span, args.len(), template.params.len(), template.name.span);
            return Err(Box::new(fault));
        }
        let args = self.arguments_of(&template, args)?;
        let key = (template.name.span, template.name.text, args.clone());
        if let Some(&known) = self.templates.structs.get(&key) {
            return Ok(known);
        }
        self.enter(name.span)?;
        let Templated::Struct(Specifier { kind: SpecifierKind::Struct(_, _, Some(fields)), .. }) = &template.of else {
            return Ok(Types::ERROR);
        };
        let shown = self.shown(name.text, &args);
        let (id, ty) = self.types.declare_struct(&shown, template.name.span, self.w);
        self.templates.structs.insert(key.clone(), ty);
        self.templates.origins.insert(ty, key);
        self.templates.chain.push((name.span, shown));
        let scope = self.bound(&template, &args);
        let found = self.in_scope(scope, |l| l.struct_fields(fields));
        let entry = self.templates.chain.pop();
        match found {
            Ok(fields) => {
                self.types.set_fields(id, fields, self.w);
                Ok(ty)
            }
            Err(fault) => Err(Box::new(of_chain(*fault, entry.as_slice()))),
        }
    }

    // Functions.

    /// The function that a template makes for arguments of a call. `None`: there is none that takes them.
    pub(super) fn function_instance(
        &mut self,
        at: usize,
        of: &[TemplateArg<'s>],
        args: &[(Value, Span)],
        span: Span,
    ) -> Lowered<Option<usize>> {
        let template = self.templates.all[at].clone();
        let Templated::Function(function) = &template.of else { return Ok(None) };
        let Some(params) = &function.declarator.params else { return Ok(None) };
        let Some(found) = self.arguments_found(&template, of, args)? else { return Ok(None) };
        let key = (at, found.clone());
        if let Some(&known) = self.templates.functions.get(&key) {
            return Ok(Some(known));
        }
        self.enter(span)?;
        let shown = self.shown(template.name.text, &found);
        let mut chain = self.templates.chain.clone();
        chain.push((span, shown.clone()));
        let scope = self.bound(&template, &found);
        let made = self.in_scope(scope, |l| {
            let base = l.specified(&function.specifier)?;
            l.signature_type(function.storage, base, &function.specifier, &function.declarator, params)
        });
        let (signature, names) = made.map_err(|fault| Box::new(of_chain(*fault, &chain)))?;
        let id = self.new_function(&shown, template.name.span, signature, &names, true);
        if self.is_ispc {
            self.note_ispc(id, function.storage, &function.specifier, params);
        }
        self.functions[id].source = Some(Source::Template(at, found.clone()));
        self.templates.functions.insert(key, id);
        self.templates.waiting.push_back(Waiting { source: Source::Template(at, found), id, chain });
        Ok(Some(id))
    }

    /// A function with lanes as it is in SIMD mode, though it did not ask for it. `None`: its code is not in this file.
    pub(super) fn in_simd_mode(&mut self, of: usize, n: u32, span: Span) -> Lowered<Option<usize>> {
        if let Some(&known) = self.templates.in_simd_mode.get(&(of, n)) {
            return Ok(Some(known));
        }
        let f = &self.functions[of];
        let Some(source) = f.source.clone() else { return Ok(None) };
        let signature = Signature { params: f.params.clone(), result: f.result, simd: Some(n) };
        let (name, declared) = (f.name.clone(), f.declared);
        self.enter(span)?;
        let names: Vec<&str> = std::iter::repeat_n("x", signature.params.len() + 3).collect();
        let id = self.new_function(&name, declared, signature, &names, true);
        let mut chain = self.templates.chain.clone();
        chain.push((span, format!("{name}, in SIMD mode")));
        self.templates.in_simd_mode.insert((of, n), id);
        self.templates.waiting.push_back(Waiting { source, id, chain });
        Ok(Some(id))
    }

    /// The code of a template for some arguments, which are written or those that the parameters show.
    pub(super) fn specialization(&mut self, of: &Specialization<'s>) -> Lowered<()> {
        let function = &of.function;
        let (Some(name), Some(params)) = (function.declarator.name, &function.declarator.params) else { return Ok(()) };
        let base = self.specified(&function.specifier)?;
        let (signature, names) =
            self.signature_type(function.storage, base, &function.specifier, &function.declarator, params)?;
        let Some(Entity::Functions(set)) = self.find(name.text) else {
            return Err(Box::new(sierra_name::error(name.span, name.text)));
        };
        // Each parameter as the value that an argument of its type is.
        let mut values = Vec::new();
        for &ty in &signature.params {
            let (to, is_place) =
                if let Kind::Reference { to, .. } = *self.types.kind(ty) { (to, true) } else { (ty, false) };
            let zero = self.zero(to);
            let place = Variable { address: zero, ty: to, is_const: false };
            values.push((if is_place { Value::Place(place) } else { Value::Plain(zero, to) }, name.span));
        }
        let candidates = self.sets[set].clone();
        for at in
            candidates.iter().filter_map(|c| if let overloads::Candidate::Template(at) = *c { Some(at) } else { None })
        {
            let template = self.templates.all[at].clone();
            let Some(args) = self.arguments_found(&template, &of.args, &values)? else { continue };
            let Templated::Function(general) = &template.of else { continue };
            let Some(of_general) = &general.declarator.params else { continue };
            let scope = self.bound(&template, &args);
            let expected = self.in_scope(scope, |l| {
                let base = l.specified(&general.specifier)?;
                l.signature_type(general.storage, base, &general.specifier, &general.declarator, of_general)
            });
            if expected.is_ok_and(|e| e.0.params != signature.params || e.0.result != signature.result) {
                continue;
            }
            if let Some(&known) = self.templates.functions.get(&(at, args.clone())) {
                return Err(Box::new(sierra_name::twice(name.span, name.text, self.functions[known].declared)));
            }
            let shown = self.shown(name.text, &args);
            let id = self.new_function(&shown, name.span, signature, &names, true);
            self.note_ispc(id, function.storage, &function.specifier, params);
            self.templates.functions.insert((at, args), id);
            let source = Source::Function(function.clone());
            self.templates.waiting.push_back(Waiting { source, id, chain: Vec::new() });
            return Ok(());
        }
        Err(Box::new(sierra_type::no_template(name.span, name.text)))
    }

    /// What the parameters of a template are for these arguments. `None`: something else, or not all are known.
    fn arguments_found(
        &mut self,
        template: &Template<'s>,
        of: &[TemplateArg<'s>],
        args: &[(Value, Span)],
    ) -> Lowered<Option<Vec<Arg>>> {
        let Templated::Function(function) = &template.of else { return Ok(None) };
        let Some(params) = &function.declarator.params else { return Ok(None) };
        if params.len() != args.len() || of.len() > template.params.len() {
            return Ok(None);
        }
        let mut bound: Vec<Option<Arg>> = self.arguments_of(template, of)?.into_iter().map(Some).collect();
        bound.resize(template.params.len(), None);
        for ((specifier, declarator), arg) in params.iter().zip(args) {
            if !self.deduce(template, specifier, declarator, arg.0.clone(), &mut bound) {
                return Ok(None);
            }
        }
        Ok(bound.into_iter().collect())
    }

    /// Finds what a parameter says of the template's parameters. `false`: it contradicts what is known.
    fn deduce(
        &mut self,
        template: &Template<'s>,
        specifier: &Specifier<'s>,
        declarator: &Declarator<'s>,
        arg: Value,
        bound: &mut [Option<Arg>],
    ) -> bool {
        let number = |name: &str| template.params.iter().position(|p| p.name.text == name);
        if declarator.function.is_some() {
            return true;
        }
        let mut ty = self.value_type(&arg);
        if let (Kind::Array(of, _), Value::Place(place), false) =
            (self.types.kind(ty).clone(), &arg, declarator.is_reference)
        {
            ty = self.types.pointer(of, place.is_const);
        }
        let levels = declarator.pointers.len() + declarator.lengths.len().min(1);
        for level in (0..levels).rev() {
            let varying = declarator.pointers.get(level).and_then(|p| p.1.as_ref());
            match (self.types.kind(ty).clone(), varying) {
                (Kind::Pointer { to, .. }, None) => ty = to,
                (Kind::VaryingPointer { to, n, .. }, Some(e)) => {
                    if let ExprKind::Name(name) = e.kind
                        && !bind(bound, number(name), Arg::Value(n.into()))
                    {
                        return false;
                    }
                    ty = to;
                }
                _ => return true,
            }
        }
        if let Some(e) = &specifier.varying {
            match self.types.lanes(ty) {
                Some(n) => {
                    if let ExprKind::Name(name) = e.kind
                        && !bind(bound, number(name), Arg::Value(n.into()))
                    {
                        return false;
                    }
                    ty = self.types.lane(ty);
                }
                // A value without lanes becomes one with those of a gang.
                None if self.is_ispc => {}
                None => return true,
            }
        }
        let SpecifierKind::Named(name, args) = &specifier.kind else { return true };
        if args.is_empty() {
            // `uniform T` says nothing of whether `T` has lanes: it has, as in `f<int>`.
            if self.is_ispc
                && specifier.words.is_uniform
                && number(name.text).is_some()
                && let Some(varying) = self.types.varying(ty, self.gang, self.w)
            {
                ty = varying;
            }
            // Two arguments may give a parameter a type with lanes and the same without: the type with lanes binds.
            let lane = Arg::Type(self.types.lane(ty));
            let at = number(name.text);
            if self.is_ispc && at.and_then(|at| bound.get(at)).is_some_and(|known| *known == Some(lane)) {
                at.into_iter().for_each(|at| bound[at] = Some(Arg::Type(ty)));
                return true;
            }
            return bind(bound, at, Arg::Type(ty));
        }
        let of = self.templates.origins.get(&ty).cloned();
        let Some(Entity::Template(expected)) = self.find(name.text) else { return true };
        let expected = self.templates.all[expected].name;
        let of = of.filter(|of| of.0 == expected.span && of.1 == expected.text);
        let Some((_, _, known)) = of else { return true };
        args.iter().zip(known).all(|(arg, known)| match arg {
            TemplateArg::Type(ty) => match &ty.0.kind {
                SpecifierKind::Named(name, args) if args.is_empty() => bind(bound, number(name.text), known),
                _ => true,
            },
            TemplateArg::Value(Expr { kind: ExprKind::Name(name), .. }) => bind(bound, number(name), known),
            TemplateArg::Value(_) => true,
        })
    }
}

/// Notes what a parameter of a template is. `false`: something else is known.
fn bind(bound: &mut [Option<Arg>], at: Option<usize>, arg: Arg) -> bool {
    match at.and_then(|at| bound.get_mut(at)) {
        Some(known @ None) => {
            *known = Some(arg);
            true
        }
        // What differs may be converted if it is written; if two parameters say so, it is a contradiction.
        Some(Some(known)) => *known == arg || !matches!((&*known, &arg), (Arg::Value(_), Arg::Value(_))),
        None => true,
    }
}

/// An error with the uses that led to it, the last one first.
fn of_chain(fault: Diagnostic, chain: &[(Span, String)]) -> Diagnostic {
    chain.iter().rev().take(MAX_SHOWN).fold(fault, |fault, (span, shown)| fault.other(*span, format!("for `{shown}`")))
}
