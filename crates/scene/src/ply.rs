//! PLY, text and binary: polygons, of one material.

use crate::{Material, Scene};
use ply_rs_bw::parser::Parser;
use ply_rs_bw::ply::{DefaultElement, Encoding, Header, Property, PropertyDef, PropertyType, ScalarType};
use std::path::Path;

pub fn read(_: &Path, data: Vec<u8>) -> Result<Scene, String> {
    if !data.starts_with(b"ply") {
        return Err("it does not begin with `ply`".into());
    }
    let parser = Parser::<DefaultElement>::new();
    let header = parser.read_ply_header(&mut data.as_slice()).map_err(|e| first_line(&e.to_string()))?;
    check_size(&header, data.len())?;
    let ply = parser.read_ply(&mut data.as_slice()).map_err(|e| first_line(&e.to_string()))?;
    let rows = |name: &str| ply.payload.get(name).map(Vec::as_slice).unwrap_or_default();
    let mut vertices = Vec::new();
    for vertex in rows("vertex") {
        for axis in ["x", "y", "z"] {
            let number = vertex.get(axis).and_then(Property::to_f32_lossy);
            vertices.push(number.ok_or_else(|| format!("its vertices have no number `{axis}`"))?);
        }
    }
    let mut indices = Vec::new();
    for face in rows("face") {
        let list = face
            .get("vertex_indices")
            .or_else(|| face.get("vertex_index"))
            .ok_or("its faces have no list `vertex_indices`")?;
        let corners = list_of(list).ok_or("its `vertex_indices` are no integers")?;
        for pair in corners.get(1..).unwrap_or_default().windows(2) {
            for i in [corners[0], pair[0], pair[1]] {
                let n = vertices.len() / 3;
                indices.push(
                    u32::try_from(i)
                        .map_err(|_| format!("a face has vertex {i}, but there are {n}, counted from 0"))?,
                );
            }
        }
    }
    let mut scene = Scene { materials: vec![Material::DEFAULT], ..Default::default() };
    scene.add(&vertices, indices, 0)?;
    if rows("vertex").first().is_some_and(|v| v.contains_key("red")) {
        scene.limitations.push("colors of vertices are left out".into());
    }
    Ok(scene)
}

/// Whether a file of this size has room for as many elements as its header says: the parser takes memory for each.
fn check_size(header: &Header, size: usize) -> Result<(), String> {
    let is_text = header.encoding == Encoding::Ascii;
    let least = |p: &PropertyDef| match &p.data_type {
        // A digit and what follows it.
        _ if is_text => 2,
        PropertyType::Scalar(ty) | PropertyType::List(ty, _) => match ty {
            ScalarType::Char | ScalarType::UChar => 1,
            ScalarType::Short | ScalarType::UShort => 2,
            ScalarType::Int | ScalarType::UInt | ScalarType::Float => 4,
            ScalarType::Double => 8,
        },
    };
    let mut left = size + 1;
    for (name, element) in &header.elements {
        let bytes = element.properties.values().map(least).sum::<usize>().max(1);
        let needed = element.count.checked_mul(bytes).filter(|&n| n <= left);
        left -= needed.ok_or_else(|| format!("it has no room for {} elements `{name}`", element.count))?;
    }
    Ok(())
}

/// The parser's messages quote the line that is wrong on further lines.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim_end_matches('.');
    line.replacen("Line", "line", 1).replacen(": Couldn't", ": couldn't", 1)
}

fn list_of(property: &Property) -> Option<Vec<i64>> {
    fn wide<T: Copy + Into<i64>>(list: &[T]) -> Option<Vec<i64>> {
        Some(list.iter().map(|&i| i.into()).collect())
    }
    match property {
        Property::ListChar(l) => wide(l),
        Property::ListUChar(l) => wide(l),
        Property::ListShort(l) => wide(l),
        Property::ListUShort(l) => wide(l),
        Property::ListInt(l) => wide(l),
        Property::ListUInt(l) => wide(l),
        _ => None,
    }
}
