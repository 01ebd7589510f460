//! Partial evaluation in the background: what it did with the text that was evaluated last, and residual programs of
//! functions. Separate from the answers, since a thread of its own does it, which an edit interrupts.
//!
//! What is found is of one text. Its places are used for another text only on lines that are the same in both, at the
//! begin and at the end of the file, and are said to be stale then.

use super::analysis::{View, location};
use super::queries;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{InitializeParams, Position, PublishDiagnosticsParams};
use nyala_base::FileId;
use nyala_driver::explain::{Function, Place, Report, text};
use nyala_driver::{Failed, FrontEnd, Graph, Options, explain};
use nyala_specialize::Progress;
use nyala_syntax::ast::{self, ItemKind};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What sends a message to the client.
pub type Send = Arc<dyn Fn(Message) + std::marker::Send + Sync>;

/// A program that is to be evaluated.
struct Job {
    root: PathBuf,
    front: Arc<FrontEnd>,
    /// Its own files.
    files: Vec<PathBuf>,
}

/// A function whose residual program is to be shown.
struct Show {
    id: RequestId,
    front: Arc<FrontEnd>,
    name: String,
    steps: Arc<Progress>,
}

/// The evaluation of a program that runs.
struct Running {
    files: Vec<PathBuf>,
    root: PathBuf,
    steps: Arc<Progress>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: Option<Running>,
    shows: VecDeque<Show>,
    /// The request that is worked on.
    showing: Option<(RequestId, Arc<Progress>)>,
    done: HashMap<PathBuf, Arc<Evaluated>>,
    /// What the checker has found in a program, as it was published.
    published: HashMap<PathBuf, Vec<PublishDiagnosticsParams>>,
    is_over: bool,
}

/// The client's abilities that matter here.
#[derive(Clone, Copy, Default)]
struct Client {
    refreshes_lenses: bool,
    refreshes_hints: bool,
    shows_documents: bool,
}

/// The work of the thread that evaluates, and its results.
#[derive(Clone)]
pub struct Evaluation {
    state: Arc<(Mutex<State>, Condvar)>,
    send: Send,
    client: Client,
}

/// What partial evaluation did with a text.
pub struct Evaluated {
    report: Report,
    /// The texts of the files by their names.
    texts: HashMap<String, String>,
}

/// What there is to tell about a place.
#[derive(Default)]
pub struct Told {
    pub lines: Vec<String>,
    pub is_stale: bool,
}

/// A filter that the source leaves out, or one that does not hold at a call.
pub struct FilterHint {
    pub position: Position,
    pub label: String,
    pub why: String,
}

impl Evaluation {
    pub fn new(send: Send, params: &InitializeParams) -> Evaluation {
        let workspace = params.capabilities.workspace.as_ref();
        let window = params.capabilities.window.as_ref();
        let client = Client {
            refreshes_lenses: workspace.and_then(|w| w.code_lens.as_ref()?.refresh_support).unwrap_or_default(),
            refreshes_hints: workspace.and_then(|w| w.inlay_hint.as_ref()?.refresh_support).unwrap_or_default(),
            shows_documents: window.and_then(|w| w.show_document.as_ref()).is_some_and(|s| s.support),
        };
        Evaluation { state: Arc::default(), send, client }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the state.
        self.state.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Evaluates a program, instead of what of it is evaluated now.
    pub fn begin(&self, root: PathBuf, front: Arc<FrontEnd>, files: Vec<PathBuf>) {
        let mut state = self.state();
        stop(&mut state, |running| running.root == root);
        state.jobs.retain(|job| job.root != root);
        state.jobs.push_back(Job { root, front, files });
        self.state.1.notify_all();
    }

    /// Shows the residual program of a function as the answer to a request.
    pub fn show(&self, id: RequestId, front: Arc<FrontEnd>, name: String) {
        self.state().shows.push_back(Show { id, front, name, steps: Arc::default() });
        self.state.1.notify_all();
    }

    /// An edit of a file ends the evaluation of its program.
    pub fn changed(&self, path: &Path) {
        let mut state = self.state();
        state.jobs.retain(|job| !job.files.iter().any(|f| f == path));
        stop(&mut state, |running| running.files.iter().any(|f| f == path));
    }

    /// The client no longer waits for the answer to a request.
    pub fn cancel(&self, id: &RequestId) {
        let mut state = self.state();
        if let Some((_, steps)) = state.showing.as_ref().filter(|(showing, _)| showing == id) {
            steps.end();
        }
        if let Some(at) = state.shows.iter().position(|show| show.id == *id) {
            state.shows.remove(at);
            drop(state);
            self.refuse(id.clone(), ErrorCode::RequestCanceled, "canceled".into());
        }
    }

    pub fn forget(&self, root: &Path) {
        let mut state = self.state();
        stop(&mut state, |running| running.root == root);
        state.jobs.retain(|job| job.root != root);
        state.done.remove(root);
        state.published.remove(root);
    }

    /// Ends the thread.
    pub fn finish(&self) {
        let mut state = self.state();
        state.is_over = true;
        stop(&mut state, |_| true);
        if let Some((_, steps)) = &state.showing {
            steps.end();
        }
        self.state.1.notify_all();
    }

    /// The checker has found this in a program.
    pub fn checked(&self, root: &Path, found: Vec<PublishDiagnosticsParams>) {
        self.state().published.insert(root.into(), found);
    }

    /// What is known of a program.
    pub fn of(&self, root: &Path) -> Option<Arc<Evaluated>> {
        self.state().done.get(root).cloned()
    }

    /// The thread: works until [`finish`](Self::finish).
    pub fn run(&self) {
        loop {
            let mut state = self.state();
            if state.is_over {
                return;
            }
            if let Some(show) = state.shows.pop_front() {
                state.showing = Some((show.id.clone(), show.steps.clone()));
                drop(state);
                self.residual(show);
                self.state().showing = None;
            } else if let Some(job) = state.jobs.pop_front() {
                let steps: Arc<Progress> = Arc::default();
                let (files, root) = (job.files.clone(), job.root.clone());
                state.running = Some(Running { files, root, steps: steps.clone() });
                drop(state);
                self.evaluate(job, &steps);
                self.state().running = None;
            } else {
                drop(self.state.1.wait(state));
            }
        }
    }

    fn evaluate(&self, job: Job, steps: &Arc<Progress>) {
        let explained = catch_unwind(AssertUnwindSafe(|| explain::explain(&watched(&job.front, steps)?)));
        let (report, findings) = match explained {
            Ok(Ok(explained)) => (Some(explained.report), explained.residual.report),
            Ok(Err(failed)) => (None, *failed),
            Err(_) => return,
        };
        let sources = &findings.sources;
        let mut texts = HashMap::new();
        for (i, name) in sources.names().enumerate().filter(|(_, name)| !name.starts_with('<')) {
            texts.insert(name.to_string(), sources.text(FileId(i as u32)).to_string());
        }
        // An edit that comes now waits: what is sent here is older than what the check after it sends.
        let mut state = self.state();
        if steps.is_ended() {
            return;
        }
        if let Some(report) = report {
            state.done.insert(job.root.clone(), Arc::new(Evaluated { report, texts }));
        }
        for params in state.published.get(&job.root).into_iter().flatten() {
            let mut params = params.clone();
            let path = super::positions::path_of(&params.uri).map(|p| nyala_driver::files::identity(&p));
            let n = params.diagnostics.len();
            for finding in &findings.sink.diagnostics {
                if let Some((of, diagnostic)) = queries::diagnostic(&|span| location(sources, span), finding)
                    && Some(of) == path
                    && !params.diagnostics.contains(&diagnostic)
                {
                    params.diagnostics.push(diagnostic);
                }
            }
            if params.diagnostics.len() > n {
                (self.send)(Notification::new("textDocument/publishDiagnostics".into(), params).into());
            }
        }
        let refresh = |method: &str| Request::new(method.to_string().into(), method.into(), Value::Null);
        if self.client.refreshes_lenses {
            (self.send)(refresh("workspace/codeLens/refresh").into());
        }
        if self.client.refreshes_hints {
            (self.send)(refresh("workspace/inlayHint/refresh").into());
        }
        // Clients ignore what begins so and they do not know.
        let root = super::positions::uri_of(&job.root);
        let params = json!({ "uri": root });
        (self.send)(Notification::new("$/nyala/evaluated".into(), params).into());
    }

    fn refuse(&self, id: RequestId, code: ErrorCode, message: String) {
        (self.send)(Response::new_err(id, code as i32, message).into());
    }

    fn residual(&self, show: Show) {
        let Show { id, front, name, steps } = show;
        let text = catch_unwind(AssertUnwindSafe(|| {
            nyala_driver::residual_of(watched(&front, &steps)?.residual()?, Some(&name))
        }));
        if steps.is_ended() {
            return self.refuse(id, ErrorCode::RequestCanceled, "canceled".into());
        }
        match text {
            Ok(Ok((text, _))) => {
                if self.client.shows_documents {
                    self.show_document(&name, &text);
                }
                (self.send)(Response::new_ok(id, json!({ "name": name, "text": text })).into());
            }
            Ok(Err(failed)) => self.refuse(id, ErrorCode::RequestFailed, failed.render(false)),
            Err(_) => self.refuse(id, ErrorCode::InternalError, format!("a bug while `{name}` was evaluated")),
        }
    }

    /// Lets the client open a text, which is written to the user's cache.
    fn show_document(&self, name: &str, text: &str) {
        let Some(cache) = nyala_driver::cache::Cache::of_user("residual") else { return };
        let path = cache.folder().join(format!("{name}.residual"));
        let is_written =
            std::fs::create_dir_all(cache.folder()).and_then(|()| nyala_files::write(&path, text.as_bytes())).is_ok();
        if let Some(uri) = super::positions::uri_of(&path).filter(|_| is_written) {
            let params = json!({ "uri": uri, "takeFocus": true });
            let method = "window/showDocument";
            (self.send)(Request::new(method.to_string().into(), method.into(), params).into());
        }
    }
}

fn stop(state: &mut State, is_meant: impl Fn(&Running) -> bool) {
    if let Some(running) = state.running.as_ref().filter(|r| is_meant(r)) {
        running.steps.end();
    }
}

/// The program's graph, whose evaluation `steps` may end.
fn watched(front: &FrontEnd, steps: &Arc<Progress>) -> Result<Graph, Failed> {
    Ok(front.graph()?.with(Options { watched: Some(steps.clone()), ..front.options.clone() }))
}

/// The lines of two texts that are the same at the begin and at the end.
struct Same {
    before: usize,
    behind: usize,
    n_old: usize,
    n_new: usize,
}

impl Same {
    fn of(old: &str, new: &str) -> Same {
        let (a, b): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
        let before = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        let rest = a.len().min(b.len()) - before;
        let behind = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(x, y)| x == y).count();
        Same { before, behind, n_old: a.len(), n_new: b.len() }
    }

    fn is_all(&self) -> bool {
        self.before == self.n_old && self.n_old == self.n_new
    }

    /// The number that a line of the old text has in the new one, both from 0.
    fn new_line(&self, old: usize) -> Option<usize> {
        if old < self.before {
            Some(old)
        } else if old + self.behind >= self.n_old && old < self.n_old {
            Some(old + self.n_new - self.n_old)
        } else {
            None
        }
    }
}

/// A file of the text that was evaluated, beside the present one.
struct Compared<'e> {
    name: &'e str,
    same: Same,
}

impl Compared<'_> {
    /// The range of a place in the present text, if its lines are there.
    fn range(&self, view: &View, file: FileId, place: &Option<Place>) -> Option<(Position, Position)> {
        let place = place.as_ref().filter(|p| p.file == self.name)?;
        let text = view.sources.text(file);
        let position = |line: usize, column: usize| {
            let line = self.same.new_line(line.checked_sub(1)?)?;
            let columns = text.split('\n').nth(line)?.chars().take(column.checked_sub(1)?);
            Some(Position::new(line as u32, columns.map(|c| c.len_utf16() as u32).sum()))
        };
        Some((position(place.line, place.column)?, position(place.end_line, place.end_column)?))
    }
}

impl Evaluated {
    fn compare<'e>(&'e self, view: &'e View, file: FileId) -> Option<Compared<'e>> {
        let name = view.sources.name(file);
        let text = self.texts.get(name)?;
        let new = view.sources.text(file);
        let same = if text == new {
            let n = text.split('\n').count();
            Same { before: n, behind: 0, n_old: n, n_new: n }
        } else {
            Same::of(text, new)
        };
        Some(Compared { name, same })
    }

    /// What partial evaluation did at a place: with the innermost call, loop or branch, and with the function whose name it
    /// is.
    pub fn at(&self, view: &View, file: FileId, position: Position) -> Told {
        let Some(compared) = self.compare(view, file) else { return Told::default() };
        let is_stale = !compared.same.is_all();
        let mut lines = Vec::new();
        let range = |place: &Option<Place>| compared.range(view, file, place);
        let holds = |(start, end): &(Position, Position)| *start <= position && position < *end;
        let functions = self.report.functions.iter().filter(|f| range(&f.place).is_some_and(|r| holds(&r)));
        lines.extend(functions.map(|f| format!("`{}`: {}", f.name, left(f))));
        let offset = view.offset(file, position);
        // A variable among the arguments of a call is not about the call.
        let is_about_site = match view.checked.name_at(file, offset) {
            Some((span, _)) => {
                let behind = view.sources.text(file).get(span.hi as usize..).unwrap_or_default();
                behind.trim_start().starts_with(['(', '['])
            }
            None => true,
        };
        let around = self.report.sites.iter().filter_map(|s| Some((range(&s.place).filter(holds)?, s)));
        let width = |(start, end): &(Position, Position)| {
            (
                end.line - start.line,
                if end.line == start.line { end.character - start.character } else { end.character },
            )
        };
        let innermost = around.filter(|_| is_about_site).min_by_key(|(range, _)| width(range));
        lines.extend(innermost.map(|(_, site)| text::decisions(&self.report, site)).into_iter().flatten());
        Told { lines, is_stale }
    }

    /// Filters that functions of the file could be given, since all their calls are unfolded, and calls whose filters do not
    /// hold.
    pub fn filters(&self, view: &View, file: FileId) -> Vec<FilterHint> {
        let Some(compared) = self.compare(view, file) else { return Vec::new() };
        let mut hints = Vec::new();
        let stale = if compared.same.is_all() { "" } else { " (of an earlier text)" };
        let unfiltered = unfiltered(view, file);
        for f in self.report.functions.iter().filter(|f| f.kind == "function" && f.unfolded > 0 && f.instances == 0) {
            let Some((position, _)) = compared.range(view, file, &f.place) else { continue };
            if unfiltered.contains(&(position, &f.name)) {
                let why = format!("without a filter, but nothing of `{}` is left: {}{stale}", f.name, left(f));
                hints.push(FilterHint { position, label: "@".into(), why });
            }
        }
        for site in &self.report.sites {
            let failed = |code: &str| matches!(code, "unknown-filter" | "false-filter");
            let Some(outcome) = site.outcomes.iter().find(|o| failed(o.why.code)) else { continue };
            let Some((_, position)) = compared.range(view, file, &site.place) else { continue };
            let filter = outcome.why.filter.as_ref().map_or("its filter", |f| &f.text);
            let label = format!("not {filter}");
            hints.push(FilterHint { position, label, why: text::decisions(&self.report, site).join("\n") + stale });
        }
        hints
    }

    /// What is left of the function whose name is at a place.
    pub fn left_of(&self, view: &View, file: FileId, name: &str, position: Position) -> Option<String> {
        let compared = self.compare(view, file)?;
        let is_it = |f: &&Function| {
            f.name == name && compared.range(view, file, &f.place).is_some_and(|(start, _)| start == position)
        };
        let f = self.report.functions.iter().find(is_it)?;
        let stale = if compared.same.is_all() { "" } else { " (stale)" };
        Some(format!("residual program: {}{stale}", left(f)))
    }
}

fn left(f: &Function) -> String {
    let many = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let unfolded = match f.unfolded {
        0 => String::new(),
        1 => "unfolded once, ".into(),
        n => format!("unfolded {n} times, "),
    };
    match f.instances as u64 {
        0 => format!("{unfolded}no function left"),
        n => format!("{unfolded}{} left, {}", many(n, "function"), many(f.nodes, "node")),
    }
}

/// The functions of a file without any filter: the places of their names, and these.
fn unfiltered<'v>(view: &View<'v>, file: FileId) -> Vec<(Position, &'v str)> {
    let Some(tree) = view.checked.tree(file) else { return Vec::new() };
    let mut found = Vec::new();
    let has_filter = |f: &ast::Filter| !matches!(f, ast::Filter::Never);
    let mut work: Vec<&ast::Item> = tree.items.iter().collect();
    while let Some(item) = work.pop() {
        match &item.kind {
            ItemKind::Mod(m) => work.extend(m.items.iter().flatten()),
            ItemKind::Fn(f) if !has_filter(&f.filter) && !f.params.iter().any(|p| has_filter(&p.filter)) => {
                found.push((view.range(f.name.span).start, &*f.name.text));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_move_with_edits() {
        let same = Same::of("a\nb\nc\nd", "a\nx\ny\nc\nd");
        assert_eq!([0, 1, 2, 3, 4].map(|l| same.new_line(l)), [Some(0), None, Some(3), Some(4), None]);
        let same = Same::of("a\na\na", "a\na");
        assert_eq!([0, 1, 2].map(|l| same.new_line(l)), [Some(0), Some(1), None]);
        assert!(Same::of("a\n", "a\n").is_all());
    }
}
