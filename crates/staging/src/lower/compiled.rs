//! `compile` as code: calls that make a function, and the function that it is made of, in case there is no compiler.
//!
//! Separate from other calls, which need no code that may be missing.

use super::*;

impl Lowering<'_> {
    /// Goes on with a function that does what another one does. If there is a compiler when the program runs, it is made of that one
    /// and the values of its variables, at an address, and called by C's convention.
    pub(super) fn compile(&mut self, mut k: Cont, mut mem: Val, args: &[Value], span: Span) -> Lowered<()> {
        let &[Value::Lam(lam), then] = args else {
            let hint = "stage the call around it such that the function is known when the program is compiled";
            return Err(Box::new(limitation::not_supported(
                span,
                "functions that are known later, by `compile`",
                hint,
            )));
        };
        let (site, numbers) = self.sites.site(self.signatures, lam, span).map_err(|x| {
            let name = self.terms.name(x).map_or("x", |n| n);
            let what = format!("arrays and functions from around a function that `compile` makes, as `{name}`,");
            let place = self.signatures.place(self.terms, x);
            let fault = limitation::not_supported(span, &what, "make it a parameter of the function");
            Box::new(if place.is_none() { fault } else { fault.other(place, "declared here") })
        })?;
        // A function that other code calls, too, must become code.
        let was_general = std::mem::replace(&mut self.is_general, !self.shared.contains_key(&lam));
        let general = self.value(Value::Lam(lam), span);
        self.is_general = was_general;
        let general = general?;
        let then = self.value(then, span)?;
        let numbers = numbers.iter().map(|&x| self.value(Value::Var(x), span)).collect::<Lowered<Vec<Val>>>()?;
        let site = (self.number)(site);
        let mem_ty = self.world.types.mem();
        let (int, word) = (self.world.types.i32(), self.world.types.prim(Scalar::U64));
        let done = self.world.types.cn(&[mem_ty]);
        for number in numbers {
            let bits = self.bits(number);
            let takes = self.world.types.cn(&[mem_ty, word, done]);
            let callee = self.foreign(COMPILE[0], takes, span)?;
            let next = self.world.declare("k", done, &["m"]);
            let next_val = self.world.cont_val(next);
            self.world.define(k, callee, &[mem, bits, next_val]);
            (k, mem) = (next, self.world.param(next, 0));
        }
        let with_address = self.world.types.cn(&[mem_ty, word]);
        let takes = self.world.types.cn(&[mem_ty, int, with_address]);
        let callee = self.foreign(COMPILE[1], takes, span)?;
        let next = self.world.declare("compiled", with_address, &["m", "address"]);
        let (site, next_val) = (self.world.lit_i32(site), self.world.cont_val(next));
        self.world.define(k, callee, &[mem, site, next_val]);
        let address = self.world.param(next, 1);
        let function = self.either(address, general);
        let mem = self.world.param(next, 0);
        self.world.define(next, then, &[mem, function]);
        Ok(())
    }

    /// 64 bits of a number.
    fn bits(&mut self, number: Val) -> Val {
        let word = self.world.types.prim(Scalar::U64);
        match self.world.prim(number) {
            Some(Scalar::Bool) => {
                let [no, yes] = [0, 1].map(|bit| self.world.lit_prim(Scalar::U64, bit));
                self.world.op(Op::Select, &[number, yes, no])
            }
            Some(Scalar::F32) => {
                let half = self.world.types.prim(Scalar::U32);
                let bits = self.world.op_ty(Op::Bitcast, half, &[number]);
                self.world.op_ty(Op::Cast, word, &[bits])
            }
            Some(Scalar::F64) => self.world.op_ty(Op::Bitcast, word, &[number]),
            _ => self.world.op_ty(Op::Cast, word, &[number]),
        }
    }

    /// A function that calls the one at an address, or another one if the address is 0.
    fn either(&mut self, address: Val, general: Val) -> Val {
        let ty = self.world.ty(general);
        let mem_ty = self.world.types.mem();
        let (code, environment) = callbacks::addresses(&mut self.world.types);
        let [code_val, environment] = [code, environment].map(|ty| self.world.op_ty(Op::Bitcast, ty, &[address]));
        let made = callbacks::of_address(self.world, ty, code_val, environment);
        let either = self.world.declare("compiled", ty, &[]);
        let params = self.world.params(either).to_vec();
        let zero = self.world.lit_prim(Scalar::U64, 0);
        let is_none = self.world.op(Op::Eq, &[address, zero]);
        let branch_ty = self.world.types.cn(&[mem_ty]);
        let [then, otherwise] = [general, made].map(|callee| {
            let k = self.world.declare("k", branch_ty, &["m"]);
            let mut args = params.clone();
            args[0] = self.world.param(k, 0);
            self.world.define(k, callee, &args);
            self.world.cont_val(k)
        });
        let branch = self.world.builtin(Builtin::Branch);
        self.world.define(either, branch, &[params[0], is_none, then, otherwise]);
        self.world.cont_val(either)
    }

    /// With a compiler, functions that others are made of are not called, so they need not become code: what needs values to be known
    /// may not.
    pub(super) fn finish_general(&mut self) {
        self.is_general = true;
        while let Some((lam, k)) = self.general.pop() {
            if let Err(fault) = self.function(lam, k)
                && self.world.body(k).is_none()
            {
                self.no_code.get_or_insert(fault);
                // Other code that calls it has the fault, too.
                if let Some(known) = self.shared.get_mut(&lam) {
                    *known = None;
                }
                let mem = self.world.types.mem();
                let never = self.world.types.cn(&[mem]);
                let takes = self.world.types.cn(&[mem, never]);
                let callee = self.world.foreign(NO_CODE, takes);
                let (callee, m) = (self.world.cont_val(callee), self.world.param(k, 0));
                let after = self.world.declare("never", never, &["m"]);
                let unreachable = self.world.builtin(Builtin::Unreachable);
                let after_mem = self.world.param(after, 0);
                self.world.define(after, unreachable, &[after_mem]);
                let after = self.world.cont_val(after);
                self.world.define(k, callee, &[m, after]);
            }
        }
        self.is_general = false;
    }
}
