//! The replay protocol, line by line.

use gnoma_router::replay::Replay;

const INIT: &str = r#"{"type":"init","protocol":"router-replay/1","seed":1,"value_usd":10.0,"max_attempts":3,"horizon":9,
"verifier":{"cost_usd":0.0},"feedback":"delivered","kinds":["fix"],"tasks_per_day":50,"pools":[{"id":"big","cap_usd_per_day":6.0}],
"arms":[{"id":"strong","provider":"big","pool":"big","release_date":"2026-05-28","openness":"closed_api_available","input_price":5.0,
"output_price":25.0,"prior":{"fix":{"q":0.85,"cost_usd":0.9,"n":264},"*":{"q":0.8,"cost_usd":0.99,"n":624}}},
{"id":"cheap","provider":"small","pool":"small","prior":{"fix":{"q":0.7,"cost_usd":0.04,"n":264}}}]}"#;

fn say(replay: &mut Replay, line: &str) -> Option<serde_json::Value> {
    let answer = replay.answer_line(&line.replace('\n', " ")).expect("an answer");
    answer.map(|answer| serde_json::from_str(&answer).expect("JSON"))
}

#[test]
fn replayed_task_is_attempted_escalated_and_delivered() {
    let mut replay = Replay::default();
    let ready = say(&mut replay, INIT).expect("ready");
    assert_eq!(ready["type"], "ready");
    let task = r#"{"type":"task","id":"t0","t":0,"day":0,"kind":"fix","family":"x","lang":null,"features":{},"available":["strong","cheap"]}"#;
    let first = say(&mut replay, task).expect("a route");
    assert_eq!(first["arms"], serde_json::json!(["cheap"]));
    let failed = r#"{"type":"result","id":"t0","attempt":1,"arm":"cheap","verdict":false,"cost_usd":0.04,"last":true,"attempts_left":2,"available":["strong","cheap"]}"#;
    let second = say(&mut replay, failed).expect("a route");
    assert_eq!(second["arms"], serde_json::json!(["strong"]));
    let passed = r#"{"type":"result","id":"t0","attempt":2,"arm":"strong","verdict":true,"cost_usd":0.9,"last":true,"attempts_left":1,"available":["strong","cheap"]}"#;
    let accept = say(&mut replay, passed).expect("accept");
    assert_eq!((accept["type"].as_str(), accept["attempt"].as_u64()), (Some("accept"), Some(2)));
    let outcome = r#"{"type":"outcome","id":"t0","delivered":2,"resolved":true,"cost_usd":0.94,"attempts":[
{"arm":"cheap","verdict":false,"cost_usd":0.04,"resolved":null},{"arm":"strong","verdict":true,"cost_usd":0.9,"resolved":true}]}"#;
    assert_eq!(say(&mut replay, outcome), None);
    assert_eq!(say(&mut replay, r#"{"type":"end"}"#), None);
}

#[test]
fn replay_rejects_malformed_or_unexpected_lines() {
    let mut replay = Replay::default();
    for line in
        ["", "{}", r#"{"type":"task"}"#, r#"{"type":"task","id":"t","kind":"fix","available":[]}"#]
    {
        assert!(replay.answer_line(line).is_err(), "{line}");
    }
    assert!(replay.answer_line(&" ".repeat(2 << 20)).is_err());
    say(&mut replay, INIT);
    let foreign = r#"{"type":"result","id":"t0","arm":"none","cost_usd":1,"attempts_left":1}"#;
    assert!(replay.answer_line(foreign).is_err());
}
