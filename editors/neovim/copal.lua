-- Language server for VCL (copal lsp), for Neovim 0.11 or later.
return {
  cmd = { "copal", "lsp" },
  filetypes = { "vcl" },
  root_markers = { "default.vcl", ".git" },
}
