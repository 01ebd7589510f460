//! The graph as text: source names, values used once nested, one new node changes one line.
//!
//! ```text
//! graph
//! cont pow(m: mem, x: i32, n: i32, ret: cn(mem, i32)) @(?n) = branch(m, eq(n, 0), then, else)
//!   cont then(m.1: mem) = ret(m.1, 1)
//!   cont else(m.2: mem) = pow(m.2, x, add(n, -1), k)
//!   cont k(m.3: mem, r: i32) = ret(m.3, mul(r, x))
//! ```

use crate::cont::Linkage;
use crate::facts::Nest;
use crate::ops::{Effect, Op, Rule};
use crate::scalar::float_value;
use crate::types::{Prim, Ty, TyKind};
use crate::world::{Cont, Global, Node, Val, World};
use nyala_base::{SideTable, Span};
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::ops::Range;

/// Maximal indent of nested continuations, and maximal depth of nested values.
const MAX_INDENT: usize = 20;
const MAX_NESTED: u32 = 6;
/// Maximal number of operations searched for a line's origins.
const MAX_ORIGINS: usize = 1000;

/// Prints all that is reachable from the exported continuations.
pub fn print(w: &World) -> String {
    print_roots(w, &w.roots())
}

/// Prints all that is reachable from `roots`.
pub fn print_roots(w: &World, roots: &[Cont]) -> String {
    let (nest, globals) = nest(w, roots);
    let mut p = Printer::new(w, &nest, globals);
    p.run();
    p.out
}

/// Finds the free values only of continuations that are operands: the order of operations needs these.
fn nest(w: &World, roots: &[Cont]) -> (Nest, Vec<Global>) {
    let mut in_values: SideTable<Cont, bool> = SideTable::default();
    for v in (0..w.n_vals() as u32).map(Val) {
        for &a in w.args(v) {
            if let Node::Cont(k) = w.node(a) {
                in_values[k] = true;
            }
        }
    }
    let (mut nest, globals) = Nest::of_functions(w, roots, |k| in_values[k]);
    nest.find_parents(w);
    (nest, globals)
}

/// A line of the printed text.
pub struct Line {
    /// Its bytes in the text, without the line break.
    pub range: Range<usize>,
    /// The continuation whose header or operation the line shows.
    pub cont: Option<Cont>,
    /// Source ranges of the call or the operations on the line.
    pub origins: Vec<Span>,
}

/// Prints like [`print()`], and says what each line shows.
pub fn print_lines(w: &World) -> (String, Vec<Line>) {
    let (nest, globals) = nest(w, &w.roots());
    let mut p = Printer::new(w, &nest, globals);
    p.lines = Some(Vec::new());
    p.run();
    (p.out, p.lines.unwrap_or_default())
}

/// A literal as text, with its type unless that is `i32` or `bool`.
pub fn literal(types: &crate::Types, ty: Ty, bits: u64) -> String {
    match types.as_prim(ty) {
        Some(Prim::Bool) => if bits == 1 { "true" } else { "false" }.into(),
        Some(p) if p.is_float() => {
            // Single precision shows a half, too, so that it reads back.
            let text = match p {
                Prim::F64 => format!("{:?}", f64::from_bits(bits)),
                _ => format!("{:?}", float_value(p, bits) as f32),
            };
            float_text(float_value(p, bits), text, bits, p.name())
        }
        Some(Prim::I32) => format!("{}", bits as i64),
        Some(p) if p.is_signed() => format!("{}{}", bits as i64, p.name()),
        Some(p) => format!("{bits}{}", p.name()),
        None => format!("addr[{}]({bits})", types.display(ty)),
    }
}

/// Prints NaNs and infinities by their bits.
/// Writes bytes as text in quotes; those that are not printable as `\x0a`.
pub fn write_bytes(bytes: &[u8], out: &mut String) {
    out.push('"');
    for &b in bytes {
        match b {
            b' '..=b'~' if b != b'"' && b != b'\\' => out.push(b as char),
            _ => {
                let _ = write!(out, "\\x{b:02x}");
            }
        }
    }
    out.push('"');
}

fn float_text(x: f64, text: String, bits: u64, suffix: &str) -> String {
    if x.is_finite() { format!("{text}{suffix}") } else { format!("0x{bits:x}_{suffix}") }
}

struct Printer<'a> {
    w: &'a World,
    nest: &'a Nest,
    globals: Vec<Global>,
    uses: SideTable<Val, u32>,
    names: SideTable<Val, Option<String>>,
    cont_names: SideTable<Cont, Option<String>>,
    global_names: SideTable<Global, Option<String>>,
    taken: FxHashMap<String, u32>,
    out: String,
    lines: Option<Vec<Line>>,
}

impl<'a> Printer<'a> {
    fn new(w: &'a World, nest: &'a Nest, globals: Vec<Global>) -> Printer<'a> {
        Printer {
            w,
            nest,
            globals,
            uses: SideTable::default(),
            names: SideTable::default(),
            cont_names: SideTable::default(),
            global_names: SideTable::default(),
            taken: FxHashMap::default(),
            out: String::from("graph\n"),
            lines: None,
        }
    }

    fn run(&mut self) {
        self.declare_types();
        let conts = self.nest.conts.clone();
        self.count_uses(&conts);
        let mut children: SideTable<Cont, Vec<Cont>> = SideTable::default();
        let mut tops = Vec::new();
        for &k in &conts {
            let base = self.w.name(k).to_string();
            self.cont_names[k] = Some(self.fresh(&base));
        }
        self.print_globals();
        for &k in &conts {
            match self.nest.parent(k) {
                Some(p) => children[p].push(k),
                None => tops.push(k),
            }
        }
        let mut stack: Vec<(Cont, usize)> = tops.iter().rev().map(|&k| (k, 0)).collect();
        while let Some((k, depth)) = stack.pop() {
            self.print_cont(k, depth);
            stack.extend(children[k].iter().rev().map(|&c| (c, depth + 1)));
        }
    }

    fn declare_types(&mut self) {
        for (_, s) in self.w.types.structs() {
            let fields: Vec<String> =
                s.fields.iter().map(|(name, ty)| format!("{name}: {}", self.w.types.display(*ty))).collect();
            let _ = writeln!(self.out, "struct {} {{ {} }}", s.name, fields.join(", "));
        }
    }

    fn fresh(&mut self, base: &str) -> String {
        let base = if base.is_empty() { "_" } else { base };
        let n = self.taken.entry(base.to_string()).or_insert(0);
        *n += 1;
        let name = if *n == 1 { base.to_string() } else { format!("{base}.{}", *n - 1) };
        if *n > 1 && self.taken.contains_key(&name) {
            return self.fresh(base);
        }
        self.taken.entry(name.clone()).or_insert(1);
        name
    }

    fn count_uses(&mut self, conts: &[Cont]) {
        for &k in conts {
            let Some(body) = self.w.body(k) else { continue };
            let mut roots: Vec<Val> = vec![body.callee];
            roots.extend(body.args);
            for &op in self.nest.ops(k) {
                roots.extend(self.w.args(op));
            }
            // Operations without an owner count their operands at every use.
            while let Some(v) = roots.pop() {
                self.uses[v] += 1;
                if matches!(self.w.node(v), Node::Op(_)) && self.nest.owner(v).is_none() {
                    roots.extend(self.w.args(v));
                }
            }
        }
    }

    fn print_globals(&mut self) {
        let globals = std::mem::take(&mut self.globals);
        for &g in &globals {
            let name = self.w.global(g).name.clone();
            self.global_names[g] = Some(self.fresh(&name));
        }
        for &g in &globals {
            let data = self.w.global(g);
            let mutable = if data.mutable { "mut " } else { "" };
            let name = self.global_names[g].clone().unwrap_or_default();
            let _ = write!(self.out, "static {mutable}{name}: {}", self.w.types.display(data.ty));
            if let Some(init) = data.init {
                let text = self.value(init, 0);
                let _ = write!(self.out, " = {text}");
            }
            self.out.push('\n');
        }
    }

    fn print_cont(&mut self, k: Cont, depth: usize) {
        let w = self.w;
        let data = w.cont(k);
        let indent = "  ".repeat(depth.min(MAX_INDENT));
        for (i, &p) in w.params(k).iter().enumerate() {
            let default = if w.ty(p) == w.types.mem() { "m" } else { "x" };
            let base = w.param_name(k, i).unwrap_or(default).to_string();
            self.names[p] = Some(self.fresh(&base));
        }
        let mut lets = Vec::new();
        for &op in self.nest.ops(k) {
            if !self.is_nested(op) {
                let base = if w.types.as_prim(w.ty(op)).is_none() && w.ty(op) == w.types.mem() { "m" } else { "t" };
                self.names[op] = Some(self.fresh(base));
                lets.push(op);
            }
        }
        let mut head = String::new();
        match &*data.linkage {
            Linkage::Internal => {}
            Linkage::Exported(symbol) if **symbol == *w.name(k) => head.push_str("export "),
            Linkage::Exported(symbol) => {
                let _ = write!(head, "export {symbol:?} ");
            }
            Linkage::Foreign(symbol) if **symbol == *w.name(k) => head.push_str("foreign "),
            Linkage::Foreign(symbol) => {
                let _ = write!(head, "foreign {symbol:?} ");
            }
            Linkage::Asm(info) => {
                let _ = write!(head, "asm {:?} {:?} ", info.template, info.constraints);
                for (is_set, word) in
                    [(info.volatile, "volatile "), (info.align_stack, "alignstack "), (info.intel, "intel ")]
                {
                    head.push_str(if is_set { word } else { "" });
                }
            }
        }
        let params: Vec<String> = w
            .params(k)
            .iter()
            .enumerate()
            .map(|(i, &p)| {
                let filter = match data.filter.params.get(i).copied().flatten() {
                    Some(f) => format!("{} ", self.filter(f)),
                    None => String::new(),
                };
                format!("{filter}{}: {}", self.value(p, 0), w.types.display(w.ty(p)))
            })
            .collect();
        let name = self.cont_names[k].clone().unwrap_or_default();
        let all = data.filter.all.map_or(String::new(), |f| format!(" {}", self.filter(f)));
        let _ = write!(self.out, "{indent}{head}cont {name}({}){all}", params.join(", "));
        if let Some(body) = w.body(k) {
            let callee = self.value(body.callee, 0);
            let args: Vec<String> = body.args.iter().map(|&a| self.value(a, 0)).collect();
            let _ = write!(self.out, " = {callee}({})", args.join(", "));
        }
        self.out.push('\n');
        self.note_line(k, None);
        for op in lets {
            let name = self.names[op].clone().unwrap_or_default();
            let text = self.op_text(op, 0);
            let _ = writeln!(self.out, "{indent}  let {name} = {text}");
            self.note_line(k, Some(op));
        }
    }

    /// Notes that the last line shows the operation `op` or the header of `k`; new lines before it belong to no
    /// continuation.
    fn note_line(&mut self, k: Cont, op: Option<Val>) {
        let Some(lines) = &self.lines else { return };
        let mut at = lines.last().map_or(0, |l| l.range.end + 1);
        let data = self.w.cont(k);
        let mut origins = vec![op.map_or(data.origin, |op| self.w.origin(op))];
        match (op, self.w.body(k)) {
            (Some(op), _) => self.add_origins(self.w.args(op), &mut origins),
            (None, Some(body)) => {
                origins.push(body.origin);
                self.add_origins(&[body.callee], &mut origins);
                self.add_origins(body.args, &mut origins);
            }
            (None, None) => {}
        }
        origins.retain(|o| !o.is_none());
        origins.sort_unstable();
        origins.dedup();
        let mut new = Vec::new();
        for line in self.out[at..].lines() {
            new.push(Line { range: at..at + line.len(), cont: None, origins: Vec::new() });
            at += line.len() + 1;
        }
        if let Some(last) = new.last_mut() {
            (last.cont, last.origins) = (Some(k), origins);
        }
        self.lines.get_or_insert_default().extend(new);
    }

    /// Adds the origins of operations that are printed inline, where they are used.
    fn add_origins(&self, vals: &[Val], origins: &mut Vec<Span>) {
        let mut work = vals.to_vec();
        for _ in 0..MAX_ORIGINS {
            let Some(v) = work.pop() else { return };
            if self.names[v].is_none() && self.w.as_op(v).is_some() {
                origins.push(self.w.origin(v));
                work.extend(self.w.args(v));
            }
        }
    }

    fn filter(&self, f: Val) -> String {
        if self.w.as_lit(f) == Some(1) { "@".into() } else { format!("@({})", self.value(f, 0)) }
    }

    /// Whether an operation with an owner is printed inside its only user.
    fn is_nested(&self, op: Val) -> bool {
        self.uses[op] == 1
            && self.w.as_op(op).is_some_and(|o| o.effect() == Effect::Total)
            && self.height(op) < MAX_NESTED
    }

    fn height(&self, v: Val) -> u32 {
        let mut height = 0;
        let mut level: Vec<Val> = vec![v];
        while !level.is_empty() && height <= MAX_NESTED {
            height += 1;
            level = level
                .iter()
                .flat_map(|&v| self.w.args(v))
                .copied()
                .filter(|&a| matches!(self.w.node(a), Node::Op(_)) && self.names[a].is_none())
                .collect();
        }
        height
    }

    fn value(&self, v: Val, depth: u32) -> String {
        if let Some(name) = &self.names[v] {
            return name.clone();
        }
        let w = self.w;
        match w.node(v) {
            Node::Lit(bits) => literal(&w.types, w.ty(v), bits),
            Node::Undef => format!("undef[{}]", w.types.display(w.ty(v))),
            Node::Param(k, i) => format!("{k}#{i}"),
            Node::Cont(k) => self.cont_names[k].clone().unwrap_or_else(|| k.to_string()),
            Node::Builtin(b) => b.name().into(),
            Node::Global(g) => format!("&{}", self.global_names[g].clone().unwrap_or_else(|| g.to_string())),
            Node::Op(_) if depth > 200 => "…".into(),
            Node::Op(_) => self.op_text(v, depth),
        }
    }

    /// The bytes of an array of known bytes.
    fn bytes(&self, v: Val) -> Option<Vec<u8>> {
        let w = self.w;
        let TyKind::Array(elem, 1..) = w.types.kind(w.ty(v)) else { return None };
        if w.node(v) != Node::Op(Op::Array) || w.types.as_prim(*elem) != Some(Prim::U8) {
            return None;
        }
        w.args(v).iter().map(|&a| w.as_lit(a).map(|b| b as u8)).collect()
    }

    fn op_text(&self, v: Val, depth: u32) -> String {
        let w = self.w;
        let Node::Op(op) = w.node(v) else { return self.value(v, depth) };
        if let Some(bytes) = self.bytes(v) {
            let mut text = String::new();
            write_bytes(&bytes, &mut text);
            return text;
        }
        let args: Vec<String> = w.args(v).iter().map(|&a| self.value(a, depth + 1)).collect();
        if op == Op::Known {
            return format!("?{}", args[0]);
        }
        let ty = match op.rule() {
            Rule::Stated => {
                let ty = w.ty(v);
                let shown = match (op, w.types.kind(ty)) {
                    (Op::Slot | Op::Alloc, TyKind::Tuple(elems)) => {
                        let pointee = w.types.pointee(elems[1]).unwrap_or(ty);
                        if op == Op::Alloc { w.types.part(pointee, 0).unwrap_or(pointee) } else { pointee }
                    }
                    _ => ty,
                };
                format!("[{}]", w.types.display(shown))
            }
            _ => String::new(),
        };
        let fast = match (w.is_fast(v), op) {
            (false, _) => "",
            (true, Op::Store) => "stream ",
            (true, _) => "fast ",
        };
        format!("{fast}{}{ty}({})", op.name(), args.join(", "))
    }
}
