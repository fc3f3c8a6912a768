//! What `gnoma usage` shows is what the vendor billed, in every format and grouping.

use gnoma_core::{StopReason, Usage};
use gnoma_testkit::{Reply, Script, Wire};
use serde_json::Value;

use crate::{
    spending::{Bill, PRICE, capped, vendor},
    support::{World, calls, says},
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
    assert_eq!(sums["micro_usd"], billed(bill, |usage| PRICE.cost_micro_usd(usage)), "{sums}");
    assert_eq!(sums["calls"], bill.lock().unwrap().len(), "{sums}");
    assert_eq!(sums["input_tokens"], billed(bill, Usage::prompt_tokens), "{sums}");
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
    let savings = &by_model["savings"];
    assert!(savings["cache_micro_usd"].is_i64(), "{savings}");
    assert_eq!(
        (&savings["dearest_model"], &savings["checks_micro_usd"]),
        (&Value::Null, &0.into())
    );
    assert_eq!(by_model["caps"][0]["period"], "day");
    let single = ["day", "week", "month", "project", "branch", "elf", "provider", "task"];
    let work = ["account", "agent", "skill", "mcp"];
    for by in single.into_iter().chain(["session"]).chain(work) {
        let report = world.json(&["usage", "--since", "all", "--by", by, "--json"]).await;
        check_sums(&report["total"], &bill);
        let rows = report["rows"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| row["sums"]["micro_usd"].as_u64().unwrap()).sum();
        assert_eq!(sum, billed(&bill, |usage| PRICE.cost_micro_usd(usage)), "{by}: {report}");
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
    let cost = billed(&bill, |usage| PRICE.cost_micro_usd(usage));
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
    let session = format!("session:{}", world.sessions().await[0]);
    assert!(!is_in_ledger(&world, BRANCH), "the branch is still there");
    assert!(is_in_ledger(&world, &session), "limits of sessions count on, as docs/usage.md says");
}

fn is_in_ledger(world: &World, text: &str) -> bool {
    let file = world.home.path().join(".local/state/gnoma/ledger.db");
    [file.with_extension("db-wal"), file].iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn unknown_prices_are_never_shown_as_zero() {
    let usage = Usage { input: 900, output: 7, ..Usage::default() };
    let answer = Script::text(["hello"]).with_stop(StopReason::EndTurn).with_usage(usage);
    // The failed call took nothing, which is known.
    let world = World::new([Reply::text(503, "busy"), Wire::OpenAi.stream_reply(&answer)]);
    assert_eq!(world.run(&["hello"]).await.code, Some(0));
    let json = world.json(&["usage", "--by", "model", "--json"]).await;
    for sums in [&json["total"], &json["rows"][0]["sums"]] {
        assert_eq!(sums["micro_usd"], Value::Null, "{json}");
        assert_eq!(sums["input_tokens"], 900, "{json}");
        assert_eq!(sums["unpriced_calls"], 1, "{json}");
    }
    let text = world.run(&["usage", "--by", "model"]).await.out;
    assert!(text.contains("unknown") && !text.contains('$'), "{text}");
    assert!(text.ends_with("1 call without a known price: the cost is unknown\n"), "{text}");
    let csv = world.run(&["usage", "--by", "model", "--csv"]).await.out;
    assert!(csv.ends_with(",\r\n"), "{csv}");
    world.run(&["usage", "--by", "model", "--html", "usage.html"]).await;
    let page = world.read("usage.html");
    assert!(page.contains("<td>unknown</td>") && !page.contains("0.000000"), "{page}");
}

#[tokio::test]
async fn incognito_shows_the_usage_of_other_sessions() {
    let (world, bill) = world_with_usage().await;
    let report = world.json(&["--incognito", "usage", "--json"]).await;
    check_sums(&report["total"], &bill);
    let forgotten = world.json(&["--incognito", "usage", "forget", "--yes", "--json"]).await;
    assert_eq!(forgotten["calls"], bill.lock().unwrap().len());
    assert!(!is_in_ledger(&world, BRANCH), "the branch is still there");
}

#[tokio::test]
async fn usage_explains_invalid_requests_and_sentences_stay_prompts() {
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
    let tool = world.run(&["usage", "--by", "model,tool"]).await;
    assert!(
        tool.code == Some(2) && tool.err.contains("does not record for which tool"),
        "{tool:?}"
    );
    for time in ["yesterday", "-5d"] {
        let since = world.run(&["usage", "--since", time]).await;
        assert!(since.code == Some(2) && since.err.contains("24h, 7d"), "{since:?}");
    }
    world.run(&["usage", "of", "tokio", "select"]).await;
    let asked = world.server.requests();
    assert!(asked[0].json().to_string().contains("usage of tokio select"), "no prompt was sent");
}

#[tokio::test]
async fn secrets_and_names_that_git_refuses_are_not_recorded_as_branches() {
    let secret = "ghp_q7Zk3VdYt9LmWc2RxH8sJb4NfPa6GeUo1KiT";
    let world = World::new([says("one"), says("two")]);
    std::fs::create_dir(world.project.path().join(".git")).unwrap();
    for name in [&format!("fix-{secret}"), ".invalid"] {
        world.write(".git/HEAD", &format!("ref: refs/heads/{name}\n"));
        assert_eq!(world.run(&["hello"]).await.code, Some(0));
        assert!(!is_in_ledger(&world, secret) && !is_in_ledger(&world, ".invalid"), "{name}");
    }
    let report = world.json(&["usage", "--by", "branch", "--json"]).await;
    let names: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert!(names.len() == 2 && names[1].is_null(), "{report}");
    assert!(names[0].as_str().unwrap().starts_with("fix-"), "{report}");
}

#[tokio::test]
async fn usage_says_what_another_model_would_have_cost() {
    let (world, bill) = world_with_usage().await;
    let same = world.json(&["usage", "--as", "test/m1", "--json"]).await;
    let as_it_was = PRICE.cost_micro_usd(&Usage {
        input: billed(&bill, |usage| usage.input),
        output: billed(&bill, |usage| usage.output),
        cache_read: billed(&bill, |usage| usage.cache_read),
        ..Usage::default()
    });
    assert_eq!(same["as"]["least_micro_usd"], as_it_was, "{same}");
    assert_eq!(same["as"]["same_tokenizer"], true);
    assert!(same["as"]["most_micro_usd"].as_u64() > Some(as_it_was), "{same}");
    let other = world.run(&["usage", "--as", "anthropic/claude-opus-4-7"]).await;
    assert!(other.out.contains("as anthropic/claude-opus-4-7: $"), "{other:?}");
    assert!(other.out.contains("its tokenizer may count"), "{other:?}");
    let unknown = world.run(&["usage", "--as", "test/nothing"]).await;
    let sentence = "the price of `test/nothing` is not known";
    assert!(unknown.code == Some(2) && unknown.err.contains(sentence), "{unknown:?}");
}

#[tokio::test]
async fn usage_by_tool_counts_calls_failures_and_denials_of_saved_sessions() {
    let read = |name: &str| calls("fs_read", &serde_json::json!({ "path": name }).to_string());
    let write = calls("fs_write", r#"{"path":"b.txt","content":"x"}"#);
    let world = World::new([read("a.txt"), read("none.txt"), write, says("done")]);
    world.write("a.txt", "text");
    let none = world.run(&["usage", "--by", "tool"]).await;
    assert!(none.out.contains("no tool calls in the saved sessions"), "{none:?}");
    world.run(&["--permission", "plan", "read and write"]).await;
    for _ in 0..2 {
        let report = world.json(&["usage", "--by", "tool", "--json"]).await;
        let of = |name: &str| {
            let all = report["tools"].as_array().unwrap();
            all.iter().find(|tool| tool["tool"] == name).unwrap_or_else(|| panic!("{report}"))
        };
        assert_eq!(report["rules"], serde_json::json!([]), "nothing was approved");
        let reads = of("fs.read");
        assert_eq!((&reads["calls"], &reads["failed"]), (&2.into(), &1.into()), "{report}");
        assert!(reads["mean_ms"].is_u64() && reads["denied"] == 0, "{report}");
        let writes = of("fs.write");
        assert_eq!((&writes["calls"], &writes["denied"]), (&1.into(), &1.into()), "{report}");
    }
    let text = world.run(&["usage", "--by", "tool", "--since", "7d"]).await.out;
    assert!(
        text.starts_with("calls  failed  asked  approved  denied  tried  kept  time"),
        "{text}"
    );
}

#[tokio::test]
async fn usage_is_shown_in_the_currency_of_the_person_and_by_model_with_failovers() {
    let (world, bill) = world_with_usage().await;
    let file = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[usage]\ncurrency = \"EUR\"\n")).unwrap();
    let without = world.run(&["usage", "--by", "model"]).await;
    assert!(without.err.contains("set `router.exchange.EUR`"), "{without:?}");
    assert!(without.out.contains('$'), "{without:?}");
    std::fs::write(
        &file,
        format!("{text}\n[usage]\ncurrency = \"EUR\"\n[router.exchange]\neur = 2.0\n"),
    )
    .unwrap();
    let shown = world.run(&["usage", "--by", "model"]).await;
    let half = billed(&bill, |usage| PRICE.cost_micro_usd(usage)) as f64 / 2e6;
    assert!(shown.out.contains(&format!("{half:.6} EUR")), "{shown:?}");
    assert!(shown.out.contains("1 EUR = $2"), "{shown:?}");
    let paged = ["usage", "--by", "model", "--as", "test/m1", "--html", "usage.html"];
    assert_eq!(world.run(&paged).await.code, Some(0));
    let page = world.read("usage.html");
    assert!(page.contains("instead of $") && !page.contains("EUR"), "{page}");
    let json = world.json(&["usage", "--by", "model", "--json"]).await;
    assert_eq!(json["currency"]["code"], "EUR", "{json}");
    assert_eq!(json["total"]["micro_usd"], billed(&bill, |usage| PRICE.cost_micro_usd(usage)));
    assert_eq!(json["total"]["failovers"], 0, "{json}");
    assert!(json["quality"].is_array(), "{json}");
}

#[tokio::test]
async fn own_statistics_are_counted_only_if_the_person_wants_that_and_never_in_incognito() {
    let read = || calls("fs_read", r#"{"path":"a.txt"}"#);
    let world = World::new([says("one"), read(), says("two"), says("three"), says("four")]);
    world.write("a.txt", "text");
    std::fs::create_dir(world.project.path().join(".gnoma")).unwrap();
    world.write(".gnoma/config.toml", "[analytics]\nlocal = true\n");
    assert_eq!(world.run(&["trust", "--yes"]).await.code, Some(0));
    world.run(&["hello"]).await;
    let file = world.home.path().join(".local/state/gnoma/analytics.json");
    assert!(!file.exists(), "a project cannot turn it on");
    let off = world.run(&["analytics"]).await;
    assert!(off.code == Some(0) && off.err.contains("nothing is counted"), "{off:?}");

    assert_eq!(world.run(&["config", "set", "analytics.local", "true"]).await.code, Some(0));
    world.run(&["read it"]).await;
    let counts = world.json(&["analytics", "show", "--json"]).await;
    assert_eq!(counts["counts"]["turns.complete"], 1, "{counts}");
    assert_eq!(counts["counts"]["tools.fs.read.ok"], 1, "{counts}");
    world.run(&["--incognito", "hello"]).await;
    assert_eq!(world.json(&["analytics", "show", "--json"]).await, counts);
    world.run(&["again"]).await;
    let text = world.run(&["analytics"]).await.out;
    assert!(
        text.contains("2      turns.complete\n") && text.contains("nothing sends it"),
        "{text}"
    );
    assert_eq!(world.run(&["analytics", "clear"]).await.out, "removed what was counted\n");
    assert!(!file.exists());
}

#[tokio::test]
async fn report_says_that_a_damaged_ledger_lost_spending_until_that_is_accepted() {
    let (world, _bill) = world_with_usage().await;
    let file = world.home.path().join(".local/state/gnoma/ledger.db");
    std::fs::remove_file(file.with_extension("db-wal")).unwrap();
    std::fs::write(&file, [0; 8192]).unwrap();
    for _ in 0..2 {
        let text = world.run(&["usage"]).await;
        assert_eq!(text.code, Some(0), "{text:?}");
        assert!(text.out.contains("not all spending could be recovered"), "{text:?}");
        assert_eq!(world.json(&["usage", "--json"]).await["incomplete"], true);
    }
    let csv = world.run(&["usage", "--csv"]).await;
    assert!(csv.err.contains("warning: the ledger was damaged"), "{csv:?}");
    assert_eq!(world.run(&["usage", "--html", "usage.html"]).await.code, Some(0));
    assert!(world.read("usage.html").contains("not all spending could be recovered"));
    assert_eq!(world.run(&["router", "pools", "--accept-loss"]).await.code, Some(0));
    assert_eq!(world.json(&["usage", "--json"]).await["incomplete"], false);

    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    let pipe = world.run(&["usage"]).await;
    assert!(pipe.code == Some(1) && pipe.err.contains("move it elsewhere"), "{pipe:?}");
}
