//! Kernels of a program, from the modules that `lower-launches` makes of them to the code that the program carries.
//! Separate from the host's pipeline, since each platform has a compiler of its own
//! ([`DEVICES`]).

use crate::flat::Flat;
use crate::front::Files;
use crate::graph::Residual;
use crate::pipelines::{BackEnd, DEVICES, DeviceBackEnd, LLVM};
use crate::report::{Failed, Report};
use crate::{FrontEnd, Options};
use nyala_base::{Diagnostic, Span};
use nyala_flat::{DeviceModule, Function, Module};
use nyala_ir::lanes::PLATFORMS;
use std::path::PathBuf;

/// The place of libdevice, NVIDIA's math functions, in an installation of the CUDA toolkit.
const LIBDEVICE: &str = "nvvm/libdevice/libdevice.10.bc";
/// Variables that name installations of the CUDA toolkit.
const TOOLKIT_VARIABLES: [&str; 3] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"];
/// Folders of installations of the CUDA toolkit, by NVIDIA and by Debian.
const TOOLKIT_FOLDERS: [&str; 3] = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"];

/// In place of the text of a program without kernels.
const NO_KERNEL: &str = "// No kernel for such a device: kernels for the host, as of `host()` or with `--device host`, are functions, see `--stage flat`.\n";

/// The platforms that code can be made for, as indices of [`PLATFORMS`].
pub(crate) fn platforms() -> Vec<u32> {
    let has_back_end = |p: &str| DEVICES.iter().any(|d| d.platforms.contains(&p));
    PLATFORMS.iter().enumerate().filter(|(_, p)| has_back_end(p)).map(|(i, _)| i as u32).collect()
}

/// The back end that makes a device module's code.
pub(crate) fn back_end(device: &DeviceModule) -> Option<&'static DeviceBackEnd> {
    let name = PLATFORMS.get(device.platform as usize)?;
    DEVICES.iter().find(|d| d.platforms.contains(name))
}

/// The paths that a tool of the CUDA toolkit may have: where the system finds it, then in installations of the toolkit.
pub(crate) fn cuda_tools(name: &str) -> impl Iterator<Item = PathBuf> {
    let in_toolkits: Vec<PathBuf> = toolkits().map(|folder| folder.join("bin").join(name)).collect();
    std::iter::once(PathBuf::from(name)).chain(in_toolkits)
}

fn toolkits() -> impl Iterator<Item = PathBuf> {
    let named = TOOLKIT_VARIABLES.iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain(TOOLKIT_FOLDERS.map(PathBuf::from))
}

/// NVIDIA's libdevice, if the CUDA toolkit is installed in a usual folder or one that `CUDA_HOME` names.
pub(crate) fn libdevice() -> Option<PathBuf> {
    toolkits().map(|folder| folder.join(LIBDEVICE)).find(|file| file.is_file())
}

/// Writes the kernels of a module.
pub type CodeOf = fn(&Options, &Module) -> Result<Vec<u8>, Box<Diagnostic>>;

impl Residual {
    /// The program in flat SSA, for LLVM, with the code of its kernels.
    pub fn flat(&self) -> Result<Flat, Failed> {
        self.flat_for(&LLVM)
    }

    /// The program in flat SSA, for a back end, with the code of its kernels.
    pub fn flat_for(&self, back_end: &BackEnd) -> Result<Flat, Failed> {
        self.split(back_end)?.with_kernels()
    }
}

impl Flat {
    /// The program with the code of its kernels, which each device's back end makes of its module, in its globals.
    fn with_kernels(mut self) -> Result<Flat, Failed> {
        let Flat { options, report, module, .. } = &mut self;
        for device in std::mem::take(&mut module.devices) {
            let Some(back_end) = back_end(&device) else { continue };
            let size = |code: &Result<Vec<u8>, _>| code.as_ref().map_or(0, Vec::len);
            let code = report.time(options, "device", |_| (back_end.code)(options, &device.module), size);
            let code = code.map_err(|d| report.report(*d))?;
            module.set_bytes(device.code, &code);
            for &(global, span, kernel) in &device.launches {
                let place = report.sources.place(users_launch(report, span, device.module.func(kernel)));
                module.set_bytes(global, place.as_bytes());
            }
            module.devices.push(device);
        }
        Ok(self)
    }

    /// The kernels of a program for back ends, as the code that each makes of their modules.
    pub(crate) fn kernels(&mut self, codes: &[(&str, CodeOf)]) -> Result<Vec<Vec<u8>>, Failed> {
        let mut made = Vec::new();
        for (name, code) in codes {
            for device in self.module.devices.iter().filter(|d| back_end(d).is_some_and(|b| b.name == *name)) {
                made.push(code(&self.options, &device.module).map_err(|d| self.report.report(*d))?);
            }
        }
        Ok(made)
    }
}

/// The user's part of a launch: the launch, or the first instruction of a kernel that a library launches.
fn users_launch(report: &Report, launch: Span, kernel: &Function) -> Span {
    let is_users = |span: &Span| !span.is_none() && !report.is_library(span.file);
    let mut all = kernel.blocks.iter().flat_map(|b| b.insts.iter().map(|i| i.span));
    if is_users(&launch) { launch } else { all.find(is_users).unwrap_or(launch) }
}

/// A program whose kernels are modules of their own, without code.
pub(crate) fn split(options: &Options, files: &Files) -> Result<Flat, Failed> {
    FrontEnd::new(options.clone(), files.clone()).graph()?.residual()?.split(&LLVM)
}

/// The kernels of a program for back ends, as the text that each makes of their modules.
pub(crate) fn code(options: &Options, files: &Files, codes: &[(&str, CodeOf)]) -> Result<(String, Report), Failed> {
    let mut flat = split(options, files)?;
    let all = flat.kernels(codes)?.concat();
    let text = if all.is_empty() { NO_KERNEL.into() } else { String::from_utf8_lossy(&all).into_owned() };
    Ok((text, flat.report))
}

/// The device modules of a program as text, one after the other.
pub(crate) fn text(options: &Options, files: &Files, function: Option<&str>) -> Result<(String, Report), Failed> {
    let flat = split(options, files)?;
    let mut text = print(&flat.module, function);
    if text.is_empty() {
        text.push_str(NO_KERNEL);
    }
    Ok((text, flat.report))
}

/// The modules of a module's devices as text; one function of them, if named.
pub(crate) fn print(module: &Module, function: Option<&str>) -> String {
    let mut text = String::new();
    for device in &module.devices {
        let platform = PLATFORMS.get(device.platform as usize).unwrap_or(&"device");
        text.push_str(&format!("; {platform}\n"));
        text.push_str(&nyala_flat::print(&device.module, &|f| function.is_none_or(|name| f.name == name)));
    }
    text
}
