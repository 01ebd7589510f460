//! `x demo`: blurs two photographs, and shows the source, the residual inner loop and the result in the terminal.

use crate::{root, sh};
use std::io::IsTerminal;
use std::process::Command;

const PHOTOGRAPHS: &[&str] = &["astronaut.png", "hubble_deep_field.jpg"];

pub fn run() -> Result<bool, String> {
    eprintln!("building the compiler …");
    crate::build_command()?;
    let nyala = crate::texts::nyala();
    let program = "examples/blur/blur.impala";
    let source = std::fs::read_to_string(root().join(program)).map_err(|e| format!("cannot read {program}: {e}"))?;
    println!("\n── the algorithm and its schedules ({program}) ──\n");
    let parts = [
        ("fn @blur(", "\n}\n"),
        ("extern fn blur_seq", "\n}\n"),
        ("extern fn blur_tiled", "\n}\n"),
        ("extern fn blur_vec(", "\n}\n"),
        ("extern fn blur_vec_par", "\n}\n"),
    ];
    for (start, end) in parts {
        let from = source.find(start).ok_or_else(|| format!("{program} has no `{start}`"))?;
        let len = source[from..].find(end).map_or(0, |n| n + end.len());
        println!("{}", &source[from..from + len]);
    }
    let files = nyala_driver::Files::of(program, source.as_str());
    println!("── what partial evaluation leaves of it: the innermost loop of `blur_tiled`, away from the border ──\n");
    let made = nyala_driver::emit_deepest_loop(&nyala_driver::Options::default(), &files, "blur_tiled");
    let (text, _) = made.map_err(|failed| failed.render(false))?;
    println!("{text}");
    println!(
        "   {} loads, {} store, {} call\n",
        text.matches("load(").count(),
        text.matches("store(").count(),
        text.matches("call").count()
    );
    let out = root().join("out");
    std::fs::create_dir_all(&out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    for photograph in PHOTOGRAPHS {
        let input = root().join("examples/blur").join(photograph);
        let output = out.join(format!("blurred-{}.png", photograph.split('.').next().unwrap_or(photograph)));
        println!("── {photograph}, blurred by each schedule and compared with a plain loop ──\n");
        sh(Command::new(&nyala).current_dir(root()).arg("run").arg(program).arg("--").arg(&input).arg(&output))?;
        println!("\nwritten to {}\n", output.display());
        if std::io::stdout().is_terminal() {
            show(&output)?;
        }
    }
    Ok(true)
}

/// Prints a picture in the terminal, with two pixels above each other in one character.
fn show(path: &std::path::Path) -> Result<(), String> {
    const COLUMNS: u32 = 72;
    let picture = nyala_runtime::Image::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let (width, height) = (picture.width, picture.height);
    let pixels = picture.into_rgb();
    let rows = (COLUMNS * height / width.max(1)).max(2) & !1;
    // The mean of the pixels that a half of a character covers.
    let mean = |column: u32, row: u32| -> [u64; 3] {
        let (xs, ys) =
            (column * width / COLUMNS..(column + 1) * width / COLUMNS, row * height / rows..(row + 1) * height / rows);
        let at = |x: u32, y: u32| 3 * (y as usize * width as usize + x as usize);
        let (mut sum, mut n) = ([0; 3], 0);
        for (x, y) in ys.flat_map(|y| xs.clone().map(move |x| (x, y))) {
            n += 1;
            sum.iter_mut().zip(&pixels[at(x, y)..]).for_each(|(sum, byte)| *sum += u64::from(*byte));
        }
        sum.map(|sum| sum / n.max(1))
    };
    for row in (0..rows).step_by(2) {
        for column in 0..COLUMNS {
            let [[r, g, b], [s, h, c]] = [mean(column, row), mean(column, row + 1)];
            print!("\x1b[38;2;{r};{g};{b}m\x1b[48;2;{s};{h};{c}m▀");
        }
        println!("\x1b[0m");
    }
    println!();
    Ok(())
}
