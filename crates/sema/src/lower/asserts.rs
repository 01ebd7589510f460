//! `assert` and `panic`: failures of the program itself, with the place in the source. Separate from the other
//! intrinsics, because they show the source's text.

use super::*;

impl Lowerer<'_, '_, '_> {
    /// `assert(cond)`, whose message is the condition's source text.
    pub(super) fn assert(&mut self, args: &[ExprId], span: Span) -> Val {
        let [cond, ..] = args else { return self.w.unit() };
        let at = self.ast()[*cond].span;
        let source = self.sources.text(at.file).get(at.lo as usize..at.hi as usize).unwrap_or_default();
        let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
        let cond = self.value(*cond);
        if !self.alive() {
            return self.w.unit();
        }
        self.w.set_origin(span);
        self.assert_val(cond, &format!("assertion failed: `{source}`"), span)
    }

    pub(super) fn assert_val(&mut self, cond: Val, text: &str, span: Span) -> Val {
        if self.mem(span).is_some() {
            let (holds, fails) = (self.block("holds"), self.block("fails"));
            self.branch(cond, holds, fails);
            self.go_on_in(fails);
            let text = self.text(text);
            self.panic(text, span);
            self.go_on_in(holds);
        }
        self.w.unit()
    }

    /// Ends the program with the text at an address.
    pub(super) fn panic(&mut self, text: Val, span: Span) {
        if self.mem(span).is_some() {
            let place = self.text(&self.sources.place(span));
            self.call_symbol("nyala_panic_at", &[place, text], None);
            self.end_unreachable();
        }
    }

    /// The address of a zero-terminated text in memory.
    pub(super) fn text(&mut self, text: &str) -> Val {
        let u8 = self.w.types.prim(ir::Prim::U8);
        let bytes: Vec<Val> = text.bytes().chain([0]).map(|b| self.w.lit(u8, b.into())).collect();
        let array = self.w.types.array(u8, bytes.len() as u64);
        let init = self.w.op_ty(Op::Array, array, &bytes);
        let global = self.w.declare_global("text", array, false);
        self.w.set_init(global, init);
        let address = self.w.global_val(global);
        let elems = self.w.types.indef_array(u8);
        let ty = self.w.types.ptr(elems);
        self.w.op_ty(Op::Bitcast, ty, &[address])
    }
}
