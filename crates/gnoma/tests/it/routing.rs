//! Which model a turn goes to, what is learnt from it, and what may be spent.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Run, World, says};

/// Two priced arms of two providers on the same server, and `more`.
fn two(world: &World, more: &str) {
    let url = world.server.url();
    let text = format!(
        "[provider.endpoints]\none = \"{url}/v1\"\ntwo = \"{url}/v1\"\n\
         [provider.models]\none = [\"m1\"]\ntwo = [\"m2\"]\n\
         [router]\nstrategy = \"single\"\nverify = \"off\"\ndiscovery_interval = \"0s\"\n\
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
async fn every_provider_is_an_arm_and_the_events_say_which_was_chosen_and_why() {
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
async fn what_a_rule_forbids_is_not_asked() {
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
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("rule `no`"), "{run:?}");
}

#[tokio::test]
async fn who_is_asked_for_by_name_is_asked() {
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
async fn with_the_router_off_only_the_configured_model_is_there() {
    let world = World::new([says("a")]);
    let more = "[router]\nmode = \"off\"\n[provider.models]\ntwo = [\"m2\"]\n";
    world.configure(&format!("two = \"{}/v1\"\n{more}", world.server.url()));
    let run = world.run(&["--output-format", "stream-json", "explain this"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(events(&run, "route").is_empty());
    assert_eq!(world.server.requests()[0].json()["model"], "m1");
}

#[tokio::test]
async fn a_cap_without_room_ends_the_turn_and_is_named() {
    let world = World::new([says("never")]);
    two(&world, "[router.caps]\nday = 0.000001\n");
    let run = world.run(&["explain this"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("day cap"), "{run:?}");
    assert!(world.server.requests().is_empty());
    let pools = world.run(&["router", "pools"]).await;
    assert!(pools.out.contains("a day"), "{pools:?}");
}

#[tokio::test]
async fn what_a_turn_taught_is_there_for_the_next_process() {
    let world = World::new([says("done")]);
    two(&world, "");
    let before = world.run(&["router", "stats"]).await;
    assert!(before.out.contains("nothing was learnt yet"), "{before:?}");
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
    assert!(text.contains("explain") && text.contains("had one arm done it all"), "{text}");

    let exported = world.run(&["router", "export"]).await.out;
    assert_eq!(world.run(&["router", "reset"]).await.code, Some(2), "nobody is there to ask");
    assert_eq!(world.run(&["router", "reset", "--yes"]).await.code, Some(0));
    let stats = world.json(&["router", "stats", "--json"]).await;
    assert!(stats["believed"].as_array().unwrap().is_empty(), "{stats}");
    assert_eq!(world.pipe(&["router", "import", "-"], &exported).await.code, Some(0));
    assert_eq!(world.run(&["router", "export"]).await.out, exported);
}

#[tokio::test]
async fn a_rewind_in_another_process_counts_against_the_work_once() {
    let world = World::new([says("done")]);
    two(&world, "");
    assert_eq!(world.run(&["explain this"]).await.code, Some(0));
    let quality = async || {
        let stats = world.json(&["router", "stats", "--json"]).await;
        stats["believed"][0]["quality"].as_f64().unwrap()
    };
    let before = quality().await;
    let run = world.run(&["rewind", "1", "--conversation"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(quality().await < before);
}

#[tokio::test]
async fn a_state_that_cannot_be_used_is_set_aside_and_said() {
    let world = World::new([says("done")]);
    two(&world, "");
    std::fs::create_dir_all(state(&world)).unwrap();
    std::fs::write(state(&world).join("router.json"), "{\"gnoma_router\":1,").unwrap();
    let run = world.run(&["explain this"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("is damaged") && run.err.contains("learning begins anew"), "{run:?}");
    let aside = std::fs::read_to_string(state(&world).join("router.json.damaged-1")).unwrap();
    assert_eq!(aside, "{\"gnoma_router\":1,");
    let stats = world.json(&["router", "stats", "--json"]).await;
    assert_eq!(stats["believed"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn incognito_learns_and_counts_nothing() {
    let world = World::new([says("done")]);
    two(&world, "[router.caps]\nday = 5\n");
    let run = world.run(&["--incognito", "explain this"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!state(&world).exists(), "{:?}", std::fs::read_dir(state(&world)).map(Iterator::count));
}

#[tokio::test]
async fn scores_of_the_older_gnoma_are_taken_over_once() {
    let world = World::new([says("a"), says("b")]);
    two(&world, "");
    let scores = r#"{"scores": {"one/m1": {"Debug": {"Value": 0.9, "Count": 20}, "Poetry": {"Value": 1, "Count": 1}}}}"#;
    std::fs::write(world.home.path().join(".config/gnoma/quality.json"), scores).unwrap();
    let run = world.run(&["explain this"]).await;
    assert!(run.err.contains("took over 1 scores") && run.err.contains("1 speak of"), "{run:?}");
    assert!(!world.run(&["explain this"]).await.err.contains("took over"));
    let again = world.pipe(&["router", "import", "-"], scores).await;
    assert_eq!(again.code, Some(2), "{again:?}");
}

#[tokio::test]
async fn a_route_is_told_without_asking_anybody() {
    let world = World::new([]);
    two(&world, "[[router.rules]]\nname = \"no\"\ntask = [\"review\"]\nforbid = [\"one/*\"]\n");
    let run = world.run(&["route", "--seed", "7", "why does the parser crash?"]).await;
    insta::assert_snapshot!(run.out, @"
    debug, 52 % (heuristic) · single
    run two/m2 (seed 7)
    two/m2: right 65 %, $0.765, worth $7.07, knowing it better $0.06
    one/m1: right 56 %, $0.422, worth $6.24, knowing it better $0.08
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
async fn arms_are_listed_and_those_that_cannot_be_asked_with_the_reason() {
    let world = World::new([]);
    two(&world, "[[arms]]\nid = \"openai/gpt-x\"\n[[arms]]\nid = \"one/off\"\nenabled = false\n");
    let run = world.run(&["router", "arms"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("one/m1") && run.out.contains("3.00, 15.00"), "{run:?}");
    assert!(run.out.contains("openai/gpt-x: has no key: export OPENAI_API_KEY"), "{run:?}");
    assert!(run.out.contains("one/off: is switched off"), "{run:?}");
    let json = world.json(&["router", "arms", "--json"]).await;
    assert!(json["arms"].as_array().unwrap().len() >= 2);
}

#[tokio::test]
async fn contradictory_rules_are_named_with_their_lines() {
    let world = World::new([says("a")]);
    two(
        &world,
        "[[router.rules]]\nname = \"only\"\npin = \"one/*\"\n\
         [[router.rules]]\nname = \"never\"\nforbid = [\"one/*\"]\n",
    );
    let run = world.run(&["explain this"]).await;
    let warning = run.err.lines().find(|line| line.contains("rule `only`")).unwrap();
    assert!(warning.contains("config.toml:22") && warning.contains("config.toml:25"), "{warning}");
}
