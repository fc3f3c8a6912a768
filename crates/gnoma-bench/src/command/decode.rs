//! How fast answers are read: bytes a second on one core, and nanoseconds for a delta.

use std::time::Duration;

use anyhow::Result;
use gnoma_bench::{
    PROTOCOLS,
    clock::cpu_time,
    reading,
    report::{self, GoalCheck, median_of},
    stream::{self, Answer, Prose},
};
use gnoma_llm::Protocol;

use super::parse_number_argument;

const GOAL_MB_PER_SECOND: f64 = 300.0;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let deltas = parse_number_argument(arguments, 0, 50_000)?;
    let passes = parse_number_argument(arguments, 1, 15)?;
    let only = arguments.get(2);
    for (name, protocol) in PROTOCOLS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let answer = stream::generate_answer(protocol, deltas, Prose::Lines);
        // A protocol that cannot be read must not hide the figures of the others.
        match measure_decoding(protocol, &answer, passes) {
            Ok(times) => print_speed_row(name, &answer, &times),
            Err(error) => report::print_row(
                format_args!("decode, {name}"),
                format_args!("≥ {GOAL_MB_PER_SECOND} MB/s a core"),
                format_args!("not measured: {error}"),
                GoalCheck::Missed,
            ),
        }
    }
    Ok(())
}

fn measure_decoding(protocol: Protocol, answer: &Answer, passes: usize) -> Result<Vec<Duration>> {
    reading::read_answer(protocol, answer)?;
    (0..passes)
        .map(|_| {
            let (time, read) = cpu_time(|| reading::read_answer(protocol, answer));
            read.map(|()| time)
        })
        .collect()
}

fn print_speed_row(name: &str, answer: &Answer, times: &[Duration]) {
    let (bytes, deltas) = (answer.bytes.len() as f64, answer.deltas as f64);
    let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = median_of(seconds);
    let speed = bytes / middle / 1e6;
    report::print_row(
        format_args!("decode, {name}"),
        format_args!("≥ {GOAL_MB_PER_SECOND} MB/s a core"),
        format_args!(
            "{speed:.0} MB/s (best {:.0}), {:.0} ns a delta, {:.0}-byte records",
            bytes / best / 1e6,
            middle / deltas * 1e9,
            bytes / deltas,
        ),
        GoalCheck::from_bool(speed >= GOAL_MB_PER_SECOND),
    );
}
