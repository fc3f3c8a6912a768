//! `/help`: what there is to do.

use super::slash::Slash;
use crate::{
    app::State,
    text::{Ink, Line, Span, Style},
};

/// Columns for what is written.
pub(super) const NAME_COLUMNS: usize = 30;
/// What can be written that is no command.
const SIGNS: [(&str, &str); 6] = [
    ("@path", "name a file; the drop-down finds it"),
    ("!line", "run a shell line; its output goes along with the next message"),
    ("Enter", "send; while a turn runs it is read at the next step"),
    ("Tab", "while a turn runs: send when it has ended"),
    ("Esc", "stop the turn and keep its work"),
    ("Shift+Tab", "change how much is asked"),
];

pub(super) fn show(state: &mut State, commands: &[&Slash]) {
    let commands = commands.iter().map(|command| {
        let name = format!("/{} {}", command.name, command.arguments);
        row(&name, command.about)
    });
    let mut lines: Vec<Line> = SIGNS.iter().map(|(name, about)| row(name, about)).collect();
    lines.extend(commands);
    state.say(lines);
}

fn row(name: &str, about: &str) -> Line {
    Line::from([
        Span::new(format!("  {name:<NAME_COLUMNS$}"), Style::of(Ink::Accent)),
        Span::new(about.to_owned(), Style::default()),
    ])
}
