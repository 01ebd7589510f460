//! PNM, the formats of Netpbm: bitmaps (`P1`, `P4`), gray (`P2`, `P5`), RGB (`P3`, `P6`), each as numbers in ASCII or binary, and
//! `P7`, which has any channels.

use super::{Image, MAX_BYTES};
use std::io::Write;

pub fn read(bytes: &[u8]) -> Result<Image, String> {
    let mut input = Input(bytes.get(2..).unwrap_or_default());
    let kind = bytes.get(1).copied().unwrap_or_default();
    let header = match kind {
        b'1'..=b'6' => {
            let channels = if kind == b'3' || kind == b'6' { 3 } else { 1 };
            let (width, height) = (input.number()?, input.number()?);
            let most = if kind == b'1' || kind == b'4' { 1 } else { input.number()? };
            Header { width, height, channels, most }
        }
        b'7' => input.header()?,
        _ => return Err("it is no PNM".into()),
    };
    let Header { width, height, channels, most } = header;
    if width == 0 || height == 0 || !(1..=4).contains(&channels) || !(1..=0xffff).contains(&most) {
        return Err(format!("it has {width} x {height} pixels of {channels} numbers up to {most}"));
    }
    let sizes = [width, height, channels].map(|n| n as usize);
    let n = sizes.iter().try_fold(1usize, |n, size| n.checked_mul(*size)).filter(|n| *n <= MAX_BYTES);
    let n = n.ok_or("it is too large")?;
    let scaled = |sample: u32| ((sample.min(most) * 255 + most / 2) / most) as u8;
    // In a bitmap, a one is black.
    let pixels: Vec<u8> = match kind {
        b'1' => input.bits(n)?.map(|bit| 255 * (1 - bit)).collect(),
        b'4' => {
            let rows = input.take(sizes[0].div_ceil(8) * sizes[1])?.chunks(sizes[0].div_ceil(8));
            let row = |row: &[u8]| -> Vec<u8> {
                (0..sizes[0]).map(|x| if row[x / 8] << (x % 8) & 0x80 == 0 { 255 } else { 0 }).collect()
            };
            rows.flat_map(row).collect()
        }
        // Each number takes a byte at least.
        b'2' | b'3' if n > input.0.len() => return Err("it ends early".into()),
        b'2' | b'3' => (0..n).map(|_| input.number().map(scaled)).collect::<Result<_, _>>()?,
        _ if most < 256 => input.take(n)?.iter().map(|b| scaled((*b).into())).collect(),
        _ => {
            let samples = input.take(2 * n)?.chunks_exact(2);
            samples.map(|s| scaled(u16::from_be_bytes([s[0], s[1]]).into())).collect()
        }
    };
    Ok(Image { width, height, channels: sizes[2], pixels })
}

struct Header {
    width: u32,
    height: u32,
    channels: u32,
    /// The number that stands for full brightness.
    most: u32,
}

/// The part of a file that was not read yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte that is neither a blank nor in a comment.
    fn next_of_word(&mut self) -> Option<u8> {
        loop {
            match self.next()? {
                b'#' => while !matches!(self.next()?, b'\n' | b'\r') {},
                b' ' | b'\t'..=b'\r' => {}
                byte => return Some(byte),
            }
        }
    }

    /// A number in ASCII, and the blank after it.
    fn number(&mut self) -> Result<u32, String> {
        let mut next = self.next_of_word().ok_or("it ends early")?;
        let mut number = 0u32;
        loop {
            let digit = char::from(next).to_digit(10).ok_or_else(|| format!("a number has the byte {next}"))?;
            number = number.checked_mul(10).and_then(|n| n.checked_add(digit)).ok_or("a number is too large")?;
            match self.next() {
                None | Some(b' ' | b'\t'..=b'\r') => return Ok(number),
                Some(byte) => next = byte,
            }
        }
    }

    /// Zeros and ones in ASCII, which need no blanks between them.
    fn bits(&mut self, n: usize) -> Result<impl Iterator<Item = u8> + use<>, String> {
        if n > self.0.len() {
            return Err("it ends early".into());
        }
        let bit = |_| match self.next_of_word() {
            Some(bit @ (b'0' | b'1')) => Ok(bit - b'0'),
            Some(byte) => Err(format!("a bit is the byte {byte}")),
            None => Err("it ends early".to_string()),
        };
        Ok((0..n).map(bit).collect::<Result<Vec<u8>, _>>()?.into_iter())
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("it ends early")?;
        self.0 = rest;
        Ok(taken)
    }

    /// The header of `P7`: lines of a word and a value. What the channels mean follows from their number.
    fn header(&mut self) -> Result<Header, String> {
        let (mut width, mut height, mut channels, mut most) = (0, 0, 0, 0);
        loop {
            let n = self.0.iter().position(|b| *b == b'\n').ok_or("its header has no end")?;
            let line = String::from_utf8_lossy(&self.take(n + 1)?[..n]).into_owned();
            let (word, value) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
            let field = match word {
                "ENDHDR" => return Ok(Header { width, height, channels, most }),
                "WIDTH" => &mut width,
                "HEIGHT" => &mut height,
                "DEPTH" => &mut channels,
                "MAXVAL" => &mut most,
                "" | "TUPLTYPE" => continue,
                _ if word.starts_with('#') => continue,
                _ => return Err(format!("its header has `{word}`")),
            };
            *field = value.trim().parse().map_err(|_| format!("its header has `{line}`"))?;
        }
    }
}

/// Writes gray as `P5`, RGB as `P6`; with more channels, or where `is_any`, as `P7`.
pub fn write(image: &Image, is_any: bool, out: &mut dyn Write) -> Result<(), String> {
    let Image { width, height, channels, pixels } = image;
    let header = match channels {
        1 if !is_any => format!("P5\n{width} {height}\n255\n"),
        3 if !is_any => format!("P6\n{width} {height}\n255\n"),
        _ => {
            let kind = ["GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"][channels - 1];
            format!("P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL 255\nTUPLTYPE {kind}\nENDHDR\n")
        }
    };
    out.write_all(header.as_bytes()).and_then(|()| out.write_all(pixels)).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let files: [(&[u8], usize, &[u8]); 9] = [
            (b"P1 # a bitmap\n3 2\n1 0 1\n010", 1, &[0, 255, 0, 255, 0, 255]),
            (b"P4 3 2\n\xa0\x40", 1, &[0, 255, 0, 255, 0, 255]),
            (b"P2\n2 1 15\n0 15", 1, &[0, 255]),
            (b"P5\n2 1\n# all\n255\n\x07\xff", 1, &[7, 255]),
            (b"P5 2 1 65535\n\x80\x00\xff\xff", 1, &[128, 255]),
            (b"P3 1 1 255 1 2 3\n", 3, &[1, 2, 3]),
            (b"P6 1 1 255\n\n#1", 3, b"\n#1"),
            (b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcd", 4, b"abcd"),
            (
                b"P7\n# bits\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n\x00\x01",
                1,
                &[0, 255],
            ),
        ];
        for (file, channels, pixels) in files {
            let image = read(file).unwrap_or_else(|e| panic!("{}: {e}", String::from_utf8_lossy(file)));
            assert_eq!((image.channels, &image.pixels[..]), (channels, pixels), "{}", String::from_utf8_lossy(file));
            for n in 2..file.len() - 1 {
                assert!(read(&file[..n]).is_err(), "{n} bytes of {}", String::from_utf8_lossy(file));
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for (channels, is_any) in [(1, false), (3, false), (4, false), (1, true), (3, true)] {
            let pixels: Vec<u8> = (0..6 * channels as u8).collect();
            let image = Image { width: 2, height: 3, channels, pixels };
            let mut file = Vec::new();
            write(&image, is_any, &mut file).expect("written");
            assert_eq!(file.starts_with(b"P7"), is_any || channels == 4);
            let found = read(&file).expect("read");
            assert_eq!((found.width, found.height, found.channels, found.pixels), (2, 3, channels, image.pixels));
        }
    }

    #[test]
    fn sizes_that_the_file_does_not_have_are_faults() {
        for file in [
            "P5 0 5 255\n",
            "P5 4000000000 4000000000 255\n",
            "P2 20000 20000 255\n1",
            "P5 1 1 0\n1",
            "P6 1 1 70000\n1",
        ] {
            assert!(read(file.as_bytes()).is_err(), "{file}");
        }
    }
}
