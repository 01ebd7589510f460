//! Post-dominators of `002` Listing 10.9 and Figure 10.2, and of a few more programs, by each variant of the analysis.

use expect_test::expect;
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

/// Post-dominators of continuation `f` by the three variants, `-` for none, and the edges.
fn analyze(ir: &str) -> [(String, String); 3] {
    let w = nyala_ir::read::read(ir).unwrap_or_else(|e| panic!("{e:?}"));
    let roots = w.roots();
    let (nest, _) = Nest::of_program(&w, &roots);
    let start = *nest.conts.iter().find(|&&k| w.name(k) == "f").unwrap_or_else(|| panic!("no f"));
    let closures = Start { w: &w, nest: &nest, start };
    [Variant::NonSymbolic, Variant::Symbolic, Variant::ContextSensitive].map(|variant| {
        let analysis = Analysis::new(&w, &nest, &closures, variant, None, &[vec![Fun::Closure(0)]]);
        let found = match analysis.post_dominator(|f| f != Fun::Closure(0)) {
            Some(Fun::Code(k)) => w.name(k).to_string(),
            _ => "-".into(),
        };
        (found, analysis.text())
    })
}

fn check(ir: &str, expected: [&str; 3]) -> [String; 3] {
    let variants = analyze(ir);
    let edges = variants.each_ref().map(|v| v.1.clone());
    assert_eq!(variants.map(|v| v.0), expected, "{}", edges.join("\n"));
    edges
}

/// `out` may call `A` and `C`; whatever it does, `C` comes before `end`. `A` and `B` capture a number, or they would count as
/// outside.
const LISTING_10_9: &str = "graph
export cont start(m: mem, dynamic: bool, x: i32, out: cn(mem, cn(mem, cn(mem, i32)), cn(mem, cn(mem, cn(mem, i32)))), end: cn(mem)) = f(m)
  cont f(m.1: mem) = branch(m.1, dynamic, T, F)
    cont T(m.2: mem) = out(m.2, A, C)
    cont F(m.3: mem) = C(m.3, B)
    cont A(m.6: mem, pa: cn(mem, i32)) = pa(m.6, x)
    cont B(m.7: mem, pb: cn(mem, i32)) = pb(m.7, x)
    cont C(m.4: mem, pc: cn(mem, cn(mem, i32))) = pc(m.4, N)
      cont N(m.5: mem, n: i32) = end(m.5)
";

#[test]
fn follows_listing_10_9() {
    let figures = check(LISTING_10_9, ["-", "N", "C"]);
    // Figure 10.2a, b, and c.
    expect![[r#"
        start -> f
        f -> F T
        T -> A C exit
        F -> C
        A -> exit
        C -> B N exit
        B -> N
        N -> exit
    "#]]
    .assert_eq(&figures[0]);
    expect![[r#"
        start -> f
        f -> F T
        T -> out2
        F -> C
        A -> out2
        C -> B out2
        out2 -> A C N
        B -> N
        N -> out3
        out3 -> exit
    "#]]
    .assert_eq(&figures[1]);
    expect![[r#"
        start -> f
        f -> F T
        T -> out2·T
        F -> C
        A -> out2·A
        C -> B out2·C
        out2·T -> A C
        B -> N
        N -> out3·N
        out2·C -> N out2·T
        out2·A -> out2·T
        out3·N -> exit
    "#]]
    .assert_eq(&figures[2]);
    // Functions that capture nothing are followed with their contexts.
    let closed = LISTING_10_9.replace("pa(m.6, x)", "pa(m.6, 42)").replace("pb(m.7, x)", "pb(m.7, 42)");
    check(&closed, ["-", "N", "C"]);
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
