//! Random functions in Sierra: with lanes, each lane has the result that the same text has without.

use crate::common::{Folder, nyala, stderr};

const FUNCTIONS: usize = 12;
/// Arguments that each function is called with, four at a time.
const CALLS: usize = 6;
/// What each round of a loop leaves in the result.
const TRACE: &str = "s = (s * 3 + a + b * 5) % 1000;\n";

struct Maker {
    state: u64,
    /// Variables with floats, in scope.
    floats: Vec<String>,
    n_names: usize,
    n_loops: usize,
    text: String,
}

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        // splitmix64
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn pick(&mut self, from: &[String]) -> String {
        from[self.below(from.len())].clone()
    }

    /// In a range in which nothing overflows.
    fn expr(&mut self, vars: &[String], depth: usize) -> String {
        match if depth == 0 { self.below(4) } else { self.below(10) } {
            0 => format!("{}", self.below(9) as i32 - 4),
            1..=3 => self.pick(vars),
            4 | 5 => {
                let op = ["+", "-", "*", "&", "|", "^"][self.below(6)];
                format!("({} {op} {}) % 100", self.expr(vars, depth - 1), self.expr(vars, depth - 1))
            }
            6 => {
                let (condition, divisor) = (self.condition(vars), self.pick(vars));
                let quotient = format!("{} / {divisor}", self.pick(vars));
                format!("({divisor} != 0 && {condition} ? {quotient} : {})", self.expr(vars, depth - 1))
            }
            7 => format!("table[({}) & 7]", self.expr(vars, depth - 1)),
            8 => format!("min({}, {})", self.expr(vars, depth - 1), self.expr(vars, depth - 1)),
            _ => {
                let condition = self.condition(vars);
                format!("({condition} ? {} : {})", self.expr(vars, depth - 1), self.expr(vars, depth - 1))
            }
        }
    }

    fn condition(&mut self, vars: &[String]) -> String {
        let op = ["<", ">", "==", "<=", "!="][self.below(5)];
        let one = format!("{} {op} {}", self.expr(vars, 1), self.expr(vars, 1));
        match self.below(4) {
            0 => format!("({one} && {} > 1)", self.pick(vars)),
            1 => format!("({one} || !({} < 2))", self.pick(vars)),
            _ => one,
        }
    }

    /// Floats are halved each time, so that none is too large for an integer.
    fn float_statement(&mut self, vars: &mut Vec<String>) {
        let value = format!("{} * 0.5f + {}", self.expr(vars, 1), self.pick(vars));
        match self.below(3) {
            0 => {
                self.n_names += 1;
                let name = format!("f{}", self.n_names);
                self.text += &format!("F {name} = {value};\n");
                self.floats.push(name);
            }
            _ if self.floats.is_empty() => {}
            1 => {
                let (name, other) = (self.below(self.floats.len()), self.below(self.floats.len()));
                let (name, other) = (self.floats[name].clone(), self.floats[other].clone());
                let value = self.expr(vars, 1);
                self.text += &format!("{name} = {other} * 0.5f + {value};\n");
            }
            _ => {
                self.n_names += 1;
                let (at, name) = (self.below(self.floats.len()), format!("x{}", self.n_names));
                self.text += &format!("T {name} = {};\n", self.floats[at]);
                vars.push(name);
            }
        }
    }

    /// `T` stands for `int`, `F` for `float`, with lanes or without.
    fn statements(&mut self, vars: &[String], depth: usize, in_loop: bool) {
        let mut vars = vars.to_vec();
        let n_floats = self.floats.len();
        for _ in 0..1 + self.below(4) {
            match if depth == 0 { self.below(6) } else { self.below(17) } {
                3 | 10 if in_loop => {
                    let condition = self.condition(&vars);
                    let word = ["break", "continue"][self.below(2)];
                    self.text += &format!("if ({condition}) {word};\n");
                }
                0 | 1 => {
                    self.n_names += 1;
                    let (name, value) = (format!("x{}", self.n_names), self.expr(&vars, 2));
                    self.text += &format!("T {name} = {value};\n");
                    vars.push(name);
                }
                2 | 3 => {
                    let (name, value) = (self.pick(&vars), self.expr(&vars, 2));
                    let op = ["=", "+=", "-=", "^="][self.below(4)];
                    self.text += &format!("{name} {op} {value}; {name} %= 100;\n");
                }
                4 | 5 => self.float_statement(&mut vars),
                6 => {
                    let value = self.expr(&vars, 1);
                    self.text += &format!("switch (({value}) & 3) {{\n");
                    for n in 0..2 + self.below(3) {
                        self.text += &if n == 3 { "default:\n".to_string() } else { format!("case {n}: {{\n") };
                        self.text += if n == 3 { "{\n" } else { "" };
                        self.statements(&vars, depth - 1, in_loop);
                        let end = ["}\n", "}\nbreak;\n"][self.below(2)];
                        self.text += end;
                    }
                    self.text += "}\n";
                }
                14..=16 => {
                    let condition = self.condition(&vars);
                    self.text += &format!("if ({condition}) {{\n");
                    self.statements(&vars, depth - 1, in_loop);
                    if self.below(2) == 0 {
                        self.text += "} else {\n";
                        self.statements(&vars, depth - 1, in_loop);
                    }
                    self.text += "}\n";
                }
                7 | 8 => {
                    self.n_loops += 1;
                    let (name, end) = (format!("i{}", self.n_loops), self.expr(&vars, 1));
                    // A loop whose bound has lanes, or has none.
                    let (ty, end) =
                        if self.below(3) == 0 { ("int", "3".into()) } else { ("T", format!("({end}) % 5")) };
                    self.text += &format!("for ({ty} {name} = 0; {name} < {end}; {name}++) {{\n");
                    // Loop variables are not assigned: they would not end.
                    let inner = vars.clone();
                    self.statements(&inner, depth - 1, true);
                    self.text += TRACE;
                    self.text += "}\n";
                }
                9 => {
                    self.n_loops += 1;
                    let name = format!("i{}", self.n_loops);
                    let condition = self.condition(&vars);
                    self.text += &format!("{{ int {name} = 0; do {{ {name}++;\n");
                    self.statements(&vars, depth - 1, true);
                    self.text += TRACE;
                    self.text += &format!("}} while ({condition} && {name} < 4); }}\n");
                }
                _ => {
                    let (condition, value) = (self.condition(&vars), self.expr(&vars, 1));
                    self.text += &format!("if ({condition}) return {value} + s;\n");
                }
            }
        }
        self.floats.truncate(n_floats);
    }
}

#[test]
fn each_lane_has_the_result_of_the_program_without_lanes() {
    let folder = Folder::new("sierra-random");
    let mut maker = Maker { state: 1, floats: Vec::new(), n_names: 0, n_loops: 0, text: String::new() };
    let mut program = "int table[8] = {5, -3, 0, 7, 1, -1, 40, 2};\n".to_string();
    let mut checks = String::new();
    for f in 0..FUNCTIONS {
        maker.text.clear();
        maker.floats.clear();
        maker.statements(&["a".into(), "b".into()], 3, false);
        let result = maker.expr(&["a".into(), "b".into()], 2);
        let body = format!("T s = 1;\n{}return {result} + s;\n", maker.text);
        for (name, ty) in [(format!("one{f}"), "int"), (format!("four{f}"), "int varying(4)")] {
            // `T` is a word of its own.
            let body = body.replace("T ", &format!("{ty} ")).replace("F ", &format!("{} ", ty.replace("int", "float")));
            program += &format!("{ty} {name}({ty} a, {ty} b) {{\n{body}}}\n");
        }
        for _ in 0..CALLS {
            let [a, b] = [0, 1].map(|_| [0; 4].map(|_: i32| maker.below(24) as i32 - 8));
            let list = |of: [i32; 4]| of.map(|n| n.to_string()).join(", ");
            checks += &format!(
                "check({f}, (int varying(4)) {{{}}}, four{f}((int varying(4)) {{{}}}, (int varying(4)) {{{}}}));\n",
                [0, 1, 2, 3].map(|i| format!("one{f}({}, {})", a[i], b[i])).join(", "),
                list(a),
                list(b)
            );
        }
    }
    program += "int wrong = 0;
        void check(int f, int varying(4) one, int varying(4) four) {
            if (all(one == four)) return;
            print(\"function %: % %\\n\", f, one, four);
            wrong++;
        }\n";
    program += &format!("int main() {{\n{checks}print(\"% wrong\\n\", wrong);\nreturn 0;\n}}\n");
    let path = folder.write("random.sierra", &program);
    for args in [&["--engine", "interp"][..], &["-O0", "--no-pe"], &[]] {
        let all: Vec<&std::ffi::OsStr> =
            ["run"].iter().chain(args).map(|a| a.as_ref()).chain([path.as_os_str()]).collect();
        let output = nyala(&all, 60);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, "0 wrong\n", "{args:?}: {}", stderr(&output));
    }
}
