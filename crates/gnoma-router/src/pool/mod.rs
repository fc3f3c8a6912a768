//! What limits a call draws on, what it is expected to take, and what is said when there is no room.
//!
//! Pure data and functions: amounts are counted by a [`gnoma_core::ledger::Ledger`], settings and
//! headers come in as values. No limit is assumed: those of a plan apply once the user names its
//! tier, those of a provider once it tells them.

mod draws;
mod expect;
mod headers;
mod learnt;
mod names;
mod rates;
mod scope;
mod standing;
mod tiers;

pub use self::{
    draws::{Caps, PlannedCall, PoolLimits, UnknownTier},
    expect::{Expectation, expected_amount, shorten_call, shortest_call, used_amount},
    headers::{MOST_HEADERS, ReportedLimit, reported_limits},
    learnt::{KnownLimit, Learnt},
    names::Pool,
    rates::Rates,
    scope::{MAX_DEPTH, Scope, TooDeep},
    standing::{budget_pools, crowding_factor, describe_full_limit, pool_budget, refusal_reason},
    tiers::{Tier, find_tier, tiers_of},
};
