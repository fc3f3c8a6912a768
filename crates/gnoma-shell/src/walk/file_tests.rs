//! The operators of `test`, `[` and `[[` that are about files.

use super::Walker;
use super::command_facts::CommandFacts;
use crate::expand::Field;

impl Walker<'_> {
    /// Adds looks at the operands of `test` that name files.
    pub(super) fn add_tested_files(&self, words: &[Field], facts: &mut CommandFacts) {
        let is_any = |at: Option<usize>, matches: fn(&str) -> bool| {
            at.and_then(|at| words.get(at)).and_then(Field::known_text).is_some_and(matches)
        };
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1);
            // Between two operands `-a` is "and".
            let is_first = |at: usize| {
                at.checked_sub(1).is_none_or(|at| is_any(Some(at), |it| matches!(it, "!" | "(")))
            };
            if is_any(before, looks_at_file)
                || before.is_some_and(is_first) && is_any(before, looks_at_only_file)
                || is_any(before, compares_files)
                || is_any(Some(at + 1), compares_files)
            {
                facts.add_looks(&self.state.folders, word);
            }
        }
    }
}

/// True if the operator tests the file that stands behind it.
pub(super) fn looks_at_file(operator: &str) -> bool {
    is_file_test(operator) && operator.ends_with(FILE_TESTS)
}

/// True if the operator tests the file that stands behind it, where it has one operand only.
pub(super) fn looks_at_only_file(operator: &str) -> bool {
    operator == "-a" || looks_at_file(operator)
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
