//! Compiles the making of function values.

use super::{Compiler, Result};
use crate::code::{Entry, EntryIdx, Inst, Reg};
use crate::externals::RELEASE;
use crate::fault::{bug, limitation};
use nyala_ir::{Cont, Linkage, Val};

impl Compiler<'_, '_> {
    pub(super) fn closure(&mut self, v: Val, c: Cont) -> Result<Reg> {
        let d = self.alloc(self.w.ty(v))?;
        if !self.l.program.is_func(c) {
            let entry = self.block_entry(c)?;
            self.emit(Inst::MakeCont { d, entry });
            return Ok(d);
        }
        if matches!(*self.w.cont(c).linkage, Linkage::Asm(_)) {
            return Err(limitation("assembly is used as a value"));
        }
        if matches!(*self.w.cont(c).linkage, Linkage::Foreign(_)) {
            let foreign = self.l.foreign(c)?;
            let entry = self.l.foreign_entry(foreign)?;
            let list = self.list(&[]);
            self.emit(Inst::MakeClosure { d, entry, list });
            return Ok(d);
        }
        let words = self.captured_words(c)?;
        let func = self.l.func(c);
        let entry = self.l.func_entry(func)?;
        let list = self.list(&words);
        self.emit(Inst::MakeClosure { d, entry, list });
        Ok(d)
    }

    pub(super) fn block_entry(&mut self, k: Cont) -> Result<EntryIdx> {
        if let Some(&entry) = self.entries.get(&k) {
            return Ok(entry);
        }
        let params = *self.block_params.get(&k).ok_or_else(|| bug("a continuation of another function"))?;
        let entry = self.l.new_entry(Entry::Block { func: self.func, pc: 0, params })?;
        self.entries.insert(k, entry);
        Ok(entry)
    }

    /// The registers of the values that a function captures, which are computed now if need be.
    pub(super) fn captured_words(&mut self, c: Cont) -> Result<Vec<Reg>> {
        let captured = self.l.program.captured(c);
        let mut words = Vec::new();
        for &v in captured.iter() {
            let reg = self.need(v)?;
            let n = self.n_words(self.w.ty(v))?;
            words.extend(reg..reg + n);
        }
        for &g in self.l.program.frames(c).iter() {
            if g != self.f {
                words.push(*self.frames.get(&g).ok_or_else(|| bug("a frame out of scope"))?);
                continue;
            }
            let d = self.out.n_regs;
            self.out.closures.push(d);
            self.out.n_regs += 1;
            self.emit(Inst::MakeCont { d, entry: RELEASE });
            words.push(d);
        }
        Ok(words)
    }
}
