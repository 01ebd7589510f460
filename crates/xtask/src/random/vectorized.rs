//! Makes random programs around one `vectorize`: inputs of all element types; a body with divergent branches, loops,
//! memory, calls and nested loops of lanes, which only writes to its own elements; and a sum of the written values. The
//! form of the programs excludes undefined behavior: counters bound loops, fuel bounds recursion, masks bound indices,
//! divisors are odd, signed numbers are computed as unsigned ones, and every operation on floats is exact. All
//! statements use what is in scope.

mod expressions;
mod inner;

use super::{INPUTS, Rng};
use inner::{MAX_INNER, MAX_LEVEL, ROW};
use std::fmt::Write;

/// The number of elements of the input and output arrays.
const SIZE: usize = 128;
const WIDTHS: [u32; 7] = [1, 2, 3, 4, 8, 16, 64];

#[derive(Clone, Copy, PartialEq, Eq)]
struct Ty {
    name: &'static str,
    is_float: bool,
    is_signed: bool,
    /// The unsigned type of the same width.
    unsigned: &'static str,
}

const fn int(name: &'static str, is_signed: bool, unsigned: &'static str) -> Ty {
    Ty { name, is_float: false, is_signed, unsigned }
}

const fn float(name: &'static str) -> Ty {
    Ty { name, is_float: true, is_signed: false, unsigned: "" }
}

const U32: Ty = int("u32", false, "u32");
const F32: Ty = float("f32");
const BOOL: Ty = int("bool", false, "");
/// The types of variables; the first ones are chosen more often.
const TYPES: [Ty; 11] = [
    U32,
    int("i32", true, "u32"),
    F32,
    int("u8", false, "u8"),
    int("u16", false, "u16"),
    int("u64", false, "u64"),
    int("i8", true, "u8"),
    int("i16", true, "u16"),
    int("i64", true, "u64"),
    float("f64"),
    float("f16"),
];
/// The element types of input and output arrays.
const ARRAYS: [Ty; 8] = [TYPES[0], TYPES[1], TYPES[2], TYPES[3], TYPES[7], TYPES[5], TYPES[9], BOOL];

/// The fields of the structs in input and output arrays.
const FIELDS: [(&str, &str, Ty); 8] = [
    ("rgb", "r", TYPES[3]),
    ("rgb", "g", TYPES[3]),
    ("rgb", "b", TYPES[3]),
    ("cell", "a", U32),
    ("cell", "f", F32),
    ("cell", "n", TYPES[4]),
    ("cell", "c", TYPES[3]),
    ("cell", "on", BOOL),
];

#[derive(Clone)]
struct Var {
    name: String,
    ty: Ty,
    is_mutable: bool,
}

#[derive(Clone)]
struct Function {
    name: String,
    params: Vec<Ty>,
    result: Ty,
    /// Whether its first parameter is fuel, which counts down.
    has_fuel: bool,
}

struct Maker {
    rng: Rng,
    out: String,
    indent: usize,
    n_names: usize,
    vars: Vec<Var>,
    /// The lane's arrays of eight elements; its structs `Pack`; functions `fn(u32) -> u32`.
    arrays: Vec<(String, Ty)>,
    packs: Vec<String>,
    closures: Vec<String>,
    /// The names of continuations that leave or continue loops, or end the lane.
    jumps: Vec<String>,
    functions: Vec<Function>,
    /// The function that is being made, for recursive calls, and the number of these.
    own: Option<Function>,
    n_recursive: usize,
    n_calls: usize,
    /// The type that `return` takes; `None` in the body.
    result: Option<Ty>,
    /// Whether this is in the body, where inputs and outputs are in scope.
    in_body: bool,
    /// The number of lanes of the body; whether some may have ended before the others.
    width: u32,
    may_have_ended: bool,
    loops: usize,
    depth: usize,
    /// The depth of the statements of the innermost body or function, where all lanes meet.
    top: usize,
    /// The continuation that ends the lane.
    end: Option<String>,
    /// The number of loops of lanes around, with that of the body; the number of all.
    level: usize,
    n_inner: usize,
    /// The elements of `d.rows` that belong to the lane: the first, and their number.
    row: Option<(String, usize)>,
    /// The arrays of enclosing lanes, which are only read.
    frozen: Vec<(String, Ty)>,
}

/// What stands before bodies.
pub const HEAD: &str = include_str!("../../../../fuzz/lanes.impala");

/// The text of a body.
pub fn generate(seed: u64) -> String {
    let mut m = Maker {
        rng: Rng::new(seed ^ 0x1A_4E5),
        out: String::new(),
        indent: 0,
        n_names: 0,
        vars: Vec::new(),
        arrays: Vec::new(),
        packs: Vec::new(),
        closures: Vec::new(),
        jumps: Vec::new(),
        functions: Vec::new(),
        own: None,
        n_recursive: 0,
        n_calls: 0,
        result: None,
        in_body: false,
        width: 0,
        may_have_ended: false,
        loops: 0,
        depth: 0,
        top: 0,
        end: None,
        level: 0,
        n_inner: 0,
        row: None,
        frozen: Vec::new(),
    };
    for i in 0..m.rng.below(4) {
        m.function(i);
    }
    m.entry();
    m.out.push_str("extern fn all() -> u32 {\n    let mut sum = 0u32;\n");
    for inputs in INPUTS {
        let args: Vec<String> = inputs.iter().map(|x| format!("${x}u32")).collect();
        let _ = writeln!(m.out, "    sum = sum * 31u32 + entry({});", args.join(", "));
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

    fn ty(&mut self) -> Ty {
        let i = self.rng.below(TYPES.len());
        TYPES[if self.rng.chance(50) { i % 3 } else { i }]
    }

    fn function(&mut self, i: usize) {
        let has_fuel = self.rng.chance(35);
        let mut params = vec![U32];
        for _ in 0..self.rng.below(3) {
            params.push(self.ty());
        }
        let f = Function { name: format!("f{i}"), params, result: self.ty(), has_fuel };
        // A function that is always unfolded must not call itself.
        let filter = if has_fuel { "" } else { ["", "", "@"][self.rng.below(3)] };
        let params: Vec<String> = f.params.iter().enumerate().map(|(i, t)| format!("p{i}: {}", t.name)).collect();
        let _ = writeln!(self.out, "fn {filter} {}({}) -> {} {{", f.name, params.join(", "), f.result.name);
        self.vars =
            f.params.iter().enumerate().map(|(i, &ty)| Var { name: format!("p{i}"), ty, is_mutable: false }).collect();
        (self.indent, self.result, self.n_recursive, self.n_calls, self.n_inner) =
            (1, Some(f.result), 0, 0, MAX_INNER - 1);
        if has_fuel {
            let stop = self.expr(f.result, 1);
            self.line(&format!("if p0 == 0u {{ return({stop}) }}"));
            self.own = Some(f.clone());
        }
        for _ in 0..1 + self.rng.below(3) {
            self.statement();
        }
        let result = self.expr(f.result, 2);
        self.line(&result);
        self.out.push_str("}\n");
        (self.own, self.result) = (None, None);
        self.forget();
        self.functions.push(f);
    }

    fn forget(&mut self) {
        self.vars.clear();
        self.arrays.clear();
        self.packs.clear();
        self.closures.clear();
        self.jumps.clear();
    }

    fn entry(&mut self) {
        let (below, length) = (self.rng.below(9), 21 + self.rng.below(3) * 20);
        let width = WIDTHS[self.rng.below(WIDTHS.len())];
        let _ = writeln!(self.out, "extern fn entry(x: u32, y: u32, z: u32, w: u32) -> u32 {{");
        self.indent = 1;
        self.line("let d = inputs(x ^ y * 3u ^ z * 5u);");
        self.line(&format!("let lo = (x % 7u) as i32 - {below};"));
        self.line(&format!("let hi = lo + (y * 13u % {length}u + z % 9u) as i32;"));
        self.vars.extend(["x", "w"].map(|n| Var { name: n.into(), ty: U32, is_mutable: false }));
        // Values that are equal in all lanes.
        for _ in 0..self.rng.below(3) {
            let ty = self.ty();
            let (name, e) = (self.name("u"), self.expr(ty, 1));
            self.line(&format!("let {name} = {e};"));
            self.vars.push(Var { name, ty, is_mutable: false });
        }
        // The second run works on the results of the first one.
        let is_twice = self.rng.chance(20);
        if is_twice {
            self.line("for round in range(0, 2) {");
            self.indent += 1;
        }
        // One loop in six counts to an end of its type.
        if self.rng.chance(17) {
            let (ty, least, greatest) = super::ENDS[self.rng.below(super::ENDS.len())];
            let (from, to) = match self.rng.chance(70) {
                true => (format!("{greatest}{ty} - (hi - lo) as {ty}"), format!("{greatest}{ty}")),
                false => (format!("{least}{ty}"), format!("{least}{ty} + (hi - lo) as {ty}")),
            };
            self.line(&format!("let (from, to) = ({from}, {to});"));
            self.line(&format!("for end in vec({width}, from, to) {{"));
            self.indent += 1;
            self.line("let i = lo + (end - from) as i32;");
        } else {
            self.line(&format!("for i in vec({width}, lo, hi) {{"));
            self.indent += 1;
        }
        self.line("let own = i + 8;");
        self.line("let end_lane = continue;");
        self.in_body = true;
        self.width = width;
        (self.n_calls, self.n_inner, self.level) = (0, 0, 1);
        (self.end, self.row) = (Some("end_lane".into()), Some((format!("own * {ROW}"), ROW)));
        self.vars.push(Var { name: "i".into(), ty: TYPES[1], is_mutable: false });
        // Variables that change, and whose final values are written.
        let mut seen = vec![U32, U32, TYPES[1], F32];
        for _ in 0..1 + self.rng.below(3) {
            seen.push(self.ty());
        }
        for ty in &mut seen {
            let (name, e) = (self.name("m"), self.input(*ty));
            self.line(&format!("let mut {name}: {} = {e};", ty.name));
            self.vars.push(Var { name, ty: *ty, is_mutable: true });
        }
        let start = self.vars.len() - seen.len();
        let most = if self.rng.chance(15) { 20 } else { 6 };
        for _ in 0..2 + self.rng.below(most) {
            self.statement();
        }
        for i in start..self.vars.len() {
            let Var { name, ty, .. } = self.vars[i].clone();
            let bits = match ty.name {
                "f32" => format!("bits({name})"),
                "f64" => format!("bits64({name})"),
                "f16" => format!("bits({name} as f32)"),
                _ => format!("({name}) as u32"),
            };
            self.line(&format!("d.to_u32(own) = d.to_u32(own) * 3u + {bits};"));
        }
        (self.in_body, self.end, self.row, self.level) = (false, None, None, 0);
        while self.indent > 1 {
            self.indent -= 1;
            self.line("}");
        }
        self.line("result(d)");
        self.out.push_str("}\n");
        self.forget();
    }

    /// A block of statements with its own scope.
    fn block(&mut self, n: usize) {
        let vars = self.vars.len();
        let memory = (self.arrays.len(), self.packs.len(), self.closures.len(), self.jumps.len());
        self.indent += 1;
        self.depth += 1;
        for _ in 0..n {
            self.statement();
        }
        self.depth -= 1;
        self.indent -= 1;
        self.vars.truncate(vars);
        self.arrays.truncate(memory.0);
        self.packs.truncate(memory.1);
        self.closures.truncate(memory.2);
        self.jumps.truncate(memory.3);
    }

    fn statement(&mut self) {
        let is_inner = self.level > usize::from(self.in_body);
        if (self.in_body || is_inner) && self.depth == self.top && self.rng.chance(if is_inner { 25 } else { 8 }) {
            return self.across();
        }
        let kinds = if self.depth >= 3 { 9 } else { 19 };
        match self.rng.below(kinds) {
            0 => self.declare(self.depth == self.top),
            1..=4 => self.assign(),
            5 => self.memory(),
            6 => self.leave(),
            7 if self.in_body => self.output(),
            7 | 8 => self.assign(),
            9 | 10 => self.branch(),
            11..=13 => self.repeat(),
            14 => self.choose(),
            15 => self.functions_inside(),
            16 | 17 if self.level < MAX_LEVEL && self.n_inner < MAX_INNER => self.lanes_inside(),
            _ => self.pointer(),
        }
    }

    /// Exchanges values between lanes, at a place where all lanes that have not ended meet.
    fn across(&mut self) {
        let c = self.expr(BOOL, 2);
        let (ty, e) = match self.rng.below(8) {
            0 => (BOOL, format!("rv_any({c})")),
            1 => (BOOL, format!("rv_all({c})")),
            2 => (U32, format!("rv_popcount({c}) as u32")),
            3 if self.width <= 32 => (U32, format!("rv_ballot({c}) as u32")),
            // The lane before this one has not ended either.
            4 | 5 if !self.may_have_ended => {
                let e = self.expr(U32, 2);
                (U32, format!("rv_shuffle_u32({e}, (rv_lane_id() as u32 / {}u) as i32)", 1 + self.rng.below(3)))
            }
            6 if !self.may_have_ended => {
                let e = self.expr(F32, 2);
                (F32, format!("rv_shuffle_f32({e}, rv_lane_id() & {})", self.rng.below(64)))
            }
            7 => {
                let (a, b) = (self.expr(U32, 1), self.expr(U32, 1));
                (U32, format!("{}agree({a}) ^ agree({b})", ["", "@"][self.rng.below(2)]))
            }
            _ => (BOOL, format!("rv_any({c})")),
        };
        let name = self.name("v");
        self.line(&format!("let {name}: {} = {e};", ty.name));
        self.vars.push(Var { name, ty, is_mutable: false });
    }

    fn declare(&mut self, is_mutable: bool) {
        let ty = self.ty();
        let e = self.expr(ty, 3);
        let name = self.name(if is_mutable { "m" } else { "v" });
        self.line(&format!("let {}{name}: {} = {e};", if is_mutable { "mut " } else { "" }, ty.name));
        self.vars.push(Var { name, ty, is_mutable });
    }

    fn assign(&mut self) {
        let mutable: Vec<Var> = self.vars.iter().filter(|v| v.is_mutable).cloned().collect();
        if mutable.is_empty() {
            return self.declare(true);
        }
        let var = mutable[self.rng.below(mutable.len())].clone();
        let e = self.expr(var.ty, 3);
        // Signed arithmetic could overflow.
        let op = match (var.ty.is_float, var.ty.is_signed) {
            (true, _) => ["=", "=", "+=", "-="][self.rng.below(4)],
            (_, true) => ["=", "=", "^=", "&="][self.rng.below(4)],
            _ => ["=", "+=", "^=", "-="][self.rng.below(4)],
        };
        self.line(&format!("{} {op} {e};", var.name));
    }

    fn index(&mut self, mask: usize) -> String {
        match self.rng.below(3) {
            0 => format!("{}", self.rng.below(mask + 1)),
            _ => format!("({} & {mask}u) as i32", self.expr(U32, 1)),
        }
    }

    /// Declares or changes arrays and structs of the lane.
    fn memory(&mut self) {
        match self.rng.below(7) {
            5 if !self.arrays.is_empty() => {
                let (name, _) = self.arrays[self.rng.below(self.arrays.len())].clone();
                let mut part = || match self.rng.chance(70) {
                    true => format!("{name}({})", self.rng.below(8)),
                    false => format!("{name}({})", self.index(7)),
                };
                let parts: Vec<String> = (0..8).map(|_| part()).collect();
                self.line(&format!("{name} = [{}];", parts.join(", ")));
            }
            6 if !self.packs.is_empty() => {
                let name = self.packs[self.rng.below(self.packs.len())].clone();
                let (at, e) = (self.index(3), self.expr(U32, 1));
                let parts: Vec<String> = (0..4).rev().map(|i| format!("{name}.parts({i})")).collect();
                let parts = parts.join(", ").replace("parts(2)", &format!("parts({at})"));
                self.line(&format!("{name} = Pack {{ a: {name}.a ^ {e}, parts: [{parts}], f: {name}.f }};"));
            }
            0 if !self.arrays.is_empty() => {
                let (name, ty) = self.arrays[self.rng.below(self.arrays.len())].clone();
                let (at, e) = (self.index(7), self.expr(ty, 2));
                self.line(&format!("{name}({at}) = {e};"));
            }
            1 if !self.packs.is_empty() => {
                let name = self.packs[self.rng.below(self.packs.len())].clone();
                match self.rng.below(5) {
                    0 => {
                        let e = self.expr(U32, 2);
                        self.line(&format!("{name}.a = {e};"));
                    }
                    1 => {
                        let e = self.expr(F32, 2);
                        self.line(&format!("{name}.f = {e};"));
                    }
                    2 => {
                        let (at, e) = (self.index(3), self.expr(TYPES[3], 1));
                        self.line(&format!("{name}.parts({at}) = {e};"));
                    }
                    3 => self.line(&format!("change(&mut {name}, {});", self.n_names)),
                    _ => {
                        let other = self.packs[self.rng.below(self.packs.len())].clone();
                        let e = self.expr(U32, 1);
                        self.line(&format!("{name} = mixed({other}, {e});"));
                    }
                }
            }
            0..=2 | 5 => {
                let ty = self.ty();
                let (name, e) = (self.name("a"), self.expr(ty, 1));
                self.line(&format!("let mut {name} = [{e}, .. 8];"));
                let (at, e) = (self.index(7), self.expr(ty, 2));
                self.line(&format!("{name}({at}) = {e};"));
                self.arrays.push((name, ty));
            }
            3 | 6 => {
                let (name, a, f) = (self.name("s"), self.expr(U32, 2), self.expr(F32, 1));
                self.line(&format!("let mut {name} = Pack {{ a: {a}, parts: [1u8, 2u8, 3u8, 4u8], f: {f} }};"));
                self.packs.push(name);
            }
            // An element that no lane owns. The order of these additions does not matter.
            _ if self.in_body && self.rng.chance(20) => {
                let (how, e) = ([1, 3, 5, 6, 9, 10][self.rng.below(6)], self.expr(U32, 2));
                self.line(&format!("atomic({how}u, &mut d.to_u32({} + {how}), {e}, 7u, \"\");", SIZE - 20));
            }
            _ if self.in_body && self.level == 1 => {
                let (at, e) = (self.index(3), self.expr(U32, 2));
                self.line(&format!("d.scratch(own * 4 + {at}) = {e};"));
            }
            _ if self.row.is_some() => self.own_row(),
            _ => self.assign(),
        }
    }

    /// Reads and writes an element that may be another lane's, too. Where lanes of one vector meet there, the interpreter says so,
    /// and the program is left out.
    fn meet(&mut self) {
        let mask = [511, 511, 127, 31][self.rng.below(4)];
        let (at, e, name) = (self.expr(U32, 2), self.expr(U32, 2), self.name("at"));
        let at = match self.rng.chance(50) {
            true => format!("hash({at} + i as u32)"),
            false => format!("({at} + i as u32 * {}u)", 1 + self.rng.below(9)),
        };
        self.line(&format!("let {name} = ({at} & {mask}u) as i32;"));
        let op = ["=", "+=", "^="][self.rng.below(3)];
        self.line(&format!("d.scratch({name}) {op} {e};"));
    }

    /// Writes to an element that belongs to the lane.
    fn output(&mut self) {
        if self.level == 1 && self.rng.chance(8) {
            return self.meet();
        }
        if self.level > 1 || self.rng.chance(10) {
            return self.own_row();
        }
        if self.rng.chance(35) {
            return self.fields();
        }
        let n = self.rng.below(ARRAYS.len());
        let ty = ARRAYS[n];
        let e = self.expr(ty, 3);
        let name = if ty == BOOL { "bool" } else { ty.name };
        if self.rng.chance(40) {
            let c = self.expr(BOOL, 1);
            self.line(&format!("if {c} {{ d.to_{name}(own) = {e}; }}"));
        } else {
            self.line(&format!("d.to_{name}(own) = {e};"));
        }
    }

    /// Writes to a field of the lane's own struct, or to all of its fields.
    fn fields(&mut self) {
        match self.rng.below(5) {
            0 => {
                let parts: Vec<String> = (0..3).map(|_| self.expr(TYPES[3], 2)).collect();
                self.line(&format!("d.to_rgb(own) = Rgb {{ r: {}, g: {}, b: {} }};", parts[0], parts[1], parts[2]));
            }
            1 => {
                let (a, f, n) = (self.expr(U32, 2), self.expr(F32, 2), self.expr(TYPES[4], 2));
                let (c, on) = (self.expr(TYPES[3], 1), self.expr(BOOL, 1));
                self.line(&format!("d.to_cell(own) = Cell {{ a: {a}, f: {f}, n: {n}, c: {c}, on: {on} }};"));
            }
            2 => {
                let (array, k) = (["rgb", "cell"][self.rng.below(2)], self.rng.below(5));
                self.line(&format!("d.to_{array}(own) = d.of_{array}(own + {k});"));
            }
            _ => {
                let (array, field, ty) = FIELDS[self.rng.below(FIELDS.len())];
                let e = self.expr(ty, 2);
                self.line(&format!("d.to_{array}(own).{field} = {e};"));
            }
        }
    }

    fn leave(&mut self) {
        let c = self.expr(BOOL, 2);
        let how = match (self.result, self.rng.below(4)) {
            (_, 0) if self.loops > 0 => "break()".into(),
            (_, 1) if self.loops > 0 => "continue()".into(),
            (_, 2) if !self.jumps.is_empty() => format!("{}()", self.jumps[self.rng.below(self.jumps.len())]),
            (Some(ty), _) => format!("return({})", self.expr(ty, 1)),
            _ if self.end.is_some() && self.rng.chance(40) => {
                self.may_have_ended = true;
                self.end.iter().map(|end| format!("{end}()")).collect()
            }
            _ => return self.assign(),
        };
        self.line(&format!("if {c} {{ {how} }}"));
    }

    fn branch(&mut self) {
        let c = self.expr(BOOL, 2);
        self.line(&format!("if {c} {{"));
        let n = 1 + self.rng.below(3);
        self.block(n);
        if self.rng.chance(30) {
            let c = self.expr(BOOL, 1);
            self.line(&format!("}} else if {c} {{"));
            self.block(1);
        }
        if self.rng.chance(50) {
            self.line("} else {");
            let n = 1 + self.rng.below(2);
            self.block(n);
        }
        self.line("}");
    }

    /// Loops, with a number of rounds that may differ by lane, and with more conditions and exits.
    fn repeat(&mut self) {
        let most = 2 + self.rng.below(6);
        let n = match self.rng.chance(25) {
            true => format!("{most}u"),
            false => format!("{} % {most}u", self.expr(U32, 1)),
        };
        let k = self.name("k");
        let own = self.own.take();
        if self.rng.chance(10) {
            // In steps to an end of a type, counted beside it.
            let (ty, least, greatest) = super::ENDS[self.rng.below(super::ENDS.len())];
            let step = 1 + self.rng.below(12);
            let (a, b) = match self.rng.chance(70) {
                true => (format!("{greatest}{ty} - ({n}) as {ty} * {step}{ty}"), format!("{greatest}{ty}")),
                false => (format!("{least}{ty}"), format!("{least}{ty} + ({n}) as {ty} * {step}{ty}")),
            };
            self.line(&format!("let mut {k}n = 0u;"));
            self.line(&format!("for {k}i in range_step({a}, {b}, {step}{ty}) {{"));
            self.indent += 1;
            self.line(&format!("let {k} = {k}n ^ ({k}i as u32);"));
            self.line(&format!("{k}n++;"));
        } else if self.rng.chance(50) {
            let generator = ["range", "range", "range_rev"][self.rng.below(3)];
            self.line(&format!("for {k}i in {generator}(0, ({n}) as i32) {{"));
            self.indent += 1;
            self.line(&format!("let {k} = {k}i as u32;"));
        } else {
            let more = if self.rng.chance(40) { format!(" && {}", self.expr(BOOL, 1)) } else { String::new() };
            self.line(&format!("let mut {k} = {n};"));
            self.line(&format!("while {k} > 0u{more} {{"));
            self.indent += 1;
            self.line(&format!("{k} -= 1u;"));
        }
        let jumps = self.jumps.len();
        if self.rng.chance(30) {
            let (j, what) = (self.name("j"), ["break", "continue"][self.rng.below(2)]);
            self.line(&format!("let {j} = {what};"));
            self.jumps.push(j);
        }
        self.indent -= 1;
        self.loops += 1;
        self.vars.push(Var { name: k, ty: U32, is_mutable: false });
        let at = self.vars.len() - 1;
        let n = 1 + self.rng.below(3);
        self.block(n);
        self.vars.remove(at);
        self.jumps.truncate(jumps);
        self.loops -= 1;
        self.own = own;
        self.line("}");
    }

    /// A `match`.
    fn choose(&mut self) {
        let n = 2 + self.rng.below(5);
        let e = self.expr(U32, 2);
        self.line(&format!("match {e} % {}u {{", n + 1));
        self.indent += 1;
        for i in 0..n {
            let guard = if self.rng.chance(20) { format!(" if {}", self.expr(BOOL, 1)) } else { String::new() };
            self.line(&format!("{i}u{guard} => {{"));
            self.block(1);
            self.line("}");
        }
        self.line("_ => {");
        self.block(1);
        self.line("}");
        self.indent -= 1;
        self.line("}");
    }

    /// Lambdas, which may change outer variables, and functions that jump to each other.
    fn functions_inside(&mut self) {
        if self.rng.chance(50) {
            let (name, q) = (self.name("c"), self.name("q"));
            let own = self.own.take();
            self.vars.push(Var { name: q.clone(), ty: U32, is_mutable: false });
            let e = self.expr(U32, 2);
            self.vars.pop();
            self.own = own;
            let target = self.vars.iter().rfind(|v| v.is_mutable && v.ty == U32).map(|v| v.name.clone());
            let body = match target.filter(|_| self.rng.chance(50)) {
                Some(target) => format!("-> u32 {{ {target} += {q}; {e} }}"),
                None => e,
            };
            // A function that differs from lane to lane.
            let other = match self.rng.chance(30) {
                true => format!("if {} {{ triple }} else ", self.expr(BOOL, 1)),
                false => String::new(),
            };
            let (open, close) = if other.is_empty() { ("", "") } else { ("{ ", " }") };
            self.line(&format!("let {name} = {other}{open}|{q}: u32| {body}{close};"));
            self.closures.push(name);
            return;
        }
        // A loop with several entries, which is not structured.
        let (name, own) = (self.name("go"), self.own.take());
        let vars = self.vars.len();
        let steps = ["left", "right", "over"];
        self.line(&format!("fn {name}(fuel: u32, at: u32) -> u32 {{"));
        self.indent += 1;
        for step in steps {
            for param in ["n", "t"] {
                self.vars.push(Var { name: param.into(), ty: U32, is_mutable: false });
            }
            let (stop, c, to, e1, e2) =
                (self.atom(U32), self.expr(BOOL, 1), self.rng.below(3), self.expr(U32, 1), self.expr(U32, 1));
            let other = steps[(to + 1) % 3];
            self.line(&format!(
                "fn {step}(n: u32, t: u32) -> u32 {{ if n == 0u {{ {stop} }} else if {c} {{ {}(n - 1u, {e1}) }} else {{ \
                 {other}(n - 1u, t + {e2}) }} }}",
                steps[to]
            ));
            self.vars.truncate(vars);
        }
        self.line("if at % 2u == 0u { left(fuel, at) } else { right(fuel, at) }");
        self.indent -= 1;
        self.line("}");
        self.own = own;
        let (v, e1, e2) = (self.name("v"), self.expr(U32, 1), self.expr(U32, 1));
        self.line(&format!("let {v} = {name}({e1} % 9u, {e2});"));
        self.vars.push(Var { name: v, ty: U32, is_mutable: false });
    }

    /// A pointer to one of two variables.
    fn pointer(&mut self) {
        let mutable: Vec<Var> =
            self.vars.iter().filter(|v| v.is_mutable && !v.name.starts_with('*')).cloned().collect();
        if mutable.is_empty() {
            return self.declare(true);
        }
        let a = mutable[self.rng.below(mutable.len())].clone();
        let same: Vec<&Var> = mutable.iter().filter(|v| v.ty == a.ty).collect();
        let b = same[self.rng.below(same.len())].name.clone();
        let (name, c, e) = (self.name("at"), self.expr(BOOL, 2), self.expr(a.ty, 2));
        self.line(&format!("let {name} = if {c} {{ &mut {} }} else {{ &mut {b} }};", a.name));
        self.line(&format!("*{name} = {e};"));
        self.vars.push(Var { name: format!("*{name}"), ty: a.ty, is_mutable: true });
    }
}
