//! Each kind of thing that a name may lead to.

use super::*;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn file(folder: &TempDir, name: &str, mode: u32) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, "a long text that was here before").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

fn fifo(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn new_files_have_usual_permissions_and_one_name() {
    let f = folder();
    let usual = f.path().join("usual");
    std::fs::write(&usual, "").unwrap();
    let (text, program) = (f.path().join("text"), f.path().join("program"));
    check(&text).unwrap();
    write(&text, b"text").unwrap();
    write_program(&program, b"program").unwrap();
    assert_eq!(std::fs::read(&text).unwrap(), b"text");
    assert_eq!(mode(&text), mode(&usual));
    assert_eq!(mode(&program), mode(&usual) | (mode(&usual) & 0o444) >> 2);
    assert_eq!(names(f.path()), ["program", "text", "usual"]);
}

#[test]
fn a_plain_file_is_replaced_with_its_permissions() {
    let f = folder();
    for bits in [0o600, 0o644, 0o640, 0o751] {
        let path = file(&f, "a", bits);
        let mut open = File::open(&path).unwrap();
        check(&path).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), bits));
        // A process that has the old file open keeps its contents.
        let mut old = String::new();
        open.read_to_string(&mut old).unwrap();
        assert!(old.starts_with("a long text"));
    }
    let path = file(&f, "a", 0o640);
    write_program(&path, b"new").unwrap();
    assert_eq!(mode(&path), 0o750);
    assert_eq!(names(f.path()), ["a"]);
}

#[test]
fn all_names_of_a_file_stay_names_of_it() {
    let f = folder();
    let (a, b) = (file(&f, "a", 0o600), f.path().join("b"));
    std::fs::hard_link(&a, &b).unwrap();
    write(&b, b"new").unwrap();
    assert_eq!(std::fs::read(&a).unwrap(), b"new");
    assert_eq!(a.metadata().unwrap().ino(), b.metadata().unwrap().ino());
    assert_eq!(mode(&a), 0o600);
    write_program(&b, b"newer").unwrap();
    assert_eq!((std::fs::read(&a).unwrap(), mode(&a)), (b"newer".to_vec(), 0o700));
}

#[test]
fn links_stay_and_what_they_lead_to_is_written() {
    let f = folder();
    let inner = f.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let a = file(&f, "a", 0o600);
    symlink("../a", inner.join("b")).unwrap();
    symlink("inner/b", f.path().join("c")).unwrap();
    symlink("inner/none", f.path().join("d")).unwrap();
    check(&f.path().join("c")).unwrap();
    write(&f.path().join("c"), b"new").unwrap();
    assert_eq!((std::fs::read(&a).unwrap(), mode(&a)), (b"new".to_vec(), 0o600));
    write(&f.path().join("d"), b"made").unwrap();
    assert_eq!(std::fs::read(inner.join("none")).unwrap(), b"made");
    assert_eq!(
        (names(f.path()), names(&inner)),
        (["a", "c", "d", "inner"].map(String::from).to_vec(), ["b", "none"].map(String::from).to_vec())
    );
    assert!(inner.join("b").is_symlink() && f.path().join("c").is_symlink() && f.path().join("d").is_symlink());
    symlink("around", f.path().join("around")).unwrap();
    assert_eq!(
        write(&f.path().join("around"), b"").unwrap_err().raw_os_error(),
        Some(rustix::io::Errno::LOOP.raw_os_error())
    );
}

#[test]
fn fifos_and_devices_are_written_as_they_are() {
    let f = folder();
    let path = fifo(&f, "fifo");
    check(&path).unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || super::read(&path).unwrap()
    });
    write(&path, b"through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    assert!(path.metadata().unwrap().file_type().is_fifo());
    symlink("/dev/null", f.path().join("null")).unwrap();
    write(&f.path().join("null"), b"gone").unwrap();
    check(Path::new("/dev/null")).unwrap();
    write_program(Path::new("/dev/null"), b"gone").unwrap();
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    assert_eq!(write(Path::new("/dev/full"), b"x").unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn a_finished_file_takes_the_place_of_another() {
    let f = folder();
    let at = |name: &str| f.path().join(name);
    let finished = || {
        std::fs::write(at("finished"), "new").unwrap();
        at("finished")
    };
    replace(&at("missing"), &finished()).unwrap();
    let kept = file(&f, "kept", 0o600);
    replace(&kept, &finished()).unwrap();
    assert_eq!((std::fs::read(&kept).unwrap(), mode(&kept)), (b"new".to_vec(), 0o600));
    let number = file(&f, "linked", 0o640).metadata().unwrap().ino();
    std::fs::hard_link(at("linked"), at("other")).unwrap();
    symlink("other", at("link")).unwrap();
    symlink("/dev/null", at("null")).unwrap();
    replace(&at("link"), &finished()).unwrap();
    replace(&at("null"), &finished()).unwrap();
    assert_eq!((std::fs::read(at("linked")).unwrap(), mode(&at("linked"))), (b"new".to_vec(), 0o640));
    assert_eq!(at("linked").metadata().unwrap().ino(), number);
    assert_eq!(names(f.path()), ["kept", "link", "linked", "missing", "null", "other"]);
    assert!(at("link").is_symlink() && at("null").is_symlink());
    assert!(replace(f.path(), &finished()).is_err() && replace(&at("none/a"), &finished()).is_err());
    assert!(at("finished").exists());
}

#[test]
fn open_files_by_number_are_written_in_place() {
    let f = folder();
    let path = file(&f, "a", 0o600);
    let open = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    write(Path::new(&format!("/dev/fd/{number}")), b"new").unwrap();
    assert_eq!(open.metadata().unwrap().ino(), path.metadata().unwrap().ino());
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}

#[test]
fn in_a_folder_without_permission_files_are_written_in_place() {
    let f = folder();
    let (path, new) = (file(&f, "a", 0o640), f.path().join("new"));
    std::fs::set_permissions(f.path(), Permissions::from_mode(0o555)).unwrap();
    let number = path.metadata().unwrap().ino();
    if File::create(f.path().join("probe")).is_ok() {
        // This user may write everywhere: another one runs this test.
        use std::os::unix::process::CommandExt;
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again
            .args(["--exact", "tests::in_a_folder_without_permission_files_are_written_in_place"])
            .env("TMPDIR", "/tmp");
        match again.uid(65534).gid(65534).current_dir("/").output() {
            Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout)),
            Err(e) => eprintln!("skipped: a folder without permission: {e}"),
        }
    } else {
        check(&path).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o640));
        assert_eq!(path.metadata().unwrap().ino(), number);
        let said = [check(&new).unwrap_err(), write(&new, b"new").unwrap_err()];
        said.iter().for_each(|e| assert_eq!(e.to_string(), "Permission denied (os error 13)"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o440)).unwrap();
        assert!(check(&path).is_err() && write(&path, b"newer").is_err());
    }
    std::fs::set_permissions(f.path(), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_cannot_be_written_says_why() {
    let f = folder();
    for (name, why) in
        [("", "Is a directory"), ("none/a", "No such file"), ("none/", "Is a directory"), ("a/b", "Not a directory")]
    {
        file(&f, "a", 0o600);
        let path = f.path().join(name);
        for e in [write(&path, b"x").unwrap_err(), check(&path).unwrap_err()] {
            assert!(e.to_string().to_lowercase().contains(&why.to_lowercase()) || name == "none/", "{name}: {e}");
        }
    }
    assert_eq!(names(f.path()), ["a"]);
}

#[test]
fn reading_ends() {
    let f = folder();
    let a = file(&f, "a", 0o600);
    assert_eq!(super::read(&a).unwrap().len(), 32);
    assert_eq!(super::read(Path::new("/dev/null")).unwrap(), b"");
    let e = super::read(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(e.to_string(), "it goes on after 67108864 bytes, and is no plain file of known size");
    // The size that the system gives of these is 0.
    assert!(!super::read(Path::new("/proc/self/stat")).unwrap().is_empty());
}

#[test]
fn files_that_files_name_are_plain() {
    let f = folder();
    let a = file(&f, "a", 0o600);
    assert_eq!(read_plain(&a, 32).unwrap().len(), 32);
    assert_eq!(read_plain(&a, 31).unwrap_err().to_string(), "it has more than 31 bytes");
    assert_eq!(read_plain(&fifo(&f, "fifo"), 31).unwrap_err().to_string(), "it is a FIFO, no plain file");
    symlink("/dev/zero", f.path().join("zero")).unwrap();
    assert_eq!(read_plain(&f.path().join("zero"), 31).unwrap_err().to_string(), "it is a device, no plain file");
    assert_eq!(read_plain(f.path(), 31).unwrap_err().kind(), ErrorKind::IsADirectory);
}
