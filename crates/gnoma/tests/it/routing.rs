//! Which model a turn goes to, what is learnt from it, and what may be spent.

use std::path::PathBuf;

use gnoma_core::{StopReason, Usage};
use gnoma_testkit::{Reply, Script, Wire};
use serde_json::Value;

use crate::support::{Run, World, says};

/// Two priced arms of two providers on the same server, and `more`.
fn two(world: &World, more: &str) {
    two_by("single", world, more);
}

/// The same, used in that way.
fn two_by(strategy: &str, world: &World, more: &str) {
    let url = world.server.url();
    let text = format!(
        "[provider.endpoints]\none = \"{url}/v1\"\ntwo = \"{url}/v1\"\n\
         [provider.models]\none = [\"m1\"]\ntwo = [\"m2\"]\n\
         [router]\nstrategy = \"{strategy}\"\nverify = \"off\"\ndiscovery_interval = \"0s\"\n\
         [[arms]]\nid = \"one/m1\"\ninput_price = 1\noutput_price = 4\ncontext = 100_000\n\
         [[arms]]\nid = \"two/m2\"\ninput_price = 3\noutput_price = 15\ncontext = 100_000\n{more}"
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
}

fn state(world: &World) -> PathBuf {
    world.home.path().join(".local/state/gnoma")
}

/// The events of that name.
fn events(run: &Run, name: &str) -> Vec<Value> {
    let lines = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|event| event["type"] == name).collect()
}

#[tokio::test]
async fn every_provider_is_an_arm_and_route_events_explain_the_choice() {
    let world = World::new([says("done")]);
    two(&world, "");
    let run = world.run(&["--output-format", "stream-json", "explain this"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let routes = events(&run, "route");
    assert_eq!(routes.len(), 1, "{run:?}");
    let text = routes[0].to_string();
    assert!(text.contains("one/m1: right") && text.contains("two/m2: right"), "{text}");
    assert_eq!(world.server.requests().len(), 1, "nothing else is asked");
}

#[tokio::test]
async fn ensemble_result_names_the_model_whose_answer_is_used() {
    let world = World::new([says("a"), says("b"), says("{\"best\": 2}")]);
    two_by("ensemble", &world, "");
    let run = world.run(&["--output-format", "stream-json", "what is a monad?"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let conferred = events(&run, "conferred");
    assert_eq!(conferred.len(), 1, "{run:?}");
    let author = &conferred[0]["author"];
    assert_eq!(conferred[0]["members"].as_array().map(Vec::len), Some(2));
    assert_eq!(conferred[0]["members"][1], *author, "the second was picked");
    assert_eq!(events(&run, "result")[0]["model"], *author);
    let said = events(&run, "assistant");
    assert_eq!(
        author.as_str().unwrap().split('/').next_back(),
        said[0]["message"]["model"].as_str()
    );
}

#[tokio::test]
async fn router_rule_forbids_a_model_even_by_name() {
    let world = World::new([says("a"), says("b")]);
    two(&world, "[[router.rules]]\nname = \"no\"\nforbid = [\"one/*\"]\n");
    for _ in 0..2 {
        assert_eq!(world.run(&["explain this"]).await.code, Some(0));
    }
    for request in world.server.requests() {
        assert_eq!(request.json()["model"], "m2");
    }
    // Not even by name.
    let run = world.run(&["--provider", "one", "explain this"]).await;
    assert_eq!(run.code, Some(7), "{run:?}");
    assert!(run.err.contains("rule `no`"), "{run:?}");
    assert!(run.err.contains("`gnoma route \"TASK\"` shows"), "{run:?}");
}

#[tokio::test]
async fn model_named_by_option_or_environment_is_used() {
    let world = World::new([says("a"), says("b"), says("c")]);
    two(&world, "");
    world.run(&["--model", "two/unheard-of", "explain this"]).await;
    world.run(&["--provider", "two", "explain this"]).await;
    let mut command = world.command(&["explain this"]);
    command.env("GNOMA_MODEL", "m9").env("GNOMA_PROVIDER", "one");
    crate::support::finish(command.spawn().unwrap()).await;
    let asked: Vec<_> =
        world.server.requests().iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(asked, ["unheard-of", "m2", "m9"]);
}

#[tokio::test]
async fn router_off_uses_only_the_configured_model() {
    let world = World::new([says("a")]);
    let more = "[router]\nmode = \"off\"\n[provider.models]\ntwo = [\"m2\"]\n";
    world.configure(&format!("two = \"{}/v1\"\n{more}", world.server.url()));
    let run = world.run(&["--output-format", "stream-json", "explain this"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(events(&run, "route").is_empty());
    assert_eq!(world.server.requests()[0].json()["model"], "m1");
}

#[tokio::test]
async fn spending_cap_without_room_ends_the_turn_and_is_named() {
    let world = World::new([says("never")]);
    two(&world, "[router.caps]\nday = 0.000001\n");
    let run = world.run(&["explain this"]).await;
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.err.contains("day cap"), "{run:?}");
    assert!(world.server.requests().is_empty());
    let pools = world.run(&["router", "pools"]).await;
    assert!(pools.out.contains("a day"), "{pools:?}");
}

#[tokio::test]
async fn rate_limit_headers_override_counted_usage() {
    let told = |reply: Reply| {
        let reply = reply.with_header("x-ratelimit-limit-tokens", "30000");
        reply.with_header("x-ratelimit-remaining-tokens", "29000")
    };
    let usage = Usage { input: 40_000, output: 10, ..Usage::default() };
    let first = Script::text([""; 0]).with_call("call_a", "fs_ls", "{\"path\":\".\"}");
    let first = Wire::OpenAi.stream_reply(&first.with_usage(usage).with_stop(StopReason::ToolUse));
    let world = World::new([told(first), told(says("done"))]);
    two(&world, "");
    let run = world.run(&["--provider", "one", "list the files here"]).await;
    assert_eq!((run.code, world.server.requests().len()), (Some(0), 2), "{run:?}");
    assert!(!run.err.contains("limit"), "{run:?}");
}

#[tokio::test]
async fn router_max_cost_rule_leaves_cheap_and_free_models() {
    let world = World::new([]);
    let rule = "[[router.rules]]\nname = \"small\"\ncomplexity = \"0-20\"\nmax_cost = ";
    two(&world, &format!("{rule}0.02\n"));
    let question = &["route", "what is a mutex?"];
    let run = world.run(question).await;
    assert!(run.code == Some(0) && run.out.contains("one/m1: right"), "{run:?}");
    let free = "[[arms]]\nid = \"two/m3\"\ninput_price = 0\noutput_price = 0\n";
    two(&world, &format!("{free}{rule}0\n"));
    let config = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[\"m2\"]", "[\"m2\", \"m3\"]")).unwrap();
    let run = world.run(question).await;
    assert!(run.code == Some(0) && run.out.contains("run two/m3"), "{run:?}");
    assert!(run.out.contains("one/m1: is expected to cost"), "{run:?}");
}

#[tokio::test]
async fn router_learning_is_saved_for_the_next_process() {
    let world = World::new([says("done")]);
    two(&world, "");
    let before = world.run(&["router", "stats"]).await;
    assert!(before.out.contains("nothing learned yet"), "{before:?}");
    assert!(!state(&world).join("ledger.db").exists(), "looking makes no file");
    assert_eq!(world.run(&["explain this"]).await.code, Some(0));
    let stats = world.json(&["router", "stats", "--json"]).await;
    let believed = stats["believed"].as_array().unwrap();
    assert_eq!(believed.len(), 1, "{stats}");
    assert_eq!((&believed[0]["kind"], &believed[0]["tasks"]), (&"explain".into(), &1.into()));
    let spent = &stats["spent"][0]["amount"];
    assert_eq!(spent["requests"], 1, "{stats}");
    assert_eq!(stats["had_one_done_all"].as_array().unwrap().len(), 2, "{stats}");
    let text = world.run(&["router", "stats"]).await.out;
    assert!(text.contains("explain") && text.contains("with a single model"), "{text}");

    let exported = world.run(&["router", "export"]).await.out;
    assert_eq!(world.run(&["router", "reset"]).await.code, Some(2), "nobody is there to ask");
    assert_eq!(world.run(&["router", "reset", "--yes"]).await.code, Some(0));
    let stats = world.json(&["router", "stats", "--json"]).await;
    assert!(stats["believed"].as_array().unwrap().is_empty(), "{stats}");
    assert_eq!(world.pipe(&["router", "import", "-"], &exported).await.code, Some(0));
    assert_eq!(world.run(&["router", "export"]).await.out, exported);
}

#[tokio::test]
async fn rewind_in_another_process_lowers_the_learned_quality_once() {
    let world = World::new([says("done")]);
    two(&world, "");
    assert_eq!(world.run(&["explain this"]).await.code, Some(0));
    let quality = async || {
        let stats = world.json(&["router", "stats", "--json"]).await;
        assert_eq!(stats["believed"][0]["tasks"], 1, "it is the same task: {stats}");
        stats["believed"][0]["quality"].as_f64().unwrap()
    };
    let before = quality().await;
    let run = world.run(&["rewind", "1", "--conversation"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(quality().await < before);
}

#[tokio::test]
async fn damaged_router_state_is_set_aside_and_reported() {
    let world = World::new([says("done")]);
    two(&world, "");
    std::fs::create_dir_all(state(&world)).unwrap();
    std::fs::write(state(&world).join("router.json"), "{\"gnoma_router\":1,").unwrap();
    let run = world.run(&["explain this"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("is damaged") && run.err.contains("learning starts over"), "{run:?}");
    let aside = std::fs::read_to_string(state(&world).join("router.json.damaged-1")).unwrap();
    assert_eq!(aside, "{\"gnoma_router\":1,");
    let stats = world.json(&["router", "stats", "--json"]).await;
    assert_eq!(stats["believed"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn incognito_saves_no_router_learning_or_spending() {
    let world = World::new([says("done")]);
    two(&world, "[router.caps]\nday = 5\n");
    let run = world.run(&["--incognito", "explain this"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!state(&world).exists(), "{:?}", std::fs::read_dir(state(&world)).map(Iterator::count));
}

#[tokio::test]
async fn quality_scores_of_the_older_gnoma_are_imported_once() {
    let world = World::new([says("a"), says("b")]);
    two(&world, "");
    let scores = r#"{"scores": {"one/m1": {"Debug": {"Value": 0.9, "Count": 20}, "Poetry": {"Value": 1, "Count": 1}}}}"#;
    std::fs::write(world.home.path().join(".config/gnoma/quality.json"), scores).unwrap();
    let run = world.run(&["explain this"]).await;
    assert!(
        run.err.contains("imported 1 scores") && run.err.contains("skipped 1 that name"),
        "{run:?}"
    );
    assert!(!world.run(&["explain this"]).await.err.contains("imported"));
    let again = world.pipe(&["router", "import", "-"], scores).await;
    assert_eq!(again.code, Some(2), "{again:?}");
}

#[tokio::test]
async fn route_command_explains_a_choice_without_any_request() {
    let world = World::new([]);
    two(&world, "[[router.rules]]\nname = \"no\"\ntask = [\"review\"]\nforbid = [\"one/*\"]\n");
    let run = world.run(&["route", "--seed", "7", "why does the parser crash?"]).await;
    insta::assert_snapshot!(run.out, @"
    debug, difficulty 52 of 100, judged by wording · single
    run two/m2
    two/m2: right 65%, $0.765, worth $7.07, value of learning: $0.06
    one/m1: right 56%, $0.422, worth $6.24, value of learning: $0.08
    ");
    let review = world.run(&["route", "--seed", "7", "review the parser"]).await;
    let place = "one/m1: is forbidden by rule `no` (~/.config/gnoma/config.toml:";
    assert!(review.out.contains(place), "{review:?}");
    let json = world.json(&["route", "--json", "review the parser"]).await;
    assert_eq!(
        (&json["routing"]["kind"], &json["routing"]["arms"][0]["model"]),
        (&"review".into(), &"m2".into())
    );
    assert!(world.server.requests().is_empty());
    assert!(!state(&world).join("router.json").exists());
}

#[tokio::test]
async fn router_arms_lists_unavailable_models_with_the_reason() {
    let world = World::new([]);
    two(&world, "[[arms]]\nid = \"openai/gpt-x\"\n[[arms]]\nid = \"one/off\"\nenabled = false\n");
    let run = world.run(&["router", "arms"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("one/m1") && run.out.contains("3.00, 15.00"), "{run:?}");
    assert!(run.out.contains("openai/gpt-x: has no key: export OPENAI_API_KEY"), "{run:?}");
    assert!(run.out.contains("one/off: is turned off"), "{run:?}");
    let json = world.json(&["router", "arms", "--json"]).await;
    assert!(json["arms"].as_array().unwrap().len() >= 2);
}

#[tokio::test]
async fn contradictory_router_rules_are_reported_with_their_lines() {
    let world = World::new([says("a")]);
    two(
        &world,
        "[[router.rules]]\nname = \"only\"\npin = \"one/*\"\n\
         [[router.rules]]\nname = \"never\"\nforbid = [\"one/*\"]\n",
    );
    let run = world.run(&["explain this"]).await;
    let warning = run.err.lines().find(|line| line.contains("rule `only`")).unwrap();
    assert!(warning.contains("config.toml:22") && warning.contains("config.toml:25"), "{warning}");
    let route = world.run(&["route", "explain this"]).await;
    let both = format!("{}{}", route.err, route.out);
    assert_eq!(both.matches("the ban wins").count(), 1, "{both}");
}

#[tokio::test]
async fn router_rule_without_a_decision_is_reported_once() {
    let world = World::new([]);
    two(&world, "[[router.rules]]\nname = \"idle\"\ntask = [\"debug\"]\n");
    let run = world.run(&["route", "explain this"]).await;
    let warnings = run.err.lines().filter(|line| line.starts_with("warning:")).count();
    assert!(warnings == 1 && run.err.contains("has no effect"), "{run:?}");
}

#[tokio::test]
async fn router_rule_that_forbids_every_model_is_reported_with_its_line() {
    let world = World::new([]);
    two(&world, "[[router.rules]]\nname = \"stop\"\nforbid = [\"*\"]\n");
    let why = "the rules leave no arm for this task: every arm is forbidden by rule `stop` \
               (~/.config/gnoma/config.toml:22)";
    for args in [vec!["explain this"], vec!["--provider", "one", "explain this"]] {
        let run = world.run(&args).await;
        assert_eq!(run.code, Some(7), "{run:?}");
        assert_eq!(run.err.matches(why).count(), 1, "{run:?}");
    }
    let route = world.run(&["route", "explain this"]).await;
    assert!(route.code == Some(1) && route.err.contains(why), "{route:?}");
    assert!(route.err.contains("one/m1: is forbidden by rule `stop`"), "{route:?}");
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn a_preference_is_told_with_its_rule_and_no_task_is_no_route() {
    let world = World::new([]);
    two(&world, "[[router.rules]]\nname = \"rather\"\nprefer = [\"two/*\"]\n");
    let run = world.run(&["route", "explain this"]).await;
    let line = "less, as rule `rather` (~/.config/gnoma/config.toml:22) prefers it";
    assert!(run.out.contains(line), "{run:?}");
    for words in ["", "  "] {
        let run = world.run(&["route", words]).await;
        assert!(run.code == Some(2) && run.err.contains("no task given"), "{run:?}");
    }
}

#[tokio::test]
async fn router_cost_weight_changes_the_choice_but_not_the_recorded_cost() {
    let world = World::new([says("done")]);
    two(&world, "");
    let config = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("[router]\n", "[router]\nvalue = 2\n");
    std::fs::write(&config, &text).unwrap();
    let chosen = world.json(&["route", "--json", "--seed", "1", "explain this"]).await;
    assert_eq!(chosen["routing"]["arms"][0]["provider"], "one", "{chosen}");
    let text = text.replace("output_price = 15\n", "output_price = 15\ncost_weight = 0\n");
    std::fs::write(&config, text).unwrap();
    let chosen = world.json(&["route", "--json", "--seed", "1", "explain this"]).await;
    assert_eq!(chosen["routing"]["arms"][0]["provider"], "two", "{chosen}");
    assert!(chosen["routing"]["candidates"].to_string().contains("by `cost_weight`"), "{chosen}");
    assert_eq!(world.run(&["explain this"]).await.code, Some(0));
    let stats = world.json(&["router", "stats", "--json"]).await;
    // Ten tokens read and five written, at the full price.
    assert_eq!(stats["spent"][0]["amount"]["micro_usd"], 10 * 3 + 5 * 15, "{stats}");
}

#[tokio::test]
async fn router_stats_reprice_on_one_model_to_the_micro_dollar() {
    let usage = Usage { input: 1_003, output: 57, cache_read: 411, ..Usage::default() };
    let answer = |usage| {
        let script = Script::text(["done"]).with_usage(usage).with_stop(StopReason::EndTurn);
        Wire::OpenAi.stream_reply(&script)
    };
    let world = World::new([says("done"), answer(usage)]);
    two(&world, "cache_read_price = 0.3\n");
    for provider in ["one", "two"] {
        assert_eq!(world.run(&["--provider", provider, "explain this"]).await.code, Some(0));
    }
    let stats = world.json(&["router", "stats", "--json"]).await;
    let spent: Vec<u64> = stats["spent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|total| total["amount"]["micro_usd"].as_u64().unwrap())
        .collect();
    // $1 and $4 for a million on the first arm, $3, $15 and $0.30 from the cache on the second.
    let (first, second) = (10 + 5 * 4, (1_003 * 30 + 57 * 150 + 411 * 3_u64).div_ceil(10));
    assert_eq!(spent, [first, second], "{stats}");
    let alone = |arm: &str| {
        let all = stats["had_one_done_all"].as_array().unwrap();
        all.iter().find(|it| it["arm"] == arm).unwrap()["micro_usd"].as_u64().unwrap()
    };
    // The first has no price for its cache of its own: all is read at full price.
    assert_eq!(alone("one/m1"), first + 1_003 + 411 + 57 * 4, "{stats}");
    assert_eq!(alone("two/m2"), second + 10 * 3 + 5 * 15, "{stats}");
}

#[tokio::test]
async fn unsaved_spending_is_reported_once_and_the_turn_completes() {
    let world = World::new([says("done")]);
    two(&world, "[session]\nkeep = false\n");
    std::fs::create_dir_all(world.home.path().join(".local")).unwrap();
    std::fs::write(world.home.path().join(".local/state"), "in the way").unwrap();
    let run = world.run(&["explain this"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "done\n"), "{run:?}");
    let told = |words| run.err.matches(words).count();
    assert_eq!((told("spending are not saved"), told("warning: ")), (1, 1), "{run:?}");
    assert!(!run.err.contains("what was learned about models"), "{run:?}");
}

#[tokio::test]
async fn model_of_an_unknown_provider_is_refused_with_a_hint() {
    let world = World::new([]);
    two(&world, "");
    let run = world.run(&["--model", "nosuch/thing", "explain this"]).await;
    let why = "which provider has the model `nosuch/thing`?";
    assert!(
        run.code == Some(2) && run.err.contains(why) && run.err.contains("one, two"),
        "{run:?}"
    );
    let config = world.home.path().join(".config/gnoma/config.toml");
    let servers = "[provider.endpoints]\na = \"http://127.0.0.1:1\"\nb = \"http://127.0.0.1:2\"\n";
    std::fs::write(&config, servers).unwrap();
    let run = world.run(&["explain this"]).await;
    let why =
        "none of the providers that are set up is the default: a, b; choose one with --provider";
    assert!(run.code == Some(2) && run.err.contains(why), "{run:?}");
    std::fs::write(config, "[[arms]]\nid = \"openai/gpt-x\"\n").unwrap();
    let run = world.run(&["explain this"]).await;
    assert!(run.code == Some(2) && run.err.contains("openai/gpt-x has no key"), "{run:?}");
}
