//! Residual programs of the calculus as functions of the graph.
//!
//! Separate from the evaluator, which needs no types.
//!
//! A lambda becomes a continuation, a call a jump, and a built-in function an operation. Stages are left out: at run time a
//! function is called with values for all its parameters, so its whole body is active. By the rules the deepest body is executed
//! first then. Bodies stay where they stand, so one that does not wait for what the function just around it binds runs later than
//! by the rules. That does not show if it computes a number, nor if it loads one and no call or store is between; otherwise it is a
//! `limitation`. A body that is not active even then never runs, which is an error.
//!
//! Exported are the functions that C can call: their parameters are numbers, `bool`s and arrays of them, but for the last, which
//! takes at most one number or `bool`, their result. A function that other code of the program uses may be meant for that code
//! only: it is not exported if its code can't run at run time. A program that ends with `exit n` is a function `main` with that
//! result, which does what waits before.

use crate::diagnostics::{staging_name, staging_type, stuck_body};
use crate::evaluate::Residual;
use crate::prim::{Fault, Prim};
use crate::program::Signatures;
use crate::site::{Site, Sites};
use crate::term::{Array, Body, BodyNode, Const, Lam, LamNode, Stage, StageNode, Terms, Value, Var};
use crate::types::{MAX_LEAVES, Ty, TyNode};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Id, Sink, Span};
use nyala_ir::{Builtin, Cont, Linkage, Op, Prim as Scalar, Ty as IrTy, TyKind, Val, World, callbacks};
use rustc_hash::FxHashMap;

mod compiled;

/// The symbols of what makes a function while the program runs: the second one takes the number of the [`Site`] and gives an address, 0
/// where there is no compiler. The values come before, one by one, by the first one, each as 64 bits.
pub const COMPILE: [&str; 2] = ["nyala_compile_value", "nyala_compile"];

/// The symbol of what is called where a function would be executed that [`COMPILE`] makes another one of, but does not become code
/// itself.
pub const NO_CODE: &str = "nyala.no_code";

/// How deep function types nest in the graph.
const MAX_TYPE_DEPTH: usize = 50;

/// Elements of a local array: it lies on the stack.
const MAX_LOCAL: i32 = 1 << 16;

struct Lowering<'r> {
    terms: &'r Terms,
    signatures: &'r mut Signatures,
    world: &'r mut World,
    vals: FxHashMap<Var, Val>,
    /// Types of the graph: parts are shared, so that a type may be much longer as text than as data.
    types: FxHashMap<Ty, IrTy>,
    /// When a variable is bound: later ones have higher numbers.
    times: FxHashMap<Var, u32>,
    now: u32,
    /// [`Residual::in_order`].
    in_order: bool,
    /// What a program that ends with `exit` returns to.
    ret: Option<Val>,
    /// Functions of other code, by their symbols: those that the program's Impala declares, and those that are called here.
    declared: FxHashMap<String, Vec<Cont>>,
    /// Groups of functions that call each other, by the names of what calls another function with them.
    groups: FxHashMap<Var, (Vec<Val>, Box<[Value]>)>,
    sites: Sites<'r>,
    /// Gives the number of a site.
    number: &'r mut dyn FnMut(Site) -> i32,
    /// Functions that others are made of while the program runs, whose bodies are lowered last. They need not become code.
    general: Vec<(Lam, Cont)>,
    is_general: bool,
    /// The first fault of one that does not.
    no_code: Option<Box<Diagnostic>>,
    /// Functions that several places have, with what they became.
    shared: FxHashMap<Lam, Option<Cont>>,
    /// Functions whose bodies are to be lowered.
    left: Vec<(Lam, Cont)>,
}

type Lowered<T> = Result<T, Box<Diagnostic>>;

/// Adds what is left of the program to `world`. `number` gives the places numbers at which functions are made while the program runs. The
/// result says why [`NO_CODE`] is called, if it is.
pub fn lower(
    residual: &mut Residual,
    world: &mut World,
    number: &mut dyn FnMut(Site) -> i32,
    sink: &mut Sink,
) -> Option<Box<Diagnostic>> {
    let exports = residual.exports().to_vec();
    let results = residual.results().map(<[Value]>::to_vec);
    let span = residual.terms.span(residual.outcome.body);
    let mut declared: FxHashMap<String, Vec<Cont>> = FxHashMap::default();
    for k in (0..world.n_conts()).map(Cont::from_idx) {
        if let Linkage::Foreign(symbol) = &*world.cont(k).linkage {
            declared.entry(symbol.clone()).or_default().push(k);
        }
    }
    let mut lowering = Lowering {
        terms: &residual.terms,
        signatures: &mut residual.signatures,
        world,
        vals: FxHashMap::default(),
        types: FxHashMap::default(),
        times: FxHashMap::default(),
        now: 0,
        in_order: residual.in_order,
        ret: None,
        declared,
        groups: FxHashMap::default(),
        sites: Sites::new(&residual.terms, residual.in_order),
        number,
        general: Vec::new(),
        is_general: false,
        no_code: None,
        shared: shared(&residual.terms, residual.outcome.body),
        left: Vec::new(),
    };
    let lowered = match results.as_deref() {
        _ if exports.is_empty() => lowering.main(residual.outcome.body),
        None => Err(Box::new(stuck_body::never(span))),
        Some(results) => exports.iter().try_for_each(|export| {
            let &value = results.get(export.at).ok_or_else(|| stuck_body::never(span))?;
            // What an export that failed has begun is not used again.
            if !lowering.left.is_empty() {
                lowering.left.clear();
                lowering.general.clear();
                lowering.is_general = false;
                lowering.shared.values_mut().for_each(|k| *k = None);
            }
            lowering.export(&export.name, value).or_else(|d| if export.is_used { Ok(()) } else { Err(d) })
        }),
    };
    if let Err(diagnostic) = lowered {
        sink.push(*diagnostic);
    }
    lowering.no_code
}

fn not_one_int(span: Span) -> Diagnostic {
    let hint = "end the program with `exit` of one `int`, or with `let`s";
    limitation::not_supported(span, "programs whose result is not one `int`", hint)
}

/// Functions that several places of the term have. What is entered where it stands would bind its parameters once more.
fn shared(terms: &Terms, program: Body) -> FxHashMap<Lam, Option<Cont>> {
    let mut found: FxHashMap<Lam, bool> = FxHashMap::default();
    let mut work = vec![program];
    while let Some(body) = work.pop() {
        let mut lams: Vec<Lam> = Vec::new();
        match terms.body_node(body) {
            BodyNode::Apply { callee, args, .. } => {
                for value in std::iter::once(callee).chain(args) {
                    lams.extend(if let Value::Lam(lam) = *value { Some(lam) } else { None });
                }
            }
            BodyNode::Fix { lam, rest, .. } => {
                lams.push(*lam);
                work.push(*rest);
            }
        }
        for lam in lams {
            let is_known = found.contains_key(&lam);
            found.insert(lam, is_known);
            if !is_known {
                work.push(terms.lam_node(lam).body);
            }
        }
    }
    found.into_iter().filter(|&(_, several)| several).map(|(lam, _)| (lam, None)).collect()
}

impl Lowering<'_> {
    /// A program that ends with its result: what waits in it is executed when it runs.
    fn main(&mut self, program: Body) -> Lowered<()> {
        let (mem, int) = (self.world.types.mem(), self.world.types.i32());
        let ret = self.world.types.cn(&[mem, int]);
        let ty = self.world.types.cn(&[mem, ret]);
        let k = self.world.declare("main", ty, &["m", "ret"]);
        self.ret = Some(self.world.param(k, 1));
        self.body(program, k)?;
        self.finish()?;
        self.publish(k, "main", self.terms.span(program))
    }

    /// Makes a function known to other code. The program's Impala may have declared it.
    fn publish(&mut self, k: Cont, name: &str, span: Span) -> Lowered<()> {
        if self.world.find_root(name).is_some() {
            return Err(Box::new(staging_name::exported(span, name)));
        }
        self.world.cont_mut(k).linkage = Linkage::Exported(name.into()).into();
        for other in self.declared.remove(name).unwrap_or_default() {
            if self.world.cont(other).ty != self.world.cont(k).ty {
                let [found, expected] = [k, other].map(|k| self.world.types.display(self.world.cont(k).ty));
                return Err(Box::new(staging_type::foreign(span, name, &found, &expected)));
            }
            let params = self.world.params(other).to_vec();
            let callee = self.world.cont_val(k);
            self.world.define(other, callee, &params);
            self.world.cont_mut(other).linkage = Linkage::Internal.into();
        }
        Ok(())
    }

    /// A function of other code: that of the program's Impala, or a C function.
    fn foreign(&mut self, symbol: &str, ty: IrTy, span: Span) -> Lowered<Val> {
        let k = match self.world.find_root(symbol) {
            Some(k) if self.world.cont(k).ty == ty => k,
            Some(k) => {
                let found = self.world.types.display(self.world.cont(k).ty);
                let expected = self.world.types.display(ty);
                return Err(Box::new(staging_type::foreign(span, symbol, &found, &expected)));
            }
            None => {
                let k = self.world.foreign(symbol, ty);
                let declared = self.declared.entry(symbol.to_string()).or_default();
                if !declared.contains(&k) {
                    declared.push(k);
                }
                k
            }
        };
        Ok(self.world.cont_val(k))
    }

    /// Prints a number, a `bool` or a text, and goes on with `then`.
    fn print(&mut self, k: Cont, mem: Val, value: Value, then: Value, span: Span) -> Lowered<()> {
        let mem_ty = self.world.types.mem();
        let done = self.world.types.cn(&[mem_ty]);
        let (symbol, mut args) = match value {
            Value::Const(Const::Text(text)) => {
                let bytes = self.terms.elements(text).iter();
                let byte = |c: &Const| if let Const::Int(b) = *c { b as u64 } else { 0 };
                let bytes: Vec<Val> = bytes.map(|c| self.world.lit_prim(Scalar::U8, byte(c))).collect();
                let n = self.world.lit_prim(Scalar::I64, bytes.len() as u64);
                let byte = self.world.types.prim(Scalar::U8);
                ("nyala_print_bytes", vec![self.constant("text", byte, &bytes), n])
            }
            value => {
                let val = self.value(value, span)?;
                let symbol = match self.world.prim(val) {
                    Some(Scalar::I32) => "nyala_print_i32",
                    Some(Scalar::F32) => "nyala_print_f32",
                    Some(Scalar::F64) => "nyala_print_f64",
                    _ => "nyala_print_bool",
                };
                (symbol, vec![val])
            }
        };
        let mut types = vec![mem_ty];
        types.extend(args.iter().map(|&a| self.world.ty(a)));
        types.push(done);
        let ty = self.world.types.cn(&types);
        let callee = self.foreign(symbol, ty, span)?;
        args.insert(0, mem);
        args.push(self.value(then, span)?);
        self.world.define(k, callee, &args);
        Ok(())
    }

    /// A function that C can call; others are lowered where they are used.
    fn export(&mut self, name: &str, value: Value) -> Lowered<()> {
        let Value::Lam(lam) = value else { return Ok(()) };
        let params = self.terms.lam_node(lam).params.clone();
        let Some((&last, others)) = params.split_last() else { return Ok(()) };
        let types: Vec<TyNode> = others.iter().map(|&x| self.signatures.of(self.terms, x)).collect();
        let are_numbers = types
            .iter()
            .all(|t| matches!(t, TyNode::Bool | TyNode::Int | TyNode::Float | TyNode::Double | TyNode::Array(_)));
        let TyNode::Fn(results) = self.signatures.of(self.terms, last) else { return Ok(()) };
        let result = match *results {
            [] => true,
            [one] => matches!(self.signatures.get(one), TyNode::Bool | TyNode::Int | TyNode::Float | TyNode::Double),
            _ => false,
        };
        if are_numbers && result {
            let k = self.declare(lam, name)?;
            self.finish()?;
            self.publish(k, name, self.signatures.place(self.terms, last))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Lowered<()> {
        while let Some((lam, k)) = self.left.pop() {
            self.function(lam, k)?;
        }
        self.finish_general();
        Ok(())
    }

    fn function(&mut self, lam: Lam, k: Cont) -> Lowered<()> {
        let node = self.terms.lam_node(lam).clone();
        self.now += 1;
        self.bind_at(self.now, &node);
        self.body(node.body, k)
    }

    // --- Types.

    fn ty(&mut self, ty: Ty, of: Var, depth: usize) -> Lowered<IrTy> {
        if let Some(&known) = self.types.get(&ty) {
            return Ok(known);
        }
        let place = self.signatures.place(self.terms, of);
        let made = match self.signatures.get(ty) {
            TyNode::Bool => self.world.types.bool(),
            TyNode::Int => self.world.types.i32(),
            TyNode::Float => self.world.types.prim(Scalar::F32),
            TyNode::Double => self.world.types.prim(Scalar::F64),
            TyNode::Fn(_) | TyNode::Array(_) if depth == MAX_TYPE_DEPTH => {
                return Err(Box::new(limitation::not_supported(
                    place,
                    "functions that take themselves",
                    "give the recursion a name with `let` or `fix def`",
                )));
            }
            TyNode::Fn(params) => {
                let mut types = vec![self.world.types.mem()];
                for &param in &params {
                    if !matches!(self.signatures.get(param), TyNode::Stage) {
                        types.push(self.ty(param, of, depth + 1)?);
                    }
                }
                self.world.types.cn(&types)
            }
            TyNode::Array(element) => {
                let element = self.element_ty(element, of, depth + 1)?;
                let array = self.world.types.indef_array(element);
                self.world.types.ptr(array)
            }
            TyNode::Text | TyNode::Stage | TyNode::Open | TyNode::Error | TyNode::Same(_) => {
                let name = self.terms.name(of).map_or("x", |n| n);
                return Err(Box::new(staging_type::undetermined(place, name)));
            }
        };
        self.types.insert(ty, made);
        Ok(made)
    }

    /// The type of an array's elements: in memory, an aggregate is a tuple.
    fn element_ty(&mut self, ty: Ty, of: Var, depth: usize) -> Lowered<IrTy> {
        let Some(parts) = self.signatures.types.aggregate(ty) else { return self.ty(ty, of, depth) };
        if self.signatures.types.leaves(ty).is_none() {
            let place = self.signatures.place(self.terms, of);
            let what = format!("aggregates in memory of functions, or of more than {MAX_LEAVES} parts");
            return Err(Box::new(limitation::not_supported(place, &what, "keep several arrays")));
        }
        let parts = parts.iter().map(|&p| self.element_ty(p, of, depth + 1)).collect::<Lowered<Vec<IrTy>>>()?;
        Ok(self.world.types.tuple(&parts))
    }

    fn is_stage(&mut self, var: Var) -> bool {
        matches!(self.signatures.of(self.terms, var), TyNode::Stage)
    }

    // --- Functions.

    /// A continuation for a lambda, whose body follows.
    fn declare(&mut self, lam: Lam, name: &str) -> Lowered<Cont> {
        let node = self.terms.lam_node(lam).clone();
        let mut types = vec![self.world.types.mem()];
        let mut params = Vec::new();
        for &x in &node.params {
            if !self.is_stage(x) {
                let ty = self.signatures.ty(self.terms, x);
                types.push(self.ty(ty, x, 0)?);
                params.push(x);
            }
        }
        let ty = self.world.types.cn(&types);
        let names: Vec<&str> =
            std::iter::once("m").chain(params.iter().map(|&x| self.terms.name(x).map_or("x", |n| n))).collect();
        self.world.set_origin(self.terms.span(node.body));
        let k = self.world.declare(name, ty, &names);
        for (i, &x) in params.iter().enumerate() {
            let val = self.world.param(k, i + 1);
            self.vals.insert(x, val);
        }
        if self.is_general { &mut self.general } else { &mut self.left }.push((lam, k));
        Ok(k)
    }

    fn value(&mut self, value: Value, span: Span) -> Lowered<Val> {
        Ok(match value {
            Value::Const(Const::Int(i)) => self.world.lit_i32(i),
            Value::Const(Const::Bool(b)) => self.world.lit_bool(b),
            Value::Const(Const::Float(f)) => self.world.lit_prim(Scalar::F32, u64::from(f.to_bits())),
            Value::Const(Const::Double(f)) => self.world.lit_prim(Scalar::F64, f.to_bits()),
            Value::Const(Const::Stage(_)) => self.world.lit_bool(true),
            Value::Const(Const::Array(array, start)) => self.array(array, start, span)?,
            Value::Const(Const::Foreign(x)) => {
                let ty = self.signatures.ty(self.terms, x);
                let ty = self.ty(ty, x, 0)?;
                let symbol = self.terms.name(x).map_or(String::new(), |n| n.to_string());
                self.foreign(&symbol, ty, span)?
            }
            Value::Const(Const::Text(_)) => return Err(Box::new(stuck_body::never(span))),
            Value::Const(Const::Prim(prim)) => {
                return Err(Box::new(limitation::not_supported(
                    span,
                    &format!("`{}` as a value", prim.name()),
                    "pass a function that calls it",
                )));
            }
            Value::Var(x) => match self.vals.get(&x) {
                Some(&val) => val,
                None => {
                    let name = self.terms.name(x).map_or("a value", |n| n);
                    return Err(Box::new(stuck_body::unbound(span, name, self.signatures.place(self.terms, x))));
                }
            },
            Value::Lam(lam) => {
                let k = match self.shared.get(&lam) {
                    Some(&Some(k)) => k,
                    Some(None) => {
                        let k = self.declare(lam, "f")?;
                        self.shared.insert(lam, Some(k));
                        k
                    }
                    None => self.declare(lam, "k")?,
                };
                self.world.cont_val(k)
            }
        })
    }

    /// The address of a constant array.
    fn array(&mut self, array: Array, start: u32, span: Span) -> Lowered<Val> {
        let elements: Vec<Val> =
            self.terms.elements(array).iter().map(|&c| self.element(c, span)).collect::<Lowered<_>>()?;
        let element = self.world.ty(elements[0]);
        let address = self.constant("array", element, &elements);
        if start == 0 {
            return Ok(address);
        }
        let start = self.world.lit_i32(start as i32);
        Ok(self.shift(address, start))
    }

    /// An element of a constant array, which may be an aggregate.
    fn element(&mut self, element: Const, span: Span) -> Lowered<Val> {
        let Const::Array(parts, 0) = element else { return self.value(Value::Const(element), span) };
        let parts: Vec<Val> =
            self.terms.elements(parts).iter().map(|&c| self.element(c, span)).collect::<Lowered<_>>()?;
        Ok(self.world.op(Op::Tuple, &parts))
    }

    /// The address of a field of an element.
    fn field(&mut self, array: Val, idx: Val, field: Value, span: Span) -> Lowered<Val> {
        let Value::Const(Const::Int(mut n)) = field else { return Err(Box::new(stuck_body::never(span))) };
        let mut address = self.world.op(Op::Lea, &[array, idx]);
        // Fields of fields count one by one.
        while let Some(of) = self.world.types.pointee(self.world.ty(address))
            && let TyKind::Tuple(parts) = self.world.types.kind(of)
        {
            let mut at = 0;
            while at + 1 < parts.len() && n >= self.n_leaves(parts[at]) {
                n -= self.n_leaves(parts[at]);
                at += 1;
            }
            let at = self.world.lit_i64(at as i64);
            address = self.world.op(Op::Lea, &[address, at]);
        }
        if n != 0 { Err(Box::new(stuck_body::fault(span, Prim::Field, Fault::Operands))) } else { Ok(address) }
    }

    fn n_leaves(&self, ty: IrTy) -> i32 {
        match self.world.types.kind(ty) {
            TyKind::Tuple(parts) => parts.iter().map(|&p| self.n_leaves(p)).sum(),
            _ => 1,
        }
    }

    /// The address of a global with these elements.
    fn constant(&mut self, name: &str, element: IrTy, elements: &[Val]) -> Val {
        let ty = self.world.types.array(element, elements.len() as u64);
        let init = self.world.op_ty(Op::Array, ty, elements);
        let global = self.world.declare_global(name, ty, false);
        self.world.set_init(global, init);
        let address = self.world.global_val(global);
        let indefinite = self.world.types.indef_array(element);
        let ptr = self.world.types.ptr(indefinite);
        self.world.op_ty(Op::Bitcast, ptr, &[address])
    }

    /// The next memory and a new array, whose type is that of the continuation's parameter.
    fn local(&mut self, mem: Val, args: &[Value], span: Span) -> Lowered<(Val, Val)> {
        let array = match args[1] {
            Value::Lam(lam) => self.terms.lam_node(lam).params.first().map(|&x| (self.signatures.ty(self.terms, x), x)),
            Value::Var(k) => match self.signatures.of(self.terms, k) {
                TyNode::Fn(params) => params.first().map(|&ty| (ty, k)),
                _ => None,
            },
            Value::Const(_) => None,
        };
        let Some((ty, of)) = array else { return Err(Box::new(stuck_body::not_callable(span))) };
        let ptr = self.ty(ty, of, 0)?;
        let element = match self.signatures.get(ty) {
            TyNode::Array(element) => self.element_ty(element, of, 0)?,
            _ => return Err(Box::new(stuck_body::not_callable(span))),
        };
        let n = match args[0] {
            Value::Const(Const::Int(n)) if (1..=MAX_LOCAL).contains(&n) => n as u64,
            _ => {
                return Err(Box::new(limitation::not_supported(
                    span,
                    &format!("local arrays whose length is no constant from 1 to {MAX_LOCAL}"),
                    "take the array as a parameter",
                )));
            }
        };
        let ty = self.world.types.array(element, n);
        let made = self.world.op_ty(Op::Slot, ty, &[mem]);
        let (mem, slot) = (self.world.extract(made, 0), self.world.extract(made, 1));
        Ok((mem, self.world.op_ty(Op::Bitcast, ptr, &[slot])))
    }

    // --- Stages.

    /// Whether the expression is true once all variables are bound.
    fn is_active(&self, stage: Stage) -> bool {
        match self.terms.stage_node(stage) {
            StageNode::Const(known) => known,
            StageNode::Var(_) => true,
            StageNode::And(a, b) => self.is_active(a) && self.is_active(b),
            StageNode::Or(a, b) => self.is_active(a) || self.is_active(b),
            StageNode::Not(a) => !self.is_active(a),
        }
    }

    /// The time from which the expression is true, at the earliest.
    fn time(&self, stage: Stage) -> u32 {
        match self.terms.stage_node(stage) {
            StageNode::Const(_) | StageNode::Not(_) => 0,
            StageNode::Var(x) => self.times.get(&x).copied().unwrap_or(0),
            StageNode::And(a, b) => self.time(a).max(self.time(b)),
            StageNode::Or(a, b) => self.time(a).min(self.time(b)),
        }
    }

    fn bind_at(&mut self, time: u32, lam: &LamNode) {
        self.times.extend(lam.params.iter().chain([&lam.stage]).map(|&x| (x, time)));
    }

    /// Goes on with the body of a function that is called from a body which runs at `time`: that body has been executed there, so
    /// it is now, or it was, if nothing kept it from running before those around it.
    fn enter(&mut self, time: u32, lam: &LamNode) -> Body {
        let time = if time == self.now {
            self.now += 1;
            self.now
        } else {
            time
        };
        self.bind_at(time, lam);
        lam.body
    }

    /// The functions of a group that call each other, if `fix` binds what calls another function with them.
    fn group_of(&self, lam: Lam) -> Option<Box<[Value]>> {
        let node = self.terms.lam_node(lam);
        match (&*node.params, self.terms.body_node(node.body)) {
            (&[k], BodyNode::Apply { callee, args, .. }) if *callee == Value::Var(k) && args.len() > 1 => {
                let are_functions = args.iter().all(|a| matches!(a, Value::Lam(_)));
                are_functions.then(|| args.clone())
            }
            _ => None,
        }
    }

    // --- Bodies.

    /// Lowers a body, and what follows its operations, as the body of `k`.
    fn body(&mut self, mut body: Body, k: Cont) -> Lowered<()> {
        let mut mem = self.world.param(k, 0);
        // Loads do not move before it.
        let mut effect = self.now;
        loop {
            let span = self.terms.span(body);
            self.world.set_origin(span);
            let node = self.terms.body_node(body).clone();
            if !self.is_active(node.stage()) {
                return Err(Box::new(stuck_body::staged_on_never(span)));
            }
            let time = self.time(node.stage());
            let least = match &node {
                BodyNode::Fix { .. } => 0,
                BodyNode::Apply { callee: Value::Const(Const::Prim(prim)), .. } => match prim {
                    Prim::If | Prim::Exit | Prim::Put | Prim::PutField | Prim::Print | Prim::Compile => self.now,
                    Prim::Div | Prim::Mod | Prim::At | Prim::Field => effect,
                    _ => 0,
                },
                BodyNode::Apply { .. } => self.now,
            };
            // Staging executes nothing that has effects, so a function that `compile` makes has those in the order of the text, or it is an error.
            if time < least && !self.in_order && !self.is_general {
                return Err(Box::new(limitation::not_supported(
                    span,
                    "calls that run before what is around them",
                    "stage the call on a value, or the stage, that the function around it gets",
                )));
            }
            match node {
                BodyNode::Fix { var, lam, rest, .. } if let Some(functions) = self.group_of(lam) => {
                    self.sites.fix(var, lam);
                    self.times.insert(var, time);
                    let terms = functions;
                    let functions = terms.iter().map(|&f| self.value(f, span)).collect::<Lowered<Vec<Val>>>()?;
                    // Elsewhere than where it is called with code, it is a function as others are.
                    let ty = self.signatures.ty(self.terms, var);
                    let ty = self.ty(ty, var, 0)?;
                    let all = self.world.declare("all", ty, &["m", "k"]);
                    let mut args = vec![self.world.param(all, 0)];
                    args.extend(&functions);
                    let with = self.world.param(all, 1);
                    self.world.define(all, with, &args);
                    let val = self.world.cont_val(all);
                    self.vals.insert(var, val);
                    self.groups.insert(var, (functions, terms));
                    body = rest;
                }
                BodyNode::Apply { callee: Value::Var(x), args, .. }
                    if let (Some((functions, terms)), &[Value::Lam(lam)]) = (self.groups.get(&x), &*args)
                        && !self.shared.contains_key(&lam) =>
                {
                    let node = self.terms.lam_node(lam).clone();
                    node.params.iter().zip(terms).for_each(|(&x, &f)| self.sites.bound(x, f));
                    self.vals.extend(node.params.iter().copied().zip(functions.iter().copied()));
                    body = self.enter(time, &node);
                }
                BodyNode::Fix { var, lam, rest, .. } => {
                    self.sites.fix(var, lam);
                    let name = self.terms.name(var).map_or("f", |n| n).to_string();
                    let val = if self.shared.contains_key(&lam) {
                        self.value(Value::Lam(lam), span)?
                    } else {
                        let function = self.declare(lam, &name)?;
                        self.world.cont_val(function)
                    };
                    self.vals.insert(var, val);
                    self.times.insert(var, time);
                    body = rest;
                }
                BodyNode::Apply { callee: Value::Const(Const::Prim(prim)), args, .. } => {
                    let n_operands = match prim {
                        Prim::Print | Prim::Compile => 0,
                        _ => prim.n_operands().min(args.len()),
                    };
                    let operands: Vec<Val> =
                        args[..n_operands].iter().map(|&v| self.value(v, span)).collect::<Lowered<_>>()?;
                    if matches!(prim, Prim::If | Prim::Exit) || args.len() != prim.n_args() {
                        return self.end(prim, mem, &operands, &args, k, span);
                    }
                    if let (Prim::Put | Prim::PutField, Value::Const(Const::Array(..))) = (prim, args[0]) {
                        return Err(Box::new(stuck_body::fault(span, prim, Fault::ConstantArray)));
                    }
                    if prim == Prim::Print {
                        return self.print(k, mem, args[0], args[1], span);
                    }
                    if prim == Prim::Compile {
                        return self.compile(k, mem, &args, span);
                    }
                    let mut results: Vec<Val> = Vec::new();
                    match (prim, &operands[..]) {
                        (Prim::Put, &[array, idx, value]) => {
                            let address = self.world.op(Op::Lea, &[array, idx]);
                            mem = self.world.op(Op::Store, &[mem, address, value]);
                        }
                        (Prim::PutField, &[array, idx, _, value]) => {
                            let address = self.field(array, idx, args[2], span)?;
                            mem = self.world.op(Op::Store, &[mem, address, value]);
                        }
                        (Prim::Field, &[array, idx, _]) => {
                            let address = self.field(array, idx, args[2], span)?;
                            results.push(self.world.op(Op::Load, &[mem, address]));
                        }
                        (Prim::Local, _) => {
                            let (after, array) = self.local(mem, &args, span)?;
                            mem = after;
                            results.push(array);
                        }
                        _ => results.push(self.operation(prim, mem, &operands)),
                    }
                    match args[args.len() - 1] {
                        Value::Lam(lam) if !self.shared.contains_key(&lam) => {
                            let node = self.terms.lam_node(lam).clone();
                            self.vals.extend(node.params.iter().copied().zip(results));
                            body = self.enter(time, &node);
                            if matches!(prim, Prim::Put | Prim::PutField) {
                                effect = self.now;
                            }
                        }
                        then => {
                            let callee = self.value(then, span)?;
                            results.insert(0, mem);
                            self.world.define(k, callee, &results);
                            return Ok(());
                        }
                    }
                }
                BodyNode::Apply { callee: Value::Lam(lam), args, .. } if !self.shared.contains_key(&lam) => {
                    let node = self.terms.lam_node(lam).clone();
                    for (&x, &arg) in node.params.iter().zip(&args) {
                        self.sites.bound(x, arg);
                        if !self.is_stage(x) {
                            let val = self.value(arg, span)?;
                            self.vals.insert(x, val);
                        }
                    }
                    body = self.enter(time, &node);
                }
                BodyNode::Apply { callee, args, .. } => {
                    let params: Vec<TyNode> = match callee {
                        Value::Var(x) => match self.signatures.of(self.terms, x) {
                            TyNode::Fn(params) => params.iter().map(|&p| self.signatures.get(p)).collect(),
                            _ => Vec::new(),
                        },
                        Value::Lam(lam) => {
                            let params = self.terms.lam_node(lam).params.clone();
                            params.iter().map(|&x| self.signatures.of(self.terms, x)).collect()
                        }
                        Value::Const(_) => Vec::new(),
                    };
                    let callee = self.value(callee, span)?;
                    let mut vals = vec![mem];
                    for (i, &arg) in args.iter().enumerate() {
                        if !matches!(params.get(i), Some(TyNode::Stage)) {
                            vals.push(self.value(arg, span)?);
                        }
                    }
                    self.world.define(k, callee, &vals);
                    return Ok(());
                }
            }
        }
    }

    /// `if` and `exit` end a continuation.
    fn end(&mut self, prim: Prim, mem: Val, operands: &[Val], args: &[Value], k: Cont, span: Span) -> Lowered<()> {
        match (prim, operands, args) {
            (Prim::If, &[condition], &[_, then, otherwise]) => {
                let then = self.value(then, span)?;
                let otherwise = self.value(otherwise, span)?;
                let branch = self.world.builtin(Builtin::Branch);
                self.world.define(k, branch, &[mem, condition, then, otherwise]);
                Ok(())
            }
            (Prim::Exit, _, &[result]) if let Some(ret) = self.ret => {
                let val = self.value(result, span)?;
                if self.world.prim(val) != Some(Scalar::I32) {
                    return Err(Box::new(not_one_int(span)));
                }
                self.world.define(k, ret, &[mem, val]);
                Ok(())
            }
            (Prim::Exit, ..) if self.ret.is_some() => Err(Box::new(not_one_int(span))),
            _ => Err(Box::new(limitation::not_supported(
                span,
                "functions that end the program",
                "call a continuation that the function takes",
            ))),
        }
    }

    fn operation(&mut self, prim: Prim, mem: Val, operands: &[Val]) -> Val {
        let is_float = self.world.prim(operands[0]).is_some_and(Scalar::is_float);
        let cast = |world: &mut World, to: Scalar| {
            let ty = world.types.prim(to);
            world.op_ty(Op::Cast, ty, operands)
        };
        let op = match prim {
            Prim::Add => Op::Add,
            Prim::Sub => Op::Sub,
            Prim::Mul => Op::Mul,
            Prim::Div if is_float => Op::Div,
            Prim::Div => return self.world.op(Op::PDiv, &[mem, operands[0], operands[1]]),
            Prim::Mod => return self.world.op(Op::PRem, &[mem, operands[0], operands[1]]),
            Prim::Eq => Op::Eq,
            Prim::Ne => Op::Ne,
            Prim::Lt => Op::Lt,
            Prim::Le => Op::Le,
            Prim::Gt => Op::Gt,
            Prim::Ge => Op::Ge,
            Prim::And => Op::And,
            Prim::Or => Op::Or,
            Prim::Not => return self.world.not(operands[0]),
            Prim::Neg if is_float => {
                let zero = self.negative_zero(operands[0]);
                return self.world.op(Op::Sub, &[zero, operands[0]]);
            }
            Prim::Neg => {
                let zero = self.world.lit_i32(0);
                return self.world.op(Op::Sub, &[zero, operands[0]]);
            }
            Prim::Abs if is_float => Op::Abs,
            Prim::Abs => {
                let zero = self.world.lit_i32(0);
                let negative = self.world.op(Op::Lt, &[operands[0], zero]);
                let negated = self.world.op(Op::Sub, &[zero, operands[0]]);
                return self.world.op(Op::Select, &[negative, negated, operands[0]]);
            }
            Prim::Min if is_float => Op::Fmin,
            Prim::Max if is_float => Op::Fmax,
            Prim::Min | Prim::Max => {
                let order = if prim == Prim::Min { Op::Lt } else { Op::Gt };
                let first = self.world.op(order, operands);
                return self.world.op(Op::Select, &[first, operands[0], operands[1]]);
            }
            Prim::Sqrt => Op::Sqrt,
            Prim::Floor => Op::Floor,
            Prim::Ceil => Op::Ceil,
            Prim::Sin => Op::Sin,
            Prim::Cos => Op::Cos,
            Prim::Tan => Op::Tan,
            Prim::Exp => Op::Exp,
            Prim::Log => Op::Log,
            Prim::Pow => Op::Pow,
            Prim::ToFloat => return cast(self.world, Scalar::F32),
            Prim::ToDouble => return cast(self.world, Scalar::F64),
            Prim::ToInt => return cast(self.world, Scalar::I32),
            Prim::Shift => return self.shift(operands[0], operands[1]),
            Prim::At => {
                let address = self.world.op(Op::Lea, operands);
                return self.world.op(Op::Load, &[mem, address]);
            }
            Prim::Put
            | Prim::Field
            | Prim::PutField
            | Prim::If
            | Prim::Exit
            | Prim::Print
            | Prim::Local
            | Prim::Compile => {
                unreachable!("they are no operations with a result")
            }
        };
        self.world.op(op, operands)
    }

    /// What a float is subtracted from to have the other sign, 0 included.
    fn negative_zero(&mut self, like: Val) -> Val {
        match self.world.prim(like) {
            Some(Scalar::F64) => self.world.lit_prim(Scalar::F64, (-0f64).to_bits()),
            _ => self.world.lit_prim(Scalar::F32, u64::from((-0f32).to_bits())),
        }
    }

    /// The address of an array from an element on.
    fn shift(&mut self, array: Val, idx: Val) -> Val {
        let ty = self.world.ty(array);
        let address = self.world.op(Op::Lea, &[array, idx]);
        self.world.op_ty(Op::Bitcast, ty, &[address])
    }
}
