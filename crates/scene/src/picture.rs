//! PNG and EXR. A file is replaced as a whole, so that a program that looks at it never sees a part.

use exr::prelude::{Image, ReadChannels, ReadLayers, SpecificChannels, WritableImage};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufReader, Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

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

/// A file beside the one that it will become.
fn beside(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The umask takes from these what the user does not give.
    Builder::new().prefix(".render-").permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

/// Whether a picture can be written to this path.
pub fn check(path: &Path) -> Result<(), String> {
    format(path).map_err(|e| failed(path, e))?;
    if path.is_dir() {
        return Err(failed(path, "it is a folder"));
    }
    if path.exists() {
        OpenOptions::new().write(true).open(path).map_err(|e| failed(path, e))?;
    }
    beside(path).map_err(|e| failed(path, reason(&e)))?;
    Ok(())
}

/// The system's words, without the name of the file beside.
fn reason(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" at path").next().unwrap_or_default().to_string()
}

/// Writes a picture; the name's ending says its format.
pub fn write(path: &Path, pixels: &Pixels) -> Result<(), String> {
    let bytes = match format(path).map_err(|e| failed(path, e))? {
        Format::Png => png(pixels),
        Format::Exr => exr(pixels),
    };
    let bytes = bytes.map_err(|e| failed(path, e))?;
    let mut file = beside(path).map_err(|e| failed(path, reason(&e)))?;
    file.write_all(&bytes).map_err(|e| failed(path, reason(&e)))?;
    file.persist(path).map_err(|e| failed(path, reason(&e.error)))?;
    Ok(())
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
    let at = |p: exr::math::Vec2<usize>| {
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
    let file = File::open(path).map_err(|e| failed(e.to_string()))?;
    if format(path).map_err(failed)? == Format::Png {
        let mut reader = png::Decoder::new(BufReader::new(file)).read_info().map_err(|e| failed(e.to_string()))?;
        let size = reader.output_buffer_size().ok_or_else(|| failed("it is too large".into()))?;
        let mut shown = vec![0; size];
        let info = reader.next_frame(&mut shown).map_err(|e| failed(e.to_string()))?;
        if (info.color_type, info.bit_depth) != (png::ColorType::Rgb, png::BitDepth::Eight) {
            return Err(failed("it has not three bytes for each pixel".into()));
        }
        return Ok(Pixels { width: info.width as usize, height: info.height as usize, shown, light: Vec::new() });
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
        .from_buffered(BufReader::new(file))
        .map_err(|e| failed(e.to_string()))?;
    let (width, light) = image.layer_data.channel_data.pixels;
    Ok(Pixels { width, height: image.layer_data.size.height(), shown: Vec::new(), light })
}
