//! glTF 2.0, text and binary: meshes with their transforms, materials, the first camera.

use crate::{Camera, Kind, MAX_BYTES, Material, Scene};
use gltf::accessor::{Accessor, DataType, Dimensions};
use gltf::buffer::{Data, Source};
use gltf::mesh::Mode;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

type Matrix = [[f32; 4]; 4];

pub fn read(path: &Path, data: Vec<u8>) -> Result<Scene, String> {
    let gltf::Gltf { document, blob } = gltf::Gltf::from_slice(&data).map_err(|e| e.to_string())?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let buffers = buffers(&document, folder, blob)?;
    let mut scene = Scene { materials: document.materials().map(|m| material(&m)).collect(), ..Default::default() };
    scene.materials.push(Material::DEFAULT);
    let default = scene.materials.len() - 1;
    for (is_there, what) in [
        (document.textures().len() > 0, "textures are left out"),
        (document.skins().len() > 0, "skins are left out"),
        (document.animations().len() > 0, "animations are left out"),
    ] {
        if is_there {
            scene.limitations.push(what.into());
        }
    }
    let (mut lines, mut seen) = (false, vec![false; document.nodes().len()]);
    let root = document.default_scene().or_else(|| document.scenes().next()).ok_or("it has no scene")?;
    let mut waiting: Vec<(gltf::Node, Matrix)> = root.nodes().map(|n| (n, IDENTITY)).collect();
    while let Some((node, above)) = waiting.pop() {
        if std::mem::replace(&mut seen[node.index()], true) {
            return Err(format!("node {} is below two nodes, or below itself", node.index()));
        }
        let here = product(&above, &node.transform().matrix());
        waiting.extend(node.children().map(|n| (n, here)));
        if scene.camera.is_none()
            && let Some(camera) = node.camera()
            && let gltf::camera::Projection::Perspective(p) = camera.projection()
        {
            // Cameras look along -z.
            let (eye, target) = (moved(&here, [0.0; 3]), moved(&here, [0.0, 0.0, -1.0]));
            scene.camera = Some(Camera { eye, target, fov: p.yfov().to_degrees() });
        }
        for primitive in node.mesh().iter().flat_map(|m| m.primitives()) {
            if !matches!(primitive.mode(), Mode::Triangles | Mode::TriangleStrip | Mode::TriangleFan) {
                lines = true;
                continue;
            }
            let of_all = buffers.iter().map(|b| b.0.len()).sum();
            let positions = primitive.get(&gltf::Semantic::Positions).ok_or("a mesh has no positions")?;
            check(&positions, "positions", Dimensions::Vec3, &[DataType::F32], of_all)?;
            if let Some(indices) = primitive.indices() {
                check(&indices, "indices", Dimensions::Scalar, &[DataType::U8, DataType::U16, DataType::U32], of_all)?;
                scene.check_size(0, indices.count() / 3)?;
            }
            scene.check_size(positions.count(), 0)?;
            let reader = primitive.reader(|b| buffers.get(b.index()).map(|d| &d.0[..]));
            let positions = reader.read_positions().ok_or("positions of a mesh are not in its buffer")?;
            let vertices: Vec<f32> = positions.flat_map(|p| moved(&here, p)).collect();
            let corners: Vec<u32> = match (reader.read_indices(), primitive.indices()) {
                (Some(indices), _) => indices.into_u32().collect(),
                (None, None) => (0..(vertices.len() / 3) as u32).collect(),
                (None, Some(_)) => return Err("indices of a mesh are not in its buffer".into()),
            };
            let id = primitive.material().index().unwrap_or(default) as i32;
            scene.add(&vertices, triangles(primitive.mode(), &corners), id)?;
        }
    }
    if lines {
        scene.limitations.push("points and lines are left out".into());
    }
    Ok(scene)
}

/// The bytes of all buffers. A file of one is read as far as the buffer goes.
fn buffers(document: &gltf::Document, folder: &Path, mut blob: Option<Vec<u8>>) -> Result<Vec<Data>, String> {
    let (mut buffers, mut left) = (Vec::new(), MAX_BYTES);
    for buffer in document.buffers() {
        let (i, n) = (buffer.index(), buffer.length());
        left = left.checked_sub(n as u64).ok_or_else(|| format!("its buffers have more than {MAX_BYTES} bytes"))?;
        let data = match buffer.source() {
            Source::Uri(uri) if !uri.starts_with("data:") => {
                let failed = |why: String| format!("buffer {i}, counted from 0: cannot read {uri}: {why}");
                let file = uri.strip_prefix("file://").or_else(|| uri.strip_prefix("file:"));
                let path = match file {
                    Some(path) => path.into(),
                    None if uri.contains(':') => return Err(failed("only files are read".into())),
                    None => folder.join(decoded(uri)),
                };
                Data(nyala_files::read_beginning(&path, n as u64).map_err(|e| failed(e.to_string()))?)
            }
            source => Data::from_source_and_blob(source, None, &mut blob)
                .map_err(|e| format!("buffer {i}, counted from 0: {e}"))?,
        };
        if data.0.len() < n {
            return Err(format!("buffer {i}, counted from 0, has {} bytes of {n}", data.0.len()));
        }
        buffers.push(data);
    }
    Ok(buffers)
}

/// A relative address as the name of a file: `%20` is a space.
fn decoded(uri: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), uri.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let code =
            after.get(..2).and_then(|c| std::str::from_utf8(c).ok()).and_then(|c| u8::from_str_radix(c, 16).ok());
        let (byte, next) = match code {
            Some(code) if first == b'%' => (code, &after[2..]),
            _ => (first, after),
        };
        bytes.push(byte);
        rest = next;
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Whether numbers are as they are read: the reader takes them for what it wants. Without memory of their own they are
/// zeros, which are no more than there are bytes in all buffers.
fn check(a: &Accessor, what: &str, shape: Dimensions, types: &[DataType], of_all: usize) -> Result<(), String> {
    if a.dimensions() != shape || !types.contains(&a.data_type()) {
        let types: Vec<String> = types.iter().map(|t| format!("{t:?}")).collect();
        let types = types.join(", ");
        return Err(format!(
            "{what} of a mesh are {:?} of {:?}, not {shape:?} of {types}",
            a.dimensions(),
            a.data_type()
        ));
    }
    if a.view().and_then(|v| v.stride()).is_some_and(|stride| stride < a.size()) {
        return Err(format!("{what} of a mesh overlap"));
    }
    if a.count() > of_all {
        return Err(format!("{what} of a mesh are not in its buffer"));
    }
    Ok(())
}

/// Three corners for each triangle.
fn triangles(mode: Mode, corners: &[u32]) -> Vec<u32> {
    match mode {
        Mode::TriangleStrip => corners.windows(3).flatten().copied().collect(),
        Mode::TriangleFan => {
            corners.get(1..).unwrap_or_default().windows(2).flat_map(|p| [corners[0], p[0], p[1]]).collect()
        }
        _ => corners[..corners.len() / 3 * 3].to_vec(),
    }
}

fn material(m: &gltf::Material) -> Material {
    let pbr = m.pbr_metallic_roughness();
    let [r, g, b, _] = pbr.base_color_factor();
    let kind = if m.transmission().is_some_and(|t| t.transmission_factor() > 0.5) {
        Kind::Glass
    } else if pbr.metallic_factor() > 0.5 && pbr.roughness_factor() < 0.3 {
        Kind::Mirror
    } else {
        Kind::Diffuse
    };
    let strength = m.emissive_strength().unwrap_or(1.0);
    Material {
        kind,
        color: [r, g, b],
        emission: m.emissive_factor().map(|e| e * strength),
        ior: m.ior().unwrap_or(1.5),
    }
}

const IDENTITY: Matrix = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];

/// Matrices by columns.
fn product(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|j| std::array::from_fn(|i| (0..4).map(|k| a[k][i] * b[j][k]).sum()))
}

fn moved(m: &Matrix, p: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|i| m[0][i] * p[0] + m[1][i] * p[1] + m[2][i] * p[2] + m[3][i])
}
