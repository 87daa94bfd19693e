//! The arguments of the tools that agents' clients run themselves.
//!
//! A hook's manifests take any argument, since clients add some. Another argument than these is
//! most likely a slip.

/// The arguments of a tool of a client's own, by its id on record; `None` where they are not known.
pub(super) fn of_tool(tool: &str) -> Option<&'static [&'static str]> {
    let known = TOOLS.iter().find(|(name, _)| *name == tool);
    known.map(|(_, arguments)| *arguments)
}

type Known = (&'static str, &'static [&'static str]);

const TOOLS: &[Known] = &[
    ("claude_code.bash", &["command", "place", "run_in_background", "timeout"]),
    ("claude_code.edit", &["file_path", "new_string", "old_string", "replace_all"]),
    ("claude_code.glob", &["path", "pattern"]),
    (
        "claude_code.grep",
        &[
            "-A",
            "-B",
            "-C",
            "-i",
            "-n",
            "context",
            "glob",
            "head_limit",
            "multiline",
            "offset",
            "output_mode",
            "path",
            "pattern",
            "type",
        ],
    ),
    ("claude_code.ls", &["ignore", "path"]),
    ("claude_code.multi_edit", &["edits", "file_path"]),
    (
        "claude_code.notebook_edit",
        &["cell_id", "cell_type", "edit_mode", "new_source", "notebook_path"],
    ),
    ("claude_code.read", &["file_path", "limit", "offset", "pages"]),
    ("claude_code.web_fetch", &["prompt", "url"]),
    ("claude_code.web_search", &["allowed_domains", "blocked_domains", "query"]),
    ("claude_code.write", &["content", "file_path"]),
    ("gemini_cli.google_web_search", &["query"]),
    ("gemini_cli.read_file", &["absolute_path", "file_path", "limit", "offset"]),
    (
        "gemini_cli.replace",
        &["expected_replacements", "file_path", "instruction", "new_string", "old_string"],
    ),
    ("gemini_cli.run_shell_command", &["command", "dir_path", "directory", "place"]),
    ("gemini_cli.web_fetch", &["prompt"]),
    ("gemini_cli.write_file", &["content", "file_path"]),
];
