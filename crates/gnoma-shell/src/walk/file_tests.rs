//! The operators of `test`, `[` and `[[` that are about files.

/// True if the operator tests the file that stands behind it.
pub(super) fn looks_at_file(operator: &str) -> bool {
    is_file_test(operator) && operator.ends_with(FILE_TESTS)
}

/// True if the operator compares the files on both sides.
pub(super) fn compares_files(operator: &str) -> bool {
    matches!(operator, "-nt" | "-ot" | "-ef")
}

/// Letters of the operators that test a file.
const FILE_TESTS: [char; 19] =
    ['b', 'c', 'd', 'e', 'f', 'g', 'h', 'k', 'p', 'r', 's', 'u', 'w', 'x', 'G', 'L', 'N', 'O', 'S'];

/// True if `test` takes the text for an operator before one operand.
pub(super) fn is_file_test(text: &str) -> bool {
    text.len() == 2 && text.starts_with('-') && !matches!(text, "-a" | "-o")
}
