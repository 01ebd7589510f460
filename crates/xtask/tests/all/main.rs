//! Tests of the command as a process, and of what it makes: one program, for a program each would be linked 23 times.
//! `cargo test -p xtask --test all command::` runs those of one file.

mod align;
mod assembly;
mod bench;
mod broken_drivers;
mod build;
mod c_text;
mod callbacks;
mod checked;
mod closures;
mod command;
mod common;
mod cpus;
mod debuggers;
mod doc;
mod editors;
mod explain;
mod faults;
mod format;
mod hls;
mod instructions;
mod launches;
mod modules;
mod packages;
mod ptx;
mod siblings;
mod sierra_random;
mod staged_c_random;
mod staging;
mod stand_ins;
mod structs;
mod testing;
mod tune;
mod undefined;
mod usage;
mod watch;
