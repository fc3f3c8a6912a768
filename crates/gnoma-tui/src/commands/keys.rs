//! `/keys`: every key and what it does.

use super::slash::SlashCommandSpec;
use crate::{
    app::State,
    keymap::{Context, Keymap},
    text::{Line, Span, Style, TextRole},
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "keys",
    aliases: &[],
    arguments: "",
    about: "show all key bindings",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let lines = Context::ALL.iter().flat_map(|context| of_context(&state.keymap, *context));
    let lines = lines.collect();
    state.show_lines(lines);
}

/// Columns for the keys.
const KEY_COLUMNS: usize = 28;

fn of_context(keymap: &Keymap, context: Context) -> Vec<Line> {
    let mut lines = vec![Line::from([
        Span::new(context.help_title(), Style::with_ink(TextRole::Heading).bold()),
        Span::new(format!("  [{}]", context.name()), Style::with_ink(TextRole::Dim)),
    ])];
    for action in keymap.actions(context) {
        let keys: Vec<String> =
            keymap.keys(context, action).iter().map(ToString::to_string).collect();
        if keys.is_empty() {
            continue;
        }
        let keys = keys.join("  ");
        lines.push(Line::from([
            Span::new(format!("  {keys:<KEY_COLUMNS$}"), Style::with_ink(TextRole::Accent)),
            Span::new(format!(" {}", action.help_text().trim_end_matches('.')), Style::default()),
            Span::new(format!("  {}", action.name()), Style::with_ink(TextRole::Dim)),
        ]));
    }
    lines
}
