//! Compiles the checks of promises about addresses.

use super::{Compiler, Result};
use crate::code::Inst;
use crate::restricted::Access;
use nyala_ir::{Op, Ty, Val};

impl Compiler<'_, '_> {
    /// Compiles a check of an access for each restricted parameter that the address comes from.
    pub(super) fn restricted(&mut self, address: Val, ty: Ty, write: bool) -> Result<()> {
        let w = self.w;
        let mut at = address;
        while let Some(op @ (Op::Lea | Op::Bitcast | Op::Aligned | Op::Restrict)) = w.as_op(at) {
            if op == Op::Restrict {
                let (call, a) = (self.need(w.args(at)[1])?, self.need(address)?);
                let size = u32::try_from(self.layout(ty)?.size).unwrap_or(u32::MAX);
                let restricted = w.as_lit(w.args(at)[2]) == Some(1);
                self.emit(Inst::Restricted { call, a, access: Access { param: at.0, size, write, restricted } });
            }
            at = w.args(at)[0];
        }
        Ok(())
    }
}
