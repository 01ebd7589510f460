//! The small-step interpreter: Figure 4.7 rule by rule, under the names that rules have there. Slow and obvious: it is what compiled code is compared with.
//!
//! Terms are rewritten in place. E-Eval goes to the term that is evaluated next by recursion, as deep as calls and rounds of loops are within each
//! other; a run is given up beyond a limit.

use super::Rules;
use super::syntax::*;
use nyala_base::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Calls and rounds of loops within each other.
const MAX_DEPTH: u32 = 500;

/// Why there is no value.
#[derive(Clone, PartialEq, Debug)]
pub enum Stop {
    /// No rule applies; the one that is next.
    Stuck(&'static str),
    /// A quotient that does not exist, in an active lane.
    Division(Span),
    /// Too many steps, or terms too deep.
    Limit,
}

type Step = Result<&'static str, Stop>;

/// m
pub type Mask = Vec<bool>;

pub struct Machine<'p> {
    functions: FxHashMap<Rc<str>, &'p Function>,
    rules: Rules,
    pub state: State,
    depth: u32,
}

/// Evaluates a call outside of SIMD mode. `observe` gets the rule of each step, and the state and term behind it.
pub fn run(
    program: &Program,
    rules: Rules,
    name: &str,
    args: Vec<Value>,
    max_steps: usize,
    mut observe: impl FnMut(&'static str, &State, &Expr),
) -> Result<Value, Stop> {
    let functions = program.functions.iter().map(|f| (f.name.text.clone(), f)).collect();
    let mut machine = Machine { functions, rules, state: State::default(), depth: 0 };
    let args = args.into_iter().map(|v| Expr::value(v, Span::NONE)).collect();
    let mut term = Expr { kind: ExprKind::Call(Callee::Function(name.into()), args), span: Span::NONE };
    for _ in 0..max_steps {
        if let Some(value) = term.as_value() {
            return Ok(value.clone());
        }
        let rule = machine.expr(&[true], &mut term)?;
        observe(rule, &machine.state, &term);
    }
    Err(Stop::Limit)
}

/// `m ∧ m'`, if it is valid.
pub fn and(a: &[bool], b: &[bool]) -> Option<Mask> {
    let n = join(a.len() as u32, b.len() as u32)? as usize;
    let (a, b) = (broadcast(a, n)?, broadcast(b, n)?);
    Some(a.into_iter().zip(b).map(|(a, b)| a & b).collect())
}

/// `blend(m, b, a)`, if it is valid: that is, if `‖m‖ ⊢ ‖a‖ ← ‖b‖`. A scalar is one for all lanes: it is updated if one of them is active.
pub fn blend(mask: &[bool], new: &Value, old: &Value) -> Option<Value> {
    fn lanes<T: Copy>(mask: &[bool], new: &[T], old: &[T]) -> Option<Vec<T>> {
        let new = broadcast(new, old.len())?;
        let mask = if old.len() == 1 { vec![mask.contains(&true)] } else { broadcast(mask, old.len())? };
        Some(mask.into_iter().zip(new.into_iter().zip(old)).map(|(m, (b, &a))| if m { b } else { a }).collect())
    }
    super::check::assignable(mask.len() as u32, old.ty().length, new.ty().length)?;
    match (new, old) {
        (Value::Bool(b), Value::Bool(a)) => lanes(mask, b, a).map(Value::Bool),
        (Value::Int(b), Value::Int(a)) => lanes(mask, b, a).map(Value::Int),
        (Value::Float(b), Value::Float(a)) => lanes(mask, b, a).map(Value::Float),
        _ => None,
    }
}

impl Machine<'_> {
    /// `Φ; m ⊢ σ; s → σ'; s'`
    pub fn statement(&mut self, mask: &[bool], s: &mut Statement) -> Step {
        self.deeper(|m| m.statement_there(mask, s))
    }

    fn deeper(&mut self, step: impl FnOnce(&mut Self) -> Step) -> Step {
        if self.depth >= MAX_DEPTH {
            return Err(Stop::Limit);
        }
        self.depth += 1;
        let done = step(self);
        self.depth -= 1;
        done
    }

    fn statement_there(&mut self, mask: &[bool], s: &mut Statement) -> Step {
        let Some(head) = s.heads.first_mut() else {
            return match &mut s.end {
                // E-Eval
                End::Return(e) if e.as_value().is_none() => self.expr(mask, e),
                // A statement value.
                End::Return(_) | End::Skip => Err(Stop::Stuck("E-Eval")),
            };
        };
        let rule = match &mut head.kind {
            // E-Eval
            HeadKind::Expr(e) | HeadKind::Assign(_, e) | HeadKind::If(e, ..) if e.as_value().is_none() => {
                return self.expr(mask, e);
            }
            HeadKind::Expr(_) => "ES-Expr",
            HeadKind::Declare(ty, name) => {
                self.state.set(&name.text, Value::zero(ty.ty()));
                "ES-Decl"
            }
            HeadKind::Assign(name, e) => {
                let (Some(new), Some(old)) = (e.as_value(), self.state.get(&name.text)) else {
                    return Err(Stop::Stuck("ES-Assign"));
                };
                let Some(blended) = blend(mask, new, old) else { return Err(Stop::Stuck("ES-Assign")) };
                self.state.set(&name.text, blended);
                "ES-Assign"
            }
            HeadKind::If(condition, then, otherwise) => {
                let Some(Value::Bool(holds)) = condition.as_value() else { return Err(Stop::Stuck("ES-If")) };
                if !then.is_skip() {
                    return self.branch("ES-IfT", and(mask, holds), then);
                }
                if !otherwise.is_skip() {
                    let not: Mask = holds.iter().map(|b| !b).collect();
                    return self.branch("ES-IfF", and(mask, &not), otherwise);
                }
                "ES-If"
            }
            HeadKind::While(condition, body) => {
                if !matches!(body.end, End::Skip) {
                    return Err(Stop::Stuck("ES-While"));
                }
                let (condition, mut unrolled) = (condition.clone(), body.clone());
                unrolled.heads.push(head.clone());
                head.kind = HeadKind::If(condition, unrolled, Statement::SKIP);
                return Ok("ES-While");
            }
        };
        s.heads.remove(0);
        Ok(rule)
    }

    /// A step in a branch, under its mask.
    fn branch(&mut self, rule: &'static str, mask: Option<Mask>, s: &mut Statement) -> Step {
        let Some(mask) = mask else { return Err(Stop::Stuck(rule)) };
        if self.rules == Rules::Repaired && !mask.contains(&true) {
            *s = Statement::SKIP;
            return Ok(rule);
        }
        self.statement(&mask, s)?;
        Ok(rule)
    }

    /// `Φ; m ⊢ σ; e → σ'; e'`
    pub fn expr(&mut self, mask: &[bool], e: &mut Expr) -> Step {
        let (rule, value) = match &mut e.kind {
            ExprKind::Value(..) => return Err(Stop::Stuck("E-Eval")),
            ExprKind::Variable(name) => match self.state.get(name) {
                Some(value) => ("EE-Var", value.clone()),
                None => return Err(Stop::Stuck("EE-Var")),
            },
            ExprKind::Call(_, list) | ExprKind::Vector(list) if list.iter().any(|e| e.as_value().is_none()) => {
                // E-Eval
                let Some(next) = list.iter_mut().find(|e| e.as_value().is_none()) else { return Ok("E-Eval") };
                return self.expr(mask, next);
            }
            ExprKind::Vector(list) => {
                let lanes: Vec<&Value> = list.iter().filter_map(Expr::as_value).collect();
                // The figure does not tell a vector of values from the value.
                match vector(&lanes) {
                    Some(value) => ("TE-Vec", value),
                    None => return Err(Stop::Stuck("TE-Vec")),
                }
            }
            ExprKind::Call(callee, list) => {
                let args: Vec<Value> = list.iter().filter_map(Expr::as_value).cloned().collect();
                match callee {
                    Callee::Operator(operator) => ("EE-Call", operate(*operator, &args, mask, e.span)?),
                    Callee::Function(name) => {
                        let Some(&f) = self.functions.get(name) else { return Err(Stop::Stuck("EE-Call")) };
                        e.kind = ExprKind::Running(self.call(f, args)?);
                        return Ok("EE-Call");
                    }
                }
            }
            ExprKind::Running(running) => match &running.body {
                Statement { heads, end: End::Return(e) } if heads.is_empty() && e.as_value().is_some() => {
                    let Some(mut value) = e.as_value().cloned() else { return Err(Stop::Stuck("EE-Stmt")) };
                    if self.rules == Rules::Repaired {
                        match value.broadcast(running.result.length) {
                            Some(found) => value = found,
                            None => return Err(Stop::Stuck("EE-Stmt")),
                        }
                    }
                    self.state = std::mem::take(&mut running.saved);
                    ("EE-Stmt", value)
                }
                Statement { heads, end: End::Skip } if heads.is_empty() => return Err(Stop::Stuck("EE-Stmt")),
                _ => return self.statement(mask, &mut running.body),
            },
        };
        e.kind = ExprKind::Value(value, "".into());
        Ok(rule)
    }

    /// EE-Call
    fn call(&mut self, f: &Function, args: Vec<Value>) -> Result<Box<Running>, Stop> {
        let mut state = State::default();
        if args.len() != f.params.len() {
            return Err(Stop::Stuck("EE-Call"));
        }
        for ((ty, name), value) in f.params.iter().zip(args) {
            let value = match self.rules {
                Rules::Written => Some(value),
                Rules::Repaired => value.broadcast(ty.ty().length).filter(|v| v.ty() == ty.ty()),
            };
            let Some(value) = value else { return Err(Stop::Stuck("EE-Call")) };
            state.set(&name.text, value);
        }
        let saved = std::mem::replace(&mut self.state, state);
        let (length, result) = (f.simd.unwrap_or(1), f.result.ty());
        Ok(Box::new(Running { body: f.body.clone(), saved, length, result }))
    }
}

fn vector(lanes: &[&Value]) -> Option<Value> {
    match lanes.first()? {
        Value::Bool(_) => {
            let scalar = |v: &&Value| if let Value::Bool(v) = v { v.first().copied() } else { None };
            lanes.iter().map(scalar).collect::<Option<_>>().map(Value::Bool)
        }
        Value::Int(_) => {
            let scalar = |v: &&Value| if let Value::Int(v) = v { v.first().copied() } else { None };
            lanes.iter().map(scalar).collect::<Option<_>>().map(Value::Int)
        }
        Value::Float(_) => {
            let scalar = |v: &&Value| if let Value::Float(v) = v { v.first().copied() } else { None };
            lanes.iter().map(scalar).collect::<Option<_>>().map(Value::Float)
        }
    }
}

/// The built-in functions. `int` is of 32 bits and wraps around, `float` is that of IEEE 754. Lanes that are not active divide by nothing.
fn operate(operator: Operator, args: &[Value], mask: &[bool], span: Span) -> Result<Value, Stop> {
    const STUCK: Stop = Stop::Stuck("EE-Call");
    let elements: Vec<Element> = args.iter().map(|v| v.ty().element).collect();
    operator.result(&elements).ok_or(STUCK)?;
    let mut n = 1;
    for arg in args {
        n = join(n, arg.ty().length).ok_or(STUCK)?;
    }
    let args: Option<Vec<Value>> = args.iter().map(|v| v.broadcast(n)).collect();
    let args = args.ok_or(STUCK)?;
    // A scalar is computed once for all lanes. A vector outside of SIMD mode is computed in all of its lanes.
    let active = if n == 1 { vec![mask.contains(&true)] } else { broadcast(mask, n as usize).ok_or(STUCK)? };
    let floats = |v: &Value| match v {
        Value::Int(v) => v.iter().map(|&n| n as f32).collect(),
        Value::Float(v) => v.clone(),
        Value::Bool(_) => Vec::new(),
    };
    match &args[..] {
        [Value::Bool(v)] => Ok(Value::Bool(v.iter().map(|b| !b).collect())),
        [Value::Int(v)] => Ok(Value::Int(v.iter().map(|n| n.wrapping_neg()).collect())),
        [Value::Float(v)] => Ok(Value::Float(v.iter().map(|x| -x).collect())),
        [Value::Bool(a), Value::Bool(b)] => {
            let f = match operator {
                Operator::Or => |a, b| a | b,
                Operator::Xor | Operator::Ne => |a, b| a ^ b,
                Operator::And => |a, b| a & b,
                Operator::Eq => |a, b| a == b,
                _ => return Err(STUCK),
            };
            Ok(Value::Bool(a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()))
        }
        [Value::Int(a), Value::Int(b)] => {
            if let Some(compared) = compare(operator, a, b) {
                return Ok(compared);
            }
            let mut lanes = Vec::new();
            for ((&a, &b), active) in a.iter().zip(b).zip(active) {
                lanes.push(match operator {
                    Operator::Or => a | b,
                    Operator::Xor => a ^ b,
                    Operator::And => a & b,
                    Operator::Add => a.wrapping_add(b),
                    Operator::Sub => a.wrapping_sub(b),
                    Operator::Mul => a.wrapping_mul(b),
                    Operator::Div | Operator::Rem if !active => 0,
                    Operator::Div => a.checked_div(b).ok_or(Stop::Division(span))?,
                    Operator::Rem => a.checked_rem(b).ok_or(Stop::Division(span))?,
                    _ => return Err(STUCK),
                });
            }
            Ok(Value::Int(lanes))
        }
        [a, b] => {
            let (a, b) = (floats(a), floats(b));
            if let Some(compared) = compare(operator, &a, &b) {
                return Ok(compared);
            }
            let f = match operator {
                Operator::Add => |a, b| a + b,
                Operator::Sub => |a, b| a - b,
                Operator::Mul => |a, b| a * b,
                Operator::Div => |a, b| a / b,
                _ => return Err(STUCK),
            };
            Ok(Value::Float(a.iter().zip(&b).map(|(&a, &b): (&f32, &f32)| f(a, b)).collect()))
        }
        _ => Err(STUCK),
    }
}

fn compare<T: PartialOrd>(operator: Operator, a: &[T], b: &[T]) -> Option<Value> {
    let f = match operator {
        Operator::Eq => |a: &T, b: &T| a == b,
        Operator::Ne => |a: &T, b: &T| a != b,
        Operator::Lt => |a: &T, b: &T| a < b,
        Operator::Le => |a: &T, b: &T| a <= b,
        Operator::Gt => |a: &T, b: &T| a > b,
        Operator::Ge => |a: &T, b: &T| a >= b,
        _ => return None,
    };
    Some(Value::Bool(a.iter().zip(b).map(|(a, b)| f(a, b)).collect()))
}
