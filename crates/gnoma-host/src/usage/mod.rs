//! Usage of models out of the ledger, summed up as people ask for it.
//!
//! The sums of a day and arm are the ledger's; single calls say more of a part of them. What the calls do not explain
//! (they are older, removed or damaged) is in the report as well, as calls of which only day and arm are known. So the
//! total of every report is the ledger's total, to the micro-dollar.
//!
//! Reading is in this file; grouping, dates and forecasts are pure, in the files beside it.

mod checked_work;
mod dimension;
mod fold;
mod forecast;
mod period;
mod questions;
mod report;
mod repriced;
mod savings;
mod spending;
mod sums;
#[cfg(test)]
mod tests;
mod tools;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use gnoma_core::{
    ModelRef, Price,
    ledger::{Ledger as _, Limit, PoolDraw, Unit, Window},
    store::{StoreError, StoreErrorKind},
};
use gnoma_router::pool::Pool;
use gnoma_store::{DamagedCalls, NameId, UsageRead};

pub use self::{
    checked_work::CheckedWork,
    dimension::{Dimension, DimensionError, Period},
    fold::{MAX_DEPTH, MAX_GROUPS},
    forecast::{CapForecast, forecast_cap},
    period::{UsageStart, UsageStartError},
    questions::RuleOffer,
    report::UsageRow,
    repriced::RepricedUsage,
    savings::{SavedRange, Savings},
    spending::{CurrentSpending, read_spending},
    sums::{CallDetails, UsageSums},
    tools::{ToolUsage, ToolUse, read_tool_usage},
};
use self::{
    fold::UsageFold,
    period::LocalDays,
    report::{KeyNames, build_tree, name_ids},
};
use crate::{HostError, Project, Result, cap_watch::LevelReader, ledger::LateLedger, routing};

/// A call is dated in the future if it is so much later than now, in milliseconds: other processes settle calls while a
/// report is made.
const CLOCK_SLACK_MS: i64 = 60_000;

/// The usage that a report is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// The time from which usage counts.
    pub since: UsageStart,
    /// The dimensions that nest, the outermost first; at most [`MAX_DEPTH`].
    pub by: Vec<Dimension>,
    /// The model whose cost for the same calls is of interest.
    pub repriced_as: Option<ModelRef>,
}

/// The usage, summed up by the dimensions of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReport {
    /// The beginning in milliseconds since 1970; `None` for everything.
    pub begin_ms: Option<i64>,
    /// The name of the zone whose days count, if it has one.
    pub zone: Option<String>,
    /// The sums of everything.
    pub total: UsageSums,
    /// The groups of the first dimension.
    pub rows: Vec<UsageRow>,
    /// The cost of all calls on another model, if that was asked for.
    pub repriced: Option<RepricedUsage>,
    /// What caches, routing, elfs and checks saved or cost.
    pub savings: Savings,
    /// The caps of days and months.
    pub caps: Vec<CapForecast>,
    /// Rows of the ledger that could not be read. What they took is in the sums without its details.
    pub damaged: DamagedCalls,
    /// Days' sums that are smaller than the calls recorded for them; the calls are in the report.
    pub exceeded_sums: u64,
    /// Recorded calls that are dated in the future. They are in a report of everything and in no other one.
    pub future_calls: u64,
    /// The ledger was damaged, and money may have been spent that the report does not have.
    pub lacks_money: bool,
}

/// Reads the usage of the project's profile, also in incognito. Writes nothing, unless the ledger is damaged, of an older
/// gnoma, or has reservations of processes that died.
///
/// # Errors
/// The ledger cannot be read, the report would have more than [`MAX_GROUPS`] groups, or the price of the other model is
/// not known.
pub async fn read_report(project: &Project, query: &UsageQuery) -> Result<UsageReport> {
    let (now_ms, zone) = (project.now_ms(), crate::clock::local_time_zone());
    let price = match &query.repriced_as {
        Some(arm) => Some((arm.clone(), price_of(project, arm)?)),
        None => None,
    };
    let begin_ms = query.since.begin_ms(now_ms, &zone);
    let latest_ms = now_ms.saturating_add(CLOCK_SLACK_MS);
    let days = LocalDays::new(zone.clone());
    let fold = || UsageFold::new(query.by.clone(), begin_ms, latest_ms, days.clone());
    let read = read_or_repair(project, query, begin_ms, fold).await.map_err(to_host_error)?;
    let LedgerRead { ledger, calls, names, lacks_money } = read;
    let UsageRead { state: mut fold, totals, arms, damaged } = calls;
    if fold.is_full {
        return Err(too_many_groups());
    }
    let prices: HashMap<_, _> = routing::known_prices(project, &totals).into_iter().collect();
    let exceeded_sums = fold.add_unrecorded(&totals, &arms, &prices);
    let future_calls = fold.future_calls;
    let savings = Savings::new(&fold.parts, &names, &arms, &prices);
    let (total, rows) = build_tree(&query.by, fold.groups, &KeyNames { names, arms });
    let repriced = price.map(|(arm, price)| {
        let used = totals.iter().map(|total| &total.arm);
        RepricedUsage::new(arm, &price, &total, used)
    });
    let caps = read_caps(project, &ledger, now_ms).await;
    let zone = zone.iana_name().map(str::to_owned);
    Ok(UsageReport {
        begin_ms,
        zone,
        total,
        rows,
        repriced,
        savings,
        caps,
        damaged,
        exceeded_sums,
        future_calls,
        lacks_money,
    })
}

/// The parts of the ledger that a report needs.
struct LedgerRead {
    ledger: LateLedger,
    calls: UsageRead<UsageFold>,
    names: BTreeMap<NameId, String>,
    lacks_money: bool,
}

/// Reads the ledger. One that proves to be damaged is repaired when it is opened again, and read once more.
async fn read_or_repair(
    project: &Project,
    query: &UsageQuery,
    begin_ms: Option<i64>,
    fold: impl Fn() -> UsageFold,
) -> std::result::Result<LedgerRead, StoreError> {
    match read_ledger(project, query, begin_ms, fold()).await {
        Err(error) if error.kind == StoreErrorKind::Damaged => {
            read_ledger(project, query, begin_ms, fold()).await
        }
        read => read,
    }
}

async fn read_ledger(
    project: &Project,
    query: &UsageQuery,
    begin_ms: Option<i64>,
    fold: UsageFold,
) -> std::result::Result<LedgerRead, StoreError> {
    let ledger = routing::ledger_to_report(project);
    let from_ms = begin_ms.unwrap_or(i64::MIN);
    let calls = ledger.fold_calls(from_ms, fold, |fold, call| fold.add_call(&call)).await?;
    let mut ids = name_ids(&query.by, calls.state.groups.keys());
    ids.extend(calls.state.parts.work_ids());
    let names = ledger.call_names(ids).await?;
    let lacks_money = ledger.lacks_money().await?;
    Ok(LedgerRead { ledger, calls, names, lacks_money })
}

/// The price of a model today.
fn price_of(project: &Project, arm: &ModelRef) -> Result<Price> {
    routing::price_of(project, arm).ok_or_else(|| {
        let text = format!("the price of `{arm}` is not known, so its cost is not either");
        let remedy = "name it as PROVIDER/MODEL, or set `input_price` and `output_price` in its entry of `[[arms]]`";
        HostError { remedy: Some(remedy.to_owned()), ..HostError::usage(text) }
    })
}

/// Counts the calls that [`forget_details`] would remove details of.
///
/// # Errors
/// The ledger cannot be read.
pub async fn count_forgettable(project: &Project, before: Option<UsageStart>) -> Result<u64> {
    let ledger = routing::ledger_to_report(project);
    ledger.count_calls(end_ms(project, before)).await.map_err(to_host_error)
}

/// Removes the details of calls before a time, or of all, also in incognito: project, branch, session, elf, turn, task,
/// account, agent, skills, MCP servers, failure and time. The sums of each day and model stay. Returns how many calls
/// that were.
///
/// # Errors
/// The ledger cannot be changed.
pub async fn forget_details(project: &Project, before: Option<UsageStart>) -> Result<u64> {
    if !routing::has_ledger(project) {
        return Ok(0);
    }
    let before_ms = end_ms(project, before);
    routing::ledger_to_clean(project).forget_calls(before_ms).await.map_err(to_host_error)
}

/// The time before which details are removed.
fn end_ms(project: &Project, before: Option<UsageStart>) -> i64 {
    let begin_ms =
        |since: UsageStart| since.begin_ms(project.now_ms(), &crate::clock::local_time_zone());
    match before {
        // A clock may have been ahead.
        None => i64::MAX,
        Some(since) => begin_ms(since).unwrap_or(i64::MAX),
    }
}

/// The caps of days and months. They are left out, with a notice, if the ledger cannot be read.
async fn read_caps(project: &Project, ledger: &LateLedger, now_ms: i64) -> Vec<CapForecast> {
    let draws = cap_draws(project);
    if draws.is_empty() {
        return Vec::new();
    }
    let levels = ledger.limit_levels(draws, now_ms).await.unwrap_or_else(|error| {
        project.notices.warning(error.sentence);
        Vec::new()
    });
    levels.iter().filter_map(|level| forecast_cap(level, now_ms)).collect()
}

/// Returns what reads the levels of the caps of days and months; `None` if there are none.
pub(crate) fn cap_level_reader(project: &Arc<Project>) -> Option<LevelReader> {
    let (project, draws) = (Arc::clone(project), cap_draws(project));
    (!draws.is_empty()).then(|| -> LevelReader {
        Box::new(move |now_ms| {
            let (ledger, draws) = (routing::profile_ledger(&project), draws.clone());
            // What is wrong with the ledger is told where calls are counted.
            Box::pin(async move { ledger.limit_levels(draws, now_ms).await.unwrap_or_default() })
        })
    })
}

/// The pools with the caps of days and months that the settings have; those without a cap are left out.
fn cap_draws(project: &Project) -> Vec<PoolDraw> {
    let caps = &project.routing.router.caps;
    let of_project = Pool::Project(routing::project_key(&project.places.project));
    let draw = |pool: &Pool, caps: [(Window, Option<u64>); 2]| {
        let limit = |(window, most): (Window, Option<u64>)| {
            most.map(|most| Limit { unit: Unit::MicroUsd, window, most })
        };
        PoolDraw { pool: pool.to_string(), limits: caps.into_iter().filter_map(limit).collect() }
    };
    let mut draws = vec![
        draw(&Pool::All, [(Window::Day, caps.day), (Window::Month, caps.month)]),
        draw(&of_project, [(Window::Day, caps.project_day), (Window::Month, caps.project_month)]),
    ];
    draws.extend(project.routing.rate_limits.iter().map(|(name, limits)| {
        let caps = [
            (Window::Day, limits.rates.spend_day_micro_usd),
            (Window::Month, limits.rates.spend_month_micro_usd),
        ];
        draw(&Pool::Rates(name.clone()), caps)
    }));
    draws.retain(|draw| !draw.limits.is_empty());
    draws
}

fn to_host_error(error: StoreError) -> HostError {
    HostError::failure(error.sentence)
}

fn too_many_groups() -> HostError {
    HostError::usage(format!(
        "the report would have more than {MAX_GROUPS} rows; use a later --since, or fewer --by"
    ))
}
