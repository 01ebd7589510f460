//! Source locations of instructions, as LLVM's debug metadata: functions, files and lines, for debuggers and for
//! reports of a program's own faults. Variables and types are not described.

use nyala_base::{FileId, Sources, Span};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The source texts that spans refer to.
#[derive(Clone, Copy)]
pub struct Lines<'a> {
    pub sources: &'a Sources,
    /// The folder that relative file names start from.
    pub folder: &'a str,
    /// The place in the program's own files that code of a library serves.
    pub own: &'a dyn Fn(Span) -> Span,
}

/// The function that instructions belong to.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    node: u32,
    file: FileId,
}

/// Metadata under construction.
pub(crate) struct Origins<'a> {
    lines: Lines<'a>,
    nodes: Vec<String>,
    files: FxHashMap<FileId, u32>,
    /// Lexical blocks for instructions of a function whose source is in another file.
    scopes: FxHashMap<(u32, FileId), u32>,
    locations: FxHashMap<(u32, u32), u32>,
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
        };
        origins.nodes = vec![
            format!(
                "distinct !DICompileUnit(language: DW_LANG_C11, file: !4, producer: \"nyala\", isOptimized: {optimized}, \
                 runtimeVersion: 0, emissionKind: FullDebug, splitDebugInlining: false, nameTableKind: None)"
            ),
            "!DISubroutineType(types: !{null})".into(),
            "!{i32 2, !\"Dwarf Version\", i32 4}".into(),
            "!{i32 2, !\"Debug Info Version\", i32 3}".into(),
        ];
        // The first file gives the unit its name.
        origins.file(FileId(0));
        origins
    }

    fn add(&mut self, node: String) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn file(&mut self, file: FileId) -> u32 {
        if let Some(&node) = self.files.get(&file) {
            return node;
        }
        let (name, folder) = (escape(self.lines.sources.name(file)), escape(self.lines.folder));
        let node = self.add(format!("!DIFile(filename: \"{name}\", directory: \"{folder}\")"));
        self.files.insert(file, node);
        node
    }

    fn line(&self, span: Span) -> u32 {
        if span.is_none() { 0 } else { self.lines.sources.line(span) as u32 }
    }

    /// Adds a function.
    pub fn function(&mut self, name: &str, span: Span) -> Scope {
        let (file, line) = (self.file(span.file), self.line(span));
        let name = escape(name);
        let node = self.add(format!(
            "distinct !DISubprogram(name: \"{name}\", scope: !{file}, file: !{file}, line: {line}, scopeLine: {line}, \
             type: !{FUNCTION_TYPE}, unit: !{UNIT}, spFlags: DISPFlagDefinition)"
        ));
        Scope { node, file: span.file }
    }

    /// The suffix of an instruction of `scope` that was made from `span`.
    pub fn suffix(&mut self, scope: Scope, span: Span) -> String {
        let line = self.line(span);
        let within = if span.is_none() || span.file == scope.file {
            scope.node
        } else if let Some(&node) = self.scopes.get(&(scope.node, span.file)) {
            node
        } else {
            let file = self.file(span.file);
            let node =
                self.add(format!("!DILexicalBlockFile(scope: !{}, file: !{file}, discriminator: 0)", scope.node));
            self.scopes.insert((scope.node, span.file), node);
            node
        };
        let node = match self.locations.get(&(within, line)) {
            Some(&node) => node,
            None => {
                let node = self.add(format!("!DILocation(line: {line}, column: 0, scope: !{within})"));
                self.locations.insert((within, line), node);
                node
            }
        };
        format!(", !dbg !{node}")
    }

    /// The suffix of an instruction that only leads to others: it belongs to the program's own code, even if a library decides.
    /// Where a loop is left of which LLVM has removed the rest, this is its place.
    pub fn suffix_of_jump(&mut self, scope: Scope, span: Span) -> String {
        let own = (self.lines.own)(span);
        self.suffix(scope, own)
    }

    /// Writes all metadata, at the end of the module.
    pub fn write(&self, out: &mut String) {
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
