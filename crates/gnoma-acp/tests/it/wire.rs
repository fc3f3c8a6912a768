//! Messages of every shape, told apart.

use gnoma_acp::wire::{AcpClientMessage, RpcId, decode_line, write_answer, write_request};
use gnoma_core::lines::Line;
use proptest::prelude::*;
use serde_json::{Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("2.0")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,3}", inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn frame() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["jsonrpc", "id", "method", "params", "result", "error"]);
    let version = prop::option::weighted(0.8, Just(("jsonrpc", json!("2.0"))));
    (version, prop::collection::vec((name, value()), 0..5)).prop_map(|(version, fields)| {
        let fields = fields.into_iter().chain(version);
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

fn lines(out: Vec<u8>) -> Vec<Value> {
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

proptest! {
    /// Whatever comes: a message under the id that it has, or one error under that id or none.
    #[test]
    fn each_line_decodes_to_a_message_or_an_error(frame in prop_oneof![8 => frame(), 1 => value()]) {
        let line = Line::Whole(frame.to_string().into_bytes());
        let is_sound = frame["jsonrpc"] == "2.0";
        match decode_line(&line) {
            Ok(None) => prop_assert!(false, "the line is not blank"),
            Ok(Some(AcpClientMessage::Request { id, method, .. })) => {
                prop_assert!(is_sound && frame["method"] == method.as_str());
                prop_assert_eq!(id.to_string(), frame["id"].to_string());
            }
            Ok(Some(AcpClientMessage::Notification { method, .. })) => {
                prop_assert!(is_sound && frame["method"] == method.as_str());
                prop_assert!(frame.get("id").is_none());
            }
            Ok(Some(AcpClientMessage::Response { .. })) => {
                prop_assert!(is_sound && frame.get("method").is_none());
            }
            Err(unreadable) => {
                prop_assert!([-32_700, -32_600].contains(&unreadable.error.code));
                let (id, own) = (unreadable.id.to_string(), frame["id"].to_string());
                prop_assert!(id == "null" || id == own);
            }
        }
    }

    /// What is written is read back, on one line.
    #[test]
    fn each_message_is_written_as_one_line(value in value(), id in any::<u64>()) {
        let mut out = Vec::new();
        write_request(id, "a/\"b\"", &value, &mut out);
        let own = RpcId::from_json(&id.to_string()).unwrap_or_else(RpcId::none);
        write_answer(&own, &Ok(value.clone()), &mut out);
        let lines = lines(out);
        prop_assert_eq!(lines.len(), 2);
        prop_assert_eq!(&lines[0]["method"], "a/\"b\"");
        prop_assert_eq!(lines[1]["id"].as_u64(), Some(id));
    }
}
