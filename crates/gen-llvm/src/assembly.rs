//! Assembly in programs: its calls as LLVM text.
//!
//! LLVM checks constraints when it reads the text of a module, and the template when it writes machine code. To locate
//! a fault in the source, each piece of assembly also gets a module of its own ([`AsmCheck`]), which is compiled alone.

use crate::diagnostics::{bug, invalid_asm};
use crate::function::FunctionEmitter;
use nyala_base::{Diagnostic, Span};
use nyala_flat::{Func, Linkage, Value};
use nyala_ir::TyKind;

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// A module that contains only one piece of assembly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AsmCheck {
    pub span: Span,
    pub text: String,
}

impl FunctionEmitter<'_, '_> {
    /// Emits a call of assembly.
    pub fn emit_assembly(&mut self, result: Value, func: Func, args: &[Value]) -> Result<()> {
        let function = self.e.module.func(func);
        let Linkage::Asm(info) = &function.linkage else { return Err(bug("a call of no assembly")) };
        let span = function.span;
        let (by_address, n_results) = info.operands();
        if by_address.len() != args.len() || n_results != function.rets.len() {
            let found = format!("{} inputs and {} outputs", args.len(), function.rets.len());
            let wanted = format!("{} and {n_results}", by_address.len());
            return Err(Box::new(invalid_asm::error(
                span,
                &format!("it has {found}, but constraints `{}` for {wanted}", info.constraints),
            )));
        }
        if !info.constraints.is_ascii() {
            return Err(Box::new(invalid_asm::error(span, "its constraints are not all ASCII")));
        }
        if info.constraints.split(',').any(|c| c.starts_with('+')) {
            let fault = "an operand that is both is an output and an input tied to it: `=r,0`, not `+r`";
            return Err(Box::new(invalid_asm::error(span, fault)));
        }
        let mut constraints = Vec::new();
        for constraint in info.constraints.split(',') {
            let Some(constraint) = in_registers(constraint) else {
                let fault = format!("`{constraint}` is a result in memory, for which an address is given: `=*m`");
                return Err(Box::new(invalid_asm::error(span, &fault)));
            };
            constraints.push(constraint);
        }
        let is_gpu = self.e.target().is_gpu();
        let template = if is_gpu { of_cuda(&info.template) } else { info.template.clone() };
        if let Some(fault) = template_fault(&template, args.len() + n_results) {
            return Err(Box::new(invalid_asm::error(span, &fault)));
        }
        let (mut texts, mut params) = (Vec::new(), Vec::new());
        for (i, (&arg, by_address)) in args.iter().zip(by_address).enumerate() {
            let ty = self.ty(arg);
            self.check_operand(ty, span)?;
            let pointee = self.e.module.types.pointee(ty);
            let attribute = match (by_address, pointee) {
                (true, Some(pointee)) => format!(" elementtype({})", self.e.layouts.memory(pointee)?),
                (true, None) => {
                    let fault = "an operand in memory (`*m`) is given by its address";
                    return Err(Box::new(invalid_asm::error(span, fault)));
                }
                (false, _) => String::new(),
            };
            let operand = self.part_operand(arg)?;
            let memory = self.e.layouts.memory(ty)?;
            let value = operand.strip_prefix(&memory).unwrap_or(&operand).trim_start();
            texts.push(format!("{memory}{attribute} {value}"));
            params.push((format!("{memory}{attribute} %a{i}"), format!("{memory} %a{i}")));
        }
        let mut rets = Vec::new();
        for &ty in &function.rets {
            self.check_operand(ty, span)?;
            rets.push(self.e.layouts.memory(ty)?);
        }
        let ret = match &rets[..] {
            [] => "void".to_string(),
            [one] => one.clone(),
            many => format!("{{ {} }}", many.join(", ")),
        };
        let mut callee = format!("{ret} asm");
        for (is_set, word) in
            [(info.volatile, " sideeffect"), (info.align_stack, " alignstack"), (info.intel, " inteldialect")]
        {
            callee.push_str(if is_set { word } else { "" });
        }
        callee.push_str(&format!(" {}, {}", quoted(&template), quoted(&constraints.join(","))));
        // Attributes of the call, by whether the assembly has effects.
        let (attributes, plain) = match info.touches_memory() {
            true => ("#1", "nounwind"),
            // Assembly of a GPU may exchange values of lanes.
            false if is_gpu => ("#11", "nounwind willreturn memory(none)"),
            false => ("#2", "nounwind willreturn memory(none)"),
        };
        let check = AsmCheck {
            span,
            text: format!(
                "define {ret} @check({}) {{\n  {}call {callee}({}) {plain}\n  ret {}\n}}\n",
                params.iter().map(|p| p.1.as_str()).collect::<Vec<_>>().join(", "),
                if rets.is_empty() { "" } else { "%r = " },
                params.iter().map(|p| p.0.as_str()).collect::<Vec<_>>().join(", "),
                if rets.is_empty() { "void".into() } else { format!("{ret} %r") },
            ),
        };
        if !self.e.asm_checks.contains(&check) {
            self.e.asm_checks.push(check);
        }
        let name = self.op(result);
        let call = format!("call {callee}({}) {attributes}", texts.join(", "));
        if rets.is_empty() {
            self.line(format_args!("{call}"));
            self.operands[nyala_base::Id::idx(result)] = "zeroinitializer".into();
        } else if rets.len() == 1 && self.e.layouts.is_bool(function.rets[0]) {
            let byte = self.temp();
            self.line(format_args!("{byte} = {call}"));
            self.narrow_bool(&name, &byte, &ret);
        } else {
            self.line(format_args!("{name} = {call}"));
        }
        Ok(())
    }

    fn check_operand(&self, ty: nyala_ir::Ty, span: Span) -> Result<()> {
        let types = &self.e.module.types;
        match types.kind(ty) {
            TyKind::Prim(_) | TyKind::Vector(..) | TyKind::Ptr { .. } | TyKind::Code => Ok(()),
            _ => Err(Box::new(invalid_asm::operand(span, &types.display(ty).to_string()))),
        }
    }
}

/// The constraint; for a result, without the alternatives in memory and those that are no location, on which LLVM may
/// crash. `None` if none is left.
fn in_registers(constraint: &str) -> Option<String> {
    let Some(output) = constraint.strip_prefix('=').filter(|c| !c.starts_with('*')) else {
        return Some(constraint.into());
    };
    let codes = output.trim_start_matches(['&', '%', '!']);
    let mut kept = format!("={}", &output[..output.len() - codes.len()]);
    let (mut chars, mut any) = (codes.chars(), codes.is_empty());
    while let Some(c) = chars.next() {
        match c {
            'm' | 'o' | 'V' | 'p' | 'X' | '<' | '>' | 'i' | 'n' | 's' | 'E' | 'F' => continue,
            '|' => {
                kept.push(c);
                continue;
            }
            'g' => kept.push('r'),
            _ => kept.push(c),
        }
        any = true;
        // The rest of the constraint code.
        let rest = chars.as_str();
        let own = match c {
            '{' => rest.find('}').map_or(rest.len(), |i| i + 1),
            '@' => rest.find('|').unwrap_or(rest.len()),
            '^' => rest.len().min(2),
            'Y' => rest.len().min(1),
            _ => 0,
        };
        kept.push_str(&rest[..own]);
        chars = rest[own..].chars();
    }
    any.then_some(kept)
}

/// The fault in the `$` operands of a template, on which LLVM would end the process.
fn template_fault(template: &str, n_operands: usize) -> Option<String> {
    let mut rest = template;
    let mut in_variants = false;
    while let Some((_, after)) = rest.split_once('$') {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        rest = &after[after.chars().next().map_or(0, char::len_utf8)..];
        let number = match after.bytes().next() {
            Some(b'$') => continue,
            Some(b'(') if !in_variants => {
                in_variants = true;
                continue;
            }
            Some(b'|') if in_variants => continue,
            Some(b')') if in_variants => {
                in_variants = false;
                continue;
            }
            Some(b'{') => {
                let Some((inner, end)) = rest.split_once('}') else { return Some("`${` is not closed".into()) };
                rest = end;
                let (number, modifier) = inner.split_once(':').unwrap_or((inner, "x"));
                if number.is_empty() && ["uid", "comment", "private"].contains(&modifier) {
                    continue;
                }
                if number.is_empty() || digits(number) != number.len() || modifier.chars().count() != 1 {
                    return Some(format!("`${{{inner}}}` is no operand"));
                }
                number
            }
            Some(b) if b.is_ascii_digit() => {
                rest = &after[digits(after)..];
                &after[..digits(after)]
            }
            _ => return Some("a `$` is followed by the number of an operand, or by another `$`".into()),
        };
        if number.parse::<usize>().map_or(true, |n| n >= n_operands) {
            return Some(format!(
                "there is no operand `${number}`: they are counted from `$0`, and there are {n_operands}"
            ));
        }
    }
    in_variants.then(|| "`$(` is not closed".into())
}

/// A template in LLVM's notation. In CUDA's, operands are `%0`, and `%%` is a percent sign; it is taken for CUDA's if it has
/// such operands.
fn of_cuda(template: &str) -> String {
    let has_operands = |sign: char| {
        let parts = template.split(sign).skip(1);
        parts.into_iter().any(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    if !has_operands('%') || has_operands('$') {
        return template.into();
    }
    let mut out = String::new();
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('%')) => {
                chars.next();
                out.push('%');
            }
            ('%', Some(d)) if d.is_ascii_digit() => out.push('$'),
            ('$', _) => out.push_str("$$"),
            _ => out.push(c),
        }
    }
    out
}

/// A text quoted in LLVM's notation.
fn quoted(text: &str) -> String {
    let symbol = crate::emit::quote(text);
    symbol.trim_start_matches('@').to_string()
}
