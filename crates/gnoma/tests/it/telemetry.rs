//! Telemetry of the whole program, as a collector gets it: whole trees, sums that are the ledger's, and no secrets.

use std::collections::{BTreeMap, BTreeSet};

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Server, Wire};
use serde_json::Value;

use crate::support::{Run, World, calls, finish, says};

/// The form of a key that the firewall knows.
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// A price at which sums show each token.
const ARM: &str = "[router]\nverify = \"off\"\ndiscovery_interval = \"0s\"\n[[arms]]\nid = \"test/m1\"\n\
                   input_price = 1.234567\noutput_price = 9.876543\ncontext = 200_000\n";

/// A collector that takes everything.
fn collector() -> Server {
    Server::start(|_| Reply::json(200, "{}")).unwrap()
}

fn otel(collector: &Server, more: &str) -> String {
    let url = collector.url();
    format!("{ARM}[otel]\nenabled = true\nprotocol = \"http/json\"\nendpoint = \"{url}\"\n{more}")
}

/// A span as JSON has it, with its attributes by name.
#[derive(Debug)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    attributes: BTreeMap<String, Value>,
    events: Vec<String>,
}

fn value_of(value: &Value) -> Value {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "intValue" => value.as_str().unwrap().parse::<u64>().unwrap().into(),
        "arrayValue" => {
            let values = value["values"].as_array().unwrap();
            values.iter().map(value_of).collect()
        }
        _ => value.clone(),
    }
}

fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let all = of["attributes"].as_array().into_iter().flatten();
    all.map(|it| (it["key"].as_str().unwrap().to_owned(), value_of(&it["value"]))).collect()
}

fn spans(collector: &Server) -> Vec<Span> {
    let requests = collector.requests();
    let traces = requests.iter().filter(|request| request.path() == "/v1/traces");
    let all = traces.flat_map(|request| {
        let spans = request.json()["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
        spans.as_array().unwrap().clone()
    });
    all.map(|span| {
        let text = |name: &str| span[name].as_str().map(str::to_owned);
        let events = span["events"].as_array().into_iter().flatten();
        Span {
            trace: text("traceId").unwrap(),
            id: text("spanId").unwrap(),
            parent: text("parentSpanId"),
            name: text("name").unwrap(),
            attributes: attributes(&span),
            events: events.map(|event| event["name"].as_str().unwrap().to_owned()).collect(),
        }
    })
    .collect()
}

/// The data points of a metric, the latest of each request.
fn points(collector: &Server, name: &str) -> Vec<Value> {
    let requests = collector.requests();
    let last = requests.iter().rfind(|request| request.path() == "/v1/metrics").unwrap().json();
    let metrics = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone();
    let metric = metrics.as_array().unwrap().iter().find(|it| it["name"] == name).cloned();
    let metric = metric.unwrap_or_default();
    let points = ["sum", "histogram"].iter().find_map(|kind| metric[kind]["dataPoints"].as_array());
    points.cloned().unwrap_or_default()
}

/// Checks that ids are unique and every parent is there, but for `remote`.
fn check_tree(spans: &[Span], remote: Option<&str>) {
    let ids: BTreeSet<_> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(ids.len(), spans.len(), "{spans:#?}");
    for span in spans {
        let has_parent = |parent: &String| ids.contains(parent) || Some(parent.as_str()) == remote;
        assert!(span.parent.as_ref().is_none_or(has_parent), "{span:#?} in {spans:#?}");
    }
}

fn sum(spans: &[Span], name: &str) -> u64 {
    spans.iter().filter_map(|span| span.attributes.get(name)?.as_u64()).sum()
}

fn by_name<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let found = spans.iter().find(|span| span.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

/// An answer with tokens that the ledger counts.
fn answer(script: Script, input: u64) -> Reply {
    let usage = gnoma_core::Usage { input, output: 17, cache_read: 300, ..Default::default() };
    Wire::OpenAi.stream_reply(&script.with_usage(usage))
}

fn call(name: &str, arguments: &str, input: u64) -> Reply {
    let script = Script::text([""; 0]).with_call("call_a", name, arguments);
    answer(script.with_stop(StopReason::ToolUse), input)
}

async fn golden(collector: &Server, more: &str) -> (World, Run) {
    let ends = || Script::text(["forty-two"]).with_stop(StopReason::EndTurn);
    let task = r#"{"tasks":[{"task":"look","name":"scout"}]}"#;
    let replies = [
        Reply::text(503, "busy"),
        call("fs_read", r#"{"path":"a.txt"}"#, 1_001),
        call("bash", r#"{"command":"echo $TRACEPARENT"}"#, 1_102),
        call("elf_spawn", task, 1_203),
        answer(ends(), 404),
        answer(ends(), 1_305),
    ];
    let world = World::new(replies).among_files();
    world.configure(&otel(collector, more));
    world.write("a.txt", &format!("the words of a file and {SECRET}\n"));
    let run = world.run(&["the words of a person"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    (world, run)
}

#[tokio::test]
async fn a_session_is_one_tree_of_spans_whose_sums_are_those_of_the_ledger() {
    let collector = collector();
    let (world, _run) = golden(&collector, "").await;
    let spans = spans(&collector);
    check_tree(&spans, None);
    assert!(spans.iter().all(|span| span.trace == spans[0].trace), "{spans:#?}");
    let turn = by_name(&spans, "invoke_agent gnoma");
    assert_eq!((&turn.parent, &turn.attributes["gnoma.turn.outcome"]), (&None, &"complete".into()));
    assert_eq!(turn.events, ["gnoma.retry"]);
    let spawn = by_name(&spans, "execute_tool elf.spawn");
    assert_eq!(spawn.parent.as_ref(), Some(&turn.id));
    let elf = by_name(&spans, "invoke_agent scout");
    assert_eq!(elf.parent.as_ref(), Some(&spawn.id));
    let chats: Vec<_> = spans.iter().filter(|span| span.name == "chat m1").collect();
    let failed = chats.iter().find(|span| span.attributes.contains_key("error.type")).unwrap();
    assert_eq!(failed.attributes["error.type"], "overloaded");
    assert_eq!(chats.iter().filter(|span| span.parent.as_ref() == Some(&elf.id)).count(), 1);
    let reasons = chats.iter().filter_map(|it| it.attributes.get("gen_ai.response.finish_reasons"));
    assert_eq!(reasons.filter(|reason| reason[0] == "tool_call").count(), 3);

    let usage = world.json(&["usage", "--since", "all", "--json"]).await;
    let total = &usage["total"];
    for (attribute, counted) in [
        ("gen_ai.usage.input_tokens", "input_tokens"),
        ("gen_ai.usage.output_tokens", "output_tokens"),
        ("gen_ai.usage.cache_read.input_tokens", "cached_tokens"),
        ("gnoma.cost.micro_usd", "micro_usd"),
    ] {
        assert_eq!(total[counted], sum(&spans, attribute), "{counted}: {usage}");
    }
    assert_eq!(total["calls"], chats.len() as u64);
    let cost = points(&collector, "gnoma.cost.usd")[0]["asDouble"].as_f64().unwrap();
    assert_eq!((cost * 1e6).round() as u64, total["micro_usd"].as_u64().unwrap());
    assert_eq!(points(&collector, "gnoma.turns").len(), 2, "a turn and an elf");
}

#[tokio::test]
async fn commands_are_told_the_span_of_their_call() {
    let collector = collector();
    let (world, _run) = golden(&collector, "").await;
    let spans = spans(&collector);
    let bash = by_name(&spans, "execute_tool bash");
    let requests = world.server.requests();
    let traceparent = format!("00-{}-{}-01", bash.trace, bash.id);
    let is_told =
        requests.iter().any(|it| it.json()["messages"].to_string().contains(&traceparent));
    assert!(is_told, "{traceparent}");

    // Programs that drive `gnoma claude` give it their span in the same way.
    for arguments in [&["hi"][..], &["claude", "-p", "hi"]] {
        let collector = self::collector();
        let world = World::new([says("hello")]);
        world.configure(&otel(&collector, ""));
        let remote = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let command = world.command(arguments).env("TRACEPARENT", remote).spawn();
        let run = finish(command.unwrap()).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let spans = self::spans(&collector);
        check_tree(&spans, Some("00f067aa0ba902b7"));
        let turn = by_name(&spans, "invoke_agent gnoma");
        assert_eq!(turn.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(turn.parent.as_deref(), Some("00f067aa0ba902b7"));
    }
}

#[tokio::test]
async fn exit_code_is_that_of_the_command_and_not_of_its_output() {
    let collector = collector();
    let replies = [
        call("bash", r#"{"command":"echo 'Exit code 7'"}"#, 10),
        call("bash", r#"{"command":"exit 3"}"#, 10),
        says("done"),
    ];
    let world = World::new(replies).among_files();
    world.configure(&otel(&collector, ""));
    assert_eq!(world.run(&["--permission", "bypass", "go"]).await.code, Some(0));
    let spans = spans(&collector);
    let commands = spans.iter().filter(|span| span.name == "execute_tool bash");
    let ends: BTreeSet<_> = commands
        .map(|span| {
            let code = span.attributes.get("gnoma.tool.exit_code").and_then(Value::as_u64);
            (code, span.attributes.contains_key("error.type"))
        })
        .collect();
    assert_eq!(ends, BTreeSet::from([(Some(0), false), (Some(3), true)]), "{spans:#?}");
}

#[tokio::test]
async fn telemetry_spans_have_content_only_if_enabled_and_never_secrets() {
    for (content, has_words) in [("", false), ("content = true\n", true)] {
        let collector = collector();
        let (_world, _run) = golden(&collector, content).await;
        let requests = collector.requests();
        let sent: String = requests.iter().map(|it| format!("{}\n", it.json())).collect();
        for words in ["the words of a person", "the words of a file", "forty-two", "a.txt"] {
            assert_eq!(sent.contains(words), has_words, "{words} in {sent}");
        }
        assert!(!sent.contains(SECRET), "{sent}");
        assert!(!sent.contains("echo $TRACEPARENT") || has_words, "{sent}");
    }
}

#[tokio::test]
async fn only_the_person_turns_telemetry_on() {
    let collector = collector();
    let url = collector.url();
    let world = World::new([says("one"), says("two"), says("three")]);
    std::fs::create_dir(world.project.path().join(".gnoma")).unwrap();
    world.write(".gnoma/config.toml", &format!("[otel]\nenabled = true\nendpoint = \"{url}\"\n"));
    let run = world.run(&["hello"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("a project cannot set it"), "{run:?}");
    let hello =
        |name: &str, value: &str| world.command(&["hello"]).env(name, value).spawn().unwrap();
    finish(hello("OTEL_EXPORTER_OTLP_ENDPOINT", &url)).await;
    assert_eq!(collector.requests().len(), 0);

    world.configure("[otel]\nenabled = true\n");
    let run = finish(hello("OTEL_EXPORTER_OTLP_ENDPOINT", &url)).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(collector.requests().len(), 2, "spans and metrics");
}

#[tokio::test]
async fn secrets_in_attributes_of_the_resource_are_replaced() {
    let collector = collector();
    let world = World::new([says("ok")]);
    world.configure(&otel(&collector, ""));
    let attributes = format!("team=a,key={SECRET}");
    let mut hello = world.command(&["hello"]);
    finish(hello.env("OTEL_RESOURCE_ATTRIBUTES", attributes).spawn().unwrap()).await;
    let sent: String = collector.requests().iter().map(|it| it.json().to_string()).collect();
    assert!(sent.contains(r#""team""#) && !sent.contains(SECRET), "{sent}");
}

#[tokio::test]
async fn sessions_in_incognito_send_nothing() {
    let collector = collector();
    let world = World::new([calls("fs_read", r#"{"path":"a.txt"}"#), says("ok")]);
    world.configure(&otel(&collector, ""));
    let run = world.run(&["--incognito", "hello"]).await;
    assert_eq!((run.code, collector.requests().len()), (Some(0), 0), "{run:?}");
}

#[tokio::test]
async fn a_collector_that_fails_is_named_and_fails_no_turn() {
    let nobody = Server::unused_address().unwrap();
    let host = nobody.trim_start_matches("http://");
    for (endpoint, code, said) in
        [(nobody.as_str(), 0, host), ("ftp://host", 2, "`otel.endpoint` must be an address")]
    {
        let world = World::new([says("hello")]);
        world.configure(&format!("[otel]\nenabled = true\nendpoint = \"{endpoint}\"\n"));
        let run = world.run(&["hi"]).await;
        assert!(run.code == Some(code) && run.err.contains(said), "{run:?}");
        assert_eq!(run.out.contains("hello"), code == 0, "{run:?}");
    }
    let world = World::new([]);
    world.configure("[otel]\nenabled = true\nendpoint = \"https://otel.example/x\"\n");
    let doctor = world.run(&["doctor"]).await;
    let line = "spans, metrics and log records: sent to https://otel.example, without texts";
    assert!(doctor.out.contains(line), "{doctor:?}");
}

#[tokio::test]
async fn doctor_names_every_host_that_gnoma_may_contact() {
    let world = World::new([]);
    world.configure(
        "[otel]\nenabled = true\nendpoint = \"https://otel.example/x\"\n[slm]\nenabled = true\n\
         base_url = \"http://127.0.0.1:9\"\n[[mcp_servers]]\nname = \"web\"\nurl = \"https://mcp.example/mcp?key=x\"\n",
    );
    let doctor = world.run(&["doctor"]).await.out;
    let (_, hosts) = doctor.split_once("\nhosts that gnoma may contact\n").unwrap();
    let own = world.server.url();
    for part in [
        "    https://otel.example: telemetry\n",
        "    https://mcp.example: MCP server `web`",
        "    http://127.0.0.1:9: ",
        "    http://localhost:11434: models of `ollama`",
        &format!("    {own}: models of `test`"),
    ] {
        assert!(hosts.contains(part), "no {part:?} in:\n{doctor}");
    }
}

/// The log records: names of events with their attributes and trace.
fn logs(collector: &Server) -> Vec<(String, BTreeMap<String, Value>, Value)> {
    let requests = collector.requests();
    let logs = requests.iter().filter(|request| request.path() == "/v1/logs");
    let all = logs.flat_map(|request| {
        let logs = request.json()["resourceLogs"][0]["scopeLogs"][0]["logRecords"].clone();
        logs.as_array().unwrap().clone()
    });
    all.map(|log| {
        let name = log["eventName"].as_str().unwrap().to_owned();
        (name, attributes(&log), log["traceId"].clone())
    })
    .collect()
}

#[tokio::test]
async fn events_are_log_records_in_the_trace_of_their_turn() {
    let collector = collector();
    let (_world, _run) = golden(&collector, "").await;
    let spans = spans(&collector);
    let logs = self::logs(&collector);
    assert_eq!(logs.len(), 1, "{logs:?}");
    let (name, facts, trace) = &logs[0];
    assert_eq!((name.as_str(), &facts["error.type"]), ("gnoma.retry", &"overloaded".into()));
    assert_eq!(*trace, spans[0].trace.as_str());

    let collector = self::collector();
    let world = World::new([Reply::text(401, "no such key")]);
    world.configure(&otel(&collector, ""));
    assert_ne!(world.run(&["hello"]).await.code, Some(0));
    let logs = self::logs(&collector);
    let (_, facts, _) = logs.iter().find(|(name, ..)| name == "gnoma.error").unwrap();
    assert_eq!(
        (&facts["error.type"], &facts["gnoma.turn.outcome"]),
        (&"auth".into(), &"failed".into())
    );
}

#[tokio::test]
async fn cap_warning_is_sent_once_to_telemetry() {
    let collector = collector();
    let ends = || Script::text(["done"]).with_stop(StopReason::EndTurn);
    let world = World::new([answer(ends(), 200_000), answer(ends(), 10)]);
    world.configure(&otel(&collector, "[router.caps]\nday = 0.30\n"));
    let run = world.run(&["hello"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let told: Vec<_> =
        logs(&collector).into_iter().filter(|(name, ..)| name == "gnoma.cap_nears").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].1["gnoma.cap.most_micro_usd"], 300_000);
    assert_eq!(told[0].1["gnoma.cap.period"], "day");
    world.run(&["hello again"]).await;
    let told = logs(&collector).into_iter().filter(|(name, ..)| name == "gnoma.cap_nears");
    assert_eq!(told.count(), 1, "another session spent nothing of note");
}
