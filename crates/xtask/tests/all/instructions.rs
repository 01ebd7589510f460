//! Instructions of x86-64 that programs call by LLVM's names: what they compute under every engine is what C's intrinsics
//! compute with the processor's own, bit for bit, of numbers that matter and of random ones.

#![cfg(target_arch = "x86_64")]

use crate::common::{Folder, nyala, sh, skip_here, stderr};
use std::ffi::OsStr;
use std::fmt::Write;
use std::process::Command;

/// Name, operands and result (as in the compiler's table), and how C says it, with `a`, `b`, `c` for pointers to the operands
/// and `IMM` for the immediate one, of which so many are tried.
const CASES: &[(&str, &str, &str, u32)] = &[
    ("sse.movmsk.ps(v4f32) -> i32", "sse2", "_mm_movemask_ps(F4(a))", 0),
    ("sse2.movmsk.pd(v2f64) -> i32", "sse2", "_mm_movemask_pd(D2(a))", 0),
    ("sse2.pmovmskb.128(v16i8) -> i32", "sse2", "_mm_movemask_epi8(I2(a))", 0),
    ("avx.movmsk.ps.256(v8f32) -> i32", "avx", "_mm256_movemask_ps(F8(a))", 0),
    ("avx.movmsk.pd.256(v4f64) -> i32", "avx", "_mm256_movemask_pd(D4(a))", 0),
    ("avx2.pmovmskb(v32i8) -> i32", "avx2", "_mm256_movemask_epi8(I4(a))", 0),
    ("avx512.cvtd2mask.512(v16i32) -> i16", "avx512", "_mm512_movepi32_mask(I8(a))", 0),
    ("avx512.cvtb2mask.512(v64i8) -> u64", "avx512", "_mm512_movepi8_mask(I8(a))", 0),
    ("avx512.cvtq2mask.128(v2i64) -> i8", "avx512", "_mm_movepi64_mask(I2(a))", 0),
    ("sse.cmp.ps(v4f32, v4f32, #i8) -> v4f32", "avx", "_mm_cmp_ps(F4(a), F4(b), IMM)", 8),
    ("sse2.cmp.pd(v2f64, v2f64, #i8) -> v2f64", "avx", "_mm_cmp_pd(D2(a), D2(b), IMM)", 8),
    ("sse.cmp.ss(v4f32, v4f32, #i8) -> v4f32", "avx", "_mm_cmp_ss(F4(a), F4(b), IMM)", 8),
    ("sse2.cmp.sd(v2f64, v2f64, #i8) -> v2f64", "avx", "_mm_cmp_sd(D2(a), D2(b), IMM)", 8),
    ("avx.cmp.ps.256(v8f32, v8f32, #i8) -> v8f32", "avx", "_mm256_cmp_ps(F8(a), F8(b), IMM)", 32),
    ("avx.cmp.pd.256(v4f64, v4f64, #i8) -> v4f64", "avx", "_mm256_cmp_pd(D4(a), D4(b), IMM)", 32),
    (
        "avx512.mask.cmp.ps.512(v16f32, v16f32, #i32, i16, 4) -> i16",
        "avx512",
        "_mm512_mask_cmp_ps_mask(M16(d), F16(a), F16(b), IMM)",
        32,
    ),
    (
        "avx512.mask.cmp.pd.256(v4f64, v4f64, #i32, u8) -> u8",
        "avx512",
        "_mm256_mask_cmp_pd_mask(M8(d), D4(a), D4(b), IMM)",
        32,
    ),
    ("sse41.blendvps(v4f32, v4f32, v4f32) -> v4f32", "sse4.1", "_mm_blendv_ps(F4(a), F4(b), F4(c))", 0),
    ("sse41.blendvpd(v2f64, v2f64, v2f64) -> v2f64", "sse4.1", "_mm_blendv_pd(D2(a), D2(b), D2(c))", 0),
    ("sse41.pblendvb(v16u8, v16u8, v16i8) -> v16u8", "sse4.1", "_mm_blendv_epi8(I2(a), I2(b), I2(c))", 0),
    ("avx.blendv.ps.256(v8f32, v8f32, v8f32) -> v8f32", "avx", "_mm256_blendv_ps(F8(a), F8(b), F8(c))", 0),
    ("avx.blendv.pd.256(v4f64, v4f64, v4f64) -> v4f64", "avx", "_mm256_blendv_pd(D4(a), D4(b), D4(c))", 0),
    ("avx2.pblendvb(v32i8, v32i8, v32i8) -> v32i8", "avx2", "_mm256_blendv_epi8(I4(a), I4(b), I4(c))", 0),
    (
        "avx512.mask.blend.ps.512(v16f32, v16f32, i16) -> v16f32",
        "avx512",
        "_mm512_mask_blend_ps(M16(c), F16(a), F16(b))",
        0,
    ),
    ("avx512.mask.blend.d.128(v4i32, v4i32, i8) -> v4i32", "avx512", "_mm_mask_blend_epi32(M8(c), I2(a), I2(b))", 0),
    ("sse.min.ps(v4f32, v4f32) -> v4f32", "sse2", "_mm_min_ps(F4(a), F4(b))", 0),
    ("sse2.max.pd(v2f64, v2f64) -> v2f64", "sse2", "_mm_max_pd(D2(a), D2(b))", 0),
    ("avx.min.ps.256(v8f32, v8f32) -> v8f32", "avx", "_mm256_min_ps(F8(a), F8(b))", 0),
    ("avx.max.pd.256(v4f64, v4f64) -> v4f64", "avx", "_mm256_max_pd(D4(a), D4(b))", 0),
    ("avx512.max.ps.512(v16f32, v16f32, 4) -> v16f32", "avx512", "_mm512_max_ps(F16(a), F16(b))", 0),
    ("sse.min.ss(v4f32, v4f32) -> v4f32", "sse2", "_mm_min_ss(F4(a), F4(b))", 0),
    ("sse2.max.sd(v2f64, v2f64) -> v2f64", "sse2", "_mm_max_sd(D2(a), D2(b))", 0),
    ("sse.sqrt.ps(v4f32) -> v4f32", "sse2", "_mm_sqrt_ps(F4(a))", 0),
    ("avx.sqrt.pd.256(v4f64) -> v4f64", "avx", "_mm256_sqrt_pd(D4(a))", 0),
    ("sse.rcp.ps(v4f32) -> v4f32", "sse2", "_mm_rcp_ps(F4(a))", 0),
    ("sse.rcp.ss(v4f32) -> v4f32", "sse2", "_mm_rcp_ss(F4(a))", 0),
    ("avx.rcp.ps.256(v8f32) -> v8f32", "avx", "_mm256_rcp_ps(F8(a))", 0),
    ("sse.rsqrt.ps(v4f32) -> v4f32", "sse2", "_mm_rsqrt_ps(F4(a))", 0),
    ("sse.rsqrt.ss(v4f32) -> v4f32", "sse2", "_mm_rsqrt_ss(F4(a))", 0),
    ("avx.rsqrt.ps.256(v8f32) -> v8f32", "avx", "_mm256_rsqrt_ps(F8(a))", 0),
    ("avx512.rcp14.ps.512(v16f32, v16f32, i16) -> v16f32", "avx512", "_mm512_mask_rcp14_ps(F16(b), M16(c), F16(a))", 0),
    ("avx512.rcp14.pd.128(v2f64, v2f64, i8) -> v2f64", "avx512", "_mm_mask_rcp14_pd(D2(b), M8(c), D2(a))", 0),
    ("avx512.rsqrt14.ps.256(v8f32, v8f32, u8) -> v8f32", "avx512", "_mm256_mask_rsqrt14_ps(F8(b), M8(c), F8(a))", 0),
    ("avx512.rsqrt14.pd.512(v8f64, v8f64, i8) -> v8f64", "avx512", "_mm512_mask_rsqrt14_pd(D8(b), M8(c), D8(a))", 0),
    ("sse41.round.ps(v4f32, #i32) -> v4f32", "sse4.1", "_mm_round_ps(F4(a), IMM)", 12),
    ("sse41.round.ss(v4f32, v4f32, #i32) -> v4f32", "sse4.1", "_mm_round_ss(F4(a), F4(b), IMM)", 12),
    ("avx.round.pd.256(v4f64, #i32) -> v4f64", "avx", "_mm256_round_pd(D4(a), IMM)", 12),
    ("sse3.hadd.ps(v4f32, v4f32) -> v4f32", "sse3", "_mm_hadd_ps(F4(a), F4(b))", 0),
    ("sse3.hsub.pd(v2f64, v2f64) -> v2f64", "sse3", "_mm_hsub_pd(D2(a), D2(b))", 0),
    ("avx.hadd.ps.256(v8f32, v8f32) -> v8f32", "avx", "_mm256_hadd_ps(F8(a), F8(b))", 0),
    ("avx.hsub.pd.256(v4f64, v4f64) -> v4f64", "avx", "_mm256_hsub_pd(D4(a), D4(b))", 0),
    ("sse3.addsub.ps(v4f32, v4f32) -> v4f32", "sse3", "_mm_addsub_ps(F4(a), F4(b))", 0),
    ("avx.addsub.pd.256(v4f64, v4f64) -> v4f64", "avx", "_mm256_addsub_pd(D4(a), D4(b))", 0),
    ("sse41.ptestz(v2i64, v2i64) -> i32", "sse4.1", "_mm_testz_si128(I2(a), I2(b))", 0),
    ("sse41.ptestc(v2i64, v2i64) -> i32", "sse4.1", "_mm_testc_si128(I2(a), I2(b))", 0),
    ("avx.ptestnzc.256(v4i64, v4i64) -> i32", "avx", "_mm256_testnzc_si256(I4(a), I4(b))", 0),
    ("avx.vtestz.ps.256(v8f32, v8f32) -> i32", "avx", "_mm256_testz_ps(F8(a), F8(b))", 0),
    ("avx.vtestc.pd(v2f64, v2f64) -> i32", "avx", "_mm_testc_pd(D2(a), D2(b))", 0),
    ("avx.vtestnzc.ps(v4f32, v4f32) -> i32", "avx", "_mm_testnzc_ps(F4(a), F4(b))", 0),
    ("avx2.permps(v8f32, v8i32) -> v8f32", "avx2", "_mm256_permutevar8x32_ps(F8(a), I4(b))", 0),
    ("avx2.permd(v8u32, v8i32) -> v8u32", "avx2", "_mm256_permutevar8x32_epi32(I4(a), I4(b))", 0),
    ("avx512.permvar.sf.512(v16f32, v16i32) -> v16f32", "avx512", "_mm512_permutexvar_ps(I8(b), F16(a))", 0),
    ("avx512.permvar.df.256(v4f64, v4i64) -> v4f64", "avx512", "_mm256_permutexvar_pd(I4(b), D4(a))", 0),
    ("avx.vpermilvar.ps(v4f32, v4i32) -> v4f32", "avx", "_mm_permutevar_ps(F4(a), I2(b))", 0),
    ("avx.vpermilvar.ps.256(v8f32, v8i32) -> v8f32", "avx", "_mm256_permutevar_ps(F8(a), I4(b))", 0),
    ("avx.vpermilvar.pd.256(v4f64, v4i64) -> v4f64", "avx", "_mm256_permutevar_pd(D4(a), I4(b))", 0),
    ("ssse3.pshuf.b.128(v16i8, v16i8) -> v16i8", "ssse3", "_mm_shuffle_epi8(I2(a), I2(b))", 0),
    ("avx2.pshuf.b(v32u8, v32u8) -> v32u8", "avx2", "_mm256_shuffle_epi8(I4(a), I4(b))", 0),
    ("sse2.cvtps2dq(v4f32) -> v4i32", "sse2", "_mm_cvtps_epi32(F4(a))", 0),
    ("sse2.cvttps2dq(v4f32) -> v4i32", "sse2", "_mm_cvttps_epi32(F4(a))", 0),
    ("avx.cvt.ps2dq.256(v8f32) -> v8i32", "avx", "_mm256_cvtps_epi32(F8(a))", 0),
    ("sse.cvtss2si64(v4f32) -> i64", "sse2", "_mm_cvtss_si64(F4(a))", 0),
    ("sse2.cvttsd2si(v2f64) -> i32", "sse2", "_mm_cvttsd_si32(D2(a))", 0),
    ("bmi.pext.32(u32, u32) -> u32", "bmi2", "_pext_u32(U4(a), U4(b))", 0),
    ("bmi.pext.64(i64, i64) -> i64", "bmi2", "_pext_u64(U8(a), U8(b))", 0),
    ("bmi.pdep.32(i32, i32) -> i32", "bmi2", "_pdep_u32(U4(a), U4(b))", 0),
    ("bmi.pdep.64(u64, u64) -> u64", "bmi2", "_pdep_u64(U8(a), U8(b))", 0),
    ("bmi.bextr.32(i32, i32) -> i32", "bmi", "__bextr_u32(U4(a), U4(b))", 0),
    ("bmi.bzhi.64(i64, i64) -> i64", "bmi2", "_bzhi_u64(U8(a), U8(b))", 0),
];

/// The features of the processor that a case needs, and their names for the C compiler.
fn feature(needs: &str) -> (bool, &'static str) {
    match needs {
        "sse3" => (is_x86_feature_detected!("sse3"), "sse3"),
        "ssse3" => (is_x86_feature_detected!("ssse3"), "ssse3"),
        "sse4.1" => (is_x86_feature_detected!("sse4.1"), "sse4.1"),
        "avx" => (is_x86_feature_detected!("avx"), "avx"),
        "avx2" => (is_x86_feature_detected!("avx2"), "avx2"),
        "bmi" => (is_x86_feature_detected!("bmi1"), "bmi"),
        "bmi2" => (is_x86_feature_detected!("bmi2"), "bmi2"),
        "avx512" => {
            let has = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            (has, "avx512f,avx512vl,avx512bw,avx512dq")
        }
        _ => (true, "sse2"),
    }
}

const C_HEAD: &str = r#"
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define F4(p) _mm_loadu_ps(p)
#define F8(p) _mm256_loadu_ps(p)
#define F16(p) _mm512_loadu_ps(p)
#define D2(p) _mm_loadu_pd(p)
#define D4(p) _mm256_loadu_pd(p)
#define D8(p) _mm512_loadu_pd(p)
#define I2(p) _mm_loadu_si128(p)
#define I4(p) _mm256_loadu_si256(p)
#define I8(p) _mm512_loadu_si512(p)
#define U4(p) (*(const uint32_t *)(p))
#define U8(p) (*(const uint64_t *)(p))
#define M8(p) (*(const uint8_t *)(p))
#define M16(p) (*(const uint16_t *)(p))

static uint64_t state = 1;
static uint64_t next(void) { state = state * 6364136223846793005u + 1442695040888963407u; return state >> 17 ^ state << 40; }

// Numbers that matter, of 4 or 8 bytes, and random ones; integers for 0.
void fill(int32_t round, int32_t kind, void *to) {
    static const double some[] = { 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.49, 1.0, -1.0, 8388607.5, 8388609.0, 2147483647.0,
        2147483648.0, -2147483648.0, -2147483649.0, 9.3e18, 4503599627370495.5, 1e-45, 1e-310, 1e30, -7.25, INFINITY, -INFINITY };
    for (int i = 0; i < 64; i += kind ? kind : 4) {
        uint64_t bits = next();
        double d = some[bits % 24];
        float f = (float)d;
        if (kind == 4 && round % 4) memcpy(&bits, &f, 4);
        if (kind == 8 && round % 4) memcpy(&bits, &d, 8);
        if (kind == 4 && next() % 16 == 0) bits = 0x7fc01234;
        if (kind == 8 && next() % 16 == 0) bits = 0xfff8000000005678u;
        if (kind == 0 && round % 4 == 1) bits = next() % 2 ? -1 : 0;
        memcpy((char *)to + i, &bits, kind == 8 ? 8 : 4);
    }
}

// A computed NaN may have any bits.
int32_t check(int32_t which, int32_t kind, int32_t size, const void *ours, const void *theirs) {
    for (int i = 0; i < size; i += kind ? kind : 1) {
        const char *x = (const char *)ours + i, *y = (const char *)theirs + i;
        float f, g; double d, e;
        memcpy(&f, x, kind == 4 ? 4 : 0); memcpy(&g, y, kind == 4 ? 4 : 0);
        memcpy(&d, x, kind == 8 ? 8 : 0); memcpy(&e, y, kind == 8 ? 8 : 0);
        if (memcmp(x, y, kind ? kind : 1) && !(kind == 4 && f != f && g != g) && !(kind == 8 && d != d && e != e)) {
            printf("case %d: byte %d is %02x, should be %02x\n", which, i, *(const unsigned char *)x, *(const unsigned char *)y);
            fflush(stdout);
            return 1;
        }
    }
    return 0;
}
"#;

/// A type of the table, and its bytes.
fn impala(ty: &str) -> (String, u32) {
    let bytes = |lane: &str| lane[1..].parse::<u32>().unwrap() / 8;
    match ty.strip_prefix('v') {
        Some(rest) => {
            let (n, lane) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap());
            (format!("simd[{lane} * {n}]"), n.parse::<u32>().unwrap() * bytes(lane))
        }
        None => (ty.to_string(), bytes(ty)),
    }
}

/// C functions and a program that compares; the names of what is tried.
fn write_cases(has_512: bool) -> (String, String, Vec<String>) {
    let (mut c, mut declared, mut main, mut names) = (C_HEAD.to_string(), String::new(), String::new(), Vec::new());
    for (i, &(text, needs, expr, n)) in CASES.iter().enumerate() {
        let (has, target) = feature(needs);
        if !has || needs == "avx512" && !has_512 {
            continue;
        }
        let (name, types) = text.split_once('(').unwrap();
        let (operands, result) = types.split_once(") -> ").unwrap();
        // Numbers in the place of an operand are its value.
        let operands: Vec<&str> = operands.split(", ").collect();
        let ty = |o: &&str| match o.strip_prefix('#') {
            Some(ty) => ty.to_string(),
            None if o.parse::<u32>().is_ok() => "i32".into(),
            None => impala(o).0,
        };
        let params: Vec<String> = operands.iter().map(ty).collect();
        let (result_ty, size) = impala(result);
        let _ = writeln!(declared, "    fn \"llvm.x86.{name}\" f{i}({}) -> {result_ty};", params.join(", "));
        for imm in 0..n.max(1) {
            let which = names.len();
            names.push(format!("{text}, {imm}"));
            let expr = expr.replace("IMM", &imm.to_string());
            let _ = writeln!(
                c,
                "__attribute__((target(\"{target}\"))) void c{which}(const void *a, const void *b, const void *c, const void *d, void *out) \
                 {{ __auto_type r = {expr}; memcpy(out, &r, sizeof r < {size} ? sizeof r : {size}); }}"
            );
            let _ = writeln!(declared, "    #[c] fn c{which}(&[u8], &[u8], &[u8], &[u8], &mut [u8]) -> ();");
            let (mut args, mut buffers) = (Vec::new(), Vec::new());
            for (operand, ty) in operands.iter().zip(&params) {
                let letter = [b"abcd"[buffers.len().min(3)]];
                let letter = std::str::from_utf8(&letter).unwrap();
                if operand.starts_with('#') {
                    args.push(format!("{imm}{ty}"));
                    buffers.push(letter.to_string());
                } else if operand.parse::<u32>().is_ok() {
                    args.push(operand.to_string());
                } else {
                    let kind = if operand.contains("f32") {
                        "f"
                    } else if operand.contains("f64") {
                        "d"
                    } else {
                        "i"
                    };
                    args.push(format!("*({kind}{letter} as &{ty})"));
                    buffers.push(format!("{kind}{letter}"));
                }
            }
            while buffers.len() < 4 {
                buffers.push("ia".into());
            }
            for (b, letter) in buffers.iter_mut().zip(["a", "b", "c", "d"]) {
                if b == letter {
                    *b = "ia".into();
                }
            }
            let computes = ["hadd", "hsub", "addsub", "round", "sqrt", "rcp"].iter().any(|w| name.contains(w));
            let kind = if !computes {
                0
            } else if result.contains("f32") {
                4
            } else {
                8
            };
            let _ = writeln!(main, "        *(out as &mut {result_ty}) = f{i}({});", args.join(", "));
            let _ = writeln!(
                main,
                "        c{which}({}, right); bad += check({which}, {kind}, {size}, out, right);",
                buffers.join(", ")
            );
        }
    }
    let (c_fns, device): (Vec<&str>, Vec<&str>) = declared.lines().partition(|l| l.contains("#[c]"));
    let mut program = format!(
        "extern \"device\" {{\n{}\n}}\nextern \"C\" {{\n{}\n",
        device.join("\n"),
        c_fns.join("\n").replace("#[c] ", "")
    );
    program.push_str("    fn fill(i32, i32, &mut [u8]) -> (); fn check(i32, i32, i32, &[u8], &[u8]) -> i32;\n}\n");
    program.push_str("fn main() -> i32 {\n    let mut bad = 0;\n    let out = ~[64: u8]; let right = ~[64: u8];\n");
    for letter in ["a", "b", "c", "d"] {
        let _ =
            writeln!(program, "    let f{letter} = ~[64: u8]; let d{letter} = ~[64: u8]; let i{letter} = ~[64: u8];");
    }
    program.push_str("    for round in range(0, 60) {\n");
    for letter in ["a", "b", "c", "d"] {
        let _ = writeln!(
            program,
            "        fill(round, 4, f{letter}); fill(round, 8, d{letter}); fill(round, 0, i{letter});"
        );
    }
    program.push_str("        for i in range(0, 64) { out(i) = 0; right(i) = 0; }\n");
    program.push_str(&main);
    program.push_str("    }\n    if bad == 0 { 0 } else { 1 }\n}\n");
    (c, program, names)
}

#[test]
fn every_engine_computes_what_the_processor_does() {
    let folder = Folder::new("instructions");
    let mut lacking: Vec<&str> = CASES.iter().map(|case| case.1).filter(|needs| !feature(needs).0).collect();
    lacking.sort_unstable();
    lacking.dedup();
    lacking.iter().for_each(|needs| skip_here(&format!("a processor with {needs}")));
    let (c, program, mut names) = write_cases(true);
    assert!(names.len() > 60);
    let program = folder.write("cases.impala", &program);
    let library = folder.path("libcases.so");
    let compile = |text: &str| {
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-w"]).arg(folder.write("cases.c", text));
        cc
    };
    sh(compile(&c).arg("-o").arg(&library));
    let engines: &[&[&str]] =
        &[&["--engine", "interp"], &["-O0"], &["-O3"], &["-O3", "--no-pe"], &["-O3", "--cpu", "x86-64"]];
    for engine in engines {
        // Approximations of AVX-512 need a processor that is known to have it.
        let reduced;
        let mut program = &program;
        if engine.contains(&"--cpu") {
            let (c, text, few) = write_cases(false);
            (reduced, names) = (folder.write("reduced.impala", &text), few);
            sh(compile(&c).arg("-o").arg(&library));
            program = &reduced;
        }
        let mut args: Vec<&OsStr> = vec!["run".as_ref(), "--load".as_ref(), library.as_os_str()];
        args.extend(engine.iter().map(OsStr::new));
        args.push(program.as_os_str());
        let output = nyala(&args, 300);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut wrong: Vec<String> = said
            .lines()
            .map(|l| {
                let which =
                    l.strip_prefix("case ").and_then(|l| l.split(':').next()).and_then(|n| n.parse::<usize>().ok());
                format!("{}: {l}", which.and_then(|w| names.get(w)).map_or("?", |n| n))
            })
            .collect();
        wrong.sort();
        wrong.dedup_by_key(|l| l.split(": case").next().map(String::from));
        assert!(output.status.code() == Some(0), "{engine:?}: {}\n{}", wrong.join("\n"), stderr(&output));
    }
}

#[test]
fn what_the_target_lacks_is_an_error() {
    let folder = Folder::new("lacking");
    let text = |name: &str, more: &str, args: &str| {
        format!(
            "extern \"device\" {{ fn \"llvm.x86.{name}\" f(simd[f32 * 4]{more}) -> simd[f32 * 4]; }}
             extern fn g(v: &mut simd[f32 * 4]) -> () {{ *v = f(*v{args}) }}"
        )
    };
    let rcp14 = text("avx512.rcp14.ps.128", ", simd[f32 * 4], i8", ", *v, 15i8");
    let rcp = text("sse.rcp.ps", "", "");
    let min = text("sse.min.ps", ", simd[f32 * 4]", ", *v");
    let cases: [(&str, &[&str], Option<&str>); 6] = [
        (
            &rcp14,
            &["--cpu", "x86-64-v3"],
            Some("`rcp14` is an instruction of AVX-512, which `x86-64-v3` does not have"),
        ),
        (&rcp14, &["--cpu", "x86-64-v3,x86-64-v4"], Some("which `x86-64-v3` does not have")),
        (&rcp14, &["--cpu", "x86-64-v4"], None),
        (&rcp, &["--cpu", "x86-64"], None),
        (&rcp, &["--target", "aarch64-unknown-linux-gnu"], Some("`rcp` is an instruction of SSE, which")),
        // Others are made of what every processor has.
        (&min, &["--target", "aarch64-unknown-linux-gnu"], None),
    ];
    for (i, (text, options, error)) in cases.into_iter().enumerate() {
        let source = folder.write("p.impala", text);
        let out = folder.path("p.o");
        let mut args: Vec<&OsStr> = vec!["build".as_ref(), source.as_os_str(), "-o".as_ref(), out.as_os_str()];
        args.extend(options.iter().map(OsStr::new));
        let output = nyala(&args, 60);
        match error {
            Some(text) => {
                assert_eq!(output.status.code(), Some(1), "{i}");
                assert!(
                    stderr(&output).contains("error[not-on-processor]") && stderr(&output).contains(text),
                    "{}",
                    stderr(&output)
                );
            }
            None => assert_eq!(output.status.code(), Some(0), "{i}: {}", stderr(&output)),
        }
    }
}
