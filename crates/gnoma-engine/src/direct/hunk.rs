//! Turns a rewritten file into a change of the old one. Unchanged parts are left out, so that the change is short
//! to show, judge and describe, and bytes outside it stay as they are.

use gnoma_core::diff::likeness;

/// What becomes what in a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) old: String,
    pub(crate) new: String,
}

/// Words that models write in place of what they leave out, in lines that say nothing else.
const ELIDED: [&str; 9] = [
    "rest of",
    "remain",
    "unchanged",
    "existing",
    "same as",
    "other code",
    "as before",
    "omitted",
    "previous",
];

/// How comments begin.
const COMMENTS: [&str; 7] = ["#", "//", "/*", "*", "--", ";", "<!--"];

/// Words of tasks in which a file may become much shorter.
const SHORTER: [&str; 19] = [
    "remove",
    "removes",
    "removed",
    "removing",
    "delete",
    "deletes",
    "deleted",
    "deleting",
    "drop",
    "drops",
    "dropping",
    "shorten",
    "shorter",
    "simplify",
    "simplified",
    "simpler",
    "clean",
    "cleanup",
    "empty",
];

/// So many lines may always be lost.
const FEW_LINES: usize = 2;

/// In such tasks a file of at most so many lines may lose any of them; of a longer one, one in
/// four has to stay.
const TINY_LINES: usize = 20;
const LEAST_FRACTION: usize = 4;

/// What `written` is of the file that was `old`: with its lines as they were where only their white space
/// differs without meaning, and without what models add.
pub(crate) fn settled(path: &str, old: &str, written: &str) -> String {
    let mut written = written.trim_end_matches(['\n', ' ', '\t']);
    let first = written.lines().next().unwrap_or_default();
    let is_name =
        first.trim_matches(|c: char| !c.is_alphanumeric()) == path.trim_start_matches('/');
    if is_name && old.lines().next() != Some(first) {
        written = written.get(first.len()..).unwrap_or_default().trim_start_matches('\n');
    }
    let has_tabs = written.lines().any(|line| line.starts_with('\t'));
    let mut text =
        if uses_tabs(old) && !has_tabs { with_tabs(old, written) } else { written.to_owned() };
    let blank = old.len() - old.trim_end_matches('\n').len();
    text.push_str(&"\n".repeat(blank));
    text
}

/// Whether most of the lines that are indented begin with a tab.
fn uses_tabs(text: &str) -> bool {
    let begin_with = |mark: char| text.lines().filter(|line| line.starts_with(mark)).count();
    begin_with('\t') > begin_with(' ')
}

/// Replaces an indentation of as many spaces as the least indented line by a tab. Lines that are in `old` stay as
/// they are.
fn with_tabs(old: &str, text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_kept = |line: &str| old.lines().any(|kept| kept == line);
    let changed = text.lines().filter(|line| !is_kept(line));
    let step = changed.map(indent).filter(|spaces| *spaces > 1).min();
    let Some(step) = step else { return text.to_owned() };
    let line = |line: &str| {
        if is_kept(line) {
            return line.to_owned();
        }
        let spaces = indent(line);
        let rest = line.get(spaces..).unwrap_or_default();
        format!("{}{}{rest}", "\t".repeat(spaces / step), " ".repeat(spaces % step))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The smallest run of whole lines of `old` that is there once and makes it `new`; the same text twice where
/// nothing changes.
pub(crate) fn replaced(old: &str, new: &str) -> Replaced {
    let (lines, news): (Vec<&str>, Vec<&str>) =
        (old.split('\n').collect(), new.split('\n').collect());
    let most = lines.len().min(news.len());
    let head = lines.iter().zip(&news).take_while(|(a, b)| a == b).count();
    let tail = lines.iter().rev().zip(news.iter().rev()).take(most - head.min(most));
    let tail = tail.take_while(|(a, b)| a == b).count();
    let (mut head, mut tail) = (head, tail);
    loop {
        let run = |lines: &[&str]| {
            lines.get(head..lines.len().saturating_sub(tail)).unwrap_or_default().join("\n")
        };
        let part = run(&lines);
        let is_one = !part.trim().is_empty() && is_once(old, &part);
        // Lines that only go need one beside them: their line end goes too.
        if is_one && head + tail < news.len() || (head, tail) == (0, 0) {
            return Replaced { new: run(&news), old: part };
        }
        // A line more on the side that has more.
        if head >= tail { head -= 1 } else { tail -= 1 }
    }
}

/// Whether `part` is in `text` at one place, also where places overlap.
fn is_once(text: &str, part: &str) -> bool {
    let first = part.chars().next().map_or(1, char::len_utf8);
    let rest = text.find(part).and_then(|at| text.get(at + first..));
    rest.is_some_and(|rest| !rest.contains(part))
}

/// Why `new` may not take the place of `old`: it leaves out what was to stay.
pub(crate) fn lost(old: &str, new: &str, task: &str) -> Option<String> {
    let mark = new.lines().find(|line| elides(line) && !old.contains(line.trim()));
    if let Some(mark) = mark {
        let mark = mark.trim();
        return Some(format!(
            "nothing was changed: `{mark}` stands for text that is left out; every line has to be written"
        ));
    }
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let (before, after) = (lines(old), lines(new));
    let is_short = if shortens(task) {
        before > TINY_LINES && after * LEAST_FRACTION < before
    } else {
        before > after + FEW_LINES && after * 2 < before
    };
    is_short.then(|| {
        format!("nothing was changed: {before} lines became {after}; keep every line that does not have to change")
    })
}

/// Whether a line replaces others: only dots, or dots and words for what is left out, in a comment or alone. In
/// code (`{ ...existing, name }`, `"Loading existing users..."`) they mean something else.
fn elides(line: &str) -> bool {
    let line = line.trim();
    let dots = ['.', '…'];
    let has_dots = |text: &str| text.contains("...") || text.contains('…');
    let bare = |text: &str| {
        text.trim_matches(|c: char| !c.is_alphanumeric() && !dots.contains(&c)).to_lowercase()
    };
    let begins_apart = |text: &str| {
        let rest = text.trim_start_matches(dots);
        rest.len() < text.len() && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    let behind = COMMENTS.iter().filter_map(|mark| line.split_once(&format!(" {mark} ")));
    let is_comment = COMMENTS.iter().any(|mark| line.starts_with(mark));
    let is_framed = line.starts_with(['(', '[', '<', '{']) && bare(line).ends_with(dots);
    let is_apart = is_comment
        || is_framed
        || begins_apart(&bare(line))
        || behind.map(|(_, comment)| bare(comment)).any(|comment| begins_apart(&comment));
    let lower = line.to_lowercase();
    let has_word = ELIDED.iter().any(|word| lower.contains(word));
    has_dots(line) && (bare(line).trim_matches(dots).is_empty() || is_apart && has_word)
}

/// Whether a task has a word for making a file shorter. Parts of names (`clean.py`, `drop_all`) are none.
fn shortens(task: &str) -> bool {
    task.split_whitespace().any(|word| {
        let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
        SHORTER.iter().any(|known| known.eq_ignore_ascii_case(word))
    })
}

/// How alike two texts are, line by line.
pub(crate) fn alike(old: &str, new: &str) -> f32 {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    likeness(&lines(old), &lines(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: &str, new: &str) -> (String, String) {
        let Replaced { old, new } = replaced(old, new);
        (old, new)
    }

    #[test]
    fn only_the_lines_that_change_are_replaced() {
        let made = |old: &str, new: &str| {
            let (was, now) = change(old, new);
            assert_eq!(old.matches(&*was).count(), 1, "{was:?}");
            assert_eq!(old.replacen(&*was, &now, 1), new);
            (was, now)
        };
        assert_eq!(made("a\nb\nc", "a\nB\nc"), ("b".into(), "B".into()));
        assert_eq!(made("a\nb", "a\nx\nb"), ("a".into(), "a\nx".into()));
        assert_eq!(made("a\nb\nc", "a\nc").1, "a");
        assert_eq!(made("x\nb\ny\nb", "x\nb\ny\nc").1, "y\nc");
        assert_eq!(made("a", "a\nb").1, "a\nb");
        made("a\na\na", "a\na");
        made("x = 1\nxx = 1\n", "x = 2\nxx = 1\n");
        let (was, now) = change("a\nb", "a\nb");
        assert_eq!(was, now);
    }

    #[test]
    fn what_models_add_and_drop_around_the_text_is_no_change() {
        assert_eq!(settled("a.py", "x = 1\n", "# a.py\nx = 2\n\n"), "x = 2\n");
        assert_eq!(settled("a.py", "# a.py\nx = 1", "# a.py\nx = 2\n"), "# a.py\nx = 2");
        let go = settled(
            "m.go",
            "func f() {\n\tg()\n}",
            "func f() {\n    if x {\n        g()\n    }\n}",
        );
        assert_eq!(go, "func f() {\n\tif x {\n\t\tg()\n\t}\n}");
        let old = "def f():\n    a = 1\n    s = \"\"\"\n\tx\n\"\"\"\n";
        let new = "def f():\n    a = 2\n    s = \"\"\"\n    x\n\"\"\"\n";
        assert_eq!(settled("a.py", old, new), new, "a tab in a string is no style");
        let old = "func f() {\n\ta()\n\tif b {\n\t\tc()\n\t}\n}\nvar y = `\na:\n  b: 1\n`";
        let new = old.replace('\t', "    ").replace("a()", "d()");
        assert_eq!(settled("a.go", old, &new), old.replace("a()", "d()"), "text in a string stays");
    }

    #[test]
    fn a_text_that_leaves_out_the_rest_is_refused() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj";
        for new in ["a\n# ... rest of the code", "a\n// ...", "a\n# … unchanged …", "a\nb"] {
            assert!(lost(old, new, "Fix a.").is_some(), "{new}");
        }
        assert!(lost(old, "a\nb", "Remove what is not used.").is_none());
        assert!(lost(old, "a\nb\nprint('...')\nd\ne\nf", "Fix a.").is_none());
        assert!(lost("x\n// ...", "y\n// ...", "Fix a.").is_none());
    }

    #[test]
    fn dots_in_code_stand_for_no_lines() {
        for line in [
            "return { ...existing, name };",
            "setItems([...previous, item])",
            "  ...previous,",
            "print(\"Loading existing users...\")",
            "print('... remaining')",
        ] {
            assert!(!elides(line), "{line}");
        }
        for line in [
            "# ... rest of the code",
            "// ...",
            "x = 1  # ... rest unchanged",
            "... existing code ...",
            "[rest of the code...]",
            "<!-- existing rows ... -->",
            "    ...",
            "# keep the remaining lines…",
        ] {
            assert!(elides(line), "{line}");
        }
    }

    #[test]
    fn a_word_for_less_in_the_task_allows_less_but_not_nearly_nothing() {
        let text = |lines: usize| "x = 1\n".repeat(lines);
        let is_lost = |after: usize, task: &str| lost(&text(200), &text(after), task).is_some();
        for task in [
            "Replace foo by bar in a.py",
            "Only change foo in a.py.",
            "Fix clean.py, where drop_all() fails.",
            "Fix the dropdown in ./shorter/a.py",
        ] {
            assert!(is_lost(90, task), "{task}");
        }
        for task in ["Remove foo.", "Clean it up", "a.py: please simplify, then delete bar."] {
            assert!(!is_lost(90, task) && !is_lost(50, task) && is_lost(10, task), "{task}");
        }
        assert!(lost(&text(20), &text(1), "Remove foo.").is_none());
    }
}
