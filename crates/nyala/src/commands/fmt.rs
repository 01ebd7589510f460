//! `nyala fmt`: files in their canonical form.

use super::package::{self, Part};
use super::{FAILED, show_all};
use nyala_base::diagnostics::limitation;
use nyala_base::{Diagnostic, Sources, Span};
use nyala_driver::diagnostics::{cannot_read, cannot_write};
use nyala_driver::staged;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Format files: blanks between tokens, indentation, blank lines. Line ends stay where they are
///
/// Comments keep their places. The program means what it meant: a file whose tokens would change is left as it is, with an
/// error. A file with a syntax error is left as it is, too.
#[derive(clap::Args)]
pub struct Fmt {
    /// Files, folders with all files in them, or `-`: standard input, whose formatted text is printed. Without any, `src`, `tests` and
    /// `bench` of the package around this folder
    #[arg(value_name = "FILE|FOLDER")]
    what: Vec<PathBuf>,
    /// Change nothing; list the files that are not formatted, each with its first line that differs. The exit code is 1 if
    /// there are any
    #[arg(long)]
    check: bool,
    /// Print diagnostics as JSON on standard error, one object per line (docs/diagnostics.md)
    #[arg(long)]
    json: bool,
}

impl Fmt {
    pub fn run(&self) -> u8 {
        let mut paths = Vec::new();
        let mut code = 0;
        let of_package = match self.what.is_empty().then(|| package::files(Part::All)) {
            Some(Err(why)) => return package::refuse(why),
            found => found.and_then(Result::ok).unwrap_or_default(),
        };
        for path in self.what.iter().chain(&of_package) {
            if super::is_standard_input(path) {
                paths.push(path.clone());
                continue;
            }
            let mut found = Vec::new();
            if let Err(e) = super::test::collect(path, &mut found) {
                code = self.fail(&[cannot_read::error(path, &e.to_string())], &Sources::new());
            }
            // A folder stands for those of its files that have a canonical form.
            found.retain(|f| !path.is_dir() || f.to_str().is_none_or(staged::has_form));
            paths.append(&mut found);
        }
        for path in &paths {
            code = code.max(self.file(path));
        }
        code
    }

    fn fail(&self, diagnostics: &[Diagnostic], sources: &Sources) -> u8 {
        show_all(diagnostics, sources, self.json);
        FAILED
    }

    fn file(&self, path: &Path) -> u8 {
        let is_stdin = super::is_standard_input(path);
        let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
        let text =
            match if is_stdin { nyala_driver::files::read_standard_input() } else { nyala_driver::files::read(path) } {
                Ok(text) => text,
                Err(why) => return self.fail(&[cannot_read::error(Path::new(&name), &why)], &Sources::new()),
            };
        let mut sources = Sources::new();
        let file = sources.add(name.clone(), text.clone());
        if !staged::has_form(&name) {
            let ending = path.extension().map_or(String::new(), |e| e.to_string_lossy().into_owned());
            let what = format!("canonical forms of files `.{ending}`");
            let hint = "files in Impala and in Staged-C are formatted";
            return self.fail(&[limitation::not_supported(Span::new(file, 0, 0), &what, hint)], &sources);
        }
        let is_staged = nyala_driver::is_staged(&name);
        let format = if is_staged { staged::format } else { nyala_syntax::format };
        let formatted = match format(file, &text) {
            Ok(formatted) => formatted,
            Err(errors) => return self.fail(&errors, &sources),
        };
        if self.check {
            return match first_difference(&text, &formatted) {
                None => 0,
                Some((line, wanted)) => {
                    println!("{name}:{line}: not formatted; expected `{wanted}`");
                    FAILED
                }
            };
        }
        let written = match () {
            () if is_stdin => std::io::stdout().write_all(formatted.as_bytes()).map_err(cannot_write::standard_output),
            () if formatted == text => Ok(()),
            () => nyala_files::write(path, formatted.as_bytes()).map_err(|e| cannot_write::file(path, e)),
        };
        written.map_or_else(|diagnostic| self.fail(&[diagnostic], &Sources::new()), |()| 0)
    }
}

/// The number of the first line that differs, and what it should be.
fn first_difference<'a>(text: &str, formatted: &'a str) -> Option<(usize, &'a str)> {
    if text == formatted {
        return None;
    }
    let mut lines = text.split('\n').zip(formatted.split('\n')).enumerate();
    let differing = lines.find(|(_, (old, new))| old != new).map(|(i, (_, new))| (i + 1, new));
    differing.or_else(|| Some((formatted.split('\n').count(), "")))
}
