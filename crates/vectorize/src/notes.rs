//! Notes for `nyala explain --vector`: for each value, branch, loop, access and call, how it was translated, and why.
//!
//! Notes are written while a version is built, if they are requested.

use crate::linear::Builder;
use crate::shapes::{Shape, is_address};
use crate::versions::Versions;
use nyala_base::Span;
use nyala_flat::*;
use nyala_ir::{Op, Prim, TyKind, layout};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    Version,
    Value,
    Branch,
    Loop,
    Access,
    Call,
}

impl Subject {
    pub fn name(self) -> &'static str {
        match self {
            Subject::Version => "version",
            Subject::Value => "value",
            Subject::Branch => "branch",
            Subject::Loop => "loop",
            Subject::Access => "access",
            Subject::Call => "call",
        }
    }
}

/// How a part of a function was translated in one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The version's name, with its shapes.
    pub version: String,
    pub span: Span,
    pub subject: Subject,
    /// Name of the value, if it has one.
    pub name: String,
    pub text: String,
    /// Number of loops around it.
    pub depth: usize,
    /// Whether it is slow, and in an inner loop.
    pub is_slow: bool,
}

impl Versions {
    /// Corrects notes on scatters that became parts of one store.
    pub fn note_fields(&mut self, version: &str, stores: &[Span]) {
        for note in self.notes.iter_mut().flatten().rev().take_while(|n| n.version == version) {
            if note.subject == Subject::Access && stores.contains(&note.span) {
                note.text = "with other fields: shuffles and one long store".into();
                note.is_slow = false;
            }
        }
    }
}

impl Builder<'_> {
    fn explains(&self) -> bool {
        self.versions.notes.is_some()
    }

    fn note(&mut self, subject: Subject, name: &str, text: String, is_slow: bool) {
        let depth = self.regions.loops.around(self.here).count();
        let (version, span) = (self.new.name.clone(), self.span);
        let note = Note { version, span, subject, name: name.into(), text, depth, is_slow: is_slow && depth > 0 };
        if let Some(notes) = &mut self.versions.notes
            && notes.last() != Some(&note)
        {
            notes.push(note);
        }
    }

    pub fn note_version(&mut self, masked: bool) {
        if self.explains() {
            let lanes = if self.width == 1 { "1 lane".into() } else { format!("{} lanes", self.width) };
            let of = if masked { "some of them active" } else { "all active" };
            self.span = self.old.span;
            self.note(Subject::Version, "", format!("{lanes}, {of}"), false);
        }
    }

    pub fn note_value(&mut self, v: Value) {
        if !self.explains() || self.old.name(v).is_empty() {
            return;
        }
        let name = self.old.name(v);
        let ty = self.old.ty(v);
        let text = match self.shape(v, self.here) {
            _ if self.shapes.own[v].is_some() => "a variable of each lane, side by side".into(),
            Shape::Uniform => "uniform".into(),
            Shape::Strided(s) if is_address(&self.module.types, ty) => format!("strided: {s} bytes from lane to lane"),
            Shape::Strided(s) => format!("strided: {s} from lane to lane"),
            Shape::Varying => "varying".into(),
        };
        let bits = self.module.types.as_prim(ty).filter(|_| self.shapes.narrowed.contains(&v)).map(Prim::bits);
        let text = bits.map_or(text.clone(), |bits| format!("{text}, in {bits} bits"));
        self.note(Subject::Value, name, text, false);
    }

    pub fn note_branch(&mut self, cond: Value, is_divergent: bool) {
        if !self.explains() {
            return;
        }
        let text = match is_divergent {
            true => format!("varying, lanes part: {}", self.reason(cond)),
            false => "uniform, stays a branch".into(),
        };
        let name = self.old.name(cond);
        self.note(Subject::Branch, name, text, false);
    }

    pub fn note_loop(&mut self, is_divergent: bool) {
        if self.explains() {
            let text = match is_divergent {
                true => "divergent: goes on while a lane does",
                false => "uniform: all lanes leave it together",
            };
            self.note(Subject::Loop, "", text.into(), false);
        }
    }

    /// Notes how memory is accessed; if that is slow, with the reason from the address.
    pub fn note_access(&mut self, how: &str, is_slow: bool) {
        let Some(address) = self.accessed else { return };
        if self.explains() {
            let text = match is_slow {
                true => format!("{how}: {}", self.reason(address)),
                false => how.into(),
            };
            let name = self.old.name(address);
            self.note(Subject::Access, name, text, is_slow);
        }
    }

    /// Notes that lanes read elements of an array, wherever they are.
    pub fn note_gather(&mut self) {
        // As in `tables` of the LLVM back end.
        let is_small = self.accessed.and_then(|at| self.definition(at)).is_some_and(|inst| {
            let types = &self.module.types;
            let is_uniform = || self.shape(inst.args[0], self.here) == Shape::Uniform;
            inst.op == InstOp::Op(Op::Lea)
                && is_uniform()
                && types.pointee(self.old.ty(inst.args[0])).is_some_and(|array| {
                    let bytes = types.part(array, 0).and_then(|elem| types.as_prim(elem)).map(layout::prim_size);
                    matches!(types.kind(array), TyKind::Array(_, n) if bytes.is_some_and(|b| matches!(b, 1 | 4) && n * b <= 64))
                })
        });
        match is_small {
            true => self.note_access("gather from a small array: permuted, where the CPU can", false),
            false => self.note_access("gather", true),
        }
    }

    pub fn note_call(&mut self, name: &str, text: &str, is_slow: bool) {
        if self.explains() {
            self.note(Subject::Call, name, text.into(), is_slow);
        }
    }

    /// The reason why a value differs between lanes, or does so by unequal steps.
    fn reason(&self, v: Value) -> String {
        let mut v = v;
        // Follows values that are only passed on; chains are at most as long as the function.
        for _ in 0..self.old.values.len() {
            let named = match self.old.name(v) {
                "" => "it ".into(),
                name => format!("`{name}` "),
            };
            let Some(inst) = self.definition(v) else {
                let block = self.shapes.home[v];
                return match (self.shapes.left_loop(self.regions, v, self.here), block) {
                    (Some(_), _) => format!("{named}is from a loop that lanes leave at different times"),
                    (None, 0) => format!("the argument {named}varies"),
                    (None, b) if self.shapes.joins[b] => format!("{named}is set in branches that lanes part at"),
                    (None, _) => format!("{named}changes from round to round"),
                };
            };
            if self.shapes.left_loop(self.regions, v, self.here).is_some() {
                return format!("{named}is from a loop that lanes leave at different times");
            }
            let varying = |a: &&Value| self.shape(**a, self.here) == Shape::Varying;
            match inst.op {
                InstOp::Op(Op::Load) => return format!("{named}is read from memory"),
                InstOp::Op(Op::Lea) => {
                    let (ptr, idx) = (inst.args[0], inst.args[1]);
                    let prim = self.module.types.as_prim(self.old.ty(idx));
                    match (self.shape(ptr, self.here), self.shape(idx, self.here), prim) {
                        (_, Shape::Strided(_), Some(prim)) if prim.bits() < 64 && !prim.is_signed() => {
                            return format!("an index of type `{}` may wrap around", prim.name());
                        }
                        (_, Shape::Varying, _) => v = idx,
                        (Shape::Varying, ..) => v = ptr,
                        _ => return self.distance(v),
                    }
                }
                InstOp::Op(Op::Cast) if self.shape(inst.args[0], self.here) != Shape::Varying => {
                    let from = self.module.types.as_prim(self.old.ty(inst.args[0]));
                    return match from {
                        Some(prim) if !prim.is_signed() && prim != Prim::Bool => {
                            format!("{named}is made of a `{}`, which may wrap around", prim.name())
                        }
                        _ => format!("{named}is converted"),
                    };
                }
                InstOp::Op(op) => match inst.args.iter().find(varying) {
                    Some(&a) => v = a,
                    None => {
                        return match self.shape(v, self.here) {
                            Shape::Strided(_) => self.distance(v),
                            _ => format!("{named}is `{}` of numbers that differ from lane to lane", op.name()),
                        };
                    }
                },
                _ => return format!("{named}is what a call gives"),
            }
        }
        "it varies".into()
    }

    fn distance(&self, v: Value) -> String {
        match self.shape(v, self.here) {
            Shape::Strided(s) => format!("lanes are {s} bytes apart"),
            _ => "it varies".into(),
        }
    }

    fn definition(&self, v: Value) -> Option<&Inst> {
        if self.old.as_const(v).is_some() {
            return None;
        }
        self.old.blocks[self.shapes.home[v]].insts.iter().find(|i| i.result == Some(v))
    }

    /// The name of a call's callee.
    pub fn callee_name(&self, inst: &Inst) -> String {
        match inst.op {
            InstOp::Call(f) => self.module.func(f).name.clone(),
            InstOp::Vectorize(..) => "vectorize".into(),
            InstOp::Launch(..) => "launch".into(),
            InstOp::Op(op) => op.name().into(),
            _ => String::new(),
        }
    }
}
