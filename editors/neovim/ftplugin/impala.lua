-- Options, highlighting and the language server for a buffer with Impala: Neovim 0.7.2 and newer.

vim.bo.commentstring = "// %s"
vim.bo.comments = "s1:/*,mb:*,ex:*/,://"
vim.bo.expandtab = true
vim.bo.shiftwidth = 4

-- The parser is compiled by the command in README.md.
if #vim.api.nvim_get_runtime_file("parser/impala.so", false) > 0 then
    if vim.treesitter.start then
        vim.treesitter.start(0, "impala")
    else
        vim.treesitter.highlighter.new(vim.treesitter.get_parser(0, "impala"))
    end
end

-- The folder of the innermost package or repository around the file, else that of the file.
local function root()
    local folder = vim.fn.expand("%:p:h")
    for _, mark in ipairs({ "nyala.toml", ".git" }) do
        local found = vim.fn.findfile(mark, folder .. ";")
        if found == "" then
            found = vim.fn.finddir(mark, folder .. ";")
        end
        if found ~= "" then
            return vim.fn.fnamemodify(found, ":p:h" .. (mark == ".git" and ":h" or ""))
        end
    end
    return folder
end

if vim.fn.executable("nyala") == 1 then
    local server = { name = "nyala", cmd = { "nyala", "lsp" }, root_dir = root() }
    if vim.lsp.start then
        vim.lsp.start(server)
    else
        -- Neovim 0.7: one client serves all buffers.
        vim.g.nyala_client = vim.g.nyala_client or vim.lsp.start_client(server)
        vim.lsp.buf_attach_client(0, vim.g.nyala_client)
    end
end
