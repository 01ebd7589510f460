//! Syntax trees of VecImp, which are also the terms that [`super::step`] rewrites: Figures 4.1 and 4.4.

use nyala_base::Span;
use std::rc::Rc;

/// τ
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    Bool,
    Int,
    Float,
}

/// A type as it is written. Without a length it is a poly type of PolyVecImp; when lengths are inferred, all have one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declared {
    pub element: Element,
    pub length: Option<u32>,
}

/// `τ varying(l)`
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ty {
    pub element: Element,
    pub length: u32,
}

#[derive(Clone, Debug)]
pub struct Name {
    pub text: Rc<str>,
    pub span: Span,
}

/// Φ
#[derive(Clone, Default, Debug)]
pub struct Program {
    pub functions: Vec<Function>,
}

/// f
#[derive(Clone, Debug)]
pub struct Function {
    /// `None`: it is polymorphic in the current length, too.
    pub simd: Option<u32>,
    pub result: Declared,
    pub name: Name,
    pub params: Vec<(Declared, Name)>,
    pub body: Statement,
    /// Other code can call it: it is no instance that inference has made.
    pub is_exported: bool,
}

/// s: heads, and what the list ends with.
#[derive(Clone, Debug)]
pub struct Statement {
    pub heads: Vec<Head>,
    pub end: End,
}

#[derive(Clone, Debug)]
pub enum End {
    Skip,
    Return(Expr),
}

/// ŝ
#[derive(Clone, Debug)]
pub struct Head {
    pub kind: HeadKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum HeadKind {
    Expr(Expr),
    Declare(Declared, Name),
    Assign(Name, Expr),
    If(Expr, Statement, Statement),
    While(Expr, Statement),
}

/// e
#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Variable(Rc<str>),
    /// A value, and how Sierra writes its absolute value if it is a literal.
    Value(Value, Rc<str>),
    Call(Callee, Vec<Expr>),
    Vector(Vec<Expr>),
    /// Expanded syntax: `{ s }` with the state that it restores.
    Running(Box<Running>),
}

#[derive(Clone, Debug)]
pub struct Running {
    pub body: Statement,
    pub saved: State,
    /// Of the function: its vector length, and the type of its result.
    pub length: u32,
    pub result: Ty,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Callee {
    Function(Rc<str>),
    Operator(Operator),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operator {
    Or,
    Xor,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    /// Of one operand.
    Negate,
    Not,
}

/// ν
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Bool(Vec<bool>),
    Int(Vec<i32>),
    Float(Vec<f32>),
}

/// σ. Variables stand in the order in which they were declared.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct State(pub Vec<(Rc<str>, Value)>);

/// The lattice of Figure 4.5a: `None` is its top.
pub fn join(a: u32, b: u32) -> Option<u32> {
    match (a, b) {
        (1, n) | (n, 1) => Some(n),
        _ => (a == b).then_some(a),
    }
}

impl Element {
    pub fn word(self) -> &'static str {
        match self {
            Element::Bool => "bool",
            Element::Int => "int",
            Element::Float => "float",
        }
    }
}

impl Declared {
    pub fn ty(self) -> Ty {
        Ty { element: self.element, length: self.length.unwrap_or(1) }
    }
}

impl Ty {
    pub fn show(self) -> String {
        format!("{} varying({})", self.element.word(), self.length)
    }

    pub fn declared(self) -> Declared {
        Declared { element: self.element, length: Some(self.length) }
    }
}

impl Statement {
    pub const SKIP: Statement = Statement { heads: Vec::new(), end: End::Skip };

    pub fn is_skip(&self) -> bool {
        self.heads.is_empty() && matches!(self.end, End::Skip)
    }
}

impl Expr {
    pub fn value(value: Value, span: Span) -> Expr {
        Expr { kind: ExprKind::Value(value, "".into()), span }
    }

    pub fn as_value(&self) -> Option<&Value> {
        if let ExprKind::Value(value, _) = &self.kind { Some(value) } else { None }
    }
}

impl Operator {
    pub fn word(self) -> &'static str {
        match self {
            Operator::Or => "|",
            Operator::Xor => "^",
            Operator::And => "&",
            Operator::Eq => "==",
            Operator::Ne => "!=",
            Operator::Lt => "<",
            Operator::Le => "<=",
            Operator::Gt => ">",
            Operator::Ge => ">=",
            Operator::Add => "+",
            Operator::Sub | Operator::Negate => "-",
            Operator::Mul => "*",
            Operator::Div => "/",
            Operator::Rem => "%",
            Operator::Not => "!",
        }
    }

    /// The element type of the result; `None`: there is no such function. An `int` beside a `float` becomes one.
    pub fn result(self, operands: &[Element]) -> Option<Element> {
        use Element::*;
        let number = match operands {
            [Int] | [Int, Int] => Some(Int),
            [Float] | [Int | Float, Int | Float] => Some(Float),
            _ => None,
        };
        let bools = operands.iter().all(|&e| e == Bool).then_some(Bool);
        match self {
            Operator::Or | Operator::Xor | Operator::And => number.filter(|&e| e == Int).or(bools),
            Operator::Eq | Operator::Ne => number.or(bools).map(|_| Bool),
            Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge => number.map(|_| Bool),
            Operator::Add | Operator::Sub | Operator::Mul | Operator::Div | Operator::Negate => number,
            Operator::Rem => number.filter(|&e| e == Int),
            Operator::Not => bools,
        }
    }
}

impl Value {
    /// 0 of a type.
    pub fn zero(ty: Ty) -> Value {
        let n = ty.length as usize;
        match ty.element {
            Element::Bool => Value::Bool(vec![false; n]),
            Element::Int => Value::Int(vec![0; n]),
            Element::Float => Value::Float(vec![0.0; n]),
        }
    }

    pub fn ty(&self) -> Ty {
        let (element, n) = match self {
            Value::Bool(v) => (Element::Bool, v.len()),
            Value::Int(v) => (Element::Int, v.len()),
            Value::Float(v) => (Element::Float, v.len()),
        };
        Ty { element, length: n as u32 }
    }

    /// The value in `n` lanes, if it has as many, or is a scalar.
    pub fn broadcast(&self, n: u32) -> Option<Value> {
        let n = n as usize;
        match self {
            Value::Bool(v) => broadcast(v, n).map(Value::Bool),
            Value::Int(v) => broadcast(v, n).map(Value::Int),
            Value::Float(v) => broadcast(v, n).map(Value::Float),
        }
    }

    /// As `print` has it.
    pub fn show(&self) -> String {
        let lanes: Vec<String> = match self {
            Value::Bool(v) => v.iter().map(|b| b.to_string()).collect(),
            Value::Int(v) => v.iter().map(|n| n.to_string()).collect(),
            Value::Float(v) => v.iter().map(|x| x.to_string()).collect(),
        };
        if let [one] = &lanes[..] { one.clone() } else { format!("[{}]", lanes.join(",")) }
    }
}

pub fn broadcast<T: Copy>(lanes: &[T], n: usize) -> Option<Vec<T>> {
    match lanes {
        _ if lanes.len() == n => Some(lanes.to_vec()),
        [one] => Some(vec![*one; n]),
        _ => None,
    }
}

impl State {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|v| *v.0 == *name).map(|v| &v.1)
    }

    pub fn set(&mut self, name: &Rc<str>, value: Value) {
        match self.0.iter_mut().find(|v| v.0 == *name) {
            Some(old) => old.1 = value,
            None => self.0.push((name.clone(), value)),
        }
    }
}
