//! What a report of a recursion shows.

use nyala_specialize::whistle::{counts, last_calls, numbers};

fn calls(calls: &[[&str; 2]]) -> Vec<Vec<String>> {
    calls.iter().map(|args| args.iter().map(|a| a.to_string()).collect()).collect()
}
fn slices(calls: &[Vec<String>]) -> Vec<&[String]> {
    calls.iter().map(|args| args.as_slice()).collect()
}

#[test]
fn the_largest_number_of_different_numbers_counts() {
    let n = |all: &[[&str; 2]]| numbers(&slices(&calls(all)));
    assert_eq!(n(&[]), (0, 0));
    assert_eq!(n(&[["?", "1u32"], ["?", "2u32"], ["?", "1u32"]]), (2, 1));
    assert_eq!(n(&[["-4", "?"], ["5", "1"], ["6", "1"]]), (3, 0));
    let counts = |all: &[[&str; 2]]| counts(&slices(&calls(all)));
    assert!(counts(&[["?", "1"], ["?", "2"], ["?", "3"]]));
    assert!(!counts(&[["?", "1"], ["?", "2"], ["?", "1"]]));
    assert!(!counts(&[["?", "1"], ["?", "2"]]));
}

#[test]
fn calls_with_other_numbers_are_shown() {
    let shown = |all: &[[&str; 2]]| -> Vec<String> {
        last_calls(&slices(&calls(all))).iter().map(|args| args[1].clone()).collect()
    };
    let few = [["a", "1"], ["b", "?"], ["c", "2"], ["d", "?"], ["e", "3"], ["f", "?"]];
    assert_eq!(shown(&few), ["2", "?", "3", "?"]);
    let more = [["g", "4"], ["h", "5"], ["i", "6"], ["j", "7"], ["k", "?"], ["l", "7"]];
    assert_eq!(shown(&[few, more].concat()), ["4", "5", "6", "7"]);
}
