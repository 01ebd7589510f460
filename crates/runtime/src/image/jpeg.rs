//! JPEG. `zune-jpeg` reads files. This module writes them: the baseline process of ITU-T T.81, without subsampling of colors, with the
//! example tables of annex K.

use super::{Image, MAX_BYTES};
use std::io::Write;
use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};

pub fn read(bytes: &[u8]) -> Result<Image, String> {
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|e| e.to_string())?;
    let is_gray = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let (space, channels) = if is_gray { (ColorSpace::Luma, 1) } else { (ColorSpace::RGB, 3) };
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let (width, height) = decoder.dimensions().ok_or("it has no header")?;
    if width * height * channels > MAX_BYTES {
        return Err("it is too large".into());
    }
    let pixels = decoder.decode().map_err(|e| e.to_string())?;
    Ok(Image { width: width as u32, height: height as u32, channels, pixels })
}

/// Side of a block.
const SIDE: usize = 8;

/// The quantization tables of brightness and of colors at quality 50, row by row.
const STEPS: [[u8; 64]; 2] = [
    [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29,
        51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121,
        120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ],
    [
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
    ],
];

/// The indices of a block's coefficients in the order in which they are written: the zigzag along its diagonals.
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// A Huffman code: the numbers of symbols with 1, 2, … 16 bits, and the symbols.
struct Huffman {
    lengths: [u8; 16],
    symbols: &'static [u8],
}

/// For DC coefficients, as differences from the previous block: a symbol is a number of bits.
const MEANS: Huffman = Huffman {
    lengths: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
    symbols: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
};

/// For AC coefficients: a symbol is 16 times the number of zeros before the coefficient, plus its number of bits.
const OTHERS: Huffman = Huffman {
    lengths: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
    symbols: &[
        0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
        0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72,
        0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37,
        0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59,
        0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83,
        0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3,
        0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
        0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2,
        0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
    ],
};

impl Huffman {
    /// The code of each symbol, and its number of bits.
    fn codes(&self) -> [(u32, u32); 256] {
        let mut codes = [(0, 0); 256];
        let (mut code, mut symbols) = (0, self.symbols.iter());
        for (n, length) in self.lengths.iter().zip(1..) {
            for symbol in symbols.by_ref().take((*n).into()) {
                codes[usize::from(*symbol)] = (code, length);
                code += 1;
            }
            code <<= 1;
        }
        codes
    }
}

/// Writes an image of 1 (gray) or 3 (RGB) channels, with a quality from 1 to 100.
pub fn write(image: &Image, quality: u32, out: &mut dyn Write) -> Result<(), String> {
    let side = |n: u32| u16::try_from(n).map_err(|_| "JPEG has at most 65535 rows and columns".to_string());
    let (width, height) = (side(image.width)?, side(image.height)?);
    encode(image, width, height, quality, out).map_err(|e| e.to_string())
}

fn encode(image: &Image, width: u16, height: u16, quality: u32, out: &mut dyn Write) -> std::io::Result<()> {
    let scale = if quality < 50 { 5000 / quality.max(1) } else { 200 - 2 * quality.min(100) };
    let steps = STEPS.map(|table| table.map(|step| ((u32::from(step) * scale + 50) / 100).clamp(1, 255) as u8));
    let n = image.channels as u8;
    out.write_all(b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0")?;
    for (number, table) in (0..).zip(&steps).take(if n == 1 { 1 } else { 2 }) {
        out.write_all(&[0xff, 0xdb, 0, 67, number])?;
        out.write_all(&ZIGZAG.map(|place| table[usize::from(place)]))?;
    }
    // The frame header: 8 bits per sample; for each component its number, one sample per pixel, and its quantization table.
    let [[w, x], [h, y]] = [width.to_be_bytes(), height.to_be_bytes()];
    out.write_all(&[0xff, 0xc0, 0, 8 + 3 * n, 8, h, y, w, x, n])?;
    (0..n).try_for_each(|c| out.write_all(&[c + 1, 0x11, c.min(1)]))?;
    for (class, code) in [(0, &MEANS), (0x10, &OTHERS)] {
        out.write_all(&[0xff, 0xc4, 0, 19 + code.symbols.len() as u8, class])?;
        out.write_all(&code.lengths)?;
        out.write_all(code.symbols)?;
    }
    // The scan header: all components, with their Huffman codes.
    out.write_all(&[0xff, 0xda, 0, 6 + 2 * n, n])?;
    (0..n).try_for_each(|c| out.write_all(&[c + 1, 0]))?;
    out.write_all(&[0, 63, 0])?;
    let cosines = cosines();
    let (means, others) = (MEANS.codes(), OTHERS.codes());
    let mut bits = Bits { out, pending: 0, n: 0 };
    let mut last = [0; 3];
    for top in (0..image.height).step_by(SIDE) {
        for left in (0..image.width).step_by(SIDE) {
            for (c, last) in last.iter_mut().enumerate().take(image.channels) {
                let block = transform(&samples(image, left, top, c), &cosines);
                let coefficients = ZIGZAG.map(|place| {
                    let place = usize::from(place);
                    (block[place] / f32::from(steps[c.min(1)][place])).round() as i32
                });
                bits.number(&means, 0, coefficients[0] - *last)?;
                *last = coefficients[0];
                let mut zeros = 0;
                for &coefficient in &coefficients[1..] {
                    if coefficient == 0 {
                        zeros += 1;
                        continue;
                    }
                    while zeros >= 16 {
                        bits.symbol(&others, 0xf0)?;
                        zeros -= 16;
                    }
                    bits.number(&others, zeros, coefficient)?;
                    zeros = 0;
                }
                if zeros > 0 {
                    bits.symbol(&others, 0)?;
                }
            }
        }
    }
    // The last byte is filled with ones.
    bits.put(0x7f, 7)?;
    out.write_all(&[0xff, 0xd9])
}

/// The samples of a block for one component (Y, Cb or Cr), centered at zero. The last row and column of the image are repeated beyond it.
fn samples(image: &Image, left: u32, top: u32, component: usize) -> [f32; 64] {
    std::array::from_fn(|i| {
        let x = (left as usize + i % SIDE).min(image.width as usize - 1);
        let y = (top as usize + i / SIDE).min(image.height as usize - 1);
        let at = (y * image.width as usize + x) * image.channels;
        let pixel = &image.pixels[at..at + image.channels];
        let &[r, g, b] = pixel else { return f32::from(pixel[0]) - 128.0 };
        let [r, g, b] = [r, g, b].map(f32::from);
        match component {
            0 => 0.299 * r + 0.587 * g + 0.114 * b - 128.0,
            1 => -0.168_735_9 * r - 0.331_264_1 * g + 0.5 * b,
            _ => 0.5 * r - 0.418_687_6 * g - 0.081_312_4 * b,
        }
    })
}

/// The matrix of the discrete cosine transform: a row of factors for each frequency.
fn cosines() -> [[f32; SIDE]; SIDE] {
    std::array::from_fn(|u| {
        let scale = if u == 0 { 0.125_f64.sqrt() } else { 0.5 };
        std::array::from_fn(|x| (scale * ((2 * x + 1) as f64 * u as f64 * std::f64::consts::PI / 16.0).cos()) as f32)
    })
}

/// The discrete cosine transform, first of the rows, then of the columns.
fn transform(samples: &[f32; 64], cosines: &[[f32; SIDE]; SIDE]) -> [f32; 64] {
    let sum = |of: &dyn Fn(usize) -> f32| (0..SIDE).map(of).sum::<f32>();
    let rows: [f32; 64] = std::array::from_fn(|i| sum(&|x| cosines[i % SIDE][x] * samples[i / SIDE * SIDE + x]));
    std::array::from_fn(|i| sum(&|y| cosines[i / SIDE][y] * rows[y * SIDE + i % SIDE]))
}

/// Writes bits, the highest first.
struct Bits<'a> {
    out: &'a mut dyn Write,
    /// The bits that do not fill a byte yet, and their number.
    pending: u32,
    n: u32,
}

impl Bits<'_> {
    /// Writes at most 16 bits.
    fn put(&mut self, bits: u32, n: u32) -> std::io::Result<()> {
        self.pending = self.pending << n | bits;
        self.n += n;
        while self.n >= 8 {
            self.n -= 8;
            let byte = (self.pending >> self.n) as u8;
            // A zero byte after 255 tells data from a marker.
            self.out.write_all(if byte == 0xff { &[0xff, 0] } else { std::slice::from_ref(&byte) })?;
        }
        self.pending &= (1 << self.n) - 1;
        Ok(())
    }

    fn symbol(&mut self, codes: &[(u32, u32); 256], symbol: usize) -> std::io::Result<()> {
        let (code, n) = codes[symbol];
        self.put(code, n)
    }

    /// A coefficient after this many zeros: the code of its symbol, then its bits. A negative number is written as the low bits of the number
    /// minus 1.
    fn number(&mut self, codes: &[(u32, u32); 256], zeros: usize, number: i32) -> std::io::Result<()> {
        let n = 32 - number.unsigned_abs().leading_zeros();
        self.symbol(codes, zeros << 4 | n as usize)?;
        let bits = if number < 0 { number - 1 } else { number };
        self.put(bits as u32 & ((1 << n) - 1), n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(image: &Image, quality: u32) -> Image {
        let mut bytes = Vec::new();
        write(image, quality, &mut bytes).expect("written");
        read(&bytes).expect("read")
    }

    #[test]
    fn what_is_written_is_read_almost_the_same() {
        // Sizes with and without parts of blocks; smooth and with an edge.
        for (width, height, channels) in [(1, 1, 1), (8, 8, 3), (19, 10, 3), (33, 17, 1)] {
            let pixels = (0..width * height * channels as u32)
                .map(|i| {
                    let (x, y, c) = (i / channels as u32 % width, i / channels as u32 / width, i % channels as u32);
                    if x > 12 { 40 * c as u8 } else { (100 + 6 * x + 5 * y - 30 * c) as u8 }
                })
                .collect();
            let image = Image { width, height, channels, pixels };
            let found = round_trip(&image, 95);
            assert_eq!((found.width, found.height, found.channels), (width, height, channels));
            let farthest = image.pixels.iter().zip(&found.pixels).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(farthest <= Some(9), "{farthest:?} in {width} x {height} x {channels}");
        }
    }

    #[test]
    fn noise_is_written_with_long_codes() {
        let mut state = 1u32;
        let pixels = (0..64 * 64)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 31 == 0 { 0 } else { 255 }
            })
            .collect();
        let image = Image { width: 64, height: 64, channels: 1, pixels };
        // At quality 100 each step is 1.
        let found = round_trip(&image, 100);
        assert!(image.pixels.iter().zip(&found.pixels).all(|(a, b)| a.abs_diff(*b) <= 3));
    }

    #[test]
    fn the_codes_have_all_symbols() {
        for code in [&MEANS, &OTHERS] {
            assert_eq!(code.lengths.iter().map(|n| usize::from(*n)).sum::<usize>(), code.symbols.len());
        }
        let codes = OTHERS.codes();
        for symbol in (0..16).flat_map(|zeros| (1..=10).map(move |n| zeros << 4 | n)).chain([0, 0xf0]) {
            assert!(codes[symbol].1 > 0, "{symbol:x}");
        }
    }

    #[test]
    fn rubbish_is_no_image() {
        let image = Image { width: 9, height: 9, channels: 3, pixels: vec![7; 243] };
        let mut bytes = Vec::new();
        write(&image, 95, &mut bytes).expect("written");
        for n in 0..bytes.len() {
            // A cut file may lack rows, but never ends the process.
            let _ = read(&bytes[..n]);
        }
        assert!(read(b"\xff\xd8\xff").is_err());
        let wide = Image { width: 65536, height: 1, channels: 1, pixels: vec![0; 65536] };
        assert!(write(&wide, 95, &mut bytes).is_err());
    }
}
