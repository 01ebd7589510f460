//! Random programs in Staged-C: labels say when a statement is executed, and change no result. So each program prints what it
//! prints without its labels, called with unknown arguments, as a function that is specialized for some of them, and as one that
//! `compile` makes; and what it prints as C.

use crate::common::{Folder, nyala, sh, stderr};
use std::process::Command;

/// Groups of functions in the program.
const GROUPS: usize = 50;

struct Maker {
    state: u64,
    n_names: usize,
    /// Functions that may be called, with the numbers of their parameters.
    functions: Vec<(String, usize)>,
    /// Those of them that take and return a struct.
    of_pairs: Vec<String>,
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

    fn name(&mut self) -> String {
        self.n_names += 1;
        format!("v{}", self.n_names)
    }

    fn expr(&mut self, vars: &[String], depth: usize) -> String {
        match if depth == 0 { self.below(4) } else { self.below(10) } {
            0 => format!("{}", self.below(8) as i32 - 3),
            1..=3 => self.pick(vars),
            4..=7 => {
                let op = ["+", "-", "*"][self.below(3)];
                format!("({} {op} {})", self.expr(vars, depth - 1), self.expr(vars, depth - 1))
            }
            8 => {
                let condition = self.condition(vars);
                format!("({condition} ? {} : {})", self.expr(vars, depth - 1), self.expr(vars, depth - 1))
            }
            _ => format!("min({}, {}) % 7", self.expr(vars, depth - 1), self.expr(vars, depth - 1)),
        }
    }

    /// In a range in which sums of products do not overflow.
    fn number(&mut self, vars: &[String], depth: usize) -> String {
        format!("({}) % 1000", self.expr(vars, depth))
    }

    fn condition(&mut self, vars: &[String]) -> String {
        let op = ["<", ">", "==", "<=", "!="][self.below(5)];
        let one = format!("{} {op} {}", self.expr(vars, 1), self.expr(vars, 1));
        match self.below(5) {
            0 => format!("{one} {} {} < 3", ["&&", "||"][self.below(2)], self.expr(vars, 1)),
            _ => one,
        }
    }

    fn label(&mut self, vars: &[String], function: &str) -> String {
        let (a, b) = (self.pick(vars), self.pick(vars));
        match self.below(14) {
            0 => format!("@{a}: "),
            1 => format!("@{a} & {b}: "),
            2 => format!("@* & {a}: "),
            3 => "@*: ".into(),
            4 => format!("@{function}: "),
            5 => "@always: ".into(),
            6 => format!("@{a} | {b}: "),
            _ => String::new(),
        }
    }

    fn statements(&mut self, vars: &[String], assigned: &[String], depth: usize, function: &str) {
        let (mut vars, mut assigned) = (vars.to_vec(), assigned.to_vec());
        for _ in 0..1 + self.below(4) {
            let label = self.label(&vars, function);
            self.text += &label;
            match if depth == 0 { self.below(7) } else { self.below(10) } {
                choice @ (0 | 3 | 4) => {
                    let value = match (choice, self.functions.len()) {
                        (3, _) => format!("out[{}]", self.below(4)),
                        (4, 1..) => {
                            let which = self.below(self.functions.len());
                            let (callee, n) = self.functions[which].clone();
                            let args: String = (0..n).map(|_| format!(", {}", self.number(&vars, 1))).collect();
                            format!("{callee}(out, n{args})")
                        }
                        _ => self.number(&vars, 2),
                    };
                    let name = self.name();
                    self.text += &format!("int {name} = {value};\n");
                    vars.push(name.clone());
                    assigned.push(name);
                }
                1 => {
                    let (name, value) = (self.pick(&assigned), self.number(&vars, 2));
                    self.text += &format!("{name} = {value};\n");
                }
                2 => {
                    let (at, value) = (self.below(4), self.number(&vars, 2));
                    self.text += &format!("out[{at}] = {value};\n");
                }
                5 => {
                    // A struct, whose fields are variables from here on.
                    let (name, a, b) = (self.name(), self.number(&vars, 1), self.number(&vars, 1));
                    let made = match (self.below(3), self.of_pairs.len()) {
                        (0, 1..) => {
                            let which = self.below(self.of_pairs.len());
                            format!("{}(out, n, (struct Pair){{{a}, {b}}})", self.of_pairs[which])
                        }
                        (1, _) => format!("ps[{}]", self.below(2)),
                        _ => format!("(struct Pair){{{a}, {b}}}"),
                    };
                    self.text += &format!("struct Pair {name} = {made};\n");
                    for field in ["a", "b"] {
                        vars.push(format!("{name}.{field}"));
                        assigned.push(format!("{name}.{field}"));
                    }
                }
                6 => match (self.below(2), self.functions.len()) {
                    (0, 1..) => {
                        // A pointer to a function, known or not.
                        let which = self.below(self.functions.len());
                        let (callee, n) = self.functions[which].clone();
                        let same: Vec<_> = self.functions.iter().filter(|f| f.1 == n).cloned().collect();
                        let other = same[self.below(same.len())].0.clone();
                        let (name, condition) = (self.name(), self.condition(&vars));
                        let params = ", int".repeat(n);
                        let value =
                            if self.below(2) == 0 { callee } else { format!("{condition} ? {callee} : {other}") };
                        let args: String = (0..n).map(|_| format!(", {}", self.number(&vars, 1))).collect();
                        let result = self.name();
                        self.text += &format!(
                            "int (*{name})(int*, int{params}) = {value};\nint {result} = {name}(out, n{args});\n"
                        );
                        vars.push(result.clone());
                        assigned.push(result);
                    }
                    _ => {
                        let (at, value) = (self.below(2), self.number(&vars, 1));
                        let field = ["a", "b"][self.below(2)];
                        let text = match self.below(2) {
                            0 => format!("ps[{at}].{field} = {value};\n"),
                            _ => format!("ps[{at}] = (struct Pair){{{value}, ps->{field}}};\n"),
                        };
                        self.text += &text;
                    }
                },
                7 | 8 => {
                    let condition = self.condition(&vars);
                    self.text += &format!("if ({condition}) {{\n");
                    self.statements(&vars, &assigned, depth - 1, function);
                    if self.below(2) == 0 {
                        self.text += "} else {\n";
                        self.statements(&vars, &assigned, depth - 1, function);
                    }
                    self.text += "}\n";
                }
                _ => {
                    let (i, end) = (self.name(), ["2", "3", "n"][self.below(3)]);
                    self.text += &format!("for (int {i} = 0; {i} < {end}; {i}++) {{\n");
                    let within: Vec<String> = vars.iter().cloned().chain([i]).collect();
                    self.statements(&within, &assigned, depth - 1, function);
                    if self.below(4) == 0 {
                        let condition = self.condition(&within);
                        let leaves = ["break", "continue"][self.below(2)];
                        self.text += &format!("if ({condition}) {leaves};\n");
                    }
                    self.text += "}\n";
                }
            }
        }
    }

    /// The heads of functions come first, so that any of them may be called in the text above it.
    fn function(&mut self, head: &str, vars: &[String], params: &[String], name: &str, result: &str) {
        let text = std::mem::take(&mut self.text);
        self.statements(vars, params, 2, name);
        let result = match result {
            "" => format!("({}) % 1000", self.expr(vars, 1)),
            _ => result.to_string(),
        };
        let body = std::mem::replace(&mut self.text, text);
        // What is called is below.
        let (heads, definitions) = self.text.split_once("//\n").unwrap_or((&self.text, ""));
        self.text = format!(
            "{head};\n{heads}//\n{head} {{\nstruct Pair ps[2] = {{{{1, n}}, {{n, 2}}}};\n{body}return {result};\n}}\n{definitions}"
        );
    }

    /// Functions of one program, the last of which is specialized, and what `main` does with it.
    fn group(&mut self, group: usize) -> String {
        let before = std::mem::take(&mut self.text);
        self.functions.clear();
        self.of_pairs.clear();
        // Two that call each other.
        let own: Vec<String> = ["k", "p", "n"].map(String::from).to_vec();
        for (i, other) in [(0, 1), (1, 0)] {
            let name = format!("r{group}_{i}");
            let head = format!("int {name}(int* out, int n, int k, int p)");
            let call = format!("k <= 0 || k > 5 ? p : r{group}_{other}(out, n, k - 1, (p + n) % 50)");
            self.function(&head, &own, &own[1..2], &name, &call);
        }
        for i in 0..2 {
            self.functions.push((format!("r{group}_{i}"), 2));
        }
        let name = format!("g{group}");
        let fields: Vec<String> = ["p.a", "p.b"].map(String::from).to_vec();
        let vars: Vec<String> = fields.iter().cloned().chain(["n".into()]).collect();
        self.function(&format!("struct Pair {name}(int* out, int n, struct Pair p)"), &vars, &fields, &name, "p");
        self.of_pairs.push(name);
        for i in 0..1 + self.below(3) {
            let function = format!("f{group}_{i}");
            let params: Vec<String> = (0..1 + self.below(3)).map(|i| format!("p{i}")).collect();
            let vars: Vec<String> = params.iter().cloned().chain(["n".into()]).collect();
            let head = format!("int {function}(int* out, int n, int {})", params.join(", int "));
            self.function(&head, &vars, &params, &function, "");
            self.functions.push((function, params.len()));
        }
        self.text = before + &std::mem::take(&mut self.text);
        let (function, n) = self.functions[self.functions.len() - 1].clone();
        let values: Vec<String> = (0..n).map(|_| self.below(5).to_string()).collect();
        let is_known: Vec<bool> = (0..n).map(|_| self.below(2) == 0).collect();
        let (mut params, mut args, mut passed) = (String::new(), String::new(), String::new());
        // Variables for the values, so that they are known when the program runs.
        let (mut variables, mut given) = (String::new(), String::new());
        for (i, value) in values.iter().enumerate() {
            if is_known[i] {
                args += &format!(", {value}");
                variables += &format!("int w{group}_{i} = {value};\n");
                given += &format!(", w{group}_{i}");
            } else {
                params += &format!(", int q{i}");
                args += &format!(", q{i}");
                given += &format!(", q{i}");
                passed += &format!(", {value}");
            }
        }
        self.text += &format!("int s{group}(int* out{params}) = {function}<out, 2{args}>;\n");
        let show: String = (0..4).map(|i| format!(" print(o{group}[{i}], \" \");")).collect();
        format!(
            "int o{group}[4] = {{1, 2, 3, 4}}; int a{group} = s{group}(o{group}{passed}); print(a{group}, \" \");{show}\n\
             {variables}int c{group}(int* out{params}) = compile {function}<out, 2{given}>;\n\
             int d{group} = c{group}(o{group}{passed}); print(d{group}, \" \");{show}\n\
             int b{group} = {function}(o{group}, 2, {}); print(b{group}, \" \");{show} print(\"\\n\");\n",
            values.join(", ")
        )
    }
}

/// Without what is between `@` and `: `.
fn without_labels(text: &str) -> String {
    let mut parts = text.split('@');
    let first = parts.next().unwrap_or_default().to_string();
    first + &parts.map(|part| part.split_once(": ").map_or("", |p| p.1)).collect::<String>()
}

/// What C lacks of Staged-C.
const C_HEAD: &str = r#"
#include <stdio.h>
static int min(int a, int b) { return a < b ? a : b; }
static void print_int(int n) { printf("%d", n); }
static void print_text(const char *text) { fputs(text, stdout); }
#define ONE(x) _Generic((x), char *: print_text, int: print_int)(x)
#define TWO(x, y) (ONE(x), ONE(y))
#define CHOOSE(x, y, of, ...) of
#define print(...) CHOOSE(__VA_ARGS__, TWO, ONE, 0)(__VA_ARGS__)
"#;

/// The program in C: no labels, and a specialized function calls the general one, also within a function.
fn in_c(text: &str) -> String {
    let mut out = C_HEAD.to_string();
    for line in without_labels(text).lines() {
        match line.split_once(" = ").and_then(|(head, value)| {
            Some((head, value.strip_prefix("compile ").unwrap_or(value).strip_suffix(">;")?.split_once('<')?))
        }) {
            Some((head, (callee, args))) => out += &format!("{head} {{ return {callee}({args}); }}\n"),
            None => out += &format!("{line}\n"),
        }
    }
    out
}

fn program(seed: u64, n_groups: usize) -> String {
    let text = "struct Pair { int a; int b; };\n".to_string();
    let mut maker = Maker { state: seed, n_names: 0, functions: Vec::new(), of_pairs: Vec::new(), text };
    let main: String = (0..n_groups).map(|group| maker.group(group)).collect();
    maker.text + &format!("int main() {{\n{main}return 0;\n}}\n")
}

/// The interpreter calls the functions that the compiler makes others of.
#[test]
fn functions_that_are_made_have_the_same_results() {
    let folder = Folder::new("staged-c-compiled");
    let path = folder.write("program.stagedc", program(51, 3));
    let [made, general] = ["jit", "interp"].map(|engine| {
        let output = nyala(&["run".as_ref(), "--engine".as_ref(), engine.as_ref(), path.as_os_str()], 60);
        assert_eq!(output.status.code(), Some(0), "{engine}: {}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    assert_eq!(made, general);
    assert_eq!(made.lines().count(), 3);
}

#[test]
fn labels_change_no_result() {
    let folder = Folder::new("staged-c-random");
    let text = program(50, GROUPS);
    assert!(text.matches('@').count() > 5 * GROUPS);
    let [with, without] = [("with", text.clone()), ("without", without_labels(&text))].map(|(name, text)| {
        let path = folder.write(&format!("{name}.stagedc"), &text);
        let output = nyala(&["run".as_ref(), "--engine".as_ref(), "interp".as_ref(), path.as_os_str()], 60);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    assert_eq!(with.lines().count(), GROUPS);
    assert_eq!(with, without);
    let (source, exe) = (folder.write("program.c", in_c(&text)), folder.path("program"));
    sh(Command::new("cc").arg("-w").arg("-o").arg(&exe).arg(&source));
    assert_eq!(with, sh(&mut Command::new(&exe)), "as in C");
}
