//! A part of a program is what can be reached from its root, as it is.

use nyala_ir::{Extractor, Linkage, Val, print, read, verify};
use std::path::Path;

const TWO_EXPORTS: &str = "graph
struct Unused { x: f64 }
struct List { next: &List, pair: Pair }
struct Pair { a: i32, b: f32 }
static mut counter: i32 = 3
static mut table: [cn(mem, i32, cn(mem, i32)) * 1] = array[[cn(mem, i32, cn(mem, i32)) * 1]](double)
static other: [u8 * 2] = array[[u8 * 2]](97u8, 0u8)
cont double(m.d: mem, x.d: i32, ret.d: cn(mem, i32)) = ret.d(m.d, add(x.d, x.d))
export cont first(m.f: mem, list: &List, ret.f: cn(mem, f32)) = ret.f(m.f, extract(load(m.f, lea(list, 1i64)), 1i64))
cont power(m: mem, x: i32, n: i32, ret: cn(mem, i32)) @(?n) = branch(m, eq(n, 0), then, else)
  cont then(m.1: mem) = ret(m.1, 1)
  cont else(m.2: mem) = power(m.2, x, add(n, -1), k)
  cont k(m.3: mem, r: i32) = ret(m.3, mul(r, x))
export cont second(m.s: mem, x.s: i32, ret.s: cn(mem, i32)) = load(m.s, lea(&table, 0i64))(m.s, load(m.s, &counter), k.s)
  cont k.s(m.t: mem, y: i32) = power(m.t, y, x.s, ret.s)
";

#[test]
fn part_has_what_its_root_reaches() {
    let whole = read::read(TWO_EXPORTS).expect("a graph");
    let mut extractor = Extractor::new(&whole);
    let roots = whole.roots();
    let first = extractor.extract(&roots[..1]);
    let names: Vec<&str> = first.world.types.structs().map(|(_, data)| &*data.name).collect();
    assert_eq!(names, ["List", "Pair"]);
    assert_eq!((first.conts.len(), first.world.n_globals()), (1, 0));
    let second = extractor.extract(&roots[1..2]);
    assert_eq!((second.world.types.structs().count(), second.world.n_globals()), (0, 2));
    let text = print::print(&second.world);
    assert!(text.contains("@(?n)") && text.contains("(double)") && !text.contains("other"), "{text}");
}

/// Also that nothing is left over from the parts before.
#[test]
fn parts_are_as_in_the_program() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    let mut n_parts = 0;
    let folders =
        ["run", "schedule", "specialize"].iter().flat_map(|folder| super::nesting::files(&tests.join(folder)));
    let texts = folders.map(|path| std::fs::read_to_string(path).expect("a text")).chain([TWO_EXPORTS.to_string()]);
    for text in texts {
        let Ok(whole) = read::read(&text) else { continue };
        let mut extractor = Extractor::new(&whole);
        for root in whole.roots() {
            let part = extractor.extract(&[root]);
            let new = part.find(root).expect("the root is in its part");
            assert_eq!(verify::verify(&part.world, &[new]), Vec::<String>::new());
            let structs_of = |text: String| -> String {
                let is_struct = |line: &&str| line.starts_with("struct ");
                text.lines().filter(|line| !is_struct(line)).map(|line| format!("{line}\n")).collect()
            };
            let expected = structs_of(print::print_roots(&whole, &[root]));
            assert_eq!(structs_of(print::print_roots(&part.world, &[new])), expected);
            let reached = nyala_ir::facts::Nest::of_program(&whole, &[root]).0;
            assert_eq!(part.conts.len(), reached.conts.len());
            for (k, &old) in part.conts.iter().enumerate() {
                let (k, old) = (part.world.cont(nyala_ir::Cont(k as u32)), whole.cont(old));
                assert_eq!((&*k.linkage, &k.origin), (&*old.linkage, &old.origin));
                assert!(*k.linkage == Linkage::Internal || k.filter.is_empty());
            }
            let is_before = |v: Val| part.world.args(v).iter().all(|a| a.0 < v.0);
            assert!((0..part.world.n_vals() as u32).map(Val).all(is_before));
            n_parts += 1;
        }
    }
    assert!(n_parts > 50, "{n_parts}");
}
