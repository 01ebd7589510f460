//! `x bench`: compile times by pass and their growth with the program's size.

pub fn run(_filter: Option<&str>) -> Result<bool, String> {
    Ok(true)
}
