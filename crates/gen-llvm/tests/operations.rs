//! Every operation on numbers gives the same when it is folded, interpreted, and compiled without and with optimization,
//! for this machine's CPU and for the least one.

use nyala_base::Sink;
use nyala_gen_llvm::{Jit, Options, emit};
use nyala_ir::scalar::float_value;
use nyala_ir::{Linkage, Op, Prim, Val, World};

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
    Op::Pow,
    Op::Atan2,
];

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
        let to = w.types.prim(self.to);
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
        w.cont_mut(k).linkage = Linkage::Exported(case.name());
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
    let mut module = nyala_flat::schedule(world, &mut sink).expect("no limitation");
    if opt_level > 0 {
        nyala_flat::promote_slots(&mut module);
        nyala_flat::simplify_branches(&mut module);
    }
    nyala_flat::verify(&module).unwrap_or_else(|e| panic!("{e}"));
    let options = Options { opt_level, cpu: cpu.map(Into::into), ..Options::default() };
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

#[test]
fn folding_agrees_with_compiled_code() {
    let cases: Vec<Case> = all_cases().into_iter().filter(|c| !LIBRARY.contains(&c.op)).collect();
    let world = program(&cases);
    let mut fold_world = World::new();
    let mem_ty = fold_world.types.mem();
    let ty = fold_world.types.cn(&[mem_ty]);
    let k = fold_world.declare("mem", ty, &[]);
    let mem = fold_world.param(k, 0);
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
    let mut fold_world = World::new();
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
            if matches!(case.op, Op::PDiv | Op::PRem) {
                continue;
            }
            let mem = Val(0);
            if let Some(folded) = case.fold(&mut fold_world, mem, args) {
                assert!(same(case.to, interpreted, folded), "{text}, {folded:x} folded");
            }
        }
    }
}
