//! A report as all formats show it. Pure.

use gnoma_host::{
    Project,
    usage::{UsageQuery, UsageReport, UsageRow, UsageStart, UsageSums},
};
use gnoma_router::Verifier;

use crate::commands::router::{
    money::{MICRO, format_money},
    stats::ArmBelief,
};

/// The name of a group that the ledger does not know, for people.
pub(super) const UNKNOWN_NAME: &str = "(not recorded)";

/// A report with the query that it answers.
pub(super) struct UsageView<'r> {
    pub(super) query: &'r UsageQuery,
    pub(super) report: &'r UsageReport,
    /// The time of the report, in milliseconds since 1970.
    pub(super) now_ms: i64,
    /// The currency that people see costs in, if it is not the dollar.
    pub(super) currency: Option<Currency>,
    /// The quality of models by kind of task, if it was asked for.
    pub(super) quality: Option<Vec<ArmBelief>>,
    /// How far checks and reviewers can be trusted, if it was asked for and anything was learned.
    pub(super) verifier: Option<Verifier>,
}

/// A currency with its rate.
pub(super) struct Currency {
    pub(super) code: String,
    /// Dollars for one unit.
    pub(super) dollars: f64,
}

impl Currency {
    /// Returns the currency that the person has chosen, if its rate is set.
    pub(super) fn from_project(project: &Project) -> Option<Self> {
        let code =
            project.explain_setting("usage.currency")?.value.trim_matches('"').to_uppercase();
        let rates = "router.exchange.";
        let mut rates =
            project.values.iter().filter_map(|set| Some((set.key.strip_prefix(rates)?, set)));
        let (_, rate) = rates.find(|(name, _)| name.eq_ignore_ascii_case(&code))?;
        Some(Self { code, dollars: rate.value.parse().ok()? })
    }

    /// Writes an amount of micro-dollars: in cents for people, or with all digits.
    fn write(&self, micro_usd: u64, is_short: bool) -> String {
        let amount = micro_usd as f64 / MICRO / self.dollars;
        let digits = match is_short {
            true if amount == 0.0 || amount >= 1.0 => 2,
            true => 4,
            false => 6,
        };
        format!("{amount:.digits$} {}", self.code)
    }
}

/// A row of a tree, with the names of those that it is in.
pub(super) struct FlatRow<'r> {
    /// Names from the outermost to its own.
    pub(super) path: Vec<Option<&'r str>>,
    pub(super) sums: &'r UsageSums,
    /// No other rows are in it.
    pub(super) is_innermost: bool,
}

impl FlatRow<'_> {
    /// Returns its own name, for people.
    pub(super) fn name(&self) -> &str {
        self.path.last().copied().flatten().unwrap_or(UNKNOWN_NAME)
    }

    /// Returns the number of rows that it is in.
    pub(super) fn depth(&self) -> usize {
        self.path.len().saturating_sub(1)
    }
}

impl<'r> UsageView<'r> {
    pub(super) fn new(query: &'r UsageQuery, report: &'r UsageReport, now_ms: i64) -> Self {
        Self { query, report, now_ms, currency: None, quality: None, verifier: None }
    }
}

impl UsageView<'_> {
    /// Writes an amount of micro-dollars for people, short or with all digits.
    pub(super) fn format_money(&self, micro_usd: u64, is_short: bool) -> String {
        match &self.currency {
            Some(currency) => currency.write(micro_usd, is_short),
            None if is_short => format_money(micro_usd as f64),
            None => format!("${}", exact_dollars(micro_usd)),
        }
    }

    /// All rows, each before those that are in it.
    pub(super) fn flat_rows(&self) -> Vec<FlatRow<'_>> {
        let mut flat = Vec::new();
        flatten_rows(&self.report.rows, &[], &mut flat);
        flat
    }

    /// `Usage of the last 7 days by model and day`.
    pub(super) fn title(&self) -> String {
        let names: Vec<&str> = self.query.by.iter().map(|dimension| dimension.name()).collect();
        let names = match names.as_slice() {
            [] => String::new(),
            [name] => format!(" by {name}"),
            [outer @ .., last] => format!(" by {} and {last}", outer.join(", ")),
        };
        match self.query.since {
            UsageStart::Date(date) => format!("Usage since {date}{names}"),
            UsageStart::All => format!("Usage of all time{names}"),
            since @ (UsageStart::Hours(_) | UsageStart::Days(_)) => {
                format!("Usage of {since}{names}")
            }
        }
    }

    /// `no calls in the last 7 days`.
    pub(super) fn describe_absence(&self) -> String {
        match self.query.since {
            since @ (UsageStart::Days(1) | UsageStart::Date(_)) => format!("no calls {since}"),
            since @ (UsageStart::Hours(_) | UsageStart::Days(_)) => format!("no calls in {since}"),
            UsageStart::All => "no calls yet".to_owned(),
        }
    }

    /// The part of a row in the whole, from 0 to 1: of the cost, or of the tokens if nothing has a cost. `None` if
    /// other rows have a cost and that of this row is not known.
    pub(super) fn share(&self, sums: &UsageSums) -> Option<f64> {
        let total = &self.report.total;
        let part =
            |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        if total.amount.micro_usd > 0 {
            sums.cost().map(|cost| part(cost, total.amount.micro_usd))
        } else {
            Some(part(sums.tokens(), total.tokens()))
        }
    }

    /// Returns the largest share of a row, from 0 to 1.
    pub(super) fn largest_share(&self, rows: &[FlatRow<'_>]) -> f64 {
        rows.iter().filter_map(|row| self.share(row.sums)).fold(0.0, f64::max)
    }

    /// Returns the length of a row's bar, from 0 to 1. The row with the `largest` share has 1.
    pub(super) fn bar_length(&self, largest: f64, sums: &UsageSums) -> f64 {
        self.share(sums).filter(|_| largest > 0.0).map_or(0.0, |share| share / largest)
    }
}

fn flatten_rows<'r>(rows: &'r [UsageRow], above: &[Option<&'r str>], flat: &mut Vec<FlatRow<'r>>) {
    for row in rows {
        let path = [above, &[row.name.as_deref()]].concat();
        let is_innermost = row.rows.is_empty();
        flat.push(FlatRow { path: path.clone(), sums: &row.sums, is_innermost });
        flatten_rows(&row.rows, &path, flat);
    }
}

/// Micro-dollars as dollars, exactly: `12.345678`.
pub(super) fn exact_dollars(micro_usd: u64) -> String {
    format!("{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000)
}

/// `1 call`, `2 calls`.
pub(super) fn count_calls(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

/// A count in at most five characters: `999`, `12.3k`, `4.5M`.
pub(super) fn short_count(count: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)];
    match UNITS.into_iter().find(|(_, unit)| count >= *unit) {
        None => count.to_string(),
        Some((name, unit)) if count / unit >= 100 => format!("{}{name}", count / unit),
        Some((name, unit)) => format!("{}.{}{name}", count / unit, count % unit * 10 / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        let all = [0, 999, 1_000, 12_345, 999_999, 1_000_000, 123_456_789_000];
        assert_eq!(all.map(short_count), ["0", "999", "1.0k", "12.3k", "999k", "1.0M", "123G"]);
        assert_eq!(exact_dollars(12_000_345), "12.000345");
    }
}
