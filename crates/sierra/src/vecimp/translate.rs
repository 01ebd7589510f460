//! VecImp to syntax trees of Sierra, which is lowered as any other program.
//!
//! The statements and types of VecImp are Sierra's. Variables begin with 0. Values are written with the types that VecImp gives them. `main` is called by
//! another function, which prints its value.

use super::syntax::{self as vecimp, Callee, Declared, Element, End, ExprKind as V, HeadKind, Operator, Value};
use nyala_base::Span;
use nyala_c_syntax::syntax::*;
use nyala_ir::Prim;
use rustc_hash::FxHashMap;

/// Numbers of lanes, as literals.
const LENGTHS: [&str; 64] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20",
    "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35", "36", "37", "38", "39",
    "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53", "54", "55", "56", "57", "58",
    "59", "60", "61", "62", "63", "64",
];

/// What `main` is called here: no name of the language.
const MAIN: &str = "main.value";

/// What the types of vector expressions are computed from.
struct Translator<'p> {
    functions: FxHashMap<&'p str, Element>,
    /// Of the function: all its names are unique.
    variables: FxHashMap<&'p str, Element>,
}

pub fn translate(program: &vecimp::Program) -> Vec<Item<'_>> {
    let functions = program.functions.iter().map(|f| (&*f.name.text, f.result.element)).collect();
    let mut translator = Translator { functions, variables: FxHashMap::default() };
    let mut items: Vec<Item> = program.functions.iter().map(|f| translator.function(f)).collect();
    if let Some(main) = program.functions.iter().find(|f| is_main(f)) {
        items.push(entry(main.name.span));
    }
    items
}

fn is_main(f: &vecimp::Function) -> bool {
    &*f.name.text == "main" && f.params.is_empty()
}

/// `int main() { print("%\n", main.value()); return 0; }`
fn entry<'s>(span: Span) -> Item<'s> {
    let callee = Box::new(Expr { kind: ExprKind::Name(MAIN), span });
    let call = Postfix { kind: PostfixKind::Call(Vec::new()), span };
    let value = Expr { kind: ExprKind::Postfix(callee, vec![call]), span };
    let text = Expr { kind: ExprKind::Text(vec!["\"%\\n\""]), span };
    let print = Box::new(Expr { kind: ExprKind::Name("print"), span });
    let call = Postfix { kind: PostfixKind::Call(vec![text, value]), span };
    let printed = Expr { kind: ExprKind::Postfix(print, vec![call]), span };
    let result = Expr { kind: ExprKind::Int("0"), span };
    Item::Function(std::rc::Rc::new(Function {
        storage: Storage::Automatic,
        specifier: specifier(Declared { element: Element::Int, length: None }, span),
        declarator: Declarator { params: Some(Vec::new()), ..named(Name { text: "main", span }) },
        body: vec![
            Statement { labels: Vec::new(), kind: StatementKind::Value(printed), span },
            Statement { labels: Vec::new(), kind: StatementKind::Return(Some(result)), span },
        ],
        has_lanes: false,
        has_jumps: false,
        has_tasks: false,
        has_alloca: false,
        end: span,
    }))
}

fn length<'s>(n: u32, span: Span) -> Expr<'s> {
    let text = LENGTHS.get(n as usize - 1).copied().unwrap_or("1");
    Expr { kind: ExprKind::Int(text), span }
}

fn specifier<'s>(ty: Declared, span: Span) -> Specifier<'s> {
    let kind = SpecifierKind::Prim(prim(ty.element));
    let varying = ty.length.filter(|&n| n > 1).map(|n| Box::new(length(n, span)));
    Specifier { kind, is_const: false, varying, simd: None, short: None, words: Words::default(), span }
}

fn prim(element: Element) -> Prim {
    match element {
        Element::Bool => Prim::Bool,
        Element::Int => Prim::I32,
        Element::Float => Prim::F32,
    }
}

fn declarator(name: &vecimp::Name) -> Declarator<'_> {
    named(Name { text: &name.text, span: name.span })
}

fn named(name: Name) -> Declarator {
    Declarator { name: Some(name), ..Declarator::at(name.span) }
}

impl<'p> Translator<'p> {
    fn function(&mut self, f: &'p vecimp::Function) -> Item<'p> {
        self.variables = f.params.iter().map(|(ty, name)| (&*name.text, ty.element)).collect();
        let simd = Some(Box::new(length(f.simd.unwrap_or(1), f.name.span)));
        let is_main = is_main(f);
        let name = Name { text: if is_main { MAIN } else { &f.name.text }, span: f.name.span };
        let params = f.params.iter().map(|(ty, name)| (specifier(*ty, name.span), declarator(name))).collect();
        Item::Function(std::rc::Rc::new(Function {
            storage: if f.is_exported && !is_main { Storage::Automatic } else { Storage::Static },
            specifier: Specifier { simd, ..specifier(f.result, f.name.span) },
            declarator: Declarator { params: Some(params), ..named(name) },
            body: self.statements(&f.body),
            has_lanes: true,
            has_jumps: false,
            has_tasks: false,
            has_alloca: false,
            end: f.name.span,
        }))
    }

    fn statements(&mut self, s: &'p vecimp::Statement) -> Vec<Statement<'p>> {
        let mut found = Vec::new();
        for head in &s.heads {
            found.push(Statement { labels: Vec::new(), kind: self.statement(&head.kind, head.span), span: head.span });
        }
        if let End::Return(e) = &s.end {
            found.push(Statement { labels: Vec::new(), kind: StatementKind::Return(Some(self.expr(e))), span: e.span });
        }
        found
    }

    fn block(&mut self, s: &'p vecimp::Statement, span: Span) -> Box<Statement<'p>> {
        Box::new(Statement { labels: Vec::new(), kind: StatementKind::Block(self.statements(s)), span })
    }

    fn statement(&mut self, kind: &'p HeadKind, span: Span) -> StatementKind<'p> {
        match kind {
            HeadKind::Expr(e) => StatementKind::Value(self.expr(e)),
            HeadKind::Declare(ty, name) => {
                self.variables.insert(&name.text, ty.element);
                let zero = Init::Value(Expr { kind: ExprKind::Int("0"), span });
                StatementKind::Declare(Declaration {
                    storage: Storage::Automatic,
                    specifier: specifier(*ty, span),
                    declared: vec![(declarator(name), Some(zero))],
                })
            }
            HeadKind::Assign(name, e) => {
                let place = Expr { kind: ExprKind::Name(&name.text), span: name.span };
                let operands = Box::new([place, self.expr(e)]);
                StatementKind::Value(Expr { kind: ExprKind::Assign(None, operands), span })
            }
            HeadKind::If(condition, then, otherwise) => {
                let arm = (self.expr(condition), *self.block(then, span));
                let otherwise = if otherwise.is_skip() { None } else { Some(self.block(otherwise, span)) };
                StatementKind::If(vec![arm], otherwise)
            }
            HeadKind::While(condition, body) => StatementKind::For {
                first: None,
                condition: Some(self.expr(condition)),
                step: None,
                body: self.block(body, span),
            },
        }
    }

    fn expr(&self, e: &'p vecimp::Expr) -> Expr<'p> {
        let span = e.span;
        let kind = match &e.kind {
            V::Variable(name) => ExprKind::Name(name),
            V::Value(value, text) => literal(value, text, span),
            V::Call(Callee::Function(name), args) => {
                let callee = Box::new(Expr { kind: ExprKind::Name(name), span });
                let call = PostfixKind::Call(args.iter().map(|e| self.expr(e)).collect());
                ExprKind::Postfix(callee, vec![Postfix { kind: call, span }])
            }
            V::Call(Callee::Operator(operator), args) => {
                let mut args: Vec<Expr> = args.iter().map(|e| self.expr(e)).collect();
                match (operands(*operator), args.pop(), args.pop()) {
                    (Err(unary), Some(one), None) => ExprKind::Unary(unary, Box::new(one)),
                    (Ok(binary), Some(right), Some(left)) => ExprKind::Chain(Box::new(left), vec![(binary, right)]),
                    // The checker has counted them.
                    _ => NOTHING,
                }
            }
            V::Vector(elements) => match &elements[..] {
                [one] => return self.expr(one),
                _ => {
                    let element = elements.first().and_then(|e| self.element(e)).unwrap_or(Element::Int);
                    let ty = Declared { element, length: Some(elements.len() as u32) };
                    let no_name = Declarator { name: None, ..named(Name { text: "", span }) };
                    let lanes = elements.iter().map(|e| (None, Init::Value(self.expr(e)))).collect();
                    ExprKind::Literal(Box::new((specifier(ty, span), no_name)), Box::new(Init::List(lanes, span)))
                }
            },
            // No program has them.
            V::Running(_) => NOTHING,
        };
        Expr { kind, span }
    }

    fn element(&self, e: &vecimp::Expr) -> Option<Element> {
        match &e.kind {
            V::Variable(name) => self.variables.get(&**name).copied(),
            V::Value(value, _) => Some(value.ty().element),
            V::Call(Callee::Function(name), _) => self.functions.get(&**name).copied(),
            V::Call(Callee::Operator(operator), args) => {
                let elements: Option<Vec<Element>> = args.iter().map(|e| self.element(e)).collect();
                operator.result(&elements?)
            }
            V::Vector(elements) => self.element(elements.first()?),
            V::Running(running) => Some(running.result.element),
        }
    }
}

const NOTHING: ExprKind = ExprKind::Int("0");

fn literal<'s>(value: &Value, text: &'s str, span: Span) -> ExprKind<'s> {
    let number = |kind| Box::new(Expr { kind, span });
    match value {
        Value::Bool(v) => ExprKind::Bool(v.first() == Some(&true)),
        Value::Int(v) if v.first().is_some_and(|&n| n < 0) => {
            // 2147483648 is no `int`.
            let negative = ExprKind::Unary(Unary::Negate, number(ExprKind::Int(text)));
            let int = specifier(Declared { element: Element::Int, length: None }, span);
            let unnamed = Declarator { name: None, ..named(Name { text: "", span }) };
            ExprKind::Cast(Box::new((int, unnamed)), number(negative))
        }
        Value::Int(_) => ExprKind::Int(text),
        Value::Float(v) if v.first().is_some_and(|x| x.is_sign_negative()) => {
            ExprKind::Unary(Unary::Negate, number(ExprKind::Float(text)))
        }
        Value::Float(_) => ExprKind::Float(text),
    }
}

fn operands(operator: Operator) -> Result<Binary, Unary> {
    Ok(match operator {
        Operator::Negate => return Err(Unary::Negate),
        Operator::Not => return Err(Unary::Not),
        Operator::Or => Binary::Or,
        Operator::Xor => Binary::Xor,
        Operator::And => Binary::And,
        Operator::Eq => Binary::Eq,
        Operator::Ne => Binary::Ne,
        Operator::Lt => Binary::Lt,
        Operator::Le => Binary::Le,
        Operator::Gt => Binary::Gt,
        Operator::Ge => Binary::Ge,
        Operator::Add => Binary::Add,
        Operator::Sub => Binary::Sub,
        Operator::Mul => Binary::Mul,
        Operator::Div => Binary::Div,
        Operator::Rem => Binary::Rem,
    })
}
