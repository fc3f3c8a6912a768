//! Names that tell what a build has made.

/// Names that no folder but a rebuilt one has.
pub(crate) const UNMISTAKABLE: [&str; 4] =
    ["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"];
/// Ends of names that only compilers and checkers give, and whole names, where version control ignores them.
pub(crate) const COMPILED: [&str; 20] = [
    ".o",
    ".obj",
    ".lo",
    ".la",
    ".a",
    ".so",
    ".dylib",
    ".d",
    ".gch",
    ".pyc",
    ".pyo",
    ".class",
    ".rlib",
    ".rmeta",
    ".hi",
    ".cmi",
    ".cmo",
    ".cmx",
    ".beam",
    ".tsbuildinfo",
];
