//! Expressions of random programs with lanes: variables, inputs, calls, conditions, floats and integers. Apart from the statements that use
//! them.

use super::*;

impl Maker {
    /// A variable or literal.
    pub(super) fn atom(&mut self, ty: Ty) -> String {
        let known: Vec<String> = self.vars.iter().filter(|v| v.ty == ty).map(|v| v.name.clone()).collect();
        if !known.is_empty() && self.rng.chance(75) {
            return format!("({})", known[self.rng.below(known.len())]);
        }
        match ty {
            BOOL if self.in_body => {
                ["d.of_bool(own)", "(own % 3 == 1)", "(i < 5)", "(d.of_i32(own) > 0)"][self.rng.below(4)].into()
            }
            BOOL => ["true", "false"][self.rng.below(2)].into(),
            _ if ty.is_float => {
                let number = ["0.0", "1.0", "0.5", "-3.0", "2.25", "0.1"][self.rng.below(6)];
                format!("({number}{})", ty.name)
            }
            _ => {
                let most = if self.rng.chance(70) { 8 } else { 100 };
                format!("{}{}", self.rng.below(most), ty.name)
            }
        }
    }

    pub(super) fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.rng.chance(15) {
            return self.atom(ty);
        }
        let depth = depth - 1;
        match self.rng.below(12) {
            0 | 5 if self.in_body => self.input(ty),
            1 => self.call(ty, depth).unwrap_or_else(|| self.atom(ty)),
            2 => {
                let arrays = self.arrays.iter().chain(&self.frozen);
                let found: Vec<String> = arrays.filter(|a| a.1 == ty).map(|a| a.0.clone()).collect();
                match found.is_empty() {
                    true => self.atom(ty),
                    false => {
                        let name = &found[self.rng.below(found.len())];
                        format!("{name}({})", self.index(7))
                    }
                }
            }
            3 => {
                let (c, a, b) = (self.expr(BOOL, depth), self.expr(ty, depth), self.expr(ty, depth));
                format!("(if {c} {{ {a} }} else {{ {b} }})")
            }
            4 if ty != BOOL => {
                let from = self.ty();
                let e = self.expr(from, depth);
                format!("({e} as {})", ty.name)
            }
            _ if ty == BOOL => self.condition(depth),
            _ if ty.is_float => self.float_expr(ty, depth),
            _ => self.int_expr(ty, depth),
        }
    }

    /// An element of an input array: at the lane's own index, beside it, or anywhere.
    pub(super) fn input(&mut self, ty: Ty) -> String {
        let fields: Vec<_> = FIELDS.into_iter().filter(|f| f.2 == ty).collect();
        if !fields.is_empty() && self.rng.chance(25) {
            let (array, field, _) = fields[self.rng.below(fields.len())];
            return match self.rng.below(4) {
                0 => format!("d.to_{array}(own).{field}"),
                1 => format!("d.of_{array}(own + {}).{field}", self.rng.below(5)),
                2 => format!("d.of_{array}(({} & {}u) as i32).{field}", self.expr(U32, 1), SIZE - 1),
                _ => format!("d.of_{array}(own).{field}"),
            };
        }
        if ty == U32
            && let Some((first, n)) = self.row.clone()
            && self.rng.chance(if self.n_inner > 0 { 30 } else { 5 })
        {
            return format!("d.rows({first} + {})", self.index(n - 1));
        }
        if ty == U32 && self.rng.chance(30) {
            return format!("d.scratch(own * 4 + {})", self.index(3));
        }
        if !ARRAYS.contains(&ty) {
            // The last one is `bool`, which is not a number.
            let from = ARRAYS[self.rng.below(ARRAYS.len() - 1)];
            return format!("({} as {})", self.input(from), ty.name);
        }
        let name = ty.name;
        match self.rng.below(7) {
            0 | 1 => format!("d.of_{name}(own)"),
            // Two adjacent elements, anywhere.
            5 if ty != BOOL => {
                let (e, op) = (self.expr(U32, 1), if ty.is_float { "+" } else { "^" });
                format!("(d.of_{name}(({e} & 63u) as i32) {op} d.of_{name}(({e} & 63u) as i32 + 1))")
            }
            2 => format!("d.of_{name}(own + {})", self.rng.below(5)),
            3 => format!("d.of_{name}(own * {} % {SIZE})", 2 + self.rng.below(3)),
            4 => format!("d.of_{name}({SIZE} - 1 - own)"),
            _ => format!("d.of_{name}(({} & {}u) as i32)", self.expr(U32, 1), SIZE - 1),
        }
    }

    pub(super) fn call(&mut self, ty: Ty, depth: usize) -> Option<String> {
        if ty == U32 && self.rng.chance(25) {
            let (a, b, f) = (self.expr(U32, depth), self.expr(U32, depth), self.expr(F32, depth));
            return Some(match self.rng.below(5) {
                0 => format!("weigh(choose({a}, {f}))"),
                3 if self.n_inner < MAX_INNER => {
                    self.n_inner += 1;
                    format!("{}tally({a}, {b})", ["", "@"][self.rng.below(2)])
                }
                1 => {
                    let c = self.expr(BOOL, depth);
                    format!("weigh(if {c} {{ choose({a}, {f}) }} else {{ Choice::One({b}) }})")
                }
                _ => format!("four(simd[{a}, {b}, 3u, {}], {b})", self.atom(U32)),
            });
        }
        if ty == U32 && self.rng.chance(40) {
            if let Some(f) = self.closures.last().cloned().filter(|_| self.n_calls < 6) {
                self.n_calls += 1;
                return Some(format!("{f}({})", self.expr(U32, depth)));
            }
            let at = self.expr(U32, depth);
            return Some(format!("ways(({at} % 3u) as i32)({})", self.expr(U32, depth)));
        }
        let recursive = self.own.clone().filter(|f| f.result == ty && self.n_recursive < 2);
        if let Some(f) = recursive {
            self.n_recursive += 1;
            let mut args = vec!["p0 - 1u".to_string()];
            for &ty in &f.params[1..] {
                args.push(self.expr(ty, depth));
            }
            return Some(format!("{}({})", f.name, args.join(", ")));
        }
        let known: Vec<Function> = self.functions.iter().filter(|f| f.result == ty).cloned().collect();
        if known.is_empty() || self.n_calls > 5 {
            return None;
        }
        self.n_calls += 1;
        let f = known[self.rng.below(known.len())].clone();
        let first = self.expr(U32, depth);
        let mut args = vec![if f.has_fuel { format!("{first} % 4u") } else { first }];
        for &ty in &f.params[1..] {
            args.push(self.expr(ty, depth));
        }
        Some(format!("{}({})", f.name, args.join(", ")))
    }

    pub(super) fn condition(&mut self, depth: usize) -> String {
        match self.rng.below(8) {
            0 => {
                let (a, b) = (self.condition(depth.min(1)), self.expr(BOOL, depth.min(1)));
                format!("({a} {} {b})", ["&&", "||", "^", "&", "|"][self.rng.below(5)])
            }
            1 => format!("!{}", self.expr(BOOL, depth)),
            2 | 3 => {
                let n = 2 + self.rng.below(4);
                format!("({} % {n}u == {}u)", self.expr(U32, depth), self.rng.below(n))
            }
            _ => {
                let ty = self.ty();
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("({a} {} {b})", ["<", "<=", ">", ">=", "==", "!="][self.rng.below(6)])
            }
        }
    }

    /// An expression of `+ - * /` and square roots, which round once each, so that all engines agree.
    pub(super) fn float_expr(&mut self, ty: Ty, depth: usize) -> String {
        let a = self.expr(ty, depth);
        match self.rng.below(7) {
            0 if ty == F32 => format!("sqrtf(abs({a}))"),
            0 if ty.name == "f64" => format!("sqrt(abs({a}))"),
            1 if ty == F32 => format!("floorf({a})"),
            2 if ty.name == "f64" => format!("min({a}, {})", self.expr(ty, depth)),
            0..=2 => format!("(-{a})"),
            n => {
                let b = self.expr(ty, depth);
                format!("({a} {} {b})", ["+", "-", "*", "/"][n - 3])
            }
        }
    }

    /// An expression of integers. Signed operations that could overflow are done on unsigned numbers.
    pub(super) fn int_expr(&mut self, ty: Ty, depth: usize) -> String {
        let (a, b, name) = (self.expr(ty, depth), self.expr(ty, depth), ty.name);
        match self.rng.below(10) {
            0 => format!("({a} & {b})"),
            1 => format!("({a} | {b})"),
            2 => format!("({a} ^ {b})"),
            3 => format!("({a} {} {b})", ["<<", ">>"][self.rng.below(2)]),
            // The divisor is neither zero nor -1.
            4 if ty.is_signed => format!("({a} / ({b} & 7{name} | 1{name}))"),
            4 => format!("({a} {} ({b} | 1{name}))", ["/", "%"][self.rng.below(2)]),
            // A guard excludes zero. The divisor is evaluated only once, because a call in it may give another value
            // the next time.
            5 if !ty.is_signed => {
                format!("({{ let divisor = {b}; if divisor != 0{name} {{ {a} % divisor }} else {{ {a} }} }})")
            }
            5 => format!("({a} % ({b} & 15{name} | 2{name}))"),
            6 => format!("(!{a})"),
            n => {
                let op = ["+", "-", "*"][n - 7];
                let u = ty.unsigned;
                match ty.is_signed {
                    true => format!("((({a} as {u}) {op} ({b} as {u})) as {name})"),
                    false => format!("({a} {op} {b})"),
                }
            }
        }
    }
}
