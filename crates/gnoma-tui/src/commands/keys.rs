//! `/keys`: every key and what it does.

use super::slash::Slash;
use crate::{
    app::State,
    keymap::{Context, Keymap},
    text::{Ink, Line, Span, Style},
};

pub(super) const COMMAND: Slash =
    Slash { name: "keys", aliases: &[], arguments: "", about: "show all key bindings", run };

fn run(state: &mut State, _argument: &str) {
    let lines = Context::ALL.iter().flat_map(|context| of_context(&state.keymap, *context));
    let lines = lines.collect();
    state.say(lines);
}

fn of_context(keymap: &Keymap, context: Context) -> Vec<Line> {
    let mut lines = vec![Line::new(context.name(), Style::of(Ink::Heading).bold())];
    for action in keymap.actions(context) {
        let keys: Vec<String> =
            keymap.keys(context, action).iter().map(ToString::to_string).collect();
        if keys.is_empty() {
            continue;
        }
        lines.push(Line::from([
            Span::new(format!("  {:<22}", action.name()), Style::of(Ink::Dim)),
            Span::new(keys.join("  "), Style::default()),
        ]));
    }
    lines
}
