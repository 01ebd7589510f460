//! The lines of Rust in the README, which this file must have as they are, but for the folder.

use nyala_embed::{Error, Program};

#[test]
fn the_lines_of_the_readme_run() -> Result<(), Error> {
    let program = Program::compile("../../examples/01_power.impala")?;
    // SAFETY: `pow5` accesses no memory.
    let pow5 = unsafe { program.function::<(i32,), i32>("pow5") }?;
    assert_eq!(pow5.call((2,)), 32);

    let readme = include_str!("../../../../README.md");
    let lines: Vec<&str> =
        readme.split("```rust\n").nth(1).unwrap_or_default().lines().take_while(|l| *l != "```").collect();
    assert!(lines.len() > 3);
    let own = include_str!("readme.rs").replace("../../examples", "examples");
    lines.iter().for_each(|line| assert!(own.contains(&format!("    {line}\n")), "{line}"));
    Ok(())
}
