//! Types of handles: which fit those of the program, and what is said of those that do not.

use nyala_embed::{Args, Error, In, Mut, MutSlice, Out, Program, Ref, Return, Slice, Type};

/// A struct with holes, an array and another struct in it.
#[derive(Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Body {
    kind: u8,
    place: Point,
    weights: [f32; 3],
    alive: bool,
}

#[derive(Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

/// A list whose items lead to further ones.
#[derive(Type, Clone, Copy)]
#[repr(C)]
struct Item {
    value: i32,
    next: *const Item,
}

const BODIES: &str = "
    struct Point { x: f64, y: f64 }
    struct Body { kind: u8, place: Point, weights: [f32 * 3], alive: bool }
    extern fn moved(b: Body, by: Point) -> Body {
        Body { place: Point { x: b.place.x + by.x, y: b.place.y + by.y }, alive: !b.alive, ..b }
    }
    extern fn swap(p: &mut Point) -> () { let x = p.x; p.x = p.y; p.y = x; }
    extern fn last(b: &Body) -> f32 { b.weights(2) }
    extern fn diagonal(m: &[f32 * 4]) -> f32 { m(0) + m(3) }
    extern fn kinds(n: i32, bodies: &mut [Body]) -> () { for i in range(0, n) { bodies(i).kind = i as u8; } }
";

const LISTS: &str = "
    struct Item { value: i32, next: &Item }
    extern fn second(i: &Item) -> i32 { i.next.value }
    extern fn first(i: &Item) -> &Item { i }
";

fn difference<A: Args, R: Return>(program: &Program, name: &str) -> String {
    // SAFETY: nothing is called.
    match unsafe { program.function::<A, R>(name) } {
        Err(Error::WrongTypes { difference, .. }) => difference,
        Err(other) => other.to_string(),
        Ok(_) => "the types fit".into(),
    }
}

#[test]
fn structs_are_passed_and_returned() -> Result<(), Error> {
    let program = Program::from_source("bodies.impala", BODIES)?;
    // SAFETY: the functions access what they are given, and `kinds` n bodies.
    let (moved, swap, last, diagonal, kinds) = unsafe {
        (
            program.function::<(Body, Point), Body>("moved")?,
            program.function::<(Mut<Point>,), ()>("swap")?,
            program.function::<(Ref<Body>,), f32>("last")?,
            program.function::<(Ref<[f32; 4]>,), f32>("diagonal")?,
            program.function::<(i32, Out<Body>), ()>("kinds")?,
        )
    };
    let body = Body { kind: 7, place: Point { x: 1.0, y: 2.0 }, weights: [1.0, 2.0, 3.0], alive: true };
    let expected = Body { place: Point { x: 1.5, y: 1.0 }, alive: false, ..body };
    assert_eq!(moved.call((body, Point { x: 0.5, y: -1.0 })), expected);
    let mut point = Point { x: 1.0, y: 2.0 };
    swap.call((&mut point,));
    assert_eq!(point, Point { x: 2.0, y: 1.0 });
    assert_eq!(last.call((&body,)), 3.0);
    assert_eq!(diagonal.call((&[1.0, 0.0, 0.0, 4.0],)), 5.0);
    let mut bodies = [body; 3];
    kinds.call((3, &mut bodies));
    assert_eq!(bodies.map(|b| (b.kind, b.weights[2])), [(0, 3.0), (1, 3.0), (2, 3.0)]);
    Ok(())
}

#[test]
fn structs_lead_to_themselves() -> Result<(), Error> {
    let program = Program::from_source("list.impala", LISTS)?;
    let last = Item { value: 2, next: std::ptr::null() };
    let item = Item { value: 1, next: &last };
    // SAFETY: `second` reads two items, and there are two.
    let second = unsafe { program.function::<(Ref<Item>,), i32>("second") }?;
    assert_eq!(second.call((&item,)), 2);
    // SAFETY: `first` reads nothing.
    let first = unsafe { program.function::<(*const Item,), *const Item>("first") }?;
    assert_eq!(first.call((&item,)), &raw const item);
    Ok(())
}

#[test]
fn scalars_of_all_types_fit() -> Result<(), Error> {
    macro_rules! check {
        ($($t:ident $value:expr;)*) => { $({
            let text = concat!("extern fn same(x: ", stringify!($t), ", b: bool) -> ", stringify!($t), " { if b { x } else { x + x } }");
            let text = if stringify!($t) == "bool" { "extern fn same(x: bool, b: bool) -> bool { x == b }" } else { text };
            let program = Program::from_source("same.impala", text)?;
            // SAFETY: `same` accesses no memory.
            let same = unsafe { program.function::<($t, bool), $t>("same") }?;
            assert_eq!(same.call(($value, true)), $value);
        })* };
    }
    check! {
        i8 -5; i16 i16::MIN; i32 i32::MAX; i64 i64::MIN; u8 255; u16 65535; u32 u32::MAX; u64 u64::MAX;
        f32 -0.5; f64 f64::MIN_POSITIVE; bool true; bool false;
    }
    Ok(())
}

#[test]
fn what_differs_is_named() -> Result<(), Error> {
    #[derive(Type, Clone, Copy)]
    #[repr(C)]
    struct Wrong {
        x: f64,
        z: f64,
    }
    #[derive(Type, Clone, Copy)]
    #[repr(C)]
    struct Narrow {
        x: f64,
        y: f32,
    }
    #[derive(Type, Clone, Copy)]
    #[repr(C)]
    struct Short {
        x: f64,
    }
    let p = &Program::from_source("bodies.impala", BODIES)?;
    assert_eq!(difference::<(Ref<Body>,), f32>(p, "last"), "the types fit");
    assert_eq!(difference::<(In<Body>,), f32>(p, "last"), "parameter `b` is `&[Body]` here, `&Body` in the program");
    assert_eq!(difference::<(Mut<Body>,), f32>(p, "last"), "parameter `b` is `&mut Body` here, `&Body` in the program");
    assert_eq!(difference::<(*const Body,), f32>(p, "last"), "the types fit");
    assert_eq!(difference::<(*mut Body,), f32>(p, "last"), "parameter `b` is `&mut Body` here, `&Body` in the program");
    assert_eq!(difference::<(Ref<Body>,), f64>(p, "last"), "the result is `f64` here, `f32` in the program");
    assert_eq!(difference::<(Ref<Body>,), ()>(p, "last"), "the result is `()` here, `f32` in the program");
    assert_eq!(difference::<(), f32>(p, "last"), "it has 0 parameters here, 1 in the program");
    assert_eq!(
        difference::<(Mut<Wrong>,), ()>(p, "swap"),
        "what parameter `p` leads to: a field of `Wrong` is `z` here, `y` in the program"
    );
    assert_eq!(
        difference::<(Mut<Narrow>,), ()>(p, "swap"),
        "field `y` of what parameter `p` leads to is `f32` here, `f64` in the program"
    );
    assert_eq!(
        difference::<(Mut<Short>,), ()>(p, "swap"),
        "what parameter `p` leads to: `Short` has 1 fields here, `Point` 2 in the program"
    );
    assert_eq!(
        difference::<(Ref<[f32; 5]>,), f32>(p, "diagonal"),
        "what parameter `m` leads to is `[f32 * 5]` here, `[f32 * 4]` in the program"
    );
    assert_eq!(difference::<(u32, Out<Body>), ()>(p, "kinds"), "parameter `n` is `u32` here, `i32` in the program");
    Ok(())
}

#[test]
fn what_rust_does_not_have_is_refused() -> Result<(), Error> {
    let p = &Program::from_source(
        "others.impala",
        "extern fn pair(p: (i32, i32)) -> i32 { p(0) }
         extern fn four(a: [f32 * 4]) -> f32 { a(0) }
         extern fn slices(a: &[f32], n: i64) -> f32 { a(n) }",
    )?;
    let text = difference::<(i64,), i32>(p, "pair");
    assert_eq!(text, "parameter `p` is `i64` here, `a type that only Impala has` in the program");
    assert_eq!(difference::<(f32,), f32>(p, "four"), "parameter `a` is `f32` here, `[f32 * 4]` in the program");
    let text = difference::<(Slice<f32>,), f32>(p, "slices");
    assert_eq!(text, "it has 1 parameter here, 2 in the program");
    assert_eq!(
        difference::<(MutSlice<f32>, i64), f32>(p, "slices"),
        "parameter `a` is `MutSlice` here, `&[f32]` in the program"
    );
    Ok(())
}
