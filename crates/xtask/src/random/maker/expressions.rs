//! Expressions of random programs: conditions, function values, integers, calls. Apart from the statements that use them.

use super::Maker;

impl Maker {
    pub(super) fn cond(&mut self) -> String {
        let (a, b) = (self.expr(1), self.expr(1));
        let op = ["<", "==", ">=", "!="][self.rng.below(4)];
        match self.rng.below(4) {
            0 => format!("({a} {op} {b}) && {} % 2u32 == 0u32", self.atom()),
            1 => format!("({a} % 3u32) {op} ({b} % 3u32)"),
            _ => format!("({a}) {op} ({b})"),
        }
    }

    pub(super) fn atom(&mut self) -> String {
        match self.rng.below(6) {
            0 => format!("{}u32", self.rng.below(7)),
            1 if self.rng.chance(30) => format!("g{}", self.rng.below(2)),
            _ if self.values.is_empty() => "1u32".into(),
            _ => self.values[self.rng.below(self.values.len())].clone(),
        }
    }

    /// A function value.
    pub(super) fn closure(&mut self) -> String {
        if self.closures.is_empty() || self.rng.chance(40) {
            let param = self.name("q");
            self.values.push(param.clone());
            let own = self.own.take();
            let in_lambda = std::mem::replace(&mut self.in_lambda, true);
            let e = self.expr(1);
            self.in_lambda = in_lambda;
            self.own = own;
            self.values.pop();
            return format!("|{param}: u32| {e}");
        }
        self.closures[self.rng.below(self.closures.len())].clone()
    }

    pub(super) fn expr(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        match self.rng.below(26) {
            0..=3 => self.atom(),
            19 | 20 => self.narrow(depth),
            21 => {
                let (x, f, n) = (self.expr(depth - 1), self.closure(), self.atom());
                match self.rng.below(3) {
                    0 => format!("iterate({x}, {f}, {n} % 5u32)"),
                    1 => format!("both(Two {{ a: {x}, b: {n} }}, {f}, |q: u32| q * 3u32)"),
                    _ => {
                        format!("iterate(Two {{ a: {x}, b: {n} }}, |q| Two {{ a: q.b, b: q.a + 1u32 }}, {n} % 4u32).a")
                    }
                }
            }
            22 => {
                let (i, x) = (self.atom(), self.expr(depth - 1));
                match self.tables.is_empty() || self.rng.chance(30) {
                    true => format!("(ways(({i} % 3u32) as i32)({x}))"),
                    false => format!("({}(({i} % 3u32) as i32)({x}))", self.tables[self.rng.below(self.tables.len())]),
                }
            }
            23 if !self.statics.is_empty() => self.statics[self.rng.below(self.statics.len())].clone(),
            23 => format!("powers(({} & 7u32) as i32)", self.atom()),
            24 => {
                let (p, x) = (self.pointer(), self.atom());
                format!("poke({p}, {x})")
            }
            25 => {
                let (p, r, n, x) = (self.pointer(), self.pointer(), self.atom(), self.atom());
                format!("pass({p}, {r}, {n} % 4u32, {x})")
            }
            17 if !self.arrays.is_empty() => {
                let (a, i) = (self.arrays[self.rng.below(self.arrays.len())].clone(), self.atom());
                format!("{a}(({i} & 3u32) as i32)")
            }
            18 if !self.arrays.is_empty() => {
                let a = self.arrays[self.rng.below(self.arrays.len())].clone();
                let (f, i, e) = (["bump", "rotate"][self.rng.below(2)], self.atom(), self.expr(depth - 1));
                format!("{f}(&mut {a}, {i}, {e})")
            }
            14 => {
                let (k, x, n) = (self.atom(), self.expr(depth - 1), self.atom());
                let how = ["shape", "shape", "hidden_shape"][self.rng.below(3)];
                match self.rng.below(4) {
                    0 => format!("advance({how}({k}, {x}), {n})"),
                    1 => {
                        let (f, hidden, a) = (self.closure(), self.hidden(), self.name("a"));
                        format!(
                            "(match {hidden}Shape::Named({f}, {x}) {{ Shape::Named(f, {a}) => f({a}) ^ {n}, _ => 0u32 }})"
                        )
                    }
                    2 => format!("advance(Two {{ a: {x}, b: shape(3u32, shape({k}, {n})) }}, 1u32)"),
                    _ => format!("{how}({k}, Two {{ a: {n}, b: {x} }}).step({n})"),
                }
            }
            15 => {
                let scrutinee = self.expr(depth - 1);
                let (a, b) = (self.expr(depth - 1), self.expr(depth - 1));
                let name = self.name("n");
                self.values.push(name.clone());
                let c = self.expr(depth - 1);
                self.values.pop();
                let bound = self.rng.below(9);
                format!("(match {scrutinee} {{ 0u32 => {a}, {name} if {name} < {bound}u32 => {c}, _ => {b} }})")
            }
            16 => {
                let lanes: Vec<String> = (0..5).map(|_| self.atom()).collect();
                let (op, i) = (["+", "-", "*", "^", ">>"][self.rng.below(5)], self.rng.below(4));
                let vector = format!("(simd[{}] {op} simd[{}])", lanes[..4].join(", "), lanes[1..].join(", "));
                if self.rng.chance(50) {
                    format!("{vector}({i})")
                } else {
                    let f = "|s: u32, x: u32| s * 5u32 + x";
                    format!("fold({vector}, {f}, {})", self.atom())
                }
            }
            4..=6 => {
                let (a, b) = (self.expr(depth - 1), self.expr(depth - 1));
                let op = ["+", "-", "*", "^", "&", "|"][self.rng.below(6)];
                format!("({a} {op} {b})")
            }
            7 => {
                let a = self.expr(depth - 1);
                let op = ["/", "%", "<<", ">>"][self.rng.below(4)];
                format!("({a} {op} {}u32)", 1 + self.rng.below(9))
            }
            8 => {
                let c = self.cond();
                let (mut a, b) = (self.expr(depth - 1), self.expr(depth - 1));
                if !self.exits.is_empty() && self.may_leave() && self.rng.chance(25) {
                    a = format!("{}({a})", self.exits[self.rng.below(self.exits.len())]);
                }
                format!("(if {c} {{ {a} }} else {{ {b} }})")
            }
            9 => match self.rng.below(3) {
                0 => {
                    let (f, g, i, x) = (self.closure(), self.closure(), self.atom(), self.expr(depth - 1));
                    let (hidden, inner) = (self.hidden(), self.hidden());
                    match self.rng.below(3) {
                        0 => format!("({hidden}({f}, {i})(0)({x}))"),
                        1 => format!("({hidden}[{f}, {g}](({i} & 1u32) as i32)({x}))"),
                        _ => format!(
                            "({hidden}[{inner}Pair {{ a: {i}, f: {f} }}, Pair {{ a: 1u32, f: {g} }}](({i} & 1u32) as i32).{})",
                            ["a".into(), format!("f({x})")][self.rng.below(2)]
                        ),
                    }
                }
                1 => {
                    let (f, hidden, x) = (self.closure(), self.hidden(), self.expr(depth - 1));
                    format!("apart({hidden}Two {{ a: {x}, b: {f} }})")
                }
                _ => format!("$({})", self.atom()),
            },
            10 => format!("table(({} & 3u32) as i32)", self.atom()),
            11 if !self.closures.is_empty() => {
                let f = self.closures[self.rng.below(self.closures.len())].clone();
                let a = self.expr(depth - 1);
                let run = if self.rng.chance(20) { "@@" } else { "" };
                format!("({run}{f}({a}))")
            }
            12 if self.may_leave() && self.rng.chance(40) => {
                let (a, f, out) = (self.atom(), self.closure(), self.exit());
                format!("until({a}, {f}, {out})")
            }
            _ => self.call(depth),
        }
    }

    /// An expression through types of 8, 16 and 64 bits. Arithmetic that may overflow is unsigned.
    pub(super) fn narrow(&mut self, depth: usize) -> String {
        let (a, b, k) = (self.expr(depth - 1), self.atom(), 1 + self.rng.below(6));
        match self.rng.below(9) {
            0 => format!("((({a}) as u8 * {k}u8 + ({b}) as u8) as u32)"),
            1 => format!("(((({a}) as u16 << {k}u16) - ({b}) as u16) as u32)"),
            2 => format!("((({a}) as i8) as u32)"),
            3 => format!("((({a}) as i16 >> {k}i16) as u32)"),
            4 => format!("(((({a}) as u64 * ({b}) as u64 + {k}u64) >> 7u64) as u32)"),
            5 => format!("(if (({a}) as i8) < (({b}) as i8) {{ {k}u32 }} else {{ {b} }})"),
            6 => format!("((({a}) as i8 / {k}i8) as u32 + (({b}) as u8 % {k}u8) as u32)"),
            7 => format!("narrow({a}, {b})"),
            _ => format!("(((({a}) % 1000u32) as f32 * {k}.5f32) as u32)"),
        }
    }

    /// The address of a number that can be changed.
    pub(super) fn pointer(&mut self) -> String {
        if !self.arrays.is_empty() && self.rng.chance(40) {
            return format!(
                "&mut {}(({} & 3u32) as i32)",
                self.arrays[self.rng.below(self.arrays.len())].clone(),
                self.atom()
            );
        }
        match self.mutable.is_empty() {
            true => "&mut g0".into(),
            false => match self.mutable[self.rng.below(self.mutable.len())].as_str() {
                "*at" => "at".into(),
                name => format!("&mut {name}"),
            },
        }
    }

    /// A prefix for values that contain functions: now and then `$`, which hides them from partial evaluation.
    pub(super) fn hidden(&mut self) -> &'static str {
        if self.rng.chance(25) { "$" } else { "" }
    }

    pub(super) fn may_leave(&self) -> bool {
        !(self.in_parallel || self.in_lambda && self.has_parallel)
    }

    /// A continuation of an enclosing function.
    pub(super) fn exit(&mut self) -> String {
        if self.exits.is_empty() {
            return "return".into();
        }
        let out = self.exits[self.rng.below(self.exits.len())].clone();
        if self.rng.chance(60) {
            return out;
        }
        let q = self.name("q");
        format!("|{q}: u32| -> ! {out}({q} + {})", self.atom())
    }

    pub(super) fn call(&mut self, depth: usize) -> String {
        let n = self.functions.len();
        let call = self.call_of(n, depth, None);
        call.map_or_else(|| self.atom(), |call| format!("({call})"))
    }

    /// A call of one of the first `n` functions or, now and then, of the one that is being made, with or without a
    /// continuation.
    pub(super) fn call_of(&mut self, n: usize, depth: usize, next: Option<String>) -> Option<String> {
        let recursive = self.own.clone().filter(|_| self.n_recursive < 2 && self.rng.chance(50));
        let f = match (recursive, n) {
            (Some(f), _) => {
                self.n_recursive += 1;
                f
            }
            (None, 0) => return None,
            (None, n) => self.functions[self.rng.below(n)].clone(),
        };
        let is_own = self.own.as_ref().is_some_and(|o| o.name == f.name);
        let mut args = Vec::new();
        for i in 0..f.n_params {
            args.push(match (i, f.has_fuel) {
                (0, true) if is_own => "p0 - 1u32".to_string(),
                (0, true) if self.rng.chance(50) => format!("{}u32", self.rng.below(5)),
                (0, true) => format!("({} % 4u32)", self.atom()),
                _ => self.expr(depth.saturating_sub(1).min(1)),
            });
        }
        if f.takes_function {
            args.push(self.closure());
        }
        if f.takes_exit {
            match self.may_leave() {
                true => args.push(self.exit()),
                false => return None,
            }
        }
        if f.takes_pointer {
            args.push(self.pointer());
        }
        args.extend(next);
        let how = match self.rng.below(20) {
            0 | 1 => "@@",
            2 if !is_own => "@",
            3 => "$",
            _ => "",
        };
        Some(format!("{how}{}({})", f.name, args.join(", ")))
    }
}
