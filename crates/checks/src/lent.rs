//! Accesses of confined functions: the objects of slices that a caller lends, and what is refused because it has no bounds, or may not be
//! written. Separate from what such functions may do otherwise (`confined.rs`), which is judged before checks are inserted.

use super::checker::{Access, Checker};
use super::{Lent, Refused, object_ty};
use nyala_base::Id;
use nyala_flat::*;
use nyala_ir::{Op, Prim, layout};

/// The words of an object.
const N_WORDS: u64 = 8;

/// What only a [confined](super::confined) function has.
pub struct Confined<'a> {
    /// What its parameters lend; nothing in functions that are not exported.
    pub lent: &'a [Lent],
    /// The objects of lent slices, by parameters.
    pub objects: Vec<Option<Value>>,
    /// Accesses without bounds.
    pub refused: Vec<Refused>,
}

impl Checker<'_, '_> {
    /// Makes the objects of the slices that the function is lent, and uses.
    pub fn lend(&mut self, insts: &[Inst]) {
        let (Some(confined), Some(lend)) = (&self.confined, self.tables.lend) else { return };
        let lent = confined.lent;
        let mut objects = Vec::with_capacity(lent.len());
        for i in 0..lent.len() {
            objects.push(None);
            let is_used = |inst: &Inst| inst.result.is_some_and(|r| self.lent_by(r).is_some_and(|(k, _)| k == i));
            let Some(used) = insts.iter().find(|inst| is_used(inst)) else { continue };
            let (slice, data_ty) =
                (used.args[0], used.result.map_or(self.code.types.unit(), |r| self.code.function.ty(r)));
            let element = self.code.types.pointee(data_ty).and_then(|ty| self.code.types.part(ty, 0));
            let size = element.and_then(|ty| layout::size_align(self.code.types, ty));
            let Some((size, align)) = size else { continue };
            let (first, second) = (self.literal(Prim::I64, 0), self.literal(Prim::I64, 1));
            let i64 = self.code.types.i64();
            let data = self.op(Op::Extract, &[slice, first], data_ty);
            let length = self.op(Op::Extract, &[slice, second], i64);
            let u64 = self.code.types.prim(Prim::U64);
            let words = self.code.types.array(u64, N_WORDS);
            let (words, object_ty) = (self.code.types.ptr(words), object_ty(self.code.types));
            let object = self.op(Op::Slot, &[], words);
            let object = self.op(Op::Bitcast, &[object], object_ty);
            let size = self.literal(Prim::I64, size.next_multiple_of(align.max(1)));
            let low = self.number(data);
            self.call(lend, &[object, low, length, size], None);
            objects[i] = Some(object);
        }
        if let Some(confined) = &mut self.confined {
            confined.objects = objects;
        }
    }

    /// If an address is that of a slice which a parameter lends: the parameter, and what it lends.
    fn lent_by(&self, address: Value) -> Option<(usize, Lent)> {
        let confined = self.confined.as_ref()?;
        let inst = self.defs.get(&address).filter(|i| i.op == InstOp::Op(Op::Extract))?;
        let i = self.code.function.blocks[0].params.iter().position(|&p| p == inst.args[0])?;
        let lent = *confined.lent.get(i)?;
        (lent != Lent::Nothing && self.code.function.as_index(inst.args[1]) == Some(0)).then_some((i, lent))
    }

    pub fn is_lent(&self, address: Value) -> bool {
        self.lent_by(address).is_some()
    }

    pub fn lent_object(&self, address: Value) -> Option<Value> {
        let (i, _) = self.lent_by(address)?;
        self.confined.as_ref()?.objects.get(i).copied().flatten()
    }

    /// Notes an access that has no bounds, or writes what it may not.
    pub fn confine(&mut self, inst: &Inst, access: Option<&Access>) {
        let accesses = match inst.op {
            InstOp::Op(Op::Load | Op::Store) => {
                // A load or store of a type without bytes accesses nothing.
                let pointee = self.code.types.pointee(self.code.function.ty(inst.args[0]));
                pointee.and_then(|ty| layout::size_align(self.code.types, ty)).is_none_or(|(size, _)| size > 0)
            }
            InstOp::Vector(VectorOp::Load | VectorOp::Store | VectorOp::Gather | VectorOp::Scatter) => true,
            _ => false,
        };
        let Some(address) = access.map(|access| access.address).or(self.asked(inst)) else {
            if accesses {
                self.refuse("it accesses memory of unknown size");
            }
            return;
        };
        let writes = access.is_some_and(|access| access.writes);
        let root = self.origin(address).root;
        let is_lane_access = access.is_some_and(|access| access.mask.is_some())
            || matches!(inst.op, InstOp::Vector(VectorOp::Gather | VectorOp::Scatter));
        if is_lane_access && self.lanes_of(inst).is_none_or(|n| n > 64) {
            return self.refuse("it accesses more than 64 lanes at once");
        }
        let is_variable = self.defs.get(&root).is_some_and(|i| i.op == InstOp::Op(Op::Slot));
        let what = match (self.code.function.as_const(root), self.lent_by(root)) {
            (Some(Const::Global(id)), _) if id.idx() < self.module.globals.len() => {
                match &self.module.globals[id.idx()] {
                    global if global.mutable => Some("it uses a variable of the program (`static mut`)"),
                    global if global.space != 0 => Some("it accesses memory of a device"),
                    _ if writes => Some("it writes a constant"),
                    _ => None,
                }
            }
            (Some(Const::Bits(1..)), _) => Some("it uses a variable of the program (`static mut`)"),
            (_, Some((_, Lent::MutSlice))) => None,
            (_, Some(_)) if writes => Some("it writes what it is lent to be read"),
            (_, Some(_)) => None,
            _ if is_variable => None,
            _ => Some("it uses an address that is chosen while it runs, or comes from elsewhere"),
        };
        match what {
            Some(what) => self.refuse(what),
            None if self.bounds(root).is_none() => self.refuse("it accesses memory of unknown size"),
            None => {}
        }
    }

    fn refuse(&mut self, what: &str) {
        let span = if self.code.span.is_none() { self.code.function.span } else { self.code.span };
        if let Some(confined) = &mut self.confined {
            confined.refused.push(Refused { span, what: what.into() });
        }
    }
}
