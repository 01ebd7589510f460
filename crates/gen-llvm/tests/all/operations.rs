//! Every operation on numbers gives the same when it is folded, interpreted, and compiled without and with optimization,
//! for this machine's CPU and for the least one; and so do operations on vectors, lane by lane.

use nyala_base::Sink;
use nyala_gen_llvm::{Jit, Options, emit};
use nyala_ir::scalar::float_value;
use nyala_ir::{Linkage, Op, Prim, Target, Val, World};

const UNARY: &[Op] = &[Op::Popcount, Op::Clz, Op::Ctz, Op::Sqrt, Op::Abs, Op::Floor, Op::Ceil, Op::Trunc, Op::Round];
const BINARY: &[Op] = &[
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::PDiv,
    Op::PRem,
    Op::Div,
    Op::Rem,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Shl,
    Op::Shr,
    Op::Eq,
    Op::Ne,
    Op::Lt,
    Op::Le,
    Op::Gt,
    Op::Ge,
    Op::Fmin,
    Op::Fmax,
    Op::Copysign,
    Op::Pext,
    Op::Pdep,
];
/// These do not fold: interpreter and compiled code call the same function of the C library.
const LIBRARY: &[Op] = &[
    Op::Sin,
    Op::Cos,
    Op::Tan,
    Op::Asin,
    Op::Acos,
    Op::Atan,
    Op::Sinh,
    Op::Cosh,
    Op::Tanh,
    Op::Exp,
    Op::Exp2,
    Op::Expm1,
    Op::Log,
    Op::Log2,
    Op::Log10,
    Op::Log1p,
    Op::Cbrt,
    Op::Erf,
    Op::Pow,
    Op::Atan2,
    Op::Rcp,
    Op::Rsqrt,
];

/// Operations on numbers that are in none of these lists, but among the cases; and those that are tried elsewhere, since they take
/// operands of two types, or exist with AVX-512 only.
const OTHERS: &[Op] = &[Op::Fma, Op::Cast];
const ELSEWHERE: &[Op] = &[Op::Select, Op::Rcp14, Op::Rsqrt14];

/// One operation on one type.
#[derive(Clone, Copy, Debug)]
struct Case {
    op: Op,
    from: Prim,
    to: Prim,
}

impl Case {
    fn n_args(self) -> usize {
        let n = self.op.arity() as usize;
        if matches!(self.op, Op::PDiv | Op::PRem) { n - 1 } else { n }
    }

    fn name(self) -> String {
        format!("{}_{}_{}", self.op.name(), self.from.name(), self.to.name())
    }

    /// The operation, given its operands, and a `mem` if it takes one.
    fn apply(self, w: &mut World, mem: Val, args: &[Val]) -> Val {
        let to = w.types.like(w.ty(args[0]), self.to);
        match self.op {
            Op::Cast | Op::Bitcast => w.op_ty(self.op, to, args),
            Op::PDiv | Op::PRem => w.op(self.op, &[&[mem], args].concat()),
            _ => w.op(self.op, args),
        }
    }

    /// The bits of the result on literals, if it is defined.
    fn fold(self, w: &mut World, mem: Val, args: &[u64]) -> Option<u64> {
        let args: Vec<Val> = args.iter().map(|&a| w.lit_prim(self.from, a)).collect();
        let v = self.apply(w, mem, &args);
        w.as_lit(v)
    }
}

fn all_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &op in UNARY.iter().chain(BINARY).chain(LIBRARY).chain(&[Op::Fma]) {
        for from in Prim::ALL {
            let fits = match op {
                Op::Popcount | Op::Clz | Op::Ctz | Op::Shl | Op::Shr | Op::PDiv | Op::PRem => from.is_int(),
                Op::Pext | Op::Pdep => from.is_int(),
                Op::Rcp | Op::Rsqrt => from == Prim::F32 && cfg!(target_arch = "x86_64"),
                Op::Add | Op::Sub | Op::Mul => from != Prim::Bool,
                Op::Div | Op::Rem => from.is_float(),
                Op::And | Op::Or | Op::Xor => !from.is_float(),
                _ if op.is_comparison() => true,
                _ => from.is_float(),
            };
            if fits {
                cases.push(Case { op, from, to: if op.is_comparison() { Prim::Bool } else { from } });
            }
        }
    }
    for from in Prim::ALL {
        for to in Prim::ALL {
            cases.push(Case { op: Op::Cast, from, to });
            if from.bits() == to.bits() {
                cases.push(Case { op: Op::Bitcast, from, to });
            }
        }
    }
    cases
}

/// Values worth trying, as bits of the type.
fn samples(prim: Prim) -> Vec<u64> {
    let mut bits: Vec<u64> = vec![0, 1, 2, 3, 7, 8, 31, 33, 64, 100, u64::MAX, u64::MAX - 1, u64::MAX - 6];
    if prim.is_float() {
        let numbers = [
            0.0,
            0.1,
            0.5,
            1.0,
            1.5,
            2.0,
            2.5,
            3.0,
            7.25,
            100.0,
            127.5,
            128.0,
            255.9,
            1000.5,
            2048.0,
            2049.0,
            32767.5,
            65504.0,
            65519.0,
            65520.0,
            65536.0,
            6.0e-8,
            6.1e-5,
            1e-30,
            1e30,
            2147483648.0,
            4294967295.5,
            9.3e18,
            1.9e19,
            f64::INFINITY,
            f64::NAN,
            f64::MIN_POSITIVE,
            f64::MAX,
        ];
        for x in numbers {
            bits.extend([x, -x].map(|x| nyala_ir::scalar::float_bits(prim, x)));
        }
    } else {
        for i in (0..prim.bits()).step_by(5).chain([prim.bits() - 1]) {
            bits.extend([1u64 << i, (1u64 << i).wrapping_sub(1), (1u64 << i).wrapping_neg()]);
        }
    }
    for b in &mut bits {
        *b = prim.normalize(*b);
    }
    bits.sort_unstable();
    bits.dedup();
    bits
}

/// A graph that exports every case as a function of bits: `u64`s in, a `u64` out.
fn program(cases: &[Case]) -> World {
    let mut w = World::new();
    let (mem, u64) = (w.types.mem(), w.types.prim(Prim::U64));
    for &case in cases {
        let ret_ty = w.types.cn(&[mem, u64]);
        let mut tys = vec![mem];
        tys.extend(vec![u64; case.n_args()]);
        tys.push(ret_ty);
        let ty = w.types.cn(&tys);
        let k = w.declare(&case.name(), ty, &[]);
        w.cont_mut(k).linkage = Linkage::Exported(case.name()).into();
        let params = w.params(k).to_vec();
        let [m, args @ .., ret] = &params[..] else { panic!("has parameters") };
        let args: Vec<Val> = args.iter().map(|&a| from_bits(&mut w, case.from, a)).collect();
        let result = case.apply(&mut w, *m, &args);
        let result = to_bits(&mut w, case.to, result);
        w.define(k, *ret, &[*m, result]);
    }
    w
}

fn unsigned(prim: Prim) -> Prim {
    match prim.bits() {
        8 => Prim::U8,
        16 => Prim::U16,
        32 => Prim::U32,
        _ => Prim::U64,
    }
}

fn from_bits(w: &mut World, prim: Prim, v: Val) -> Val {
    let (to, via) = (w.types.prim(prim), w.types.prim(unsigned(prim)));
    if prim == Prim::Bool {
        return w.op_ty(Op::Cast, to, &[v]);
    }
    let narrow = w.op_ty(Op::Cast, via, &[v]);
    w.op_ty(Op::Bitcast, to, &[narrow])
}

fn to_bits(w: &mut World, prim: Prim, v: Val) -> Val {
    let (u64, via) = (w.types.prim(Prim::U64), w.types.prim(unsigned(prim)));
    let v = if prim == Prim::Bool { v } else { w.op_ty(Op::Bitcast, via, &[v]) };
    w.op_ty(Op::Cast, u64, &[v])
}

/// Whether two results are the same; which NaN it is, is not specified.
fn same(prim: Prim, a: u64, b: u64) -> bool {
    let (a, b) = (prim.normalize(a), prim.normalize(b));
    a == b || (prim.is_float() && float_value(prim, a).is_nan() && float_value(prim, b).is_nan())
}

/// The compiled program, for a CPU.
fn compile(world: &World, opt_level: u8, cpu: Option<&str>) -> Jit {
    let mut sink = Sink::default();
    let mut module = nyala_schedule::schedule(world, &mut sink).expect("no limitation");
    if opt_level > 0 {
        nyala_flat::promote_slots(&mut module);
        nyala_flat::simplify_branches(&mut module);
    }
    nyala_flat::verify(&module).unwrap_or_else(|e| panic!("{e}"));
    module.set_target(Target::new(None, cpu));
    let options = Options { opt_level, ..Options::default() };
    let mut llvm = emit(&module, &options).unwrap_or_else(|e| panic!("{}", e.message));
    llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
    let jit = Jit::new(&[]).expect("a JIT");
    jit.add(&llvm).unwrap_or_else(|e| panic!("{}", e.message));
    jit
}

/// Calls a compiled case.
fn call(address: usize, args: &[u64]) -> u64 {
    // SAFETY: `program` gives all cases such types; a function that takes fewer does not look at the others.
    let f: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(address) };
    f(args[0], args.get(1).copied().unwrap_or(0), args.get(2).copied().unwrap_or(0))
}

/// Whether optimized code leaves the result undefined: signed overflow.
fn overflows(case: Case, args: &[u64]) -> bool {
    matches!(case.op, Op::Add | Op::Sub | Op::Mul)
        && nyala_ir::scalar::eval_arith(case.op, case.from, args[0], args[1]).is_some_and(|r| r.1)
}

/// All combinations of sample values.
fn inputs(case: Case) -> Vec<Vec<u64>> {
    let values = samples(case.from);
    match case.n_args() {
        // All there are.
        1 if case.from.bits() == 16 => (0..=0xffff).map(|b| vec![case.from.normalize(b)]).collect(),
        1 => values.iter().map(|&a| vec![a]).collect(),
        2 => values.iter().flat_map(|&a| values.iter().map(move |&b| vec![a, b])).collect(),
        _ => {
            let few: Vec<u64> = values.iter().copied().step_by(3).collect();
            let pairs: Vec<[u64; 2]> = few.iter().flat_map(|&a| few.iter().map(move |&b| [a, b])).collect();
            pairs.iter().flat_map(|p| few.iter().map(|&c| vec![p[0], p[1], c])).collect()
        }
    }
}

/// A world to fold in, and a `mem` for operations that may fault.
fn world_with_mem() -> (World, Val) {
    let mut w = World::new();
    let mem = w.types.mem();
    let ty = w.types.cn(&[mem]);
    let k = w.declare("k", ty, &[]);
    let mem = w.param(k, 0);
    (w, mem)
}

#[test]
fn every_operation_on_numbers_is_tried() {
    let tried = [UNARY, BINARY, LIBRARY, OTHERS].concat();
    let all = Op::ALL.iter().filter(|op| op.is_lane_wise());
    let missing: Vec<&Op> = all.filter(|op| !tried.contains(op) && !ELSEWHERE.contains(op)).collect();
    assert!(missing.is_empty(), "in none of the lists of this file: {missing:?}");
}

#[test]
fn folding_agrees_with_compiled_code() {
    let cases: Vec<Case> = all_cases().into_iter().filter(|c| !LIBRARY.contains(&c.op)).collect();
    let world = program(&cases);
    let (mut fold_world, mem) = world_with_mem();
    let inputs: Vec<Vec<Vec<u64>>> = cases.iter().map(|&c| inputs(c)).collect();
    // Folded once.
    let mut folded: Vec<Vec<Option<u64>>> = Vec::new();
    for (&case, inputs) in cases.iter().zip(&inputs) {
        let mut fold = |args: &Vec<u64>| case.fold(&mut fold_world, mem, args).filter(|_| !overflows(case, args));
        folded.push(inputs.iter().map(&mut fold).collect());
    }
    for (opt_level, cpu) in [(0, None), (3, None), (0, Some("x86-64")), (3, Some("x86-64"))] {
        let cpu = cpu.filter(|_| cfg!(target_arch = "x86_64"));
        let jit = compile(&world, opt_level, cpu);
        for (&case, (inputs, folded)) in cases.iter().zip(inputs.iter().zip(&folded)) {
            let address = jit.lookup(&case.name()).unwrap_or_else(|e| panic!("{}", e.message));
            for (args, folded) in inputs.iter().zip(folded) {
                let &Some(folded) = folded else { continue };
                let compiled = call(address, args);
                assert!(
                    same(case.to, folded, compiled),
                    "{}({args:x?}) is {folded:x} folded, {compiled:x} at -O{opt_level} for {cpu:?}",
                    case.name()
                );
            }
        }
    }
}

#[test]
fn interpretation_agrees_with_folding_and_compiled_code() {
    let cases = all_cases();
    let world = program(&cases);
    let (mut fold_world, mem) = world_with_mem();
    let jit = compile(&world, 3, None);
    for &case in &cases {
        // One of its own: the interpreter looks at the whole graph first.
        let single = program(&[case]);
        let entry = single.find_root(&case.name()).expect("exported");
        let all = inputs(case);
        for args in all.iter().step_by((all.len() / 40).max(1)) {
            let interpreted = match nyala_interp::run(&single, entry, args, &Default::default()) {
                Ok(result) => result[0],
                Err(fault) => {
                    let faults = ["division-by-zero", "signed-overflow"];
                    assert!(
                        faults.contains(&fault.code()),
                        "{}({args:x?}): {}",
                        case.name(),
                        fault.diagnostic().message
                    );
                    continue;
                }
            };
            let compiled = call(jit.lookup(&case.name()).expect("linked"), args);
            let text = format!("{}({args:x?}) is {interpreted:x} interpreted", case.name());
            assert!(same(case.to, interpreted, compiled), "{text}, {compiled:x} compiled");
            if let Some(folded) = case.fold(&mut fold_world, mem, args) {
                assert!(same(case.to, interpreted, folded), "{text}, {folded:x} folded");
            }
        }
    }
}

// Vectors.

/// Numbers of lanes, one for each operation in turn.
const LANES: &[u32] = &[4, 3, 8, 1, 2, 16, 5, 32, 7, 64, 12, 33];

/// Operand `j` of lane `i`: one of the arguments, or a literal.
fn lane_operand(i: u32, j: usize, args: &[u64]) -> Result<usize, u64> {
    match i % 3 {
        0 => Ok(j),
        1 => Ok((j + 1) % args.len()),
        _ => Err(u64::from(i) * 7 + j as u64),
    }
}

/// The operands of one lane, as bits.
fn lane_args(case: Case, i: u32, args: &[u64]) -> Vec<u64> {
    let literal = |bits| {
        let bits = if case.from.is_float() { nyala_ir::scalar::float_bits(case.from, bits as f64 / 8.0) } else { bits };
        case.from.normalize(bits)
    };
    (0..args.len()).map(|j| lane_operand(i, j, args).map_or_else(literal, |at| args[at])).collect()
}

/// A graph that exports every case on vectors, as a function of bits and of the lane that it gives back.
fn vector_program(cases: &[(Case, u32)]) -> World {
    let mut w = World::new();
    let (mem, u64) = (w.types.mem(), w.types.prim(Prim::U64));
    for &(case, n) in cases {
        let ret_ty = w.types.cn(&[mem, u64]);
        let ty = w.types.cn(&[mem, u64, u64, u64, u64, ret_ty]);
        let k = w.declare(&case.name(), ty, &[]);
        w.cont_mut(k).linkage = Linkage::Exported(case.name()).into();
        let params = w.params(k).to_vec();
        let [m, a, b, c, lane, ret] = params[..] else { panic!("has parameters") };
        let args = &[a, b, c][..case.n_args()];
        let numbers: Vec<Val> = args.iter().map(|&a| from_bits(&mut w, case.from, a)).collect();
        let zeros = vec![0; args.len()];
        let from = w.types.vector(case.from, n);
        let mut operands = Vec::new();
        for j in 0..args.len() {
            let mut lanes = Vec::new();
            for i in 0..n {
                lanes.push(match lane_operand(i, j, &zeros) {
                    Ok(at) => numbers[at],
                    Err(_) => {
                        let bits = lane_args(case, i, &zeros)[j];
                        w.lit_prim(case.from, bits)
                    }
                });
            }
            operands.push(w.op_ty(Op::Array, from, &lanes));
        }
        let result = case.apply(&mut w, m, &operands);
        let result = w.op(Op::Extract, &[result, lane]);
        let result = to_bits(&mut w, case.to, result);
        w.define(k, ret, &[m, result]);
    }
    w
}

/// The operation on vectors of literals.
fn fold_vector(case: Case, w: &mut World, mem: Val, lanes: &[Vec<u64>]) -> Val {
    let ty = w.types.vector(case.from, lanes.len() as u32);
    let mut operands = Vec::new();
    for j in 0..case.n_args() {
        let parts: Vec<Val> = lanes.iter().map(|l| w.lit_prim(case.from, l[j])).collect();
        operands.push(w.op_ty(Op::Array, ty, &parts));
    }
    case.apply(w, mem, &operands)
}

#[test]
fn lanes_agree_with_numbers() {
    let cases = all_cases().into_iter().filter(|c| c.op != Op::Bitcast).enumerate();
    let cases: Vec<(Case, u32)> = cases.map(|(i, case)| (case, LANES[i % LANES.len()])).collect();
    let world = vector_program(&cases);
    let (mut fold_world, mem) = world_with_mem();
    for (opt_level, cpu) in [(0, None), (3, None), (0, Some("x86-64")), (3, Some("x86-64"))] {
        let cpu = cpu.filter(|_| cfg!(target_arch = "x86_64"));
        let jit = compile(&world, opt_level, cpu);
        for &(case, n) in &cases {
            let address = jit.lookup(&case.name()).unwrap_or_else(|e| panic!("{}", e.message));
            // SAFETY: `vector_program` gives all cases this type.
            let f: extern "C" fn(u64, u64, u64, u64) -> u64 = unsafe { std::mem::transmute(address) };
            let single = vector_program(&[(case, n)]);
            let entry = single.find_root(&case.name()).expect("exported");
            let all = inputs(case);
            for (round, args) in all.iter().step_by((all.len() / 25).max(1)).enumerate() {
                let lanes: Vec<Vec<u64>> = (0..n).map(|i| lane_args(case, i, args)).collect();
                let divides = matches!(case.op, Op::PDiv | Op::PRem);
                if divides && lanes.iter().any(|l| case.fold(&mut fold_world, mem, l).is_none()) {
                    continue;
                }
                let overflow = lanes.iter().any(|l| overflows(case, l));
                let known = fold_vector(case, &mut fold_world, mem, &lanes);
                for (i, own) in lanes.iter().enumerate() {
                    if overflows(case, own) {
                        continue;
                    }
                    let [a, b, c] = [0, 1, 2].map(|j| args.get(j).copied().unwrap_or(0));
                    let compiled = f(a, b, c, i as u64);
                    let what = format!("lane {i} of {n}, {}({own:x?})", case.name());
                    if let Some(folded) = case.fold(&mut fold_world, mem, own) {
                        let lane = fold_world.extract(known, i as u64);
                        let lane = fold_world.as_lit(lane);
                        assert!(
                            lane.is_some_and(|l| same(case.to, l, folded)),
                            "{what} is {lane:x?}, {folded:x} alone"
                        );
                        let text = format!("{what} is {folded:x} folded, {compiled:x} at -O{opt_level} for {cpu:?}");
                        assert!(same(case.to, folded, compiled), "{text}");
                    }
                    if opt_level == 3 && cpu.is_none() && !overflow && round % 5 == i % 5 {
                        let result = nyala_interp::run(&single, entry, &[a, b, c, i as u64], &Default::default());
                        let interpreted = result.map_err(|f| f.diagnostic().message).expect("no fault")[0];
                        let text = format!("{what} is {interpreted:x} interpreted, {compiled:x} compiled");
                        // Vectors of these are within 4 units in the last place (`docs/design/targets.md`,
                        // Math functions).
                        let close = LIBRARY.contains(&case.op) && interpreted.abs_diff(compiled) <= 4;
                        assert!(same(case.to, interpreted, compiled) || close, "{text}");
                    }
                }
            }
        }
    }
}

// Random expressions.

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// Makes expressions without undefined behavior; which NaN a number is does not show.
struct Maker<'w> {
    w: &'w mut World,
    rng: Rng,
    /// Arguments of type `u64`.
    args: Vec<Val>,
}

impl Maker<'_> {
    fn ty(&mut self, prim: Prim, n: u32) -> nyala_ir::Ty {
        if n == 0 { self.w.types.prim(prim) } else { self.w.types.vector(prim, n) }
    }

    fn literal(&mut self, prim: Prim) -> Val {
        let bits = [0, 1, 2, 3, 7, 8, 200, u64::MAX, u64::MAX - 1][self.rng.below(9)];
        let bits = if prim.is_float() {
            nyala_ir::scalar::float_bits(prim, [0.0, -0.0, 1.0, 2.0, 0.5, -3.25, f64::INFINITY, 1e9][self.rng.below(8)])
        } else {
            bits
        };
        self.w.lit_prim(prim, bits)
    }

    /// An expression of lanes of a type, or of a number if `n` is 0.
    fn make(&mut self, prim: Prim, n: u32, depth: u32) -> Val {
        let ty = self.ty(prim, n);
        if depth == 0 || self.rng.below(8) == 0 {
            return self.leaf(prim, n, depth);
        }
        let d = depth - 1;
        let binary = |m: &mut Self, ops: &[Op]| {
            let op = ops[m.rng.below(ops.len())];
            let (a, b) = (m.make(prim, n, d), m.make(prim, n, d));
            m.w.op(op, &[a, b])
        };
        let is_power = n.is_power_of_two();
        match self.rng.below(12) {
            0..=3 if prim.is_float() => {
                binary(self, &[Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::Fmin, Op::Fmax])
            }
            0..=3 if prim == Prim::Bool => binary(self, &[Op::And, Op::Or, Op::Xor]),
            0..=3 if prim.is_signed() => binary(self, &[Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr]),
            0..=3 => {
                binary(self, &[Op::Add, Op::Sub, Op::Mul, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::Add, Op::Sub])
            }
            4 | 5 if prim == Prim::Bool => {
                let other = Prim::ALL[self.rng.below(12)];
                let op = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge][self.rng.below(6)];
                let (a, b) = (self.make(other, n, d), self.make(other, n, d));
                self.w.op(op, &[a, b])
            }
            4 if prim.is_float() => {
                let ops = [Op::Sqrt, Op::Abs, Op::Floor, Op::Ceil, Op::Trunc, Op::Round];
                let (op, a) = (ops[self.rng.below(6)], self.make(prim, n, d));
                self.w.op(op, &[a])
            }
            4 => {
                let (op, a) = ([Op::Popcount, Op::Clz, Op::Ctz][self.rng.below(3)], self.make(prim, n, d));
                self.w.op(op, &[a])
            }
            5 | 6 => {
                let from = Prim::ALL[self.rng.below(12)];
                let a = self.make(from, n, d);
                self.w.op_ty(Op::Cast, ty, &[a])
            }
            7 => {
                let cond_lanes = if self.rng.below(2) == 0 { n } else { 0 };
                let cond = self.make(Prim::Bool, cond_lanes, d);
                let (a, b) = (self.make(prim, n, d), self.make(prim, n, d));
                self.w.op(Op::Select, &[cond, a, b])
            }
            8 if n > 0 => {
                let from = [1, 2, 3, 4, 8][self.rng.below(5)];
                let (a, b) = (self.make(prim, from, d), self.make(prim, from, d));
                let idx: Vec<Val> =
                    (0..n).map(|_| self.rng.below(2 * from as usize) as i32).map(|i| self.w.lit_i32(i)).collect();
                let idx_ty = self.w.types.vector(Prim::I32, n);
                let idx = self.w.op_ty(Op::Array, idx_ty, &idx);
                self.w.op(Op::Shuffle, &[a, b, idx])
            }
            9 if n > 0 => {
                let (v, lane) = (self.make(prim, n, d), self.make(prim, 0, d));
                let idx = self.index(n, is_power, d);
                self.w.op(Op::Insert, &[v, idx, lane])
            }
            8 | 9 => {
                let from = [1, 2, 3, 4, 8][self.rng.below(5)];
                let v = self.make(prim, from, d);
                let idx = self.index(from, from != 3, d);
                self.w.op(Op::Extract, &[v, idx])
            }
            10 if !prim.is_float() && prim != Prim::Bool => {
                let same =
                    Prim::ALL.into_iter().filter(|p| p.is_int() && p.bits() == prim.bits()).nth(self.rng.below(2));
                let a = self.make(same.unwrap_or(prim), n, d);
                self.w.op_ty(Op::Bitcast, ty, &[a])
            }
            _ => self.leaf(prim, n, d),
        }
    }

    fn index(&mut self, n: u32, is_power: bool, depth: u32) -> Val {
        if !is_power || self.rng.below(2) == 0 {
            let idx = self.rng.below(n as usize);
            return self.w.lit_i32(idx as i32);
        }
        let (any, mask) = (self.make(Prim::U32, 0, depth), self.w.lit_prim(Prim::U32, u64::from(n - 1)));
        self.w.op(Op::And, &[any, mask])
    }

    fn leaf(&mut self, prim: Prim, n: u32, depth: u32) -> Val {
        let ty = self.ty(prim, n);
        match self.rng.below(3) {
            0 if n > 0 => {
                let lanes: Vec<Val> = (0..n).map(|_| self.make(prim, 0, depth.min(1))).collect();
                self.w.op_ty(Op::Array, ty, &lanes)
            }
            _ if n > 0 => {
                let lane = self.make(prim, 0, depth.min(1));
                self.w.op_ty(Op::Splat, ty, &[lane])
            }
            0 => self.literal(prim),
            _ => {
                let arg = self.args[self.rng.below(self.args.len())];
                self.w.op_ty(Op::Cast, ty, &[arg])
            }
        }
    }
}

#[test]
fn random_expressions_agree() {
    const PROGRAMS: u64 = 300;
    let mut w = World::new();
    let (mem, u64) = (w.types.mem(), w.types.prim(Prim::U64));
    let build = |w: &mut World, seed: u64, args: Vec<Val>| {
        let mut m = Maker { w, rng: Rng(seed), args };
        let prim = Prim::ALL[m.rng.below(12)];
        let v = m.make(prim, 0, 6);
        // The sign and payload of a NaN are no result.
        let v = if prim.is_float() { m.w.op_ty(Op::Cast, u64, &[v]) } else { to_bits(m.w, prim, v) };
        (v, prim)
    };
    for seed in 0..PROGRAMS {
        let ret_ty = w.types.cn(&[mem, u64]);
        let ty = w.types.cn(&[mem, u64, u64, u64, ret_ty]);
        let k = w.declare(&format!("f{seed}"), ty, &[]);
        w.cont_mut(k).linkage = Linkage::Exported(format!("f{seed}")).into();
        let [m, a, b, c, ret] = w.params(k).to_vec()[..] else { panic!("has parameters") };
        let (v, _) = build(&mut w, seed, vec![a, b, c]);
        w.define(k, ret, &[m, v]);
    }
    let faults = nyala_ir::verify::verify(&w, &w.roots());
    assert!(faults.is_empty(), "{faults:?}");
    let jits = [(0, None), (3, None), (3, Some("x86-64").filter(|_| cfg!(target_arch = "x86_64")))];
    let jits = jits.map(|(level, cpu)| compile(&w, level, cpu));
    let inputs = [[0, 0, 0], [1, 2, 3], [u64::MAX, 5, 1 << 40], [0x3c00_7bff_8000, 0xffff_0000, 77]];
    for seed in 0..PROGRAMS {
        for args in inputs {
            let mut known = World::new();
            let literals = args.iter().map(|&a| known.lit_prim(Prim::U64, a)).collect();
            let (v, _) = build(&mut known, seed, literals);
            let folded = known.as_lit(v);
            let text = || nyala_ir::print::print_roots(&w, &[w.find_root(&format!("f{seed}")).expect("exported")]);
            assert!(folded.is_some(), "seed {seed}: {args:x?} leaves something\n{}", text());
            for (i, jit) in jits.iter().enumerate() {
                let address = jit.lookup(&format!("f{seed}")).expect("linked");
                let compiled = call(address, &args);
                assert_eq!(Some(compiled), folded, "seed {seed}, {args:x?}, code {i}\n{}", text());
            }
        }
    }
    // The interpreter looks at the whole graph first: few, each in a graph of its own.
    for seed in 0..PROGRAMS {
        let mut single = World::new();
        let ret_ty = single.types.cn(&[mem, u64]);
        let ty = single.types.cn(&[mem, u64, u64, u64, ret_ty]);
        let k = single.declare("f", ty, &[]);
        single.cont_mut(k).linkage = Linkage::Exported("f".into()).into();
        let [m, a, b, c, ret] = single.params(k).to_vec()[..] else { panic!("has parameters") };
        let (v, _) = build(&mut single, seed, vec![a, b, c]);
        single.define(k, ret, &[m, v]);
        for args in inputs {
            let result = nyala_interp::run(&single, k, &args, &Default::default());
            let result = result.unwrap_or_else(|f| panic!("seed {seed}, {args:x?}: {}", f.diagnostic().message));
            let compiled = call(jits[0].lookup(&format!("f{seed}")).expect("linked"), &args);
            assert_eq!(result[0], compiled, "seed {seed}, {args:x?} interpreted\n{}", nyala_ir::print::print(&single));
        }
    }
}
