//! What `gnoma usage` shows is what the vendor billed, in every format and grouping.

use gnoma_core::Usage;
use serde_json::Value;

use crate::{
    spending::{Bill, PRICE, capped, vendor},
    support::World,
};

/// Sessions that are run.
const SESSIONS: u64 = 3;

/// A branch whose name is a formula for spreadsheets.
const BRANCH: &str = "=1+1-branch-of-a-stranger";

async fn world_with_usage() -> (World, Bill) {
    let (server, bill) = vendor();
    let world = capped(server);
    std::fs::create_dir(world.project.path().join(".git")).unwrap();
    world.write(".git/HEAD", &format!("ref: refs/heads/{BRANCH}\n"));
    for _ in 0..SESSIONS {
        world.run(&["read it line by line"]).await;
    }
    (world, bill)
}

fn billed(bill: &Bill, count: fn(&Usage) -> u64) -> u64 {
    bill.lock().unwrap().iter().map(count).sum()
}

fn check_sums(sums: &Value, bill: &Bill) {
    assert_eq!(sums["micro_usd"], billed(bill, |usage| PRICE.of(usage)), "{sums}");
    assert_eq!(sums["calls"], bill.lock().unwrap().len(), "{sums}");
    assert_eq!(sums["input_tokens"], billed(bill, Usage::prompt), "{sums}");
    assert_eq!(sums["cached_tokens"], billed(bill, |usage| usage.cache_read), "{sums}");
    assert_eq!(sums["output_tokens"], billed(bill, |usage| usage.output), "{sums}");
    assert_eq!(sums["unpriced_calls"], 0, "{sums}");
    assert_eq!(sums["unrecorded_calls"], 0, "{sums}");
}

#[tokio::test]
async fn usage_equals_what_the_vendor_billed_in_every_grouping() {
    let (world, bill) = world_with_usage().await;
    let by_model = world.json(&["usage", "--by", "model", "--json"]).await;
    check_sums(&by_model["total"], &bill);
    check_sums(&by_model["rows"][0]["sums"], &bill);
    assert_eq!(by_model["rows"][0]["name"], "test/m1");
    assert_eq!(by_model["total"]["turns"], SESSIONS);
    assert_eq!(by_model["caps"][0]["period"], "day");
    for by in ["day", "week", "month", "project", "branch", "session", "elf", "provider", "task"] {
        let report = world.json(&["usage", "--since", "all", "--by", by, "--json"]).await;
        check_sums(&report["total"], &bill);
        let rows = report["rows"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| row["sums"]["micro_usd"].as_u64().unwrap()).sum();
        assert_eq!(sum, billed(&bill, |usage| PRICE.of(usage)), "{by}: {report}");
        let expected = if by == "session" { SESSIONS as usize } else { 1 };
        assert_eq!(rows.len(), expected, "{by}: {report}");
    }
    let nested = world.json(&["usage", "--by", "branch,session", "--json"]).await;
    assert_eq!(nested["rows"][0]["name"], BRANCH);
    assert_eq!(nested["rows"][0]["rows"].as_array().unwrap().len(), SESSIONS as usize);
}

#[tokio::test]
async fn usage_is_shown_written_and_forgotten() {
    let (world, bill) = world_with_usage().await;
    let cost = billed(&bill, |usage| PRICE.of(usage));
    let exact = format!("{}.{:06}", cost / 1_000_000, cost % 1_000_000);
    let text = world.run(&["usage", "--since", "7d", "--by", "model"]).await;
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(text.out.starts_with("Usage of the last 7 days by model\n"), "{}", text.out);
    assert!(text.out.contains(&format!("${exact}")), "{exact}: {}", text.out);
    assert!(text.out.contains("day cap of $0.4000:"), "{}", text.out);

    let csv = world.run(&["usage", "--by", "branch", "--csv"]).await.out;
    assert!(
        csv.contains(&format!("\r\n'{BRANCH},")) && csv.ends_with(&format!(",{exact}\r\n")),
        "{csv}"
    );

    let wrote = world.run(&["usage", "--by", "day", "--html", "usage.html"]).await;
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    let page = world.read("usage.html");
    assert!(page.contains(&format!("<td>{exact}</td>")) && !page.contains("<script"), "{page}");
    let again = world.run(&["usage", "--by", "day", "--html", "usage.html"]).await;
    assert!(again.code == Some(2) && again.err.contains("already exists"), "{again:?}");

    let nobody = world.run(&["usage", "forget"]).await;
    assert!(nobody.code == Some(2) && nobody.err.contains("add --yes"), "{nobody:?}");
    let forgotten = world.json(&["usage", "forget", "--yes", "--json"]).await;
    assert_eq!(forgotten["calls"], bill.lock().unwrap().len());
    let after = world.json(&["usage", "--by", "session", "--json"]).await;
    assert_eq!(after["total"]["micro_usd"], cost);
    assert_eq!(after["rows"][0]["name"], Value::Null);
    let file = world.home.path().join(".local/state/gnoma/ledger.db");
    for file in [file.with_extension("db-wal"), file] {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let is_branch = |part: &[u8]| part == BRANCH.as_bytes();
        assert!(!bytes.windows(BRANCH.len()).any(is_branch), "the branch is in {file:?}");
    }
}

#[tokio::test]
async fn usage_says_what_it_cannot_do_and_leaves_sentences_alone() {
    let (server, _bill) = vendor();
    let world = capped(server);
    let nothing = world.run(&["usage"]).await;
    assert_eq!(
        (nothing.code, nothing.out.lines().next()),
        (Some(0), Some("no calls in the last 30 days"))
    );
    assert!(
        !world.home.path().join(".local/state/gnoma/ledger.db").exists(),
        "looking makes no file"
    );
    let tool = world.run(&["usage", "--by", "tool"]).await;
    assert!(
        tool.code == Some(2) && tool.err.contains("does not record for which tool"),
        "{tool:?}"
    );
    let since = world.run(&["usage", "--since", "yesterday"]).await;
    assert!(since.code == Some(2) && since.err.contains("24h, 7d"), "{since:?}");
    world.run(&["usage", "of", "tokio", "select"]).await;
    let asked = world.server.requests();
    assert!(asked[0].json().to_string().contains("usage of tokio select"), "no prompt was sent");
}
