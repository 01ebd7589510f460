//! `nyala man`: pages for `man`, one for the command and one for each verb, made of what `--help` says.

use super::FAILED;
use nyala_driver::diagnostics::cannot_write;
use std::path::{Path, PathBuf};

/// Write pages for `man` into a folder
///
/// `nyala man ~/.local/share/man/man1` is where `man` looks for them.
#[derive(clap::Args)]
pub struct Man {
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    /// `command` is the whole command.
    pub fn run(&self, command: clap::Command) -> u8 {
        let command = command.name("nyala").disable_help_subcommand(true);
        let mut pages = vec![("nyala".to_string(), command.clone())];
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let name = format!("nyala-{}", verb.get_name());
            let usage = format!("nyala {}", verb.get_name());
            pages.push((name.clone(), verb.clone().display_name(name).bin_name(usage)));
        }
        for (name, command) in pages {
            if let Err(diagnostic) = self.write(&name, command) {
                super::show_all(&[*diagnostic], &nyala_base::Sources::new(), false);
                return FAILED;
            }
        }
        0
    }

    fn write(&self, name: &str, command: clap::Command) -> Result<(), Box<nyala_base::Diagnostic>> {
        let path = self.folder.join(format!("{name}.1"));
        let fail = |path: &Path, e: std::io::Error| Box::new(cannot_write::file(path, e));
        std::fs::create_dir_all(&self.folder).map_err(|e| fail(&self.folder, e))?;
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|e| fail(&path, e))?;
        nyala_files::write(&path, &page).map_err(|e| fail(&path, e))
    }
}
