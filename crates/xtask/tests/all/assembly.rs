//! Assembly that the machine does not have is an error with its place, not the end of the process.

use nyala_base::{Diagnostic, Span};
use nyala_gen_llvm::{Options, emit_module};
use nyala_ir::Target;

/// The report on a function that has two pieces of assembly, the first of which is right.
fn error_of(template: &str, constraints: &str, signature: &str, opt_level: u8) -> Option<Box<Diagnostic>> {
    let (args, rets) = signature.split_once(" -> ").expect("a signature");
    let values: Vec<String> = args.split(',').filter(|a| !a.is_empty()).map(|a| format!("undef[{a}]")).collect();
    let (values, ret) = (values.join(", "), rets.replace(['(', ')'], ""));
    let ret = if ret.is_empty() { "()".to_string() } else { ret };
    let text = format!(
        "flat
asm \"nop\" \"\" volatile right() -> ()
asm \"{template}\" \"{constraints}\" volatile wrong({args}) -> {rets}
export f() -> () {{
entry():
  a: () = call right()
  r: {ret} = call wrong({values})
  return()
}}
"
    );
    let mut module = nyala_flat::read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    nyala_flat::verify(&module).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.funcs[0].span = Span::new(nyala_base::FileId(0), 1, 2);
    module.funcs[1].span = Span::new(nyala_base::FileId(0), 5, 9);
    let options = Options { opt_level, ..Options::default() };
    module.set_target(Target::new(Some("x86_64-unknown-linux-gnu"), None));
    let emitted = match emit_module(&module, &options, None) {
        Ok(emitted) => emitted,
        Err(d) => return Some(d),
    };
    let compiled = emitted.parse(&options).and_then(|mut llvm| {
        llvm.optimize()?;
        llvm.object().map(drop)
    });
    compiled.err()
}

#[test]
fn wrong_assembly_is_told_and_survived() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("bogus $1, $0", "=r,r", "i32 -> (i32)", "invalid instruction mnemonic 'bogus' in `bogus %edi, %e"),
        ("movl $1, $0", "=y,r", "i32 -> (i32)", ""),
        ("movl $1, $0", "={nosuch},r", "i32 -> (i32)", ""),
        ("movl $1, $0", "=r,r,~{nosuch}", "i32 -> (i32)", "none"),
        ("movl $1, $0", "=r,{xyz}", "i32 -> (i32)", ""),
        (
            "movl $1, $0",
            "=r,r",
            "i32,i32 -> (i32)",
            "it has 2 inputs and 1 outputs, but constraints `=r,r` for 1 and 1",
        ),
        ("movl $1, $0", "=r,", "i32 -> (i32)", ""),
        ("movl $1, $0", "+r,r", "i32,i32 -> ()", "an output and an input tied to it"),
        ("movl $1, $0", "=r,7", "i32 -> (i32)", ""),
        ("movl $1, $0", "=!,%%", "i32 -> (i32)", ""),
        ("movl $1, $0", "=,r", "i32 -> (i32)", ""),
        ("movl $2, $0", "=r,r", "i32 -> (i32)", "there is no operand `$2`"),
        ("movl $99999999999999999999, $0", "=r,r", "i32 -> (i32)", "there is no operand"),
        ("movl $x, $0", "=r,r", "i32 -> (i32)", "a `$` is followed by"),
        ("movl $", "=r,r", "i32 -> (i32)", "a `$` is followed by"),
        ("movl ${1, $0", "=r,r", "i32 -> (i32)", "`${` is not closed"),
        ("movl ${1:zz}, $0", "=r,r", "i32 -> (i32)", "`${1:zz}` is no operand"),
        ("movl ${:foo}, $0", "=r,r", "i32 -> (i32)", "`${:foo}` is no operand"),
        ("movl ${1:Z}, $0", "=r,r", "i32 -> (i32)", ""),
        ("$(movl $|mov $", "=r,r", "i32 -> (i32)", "a `$` is followed by"),
        ("$(movl $($)", "=r,r", "i32 -> (i32)", "a `$` is followed by"),
        ("$(movl $1, $0$|mov $0, $1$)", "=r,r", "i32 -> (i32)", "none"),
        ("movl ${1:k}, $0 ${:comment}", "=r,r", "i32 -> (i32)", "none"),
        ("movl $1, $0", "=r,r", "simd[f32 * 4] -> (i32)", ""),
        ("movl $1, $0", "=r,r", "simd[f32 * 3] -> (simd[i64 * 64])", ""),
        ("movl $1, $0", "=m,r", "i32 -> (i32)", "a result in memory"),
        ("movl $1, $0", "=&o,r", "i32 -> (i32)", "a result in memory"),
        ("movl $1, $0", "=rm,r", "i32 -> (i32)", "none"),
        ("movl $1, $0", "=r,m", "i32 -> (i32)", "none"),
        ("movl $1, $0", "=X,r", "i32 -> (i32)", ""),
        ("movl $1, $0", "=g,r", "i32 -> (i32)", "none"),
        ("movl $1, $0", "=p,r", "i32 -> (i32)", ""),
        ("movl $1, $0", "=i,r", "i32 -> (i32)", ""),
        ("movl $1, $0", "=r,p", "i32 -> (i32)", "none"),
        ("movl $1, $0", "=r,X", "i32 -> (i32)", "none"),
        ("movl $1, $0", "=r,*m", "i32 -> (i32)", "is given by its address"),
        ("movl $1, $0", "=*m,r", "&i32,i32 -> ()", "none"),
        ("movl $1, $0", "=r,i", "i32 -> (i32)", ""),
        (".byte 300 + foo - bar", "", " -> ()", ""),
        (".section", "", " -> ()", ""),
        (".globl f\\x0af:", "", " -> ()", ""),
        ("\\x00\\xff", "", " -> ()", "none"),
        ("movl $1, $0", "=r|m,r|r", "i32 -> (i32)", "none"),
        ("movl $1, $0", "r,r", "i32,[i32 * 2] -> ()", "assembly has an operand of type `[i32 * 2]`"),
    ];
    for opt_level in [0, 3] {
        for &(template, constraints, signature, expected) in cases {
            let found = error_of(template, constraints, signature, opt_level);
            let what = format!("`{template}` with `{constraints}`: {signature} at -O{opt_level}");
            match &found {
                None => assert_eq!(expected, "none", "{what} is fine"),
                Some(d) => {
                    println!("{what}: {}: {}", d.code, d.message);
                    assert!(d.message.contains(expected) && expected != "none", "{what}: {}", d.message);
                    assert_eq!(d.code, "invalid-asm", "{what}: {}", d.message);
                    // A fault that appears only beside other code has no place.
                    let has_place = !d.message.contains("already defined");
                    assert_eq!(d.primary.span.lo, if has_place { 5 } else { 0 }, "{what}");
                }
            }
        }
    }
}
