//! What limits a call draws on, what it is expected to take, and what is said when there is no room.
//!
//! Pure data and functions: amounts are counted by a [`gnoma_core::ledger::Ledger`], settings and
//! headers come in as values. No limit is assumed: those of a plan apply once the user names its
//! tier, those of a provider once it tells them.

mod call_expectation;
mod draws;
mod headers;
mod learnt_limits;
mod limit_status;
mod names;
mod rates;
mod scope;
mod tiers;

pub use self::{
    call_expectation::{Expectation, expected_amount, shorten_call, shortest_call, used_amount},
    draws::{Caps, PoolLimits, UnknownTier},
    headers::{MOST_HEADERS, ReportedLimit, reported_limits},
    learnt_limits::{KnownLimit, LearntLimits},
    limit_status::{budget_pools, crowding_factor, describe_level, pool_budget, refusal_reason},
    names::Pool,
    rates::Rates,
    scope::{MAX_DEPTH, Scope, TooDeep},
    tiers::{Tier, find_tier, tiers_of},
};
