//! What runs at once spends: programs, and sessions in processes, that share one ledger stay within
//! the cap of a day, and what the ledger has counted is what the vendor has told, to the micro-dollar.

mod sessions;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use gnoma_core::{
    Price, StopReason, Usage,
    ledger::{Amount, Ledger as _, Limit, PoolDraw, Total, Unit, Window},
};
use gnoma_store::{OpenedLedger, SqliteLedger};
use gnoma_testkit::{Reply, Request, Script, Server, Wire};
use serde_json::json;

use crate::support::{Run, World, finish};

/// Programs that run at once.
const PROGRAMS: usize = 10;

/// What may be spent in a day: more than one of them takes, less than all.
const CAP: u64 = 400_000;

/// No round number: amounts are rounded, and sums must not be.
pub(crate) const PRICE: Price =
    Price { input: 1_234_567, output: 9_876_543, cache_read: 123_457, cache_write: 0 };

const DAY_MS: i64 = 86_400_000;

/// The file that the model reads, line by line.
const FILE: &str = "a.txt";

/// One in so many answers, as if by chance, ends its turn; the others call a tool.
const TURN_CALLS: u64 = 5;

/// The tokens that a vendor has told, an answer each.
pub(crate) type Bill = Arc<Mutex<Vec<Usage>>>;

/// A vendor that tells other tokens with each answer.
pub(crate) fn vendor() -> (Server, Bill) {
    let bill = Bill::default();
    let kept = Arc::clone(&bill);
    let server = Server::start(move |request| answer(request, &kept)).unwrap();
    (server, bill)
}

fn answer(request: &Request, bill: &Mutex<Vec<Usage>>) -> Reply {
    if !request.path().ends_with("/chat/completions") {
        return Reply::text(404, "there is nothing else");
    }
    let mut bill = bill.lock().unwrap();
    let number = bill.len() as u64 + 1;
    let dice = scattered(number);
    let usage = Usage {
        input: dice % 20_000,
        output: (dice >> 16) % 4_000,
        cache_read: (dice >> 32) % 10_000,
        ..Usage::default()
    };
    bill.push(usage);
    let script = if (dice >> 48).is_multiple_of(TURN_CALLS) {
        Script::text(["done"]).with_stop(StopReason::EndTurn)
    } else {
        let arguments = format!("{{\"path\":\"{FILE}\",\"offset\":{number},\"limit\":1}}");
        Script::text([""; 0]).with_call(format!("call_{number}"), "fs_read", arguments)
    };
    Wire::OpenAi.stream_reply(&script.with_usage(usage))
}

/// A number that looks like any other.
fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 29)
}

fn lines() -> String {
    (1..=500).map(|number| format!("line {number}\n")).collect()
}

/// The ledger has counted what the vendor has told, has let no more pass the cap than the `at_once`
/// calls that were in flight, and holds nothing.
async fn check(ledger: &SqliteLedger, bill: &Bill, at_once: u64) {
    let usages = bill.lock().unwrap().clone();
    let totals = ledger.daily_totals(0).await.unwrap();
    let counted = sum(&totals);
    let told = |count: fn(&Usage) -> u64| usages.iter().map(count).sum::<u64>();
    assert_eq!(counted.micro_usd, told(|usage| PRICE.cost_micro_usd(usage)));
    assert_eq!(counted.input, told(Usage::prompt_tokens));
    assert_eq!(counted.output, told(|usage| usage.output));
    assert_eq!(counted.requests, usages.len() as u64);

    // Whoever runs this at midnight has two days' caps.
    let last = totals.last().unwrap();
    let days = u64::try_from(last.day - totals[0].day + 1).unwrap();
    let dearest = usages.iter().map(|usage| PRICE.cost_micro_usd(usage)).max().unwrap_or(0);
    let most = days * CAP + at_once * dearest;
    assert!(counted.micro_usd <= most, "{} of {CAP}, {dearest} for one call", counted.micro_usd);

    let limit = Limit { unit: Unit::MicroUsd, window: Window::Day, most: CAP };
    let draws = vec![PoolDraw { pool: "all".into(), limits: vec![limit] }];
    let levels = ledger.limit_levels(draws, i64::from(last.day) * DAY_MS).await.unwrap();
    assert_eq!((levels[0].held, levels[0].used), (0, last.amount.micro_usd));
}

fn sum(totals: &[Total]) -> Amount {
    totals.iter().fold(Amount::default(), |sum, Total { amount, .. }| Amount {
        requests: sum.requests + amount.requests,
        input: sum.input + amount.input,
        output: sum.output + amount.output,
        micro_usd: sum.micro_usd + amount.micro_usd,
        cached: sum.cached + amount.cached,
        cache_write: sum.cache_write + amount.cache_write,
    })
}

fn dollars(micro_usd: u64) -> String {
    format!("{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000)
}

/// A home with one priced model and a cap.
pub(crate) fn capped(server: Server) -> World {
    let world = World::with(server);
    let (cap, Price { input, output, cache_read, .. }) = (dollars(CAP), PRICE);
    let (input, output, cache_read) = (dollars(input), dollars(output), dollars(cache_read));
    world.configure(&format!(
        "[router]\nstrategy = \"single\"\nverify = \"off\"\ndiscovery_interval = \"0s\"\n\
         [router.caps]\nday = {cap}\n\
         [[arms]]\nid = \"test/m1\"\ninput_price = {input}\noutput_price = {output}\n\
         cache_read_price = {cache_read}\ncontext = 200_000\n"
    ));
    world.write(FILE, &lines());
    world
}

fn is_refusal(run: &Run) -> bool {
    run.code == Some(5) && run.err.contains(&format!("the day cap of ${:.2}", CAP as f64 / 1e6))
}

#[tokio::test]
async fn ten_programs_at_once_pass_a_cap_by_no_more_than_their_calls_in_flight() {
    let (server, bill) = vendor();
    let world = capped(server);
    let started: Vec<_> =
        (0..PROGRAMS).map(|_| world.command(&["read it line by line"]).spawn().unwrap()).collect();
    let runs = futures_util::future::join_all(started.into_iter().map(finish)).await;
    for run in &runs {
        assert!(run.code == Some(0) || is_refusal(run), "{run:?}");
    }
    assert!(runs.iter().any(is_refusal), "the cap was never reached");

    // Whoever comes later is refused before anything is asked.
    let asked = world.server.requests().len();
    let late = world.run(&["read it line by line"]).await;
    assert!(is_refusal(&late), "{late:?}");
    assert_eq!(world.server.requests().len(), asked);

    let path = world.home.path().join(".local/state/gnoma/ledger.db");
    let OpenedLedger { ledger, set_aside } = SqliteLedger::open(&path).unwrap();
    assert_eq!(set_aside, None);
    check(&ledger, &bill, PROGRAMS as u64).await;
}

#[tokio::test]
async fn ten_elfs_at_once_pass_a_cap_by_no_more_than_their_calls_in_flight() {
    let (bill, begun) = (Bill::default(), AtomicBool::new(false));
    let kept = Arc::clone(&bill);
    let server = Server::start(move |request| {
        let is_chat = request.path().ends_with("/chat/completions");
        let is_elf = || request.json().to_string().contains("You are an elf");
        if !is_chat || is_elf() || begun.swap(true, Ordering::Relaxed) {
            return answer(request, &kept);
        }
        let tasks: Vec<_> =
            (0..PROGRAMS).map(|_| json!({"task": "read it line by line"})).collect();
        let usage = Usage { input: 1_237, output: 57, ..Usage::default() };
        kept.lock().unwrap().push(usage);
        let spawns = json!({ "tasks": tasks }).to_string();
        let script = Script::text([""; 0]).with_call("call_a", "elf_spawn", spawns);
        Wire::OpenAi.stream_reply(&script.with_usage(usage))
    });
    let world = capped(server.unwrap());
    let run = world.run(&["--output-format", "json", "have ten read it"]).await;
    assert!(run.code == Some(0) || run.code == Some(5), "{run:?}");
    assert!(bill.lock().unwrap().len() > PROGRAMS, "they were all asked");

    // JSON output and `router stats` say the same as the ledger.
    let told: u64 = bill.lock().unwrap().iter().map(|usage| PRICE.cost_micro_usd(usage)).sum();
    let result: serde_json::Value = serde_json::from_str(run.out.trim()).unwrap();
    let total_usd = result["total_cost_usd"].as_f64().unwrap();
    assert_eq!((total_usd * 1e6).round() as u64, told, "{result}");
    let stats = world.json(&["router", "stats", "--json"]).await;
    let spent = stats["spent"].as_array().unwrap().iter();
    let spent: u64 = spent.map(|total| total["amount"]["micro_usd"].as_u64().unwrap()).sum();
    assert_eq!(spent, told, "{stats}");
    assert_eq!(stats["unpriced"], json!([]), "{stats}");
    let path = world.home.path().join(".local/state/gnoma/ledger.db");
    let OpenedLedger { ledger, .. } = SqliteLedger::open(&path).unwrap();
    check(&ledger, &bill, PROGRAMS as u64).await;
}

/// A ledger of which nothing is left: caps stay shut until a person says that they may begin at nothing.
#[tokio::test]
async fn lost_spending_ledger_blocks_caps_until_the_loss_is_accepted() {
    let (server, _bill) = vendor();
    let world = capped(server);
    let turn = async || world.run(&["read it line by line"]).await;
    let first = turn().await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let pools = world.json(&["router", "pools", "--json"]).await;
    assert_eq!(pools["money_missing"], false, "{pools}");
    let ledger = world.home.path().join(".local/state/gnoma/ledger.db");
    std::fs::write(&ledger, "no database at all\n".repeat(900)).unwrap();
    drop(std::fs::remove_file(ledger.with_extension("db-wal")));

    let asked = world.server.requests().len();
    let refused = turn().await;
    assert!(refused.code != Some(0) && refused.err.contains("--accept-loss"), "{refused:?}");
    assert_eq!(world.server.requests().len(), asked);
    let pools = world.run(&["router", "pools"]).await;
    assert!(pools.out.contains("gnoma router pools --accept-loss"), "{pools:?}");
    let pools = world.json(&["router", "pools", "--json"]).await;
    assert_eq!(pools["money_missing"], true, "{pools}");
    let accepted = world.run(&["router", "pools", "--accept-loss"]).await;
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let pools = world.json(&["router", "pools", "--json"]).await;
    assert_eq!(pools["money_missing"], false, "{pools}");
    let after = turn().await;
    assert_eq!(after.code, Some(0), "{after:?}");
    let again = world.run(&["router", "pools", "--accept-loss"]).await;
    assert!(again.err.contains("nothing is missing"), "{again:?}");
}
