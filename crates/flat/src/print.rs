//! Flat SSA as text. Names are the source's, with a suffix such as `.1` where taken; nameless values are `v` and a
//! number.

use crate::data::*;
use crate::vector::VectorOp;
use nyala_base::Id;
use nyala_ir::lanes::PLATFORMS;
use nyala_ir::scalar::float_value;
use nyala_ir::{Op, Prim, Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::{self, Write};

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&print(self, &|_| true))
    }
}

/// Makes names distinct from those given out before, close to the wanted ones.
#[derive(Default)]
pub(crate) struct Names {
    used: FxHashSet<String>,
    next: FxHashMap<String, u32>,
}

impl Names {
    pub(crate) fn pick(&mut self, wanted: &str) -> String {
        let wanted = if is_plain(wanted) { wanted } else { "x" };
        if self.used.insert(wanted.to_string()) {
            return wanted.to_string();
        }
        let next = self.next.entry(wanted.to_string()).or_insert(0);
        loop {
            *next += 1;
            let name = format!("{wanted}.{next}");
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Whether the reader takes a name as one word.
fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '.')
        && !matches!(name, "undef" | "true" | "false" | "zero" | "call" | "call_indirect")
}

/// Names of the functions, then of the globals, as the text shows them.
pub(crate) fn module_names(module: &Module) -> (Vec<String>, Vec<String>) {
    let mut names = Names::default();
    let funcs = module.funcs.iter().map(|f| names.pick(&f.name)).collect();
    let globals = module.globals.iter().map(|g| names.pick(&g.name)).collect();
    (funcs, globals)
}

/// Prints a module with the functions for which `shown` holds.
pub fn print(module: &Module, shown: &dyn Fn(&Function) -> bool) -> String {
    let mut out = String::from("flat\n");
    for (_, data) in module.types.structs() {
        let fields: Vec<String> =
            data.fields.iter().map(|(name, ty)| format!("{name}: {}", module.types.display(*ty))).collect();
        let _ = writeln!(out, "struct {} {{ {} }}", data.name, fields.join(", "));
    }
    let (funcs, globals) = module_names(module);
    for (global, name) in module.globals.iter().zip(&globals) {
        let mutable = if global.mutable { "mut " } else { "" };
        let space = if global.space == 0 { String::new() } else { format!("space({}) ", global.space) };
        let ty = module.types.display(global.ty);
        let _ = write!(out, "global {space}{mutable}{name}: {ty} = ");
        print_init(module, &global.init, Some(global.ty), &funcs, &globals, &mut out);
        out.push('\n');
    }
    for (function, name) in module.funcs.iter().zip(&funcs) {
        if shown(function) {
            let (names, numbers) = value_names(function);
            Printer { module, function, funcs: &funcs, globals: &globals, names, numbers }.print(name, &mut out);
        }
    }
    out
}

/// Names of values and, for those without, numbers in the order of definition, so that a new value changes few lines.
fn value_names(function: &Function) -> (FxHashMap<Value, String>, Vec<u32>) {
    let defined = |block: &BlockData| -> Vec<Value> {
        block.params.iter().copied().chain(block.insts.iter().filter_map(|i| i.result)).collect()
    };
    // Names that look like the numbers of nameless values.
    let is_number = |name: &str| name.strip_prefix('v').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    let any_number = function.blocks.iter().flat_map(defined).any(|v| is_number(function.name(v)));
    let (mut names, mut numbers) = (FxHashMap::default(), vec![0; function.values.len()]);
    let (mut distinct, mut n_nameless) = (Names::default(), 0);
    for v in function.blocks.iter().flat_map(defined) {
        let wanted = function.name(v);
        if !wanted.is_empty() {
            names.insert(v, distinct.pick(wanted));
            continue;
        }
        n_nameless += 1;
        numbers[v.idx()] = n_nameless;
        if any_number {
            names.insert(v, distinct.pick(&format!("v{n_nameless}")));
        }
    }
    (names, numbers)
}

/// Prints only the functions, without heading, structs and globals.
pub fn print_functions(module: &Module) -> String {
    let text = print(module, &|_| true);
    let is_data = |line: &&str| *line == "flat" || line.starts_with("struct ") || line.starts_with("global ");
    text.lines().skip_while(is_data).map(|line| format!("{line}\n")).collect()
}

fn print_bits(prim: Prim, bits: u64, out: &mut impl Write) -> fmt::Result {
    match prim {
        Prim::Bool => write!(out, "{}", bits != 0),
        _ if prim.is_float() => {
            let x = float_value(prim, bits);
            match prim {
                _ if !x.is_finite() => write!(out, "0x{bits:x}_{}", prim.name()),
                Prim::F64 => write!(out, "{x:?}f64"),
                // Single precision shows a half, too, so that it reads back.
                _ => write!(out, "{:?}{}", x as f32, prim.name()),
            }
        }
        _ if prim.is_signed() => write!(out, "{}{}", bits as i64, prim.name()),
        _ => write!(out, "{bits}{}", prim.name()),
    }
}

fn print_init(module: &Module, init: &Init, ty: Option<Ty>, funcs: &[String], globals: &[String], out: &mut String) {
    match init {
        Init::Zero => out.push_str("zero"),
        Init::Undef => out.push_str("undef"),
        Init::Bits(bits) => match ty.and_then(|t| module.types.as_prim(t)) {
            Some(prim) => drop(print_bits(prim, *bits, out)),
            None => {
                let _ = write!(out, "{bits}u64");
            }
        },
        Init::Bytes(bytes) => nyala_ir::print::write_bytes(bytes, out),
        Init::Parts(parts) => {
            out.push('(');
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                let part_ty = ty.and_then(|t| module.types.part(t, i as u64));
                print_init(module, part, part_ty, funcs, globals, out);
            }
            out.push(')');
        }
        Init::Global(global, offset) => {
            let _ = write!(out, "${} + {offset}", globals[global.idx()]);
        }
        Init::Func(func) => {
            let _ = write!(out, "@{}", funcs[func.idx()]);
        }
    }
}

struct Printer<'a> {
    module: &'a Module,
    function: &'a Function,
    funcs: &'a [String],
    globals: &'a [String],
    /// Names of the values that have one.
    names: FxHashMap<Value, String>,
    /// Numbers of the values that have no name.
    numbers: Vec<u32>,
}

impl Printer<'_> {
    fn ty_list(&self, tys: &[Ty]) -> String {
        tys.iter().map(|&t| self.module.types.display(t)).collect::<Vec<_>>().join(", ")
    }

    fn print(self, name: &str, out: &mut String) {
        let function = self.function;
        let (keyword, symbol) = match &function.linkage {
            Linkage::Internal if function.is_piece => ("piece", None),
            Linkage::Internal => ("func", None),
            Linkage::Callback => ("callback", None),
            Linkage::Exported(s) => ("export", Some(s)),
            Linkage::Kernel(s, _) => ("kernel", Some(s)),
            Linkage::Foreign(s) => ("foreign", Some(s)),
            Linkage::Asm(_) => ("asm", None),
        };
        let _ = write!(out, "{keyword} ");
        if let Linkage::Kernel(_, [x, y, z]) = &function.linkage {
            let _ = write!(out, "[{x}, {y}, {z}] ");
        }
        if let Linkage::Asm(info) = &function.linkage {
            for text in [&info.template, &info.constraints] {
                nyala_ir::print::write_bytes(text.as_bytes(), out);
                out.push(' ');
            }
            for (is_set, word) in
                [(info.volatile, "volatile "), (info.align_stack, "alignstack "), (info.intel, "intel ")]
            {
                out.push_str(if is_set { word } else { "" });
            }
        }
        if let Some(symbol) = symbol {
            let _ = write!(out, "{symbol:?} ");
        }
        let _ = write!(out, "{name}({}) -> ({})", self.ty_list(&function.params), self.ty_list(&function.rets));
        if function.is_foreign() {
            out.push('\n');
            return;
        }
        out.push_str(" {\n");
        let mut block_names = Names::default();
        let blocks: Vec<String> = function.blocks.iter().map(|b| block_names.pick(&b.name)).collect();
        for (i, (block, name)) in function.blocks.iter().zip(&blocks).enumerate() {
            let params: Vec<String> = block
                .params
                .iter()
                .map(|&p| match i {
                    0 => self.name(p).to_string(),
                    _ => format!("{}: {}", self.name(p), self.module.types.display(function.ty(p))),
                })
                .collect();
            let _ = writeln!(out, "{name}({}):", params.join(", "));
            for inst in &block.insts {
                self.print_inst(inst, out);
            }
            self.print_terminator(&block.term, &blocks, out);
        }
        out.push_str("}\n");
    }

    fn name(&self, v: Value) -> impl fmt::Display {
        fmt::from_fn(move |f| match self.names.get(&v) {
            Some(name) => f.write_str(name),
            None => write!(f, "v{}", self.numbers[v.idx()]),
        })
    }

    fn value(&self, v: Value) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let data = &self.function.values[v.idx()];
            let ty = || self.module.types.display(data.ty);
            let Def::Const(constant) = data.def else { return write!(f, "{}", self.name(v)) };
            match constant {
                Const::Bits(bits) => match self.module.types.as_prim(data.ty) {
                    Some(prim) => print_bits(prim, bits, f),
                    None => write!(f, "ptr[{}] {bits}", ty()),
                },
                Const::Undef => write!(f, "undef[{}]", ty()),
                Const::Func(func) => write!(f, "@{}", self.funcs[func.idx()]),
                Const::CFunc(func) => write!(f, "c@{}", self.funcs[func.idx()]),
                Const::Global(global) => {
                    // Usually the address is of the whole global; a cast shows another type.
                    let whole = &self.module.globals[global.idx()];
                    let plain = matches!(self.module.types.kind(data.ty), TyKind::Ptr { pointee, space }
                        if *pointee == whole.ty && *space == whole.space);
                    let name = &self.globals[global.idx()];
                    if plain { write!(f, "${name}") } else { write!(f, "$[{}]{name}", ty()) }
                }
            }
        })
    }

    fn values(&self, values: &[Value]) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            for (i, &v) in values.iter().enumerate() {
                write!(f, "{}{}", if i > 0 { ", " } else { "" }, self.value(v))?;
            }
            Ok(())
        })
    }

    fn print_inst(&self, inst: &Inst, out: &mut String) {
        out.push_str("  ");
        if let Some(r) = inst.result {
            let _ = write!(out, "{}: {} = ", self.name(r), self.module.types.display(self.function.ty(r)));
        }
        out.push_str(match (inst.fast, inst.op) {
            (false, _) => "",
            (true, InstOp::Op(Op::Store) | InstOp::Vector(VectorOp::Store)) => "stream ",
            (true, _) => "fast ",
        });
        let _ = match inst.op {
            InstOp::Op(op) => writeln!(out, "{}({})", op.name(), self.values(&inst.args)),
            InstOp::Vector(op) => writeln!(out, "{}({})", op.name(), self.values(&inst.args)),
            InstOp::Vectorize(f, lanes, align) => {
                let align = if align == 0 { String::new() } else { format!(", {align}") };
                writeln!(out, "vectorize[{lanes}{align}] {}({})", self.funcs[f.idx()], self.values(&inst.args))
            }
            InstOp::Launch(f, platform) => {
                let platform = PLATFORMS.get(platform as usize).unwrap_or(&"?");
                writeln!(out, "launch[{platform}] {}({})", self.funcs[f.idx()], self.values(&inst.args))
            }
            InstOp::Call(f) => writeln!(out, "call {}({})", self.funcs[f.idx()], self.values(&inst.args)),
            InstOp::CallIndirect => match inst.args.split_first() {
                Some((&code, args)) => {
                    writeln!(out, "call_indirect {}({})", self.value(code), self.values(args))
                }
                None => writeln!(out, "call_indirect"),
            },
        };
    }

    fn print_terminator(&self, term: &Terminator, blocks: &[String], out: &mut String) {
        let edge = |e: &Edge| format!("{}({})", blocks[e.block.idx()], self.values(&e.args));
        let _ = match term {
            Terminator::Jump(e) => writeln!(out, "  jump {}", edge(e)),
            Terminator::Branch { cond, then, els } => {
                writeln!(out, "  branch {}, {}, {}", self.value(*cond), edge(then), edge(els))
            }
            Terminator::Return(args) => writeln!(out, "  return({})", self.values(args)),
            Terminator::TailCall { callee: Callee::Func(f), args, .. } => {
                writeln!(out, "  tail_call {}({})", self.funcs[f.idx()], self.values(args))
            }
            Terminator::TailCall { callee: Callee::Indirect(v), args, .. } => {
                writeln!(out, "  tail_call_indirect {}({})", self.value(*v), self.values(args))
            }
            Terminator::Unreachable => writeln!(out, "  unreachable"),
        };
    }
}
