"""Tools of MCP servers. `config` reads an entry, `session` keeps a connection open, `toolset` offers the tools."""
