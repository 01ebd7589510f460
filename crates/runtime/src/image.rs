//! Image files: PNG, JPEG, PNM, as 8-bit gray, RGB or RGBA in rows without padding.

use crate::files::{nyala_file_error, path_of, set_error, write_file};
use crate::memory::nyala_alloc;
use image::{DynamicImage, ImageFormat, ImageReader};
use std::io::Cursor;
use std::path::Path;

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
    let bytes = nyala_files::read(path).map_err(|e| fail(&e))?;
    let mut reader = ImageReader::new(Cursor::new(bytes));
    // The contents say more than the name.
    if let Ok(format) = ImageFormat::from_path(path) {
        reader.set_format(format);
    }
    let reader = reader.with_guessed_format().map_err(|e| fail(&e))?;
    let image = reader.decode().map_err(|e| fail(&e))?;
    let (width, height) = (image.width(), image.height());
    let size = |n: u32| i32::try_from(n).map_err(|_| fail(&"it is too large"));
    let (width, height) = (size(width)?, size(height)?);
    let pixels = match channels {
        1 => image.into_luma8().into_raw(),
        3 => image.into_rgb8().into_raw(),
        4 => image.into_rgba8().into_raw(),
        n => return Err(format!("images have 1, 3 or 4 channels, not {n}")),
    };
    Ok((pixels, width, height))
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
    let format = ImageFormat::from_path(path).map_err(|e| fail(&e))?;
    let image = match channels {
        1 => image::GrayImage::from_raw(width, height, pixels).map(DynamicImage::from),
        3 => image::RgbImage::from_raw(width, height, pixels).map(DynamicImage::from),
        4 => image::RgbaImage::from_raw(width, height, pixels).map(DynamicImage::from),
        n => return Err(fail(&format!("images have 1, 3 or 4 channels, not {n}"))),
    };
    let image = image.ok_or_else(|| fail(&"wrong number of pixels"))?;
    // JPEG has no transparency.
    let image = if format == ImageFormat::Jpeg && channels == 4 { image.into_rgb8().into() } else { image };
    let bytes = encoded(&image, format).map_err(|e| fail(&e))?;
    write_file(path, &bytes).map_err(|e| fail(&e))
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> image::ImageResult<Vec<u8>> {
    let mut out = Cursor::new(Vec::new());
    if format == ImageFormat::Jpeg {
        image.write_with_encoder(image::codecs::jpeg::JpegEncoder::new_with_quality(&mut out, 95))?;
    } else {
        image.write_to(&mut out, format)?;
    }
    Ok(out.into_inner())
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
