//! Loops of lanes in the lanes of random programs, and in their functions. Apart from the other statements, because what may be
//! written in them is a matter of its own: no lane writes what another one has a name for.

use super::{Maker, U32, Var, WIDTHS};

/// Elements of `d.rows` for each lane of the body.
pub const ROW: usize = 16;
/// Loops of lanes in each other, and in a function or body.
pub const MAX_LEVEL: usize = 3;
pub const MAX_INNER: usize = 4;

impl Maker {
    /// Writes to an element of the lane's own row.
    pub fn own_row(&mut self) {
        let Some((first, n)) = self.row.clone() else { return self.assign() };
        let (at, e, op) = (self.index(n - 1), self.expr(U32, 3), ["=", "+=", "^="][self.rng.below(3)]);
        self.line(&format!("d.rows({first} + {at}) {op} {e};"));
    }

    /// A loop of lanes in a lane, or in a function. Its lanes read what the lane around has; they write elements and variables
    /// of their own, one variable all of them by atomics, one of them another variable, and each its element of an array.
    pub fn lanes_inside(&mut self) {
        self.n_inner += 1;
        let k = self.name("k");
        let (most, row) = match self.row.clone() {
            Some((first, ROW)) if self.rng.chance(50) => (ROW, Some((format!("{first} + {k}i"), 1))),
            Some((first, ROW)) => (4, Some((format!("{first} + {k}i * 4"), 4))),
            Some((first, 4)) => (4, Some((format!("{first} + {k}i"), 1))),
            _ => ([7, 20][self.rng.below(2)], None),
        };
        let below = |m: &mut Self, n: usize| format!("({} % {}u) as i32", m.expr(U32, 2), n + 1);
        let lo = if self.rng.chance(60) { "0".into() } else { below(self, 2) };
        let hi = if self.rng.chance(30) { format!("{most}") } else { below(self, most) };
        let own = self.own.take();
        let outer = (std::mem::take(&mut self.vars), std::mem::take(&mut self.arrays), self.frozen.clone());
        let hidden = (
            std::mem::take(&mut self.packs),
            std::mem::take(&mut self.closures),
            std::mem::take(&mut self.jumps),
            std::mem::take(&mut self.result),
        );
        let state = (self.width, self.may_have_ended, self.loops, self.top, self.end.take(), self.row.take());
        // Its lanes have no other name for the memory that they write.
        let mut written: Vec<Var> =
            outer.0.iter().filter(|v| v.is_mutable && !v.name.starts_with('*')).cloned().collect();
        let mut take = |m: &mut Self, fits: &dyn Fn(&Var) -> bool, percent: usize| {
            let fitting: Vec<usize> = (0..written.len()).filter(|&i| fits(&written[i])).collect();
            (!fitting.is_empty() && m.rng.chance(percent))
                .then(|| written.swap_remove(fitting[m.rng.below(fitting.len())]))
        };
        let sum = take(self, &|v| v.ty == U32, 80);
        let one = take(self, &|_| true, 40);
        let array = (most <= 7 && !outer.1.is_empty() && self.rng.chance(50))
            .then(|| outer.1[self.rng.below(outer.1.len())].clone());
        let is_written = |name: &str| sum.iter().chain(&one).any(|v| v.name == name);
        let has_written = sum.is_some() || one.is_some();
        self.vars = outer.0.iter().filter(|v| !is_written(&v.name)).cloned().collect();
        self.vars.retain(|v| !(has_written && v.name.starts_with('*')));
        self.vars.iter_mut().for_each(|v| v.is_mutable = false);
        self.frozen.extend(outer.1.iter().filter(|a| array.as_ref().is_none_or(|w| w.0 != a.0)).cloned());

        let width = WIDTHS[self.rng.below(WIDTHS.len())];
        (self.width, self.may_have_ended, self.loops, self.row) = (width, false, 0, row);
        self.line(&format!("for {k}i in vec({width}, {lo}, {hi}) {{"));
        self.indent += 1;
        self.line(&format!("let {k} = {k}i as u32;"));
        let end = self.name("end");
        self.line(&format!("let {end} = continue;"));
        self.end = Some(end);
        self.vars.push(Var { name: k.clone(), ty: U32, is_mutable: false });
        (self.level, self.depth) = (self.level + 1, self.depth + 1);
        self.top = self.depth;
        for _ in 0..1 + self.rng.below(4) {
            self.statement();
        }
        if self.row.is_some() {
            self.own_row();
        }
        if let Some(var) = sum {
            let (how, e) = ([1, 5, 6, 9][self.rng.below(4)], self.expr(U32, 2));
            self.line(&format!("atomic({how}u, &mut {}, {e}, 7u, \"\");", var.name));
        }
        if let Some(var) = one {
            let (at, e) = (self.rng.below(most + 1), self.expr(var.ty, 2));
            self.line(&format!("if {k}i == {at} {{ {} = {e}; }}", var.name));
        }
        if let Some((name, ty)) = array {
            let e = self.expr(ty, 2);
            self.line(&format!("{name}({k}i) = {e};"));
        }
        (self.level, self.depth) = (self.level - 1, self.depth - 1);
        self.indent -= 1;
        self.line("}");
        (self.width, self.may_have_ended, self.loops, self.top, self.end, self.row) = state;
        (self.packs, self.closures, self.jumps, self.result) = hidden;
        (self.vars, self.arrays, self.frozen) = outer;
        self.own = own;
    }
}
