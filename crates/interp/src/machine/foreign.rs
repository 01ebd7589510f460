//! Foreign functions. Allocation, and everything else that concerns the checked memory, is done here; all others are
//! called.

use super::*;
use nyala_runtime::N_PLATFORMS;

impl Machine<'_> {
    /// The text at an address, up to its zero byte.
    fn text(&mut self, at: usize) -> Result<String> {
        let mut bytes = Vec::new();
        while bytes.len() < MAX_TEXT {
            match self.l.memory.read_bytes(at + bytes.len(), 1).map_err(memory_fault)?[..] {
                [0] | [] => break,
                [byte, ..] => bytes.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Calls a foreign function with the arguments in `self.words`. Afterwards they are its results, for the returned
    /// continuation.
    pub(super) fn call_foreign(&mut self, foreign: u32) -> Result<Closure> {
        let foreign = self.l.foreigns[foreign as usize].clone();
        let ret = if foreign.returns { self.words.pop() } else { Some(POISON) };
        let ret = match ret {
            Some(ret) if self.words.len() == foreign.args.len() => Closure(ret),
            _ => {
                return Err(undefined_call::other_type(&foreign.name).into());
            }
        };
        if let ForeignKind::Lanes(op, scope) = foreign.kind {
            return self.lane_operation(op, scope, ret);
        }
        if self.options.confined {
            let text = format!("foreign function `{}` in the initializer of a static", foreign.name);
            let hint = "assign a `static mut` when the program runs";
            return Err(nyala_base::diagnostics::limitation::error(Span::NONE, text, hint).into());
        }
        let mut args: Vec<(FfiType, u64)> = foreign.args.iter().copied().zip(self.words.iter().copied()).collect();
        if let Some(i) = args.iter().position(|a| a.1 == POISON) {
            let text = format!("argument {} of foreign function `{}` is uninitialized", i + 1, foreign.name);
            return Err(uninitialized_read::error(text).into());
        }
        let is_copy = match foreign.kind {
            ForeignKind::Call(_) => !foreign.name.starts_with("nyala_"),
            _ => matches!(foreign.kind, ForeignKind::DeviceCopy(_)),
        };
        self.may_be_copied |= is_copy && args.iter().any(|a| self.l.memory.owns(a.1 as usize));
        // What the program means by the devices: memory of others than the host is theirs.
        let is_of_device = |i: usize| args.get(i).is_some_and(|a| a.1 as i32 & 15 != 0);
        let (to_device, copied_to_device) = (is_of_device(0), is_of_device(3));
        for &i in foreign.devices {
            // The runtime reports numbers that are no platform.
            if let Some(arg) = args.get_mut(i)
                && arg.1 as i32 & 15 < N_PLATFORMS
            {
                arg.1 = 0;
            }
        }
        let args = args;
        let first = args.first().map_or(0, |a| a.1);
        self.words.clear();
        let arg = |i: usize| args.get(i).map_or(0, |a| a.1);
        let result = match foreign.kind {
            ForeignKind::Missing(k) => {
                let message = format!("found no function `{}`", foreign.name);
                return Err(diagnostics::undefined_symbol::error(self.l.program.w.cont(k).origin, message).into());
            }
            ForeignKind::DeviceAlloc(_, is_own) if first == 0 => {
                let made = self.allocate(arg(1) as i64, 1)?;
                if is_own && to_device {
                    self.l.memory.give_to_device(made as usize);
                }
                made
            }
            ForeignKind::DeviceFree(_) if first == 0 && arg(1) == 0 => 0,
            ForeignKind::DeviceFree(_) if first == 0 && self.l.memory.owns(arg(1) as usize) => {
                self.l.memory.give_back(arg(1) as usize).map_err(memory_fault)?;
                0
            }
            ForeignKind::DeviceCopy(_) if first == 0 && arg(3) == 0 && arg(6) as i64 >= 0 => {
                let (from, to) = (arg(1).wrapping_add(arg(2)), arg(4).wrapping_add(arg(5)));
                let is_elsewhere = |at: u64, on_device: bool| !on_device && self.l.memory.is_of_device(at as usize);
                if is_elsewhere(from, to_device) || is_elsewhere(to, copied_to_device) {
                    return Err(memory_fault(nyala_runtime::MemoryFault::OnDevice));
                }
                self.l.memory.copy(from as usize, to as usize, arg(6) as usize).map_err(memory_fault)?;
                0
            }
            ForeignKind::AlignedAlloc => {
                let (size, align) = (usize::try_from(first as i64), arg(1));
                match size.ok().filter(|_| align.is_power_of_two() && align <= 1 << 20) {
                    Some(size) => self.l.give(size, align as usize)? as u64,
                    None => 0,
                }
            }
            ForeignKind::Alloc => self.allocate(first as i64, 1)?,
            ForeignKind::AllocArray => {
                let size = args.get(1).map_or(1, |a| a.1 as i64);
                self.allocate(first as i64, size)?
            }
            ForeignKind::Free if first == 0 => 0,
            ForeignKind::Free if self.l.memory.owns(first as usize) => {
                self.l.memory.give_back(first as usize).map_err(memory_fault)?;
                0
            }
            ForeignKind::Free => {
                call_checked(&mut self.l.memory, nyala_runtime::nyala_free as *const () as usize, &args, foreign.ret)
                    .map_err(limitation)?
            }
            ForeignKind::Panic => {
                let text = args.last().map_or(Ok(String::new()), |a| self.text(a.1 as usize))?;
                return Err(panic::error(text).into());
            }
            ForeignKind::Lanes(..) => 0,
            ForeignKind::Sync(_) if !nyala_runtime::is_thread(first as i32) => {
                return Err(invalid_handle::error(first as i32).into());
            }
            ForeignKind::ReadChannel(_) if nyala_runtime::channel_is_empty(arg(1) as usize) => {
                return Err(panic::error(nyala_runtime::EMPTY_CHANNEL.into()).into());
            }
            ForeignKind::Call(address)
            | ForeignKind::Sync(address)
            | ForeignKind::ReadChannel(address)
            | ForeignKind::DeviceAlloc(address, _)
            | ForeignKind::DeviceFree(address)
            | ForeignKind::DeviceCopy(address) => call_checked(&mut self.l.memory, address, &args, foreign.ret)
                .map_err(|e| limitation(format!("foreign function `{}`: {e}", foreign.name)))?,
        };
        if foreign.ret != FfiType::Void {
            self.words.push(result);
        }
        Ok(ret)
    }
}
