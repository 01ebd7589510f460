//! Plain and compressed texts, whole, cut, damaged, and in parts.

use flate2::{Compression, write::GzEncoder};
use nyala_gzip::Reader;
use std::io::{Read, Write};

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A source that gives one byte at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let n = to.len().min(1);
        self.0.read(&mut to[..n])
    }
}

fn read(file: impl Read, block: usize) -> Result<Vec<u8>, String> {
    let mut reader = Reader::new(file)?;
    let (mut all, mut to) = (Vec::new(), vec![0; block]);
    loop {
        let n = reader.read(&mut to)?;
        if n == 0 {
            // The end stays the end.
            assert_eq!(reader.read(&mut to), Ok(0));
            return Ok(all);
        }
        all.extend(&to[..n]);
    }
}

#[test]
fn reads_plain_and_compressed_texts() {
    let text: Vec<u8> = (0..100_000u32).map(|i| b"ACGT"[(i.wrapping_mul(2654435761) >> 30) as usize]).collect();
    for n in [0, 1, 2, 3, 70_000, text.len()] {
        let text = &text[..n];
        for block in [1, 1000, 1 << 20] {
            assert_eq!(read(text, block).as_deref(), Ok(text));
            assert_eq!(read(&compressed(text)[..], block).as_deref(), Ok(text));
        }
        assert_eq!(read(Slow(&compressed(text)), 4096).as_deref(), Ok(text));
    }
    // A text that begins as compressed ones do, but for one byte.
    assert_eq!(read(&b"\x1f"[..], 9).as_deref(), Ok(&b"\x1f"[..]));
    assert_eq!(read(&b"\x1f\x8c"[..], 9).as_deref(), Ok(&b"\x1f\x8c"[..]));
}

#[test]
fn parts_are_one_text() {
    let parts = [compressed(b"first "), compressed(b""), compressed(b"second"), compressed(b"")].concat();
    assert_eq!(read(&parts[..], 4).as_deref(), Ok(&b"first second"[..]));
}

#[test]
fn a_text_that_is_cut_is_an_error() {
    let (first, second) = (compressed(b"first part"), compressed(b"second part"));
    let both = [&first[..], &second[..]].concat();
    for n in 2..both.len() {
        let found = read(&both[..n], 3);
        match n == first.len() {
            true => assert_eq!(found.as_deref(), Ok(&b"first part"[..])),
            false => assert_eq!(found, Err("what is compressed ends early".into()), "{n} of {} bytes", both.len()),
        }
    }
}

#[test]
fn a_damaged_text_is_an_error() {
    let good = compressed(&b"some text that is longer than its code, some text that is longer".repeat(9));
    // Flags, time and system of the header say nothing about the text.
    for at in (2..3).chain(10..good.len()) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        assert!(read(&bad[..], 100).is_err(), "byte {at}");
    }
    let more = [&good[..], b"what is this"].concat();
    assert_eq!(read(&more[..], 100), Err("what is compressed is damaged".into()));
}
