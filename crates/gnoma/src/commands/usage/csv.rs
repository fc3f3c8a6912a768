//! A report as comma-separated values (RFC 4180), a line for each innermost group. Numbers are exact. Pure.

use super::view::{FlatRow, UsageView, exact_dollars};

/// A cell that begins with one of these is a formula for spreadsheets. Names come from projects, so such a cell gets
/// an apostrophe in front of it.
const FORMULA_SIGNS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The columns after the names.
const NUMBERS: [&str; 12] = [
    "turns",
    "calls",
    "failed_calls",
    "unpriced_calls",
    "unrecorded_calls",
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "thinking_tokens",
    "output_tokens",
    "mean_first_part_ms",
    "cost_usd",
];

pub(super) fn render(view: &UsageView<'_>) -> String {
    let names = view.query.by.iter().map(|dimension| dimension.name());
    let mut text = names.chain(NUMBERS).collect::<Vec<_>>().join(",");
    text.push_str("\r\n");
    for row in view.flat_rows().iter().filter(|row| row.is_innermost) {
        text.push_str(&format_row(row));
        text.push_str("\r\n");
    }
    text
}

fn format_row(row: &FlatRow<'_>) -> String {
    let sums = row.sums;
    let names = row.path.iter().map(|name| format_name(name.unwrap_or_default()));
    let details = sums.details();
    let numbers = [
        details.map(|details| details.turns),
        Some(sums.calls()),
        details.map(|details| details.failed_calls),
        Some(sums.unpriced_calls()),
        Some(sums.unrecorded_calls),
        Some(sums.amount.input),
        Some(sums.amount.cached),
        Some(sums.amount.cache_write),
        details.map(|details| details.thinking),
        Some(sums.amount.output),
        sums.mean_first_part_ms(),
    ];
    let numbers = numbers.map(|number| number.map(|number| number.to_string()));
    let cells = numbers.into_iter().chain([sums.cost().map(exact_dollars)]);
    // What is not known is empty.
    names.chain(cells.map(Option::unwrap_or_default)).collect::<Vec<_>>().join(",")
}

fn format_name(name: &str) -> String {
    let sign = if name.starts_with(FORMULA_SIGNS) { "'" } else { "" };
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{sign}{}\"", name.replace('"', "\"\""))
    } else {
        format!("{sign}{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        let all = ["plain", "a,b", "say \"no\"", "=1+1", "-x,y", "a\r\nb"].map(format_name);
        let expected =
            ["plain", "\"a,b\"", "\"say \"\"no\"\"\"", "'=1+1", "\"'-x,y\"", "\"a\r\nb\""];
        assert_eq!(all, expected);
    }
}
