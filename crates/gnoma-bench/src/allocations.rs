//! What is allocated to read a delta, and to encode a round of a long conversation.
//!
//!     cargo run --profile dist -p gnoma-bench --bin gnoma-bench-allocations -- decode|history

use std::alloc::System;

use anyhow::{Result, bail};
use gnoma_bench::{
    PROTOCOLS, conversation, reading,
    report::{self, GoalCheck},
    stream::{self, Prose},
};
use gnoma_llm::Protocol;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const DELTAS: usize = 20_000;
/// The delta's own text is one; buffers that live as long as the stream are allowed this share.
const GOAL_PER_DELTA: f64 = 1.01;
/// Lengths of history that are compared, in tokens.
const SHORT_TOKENS: usize = 10_000;
const LONG_TOKENS: usize = 200_000;

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("decode") => report_delta_allocations(),
        Some("history") => report_round_allocations(),
        _ => bail!("name what to count for: decode, history"),
    }
    Ok(())
}

fn report_delta_allocations() {
    for (name, protocol) in PROTOCOLS {
        let figure = format!("allocations a delta, {name}");
        let goal = "1: its text";
        match (per_delta(protocol, Prose::Flat), per_delta(protocol, Prose::Lines)) {
            (Ok(flat), Ok(lines)) => report::print_row(
                figure,
                goal,
                format_args!("{flat:.2}; {lines:.2} when every 12th holds a line break"),
                GoalCheck::from_bool(flat <= GOAL_PER_DELTA),
            ),
            (Err(error), _) | (_, Err(error)) => {
                report::print_row(
                    figure,
                    goal,
                    format_args!("not measured: {error}"),
                    GoalCheck::Missed,
                );
            }
        }
    }
}

fn report_round_allocations() {
    for (name, protocol) in PROTOCOLS {
        let (short, long) = (
            measure_round_bytes(protocol, SHORT_TOKENS),
            measure_round_bytes(protocol, LONG_TOKENS),
        );
        report::print_row(
            format_args!("bytes allocated for a round, {name}"),
            "–",
            format_args!("{short} on {SHORT_TOKENS} tokens, {long} on {LONG_TOKENS}"),
            GoalCheck::None,
        );
    }
}

fn per_delta(protocol: Protocol, prose: Prose) -> Result<f64> {
    let answer = stream::generate_answer(protocol, DELTAS, prose);
    let region = Region::new(ALLOCATOR);
    reading::read_answer(protocol, &answer)?;
    let change = region.change();
    Ok((change.allocations + change.reallocations) as f64 / DELTAS as f64)
}

/// Bytes allocated to encode the round after a history of `tokens`.
fn measure_round_bytes(protocol: Protocol, tokens: usize) -> usize {
    let mut talk = conversation::Conversation::new(protocol, tokens);
    drop(talk.encode(&talk.request()));
    talk.add_round();
    let request = talk.request();
    let region = Region::new(ALLOCATOR);
    drop(talk.encode(&request));
    region.change().bytes_allocated
}
