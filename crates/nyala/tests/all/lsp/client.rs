//! A client of the language server: it sends messages and waits for those that answer. Apart from the tests, which read as
//! sessions.

use lsp_server::{Connection, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::io::BufReader;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// A folder with files, removed at the end.
pub struct Folder(tempfile::TempDir);

/// A file as the client names it.
#[derive(Clone)]
pub struct File {
    pub uri: String,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self, name: &str) -> File {
        let folder = self.0.path().canonicalize().expect("a folder");
        File { uri: format!("file://{}", folder.join(name).display()) }
    }

    pub fn write(&self, name: &str, text: &str) -> File {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
        self.file(name)
    }
}

enum Link {
    Process { child: Child, input: Option<ChildStdin>, output: BufReader<ChildStdout> },
    Memory { connection: Option<Connection>, server: Option<JoinHandle<bool>> },
}

/// A client, and what has come that nobody has asked for yet.
pub struct Client {
    link: Link,
    folder: Option<Folder>,
    next: i32,
    came: Vec<Notification>,
}

impl Client {
    fn new(link: Link, folder: Option<Folder>) -> Client {
        Client { link, folder, next: 0, came: Vec::new() }
    }

    /// A server in a process of its own.
    pub fn process(folder: Folder) -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nyala"))
            .arg("lsp")
            .env("XDG_CACHE_HOME", folder.0.path().join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("its output"));
        Client::new(Link::Process { child, input, output: BufReader::new(output) }, Some(folder))
    }

    /// A server in this process.
    pub fn memory(folder: Folder) -> Client {
        let (own, other) = Connection::memory();
        let options = nyala_driver::Options { verify: false, ..nyala_driver::Options::default() };
        let server = std::thread::Builder::new().stack_size(64 << 20).spawn(move || nyala::lsp::serve(&other, options));
        let server = Some(server.expect("a thread"));
        Client::new(Link::Memory { connection: Some(own), server }, Some(folder))
    }

    /// A server in this process with one file, which is checked.
    pub fn with(text: &str) -> (Client, File) {
        let mut client = Client::memory(Folder::new());
        client.initialize();
        let file = client.open_new("main.impala", text);
        (client, file)
    }

    fn send(&mut self, message: Message) {
        match &mut self.link {
            Link::Process { input, .. } => {
                message.write(input.as_mut().expect("it is open")).expect("the server reads")
            }
            Link::Memory { connection, .. } => {
                connection.as_ref().expect("it is open").sender.send(message).expect("the server reads");
            }
        }
    }

    fn receive(&mut self) -> Message {
        match &mut self.link {
            Link::Process { output, .. } => Message::read(output).expect("a message").expect("a message"),
            Link::Memory { connection, .. } => {
                connection.as_ref().expect("it is open").receiver.recv().expect("the server writes")
            }
        }
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(Notification::new(method.into(), params).into());
    }

    /// The answer to a request, or the message of an error.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next.into();
        self.send(Request::new(id, method.into(), params).into());
        loop {
            match self.receive() {
                Message::Response(response) => {
                    assert_eq!(response.id, self.next.into(), "answers come in order");
                    let value = serde_json::to_value(&response).expect("JSON");
                    return match value.get("error") {
                        Some(error) => Err(error["message"].as_str().unwrap_or_default().into()),
                        None => Ok(value["result"].clone()),
                    };
                }
                Message::Notification(n) => self.came.push(n),
                Message::Request(request) => self.send(Response::new_ok(request.id, Value::Null).into()),
            }
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params).unwrap_or_else(|e| panic!("{method}: {e}"))
    }

    /// The next notification of this kind that nobody has seen.
    pub fn wait_for(&mut self, method: &str) -> Value {
        self.wait(|n| n.method == method)
    }

    fn wait(&mut self, is_it: impl Fn(&Notification) -> bool) -> Value {
        loop {
            if let Some(at) = self.came.iter().position(&is_it) {
                return self.came.remove(at).params;
            }
            match self.receive() {
                Message::Notification(n) => self.came.push(n),
                Message::Request(request) => self.send(Response::new_ok(request.id, Value::Null).into()),
                Message::Response(response) => panic!("nobody has asked for {response:?}"),
            }
        }
    }

    pub fn initialize(&mut self) -> Value {
        let edits = json!({ "documentChanges": true, "resourceOperations": ["rename"] });
        self.initialize_with(json!({ "workspace": { "workspaceEdit": edits } }))
    }

    pub fn initialize_with(&mut self, capabilities: Value) -> Value {
        let params = json!({ "processId": null, "rootUri": null, "capabilities": capabilities });
        let info = self.request("initialize", params);
        self.notify("initialized", json!({}));
        info
    }

    pub fn open(&mut self, file: &File, text: &str) {
        let document = json!({ "uri": file.uri, "languageId": "impala", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Opens a file that is on no disk.
    pub fn open_new(&mut self, name: &str, text: &str) -> File {
        let file = self.folder.as_ref().expect("a folder").file(name);
        self.open(&file, text);
        self.diagnostics(&file);
        file
    }

    pub fn change(&mut self, file: &File, version: i32, changes: Value) {
        let document = json!({ "uri": file.uri, "version": version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// The next diagnostics of a file.
    pub fn diagnostics(&mut self, file: &File) -> Vec<Value> {
        let params = self.wait(|n| n.method == "textDocument/publishDiagnostics" && n.params["uri"] == file.uri);
        params["diagnostics"].as_array().cloned().unwrap_or_default()
    }

    /// The place of a text's `nth` occurrence.
    pub fn place(&self, file: &File, text: &str, what: &str, nth: usize) -> Value {
        let at = text.match_indices(what).nth(nth).expect("it is there").0;
        self.place_at(file, text, at)
    }

    pub fn place_at(&self, file: &File, text: &str, at: usize) -> Value {
        let line = text[..at].matches('\n').count();
        let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let character = text[start..at].encode_utf16().count();
        json!({ "textDocument": { "uri": file.uri }, "position": { "line": line, "character": character } })
    }

    /// Ends the session. Returns whether the server is content.
    pub fn finish(mut self) -> bool {
        assert_eq!(self.request("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        match &mut self.link {
            Link::Process { child, .. } => child.wait().expect("it ends").success(),
            Link::Memory { server, .. } => server.take().expect("a server").join().expect("no panic"),
        }
    }

    /// Ends without a word.
    pub fn vanish(mut self) -> bool {
        match &mut self.link {
            Link::Process { child, input, .. } => {
                drop(input.take());
                child.wait().expect("it ends").success()
            }
            Link::Memory { connection, server } => {
                drop(connection.take());
                server.take().expect("a server").join().expect("no panic")
            }
        }
    }
}

/// The text of a hover.
pub fn text_of(contents: &Value) -> String {
    contents["value"].as_str().unwrap_or_default().into()
}

/// The names that a completion offers.
pub fn labels(items: &Value) -> Vec<String> {
    let items = items.as_array().into_iter().flatten();
    items.map(|item| item["label"].as_str().expect("a label").to_string()).collect()
}
