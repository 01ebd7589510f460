//! Scenes and pictures of renderers, behind a C ABI: reads OBJ, PLY and glTF, writes PNG and EXR.
//!
//! Separate from the runtime, which is in every executable: only programs that are linked with this library have its crates.
//! `nyala build render.impala libnyala_scene.so` links it, and `nyala run --load libnyala_scene.so` loads it.

mod gltf;
mod obj;
mod picture;
mod ply;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

pub use picture::{Pixels, check as check_picture, read as read_picture, write as write_picture};

/// As many triangles as a tree of `lib/ray` may have.
pub const MAX_TRIANGLES: usize = 0x07ff_ffff;

/// As many vertices as these triangles can have.
const MAX_VERTICES: usize = 3 * MAX_TRIANGLES;

/// As many bytes as are read for a scene from its file, and from those that it names.
const MAX_BYTES: u64 = 16 << 30;

/// How light is scattered: the number of a material in the renderer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    Diffuse = 0,
    Mirror = 1,
    Glass = 2,
}

/// A material. Colors are linear.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Material {
    pub kind: Kind,
    /// The share of light that is scattered.
    pub color: [f32; 3],
    /// The light that it gives of itself.
    pub emission: [f32; 3],
    /// The index of refraction of glass.
    pub ior: f32,
}

impl Material {
    /// A gray that is taken where a file has no materials.
    pub const DEFAULT: Material = Material { kind: Kind::Diffuse, color: [0.7; 3], emission: [0.0; 3], ior: 1.5 };
}

/// A place to look from, a direction as a point, and the vertical field of view in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Camera {
    pub eye: [f32; 3],
    pub target: [f32; 3],
    pub fov: f32,
}

/// Triangles with materials.
#[derive(Debug, Default)]
pub struct Scene {
    /// Three floats for each vertex.
    pub vertices: Vec<f32>,
    /// Three indices of vertices for each triangle.
    pub indices: Vec<u32>,
    /// The number of each triangle's material.
    pub material_of: Vec<i32>,
    pub materials: Vec<Material>,
    pub camera: Option<Camera>,
    /// What the file has and the scene has not.
    pub limitations: Vec<String>,
}

impl Scene {
    /// Adds triangles by their indices into `vertices`, which are added, too.
    fn add(&mut self, vertices: &[f32], indices: impl IntoIterator<Item = u32>, material: i32) -> Result<(), String> {
        let first = u32::try_from(self.vertices.len() / 3).map_err(|_| "it has too many vertices".to_string())?;
        let n = vertices.len() / 3;
        self.check_size(n, 0)?;
        self.vertices.extend_from_slice(vertices);
        for i in indices {
            if i as usize >= n {
                return Err(format!("a triangle has vertex {i}, but there are {n}, counted from 0"));
            }
            self.indices.push(first + i);
        }
        self.material_of.resize(self.indices.len() / 3, material);
        self.check_size(0, 0)
    }

    /// Whether there may be more vertices and triangles: before they take memory.
    fn check_size(&self, n_vertices: usize, n_triangles: usize) -> Result<(), String> {
        let is_good = |n: usize, more: usize, max: usize| n.checked_add(more).is_some_and(|n| n <= max);
        if is_good(self.material_of.len(), n_triangles, MAX_TRIANGLES)
            && is_good(self.vertices.len() / 3, n_vertices, MAX_VERTICES)
        {
            return Ok(());
        }
        Err(format!("it has more than {MAX_TRIANGLES} triangles or {MAX_VERTICES} vertices"))
    }

    fn check(&self) -> Result<(), String> {
        if let Some(i) = self.vertices.iter().position(|x| !x.is_finite()) {
            return Err(format!("vertex {}, counted from 0, has a coordinate that is not a finite number", i / 3));
        }
        if self.material_of.is_empty() {
            return Err("it has no triangles".into());
        }
        let is_good = |m: &Material| {
            m.color.iter().chain(&m.emission).all(|x| x.is_finite() && *x >= 0.0) && m.ior.is_finite() && m.ior > 0.0
        };
        match self.materials.iter().position(|m| !is_good(m)) {
            Some(i) => Err(format!("material {i}, counted from 0, has a negative or infinite number")),
            None => Ok(()),
        }
    }
}

/// Reads a scene; the file's ending says its format. The message of an error has the file's name.
pub fn read(path: &Path) -> Result<Scene, String> {
    let failed = |why: String| format!("cannot read {}: {why}", path.display());
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let reader: fn(&Path, Vec<u8>) -> Result<Scene, String> = match ending.as_str() {
        "obj" => obj::read,
        "ply" => ply::read,
        "gltf" | "glb" => gltf::read,
        _ => return Err(failed("its name ends with none of .obj, .ply, .gltf and .glb".into())),
    };
    let data = nyala_files::read_plain(path, MAX_BYTES).map_err(|e| failed(e.to_string()))?;
    if data.is_empty() {
        return Err(failed("it is empty".into()));
    }
    // Damaged files make some parsers panic.
    let scene = quietly(|| reader(path, data)).unwrap_or_else(|| Err("it is damaged".into())).map_err(failed)?;
    scene.check().map_err(failed)?;
    Ok(scene)
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The result of a function, or nothing if it panics; no message is printed.
fn quietly<T>(f: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                hook(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(f)).ok();
    IS_QUIET.set(false);
    result
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Keeps an error's message for `nyala_scene_error`. Gives 0 if there is none, else 1.
fn code(result: Result<(), String>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(why) => {
            ERROR.with(|e| *e.borrow_mut() = CString::new(why.replace('\0', "?")).unwrap_or_default());
            1
        }
    }
}

/// The message of the last function of this thread that has failed.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_scene_error() -> *const c_char {
    ERROR.with(|e| e.borrow().as_ptr())
}

/// A scene in arrays that stay until `owner` is freed; `limitations` has a line for each.
#[repr(C)]
pub struct Arrays {
    pub vertices: *const f32,
    pub indices: *const u32,
    pub material_of: *const i32,
    pub materials: *const Material,
    pub limitations: *const c_char,
    pub owner: *mut Owner,
    pub n_vertices: i32,
    pub n_triangles: i32,
    pub n_materials: i32,
    pub has_camera: i32,
    pub camera: Camera,
}

pub struct Owner {
    _scene: Scene,
    _limitations: CString,
}

/// A path of C. The bytes of a name need not be UTF-8.
///
/// # Safety
/// `path` is a string with a zero byte at its end.
unsafe fn path_of(path: *const c_char) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: as the caller says.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Reads a scene. Gives 0, or 1 if there is an error; then `out` is left as it is.
///
/// # Safety
/// `path` is a string with a zero byte at its end, and `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_scene_read(path: *const c_char, out: *mut Arrays) -> i32 {
    // SAFETY: as the caller says.
    let path = unsafe { path_of(path) };
    code(read(&path).map(|scene| {
        let limitations = CString::new(scene.limitations.join("\n").replace('\0', "?")).unwrap_or_default();
        let arrays = Arrays {
            vertices: scene.vertices.as_ptr(),
            indices: scene.indices.as_ptr(),
            material_of: scene.material_of.as_ptr(),
            materials: scene.materials.as_ptr(),
            limitations: limitations.as_ptr(),
            n_vertices: (scene.vertices.len() / 3) as i32,
            n_triangles: scene.material_of.len() as i32,
            n_materials: scene.materials.len() as i32,
            has_camera: scene.camera.is_some().into(),
            camera: scene.camera.unwrap_or_default(),
            // The arrays do not move with their owners.
            owner: Box::into_raw(Box::new(Owner { _scene: scene, _limitations: limitations })),
        };
        // SAFETY: as the caller says.
        unsafe { out.write(arrays) };
    }))
}

/// Frees a scene.
///
/// # Safety
/// `owner` is from `nyala_scene_read`, and freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_scene_free(owner: *mut Owner) {
    // SAFETY: as the caller says.
    drop(unsafe { Box::from_raw(owner) });
}

/// Whether a picture can be written to this path: 0, or 1 with an error.
///
/// # Safety
/// `path` is a string with a zero byte at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_picture_check(path: *const c_char) -> i32 {
    // SAFETY: as the caller says.
    let path = unsafe { path_of(path) };
    code(picture::check(&path))
}

/// Writes a picture of RGB, rows from the top: `shown` to PNG, `light` to EXR. The file appears whole, or stays as it was.
///
/// # Safety
/// `path` is a string with a zero byte at its end, and both arrays have 3 * width * height numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nyala_picture_write(
    path: *const c_char,
    width: i32,
    height: i32,
    shown: *const u8,
    light: *const f32,
) -> i32 {
    let (width, height) = (width.max(0) as usize, height.max(0) as usize);
    let n = 3 * width * height;
    // SAFETY: as the caller says.
    let (path, shown, light) =
        unsafe { (path_of(path), std::slice::from_raw_parts(shown, n), std::slice::from_raw_parts(light, n)) };
    code(picture::write(&path, &Pixels { width, height, shown: shown.to_vec(), light: light.to_vec() }))
}

static INTERRUPTED: std::sync::OnceLock<Arc<AtomicBool>> = std::sync::OnceLock::new();

/// From now on, Ctrl-C sets a flag; a second one ends the program.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_interrupt_watch() {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    // Without handlers, Ctrl-C ends the program.
    let _ = signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGINT, 130, flag.clone());
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, flag.clone());
}

/// Whether Ctrl-C was pressed.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_interrupted() -> i32 {
    INTERRUPTED.get().is_some_and(|f| f.load(Ordering::Relaxed)).into()
}
