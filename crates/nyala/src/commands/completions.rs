//! `nyala completions`: the script with which a shell completes the command's words.

use clap_complete::Shell;

/// Print the script that completes this command's words in a shell
///
/// `bash`: `source <(nyala completions bash)`; `zsh`: a file `_nyala` in a folder of `$fpath`; `fish`:
/// `nyala completions fish > ~/.config/fish/completions/nyala.fish`
#[derive(clap::Args)]
pub struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// `command` is the whole command.
    pub fn run(&self, mut command: clap::Command) -> u8 {
        clap_complete::generate(self.shell, &mut command, "nyala", &mut std::io::stdout());
        0
    }
}
