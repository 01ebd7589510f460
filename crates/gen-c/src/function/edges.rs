//! How control leaves blocks: values for the parameters of the next block, jumps, returns.

use super::FunctionEmitter;
use crate::expr::Expr;
use crate::flow::{Token, Way};
use crate::print::Variable;
use crate::statements::{Exit, Node};
use crate::{Result, bug, calls, ops};
use nyala_base::Id;
use nyala_flat::{Block, Const, Edge, Terminator, Value};
use rustc_hash::FxHashSet;

impl FunctionEmitter<'_, '_> {
    /// Assigns an edge's arguments to the parameters of its target, as if all at once.
    pub(super) fn moves(&mut self, b: usize, nth: usize) -> Result<()> {
        let function = self.function;
        let Some(edge) = function.blocks[b].term.edges().nth(nth) else { return Err(bug("no such edge")) };
        let is_back = self.flow.is_back_edge(b, edge.block.idx());
        let step = self.steps.get(&edge.block.idx()).map(|s| s.0);
        let mut moves: Vec<(u32, Expr, bool)> = Vec::new();
        for (i, (&param, &arg)) in function.block(edge.block).params.iter().zip(&edge.args).enumerate() {
            if self.is_void(param) || self.uses[param.idx()].n == 0 || is_back && step == Some(i) {
                continue;
            }
            // A parameter of a loop has a value from the first round on.
            if is_back && function.as_const(arg) == Some(Const::Undef) {
                continue;
            }
            let var = self.var_of[&param];
            let value = self.raw(arg)?;
            let value = self.assigned(value)?;
            if value.vars != [var] || value.text != self.vars[var as usize].name {
                moves.push((var, value, step == Some(i)));
            }
        }
        self.assign_at_once(moves)
    }

    /// Assigns variables in an order in which each is read before it is written. The variable of a `for` is the last.
    pub(super) fn assign_at_once(&mut self, mut moves: Vec<(u32, Expr, bool)>) -> Result<()> {
        moves.sort_by_key(|m| m.2);
        while !moves.is_empty() {
            let is_read =
                |var: u32, but: usize| moves.iter().enumerate().any(|(i, m)| i != but && m.1.vars.contains(&var));
            match (0..moves.len()).find(|&i| !is_read(moves[i].0, i)) {
                Some(i) => {
                    let (var, value, _) = moves.remove(i);
                    self.push(Node::Assign { var, value });
                }
                None => {
                    // Every variable is read by another: one of them is copied.
                    let var = moves[0].0;
                    let Variable { name, declared, .. } = self.vars[var as usize].clone();
                    let copy_name = self.names.pick(&format!("old_{name}"), "old");
                    self.vars.push(Variable { name: copy_name.clone(), declared, is_parameter: false });
                    let copy = self.vars.len() as u32 - 1;
                    self.push(Node::Assign { var: copy, value: Expr::var(&name, var) });
                    for m in moves.iter_mut().skip(1).filter(|m| m.1.vars.contains(&var)) {
                        m.1.text = replace_word(&m.1.text, &name, &copy_name);
                        m.1.update = None;
                        m.1.vars.iter_mut().filter(|v| **v == var).for_each(|v| *v = copy);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, b: usize) -> Result<()> {
        let function = self.function;
        match &function.blocks[b].term {
            Terminator::Return(results) => {
                let results: Vec<Value> = results.iter().copied().filter(|&v| !self.is_void(v)).collect();
                let value = match &results[..] {
                    [] => None,
                    [one] if function.rets.len() == 1 => Some(self.converted(*one)?),
                    many => {
                        let ty = self.e.result_ty(&function.rets)?;
                        let mut parts = Vec::new();
                        for &v in many {
                            parts.push(self.converted(v)?);
                        }
                        let braces = ops::aggregates::braces(self, ty, &parts)?;
                        Some(self.e.rendered(braces, true)?)
                    }
                };
                self.flush(true)?;
                self.give_back(value);
                Ok(())
            }
            Terminator::TailCall { callee, args, .. } => calls::tail_call(self, *callee, args),
            Terminator::Unreachable => {
                self.flush(true)?;
                let text = self.e.dialect.unreachable.to_string();
                self.push(Node::Exit { exit: Exit::Other, text, vars: Vec::new() });
                Ok(())
            }
            Terminator::Jump(_) | Terminator::Branch { .. } => Err(bug("a block with successors has no end")),
        }
    }

    /// Returns a value.
    pub fn give_back(&mut self, value: Option<Expr>) {
        let text = value.as_ref().map_or("return".to_string(), |v| format!("return {}", v.text));
        let vars = value.map_or(Vec::new(), |v| v.vars);
        self.push(Node::Exit { exit: Exit::Other, text, vars });
    }

    /// Returns what an edge brings to a block that only returns.
    pub(super) fn leave_by(&mut self, b: usize, nth: usize) -> Result<()> {
        let function = self.function;
        let Some(Edge { block, args }) = function.blocks[b].term.edges().nth(nth) else { return Err(bug("no edge")) };
        let target = function.block(*block);
        let Terminator::Return(results) = &target.term else { return Err(bug("no return")) };
        let value = match results.first().filter(|&&v| !self.is_void(v)) {
            None => None,
            Some(result) => {
                let at = target.params.iter().position(|p| p == result);
                Some(self.converted(at.map_or(*result, |i| args[i]))?)
            }
        };
        self.give_back(value);
        Ok(())
    }

    pub(super) fn jump(&mut self, way: Way, to: usize) {
        let (exit, text) = match way {
            Way::Fall => return,
            Way::Break => (Exit::Break, "break".to_string()),
            Way::Continue => (Exit::Continue, "continue".to_string()),
            Way::Goto => (Exit::Other, format!("goto {}", self.labels[&(to, false)])),
            Way::Next => (Exit::Other, format!("goto {}", self.labels[&(to, true)])),
        };
        self.push(Node::Exit { exit, text, vars: Vec::new() });
    }

    pub(super) fn label(&mut self, b: usize) {
        if let Some(label) = self.labels.get(&(b, false)) {
            let label = label.clone();
            self.push(Node::Label(label));
        }
    }

    pub(super) fn find_labels(&mut self, ways: &[Way]) {
        let mut seen: FxHashSet<(usize, bool)> = FxHashSet::default();
        for (i, token) in self.flow.tokens.iter().enumerate() {
            let (Token::Jump(to), way @ (Way::Goto | Way::Next)) = (*token, ways[i]) else { continue };
            if seen.insert((to, way == Way::Next)) {
                let block = &self.function.block(Block::from_idx(to)).name;
                let wanted = if way == Way::Next { format!("next_{block}") } else { block.clone() };
                let name = self.names.pick(&wanted, "label");
                self.labels.insert((to, way == Way::Next), name);
            }
        }
    }
}

/// Replaces a name, where it is not a part of another name.
fn replace_word(text: &str, name: &str, by: &str) -> String {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back().or_else(|| out.chars().next_back().filter(|_| at == 0));
        let after = rest[at + name.len()..].chars().next();
        let is_member = before == Some('.') || rest[..at].ends_with("->");
        out.push_str(&rest[..at]);
        out.push_str(if is_word(before) || is_word(after) || is_member { name } else { by });
        rest = &rest[at + name.len()..];
    }
    out + rest
}
