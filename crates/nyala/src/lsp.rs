//! `nyala lsp`: a language server. What editors ask is answered from checked programs; this file has the protocol and the
//! loop, apart from the answers, which know no messages.
//!
//! # Design
//!
//! **Threads.** One thread answers. It owns the texts of open files and checks programs. A second one only receives
//! messages, so that all that have come are seen together: many edits become one check, and an edit ends an evaluation at
//! once. A third one evaluates partially, which may take seconds ([`evaluation`]); it writes its findings where the first
//! one finds them, and tells the client that there is something new. Two more, of `lsp-server`, read and write the streams.
//!
//! **What is checked.** A *root* is a program: a file, with those that its `mod` and `use` name, or the files of a library of
//! ours side by side. A file that is opened belongs to a root that is known to have it; else to one that a `mod` in a file
//! beside or above leads to; else it is its own root. Unsaved texts replace those on disk. The checker gives a program
//! whatever the errors, and notes what each name means.
//!
//! **What is kept.** The front end of each root of which a file is open: its trees, its checked program, its names by place.
//! An edit makes the next one of it, which shares the trees of unchanged files and of the prelude; names and types are
//! checked anew. Completion and renaming make front ends of texts of their own in the same way.
//!
//! **Order, cancellation.** Messages are handled in their order, so that an answer is never older than the edits before the
//! request. A request is canceled if its cancellation has come before its turn. Edits end the evaluation of a root.
//!
//! **What is stale.** Names and types never are. What partial evaluation did is of the text that was evaluated last: it is
//! shown, marked as stale, on lines that have not changed since, and moves with them. Diagnostics of partial evaluation
//! vanish with an edit until they are found again.
//!
//! **Positions** are UTF-16 in the protocol and bytes here ([`positions`]).

pub(crate) mod analysis;
mod completion;
mod evaluation;
mod names;
mod positions;
mod queries;
mod symbols;

use analysis::{Root, View};
use evaluation::Evaluation;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    CodeLensOptions, CompletionOptions, ExecuteCommandOptions, HoverProviderCapability, InitializeParams, OneOf,
    PositionEncodingKind, PublishDiagnosticsParams, RenameOptions, ResourceOperationKind, ServerCapabilities,
    SignatureHelpOptions, TextDocumentContentChangeEvent, TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use nyala_driver::Options;
use nyala_driver::files::identity;
use nyala_driver::front::FrontEnd;
use nyala_driver::packages;
use nyala_driver::staged;
use positions::{Lines, path_of, uri_of};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, channel};

/// The command that a code lens runs: its arguments are a file and the name of a function.
const SHOW_RESIDUAL: &str = "nyala.showResidual";

/// A file that an editor has open.
struct Buffer {
    uri: Uri,
    text: String,
    version: i32,
}

/// A program of which a file is open.
struct Known {
    root: Root,
    /// Its own files, of which there may be more than the root names.
    files: Vec<PathBuf>,
    /// What was checked last.
    front: Option<Arc<FrontEnd>>,
    /// It is to be checked.
    is_dirty: bool,
    /// It is to be evaluated, since it has no errors.
    is_new: bool,
    /// The files that diagnostics were published for.
    published: BTreeSet<PathBuf>,
}

/// What goes wrong with a request.
struct Failed(ErrorCode, String);

type Answer = Result<Value, Failed>;

/// Serves one client until it says `exit` or closes the connection. `options` are those of all programs. Returns whether the
/// client has asked for the end before.
pub fn serve(connection: &Connection, options: Options) -> bool {
    let Ok((id, params)) = connection.initialize_start() else { return false };
    let params: InitializeParams = match serde_json::from_value(params) {
        Ok(params) => params,
        Err(e) => {
            let refused = Response::new_err(id, ErrorCode::InvalidParams as i32, e.to_string());
            return connection.sender.send(refused.into()).is_err();
        }
    };
    let info = json!({
        "capabilities": capabilities(),
        "serverInfo": { "name": "nyala", "version": env!("CARGO_PKG_VERSION") },
    });
    if connection.initialize_finish(id, info).is_err() {
        return false;
    }
    std::thread::scope(|scope| {
        let sender = connection.sender.clone();
        // A client that is gone is seen when the next message is awaited.
        let evaluation = Evaluation::new(Arc::new(move |message| drop(sender.send(message))), &params);
        let (forward, inbox) = channel();
        let watch = evaluation.clone();
        let receiver = &connection.receiver;
        scope.spawn(move || {
            for message in receiver {
                let is_exit = matches!(&message, Message::Notification(n) if n.method == "exit");
                if let Message::Notification(n) = &message
                    && n.method == "textDocument/didChange"
                    && let Some(uri) = n.params.pointer("/textDocument/uri").and_then(Value::as_str)
                    && let Some(path) = uri.parse().ok().and_then(|uri: Uri| path_of_uri(&uri))
                {
                    watch.changed(&path);
                }
                if let Message::Notification(n) = &message
                    && n.method == "$/cancelRequest"
                    && let Some(id) = n.params.get("id").cloned().and_then(|id| serde_json::from_value(id).ok())
                {
                    watch.cancel(&id);
                }
                if forward.send(message).is_err() || is_exit {
                    return;
                }
            }
        });
        let work = evaluation.clone();
        // Evaluation recurses as deep as sources nest.
        let worker = std::thread::Builder::new().stack_size(256 << 20).spawn_scoped(scope, move || work.run());
        let mut server = Server {
            connection,
            inbox,
            pending: VecDeque::new(),
            options,
            buffers: HashMap::new(),
            known: BTreeMap::new(),
            evaluation,
            renames_files: renames_files(&params),
            is_ending: false,
        };
        server.run();
        server.evaluation.finish();
        drop(worker);
        server.is_ending
    })
}

fn renames_files(params: &InitializeParams) -> bool {
    let edit = params.capabilities.workspace.as_ref().and_then(|w| w.workspace_edit.as_ref());
    let can = |e: &lsp_types::WorkspaceEditClientCapabilities| {
        let operations = e.resource_operations.as_ref();
        e.document_changes == Some(true) && operations.is_some_and(|all| all.contains(&ResourceOperationKind::Rename))
    };
    edit.is_some_and(can)
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(PositionEncodingKind::UTF16),
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::INCREMENTAL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".into(), ":".into()]),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(vec!["(".into(), ",".into()]),
            ..SignatureHelpOptions::default()
        }),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: Default::default(),
        })),
        document_formatting_provider: Some(OneOf::Left(true)),
        inlay_hint_provider: Some(OneOf::Left(true)),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: vec![SHOW_RESIDUAL.into()],
            work_done_progress_options: Default::default(),
        }),
        ..ServerCapabilities::default()
    }
}

struct Server<'c> {
    connection: &'c Connection,
    inbox: Receiver<Message>,
    /// Messages that have come and are not handled yet.
    pending: VecDeque<Message>,
    options: Options,
    /// Open files, by their identities.
    buffers: HashMap<PathBuf, Buffer>,
    /// The programs that open files belong to, by the first file of their roots.
    known: BTreeMap<PathBuf, Known>,
    evaluation: Evaluation,
    /// The editor renames files if an edit says so.
    renames_files: bool,
    is_ending: bool,
}

impl Server<'_> {
    fn run(&mut self) {
        while let Ok(message) = self.next() {
            match message {
                Message::Request(request) => self.request(request),
                Message::Notification(n) if n.method == "exit" => return,
                Message::Notification(n) => {
                    let method = n.method.clone();
                    self.survive(&method, |server| server.notified(n));
                }
                Message::Response(_) => {}
            }
        }
    }

    /// Goes on after a bug, which the client is told of.
    fn survive(&mut self, what: &str, f: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| f(self))).is_err() {
            let message = format!("nyala: a bug in {what}");
            self.send(Notification::new("window/logMessage".into(), json!({ "type": 1, "message": message })));
        }
    }

    /// Takes all messages that have come.
    fn receive(&mut self) {
        self.pending.extend(self.inbox.try_iter());
    }

    /// The next message. While there is none, programs are checked, then evaluated.
    fn next(&mut self) -> Result<Message, RecvError> {
        loop {
            self.receive();
            if let Some(message) = self.pending.pop_front() {
                return Ok(message);
            }
            let dirty = self.known.iter().find(|(_, known)| known.is_dirty).map(|(root, _)| root.clone());
            match dirty {
                Some(root) => self.check(&root),
                None => {
                    self.evaluate();
                    return self.inbox.recv();
                }
            }
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // A client that is gone is seen when the next message is awaited.
        let _ = self.connection.sender.send(message.into());
    }

    fn answer(&self, id: RequestId, answer: Answer) {
        self.send(match answer {
            Ok(value) => Response::new_ok(id, value),
            Err(Failed(code, message)) => Response::new_err(id, code as i32, message),
        });
    }

    // Texts.

    fn notified(&mut self, n: Notification) {
        fn parse<T: DeserializeOwned>(n: Notification) -> Option<T> {
            serde_json::from_value(n.params).ok()
        }
        match n.method.as_str() {
            "textDocument/didOpen" => {
                let Some(p) = parse::<lsp_types::DidOpenTextDocumentParams>(n) else { return };
                let document = p.text_document;
                let Some(path) = path_of(&document.uri).map(|p| identity(&p)) else { return };
                self.buffers
                    .insert(path.clone(), Buffer { uri: document.uri, text: document.text, version: document.version });
                self.changed(&path);
            }
            "textDocument/didChange" => {
                let Some(p) = parse::<lsp_types::DidChangeTextDocumentParams>(n) else { return };
                let Some(path) = path_of(&p.text_document.uri).map(|p| identity(&p)) else { return };
                let Some(buffer) = self.buffers.get_mut(&path) else { return };
                for change in p.content_changes {
                    apply(&mut buffer.text, change);
                }
                buffer.version = p.text_document.version;
                self.changed(&path);
            }
            "textDocument/didClose" => {
                let Some(p) = parse::<lsp_types::DidCloseTextDocumentParams>(n) else { return };
                let Some(path) = path_of(&p.text_document.uri).map(|p| identity(&p)) else { return };
                self.buffers.remove(&path);
                self.changed(&path);
                self.forget_closed();
            }
            // Files on disk may have changed.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.known.values_mut().for_each(|known| known.is_dirty = true);
            }
            _ => {}
        }
    }

    /// All programs with this file are to be checked.
    fn changed(&mut self, path: &Path) {
        let mut is_known = false;
        for known in self.known.values_mut().filter(|k| k.files.iter().any(|f| f == path)) {
            (known.is_dirty, is_known) = (true, true);
        }
        if !is_known && self.buffers.contains_key(path) {
            self.add_root(analysis::find_root(path));
        }
    }

    fn add_root(&mut self, root: Root) {
        let Some(first) = root.files.first().cloned() else { return };
        self.known.entry(first).or_insert_with(|| Known {
            files: root.files.clone(),
            root,
            front: None,
            is_dirty: true,
            is_new: false,
            published: BTreeSet::new(),
        });
    }

    /// Forgets programs without open files.
    fn forget_closed(&mut self) {
        let is_open = |known: &Known| known.files.iter().any(|f| self.buffers.contains_key(f));
        let closed: Vec<PathBuf> = self.known.iter().filter(|(_, k)| !is_open(k)).map(|(r, _)| r.clone()).collect();
        for root in closed {
            if let Some(known) = self.known.remove(&root) {
                for params in known.published.iter().filter_map(|path| self.diagnostics_of(path, Vec::new())) {
                    self.send(Notification::new("textDocument/publishDiagnostics".into(), params));
                }
            }
            self.evaluation.forget(&root);
        }
    }

    /// The program that answers for a file.
    fn root_of(&mut self, path: &Path) -> Option<PathBuf> {
        let has = |k: &Known| k.files.iter().any(|f| f == path);
        // The program of another file knows more than the file alone.
        let known = self.known.iter().filter(|(_, k)| has(k)).map(|(r, _)| r.clone());
        known.min_by_key(|root| root == path).or_else(|| {
            let root = analysis::find_root(path);
            let first = root.files.first().cloned();
            self.add_root(root);
            // Only its check tells all files that it has.
            self.check(&first?);
            self.known.iter().find(|(_, k)| has(k)).map(|(r, _)| r.clone())
        })
    }

    // Programs.

    /// The texts of open files.
    fn unsaved(&self) -> HashMap<PathBuf, String> {
        self.buffers.iter().map(|(path, buffer)| (path.clone(), buffer.text.clone())).collect()
    }

    /// Checks a program and publishes what was found.
    fn check(&mut self, root: &Path) {
        let unsaved = self.unsaved();
        let Some(known) = self.known.get_mut(root) else { return };
        known.is_dirty = false;
        let (of, before) = (known.root.clone(), known.front.clone());
        let options = Options {
            prelude: self.options.prelude && !of.is_prelude,
            tuned: Some(nyala_driver::tuning::file_of(root)),
            ..self.options.clone()
        };
        self.survive(&format!("the program of {}", root.display()), |server| {
            let front = Arc::new(match before {
                Some(before) => before.again(of.files(&unsaved)),
                None => FrontEnd::new(options, of.files(&unsaved)),
            });
            if let Some(known) = server.known.get_mut(root) {
                known.front = Some(front.clone());
            }
            server.publish(root, &View::new(&front));
        });
    }

    /// The program that a file belongs to, checked as it is now, and its first file.
    fn program(&mut self, path: &Path) -> Result<(PathBuf, Arc<FrontEnd>), Failed> {
        let root = self.root_of(path).ok_or_else(|| Failed(ErrorCode::InvalidParams, "no such file".into()))?;
        if self.known.get(&root).is_some_and(|known| known.is_dirty) {
            self.check(&root);
        }
        let front = self.known.get(&root).and_then(|known| known.front.clone());
        Ok((root, front.ok_or_else(|| Failed(ErrorCode::InternalError, "the checker has failed".into()))?))
    }

    /// Begins to evaluate the programs that have been checked.
    fn evaluate(&mut self) {
        for (root, known) in self.known.iter_mut().filter(|(_, k)| k.is_new) {
            known.is_new = false;
            if let Some(front) = &known.front {
                self.evaluation.begin(root.clone(), front.clone(), known.files.clone());
            }
        }
    }

    // Requests.

    fn is_canceled(&self, id: &RequestId) -> bool {
        let wanted = serde_json::to_value(id).unwrap_or_default();
        self.pending.iter().any(|message| match message {
            Message::Notification(n) => n.method == "$/cancelRequest" && n.params.get("id") == Some(&wanted),
            _ => false,
        })
    }

    fn request(&mut self, request: Request) {
        if self.is_canceled(&request.id) {
            return self.answer(request.id, Err(Failed(ErrorCode::RequestCanceled, "canceled".into())));
        }
        if self.is_ending {
            return self.answer(request.id, Err(Failed(ErrorCode::InvalidRequest, "the server is shut down".into())));
        }
        let Request { id, method, params } = request;
        let answer = catch_unwind(AssertUnwindSafe(|| self.respond(&id, &method, params)));
        let failed = |_| Some(Err(Failed(ErrorCode::InternalError, format!("`{method}` has failed"))));
        if let Some(answer) = answer.unwrap_or_else(failed) {
            self.answer(id, answer);
        }
    }

    /// The answer to a request. `None` if it is answered later.
    fn respond(&mut self, id: &RequestId, method: &str, params: Value) -> Option<Answer> {
        Some(match method {
            "shutdown" => {
                self.is_ending = true;
                Ok(Value::Null)
            }
            "textDocument/formatting" => parse(params).and_then(|p| self.format(p)),
            "textDocument/completion" => {
                parse(params).and_then(|p: lsp_types::CompletionParams| self.complete(&p.text_document_position))
            }
            "textDocument/signatureHelp" => parse(params)
                .and_then(|p: lsp_types::SignatureHelpParams| self.signature(&p.text_document_position_params)),
            "textDocument/rename" => parse(params).and_then(|p| self.rename(p)),
            "workspace/executeCommand" => match parse(params).and_then(|p| self.residual_of(p)) {
                Ok((front, name)) => {
                    self.evaluation.show(id.clone(), front, name);
                    return None;
                }
                Err(failed) => Err(failed),
            },
            _ => self.query(method, params),
        })
    }

    /// The program and the function that a command names.
    fn residual_of(&mut self, p: lsp_types::ExecuteCommandParams) -> Result<(Arc<FrontEnd>, String), Failed> {
        let invalid = || Failed(ErrorCode::InvalidParams, format!("`{}` takes a file and a function", p.command));
        let [Value::String(uri), Value::String(name)] = &p.arguments[..] else { return Err(invalid()) };
        let path = uri.parse::<Uri>().ok().and_then(|uri| path_of(&uri)).ok_or_else(invalid)?;
        let (_, front) = self.program(&identity(&path))?;
        Ok((front, name.clone()))
    }

    /// Answers a request about a place of a checked program.
    fn query(&mut self, method: &str, params: Value) -> Answer {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str).and_then(|uri| uri.parse().ok());
        let Some(path) = uri.and_then(|uri: Uri| path_of_uri(&uri)) else {
            return Err(Failed(ErrorCode::MethodNotFound, format!("no method `{method}` for this")));
        };
        let (root, front) = self.program(&path)?;
        let view = &View::new(&front);
        let evaluated = self.evaluation.of(&root);
        let evaluated = evaluated.as_deref();
        match method {
            "textDocument/hover" => {
                let p: lsp_types::HoverParams = parse(params)?;
                Ok(to_value(queries::hover(view, evaluated, &p.text_document_position_params)))
            }
            "textDocument/definition" => {
                let p: lsp_types::GotoDefinitionParams = parse(params)?;
                Ok(to_value(queries::definition(view, &p.text_document_position_params)))
            }
            "textDocument/references" => {
                let p: lsp_types::ReferenceParams = parse(params)?;
                Ok(to_value(queries::references(view, &p)))
            }
            "textDocument/documentHighlight" => {
                let p: lsp_types::DocumentHighlightParams = parse(params)?;
                Ok(to_value(queries::highlights(view, &p.text_document_position_params)))
            }
            "textDocument/prepareRename" => {
                let p: lsp_types::TextDocumentPositionParams = parse(params)?;
                names::prepare(view, packages::folder_of(&path).as_deref(), &p).map(to_value)
            }
            "textDocument/documentSymbol" => {
                let p: lsp_types::DocumentSymbolParams = parse(params)?;
                Ok(to_value(symbols::of_document(view, &p.text_document.uri)))
            }
            "textDocument/inlayHint" => {
                let p: lsp_types::InlayHintParams = parse(params)?;
                Ok(to_value(queries::hints(view, evaluated, &p)))
            }
            "textDocument/codeLens" => {
                let p: lsp_types::CodeLensParams = parse(params)?;
                Ok(to_value(queries::lenses(view, evaluated, &p.text_document.uri)))
            }
            _ => Err(Failed(ErrorCode::MethodNotFound, format!("no method `{method}`"))),
        }
    }

    fn text_of(&self, uri: &Uri) -> Result<(PathBuf, String), Failed> {
        let path = path_of(uri).map(|p| identity(&p));
        let open = path.and_then(|path| Some((self.buffers.get(&path)?.text.clone(), path)));
        open.map(|(text, path)| (path, text))
            .ok_or_else(|| Failed(ErrorCode::InvalidParams, "the file is not open".into()))
    }

    fn format(&self, p: lsp_types::DocumentFormattingParams) -> Answer {
        let (path, text) = self.text_of(&p.text_document.uri)?;
        if path.to_str().is_some_and(|name| !staged::has_form(name)) {
            return Ok(Value::Null);
        }
        let format = if is_other(&path) { staged::format } else { nyala_syntax::format };
        let file = nyala_base::Sources::new().add(path.display().to_string(), "");
        match format(file, &text) {
            Ok(formatted) => Ok(to_value(queries::difference(&text, &formatted))),
            // The diagnostics say why.
            Err(_) => Ok(Value::Null),
        }
    }

    /// The program with other texts of some files, which are not the editor's.
    fn with_texts(&mut self, path: &Path, texts: HashMap<PathBuf, String>) -> Result<FrontEnd, Failed> {
        let (root, front) = self.program(path)?;
        let mut unsaved = self.unsaved();
        unsaved.extend(texts);
        let of = self.known.get(&root).map(|known| known.root.files(&unsaved));
        Ok(front.again(of.unwrap_or_default()))
    }

    fn complete(&mut self, p: &lsp_types::TextDocumentPositionParams) -> Answer {
        let uri = &p.text_document.uri;
        let (path, text) = self.text_of(uri)?;
        let at = Lines::new(&text).offset(&text, p.position);
        let asked = completion::Asked::at(&text, at);
        if asked == completion::Asked::Nothing || is_other(&path) {
            return Ok(json!([]));
        }
        let (patched, at) = asked.patched(&text, at);
        let front = self.with_texts(&path, HashMap::from([(path.clone(), patched)]))?;
        let view = View::new(&front);
        Ok(to_value(match &asked {
            completion::Asked::Use { path } => completion::of_use(&view, path, uri, &self.options.library_folders),
            _ => completion::items(&view, &asked, uri, at),
        }))
    }

    fn signature(&mut self, p: &lsp_types::TextDocumentPositionParams) -> Answer {
        let uri = &p.text_document.uri;
        let (path, text) = self.text_of(uri)?;
        let at = Lines::new(&text).offset(&text, p.position);
        if is_other(&path) {
            return Ok(Value::Null);
        }
        let (closed, at) = completion::closed(&text, at);
        let front = self.with_texts(&path, HashMap::from([(path.clone(), closed)]))?;
        Ok(to_value(completion::signature(&View::new(&front), uri, at)))
    }

    fn rename(&mut self, p: lsp_types::RenameParams) -> Answer {
        let (path, _) = self.text_of(&p.text_document_position.text_document.uri)?;
        names::check_name(&p.new_name)?;
        let (root, front) = self.program(&path)?;
        let package = packages::folder_of(&path);
        let unsaved = self.unsaved();
        let mut programs: Vec<(Root, Arc<FrontEnd>)> =
            self.known.get(&root).map(|known| (known.root.clone(), front.clone())).into_iter().collect();
        for root in package.iter().flat_map(|folder| analysis::other_programs(folder, &View::new(&front))) {
            let front = front.again(root.files(&unsaved));
            programs.push((root, Arc::new(front)));
        }
        let views: Vec<View> = programs.iter().map(|(_, front)| View::new(front)).collect();
        let plan = names::plan(&views, package.as_deref(), &p.text_document_position, &p.new_name, self.renames_files)?;
        let mut changed = unsaved;
        changed.extend(plan.texts.clone());
        plan.check(|i| programs[i].1.again(programs[i].0.files(&changed)))?;
        Ok(to_value(plan.edit))
    }

    // Diagnostics.

    fn publish(&mut self, root: &Path, view: &View) {
        let mut files: BTreeMap<PathBuf, Vec<lsp_types::Diagnostic>> = BTreeMap::new();
        let own: Vec<PathBuf> = view.own_files().collect();
        files.extend(own.iter().map(|path| (path.clone(), Vec::new())));
        for finding in view.findings {
            if let Some((path, diagnostic)) = queries::diagnostic(&|span| view.location(span), finding) {
                files.entry(path).or_default().push(diagnostic);
            }
        }
        let has_errors = view.findings.iter().any(|d| d.severity == nyala_base::Severity::Error);
        let Some(known) = self.known.get_mut(root) else { return };
        let old = std::mem::replace(&mut known.published, files.keys().cloned().collect());
        known.files = own.clone();
        known.is_new = !has_errors;
        let gone = old.into_iter().filter(|path| !files.contains_key(path)).map(|path| (path, Vec::new()));
        let gone: Vec<_> = gone.filter_map(|(path, none)| self.diagnostics_of(&path, none)).collect();
        let found: Vec<_> = files.into_iter().filter_map(|(path, found)| self.diagnostics_of(&path, found)).collect();
        for params in gone.into_iter().chain(found.clone()) {
            self.send(Notification::new("textDocument/publishDiagnostics".into(), params));
        }
        self.evaluation.checked(root, found);
        // A file that was its own program until it was seen to belong to this one.
        for path in own.iter().filter(|path| *path != root) {
            self.known.remove(path);
        }
        // And one that was of this program until its `mod` vanished.
        let is_known = |path: &PathBuf| self.known.values().any(|k| k.files.contains(path));
        let lost: Vec<PathBuf> = self.buffers.keys().filter(|path| !is_known(path)).cloned().collect();
        for path in lost {
            let root = analysis::find_root(&path);
            // The file on disk that leads there may have another text in the editor.
            let is_known = root.files.first().is_some_and(|first| self.known.contains_key(first));
            self.add_root(if is_known { Root { files: vec![path], is_prelude: false } } else { root });
        }
    }

    fn diagnostics_of(&self, path: &Path, diagnostics: Vec<lsp_types::Diagnostic>) -> Option<PublishDiagnosticsParams> {
        let buffer = self.buffers.get(path);
        let uri = buffer.map(|b| b.uri.clone()).or_else(|| uri_of(path))?;
        Some(PublishDiagnosticsParams { uri, diagnostics, version: buffer.map(|b| b.version) })
    }
}

/// A program in another language, which has diagnostics and, but for Sierra, the meanings of names.
fn is_other(path: &Path) -> bool {
    path.to_str().is_some_and(nyala_driver::is_other)
}

fn path_of_uri(uri: &Uri) -> Option<PathBuf> {
    path_of(uri).map(|p| identity(&p))
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, Failed> {
    serde_json::from_value(params).map_err(|e| Failed(ErrorCode::InvalidParams, e.to_string()))
}

fn to_value(value: impl serde::Serialize) -> Value {
    // All of these types can be written as JSON.
    serde_json::to_value(value).unwrap_or_default()
}

/// Changes a text as the client has.
fn apply(text: &mut String, change: TextDocumentContentChangeEvent) {
    let Some(range) = change.range else {
        *text = change.text;
        return;
    };
    let lines = Lines::new(text);
    let (lo, hi) = (lines.offset(text, range.start) as usize, lines.offset(text, range.end) as usize);
    text.replace_range(lo..hi.max(lo), &change.text);
}
