//! The command as a process. One executable, since each takes seconds to link.

mod align;
mod assembly;
mod bench;
mod broken_drivers;
mod build;
mod c_text;
mod checked;
mod closures;
mod command;
mod common;
mod cpus;
mod doc;
mod explain;
mod faults;
mod format;
mod hls;
mod instructions;
mod launches;
mod modules;
mod ptx;
mod siblings;
mod stand_ins;
mod structs;
mod testing;
mod tune;
