//! An LLVM module in memory: read from text, verified, optimized, written as assembly or as an object.

use crate::assembly::{self, AsmCheck};
use crate::{diagnostics, divisions, targets};
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
    LLVMGetModuleContext,
};
use llvm_sys::prelude::LLVMDiagnosticInfoRef;
use nyala_base::{Diagnostic, Span};
use std::ffi::{CStr, c_void};
use std::sync::Mutex;

/// What code is made for, and how well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// 0 to 3, as in `-O3`.
    pub opt_level: u8,
    /// The triple of the machine; `None` is this one's.
    pub target: Option<String>,
    /// LLVM's name of the CPU; `None` is this machine's, of a foreign target its least.
    pub cpu: Option<String>,
    /// Further CPUs that each function is made for; the best is chosen when the code is loaded.
    pub more_cpus: Vec<String>,
    /// Bits of the vectors that LLVM makes of loops without any, on x86-64; `None` leaves it to LLVM. Those that a program
    /// has are as wide as registers are.
    pub vector_width: Option<u32>,
    /// Signed overflow wraps instead of being undefined.
    pub wrap: bool,
    /// Floating-point arithmetic may be reassociated and contracted, and sees no NaN or infinity.
    pub fast_math: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            opt_level: 3,
            target: None,
            cpu: None,
            more_cpus: Vec::new(),
            vector_width: None,
            wrap: false,
            fast_math: false,
        }
    }
}

impl Options {
    /// The target's architecture, as its triple begins; empty for this machine's.
    pub(crate) fn arch(&self) -> &str {
        self.target.as_deref().and_then(|t| t.split('-').next()).unwrap_or("")
    }

    /// Whether C's convention is that of System V on x86-64.
    pub(crate) fn is_system_v(&self) -> bool {
        let here = cfg!(all(target_arch = "x86_64", not(windows)));
        match &self.target {
            None => here,
            Some(triple) => triple.starts_with("x86_64") && !triple.contains("windows"),
        }
    }

    /// Whether LLVM makes every call in tail position a jump on this target; elsewhere it does where it can.
    pub fn has_tail_calls(&self) -> bool {
        let is_windows = self.target.as_deref().is_some_and(|t| t.contains("windows"));
        ["", "x86_64", "aarch64"].contains(&self.arch()) && !is_windows
    }
}

/// One LLVM module, verified.
pub struct LlvmModule {
    // Dropped before the context it lies in.
    module: Module<'static>,
    machine: TargetMachine,
    #[expect(dead_code, reason = "owns what `module` refers to")]
    context: Box<Context>,
    /// Errors that LLVM reported; boxed because the context holds its address.
    errors: Box<Mutex<Vec<String>>>,
    options: Options,
    asm_checks: Vec<AsmCheck>,
}

/// Called by LLVM with what it has to say; without it an error would end the process.
extern "C" fn note_error(info: LLVMDiagnosticInfoRef, errors: *mut c_void) {
    // SAFETY: `new` registered this function with the address of its errors, which live as long as the context; the
    // message is copied and given back.
    unsafe {
        if LLVMGetDiagInfoSeverity(info) != LLVMDiagnosticSeverity::LLVMDSError {
            return;
        }
        let message = LLVMGetDiagInfoDescription(info);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        let errors = &*errors.cast::<Mutex<Vec<String>>>();
        errors.lock().unwrap_or_else(|e| e.into_inner()).push(text);
    }
}

/// A fault of this compiler, not of its user.
pub(crate) fn bug(message: impl std::fmt::Display) -> Box<Diagnostic> {
    Box::new(diagnostics::bug::error(Span::NONE, format!("in code generation: {message}")))
}

/// Something known that is not done yet.
pub(crate) fn limitation(message: impl Into<String>) -> Box<Diagnostic> {
    let hint = "use a smaller type, or pass it by a pointer";
    Box::new(diagnostics::limitation::error(Span::NONE, message, hint))
}

impl LlvmModule {
    /// Reads a module from LLVM's text form and verifies it.
    pub fn from_text(text: &str, options: &Options) -> Result<LlvmModule, Box<Diagnostic>> {
        LlvmModule::new(text, options, options.opt_level, &[])
    }

    /// The same, with another level for instruction selection and register allocation, and the assembly in the text.
    pub(crate) fn new(
        text: &str,
        options: &Options,
        codegen_level: u8,
        asm_checks: &[AsmCheck],
    ) -> Result<LlvmModule, Box<Diagnostic>> {
        let machine = targets::machine(options, codegen_level)?;
        let context = Box::new(Context::create());
        let errors: Box<Mutex<Vec<String>>> = Box::default();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "nyala");
        let fault = |e: String| match asm_checks {
            [_, ..] if e.contains("asm") => assembly::find_fault(asm_checks, &e, options),
            _ => bug(e),
        };
        let module = context.create_module_from_ir(buffer).map_err(|e| fault(e.to_string()))?;
        // SAFETY: the context is boxed and outlives the module, which stands before it in the struct.
        let module = unsafe { std::mem::transmute::<Module<'_>, Module<'static>>(module) };
        // SAFETY: the module and its context live; the errors are boxed and outlive them.
        unsafe {
            let address = (&raw const *errors).cast_mut().cast();
            LLVMContextSetDiagnosticHandler(LLVMGetModuleContext(module.as_mut_ptr()), Some(note_error), address);
        }
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        module.verify().map_err(|e| fault(e.to_string()))?;
        Ok(LlvmModule { module, machine, context, errors, options: options.clone(), asm_checks: asm_checks.to_vec() })
    }

    /// LLVM's text form.
    pub fn ir_text(&self) -> String {
        self.module.print_to_string().to_string()
    }

    /// Runs LLVM's default pipeline of the module's optimization level; what LLVM would make wrong code of is changed then.
    pub fn optimize(&mut self) -> Result<(), Box<Diagnostic>> {
        let pipeline = format!("default<O{}>", self.options.opt_level.min(3));
        self.run_passes(&pipeline)?;
        if self.machine.get_triple().as_str().to_bytes().starts_with(b"x86_64") {
            divisions::shield(&self.module).map_err(bug)?;
        }
        Ok(())
    }

    /// Runs any pipeline that `opt -passes=` takes.
    pub fn run_passes(&mut self, pipeline: &str) -> Result<(), Box<Diagnostic>> {
        let options = PassBuilderOptions::create();
        if self.options.opt_level >= 2 {
            options.set_loop_vectorization(true);
            options.set_loop_slp_vectorization(true);
            options.set_loop_interleaving(true);
            options.set_loop_unrolling(true);
        }
        self.module.run_passes(pipeline, &self.machine, options).map_err(|e| bug(e.to_string()))?;
        self.module.verify().map_err(|e| bug(e.to_string()))
    }

    /// Assembly of the target.
    pub fn asm_text(&self) -> Result<String, Box<Diagnostic>> {
        let text = self.code(FileType::Assembly)?;
        Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string())
    }

    /// An object file.
    pub fn object(&self) -> Result<Vec<u8>, Box<Diagnostic>> {
        self.code(FileType::Object)
    }

    fn code(&self, kind: FileType) -> Result<Vec<u8>, Box<Diagnostic>> {
        let buffer = self.machine.write_to_memory_buffer(&self.module, kind).map_err(|e| bug(e.to_string()))?;
        let errors = std::mem::take(&mut *self.errors.lock().unwrap_or_else(|e| e.into_inner()));
        match errors.first() {
            None => Ok(buffer.as_slice().to_vec()),
            Some(e) if self.asm_checks.is_empty() => Err(bug(e)),
            Some(e) => Err(assembly::find_fault(&self.asm_checks, e, &self.options)),
        }
    }
}
