//! What a command must not change although it lies in the workspace: files that make other programs
//! run something later, outside the walls.

/// Names below a writable root, for [`crate::Policy::protected`]. What is absent cannot be made.
///
/// Git runs hooks and what its configuration names; `commondir` sends it to another configuration.
/// Editors and agents run tasks, hooks and servers from their folders.
pub const PROTECTED: [&str; 16] = [
    ".kiro",
    ".windsurf",
    "opencode.json",
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/modules",
    ".gnoma",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
    ".mcp.json",
    ".vscode",
    ".idea",
];
