//! What was seen of arms outlives the program: who rests, which limits were told, how fast they were.

use gnoma_testkit::{Reply, Request, Server};
use serde_json::Value;

use crate::support::{Run, World, says};

/// `limited` asks for ten minutes' peace, whatever else is there answers.
fn replies(request: &Request) -> Reply {
    if request.json()["model"] == "limited" {
        let body = r#"{"error":{"message":"slow down","type":"rate_limit"}}"#;
        return Reply::json(429, body).with_header("retry-after", "600");
    }
    says("done")
        .with_header("x-ratelimit-limit-requests", "50")
        .with_header("x-ratelimit-remaining-requests", "49")
}

/// The arm that would be chosen is limited; another can go on.
fn world() -> World {
    let world = World::with(Server::start(replies).unwrap());
    let url = world.server.url();
    let text = format!(
        "[provider.endpoints]\none = \"{url}/v1\"\ntwo = \"{url}/v1\"\n\
         [provider.models]\none = [\"limited\"]\ntwo = [\"free\"]\n\
         [router]\nstrategy = \"single\"\nverify = \"off\"\ndiscovery_interval = \"0s\"\n\
         [[arms]]\nid = \"one/limited\"\ninput_price = 1\noutput_price = 4\n\
         [[arms]]\nid = \"two/free\"\ninput_price = 1\noutput_price = 4\n\
         [[router.rules]]\nname = \"first\"\nprefer = [\"one/*\"]\nprefer_by = 100\n"
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    world
}

fn asked(world: &World) -> Vec<String> {
    let requests = world.server.requests();
    requests.iter().map(|it| it.json()["model"].as_str().unwrap().to_owned()).collect()
}

async fn ask(world: &World, more: &[&str]) -> Run {
    let run = world.run(&[more, &["explain this"]].concat()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

#[tokio::test]
async fn rate_limited_model_is_skipped_by_the_next_process() {
    let world = world();
    ask(&world, &[]).await;
    assert_eq!(asked(&world), ["limited", "free"]);
    ask(&world, &[]).await;
    assert_eq!(asked(&world), ["limited", "free", "free"]);

    let arms = world.run(&["router", "arms"]).await.out;
    assert!(arms.contains("one/limited rests until"), "{arms}");
    let json = world.json(&["router", "arms", "--json"]).await;
    let free = json["arms"].as_array().unwrap().iter().find(|arm| arm["arm"] == "two/free");
    assert_eq!(free.unwrap()["speed_seen"]["answers"], 2, "{json}");
    let pools = world.run(&["router", "pools"]).await.out;
    assert!(pools.contains("one/limited") && pools.contains("rate limited"), "{pools}");
    let told = pools.lines().find(|line| line.contains("50 requests a minute")).unwrap();
    assert!(told.contains("two/free") && told.contains("its provider"), "{pools}");
    let json = world.json(&["router", "pools", "--json"]).await;
    let left = json["resting"][0]["left_ms"].as_i64().unwrap();
    assert!((500_000..600_000).contains(&left), "{json}");
    assert_eq!(json["told"][0]["arm"], "two/free", "{json}");

    // Who is asked for by name is asked; what was known of it can be forgotten.
    world.run(&["--provider", "one", "explain this"]).await;
    assert_eq!(asked(&world).last().unwrap(), "limited");
    assert_eq!(world.run(&["router", "reset", "--yes"]).await.code, Some(0));
    let json = world.json(&["router", "pools", "--json"]).await;
    assert_eq!((&json["resting"], &json["told"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    ask(&world, &[]).await;
    assert_eq!(asked(&world)[4..], ["limited", "free"]);
}

#[tokio::test]
async fn rate_limit_learned_in_incognito_is_not_shared() {
    let world = world();
    ask(&world, &["--incognito"]).await;
    assert!(!world.home.path().join(".local/state/gnoma").exists());
    ask(&world, &[]).await;
    assert_eq!(asked(&world), ["limited", "free", "limited", "free"]);
    // What others know is not used either.
    ask(&world, &["--incognito"]).await;
    assert_eq!(asked(&world)[4..], ["limited", "free"]);
}

#[tokio::test]
async fn a_task_is_scheduled_for_the_end_of_a_rest() {
    let world = world();
    world.put_home(".config/gnoma/tasks/t.md", "Go on.");
    let line = ["task", "schedule", "t", "--when-limits-reset", "--budget", "1"];
    let early = world.run(&line).await;
    assert!(early.err.contains("no model is at its limit"), "{early:?}");
    ask(&world, &[]).await;
    let made = world.run(&line).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.out.contains("schedule 1: t when limits reset, the first time "), "{made:?}");
    let pools = world.json(&["router", "pools", "--json"]).await;
    let all = world.json(&["task", "schedules", "--output-format", "json"]).await;
    let until_ms = &pools["resting"][0]["until_ms"];
    assert_eq!(all["schedules"][0]["next_ms"], *until_ms, "{all} {pools}");
}
