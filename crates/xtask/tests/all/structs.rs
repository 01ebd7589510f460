//! Structs by value between Impala and C: many shapes, with what is left of the registers varied, through both directions
//! of calls and function values, against the system's C compiler.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use crate::common::{Folder, RunToEnd, command, sh, stderr};
use std::fmt::Write;
use std::process::Command;

/// Fields: types of scalars, `T*n` for arrays, `P` for a nested pair of floats.
const SHAPES: &[&[&str]] = &[
    &["i32"],
    &["f32"],
    &["f64"],
    &["u8"],
    &["i8", "i8", "i8"],
    &["bool", "bool", "i16", "i32"],
    &["i32", "i32", "i32"],
    &["i64", "i64"],
    &["i64", "i64", "i64"],
    &["i64", "i8"],
    &["f32", "f32"],
    &["f32", "f32", "f32"],
    &["f32", "f32", "f32", "f32"],
    &["f32", "f32", "f32", "f32", "f32"],
    &["f64", "f64"],
    &["f64", "f64", "f64"],
    &["f32", "f64"],
    &["i32", "f32"],
    &["f32", "i32"],
    &["f32", "f32", "i32"],
    &["i32", "f32", "f32"],
    &["i64", "f64"],
    &["f64", "i64"],
    &["f64", "i8"],
    &["f32", "i32", "f64"],
    &["u16", "f64"],
    &["P", "P"],
    &["P", "i16"],
    &["i16", "P"],
    &["P", "P", "u8"],
    &["f32*2", "i32"],
    &["f64*2"],
    &["f64*3"],
    &["u8*3"],
    &["u8*12"],
    &["u8*16"],
    &["u8*17"],
    &["i32*4"],
    &["i16*4", "f32*2"],
    &["f32", "u8*4", "f32", "i32"],
    &["u8*40", "f64"],
    &["i32*20"],
];

/// The scalars of a shape as C names them.
fn scalars(shape: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for (i, field) in shape.iter().enumerate() {
        match field.split_once('*') {
            Some((_, n)) => all.extend((0..n.parse::<usize>().unwrap()).map(|j| format!("f{i}[{j}]"))),
            None if *field == "P" => all.extend([format!("f{i}.x"), format!("f{i}.y")]),
            None => all.push(format!("f{i}")),
        }
    }
    all
}

fn is_bool(shape: &[&str], name: &str) -> bool {
    name.strip_prefix('f').and_then(|n| n.parse::<usize>().ok()).is_some_and(|i| shape[i] == "bool")
}

/// Which parameters there are around the structs, by variant: as C and as Impala declare them, and arguments.
const AROUND: &[(&[&str], &[&str])] = &[
    (&[], &[]),
    (&["int32_t"], &["double"]),
    (&["int64_t", "int64_t", "int64_t", "int64_t", "int64_t"], &["double", "double"]),
    (&["double", "double", "double", "double", "double", "double", "double"], &["int32_t", "int32_t"]),
];

fn impala_type(c: &str) -> &str {
    match c {
        "int32_t" => "i32",
        "int64_t" => "i64",
        _ => "f64",
    }
}

/// Both programs, and what the C program prints.
fn programs() -> (String, String, String) {
    let mut impala = String::from("struct P { x: f32, y: f32 }\n");
    let mut c = String::from("#include \"structs.h\"\n#include <stdio.h>\n");
    let (mut main, mut expected) = (String::new(), String::new());
    for (k, shape) in SHAPES.iter().enumerate() {
        let field = |(i, f): (usize, &&str)| match f.split_once('*') {
            Some((t, n)) => format!("f{i}: [{t} * {n}]"),
            None => format!("f{i}: {f}"),
        };
        let fields: Vec<String> = shape.iter().enumerate().map(field).collect();
        let _ = writeln!(impala, "struct S{k} {{ {} }}", fields.join(", "));
        let names = scalars(shape);
        for (v, (before, after)) in AROUND.iter().enumerate() {
            let s = format!("struct S{k}");
            let c_params = |name: &dyn Fn(usize) -> String| -> Vec<String> {
                let mut at = 0;
                let mut next = |ty: &str| {
                    at += 1;
                    format!("{ty} {}", name(at - 1))
                };
                let mut all: Vec<String> = before.iter().map(|t| next(t)).collect();
                all.push(next(&s));
                all.extend(after.iter().map(|t| next(t)));
                all.extend([next(&s), next(&s)]);
                all
            };
            let n = before.len() + after.len() + 3;
            let structs = [before.len(), n - 2, n - 1];
            // C prints all it gets and gives the second struct back, with the third's last part.
            let _ = writeln!(c, "{s} c{k}_{v}({}) {{", c_params(&|i| format!("p{i}")).join(", "));
            for i in 0..n {
                if structs.contains(&i) {
                    for name in &names {
                        let _ = writeln!(c, "    printf(\"%g \", (double)p{i}.{name});");
                    }
                } else {
                    let _ = writeln!(c, "    printf(\"%g \", (double)p{i});");
                }
            }
            let last = &names[names.len() - 1];
            let _ = writeln!(c, "    p{0}.{last} = p{1}.{last};\n    return p{0};\n}}", structs[1], structs[2]);

            let tys: Vec<String> = c_params(&|_| String::new())
                .iter()
                .map(|p| p.trim().strip_prefix("struct ").unwrap_or(impala_type(p.trim())).to_string())
                .collect();
            let params: Vec<String> = tys.iter().enumerate().map(|(i, t)| format!("p{i}: {t}")).collect();
            // Impala swaps the first two structs, directly or through a function value.
            let mut args: Vec<String> = (0..n).map(|i| format!("p{i}")).collect();
            args.swap(structs[0], structs[1]);
            let (tys, params, args) = (tys.join(", "), params.join(", "), args.join(", "));
            let _ = writeln!(
                impala,
                "extern \"C\" {{ fn c{k}_{v}({tys}) -> S{k}; }}\n\
                 fn call{k}_{v}(f: fn({tys}) -> S{k}, {params}) -> S{k} {{ f({args}) }}\n\
                 extern fn swap{k}_{v}({params}) -> S{k} {{ c{k}_{v}({args}) }}\n\
                 extern fn value{k}_{v}({params}) -> S{k} {{ call{k}_{v}(c{k}_{v}, {}) }}",
                (0..n).map(|i| format!("p{i}")).collect::<Vec<_>>().join(", ")
            );

            let value = |i: usize, j: usize, name: &str| {
                if is_bool(shape, name) { ((i + j) % 2).to_string() } else { ((i * 7 + j * 3) % 100).to_string() }
            };
            let _ = writeln!(main, "    {{");
            for &i in &structs {
                let _ = writeln!(main, "        {s} p{i};");
                for (j, name) in names.iter().enumerate() {
                    let _ = writeln!(main, "        p{i}.{name} = {};", value(i, j, name));
                }
            }
            let arg = |i: usize| if structs.contains(&i) { format!("p{i}") } else { (i + 1).to_string() };
            let args = (0..n).map(arg).collect::<Vec<_>>().join(", ");
            for how in ["swap", "value"] {
                let _ = writeln!(main, "        {{ {s} r = {how}{k}_{v}({args});");
                for name in &names {
                    let _ = writeln!(main, "        printf(\"%g \", (double)r.{name});");
                }
                let _ = writeln!(main, "        printf(\"\\n\"); }}");
                let mut order: Vec<usize> = (0..n).collect();
                order.swap(structs[0], structs[1]);
                for i in order {
                    if structs.contains(&i) {
                        names.iter().enumerate().for_each(|(j, name)| expected += &(value(i, j, name) + " "));
                    } else {
                        let _ = write!(expected, "{} ", i + 1);
                    }
                }
                for (j, name) in names.iter().enumerate() {
                    let from = if j + 1 == names.len() { structs[2] } else { structs[0] };
                    expected += &(value(from, j, name) + " ");
                }
                expected.push('\n');
            }
            let _ = writeln!(main, "    }}");
        }
    }
    let _ = writeln!(c, "int main(void) {{\n{main}    return 0;\n}}");
    (impala, c, expected)
}

#[test]
fn structs_cross_by_value() {
    cross_by_value(&[("-O0", "-O2"), ("-O3", "-O0")]);
}

#[test]
#[ignore = "takes 4 s; the levels of optimization are those of `structs_cross_by_value` in other pairs: ./x test --all crates"]
fn structs_cross_by_value_at_other_levels() {
    cross_by_value(&[("-O0", "-O0"), ("-O3", "-O2")]);
}

/// Code of the first level with C of the second.
fn cross_by_value(levels: &[(&str, &str)]) {
    let folder = Folder::new("structs");
    let (impala, c, expected) = programs();
    let (source, c) = (folder.write("structs.impala", impala), folder.write("main.c", c));
    let build = |out: &str, level: &str| {
        let path = folder.path(out);
        let output = Command::new(command()).args(["build", level, "-o"]).arg(&path).arg(&source).run_to_end();
        assert!(output.status.success(), "{}", stderr(&output));
        path
    };
    build("structs.h", "-O0");
    for (level, c_level) in levels {
        let object = build("structs.o", level);
        let program = folder.path("program");
        sh(Command::new("cc").args(["-Wall", "-Werror", "-std=c11", c_level, "-o"]).arg(&program).arg(&c).arg(&object));
        let printed = sh(&mut Command::new(&program));
        for (i, (printed, expected)) in printed.lines().zip(expected.lines()).enumerate() {
            let shape = SHAPES[i / 2 / AROUND.len()];
            assert_eq!(printed, expected, "{level} {c_level} {shape:?}, variant {}", i / 2 % AROUND.len());
        }
        assert_eq!(printed.lines().count(), expected.lines().count());
    }
}
