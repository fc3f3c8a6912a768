//! Lines of code inside a text.

use crate::{
    clean,
    highlight::Highlighter,
    text::{Line, Span, Style},
};

/// The spaces before a line of code.
pub(super) const CODE_INDENT: &str = "  ";

/// A line of code in colours, indented, in as many lines as it takes.
pub(super) fn render_code_line(
    line: &str,
    highlighter: Option<&mut Highlighter>,
    width: usize,
) -> Vec<Line> {
    let line = clean::expand_tabs(line);
    let spans = match highlighter {
        Some(highlighter) => highlighter.highlight_line(&line),
        None => vec![Span::new(line, Style::default())],
    };
    let indent = if width > 2 * CODE_INDENT.len() { CODE_INDENT } else { "" };
    let mut lines = Line { spans }.wrap(width - indent.len(), &Line::default());
    for line in &mut lines {
        line.trim_end();
        if !indent.is_empty() && !line.spans.is_empty() {
            line.spans.insert(0, Span::new(indent, Style::default()));
        }
    }
    lines
}
