//! Kernels for `hls` that are connected by channels: one more kernel calls them, so that they run at the same time, and has the
//! channels. Separate from the split, since only circuits run so; the kernels themselves are launched one after the other.
//!
//! ```text
//! let mut c = channel_f32 { data: 0f };               kernel[1, 1, 1] "main_top" main_top(in, out)
//! hls(0, || … write_channel(&mut c, in(i)) …);          c = slot channel_f32
//! hls(0, || … out(i) = read_channel(&mut c) …);         call main_kernel(in, c); call main_kernel_2(c, out)
//! ```
//!
//! Kernels are connected if they are launched in one block of code, and a variable of the host is a channel of both, which the
//! host does not read or write itself.

use nyala_base::Id;
use nyala_flat::*;
use nyala_ir::lanes::is_channel;
use nyala_ir::{Op, Ty};
use rustc_hash::{FxHashMap, FxHashSet};

/// A launch: the host's function and block, the kernel, and what each of its parameters is.
#[derive(Clone)]
pub(super) struct Flow {
    pub at: (Func, usize),
    pub kernel: Func,
    pub params: Vec<Param>,
}

/// A parameter of a kernel, by the value that the host passes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Param {
    /// The variable of a channel.
    Channel(Value),
    /// A value that stands for itself.
    Value(Value),
    /// A part of a value, or a copy of what a variable has at the launch.
    Other,
}

/// What a kernel gets for a parameter: its type, what it is, and its number among the parameters of the whole.
type Passed = (Ty, Param, usize);

impl Flow {
    fn channels(&self) -> impl Iterator<Item = Value> {
        self.params.iter().filter_map(|p| if let Param::Channel(variable) = p { Some(*variable) } else { None })
    }
}

/// The variable of the host that is a channel of a kernel, if an argument that is not copied is one.
pub(super) fn channel_of(function: &Function, arg: Value) -> Option<Value> {
    let insts = || function.blocks.iter().flat_map(|b| &b.insts);
    let is_variable = insts().any(|i| i.result == Some(arg) && i.op == InstOp::Op(Op::Slot));
    let is_hosts = insts().any(|i| matches!(i.op, InstOp::Call(_) | InstOp::CallIndirect) && i.args.contains(&arg));
    (is_variable && !is_hosts).then_some(arg)
}

/// Launches that are connected by channels, two at least, in their order.
fn groups(flows: &[Flow]) -> Vec<Vec<&Flow>> {
    let mut groups: Vec<Vec<&Flow>> = Vec::new();
    for flow in flows {
        let own: FxHashSet<Value> = flow.channels().collect();
        let is_connected =
            |group: &Vec<&Flow>| group.iter().any(|f| f.at == flow.at && f.channels().any(|c| own.contains(&c)));
        let (mut joined, rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_connected);
        groups = rest;
        let mut all: Vec<&Flow> = joined.drain(..).flatten().collect();
        all.push(flow);
        // In the order of the launches.
        all.sort_by_key(|f| flows.iter().position(|g| std::ptr::eq(*f, g)));
        groups.push(all);
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Takes the places in the program, which channels of a circuit have no use for, out of a device's module.
pub(super) fn forget_places(device: &mut Module) {
    let is_it = |f: &Function| f.is_foreign() && f.symbol().is_some_and(is_channel);
    let channels: FxHashSet<Func> =
        (0..device.funcs.len()).map(Func::from_idx).filter(|&f| is_it(device.func(f))).collect();
    for function in &mut device.funcs {
        for b in 0..function.blocks.len() {
            for i in 0..function.blocks[b].insts.len() {
                let inst = &function.blocks[b].insts[i];
                if matches!(inst.op, InstOp::Call(f) if channels.contains(&f)) {
                    let ty = function.ty(inst.args[0]);
                    function.blocks[b].insts[i].args[0] = function.constant(Const::Bits(0), ty);
                }
            }
        }
        simplify_function(&device.types, function);
    }
}

/// Adds the kernels that call others to a device's module. `func`: where a kernel of the host's module is in it.
pub(super) fn add(
    device: &mut Module,
    host: &Module,
    flows: &[Flow],
    func: &dyn Fn(Func) -> Func,
    symbols: &mut FxHashSet<String>,
) {
    for group in groups(flows) {
        let from = host.func(group[0].at.0);
        let base: String = from.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let base = format!("{base}_top");
        let numbered = (2..).map(|n| format!("{base}_{n}"));
        let Some(symbol) = std::iter::once(base.clone()).chain(numbered).find(|s| !symbols.contains(s)) else { return };
        symbols.insert(symbol.clone());
        // Kernels that get the same value have one parameter of this one for it.
        let (mut params, mut names) = (Vec::new(), Vec::new());
        let mut known: FxHashMap<Param, usize> = FxHashMap::default();
        let mut called: Vec<(Func, Vec<Passed>)> = Vec::new();
        for flow in &group {
            let kernel = device.func(func(flow.kernel));
            let mut args = Vec::new();
            for ((&ty, &param), &what) in kernel.params.iter().zip(&kernel.blocks[0].params).zip(&flow.params) {
                let next = params.len();
                let is_new = match what {
                    Param::Channel(_) => false,
                    Param::Value(_) => known.get(&what).is_none_or(|&at| params[at] != ty),
                    Param::Other => true,
                };
                if is_new {
                    params.push(ty);
                    names.push(kernel.name(param).to_string());
                    known.insert(what, next);
                }
                let at = if is_new { next } else { known.get(&what).copied().unwrap_or(0) };
                args.push((ty, what, at));
            }
            called.push((func(flow.kernel), args));
        }
        let top = device.declare(&symbol, Linkage::Kernel(symbol.clone(), [1; 3]), &params, &[]);
        let mut fb = FunctionBuilder::new(device, top);
        let with_names: Vec<_> = params.iter().zip(&names).map(|(&ty, name)| (ty, name.as_str())).collect();
        let entry = fb.block("entry", &with_names);
        fb.switch_to(entry);
        let mut made: FxHashMap<Value, Value> = FxHashMap::default();
        let mut calls = Vec::new();
        for (kernel, params) in called {
            let mut args = Vec::new();
            for (ty, what, at) in params {
                args.push(match what {
                    Param::Value(_) | Param::Other => fb.param(entry, at),
                    Param::Channel(variable) => *made.entry(variable).or_insert_with(|| {
                        let slot = fb.op(Op::Slot, &[], ty);
                        let name = from.name(variable);
                        fb.function.set_name(slot, if name.is_empty() { "channel" } else { name });
                        slot
                    }),
                });
            }
            calls.push((kernel, args));
        }
        for (kernel, args) in calls {
            fb.call(kernel, &args, &[]);
        }
        fb.terminate(Terminator::Return(Vec::new()));
    }
}
