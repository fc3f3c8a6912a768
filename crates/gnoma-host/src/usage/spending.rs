//! The spending of today and this week, and how full the caps are, for the line at the bottom of the terminal.

use gnoma_store::calendar::date_of;

use super::{
    Dimension, Period, UsageQuery, UsageStart, forecast::CapForecast, period::LocalDays,
    read_report, sums::UsageSums,
};
use crate::{Project, Result, clock};

/// The spending of the current day and week.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurrentSpending {
    /// The sums of the local day.
    pub today: UsageSums,
    /// The sums of the local week, which begins on Monday.
    pub week: UsageSums,
    /// The part of the fullest cap that is used, in percent; `None` without a cap.
    pub cap_percent: Option<u64>,
}

/// Reads the spending of the project's profile. Of the calls, only those of the week are read.
///
/// # Errors
/// The ledger cannot be read.
pub async fn read_spending(project: &Project) -> Result<CurrentSpending> {
    let today = LocalDays::new(clock::local_time_zone()).day_of(project.now_ms());
    let query = UsageQuery {
        since: UsageStart::Date(date_of(Period::Week.first_day(today))),
        by: vec![Dimension::Period(Period::Day)],
        repriced_as: None,
    };
    let report = read_report(project, &query).await?;
    let name = Period::Day.name_of(today);
    let row = report.rows.iter().find(|row| row.name.as_ref() == Some(&name));
    Ok(CurrentSpending {
        today: row.map_or_else(UsageSums::default, |row| row.sums),
        week: report.total,
        cap_percent: report.caps.iter().map(used_percent).max(),
    })
}

/// A cap of nothing is full.
fn used_percent(cap: &CapForecast) -> u64 {
    let percent = (u128::from(cap.used) * 100).checked_div(u128::from(cap.most)).unwrap_or(100);
    u64::try_from(percent).unwrap_or(u64::MAX)
}
