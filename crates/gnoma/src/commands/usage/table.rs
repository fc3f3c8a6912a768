//! A report as text. At a terminal, columns that matter less are left out until a line fits; elsewhere nothing is cut
//! and numbers are exact. Pure.

use gnoma_host::usage::UsageSums;
use gnoma_router::Verifier;

use super::{
    calendar, notes,
    view::{UsageView, short_count},
};
use crate::{commands::router::stats::ArmBelief, screen, table as plain_table};

/// Reports are no wider than this, also at wider terminals.
const MAX_COLUMNS: usize = 120;
/// Terminals that are narrower get lines that they wrap.
const MIN_COLUMNS: usize = 24;
/// The space between two columns.
const GAP: &str = "  ";
/// Names at a terminal are cut to this before a column is left out.
const MIN_NAME: usize = 14;
const MIN_BAR: usize = 6;
/// The width of the calendar with its explanation.
const CALENDAR_COLUMNS: usize = 80;
const MAX_BAR: usize = 24;
/// A row in another one begins so much further right.
const INDENT: &str = "  ";
/// The label of the last row.
const ALL: &str = "all";
/// A number that is not known. An unknown cost is spelled out.
const UNKNOWN: &str = "-";

/// A column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Turns,
    Calls,
    Failed,
    Unpriced,
    Input,
    Cached,
    CacheWrite,
    Thinking,
    Output,
    FirstPart,
    Cost,
    Share,
}

impl Column {
    /// In the order in which they stand.
    const ALL: [Self; 12] = [
        Self::Turns,
        Self::Calls,
        Self::Failed,
        Self::Unpriced,
        Self::Input,
        Self::Cached,
        Self::CacheWrite,
        Self::Thinking,
        Self::Output,
        Self::FirstPart,
        Self::Cost,
        Self::Share,
    ];

    /// In the order in which they are left out.
    const LEAST_FIRST: [Self; 10] = [
        Self::Unpriced,
        Self::FirstPart,
        Self::CacheWrite,
        Self::Turns,
        Self::Thinking,
        Self::Failed,
        Self::Cached,
        Self::Share,
        Self::Calls,
        Self::Output,
    ];

    fn heading_text(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Calls => "calls",
            Self::Failed => "failed",
            Self::Unpriced => "unpriced",
            Self::Input => "in",
            Self::Cached => "cached",
            Self::CacheWrite => "written",
            Self::Thinking => "thinking",
            Self::Output => "out",
            Self::FirstPart => "wait",
            Self::Cost => "cost",
            Self::Share => "share",
        }
    }

    /// The number, if the column has one and it is known.
    fn numeric_value(self, sums: &UsageSums) -> Option<u64> {
        match self {
            Self::Turns => sums.details().map(|details| details.turns),
            Self::Calls => Some(sums.calls()),
            Self::Failed => sums.details().map(|details| details.failed_calls),
            Self::Unpriced => Some(sums.unpriced_calls()),
            Self::Input => Some(sums.amount.input),
            Self::Cached => Some(sums.amount.cached),
            Self::CacheWrite => Some(sums.amount.cache_write),
            Self::Thinking => sums.details().map(|details| details.thinking),
            Self::Output => Some(sums.amount.output),
            Self::FirstPart => sums.mean_first_part_ms(),
            Self::Cost => sums.cost(),
            Self::Share => None,
        }
    }

    fn render_cell(self, view: &UsageView<'_>, sums: &UsageSums, is_short: bool) -> String {
        let unknown = || UNKNOWN.to_owned();
        let number = self.numeric_value(sums);
        match self {
            Self::Share => {
                view.share(sums).map_or_else(unknown, |share| format!("{:.0}%", share * 100.0))
            }
            Self::Cost => {
                let mark = if sums.unpriced_calls() > 0 { "*" } else { "" };
                match number {
                    None => "unknown".to_owned(),
                    Some(micro_usd) => format!("{}{mark}", view.format_money(micro_usd, is_short)),
                }
            }
            Self::FirstPart => number.map_or_else(unknown, |ms| {
                if is_short {
                    format!("{}.{}s", ms / 1_000, ms % 1_000 / 100)
                } else {
                    format!("{ms}ms")
                }
            }),
            Self::Turns
            | Self::Calls
            | Self::Failed
            | Self::Unpriced
            | Self::Input
            | Self::Cached
            | Self::CacheWrite
            | Self::Thinking
            | Self::Output => number.map_or_else(unknown, |number| {
                if is_short { short_count(number) } else { number.to_string() }
            }),
        }
    }

    /// Returns whether the column tells something in a report.
    fn is_of_use(self, total: &UsageSums) -> bool {
        match self {
            Self::Calls | Self::Input | Self::Output | Self::Cost | Self::Share => true,
            Self::Turns
            | Self::Failed
            | Self::Unpriced
            | Self::Cached
            | Self::CacheWrite
            | Self::Thinking
            | Self::FirstPart => self.numeric_value(total).is_some_and(|number| number > 0),
        }
    }
}

/// A line before it is laid out.
struct TableLine {
    name: String,
    cells: Vec<String>,
    /// The length of its bar, from 0 to 1; `None` for a line without one.
    bar: Option<f64>,
}

/// The report. `columns`: the width of the terminal that shows it; `None` if no terminal does.
pub(super) fn render(view: &UsageView<'_>, columns: Option<usize>) -> String {
    let columns = columns.map(|columns| columns.clamp(MIN_COLUMNS, MAX_COLUMNS));
    let notes = notes::note_sentences(view);
    let notes = notes.iter().map(|note| match columns {
        None => format!("{note}\n"),
        Some(columns) => format!("{}\n", screen::wrap_words(note, columns)),
    });
    let notes = notes.collect::<String>();
    if view.report.total.calls() == 0 {
        let nothing = format!("{}\n", view.describe_absence());
        return if notes.is_empty() { nothing } else { format!("{nothing}\n{notes}") };
    }
    let lines = match columns {
        None => lay_out(&make_lines(view, &Column::ALL, false), &Column::ALL, None),
        Some(columns) => {
            let chosen = choose_columns(view, columns);
            lay_out(&make_lines(view, &chosen, true), &chosen, Some(columns))
        }
    };
    let gap = if notes.is_empty() { "" } else { "\n" };
    let believed = view.quality.as_deref().unwrap_or_default();
    let quality = render_quality(believed, view.verifier);
    let calendar = match columns {
        Some(columns) if columns >= CALENDAR_COLUMNS => calendar::render(view),
        Some(_) | None => String::new(),
    };
    format!("{}\n\n{lines}{calendar}{quality}{gap}{notes}", view.title())
}

/// Renders how well models do kinds of tasks, as a table of its own, and how well their work is reviewed.
fn render_quality(believed: &[ArmBelief], verifier: Option<Verifier>) -> String {
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    let rows = believed.iter().map(|ArmBelief { arm, kind, standing }| {
        let [least, most] = standing.quality_range;
        let range = format!("{} to {}", percent(least), percent(most));
        let tasks = standing.tasks.to_string();
        [tasks, kind.0.to_string(), percent(standing.quality), range, arm.to_string()]
    });
    let lines = plain_table::render_table(["tasks", "type", "right", "with 95 %", "model"], rows);
    if lines.is_empty() {
        return lines;
    }
    let reviews = verifier.map_or_else(String::new, |Verifier { right, wrong }| {
        let [right, wrong] = [right, wrong].map(|(passed, all)| percent(passed / all));
        format!(
            "checks and reviewers passed {right} of the right work and {wrong} of the wrong work\n"
        )
    });
    format!("\nTasks done right, as the router has learned:\n{lines}{reviews}")
}

/// The columns that fit, with a name and a bar, into so many.
fn choose_columns(view: &UsageView<'_>, columns: usize) -> Vec<Column> {
    let mut chosen: Vec<Column> =
        Column::ALL.into_iter().filter(|column| column.is_of_use(&view.report.total)).collect();
    for least in Column::LEAST_FIRST {
        let lines = make_lines(view, &chosen, true);
        let longest = lines.iter().map(|line| screen::line_width(&line.name)).max().unwrap_or(0);
        let numbers: usize =
            column_widths(&lines, &chosen).iter().map(|width| width + GAP.len()).sum();
        if longest.min(MIN_NAME) + numbers + GAP.len() + MIN_BAR <= columns {
            break;
        }
        chosen.retain(|column| *column != least);
    }
    chosen
}

fn make_lines(view: &UsageView<'_>, columns: &[Column], is_short: bool) -> Vec<TableLine> {
    let total = &view.report.total;
    let rows = view.flat_rows();
    let largest = view.largest_share(&rows);
    let cells = |sums: &UsageSums| {
        columns.iter().map(|column| column.render_cell(view, sums, is_short)).collect()
    };
    let lines = rows.iter().map(|row| TableLine {
        name: format!("{}{}", INDENT.repeat(row.depth()), row.name()),
        cells: cells(row.sums),
        bar: Some(view.bar_length(largest, row.sums)),
    });
    let all = TableLine { name: ALL.to_owned(), cells: cells(total), bar: None };
    lines.chain([all]).collect()
}

fn column_widths(lines: &[TableLine], columns: &[Column]) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.heading_text().len()).collect();
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(&line.cells) {
            *width = screen::line_width(cell).max(*width);
        }
    }
    widths
}

/// Puts lines under their headings. Within a width, names are cut and bars drawn.
fn lay_out(lines: &[TableLine], columns: &[Column], within: Option<usize>) -> String {
    let widths = column_widths(lines, columns);
    let numbers: usize = widths.iter().map(|width| width + GAP.len()).sum();
    let longest = lines.iter().map(|line| screen::line_width(&line.name)).max().unwrap_or(0);
    let (name_width, bar_width) = match within {
        None => (longest, 0),
        Some(columns) => {
            let room = columns.saturating_sub(numbers);
            let bar = room.saturating_sub(longest + GAP.len()).clamp(MIN_BAR, MAX_BAR);
            let has_bar = room >= MIN_BAR + GAP.len() + longest.min(MIN_NAME);
            let bar = if has_bar { bar } else { 0 };
            let taken = if has_bar { bar + GAP.len() } else { 0 };
            (longest.min(room.saturating_sub(taken).max(1)), bar)
        }
    };
    let mut text = String::new();
    let heads = columns.iter().map(|column| column.heading_text().to_owned()).collect();
    let head = TableLine { name: String::new(), cells: heads, bar: None };
    for line in std::iter::once(&head).chain(lines) {
        let name = screen::fit_line(&line.name, name_width);
        let mut row =
            format!("{name}{}", " ".repeat(name_width - screen::line_width(&name).min(name_width)));
        for (cell, width) in line.cells.iter().zip(&widths) {
            let pad = width.saturating_sub(screen::line_width(cell));
            row.push_str(&format!("{GAP}{}{cell}", " ".repeat(pad)));
        }
        if let (Some(part), true) = (line.bar, bar_width > 0) {
            row.push_str(&format!("{GAP}{}", draw_bar(part, bar_width)));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// A bar of at most `width` columns, to an eighth of one. More than nothing is never drawn as nothing.
fn draw_bar(part: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let most = width * 8;
    let eighths = (part.clamp(0.0, 1.0) * most as f64).round() as usize;
    let eighths = if part > 0.0 { eighths.clamp(1, most) } else { 0 };
    let rest = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{rest}", "█".repeat(eighths / 8))
}

#[cfg(test)]
mod tests;
