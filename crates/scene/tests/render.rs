//! The renderer of `examples/render`: its checks of light, its command on good and bad input, previews and Ctrl-C.

use nyala_scene::{Pixels, read_picture};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder of its own, with a space in its name, removed at the end.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::Builder::new().prefix("nyala test ").tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Builds packages like these tests, and returns the path of a file beside them.
fn build(packages: &[&str], file: &str) -> PathBuf {
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let packages = packages.iter().flat_map(|p| ["--package", p]);
    sh(Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--profile", profile]).args(packages));
    // Tests lie in `deps`.
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().parent().unwrap().join(file)
}

/// The library of scenes and pictures.
fn library() -> PathBuf {
    build(&["nyala-scene"], "libnyala_scene.so")
}

/// Runs the command `nyala`.
fn nyala(args: &[&OsStr]) -> Output {
    let command = build(&["nyala", "nyala-runtime"], "nyala");
    Command::new(command).args(args).stdin(Stdio::null()).output().unwrap()
}

/// The output of a command, which must succeed.
fn sh(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn source(name: &str) -> PathBuf {
    root().join("examples/render").join(name)
}

/// The command `render`, as an executable that is linked with the library.
fn built(folder: &Folder) -> PathBuf {
    let (program, library) = (folder.path("render"), library());
    let source = source("render.impala");
    let output = nyala(&["build".as_ref(), source.as_ref(), library.as_ref(), "-o".as_ref(), program.as_ref()]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    program
}

fn run(program: &Path, args: &[&str]) -> Output {
    Command::new(program).args(args).stdin(Stdio::null()).output().unwrap()
}

/// The picture of a scene that can be rendered.
fn picture(program: &Path, folder: &Folder, name: &str, args: &[&str]) -> Pixels {
    let out = folder.path(name);
    let output = run(program, &[args, &["--quiet", "-o", out.to_str().unwrap()]].concat());
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{args:?}");
    read_picture(&out).unwrap()
}

#[test]
fn light_is_what_it_must_be() {
    let output = nyala(&["run".as_ref(), source("checks.impala").as_os_str()]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.lines().filter(|l| l.starts_with("ok ")).count() == 13,
        "{said}{}",
        stderr(&output)
    );
}

/// The CPU as a device gives the pictures that the CPU gives.
#[test]
fn a_device_gives_the_same_pictures() {
    let files = [source("device_checks.impala"), root().join("tests/device/render.impala")];
    let output = nyala(&["run".as_ref(), "--device".as_ref(), "host".as_ref(), files[0].as_ref(), files[1].as_ref()]);
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = "mirror, glass, a lamp that is asked: ok\na lamp that is met by chance: ok\n";
    assert_eq!((output.status.code(), &*said), (Some(0), expected), "{}", stderr(&output));
}

/// So does the command, where it has code for devices; it names a device that is not there.
#[test]
fn the_command_renders_on_a_device() {
    let folder = Folder::new();
    let (library, source) = (library(), source("render.impala"));
    let on = |device: &[&str], out: &Path| {
        let before = ["run", "-D", "DEVICES=true", "--load"].map(OsStr::new);
        let options = ["balls", "--quiet", "--size", "40x36", "--samples", "2", "-o"].map(OsStr::new);
        let files = [library.as_os_str(), source.as_os_str(), "--".as_ref()];
        let device: Vec<&OsStr> = device.iter().map(OsStr::new).collect();
        nyala(&[&before[..], &files[..], &options[..], &[out.as_os_str()][..], &device[..]].concat())
    };
    let picture = |device: &[&str], name: &str| {
        let output = on(device, &folder.path(name));
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{device:?}");
        read_picture(&folder.path(name)).unwrap().light
    };
    assert!(picture(&["--device", "host"], "a.exr") == picture(&[], "b.exr"));
    let output = on(&["--device", "host:7"], &folder.path("c.exr"));
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(1), "render: there is no device `host:7`\n"));
}

/// The material that the page adds compiles, at the place that it names.
#[test]
fn the_material_of_the_page_compiles() {
    let folder = Folder::new();
    for entry in
        std::fs::read_dir(source("")).unwrap().flatten().filter(|e| e.path().extension().is_some_and(|e| e == "impala"))
    {
        std::fs::copy(entry.path(), folder.path(entry.file_name().to_str().unwrap())).unwrap();
    }
    let page = std::fs::read_to_string(source("README.md")).unwrap();
    let code = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let materials = std::fs::read_to_string(folder.path("materials.impala")).unwrap();
    let (kinds, arm) = ("static KINDS = 3;", "        1 => mirror(),\n");
    assert!(materials.contains(kinds) && materials.contains(arm));
    let more = materials.replace(kinds, "static KINDS = 4;").replace(arm, &format!("{arm}        3 => velvet(),\n"));
    folder.write("materials.impala", more + code);
    let output = nyala(&["check".as_ref(), folder.path("checks.impala").as_os_str()]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn the_command_renders_and_says_what_is_wrong() {
    let folder = Folder::new();
    let program = built(&folder);
    let model = |name: &str| source("models").join(name).to_str().unwrap().to_string();

    // Each format is read, and something is seen of it.
    let small = ["--size", "40x30", "--samples", "4"];
    for (scene, brightest) in [("table.obj", 0.1), ("pyramid.ply", 0.5), ("cube.gltf", 0.1)] {
        let scene = model(scene);
        let p = picture(&program, &folder, "a.exr", &[&[scene.as_str()], &small[..]].concat());
        assert_eq!((p.width, p.height), (40, 30));
        assert!(p.light.iter().all(|x| x.is_finite() && *x >= 0.0));
        assert!(p.light.iter().fold(0f32, |a, &b| a.max(b)) > brightest, "{scene}");
    }
    // Under a white sky, the pyramid is as bright as its material, 0.7, or, where it sees itself, darker; around it is the sky.
    let p = picture(&program, &folder, "b.exr", &[&[model("pyramid.ply").as_str()], &small[..]].concat());
    assert!(p.light[..3].iter().all(|&x| x == 1.0));
    let middle = 3 * (17 * 40 + 20);
    assert!(p.light[middle..middle + 3].iter().all(|&x| (x - 0.7).abs() < 1e-4), "{:?}", &p.light[middle..middle + 3]);

    // The number of threads does not change the PNG.
    let of = |threads: &str, name: &str| {
        picture(&program, &folder, name, &["balls", "--size", "70x50", "--samples", "3", "--threads", threads])
    };
    assert_eq!(of("1", "c.exr").light, of("3", "d.exr").light);
    let png = of("2", "c.png");
    assert_eq!((png.width, png.height, png.shown), (70, 50, of("1", "d.png").shown));

    // Without a terminal there is no progress; the last line says what was done.
    let out = folder.path("e.png");
    let output = run(&program, &["blob", "--size", "16x16", "--samples", "1", "-o", out.to_str().unwrap()]);
    assert!(
        stderr(&output).starts_with("102402 triangles, 0 lamps, 1 samples in ") && stderr(&output).lines().count() == 1,
        "{}",
        stderr(&output)
    );
    let help = run(&program, &["--help"]);
    assert!(
        help.status.success() && String::from_utf8_lossy(&help.stdout).starts_with("render [OPTIONS] SCENE -o OUTPUT")
    );

    let junk = folder.write("junk.glb", [7u8; 100]).to_str().unwrap().to_string();
    let nan = folder.write("nan.obj", "v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n").to_str().unwrap().to_string();
    let missing = folder.path("none.ply").to_str().unwrap().to_string();
    let nowhere = folder.path("none/a.png").to_str().unwrap().to_string();
    let (out, as_folder) = (out.to_str().unwrap(), folder.path("f.png"));
    std::fs::create_dir(&as_folder).unwrap();
    let wrong: &[(&[&str], i32, &str)] = &[
        (&[], 2, "a scene is needed"),
        (&["box"], 2, "an output is needed"),
        (&["box", "-o", "a.jpg"], 2, "ends with neither .png nor .exr"),
        (&["box", "-o"], 2, "`-o` is no option, or lacks its value"),
        (&["box", "blob", "-o", out], 2, "`blob` is one scene too many"),
        (&["box", "--size", "0x9", "-o", out], 2, "`--size` cannot be `0x9`"),
        (&["box", "--samples", "many", "-o", out], 2, "`--samples` cannot be `many`"),
        (&["box", "--eye", "1,2", "-o", out], 2, "`--eye` cannot be `1,2`"),
        (&["box", "--eye", "1,1,1", "--target", "1,1,1", "-o", out], 2, "are one point"),
        (&["box", "--device", "cuda", "-o", out], 2, "limitation: this program has no code for devices"),
        (&["box", "--speed", "3", "-o", out], 2, "there is no option `--speed`"),
        (&[&missing, "-o", out], 1, "No such file"),
        (&[&junk, "-o", out], 1, "cannot read"),
        (&[&nan, "-o", out], 1, "not a finite number"),
        (&["bunny.stl", "-o", out], 1, "its name ends with none of .obj, .ply, .gltf and .glb"),
        (&["box", "-o", &nowhere], 1, "cannot write"),
        (&["box", "-o", as_folder.to_str().unwrap()], 1, "it is a folder"),
    ];
    for (args, code, part) in wrong {
        let output = run(&program, args);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {}", stderr(&output));
        assert!(
            stderr(&output).starts_with("render: ") && stderr(&output).contains(part),
            "{args:?}: {}",
            stderr(&output)
        );
    }

    // A preview is there after a second or two, and Ctrl-C leaves it.
    let out = folder.path("g.png");
    let start = Instant::now();
    let mut child = Command::new(&program)
        .args(["box", "--size", "64x64", "--samples", "100000000", "-o"])
        .arg(&out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !out.exists() {
        assert!(start.elapsed() < Duration::from_secs(600) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(start.elapsed() >= Duration::from_secs(1));
    read_picture(&out).unwrap();
    sh(Command::new("kill").args(["-INT", &child.id().to_string()]));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    read_picture(&out).unwrap();
    let left: Vec<_> =
        std::fs::read_dir(folder.0.path()).unwrap().filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    assert!(left.iter().all(|name| !name.starts_with(".render-")), "{left:?}");
}
