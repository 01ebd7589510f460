//! Where instructions come from, as LLVM's debug metadata: functions, files and lines for reports of a program's own faults; for
//! debuggers also calls that were unfolded, as inlined frames, and variables.
//!
//! Partial evaluation unfolds calls of the program, and notes in each place by which calls code came there ([`Calls`]). Code of an
//! unfolded function belongs to that function, inlined at its call. Code of a function that captures variables belongs to the
//! function that made it, whose variables it sees.

use nyala_base::{CallId, Calls, FileId, Sources, Span};
use nyala_ir::{Ty, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// The source texts that spans refer to.
#[derive(Clone, Copy)]
pub struct Lines<'a> {
    pub sources: &'a Sources,
    /// The folder that relative file names start from.
    pub folder: &'a str,
    /// The place in the program's own files that code of a library serves.
    pub own: &'a dyn Fn(Span) -> Span,
    /// The calls that were unfolded, if debuggers are to know them, and variables.
    pub calls: Option<&'a Calls>,
    /// Whether files are sections of files ([`Sources::section`]): then what is in front of one does not change its code.
    pub in_sections: bool,
}

/// The function that instructions belong to.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    node: u32,
    file: Place,
}

/// A file, or a section of one.
type Place = (FileId, usize);

/// Metadata under construction.
pub(crate) struct Origins<'a> {
    lines: Lines<'a>,
    nodes: Vec<String>,
    files: FxHashMap<Place, u32>,
    /// Lexical blocks for instructions of a function whose source is in another file.
    scopes: FxHashMap<(u32, Place), u32>,
    /// By scope, line, and the call that the scope is inlined at.
    locations: FxHashMap<(u32, u32, Option<u32>), u32>,
    /// Functions that were unfolded, by their numbers in [`Calls`].
    callees: FxHashMap<u32, Scope>,
    /// Calls that were unfolded, in each function of the module: the scope of the callee, and the location of the call.
    unfolded: FxHashMap<(u32, CallId), (Scope, u32)>,
    /// Variables by scope, place and type.
    variables: FxHashMap<(u32, Span, Ty), u32>,
    /// Parameters that are known, by scope and number.
    params: FxHashSet<(u32, u32)>,
    pub(crate) types: FxHashMap<Ty, u32>,
    /// Types whose nodes are empty yet.
    pub(crate) undescribed: Vec<(Ty, u32)>,
    globals: Vec<u32>,
}

/// Nodes with a fixed number.
const UNIT: u32 = 0;
const FUNCTION_TYPE: u32 = 1;
const FLAGS: [u32; 2] = [2, 3];

impl<'a> Origins<'a> {
    pub fn new(lines: Lines<'a>, optimized: bool) -> Origins<'a> {
        let mut origins = Origins {
            lines,
            nodes: Vec::new(),
            files: FxHashMap::default(),
            scopes: FxHashMap::default(),
            locations: FxHashMap::default(),
            callees: FxHashMap::default(),
            unfolded: FxHashMap::default(),
            variables: FxHashMap::default(),
            params: FxHashSet::default(),
            types: FxHashMap::default(),
            undescribed: Vec::new(),
            globals: Vec::new(),
        };
        origins.nodes = vec![
            format!(
                "distinct !DICompileUnit(language: DW_LANG_C11, file: !4, producer: \"nyala\", isOptimized: {optimized}, \
                 runtimeVersion: 0, emissionKind: FullDebug, splitDebugInlining: false, nameTableKind: None"
            ),
            "!DISubroutineType(types: !{null})".into(),
            "!{i32 2, !\"Dwarf Version\", i32 4}".into(),
            "!{i32 2, !\"Debug Info Version\", i32 3}".into(),
        ];
        // The first file gives the unit its name.
        origins.file((FileId(0), 0));
        origins
    }

    /// Goes on with a module of other lines, behind one with these types.
    pub fn enter(&mut self, types: &Types, lines: Lines<'a>) {
        self.describe_types(types);
        self.lines = lines;
        self.types.clear();
        self.callees.clear();
        self.unfolded.clear();
        self.variables.clear();
    }

    pub(crate) fn add(&mut self, node: String) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    pub(crate) fn set(&mut self, node: u32, text: String) {
        self.nodes[node as usize] = text;
    }

    /// Where a span is: the file or section, and the line.
    fn place(&self, span: Span) -> (Place, u32) {
        let sources = self.lines.sources;
        match self.lines.in_sections {
            _ if span.is_none() => ((span.file, 0), 0),
            true => {
                let (section, line) = sources.section(span);
                ((span.file, section), line as u32 + 1)
            }
            false => ((span.file, 0), sources.line(span) as u32),
        }
    }

    fn file(&mut self, file: Place) -> u32 {
        if let Some(&node) = self.files.get(&file) {
            return node;
        }
        let sources = self.lines.sources;
        let name = match self.lines.in_sections {
            true => sources.section_name(file.0, file.1),
            false => sources.name(file.0).to_string(),
        };
        let (name, folder) = (escape(&name), escape(self.lines.folder));
        let node = self.add(format!("!DIFile(filename: \"{name}\", directory: \"{folder}\")"));
        self.files.insert(file, node);
        node
    }

    /// Adds a function.
    pub fn function(&mut self, name: &str, span: Span) -> Scope {
        let (place, line) = self.place(span);
        let (file, name) = (self.file(place), escape(name));
        let node = self.add(format!(
            "distinct !DISubprogram(name: \"{name}\", scope: !{file}, file: !{file}, line: {line}, scopeLine: {line}, \
             type: !{FUNCTION_TYPE}, unit: !{UNIT}, spFlags: DISPFlagDefinition)"
        ));
        Scope { node, file: place }
    }

    /// The suffix of an instruction of `scope` that was made from `span`.
    pub fn suffix(&mut self, scope: Scope, span: Span) -> String {
        let node = self.location(scope, span);
        format!(", !dbg !{node}")
    }

    /// Like [`Self::suffix`], for code that no line of the source has: breakpoints are behind it.
    pub fn suffix_without_line(&mut self, scope: Scope, span: Span) -> String {
        let node = self.location_at(scope, span, 0);
        format!(", !dbg !{node}")
    }

    /// The location of code of a function of the module: within the function that was unfolded there, inlined at its call.
    fn location(&mut self, scope: Scope, span: Span) -> u32 {
        let line = self.place(span).1;
        self.location_at(scope, span, line)
    }

    fn location_at(&mut self, scope: Scope, span: Span, line: u32) -> u32 {
        let (scope, inlined_at) = self.scope_of(scope, span.call);
        let (place, _) = self.place(span);
        let within = if span.is_none() || place == scope.file { scope.node } else { self.in_file(scope, place) };
        if let Some(&node) = self.locations.get(&(within, line, inlined_at)) {
            return node;
        }
        let inlined = inlined_at.map_or(String::new(), |at| format!(", inlinedAt: !{at}"));
        let node = self.add(format!("!DILocation(line: {line}, column: 0, scope: !{within}{inlined})"));
        self.locations.insert((within, line, inlined_at), node);
        node
    }

    /// A function's code in another file.
    fn in_file(&mut self, scope: Scope, file: Place) -> u32 {
        if let Some(&node) = self.scopes.get(&(scope.node, file)) {
            return node;
        }
        let of = self.file(file);
        let node = self.add(format!("!DILexicalBlockFile(scope: !{}, file: !{of}, discriminator: 0)", scope.node));
        self.scopes.insert((scope.node, file), node);
        node
    }

    /// The function that code of a call belongs to, and the location where it is inlined.
    fn scope_of(&mut self, scope: Scope, call: CallId) -> (Scope, Option<u32>) {
        let Some(calls) = self.lines.calls else { return (scope, None) };
        // From the innermost call outward, up to one that is known; then back.
        let mut open = Vec::new();
        let mut at = call;
        let mut found = (scope, None);
        while let Some((place, number)) = calls.get(at) {
            if let Some(&(callee, location)) = self.unfolded.get(&(scope.node, at)) {
                found = (callee, Some(location));
                break;
            }
            open.push((at, place, number));
            at = place.call;
        }
        while let Some((at, place, number)) = open.pop() {
            let callee = self.callee(calls, number);
            let (file, line) = self.place(place);
            let within = match place.is_none() || file == found.0.file {
                true => found.0.node,
                false => self.in_file(found.0, file),
            };
            let inlined = found.1.map_or(String::new(), |at| format!(", inlinedAt: !{at}"));
            let location =
                self.add(format!("distinct !DILocation(line: {line}, column: 0, scope: !{within}{inlined})"));
            self.unfolded.insert((scope.node, at), (callee, location));
            found = (callee, Some(location));
        }
        found
    }

    fn callee(&mut self, calls: &Calls, number: u32) -> Scope {
        if let Some(&scope) = self.callees.get(&number) {
            return scope;
        }
        let (name, place) = calls.callee(number).map_or(("", Span::NONE), |c| (&*c.name, c.place));
        let scope = self.function(name, place);
        self.callees.insert(number, scope);
        scope
    }

    /// The node of a variable, whose name is the text at its place, and of its location. `None` if debuggers are to know no
    /// variables. It is the parameter `nth` of its function if that is not 0.
    pub fn variable(&mut self, scope: Scope, span: Span, ty: Ty, nth: u32) -> Option<(u32, u32)> {
        self.lines.calls?;
        let sources = self.lines.sources;
        let name = escape(sources.text(span.file).get(span.lo as usize..span.hi as usize)?);
        let location = self.location(scope, span);
        let (within, _) = self.scope_of(scope, span.call);
        let key = (within.node, span.without_call(), ty);
        if let Some(&node) = self.variables.get(&key) {
            return Some((node, location));
        }
        let (place, line) = self.place(span);
        let (file, ty) = (self.file(place), self.ty(ty));
        let within = if place == within.file { within.node } else { self.in_file(within, place) };
        let arg = match nth > 0 && self.params.insert((key.0, nth)) {
            true => format!("arg: {nth}, "),
            false => String::new(),
        };
        let node = self.add(format!(
            "!DILocalVariable(name: \"{name}\", {arg}scope: !{within}, file: !{file}, line: {line}, type: !{ty})"
        ));
        self.variables.insert(key, node);
        Some((node, location))
    }

    /// The suffix of a static's definition. Names with a dot are those of constants that the compiler makes.
    pub fn global(&mut self, name: &str, ty: Ty) -> String {
        if self.lines.calls.is_none() || name.contains('.') {
            return String::new();
        }
        let ty = self.ty(ty);
        let name = escape(name);
        let variable = self.add(format!(
            "distinct !DIGlobalVariable(name: \"{name}\", scope: !{UNIT}, type: !{ty}, \
             isLocal: true, isDefinition: true)"
        ));
        let node = self.add(format!("!DIGlobalVariableExpression(var: !{variable}, expr: !DIExpression())"));
        self.globals.push(node);
        format!(", !dbg !{node}")
    }

    /// The suffix of an instruction that only leads to others: it belongs to the program's own code, even if a library decides.
    /// Where a loop is left of which LLVM has removed the rest, this is its place.
    pub fn suffix_of_jump(&mut self, scope: Scope, span: Span) -> String {
        let own = (self.lines.own)(span);
        self.suffix(scope, own)
    }

    /// Writes all metadata, at the end of the module.
    pub fn write(&mut self, types: &Types, out: &mut String) {
        self.describe_types(types);
        let globals: Vec<String> = self.globals.iter().map(|node| format!("!{node}")).collect();
        let globals = self.add(format!("!{{{}}}", globals.join(", ")));
        let _ = write!(self.nodes[UNIT as usize], ", globals: !{globals})");
        let _ = writeln!(out, "!llvm.dbg.cu = !{{!{UNIT}}}\n!llvm.module.flags = !{{!{}, !{}}}", FLAGS[0], FLAGS[1]);
        for (i, node) in self.nodes.iter().enumerate() {
            let _ = writeln!(out, "!{i} = {node}");
        }
    }
}

impl Scope {
    /// The suffix of the header of the function's definition.
    pub fn suffix(self) -> String {
        format!(" !dbg !{}", self.node)
    }
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        match b {
            b'"' | b'\\' | 0..=31 | 127.. => {
                let _ = write!(out, "\\{b:02X}");
            }
            _ => out.push(b as char),
        }
    }
    out
}
