//! Random programs about memory: variables of many shapes, reached by several addresses, written by parts and as a whole,
//! atomically, through functions and around loops. Source, residual program and compiled code agree.

use nyala_base::Sink;
use nyala_gen_llvm::{Jit, Options, emit};
use nyala_ir::{Builtin, Cont, Linkage, Op, Prim, Ty, TyKind, Val, World};

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

struct Maker {
    w: World,
    rng: Rng,
    /// The block under construction and its state of memory.
    block: Cont,
    mem: Val,
    /// Numbers (u32) in scope.
    numbers: Vec<Val>,
    /// Addresses of the variables.
    slots: Vec<Val>,
    /// `fn(&u32, u32)`, which writes where it is told to.
    write: Cont,
}

impl Maker {
    fn number(&mut self) -> Val {
        if self.rng.below(3) == 0 {
            let literal = self.rng.below(9) as u64;
            return self.w.lit_prim(Prim::U32, literal);
        }
        let n = self.numbers[self.rng.below(self.numbers.len())];
        match self.rng.below(4) {
            0 => {
                let other = self.numbers[self.rng.below(self.numbers.len())];
                self.w.op([Op::Add, Op::Xor, Op::Mul][self.rng.below(3)], &[n, other])
            }
            _ => n,
        }
    }

    /// An index below `n`, a power of two: literal, of any type, or not known.
    fn index(&mut self, n: u64) -> Val {
        if self.rng.below(4) == 0 {
            let (any, mask) = (self.number(), self.w.lit_prim(Prim::U32, n - 1));
            return self.w.op(Op::And, &[any, mask]);
        }
        let prim = [Prim::I32, Prim::I64, Prim::U8, Prim::I16][self.rng.below(4)];
        let idx = self.rng.below(n as usize) as u64;
        self.w.lit_prim(prim, idx)
    }

    /// Another address of the place.
    fn renamed(&mut self, ptr: Val) -> Val {
        let Some(mut pointee) = self.w.types.pointee(self.w.ty(ptr)) else { return ptr };
        if self.rng.below(3) != 0 {
            return ptr;
        }
        if let (TyKind::Array(elem, _), 0) = (self.w.types.kind(pointee).clone(), self.rng.below(2)) {
            pointee = self.w.types.indef_array(elem);
        }
        let space = self.rng.below(3) as u8;
        let ty = self.w.types.intern(TyKind::Ptr { pointee, space });
        self.w.op_ty(Op::Bitcast, ty, &[ptr])
    }

    /// An address somewhere in a variable; of a number if `whole` is not allowed.
    fn address(&mut self, allow_whole: bool) -> Val {
        let mut at = self.slots[self.rng.below(self.slots.len())];
        loop {
            let ty = self.w.types.pointee(self.w.ty(at)).expect("an address");
            if allow_whole && self.rng.below(3) == 0 {
                return at;
            }
            let n = match self.w.types.kind(ty) {
                TyKind::Prim(_) => return self.renamed(at),
                _ => self.w.types.n_parts(ty).expect("parts"),
            };
            let is_tuple = matches!(self.w.types.kind(ty), TyKind::Tuple(_));
            let idx = if is_tuple { self.w.lit_i64(self.rng.below(n as usize) as i64) } else { self.index(n) };
            at = self.renamed(at);
            at = self.w.op(Op::Lea, &[at, idx]);
        }
    }

    fn value(&mut self, ty: Ty) -> Val {
        let Some(n) = self.w.types.n_parts(ty) else { return self.number() };
        let parts: Vec<Val> = (0..n)
            .map(|i| {
                let part = self.w.types.part(ty, i).expect("a part");
                self.value(part)
            })
            .collect();
        match self.w.types.kind(ty) {
            TyKind::Tuple(_) => self.w.op(Op::Tuple, &parts),
            _ => self.w.op_ty(Op::Array, ty, &parts),
        }
    }

    /// Some number in a value.
    fn part(&mut self, mut v: Val) -> Val {
        while let Some(n) = self.w.types.n_parts(self.w.ty(v)) {
            let idx = self.rng.below(n as usize) as u64;
            v = self.w.extract(v, idx);
        }
        v
    }

    fn block(&mut self, tys: &[Ty]) -> Cont {
        let mut all = vec![self.w.types.mem()];
        all.extend(tys);
        let ty = self.w.types.cn(&all);
        self.w.declare("b", ty, &[])
    }

    fn go_on_in(&mut self, block: Cont) {
        self.block = block;
        self.mem = self.w.param(block, 0);
    }

    fn end(&mut self, callee: Val, args: &[Val]) {
        let mut all = vec![self.mem];
        all.extend(args);
        self.w.define(self.block, callee, &all);
    }

    fn jump(&mut self, to: Cont, args: &[Val]) {
        let to = self.w.cont_val(to);
        self.end(to, args);
    }

    fn branch(&mut self, cond: Val, then: Cont, els: Cont) {
        let (b, t, e) = (self.w.builtin(Builtin::Branch), self.w.cont_val(then), self.w.cont_val(els));
        self.end(b, &[cond, t, e]);
    }

    fn load(&mut self, ptr: Val) -> Val {
        self.w.op(Op::Load, &[self.mem, ptr])
    }

    fn store(&mut self, ptr: Val, v: Val) {
        self.mem = self.w.op(Op::Store, &[self.mem, ptr, v]);
    }

    fn statement(&mut self, depth: u32) {
        let u32 = self.w.types.prim(Prim::U32);
        match self.rng.below(if depth > 0 { 14 } else { 11 }) {
            0..=2 => {
                let (at, v) = (self.address(false), self.number());
                self.store(at, v);
            }
            3 | 4 => {
                let at = self.address(true);
                let v = self.load(at);
                let v = self.part(v);
                self.numbers.push(v);
            }
            5 | 6 => {
                let at = self.address(true);
                let ty = self.w.types.pointee(self.w.ty(at)).expect("an address");
                let v = self.value(ty);
                self.store(at, v);
            }
            7 => {
                let op = self.w.lit_prim(Prim::U32, [0, 1, 6, 9][self.rng.below(4)]);
                let order = self.w.lit_prim(Prim::U32, [2, 7][self.rng.below(2)]);
                let scope = self.w.lit_i32(0);
                let (at, v) = (self.address(false), self.number());
                let old = self.w.op(Op::Atomic, &[self.mem, op, at, v, order, scope]);
                self.mem = self.w.extract(old, 0);
                let old = self.w.extract(old, 1);
                self.numbers.push(old);
            }
            8 => {
                let order = self.w.lit_prim(Prim::U32, 4);
                let scope = self.w.lit_i32(0);
                let (at, expected, v) = (self.address(false), self.number(), self.number());
                let pair = self.w.op(Op::Cmpxchg, &[self.mem, at, expected, v, order, order, scope]);
                self.mem = self.w.extract(pair, 0);
                let pair = self.w.extract(pair, 1);
                let old = self.w.extract(pair, 0);
                self.numbers.push(old);
            }
            9 => {
                // Other words for the same bytes.
                let at = self.slots[0];
                let ty = self.w.types.vector(Prim::U64, 2);
                let ty = self.w.types.ptr(ty);
                let at = self.w.op_ty(Op::Bitcast, ty, &[at]);
                let idx = self.index(2);
                let at = self.w.op(Op::Lea, &[at, idx]);
                if self.rng.below(2) == 0 {
                    let (n, u64) = (self.number(), self.w.types.prim(Prim::U64));
                    let n = self.w.op_ty(Op::Cast, u64, &[n]);
                    self.store(at, n);
                } else {
                    let v = self.load(at);
                    let v = self.w.op_ty(Op::Cast, u32, &[v]);
                    self.numbers.push(v);
                }
            }
            10 => {
                let (at, v, next) = (self.address(false), self.number(), self.block(&[]));
                let ptr = self.w.types.ptr(u32);
                let at = self.w.op_ty(Op::Bitcast, ptr, &[at]);
                let mut callee = self.w.cont_val(self.write);
                if self.rng.below(2) == 0 {
                    callee = self.w.op(Op::Hlt, &[callee]);
                }
                let k = self.w.cont_val(next);
                self.end(callee, &[at, v, k]);
                self.go_on_in(next);
            }
            11 | 12 => {
                let (a, b) = (self.number(), self.number());
                let cond = self.w.op(Op::Lt, &[a, b]);
                let (then, els, join) = (self.block(&[]), self.block(&[]), self.block(&[u32]));
                self.branch(cond, then, els);
                let n = self.numbers.len();
                for arm in [then, els] {
                    self.go_on_in(arm);
                    for _ in 0..self.rng.below(3) {
                        self.statement(depth - 1);
                    }
                    let v = self.number();
                    self.jump(join, &[v]);
                    self.numbers.truncate(n);
                }
                self.go_on_in(join);
                let v = self.w.param(join, 1);
                self.numbers.push(v);
            }
            _ => {
                let (any, three) = (self.number(), self.w.lit_prim(Prim::U32, 3));
                let bound = self.w.op(Op::And, &[any, three]);
                let (head, body, exit) = (self.block(&[u32]), self.block(&[]), self.block(&[]));
                let zero = self.w.lit_prim(Prim::U32, 0);
                self.jump(head, &[zero]);
                self.go_on_in(head);
                let i = self.w.param(head, 1);
                let goes_on = self.w.op(Op::Lt, &[i, bound]);
                self.branch(goes_on, body, exit);
                let n = self.numbers.len();
                self.go_on_in(body);
                self.numbers.push(i);
                for _ in 0..1 + self.rng.below(2) {
                    self.statement(depth - 1);
                }
                self.numbers.truncate(n);
                let one = self.w.lit_prim(Prim::U32, 1);
                let next = self.w.op(Op::Add, &[i, one]);
                self.jump(head, &[next]);
                self.go_on_in(exit);
            }
        }
    }
}

/// A graph that exports `f: fn(u32, u32) -> u32`, and `g` which calls it with literals.
fn program(seed: u64, known: [u32; 2]) -> World {
    let mut w = World::new();
    let (mem, u32) = (w.types.mem(), w.types.prim(Prim::U32));
    let ptr = w.types.ptr(u32);
    let done = w.types.cn(&[mem]);
    let ret_ty = w.types.cn(&[mem, u32]);
    let write_ty = w.types.cn(&[mem, ptr, u32, done]);
    let write = w.declare("write", write_ty, &["m", "p", "x", "ret"]);
    let [m, p, x, ret] = w.params(write).to_vec()[..] else { panic!("has parameters") };
    let old = w.op(Op::Load, &[m, p]);
    let new = w.op(Op::Add, &[old, x]);
    let m = w.op(Op::Store, &[m, p, new]);
    w.define(write, ret, &[m]);
    let ty = w.types.cn(&[mem, u32, u32, ret_ty]);
    let f = w.declare("f", ty, &["m", "x", "y", "ret"]);
    w.cont_mut(f).linkage = Linkage::Exported("f".into()).into();
    let [m, x, y, ret] = w.params(f).to_vec()[..] else { panic!("has parameters") };
    let mut made = Maker { w, rng: Rng(seed), block: f, mem: m, numbers: vec![x, y], slots: Vec::new(), write };
    let w = &mut made.w;
    let pair = w.types.tuple(&[u32, u32]);
    let vector = w.types.vector(Prim::U32, 4);
    let mixed = w.types.tuple(&[u32, vector]);
    let tys = [w.types.array(u32, 4), w.types.array(pair, 2), mixed, u32];
    for ty in tys {
        let slot = made.w.op_ty(Op::Slot, ty, &[made.mem]);
        made.mem = made.w.extract(slot, 0);
        let at = made.w.extract(slot, 1);
        let v = made.value(ty);
        made.store(at, v);
        made.slots.push(at);
    }
    for _ in 0..8 + made.rng.below(8) {
        made.statement(2);
    }
    let mut sum = made.number();
    for at in made.slots.clone() {
        let mut work = vec![made.load(at)];
        while let Some(v) = work.pop() {
            match made.w.types.n_parts(made.w.ty(v)) {
                Some(n) => work.extend((0..n).map(|i| made.w.extract(v, i))),
                None => {
                    let seven = made.w.lit_prim(Prim::U32, 7);
                    let scaled = made.w.op(Op::Mul, &[sum, seven]);
                    sum = made.w.op(Op::Add, &[scaled, v]);
                }
            }
        }
    }
    made.end(ret, &[sum]);
    let mut w = made.w;
    let ty = w.types.cn(&[mem, ret_ty]);
    let g = w.declare("g", ty, &["m", "ret"]);
    w.cont_mut(g).linkage = Linkage::Exported("g".into()).into();
    let callee = w.cont_val(f);
    let callee = w.op(Op::Unfold, &[callee]);
    let (m, ret) = (w.param(g, 0), w.param(g, 1));
    let args = known.map(|n| w.lit_prim(Prim::U32, n.into()));
    w.define(g, callee, &[m, args[0], args[1], ret]);
    w
}

/// The results of `f` on the arguments and of `g`, interpreted.
fn interpret(w: &World, args: [u32; 2]) -> [u64; 2] {
    let run = |name: &str, args: &[u64]| {
        let root = w.find_root(name).expect("exported");
        let result = nyala_interp::run(w, root, args, &Default::default());
        result.unwrap_or_else(|f| panic!("{}\n{}", f.diagnostic().message, nyala_ir::print::print(w)))[0]
    };
    [run("f", &args.map(u64::from)), run("g", &[])]
}

fn compiled(w: &World, args: [u32; 2], opt_level: u8) -> [u64; 2] {
    let mut module = nyala_schedule::schedule(w, &mut Sink::default()).expect("no limitation");
    if opt_level > 0 {
        nyala_flat::promote_slots(&mut module);
        nyala_flat::simplify_branches(&mut module);
    }
    nyala_flat::verify(&module).unwrap_or_else(|e| panic!("{e}\n{module}"));
    let mut llvm =
        emit(&module, &Options { opt_level, ..Options::default() }).unwrap_or_else(|e| panic!("{}", e.message));
    llvm.optimize().unwrap_or_else(|e| panic!("{}", e.message));
    let jit = Jit::new(&[]).expect("a JIT");
    jit.add(&llvm).unwrap_or_else(|e| panic!("{}", e.message));
    let address = |name| jit.lookup(name).unwrap_or_else(|e| panic!("{}", e.message));
    // SAFETY: these are the types of the graph.
    unsafe {
        let f: extern "C" fn(u32, u32) -> u32 = std::mem::transmute(address("f"));
        let g: extern "C" fn() -> u32 = std::mem::transmute(address("g"));
        [f(args[0], args[1]).into(), g().into()]
    }
}

#[test]
fn random_programs_about_memory_agree() {
    const PROGRAMS: u64 = 120;
    let first = std::env::var("NYALA_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    for seed in first..first + PROGRAMS {
        let args = [seed as u32 * 7, 3 + (seed as u32 >> 1)];
        let source = program(seed, args);
        let faults = nyala_ir::verify::verify(&source, &source.roots());
        assert!(faults.is_empty(), "seed {seed}: {faults:?}");
        let expected = interpret(&source, args);
        assert_eq!(expected[0], expected[1], "seed {seed}");
        for annotations in [false, true] {
            let options = nyala_specialize::Options { annotations, ..Default::default() };
            let mut sink = Sink::default();
            let residual = nyala_specialize::specialize(&source, options, &mut sink).ok().expect("ends").0;
            let text =
                || format!("{}\nresidual:\n{}", nyala_ir::print::print(&source), nyala_ir::print::print(&residual));
            let faults = nyala_ir::verify::verify(&residual, &residual.roots());
            assert!(faults.is_empty(), "seed {seed}: {faults:?}\n{}", text());
            assert_eq!(interpret(&residual, args), expected, "seed {seed}, {annotations}\n{}", text());
            for opt_level in [0, 3] {
                let found = compiled(&residual, args, opt_level);
                assert_eq!(found, expected, "seed {seed}, {annotations}, -O{opt_level}\n{}", text());
            }
        }
    }
}
