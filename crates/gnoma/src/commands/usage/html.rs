//! A report as one page: text, a table and bars as inline SVG. No script, nothing from elsewhere, everything escaped.
//! Pure.

use gnoma_host::{clock, usage::UsageSums};

use super::{
    notes,
    view::{FlatRow, UsageView, exact_dollars},
};

/// The length of the longest bar, in pixels.
const BAR_PX: f64 = 240.0;

/// The page's content security policy: a browser may load or run nothing, regardless of the page's content.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;background:#fff;color:#222;margin:2rem}\
table{border-collapse:collapse}th,td{padding:.15rem .7rem;text-align:right;white-space:nowrap}\
th:first-child,td:first-child,td:last-child{text-align:left}td:first-child{white-space:pre-wrap;\
overflow-wrap:anywhere;max-width:28rem}tr:last-child td{border-top:1px solid #999}thead th{border-bottom:\
1px solid #999}.note{color:#555}rect{fill:#2a6fb0}@media(prefers-color-scheme:dark){body{background:#111;\
color:#ddd}.note{color:#aaa}rect{fill:#6aa9e4}}";

/// The text for an unknown value.
const UNKNOWN: &str = "unknown";

/// Counts without a unit are tokens or calls, as `docs/usage.md` says.
const HEADS: [&str; 13] = [
    "",
    "turns",
    "calls",
    "failed",
    "unpriced",
    "in",
    "cached",
    "cache write",
    "thinking",
    "out",
    "wait (ms)",
    "cost (USD)",
    "share",
];

pub(super) fn render_page(view: &UsageView<'_>) -> String {
    let title = escape_html(&view.title());
    let time = escape_html(&clock::time_near(view.now_ms, i64::MIN));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n<p class=\"note\">{time}</p>\n\
         <table><thead><tr>"
    );
    for head in HEADS {
        page.push_str(&format!("<th scope=\"col\">{head}</th>"));
    }
    page.push_str("</tr></thead><tbody>\n");
    let rows = view.flat_rows();
    let largest = view.largest_share(&rows);
    for row in &rows {
        let bar = draw_bar(view.bar_length(largest, row.sums));
        page.push_str(&format_row(&indent_name(row), row.sums, view.share(row.sums), &bar));
    }
    page.push_str(&format_row("all", &view.report.total, Some(1.0), ""));
    page.push_str("</tbody></table>\n");
    for note in notes::note_sentences(view) {
        page.push_str(&format!("<p class=\"note\">{}</p>\n", escape_html(&note)));
    }
    page.push_str("</body></html>\n");
    page
}

fn indent_name(row: &FlatRow<'_>) -> String {
    format!("{}{}", "\u{2003}".repeat(row.depth()), row.name())
}

/// A row of the table.
fn format_row(name: &str, sums: &UsageSums, share: Option<f64>, bar: &str) -> String {
    let mark = if sums.unpriced_calls() > 0 { "*" } else { "" };
    let cost = sums.cost().map(|cost| format!("{}{mark}", exact_dollars(cost)));
    let share = share.map(|share| format!("{:.1} % {bar}", share * 100.0));
    let details = sums.details();
    let numbers = [
        details.map(|details| details.turns),
        Some(sums.calls()),
        details.map(|details| details.failed_calls),
        Some(sums.unpriced_calls()),
        Some(sums.amount.input),
        Some(sums.amount.cached),
        Some(sums.amount.cache_write),
        details.map(|details| details.thinking),
        Some(sums.amount.output),
        sums.mean_first_part_ms(),
    ];
    let numbers = numbers.map(|number| number.map(|number| number.to_string()));
    let cells: String = numbers
        .iter()
        .chain([&cost, &share])
        .map(|cell| format!("<td>{}</td>", cell.as_deref().unwrap_or(UNKNOWN)))
        .collect();
    format!("<tr><td>{}</td>{cells}</tr>\n", escape_html(name))
}

fn draw_bar(part: f64) -> String {
    let width = (part.clamp(0.0, 1.0) * BAR_PX).max(if part > 0.0 { 1.0 } else { 0.0 });
    format!(
        "<svg width=\"{BAR_PX:.0}\" height=\"10\" aria-hidden=\"true\">\
         <rect width=\"{width:.1}\" height=\"10\"/></svg>"
    )
}

/// Text that is nothing but text in HTML. Other controls are not allowed there, not even as references.
fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            control if control.is_control() => safe.push(char::REPLACEMENT_CHARACTER),
            other => safe.push(other),
        }
    }
    safe
}
