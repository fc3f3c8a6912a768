//! The port to the ledger of spending: caps and rate limits that all sessions and processes share, reserved before a
//! call and settled after it.
//!
//! Amounts are counted on *pools*: names such as `anthropic`, `day` or `session:20261122-…`. Whoever
//! asks says which limits a pool has; the ledger only counts, so that a changed limit holds at once.

use serde::{Deserialize, Serialize};

use crate::{
    ErrorKind, message::ModelRef, stop::StopReason, store::StoreFuture,
    text_truncation::word_prefix,
};

/// Bytes that are kept of each fact of [`CallOrigin::work_lines`].
const MAX_FACT_BYTES: usize = 200;

/// The unit in which use is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// The number of model calls.
    Requests,
    /// Prompt tokens that no cache had.
    Input,
    /// The number of output tokens.
    Output,
    /// Prompt tokens that no cache had, and written tokens.
    Tokens,
    /// Prompt tokens, cached ones included.
    AllInput,
    /// Prompt tokens, cached ones included, and written tokens.
    AllTokens,
    /// The cost in micro-dollars.
    MicroUsd,
}

/// Over which time it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// The last so many milliseconds.
    Rolling {
        /// The length of the window in milliseconds.
        ms: u64,
    },
    /// The calendar day (UTC).
    Day,
    /// The calendar month (UTC).
    Month,
    /// For ever; for pools that end by themselves, such as a turn's.
    Ever,
}

/// A limit on what a pool may take, such as 1,000,000 [`Unit::Input`] in a [`Window::Day`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limit {
    /// The unit in which use is counted.
    pub unit: Unit,
    /// The time over which use is counted.
    pub window: Window,
    /// Most of it within the window, inclusive.
    pub most: u64,
}

/// A pool that a call draws on, with the limits that hold for it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolDraw {
    /// The name of the pool.
    pub pool: String,
    /// The limits that the pool must stay within; if the list is empty, use is only counted.
    pub limits: Vec<Limit>,
}

/// The amounts that a call takes: expected amounts when it is reserved, counted ones when it is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amount {
    /// The number of model calls.
    pub requests: u64,
    /// Prompt tokens, cached ones included.
    pub input: u64,
    /// Those of them that the provider's cache had.
    pub cached: u64,
    /// The number of written tokens.
    pub output: u64,
    /// The cost in micro-dollars.
    pub micro_usd: u64,
    /// The tokens of the prompt that were written to the provider's cache; told apart by day and arm only.
    pub cache_write: u64,
}

impl Amount {
    /// Adds another amount; what would overflow stays at the most that can be counted.
    pub fn add(&mut self, other: &Self) {
        let Self { requests, input, cached, output, micro_usd, cache_write } = other;
        for (sum, value) in [
            (&mut self.requests, requests),
            (&mut self.input, input),
            (&mut self.cached, cached),
            (&mut self.output, output),
            (&mut self.micro_usd, micro_usd),
            (&mut self.cache_write, cache_write),
        ] {
            *sum = sum.saturating_add(*value);
        }
    }

    /// Returns this amount in `unit`, such as tokens or micro-dollars.
    #[must_use]
    pub fn in_unit(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Requests => self.requests,
            Unit::Input => self.input.saturating_sub(self.cached),
            Unit::Output => self.output,
            Unit::Tokens => self.in_unit(Unit::Input).saturating_add(self.output),
            Unit::AllInput => self.input,
            Unit::AllTokens => self.input.saturating_add(self.output),
            Unit::MicroUsd => self.micro_usd,
        }
    }
}

/// A request to the ledger to reserve room for one call that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The time of the request, in milliseconds since 1970.
    pub at_ms: i64,
    /// The arm that would be called.
    pub arm: ModelRef,
    /// The amount that the call is expected to take.
    pub amount: Amount,
    /// True if the price is known. If it is not, the amount has no money in it.
    pub is_priced: bool,
    /// The pools it draws on; all must have room.
    pub draws: Vec<PoolDraw>,
    /// The work that it belongs to.
    pub origin: CallOrigin,
}

/// The work that a call belongs to, so that spending can be summed up by it. An empty text is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOrigin {
    /// The folder of the project.
    pub project: String,
    /// The git branch that was checked out there, or the start of the commit.
    pub branch: String,
    /// The id of the session that a person started.
    pub session: String,
    /// The id of the session below it that made the call; empty for the person's own session.
    pub elf: String,
    /// The id of the person's turn.
    pub turn: String,
    /// The kind of task that the turn was classified as.
    pub task: String,
    /// The source of the key that pays for the call, such as the name of a variable; no part of the key.
    pub account: String,
    /// The definition that the session works as, or else the other program's agent that is called.
    pub agent: String,
    /// The skills that the turn has used so far, with commas.
    pub skill: String,
    /// The MCP servers whose tools the turn has called so far, with commas.
    pub mcp: String,
    /// [`CHECK_PART`] for a review of the work; else empty.
    pub part: String,
}

/// The part of a call that reviews the work of a model.
pub const CHECK_PART: &str = "check";

impl CallOrigin {
    /// Returns the facts of [`WorkFact`], a line each; empty if none of them is known.
    #[must_use]
    pub fn work_lines(&self) -> String {
        let facts = [&self.account, &self.agent, &self.skill, &self.mcp, &self.part];
        if facts.iter().all(|fact| fact.is_empty()) {
            return String::new();
        }
        facts.map(|fact| word_prefix(fact, MAX_FACT_BYTES).replace('\n', " ")).join("\n")
    }
}

/// A fact about the work of a call that the ledger keeps as a line of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkFact {
    /// The source of the key that paid.
    Account,
    /// The agent.
    Agent,
    /// The skills.
    Skill,
    /// The MCP servers.
    Mcp,
    /// The part of the work.
    Part,
}

impl WorkFact {
    /// Returns this fact from [`CallOrigin::work_lines`]; empty if the call had none.
    #[must_use]
    pub fn find_in(self, lines: &str) -> Option<&str> {
        lines.split('\n').nth(self as usize)
    }
}

/// A finished call, as it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledCall {
    /// The tokens and the money that it took.
    pub amount: Amount,
    /// Tokens of the output that were thought and not shown; counted in the output.
    pub thinking: u64,
    /// True if the price is known. If it is not, the amount has no money in it.
    pub is_priced: bool,
    /// The error that ended the call.
    pub failure: Option<ErrorKind>,
    /// Milliseconds until the first part of the answer; `None` if none came or it was not measured.
    pub first_part_ms: Option<u64>,
    /// Milliseconds from its request to its end; `None` if that was not measured. The ledger does not keep it.
    pub took_ms: Option<u64>,
    /// The reason why the answer ended, if it did by itself. The ledger does not keep it.
    pub stop: Option<StopReason>,
}

impl From<Amount> for SettledCall {
    /// Returns a call that succeeded at a known price, of which nothing else is known.
    fn from(amount: Amount) -> Self {
        Self {
            amount,
            thinking: 0,
            is_priced: true,
            failure: None,
            first_part_ms: None,
            took_ms: None,
            stop: None,
        }
    }
}

/// The id of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HoldId(pub i64);

/// The result of a request to reserve room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationOutcome {
    /// There was; it stays reserved until it is settled or released.
    Held(HoldId),
    /// The pools had no room; the value is the limit that is full.
    Full(ExhaustedLimit),
}

/// The limit that has no room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExhaustedLimit {
    /// The name of the pool.
    pub pool: String,
    /// The limit of the pool.
    pub limit: Limit,
    /// The amount that is used and reserved.
    pub used: u64,
    /// The time at which there may be room again, in milliseconds since 1970; `None` if waiting does not help.
    pub free_at_ms: Option<i64>,
}

/// The state of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The name of the pool.
    pub pool: String,
    /// The limit of the pool.
    pub limit: Limit,
    /// Settled amounts within the window.
    pub used: u64,
    /// Amounts reserved by running calls.
    pub held: u64,
    /// The time at which the window starts over, in milliseconds since 1970; `None` for [`Window::Ever`].
    pub resets_at_ms: Option<i64>,
}

/// The amount that an arm took on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Days since 1970-01-01 (UTC).
    pub day: i32,
    /// The arm that was called.
    pub arm: ModelRef,
    /// The amount that the arm took.
    pub amount: Amount,
}

/// Counts what calls take, over all sessions and processes that share it.
///
/// A reservation whose process has died counts as spent. Concurrent calls never exceed a limit by
/// more than what one of them took beyond its expectation.
pub trait Ledger: Send + Sync {
    /// Reserves room for a call in all its pools, or in none. Used and reserved amounts together
    /// must leave
    /// room for the expected amount in every limit; else the answer is [`Reserved::ExhaustedLimit`] with the first
    /// limit that has none.
    ///
    /// # Errors
    /// When the store cannot be read or written; nothing is reserved then.
    fn reserve(&self, ask: ReservationRequest) -> StoreFuture<'_, ReservationOutcome>;

    /// Settles a reservation with what the call really took; at most once. It is settled even if
    /// nobody waits for the answer. `at_ms` is the time in milliseconds since 1970 that it is
    /// counted at.
    ///
    /// # Errors
    /// When the store cannot be written; the reservation then stays until the process ends.
    fn commit(&self, hold: HoldId, at_ms: i64, call: SettledCall) -> StoreFuture<'_, ()>;

    /// Releases a reservation: nothing was taken. Does not wait; what is already settled stays.
    fn rollback(&self, hold: HoldId);

    /// The state of each limit of `draws` at `at_ms`, in milliseconds since 1970, in their order.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn limit_levels(&self, draws: Vec<PoolDraw>, at_ms: i64) -> StoreFuture<'_, Vec<Level>>;

    /// Returns the amounts that were taken from a day on, by day and arm; the earliest first. `from_day` counts
    /// days since 1970-01-01 (UTC).
    ///
    /// # Errors
    /// When the store cannot be read.
    fn daily_totals(&self, from_day: i32) -> StoreFuture<'_, Vec<Total>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_origin_account_agent_skill_and_mcp_round_trip_as_text_lines() {
        let (account, skill) = ("OPENAI_API_KEY".to_owned(), "a\nb".to_owned());
        let origin = CallOrigin { account, skill, mcp: "x ".repeat(900), ..CallOrigin::default() };
        let lines = origin.work_lines();
        let facts = [WorkFact::Account, WorkFact::Agent, WorkFact::Skill, WorkFact::Mcp];
        let [account, agent, skill, mcp] = facts.map(|fact| fact.find_in(&lines).unwrap());
        assert_eq!([account, agent, skill], ["OPENAI_API_KEY", "", "a b"]);
        assert!(mcp.starts_with("x x") && lines.len() < 1_024, "{lines}");
        assert_eq!(CallOrigin::default().work_lines(), "");
    }
}
