//! Random programs: the specialized program, the one specialized no more than needed, and the source must give the same
//! results. Programs are made so that they end and have no undefined behavior: unsigned arithmetic, counters, fuel.

use crate::Tally;
use nyala::{Options, Session};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Arguments that every program is run with.
const INPUTS: &[(u32, u32)] = &[(0, 0), (1, 2), (7, 3), (100, 41), (3_000_000_000, 5)];
/// Programs that take longer are left out.
const MAX_STEPS: u64 = 300_000;
/// Every so many programs also run as native code.
const NATIVE_EVERY: u64 = 4;

/// Makes and checks programs until the time is up; prints the seed, and every program that disagrees.
pub fn run(seed: Option<u64>, time: Duration, max_programs: u64) -> Tally {
    let first = seed.unwrap_or_else(fresh_seed);
    println!("random programs from seed {first} (repeat one with `./x fuzz --seed SEED --programs 1`)");
    let start = Instant::now();
    let (mut tally, mut diverged, mut too_long, mut limited) = (Tally::default(), 0, 0, 0);
    for i in 0..max_programs {
        if start.elapsed() > time {
            break;
        }
        let seed = first.wrapping_add(i);
        let program = generate(seed);
        match check(&program, i % NATIVE_EVERY == 0) {
            Outcome::Agrees => tally.passed += 1,
            Outcome::TooLong => too_long += 1,
            Outcome::Limited => {
                limited += 1;
                tally.passed += 1;
            }
            Outcome::Diverges => {
                diverged += 1;
                tally.passed += 1;
            }
            Outcome::Fault(e) => {
                tally.failed += 1;
                println!("FAILED random program, seed {seed}: {e}\n{program}");
                if tally.failed >= 5 {
                    break;
                }
            }
        }
    }
    println!(
        "{} random programs agree, {} disagree; {too_long} left out as too long, {diverged} spent the budget of partial \
         evaluation, {limited} are a limitation of native code",
        tally.passed, tally.failed
    );
    // Programs of one run count as one test: their number depends on the machine.
    Tally { passed: (tally.failed == 0) as usize, failed: (tally.failed > 0) as usize, skipped: 0 }
}

/// Another one each time.
pub fn fresh_seed() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
}

/// Checks one program as if it were random.
pub fn run_file(path: &std::path::Path) -> Result<bool, String> {
    let program = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let (ok, text) = match check(&program, program.contains("entry_0")) {
        Outcome::Agrees => (true, "agrees".into()),
        Outcome::Limited => (true, "agrees, but is a limitation of native code".into()),
        Outcome::TooLong => (false, "the source takes too long".into()),
        Outcome::Diverges => (true, "spends the budget of partial evaluation".into()),
        Outcome::Fault(e) => (false, e),
    };
    println!("{text}");
    Ok(ok)
}

enum Outcome {
    Agrees,
    /// Agrees, but not everything has native code.
    Limited,
    TooLong,
    Diverges,
    Fault(String),
}

fn check(program: &str, native: bool) -> Outcome {
    let session = |annotations: bool, opt_level: u8| {
        let mut s = Session::new(Options {
            partial_evaluation: annotations,
            opt_level,
            pe_budget: 0.02,
            verify: true,
            ..Options::default()
        });
        s.add_file("random.impala", program);
        s
    };
    let mut s = session(true, 0);
    let Ok(world) = s.graph() else { return Outcome::Fault(s.render(false)) };
    let mut expected = Vec::new();
    for &(x, y) in INPUTS {
        match interpret(&world, x, y) {
            Ok(Some(r)) => expected.push(r),
            Ok(None) => return Outcome::TooLong,
            Err(e) => return Outcome::Fault(format!("the source: {e}")),
        }
    }
    let (mut diverges, mut limited) = (false, false);
    for annotations in [false, true] {
        let what = if annotations { "specialized" } else { "not specialized" };
        let mut s = session(annotations, 3);
        let Ok(residual) = s.residual(&world) else {
            if s.sink.diagnostics.iter().all(|d| d.code == "specialization-diverges") {
                diverges = true;
                continue;
            }
            return Outcome::Fault(format!("{what}: {}", s.render(false)));
        };
        for (&(x, y), &e) in INPUTS.iter().zip(&expected) {
            match interpret(&residual, x, y) {
                Ok(Some(r)) if r == e => {}
                Ok(Some(r)) => return Outcome::Fault(format!("{what}, interpreted: entry({x}, {y}) is {r}, not {e}")),
                Ok(None) => return Outcome::Fault(format!("{what}, interpreted: entry({x}, {y}) takes too long")),
                Err(fault) => return Outcome::Fault(format!("{what}, interpreted: entry({x}, {y}): {fault}")),
            }
        }
        if !native {
            continue;
        }
        for opt_level in [0, 3] {
            s.options.opt_level = opt_level;
            let results = run_native(&mut s, &residual);
            let Ok(results) = results else {
                if s.sink.diagnostics.iter().any(|d| d.code == "limitation") {
                    limited = true;
                    break;
                }
                return Outcome::Fault(format!("{what}, -O{opt_level}: {}", s.render(false)));
            };
            if results != expected {
                return Outcome::Fault(format!("{what}, -O{opt_level}: {results:?}, not {expected:?}"));
            }
        }
    }
    match (diverges, limited) {
        (true, _) => Outcome::Diverges,
        (_, true) => Outcome::Limited,
        _ => Outcome::Agrees,
    }
}

/// The result of the program's entry; nothing if it takes too long.
fn interpret(world: &nyala_ir::World, x: u32, y: u32) -> Result<Option<u32>, String> {
    let Some(entry) = world.find_root("entry") else { return Err("no entry".into()) };
    let options = nyala_interp::Options { max_steps: Some(MAX_STEPS), ..Default::default() };
    match nyala_interp::run(world, entry, &[x as u64, y as u64], &options) {
        Ok(results) => Ok(results.first().map(|&r| r as u32)),
        Err(fault) if fault.code() == "budget-spent" => Ok(None),
        Err(fault) => Err(fault.diagnostic().message),
    }
}

fn run_native(s: &mut Session, residual: &nyala_ir::World) -> Result<Vec<u32>, nyala::Reported> {
    let module = s.flat(residual)?;
    let loaded = s.load(&module, &[])?;
    let mut results = Vec::new();
    for i in 0..INPUTS.len() {
        results.push(s.call_i32(&loaded, &format!("entry_{i}"))? as u32);
    }
    Ok(results)
}

// Making programs.

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }
    pub fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone)]
struct Function {
    name: String,
    n_params: usize,
    /// Its last parameter, or the one before, is a function.
    takes_function: bool,
    /// The last one is a continuation.
    takes_exit: bool,
    /// Its first parameter counts down.
    has_fuel: bool,
}

struct Maker {
    rng: Rng,
    out: String,
    functions: Vec<Function>,
    n_names: usize,
    /// Names in scope: values, mutable ones, functions `fn(u32) -> u32`.
    values: Vec<String>,
    mutable: Vec<String>,
    closures: Vec<String>,
    /// Continuations in scope, and whether they take a value.
    exits: Vec<(String, bool)>,
    indent: usize,
    depth: usize,
    /// `break` and `continue` mean a loop's without result.
    in_loop: bool,
    /// Directly in the body of a parallel loop: there is no `break`; somewhere in one: no `return`.
    is_parallel: bool,
    in_parallel: bool,
    /// The function being made, for recursive calls, and how many it has.
    own: Option<Function>,
    n_recursive: usize,
}

fn generate(seed: u64) -> String {
    let mut m = Maker {
        rng: Rng(seed),
        out: include_str!("../../../fuzz/head.impala").into(),
        functions: Vec::new(),
        n_names: 0,
        values: Vec::new(),
        mutable: Vec::new(),
        closures: Vec::new(),
        exits: Vec::new(),
        indent: 0,
        depth: 0,
        in_loop: false,
        is_parallel: false,
        in_parallel: false,
        own: None,
        n_recursive: 0,
    };
    for i in 0..2 + m.rng.below(4) {
        m.function(i);
    }
    m.out.push_str("extern fn entry(x: u32, y: u32) -> u32 {\n    g0 = 1u32; g1 = 2u32;\n");
    m.own = None;
    m.values = vec!["x".into(), "y".into()];
    m.mutable.clear();
    m.closures.clear();
    m.exits.clear();
    m.indent = 1;
    m.body(5);
    m.out.push_str("}\n");
    for (i, (x, y)) in INPUTS.iter().enumerate() {
        let _ = writeln!(m.out, "extern fn entry_{i}() -> u32 {{ entry(${x}u32, ${y}u32) }}");
    }
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

    fn filter(&mut self, params: &[String]) -> String {
        match self.rng.below(8) {
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
            _ => String::new(),
        }
    }

    fn function(&mut self, i: usize) {
        let n_params = 1 + self.rng.below(3);
        let f = Function {
            name: format!("f{i}"),
            n_params,
            takes_function: self.rng.chance(40),
            takes_exit: self.rng.chance(30),
            has_fuel: self.rng.chance(60),
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
            params.push("x: fn(u32) -> !".into());
        }
        let _ = writeln!(
            self.out,
            "fn {all}{} {}({}) -> u32 {{",
            if all.is_empty() { "" } else { " " },
            f.name,
            params.join(", ")
        );
        self.values = names;
        self.mutable.clear();
        self.closures = if f.takes_function { vec!["h".into()] } else { Vec::new() };
        self.exits = if f.takes_exit { vec![("x".into(), true)] } else { Vec::new() };
        self.in_loop = false;
        self.n_recursive = 0;
        self.indent = 1;
        if f.has_fuel {
            let stop = self.expr(2);
            self.line(&format!("if p0 == 0u32 {{ return({stop}) }}"));
            self.own = Some(f.clone());
        } else {
            self.own = None;
        }
        let n = 1 + self.rng.below(4);
        self.body(n);
        self.out.push_str("}\n");
        self.functions.push(f);
    }

    /// Statements, then a result.
    fn body(&mut self, n: usize) {
        for _ in 0..n {
            self.statement();
        }
        let result = self.expr(3);
        self.line(&result);
    }

    /// A block of statements with its own scope.
    fn block(&mut self, n: usize) {
        let scope = (self.values.len(), self.mutable.len(), self.closures.len(), self.exits.len());
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
        self.exits.truncate(scope.3);
    }

    fn statement(&mut self) {
        let deep = self.depth >= 3;
        match self.rng.below(if deep { 6 } else { 14 }) {
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
                // A lambda cannot call the function around it: it may be called more often than fuel allows.
                let own = self.own.take();
                let e = self.expr(2);
                self.own = own;
                self.values.pop();
                let filter = ["", "@", &format!("@(?{param})")][self.rng.below(3)].to_string();
                self.line(&format!("let {name} = {filter}|{param}: u32| {e};"));
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
                // On one thread a parallel loop's iterations are in order.
                let generator = [
                    "range(0, ",
                    "unroll(0, ",
                    "range_rev(0, ",
                    "parallel(1, 0, ",
                    "each_down(",
                    "each_twice(",
                    "each_chosen(",
                ][self.rng.below(7)];
                let cast = if generator.starts_with("each") { "" } else { " as i32" };
                let n = self.rng.below(5);
                let bound = match self.rng.chance(50) {
                    true => format!("{n}u32{cast}"),
                    false => format!("({} % 5u32){cast}", self.atom()),
                };
                self.line(&format!("for {i} in {generator}{bound}) {{"));
                let in_loop = std::mem::replace(&mut self.in_loop, true);
                let parallel = generator.starts_with("parallel");
                let outer = (self.is_parallel, self.in_parallel);
                (self.is_parallel, self.in_parallel) = (parallel, parallel || self.in_parallel);
                let exits = self.exits.clone();
                if parallel {
                    self.exits.clear();
                }
                // As in a lambda.
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
                self.exits = exits;
                self.line("}");
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
                let how = match self.rng.below(4) {
                    3 if !self.exits.is_empty() => self.exit(),
                    0 if self.in_loop && !self.is_parallel => "break()".to_string(),
                    1 if self.in_loop => "continue()".to_string(),
                    _ if self.in_parallel => return,
                    _ => format!("return({})", self.expr(2)),
                };
                self.line(&format!("if {c} {{ {how} }}"));
            }
            12 => {
                let name = self.name("x");
                let (what, takes_value) = match self.rng.below(3) {
                    0 if self.in_loop && !self.is_parallel => ("break", false),
                    1 if self.in_loop => ("continue", false),
                    _ if self.in_parallel => return,
                    _ => ("return", true),
                };
                self.line(&format!("let {name} = {what};"));
                self.exits.push((name, takes_value));
            }
            _ => {
                let (name, a) = (self.name("s"), self.expr(2));
                let f = self.closure();
                self.line(&format!("let {name} = Pair {{ a: {a}, f: {f} }};"));
                self.values.push(format!("{name}.a"));
                self.closures.push(format!("{name}.f"));
            }
        }
    }

    /// A call of a continuation in scope.
    fn exit(&mut self) -> String {
        let (name, takes_value) = self.exits[self.rng.below(self.exits.len())].clone();
        let value = if takes_value { self.expr(1) } else { String::new() };
        format!("{name}({value})")
    }

    /// A continuation that takes a value.
    fn exit_value(&mut self) -> Option<String> {
        let found: Vec<String> = self.exits.iter().filter(|x| x.1).map(|x| x.0.clone()).collect();
        let out = match found.is_empty() {
            true if self.in_parallel => return None,
            true => "return".to_string(),
            false => found[self.rng.below(found.len())].clone(),
        };
        Some(match self.rng.below(3) {
            0 if out != "return" => {
                let q = self.name("q");
                format!("|{q}: u32| -> ! {out}({q} + {})", self.atom())
            }
            _ => out,
        })
    }

    fn cond(&mut self) -> String {
        let (a, b) = (self.expr(1), self.expr(1));
        let op = ["<", "==", ">=", "!="][self.rng.below(4)];
        match self.rng.below(4) {
            0 => format!("({a} {op} {b}) && {} % 2u32 == 0u32", self.atom()),
            1 => format!("({a} % 3u32) {op} ({b} % 3u32)"),
            _ => format!("({a}) {op} ({b})"),
        }
    }

    fn atom(&mut self) -> String {
        match self.rng.below(6) {
            0 => format!("{}u32", self.rng.below(7)),
            1 if self.rng.chance(30) => format!("g{}", self.rng.below(2)),
            _ if self.values.is_empty() => "1u32".into(),
            _ => self.values[self.rng.below(self.values.len())].clone(),
        }
    }

    /// A function value.
    fn closure(&mut self) -> String {
        if self.closures.is_empty() || self.rng.chance(40) {
            let param = self.name("q");
            self.values.push(param.clone());
            let own = self.own.take();
            let e = self.expr(1);
            self.own = own;
            self.values.pop();
            return format!("|{param}: u32| {e}");
        }
        self.closures[self.rng.below(self.closures.len())].clone()
    }

    fn expr(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        match self.rng.below(17) {
            0..=3 => self.atom(),
            14 => {
                let (k, x, n) = (self.atom(), self.expr(depth - 1), self.atom());
                match self.rng.below(3) {
                    0 => format!("advance(shape({k}, {x}), {n})"),
                    1 => format!("advance(Two {{ a: {x}, b: shape(3u32, shape({k}, {n})) }}, 1u32)"),
                    _ => format!("shape({k}, Two {{ a: {n}, b: {x} }}).step({n})"),
                }
            }
            15 => {
                let scrutinee = self.expr(depth - 1);
                let (a, b) = (self.expr(depth - 1), self.expr(depth - 1));
                let name = self.name("n");
                self.values.push(name.clone());
                let c = self.expr(depth - 1);
                self.values.pop();
                let bound = self.rng.below(9);
                format!("(match {scrutinee} {{ 0u32 => {a}, {name} if {name} < {bound}u32 => {c}, _ => {b} }})")
            }
            16 => {
                let lanes: Vec<String> = (0..5).map(|_| self.atom()).collect();
                let (op, i) = (["+", "-", "*", "^", ">>"][self.rng.below(5)], self.rng.below(4));
                let vector = format!("(simd[{}] {op} simd[{}])", lanes[..4].join(", "), lanes[1..].join(", "));
                if self.rng.chance(50) {
                    format!("{vector}({i})")
                } else {
                    let f = "|s: u32, x: u32| s * 5u32 + x";
                    format!("fold({vector}, {f}, {})", self.atom())
                }
            }
            4..=6 => {
                let (a, b) = (self.expr(depth - 1), self.expr(depth - 1));
                let op = ["+", "-", "*", "^", "&", "|"][self.rng.below(6)];
                format!("({a} {op} {b})")
            }
            7 => {
                let a = self.expr(depth - 1);
                let op = ["/", "%", "<<", ">>"][self.rng.below(4)];
                format!("({a} {op} {}u32)", 1 + self.rng.below(9))
            }
            8 => {
                let c = self.cond();
                let (mut a, b) = (self.expr(depth - 1), self.expr(depth - 1));
                if !self.exits.is_empty() && self.rng.chance(30) {
                    a = self.exit();
                }
                format!("(if {c} {{ {a} }} else {{ {b} }})")
            }
            9 => format!("$({})", self.atom()),
            10 => format!("table(({} & 3u32) as i32)", self.atom()),
            11 if !self.closures.is_empty() => {
                let f = self.closures[self.rng.below(self.closures.len())].clone();
                let a = self.expr(depth - 1);
                let run = if self.rng.chance(20) { "@@" } else { "" };
                format!("({run}{f}({a}))")
            }
            12 if self.rng.chance(40) => {
                let (a, f) = (self.atom(), self.closure());
                match self.exit_value() {
                    Some(out) => format!("until({a}, {f}, {out})"),
                    None => self.atom(),
                }
            }
            _ => self.call(depth),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        let recursive = self.own.clone().filter(|_| self.n_recursive < 2 && self.rng.chance(50));
        let f = match (recursive, self.functions.is_empty()) {
            (Some(f), _) => {
                self.n_recursive += 1;
                f
            }
            (None, true) => return self.atom(),
            (None, false) => self.functions[self.rng.below(self.functions.len())].clone(),
        };
        let is_own = self.own.as_ref().is_some_and(|o| o.name == f.name);
        let mut args = Vec::new();
        for i in 0..f.n_params {
            args.push(match (i, f.has_fuel) {
                (0, true) if is_own => "p0 - 1u32".to_string(),
                (0, true) if self.rng.chance(50) => format!("{}u32", self.rng.below(5)),
                (0, true) => format!("({} % 4u32)", self.atom()),
                _ => self.expr(depth.saturating_sub(1).min(1)),
            });
        }
        if f.takes_function {
            args.push(self.closure());
        }
        if f.takes_exit {
            match self.exit_value() {
                Some(out) => args.push(out),
                None => return self.atom(),
            }
        }
        let run = if self.rng.chance(10) { "@@" } else { "" };
        format!("({run}{}({}))", f.name, args.join(", "))
    }
}
