//! The last line of a text that is being written: marks whose partners have not come yet are shown as
//! if they had, so that words do not change their looks twice.

/// Longest line that is only marks.
const MAX_MARKS: usize = 8;

/// The line may become the mark of a block and shows nothing yet.
pub(super) fn is_only_marks(line: &str) -> bool {
    let line = line.trim();
    line.chars().count() <= MAX_MARKS
        && line.chars().all(|c| "#>-*+_=`~|.)0123456789".contains(c))
        && !line.chars().all(|c| c.is_ascii_digit())
        || line.is_empty()
}

/// The line with the ends of what is open in it or in the lines of its block before it.
pub(super) fn close_marks(before: &str, line: &str) -> String {
    let mut code = 0;
    let mut strong = false;
    let whole = format!("{before}{line}");
    let mut rest = whole.as_str();
    while let Some(at) = rest.find(['`', '*']) {
        let mark = &rest[at..=at];
        let run = rest[at..].len() - rest[at..].trim_start_matches(mark).len();
        match mark {
            "`" if code == 0 => code = run,
            "`" if code == run => code = 0,
            "*" if code == 0 && run == 2 => strong = !strong,
            _ => {}
        }
        rest = &rest[at + run..];
    }
    let mut line = line.to_owned();
    if code > 0 && code < 3 {
        end_mark(&mut line, &"`".repeat(code));
    }
    if strong {
        end_mark(&mut line, "**");
    }
    line
}

/// Ends what was begun with the mark; takes the mark away when nothing follows it.
fn end_mark(line: &mut String, mark: &str) {
    match line.strip_suffix(mark) {
        Some(before) => line.truncate(before.len()),
        None => {
            line.truncate(line.trim_end().len());
            line.push_str(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_inline_markdown_marks_are_closed() {
        assert_eq!(close_marks("", "a **bold"), "a **bold**");
        assert_eq!(close_marks("", "a **bold** and `code"), "a **bold** and `code`");
        assert_eq!(close_marks("a **b\n", "c"), "c**");
        assert_eq!(close_marks("", "a **"), "a ");
        assert_eq!(close_marks("", "`a ** b"), "`a ** b`");
        assert_eq!(close_marks("", "2 * 3 * 4"), "2 * 3 * 4");
    }

    #[test]
    fn lone_markdown_marker_is_not_rendered_yet() {
        for line in ["", "-", "``", "##", "12.", "  *"] {
            assert!(is_only_marks(line), "{line}");
        }
        for line in ["a", "12", "- x"] {
            assert!(!is_only_marks(line), "{line}");
        }
    }
}
