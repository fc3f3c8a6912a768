//! Figures as rows of one Markdown table: what was measured, its goal, what came out, the verdict.

use std::fmt::Display;

/// The result of comparing a figure with its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalCheck {
    /// The figure reaches its goal.
    Met,
    /// The figure misses its goal.
    Missed,
    /// There is no goal.
    None,
}

impl GoalCheck {
    /// The verdict on a goal that is reached if `met`.
    #[must_use]
    pub fn from_bool(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }
}

/// Prints one row of the report.
#[expect(clippy::print_stdout, reason = "printing figures is what the programs are for")]
pub fn print_row(
    figure: impl Display,
    goal: impl Display,
    measured: impl Display,
    verdict: GoalCheck,
) {
    let verdict = match verdict {
        GoalCheck::Met => "met",
        GoalCheck::Missed => "**missed**",
        GoalCheck::None => "–",
    };
    println!("| {figure} | {goal} | {measured} | {verdict} |");
}

/// The value in the middle; zero when there is none.
#[must_use]
pub fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
