//! Statements of random programs: memory that is assigned from itself, loops to the ends of integer types, and known faults that
//! do not happen. Apart from the others, since each is long.

use super::super::ENDS;
use super::Maker;

impl Maker {
    /// Assigns memory what is made of its own parts.
    pub(super) fn change_places(&mut self) {
        let at = |m: &mut Maker| match m.rng.chance(60) {
            true => m.rng.below(4).to_string(),
            false => format!("({} & 3u32) as i32", m.atom()),
        };
        match self.rng.below(6) {
            0..=2 if !self.arrays.is_empty() => {
                let name = self.arrays[self.rng.below(self.arrays.len())].clone();
                // Through a pointer, too.
                let place = match self.rng.chance(30) {
                    false => name.clone(),
                    true => {
                        let pointer = self.name("ptr");
                        self.line(&format!("let {pointer} = &mut {name};"));
                        format!("(*{pointer})")
                    }
                };
                let (i, j, k, e) = (at(self), at(self), at(self), self.expr(1));
                let parts = [format!("{name}({i})"), format!("{place}({j}) + 1u32"), format!("{place}({k})"), e];
                let from = self.rng.below(4);
                let parts: Vec<&str> = (0..4).map(|i| &*parts[(i + from) % 4]).collect();
                self.line(&format!("{place} = [{}];", parts.join(", ")));
            }
            3 if !self.arrays.is_empty() => {
                let [to, from] = [0, 1].map(|_| self.arrays[self.rng.below(self.arrays.len())].clone());
                let (i, j) = (at(self), at(self));
                self.line(&format!("{to} = {from}; {to}({i}) = {from}({j});"));
            }
            4 if !self.twos.is_empty() => {
                let two = self.twos[self.rng.below(self.twos.len())].clone();
                self.line(&format!("{two} = Two {{ a: {two}.b, b: {two}.a }};"));
            }
            _ => {
                let (name, a, b) = (self.name("r"), self.expr(1), self.atom());
                self.line(&format!("let mut {name} = [({a}, 1u32), ({b}, 2u32), (3u32, {a})];"));
                let part = |m: &mut Maker| match m.rng.below(3) {
                    0 => format!("{name}({})", m.rng.below(3)),
                    1 => format!("{name}(({} % 3u32) as i32)", m.atom()),
                    _ => format!("({name}({})({}), {})", m.rng.below(3), m.rng.below(2), m.atom()),
                };
                for _ in 0..1 + self.rng.below(2) {
                    let parts = [part(self), part(self), part(self)].join(", ");
                    self.line(&format!("{name} = [{parts}];"));
                }
                let value = self.name("v");
                let (i, j) = (self.rng.below(3), self.rng.below(2));
                self.line(&format!("let {value} = {name}({i})({j}) * 3u32 + {name}(({b} % 3u32) as i32)({});", 1 - j));
                self.values.push(value);
            }
        }
    }

    /// A loop over numbers at one end of an integer type, of up to five rounds.
    pub(super) fn loop_to_end(&mut self) {
        let (ty, least, greatest) = ENDS[self.rng.below(ENDS.len())];
        let n = self.rng.below(5) as i128;
        let step = 1 + self.rng.below(40) as i128;
        let (generator, has_step) = [
            ("range", false),
            ("range_rev", false),
            ("unroll", false),
            ("unroll_rev", false),
            ("parallel", false),
            ("range_step", true),
            ("unroll_step", true),
            ("unroll_rev_step", true),
        ][self.rng.below(8)];
        let length = if has_step { n * step - self.rng.below(step as usize) as i128 } else { n };
        let length = length.clamp(0, greatest - least);
        let (from, to) = match self.rng.chance(70) {
            true => (greatest - length, greatest),
            false => (least, least + length),
        };
        let (generator, step) = match generator {
            "parallel" if !self.has_parallel => ("range", String::new()),
            "parallel" => ("parallel", String::new()),
            _ if has_step => (generator, format!(", {step}{ty}")),
            _ => (generator, String::new()),
        };
        let first = if generator == "parallel" { "1, " } else { "" };
        let (a, b) = (self.hidden(), self.hidden());
        let i = self.name("it");
        self.line(&format!("for {i} in {generator}({first}{a}({from}{ty}), {b}({to}{ty}){step}) {{"));
        self.loop_body(&i, generator == "parallel");
    }

    /// A computation in an unrolled loop, which overflows or divides by zero in the last round. There, a condition on something
    /// unknown keeps it from running.
    pub(super) fn fault_beside(&mut self) {
        let (i, value) = (self.name("it"), self.name("v"));
        let e = [
            "{i} + 2147483645",
            "{i} * 1000000000",
            "-2147483646 - {i}",
            "10 / (3 - {i})",
            "10 % (3 - {i})",
            "({i} as i8 + 125i8) as i32",
            "(-126i8 - {i} as i8) as i32",
            "({i} as i64 * 4000000000000000000i64 >> 7i64) as i32",
        ][self.rng.below(8)];
        let bound = self.expr(1);
        self.line(&format!("let mut {value} = 1u32;"));
        self.line(&format!("for {i} in unroll(0, 4) {{"));
        let e = e.replace("{i}", &i);
        self.line(&format!("    if ({i} as u32) <= {bound} % 3u32 {{ {value} = {value} * 3u32 + ({e}) as u32; }}"));
        self.line("}");
        self.values.push(value);
    }
}
