//! How residual blocks end: calls of builtins, of stubs and of unknown code, the effects of such calls on known memory,
//! and the requests that they make. Also copies globals to the residual program.

use super::Evaluator;
use super::state::{Entry, NO_PAST, Request, RequestKind, Site, State, StubId};
use crate::memory::Memory;
use crate::postdom;
use crate::whistle;
use nyala_base::{Id, SideTable, Span};
use nyala_ir::{Builtin, Cont, Node, Val};

impl Evaluator<'_> {
    // Calls.

    pub(super) fn call_builtin(
        &mut self,
        site: &mut Site,
        b: Builtin,
        callee: Val,
        mut args: Vec<Val>,
    ) -> Option<Entry> {
        match b {
            Builtin::Unreachable => self.define(site.block, callee, &args),
            Builtin::PeInfo => {
                self.report_info(args[1], args[2]);
                return self.call(site, args[3], vec![args[0]], Span::NONE);
            }
            // An assertion that is not known to be true stays, and is reported if it is still there at the end.
            Builtin::StaticAssert => {
                if self.options.annotations && self.dst.as_lit(args[1]) == Some(1) {
                    return self.call(site, args[3], vec![args[0]], Span::NONE);
                }
                self.residual_call(site, callee, &args, None);
            }
            // Bodies are built in place. While a parallel loop runs, no other code does. A kernel has variables as they
            // are when it is launched.
            Builtin::Parallel | Builtin::Vectorize | Builtin::Spawn | Builtin::Launch | Builtin::Limited => {
                self.skip(site, postdom::UNKNOWN, &args);
                let body = b.args().body.filter(|_| b != Builtin::Spawn);
                if b == Builtin::Launch
                    && let Some(s) = body.and_then(|i| self.stub_of_val(args[i]))
                {
                    self.launch(s);
                }
                self.residual_call(site, callee, &args, body);
            }
            Builtin::Branch => {
                let known = self.dst.as_lit(args[1]).map(|bit| if bit == 1 { args[2] } else { args[3] });
                if let Some(target) = known.or((args[2] == args[3]).then_some(args[2])) {
                    return self.call(site, target, vec![args[0]], Span::NONE);
                }
                if self.record.is_some() {
                    self.explain_left(args[1]);
                }
                self.flush_all(site, &mut args, &[]);
                self.skip_branch(site, &args[2..]);
                // So that both targets share it.
                site.memory.close();
                let (mut resolved, mut requests) = (args.clone(), Vec::new());
                for idx in [2, 3] {
                    if let Some(s) = self.stub_of_val(args[idx]) {
                        let (block, request) = self.target(s, &site.memory);
                        resolved[idx] = self.dst.cont_val(block);
                        requests.extend(request);
                    }
                }
                self.define(site.block, callee, &resolved);
                for s in requests {
                    self.request(site, s, RequestKind::Arg, site.memory.clone());
                }
            }
        }
        None
    }

    /// Ends the block with a call of a stub. `args` are the arguments that are not specialized.
    pub(super) fn request_call(&mut self, site: &mut Site, s: StubId, mut args: Vec<Val>) {
        let vals = self.stubs[s].vals.clone();
        self.flush_all(site, &mut args, &vals);
        let is_block = args.iter().all(|&a| !self.dst.types.has_function(self.dst.ty(a)));
        let before = site.memory.clone();
        if is_block {
            for &a in &args[1..] {
                self.escape(a, site, false);
            }
            let (block, request) = self.target(s, &site.memory);
            let target = self.dst.cont_val(block);
            self.define(site.block, target, &args);
            if let Some(s) = request {
                self.request(site, s, RequestKind::Jump { args }, site.memory.clone());
            }
        } else {
            let (block, request) = self.target(s, &before);
            let target = self.dst.cont_val(block);
            for &v in vals.iter() {
                self.escape(v, site, true);
            }
            self.residual_call(site, target, &args, None);
            // If the callee is inlined here later, the arguments will not have escaped.
            if let Some(s) = request {
                self.request(site, s, RequestKind::Jump { args }, before);
            }
        }
    }

    /// Ends the block with a call of residual code, which may change any escaped object. During the call, only the
    /// argument `body` runs, if there is one.
    pub(super) fn residual_call(&mut self, site: &mut Site, callee: Val, args: &[Val], body: Option<usize>) {
        let mut resolved = args.to_vec();
        self.flush_all(site, &mut resolved, &[callee]);
        let last = args.len() - 1;
        let ret = self.stub_of_val(args[last]).filter(|_| {
            let params = self.dst.types.cn_params(self.dst.ty(args[last]));
            params.is_some_and(|p| p.iter().all(|&t| !self.dst.types.has_function(t)))
        });
        let body = body.and_then(|i| Some((i, self.stub_of_val(args[i])?)));
        let in_body = body.map(|(_, s)| self.kept(s, &site.memory));
        for (i, &a) in args.iter().enumerate().skip(1) {
            if i != last || ret.is_none() {
                self.escape(a, site, body.is_some_and(|b| b.0 == i));
            }
        }
        let mut body_request = None;
        if let (Some((i, s)), Some(memory)) = (body, in_body) {
            let (block, request) = self.target(s, &memory);
            resolved[i] = self.dst.cont_val(block);
            body_request = request.map(|s| (s, memory));
        }
        let mut after = site.memory.clone();
        after.clobber();
        let ret = ret.map(|r| self.target(r, &after));
        if let Some((block, _)) = ret {
            resolved[last] = self.dst.cont_val(block);
        }
        self.define(site.block, callee, &resolved);
        site.memory = after;
        if let Some((s, memory)) = body_request {
            self.request(site, s, RequestKind::Arg, memory);
        }
        if let Some((_, Some(r))) = ret {
            self.request(site, r, RequestKind::Arg, site.memory.clone());
        }
    }

    fn report_info(&mut self, text: Val, value: Val) {
        if !self.options.annotations {
            return;
        }
        let text = self.dst.text(text);
        let shown = if self.is_known(value) { whistle::show(&self.dst, value) } else { "not known".into() };
        let origin = self.dst.current_origin().without_call();
        let diagnostic = crate::diagnostics::pe_info::info(origin, &text, &shown);
        if !self.reports.contains(&diagnostic) {
            self.reports.push(diagnostic);
        }
    }

    /// A kernel is a unit of its own, unless its code was asked for in another way.
    fn launch(&mut self, kernel: StubId) {
        if self.stubs[kernel].state == State::New && self.stubs[kernel].unit == self.budget.unit {
            self.stubs[kernel].unit = self.budget.launch(self.stubs[kernel].source);
        }
    }

    // Requests.

    /// Directs a request to `block`, which is built for the stub `stub` with some parameters fixed.
    pub(super) fn connect(&mut self, request: Request, block: Cont, stub: Cont, fixed: &[Option<Val>]) {
        if self.versions[request.block] != request.version {
            return;
        }
        let target = self.dst.cont_val(block);
        let old = self.dst.cont_val(stub);
        let is_jump = matches!(request.kind, RequestKind::Jump { .. });
        self.dst.change_body(request.block, |_, i, v| match i {
            0 => Some(if is_jump { target } else { v }),
            _ if is_jump => fixed.get(i - 1).is_some_and(Option::is_none).then_some(v),
            _ => Some(if v == old { target } else { v }),
        });
    }

    /// Sets the body of a residual block. Requests made by an earlier body become void.
    pub(super) fn define(&mut self, block: Cont, callee: Val, args: &[Val]) {
        self.versions[block] += 1;
        self.dst.define(block, callee, args);
    }

    pub(super) fn request(&mut self, site: &Site, s: StubId, kind: RequestKind, memory: Memory) {
        if self.stubs[s].state == State::New {
            let call = self.call_of(self.stubs[s].source, self.stubs[s].call, self.dst.current_origin());
            let request = Request { block: site.block, version: self.versions[site.block], kind, memory, call };
            let requests = &mut self.stubs[s].requests;
            // Most stubs have one request.
            if requests.is_empty() {
                requests.reserve_exact(1);
            }
            requests.push(request);
        }
        self.enqueue(s, site.past);
    }

    // Globals.

    pub(super) fn copy_globals(&mut self) {
        for i in 0..self.source.n_globals() {
            let data = self.source.global(nyala_ir::Global(i as u32));
            self.dst.set_origin(data.origin);
            self.dst.declare_global(&data.name, data.ty, data.mutable);
        }
        for i in 0..self.source.n_globals() {
            let g = nyala_ir::Global(i as u32);
            if let Some(init) = self.source.global(g).init {
                let init = self.value(init);
                self.dst.set_init(g, init);
            }
        }
    }

    /// Requests the functions in globals that residual code still loads. Returns whether there were new ones.
    pub(super) fn escape_globals(&mut self) -> bool {
        let has_function = |g: usize| self.dst.types.has_function(self.dst.global(nyala_ir::Global(g as u32)).ty);
        if !(0..self.dst.n_globals()).any(has_function) {
            return false;
        }
        let mut seen: SideTable<Val, bool> = SideTable::default();
        let mut work: Vec<Val> = Vec::new();
        let mut found = false;
        for k in (0..self.dst.n_conts()).map(Cont::from_idx) {
            if let Some(body) = self.dst.body(k) {
                work.push(body.callee);
                work.extend(body.args);
            }
        }
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut seen[v], true) {
                continue;
            }
            work.extend(self.dst.args(v));
            if let Node::Global(g) = self.dst.node(v)
                && let Some(init) = self.dst.global(g).init
                && self.dst.types.has_function(self.dst.ty(init))
            {
                let mut parts = vec![init];
                while let Some(p) = parts.pop() {
                    if let Some(s) = self.stub_of_val(p) {
                        let s = self.live(s);
                        found |= !self.stubs[s].escaped;
                        self.escape_stub(s, NO_PAST);
                    }
                    parts.extend(self.dst.args(p));
                }
            }
        }
        found
    }
}
