//! Post-dominators of `002` Listing 10.9 and Figure 10.2, and of a few more programs, by each variant of the analysis.

use nyala_ir::facts::Nest;
use nyala_ir::{Cont, Val, World};
use nyala_specialize::postdom::{Analysis, Closures, Fun, Symbol, Variant};

/// One closure, of `start`; what it captures is outside.
struct Start<'a> {
    w: &'a World,
    nest: &'a Nest,
    start: Cont,
}

impl Closures for Start<'_> {
    fn source(&self, _: u32) -> Cont {
        self.start
    }
    fn captured(&self, _: u32, idx: usize) -> Vec<Fun> {
        let v: Val = self.nest.free(self.start)[idx];
        let takes_functions = match self.w.types.cn_params(self.w.ty(v)) {
            Some(params) => params.iter().any(|&p| self.w.types.has_function(p)),
            None => return vec![],
        };
        vec![Fun::Outside(Symbol { id: idx as u32, takes_functions })]
    }
}

/// Post-dominators of continuation `f` by the three variants, `-` for none, and the context-sensitive edges.
fn analyze(ir: &str) -> ([String; 3], String) {
    let w = nyala_ir::read::read(ir).unwrap_or_else(|e| panic!("{e:?}"));
    let roots = w.roots();
    let (nest, _) = Nest::of_program(&w, &roots);
    let start = *nest.conts.iter().find(|&&k| &*w.cont(k).name == "f").unwrap_or_else(|| panic!("no f"));
    let closures = Start { w: &w, nest: &nest, start };
    let run = |variant| Analysis::new(&w, &nest, &closures, variant, None, &[vec![Fun::Closure(0)]]);
    let found = [Variant::NonSymbolic, Variant::Symbolic, Variant::ContextSensitive].map(|variant| {
        match run(variant).post_dominator(|f| f != Fun::Closure(0)) {
            Some(Fun::Code(k)) => w.cont(k).name.to_string(),
            _ => "-".into(),
        }
    });
    (found, run(Variant::ContextSensitive).text())
}

fn check(ir: &str, expected: [&str; 3]) -> String {
    let (found, edges) = analyze(ir);
    assert_eq!(found, expected, "{edges}");
    edges
}

/// `out` may call `A` and `C`; whatever it does, `C` comes before `end`.
#[test]
fn follows_listing_10_9() {
    let edges = check(
        "graph
export cont start(m: mem, dynamic: bool, out: cn(mem, cn(mem, cn(mem, i32)), cn(mem, cn(mem, cn(mem)))), end: cn(mem)) = f(m)
  cont f(m.1: mem) = branch(m.1, dynamic, T, F)
    cont T(m.2: mem) = out(m.2, A, C)
    cont F(m.3: mem) = C(m.3, B)
    cont C(m.4: mem, pc: cn(mem, cn(mem))) = pc(m.4, N)
      cont N(m.5: mem) = end(m.5)
cont A(m.6: mem, pa: cn(mem, i32)) = pa(m.6, 42)
cont B(m.7: mem, pb: cn(mem)) = pb(m.7)
",
        ["-", "N", "C"],
    );
    let lines: Vec<&str> = edges.lines().collect();
    assert!(lines.contains(&"C -> B·C out1·C"), "{edges}");
    assert!(lines.contains(&"out1·T -> A·out1·T C"), "{edges}");
    assert!(lines.contains(&"out1·C -> N out1·T"), "{edges}");
}

#[test]
fn finds_joins_and_returns() {
    // The join of two branches, in straight code.
    check(
        "graph
export cont main(m: mem, c: bool, ret: cn(mem, i32)) = f(m)
  cont f(m.1: mem) = branch(m.1, c, then, else)
    cont then(m.2: mem) = join(m.2, 1)
    cont else(m.3: mem) = join(m.3, 2)
    cont join(m.4: mem, x: i32) = ret(m.4, x)
",
        ["join", "join", "join"],
    );
    // Two calls of one function: its return goes to the right place only where it has a context.
    check(
        "graph
export cont main(m: mem, c: bool, ret: cn(mem, i32)) = f(m)
  cont f(m.1: mem) = g(m.1, first)
    cont first(m.2: mem, x: i32) = g(m.2, second)
      cont second(m.3: mem, y: i32) = ret(m.3, add(x, y))
cont g(m.4: mem, ret.1: cn(mem, i32)) = ret.1(m.4, 1)
",
        ["-", "second", "first"],
    );
}

/// A way that ends in a panic, or goes round for ever, is none to the exit.
#[test]
fn ignores_what_does_not_come_back() {
    check(
        "graph
export cont main(m: mem, c: bool, ret: cn(mem, i32)) = f(m)
  cont f(m.1: mem) = branch(m.1, c, then, else)
    cont then(m.2: mem) = unreachable(m.2)
    cont else(m.3: mem) = ret(m.3, 2)
",
        ["else", "else", "else"],
    );
}
