//! Calls with the internal and with C's convention, and calls in tail position, which are jumps.

use crate::function::{FunctionEmitter, MAX_TINY};
use crate::types::RetClass;
use crate::{gpu, rounding};
use nyala_base::{Diagnostic, Id};
use nyala_flat::{Block, Callee, Func, Function, Inst, InstOp, Linkage, Value};
use nyala_ir::Ty;

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

impl FunctionEmitter<'_, '_> {
    /// The calling convention of a function with these arguments.
    fn convention(&mut self, args: &[Value]) -> &'static str {
        let tys: Vec<Ty> = args.iter().map(|&a| self.ty(a)).collect();
        self.e.convention(&tys)
    }

    fn passes_vectors_by_address(&mut self, args: &[Value]) -> bool {
        let tys: Vec<Ty> = args.iter().map(|&a| self.ty(a)).collect();
        self.e.passes_vectors_by_address(&tys)
    }

    /// Arguments for a call with the internal convention.
    fn args(&mut self, args: &[Value]) -> Result<Vec<String>> {
        let mut out = Vec::new();
        let by_address = self.passes_vectors_by_address(args);
        for &v in args {
            if by_address && self.e.layouts.has_vector(self.ty(v)) {
                let copy = self.temp();
                self.alloca(&copy, self.ty(v))?;
                self.write(&copy, v)?;
                out.push(format!("ptr {copy}"));
            } else if self.in_memory(v) {
                // The callee may write to its argument, so it gets a copy.
                let (copy, value, ty) = (self.temp(), self.op(v), self.ty(v));
                self.alloca(&copy, ty)?;
                self.copy(&copy, &value, ty)?;
                out.push(format!("ptr {copy}"));
            } else if self.is_mask(self.ty(v)) {
                out.push(self.part_operand(v)?);
            } else {
                out.push(self.typed(v)?);
            }
        }
        Ok(out)
    }

    pub fn emit_call(&mut self, result: Value, callee: Callee, args: &[Value], rets: &[Ty]) -> Result<()> {
        if let Callee::Func(func) = callee {
            if matches!(self.e.module.func(func).linkage, Linkage::Asm(_)) {
                return self.emit_assembly(result, func, args);
            }
            gpu::refuse_on_host(self, func)?;
            if gpu::is_intrinsic(self, func) {
                return gpu::intrinsic(self, result, func, args);
            }
            if let Some((ret, params)) = self.e.plain_foreign(func)? {
                return self.emit_foreign_call(result, func, args, &ret, &params);
            }
        }
        let target = match callee {
            Callee::Func(func) => self.e.internal_name(func),
            Callee::Indirect(v) => self.op(v),
        };
        let is_tiny = matches!(callee, Callee::Func(f) if is_tiny(self.e.module.func(f)));
        let attr = if is_tiny { "#1" } else { self.call_attributes };
        let cc = self.convention(args);
        let group = self.e.jumping_group[self.func.idx()];
        let back = matches!(callee, Callee::Func(f) if group.is_some() && self.e.jumping_group[f.idx()] == group);
        let tail = if back { "notail " } else { "" };
        let mut texts = self.args(args)?;
        let name = self.op(result);
        match self.e.layouts.ret_class(rets)? {
            RetClass::Memory => {
                let result_ty = self.ty(result);
                let memory = if self.in_memory(result) { name.clone() } else { self.temp() };
                self.alloca(&memory, result_ty)?;
                texts.insert(0, format!("ptr {memory}"));
                self.line(format_args!("{tail}call {cc}void {target}({}) {attr}", texts.join(", ")));
                if memory != name {
                    self.read(&name, &memory, result_ty)?;
                }
            }
            RetClass::Direct(ty) if ty == "void" => {
                self.line(format_args!("{tail}call {cc}void {target}({}) {attr}", texts.join(", ")));
                self.operands[result.idx()] = "zeroinitializer".into();
            }
            RetClass::Direct(ty) => {
                self.line(format_args!("{name} = {tail}call {cc}{ty} {target}({}) {attr}", texts.join(", ")));
            }
        }
        Ok(())
    }

    fn emit_foreign_call(
        &mut self,
        result: Value,
        func: Func,
        args: &[Value],
        ret: &str,
        params: &[String],
    ) -> Result<()> {
        let (symbol, params, texts) = self.foreign_callee(func, params, args)?;
        let (name, attributes) = (self.op(result), rounding::attributes(&symbol, ret, params));
        if ret == "void" {
            self.line(format_args!("call void {symbol}({}) #1", texts.join(", ")));
            self.operands[result.idx()] = "zeroinitializer".into();
        } else {
            self.line(format_args!("{name} = call {ret} {symbol}({}) {attributes}", texts.join(", ")));
        }
        Ok(())
    }

    /// What a call of a foreign function calls, the types of its parameters, and its arguments.
    fn foreign_callee<'p>(
        &mut self,
        func: Func,
        params: &'p [String],
        args: &[Value],
    ) -> Result<(String, &'p [String], Vec<String>)> {
        let (callee, params, args) = match args {
            [address, args @ ..] if self.e.module.func(func).is_call_of_address() => {
                (self.op(*address), &params[1..], args)
            }
            _ => (self.e.c_name(func)?, params, args),
        };
        let texts = params.iter().zip(args).map(|(p, &a)| format!("{p} {}", self.op(a))).collect();
        Ok((callee, params, texts))
    }

    pub fn emit_tail_call(&mut self, b: Block, callee: Callee, args: &[Value]) -> Result<()> {
        let by_address = args.iter().any(|&a| self.in_memory(a)) || self.passes_vectors_by_address(args);
        let foreign = matches!(callee, Callee::Func(f) if self.e.plain_foreign(f)?.is_some());
        if by_address || foreign || self.keeps_frame[b.idx()] {
            return self.emit_plain_tail_call(callee, args);
        }
        let target = match callee {
            Callee::Func(func) => self.e.internal_name(func),
            Callee::Indirect(v) => self.op(v),
        };
        let mut texts = self.args(args)?;
        let (kind, cc) = (self.tail_kind(args), self.convention(args));
        match self.ret.clone() {
            RetClass::Memory => {
                texts.insert(0, "ptr %ret".into());
                self.line(format_args!("{kind} call {cc}void {target}({}) #1", texts.join(", ")));
                self.line(format_args!("ret void"));
            }
            RetClass::Direct(ty) if ty == "void" => {
                self.line(format_args!("{kind} call {cc}void {target}({}) #1", texts.join(", ")));
                self.line(format_args!("ret void"));
            }
            RetClass::Direct(ty) => {
                let result = self.temp();
                self.line(format_args!("{result} = {kind} call {cc}{ty} {target}({}) #1", texts.join(", ")));
                self.line(format_args!("ret {ty} {result}"));
            }
        }
        Ok(())
    }

    /// The marker of a tail call with these arguments. See Note [Tail calls and stack arguments].
    fn tail_kind(&mut self, args: &[Value]) -> &'static str {
        if !self.e.target().tail_calls {
            return "tail";
        }
        let function = self.function;
        let callee: Vec<Ty> = args.iter().map(|&a| self.ty(a)).collect();
        let same_convention =
            self.e.convention(&function.params) == self.e.cc && self.e.convention(&callee) == self.e.cc;
        let mut in_registers = |tys: &[Ty]| {
            let (mut ints, mut floats) = ((self.ret == RetClass::Memory) as u64, 0);
            for &ty in tys {
                let (i, f) = if self.e.layouts.in_memory(ty) { (1, 0) } else { self.e.layouts.leaves(ty) };
                ints += i;
                floats += f;
            }
            ints <= 6 && floats <= 8
        };
        if same_convention && in_registers(&callee) && in_registers(&function.params) { "musttail" } else { "tail" }
    }

    /// Emits a call in tail position during which the frame must stay alive.
    fn emit_plain_tail_call(&mut self, callee: Callee, args: &[Value]) -> Result<()> {
        if let Callee::Func(func) = callee
            && let Some((ret, params)) = self.e.plain_foreign(func)?
        {
            let (symbol, params, texts) = self.foreign_callee(func, &params, args)?;
            let attributes = rounding::attributes(&symbol, &ret, params);
            let call = format!("call {ret} {symbol}({}) {attributes}", texts.join(", "));
            match self.ret.clone() {
                RetClass::Direct(ty) if ty != "void" && ret != "void" => {
                    let result = self.temp();
                    self.line(format_args!("{result} = {call}"));
                    self.line(format_args!("ret {ty} {result}"));
                }
                RetClass::Direct(ty) if ty != "void" => {
                    self.line(format_args!("{call}"));
                    self.line(format_args!("ret {ty} zeroinitializer"));
                }
                _ => {
                    self.line(format_args!("{call}"));
                    self.line(format_args!("ret void"));
                }
            }
            return Ok(());
        }
        let target = match callee {
            Callee::Func(func) => self.e.internal_name(func),
            Callee::Indirect(v) => self.op(v),
        };
        let mut texts = self.args(args)?;
        let cc = self.convention(args);
        match self.ret.clone() {
            RetClass::Direct(ty) if ty != "void" => {
                let result = self.temp();
                self.line(format_args!("{result} = call {cc}{ty} {target}({}) #1", texts.join(", ")));
                self.line(format_args!("ret {ty} {result}"));
            }
            class => {
                if class == RetClass::Memory {
                    texts.insert(0, "ptr %ret".into());
                }
                self.line(format_args!("call {cc}void {target}({}) #1", texts.join(", ")));
                self.line(format_args!("ret void"));
            }
        }
        Ok(())
    }
}

/// Whether inlining a function adds no more code than its call.
fn is_tiny(function: &Function) -> bool {
    let is_call = |i: &Inst| matches!(i.op, InstOp::Call(_) | InstOp::CallIndirect);
    match &function.blocks[..] {
        [only] => !function.is_piece && only.insts.len() <= MAX_TINY && !only.insts.iter().any(is_call),
        _ => false,
    }
}

// Note [Tail calls and stack arguments]
//
// `tailcc` guarantees that a call in tail position is a jump, whether it is marked `musttail` or only `tail`. The first
// mark keeps LLVM's passes from separating the call from its return. But LLVM 22 on x86-64 does not write stack arguments
// of a `musttail` call where they need more space than the caller's own (seen with eight integers called from one), and
// at -O0 not even where they need the same. So that mark is used only where there are none.
