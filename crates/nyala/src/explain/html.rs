//! The report as one page that needs nothing else.

use super::Explained;
use nyala_base::Sources;

pub fn page(_: &Explained, _: &Sources) -> String {
    String::new()
}
