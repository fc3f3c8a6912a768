//! The body of a permission question: all of what would run, or what the model wants to know.

use serde_json::{Map, Value};

use super::{MAX_BODY_LINES, PermissionQuestion, dim_style};
use crate::{
    diff,
    text::{Line, Span, Style, TextRole},
};

/// Arguments that say by themselves what a call does, the most telling first.
const MAIN_ARGUMENTS: [&str; 5] = ["command", "path", "file_path", "url", "pattern"];
/// Characters of one argument.
const MAX_ARGUMENT_CHARS: usize = 100_000;

impl PermissionQuestion {
    /// Returns lines with what would run and what it would change; the part that can be scrolled.
    pub(super) fn body_lines(&self, width: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let shown = match &self.inquiry {
            Some(_) => self.inquiry_lines(),
            None => self.argument_lines(width),
        };
        for line in shown.into_iter().chain(self.notable_lines()) {
            lines.extend(line.wrap(width, &Line::new("    ", dim_style())));
        }
        if let Some(preview) = &self.preview {
            lines.extend(diff::set_in(preview, width, MAX_BODY_LINES));
        }
        lines.truncate(MAX_BODY_LINES);
        lines
    }

    /// Returns the changes that must be seen by name, one in each line.
    fn notable_lines(&self) -> impl Iterator<Item = Line> + '_ {
        self.notable.iter().map(|change| {
            Line::from([
                Span::new("  ! ", Style::with_ink(TextRole::Warning).bold()),
                Span::new(change.name.clone(), Style::with_ink(TextRole::Warning).bold()),
                Span::new(format!("  {}", change.what), Style::default()),
            ])
        })
    }

    /// Returns lines with what the model wants to know.
    fn inquiry_lines(&self) -> Vec<Line> {
        let lines = self.reason.split('\n');
        lines.map(|line| Line::new(format!("  {line}"), Style::default())).collect()
    }

    /// Every argument: nothing that would run may be hidden.
    fn argument_lines(&self, width: usize) -> Vec<Line> {
        let Ok(arguments) = self.call.arguments.read::<Map<String, Value>>() else {
            return vec![Line::new(
                format!("  {}", self.call.arguments),
                Style::with_ink(TextRole::Code),
            )];
        };
        let main = MAIN_ARGUMENTS.into_iter().find(|name| arguments.contains_key(*name));
        let mut lines = Vec::new();
        let told = main.and_then(|name| arguments.get(name));
        if let Some(value) = told.filter(|value| !self.is_in_heading(value, width)) {
            lines.extend(display_value(value).split('\n').map(|line| self.highlight_reason(line)));
        }
        // With a preview the rest is what the preview shows.
        let rest = arguments.iter().filter(|(name, _)| Some(name.as_str()) != main);
        for (name, value) in rest.filter(|_| self.preview.is_none()) {
            let text = display_value(value);
            let mut parts = text.split('\n');
            lines.push(Line::from([
                Span::new(format!("  {name}: "), dim_style()),
                Span::new(parts.next().unwrap_or_default().to_owned(), Style::default()),
            ]));
            lines.extend(parts.map(|part| Line::new(format!("    {part}"), Style::default())));
        }
        lines
    }

    /// The heading shows this path whole, the preview the rest, and the reason speaks of neither.
    fn is_in_heading(&self, path: &Value, width: usize) -> bool {
        let Some(path) = path.as_str().filter(|_| self.preview.is_some()) else { return false };
        let heading = self.heading(0);
        let is_whole =
            heading.width() <= width && heading.plain_text().ends_with(&format!(" {path}?"));
        is_whole && !quoted_parts(&self.reason).any(|part| path.contains(part))
    }

    /// A line of what would run, with the parts marked that the reason speaks of.
    fn highlight_reason(&self, line: &str) -> Line {
        let code = Style::with_ink(TextRole::Code);
        let part = quoted_parts(&self.reason).find_map(|part| Some((line.find(part)?, part.len())));
        let mut spans = vec![Span::new("  ", code)];
        match part.and_then(|(start, length)| {
            Some((
                line.get(..start)?,
                line.get(start..start + length)?,
                line.get(start + length..)?,
            ))
        }) {
            None => spans.push(Span::new(line.to_owned(), code)),
            Some((before, part, after)) => {
                spans.push(Span::new(before.to_owned(), code));
                spans.push(Span::new(part.to_owned(), Style::with_ink(TextRole::Warning).bold()));
                spans.push(Span::new(after.to_owned(), code));
            }
        }
        Line { spans }
    }
}

/// Returns the parts of a text between backticks, or between quotation marks.
fn quoted_parts(text: &str) -> impl Iterator<Item = &str> {
    let inside = |mark| text.split(mark).skip(1).step_by(2);
    inside('`').chain(inside('"')).filter(|part| !part.is_empty())
}

fn display_value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.replace('\t', "    "),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_ARGUMENT_CHARS) {
        Some((end, _)) => {
            format!("{}… ({} bytes in all)", text.get(..end).unwrap_or_default(), text.len())
        }
        None => text,
    }
}
