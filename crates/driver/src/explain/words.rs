//! Renders the record as text: the program's names, places, and sentences for reasons.

use super::{Named, Place, Reason, all_conts, place};
use crate::closures::{is_block, shown_name};
use nyala_base::{SideTable, Sources, Span};
use nyala_ir::{Cont, Linkage, Op, World};
use nyala_specialize::facts::is_function;
use nyala_specialize::record::{Key, Outcome, Piece, Unknown, Why};

/// Maximum number of characters of a filter that are shown.
const MAX_FILTER: usize = 40;

pub(super) struct Words<'a> {
    w: &'a World,
    sources: &'a Sources,
    /// Maps the continuation that a call returns to, to the continuation whose body is the call.
    returns_from: SideTable<Cont, Option<Cont>>,
}

impl<'a> Words<'a> {
    pub fn new(w: &'a World, sources: &'a Sources) -> Words<'a> {
        let mut returns_from: SideTable<Cont, Option<Cont>> = SideTable::default();
        for k in all_conts(w) {
            let Some(body) = w.body(k) else { continue };
            if let Some(ret) = body.args.last().and_then(|&a| w.as_cont(a)).filter(|&r| !is_function(w, r)) {
                returns_from[ret] = Some(k);
            }
        }
        Words { w, sources, returns_from }
    }

    pub fn sources(&self) -> &'a Sources {
        self.sources
    }

    pub fn place(&self, span: Span) -> Option<Place> {
        place(self.sources, span)
    }

    pub fn name(&self, k: Cont) -> String {
        shown_name(self.w.name(k))
    }

    pub fn param(&self, k: Cont, i: u32) -> String {
        let is_return = i as usize + 1 == self.w.params(k).len() && is_function(self.w, k);
        match self.w.param_name(k, i as usize) {
            Some("ret") if is_return => "return".into(),
            Some(name) if !name.is_empty() => name.into(),
            _ => format!("parameter {i}"),
        }
    }

    pub fn value(&self, pieces: &[Piece]) -> String {
        let piece = |p: &Piece| match p {
            Piece::Text(text) => text.clone(),
            Piece::Function(k) => self.function_value(*k),
            Piece::Unknown(Unknown::Param(k, i)) => self.param(*k, *i),
            Piece::Unknown(_) => "?".into(),
        };
        pieces.iter().map(piece).collect()
    }

    /// The text for a function that is a value. Anonymous functions are described by their place.
    fn function_value(&self, k: Cont) -> String {
        let data = self.w.cont(k);
        let line = self.sources.line(data.origin);
        match self.w.name(k) {
            "body" => format!("loop body, line {line}"),
            "lambda" => format!("lambda, line {line}"),
            "k" | "break" => format!("after line {line}"),
            _ => self.w.name(k).to_string(),
        }
    }

    /// The expression that an unknown value comes from, or `None` if it has no recorded origin.
    pub fn unknown(&self, unknown: Unknown) -> Option<Named> {
        let (text, span) = match unknown {
            Unknown::Nowhere => return None,
            Unknown::Op(op, span) => (operation(op), span),
            Unknown::Param(k, i) => {
                let data = self.w.cont(k);
                let name = self.param(k, i);
                let span = self.w.params(k).get(i as usize).map_or(data.origin, |&p| self.w.origin(p));
                match (&*data.linkage, self.returns_from[k]) {
                    (Linkage::Exported(_), _) => {
                        (format!("parameter `{name}` of `extern fn {}`", self.w.name(k)), span)
                    }
                    _ if is_function(self.w, k) => {
                        (format!("parameter `{name}` of `{}`, which is residual", self.name(k)), span)
                    }
                    (_, Some(call)) => self.result_of(call),
                    _ if self.w.name(k) == "join" => (format!("{}, where branches meet", quoted(&name)), data.origin),
                    _ => (format!("{}, which changes in a loop", quoted(&name)), data.origin),
                }
            }
        };
        Some(Named { text, place: self.place(span) })
    }

    fn result_of(&self, call: Cont) -> (String, Span) {
        let Some(body) = self.w.body(call) else { return ("a result".into(), Span::NONE) };
        let mut callee = body.callee;
        while let Some(Op::Unfold | Op::Run | Op::Hlt) = self.w.as_op(callee) {
            callee = self.w.args(callee)[0];
        }
        let text = match self.w.as_cont(callee) {
            Some(k) if self.w.cont(k).linkage.is_external() => {
                format!("the result of `{}`, a function outside the program", self.name(k))
            }
            Some(k) => format!("the result of `{}`", self.name(k)),
            None => "the result of a call".into(),
        };
        (text, body.origin)
    }

    /// The text of the filter of a function or of a parameter.
    fn filter(&self, k: Cont, param: Option<u32>) -> Option<Named> {
        let data = self.w.cont(k);
        let f = match param {
            None => data.filter.all?,
            Some(i) => data.filter.params.get(i as usize).copied().flatten()?,
        };
        if self.w.as_lit(f) == Some(1) {
            return Some(Named { text: "@".into(), place: self.place(data.origin) });
        }
        let span = self.around(self.w.origin(f));
        let text = self.sources.text(span.file).get(span.lo as usize..span.hi as usize).unwrap_or_default();
        let mut text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().count() > MAX_FILTER {
            text = text.chars().take(MAX_FILTER - 1).chain(['…']).collect();
        }
        Some(Named { text, place: self.place(span) })
    }

    /// Widens `span` to the whole filter in the parentheses of `@(…)`. An operation only has the span of one token.
    fn around(&self, span: Span) -> Span {
        let text = self.sources.text(span.file);
        let (lo, hi) = (span.lo as usize, span.hi as usize);
        let Some(start) = text.get(..lo).and_then(|before| before.rfind("@(")).map(|at| at + 2) else { return span };
        let mut depth = 1;
        for (i, c) in text[start..].char_indices() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth == 0 {
                let end = start + i;
                return if end >= hi { Span::new(span.file, start, end) } else { span };
            }
        }
        span
    }

    /// Whether the compiler made the continuation: it is neither a function nor a loop of the program.
    pub fn is_block(&self, w: &World, k: Cont) -> bool {
        is_block(w, self.sources, k)
    }

    fn add_unknown(&self, reason: &mut Reason, unknown: Unknown) {
        if let Some(named) = self.unknown(unknown).filter(|_| reason.unknown.is_none()) {
            reason.text += &format!("; unknown: {}", named.text);
            reason.unknown = Some(named);
        }
    }

    pub fn reason(&self, key: &Key, automatic: u64) -> Reason {
        let callee = key.callee.unwrap_or(key.site);
        let name = self.name(callee);
        let filter_of = |which: Option<u32>| {
            let filter = self.filter(callee, which);
            let shown = filter.as_ref().map_or("its filter".into(), |f| format!("filter `{}`", f.text));
            let of = which.map_or(String::new(), |i| format!(" of `{}`", self.param(callee, i)));
            (filter, format!("{shown}{of}"))
        };
        let plain = |code, text: &str| Reason { code, text: text.into(), filter: None, unknown: None };
        // The specialized parameters come first, then the reason why there are no more.
        let mut because: Vec<(String, Vec<String>)> = Vec::new();
        for i in (0..64).filter(|i| key.outcome == Outcome::Specialized && key.mask >> i & 1 == 1) {
            let text = match automatic >> i & 1 {
                1 => String::new(),
                _ => self.filter(callee, Some(i)).map_or("its filter".into(), |f| format!("`{}`", f.text)),
            };
            let name = format!("`{}`", self.param(callee, i));
            match because.iter_mut().find(|(t, _)| *t == text) {
                Some((_, names)) => names.push(name),
                None => because.push((text, vec![name])),
            }
        }
        let because: Vec<String> = because
            .iter()
            .map(|(text, names)| match (&**text, &names[..]) {
                ("", [name]) => format!("{name} is a function"),
                ("", _) => format!("{} are functions", names.join(", ")),
                _ => format!("filter {text} of {} holds", names.join(", ")),
            })
            .collect();
        let mut reason = match key.why {
            Why::Unfold => plain("unfold", "`@@` before the call"),
            Why::Run => plain("run", "`@` before the call"),
            Why::WithinRun => plain("within-run", "within a call by `@`"),
            Why::Halt => plain("halt", "`$` before the call"),
            Why::Filter => {
                let (filter, text) = filter_of(None);
                Reason { filter, ..plain("filter", &format!("{text} holds")) }
            }
            Why::Parameters => {
                let filters = &self.w.cont(callee).filter.params;
                let first = (0..).zip(filters).find(|(i, f)| f.is_some() && automatic >> i & 1 == 0);
                match first {
                    Some((i, _)) => {
                        let (filter, text) = filter_of(Some(i));
                        Reason {
                            filter,
                            ..plain("parameters", &format!("every parameter is specialized; {text} holds"))
                        }
                    }
                    None => plain("parameters", "every parameter is a function"),
                }
            }
            Why::OnlyCall => plain("only-call", "the only call"),
            Why::HaltedOnlyCall => plain(
                "halt-only-call",
                "`$` leaves this call; it is the only one, so the callee's body replaced it afterwards",
            ),
            Why::KnownLoop => plain("known-loop", "its condition is known, in a function called by `@@`"),
            Why::UnknownLoop(unknown) => {
                let mut reason = plain("unknown-loop", "its condition is not known");
                self.add_unknown(&mut reason, unknown);
                reason
            }
            Why::PlainLoop => plain(
                "plain-loop",
                "`while` is unrolled only if its function is called by `@@` and its condition depends on the function's \
                 parameters",
            ),
            Why::NoAnnotations => plain("no-pe", "`--no-pe`"),
            Why::External => plain("external", &format!("`{name}` lies outside the program")),
            Why::UnknownCallee(unknown) => {
                let mut reason = plain("unknown-callee", "the callee is not known");
                if let Some(named) = self.unknown(unknown) {
                    reason.text += &format!(": {}", named.text);
                    reason.unknown = Some(named);
                }
                reason
            }
            Why::Repeats => plain("repeats", "a copy for these values is there already"),
            Why::Drift(params, unknown) => {
                let names: Vec<String> =
                    (0..64).filter(|i| params >> i & 1 == 1).map(|i| format!("`{}`", self.param(callee, i))).collect();
                let mut text = format!("{} would be another value in each call, without end", names.join(", "));
                let unknown = self.unknown(unknown);
                if let Some(named) = &unknown {
                    text += &format!(": {}", named.text);
                }
                Reason { unknown, ..plain("drift", &text) }
            }
            Why::Shared => {
                plain("shared", &format!("there would be too many copies of `{name}` with equal known values"))
            }
            Why::NoFilter => plain("no-filter", &format!("`{name}` has no filter")),
            Why::FalseFilter(which) => {
                let (filter, text) = filter_of(which);
                Reason { filter, ..plain("false-filter", &format!("{text} is false")) }
            }
            Why::UnknownFilter(which, unknown) => {
                let (filter, text) = filter_of(which);
                let mut reason = Reason { filter, ..plain("unknown-filter", &format!("{text} does not hold")) };
                self.add_unknown(&mut reason, unknown);
                reason
            }
            Why::Condition(unknown) => {
                let is_left = key.outcome == Outcome::Left;
                let text = if is_left { "its condition is not known" } else { "its condition is known" };
                let mut reason = plain("condition", text);
                self.add_unknown(&mut reason, unknown);
                reason
            }
            Why::Various => plain("various", "various reasons: too many to tell them apart"),
        };
        if !because.is_empty() {
            let rest = if key.why == Why::NoFilter { String::new() } else { format!("; {}", reason.text) };
            reason.text = because.join(", ") + &rest;
        }
        reason
    }
}

/// The name of a variable in backticks. `r` is the parameter for an unnamed result.
fn quoted(name: &str) -> String {
    if name == "r" { "the value".into() } else { format!("`{name}`") }
}

fn operation(op: Op) -> String {
    match op {
        Op::Load => "a value loaded from memory".into(),
        Op::Hlt => "a value hidden by `$`".into(),
        Op::Alloc => "memory allocated at run time".into(),
        _ => format!("the result of `{}`", op.name()),
    }
}
