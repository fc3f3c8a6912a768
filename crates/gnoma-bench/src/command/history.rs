//! What a long conversation costs: memory, and the work of one more round.

use std::{hint::black_box, process::Command};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use gnoma_bench::{
    PROTOCOLS,
    clock::cpu_time,
    conversation::{Conversation, fresh_bytes},
    report::{self, GoalCheck, median_of},
};
use gnoma_llm::Protocol;

/// Lengths of history that are compared, in tokens.
const TOKENS: [usize; 4] = [10_000, 50_000, 100_000, 200_000];
const GOAL_RESIDENT_MB: f64 = 50.0;
/// Times that the round is measured on each length.
const ROUNDS: usize = 101;
/// Argument that makes the program hold one conversation and tell its memory.
const HOLD: &str = "--hold";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => compare_protocols(),
        [hold, name, tokens] if hold == HOLD => self::print_resident_memory(name, tokens),
        _ => bail!("`history` takes no arguments"),
    }
}

fn compare_protocols() -> Result<()> {
    for (name, protocol) in PROTOCOLS {
        let rounds: Vec<Round> =
            TOKENS.iter().map(|tokens| Round::measure_next(protocol, *tokens)).collect();
        print_rounds(name, &rounds);
    }
    let empty = resident_mb(PROTOCOLS[0].0, 0)?;
    for (name, _) in PROTOCOLS {
        let tokens = TOKENS[TOKENS.len() - 1];
        let resident = resident_mb(name, tokens)?;
        report::print_row(
            format_args!("memory with {tokens} tokens, {name}"),
            format_args!("< {GOAL_RESIDENT_MB} MB"),
            format_args!("{resident:.1} MB resident ({empty:.1} without them)"),
            GoalCheck::from_bool(resident < GOAL_RESIDENT_MB),
        );
    }
    Ok(())
}

fn print_rounds(name: &str, rounds: &[Round]) {
    let list = |figure: &dyn Fn(&Round) -> String| {
        rounds.iter().map(figure).collect::<Vec<_>>().join(" / ")
    };
    let first = rounds.first().map_or(0, |round| round.fresh_bytes);
    let grows = rounds.iter().any(|round| round.fresh_bytes > first + first / 10);
    report::print_row(
        format_args!("one more round, {name}"),
        "new bytes do not grow with the history",
        format_args!(
            "{} new bytes of {} KB, {} µs (10 / 50 / 100 / 200 thousand tokens)",
            list(&|round| round.fresh_bytes.to_string()),
            list(&|round| (round.body_bytes / 1000).to_string()),
            list(&|round| format!("{:.0}", round.micros)),
        ),
        GoalCheck::from_bool(!grows),
    );
}

/// The cost of one more round on a history that was sent before.
struct Round {
    /// Bytes of the body that lie elsewhere than in the body of the round before.
    fresh_bytes: usize,
    body_bytes: usize,
    micros: f64,
}

impl Round {
    fn measure_next(protocol: Protocol, tokens: usize) -> Self {
        let mut talk = Conversation::new(protocol, tokens);
        let sent = talk.request();
        talk.add_round();
        let next = talk.request();
        let mut micros = Vec::new();
        let mut round = Self { fresh_bytes: 0, body_bytes: 0, micros: 0.0 };
        for _ in 0..ROUNDS {
            // Going back to the shorter history makes the connection forget the round.
            let before = talk.encode(&sent);
            let (time, body) = cpu_time(|| black_box(talk.encode(&next)));
            micros.push(time.as_secs_f64() * 1e6);
            round.fresh_bytes = fresh_bytes(&before, &body);
            round.body_bytes = body.iter().map(Bytes::len).sum();
        }
        round.micros = median_of(micros);
        round
    }
}

/// Memory of a process that holds such a conversation and has encoded it.
fn resident_mb(name: &str, tokens: usize) -> Result<f64> {
    let program = std::env::current_exe()?;
    let output =
        Command::new(program).args(["history", HOLD, name, &tokens.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kilobytes: f64 = text
        .trim()
        .parse()
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok(kilobytes * 1024.0 / 1e6)
}

#[expect(clippy::print_stdout, reason = "the answer to the process that asks")]
fn print_resident_memory(name: &str, tokens: &str) -> Result<()> {
    let talk = Conversation::new(gnoma_bench::find_protocol(name)?, tokens.parse()?);
    let body = black_box(talk.encode(&talk.request()));
    let status = std::fs::read_to_string("/proc/self/status")?;
    drop((talk, body));
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.context("the system does not tell the memory of a process")?;
    println!("{}", kilobytes.trim().trim_end_matches(" kB"));
    Ok(())
}
