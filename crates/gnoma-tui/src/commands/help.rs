//! `/help`: what there is to do.

use super::slash::SlashCommandSpec;
use crate::{
    app::State,
    text::{Line, Span, Style, TextRole},
};

/// Columns for what is written.
pub(super) const NAME_COLUMNS: usize = 30;
/// The signs and keys that are no commands, with their meanings.
const SIGNS: [(&str, &str); 6] = [
    ("@path", "mention a file"),
    ("!line", "run a command; its output is added to your next message"),
    ("Enter", "send; during a turn, the model reads it at its next step"),
    ("Tab", "during a turn: send when it has finished"),
    ("Esc", "stop the turn; its work is kept"),
    ("Shift+Tab", "change the permission mode"),
];

pub(super) fn show_help(state: &mut State, commands: &[&SlashCommandSpec]) {
    let commands = commands.iter().map(|command| {
        let name = format!("/{} {}", command.name, command.arguments);
        render_row(&name, command.about)
    });
    let mut lines: Vec<Line> = SIGNS.iter().map(|(name, about)| render_row(name, about)).collect();
    lines.extend(commands);
    let own = state.own_commands().map(|own| {
        let name = format!("/{} {}", own.name, own.hint);
        render_row(&name, &own.about)
    });
    lines.extend(own);
    state.show_lines(lines);
}

fn render_row(name: &str, about: &str) -> Line {
    Line::from([
        Span::new(format!("  {name:<NAME_COLUMNS$}"), Style::with_ink(TextRole::Accent)),
        Span::new(about.to_owned(), Style::default()),
    ])
}
