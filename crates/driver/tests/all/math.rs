//! The math functions of kernels for Vulkan, as the back end has them, are the code of their source.

use expect_test::expect_file;
use nyala_driver::{Files, Options, emit};

#[test]
fn math_of_spirv_is_the_code_of_its_source() {
    let files = Files::of("math.impala", include_str!("../../../flat/src/math/math.impala"));
    let emitted = emit(&Options::default(), &files, "flat", None);
    let (text, _) = emitted.unwrap_or_else(|failed| panic!("{}", failed.render(false)));
    expect_file!["../../../flat/src/math/math.flat"].assert_eq(&text);
}
