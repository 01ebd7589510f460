//! The math functions of kernels for Vulkan, as the back end has them, are the code of their source.

use expect_test::expect_file;
use nyala::{Options, Session, emit};

#[test]
fn math_of_spirv_is_the_code_of_its_source() {
    let mut session = Session::new(Options::default());
    session.add_file("math.impala", include_str!("../../../flat/src/math/math.impala"));
    let text = emit(&mut session, "flat", None).unwrap_or_else(|_| panic!("{}", session.render(false)));
    expect_file!["../../../flat/src/math/math.flat"].assert_eq(&text);
}
