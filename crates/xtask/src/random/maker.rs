//! Makes random programs that end and have no undefined behavior: unsigned arithmetic, counters, fuel. All
//! statements use what is in scope.

mod expressions;
mod places;

use super::{INPUTS, Rng};
use std::fmt::Write;

#[derive(Clone)]
struct Function {
    name: String,
    n_params: usize,
    /// Whether it has a parameter that is a function, and one that is a continuation.
    takes_function: bool,
    takes_exit: bool,
    /// Whether its first parameter is fuel, which counts down.
    has_fuel: bool,
    /// Whether its return continuation is an explicit parameter.
    is_explicit: bool,
    /// Whether it has a parameter that is a pointer to a number.
    takes_pointer: bool,
}

struct Maker {
    rng: Rng,
    /// The size class: 0, 1 or 2. Small programs find the most faults per time; large ones find those that need many
    /// features at once.
    size: usize,
    out: String,
    functions: Vec<Function>,
    n_names: usize,
    /// The names in scope: values, mutable variables, functions `fn(u32) -> u32`.
    values: Vec<String>,
    mutable: Vec<String>,
    closures: Vec<String>,
    /// Mutable variables in memory: arrays `[u32 * 4]`, `Two[u32, u32]`, `Pair`; and other names of `return`.
    arrays: Vec<String>,
    twos: Vec<String>,
    pairs: Vec<String>,
    exits: Vec<String>,
    /// Mutable variables with functions, and arrays of functions `[fn(u32) -> u32 * 3]`.
    variables: Vec<String>,
    tables: Vec<String>,
    /// Statics with computed initializers.
    statics: Vec<String>,
    /// Other names of `break` and `continue`.
    jumps: Vec<String>,
    indent: usize,
    depth: usize,
    /// Whether `break` and `continue` belong to a loop without result.
    in_loop: bool,
    /// Whether this is directly in the body of a parallel loop, without `break`; and somewhere in one, without
    /// `return`.
    is_parallel: bool,
    in_parallel: bool,
    /// Whether loops may be parallel. Then lambdas, which may be called in such a loop, do not leave functions.
    has_parallel: bool,
    in_lambda: bool,
    /// The function that is being made, for recursive calls, and the number of these.
    own: Option<Function>,
    n_recursive: usize,
}

/// What stands before bodies.
pub const HEAD: &str = include_str!("../../../../fuzz/head.impala");

/// The text of a body.
pub fn generate(seed: u64) -> String {
    let mut m = Maker {
        rng: Rng(seed),
        size: match seed / 2 % 64 {
            0 => 2,
            1..5 => 1,
            _ => 0,
        },
        out: String::new(),
        functions: Vec::new(),
        n_names: 0,
        values: Vec::new(),
        mutable: Vec::new(),
        closures: Vec::new(),
        arrays: Vec::new(),
        twos: Vec::new(),
        pairs: Vec::new(),
        exits: Vec::new(),
        variables: Vec::new(),
        tables: Vec::new(),
        statics: Vec::new(),
        jumps: Vec::new(),
        indent: 0,
        depth: 0,
        in_loop: false,
        is_parallel: false,
        in_parallel: false,
        has_parallel: seed.is_multiple_of(2),
        in_lambda: false,
        own: None,
        n_recursive: 0,
    };
    for i in 0..1 + m.size + m.rng.below(2 + m.size) {
        m.function(i);
        if m.rng.chance(25) {
            let (name, n, x) = (m.name("z"), m.rng.below(6), m.rng.below(9));
            let init =
                ["computed({n}u32, |q| q * {x}u32)", "walk({n}u32, {x}u32)", "computed({n}u32, |q| narrow(q, {x}u32))"];
            let init = init[m.rng.below(3)].replace("{n}", &n.to_string()).replace("{x}", &x.to_string());
            let _ = writeln!(m.out, "static {name}: u32 = {init};");
            m.statics.push(name);
        }
    }
    m.out.push_str("extern fn entry(x: u32, y: u32, z: u32, w: u32) -> u32 {\n    g0 = 1u32; g1 = 2u32;\n");
    m.own = None;
    m.new_scope(["x", "y", "z", "w"].map(String::from).to_vec());
    m.body(2 + m.size + m.size / 2);
    m.out.push_str("}\n");
    let mut calls = Vec::new();
    let mut splits = Vec::new();
    for (i, inputs) in INPUTS.iter().enumerate() {
        let unknown: Vec<String> = inputs.iter().map(|x| format!("${x}u32")).collect();
        let unknown = unknown.join(", ");
        calls.push(format!("entry({unknown})"));
        // Some inputs are known, the others are arguments.
        if i % 2 == (seed % 2) as usize {
            let known = 1 + m.rng.below(15);
            let mut args = Vec::new();
            for (j, name) in ["x", "y", "z", "w"].into_iter().enumerate() {
                args.push(if known >> j & 1 == 1 { format!("{}u32", inputs[j]) } else { name.to_string() });
            }
            let (call, args) = (["@@", "@@", "@", ""][m.rng.below(4)], args.join(", "));
            let params = "x: u32, y: u32, z: u32, w: u32";
            let _ = writeln!(m.out, "extern fn split_{i}({params}) -> u32 {{ {call}entry({args}) }}");
            splits.push(format!("split_{i}({unknown})"));
        }
    }
    calls.extend(splits);
    // A sum that depends on every result.
    m.out.push_str("extern fn all() -> u32 {\n    let mut sum = 0u32;\n");
    for call in calls {
        let _ = writeln!(m.out, "    sum = sum * 31u32 + {call};");
    }
    m.out.push_str("    sum\n}\n");
    m.out
}

impl Maker {
    fn name(&mut self, prefix: &str) -> String {
        self.n_names += 1;
        format!("{prefix}{}", self.n_names)
    }

    fn line(&mut self, text: &str) {
        let indent = "    ".repeat(self.indent);
        let _ = writeln!(self.out, "{indent}{text}");
    }

    /// Begins a scope with only these names.
    fn new_scope(&mut self, values: Vec<String>) {
        self.values = values;
        self.mutable.clear();
        self.closures.clear();
        self.arrays.clear();
        self.twos.clear();
        self.pairs.clear();
        self.exits.clear();
        self.variables.clear();
        self.tables.clear();
        self.jumps.clear();
        self.indent = 1;
    }

    fn filter(&mut self, params: &[String]) -> String {
        match self.rng.below(10) {
            0 | 1 => "@".into(),
            2 | 3 => {
                let p = &params[self.rng.below(params.len())];
                format!("@(?{p})")
            }
            4 => {
                let (p, q) = (&params[self.rng.below(params.len())], &params[self.rng.below(params.len())]);
                format!("@(?{p} && ?{q})").replace("&&", "&")
            }
            5 => {
                let p = &params[self.rng.below(params.len())];
                format!("@({p} < {}u32)", self.rng.below(6))
            }
            6 => {
                let (p, q) = (&params[self.rng.below(params.len())], &params[self.rng.below(params.len())]);
                format!("@(?{p} && {q} % 2u32 == 0u32 || !?{q})")
            }
            _ => String::new(),
        }
    }

    fn function(&mut self, i: usize) {
        let n_params = 1 + self.rng.below(3);
        let f = Function {
            name: format!("f{i}"),
            n_params,
            takes_function: self.rng.chance(40),
            takes_exit: self.rng.chance(25),
            has_fuel: self.rng.chance(60),
            is_explicit: self.rng.chance(25),
            takes_pointer: self.rng.chance(25),
        };
        let names: Vec<String> = (0..n_params).map(|i| format!("p{i}")).collect();
        let all = self.filter(&names);
        let mut params: Vec<String> = Vec::new();
        for name in &names {
            let filter = if self.rng.chance(30) { self.filter(&names) + " " } else { String::new() };
            params.push(format!("{filter}{name}: u32"));
        }
        if f.takes_function {
            params.push("h: fn(u32) -> u32".into());
        }
        if f.takes_exit {
            params.push("out: fn(u32) -> !".into());
        }
        if f.takes_pointer {
            params.push("at: &mut u32".into());
        }
        if f.is_explicit {
            params.push("return: fn(u32) -> !".into());
        }
        let _ = writeln!(
            self.out,
            "fn {all}{} {}({}) -> {} {{",
            if all.is_empty() { "" } else { " " },
            f.name,
            params.join(", "),
            if f.is_explicit { "!" } else { "u32" }
        );
        self.new_scope(names);
        if f.takes_function {
            self.closures.push("h".into());
        }
        if f.takes_exit {
            self.exits.push("out".into());
        }
        if f.takes_pointer {
            self.values.push("*at".into());
            self.mutable.push("*at".into());
        }
        self.in_loop = false;
        self.n_recursive = 0;
        self.own = None;
        if f.has_fuel {
            let stop = self.expr(2);
            self.line(&format!("if p0 == 0u32 {{ return({stop}) }}"));
            self.own = Some(f.clone());
        }
        let n = 1 + self.rng.below(2 + self.size);
        if f.is_explicit {
            for _ in 0..n {
                self.statement();
            }
            let end = self.end(2);
            self.line(&end);
        } else {
            self.body(n);
        }
        self.out.push_str("}\n");
        self.functions.push(f);
    }

    /// The end of a function whose return continuation is a parameter.
    fn end(&mut self, depth: usize) -> String {
        match self.rng.below(if depth == 0 { 1 } else { 5 }) {
            1 | 2 => {
                let (c, a, b) = (self.cond(), self.end(depth - 1), self.end(depth - 1));
                format!("if {c} {{ {a} }} else {{ {b} }}")
            }
            3 if !self.functions.is_empty() => {
                let call = self.call_of(self.functions.len(), 2, Some("return".into()));
                call.unwrap_or_else(|| "return(0u32)".into())
            }
            4 if !self.functions.is_empty() => {
                let result = self.name("r");
                self.values.push(result.clone());
                let e = self.expr(1);
                self.values.pop();
                let call = self.call_of(self.functions.len(), 2, Some(format!("|{result}: u32| -> ! return({e})")));
                call.unwrap_or_else(|| "return(1u32)".into())
            }
            _ => format!("return({})", self.expr(2)),
        }
    }

    /// A body of `n` statements and a result.
    fn body(&mut self, n: usize) {
        for _ in 0..n {
            self.statement();
        }
        let result = self.expr(3);
        self.line(&result);
    }

    /// A block of statements with its own scope.
    fn block(&mut self, n: usize) {
        let scope = (self.values.len(), self.mutable.len(), self.closures.len());
        let memory = (self.arrays.len(), self.twos.len(), self.pairs.len());
        let exits = (self.exits.len(), self.jumps.len());
        let functions = (self.variables.len(), self.tables.len());
        self.indent += 1;
        self.depth += 1;
        for _ in 0..n {
            self.statement();
        }
        self.depth -= 1;
        self.indent -= 1;
        self.values.truncate(scope.0);
        self.mutable.truncate(scope.1);
        self.closures.truncate(scope.2);
        self.arrays.truncate(memory.0);
        self.twos.truncate(memory.1);
        self.pairs.truncate(memory.2);
        self.exits.truncate(exits.0);
        self.jumps.truncate(exits.1);
        self.variables.truncate(functions.0);
        self.tables.truncate(functions.1);
    }

    fn statement(&mut self) {
        let deep = self.depth > self.size;
        match if deep { [0, 1, 2, 3, 4, 5, 11, 15, 16, 18, 19][self.rng.below(11)] } else { self.rng.below(23) } {
            22 => self.fault_beside(),
            19 | 20 => self.change_places(),
            21 => self.loop_to_end(),
            17 | 18 => self.change_functions(),
            13 | 14 => self.make_memory(),
            15 => self.change_memory(),
            16 => self.leave(),
            0 | 1 => {
                let (name, e) = (self.name("v"), self.expr(3));
                self.line(&format!("let {name} = {e};"));
                self.values.push(name);
            }
            2 => {
                let (name, e) = (self.name("m"), self.expr(2));
                self.line(&format!("let mut {name} = {e};"));
                self.values.push(name.clone());
                self.mutable.push(name);
            }
            3 | 4 => {
                let e = self.expr(3);
                let target = match self.mutable.is_empty() || self.rng.chance(20) {
                    true => format!("g{}", self.rng.below(2)),
                    false => self.mutable[self.rng.below(self.mutable.len())].clone(),
                };
                let op = ["=", "+=", "^=", "*="][self.rng.below(4)];
                self.line(&format!("{target} {op} {e};"));
            }
            5 => {
                let (name, param) = (self.name("c"), self.name("q"));
                self.values.push(param.clone());
                // A lambda does not call the enclosing function, since it may be called more often than fuel allows.
                let own = self.own.take();
                let in_lambda = std::mem::replace(&mut self.in_lambda, true);
                let e = self.expr(2);
                self.in_lambda = in_lambda;
                self.own = own;
                self.values.pop();
                let filter = ["", "@", &format!("@(?{param})")][self.rng.below(3)].to_string();
                let body = match self.rng.chance(40) {
                    true => format!("-> u32 {{ {} {e} }}", self.write(&param)),
                    false => e,
                };
                self.line(&format!("let {name} = {filter}|{param}: u32| {body};"));
                self.closures.push(name);
            }
            6 | 7 => {
                let c = self.cond();
                self.line(&format!("if {c} {{"));
                let n = 1 + self.rng.below(2);
                self.block(n);
                if self.rng.chance(50) {
                    self.line("} else {");
                    self.block(1);
                }
                self.line("}");
            }
            8 | 9 => {
                let i = self.name("it");
                // On one thread, the iterations of a parallel loop run in order.
                let generator = [
                    "range(0, ",
                    "unroll(0, ",
                    "range_rev(0, ",
                    "parallel(1, 0, ",
                    "each_down(",
                    "each_twice(",
                    "each_chosen(",
                ][self.rng.below(7)];
                let generator = match self.has_parallel {
                    false if generator.starts_with("parallel") => "each_down(",
                    _ => generator,
                };
                let cast = if generator.starts_with("each") { "" } else { " as i32" };
                let n = self.rng.below(5);
                let bound = match self.rng.chance(50) {
                    true => format!("{n}u32{cast}"),
                    false => format!("({} % 5u32){cast}", self.atom()),
                };
                self.line(&format!("for {i} in {generator}{bound}) {{"));
                self.loop_body(&i, generator.starts_with("parallel"));
            }
            10 => {
                let i = self.name("k");
                let n = if self.rng.chance(50) {
                    format!("{}u32", self.rng.below(5))
                } else {
                    format!("{} % 5u32", self.atom())
                };
                self.line(&format!("let mut {i} = {n};"));
                self.line(&format!("while {i} > 0u32 {{"));
                let in_loop = std::mem::replace(&mut self.in_loop, true);
                let is_parallel = std::mem::replace(&mut self.is_parallel, false);
                let own = self.own.take();
                self.indent += 1;
                self.line(&format!("{i} -= 1u32;"));
                self.indent -= 1;
                self.values.push(i);
                self.block(2);
                self.own = own;
                self.in_loop = in_loop;
                self.is_parallel = is_parallel;
                self.line("}");
            }
            11 => {
                let c = self.cond();
                let how = match self.rng.below(5) {
                    3 if !self.in_parallel && !self.jumps.is_empty() => {
                        format!("{}()", self.jumps[self.rng.below(self.jumps.len())])
                    }
                    4 if self.in_loop && !self.in_parallel => {
                        let name = self.name("j");
                        let (what, hidden) = (["break", "continue"][self.rng.below(2)], self.hidden());
                        if self.rng.chance(30) {
                            self.line(&format!("let {name} = {hidden}(7u32, {what});"));
                            self.jumps.push(format!("{name}(1)"));
                        } else {
                            self.line(&format!("let {name} = {what};"));
                            self.jumps.push(name);
                        }
                        return;
                    }
                    0 if self.in_loop && !self.is_parallel => "break()".to_string(),
                    1 if self.in_loop => "continue()".to_string(),
                    _ if self.in_parallel => return,
                    _ => format!("return({})", self.expr(2)),
                };
                self.line(&format!("if {c} {{ {how} }}"));
            }
            _ => {
                let (name, a) = (self.name("s"), self.expr(2));
                let (f, hidden) = (self.closure(), self.hidden());
                if self.rng.chance(50) {
                    self.line(&format!("let {name} = {hidden}Pair {{ a: {a}, f: {f} }};"));
                    self.values.push(format!("{name}.a"));
                    self.closures.push(format!("{name}.f"));
                } else {
                    // Some parts are hidden from partial evaluation once more.
                    let (g, inner) = (self.closure(), self.hidden());
                    self.line(&format!("let {name} = {hidden}({f}, {inner}Two {{ a: {g}, b: ({a}, {f}) }});"));
                    self.values.push(format!("{name}(1).b(0)"));
                    self.closures.extend([format!("{name}(0)"), format!("{name}(1).a"), format!("{name}(1).b(1)")]);
                }
            }
        }
    }

    /// The body of a loop whose variable is `i`, and its end.
    fn loop_body(&mut self, i: &str, parallel: bool) {
        let in_loop = std::mem::replace(&mut self.in_loop, true);
        let outer = (self.is_parallel, self.in_parallel);
        (self.is_parallel, self.in_parallel) = (parallel, parallel || self.in_parallel);
        // As in a lambda, the enclosing function is not called.
        let own = self.own.take();
        let value = self.name("w");
        self.indent += 1;
        self.line(&format!("let {value} = {i} as u32;"));
        self.indent -= 1;
        self.values.push(value);
        let n = 1 + self.rng.below(2);
        self.block(n);
        self.values.pop();
        self.own = own;
        self.in_loop = in_loop;
        (self.is_parallel, self.in_parallel) = outer;
        self.line("}");
    }

    /// An assignment of `value` to some variable in scope.
    fn write(&mut self, value: &str) -> String {
        let target = match self.mutable.is_empty() {
            true => "g1".into(),
            false => self.mutable[self.rng.below(self.mutable.len())].clone(),
        };
        let op = ["=", "+=", "^=", "*="][self.rng.below(4)];
        match self.arrays.is_empty() || self.rng.chance(60) {
            true => format!("{target} {op} {value};"),
            false => {
                format!("{}(({} & 3u32) as i32) += {target};", self.arrays[self.rng.below(self.arrays.len())], value)
            }
        }
    }

    /// Assigns to variables and arrays of functions. An assigned function only calls older functions, so that all calls
    /// end.
    fn change_functions(&mut self) {
        let (q, k) = (self.name("q"), self.rng.below(7));
        let op = ["+", "^", "*", "-"][self.rng.below(4)];
        match self.rng.below(5) {
            0 if !self.variables.is_empty() => {
                let (h, old, c) =
                    (self.variables[self.rng.below(self.variables.len())].clone(), self.name("old"), self.cond());
                self.line(&format!("let {old} = {h};"));
                self.line(&format!("if {c} {{ {h} = |{q}: u32| {old}({q}) {op} {k}u32; }}"));
            }
            1 if !self.tables.is_empty() => {
                let (t, i) = (self.tables[self.rng.below(self.tables.len())].clone(), self.atom());
                self.line(&format!("{t}(({i} % 3u32) as i32) = |{q}: u32| {q} {op} {k}u32;"));
            }
            1 | 2 => {
                let (name, a, b, c) = (self.name("fs"), self.closure(), self.closure(), self.closure());
                let hidden = self.hidden();
                self.line(&format!("let mut {name}: [fn(u32) -> u32 * 3] = {hidden}[{a}, {b}, {c}];"));
                self.tables.push(name);
            }
            3 if !self.tables.is_empty() => {
                let (name, t, i) =
                    (self.name("c"), self.tables[self.rng.below(self.tables.len())].clone(), self.atom());
                self.line(&format!("let {name} = {t}(({i} % 3u32) as i32);"));
                self.closures.push(name);
            }
            _ => {
                let (name, f) = (self.name("h"), self.closure());
                self.line(&format!("let mut {name}: fn(u32) -> u32 = {f};"));
                self.closures.push(name.clone());
                self.variables.push(name);
            }
        }
    }

    fn make_memory(&mut self) {
        let (a, b) = (self.expr(2), self.expr(1));
        match self.rng.below(4) {
            0 | 1 => {
                let (name, c) = (self.name("a"), self.atom());
                self.line(&format!("let mut {name} = [{a}, {b}, {c}, 3u32];"));
                self.arrays.push(name);
            }
            2 => {
                let name = self.name("t");
                self.line(&format!("let mut {name} = Two {{ a: {a}, b: {b} }};"));
                self.values.extend([format!("{name}.a"), format!("{name}.b")]);
                self.mutable.extend([format!("{name}.a"), format!("{name}.b")]);
                self.twos.push(name);
            }
            _ => {
                let (name, f, hidden) = (self.name("o"), self.closure(), self.hidden());
                self.line(&format!("let mut {name} = {hidden}Pair {{ a: {a}, f: {f} }};"));
                self.values.push(format!("{name}.a"));
                self.mutable.push(format!("{name}.a"));
                self.closures.push(format!("{name}.f"));
                self.pairs.push(name);
            }
        }
    }

    fn change_memory(&mut self) {
        let e = self.expr(2);
        match self.rng.below(4) {
            0 | 1 if !self.arrays.is_empty() => {
                let (a, i) = (self.arrays[self.rng.below(self.arrays.len())].clone(), self.atom());
                let op = ["=", "+=", "^="][self.rng.below(3)];
                self.line(&format!("{a}(({i} & 3u32) as i32) {op} {e};"));
            }
            2 if !self.twos.is_empty() => {
                let (t, p) = (self.twos[self.rng.below(self.twos.len())].clone(), self.name("ptr"));
                self.line(&format!("let {p} = &mut {t};"));
                self.line(&format!("{p}.a ^= {e}; {p}.b += {p}.a;"));
            }
            3 if !self.pairs.is_empty() => {
                let o = self.pairs[self.rng.below(self.pairs.len())].clone();
                // A function that does not call the one that it replaces.
                let param = self.name("q");
                let op = ["+", "^", "*"][self.rng.below(3)];
                let k = self.rng.below(5);
                let c = self.cond();
                self.line(&format!("if {c} {{ {o}.f = |{param}: u32| {param} {op} {k}u32; }}"));
            }
            _ => self.line(&format!("g0 ^= {e};")),
        }
    }

    /// Leaves the function through another name of its `return`.
    fn leave(&mut self) {
        if self.in_parallel {
            return;
        }
        if self.exits.is_empty() || self.rng.chance(30) {
            let name = self.name("out");
            match self.rng.below(4) {
                0 => {
                    let (e, hidden) = (self.atom(), self.hidden());
                    self.line(&format!("let {name} = {hidden}(return, {e});"));
                    self.exits.push(format!("{name}(0)"));
                    self.values.push(format!("{name}(1)"));
                }
                1 if !self.has_parallel => {
                    let (q, i, hidden) = (self.name("q"), self.atom(), self.hidden());
                    self.line(&format!("let {name} = {hidden}[return, |{q}: u32| -> ! return({q} + 1u32)];"));
                    self.exits.push(format!("{name}(({i} & 1u32) as i32)"));
                }
                _ => {
                    self.line(&format!("let {name} = return;"));
                    self.exits.push(name);
                }
            }
        }
        let out = self.exits[self.rng.below(self.exits.len())].clone();
        let (c, e) = (self.cond(), self.expr(1));
        if !self.has_parallel && self.rng.chance(10) {
            // Leaves from a lambda, which becomes a jump in the residual program.
            let (name, param) = (self.name("c"), self.name("q"));
            self.line(&format!(
                "let {name} = @|{param}: u32| -> u32 {{ if {param} == 5u32 {{ {out}({e}) }} {param} + 1u32 }};"
            ));
            self.closures.push(name);
        } else {
            self.line(&format!("if {c} {{ {out}({e}) }}"));
        }
    }
}
