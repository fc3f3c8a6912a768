//! Folders that a tool fills and can fill again.

/// Their names. One is what it seems where version control ignores it or its builder has marked it.
pub const REBUILT_FOLDERS: [&str; 22] = [
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".turbo",
    ".parcel-cache",
    ".terraform",
    ".dart_tool",
    "bower_components",
    ".cache",
    ".zig-cache",
    "_build",
];

/// The file by which builders mark a folder as theirs (<https://bford.info/cachedir>).
pub const CACHE_MARK: &str = "CACHEDIR.TAG";
