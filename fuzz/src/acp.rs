//! What an editor sends to `gnoma acp`.

use gnoma_acp::{Agent, AgentOptions, wire};
use gnoma_core::{
    lines::LineReader,
    protocol::{Client, SessionSpec},
};

/// Each line is a message or one error that can be told; an agent that is given all of them writes nothing but
/// JSON-RPC, one message a line, and answers no id twice that was sent once.
pub fn editor(input: &[u8]) {
    let (client, _peer) = Client::new_pair();
    let options = AgentOptions { spec: SessionSpec::default(), version: "0".to_owned() };
    let mut agent = Agent::new(client, options);
    for line in LineReader::new(1 << 16).push(input) {
        if let Err(unreadable) = wire::decode_line(&line) {
            assert!(unreadable.error.code < 0 && !unreadable.error.message.is_empty());
        }
        agent.on_client_line(&line);
    }
    agent.show_output();
    agent.detach_sessions();
    let out = agent.output_buffer();
    assert!(out.is_empty() || out.ends_with(b"\n"), "half a line");
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: serde_json::Value = serde_json::from_slice(line).expect("it is no JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        let is_answer = message.get("id").is_some();
        assert!(is_answer || message["method"].is_string(), "neither an answer nor told");
        if let Some(error) = message.get("error") {
            assert!(error["code"].is_i64() && error["message"].is_string());
        }
    }
}
