//! What may be allocated. The one test of its program: others would allocate at the same time.

use std::alloc::System;

use gnoma_bench::{
    PROTOCOLS,
    conversation::{Conversation, fresh_bytes},
    reading,
    stream::{self, Prose},
};
use gnoma_llm::Protocol;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const DELTAS: usize = 3_000;
/// Buffers that live as long as the stream.
const BUFFERS: usize = 50;

#[test]
fn a_delta_costs_its_text_and_a_round_costs_its_end() {
    for (name, protocol) in PROTOCOLS {
        let answer = stream::generate_answer(protocol, DELTAS, Prose::Flat);
        let region = Region::new(ALLOCATOR);
        reading::read_answer(protocol, &answer).unwrap();
        let change = region.change();
        let allocations = change.allocations + change.reallocations;
        assert!(allocations <= DELTAS + BUFFERS, "{name}: {allocations} for {DELTAS} deltas");
    }
    for (name, protocol) in PROTOCOLS {
        let (short, long) = (new_bytes(protocol, 5_000), new_bytes(protocol, 40_000));
        assert!(long <= short + short / 10, "{name}: {short} bytes, then {long}");
    }
}

/// Bytes serialised for the round after a history of `tokens`.
fn new_bytes(protocol: Protocol, tokens: usize) -> usize {
    let mut talk = Conversation::new(protocol, tokens);
    let before = talk.encode(&talk.request());
    talk.add_round();
    fresh_bytes(&before, &talk.encode(&talk.request()))
}
