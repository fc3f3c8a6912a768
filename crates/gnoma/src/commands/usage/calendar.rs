//! A calendar of what days cost: a line for each week, in plain characters that every terminal has. Pure.

use std::collections::BTreeMap;

use gnoma_host::usage::{Dimension, Period};
use gnoma_store::calendar;

use super::view::UsageView;

/// Most weeks, the latest ones.
const MAX_WEEKS: i64 = 26;
/// Fewest days between the first and the last one; fewer are read at a glance in the table.
const MIN_DAYS: i64 = 7;
/// The characters of days by the part of the most expensive day that they cost: nothing, up to a quarter, a half, three
/// quarters, all of it.
const LEVELS: [char; 5] = ['.', '-', '=', '+', '#'];

/// Renders the calendar of a report by day alone; empty for other reports and for few days.
pub(super) fn render(view: &UsageView<'_>) -> String {
    if view.query.by != [Dimension::Period(Period::Day)] {
        return String::new();
    }
    let mut days = BTreeMap::new();
    for row in &view.report.rows {
        if let Some(date) = row.name.as_deref().and_then(|name| name.parse().ok()) {
            days.insert(calendar::day_of_date(date), view.share(&row.sums).unwrap_or(0.0));
        }
    }
    let (Some((first, _)), Some((last, _))) = (days.first_key_value(), days.last_key_value())
    else {
        return String::new();
    };
    if last - first < MIN_DAYS {
        return String::new();
    }
    let most = days.values().copied().fold(0.0, f64::max);
    let last_week = Period::Week.first_day(*last);
    let first_week = Period::Week.first_day(*first).max(last_week - 7 * (MAX_WEEKS - 1));
    let mut text = "\n            Mo Tu We Th Fr Sa Su\n".to_owned();
    for week in (0..MAX_WEEKS).map(|number| first_week + 7 * number).take_while(|week| week <= last)
    {
        let mut line = format!("{}  ", calendar::date_of(week));
        for day in week..week + 7 {
            let is_shown = (*first..=*last).contains(&day);
            let cost = days.get(&day).copied().unwrap_or(0.0);
            let mark = if is_shown { level(cost, most) } else { ' ' };
            line.extend([' ', mark, ' ']);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str("of the most expensive day: . none, - to 1/4, = to 1/2, + to 3/4, # more\n");
    text
}

fn level(cost: f64, most: f64) -> char {
    let quarters = if most > 0.0 { (cost / most * 4.0).ceil() } else { 0.0 };
    LEVELS.get(quarters as usize).copied().unwrap_or('#')
}
