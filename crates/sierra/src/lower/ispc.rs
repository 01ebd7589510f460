//! What only ISPC's dialect has: functions that run in SIMD mode from their beginning, loops over ranges, tasks, `new`.
//!
//! A function of the dialect has the mode of the gang, and its callers pass the mask; in one that other code calls, and in a task, all lanes are active.
//! A type has the gang's lanes where the grammar says so ([`Rates`]).
//!
//! **`foreach`** goes through its last range a gang at a time, with all lanes active whatever they were outside. Its body is lowered twice: for whole gangs,
//! whose accesses lie side by side, and for what is left of the range.
//!
//! **Tasks** are in `tasks.rs`.

use super::*;

/// The parameters of a task behind its own.
pub(super) const TASK: [&str; 6] = ["taskIndex0", "taskIndex1", "taskIndex2", "taskCount0", "taskCount1", "taskCount2"];

/// The least and the largest numbers of types.
const LIMITS: [(&str, &str); 18] = [
    ("INT8_MIN", "(-128)"),
    ("INT16_MIN", "(-32768)"),
    ("INT32_MIN", "(-2147483647 - 1)"),
    ("INT64_MIN", "(-9223372036854775807ll - 1)"),
    ("INT8_MAX", "127"),
    ("INT16_MAX", "32767"),
    ("INT32_MAX", "2147483647"),
    ("INT64_MAX", "9223372036854775807ll"),
    ("UINT8_MAX", "255"),
    ("UINT16_MAX", "65535"),
    ("UINT32_MAX", "4294967295u"),
    ("UINT64_MAX", "18446744073709551615ull"),
    ("FLT16_MIN", "6.103515625e-05f16"),
    ("FLT_MIN", "1.17549435e-38f"),
    ("DBL_MIN", "2.2250738585072014d-308"),
    ("FLT16_MAX", "65504.0f16"),
    ("FLT_MAX", "3.40282347e+38f"),
    ("DBL_MAX", "1.7976931348623157d+308"),
];

/// The macros that every program has.
pub(super) fn macros(gang: u32) -> Vec<(&'static str, &'static str)> {
    const WIDTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", "64"];
    let mut found = vec![
        ("ISPC", "1"),
        ("PI", "3.1415926535"),
        ("ISPC_POINTER_SIZE", "64"),
        ("ISPC_MAJOR_VERSION", "1"),
        ("ISPC_MINOR_VERSION", "28"),
        ("LLVM_VERSION_MAJOR", "22"),
        ("LLVM_VERSION_MINOR", "1"),
        ("ISPC_ATTRIBUTE_SUPPORTED", "1"),
        ("TARGET_ELEMENT_WIDTH", "4"),
        ("ISPC_UINT_IS_DEFINED", "1"),
        ("ISPC_FP16_SUPPORTED", "1"),
        ("ISPC_FP64_SUPPORTED", "1"),
        ("ISPC_LLVM_INTRINSICS_ENABLED", "0"),
    ];
    found.extend(LIMITS);
    // What such a gang is on processors of today.
    found.push(match gang {
        0..=4 => ("ISPC_TARGET_SSE4", "1"),
        5..=8 => ("ISPC_TARGET_AVX2", "1"),
        _ => ("ISPC_TARGET_AVX512SKX", "1"),
    });
    if let Some(width) = WIDTHS.iter().find(|w| w.parse() == Ok(gang)) {
        found.push(("TARGET_WIDTH", width));
    }
    found
}

/// Whether nothing leaves a loop's body but at its end.
pub(super) fn stays(body: &Statement) -> bool {
    // Statements, and whether a loop within the body is around them.
    let mut open = vec![(body, false)];
    while let Some((statement, is_inner)) = open.pop() {
        match &statement.kind {
            StatementKind::Return(_) => return false,
            StatementKind::Break | StatementKind::Continue if !is_inner => return false,
            StatementKind::Block(inner) => open.extend(inner.iter().map(|s| (s, is_inner))),
            StatementKind::Switch(_, inner) => open.extend(inner.iter().map(|s| (s, is_inner))),
            StatementKind::If(arms, otherwise) => {
                open.extend(arms.iter().map(|a| (&a.1, is_inner)));
                open.extend(otherwise.iter().map(|s| (&**s, is_inner)));
            }
            StatementKind::Decide(parts) => {
                open.push((&parts.1, is_inner));
                open.extend(parts.2.iter().map(|s| (s, is_inner)));
            }
            StatementKind::For { body, .. } | StatementKind::DoWhile(body, _) => open.push((body, true)),
            StatementKind::ForEach(_, body) => open.push((body, true)),
            StatementKind::ForEachUnique(_, _, body)
            | StatementKind::ForEachLane(_, body)
            | StatementKind::Unmasked(body) => open.push((body, is_inner)),
            _ => {}
        }
    }
    true
}

/// Whether a `break` in a branch leaves a `switch` with this body: some lanes may leave it alone.
pub(super) fn breaks_in_branches(body: &[Statement]) -> bool {
    // Statements, and whether a branch is around them.
    let mut open: Vec<(&Statement, bool)> = body.iter().map(|s| (s, false)).collect();
    while let Some((statement, is_branch)) = open.pop() {
        match &statement.kind {
            StatementKind::Break if is_branch => return true,
            StatementKind::Block(inner) => open.extend(inner.iter().map(|s| (s, is_branch))),
            StatementKind::If(arms, otherwise) => {
                open.extend(arms.iter().map(|a| (&a.1, true)));
                open.extend(otherwise.iter().map(|s| (&**s, true)));
            }
            StatementKind::Decide(parts) => {
                open.push((&parts.1, is_branch));
                open.extend(parts.2.iter().map(|s| (s, is_branch)));
            }
            _ => {}
        }
    }
    false
}

impl<'s> Lowerer<'s, '_> {
    /// The type of a specifier as a declarator has it.
    pub(super) fn rated(&mut self, base: Ty, declarator: &Declarator<'s>) -> Lowered<Ty> {
        if !declarator.rates.varies || base == Types::VOID || base == Types::ERROR {
            return Ok(base);
        }
        self.complete(base, declarator.span)?;
        self.with_lanes(base, self.gang, declarator.span)
    }

    /// The lanes of the mode in which a function of the dialect runs.
    pub(super) fn mode_of_gang(&self, storage: Storage, specifier: &Specifier<'s>) -> Option<u32> {
        let is_outside = matches!(storage, Storage::Export | Storage::ExternC);
        let words = specifier.words;
        (self.is_ispc && !is_outside && !words.is_task && !words.is_unmasked).then_some(self.gang)
    }

    pub(super) fn note_ispc(
        &mut self,
        id: usize,
        storage: Storage,
        specifier: &Specifier<'s>,
        params: &[(Specifier<'s>, Declarator<'s>)],
    ) {
        let f = &mut self.functions[id];
        f.is_task = specifier.words.is_task;
        f.is_own = f.is_task || !matches!(storage, Storage::Export | Storage::ExternC);
        if f.defaults.is_empty() && params.iter().any(|p| p.1.default.is_some()) {
            f.defaults = params.iter().map(|p| p.1.default.clone()).collect();
        }
    }

    /// What parameters are for which there are no arguments.
    pub(super) fn defaults_of(&self, callee: &calls::Callee, n: usize) -> Vec<std::rc::Rc<Expr<'s>>> {
        let calls::Target::Function(id) = callee.target else { return Vec::new() };
        let rest = self.functions[id].defaults.get(n..).unwrap_or_default();
        rest.iter().map_while(Clone::clone).collect()
    }

    /// The numbers of the task, for its code.
    pub(super) fn declare_task(&mut self, params: &[Val], span: Span) -> Lowered<()> {
        let int = self.types.prim(Prim::I32);
        let [i0, i1, i2, n0, n1, n2] = *params else { return Ok(()) };
        let mut number = |a: [Val; 3]| {
            let product = self.w.op(Op::Mul, &[a[2], n1]);
            let sum = self.w.op(Op::Add, &[product, a[1]]);
            let product = self.w.op(Op::Mul, &[sum, n0]);
            self.w.op(Op::Add, &[product, a[0]])
        };
        let index = number([i0, i1, i2]);
        let planes = self.w.op(Op::Mul, &[n0, n1]);
        let count = self.w.op(Op::Mul, &[planes, n2]);
        let all = TASK.iter().copied().zip(params.iter().copied());
        let more = [("taskIndex", index), ("taskCount", count), ("threadIndex", index), ("threadCount", count)];
        for (text, val) in all.chain(more) {
            let address = self.slot(val);
            let variable = Variable { address, ty: int, is_const: true };
            self.declare(Name { text, span }, Entity::Variable(variable))?;
        }
        Ok(())
    }

    /// A number of the dialect: `1.5`, `1.5f` and `0x1.8p3` are floats, `1.5d` is a double.
    pub(super) fn float_of_ispc(&mut self, text: &str, span: Span) -> Lowered<(Val, Ty)> {
        let faulty = || Box::new(c_syntax::literal(span, text, "number"));
        let lower = text.to_ascii_lowercase();
        let is_hex = lower.starts_with("0x");
        let (digits, prim) = match &*lower {
            text if text.ends_with("f16") && (!is_hex || text.contains('p')) => (&text[..text.len() - 3], Prim::F16),
            text if text.ends_with('d') => (&text[..text.len() - 1], Prim::F64),
            text if text.ends_with('f') => (&text[..text.len() - 1], Prim::F32),
            text => (text, Prim::F32),
        };
        // `1.5d-3`
        let with_e = digits.replace('d', "e");
        let (digits, prim) = if with_e != digits && !is_hex { (&*with_e, Prim::F64) } else { (digits, prim) };
        let value = if is_hex {
            hex_float(&digits[2..]).ok_or_else(faulty)?
        } else {
            let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-'));
            digits.parse::<f64>().ok().filter(|_| is_plain).ok_or_else(faulty)?
        };
        let bits = match prim {
            // One rounding.
            Prim::F32 if !is_hex => digits.parse::<f32>().map_err(|_| faulty())?.to_bits().into(),
            Prim::F32 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        };
        let ty = self.types.prim(prim);
        if prim == Prim::F16 {
            let wide = self.w.lit_prim(Prim::F64, bits);
            let ir = self.w.types.prim(Prim::F16);
            return Ok((self.w.op_ty(Op::Cast, ir, &[wide]), ty));
        }
        Ok((self.w.lit_prim(prim, bits), ty))
    }

    // Loops.

    /// Code with all lanes active, or those of a mask, which goes on in `end`.
    fn with_mask(&mut self, mask: Option<Val>, end: Cont, lower: impl FnOnce(&mut Self) -> Lowered<()>) -> Lowered<()> {
        let (n, is_implicit) = (self.gang, mask.is_none());
        let mask = mask.unwrap_or_else(|| self.all_lanes(n, true));
        let mask = self.slot(mask);
        let outer = self.mode.replace(lanes::Mode { n, mask, end, is_implicit, has_left: false });
        let done = lower(self);
        self.mode = outer;
        self.jump(end, &[]);
        self.go_on_in(end);
        done
    }

    pub(super) fn unmasked(&mut self, body: &Statement<'s>, _span: Span) -> Lowered<()> {
        let end = self.block("end");
        let targets = std::mem::take(&mut self.targets);
        let was_scalar = std::mem::replace(&mut self.is_scalar, true);
        let done = self.with_mask(None, end, |l| l.within(body, false, true, |l| l.reported(body)));
        (self.targets, self.is_scalar) = (targets, was_scalar);
        done
    }

    /// `foreach_active (i)`: each active lane alone.
    pub(super) fn foreach_lane(&mut self, name: Name<'s>, body: &Statement<'s>, span: Span) -> Lowered<()> {
        let n = self.gang;
        let long = self.types.prim(Prim::I64);
        let zero = self.zero(long);
        let number = self.slot(zero);
        self.declare(name, Entity::Variable(Variable { address: number, ty: long, is_const: true }))?;
        let lanes::Turns { open, mask, lane: i, test, after } = self.turns(n, "lane", span)?;
        let ir = self.types.ir(long, self.w);
        let wide = self.w.op_ty(Op::Cast, ir, &[i]);
        self.store(number, wide, span)?;
        let none = self.all_lanes(n, false);
        let (lane, rest) = (self.with_lane(none, i, true), self.with_lane(mask, i, false));
        self.store(open, rest, span)?;
        let left = self.turn(n, lane, body, span)?;
        if let Some(mode) = self.mode {
            let (outer, left) = (self.load(mode.mask, span)?, self.load(left, span)?);
            let others = self.other_lanes(lane);
            let stays = self.w.op(Op::Or, &[left, others]);
            let mask = self.w.op(Op::And, &[outer, stays]);
            self.store(mode.mask, mask, span)?;
        }
        self.jump(test, &[]);
        self.go_on_in(after);
        self.go_on_with_lanes(span)
    }

    pub(super) fn foreach(
        &mut self,
        dimensions: &[(Name<'s>, Expr<'s>, Expr<'s>)],
        body: &Statement<'s>,
        span: Span,
    ) -> Lowered<()> {
        if self.is_in_foreach {
            let hint = "write all ranges in one `foreach`, or a `for` loop";
            return Err(Box::new(limitation::not_supported(span, "`foreach` within `foreach`", hint)));
        }
        let mut bounds = Vec::new();
        for (_, first, end) in dimensions {
            let (a, b) = (self.value(first)?, self.value(end)?);
            let is_long = [a.1, b.1].iter().any(|&ty| self.types.as_prim(ty).is_some_and(|p| p.bits() == 64));
            let prim = if is_long { Prim::I64 } else { Prim::I32 };
            let ty = self.types.prim(prim);
            bounds.push((self.convert(a, ty, first.span)?, self.convert(b, ty, end.span)?, prim));
        }
        let (Some((last, outer)), Some((&(name, ..), names))) = (bounds.split_last(), dimensions.split_last()) else {
            return Ok(());
        };
        // The outer ranges, one number at a time.
        let mut loops = Vec::new();
        for (&(first, end, prim), &(name, ..)) in outer.iter().zip(names) {
            let number = self.slot(first);
            let (test, inner, after) = (self.block("test"), self.block("row"), self.block("after"));
            self.jump(test, &[]);
            self.go_on_in(test);
            let i = self.load(number, span)?;
            let goes_on = self.w.op(Op::Lt, &[i, end]);
            self.branch(goes_on, inner, after);
            self.go_on_in(inner);
            let ty = self.numbers(prim, Some(self.gang));
            let ir = self.types.ir(ty, self.w);
            let all = self.w.op_ty(Op::Splat, ir, &[i]);
            self.declare_index(name, all, ty)?;
            loops.push((number, prim, test, after));
        }
        self.gangs(name, *last, body, span)?;
        for (number, prim, test, after) in loops.into_iter().rev() {
            let (i, one) = (self.load(number, span)?, self.w.lit_prim(prim, 1));
            let i = self.w.op(Op::Add, &[i, one]);
            self.store(number, i, span)?;
            self.jump(test, &[]);
            self.go_on_in(after);
        }
        Ok(())
    }

    fn declare_index(&mut self, name: Name<'s>, val: Val, ty: Ty) -> Lowered<()> {
        let address = self.slot(val);
        self.values.insert(address, val);
        self.declare(name, Entity::Variable(Variable { address, ty, is_const: true }))
    }

    /// The innermost range of a `foreach`.
    fn gangs(
        &mut self,
        name: Name<'s>,
        (first, end, prim): (Val, Val, Prim),
        body: &Statement<'s>,
        span: Span,
    ) -> Lowered<()> {
        let n = self.gang;
        let ty = self.numbers(prim, Some(n));
        let ir = self.types.ir(ty, self.w);
        let numbers: Vec<Val> = (0..n).map(|i| self.w.lit_prim(prim, i.into())).collect();
        let numbers = self.w.op_ty(Op::Array, ir, &numbers);
        let base = self.slot(first);
        let (test, whole) = (self.block("test"), self.block("gang"));
        let (test_rest, part, after) = (self.block("test_rest"), self.block("rest"), self.block("after"));
        self.jump(test, &[]);
        self.go_on_in(test);
        let at = self.load(base, span)?;
        let left = self.w.op(Op::Sub, &[end, at]);
        let gang = self.w.lit_prim(prim, n.into());
        let is_whole = self.w.op(Op::Ge, &[left, gang]);
        self.branch(is_whole, whole, test_rest);
        self.go_on_in(whole);
        let all = self.w.op_ty(Op::Splat, ir, &[at]);
        let index = self.w.op(Op::Add, &[all, numbers]);
        let done = self.gang_of(name, (index, ty), None, body);
        let next = self.w.op(Op::Add, &[at, gang]);
        self.store(base, next, span)?;
        self.jump(test, &[]);
        done?;
        self.go_on_in(test_rest);
        let zero = self.w.lit_prim(prim, 0);
        let is_part = self.w.op(Op::Gt, &[left, zero]);
        self.branch(is_part, part, after);
        self.go_on_in(part);
        let left = self.w.op_ty(Op::Splat, ir, &[left]);
        let active = self.w.op(Op::Lt, &[numbers, left]);
        let mask = self.mask_of_bools(active);
        // The body was lowered before: its faults are reported.
        let n_faults = self.sink.diagnostics.len();
        let done = self.gang_of(name, (index, ty), Some(mask), body);
        self.sink.diagnostics.truncate(n_faults);
        self.jump(after, &[]);
        self.go_on_in(after);
        done
    }

    fn gang_of(
        &mut self,
        name: Name<'s>,
        (index, ty): (Val, Ty),
        mask: Option<Val>,
        body: &Statement<'s>,
    ) -> Lowered<()> {
        let next = self.block("next");
        let none = self.all_lanes(self.gang, false);
        let continued = Some(self.slot(none));
        self.targets.push(Targets {
            after: next,
            next: Some(next),
            is_switch: false,
            is_of_lanes: false,
            region: Some(next),
            continued,
            is_foreach: true,
            is_turn: false,
        });
        self.scopes.push(FxHashMap::default());
        self.is_in_foreach = true;
        let done = self.with_mask(mask, next, |l| {
            l.declare_index(name, index, ty)?;
            l.within(body, true, true, |l| l.reported(body))
        });
        self.is_in_foreach = false;
        self.scopes.pop();
        self.targets.pop();
        done
    }

    // Memory.

    /// Calls a function of the runtime that has a result.
    pub(super) fn run_for(&mut self, span: Span, symbol: &str, args: &[Val], result: ir::Ty) -> Lowered<Val> {
        self.mem(span)?;
        if !self.is_reached() {
            return Ok(self.w.undef(result));
        }
        let mem = self.w.types.mem();
        let ret = self.w.types.cn(&[mem, result]);
        let mut types = vec![mem];
        types.extend(args.iter().map(|&v| self.w.ty(v)));
        types.push(ret);
        let ty = self.w.types.cn(&types);
        self.w.set_origin(span);
        let k = self.w.foreign(symbol, ty);
        let callee = self.w.cont_val(k);
        let next = self.w.declare("called", ret, &["m", "result"]);
        let next_val = self.w.cont_val(next);
        let all: Vec<Val> = args.iter().copied().chain([next_val]).collect();
        self.end(callee, &all);
        self.go_on_in(next);
        Ok(self.w.param(next, 1))
    }

    fn allocated(&mut self, count: Val, size: u64, pointer: Ty, span: Span) -> Lowered<Val> {
        let size = self.w.lit_i64(size as i64);
        let bytes = self.w.op(Op::Mul, &[count, size]);
        let byte = self.types.prim(Prim::U8);
        let of_bytes = self.types.pointer(byte, false);
        let ir = self.types.ir(of_bytes, self.w);
        let found = self.run_for(span, "nyala_alloc", &[bytes], ir)?;
        Ok(self.retyped(found, pointer))
    }

    pub(super) fn new_value(&mut self, new: &New<'s>, span: Span) -> Lowered<(Val, Ty)> {
        let ty = self.type_name(&new.ty)?;
        self.complete(ty, span)?;
        let (size, _) = self.size(ty, span)?;
        let size = self.w.as_lit(size).unwrap_or(1);
        let pointer = self.types.pointer(ty, false);
        let long = self.types.prim(Prim::I64);
        let count = match &new.count {
            Some(e) => Some((self.value(e)?, e.span)),
            None => None,
        };
        let one = (self.w.lit_i64(1), long);
        if new.is_uniform {
            let count = match count {
                Some((count, span)) => self.convert(count, long, span)?,
                None => one.0,
            };
            let address = self.allocated(count, size, pointer, span)?;
            if let Some(init) = &new.init {
                let val = self.initial_value(ty, init)?;
                let zero = self.w.lit_i64(0);
                let at = self.w.op(Op::Lea, &[address, zero]);
                self.store(at, val, span)?;
            }
            return Ok((address, pointer));
        }
        // One for each active lane.
        let n = self.gang;
        let all = self.with_lanes(pointer, n, span)?;
        let counts = match count {
            Some((count, span)) => {
                let longs = self.with_lanes(long, n, span)?;
                Some((self.convert(count, longs, span)?, longs))
            }
            None => None,
        };
        let init = match &new.init {
            Some(init) => {
                let ty = self.with_lanes(ty, n, span)?;
                Some((self.initial_value(ty, init)?, ty))
            }
            None => None,
        };
        let zero = self.zero(all);
        let found = self.slot(zero);
        self.each_active(span, |l, i| {
            let count = counts.map_or(one.0, |(val, ty)| l.lane_of(val, ty, i));
            let address = l.allocated(count, size, pointer, span)?;
            if let Some((val, ty)) = init {
                let val = l.lane_of(val, ty, i);
                let zero = l.w.lit_i64(0);
                let at = l.w.op(Op::Lea, &[address, zero]);
                l.store(at, val, span)?;
            }
            let word = l.w.types.prim(Prim::U64);
            let bits = l.w.op_ty(Op::Bitcast, word, &[address]);
            let old = l.load(found, span)?;
            let new = l.w.op(Op::Insert, &[old, i, bits]);
            l.store(found, new, span)
        })?;
        Ok((self.load(found, span)?, all))
    }

    pub(super) fn delete(&mut self, pointer: &Expr<'s>, span: Span) -> Lowered<()> {
        let found = self.value(pointer)?;
        let (val, ty) = self.block_of(found, pointer.span)?;
        let byte = self.types.prim(Prim::U8);
        let of_bytes = self.types.pointer(byte, false);
        match *self.types.kind(ty) {
            Kind::Pointer { .. } => {
                let val = self.retyped(val, of_bytes);
                self.run(span, "nyala_free", &[val])
            }
            Kind::VaryingPointer { .. } => self.each_active(span, |l, i| {
                let val = l.lane_of(val, ty, i);
                let val = l.retyped(val, of_bytes);
                l.run(span, "nyala_free", &[val])
            }),
            _ => Err(Box::new(sierra_type::mismatch(pointer.span, &self.types.show(ty), "a pointer"))),
        }
    }

    /// Code for each active lane, whose number it gets, from the first to the last.
    pub(super) fn each_active(&mut self, span: Span, lower: impl FnOnce(&mut Self, Val) -> Lowered<()>) -> Lowered<()> {
        let n = self.gang;
        let mask = self.current_mask(n, span)?;
        let active = self.bools(mask);
        let first = self.w.lit_i32(0);
        let number = self.slot(first);
        let (test, inner, after) = (self.block("test"), self.block("lane"), self.block("after"));
        self.jump(test, &[]);
        self.go_on_in(test);
        let from = self.load(number, span)?;
        let i = self.next_true(active, n, from);
        let is_lane = self.w.op(Op::Ge, &[i, first]);
        self.branch(is_lane, inner, after);
        self.go_on_in(inner);
        let done = lower(self, i);
        let one = self.w.lit_i32(1);
        let next = self.w.op(Op::Add, &[i, one]);
        self.store(number, next, span)?;
        self.jump(test, &[]);
        self.go_on_in(after);
        done
    }
}

/// `1.8p3`, behind `0x`.
fn hex_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 4096)?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mut value = 0f64;
    for digit in whole.chars().chain(part.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(value * f64::powi(2.0, exponent - 4 * part.len() as i32))
}
