//! PNG and EXR. A plain file is replaced as a whole, so that a program that looks at it never sees a part.

use crate::MAX_BYTES;
use exr::math::Vec2;
use exr::prelude::{Image, ReadChannels, ReadLayers, SpecificChannels, WritableImage};
use std::io::Cursor;
use std::path::Path;

/// A picture of RGB, rows from the top: as it is shown, in sRGB, and as light.
#[derive(Debug, PartialEq)]
pub struct Pixels {
    pub width: usize,
    pub height: usize,
    pub shown: Vec<u8>,
    pub light: Vec<f32>,
}

#[derive(PartialEq)]
enum Format {
    Png,
    Exr,
}

fn format(path: &Path) -> Result<Format, String> {
    match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
        Some("png") => Ok(Format::Png),
        Some("exr") => Ok(Format::Exr),
        _ => Err("its name ends with neither .png nor .exr".into()),
    }
}

fn failed(path: &Path, why: impl ToString) -> String {
    format!("cannot write {}: {}", path.display(), why.to_string())
}

/// Whether a picture can be written to this path.
pub fn check(path: &Path) -> Result<(), String> {
    format(path).map_err(|e| failed(path, e))?;
    if path.is_dir() {
        return Err(failed(path, "it is a folder"));
    }
    nyala_files::check(path).map_err(|e| failed(path, e))
}

/// Writes a picture; the name's ending says its format.
pub fn write(path: &Path, pixels: &Pixels) -> Result<(), String> {
    let bytes = match format(path).map_err(|e| failed(path, e))? {
        Format::Png => png(pixels),
        Format::Exr => exr(pixels),
    };
    let bytes = bytes.map_err(|e| failed(path, e))?;
    nyala_files::write(path, &bytes).map_err(|e| failed(path, e))
}

fn png(pixels: &Pixels) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width as u32, pixels.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let mut writer = encoder.write_header().map_err(|e| e.to_string())?;
    writer.write_image_data(&pixels.shown).map_err(|e| e.to_string())?;
    writer.finish().map_err(|e| e.to_string())?;
    Ok(bytes)
}

fn exr(pixels: &Pixels) -> Result<Vec<u8>, String> {
    let at = |p: Vec2<usize>| {
        let i = 3 * (p.y() * pixels.width + p.x());
        (pixels.light[i], pixels.light[i + 1], pixels.light[i + 2])
    };
    let mut bytes = Cursor::new(Vec::new());
    let image = Image::from_channels((pixels.width, pixels.height), SpecificChannels::rgb(at));
    image.write().to_buffered(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes.into_inner())
}

/// Reads a picture that `write` has written: what is shown of PNG, the light of EXR.
pub fn read(path: &Path) -> Result<Pixels, String> {
    let failed = |why: String| format!("cannot read {}: {why}", path.display());
    let format = format(path).map_err(failed)?;
    let bytes = nyala_files::read_plain(path, MAX_BYTES).map_err(|e| failed(e.to_string()))?;
    let reader = if format == Format::Png { read_png } else { read_exr };
    // Damaged files make some parsers panic.
    crate::quietly(|| reader(&bytes)).unwrap_or_else(|| Err("it is damaged".into())).map_err(failed)
}

/// As many bytes of pixels as a byte of a file can stand for: the encodings repeat what they have, at most so often.
const MAX_RATIO: usize = 1 << 14;

/// Whether a file of this size has room for a picture, which takes memory before it is read.
fn check_size(bytes: &[u8], pixels: Option<usize>) -> Result<usize, String> {
    pixels.filter(|n| n / MAX_RATIO <= bytes.len()).ok_or_else(|| "it is too large for the bytes of its file".into())
}

fn read_png(bytes: &[u8]) -> Result<Pixels, String> {
    let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().map_err(|e| e.to_string())?;
    let size = check_size(bytes, reader.output_buffer_size())?;
    let mut shown = vec![0; size];
    let info = reader.next_frame(&mut shown).map_err(|e| e.to_string())?;
    if (info.color_type, info.bit_depth) != (png::ColorType::Rgb, png::BitDepth::Eight) {
        return Err("it has not three bytes for each pixel".into());
    }
    Ok(Pixels { width: info.width as usize, height: info.height as usize, shown, light: Vec::new() })
}

fn read_exr(bytes: &[u8]) -> Result<Pixels, String> {
    let meta = exr::meta::MetaData::read_from_buffered(Cursor::new(bytes), false).map_err(|e| e.to_string())?;
    for header in &meta.headers {
        let Vec2(width, height) = header.layer_size;
        check_size(bytes, width.checked_mul(height).and_then(|n| n.checked_mul(12)))?;
    }
    let image = exr::prelude::read()
        .no_deep_data()
        .largest_resolution_level()
        .rgb_channels(
            |size, _| (size.width(), vec![0f32; 3 * size.area()]),
            |(width, light): &mut (usize, Vec<f32>), p, (r, g, b): (f32, f32, f32)| {
                let i = 3 * (p.y() * *width + p.x());
                light[i..i + 3].copy_from_slice(&[r, g, b]);
            },
        )
        .first_valid_layer()
        .all_attributes()
        .from_buffered(Cursor::new(bytes))
        .map_err(|e| e.to_string())?;
    let (width, light) = image.layer_data.channel_data.pixels;
    Ok(Pixels { width, height: image.layer_data.size.height(), shown: Vec::new(), light })
}
