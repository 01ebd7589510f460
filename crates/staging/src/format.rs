//! Staged-C in its canonical form: blanks between tokens, indentation, blank lines. Line ends stay where they are, and comments
//! between the tokens where they stand.
//!
//! Separate from the grammar, since a text is formatted by its tokens: what a bracket or a `*` is, is told by the tokens around it.
//! A text whose tokens would change is left as it is.
//!
//! ```text
//! int f (int*a){
//! @a:if(a[0]<2)
//! return -1 ;
//! }
//! ```
//!
//! becomes
//!
//! ```text
//! int f(int* a) {
//!   @a: if (a[0] < 2)
//!     return -1;
//! }
//! ```

use nyala_base::{FileId, Sink};
use nyala_c_syntax::lexer::{Kind, Token, tokens};

/// An open bracket.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// A block, or the fields of a struct.
    Block,
    /// Values in braces.
    Values,
    /// A type that a value is converted to.
    Cast,
    /// Parentheses and brackets.
    Other,
    /// Arguments of `f<args>`.
    Special,
}

/// What a token is, where its text leaves it open.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Plain,
    Opens(Open),
    Closes(Open),
    /// No blank behind it.
    Prefix,
    /// No blank before it.
    Postfix,
    /// `*` of a type.
    Pointer,
    /// The colon of a label.
    Label,
}

const TYPES: [&str; 6] = ["void", "bool", "int", "float", "double", "stage"];
const KEYWORDS: [&str; 5] = ["if", "for", "while", "return", "else"];
const STEP: usize = 2;

/// The formatted text.
///
/// # Errors
/// The text does not follow the grammar.
pub fn format(file: FileId, text: &str) -> Result<String, Vec<nyala_base::Diagnostic>> {
    let mut sink = Sink::default();
    if !crate::c::parse(file, text, &mut crate::c::Unit::default(), &mut sink) {
        return Err(sink.diagnostics);
    }
    let old = tokens(file, text);
    let new = write(text, &old);
    let words = |tokens: &[Token]| -> Vec<String> { tokens.iter().map(|t| t.text.to_string()).collect() };
    let same = words(&old) == words(&tokens(file, &new));
    Ok(if same { new } else { text.to_string() })
}

fn is_operand(token: Token, role: Role) -> bool {
    match token.kind {
        Kind::Int | Kind::Float | Kind::Text => true,
        Kind::Name => !KEYWORDS.contains(&token.text),
        _ => matches!(role, Role::Closes(_) | Role::Postfix),
    }
}

fn roles(tokens: &[Token]) -> Vec<Role> {
    let mut roles: Vec<Role> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    // Brackets that were open at the `@` of a label, if its colon is to come.
    let mut label: Option<usize> = None;
    let at = |i: usize| tokens.get(i).map_or("", |t| t.text);
    let is_type = |i: usize| TYPES.contains(&at(i)) || at(i) == "struct";
    for (i, &token) in tokens.iter().enumerate() {
        let before = i.checked_sub(1);
        let after_operand = before.is_some_and(|b| is_operand(tokens[b], roles[b]));
        let previous = before.map_or("", at);
        let role = match token.text {
            _ if token.kind != Kind::Sign => Role::Plain,
            "{" => {
                let is_cast = before.is_some_and(|b| roles[b] == Role::Closes(Open::Cast));
                let in_values = matches!(open.last(), Some(Open::Values | Open::Special | Open::Other));
                let is_value = is_cast || matches!(previous, "=" | "return" | "?") || in_values;
                Role::Opens(if is_value { Open::Values } else { Open::Block })
            }
            "(" => {
                let is_head = matches!(previous, "for" | "if" | "while");
                let is_cast = !after_operand && !is_head && is_type(i + 1) && at(i + 2) != "(";
                Role::Opens(if is_cast { Open::Cast } else { Open::Other })
            }
            "[" => Role::Opens(Open::Other),
            "<" if is_special(tokens, i) => Role::Opens(Open::Special),
            ">" if open.last() == Some(&Open::Special) && matches!(at(i + 1), ";") => Role::Closes(Open::Special),
            ")" | "]" | "}" => Role::Closes(open.last().copied().unwrap_or(Open::Other)),
            "@" => {
                label = Some(open.len());
                Role::Prefix
            }
            ":" if label == Some(open.len()) => {
                label = None;
                Role::Label
            }
            "!" => Role::Prefix,
            "-" | "++" | "--" if !after_operand => Role::Prefix,
            "++" | "--" => Role::Postfix,
            "*" => {
                let of_struct = i >= 2 && at(i - 2) == "struct";
                let of_type = before.is_some_and(|b| is_type(b) || roles[b] == Role::Pointer) || of_struct;
                match () {
                    () if of_type => Role::Pointer,
                    // The stage is a value; before a name in parentheses it makes a pointer to a function.
                    () if !after_operand
                        && previous == "("
                        && tokens.get(i + 1).is_some_and(|t| t.kind == Kind::Name) =>
                    {
                        Role::Prefix
                    }
                    () => Role::Plain,
                }
            }
            _ => Role::Plain,
        };
        match role {
            Role::Opens(kind) => open.push(kind),
            Role::Closes(_) => _ = open.pop(),
            _ => (),
        }
        roles.push(role);
    }
    roles
}

/// Whether `<` begins the arguments of a special function: it stands behind `) = f` or `) = compile f`.
fn is_special(tokens: &[Token], i: usize) -> bool {
    let back = |n: usize| i.checked_sub(n).map_or("", |k| tokens[k].text);
    (back(2) == "=" && back(3) == ")") || (back(2) == "compile" && back(3) == "=" && back(4) == ")")
}

/// Whether a blank is between two tokens of a line.
fn is_blank(a: (Token, Role), b: (Token, Role), after_operand: bool) -> bool {
    let ((left, left_role), (right, right_role)) = (a, b);
    match (left_role, right_role) {
        (Role::Prefix, _) | (_, Role::Postfix | Role::Label) => return false,
        (Role::Opens(Open::Block), Role::Closes(Open::Block)) => return false,
        (Role::Opens(Open::Block), _) | (_, Role::Closes(Open::Block)) => return true,
        (Role::Opens(_), _) | (_, Role::Closes(_)) => return false,
        (_, Role::Pointer) => return false,
        (Role::Pointer, _) => return !matches!(right.text, ")" | "," | ">"),
        (Role::Closes(Open::Cast), Role::Opens(Open::Values)) => return false,
        (Role::Closes(Open::Cast), _) => return true,
        (_, Role::Opens(Open::Special)) => return false,
        (_, Role::Opens(Open::Block | Open::Values | Open::Cast)) => return true,
        _ => (),
    }
    match right.text {
        "," | ";" | "." | "->" | "[" => false,
        _ if matches!(left.text, "." | "->") => false,
        // A call, but for the type of a pointer to a function: `int (*f)(int)`.
        "(" => !after_operand,
        _ => true,
    }
}

/// Where a line begins.
#[derive(Default)]
struct Lines {
    /// Brackets that are open, with the state before them and the indentation there.
    open: Vec<(Open, usize, usize, bool)>,
    /// Ends of lines within the statement behind `)` and `else`.
    within: usize,
    /// Another one.
    is_continued: bool,
}

impl Lines {
    fn indent(&self) -> usize {
        let within = self.within + usize::from(self.is_continued);
        self.open.last().map_or(0, |o| o.1 + STEP) + STEP * within
    }

    fn in_brackets(&self) -> bool {
        self.open.last().is_some_and(|o| o.0 != Open::Block)
    }

    /// Another statement begins.
    fn statement(&mut self) {
        (self.within, self.is_continued) = (0, false);
    }

    /// A line ends behind this token.
    fn end(&mut self, token: Token, role: Role) {
        if self.in_brackets() || matches!(token.text, ";" | "{" | "}") {
            return;
        }
        match role {
            // What follows stands below its label.
            Role::Label => (),
            Role::Closes(Open::Other) => self.within += 1,
            _ if token.text == "else" => self.within += 1,
            _ => self.is_continued = true,
        }
    }

    fn open(&mut self, kind: Open) {
        self.open.push((kind, self.indent(), self.within, self.is_continued));
        self.statement();
    }

    fn close(&mut self) {
        if let Some((_, _, within, is_continued)) = self.open.pop() {
            (self.within, self.is_continued) = (within, is_continued);
        }
    }
}

fn write(text: &str, tokens: &[Token]) -> String {
    let roles = roles(tokens);
    let mut out = String::new();
    let mut lines = Lines::default();
    let mut from = 0;
    for (i, &token) in tokens.iter().enumerate() {
        let before = i.checked_sub(1).map(|b| (tokens[b], roles[b]));
        if let Some((last, role)) = before {
            let is_value = matches!(role, Role::Opens(Open::Values) | Role::Closes(Open::Values));
            let ends = matches!(last.text, ";" | "}") && token.text != "else";
            if ends && !is_value && !lines.in_brackets() {
                lines.statement();
            }
        }
        let mut at_line = before.is_none();
        let mut had_comment = false;
        for piece in pieces(&text[from..token.span.lo as usize]) {
            match piece {
                Piece::Lines(n) => {
                    if !out.is_empty() {
                        out.extend(std::iter::repeat_n('\n', n.min(2)));
                    }
                    if let (false, Some((last, role))) = (at_line, before) {
                        lines.end(last, role);
                    }
                    at_line = true;
                }
                Piece::Comment(comment) => {
                    let blanks = if at_line { lines.indent() } else { 1 };
                    out.extend(std::iter::repeat_n(' ', blanks));
                    out += comment;
                    (at_line, had_comment) = (false, true);
                }
            }
        }
        if token.kind == Kind::End {
            break;
        }
        if let Role::Closes(_) = roles[i] {
            lines.close();
        }
        if at_line {
            out.extend(std::iter::repeat_n(' ', lines.indent()));
        } else if let Some(before) = before {
            let begins_pointer = token.text == "(" && tokens[i + 1].text == "*" && roles[i + 1] == Role::Prefix;
            let after_operand = is_operand(before.0, before.1) && !begins_pointer;
            if had_comment || is_blank(before, (token, roles[i]), after_operand) {
                out.push(' ');
            }
        }
        out += token.text;
        if let Role::Opens(kind) = roles[i] {
            lines.open(kind);
        }
        from = token.span.hi as usize;
    }
    out.truncate(out.trim_end().len());
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

enum Piece<'t> {
    /// Ends of lines in a row.
    Lines(usize),
    Comment(&'t str),
}

/// What is between two tokens.
fn pieces(gap: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = gap;
    while let Some(start) = rest.find(|c: char| c == '\n' || !c.is_whitespace()) {
        rest = &rest[start..];
        let (end, is_comment) = match () {
            () if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            () if rest.starts_with("/*") => (rest[2..].find("*/").map_or(rest.len(), |n| n + 4), true),
            () if rest.starts_with('\n') => (rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()), false),
            () => (rest.find(char::is_whitespace).unwrap_or(rest.len()), true),
        };
        let piece = &rest[..end];
        pieces.push(match is_comment {
            true => Piece::Comment(piece.trim_end()),
            false => Piece::Lines(piece.matches('\n').count()),
        });
        rest = &rest[end..];
    }
    pieces
}
