//! The front end as a value: files in; texts, syntax trees, the checked program and diagnostics out. Separate from what comes of a
//! program, since an editor wants no more, and has it of broken programs, too.
//!
//! ```text
//! Files ──► Trees ──► FrontEnd ──► Graph ──► Residual ──► Flat ──► code
//!           parse     check        lower     specialize   passes
//! ```
//!
//! Each value owns what it needs, is [`Send`], and has a [`Report`] of its own; nothing here is shared by the process or depends on
//! the order of calls. So several front ends may live at once, in several threads.
//!
//! A [`FrontEnd`] never fails. With errors, the program has what is known: the types of expressions that have one, the meanings of
//! names that have one. [`FrontEnd::again`] makes the front end of changed files: trees of files that are as before are shared, those
//! of the prelude and libraries among them; they are valid as long as a file's number ([`FileId`]) stays, since places have it.
//! Names and types are checked anew. What a front end gives does not depend on the one that it was made from.

use crate::diagnostics::no_such_static;
use crate::files::Loader;
use crate::libraries::Shelves;
use crate::report::{Failed, Report};
use crate::{Options, graph, libraries, sierra, staged, tuning};
use nyala_base::{Diagnostic, FileId, Sink, Span};
use nyala_sema::{Exports, Input, Program};
use nyala_syntax::ast;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The files of a program.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Names and texts of the files that form the program.
    pub given: Vec<(String, String)>,
    /// Texts that stand for those on disk, by path: of files that others name, such as buffers of an editor that are not saved.
    pub unsaved: HashMap<PathBuf, String>,
}

impl Files {
    /// A program of one file.
    pub fn of(name: impl Into<String>, text: impl Into<String>) -> Files {
        let mut files = Files::default();
        files.add(name, text);
        files
    }

    /// Adds a file of the program.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.given.push((name.into(), text.into()));
    }

    /// The names of the files given.
    pub fn names(&self) -> Vec<String> {
        self.given.iter().map(|f| f.0.clone()).collect()
    }

    /// The text of a file that another one names.
    ///
    /// # Errors
    /// The reason why the file cannot be read.
    pub fn read(&self, path: &Path) -> Result<String, String> {
        match self.unsaved.get(path) {
            Some(text) => Ok(text.clone()),
            None => crate::files::read(path),
        }
    }
}

/// The tree of a file as it was parsed, and what the parser found.
struct Parsed {
    file: FileId,
    tree: Arc<ast::Module>,
    found: Vec<Diagnostic>,
}

/// The syntax trees of a program and of the libraries that it uses.
pub struct Trees {
    /// As given; without the values of `nyala tune`, if the program does not fit them.
    pub options: Options,
    /// Texts, and errors of syntax and of files that are missing.
    pub report: Report,
    files: Files,
    /// The trees of all files but the prelude, with the initializers of `-D` and `nyala tune`; those of the program come first.
    modules: Vec<Arc<ast::Module>>,
    /// The number of trees that belong to the program.
    n_program: usize,
    /// The file of tuned values for statics, if there is one that is used.
    tuned: Option<FileId>,
    parsed: Vec<Parsed>,
    /// Where libraries lie, for hints.
    shelves: Shelves,
    /// The names of all libraries, once a hint needed them.
    exports: Arc<OnceLock<Vec<Exports>>>,
}

impl Trees {
    /// Parses files, and those that they name.
    pub fn new(options: Options, files: Files) -> Trees {
        Trees::parse(options, files, None)
    }

    fn parse(options: Options, files: Files, before: Option<&Trees>) -> Trees {
        let mut trees = Trees {
            report: Report::default(),
            files,
            modules: Vec::new(),
            n_program: 0,
            tuned: None,
            parsed: Vec::new(),
            shelves: Shelves::default(),
            exports: Arc::default(),
            options: options.clone(),
        };
        let mut report = Report::default();
        report.time(
            &options,
            "parse",
            |timed| {
                Loader::load(&mut trees, before);
                trees.define_facts();
                trees.define_statics();
                trees.tuned = trees.define_tuned();
                *timed = std::mem::take(&mut trees.report);
            },
            |()| 0,
        );
        // The number of files is known only now.
        report.timings.iter_mut().for_each(|t| t.size = trees.modules.len());
        report.given = trees.files.names().into();
        trees.report = report;
        trees
    }

    /// The files that were given.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The trees of the program's files.
    pub fn program(&self) -> &[Arc<ast::Module>] {
        &self.modules[..self.n_program]
    }

    /// The trees of the files of libraries, without the prelude.
    pub fn libraries(&self) -> &[Arc<ast::Module>] {
        &self.modules[self.n_program..]
    }

    /// The trees of all files but the prelude, for changes.
    pub(crate) fn modules_mut(&mut self) -> &mut [Arc<ast::Module>] {
        &mut self.modules
    }

    /// The trees of all files but the prelude; those of the program come first.
    pub fn all(&self) -> &[Arc<ast::Module>] {
        &self.modules
    }

    /// Notes where libraries lie.
    pub(crate) fn set_shelves(&mut self, shelves: Shelves, before: Option<&Trees>) {
        if let Some(before) = before.filter(|b| b.shelves == shelves) {
            self.exports = before.exports.clone();
        }
        self.shelves = shelves;
    }

    /// The names of all libraries. Only hints ask for them.
    pub(crate) fn exports(&self) -> &[Exports] {
        self.exports.get_or_init(|| libraries::exports(&self.shelves))
    }

    /// Adds the headers of a program in another language, whose tree was the last one.
    pub(crate) fn add_headers(&mut self, name: &str) {
        if sierra::is_sierra(name)
            && let Some(file) = self.parsed.last().map(|p| p.file)
        {
            let files = &self.files;
            sierra::add_headers(&mut self.report.sources, file, &|path| files.read(path));
        }
    }

    /// Adds a file that was loaded.
    pub(crate) fn add(&mut self, tree: Arc<ast::Module>) {
        self.n_program += usize::from(!tree.library);
        self.modules.push(tree);
    }

    /// The tree of a file, which is parsed unless it is as it was before.
    pub(crate) fn tree(
        &mut self,
        name: String,
        text: String,
        path: &[Box<str>],
        library: bool,
        before: Option<&Trees>,
    ) -> Arc<ast::Module> {
        let file = self.report.sources.add(name, text);
        let sources = &self.report.sources;
        let is_same = |b: &&Trees| {
            let old = &b.report.sources;
            old.name(file) == sources.name(file) && old.text(file) == sources.text(file)
        };
        let known = before.filter(is_same).and_then(|b| b.parsed.iter().find(|p| p.file == file));
        let (tree, found) = match known.filter(|p| *p.tree.path == *path && p.tree.library == library) {
            Some(known) => (known.tree.clone(), known.found.clone()),
            None => {
                let mut sink = Sink::default();
                // To Impala's front end, a program of another language is an empty one.
                let is_other = staged::is_program(sources, file) || sierra::is_program(sources, file);
                let text = if is_other { "" } else { sources.text(file) };
                let parsed = nyala_syntax::parse(file, text, &mut sink);
                (Arc::new(ast::Module { path: path.to_vec(), library, ..parsed }), sink.diagnostics)
            }
        };
        self.report.sink.diagnostics.extend(found.iter().cloned());
        self.parsed.push(Parsed { file, tree: tree.clone(), found });
        tree
    }

    /// Gives statics the initializers of `-D`.
    fn define_statics(&mut self) {
        for (name, value) in self.options.defines.clone() {
            let place = tuning::find_static(&self.modules, &name);
            let file = self.report.sources.add(format!("<-D {name}>"), value.clone());
            let Some((m, item)) = place else {
                let span = Span::new(file, 0, value.len());
                let similar = tuning::similar_static(&self.modules, &name);
                self.report.sink.push(no_such_static::error(span, &name, &value, similar));
                continue;
            };
            let module = Arc::make_mut(&mut self.modules[m]);
            let init = nyala_syntax::parse_expr(file, &value, module, &mut self.report.sink);
            if let (Some(init), ast::ItemKind::Static(s)) = (init, &mut module.items[item].kind) {
                s.init = Some(init);
            }
        }
    }
}

/// What a checked program refers to.
struct Referred {
    prelude: Option<Arc<ast::Module>>,
    trees: Trees,
    exports: Box<dyn Fn() -> Vec<Exports> + Send + Sync>,
}

self_cell::self_cell!(
    struct Checked {
        owner: Referred,
        #[covariant]
        dependent: Program,
    }
);

/// A program with the meanings of its names and the types of its expressions.
pub struct FrontEnd {
    /// The options for what comes of it.
    pub options: Options,
    /// Texts, and everything that is wrong with files, names and types.
    pub report: Report,
    checked: Checked,
    /// What the program has in DeepCPS or Staged-C.
    pub(crate) staged: Vec<nyala_staging::program::Program>,
    /// The graph of a program in Sierra alone, whose check makes it: the first to ask has it.
    pub(crate) lowered: std::sync::Mutex<Option<(graph::Made, nyala_ir::World)>>,
}

impl FrontEnd {
    /// Parses and checks files.
    pub fn new(options: Options, files: Files) -> FrontEnd {
        FrontEnd::after(options, files, None)
    }

    /// The front end of changed files, with the same options. What did not change is not parsed again.
    pub fn again(&self, files: Files) -> FrontEnd {
        FrontEnd::after(self.options.clone(), files, Some(self.trees()))
    }

    /// Like [`FrontEnd::again`], with the options that this one was given. Its own are without values of `nyala tune` that did not
    /// fit the files as they were.
    pub fn again_as(&self, options: Options, files: Files) -> FrontEnd {
        FrontEnd::after(options, files, Some(self.trees()))
    }

    /// Whether this is the front end of these files, and all others that it has read are on disk as they were. With errors nobody
    /// knows: a file may have come that was missing.
    pub fn is_of(&self, files: &Files) -> bool {
        let (sources, given) = (&self.report.sources, &self.trees().files().given);
        let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
        // The names of texts that come from no file are in angle brackets.
        let is_as_before = |(i, name): (usize, &str)| {
            name.starts_with('<')
                || is_given(name)
                || files.read(Path::new(name)).is_ok_and(|text| text == sources.text(FileId(i as u32)))
        };
        !self.report.sink.has_errors() && *given == files.given && sources.names().enumerate().all(is_as_before)
    }

    fn after(options: Options, files: Files, before: Option<&Trees>) -> FrontEnd {
        let mut front = FrontEnd::check(Trees::parse(options, files, before), before);
        if front.trees().tuned.is_some()
            && let Some(warning) = tuning::blames(&front)
        {
            let old = front.checked.into_owner().trees;
            let options = Options { tuned: None, ..old.options.clone() };
            front = FrontEnd::check(Trees::parse(options, old.files.clone(), Some(&old)), Some(&old));
            // With errors of its own the program is no measure of the values.
            if !front.report.sink.has_errors() {
                front.report.sink.push(warning);
            }
        }
        front.report.judge_warnings(&front.options);
        front
    }

    fn check(mut trees: Trees, before: Option<&Trees>) -> FrontEnd {
        let options = trees.options.clone();
        // Errors of the parser do not keep the checker from finding others.
        let prelude = options.prelude.then(|| {
            let (name, text) = libraries::PRELUDE;
            trees.tree(name.into(), text.into(), &[], true, before)
        });
        let all_libraries = trees.libraries().iter().chain(&prelude);
        trees.report.libraries = all_libraries.filter_map(|m| m.file).collect();
        let mut report = trees.report.clone();
        let staged = staged::check(&mut report);
        let is_alone = staged.is_empty() && trees.program().iter().all(|tree| tree.items.is_empty());
        let is_sierra = is_alone && !report.sink.has_errors() && sierra::has_files(&report);
        if !is_sierra {
            sierra::check(&mut report, &options);
        }
        let (shelves, known) = (trees.shelves.clone(), trees.exports.clone());
        let exports = move || known.get_or_init(|| libraries::exports(&shelves)).clone();
        let checked = report.time(
            &options,
            "check",
            |report| {
                Checked::new(Referred { prelude, trees, exports: Box::new(exports) }, |all| {
                    let input = Input {
                        prelude: all.prelude.as_deref(),
                        libraries: all.trees.libraries(),
                        files: all.trees.program(),
                        exports: &*all.exports,
                    };
                    nyala_sema::check(&input, &mut report.sink)
                })
            },
            |_| 0,
        );
        let mut front = FrontEnd { options, report, checked, staged, lowered: std::sync::Mutex::default() };
        tuning::forgive_candidates(&mut front);
        if is_sierra {
            front.check_sierra();
        }
        front
    }

    /// Checks a program in Sierra alone, and keeps its graph.
    fn check_sierra(&mut self) {
        if self.report.sink.has_errors() {
            return sierra::check(&mut self.report, &self.options);
        }
        let mut report = self.report.clone();
        let made = self.lower(&mut report);
        self.report = report;
        if let Some(world) = made.filter(|_| !self.report.sink.has_errors()) {
            self.lowered = Some((self.made(), world)).into();
        }
    }

    /// The syntax trees.
    pub fn trees(&self) -> &Trees {
        &self.checked.borrow_owner().trees
    }

    /// The tree of the prelude, unless the program goes without.
    pub fn prelude(&self) -> Option<&ast::Module> {
        self.checked.borrow_owner().prelude.as_deref()
    }

    /// The meanings of names and the types of expressions. With errors, of those that are known.
    pub fn program(&self) -> &Program<'_> {
        self.checked.borrow_dependent()
    }

    /// Whether the program has no errors so far.
    pub(crate) fn without_errors(&self) -> Result<Report, Failed> {
        let mut report = self.report.clone();
        if report.sink.has_errors() { Err(report.fail()) } else { Ok(report) }
    }

    /// The C header of the program's exported functions, guarded by the macro `guard`.
    pub fn header(&self, guard: &str) -> Result<String, Failed> {
        let mut report = self.without_errors()?;
        staged::only_impala(&mut report, "headers of programs in DeepCPS or Staged-C")?;
        if self.trees().program().iter().all(|tree| tree.items.is_empty())
            && let Some(text) = sierra::header(&report, &self.options, guard)
        {
            return Ok(text);
        }
        sierra::only_impala(&mut report, "headers of programs in Impala and Sierra together")?;
        nyala_sema::header(self.program(), &report.sources).text(guard).map_err(|d| report.report(*d))
    }
}
