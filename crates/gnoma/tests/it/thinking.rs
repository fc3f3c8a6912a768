//! `--thinking`, `provider.thinking`: every vendor is told in its own form, and what a model cannot do is said.

use gnoma_testkit::{Reaction, Script, Vendor, Wire};
use serde_json::{Value, json};

use crate::support::{Run, World, calls, says};

/// The body of the first request that this command line makes, and how the run ended.
async fn asked(wire: Wire, word: &str, model: &str, thinking: &str, more: &str) -> (Value, Run) {
    let vendor = Vendor::start(wire, model, [Reaction::Answer(Script::text(["Four."]))]).unwrap();
    let world = World::new([]);
    let text = format!(
        "[provider]\ndefault = \"alpha\"\nmodel = \"{model}\"\n\
         [provider.endpoints]\nalpha = \"{}\"\n[provider.protocols]\nalpha = \"{word}\"\n\
         [provider.context]\nalpha = 100000\n{more}",
        vendor.url()
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    let run = world.run(&["--thinking", thinking, "what is 2 + 2?"]).await;
    assert_eq!(vendor.violations(), [""; 0], "{word} {thinking}");
    (vendor.requests().first().unwrap().json(), run)
}

#[tokio::test]
async fn thinking_budget_is_sent_in_the_form_of_each_provider() {
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    for (wire, word, model, thinking, at, told) in [
        (
            Wire::Anthropic,
            "anthropic",
            "claude-3-7-sonnet",
            "3000",
            "/thinking",
            json!({"type": "enabled", "budget_tokens": 3000}),
        ),
        (
            Wire::Anthropic,
            "anthropic",
            "claude-3-7-sonnet",
            "off",
            "/thinking",
            json!({"type": "disabled"}),
        ),
        (Wire::Anthropic, "anthropic", "claude-opus-4-8", "adaptive", "/thinking", adaptive),
        (
            Wire::Anthropic,
            "anthropic",
            "claude-opus-4-8",
            "20000",
            "/output_config/effort",
            json!("high"),
        ),
        (
            Wire::Google,
            "google",
            "gemini-2.5-flash",
            "adaptive",
            "/generationConfig/thinkingConfig/thinkingBudget",
            json!(-1),
        ),
        (
            Wire::Google,
            "google",
            "gemini-2.5-flash",
            "512",
            "/generationConfig/thinkingConfig/thinkingBudget",
            json!(512),
        ),
        (Wire::Responses, "responses", "gpt-5.5", "off", "/reasoning/effort", json!("none")),
        (Wire::Responses, "responses", "gpt-5.5", "8000", "/reasoning/effort", json!("medium")),
        (Wire::Ollama, "ollama", "qwen3:8b", "adaptive", "/think", json!(true)),
        (
            Wire::Mistral,
            "mistral",
            "mistral-large-latest",
            "1000",
            "/reasoning_effort",
            json!("low"),
        ),
    ] {
        let (body, run) = asked(wire, word, model, thinking, "").await;
        assert_eq!(run.code, Some(0), "{word} {thinking}: {run:?}");
        assert_eq!(body.pointer(at), Some(&told), "{word} {thinking}: {body}");
    }
}

#[tokio::test]
async fn unsupported_thinking_level_is_reported() {
    let plain = "[[arms]]\nid = \"alpha/qwen3:8b\"\nthinking = false\n";
    let (body, run) = asked(Wire::Ollama, "ollama", "qwen3:8b", "4000", plain).await;
    assert!(run.code == Some(0) && run.err.contains("does not support thinking"), "{run:?}");
    assert_eq!(body.get("think"), None);
    let (body, run) = asked(Wire::Ollama, "ollama", "gpt-oss:20b", "off", "").await;
    assert!(run.err.contains("cannot turn thinking off"), "{run:?}");
    assert_eq!(body["think"], "low");
    let world = World::new([]);
    let run = world.run(&["--thinking", "much", "hi"]).await;
    assert!(run.code == Some(2) && run.err.contains("off, adaptive or a number"), "{run:?}");
}

/// The settings say it for every session, and the command line for one.
#[tokio::test]
async fn thinking_setting_is_accepted_from_the_configuration() {
    let world = World::new([says("4"), says("4")]);
    world.configure("[provider.protocols]\ntest = \"openai\"\n");
    let config = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[provider]\n", "[provider]\nthinking = \"9\"\n"))
        .unwrap();
    let shown = world.run(&["config", "get", "provider.thinking"]).await;
    assert_eq!(shown.out.trim(), "9", "{shown:?}");
    let run = world.run(&["2 + 2?"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// A plan is told as it changes, and stands in what the session is continued with.
#[tokio::test]
async fn plan_updates_appear_in_stream_json() {
    let steps =
        r#"{"steps":[{"text":"read","status":"done"},{"text":"answer","status":"active"}]}"#;
    let world = World::new([calls("plan", steps), calls("plan", "{\"steps\":7}"), says("done")]);
    let run = world.run(&["--permission", "default", "--output-format", "stream-json", "go"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let plans: Vec<Value> = lines.filter(|line| line["type"] == "plan").collect();
    assert_eq!(plans.len(), 1, "{}", run.out);
    assert_eq!(plans[0]["steps"][1], json!({"text": "answer", "status": "active"}));
    let results: String = world.last_request().into_iter().map(|(_, text)| text + "\n").collect();
    assert!(results.contains("[x] read\n[>] answer"), "{results}");
}
