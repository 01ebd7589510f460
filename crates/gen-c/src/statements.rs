//! Statements of a C function as a tree, and what makes the tree one that a person would write: branches without empty
//! sides, early exits, `while`, `for` and `do`. Separate from their making, since it looks at statements only.

use crate::expr::Expr;

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A variable gets a value.
    Assign { var: u32, value: Expr },
    /// Another statement without statements in it.
    Do { text: String, vars: Vec<u32> },
    /// A branch.
    If { cond: Expr, then: Vec<Node>, els: Vec<Node> },
    /// A loop.
    Loop(Box<Loop>),
    /// A label that is jumped to.
    Label(String),
    /// A jump, or the end of the function: what comes after is not executed.
    Exit { exit: Exit, text: String, vars: Vec<u32> },
}

/// How control leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    Break,
    Continue,
    /// `goto`, `return`, or never.
    Other,
}

/// A loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// Assignments before the first round.
    pub init: Option<(u32, Expr)>,
    /// Tested before each round.
    pub before: Option<Expr>,
    /// Tested after each round.
    pub after: Option<Expr>,
    /// The step between two rounds.
    pub step: Option<Step>,
    pub body: Vec<Node>,
}

/// The step of a `for` loop between rounds.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The variable that it changes.
    pub var: u32,
    pub text: String,
    pub vars: Vec<u32>,
}

/// Whether control can come to the end of a list.
pub(crate) fn falls(nodes: &[Node]) -> bool {
    match nodes.last() {
        Some(Node::Exit { .. }) => false,
        Some(Node::If { then, els, .. }) => els.is_empty() || falls(then) || falls(els),
        Some(Node::Loop(l)) => l.before.is_some() || l.after.is_some() || breaks(&l.body),
        _ => true,
    }
}

/// Whether a `break` in the list leaves the loop around it.
fn breaks(nodes: &[Node]) -> bool {
    nodes.iter().any(|n| match n {
        Node::Exit { exit, .. } => *exit == Exit::Break,
        Node::If { then, els, .. } => breaks(then) || breaks(els),
        Node::Loop(_) | Node::Assign { .. } | Node::Do { .. } | Node::Label(_) => false,
    })
}

/// Whether a `continue` in the list goes on with the loop around it.
fn continues(nodes: &[Node]) -> bool {
    nodes.iter().any(|n| match n {
        Node::Exit { exit, .. } => *exit == Exit::Continue,
        Node::If { then, els, .. } => continues(then) || continues(els),
        Node::Loop(_) | Node::Assign { .. } | Node::Do { .. } | Node::Label(_) => false,
    })
}

/// The number of statements, as far as it matters which of two lists is longer.
fn size(nodes: &[Node]) -> usize {
    let one = |n: &Node| match n {
        Node::If { then, els, .. } => 1 + size(then) + size(els),
        Node::Loop(l) => 1 + size(&l.body),
        _ => 1,
    };
    nodes.iter().map(one).sum()
}

/// Tidies a list, whose inner lists are tidy, in a loop's body if `in_loop`.
pub(crate) fn tidy(nodes: Vec<Node>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::new();
    for node in nodes {
        // A label can be jumped to; what comes after another exit cannot be reached.
        if !falls(&out) && !matches!(node, Node::Label(_)) && !out.is_empty() && !has_label(&node) {
            continue;
        }
        match node {
            Node::If { cond, then, els } => branch(cond, then, els, &mut out),
            Node::Loop(l) => {
                let mut l = shape(*l);
                if l.step.is_some()
                    && let Some(Node::Assign { var, .. }) = out.last()
                    && l.step.as_ref().is_some_and(|s| s.var == *var)
                    && let Some(Node::Assign { var, value }) = out.pop()
                {
                    l.init = Some((var, value));
                }
                let last = only_exit(&mut l);
                out.push(Node::Loop(Box::new(l)));
                out.extend(last);
            }
            node => out.push(node),
        }
    }
    out
}

/// Whether a label stands in the statement.
fn has_label(node: &Node) -> bool {
    match node {
        Node::Label(_) => true,
        Node::If { then, els, .. } => then.iter().chain(els).any(has_label),
        Node::Loop(l) => l.body.iter().any(has_label),
        Node::Assign { .. } | Node::Do { .. } | Node::Exit { .. } => false,
    }
}

/// Appends a branch.
fn branch(cond: Expr, then: Vec<Node>, els: Vec<Node>, out: &mut Vec<Node>) {
    let (mut cond, mut then, mut els) = (cond, then, els);
    if then.is_empty() && els.is_empty() {
        // The operands of the condition count as used.
        if cond.must || !cond.vars.is_empty() {
            out.push(Node::Do { text: format!("(void){}", cond.at(crate::expr::Prec::Unary)), vars: cond.vars });
        }
        return;
    }
    let swap = match (falls(&then), falls(&els)) {
        _ if then.is_empty() => true,
        _ if els.is_empty() => false,
        (true, false) => true,
        (false, false) => size(&els) < size(&then),
        _ => false,
    };
    if swap {
        (cond, then, els) = (cond.not(), els, then);
    }
    if !falls(&then) {
        out.push(Node::If { cond, then, els: Vec::new() });
        out.extend(els);
    } else {
        out.push(Node::If { cond, then, els });
    }
}

/// Makes `for (;;) { if (c) { …; break } … }` a `while`, if the loop is left there only; also with `return` for `break`.
/// Returns what then comes after it.
fn only_exit(l: &mut Loop) -> Vec<Node> {
    let Some(Node::If { then, els, .. }) = l.body.first() else { return Vec::new() };
    let Some((Node::Exit { exit, .. }, before_exit)) = then.split_last() else { return Vec::new() };
    let is_only = l.before.is_none()
        && l.after.is_none()
        && els.is_empty()
        && *exit != Exit::Continue
        && !breaks(before_exit)
        && !continues(before_exit)
        && !breaks(&l.body[1..]);
    if !is_only {
        return Vec::new();
    }
    let is_break = *exit == Exit::Break;
    match l.body.remove(0) {
        Node::If { cond, mut then, .. } => {
            l.before = Some(cond.not());
            if is_break {
                then.pop();
            }
            then
        }
        _ => Vec::new(),
    }
}

/// Gives a loop its head.
fn shape(mut l: Loop) -> Loop {
    // The end of the body goes on anyway.
    if let Some(Node::Exit { exit: Exit::Continue, .. }) = l.body.last() {
        l.body.pop();
    }
    let is_break = |n: &[Node]| matches!(n, [Node::Exit { exit: Exit::Break, .. }]);
    match l.body.first() {
        Some(Node::If { cond, then, els }) if is_break(then) && els.is_empty() => {
            l.before = Some(cond.not());
            l.body.remove(0);
        }
        // `if (c) { … } else { break }` that ends the body.
        Some(Node::If { cond, then, els }) if is_break(els) && l.body.len() == 1 => {
            l.before = Some(cond.clone());
            l.body = then.clone();
        }
        _ => {}
    }
    if l.before.is_none() && l.step.is_none() {
        match l.body.last() {
            Some(Node::If { cond, then, els })
                if is_break(then) && els.is_empty() && !continues(&l.body) && l.body.len() > 1 =>
            {
                l.after = Some(cond.not());
                l.body.pop();
            }
            _ => {}
        }
        // `if (c) { continue } break`
        if let [.., Node::If { cond, then, els }, Node::Exit { exit: Exit::Break, .. }] = &l.body[..]
            && matches!(then[..], [Node::Exit { exit: Exit::Continue, .. }])
            && els.is_empty()
            && l.body.len() > 2
            && !continues(&l.body[..l.body.len() - 2])
        {
            l.after = Some(cond.clone());
            l.body.truncate(l.body.len() - 2);
        }
    }
    l
}
