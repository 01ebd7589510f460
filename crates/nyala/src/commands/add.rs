//! `nyala add`: a dependency more in the manifest.

use super::{FAILED, show_all};
use nyala_base::{Diagnostic, Sources, Span};
use nyala_driver::Options;
use nyala_driver::diagnostics::{bad_manifest, cannot_read, cannot_write, no_such_package};
use nyala_driver::packages::{self, MANIFEST, quote};
use nyala_driver::report::Report;
use std::path::{Path, PathBuf};

/// Add a dependency to the package of this folder
///
/// The manifest `nyala.toml` is that of the innermost folder around this one that has a manifest.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("from").required(true).args(["path", "git"])))]
pub struct Add {
    /// The package's name, which is that of its library
    name: String,
    /// Folder of the package
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Address of the package's git repository
    #[arg(long, value_name = "URL")]
    git: Option<String>,
    /// Commit, tag or branch; without this option, the newest commit of the main branch
    #[arg(long, requires = "git")]
    rev: Option<String>,
    /// Do not fetch from the network
    #[arg(long)]
    offline: bool,
}

impl Add {
    pub fn run(&self) -> u8 {
        let mut report = Report::default();
        if let Err(error) = self.add(&mut report) {
            report.sink.diagnostics.push(*error);
        }
        if !report.sink.has_errors() {
            return 0;
        }
        show_all(&report.sink.diagnostics, &report.sources, false);
        FAILED
    }

    /// Adds the dependency. What is wrong with the package itself gets into the report.
    fn add(&self, report: &mut Report) -> Result<(), Box<Diagnostic>> {
        let refuse = |why: String| Box::new(no_such_package::error(Span::NONE, why));
        let folder = packages::folder_of(Path::new("-"));
        let hint = "`nyala new NAME` makes a package";
        let folder = folder.ok_or_else(|| {
            let why = format!("no folder around this one has a `{MANIFEST}`");
            Box::new(no_such_package::error(Span::NONE, why).hint(hint))
        })?;
        let manifest = folder.join(MANIFEST);
        let old = nyala_driver::files::read(&manifest).map_err(|e| Box::new(cannot_read::error(&manifest, &e)))?;
        packages::check_name(&self.name).map_err(refuse)?;
        let value = self.value(&folder).map_err(refuse)?;
        let new = packages::with_dependency(&old, &self.name, &value)
            .map_err(|why| Box::new(bad_manifest::error(Span::NONE, &format!("{}: {why}", manifest.display()))))?;
        let write = |text: &str| {
            nyala_files::write(&manifest, text.as_bytes()).map_err(|e| Box::new(cannot_write::file(&manifest, e)))
        };
        write(&new)?;
        packages::at(&folder, &Options { offline: self.offline, ..Options::default() }, report);
        if report.sink.has_errors() {
            // The manifest stays as it was.
            return write(&old);
        }
        println!("{}: {} = {value}", manifest.display(), self.name);
        Ok(())
    }

    /// What stands behind the name in the manifest.
    fn value(&self, folder: &Path) -> Result<String, String> {
        if let Some(url) = &self.git {
            let rev = match &self.rev {
                Some(rev) => rev.clone(),
                None if self.offline => return Err("`--offline` needs `--rev`".into()),
                None => packages::head_of(url)?,
            };
            return Ok(format!("{{ git = {}, rev = {} }}", quote(url), quote(&rev)));
        }
        // Paths are from the manifest's folder, and are given from this one.
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        let here = std::env::current_dir().and_then(|d| d.canonicalize()).map_err(|e| e.to_string())?;
        let from_here = here.strip_prefix(folder).map_or(PathBuf::new(), Path::to_path_buf);
        let path = if path.is_absolute() { path.to_path_buf() } else { from_here.join(path) };
        let shown = path.to_str().ok_or("the path is not UTF-8")?;
        Ok(format!("{{ path = {} }}", quote(shown)))
    }
}

/// Prints one diagnostic, and gives the exit code.
pub fn fail(diagnostic: Diagnostic) -> u8 {
    show_all(&[diagnostic], &Sources::new(), false);
    FAILED
}
