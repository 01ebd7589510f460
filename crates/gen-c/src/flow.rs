//! Structured control flow of a function, recovered from its blocks: a list of tokens, each block once, with loops and
//! branches as brackets. Separate from the text, since it needs no expressions.
//!
//! A block whose only way in is one edge stands where that edge is. A block where several ways meet stands after the
//! branch of its immediate dominator, where all ways come together (Ramsey, Beyond Relooper, ICFP 2022); if the dominator
//! is in a loop that the block is not in, after that loop. So does one of the exits of each loop. An edge to a block that
//! stands elsewhere is a jump. If the block comes next anyway, nothing is written; else it is a `break`, a `continue` or,
//! where several loops are left at once or a cycle has several entries, a `goto`.
//!
//! ```text
//! entry: jump head(0)                      Block(entry) Moves(entry, 0)
//! head(i): branch c, body(), out()         Loop(head) Block(head) If(head) Block(body) Moves(body, 0) Jump(head)
//! body: jump head(j)                         Else Jump(out) End EndLoop Block(out) Leave(out)
//! out: return(i)
//! ```

use nyala_base::Id;
use nyala_base::graph::{self, NONE};
use nyala_flat::analysis::Cfg;
use nyala_flat::{Function, Terminator};

/// A piece of a function's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// The instructions of a block.
    Block(usize),
    /// The arguments of the n-th edge of a block go to the parameters of its target.
    Moves(usize, usize),
    /// A branch by the condition of a block.
    If(usize),
    Else,
    End,
    /// A loop with this header.
    Loop(usize),
    EndLoop(usize),
    /// Goes on at a block that stands elsewhere.
    Jump(usize),
    /// The end of a block without successors.
    Leave(usize),
    /// The end of a block that only returns, taken over by the n-th edge of another one.
    LeaveBy(usize, usize),
}

/// Branches and loops are nested no deeper than this; what is deeper stands behind the end of the function.
const MAX_DEPTH: usize = 40;

/// A branch nested deeper than this gets no `else` if nothing comes after both sides: its first side then jumps.
const MAX_ELSE: usize = 8;

/// The control flow of a function: its loops and branches.
pub(crate) struct Flow {
    pub tokens: Vec<Token>,
    /// The innermost loop around each block, as its header.
    pub around: Vec<Option<usize>>,
    pub is_header: Vec<bool>,
    /// Whether a block is jumped to from a block that stands after it, other than by a loop.
    pub is_irregular: bool,
    pub cfg: Cfg,
    /// Blocks that only return; each edge to them does it itself.
    pub returns: Vec<bool>,
    dominators: graph::Tree,
    inline: Vec<bool>,
    /// Blocks that stand after the branch of a block.
    after: Vec<Vec<usize>>,
    /// Blocks that stand after the loop of a header.
    after_loop: Vec<Vec<usize>>,
}

impl Flow {
    /// Recovers the structure of a function that has blocks.
    pub fn new(function: &Function) -> Flow {
        let cfg = Cfg::new(function);
        let n = function.blocks.len();
        let dominators = cfg.dominator_tree();
        let mut flow = Flow {
            tokens: Vec::new(),
            around: vec![None; n],
            is_header: vec![false; n],
            is_irregular: false,
            returns: returns(function),
            dominators,
            inline: vec![false; n],
            after: vec![Vec::new(); n],
            after_loop: vec![Vec::new(); n],
            cfg,
        };
        flow.find_loops();
        flow.place(function);
        flow.write(function);
        flow
    }

    /// Whether every path to `b` goes through `a`.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        self.dominators.meet(a, b) == a
    }

    /// Whether an edge leads back to the header of a loop around it.
    pub fn is_back_edge(&self, from: usize, to: usize) -> bool {
        self.is_header[to] && self.dominates(to, from)
    }

    /// Whether a block is in the loop of a header.
    pub fn is_in_loop(&self, b: usize, header: usize) -> bool {
        self.loops_of(b).any(|h| h == header)
    }

    /// The headers of the loops around a block, innermost first.
    pub fn loops_of(&self, b: usize) -> impl Iterator<Item = usize> {
        let innermost = if self.is_header[b] { Some(b) } else { self.around[b] };
        std::iter::successors(innermost, |&h| self.around[h])
    }

    /// Natural loops, inner ones first; an inner loop then stands for its blocks (Havlak: Nesting of Reducible and
    /// Irreducible Loops).
    fn find_loops(&mut self) {
        let n = self.around.len();
        let mut outermost: Vec<usize> = (0..n).collect();
        let find = |outermost: &mut Vec<usize>, mut b: usize| {
            while outermost[b] != b {
                outermost[b] = outermost[outermost[b]];
                b = outermost[b];
            }
            b
        };
        for header in self.cfg.rpo.clone().into_iter().rev().map(|b| b.idx()) {
            let preds: Vec<usize> = self.cfg.preds[header].iter().map(|p| p.idx()).collect();
            let mut work: Vec<usize> = preds.into_iter().filter(|&p| self.dominates(header, p)).collect();
            self.is_header[header] = !work.is_empty();
            while let Some(b) = work.pop() {
                let b = find(&mut outermost, b);
                if b != header {
                    (self.around[b], outermost[b]) = (Some(header), header);
                    work.extend(self.cfg.preds[b].iter().map(|p| p.idx()));
                }
            }
        }
    }

    /// Decides where each block stands.
    fn place(&mut self, function: &Function) {
        let order: Vec<usize> = self.cfg.rpo.iter().map(|b| b.idx()).collect();
        let mut ways = vec![0; function.blocks.len()];
        for &b in &order {
            for p in self.cfg.preds[b].clone() {
                let p = p.idx();
                if self.cfg.position[p] >= self.cfg.position[b] && !self.is_back_edge(p, b) {
                    self.is_irregular = true;
                }
                ways[b] += !self.is_back_edge(p, b) as usize;
            }
        }
        let chosen = self.exits(function, &order, &ways);
        for &b in order.iter().skip(1) {
            self.returns[b] &= ways[b] > 1;
            if self.returns[b] {
                continue;
            }
            if ways[b] == 1 && !chosen[b] {
                self.inline[b] = true;
                continue;
            }
            let parent = self.cfg.idom[b].idx();
            // The outermost loop that the dominator is in, and this block is not.
            let left = self.loops_of(parent).filter(|&h| !self.is_in_loop(b, h)).last();
            match left {
                Some(header) => self.after_loop[header].push(b),
                None => self.after[parent].push(b),
            }
        }
    }

    /// Chooses, among the exits of loops, blocks that stand after their loop although only one edge leads to them.
    fn exits(&self, function: &Function, order: &[usize], ways: &[usize]) -> Vec<bool> {
        let n = function.blocks.len();
        let mut chosen = vec![false; n];
        // The number of blocks that each block dominates, and of their instructions.
        let mut weight: Vec<usize> = function.blocks.iter().map(|b| b.insts.len() + 1).collect();
        for &b in order.iter().skip(1).rev() {
            weight[self.cfg.idom[b].idx()] += weight[b];
        }
        let mut best: Vec<Option<(bool, bool, usize, usize)>> = vec![None; n];
        // Loops after which something stands anyway, because ways meet there.
        let mut has_meeting = vec![false; n];
        for &b in order.iter().skip(1) {
            let parent = self.cfg.idom[b].idx();
            let left: Vec<usize> = self.loops_of(parent).filter(|&h| !self.is_in_loop(b, h)).collect();
            if ways[b] > 1 {
                if !self.returns[b] {
                    left.iter().for_each(|&h| has_meeting[h] = true);
                }
                continue;
            }
            let Some(&header) = left.last() else { continue };
            let falls = !matches!(function.blocks[b].term, Terminator::Return(_) | Terminator::Unreachable);
            let candidate = (parent == header, falls, weight[b], b);
            if best[header].is_none_or(|old| old < candidate) {
                best[header] = Some(candidate);
            }
        }
        for (header, best) in best.into_iter().enumerate() {
            if let Some((.., weight, b)) = best
                && (!has_meeting[header] || weight > SMALL)
            {
                chosen[b] = true;
            }
        }
        chosen
    }

    /// Lists the tokens, by an explicit stack of what is still to be listed.
    fn write(&mut self, function: &Function) {
        enum Work {
            Block(usize, usize),
            Edge(usize, usize, usize),
            Token(Token),
        }
        // Blocks that stand behind the end, the next one last.
        let mut late: Vec<usize> = Vec::new();
        let mut written = vec![false; function.blocks.len()];
        let mut work = vec![Work::Block(0, 0)];
        loop {
            let Some(next) = work.pop() else {
                match late.pop() {
                    Some(b) => work.push(Work::Block(b, 0)),
                    None => break,
                }
                continue;
            };
            match next {
                Work::Token(token) => self.tokens.push(token),
                Work::Edge(b, nth, depth) => {
                    let Some(edge) = function.blocks[b].term.edges().nth(nth) else { continue };
                    let to = edge.block.idx();
                    if self.returns[to] {
                        self.tokens.push(Token::LeaveBy(b, nth));
                        continue;
                    }
                    if !edge.args.is_empty() {
                        self.tokens.push(Token::Moves(b, nth));
                    }
                    match self.inline[to] && !self.is_back_edge(b, to) {
                        true if depth <= MAX_DEPTH => work.push(Work::Block(to, depth)),
                        true => {
                            self.is_irregular = true;
                            self.tokens.push(Token::Jump(to));
                            late.push(to);
                        }
                        false => self.tokens.push(Token::Jump(to)),
                    }
                }
                // Its dominator stands behind the end, so it does, too.
                Work::Block(b, _) if b != 0 && !written[self.cfg.idom[b].idx()] => {
                    self.is_irregular = true;
                    late.insert(0, b);
                }
                Work::Block(b, depth) => {
                    written[b] = true;
                    let mut inner = depth;
                    // The block that comes last is pushed first.
                    work.extend(self.after_loop[b].iter().rev().map(|&m| Work::Block(m, depth)));
                    if self.is_header[b] {
                        self.tokens.push(Token::Loop(b));
                        work.push(Work::Token(Token::EndLoop(b)));
                        inner += 1;
                    }
                    work.extend(self.after[b].iter().rev().map(|&m| Work::Block(m, inner)));
                    self.tokens.push(Token::Block(b));
                    match &function.blocks[b].term {
                        Terminator::Jump(_) => work.push(Work::Edge(b, 0, inner)),
                        Terminator::Branch { then, .. } => {
                            self.tokens.push(Token::If(b));
                            // A branch that ends the function needs no `else` after it.
                            let to = then.block.idx();
                            let leaves = depth > MAX_ELSE && self.after[b].is_empty()
                                || self.returns[to]
                                || self.inline[to] && function.blocks[to].term.edges().next().is_none();
                            if leaves {
                                work.push(Work::Edge(b, 1, inner));
                                work.push(Work::Token(Token::End));
                            } else {
                                work.push(Work::Token(Token::End));
                                work.push(Work::Edge(b, 1, inner + 1));
                                work.push(Work::Token(Token::Else));
                            }
                            work.push(Work::Edge(b, 0, inner + 1));
                        }
                        Terminator::Return(_) | Terminator::TailCall { .. } | Terminator::Unreachable => {
                            work.push(Work::Token(Token::Leave(b)));
                        }
                    }
                }
            }
        }
    }
}

/// Blocks that only return something, without instructions.
fn returns(function: &Function) -> Vec<bool> {
    let is_return =
        |b: &nyala_flat::BlockData| b.insts.is_empty() && matches!(&b.term, Terminator::Return(r) if r.len() <= 1);
    let mut found: Vec<bool> = function.blocks.iter().map(is_return).collect();
    found[0] = false;
    found
}

/// An exit of at most this many instructions and blocks stands in its loop, if other exits lead past it.
const SMALL: usize = 6;

/// The statement that a jump becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Nothing: the target comes next.
    Fall,
    /// `break` out of the innermost loop.
    Break,
    /// `continue` of the innermost loop.
    Continue,
    /// A `goto` to the block.
    Goto,
    /// A `goto` to the end of the body of this loop.
    Next,
}

/// For each token that is a jump, the statement that it becomes. `has_step`: loops that do something between rounds.
pub(crate) fn ways(flow: &Flow) -> Vec<Way> {
    let tokens = &flow.tokens;
    let n = tokens.len();
    // For each token the block where execution goes on that arrives there; and the ends of brackets.
    let mut next = vec![NONE; n + 1];
    let mut ends: Vec<usize> = Vec::new();
    let mut after_end = vec![NONE; n];
    for (i, token) in tokens.iter().enumerate().rev() {
        next[i] = match *token {
            Token::Block(b) | Token::Loop(b) | Token::Jump(b) => b,
            Token::End | Token::EndLoop(_) => {
                ends.push(i);
                if let Token::EndLoop(h) = *token { h } else { next[i + 1] }
            }
            Token::Else => ends.last().map_or(NONE, |&end| next[end]),
            Token::Moves(..) | Token::If(_) | Token::Leave(_) | Token::LeaveBy(..) => NONE,
        };
        if let Token::If(_) | Token::Loop(_) = token
            && let Some(end) = ends.pop()
        {
            after_end[i] = next[end + 1];
        }
    }
    let mut ways = vec![Way::Fall; n];
    // The innermost loops: header, and the block after the loop.
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match *token {
            Token::Loop(h) => loops.push((h, after_end[i])),
            Token::EndLoop(_) => drop(loops.pop()),
            Token::Jump(to) => {
                ways[i] = match loops.last() {
                    _ if next[i + 1] == to => Way::Fall,
                    Some(&(h, _)) if h == to => Way::Continue,
                    Some(&(_, out)) if out == to => Way::Break,
                    _ if loops.iter().any(|l| l.0 == to) => Way::Next,
                    _ => Way::Goto,
                };
            }
            _ => {}
        }
    }
    ways
}
