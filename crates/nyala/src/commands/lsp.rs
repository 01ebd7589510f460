//! `nyala lsp`: a language server on standard input and output.

use lsp_server::Connection;
use nyala_driver::Options;
use std::path::PathBuf;

/// Serve an editor: diagnostics, hover, completion and the like, by the Language Server Protocol on standard input and
/// output (docs/editors.md)
#[derive(clap::Args)]
pub struct Lsp {
    /// Folder in which to search for libraries
    #[arg(short = 'L', value_name = "DIR")]
    library_folders: Vec<PathBuf>,
}

impl Lsp {
    pub fn run(&self) -> u8 {
        let mut library_folders = self.library_folders.clone();
        library_folders.extend(std::env::var_os("NYALA_PATH").iter().flat_map(std::env::split_paths));
        let (connection, threads) = Connection::stdio();
        let has_ended = nyala::lsp::serve(
            &connection,
            Options {
                library_folders,
                // An editor waits for the answers.
                offline: true,
                ..Options::default()
            },
        );
        drop(connection);
        // The streams are closed by the client.
        let _ = threads.join();
        if has_ended { 0 } else { super::FAILED }
    }
}
