//! Kernels of a program, from the modules that `lower-launches` makes of them to the code that the program carries.
//! Separate from the host's pipeline, since each platform has a compiler of its own
//! ([`DEVICES`]).

use crate::pipelines::{DEVICES, DeviceBackEnd, LLVM};
use crate::{Reported, Session};
use nyala_base::Span;
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
const NO_KERNEL: &str =
    "// No kernel for a device: with `--device host` kernels are functions of the program, see `--stage flat`.\n";

/// The platforms that code can be made for, as indices of [`PLATFORMS`].
pub(crate) fn platforms() -> Vec<u32> {
    let has_back_end = |p: &str| DEVICES.iter().any(|d| d.platforms.contains(&p));
    PLATFORMS.iter().enumerate().filter(|(_, p)| has_back_end(p)).map(|(i, _)| i as u32).collect()
}

fn back_end(device: &DeviceModule) -> Option<&'static DeviceBackEnd> {
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
pub(crate) type CodeOf<'a> = &'a dyn Fn(&mut Session, &Module) -> Result<Vec<u8>, Reported>;

impl Session {
    /// Gives each device module what its back end needs: the address spaces of statics, or of all addresses.
    pub(crate) fn prepare_devices(&mut self, module: &mut Module) -> Result<(), Reported> {
        for device in &mut module.devices {
            let Some(back_end) = back_end(device) else { continue };
            if back_end.generic {
                nyala_kernels::place_statics(&mut device.module, back_end.statics);
                continue;
            }
            let found = nyala_kernels::infer_spaces(&mut device.module, back_end.statics);
            self.sink.diagnostics.extend(found);
            // An address with two spaces is left as it was.
            if !self.sink.has_errors() {
                nyala_flat::simplify_branches(&mut device.module);
                self.verify_flat("infer-spaces", &device.module)?;
            }
        }
        self.checked(Some(()))
    }

    /// Compiles the device modules of a program, and puts their code into its globals.
    pub(crate) fn compile_devices(&mut self, module: &mut Module) -> Result<(), Reported> {
        for device in std::mem::take(&mut module.devices) {
            let Some(back_end) = back_end(&device) else { continue };
            let code =
                self.time("device", |s| (back_end.code)(s, &device.module), |code| code.as_ref().map_or(0, Vec::len))?;
            module.set_bytes(device.code, &code);
            for &(global, span, kernel) in &device.launches {
                let place = self.sources.place(self.users_launch(span, device.module.func(kernel)));
                module.set_bytes(global, place.as_bytes());
            }
            module.devices.push(device);
        }
        Ok(())
    }

    /// The user's part of a launch: the launch, or the first instruction of a kernel that a library launches.
    fn users_launch(&self, launch: Span, kernel: &Function) -> Span {
        let is_users = |span: &Span| !span.is_none() && !self.library_files.contains(&span.file);
        let mut all = kernel.blocks.iter().flat_map(|b| b.insts.iter().map(|i| i.span));
        if is_users(&launch) { launch } else { all.find(is_users).unwrap_or(launch) }
    }

    /// The kernels of a program for back ends, as the text that each makes of their modules.
    pub(crate) fn device_code(&mut self, codes: &[(&str, CodeOf)]) -> Result<String, Reported> {
        let all = self.device_modules(codes)?.concat();
        Ok(if all.is_empty() { NO_KERNEL.into() } else { String::from_utf8_lossy(&all).into_owned() })
    }

    /// The kernels of a program for back ends, as the code that each makes of their modules.
    pub(crate) fn device_modules(&mut self, codes: &[(&str, CodeOf)]) -> Result<Vec<Vec<u8>>, Reported> {
        let world = self.graph()?;
        let residual = self.residual(&world)?;
        let (module, _) = self.flat_passes(&residual, &LLVM)?;
        let mut made = Vec::new();
        for (name, code) in codes {
            for device in module.devices.iter().filter(|d| back_end(d).is_some_and(|b| b.name == *name)) {
                made.push(code(self, &device.module)?);
            }
        }
        Ok(made)
    }

    /// The device modules of a program as text, one after the other.
    pub(crate) fn device_text(&mut self, function: Option<&str>) -> Result<String, Reported> {
        let world = self.graph()?;
        let residual = self.residual(&world)?;
        let (module, _) = self.flat_passes(&residual, &LLVM)?;
        let mut text = String::new();
        for device in &module.devices {
            let platform = PLATFORMS.get(device.platform as usize).unwrap_or(&"device");
            text.push_str(&format!("; {platform}\n"));
            text.push_str(&nyala_flat::print(&device.module, &|f| function.is_none_or(|name| f.name == name)));
        }
        if text.is_empty() {
            text.push_str(NO_KERNEL);
        }
        Ok(text)
    }
}
