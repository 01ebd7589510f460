//! Code of the functions in [`device_names`](crate::device_names). Each is built from operations of the graph, so that
//! every engine and back end has it.
//!
//! ```text
//! __ffs(x)                     select(eq(x, 0), 0, add(cast[i32](ctz(x)), 1))
//! __shfl_up_sync(m, v, d, w)   nyala_lanes_get(v, select(…, sub(lane, d), lane))
//! ```
//!
//! Arguments that only the device has a use for, such as the mask of a warp's threads, are not looked at: the lanes that
//! are active take part.

use super::*;
use crate::device_names::{DeviceFn, Shuffle};
use ir::{LaneOp, Prim, Scope, WorkItem};

impl Lowerer<'_, '_, '_> {
    /// Builds a call of a device function. `None` if it is declared with other arguments.
    pub(super) fn device_function(&mut self, f: DeviceFn, args: &[Val], ty: ir::Ty, span: Span) -> Option<Val> {
        let (i32, u32) = (self.w.types.i32(), self.w.types.prim(Prim::U32));
        let made = match (f, args) {
            (DeviceFn::Reciprocal(of), [x]) => {
                let (one, root) = (self.number(ty, 1), of.map_or(*x, |op| self.w.op(op, &[*x])));
                self.w.op(Op::Div, &[one, root])
            }
            (DeviceFn::Saturate, [x]) => {
                let (zero, one) = (self.number(ty, 0), self.number(ty, 1));
                let low = self.w.op(Op::Fmax, &[*x, zero]);
                let high = self.w.op(Op::Fmin, &[low, one]);
                let is_nan = self.w.op(Op::Ne, &[*x, *x]);
                self.w.op(Op::Select, &[is_nan, zero, high])
            }
            (DeviceFn::OfTurns(op), [x]) => {
                let prim = self.w.types.as_prim(ty)?;
                let turn = self.w.lit(ty, ir::scalar::float_bits(prim, std::f64::consts::TAU));
                let angle = self.w.op(Op::Mul, &[*x, turn]);
                self.w.op(op, &[angle])
            }
            (DeviceFn::PowInt, [x, n]) => {
                let n = self.w.op_ty(Op::Cast, ty, &[*n]);
                self.w.op(Op::Pow, &[*x, n])
            }
            (DeviceFn::Rounded(op, rounding), _) => self.rounded(op, rounding, args)?,
            (DeviceFn::Convert { from_unsigned, to, rounding }, [x]) => {
                self.converted(*x, from_unsigned, to.map(|p| self.w.types.prim(p)), rounding)?
            }
            (DeviceFn::Least { greatest, .. }, [a, b]) if self.w.types.lane_prim(ty).is_some_and(Prim::is_float) => {
                self.w.op(if greatest { Op::Fmax } else { Op::Fmin }, &[*a, *b])
            }
            (DeviceFn::Least { greatest, unsigned }, [a, b]) => {
                let (x, y) = if unsigned { (self.unsigned(*a)?, self.unsigned(*b)?) } else { (*a, *b) };
                let first = self.w.op(if greatest { Op::Ge } else { Op::Le }, &[x, y]);
                self.w.op(Op::Select, &[first, *a, *b])
            }
            (DeviceFn::AbsInt, [x]) => {
                let (ty, zero, bits) = (self.w.ty(*x), self.same(*x, 0), self.unsigned(*x)?);
                let none = self.same(bits, 0);
                let (is_less, minus) = (self.w.op(Op::Lt, &[*x, zero]), self.w.op(Op::Sub, &[none, bits]));
                let minus = self.w.op_ty(Op::Cast, ty, &[minus]);
                self.w.op(Op::Select, &[is_less, minus, *x])
            }
            (DeviceFn::MulHigh { unsigned }, [a, b]) => self.mul_high(*a, *b, unsigned)?,
            (DeviceFn::Mul24 { unsigned }, [a, b]) => {
                // The upper bits of the product do not depend on the sign of numbers of 24 bits: 48 bits of it exist.
                let wide = self.w.types.prim(if unsigned { Prim::U64 } else { Prim::I64 });
                let cut = |l: &mut Self, v: Val| {
                    let (bits, eight) = (l.unsigned(v)?, l.w.lit(u32, 8));
                    let high = l.w.op(Op::Shl, &[bits, eight]);
                    let high = if unsigned { high } else { l.w.op_ty(Op::Cast, i32, &[high]) };
                    let eight = l.same(high, 8);
                    let low = l.w.op(Op::Shr, &[high, eight]);
                    Some(l.w.op_ty(Op::Cast, wide, &[low]))
                };
                let (a, b) = (cut(self, *a)?, cut(self, *b)?);
                self.w.op(Op::Mul, &[a, b])
            }
            (DeviceFn::AbsDifference { unsigned }, [a, b, c]) => {
                let (x, y) = (self.unsigned(*a)?, self.unsigned(*b)?);
                let (p, q) = if unsigned { (x, y) } else { (*a, *b) };
                let (is_less, xy) = (self.w.op(Op::Lt, &[p, q]), self.w.op(Op::Sub, &[x, y]));
                let yx = self.w.op(Op::Sub, &[y, x]);
                let (size, c) = (self.w.op(Op::Select, &[is_less, yx, xy]), self.unsigned(*c)?);
                self.w.op(Op::Add, &[size, c])
            }
            (DeviceFn::FirstSet, [x]) => {
                let (zero, ctz) = (self.same(*x, 0), self.w.op(Op::Ctz, &[*x]));
                let ctz = self.convert_int(ctz, i32);
                let (one, none) = (self.w.lit(i32, 1), self.w.lit(i32, 0));
                let (is_zero, place) = (self.w.op(Op::Eq, &[*x, zero]), self.w.op(Op::Add, &[ctz, one]));
                self.w.op(Op::Select, &[is_zero, none, place])
            }
            (DeviceFn::Reverse, [x]) => self.reversed(*x)?,
            (DeviceFn::Permute, [a, b, selector]) => self.permuted_bytes(*a, *b, *selector)?,
            (DeviceFn::Word { high }, [x]) => {
                let u64 = self.w.types.prim(Prim::U64);
                let bits = self.w.op_ty(Op::Bitcast, u64, &[*x]);
                let amount = self.w.lit(u64, if high { 32 } else { 0 });
                let word = self.w.op(Op::Shr, &[bits, amount]);
                self.w.op_ty(Op::Cast, u32, &[word])
            }
            (DeviceFn::Words, [low, high]) => {
                let (u64, f64) = (self.w.types.prim(Prim::U64), self.w.types.prim(Prim::F64));
                let (low, high) = (self.unsigned(*low)?, self.unsigned(*high)?);
                let (low, high) = (self.convert_int(low, u64), self.convert_int(high, u64));
                let amount = self.w.lit(u64, 32);
                let high = self.w.op(Op::Shl, &[high, amount]);
                let bits = self.w.op(Op::Or, &[high, low]);
                self.w.op_ty(Op::Bitcast, f64, &[bits])
            }
            (DeviceFn::Same, [x]) => *x,
            (DeviceFn::FromHalf, [x]) => {
                let (u16, f16) = (self.w.types.prim(Prim::U16), self.w.types.prim(Prim::F16));
                let bits = self.convert_int(*x, u16);
                let half = self.w.op_ty(Op::Bitcast, f16, &[bits]);
                self.w.op_ty(Op::Cast, ty, &[half])
            }
            (DeviceFn::ToHalf, [x]) => {
                let (u16, f16) = (self.w.types.prim(Prim::U16), self.w.types.prim(Prim::F16));
                let half = self.w.op_ty(Op::Cast, f16, &[*x]);
                self.w.op_ty(Op::Bitcast, u16, &[half])
            }
            (DeviceFn::Load, [place, ..]) => self.load(*place, span),
            (DeviceFn::Atomic(number), [place, val, ..]) => self.atomic_at(number, *place, *val, ty, span)?,
            (DeviceFn::AtomicLeast { greatest }, [place, val]) => {
                let prim = self.w.types.as_prim(self.w.ty(*val))?;
                let number = match (prim.is_float(), prim.is_signed()) {
                    (true, _) => 14 - u64::from(greatest),
                    (_, true) => 8 - u64::from(greatest),
                    _ => 10 - u64::from(greatest),
                };
                self.atomic_at(number, *place, *val, ty, span)?
            }
            (DeviceFn::CompareExchange, [place, expected, new]) => {
                let [relaxed, scope] = [2, 1].map(|n| self.w.lit_i32(n));
                let result = self.w.types.bool();
                let result = self.w.types.tuple(&[ty, result]);
                let vals = [*place, *expected, *new, relaxed, relaxed, scope];
                let pair = self.atomic(Op::Cmpxchg, &vals, result, span);
                self.w.extract(pair, 0)
            }
            (DeviceFn::LaneId, []) => self.lane_id(),
            (DeviceFn::WarpSize, []) => self.warp_size(),
            (DeviceFn::Warp, []) => {
                let (item, size) = (self.item_in_block(span), self.warp_size());
                let (item, size) = (self.convert_int(item, u32), self.convert_int(size, u32));
                self.w.op(Op::Div, &[item, size])
            }
            (DeviceFn::Warps, []) => {
                let (items, size) = (self.block_items(span), self.warp_size());
                let (items, size) = (self.convert_int(items, u32), self.convert_int(size, u32));
                let one = self.w.lit(u32, 1);
                let last = self.w.op(Op::Sub, &[items, one]);
                let n = self.w.op(Op::Div, &[last, size]);
                self.w.op(Op::Add, &[n, one])
            }
            (DeviceFn::LaneMask(op), []) => {
                let lane = self.lane_id();
                self.lane_mask(op, lane, u32)
            }
            (DeviceFn::MaskedCount { high }, [mask, before]) => {
                let (u64, lane) = (self.w.types.prim(Prim::U64), self.lane_id());
                let lower = self.lane_mask(Op::Lt, lane, u64);
                let amount = self.w.lit(u64, if high { 32 } else { 0 });
                let half = self.w.op(Op::Shr, &[lower, amount]);
                let (half, mask) = (self.convert_int(half, u32), self.unsigned(*mask)?);
                let counted = self.w.op(Op::And, &[half, mask]);
                let n = self.w.op(Op::Popcount, &[counted]);
                let before = self.unsigned(*before)?;
                self.w.op(Op::Add, &[n, before])
            }
            (DeviceFn::Vote(op), [_mask, holds]) => {
                self.lane(crate::intrinsics::Lane::Op(op, Scope::Subgroup), &[*holds], ty, span)
            }
            (DeviceFn::Active, []) => self.ballot(None),
            (DeviceFn::CompareLanes, [a, b, predicate]) => {
                // LLVM's numbers of predicates.
                const PREDICATES: [(Op, bool); 10] = [
                    (Op::Eq, false),
                    (Op::Ne, false),
                    (Op::Gt, true),
                    (Op::Ge, true),
                    (Op::Lt, true),
                    (Op::Le, true),
                    (Op::Gt, false),
                    (Op::Ge, false),
                    (Op::Lt, false),
                    (Op::Le, false),
                ];
                let number = self.w.as_lit(*predicate)?.checked_sub(32)?;
                let (op, unsigned) = *PREDICATES.get(number as usize)?;
                let (a, b) = if unsigned { (self.unsigned(*a)?, self.unsigned(*b)?) } else { (*a, *b) };
                let holds = self.w.op(op, &[a, b]);
                self.ballot(Some(holds))
            }
            (DeviceFn::MatchAny, [_mask, val]) => self.match_any(*val)?,
            (DeviceFn::MatchAll, [_mask, val, all]) => {
                let active = self.ballot(None);
                let first = self.w.op(Op::Ctz, &[active]);
                let of_first = self.lane_value(Scope::Subgroup, *val, first);
                let is_equal = self.bits_equal(*val, of_first)?;
                let bool = self.w.types.bool();
                let holds = self.lane_op(LaneOp::All, Scope::Subgroup, &[is_equal], Some(bool));
                let flag = self.w.op_ty(Op::Cast, i32, &[holds]);
                let mem = self.mem(span)?;
                let mem = self.w.op(Op::Store, &[mem, *all, flag]);
                self.set_mem(mem);
                let none = self.same(active, 0);
                self.w.op(Op::Select, &[holds, active, none])
            }
            (DeviceFn::Shuffle(how), [_mask, val, by, width]) => {
                let (lane, by) = (self.lane_id(), self.convert_int(*by, i32));
                let one = self.w.lit(i32, 1);
                let width = self.convert_int(*width, i32);
                let last = self.w.op(Op::Sub, &[width, one]);
                let in_segment = self.w.op(Op::And, &[lane, last]);
                let first = self.w.op(Op::Sub, &[lane, in_segment]);
                let end = self.w.op(Op::Add, &[first, last]);
                let of = self.source_lane(how, lane, by, first, end, last);
                self.lane_value(Scope::Subgroup, *val, of)
            }
            (DeviceFn::ShufflePtx(how), [_mask, val, by, clamp]) => {
                let (lane, by, clamp) = (self.lane_id(), self.convert_int(*by, i32), self.convert_int(*clamp, i32));
                let (lanes, eight) = (self.w.lit(i32, 31), self.w.lit(i32, 8));
                let bound = self.w.op(Op::And, &[clamp, lanes]);
                let segment = self.w.op(Op::Shr, &[clamp, eight]);
                let segment = self.w.op(Op::And, &[segment, lanes]);
                let inside = self.w.op(Op::Xor, &[segment, lanes]);
                let first = self.w.op(Op::And, &[lane, segment]);
                let bound = self.w.op(Op::And, &[bound, inside]);
                let end = self.w.op(Op::Or, &[first, bound]);
                let of = self.source_lane(how, lane, by, if how == Shuffle::Up { end } else { first }, end, inside);
                self.lane_value(Scope::Subgroup, *val, of)
            }
            (DeviceFn::Permuted, [address, val]) => {
                let (address, two) = (self.convert_int(*address, i32), self.w.lit(i32, 2));
                let of = self.w.op(Op::Shr, &[address, two]);
                self.lane_value(Scope::Subgroup, *val, of)
            }
            (DeviceFn::SyncWarp, _) => self.lane_op(LaneOp::Barrier, Scope::Subgroup, &[], None),
            (DeviceFn::Number(n), _) => self.w.lit_i32(n),
            (DeviceFn::Nothing, _) => self.w.unit(),
            (DeviceFn::ReadChannel, [channel]) => {
                let undefined = self.w.undef(ty);
                let to = self.channel(ir::lanes::CHANNEL_READ, *channel, undefined, span)?;
                self.load(to, span)
            }
            (DeviceFn::WriteChannel, [channel, value]) => {
                self.channel(ir::lanes::CHANNEL_WRITE, *channel, *value, span)?;
                self.w.unit()
            }
            (DeviceFn::Pragma, [text]) => self.call_symbol(ir::lanes::PRAGMA, &[*text], None),
            (DeviceFn::Trap, _) => {
                let never = self.w.lit_bool(false);
                self.assert_val(never, "the kernel trapped", span)
            }
            (DeviceFn::Clock, []) => {
                let i64 = self.w.types.i64();
                self.call_symbol("nyala_time_ns", &[], Some(i64))
            }
            (DeviceFn::Dispatch, []) => {
                let mut words = vec![self.w.lit(u32, 3)];
                let sizes = self.numbers_of(WorkItem::BlockSize, span);
                let blocks = self.numbers_of(WorkItem::Blocks, span);
                let (amount, one) = (self.w.lit(u32, 16), sizes[1]);
                let upper = self.w.op(Op::Shl, &[one, amount]);
                words.extend([self.w.op(Op::Or, &[sizes[0], upper]), sizes[2]]);
                words.extend((0..3).map(|i| self.w.op(Op::Mul, &[sizes[i], blocks[i]])));
                self.words_at(&words, ty, span)?
            }
            (DeviceFn::Hidden, []) => {
                let (sizes, mut words) =
                    (self.numbers_of(WorkItem::BlockSize, span), self.numbers_of(WorkItem::Blocks, span));
                let amount = self.w.lit(u32, 16);
                let upper = self.w.op(Op::Shl, &[sizes[1], amount]);
                words.extend([self.w.op(Op::Or, &[sizes[0], upper]), sizes[2]]);
                self.words_at(&words, ty, span)?
            }
            _ => return None,
        };
        Some(self.as_declared(made, ty))
    }

    /// A number as one of the type with which its function is declared.
    fn as_declared(&mut self, val: Val, ty: ir::Ty) -> Val {
        let is_prim = |l: &Self, ty| l.w.types.as_prim(ty).is_some();
        match self.w.ty(val) {
            from if from == ty => val,
            from if is_prim(self, from) && is_prim(self, ty) => self.w.op_ty(Op::Cast, ty, &[val]),
            _ => self.w.undef(ty),
        }
    }

    /// An integer of the type of another value.
    fn same(&mut self, of: Val, n: u64) -> Val {
        let ty = self.w.ty(of);
        self.w.lit(ty, n)
    }

    /// An integer as an unsigned one of its size.
    pub(super) fn unsigned(&mut self, val: Val) -> Option<Val> {
        let prim = match self.w.types.as_prim(self.w.ty(val))? {
            Prim::I8 | Prim::U8 => Prim::U8,
            Prim::I16 | Prim::U16 => Prim::U16,
            Prim::I32 | Prim::U32 => Prim::U32,
            Prim::I64 | Prim::U64 => Prim::U64,
            _ => return None,
        };
        let ty = self.w.types.prim(prim);
        Some(self.convert_int(val, ty))
    }

    /// The lane that a shuffle reads: its own, if the chosen one is outside of its segment. `first` and `end` are the
    /// first and last lane of the segment, `inside` are the bits of a lane's number within it.
    fn source_lane(&mut self, how: Shuffle, lane: Val, by: Val, first: Val, end: Val, inside: Val) -> Val {
        let (of, is_inside) = match how {
            Shuffle::Index => {
                let by = self.w.op(Op::And, &[by, inside]);
                let of = self.w.op(Op::Add, &[first, by]);
                (of, self.w.op(Op::Le, &[of, end]))
            }
            Shuffle::Up => {
                let of = self.w.op(Op::Sub, &[lane, by]);
                (of, self.w.op(Op::Ge, &[of, first]))
            }
            Shuffle::Down => {
                let of = self.w.op(Op::Add, &[lane, by]);
                (of, self.w.op(Op::Le, &[of, end]))
            }
            Shuffle::Xor => {
                let of = self.w.op(Op::Xor, &[lane, by]);
                (of, self.w.op(Op::Le, &[of, end]))
            }
        };
        self.w.op(Op::Select, &[is_inside, of, lane])
    }

    fn lane_id(&mut self) -> Val {
        let i32 = self.w.types.i32();
        self.lane_op(LaneOp::Id, Scope::Subgroup, &[], Some(i32))
    }

    fn warp_size(&mut self) -> Val {
        let i32 = self.w.types.i32();
        self.lane_op(LaneOp::Width, Scope::Subgroup, &[], Some(i32))
    }

    /// The lanes in which something holds, or those that are active, as a `u64`.
    fn ballot(&mut self, holds: Option<Val>) -> Val {
        let (i64, u64) = (self.w.types.i64(), self.w.types.prim(Prim::U64));
        let holds = holds.unwrap_or_else(|| self.w.lit_bool(true));
        let lanes = self.lane_op(LaneOp::Ballot, Scope::Subgroup, &[holds], Some(i64));
        self.w.op_ty(Op::Cast, u64, &[lanes])
    }

    /// The bits of an unsigned type whose places compare so with `lane`.
    fn lane_mask(&mut self, op: Op, lane: Val, ty: ir::Ty) -> Val {
        let (one, none) = (self.w.lit(ty, 1), self.w.lit(ty, 0));
        let lane = self.convert_int(lane, ty);
        let own = self.w.op(Op::Shl, &[one, lane]);
        let below = self.w.op(Op::Sub, &[own, one]);
        let not = |l: &mut Self, v: Val| {
            let all = l.w.op(Op::Sub, &[none, one]);
            l.w.op(Op::Xor, &[v, all])
        };
        match op {
            Op::Eq => own,
            Op::Lt => below,
            Op::Le => self.w.op(Op::Or, &[below, own]),
            Op::Ge => not(self, below),
            _ => {
                let le = self.w.op(Op::Or, &[below, own]);
                not(self, le)
            }
        }
    }

    /// Whether two numbers have equal bits.
    fn bits_equal(&mut self, a: Val, b: Val) -> Option<Val> {
        let ty = match self.w.types.as_prim(self.w.ty(a))? {
            Prim::F32 => self.w.types.prim(Prim::U32),
            Prim::F64 => self.w.types.prim(Prim::U64),
            _ => return Some(self.w.op(Op::Eq, &[a, b])),
        };
        let (a, b) = (self.w.op_ty(Op::Bitcast, ty, &[a]), self.w.op_ty(Op::Bitcast, ty, &[b]));
        Some(self.w.op(Op::Eq, &[a, b]))
    }

    /// The lanes of a warp of 32 that have the same value.
    fn match_any(&mut self, val: Val) -> Option<Val> {
        let (i32, u64) = (self.w.types.i32(), self.w.types.prim(Prim::U64));
        let active = self.ballot(None);
        let mut lanes = self.w.lit(u64, 0);
        for k in 0..32 {
            let of = self.w.lit(i32, k);
            let other = self.lane_value(Scope::Subgroup, val, of);
            let is_equal = self.bits_equal(val, other)?;
            let bit = self.w.op_ty(Op::Cast, u64, &[is_equal]);
            let place = self.w.lit(u64, k);
            let bit = self.w.op(Op::Shl, &[bit, place]);
            lanes = self.w.op(Op::Or, &[lanes, bit]);
        }
        Some(self.w.op(Op::And, &[lanes, active]))
    }

    /// The three numbers of a work item, as `u32`.
    fn numbers_of(&mut self, what: WorkItem, span: Span) -> Vec<Val> {
        let u32 = self.w.types.prim(Prim::U32);
        (0..3)
            .map(|axis| {
                let number = self.work_item(what, axis, span);
                self.convert_int(number, u32)
            })
            .collect()
    }

    /// The number of the work item in its block, over all axes.
    fn item_in_block(&mut self, span: Span) -> Val {
        let (item, size) = (self.numbers_of(WorkItem::Thread, span), self.numbers_of(WorkItem::BlockSize, span));
        let planes = self.w.op(Op::Mul, &[item[2], size[1]]);
        let rows = self.w.op(Op::Add, &[planes, item[1]]);
        let rows = self.w.op(Op::Mul, &[rows, size[0]]);
        self.w.op(Op::Add, &[rows, item[0]])
    }

    /// The number of work items of a block.
    fn block_items(&mut self, span: Span) -> Val {
        let size = self.numbers_of(WorkItem::BlockSize, span);
        let plane = self.w.op(Op::Mul, &[size[0], size[1]]);
        self.w.op(Op::Mul, &[plane, size[2]])
    }

    /// The address of a new variable that holds these words, as a pointer of type `ty`.
    fn words_at(&mut self, words: &[Val], ty: ir::Ty, span: Span) -> Option<Val> {
        let u32 = self.w.types.prim(Prim::U32);
        let array_ty = self.w.types.array(u32, words.len() as u64);
        let array = self.w.op_ty(Op::Array, array_ty, words);
        let mem = self.mem(span)?;
        let made = self.w.op_ty(Op::Slot, array_ty, &[mem]);
        let (mem, slot) = (self.w.extract(made, 0), self.w.extract(made, 1));
        let mem = self.w.op(Op::Store, &[mem, slot, array]);
        self.set_mem(mem);
        Some(self.w.op_ty(Op::Bitcast, ty, &[slot]))
    }

    /// Calls a function for channels with a new variable; returns its address.
    fn channel(&mut self, symbol: &str, channel: Val, value: Val, span: Span) -> Option<Val> {
        self.w.types.pointee(self.w.ty(channel))?;
        let i64 = self.w.types.i64();
        let (bytes, _) = ir::layout::size_align(&self.w.types, self.w.ty(value))?;
        self.mem(span)?;
        let place = self.text(&self.sources.place(span));
        let (at, bytes) = (self.slot(value), self.w.lit(i64, bytes));
        self.call_symbol(symbol, &[place, channel, at, bytes], None);
        Some(at)
    }

    fn atomic_at(&mut self, number: u64, place: Val, val: Val, ty: ir::Ty, span: Span) -> Option<Val> {
        let is_float = self.w.types.as_prim(self.w.ty(val))?.is_float();
        let number = match number {
            1 | 2 if is_float => number + 10,
            _ => number,
        };
        let u32 = self.w.types.prim(Prim::U32);
        let number = self.w.lit(u32, number);
        // Relaxed, on the device: CUDA's and OpenCL's functions order nothing.
        let (order, scope) = (self.w.lit(u32, 2), self.w.lit_i32(1));
        Some(self.atomic(Op::Atomic, &[number, place, val, order, scope], ty, span))
    }

    /// The bits of an integer in reverse order: neighbors change places, then pairs, and so on.
    fn reversed(&mut self, x: Val) -> Option<Val> {
        let mut x = self.unsigned(x)?;
        let bits = self.w.types.as_prim(self.w.ty(x))?.bits();
        let mut width = 1;
        while width < bits {
            // Ones in every other group of `width` bits.
            let ones = (0..64).filter(|bit| bit / width % 2 == 0).fold(0u64, |mask, bit| mask | 1 << bit);
            let (mask, amount) = (self.same(x, ones), self.same(x, width.into()));
            let (low, high) = (self.w.op(Op::And, &[x, mask]), self.w.op(Op::Shr, &[x, amount]));
            let (low, high) = (self.w.op(Op::Shl, &[low, amount]), self.w.op(Op::And, &[high, mask]));
            x = self.w.op(Op::Or, &[low, high]);
            width *= 2;
        }
        Some(x)
    }

    fn permuted_bytes(&mut self, a: Val, b: Val, selector: Val) -> Option<Val> {
        let (u32, u64) = (self.w.types.prim(Prim::U32), self.w.types.prim(Prim::U64));
        let (a, b, selector) = (self.unsigned(a)?, self.unsigned(b)?, self.unsigned(selector)?);
        let (a, b) = (self.convert_int(a, u64), self.convert_int(b, u64));
        let amount = self.w.lit(u64, 32);
        let high = self.w.op(Op::Shl, &[b, amount]);
        let bytes = self.w.op(Op::Or, &[a, high]);
        let (seven, eight, three, byte_mask) =
            (self.w.lit(u32, 7), self.w.lit(u32, 8), self.w.lit(u32, 3), self.w.lit(u32, 255));
        let mut result = self.w.lit(u32, 0);
        for place in 0..4u64 {
            let shift = self.w.lit(u32, 4 * place);
            let nibble = self.w.op(Op::Shr, &[selector, shift]);
            let which = self.w.op(Op::And, &[nibble, seven]);
            let amount = self.w.op(Op::Shl, &[which, three]);
            let amount = self.convert_int(amount, u64);
            let byte = self.w.op(Op::Shr, &[bytes, amount]);
            let byte = self.convert_int(byte, u32);
            let byte = self.w.op(Op::And, &[byte, byte_mask]);
            // The fourth bit of a selector asks for eight copies of the byte's sign.
            let (wants_sign, sign) = (self.w.op(Op::And, &[nibble, eight]), self.w.op(Op::Shr, &[byte, seven]));
            let signs = self.w.op(Op::Mul, &[sign, byte_mask]);
            let none = self.w.lit(u32, 0);
            let wants_sign = self.w.op(Op::Ne, &[wants_sign, none]);
            let byte = self.w.op(Op::Select, &[wants_sign, signs, byte]);
            let amount = self.w.lit(u32, 8 * place);
            let byte = self.w.op(Op::Shl, &[byte, amount]);
            result = self.w.op(Op::Or, &[result, byte]);
        }
        Some(result)
    }

    /// The upper half of a product of two integers.
    fn mul_high(&mut self, a: Val, b: Val, unsigned: bool) -> Option<Val> {
        let (x, y) = (self.unsigned(a)?, self.unsigned(b)?);
        let u64 = self.w.types.prim(Prim::U64);
        if self.w.types.as_prim(self.w.ty(x))? != Prim::U64 {
            let wide = if unsigned { u64 } else { self.w.types.i64() };
            let (a, b) = if unsigned { (x, y) } else { (a, b) };
            let (a, b) = (self.convert_int(a, wide), self.convert_int(b, wide));
            let product = self.w.op(Op::Mul, &[a, b]);
            let amount = self.same(product, 32);
            return Some(self.w.op(Op::Shr, &[product, amount]));
        }
        // By halves of 32 bits.
        let (low_mask, half) = (self.w.lit(u64, 0xffff_ffff), self.w.lit(u64, 32));
        let (x0, x1) = (self.w.op(Op::And, &[x, low_mask]), self.w.op(Op::Shr, &[x, half]));
        let (y0, y1) = (self.w.op(Op::And, &[y, low_mask]), self.w.op(Op::Shr, &[y, half]));
        let [p00, p01, p10, p11] = [(x0, y0), (x0, y1), (x1, y0), (x1, y1)].map(|(p, q)| self.w.op(Op::Mul, &[p, q]));
        let carry = self.w.op(Op::Shr, &[p00, half]);
        let (m0, m1) = (self.w.op(Op::And, &[p01, low_mask]), self.w.op(Op::And, &[p10, low_mask]));
        let middle = self.w.op(Op::Add, &[carry, m0]);
        let middle = self.w.op(Op::Add, &[middle, m1]);
        let mut high = p11;
        for part in [p01, p10, middle] {
            let part = self.w.op(Op::Shr, &[part, half]);
            high = self.w.op(Op::Add, &[high, part]);
        }
        if !unsigned {
            // A negative factor stands for itself plus 2⁶⁴.
            for (factor, other) in [(a, y), (b, x)] {
                let (zero, none) = (self.same(factor, 0), self.w.lit(u64, 0));
                let is_negative = self.w.op(Op::Lt, &[factor, zero]);
                let too_much = self.w.op(Op::Select, &[is_negative, other, none]);
                high = self.w.op(Op::Sub, &[high, too_much]);
            }
        }
        Some(high)
    }
}
