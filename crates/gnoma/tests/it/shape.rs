//! `--json-schema`: an answer that fits, or exit code 8, whoever is asked.

mod schemas;

use futures_util::StreamExt as _;
use gnoma_schema::Schema;
use gnoma_testkit::{Reaction, Reply, Script, Server, Vendor, Wire};
use serde_json::{Value, json};

use self::schemas::{SCHEMAS, Sample};
use crate::support::{Run, World, calls, says};

/// Programs that run at a time. They wait more than they work.
const AT_ONCE: usize = 6;

/// The wires, with their names in the configuration and models that can be held to a schema.
const WIRES: [(Wire, &str, &str); 6] = [
    (Wire::Mistral, "mistral", "mistral-large-latest"),
    (Wire::Anthropic, "anthropic", "claude-sonnet-4-6"),
    (Wire::Compatible, "compatible", "qwen3-coder"),
    (Wire::Responses, "responses", "gpt-5.5"),
    (Wire::Google, "google", "gemini-3-flash"),
    (Wire::Ollama, "ollama", "qwen3:8b"),
];

/// How a model comes to its answer.
#[derive(Clone, Copy, Debug)]
enum Manner {
    AtOnce,
    InProse,
    AtTheSecondTry,
    AsCall,
    AfterTools,
    Never,
}

const MANNERS: [Manner; 6] = [
    Manner::AtOnce,
    Manner::InProse,
    Manner::AtTheSecondTry,
    Manner::AsCall,
    Manner::AfterTools,
    Manner::Never,
];

impl Manner {
    fn reactions(self, sample: &Sample) -> Vec<Reaction> {
        let answer = |text: &str| Reaction::Answer(Script::text([text]));
        let (good, bad) = (answer(sample.good), answer(sample.bad));
        match self {
            Self::AtOnce => vec![good],
            Self::InProse => {
                vec![answer(&format!("Here it is:\n```json\n{}\n```\nThat is all.", sample.good))]
            }
            Self::AtTheSecondTry => vec![bad, good],
            Self::AsCall => {
                let value: Value = serde_json::from_str(sample.good).unwrap();
                let schema: Value = serde_json::from_str(sample.schema).unwrap();
                let wrapped = schema["type"] != "object";
                let arguments = if wrapped { json!({ "answer": value }) } else { value };
                let none = Script::text([""; 0]);
                let call = none.with_call("D681PevKs", "answer", arguments.to_string());
                vec![bad.clone(), bad, Reaction::Answer(call)]
            }
            Self::AfterTools => {
                let look = Script::text(["I look."]).with_thinking("What is here?", "Z29vZ2xl");
                let look = look.with_call("D681PevKs", "fs_ls", "{}");
                vec![Reaction::Answer(look), answer("There is nothing."), good]
            }
            Self::Never => vec![bad],
        }
    }
}

fn world(vendor: &Vendor, word: &str, model: &str) -> World {
    let world = World::new([]);
    let text = format!(
        "[provider]\ndefault = \"alpha\"\nmodel = \"{model}\"\n\
         [provider.endpoints]\nalpha = \"{}\"\n[provider.protocols]\nalpha = \"{word}\"\n\
         [provider.context]\nalpha = 100000\n",
        vendor.url()
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    world
}

/// Runs one cell of the matrix and tells what is not as it should be.
async fn cell(row: usize, sample: &'static Sample, column: usize) -> Vec<String> {
    let (wire, word, model) = WIRES[column];
    let manner = MANNERS[(row + column) % MANNERS.len()];
    let vendor = Vendor::start(wire, model, manner.reactions(sample)).unwrap();
    let world = world(&vendor, word, model);
    let run = world.run(&["--json-schema", sample.schema, "what is in this folder?"]).await;
    let mut wrong = vendor.violations();
    let expected: Value = serde_json::from_str(sample.good).unwrap();
    match (manner, run.code) {
        (Manner::Never, Some(8)) if run.out.is_empty() => (),
        (Manner::Never, _) => wrong.push(format!("{run:?}")),
        (_, Some(0)) => match serde_json::from_str::<Value>(&run.out) {
            Ok(value) if value == expected && run.out.lines().count() == 1 => {
                let checked = Schema::parse(sample.schema).unwrap().check(&value);
                wrong.extend(checked.err().map(|error| error.to_string()));
            }
            other => wrong.push(format!("{other:?} of {run:?}")),
        },
        (_, _) => wrong.push(format!("{run:?}")),
    }
    wrong.into_iter().map(|what| format!("{word}, {manner:?}, {}: {what}", sample.schema)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_schema_answer_conforms_or_exit_code_is_8() {
    let cells = SCHEMAS
        .iter()
        .enumerate()
        .flat_map(|(row, sample)| (0..WIRES.len()).map(move |column| cell(row, sample, column)));
    let cells = futures_util::stream::iter(cells).buffer_unordered(AT_ONCE);
    let wrong: Vec<Vec<String>> = cells.collect().await;
    assert_eq!(wrong.len(), 20 * WIRES.len());
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

const POINT: &str = r#"{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}"#;

/// A wire asks for the form in its own field, and in no other.
#[tokio::test]
async fn each_provider_gets_the_json_schema_in_its_own_field() {
    for (wire, word, model) in WIRES {
        let texts = [r#"{"x":"one"}"#, r#"{"x":2}"#];
        let answers = texts.map(|text| Reaction::Answer(Script::text([text])));
        let vendor = Vendor::start(wire, model, answers).unwrap();
        let run = world(&vendor, word, model).run(&["--json-schema", POINT, "say 2"]).await;
        assert_eq!((run.code, &*run.out), (Some(0), "{\"x\":2}\n"), "{word}: {run:?}");
        let bodies: Vec<Value> =
            vendor.requests().iter().map(gnoma_testkit::Request::json).collect();
        let at = match word {
            "mistral" | "compatible" => "/response_format/json_schema/schema",
            "anthropic" => "/output_config/format/schema",
            "responses" => "/text/format/schema",
            "google" => "/generationConfig/responseJsonSchema",
            _ => "/format",
        };
        let (asked, again) = (&bodies[0], &bodies[1]);
        let beside_tools = matches!(word, "anthropic" | "responses" | "google");
        assert_eq!(asked.pointer(at).is_some(), beside_tools, "{word}: {asked}");
        assert_eq!(again.pointer(at).unwrap()["required"], json!(["x"]), "{word}: {again}");
        // The model is told what is wrong, and the whole form stands in its prompt.
        let (asked, again) = (asked.to_string(), again.to_string());
        assert!(asked.contains("A program reads your final answer"), "{word}: {asked}");
        assert!(again.contains("is not integer"), "{word}: {again}");
    }
}

/// A server that knows no such field is asked without it.
#[tokio::test]
async fn refused_response_format_falls_back_to_a_tool_call() {
    let server = Server::start(|request| {
        let body = request.json();
        if body.get("response_format").is_some() {
            return Wire::OpenAi.refusal_reply("there is no field response_format");
        }
        match body["tool_choice"]["function"]["name"].as_str() {
            Some("answer") => calls("answer", r#"{"x":3}"#),
            _ => says("It is three."),
        }
    });
    let world = World::with(server.unwrap());
    let run = world.run(&["--json-schema", POINT, "count"]).await;
    assert_eq!((run.code, &*run.out), (Some(0), "{\"x\":3}\n"), "{run:?}");
}

#[tokio::test]
async fn json_schema_answer_is_structured_in_json_output() {
    let run = |replies: Vec<Reply>, format: &'static str| async move {
        let world = World::new(replies);
        // As people write files by hand.
        world.write("point.json", &format!("\u{feff}// a point\n{POINT}"));
        world.run(&["--json-schema", "point.json", "--output-format", format, "say 1"]).await
    };
    let last =
        |run: &Run| -> Value { serde_json::from_str(run.out.lines().last().unwrap()).unwrap() };
    let fenced = "```json\n{\"x\": 1}\n```";
    for format in ["json", "stream-json"] {
        let good = run(vec![says(fenced)], format).await;
        assert_eq!(good.code, Some(0), "{good:?}");
        let result = last(&good);
        assert_eq!(result["structured_output"], json!({"x": 1}));
        assert_eq!((&result["result"], &result["is_error"]), (&json!("{\"x\":1}"), &json!(false)));
        let bad = run(vec![says("no"), says("no"), says("no"), says("no")], format).await;
        assert_eq!(bad.code, Some(8), "{bad:?}");
        let result = last(&bad);
        assert_eq!(result["subtype"], "error_max_structured_output_retries");
        assert_eq!((&result["structured_output"], &result["num_turns"]), (&Value::Null, &json!(4)));
    }
    // What is not shown because it is a secret cannot be the answer, either.
    let key = r#"{"type":"object","properties":{"key":{"pattern":"^sk-ant-api03-[A-Za-z0-9_-]+$"}},"required":["key"]}"#;
    let secret = format!("{{\"key\":\"sk-ant-api03-{}AA\"}}", "Zx9_kQ7w".repeat(11) + "abcde");
    let world = World::new([says(&secret.replace('"', "\\\"").replace("\\\"", "\""))]);
    let hidden = world.run(&["--json-schema", key, "--output-format", "json", "key?"]).await;
    assert_eq!(hidden.code, Some(8), "{hidden:?}");
}

/// What cannot be used is told before anything is sent.
#[tokio::test]
async fn invalid_json_schema_is_refused_before_anything_is_sent() {
    let world = World::new([]);
    world.write("wrong.json", r#"{"type":"object","properties":{"a":{"type":"strin"}}}"#);
    for (given, why) in [
        ("wrong.json", "/properties/a/type"),
        ("none.json", "cannot read"),
        ("{", "is not JSON"),
        (r#"{"$ref":"https://example.com/s"}"#, "none is fetched"),
        (r#"{"pattern":"(?=a)"}"#, "look-around"),
    ] {
        let run = world.run(&["--json-schema", given, "hi"]).await;
        assert_eq!((run.code, &*run.out), (Some(2), ""), "{given}: {run:?}");
        assert!(run.err.contains("--json-schema") && run.err.contains(why), "{given}: {run:?}");
    }
    assert!(world.server.requests().is_empty());
}

/// A refusal stays one, and a limit of calls leaves no answer.
#[tokio::test]
async fn refusal_or_round_limit_with_a_json_schema_is_reported_as_such() {
    let refusal =
        r#"{"choices":[{"index":0,"delta":{"refusal":"I cannot."},"finish_reason":"stop"}]}"#;
    let world = World::new([Reply::sse(format!("data: {refusal}\n\ndata: [DONE]\n\n"))]);
    let run = world.run(&["--json-schema", POINT, "hi"]).await;
    assert_eq!((run.code, &*run.out), (Some(1), ""), "{run:?}");
    let world = World::new([says("no")]);
    let run = world.run(&["--json-schema", POINT, "--max-turns", "1", "hi"]).await;
    assert_eq!((run.code, &*run.out), (Some(8), ""), "{run:?}");
    let world = World::new([calls("fs_ls", "{}")]);
    let run = world.run(&["--json-schema", POINT, "--max-turns", "1", "hi"]).await;
    assert_eq!((run.code, &*run.out), (Some(6), ""), "{run:?}");
}
