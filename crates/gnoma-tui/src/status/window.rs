//! What fills the context window: a bar, and a line for each part.

use gnoma_core::protocol::WindowUse;

use super::{Counts, StartFacts, describe_context, dim_style, fact_line, format_count, percent_of};
use crate::text::{Line, Span, Style, TextRole};

/// Columns of the bar.
const BAR_COLUMNS: u64 = 50;

/// A part of the window: its name, its mark in the bar, and the tokens.
type WindowPart = (&'static str, &'static str, TextRole, u64);

/// Returns lines with what fills the window, as a `bar` where one is seen, and what of it was in the provider's
/// cache.
#[must_use]
pub fn render_window_use(
    facts: &StartFacts,
    counts: &Counts,
    used: WindowUse,
    bar: bool,
) -> Vec<Line> {
    let parts = window_parts(counts, used);
    let full: u64 = parts.iter().map(|part| part.3).sum();
    let mut lines = Vec::new();
    if bar && facts.window > 0 {
        lines.push(render_bar(&parts, facts.window));
    }
    let is_counted = counts.round.prompt_tokens() > 0;
    let told = if is_counted {
        describe_context(facts, counts)
    } else {
        format!("about {} tokens", format_count(full))
    };
    lines.push(fact_line("used", told));
    for (name, mark, ink, tokens) in parts {
        lines.push(render_part(name, mark, ink, tokens, facts.window));
    }
    if facts.window > 0 {
        let free = facts.window.saturating_sub(full);
        lines.push(render_part("free", FREE, TextRole::Dim, free, facts.window));
    }
    let round = counts.round;
    if is_counted {
        lines.push(fact_line(
            "last call",
            format!(
                "{} new, {} cached, {} out",
                format_count(round.prompt_tokens().saturating_sub(round.cache_read)),
                format_count(round.cache_read),
                format_count(round.output)
            ),
        ));
    }
    lines
}

/// The mark of what is free.
const FREE: &str = "·";

/// The parts. Estimates are made to sum up to what the provider counted, where it did.
fn window_parts(counts: &Counts, used: WindowUse) -> [WindowPart; 5] {
    let WindowUse { system, tools, instructions, history, results } = used;
    let estimated = system + tools + instructions + history + results;
    let counted = counts.context_tokens().saturating_sub(counts.round.output);
    let scaled = |tokens: u64| match (counted, estimated) {
        (0, _) | (_, 0) => tokens,
        _ => u64::try_from(u128::from(tokens) * u128::from(counted) / u128::from(estimated))
            .unwrap_or(tokens),
    };
    // What was answered last is no part of what was sent.
    let said = scaled(history) + if counted > 0 { counts.round.output } else { 0 };
    [
        ("system", "█", TextRole::Accent, scaled(system)),
        ("tools", "▓", TextRole::Link, scaled(tools)),
        ("instructions", "▒", TextRole::Good, scaled(instructions)),
        ("conversation", "■", TextRole::Person, said),
        ("tool results", "▪", TextRole::Warning, scaled(results)),
    ]
}

fn render_bar(parts: &[WindowPart; 5], window: u64) -> Line {
    let mut line = Line::from([Span::new("  ", Style::default())]);
    let (mut tokens, mut drawn) = (0, 0);
    for (_, mark, ink, part) in parts {
        tokens += part;
        // What is there is seen, however little it is.
        let least = drawn + u64::from(*part > 0);
        let until = tokens.saturating_mul(BAR_COLUMNS).div_ceil(window).max(least).min(BAR_COLUMNS);
        let columns = usize::try_from(until.saturating_sub(drawn)).unwrap_or(0);
        line.spans.push(Span::new(mark.repeat(columns), Style::with_ink(*ink)));
        drawn = drawn.max(until);
    }
    let left = usize::try_from(BAR_COLUMNS.saturating_sub(drawn)).unwrap_or(0);
    line.spans.push(Span::new(FREE.repeat(left), dim_style()));
    line
}

fn render_part(name: &str, mark: &'static str, ink: TextRole, tokens: u64, window: u64) -> Line {
    let share = match percent_of(tokens, window) {
        _ if window == 0 || tokens == 0 => String::new(),
        0 => " (<1%)".to_owned(),
        percent => format!(" ({percent}%)"),
    };
    Line::from([
        Span::new("  ", Style::default()),
        Span::new(mark, Style::with_ink(ink)),
        Span::new(format!(" {name:<13}"), dim_style()),
        Span::new(format!("{}{share}", format_count(tokens)), Style::default()),
    ])
}

#[cfg(test)]
mod tests {
    use gnoma_core::Usage;

    use super::*;

    fn shown(window: u64, round: Usage, bar: bool) -> String {
        let facts = StartFacts { window, ..StartFacts::default() };
        let counts = Counts { round, ..Counts::default() };
        let used = WindowUse {
            system: 500,
            tools: 2_000,
            instructions: 500,
            history: 3_000,
            results: 4_000,
        };
        let lines = super::render_window_use(&facts, &counts, used, bar);
        lines.iter().map(|line| line.plain_text().trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn the_parts_sum_up_to_what_was_counted() {
        let round = Usage { input: 20_000, output: 1_000, ..Usage::default() };
        insta::assert_snapshot!(shown(100_000, round, true), @r"
        █▓▓▒■■■▪▪▪▪·······································
        used           21k of 100k tokens (21%)
        █ system       1.0k (1%)
        ▓ tools        4.0k (4%)
        ▒ instructions 1.0k (1%)
        ■ conversation 7.0k (7%)
        ▪ tool results 8.0k (8%)
        · free         79k (79%)
        last call      20k new, 0 cached, 1.0k out
        ");
    }

    #[test]
    fn context_without_size_or_count_shows_only_estimates() {
        insta::assert_snapshot!(shown(0, Usage::default(), true), @r"
        used           about 10k tokens
        █ system       500
        ▓ tools        2.0k
        ▒ instructions 500
        ■ conversation 3.0k
        ▪ tool results 4.0k
        ");
        assert!(!shown(100_000, Usage::default(), false).contains("██"), "nobody hears a bar");
    }
}
