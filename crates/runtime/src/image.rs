//! Image files: PNG, JPEG, PNM, as 8-bit gray, RGB or RGBA in rows without padding.

use crate::files::{nyala_file_error, path_of, set_error, write_file};
use crate::memory::nyala_alloc;
use std::io::{BufRead, Cursor, Seek, Write};
use std::path::Path;

mod jpeg;
mod pnm;

/// An image, in rows without padding.
pub struct Image {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bytes per pixel: 1 (gray), 2 (gray, opacity), 3 (RGB) or 4 (RGBA).
    pub channels: usize,
    /// One row after the other.
    pub pixels: Vec<u8>,
}

/// The most bytes of an image that is read: a file's header may ask for any size.
const MAX_BYTES: usize = 512 << 20;
/// JPEG's scale ends at 100.
const JPEG_QUALITY: u32 = 95;

/// The message of this thread's last failed image or file function; empty if none failed.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_image_error() -> *const u8 {
    nyala_file_error()
}

/// Loads an image with 1 (gray), 3 (RGB) or 4 (RGBA) bytes per pixel, converted if the file has other channels. The
/// memory is allocated by [`nyala_alloc`]. Null on an error, with a message in [`nyala_image_error`]; then nothing is
/// written.
///
/// # Safety
/// `path` ends with a zero byte; `out_width` and `out_height` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_image_load(
    path: *const u8,
    channels: i32,
    out_width: *mut i32,
    out_height: *mut i32,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    let loaded = unsafe { path_of(path) }.and_then(|path| load(&path, channels));
    match loaded {
        Ok((pixels, width, height)) => {
            let memory = nyala_alloc(pixels.len() as i64);
            if memory.is_null() {
                set_error("out of memory".into());
                return memory;
            }
            // SAFETY: the memory is as large as the pixels; the caller's promise for the others.
            unsafe {
                memory.copy_from_nonoverlapping(pixels.as_ptr(), pixels.len());
                *out_width = width;
                *out_height = height;
            }
            memory
        }
        Err(text) => {
            set_error(text);
            std::ptr::null_mut()
        }
    }
}

fn load(path: &Path, channels: i32) -> Result<(Vec<u8>, i32, i32), String> {
    let fail = |e: &dyn std::fmt::Display| format!("cannot load image `{}`: {e}", path.display());
    let wanted = match channels {
        1 | 3 | 4 => channels as usize,
        n => return Err(format!("images have 1, 3 or 4 channels, not {n}")),
    };
    let image = Image::read(path).map_err(|e| fail(&e))?;
    let size = |n: u32| i32::try_from(n).map_err(|_| fail(&"it is too large"));
    let (width, height) = (size(image.width)?, size(image.height)?);
    Ok((image.with_channels(wanted), width, height))
}

impl Image {
    /// Reads a file in the format that its first bytes tell.
    pub fn read(path: &Path) -> Result<Image, String> {
        let bytes = nyala_files::read(path).map_err(|e| e.to_string())?;
        match bytes[..] {
            [0x89, b'P', b'N', b'G', ..] => read_png(Cursor::new(&bytes)),
            [0xff, 0xd8, 0xff, ..] => jpeg::read(&bytes),
            [b'P', b'1'..=b'7', ..] => pnm::read(&bytes),
            _ => Err("it is neither PNG, JPEG nor PNM".into()),
        }
    }

    /// The pixels with 1, 3 or 4 channels.
    fn with_channels(self, wanted: usize) -> Vec<u8> {
        if self.channels == wanted {
            return self.pixels;
        }
        let mut out = Vec::with_capacity(self.pixels.len() / self.channels * wanted);
        for pixel in self.pixels.chunks_exact(self.channels) {
            let (rgb, opacity) = match *pixel {
                [r, g, b, a] => ([r, g, b], a),
                [r, g, b] => ([r, g, b], 255),
                [gray, a] => ([gray; 3], a),
                _ => ([pixel[0]; 3], 255),
            };
            match wanted {
                1 if self.channels < 3 => out.push(rgb[0]),
                1 => {
                    let [r, g, b] = rgb.map(u32::from);
                    out.push(((2126 * r + 7152 * g + 722 * b) / 10_000) as u8);
                }
                3 => out.extend(rgb),
                _ => out.extend(rgb.into_iter().chain([opacity])),
            }
        }
        out
    }

    /// The pixels in RGB.
    pub fn into_rgb(self) -> Vec<u8> {
        self.with_channels(3)
    }
}

fn read_png(file: impl BufRead + Seek) -> Result<Image, String> {
    let fail = |e: png::DecodingError| e.to_string();
    let mut decoder = png::Decoder::new_with_limits(file, png::Limits { bytes: MAX_BYTES });
    // Palettes and fewer bits become bytes, and a transparent color opacity.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(fail)?;
    let size = reader.output_buffer_size().filter(|n| *n <= MAX_BYTES).ok_or("it is too large")?;
    let mut pixels = vec![0; size];
    let info = reader.next_frame(&mut pixels).map_err(fail)?;
    pixels.truncate(info.buffer_size());
    if info.bit_depth == png::BitDepth::Sixteen {
        let samples = pixels.chunks_exact(2).map(|s| u32::from(u16::from_be_bytes([s[0], s[1]])));
        pixels = samples.map(|s| ((s + 128) / 257) as u8).collect();
    }
    Ok(Image { width: info.width, height: info.height, channels: info.color_type.samples(), pixels })
}

/// Writes an image in the format of the file's extension, as [`nyala_files::write`] does; `data` has `width * height *
/// channels` bytes. Returns 0, or 1 on an error, with a message in [`nyala_image_error`].
///
/// # Safety
/// `path` ends with a zero byte; `data` is readable at its full length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_image_save(
    path: *const u8,
    data: *const u8,
    width: i32,
    height: i32,
    channels: i32,
) -> i32 {
    // SAFETY: the caller's promise.
    let saved = unsafe { path_of(path) }.and_then(|path| {
        if data.is_null() || width <= 0 || height <= 0 {
            return Err(format!("cannot save image `{}`: it has {width} x {height} pixels", path.display()));
        }
        let bytes = width as usize * height as usize * channels.clamp(0, 4) as usize;
        // SAFETY: the caller's promise.
        let pixels = unsafe { std::slice::from_raw_parts(data, bytes) }.to_vec();
        save(&path, pixels, width as u32, height as u32, channels)
    });
    match saved {
        Ok(()) => 0,
        Err(text) => {
            set_error(text);
            1
        }
    }
}

fn save(path: &Path, pixels: Vec<u8>, width: u32, height: u32, channels: i32) -> Result<(), String> {
    let fail = |e: &dyn std::fmt::Display| format!("cannot save image `{}`: {e}", path.display());
    if ![1, 3, 4].contains(&channels) {
        return Err(fail(&format!("images have 1, 3 or 4 channels, not {channels}")));
    }
    Image { width, height, channels: channels as usize, pixels }.save(path).map_err(|e| fail(&e))
}

impl Image {
    /// Writes a file in the format of its extension, as [`nyala_files::write`] does.
    pub fn save(self, path: &Path) -> Result<(), String> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let write: fn(Image, &str, &mut dyn Write) -> Result<(), String> = match &*extension {
            "png" => |image, _, out| write_png(&image, out),
            "jpg" | "jpeg" | "jfif" => |image, _, out| {
                // JPEG has no transparency.
                let Image { width, height, .. } = image;
                let channels = if image.channels < 3 { 1 } else { 3 };
                jpeg::write(
                    &Image { width, height, channels, pixels: image.with_channels(channels) },
                    JPEG_QUALITY,
                    out,
                )
            },
            "pam" | "pbm" | "pgm" | "pnm" | "ppm" => {
                |image, extension, out| pnm::write(&image, extension == "pam", out)
            }
            _ => return Err(format!("its name ends with `{extension}`, which is neither PNG, JPEG nor PNM")),
        };
        let mut bytes = Vec::new();
        write(self, &extension, &mut bytes)?;
        write_file(path, &bytes).map_err(|e| e.to_string())
    }
}

fn write_png(image: &Image, out: &mut dyn Write) -> Result<(), String> {
    let fail = |e: png::EncodingError| e.to_string();
    let mut encoder = png::Encoder::new(out, image.width, image.height);
    encoder.set_color(match image.channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    let mut writer = encoder.write_header().map_err(fail)?;
    writer.write_image_data(&image.pixels).and_then(|()| writer.finish()).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::nyala_free;
    use std::ffi::{CStr, CString};

    fn c(path: &Path) -> CString {
        CString::new(path.to_str().expect("UTF-8")).expect("no zero")
    }

    fn error() -> String {
        // SAFETY: the text ends with a zero byte.
        unsafe { CStr::from_ptr(nyala_image_error().cast()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn saves_and_loads_each_format() {
        let folder = std::env::temp_dir().join(format!("nyala image test {}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let pixels: Vec<u8> = (0..5 * 4 * 3).map(|i| (i * 4) as u8).collect();
        for (name, exact) in [("a.png", true), ("a.ppm", true), ("a.jpg", false)] {
            let path = c(&folder.join(name));
            let (mut width, mut height) = (0, 0);
            // SAFETY: the arguments are what the functions ask for.
            unsafe {
                assert_eq!(nyala_image_save(path.as_ptr().cast(), pixels.as_ptr(), 5, 4, 3), 0, "{}", error());
                let data = nyala_image_load(path.as_ptr().cast(), 3, &mut width, &mut height);
                assert!(!data.is_null(), "{}", error());
                assert_eq!((width, height), (5, 4));
                if exact {
                    assert_eq!(std::slice::from_raw_parts(data, pixels.len()), pixels);
                }
                nyala_free(data);
            }
        }
        let left: Vec<_> = std::fs::read_dir(&folder)
            .expect("folder")
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .collect();
        assert_eq!(left.len(), 3, "no temporary file stays: {left:?}");
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn faults_are_told() {
        let folder = std::env::temp_dir().join(format!("nyala bad image {}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        std::fs::write(folder.join("bad.png"), b"\x89PNG\r\n\x1a\nrubbish").expect("written");
        let (mut width, mut height) = (7, 7);
        let mut load = |path: &Path, channels| {
            // SAFETY: the arguments are what the function asks for.
            unsafe { nyala_image_load(c(path).as_ptr().cast(), channels, &mut width, &mut height) }
        };
        assert!(load(&folder.join("missing.png"), 3).is_null());
        assert!(error().contains("missing.png"), "{}", error());
        assert!(load(&folder.join("bad.png"), 3).is_null());
        assert!(load(Path::new("/dev/zero"), 3).is_null());
        assert!(error().contains("cannot load image `/dev/zero`: it goes on after 67108864 bytes"), "{}", error());
        // 65535 x 65535 pixels.
        let header = b"P6 65535 65535 255\n";
        std::fs::write(folder.join("large.ppm"), header).expect("written");
        assert!(load(&folder.join("large.ppm"), 3).is_null());
        assert_eq!((width, height), (7, 7));
        let pixels = [0u8; 12];
        for (name, channels) in [("a.xyz", 3), ("a.png", 2), ("no/such/folder/a.png", 3)] {
            // SAFETY: the arguments are what the function asks for.
            let status =
                unsafe { nyala_image_save(c(&folder.join(name)).as_ptr().cast(), pixels.as_ptr(), 2, 2, channels) };
            assert_eq!(status, 1);
            assert!(!folder.join(name).exists() && !error().is_empty());
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
