//! The tokens and the money that a session used, for the turn, the session and each model.

use gnoma_core::Usage;

use super::{Cost, Counts, StartFacts, describe_context, fact_line, format_count, format_share};
use crate::text::Line;

/// Tokens and money of turn and session, the last turns, and what each model cost.
#[must_use]
pub fn render_usage(facts: &StartFacts, counts: &Counts) -> Vec<Line> {
    let mut lines = vec![
        fact_line(
            "turn",
            describe_usage(counts.turn, counts.has_cost().then_some(counts.turn_cost)),
        ),
        fact_line(
            "session",
            describe_usage(
                counts.session_usage(),
                counts.has_cost().then_some(counts.session_cost),
            ),
        ),
        fact_line(
            "total",
            format!(
                "{} tokens in {}",
                format_count(counts.session_usage().total_tokens()),
                format_turns(counts.turns)
            ),
        ),
        fact_line("context", describe_context(facts, counts)),
    ];
    if counts.recent.len() > 1 {
        let first = (counts.turns as usize).saturating_sub(counts.recent.len()) + 1;
        let numbered = (first..).zip(&counts.recent);
        lines.extend(numbered.map(|(number, (usage, cost))| {
            fact_line(
                &format!("turn {number}"),
                describe_usage(*usage, counts.has_cost().then_some(*cost)),
            )
        }));
    }
    for (arm, (calls, cost)) in &counts.arms {
        let calls = if *calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        let cost = cost.describe_amount().unwrap_or_else(|| "price unknown".to_owned());
        lines.push(fact_line("model", format!("{arm}: {calls}, {cost}")));
    }
    lines
}

fn format_turns(count: u32) -> String {
    if count == 1 { "1 turn".to_owned() } else { format!("{count} turns") }
}

fn describe_usage(usage: Usage, cost: Option<Cost>) -> String {
    let cached = format_share("", usage.cache_read, usage.prompt_tokens());
    let cached = if cached.is_empty() { String::new() } else { format!(" ({cached})") };
    let mut text = format!(
        "{} in, {} of it cached{cached}, {} out",
        format_count(usage.prompt_tokens()),
        format_count(usage.cache_read),
        format_count(usage.output)
    );
    if let Some(cost) = cost.and_then(Cost::describe_amount) {
        text.push_str(&format!(", {cost}"));
    }
    text
}
