//! Random closed programs: the machine does what the rules say.

use nyala_base::Span;
use nyala_staging::prim::Prim;
use nyala_staging::term::{Body, Const, Stage, StageNode, Terms, Value, Var};
use nyala_staging::{Limits, Outcome, machine, print, reference};

pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Ty {
    Int,
    Stage,
    Fn(Vec<Ty>),
}

/// Makes terms that are nearly well typed: else most programs were stuck at once.
struct Maker {
    terms: Terms,
    rng: Rng,
    scope: Vec<(Var, Ty)>,
    /// Names that `fix` binds around here, on which calls of them wait.
    fixed: Vec<Var>,
    /// Bodies that may still be made.
    left: usize,
}

impl Maker {
    fn program(seed: u64) -> (Terms, Body) {
        let size = 6 + (seed % 29) as usize;
        let mut maker =
            Maker { terms: Terms::default(), rng: Rng(seed), scope: Vec::new(), fixed: Vec::new(), left: size };
        let always = maker.terms.stage(StageNode::Const(true));
        let body = maker.body(always);
        (maker.terms, body)
    }

    fn ty(&mut self, depth: usize) -> Ty {
        match self.rng.below(if depth == 0 { 3 } else { 6 }) {
            0 | 1 => Ty::Int,
            2 => Ty::Stage,
            _ => Ty::Fn((0..self.rng.below(3)).map(|_| self.ty(depth - 1)).collect()),
        }
    }

    fn any_var(&mut self, fits: impl Fn(&Ty) -> bool) -> Option<(Var, Ty)> {
        let fitting: Vec<_> = self.scope.iter().filter(|(_, ty)| fits(ty)).cloned().collect();
        // Late ones more often.
        let i = self.rng.below(fitting.len()).max(self.rng.below(fitting.len()));
        fitting.get(i).cloned()
    }

    fn stage(&mut self, natural: Stage, depth: usize) -> Stage {
        let node = match self.rng.below(if depth == 0 { 12 } else { 16 }) {
            0..=4 => return natural,
            5..=10 => match self.any_var(|_| true) {
                Some((x, _)) => StageNode::Var(x),
                None => return natural,
            },
            11 => StageNode::Const(self.rng.below(3) > 0),
            12 | 13 => StageNode::And(self.stage(natural, depth - 1), self.stage(natural, depth - 1)),
            14 => StageNode::Or(self.stage(natural, depth - 1), self.stage(natural, depth - 1)),
            _ => {
                let not = self.stage(natural, depth - 1);
                // A function's own stage is not set before its call: few programs were left.
                if not == natural { return natural } else { StageNode::Not(not) }
            }
        };
        self.terms.stage(node)
    }

    fn value(&mut self, ty: &Ty) -> Value {
        if self.rng.below(3) > 0
            && let Some((x, _)) = self.any_var(|t| t == ty)
        {
            return Value::Var(x);
        }
        match ty {
            Ty::Int => Value::Const(Const::Int(self.rng.below(5) as i32 - 1)),
            Ty::Stage => match self.any_var(|_| true) {
                Some((x, _)) if self.rng.below(4) > 0 => Value::Var(x),
                _ => Value::Const(Const::Stage(self.rng.below(4) > 0)),
            },
            Ty::Fn(params) => self.lam(params, None),
        }
    }

    fn lam(&mut self, params: &[Ty], also: Option<(Var, Ty)>) -> Value {
        let before = self.scope.len();
        self.scope.extend(also);
        let vars: Vec<Var> = params.iter().map(|_| self.terms.var(None)).collect();
        self.scope.extend(vars.iter().copied().zip(params.iter().cloned()));
        let stage = self.terms.var(Some("s".into()));
        self.scope.push((stage, Ty::Stage));
        let natural = self.terms.stage(StageNode::Var(stage));
        let body = self.body(natural);
        self.scope.truncate(before);
        Value::Lam(self.terms.lam(stage, vars, body))
    }

    fn args(&mut self, params: &[Ty]) -> Vec<Value> {
        // Seldom the wrong number.
        let n = if self.rng.below(60) == 0 { params.len() / 2 } else { params.len() };
        params[..n].iter().map(|ty| self.value(ty)).collect()
    }

    fn body(&mut self, natural: Stage) -> Body {
        let mut stage = self.stage(natural, 2);
        if self.left == 0 {
            let args = [self.value(&Ty::Int)];
            let callee = match self.any_var(|t| *t == Ty::Fn(vec![Ty::Int])) {
                Some((k, _)) => {
                    stage = self.wait_for_fixed(stage, k);
                    Value::Var(k)
                }
                None => {
                    // A function that nobody has called can't end the program, but code of it may.
                    if self.rng.below(2) > 0 {
                        stage = self.terms.stage(StageNode::Const(false));
                    }
                    Value::Const(Const::Prim(Prim::Exit))
                }
            };
            return self.terms.apply(stage, callee, args, Span::NONE);
        }
        self.left -= 1;
        let choice = self.rng.below(12);
        let (callee, args) = match choice {
            0..=2 => match self.any_var(|t| matches!(t, Ty::Fn(_))) {
                Some((f, Ty::Fn(params))) => {
                    stage = self.wait_for_fixed(stage, f);
                    (Value::Var(f), self.args(&params))
                }
                _ => (self.lam(&[Ty::Stage], None), vec![self.value(&Ty::Stage)]),
            },
            3..=5 => {
                let params: Vec<Ty> = (0..self.rng.below(4)).map(|_| self.ty(2)).collect();
                let args = self.args(&params);
                (self.lam(&params, None), args)
            }
            6..=8 => {
                let prim = [Prim::Add, Prim::Sub, Prim::Mul, Prim::Add, Prim::Sub, Prim::Mul, Prim::Div, Prim::Mod]
                    [self.rng.below(8)];
                let mut args = vec![self.value(&Ty::Int), self.value(&Ty::Int)];
                stage = self.wait_for_operands(stage, &args);
                args.push(self.lam(&[Ty::Int], None));
                (Value::Const(Const::Prim(prim)), args)
            }
            9 => {
                let args = [self.value(&Ty::Int), self.value(&Ty::Int)];
                stage = self.wait_for_operands(stage, &args);
                let bool_var = self.terms.var(Some("b".into()));
                let own = self.terms.var(Some("s".into()));
                let natural = self.terms.stage(StageNode::Var(own));
                self.scope.push((own, Ty::Stage));
                let branches = [self.lam(&[], None), self.lam(&[], None)];
                let inner = self.stage(natural, 1);
                let inner = self.wait_for_operands(inner, &[Value::Var(bool_var)]);
                self.scope.pop();
                let inner = self.terms.apply(
                    inner,
                    Value::Const(Const::Prim(Prim::If)),
                    [Value::Var(bool_var), branches[0], branches[1]],
                    Span::NONE,
                );
                let then = Value::Lam(self.terms.lam(own, [bool_var], inner));
                (Value::Const(Const::Prim(Prim::Lt)), vec![args[0], args[1], then])
            }
            _ => {
                let params: Vec<Ty> = (0..self.rng.below(3)).map(|_| self.ty(1)).collect();
                let f = self.terms.var(Some("f".into()));
                let ty = Ty::Fn(params.clone());
                self.fixed.push(f);
                let Value::Lam(lam) = self.lam(&params, Some((f, ty.clone()))) else { unreachable!() };
                self.scope.push((f, ty));
                // What follows waits for it, too.
                let of_f = self.terms.stage(StageNode::Var(f));
                let rest =
                    if self.rng.below(8) == 0 { natural } else { self.terms.stage(StageNode::And(natural, of_f)) };
                let rest = self.body(rest);
                self.scope.pop();
                return self.terms.fix(stage, f, lam, rest, Span::NONE);
            }
        };
        self.terms.apply(stage, callee, args, Span::NONE)
    }

    /// Mostly, calls of a variable wait for it.
    fn wait_for_fixed(&mut self, stage: Stage, callee: Var) -> Stage {
        let is_fixed = self.fixed.contains(&callee);
        if self.rng.below(if is_fixed { 30 } else { 12 }) == 0 {
            return stage;
        }
        let of_callee = self.terms.stage(StageNode::Var(callee));
        self.terms.stage(StageNode::And(stage, of_callee))
    }

    fn wait_for_operands(&mut self, mut stage: Stage, operands: &[Value]) -> Stage {
        for operand in operands {
            if let Value::Var(x) = *operand
                && self.rng.below(20) > 0
            {
                let of_operand = self.terms.stage(StageNode::Var(x));
                stage = self.terms.stage(StageNode::And(stage, of_operand));
            }
        }
        stage
    }
}

#[derive(Default, Debug)]
struct Seen {
    compared: usize,
    /// With more executed bodies than rounds: some were active at once.
    at_once: usize,
    stuck: usize,
    unfinished: usize,
    steps: u64,
    most_rounds: u64,
}

fn text(terms: &Terms, outcome: &Outcome) -> String {
    let mut stuck: Vec<_> = outcome.stuck.iter().map(|s| s.why).collect();
    stuck.sort();
    format!("{}steps {}, rounds {}, stuck {stuck:?}", print::print(terms, outcome.body), outcome.steps, outcome.rounds)
}

fn compare(seed: u64, seen: &mut Seen) {
    let limits = Limits { steps: 30, size: 1_000 };
    let (mut terms, program) = Maker::program(seed);
    let expected = match reference::run(&mut terms, program, limits) {
        Ok(outcome) => {
            let text = text(&terms, &outcome);
            seen.stuck += usize::from(!outcome.stuck.is_empty());
            seen.at_once += usize::from(outcome.steps > outcome.rounds);
            seen.steps += outcome.steps;
            seen.most_rounds = seen.most_rounds.max(outcome.rounds);
            Some(text)
        }
        Err(_) => None,
    };
    let (mut terms, program) = Maker::program(seed);
    let limits = if expected.is_some() { Limits::default() } else { Limits { size: 100_000, ..limits } };
    let found = machine::run(&mut terms, program, limits);
    let Some(expected) = expected else {
        seen.unfinished += 1;
        return;
    };
    let found = match found {
        Ok(outcome) => text(&terms, &outcome),
        Err(exceeded) => format!("{exceeded:?}"),
    };
    if expected != found {
        panic!("seed {seed}\n{}by the rules\n{expected}\nthe machine\n{found}", print::print(&terms, program));
    }
    seen.compared += 1;
}

fn compare_all(seeds: std::ops::Range<u64>) -> Seen {
    let mut seen = Seen::default();
    seeds.for_each(|seed| compare(seed, &mut seen));
    println!("{seen:?}");
    seen
}

#[test]
fn machine_does_what_the_rules_say() {
    let seen = compare_all(0..10_000);
    // That the programs are worth comparing.
    assert!(seen.compared > 8_000, "{seen:?}");
    assert!(seen.at_once > 300, "{seen:?}");
    assert!(seen.stuck < 4_000, "{seen:?}");
    assert!(seen.steps > 30_000, "{seen:?}");
}

#[test]
#[ignore = "takes 40 s: ./x test --all crates"]
fn machine_does_what_the_rules_say_of_many() {
    let seen = compare_all(1_000_000..1_100_000);
    assert!(seen.compared > 80_000, "{seen:?}");
}
