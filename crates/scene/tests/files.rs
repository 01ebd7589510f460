//! Readers on good files, bad files and damaged files; pictures that are written and read back.

use nyala_scene::{Camera, Kind, Pixels, Scene, read, read_picture, write_picture};
use std::path::{Path, PathBuf};

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/render/models").join(name)
}

fn counts(scene: &Scene) -> (usize, usize, usize) {
    (scene.vertices.len() / 3, scene.indices.len() / 3, scene.materials.len())
}

#[test]
fn obj_has_materials_of_mtl() {
    let scene = read(&model("table.obj")).unwrap();
    // Five parts have vertices of their own, and the default material comes last.
    assert_eq!(counts(&scene), (28, 28, 6));
    let kinds: Vec<Kind> = scene.materials.iter().map(|m| m.kind).collect();
    assert_eq!(kinds, [Kind::Diffuse, Kind::Diffuse, Kind::Mirror, Kind::Glass, Kind::Diffuse, Kind::Diffuse]);
    assert_eq!(scene.materials[4].emission, [20.0, 18.0, 15.0]);
    assert_eq!(scene.materials[1].color, [0.7, 0.15, 0.1]);
    assert_eq!(scene.material_of, [vec![0; 2], vec![1; 10], vec![2; 2], vec![3; 12], vec![4; 2]].concat());
    assert_eq!(scene.limitations, [] as [&str; 0]);
}

#[test]
fn ply_has_polygons() {
    let scene = read(&model("pyramid.ply")).unwrap();
    assert_eq!(counts(&scene), (5, 6, 1));
    assert_eq!(scene.indices, [0, 1, 2, 0, 2, 3, 3, 2, 4, 2, 1, 4, 1, 0, 4, 0, 3, 4]);
}

#[test]
fn binary_ply_is_the_same() {
    let head = "ply\nformat binary_FORMAT_endian 1.0\nelement vertex 3\nproperty float x\nproperty double y\nproperty float z\n\
                element face 1\nproperty list uchar uint vertex_index\nend_header\n";
    for is_big in [false, true] {
        let mut bytes = head.replace("FORMAT", if is_big { "big" } else { "little" }).into_bytes();
        for (x, y, z) in [(0.5f32, 1.5f64, -2f32), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)] {
            if is_big {
                bytes.extend(x.to_be_bytes().iter().chain(&y.to_be_bytes()).chain(&z.to_be_bytes()));
            } else {
                bytes.extend(x.to_le_bytes().iter().chain(&y.to_le_bytes()).chain(&z.to_le_bytes()));
            }
        }
        bytes.push(3);
        (0..3u32).for_each(|i| bytes.extend(if is_big { i.to_be_bytes() } else { i.to_le_bytes() }));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ply");
        std::fs::write(&path, bytes).unwrap();
        let scene = read(&path).unwrap();
        assert_eq!(scene.vertices, [0.5, 1.5, -2.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(scene.indices, [0, 1, 2]);
    }
}

#[test]
fn gltf_has_transforms_materials_and_a_camera() {
    let scene = read(&model("cube.gltf")).unwrap();
    assert_eq!(counts(&scene), (24, 36, 4));
    let Camera { eye, target, fov } = scene.camera.unwrap();
    assert_eq!(eye, [0.0, 1.0, 4.0]);
    assert!((target[1] - 1.0 + 0.1391731).abs() < 1e-5 && (fov - 40.107).abs() < 0.01, "{target:?} {fov}");
    assert!(scene.materials[2].emission.iter().zip([12.0, 10.8, 9.6]).all(|(a, b)| (a - b).abs() < 1e-5));
    // The floor's top is 0.1 above its node, and the cube of half the size stands 0.5 high at its own.
    let heights = |material: i32| {
        let of_it = (0..scene.material_of.len()).filter(|&t| scene.material_of[t] == material);
        let mut all: Vec<f32> = of_it
            .flat_map(|t| (0..3).map(move |k| 3 * t + k))
            .map(|c| scene.vertices[3 * scene.indices[c] as usize + 1])
            .collect();
        all.sort_by(f32::total_cmp);
        (all[0], all[all.len() - 1])
    };
    assert_eq!(heights(0), (0.0, 1.0));
    assert_eq!(heights(1), (-0.2, 0.0));
}

#[test]
fn bad_files_are_errors_that_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let ply = |vertex: &str, faces: &str| {
        format!(
            "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n\
             property list uchar int vertex_indices\nend_header\n{vertex}\n1 0 0\n0 1 0\n{faces}\n"
        )
    };
    let gltf = std::fs::read_to_string(model("cube.gltf")).unwrap();
    let junk: Vec<u8> = (0..999u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
    let mut nan = b"ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n".to_vec();
    nan.extend([0.0, f32::NAN, 0.0].iter().flat_map(|x| x.to_le_bytes()));
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a.stl", b"solid".into(), "its name ends with none of .obj, .ply, .gltf and .glb"),
        ("obj", b"v 0 0 0".into(), "its name ends with none of"),
        ("empty.obj", b"".into(), "it is empty"),
        ("empty.gltf", b"".into(), "it is empty"),
        ("junk.obj", junk.clone(), "it is no text"),
        ("junk.ply", junk.clone(), "it does not begin with `ply`"),
        ("junk.gltf", junk.clone(), "expected value"),
        ("junk.glb", junk, ""),
        ("nothing.obj", b"# nothing\nv 0 0 0\n".into(), "it has no triangles"),
        ("prose.obj", b"Dear reader,\nthis is a letter.\n".into(), "it has no triangles"),
        (
            "nan.obj",
            b"v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n".into(),
            "vertex 1, counted from 0, has a coordinate that is not a finite",
        ),
        ("far.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n".into(), "out of bounds"),
        ("negative.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 -9\n".into(), ""),
        ("word.obj", b"v 0 0 zero\n".into(), "position parse error"),
        ("nan.ply", ply("nan 0 0", "3 0 1 2").into(), "line 10: couldn't read element line"),
        ("nan_binary.ply", nan, "vertex 0, counted from 0, has a coordinate that is not a finite"),
        ("far.ply", ply("0 0 0", "3 0 1 3").into(), "a triangle has vertex 3, but there are 3"),
        ("negative.ply", ply("0 0 0", "3 0 1 -1").into(), "a face has vertex -1, but there are 3"),
        ("short.ply", ply("0 0 0", "4 0 1 2").into(), ""),
        ("cut.ply", ply("0 0 0", "").into(), ""),
        ("line.ply", ply("0 0 0", "2 0 1").into(), "it has no triangles"),
        ("huge.ply", ply("0 0 0", "3 0 1 2").replace("vertex 3", "vertex 99999999999").into(), ""),
        (
            "loop.gltf",
            gltf.replace("\"mesh\": 0,", "\"mesh\": 0, \"children\": [0],").into(),
            "node 0 is below two nodes, or below itself",
        ),
        ("short.gltf", gltf.replace("\"byteLength\": 168,", "\"byteLength\": 99999,").into(), ""),
        ("count.gltf", gltf.replace("\"count\": 8,", "\"count\": 99999999,").into(), ""),
        ("index.gltf", gltf.replace("\"count\": 8,", "\"count\": 2,").into(), "a triangle has vertex"),
    ];
    for (name, bytes, part) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        match read(&path) {
            Ok(scene) => panic!("{name} has {} triangles", scene.material_of.len()),
            Err(why) => {
                assert!(
                    why.starts_with(&format!("cannot read {}: ", path.display())) && why.contains(part),
                    "{name}: {why}"
                );
                assert!(!why.contains("Error") && why.lines().count() == 1, "{name}: {why}");
            }
        }
    }
    assert!(read(&folder.path().join("missing.obj")).unwrap_err().contains("No such file"));
    std::fs::create_dir(folder.path().join("folder.ply")).unwrap();
    assert!(read(&folder.path().join("folder.ply")).unwrap_err().contains("directory"));
}

/// Readers end, and do not crash, on each beginning of a good file, and with each byte changed.
#[test]
fn damaged_files_are_errors_or_scenes() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["table.obj", "pyramid.ply", "cube.gltf"] {
        let good = std::fs::read(model(name)).unwrap();
        let path = folder.path().join(name);
        let step = (good.len() / 200).max(1);
        let mut n_errors = 0;
        for i in (0..good.len()).step_by(step) {
            std::fs::write(&path, &good[..i]).unwrap();
            n_errors += read(&path).is_err() as usize;
            let mut changed = good.clone();
            changed[i] ^= 0x15;
            std::fs::write(&path, changed).unwrap();
            n_errors += read(&path).is_err() as usize;
        }
        assert!(n_errors > 50, "{name}: {n_errors} errors");
    }
}

#[test]
fn missing_materials_are_a_limitation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.obj");
    std::fs::write(&path, "mtllib none.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl red\nf 1 2 3\n").unwrap();
    let scene = read(&path).unwrap();
    assert_eq!(counts(&scene), (3, 1, 1));
    assert!(scene.limitations[0].starts_with("its materials are left out"), "{:?}", scene.limitations);
}

fn picture() -> Pixels {
    let (width, height) = (13, 7);
    let shown = (0..3 * width * height).map(|i| (i * 7 % 256) as u8).collect();
    let light = (0..3 * width * height).map(|i| i as f32 * 1.37 - 20.0).collect();
    Pixels { width, height, shown, light }
}

#[test]
fn pictures_are_read_back_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let (png, exr) = (folder.path().join("a.png"), folder.path().join("a.EXR"));
    let p = picture();
    for _ in 0..2 {
        write_picture(&png, &p).unwrap();
        write_picture(&exr, &p).unwrap();
    }
    let back = read_picture(&png).unwrap();
    assert_eq!((back.width, back.height, &back.shown), (13, 7, &p.shown));
    let back = read_picture(&exr).unwrap();
    assert_eq!((back.width, back.height, &back.light), (13, 7, &p.light));
    // Nothing else is left in the folder.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn pictures_that_cannot_be_written_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let said = |path: &Path| write_picture(path, &picture()).unwrap_err();
    assert!(said(&folder.path().join("a.jpg")).ends_with("its name ends with neither .png nor .exr"));
    assert!(said(&folder.path().join("none/a.png")).ends_with("No such file or directory (os error 2)"));
    let taken = folder.path().join("b.png");
    std::fs::create_dir(&taken).unwrap();
    assert!(said(&taken).contains("cannot write"));
}

fn fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A device that has no end, and a FIFO that nobody writes, under any name and from any file: the reader says no at once.
#[test]
fn what_is_no_plain_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let gltf = std::fs::read_to_string(model("cube.gltf")).unwrap();
    let uri = &gltf[gltf.find("data:").unwrap()..];
    let uri = &uri[..uri.find('"').unwrap()];
    for (other, what) in [("zero", "it is a device, no plain file"), ("fifo", "it is a FIFO, no plain file")] {
        match other {
            "zero" => std::os::unix::fs::symlink("/dev/zero", at(other)).unwrap(),
            _ => fifo(&at(other)),
        }
        for ending in ["obj", "ply", "gltf", "glb", "png", "exr"] {
            let path = at(&format!("{other}.{ending}"));
            std::os::unix::fs::symlink(other, &path).unwrap();
            let said = match ending {
                "png" | "exr" => read_picture(&path).unwrap_err(),
                _ => read(&path).unwrap_err(),
            };
            assert_eq!(said, format!("cannot read {}: {what}", path.display()));
        }
        std::fs::write(at("a.obj"), format!("mtllib {other}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl red\nf 1 2 3\n"))
            .unwrap();
        let scene = read(&at("a.obj")).unwrap();
        assert_eq!(scene.limitations, [format!("its materials are left out: cannot read {other}: {what}")]);
        for address in [
            other.to_string(),
            format!("file://{}", at(other).display()),
            format!("%{:02x}{}", other.as_bytes()[0], &other[1..]),
        ] {
            std::fs::write(at("a.gltf"), gltf.replacen(uri, &address, 1)).unwrap();
            let said = read(&at("a.gltf")).unwrap_err();
            assert!(said.ends_with(&format!("buffer 0, counted from 0: cannot read {address}: {what}")), "{said}");
        }
    }
}

/// Numbers of elements, bytes and pixels that no file of this size has: they cost neither memory nor time.
#[test]
fn promises_are_compared_with_the_size_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |name: &str, bytes: &[u8], part: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let is_picture = name.ends_with("png") || name.ends_with("exr");
        let said = if is_picture { read_picture(&path).unwrap_err() } else { read(&path).unwrap_err() };
        assert!(said.contains(part), "{name}: {said}");
    };
    for format in ["ascii", "binary_little_endian", "binary_big_endian"] {
        for property in ["", "property double x\n", "property list uint int vertex_indices\n"] {
            let text = format!("ply\nformat {format} 1.0\nelement face 4000000000\n{property}end_header\n");
            fails("a.ply", text.as_bytes(), "it has no room for 4000000000 elements `face`");
        }
        let list =
            format!("ply\nformat {format} 1.0\nelement face 1\nproperty list uint int vertex_indices\nend_header\n");
        fails("list.ply", &[list.as_bytes(), &[255; 4]].concat(), "");
    }
    let gltf = std::fs::read_to_string(model("cube.gltf")).unwrap();
    let positions = r#""componentType": 5126"#;
    let bytes = gltf.replacen(positions, r#""componentType": 5121"#, 1);
    assert_ne!(gltf, bytes);
    fails("a.gltf", bytes.as_bytes(), "positions of a mesh are Vec3 of U8, not Vec3 of F32");
    let pairs = gltf.replacen("\"VEC3\"", "\"VEC2\"", 1);
    fails("a.gltf", pairs.as_bytes(), "positions of a mesh are Vec2 of F32, not Vec3 of F32");
    std::fs::write(folder.path().join("short.bin"), [0; 8]).unwrap();
    let uri = &gltf[gltf.find("data:").unwrap()..];
    let short = gltf.replacen(&uri[..uri.find('"').unwrap()], "short.bin", 1);
    fails("a.gltf", short.as_bytes(), "buffer 0, counted from 0, has 8 bytes of 168");
    let sparse = r#"{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"mesh":0}],
        "meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],
        "accessors":[{"componentType":5126,"type":"VEC3","count":4000000000,"min":[0,0,0],"max":[0,0,0],"sparse":{"count":1,
        "indices":{"bufferView":0,"componentType":5121},"values":{"bufferView":0}}}],
        "bufferViews":[{"buffer":0,"byteLength":12}],"buffers":[{"byteLength":12,"uri":"data:;base64,AAAAAAAAAAAAAAAA"}]}"#;
    fails("a.gltf", sparse.as_bytes(), "positions of a mesh are not in its buffer");
    write_picture(&folder.path().join("a.png"), &picture()).unwrap();
    let mut png = std::fs::read(folder.path().join("a.png")).unwrap();
    png[16..24].copy_from_slice(&[0, 255, 255, 255, 0, 255, 255, 255]);
    fails("b.png", &png, "");
    write_picture(&folder.path().join("a.exr"), &picture()).unwrap();
    let mut exr = std::fs::read(folder.path().join("a.exr")).unwrap();
    for window in ["dataWindow", "displayWindow"] {
        let at = exr.windows(window.len()).position(|w| w == window.as_bytes()).unwrap() + window.len() + 1 + 6 + 4;
        exr[at..at + 16].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 31, 255, 255, 255, 31]);
    }
    fails("b.exr", &exr, "it is too large for the bytes of its file");
    // A picture of one color is small.
    let n = 1 << 20;
    let one = Pixels { width: 1024, height: 1024, shown: vec![0; 3 * n], light: vec![0.0; 3 * n] };
    for name in ["one.png", "one.exr"] {
        write_picture(&folder.path().join(name), &one).unwrap();
        assert_eq!(read_picture(&folder.path().join(name)).unwrap().width, 1024);
    }
}

/// What a name leads to is written: links, other names and permissions stay.
#[test]
fn pictures_are_written_to_what_their_names_lead_to() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("private.png"), "").unwrap();
    std::fs::set_permissions(at("private.png"), std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("private.png", at("link.png")).unwrap();
    std::fs::hard_link(at("private.png"), at("other.png")).unwrap();
    symlink("/dev/null", at("null.png")).unwrap();
    for name in ["link.png", "null.png"] {
        nyala_scene::check_picture(&at(name)).unwrap();
        write_picture(&at(name), &picture()).unwrap();
        assert!(at(name).is_symlink());
    }
    assert_eq!(read_picture(&at("other.png")).unwrap().shown, picture().shown);
    let found = at("private.png").metadata().unwrap();
    assert_eq!((found.mode() & 0o7777, found.nlink()), (0o600, 2));
    assert!(nyala_scene::check_picture(folder.path()).is_err());
}
