//! Operations that only vectorized code has: the table of their keywords, arities and effects.
//!
//! They are not in [`nyala_ir::Op`], for the graph has none of them. A mask is a vector of bools, one for each lane. An
//! optional mask is the last operand; without it all lanes are active.

use crate::data::Value;
use nyala_ir::Effect;

macro_rules! vector_ops {
    ($($variant:ident $name:literal $least:literal $most:literal $effect:ident, $doc:literal;)*) => {
        /// An operation on the lanes of vectors.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum VectorOp { $(#[doc = $doc] $variant,)* }

        impl VectorOp {
            /// All operations, in the order of the table.
            pub const ALL: &'static [VectorOp] = &[$(VectorOp::$variant,)*];

            /// Keyword in the text form.
            pub fn name(self) -> &'static str {
                match self { $(VectorOp::$variant => $name,)* }
            }
            /// Least and greatest number of operands; where they differ, the last operand is an optional mask.
            pub fn arity(self) -> (usize, usize) {
                match self { $(VectorOp::$variant => ($least, $most),)* }
            }
            /// Whether the operation reads or writes memory, or can fault.
            pub fn effect(self) -> Effect {
                match self { $(VectorOp::$variant => Effect::$effect,)* }
            }
            /// The sentence of the table: operands, result, and what is undefined.
            pub fn doc(self) -> &'static str {
                match self { $(VectorOp::$variant => $doc,)* }
            }
        }
    };
}

vector_ops! {
    Load "vload" 1 2 Partial, "`vload(ptr[, mask])`: in each active lane k the element k after the one at `ptr`, which points to an element or an array of them; undefined in the others.";
    Store "vstore" 2 3 Write, "`vstore(ptr, v[, mask])`: writes each active lane k to the element k after the one at `ptr`.";
    Gather "gather" 3 4 Partial, "`gather(base, index, scale[, mask])`: in each active lane k what lies `index[k] * scale` bytes after `base`, with index i32, i64 or u64, the scale a literal i64 from 1; undefined in the others.";
    Scatter "scatter" 4 5 Write, "`scatter(base, index, scale, v[, mask])`: writes the active lanes in increasing order, where `gather` would read them.";
    MaskBits "mask_bits" 1 1 Total, "`mask_bits(mask)`: a u64 whose bit k is lane k.";
    ExpandBits "expand_bits" 1 1 Total, "`expand_bits(bits)`: the mask whose lane k is bit k of a u64.";
    Compress "compress" 2 2 Total, "`compress(v, mask)`: the active lanes of v moved to the front, in order; the others undefined.";
}

impl VectorOp {
    /// The operation with this keyword ([`VectorOp::name`]).
    pub fn from_name(name: &str) -> Option<VectorOp> {
        VectorOp::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// The mask that says which lanes access memory; `None` if all do.
    pub fn mask(self, args: &[Value]) -> Option<Value> {
        let (least, most) = self.arity();
        if least < most { args.get(least).copied() } else { None }
    }

    /// The position of the value written among the operands.
    pub fn written(self) -> Option<usize> {
        match self {
            VectorOp::Store => Some(1),
            VectorOp::Scatter => Some(3),
            VectorOp::Load | VectorOp::Gather | VectorOp::MaskBits | VectorOp::ExpandBits | VectorOp::Compress => None,
        }
    }
}
