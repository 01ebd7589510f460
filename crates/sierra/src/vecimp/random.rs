//! Random well-typed programs, as text: what the semantics and compiled code must agree on. Separate from the tests, since those of the command use it, too.
//!
//! They end: loops have counters with few rounds, and recursions a parameter that counts down. They divide by literals only. What their
//! variables hold at the end goes into the result.

use super::syntax::{Element, Ty};

/// Which language the program is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// All types have lengths.
    VecImp,
    /// Only vectors say how many lanes there are.
    PolyVecImp,
    /// PolyVecImp's function `f` of two `int`s, which has no vectors.
    Lanewise,
}

struct Signature {
    name: String,
    simd: u32,
    params: Vec<Ty>,
    result: Ty,
    /// The first parameter counts down.
    is_recursive: bool,
}

#[derive(Clone)]
struct Variable {
    name: String,
    ty: Ty,
    /// Nothing else assigns it: the end of a loop or of a recursion depends on it.
    is_counter: bool,
}

struct Maker {
    state: u64,
    kind: Kind,
    n_names: usize,
    /// The lengths of vectors.
    lengths: [u32; 2],
    functions: Vec<Signature>,
    text: String,
}

/// The text of a program, whose function `name` has no parameters. Other functions' names begin with it.
pub fn program(kind: Kind, name: &str, seed: u64) -> String {
    let mut maker =
        Maker { state: seed, kind, n_names: 0, lengths: [4, 8], functions: Vec::new(), text: String::new() };
    if kind != Kind::Lanewise {
        let first = maker.below(4);
        let second = (first + 1 + maker.below(3)) % 4;
        // Poly types of two lengths seldom fit.
        let second = if kind == Kind::VecImp { second } else { first };
        maker.lengths = [first, second].map(|i| [2, 3, 4, 8][i]);
        for i in 0..1 + maker.below(3) {
            maker.function(format!("{name}_{i}"));
        }
    }
    maker.last(name);
    maker.text
}

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        // splitmix64
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn fresh(&mut self, letter: char) -> String {
        self.n_names += 1;
        format!("{letter}{}", self.n_names)
    }

    /// A length of values in a mode.
    fn length(&mut self, l: u32) -> u32 {
        match (self.kind, l) {
            (Kind::Lanewise, _) => 1,
            (_, 1) => {
                let lengths = [1, self.lengths[0], self.lengths[0], self.lengths[1]];
                self.pick(&lengths)
            }
            _ => self.pick(&[1, l]),
        }
    }

    fn ty(&mut self, l: u32) -> Ty {
        let element = self.pick(&[Element::Bool, Element::Int, Element::Int, Element::Int, Element::Float]);
        Ty { element, length: self.length(l) }
    }

    fn show(&self, ty: Ty) -> String {
        if self.kind == Kind::VecImp { ty.show() } else { ty.element.word().into() }
    }

    // Functions.

    fn function(&mut self, name: String) {
        let simd = match self.kind {
            Kind::VecImp => {
                let lengths = [1, 1, self.lengths[0], self.lengths[1]];
                self.pick(&lengths)
            }
            _ => 1,
        };
        let is_recursive = self.below(3) == 0;
        let mut params: Vec<Ty> = (0..self.below(3)).map(|_| self.ty(simd)).collect();
        if is_recursive {
            params.insert(0, Ty { element: Element::Int, length: 1 });
        }
        let mut result = self.ty(simd);
        if simd != 1 {
            result.length = simd;
        }
        let mut vars: Vec<Variable> = Vec::new();
        for (i, &ty) in params.iter().enumerate() {
            let name = self.fresh('p');
            vars.push(Variable { name, ty, is_counter: is_recursive && i == 0 });
        }
        let shown: Vec<String> = vars.iter().map(|v| format!("{} {}", self.show(v.ty), v.name)).collect();
        let head = format!("{} {name}({})", self.show(result), shown.join(", "));
        self.text +=
            &if self.kind == Kind::VecImp { format!("simd({simd}) {head} {{\n") } else { format!("{head} {{\n") };
        let value = self.fresh('r');
        let mut body = vars.clone();
        self.declare(&mut body, &value, result, simd);
        self.functions.push(Signature { name, simd, params, result, is_recursive });
        // Itself is called in one place only.
        let own = self.functions.pop();
        self.statements(&mut body, simd, 1);
        if let Some(own) = own {
            if own.is_recursive {
                self.text += &format!("if ({} > 0) {{\n", vars[0].name);
                let args: Vec<String> = own.params[1..].iter().map(|&ty| self.argument(&body, ty, simd, 1)).collect();
                let args: Vec<String> = std::iter::once(format!("{} - 1", vars[0].name)).chain(args).collect();
                self.text += &format!("{value} = {}({});\n}}\n", own.name, args.join(", "));
                self.statements(&mut body, simd, 1);
            }
            self.functions.push(own);
        }
        let from = if simd == 1 { result.length } else { self.pick(&[1, simd]) };
        let returned = self.expr(&body, Ty { length: from, ..result }, simd, 2);
        self.text += &format!("return {returned};\n}}\n");
    }

    /// The function without parameters, or that of two `int`s.
    fn last(&mut self, name: &str) {
        let (mut vars, params, result) = match self.kind {
            Kind::Lanewise => {
                let params = ["a", "b"].map(|name| Variable { name: name.into(), ty: INT, is_counter: false });
                (params.to_vec(), "int a, int b", INT)
            }
            _ => (Vec::new(), "", Ty { length: self.lengths[0], ..INT }),
        };
        let simd = if self.kind == Kind::VecImp { "simd(1) " } else { "" };
        // The caller must know how many lanes there are.
        let shown = if self.kind == Kind::Lanewise { "int".to_string() } else { result.show() };
        self.text += &format!("{simd}{shown} {name}({params}) {{\n");
        for _ in 0..3 {
            let (name, ty) = (self.fresh('x'), self.ty(1));
            self.declare(&mut vars, &name, ty, 1);
        }
        self.statements(&mut vars, 1, 2);
        let sum = self.fresh('s');
        let first = self.expr(&vars, result, 1, 1);
        self.text += &format!("{shown} {sum} = {first};\n");
        for v in &vars {
            let (name, ty) = (&v.name, v.ty);
            if ty.length != 1 && ty.length != result.length {
                continue;
            }
            self.text += &match ty.element {
                Element::Int => format!("{sum} = {sum} * 3 + {name};\n"),
                Element::Bool => format!("if ({name}) {sum} = {sum} * 5 + 1; else {sum} = {sum} + 2;\n"),
                Element::Float => format!("if ({name} < 1.5) {sum} = {sum} ^ 21;\n"),
            };
        }
        self.text += &format!("return {sum};\n}}\n");
    }

    fn declare(&mut self, vars: &mut Vec<Variable>, name: &str, ty: Ty, l: u32) {
        let shown = self.show(ty);
        let line = match self.below(4) {
            // In PolyVecImp, a vector says how many lanes the variable has.
            0 if self.kind == Kind::VecImp || ty.length == 1 => format!("{shown} {name};\n"),
            _ => format!("{shown} {name} = {};\n", self.argument(vars, ty, l, 2)),
        };
        self.text += &line;
        vars.push(Variable { name: name.into(), ty, is_counter: false });
    }

    // Statements.

    fn statements(&mut self, vars: &mut Vec<Variable>, l: u32, depth: usize) {
        for _ in 0..1 + self.below(3) {
            let fits = |v: &&Variable| !v.is_counter && (l == 1 || v.ty.length == 1 || v.ty.length == l);
            let places: Vec<Variable> = vars.iter().filter(fits).cloned().collect();
            match if depth == 0 { self.below(4) } else { self.below(9) } {
                0 => {
                    let (name, ty) = (self.fresh('x'), self.ty(l));
                    self.declare(vars, &name, ty, l);
                }
                1 | 2 if !places.is_empty() => {
                    let place = places[self.below(places.len())].clone();
                    let value = self.argument(vars, place.ty, l, 2);
                    self.text += &format!("{} = {value};\n", place.name);
                }
                1..=3 => {
                    let ty = self.ty(l);
                    let value = self.expr(vars, ty, l, 2);
                    self.text += &format!("{value};\n");
                }
                4..=6 => {
                    let length = self.length(l);
                    let condition = self.expr(vars, Ty { element: Element::Bool, length }, l, 2);
                    self.text += &format!("if ({condition}) {{\n");
                    let inner = l.max(length);
                    self.statements(&mut vars.clone(), inner, depth - 1);
                    if self.below(2) == 0 {
                        self.text += "} else {\n";
                        self.statements(&mut vars.clone(), inner, depth - 1);
                    }
                    self.text += "}\n";
                }
                _ => self.looped(vars, l, depth),
            }
        }
    }

    fn looped(&mut self, vars: &mut [Variable], l: u32, depth: usize) {
        let length = self.length(l);
        let counts = self.pick(&[1, length]);
        let ty = Ty { length: counts, ..INT };
        let counter = Variable { name: self.fresh('i'), ty, is_counter: true };
        let rounds = 1 + self.below(3);
        let inner = l.max(length);
        let bound = if counts == 1 || self.below(2) == 0 {
            rounds.to_string()
        } else {
            let lanes: Vec<String> = (0..counts).map(|_| self.below(4).to_string()).collect();
            if self.kind == Kind::Lanewise { rounds.to_string() } else { format!("{{{}}}", lanes.join(", ")) }
        };
        let mut within = vars.to_vec();
        within.push(counter.clone());
        // Under the condition it may be evaluated in another mode, which functions do not have.
        let has_calls = inner == l || self.kind != Kind::VecImp;
        let functions = if has_calls { Vec::new() } else { std::mem::take(&mut self.functions) };
        let more = self.expr(&within, Ty { element: Element::Bool, length }, l, 2);
        self.functions.extend(functions);
        let (shown, i) = (self.show(ty), &counter.name);
        let condition = format!("({i} < {bound}) & ({more})");
        let is_for = self.below(2) == 0;
        self.text += &if is_for {
            format!("for ({shown} {i} = 0; {condition}; {i} = {i} + 1) {{\n")
        } else {
            format!("{shown} {i} = 0;\nwhile ({condition}) {{\n")
        };
        // Calls in loops in functions that are called in loops take long.
        let functions = if self.below(4) == 0 { Vec::new() } else { std::mem::take(&mut self.functions) };
        self.statements(&mut within, inner, depth - 1);
        self.functions.extend(functions);
        if !is_for {
            self.text += &format!("{i} = {i} + 1;\n");
        }
        self.text += "}\n";
    }

    // Expressions.

    /// An expression that can be assigned to a variable of a type.
    fn argument(&mut self, vars: &[Variable], ty: Ty, l: u32, depth: usize) -> String {
        let is_scalar = ty.length == 1 || self.kind == Kind::VecImp && self.below(3) == 0;
        let from = Ty { length: if is_scalar { 1 } else { ty.length }, ..ty };
        self.expr(vars, from, l, depth)
    }

    /// An expression of a type, in a mode that has its length.
    fn expr(&mut self, vars: &[Variable], ty: Ty, l: u32, depth: usize) -> String {
        let known: Vec<&str> = vars.iter().filter(|v| v.ty == ty).map(|v| &*v.name).collect();
        if !known.is_empty() && (depth == 0 || self.below(3) == 0) {
            return self.pick(&known).to_string();
        }
        if depth == 0 || self.below(6) == 0 {
            return self.leaf(vars, ty, l, depth);
        }
        let callable = |f: &Signature| f.result == ty && (l == 1 || f.simd == l);
        let callables: Vec<usize> = (0..self.functions.len()).filter(|&i| callable(&self.functions[i])).collect();
        if !callables.is_empty() && self.below(5) == 0 {
            let f = self.pick(&callables);
            return self.call(vars, f, l, depth - 1);
        }
        // One of the operands has all lanes.
        let other = if self.below(2) == 0 { 1 } else { ty.length };
        let mut lengths = [ty.length, other];
        if self.below(2) == 0 {
            lengths.reverse();
        }
        let operands = |m: &mut Self, elements: [Element; 2]| {
            [0, 1].map(|i| m.expr(vars, Ty { element: elements[i], length: lengths[i] }, l, depth - 1))
        };
        let (operator, [a, b]) = match ty.element {
            Element::Bool => match self.below(6) {
                0 => return format!("!({})", self.expr(vars, ty, l, depth - 1)),
                1 | 2 => (self.pick(&["&", "|", "^", "==", "!="]), operands(self, [Element::Bool; 2])),
                3 => (self.pick(&["<", ">="]), operands(self, [Element::Float, Element::Int])),
                _ => (self.pick(&["<", "<=", ">", ">=", "==", "!="]), operands(self, [Element::Int; 2])),
            },
            Element::Int => match self.below(7) {
                0 => return format!("-({})", self.expr(vars, ty, l, depth - 1)),
                1 => {
                    let operator = self.pick(&["/", "%"]);
                    return format!("({}) {operator} {}", self.expr(vars, ty, l, depth - 1), 2 + self.below(7));
                }
                2 => (self.pick(&["&", "|", "^"]), operands(self, [Element::Int; 2])),
                _ => (self.pick(&["+", "-", "*"]), operands(self, [Element::Int; 2])),
            },
            Element::Float => {
                let elements = [[Element::Float; 2], [Element::Int, Element::Float], [Element::Float, Element::Int]];
                let elements = elements[self.below(3)];
                (self.pick(&["+", "-", "*", "/"]), operands(self, elements))
            }
        };
        format!("({a}) {operator} ({b})")
    }

    fn leaf(&mut self, vars: &[Variable], ty: Ty, l: u32, depth: usize) -> String {
        if ty.length > 1 {
            let scalar = Ty { length: 1, ..ty };
            // What is a scalar here may get lanes by inference.
            let (vars, depth) = if self.kind == Kind::VecImp { (vars, depth.saturating_sub(1)) } else { (&[][..], 0) };
            let lanes: Vec<String> = (0..ty.length).map(|_| self.expr(vars, scalar, l, depth)).collect();
            return format!("{{{}}}", lanes.join(", "));
        }
        match ty.element {
            Element::Bool => self.pick(&["true", "false"]).into(),
            Element::Int => (self.below(13) as i32 - 4).to_string(),
            Element::Float => format!("{}.{}f", self.below(5), self.pick(&[0, 25, 5])),
        }
    }

    fn call(&mut self, vars: &[Variable], f: usize, l: u32, depth: usize) -> String {
        let Signature { name, params, is_recursive, .. } = &self.functions[f];
        let (name, params, is_recursive) = (name.clone(), params.clone(), *is_recursive);
        let mut args = Vec::new();
        for (i, ty) in params.into_iter().enumerate() {
            args.push(if is_recursive && i == 0 {
                self.below(4).to_string()
            } else {
                self.argument(vars, ty, l, depth)
            });
        }
        format!("{name}({})", args.join(", "))
    }
}

const INT: Ty = Ty { element: Element::Int, length: 1 };
