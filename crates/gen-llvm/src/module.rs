//! An LLVM module in memory: read from text, verified, optimized, written as assembly or as an object.

use crate::assembly::AsmCheck;
use crate::confined;
use crate::diagnostics::{bug, intrinsic_type, invalid_asm};
use crate::emit::{Emitted, emit_module};
use crate::endless::{self, Loops, Outcome};
use crate::gpu::LIBDEVICE;
use crate::options::{Options, Sanitizer};
use crate::{contraction, divisions, frames, libdevice, loads, targets};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::{Context, ContextRef};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use inkwell::values::FunctionValue;
use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
    LLVMGetModuleContext,
};
use llvm_sys::ir_reader::LLVMParseIRInContext2;
use llvm_sys::prelude::LLVMDiagnosticInfoRef;
use nyala_base::{Diagnostic, Span};
use nyala_ir::lanes::{GPU_INTRINSICS, is_gpu_intrinsic};
use nyala_ir::{Arch, Target};
use std::ffi::{CStr, c_void};
use std::sync::Mutex;

/// One LLVM module, verified.
pub struct LlvmModule {
    // Dropped before the context it lies in.
    module: Module<'static>,
    machine: TargetMachine,
    context: Box<Context>,
    /// Errors that LLVM reported; boxed because the context holds its address.
    errors: Box<Mutex<Vec<String>>>,
    target: Target,
    options: Options,
    asm_checks: Vec<AsmCheck>,
    /// What the module was read from, for a second reading.
    text: String,
}

/// LLVM's diagnostic handler, which notes errors; without it an error would end the process.
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

/// The fault in a module's assembly after LLVM reported `message`: compiles each piece alone.
fn find_asm_fault(checks: &[AsmCheck], message: &str, target: &Target, options: &Options) -> Box<Diagnostic> {
    for check in checks {
        let module = LlvmModule::from_text(&check.text, target, options);
        let said = match module.and_then(|m| m.object()) {
            Ok(_) => continue,
            Err(d) => d.message,
        };
        return Box::new(invalid_asm::error(check.span, &said));
    }
    Box::new(invalid_asm::error(Span::NONE, message))
}

/// Reads a module's text. It lives as long as its context, which the caller sees to. `Context::create_module_from_ir` would leave the
/// text in memory.
fn read(context: &Context, text: &str) -> Result<Module<'static>, String> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "nyala");
    let (mut module, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: context and buffer live during the call, which keeps neither; module or message are there afterwards, and are the
    // caller's own.
    unsafe {
        if LLVMParseIRInContext2(context.raw(), buffer.as_mut_ptr(), &mut module, &mut message) == 0 {
            return Ok(Module::new(module));
        }
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        Err(text)
    }
}

impl Emitted {
    /// Parses the text into an LLVM module, and verifies it.
    pub fn parse(&self, options: &Options) -> Result<LlvmModule, Box<Diagnostic>> {
        LlvmModule::new(&self.text, &self.target, options, &self.asm_checks)
    }
}

/// Emits a module to LLVM, and verifies it.
pub fn emit(module: &nyala_flat::Module, options: &Options) -> Result<LlvmModule, Box<Diagnostic>> {
    emit_module(module, options, None)?.parse(options)
}

impl LlvmModule {
    /// Parses a module for a machine from LLVM's text form, and verifies it.
    pub fn from_text(text: &str, target: &Target, options: &Options) -> Result<LlvmModule, Box<Diagnostic>> {
        LlvmModule::new(text, target, options, &[])
    }

    /// Like [`LlvmModule::from_text`], with the assembly in the text for error messages.
    pub(crate) fn new(
        text: &str,
        target: &Target,
        options: &Options,
        asm_checks: &[AsmCheck],
    ) -> Result<LlvmModule, Box<Diagnostic>> {
        let machine = targets::machine(target, options.opt_level)?;
        let context = Box::new(Context::create());
        let errors: Box<Mutex<Vec<String>>> = Box::default();
        let fault = |e: String| match asm_checks {
            [_, ..] if e.contains("asm") => find_asm_fault(asm_checks, &e, target, options),
            _ if target.is_gpu() && GPU_INTRINSICS.iter().any(|prefix| e.contains(prefix)) => {
                Box::new(intrinsic_type::of_gpu(&e))
            }
            _ => bug(e),
        };
        let module = read(&context, text).map_err(fault)?;
        // SAFETY: the module and its context live; the errors are boxed and outlive them.
        unsafe {
            let address = (&raw const *errors).cast_mut().cast();
            LLVMContextSetDiagnosticHandler(LLVMGetModuleContext(module.as_mut_ptr()), Some(note_error), address);
        }
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        if let Some(file) = options.libdevice.as_ref().filter(|_| target.is_gpu() && text.contains(LIBDEVICE)) {
            // SAFETY: as above, the context is boxed and outlives the module.
            let context = unsafe { ContextRef::new(LLVMGetModuleContext(module.as_mut_ptr())) };
            libdevice::link(context, &module, file)?;
        }
        module.verify().map_err(|e| fault(e.to_string()))?;
        let is_unknown =
            |f: &FunctionValue| f.get_intrinsic_id() == 0 && f.get_name().to_str().is_ok_and(is_gpu_intrinsic);
        if let Some(unknown) = module.get_functions().find(is_unknown) {
            return Err(fault(format!("there is no `{}`", unknown.get_name().to_string_lossy())));
        }
        if options.confined {
            confined::confine(&module);
        }
        Ok(LlvmModule {
            module,
            machine,
            context,
            errors,
            target: target.clone(),
            options: options.clone(),
            asm_checks: asm_checks.to_vec(),
            text: text.to_string(),
        })
    }

    /// The module in LLVM's text form.
    pub fn ir_text(&self) -> String {
        self.module.print_to_string().to_string()
    }

    /// Runs LLVM's default pipeline for the module's optimization level, then works around miscompilations.
    pub fn optimize(&mut self) -> Result<(), Box<Diagnostic>> {
        self.run_pipeline()?;
        let loops = Loops::of(&self.module);
        if self.options.opt_level > 0 && !loops.is_empty() {
            self.settle(&loops)?;
        }
        if self.target.is_gpu() && self.options.opt_level == 0 {
            // A kernel's stack is small: calls in tail position are loops at each level.
            self.run_passes("function(tailcallelim)")?;
        }
        if self.target.arch == Arch::X86_64 {
            if self.options.opt_level > 0 {
                contraction::contract(&self.module, &self.target).map_err(bug)?;
            }
            divisions::shield(&self.module).map_err(bug)?;
            frames::anchor(&self.module, &self.machine.get_target_data()).map_err(bug)?;
        }
        if !self.target.is_gpu() {
            loads::separate(&self.module).map_err(bug)?;
        }
        match self.options.sanitizer.filter(|_| !self.target.is_gpu()) {
            Some(sanitizer) => self.sanitize(sanitizer),
            None => Ok(()),
        }
    }

    fn run_pipeline(&mut self) -> Result<(), Box<Diagnostic>> {
        self.run_passes(&format!("default<O{}>", self.options.opt_level.min(3)))?;
        if self.options.opt_level >= 2 {
            // See `NO_LOAD_PRE` in `targets`.
            self.run_passes("function(gvn<load-pre>)")?;
        }
        if self.target.is_gpu() && self.options.opt_level > 0 {
            // Memory of a block is reached by generic addresses, of which LLVM knows no alignment: then vectors are read number by number.
            self.run_passes("function(infer-address-spaces,infer-alignment)")?;
        }
        match self.options.opt_level > 0 && endless::has_fixed_exits(&self.module) {
            true => self.run_passes(
                "function(loop-simplify,lcssa,loop-mssa(simple-loop-unswitch<nontrivial;trivial>),simplifycfg)",
            ),
            false => Ok(()),
        }
    }

    /// Settles what becomes of endless loops, see `endless.rs`.
    fn settle(&mut self, loops: &Loops) -> Result<(), Box<Diagnostic>> {
        let mut other = LlvmModule::new(&self.text, &self.target, &self.options, &self.asm_checks)?;
        endless::forget(&other.module, self.target.is_gpu()).map_err(bug)?;
        other.run_pipeline()?;
        match loops.compare(&Loops::of(&other.module)) {
            Outcome::Keep => {}
            Outcome::Trap => {
                endless::trap(&self.module).map_err(bug)?;
                self.run_passes("function(simplifycfg)")?;
            }
            Outcome::Other => *self = other,
        }
        Ok(())
    }

    /// Reports each access of memory to a tool. Comes last, so that only accesses that are left count.
    fn sanitize(&mut self, sanitizer: Sanitizer) -> Result<(), Box<Diagnostic>> {
        let kind = Attribute::get_named_enum_kind_id(&format!("sanitize_{}", sanitizer.name()));
        let attribute = self.context.create_enum_attribute(kind, 0);
        for function in self.module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        self.run_passes(match sanitizer {
            Sanitizer::Address => "asan",
            Sanitizer::Thread => "tsan-module,function(tsan)",
        })
    }

    /// Runs a pipeline in the notation of `opt -passes=`.
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

    /// The target's assembly for the module.
    pub fn asm_text(&self) -> Result<String, Box<Diagnostic>> {
        let text = self.code(FileType::Assembly)?;
        Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string())
    }

    /// The module as an object file.
    pub fn object(&self) -> Result<Vec<u8>, Box<Diagnostic>> {
        self.code(FileType::Object)
    }

    fn code(&self, kind: FileType) -> Result<Vec<u8>, Box<Diagnostic>> {
        let buffer = self.machine.write_to_memory_buffer(&self.module, kind).map_err(|e| bug(e.to_string()))?;
        let errors = std::mem::take(&mut *self.errors.lock().unwrap_or_else(|e| e.into_inner()));
        match errors.first() {
            None => Ok(buffer.as_slice().to_vec()),
            Some(e) if self.asm_checks.is_empty() => Err(bug(e)),
            Some(e) => Err(find_asm_fault(&self.asm_checks, e, &self.target, &self.options)),
        }
    }
}
