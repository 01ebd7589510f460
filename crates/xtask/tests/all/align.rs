//! The command of `examples/align`: its results, on good and bad input.

use crate::common::{Folder, RunToEnd, command, nyala, root, stderr};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(program: &Path, folder: &Folder, args: &[&str]) -> Output {
    Command::new(program).current_dir(&folder.0).args(args).run_to_end()
}

/// What the command prints, if it succeeds and says nothing.
fn printed(program: &Path, folder: &Folder, args: &[&str]) -> String {
    let output = run(program, folder, args);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The score of two sequences as a whole, by the definition: 2 for equal letters, -3 for others; a gap of n letters costs the least of
/// `open + n * extend` of these pieces. Cells are those at most `band` diagonals beyond the ones between starts and ends.
fn global_score(a: &[u8], b: &[u8], pieces: &[(i32, i32)], band: i32) -> i32 {
    let never = i32::MIN / 2;
    let mut best = vec![vec![never; b.len() + 1]; a.len() + 1];
    let mut down = vec![best.clone(); pieces.len()];
    let mut right = down.clone();
    let ends = b.len() as i32 - a.len() as i32;
    best[0][0] = 0;
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let diagonal = j as i32 - i as i32;
            if diagonal < ends.min(0).saturating_sub(band) || diagonal > ends.max(0).saturating_add(band) {
                continue;
            }
            if i > 0 && j > 0 {
                best[i][j] = best[i - 1][j - 1] + if a[i - 1] == b[j - 1] { 2 } else { -3 };
            }
            for (p, (open, extend)) in pieces.iter().enumerate() {
                if i > 0 {
                    down[p][i][j] = (best[i - 1][j] - open - extend).max(down[p][i - 1][j] - extend);
                }
                if j > 0 {
                    right[p][i][j] = (best[i][j - 1] - open - extend).max(right[p][i][j - 1] - extend);
                }
                best[i][j] = best[i][j].max(down[p][i][j]).max(right[p][i][j]);
            }
        }
    }
    best[a.len()][b.len()]
}

/// A sequence of n letters, and another one with some letters more, less or changed.
fn letters(n: usize, seed: &mut u64) -> (String, String) {
    let mut next = |below: u64| {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) % below
    };
    let (mut a, mut b) = (String::new(), String::new());
    for _ in 0..n {
        let letter = b"ACGT"[next(4) as usize] as char;
        a.push(letter);
        match next(12) {
            0 => b.push(b"ACGT"[next(4) as usize] as char),
            1 => {}
            2 => b.extend([letter, 'G']),
            _ => b.push(letter),
        }
    }
    (a, b)
}

/// A text as gzip has it, not compressed.
fn in_gzip(text: &[u8]) -> Vec<u8> {
    let (mut sum, n) = (!0u32, text.len() as u16);
    for &byte in text {
        sum ^= u32::from(byte);
        (0..8).for_each(|_| sum = sum >> 1 ^ (0xedb8_8320 * (sum & 1)));
    }
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    out.extend([n.to_le_bytes(), (!n).to_le_bytes()].concat());
    out.extend(text);
    out.extend([(!sum).to_le_bytes(), u32::from(n).to_le_bytes()].concat());
    out
}

/// The library that reads compressed files.
fn gzip_library() -> PathBuf {
    let cargo =
        Command::new("cargo").current_dir(root()).args(["build", "--quiet", "--package", "nyala-gzip"]).status();
    assert!(cargo.unwrap().success());
    command().with_file_name("libnyala_gzip.so")
}

#[test]
fn the_command_aligns_and_says_what_is_wrong() {
    aligns_and_says_what_is_wrong("-O0");
}

#[test]
#[ignore = "takes 6 s: ./x test --all crates"]
fn the_optimized_command_aligns_and_says_what_is_wrong() {
    aligns_and_says_what_is_wrong("-O1");
}

fn aligns_and_says_what_is_wrong(level: &str) {
    let folder = Folder::new("align");
    let program = folder.path("align");
    let source = root().join("examples/align/main.impala");
    let gzip = gzip_library();
    let build: [&OsStr; 6] =
        ["build".as_ref(), level.as_ref(), source.as_os_str(), gzip.as_os_str(), "-o".as_ref(), program.as_os_str()];
    let output = nyala(&build, 600);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    // Every scheme is known where it is used.
    let flat = nyala(&["emit".as_ref(), "--stage".as_ref(), "flat".as_ref(), source.as_os_str()], 300);
    assert!(flat.status.success() && !String::from_utf8_lossy(&flat.stdout).contains("call_indirect"));
    let prints = |args: &[&str]| printed(&program, &folder, args);

    folder.write("q.fa", ">one first\nACGTAC\nGTTT\n\n>two\ngattacagattaca\r\n>three\nAAAA\n>empty\n");
    folder.write("r.fa", ">R1\nACGTCGTTT\n>R2\nCCGATTACTTTGATTACACC\n>R3\nCCCC\n>R4\nAC");
    folder.write("q.fq", "@one\nACGTACGTTT\n+\nIIIIIHHHHH\n@two\nGATTACAGATTACA\n+two\n@+>IIIIIIIIIII\n@three\nAAAA\n+\n!!!!\n@empty\n\n+\n\n");
    assert_eq!(prints(&["pairs", "q.fa", "r.fa"]), "one\tR1\t11\ntwo\tR2\t-4\nthree\tR3\t-12\nempty\tR4\t-9\n");
    assert_eq!(
        prints(&["pairs", "q.fa", "r.fa", "--ends", "local", "--format", "paf"]),
        "one\t10\t0\t10\t+\tR1\t9\t0\t9\t9\t10\t255\tAS:i:11\tcg:Z:4=1I5=\n\
         two\t14\t0\t7\t+\tR2\t20\t11\t18\t7\t7\t255\tAS:i:14\tcg:Z:7=\n\
         three\t4\t0\t0\t*\t*\t0\t0\t0\t0\t0\t0\nempty\t0\t0\t0\t*\t*\t0\t0\t0\t0\t0\t0\n"
    );
    assert_eq!(
        prints(&["pairs", "q.fq", "r.fa", "--ends", "local", "--format", "sam"]),
        "@HD\tVN:1.6\tSO:unsorted\tGO:query\n@SQ\tSN:R1\tLN:9\n@SQ\tSN:R2\tLN:20\n@SQ\tSN:R3\tLN:4\n@SQ\tSN:R4\tLN:2\n\
         @PG\tID:nyala-align\tPN:align\n\
         one\t0\tR1\t1\t255\t4=1I5=\t*\t0\t0\tACGTACGTTT\tIIIIIHHHHH\tAS:i:11\tNM:i:1\n\
         two\t0\tR2\t12\t255\t7=7S\t*\t0\t0\tGATTACAGATTACA\t@+>IIIIIIIIIII\tAS:i:14\tNM:i:0\n\
         three\t4\t*\t0\t255\t*\t*\t0\t0\tAAAA\t!!!!\nempty\t4\t*\t0\t255\t*\t*\t0\t0\t*\t*\n"
    );
    assert!(
        prints(&["pairs", "q.fa", "r.fa", "--format", "text"]).starts_with(
            "one and R1: score 11, 9 of 10 letters equal (90.0 %)\n         1 ACGTACGTTT 10\n           |||| |||||\n         1 ACGT-CGTTT 9\n\n"
        )
    );
    assert_eq!(prints(&["distance", "q.fa", "r.fa"]), "one\tR1\t1\ntwo\tR2\t7\nthree\tR3\t4\nempty\tR4\t2\n");
    // A gap at both ends of R2 is free.
    assert!(prints(&["pairs", "q.fa", "r.fa", "--ends", "semi-global", "--open", "0"]).contains("two\tR2\t"));

    // The best of each query, in order; the same for any number of threads.
    let hits = "one\tR1\t11\none\tR2\t6\ntwo\tR2\t14\ntwo\tR1\t4\nthree\tR1\t2\nthree\tR2\t2\n";
    let found = prints(&["search", "q.fa", "r.fa", "--best", "2"]);
    assert_eq!(found.lines().count(), 6, "{found}");
    for line in hits.lines().filter(|l| !l.starts_with("one\tR2") && !l.starts_with("two\tR1")) {
        assert!(found.contains(line), "{found}");
    }
    assert_eq!(found, prints(&["search", "q.fa", "r.fa", "--best", "2", "--threads", "3"]));
    let sam = prints(&["search", "q.fa", "r.fa", "--best", "2", "--format", "sam"]);
    assert_eq!(sam.lines().filter(|l| l.split('\t').nth(1) == Some("256")).count(), 3, "{sam}");

    // Extensions: eight equal letters, four that differ, eight equal ones.
    folder.write("gap.fa", ">gap\nACGTACGTAAAAACGTACGT\n");
    folder.write("whole.fa", ">whole\nACGTACGTCCCCACGTACGT\n");
    let gap = ["pairs", "gap.fa", "whole.fa", "--match", "1", "--mismatch", "1", "--open", "2", "--extend", "1"];
    assert_eq!(prints(&[gap.as_slice(), &["--drop", "3"]].concat()), "gap\twhole\t8\t8\t8\n");
    assert_eq!(prints(&[gap.as_slice(), &["--drop", "4"]].concat()), "gap\twhole\t12\t20\t20\n");
    assert_eq!(
        prints(&[gap.as_slice(), &["--drop", "4", "--open2", "4", "--extend2", "0"]].concat()),
        "gap\twhole\t12\t20\t20\n"
    );
    folder.write("left.fa", ">left\nGGGGGACGTACGT\n");
    folder.write("right.fa", ">right\nACGTACGTGGGGG\n");
    let sam = |more: &[&str]| {
        let args = [&["pairs", "left.fa", "right.fa", "--format", "sam"], more].concat();
        prints(&args).lines().last().unwrap().split('\t').nth(5).unwrap().to_string()
    };
    // The equal letters are five diagonals from that of the starts and ends.
    assert_eq!(sam(&["--band", "5", "--open", "1", "--extend", "1"]), "5I8=5D");
    assert_eq!(sam(&["--band", "5", "--open", "1", "--extend", "4", "--open2", "6", "--extend2", "0"]), "5I8=5D");
    assert!(!sam(&["--band", "4", "--open", "1", "--extend", "1"]).contains("8="));

    // Proteins, by a known matrix and one from a file.
    folder.write("p.fa", ">p\nMKTAYIAKQR\n");
    folder.write("d.fa", ">d\nxxMKTAYAKQRxx\n");
    assert_eq!(prints(&["search", "p.fa", "d.fa", "--matrix", "blosum62", "--open", "10"]), "p\td\t34\n");
    folder.write("m.txt", "  A C\nA 5 -4\nC -4 7\n");
    folder.write("c.fa", ">c\nACC\n");
    assert_eq!(prints(&["pairs", "c.fa", "c.fa", "--matrix", "m.txt"]), "c\tc\t19\n");

    // Many pairs against the definition: in lanes, and some of them alone.
    let (mut a, mut b, mut wanted, mut seed) = (String::new(), String::new(), String::new(), 1u64);
    let (mut wanted_of_two, mut wanted_in_band) = (String::new(), String::new());
    for i in 0..400 {
        let (x, y) = letters(if i == 77 { 2500 } else { i % 150 }, &mut seed);
        a += &format!(">q{i}\n{x}\n");
        b += &format!(">r{i}\r\n{}\r\n", y.to_lowercase());
        let score = |pieces: &[(i32, i32)], band: i32| {
            format!("q{i}\tr{i}\t{}\n", global_score(x.as_bytes(), y.as_bytes(), pieces, band))
        };
        wanted += &score(&[(5, 2)], i32::MAX);
        wanted_of_two += &score(&[(1, 4), (6, 1)], i32::MAX);
        wanted_in_band += &score(&[(5, 2)], 1);
    }
    folder.write("a.fa", &a);
    folder.write("b.fa", &b);
    assert_eq!(prints(&["pairs", "a.fa", "b.fa"]), wanted);
    // Gaps of two pieces, and a band: scores, and those of alignments.
    let variants = [
        (vec!["--open", "1", "--extend", "4", "--open2", "6", "--extend2", "1"], &wanted_of_two),
        (vec!["--band", "1"], &wanted_in_band),
    ];
    let has_scores = |paf: &str, scores: &str| {
        for (line, wanted) in paf.lines().zip(scores.lines()) {
            let score = wanted.split('\t').nth(2).unwrap();
            assert!(line.contains(&format!("\tAS:i:{score}\t")) || line.contains("\t*\t*\t"), "{line} {wanted}");
        }
        assert_eq!(paf.lines().count(), scores.lines().count());
    };
    for (options, scores) in variants {
        assert_ne!(*scores, wanted);
        let args = [&["pairs", "a.fa", "b.fa"], options.as_slice()].concat();
        assert_eq!(prints(&args), *scores, "{options:?}");
        let paf = prints(&[args.as_slice(), &["--format", "paf"]].concat());
        has_scores(&paf, scores);
    }
    // A band of all diagonals is computed without lanes, which have scores of 8, 16 and 32 bits.
    let gaps = ["--open", "1", "--extend", "4", "--open2", "6", "--extend2", "1"];
    let wide = ["--match", "900", "--open", "1000", "--extend", "400", "--open2", "2500", "--extend2", "100"];
    let wider = ["--match", "9000", "--mismatch", "5000", "--open", "10000", "--extend", "5000"];
    for ends in ["global", "local"] {
        for costs in [&gaps[..], &wide, &wider, &[&gaps[..], &["--matrix", "blosum62"]].concat()] {
            let args = [&["pairs", "a.fa", "b.fa", "--ends", ends], costs].concat();
            let in_band = prints(&[args.as_slice(), &["--band", "1000000"]].concat());
            assert_eq!(prints(&args), in_band, "{args:?}");
            has_scores(&prints(&[args.as_slice(), &["--format", "paf"]].concat()), &in_band);
        }
    }
    // A query and one reference: `search` and `pairs` agree.
    for costs in [&gaps[..], &wide] {
        let (search, pairs) = (["search", "gap.fa", "whole.fa"], ["pairs", "gap.fa", "whole.fa", "--ends", "local"]);
        assert_eq!(prints(&[&search, costs].concat()), prints(&[&pairs, costs].concat()));
    }
    // Alignments have these scores, too, and go to a file.
    assert_eq!(prints(&["pairs", "a.fa", "b.fa", "--format", "paf", "-o", "out.paf"]), "");
    let paf = std::fs::read_to_string(folder.path("out.paf")).unwrap();
    has_scores(&paf, &wanted);

    // Compressed files, in parts and whole.
    let middle = a.find(">q200").unwrap();
    let parts = [in_gzip(&a.as_bytes()[..middle]), in_gzip(&a.as_bytes()[middle..])].concat();
    folder.write("a.fa.gz", &parts);
    assert_eq!(prints(&["pairs", "a.fa.gz", "b.fa"]), wanted);
    folder.write("cut.fa.gz", &parts[..parts.len() - 9]);
    let mut damaged = parts.clone();
    // The checksum of the last part.
    let at = damaged.len() - 8;
    damaged[at] ^= 1;
    folder.write("damaged.fa.gz", damaged);

    let help = prints(&["--help"]);
    assert!(help.starts_with("align MODE [OPTIONS] FILE…"));

    folder.write("empty.fa", "\n");
    folder.write("short.fa", ">a\nAC\n");
    folder.write("long.fa", ">a\nAC\n>b\nAC\n>c\nAC\n>d\nAC\n>e\nAC\n");
    folder.write("cut.fq", "@a\nACGT\n+\nIIII\n@b\nACGT\n+\nII");
    folder.write("junk.fa", (0..=255u8).rev().collect::<Vec<_>>());
    folder.write("zip.fa", [0x1f, 0x8b, 8, 0]);
    folder.write("letter.fa", ">a\nAC\n>b\nAC\nA7\n");
    folder.write("header.fa", format!(">{}\nAC\n", "x".repeat(100_000)));
    folder.write("twice.fa", ">a\nAC\n>a\nACC\n>b\nA\n>c\nA\n");
    folder.write("line.fa", "x".repeat(10_000_000));
    folder.write("line100k.fa", format!(">a\n{}\n", "A".repeat(100_000)));
    folder.write("bad.txt", "A C\nA 1\n");
    std::fs::create_dir(folder.path("folder")).unwrap();
    let wrong: &[(&[&str], i32, &str)] = &[
        (&[], 2, "a mode is needed"),
        (&["sort", "q.fa"], 2, "`sort` is no mode"),
        (&["pairs", "q.fa"], 2, "two files are needed"),
        (&["pairs", "q.fa", "r.fa", "x.fa"], 2, "`x.fa` is one file too many"),
        (&["pairs", "q.fa", "r.fa", "--speed", "3"], 2, "there is no option `--speed`"),
        (&["pairs", "q.fa", "r.fa", "--open"], 2, "`--open` is no option, or lacks its value"),
        (&["pairs", "q.fa", "r.fa", "--open", "-1"], 2, "`--open` cannot be `-1`"),
        (&["pairs", "q.fa", "r.fa", "--ends", "some"], 2, "`--ends` cannot be `some`"),
        (&["pairs", "-", "-"], 2, "only one file can be standard input"),
        (&["pairs", "q.fa", "-", "--format", "sam"], 2, "cannot be standard input"),
        (&["search", "q.fa", "-"], 2, "cannot be standard input"),
        (&["distance", "q.fa", "r.fa", "--format", "sam"], 2, "tsv only"),
        (&["distance", "q.fa", "r.fa", "--open", "3"], 2, "`--open` is not used by `distance`"),
        (&["distance", "q.fa", "r.fa", "--matrix", "none"], 2, "`--matrix` is not used by `distance`"),
        (&["distance", "q.fa", "r.fa", "--ends", "local"], 2, "`pairs` uses it"),
        (&["pairs", "q.fa", "r.fa", "--best", "3"], 2, "`--best` is for the mode `search`"),
        (&["pairs", "q.fa", "r.fa", "--matrix", "blosum62", "--match", "1"], 2, "not used"),
        (&["pairs", "q.fa", "r.fa", "--open2", "9"], 2, "`--open2` needs `--extend2`"),
        (&["pairs", "q.fa", "r.fa", "--extend2", "1"], 2, "`--extend2` needs `--open2`"),
        (&["pairs", "q.fa", "r.fa", "--open2", "9", "--extend2", "2"], 2, "no gap costs less"),
        (&["pairs", "q.fa", "r.fa", "--open2", "5", "--extend2", "1"], 2, "every gap costs less"),
        (&["pairs", "q.fa", "r.fa", "--band", "-1"], 2, "`--band` cannot be `-1`"),
        (&["search", "q.fa", "r.fa", "--band", "3"], 2, "`--band` and `--drop` are for the mode `pairs`"),
        (&["pairs", "q.fa", "r.fa", "--band", "3", "--drop", "3"], 2, "exclude each other"),
        (&["pairs", "q.fa", "r.fa", "--ends", "local", "--drop", "3"], 2, "`--ends` is not used"),
        (&["pairs", "q.fa", "r.fa", "--format", "paf", "--drop", "3"], 2, "tsv only"),
        (
            &["pairs", "line100k.fa", "line100k.fa", "--format", "paf", "--band", "50000"],
            1,
            "line100k.fa:1: alignments in a band",
        ),
        (&["pairs", "none.fa", "r.fa"], 1, "cannot read `none.fa`: No such file"),
        (&["pairs", "folder", "r.fa"], 1, "folder:1: cannot be read: Is a directory"),
        (&["pairs", "empty.fa", "r.fa"], 1, "empty.fa:1: there are no sequences"),
        (&["pairs", "-", "r.fa"], 1, "-:1: there are no sequences"),
        (&["pairs", "q.fa", "short.fa"], 1, "short.fa:3: there are fewer sequences than queries"),
        (&["pairs", "q.fa", "long.fa"], 1, "long.fa:9: there are more sequences than queries"),
        (&["distance", "cut.fq", "r.fa"], 1, "cut.fq:8: record 2: the text ends before"),
        (&["pairs", "junk.fa", "r.fa"], 1, "junk.fa:1: record 1: a record begins with"),
        (&["pairs", "/dev/zero", "r.fa"], 1, "/dev/zero:1: record 1: a record begins with"),
        (&["pairs", "line.fa", "r.fa"], 1, "line.fa:1: record 1: a record begins with"),
        (&["pairs", "zip.fa", "r.fa"], 1, "zip.fa:1: cannot be read: what is compressed ends early"),
        (&["pairs", "cut.fa.gz", "b.fa"], 1, "record 400: cannot be read: what is compressed ends early"),
        (&["pairs", "damaged.fa.gz", "b.fa"], 1, "cannot be read: what is compressed is damaged"),
        (&["search", "q.fa", "letter.fa"], 1, "letter.fa:5: record 2: a sequence has letters"),
        (&["pairs", "header.fa", "r.fa"], 1, "header.fa:1: record 1: a header has more"),
        (&["pairs", "q.fa", "twice.fa", "--format", "sam"], 1, "twice.fa:3: record 2: another sequence of this name"),
        (&["pairs", "q.fa", "r.fa", "--matrix", "none.txt"], 1, "cannot read `none.txt`"),
        (&["pairs", "q.fa", "r.fa", "--matrix", "bad.txt"], 1, "bad.txt:2: a row has less scores"),
        (&["pairs", "q.fa", "r.fa", "-o", "none/out"], 1, "cannot write `none/out`: No such file"),
        (&["pairs", "q.fa", "r.fa", "-o", "folder"], 1, "cannot write `folder`: Is a directory"),
        (&["pairs", "q.fa", "r.fa", "-o", "/dev/full"], 1, "cannot write `/dev/full`: No space left"),
    ];
    for (args, code, part) in wrong {
        let output = run(&program, &folder, args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {said}");
        assert!(said.starts_with("align: ") && said.contains(part), "{args:?}: {said}");
    }
    // After an error, an older file of results is unchanged, and no part of a new one is left.
    let output = run(&program, &folder, &["pairs", "q.fa", "short.fa", "-o", "out.paf"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(folder.path("out.paf")).unwrap(), paf);
    // A link stays one.
    std::os::unix::fs::symlink("out.paf", folder.path("link.paf")).unwrap();
    folder.write("out.paf", "");
    let output = run(&program, &folder, &["pairs", "q.fa", "r.fa", "-o", "link.paf"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(folder.path("link.paf").is_symlink());
    assert!(std::fs::read_to_string(folder.path("out.paf")).unwrap().starts_with("one\tR1\t"));
    let left: Vec<_> =
        std::fs::read_dir(&folder.0).unwrap().filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
}
