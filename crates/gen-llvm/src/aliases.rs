//! Addresses that do not alias, because parameters are restricted: as LLVM's scoped alias metadata.
//!
//! A restricted parameter is a scope; its own accesses are in the scope, and those through other parameters of the call
//! are `noalias` with it (`nyala_ir::Op::Restrict`). Addresses are traced through `lea` and casts only; nothing is
//! known of addresses that go through memory, calls or block parameters.

use crate::emit::Emitter;
use nyala_base::Id;
use nyala_flat::{Function, Inst, InstOp, Value, VectorOp};
use nyala_ir::Op;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A parameter of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    scope: Value,
    /// The restricted address; `None` if the parameter is not restricted.
    restricted: Option<Value>,
}

#[derive(Default)]
pub(crate) struct Aliases {
    /// For addresses derived from parameters, these parameters.
    marks: FxHashMap<Value, Rc<[Mark]>>,
    /// The restricted addresses of each call, in the order of the function.
    calls: FxHashMap<Value, Vec<Value>>,
    /// LLVM's scopes of restricted addresses, made on demand.
    names: FxHashMap<Value, String>,
    domain: Option<String>,
}

impl Aliases {
    pub fn new(function: &Function) -> Aliases {
        let mut aliases = Aliases::default();
        let is_restrict = |i: &Inst| i.op == InstOp::Op(Op::Restrict);
        if !function.blocks.iter().any(|b| b.insts.iter().any(is_restrict)) {
            return aliases;
        }
        for block in nyala_flat::analysis::Cfg::new(function).rpo {
            for inst in &function.block(block).insts {
                let (InstOp::Op(op), Some(r), Some(&from)) = (inst.op, inst.result, inst.args.first()) else {
                    continue;
                };
                let mut marks = aliases.marks.get(&from).map_or(Vec::new(), |m| m.to_vec());
                match op {
                    Op::Restrict => {
                        let (scope, restricted) = (inst.args[1], function.as_bits(inst.args[2]) == Some(1));
                        if restricted {
                            aliases.calls.entry(scope).or_default().push(r);
                        }
                        marks.push(Mark { scope, restricted: restricted.then_some(r) });
                    }
                    Op::Lea | Op::Bitcast | Op::Aligned => {}
                    _ => continue,
                }
                if !marks.is_empty() {
                    aliases.marks.insert(r, marks.into());
                }
            }
        }
        aliases
    }

    fn name(&mut self, e: &mut Emitter, restricted: Value) -> String {
        if let Some(name) = self.names.get(&restricted) {
            return name.clone();
        }
        let domain = self.domain.get_or_insert_with(|| e.distinct_metadata(""));
        let name = e.distinct_metadata(&format!(", {domain}"));
        self.names.insert(restricted, name.clone());
        name
    }

    fn list(&mut self, e: &mut Emitter, restricted: &[Value]) -> String {
        let names: Vec<String> = restricted.iter().map(|&r| self.name(e, r)).collect();
        e.metadata(&format!("!{{{}}}", names.join(", ")))
    }

    /// For each scope of a call a list with this scope alone.
    pub fn scopes_of(&mut self, e: &mut Emitter, call: Value) -> Vec<String> {
        let restricted = self.calls.get(&call).cloned().unwrap_or_default();
        restricted.into_iter().map(|r| self.list(e, &[r])).collect()
    }

    /// The alias metadata of an access to memory, as suffix of the instruction.
    pub fn access(&mut self, e: &mut Emitter, inst: &Inst) -> String {
        let address = match inst.op {
            InstOp::Op(Op::Load | Op::Store) => inst.args.first(),
            InstOp::Vector(VectorOp::Load | VectorOp::Store | VectorOp::Gather | VectorOp::Scatter) => {
                inst.args.first()
            }
            _ => None,
        };
        let Some(marks) = address.and_then(|a| self.marks.get(a)).cloned() else { return String::new() };
        let own: Vec<Value> = marks.iter().filter_map(|m| m.restricted).collect();
        let mut others: Vec<Value> =
            marks.iter().flat_map(|m| self.calls.get(&m.scope).into_iter().flatten()).copied().collect();
        others.retain(|r| !own.contains(r));
        others.sort_unstable_by_key(|r| r.idx());
        others.dedup();
        let mut text = String::new();
        for (what, list) in [("alias.scope", own), ("noalias", others)] {
            if !list.is_empty() {
                text.push_str(&format!(", !{what} {}", self.list(e, &list)));
            }
        }
        text
    }
}
