//! OBJ with the materials of MTL files.

use crate::{Kind, Material, Scene};
use std::cell::{Cell, RefCell};
use std::path::Path;

/// As many bytes as the files of materials may have.
const MAX_MATERIAL_BYTES: u64 = 256 << 20;

pub fn read(path: &Path, data: Vec<u8>) -> Result<Scene, String> {
    let text = String::from_utf8_lossy(&data);
    if text.contains('\0') {
        return Err("it is no text, as OBJ files are".into());
    }
    // The parser takes a file without any keyword of OBJ as one without triangles.
    let options = tobj::LoadOptions { triangulate: true, single_index: true, ignore_points: true, ignore_lines: true };
    let folder = path.parent().unwrap_or(Path::new(""));
    // The bytes that materials may still have, and the reason why one was not read.
    let (left, why) = (Cell::new(MAX_MATERIAL_BYTES), RefCell::new(None));
    let load = |name: &Path| {
        let read = nyala_files::read_plain(&folder.join(name), left.get());
        let bytes = read.map_err(|e| {
            why.replace(Some(format!("cannot read {}: {e}", name.display())));
            tobj::LoadError::OpenFileFailed
        })?;
        left.set(left.get() - bytes.len() as u64);
        tobj::load_mtl_buf(&mut bytes.as_slice())
    };
    let (models, materials) = tobj::load_obj_buf(&mut text.as_bytes(), &options, |name| load(name))
        .map_err(|e| e.to_string().to_lowercase())?;
    let mut scene = Scene::default();
    let materials = materials.unwrap_or_else(|e| {
        let why = why.take().unwrap_or_else(|| e.to_string().to_lowercase());
        scene.limitations.push(format!("its materials are left out: {why}"));
        Vec::new()
    });
    if materials.iter().any(|m| m.diffuse_texture.is_some()) {
        scene.limitations.push("textures are left out".into());
    }
    scene.materials = materials.iter().map(material).collect();
    scene.materials.push(Material::DEFAULT);
    let default = materials.len();
    for model in models {
        let mesh = model.mesh;
        let id = mesh.material_id.filter(|&i| i < default).unwrap_or(default);
        scene.add(&mesh.positions, mesh.indices, id as i32)?;
    }
    Ok(scene)
}

/// `illum` 3 and 5 are mirrors, 4, 6, 7 and 9 are glass, as the format says.
fn material(m: &tobj::Material) -> Material {
    let kind = match m.illumination_model {
        Some(3 | 5) => Kind::Mirror,
        Some(4 | 6 | 7 | 9) => Kind::Glass,
        _ => Kind::Diffuse,
    };
    let color = match kind {
        Kind::Diffuse => m.diffuse.unwrap_or(Material::DEFAULT.color),
        Kind::Mirror => m.specular.or(m.diffuse).unwrap_or([1.0; 3]),
        Kind::Glass => [1.0; 3],
    };
    Material { kind, color, emission: m.emissive.unwrap_or([0.0; 3]), ior: m.optical_density.unwrap_or(1.5).max(1.0) }
}
