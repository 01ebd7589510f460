//! A session in a real editor: Neovim, with the settings that `docs/editors.md` gives. Separate from the scripted client,
//! which knows the protocol as we read it.

use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../../docs/editors.md");

const PROGRAM: &str = "\
// The power of a number.
fn @(?n) pow(x: i32, n: i32) -> i32 {
    if n == 0 { 1 } else { x * pow(x, n - 1) }
}

extern fn pow5(x: i32) -> i32 { pow(x, 5) }

fn main() -> i32 { pow5(true) }
";

/// What is done in the editor. It prints a line for each step.
const SCRIPT: &str = r#"
local out = {}
local function say(...) table.insert(out, table.concat({ ... }, " ")) end
local function ask(method, line, column, more)
  local params = vim.tbl_extend("force", {
    textDocument = vim.lsp.util.make_text_document_params(),
    position = { line = line, character = column },
  }, more or {})
  local answers = vim.lsp.buf_request_sync(0, method, params, 60000)
  for _, answer in pairs(answers or {}) do return answer.result end
end
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 10)
say("diagnostic", vim.diagnostic.get(0)[1].code or vim.diagnostic.get(0)[1].user_data.lsp.code)
say("hover", tostring(ask("textDocument/hover", 5, 32).contents.value:find("The power of a number", 1, true) ~= nil))
say("definition", ask("textDocument/definition", 5, 32).range.start.line)
vim.api.nvim_buf_set_lines(0, 7, 8, false, { "fn main() -> i32 { pow5(  2) }" })
vim.wait(60000, function() return #vim.diagnostic.get(0) == 0 end, 10)
say("diagnostics", #vim.diagnostic.get(0))
vim.lsp.buf.formatting_sync(nil, 60000)
say("formatted", vim.api.nvim_buf_get_lines(0, 7, 8, false)[1])
local edit = ask("textDocument/rename", 5, 32, { newName = "power" })
vim.lsp.util.apply_workspace_edit(edit, "utf-16")
say("renamed", vim.api.nvim_buf_get_lines(0, 5, 6, false)[1])
local lenses = ask("textDocument/codeLens", 0, 0)
for _, lens in ipairs(lenses) do
  if lens.command.arguments[2] == "pow5" then
    local id = vim.lsp.get_active_clients()[1].id
    vim.lsp.commands["nyala.showResidual"](lens.command, { client_id = id, bufnr = 0 })
  end
end
vim.wait(60000, function() return vim.bo.buftype == "nofile" end, 10)
say("residual", vim.api.nvim_buf_get_lines(0, 1, 2, false)[1])
vim.fn.writefile(out, "said.txt")
vim.cmd("qall!")
"#;

#[test]
#[ignore = "needs Neovim: ./x test --all crates"]
fn neovim_with_the_settings_of_the_page() {
    if Command::new("nvim").arg("--version").output().is_err() {
        println!("skipped: there is no Neovim (nvim)");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let settings = PAGE.split("```lua\n").nth(1).and_then(|rest| rest.split("```").next()).expect("settings");
    for (name, text) in [("init.lua", settings), ("script.lua", SCRIPT), ("main.impala", PROGRAM)] {
        std::fs::write(folder.path().join(name), text).expect("it can be written");
    }
    let command = Path::new(env!("CARGO_BIN_EXE_nyala")).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(command.to_path_buf()).chain(std::env::split_paths(&path));
    let done = Command::new("nvim")
        .args([
            "--headless",
            "-u",
            "init.lua",
            "-i",
            "NONE",
            "-n",
            "main.impala",
            "-c",
            "luafile script.lua",
            "-c",
            "cquit",
        ])
        .current_dir(folder.path())
        .env("PATH", std::env::join_paths(all).expect("a path"))
        .env("XDG_CACHE_HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .output()
        .expect("it starts");
    let said = std::fs::read_to_string(folder.path().join("said.txt")).unwrap_or_default();
    let expected = "\
diagnostic type-mismatch
hover true
definition 1
diagnostics 0
formatted fn main() -> i32 { pow5(2) }
renamed extern fn pow5(x: i32) -> i32 { power(x, 5) }
residual export cont pow5(m: mem, x: i32, ret: cn(mem, i32)) = ret(m, mul(x, mul(t, t)))
";
    // The residual program is another one for another `pow`; its head is the same.
    let cut = |text: &str| text.split(" = ret(").next().unwrap_or_default().to_string();
    assert_eq!(cut(&said), cut(expected), "{}", String::from_utf8_lossy(&done.stderr));
}
