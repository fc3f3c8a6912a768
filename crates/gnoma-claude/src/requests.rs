//! The program's requests to a session that is open, as requests of the protocol; and the answers. Pure.

use gnoma_core::{
    json_value::json,
    protocol::{Reply, Request, RequestError, Switch, Topic, WindowUse},
};
use serde_json::Value;

use super::{error::DriverError, names};

/// A request of the program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProgramRequest {
    /// The session is told this, and the answer is made of its reply.
    Ask(Box<Request>),
    /// Cancels the turn that runs.
    Interrupt,
    /// Switches to the permission mode of this name.
    Mode(String),
    /// Another model; `None` leaves the choice to gnoma.
    Model(Option<String>),
    /// Asks for the state of the MCP servers.
    McpStatus,
    /// The files as they were before the turn that this message began.
    Rewind(String),
    /// The request needs no action.
    Nothing,
}

/// Parses a control request of the program.
///
/// # Errors
/// It is none, or is not offered here.
pub(super) fn parse_request(request: &Value) -> Result<ProgramRequest, DriverError> {
    let text = |name: &str| request.get(name).and_then(Value::as_str).map(str::to_owned);
    let subtype = text("subtype").unwrap_or_default();
    Ok(match subtype.as_str() {
        "interrupt" => ProgramRequest::Interrupt,
        "set_permission_mode" => ProgramRequest::Mode(text("mode").unwrap_or_default()),
        "set_model" => ProgramRequest::Model(text("model")),
        "mcp_status" => ProgramRequest::McpStatus,
        "get_context_usage" => ProgramRequest::Ask(Box::new(Request::Explain(Topic::Context))),
        "rewind_files" => ProgramRequest::Rewind(text("user_message_id").unwrap_or_default()),
        // A message of a server in the program that nobody asked for.
        "mcp_message" => ProgramRequest::Nothing,
        _ => return Err(DriverError::UnsupportedRequest { subtype }),
    })
}

/// The request for another model; `usual` is the one that the session began with.
pub(super) fn switch_model_request(
    wanted: Option<&str>,
    vendor: Option<&str>,
    usual: Option<&str>,
) -> Request {
    let meant = wanted.and_then(|wanted| names::resolve_model(wanted, vendor)).or(usual);
    match meant {
        Some(model) => Request::Switch(Switch::Model(model.to_owned())),
        None => Request::Pin { arm: None },
    }
}

/// The answer to a request, made of the reply. `window`: tokens of the model's window.
///
/// # Errors
/// Why it was not done.
pub(super) fn answer_from_reply(
    result: Result<Reply, RequestError>,
    model: &str,
    window: Option<u64>,
) -> Result<Value, DriverError> {
    match result {
        Ok(Reply::Window { used, .. }) => Ok(context_usage_json(used, model, window)),
        Ok(_) => Ok(json!({})),
        Err(error) => Err(DriverError::Refused(error)),
    }
}

fn context_usage_json(used: WindowUse, model: &str, window: Option<u64>) -> Value {
    let WindowUse { system, tools, instructions, history, results } = used;
    let parts = [
        ("System prompt", system),
        ("System tools", tools),
        ("Memory files", instructions),
        ("Messages", history.saturating_add(results)),
    ];
    let total: u64 = parts.iter().map(|(_, tokens)| *tokens).sum();
    let most = window.unwrap_or_default();
    let category =
        |(name, tokens): (&str, u64)| json!({"name": name, "tokens": tokens, "color": ""});
    json!({
        "categories": parts.map(category),
        "totalTokens": total,
        "maxTokens": most,
        "rawMaxTokens": most,
        "percentage": total.saturating_mul(100).checked_div(most).unwrap_or_default(),
        "model": model,
        "gridRows": [],
        "memoryFiles": [],
        "mcpTools": [],
        "agents": [],
        "isAutoCompactEnabled": true,
    })
}

/// The message that answers a request.
pub(super) fn response_message(id: &Value, answer: Result<Value, DriverError>) -> Value {
    let response = match answer {
        Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
        Err(error) => {
            json!({"subtype": "error", "request_id": id, "error": error.to_string()})
        }
    };
    json!({"type": "control_response", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_control_request_is_refused() {
        let interrupt = parse_request(&json!({"subtype": "interrupt"})).unwrap();
        assert_eq!(interrupt, ProgramRequest::Interrupt);
        let refused = parse_request(&json!({"subtype": "bogus"})).unwrap_err();
        assert_eq!(refused.to_string(), "Unsupported control request subtype: bogus");
        assert!(parse_request(&json!(7)).is_err());
    }

    #[test]
    fn set_model_to_another_vendors_name_restores_the_default_model() {
        let switch = |model: &str| Request::Switch(Switch::Model(model.to_owned()));
        assert_eq!(switch_model_request(Some("m2"), Some("test"), Some("m1")), switch("m2"));
        assert_eq!(switch_model_request(Some("haiku"), Some("test"), Some("m1")), switch("m1"));
        assert_eq!(switch_model_request(None, None, None), Request::Pin { arm: None });
    }

    #[test]
    fn context_usage_is_reported_by_part() {
        let used = WindowUse { system: 10, tools: 20, history: 30, ..WindowUse::default() };
        let told =
            answer_from_reply(Ok(Reply::Window { used, sources: String::new() }), "m", Some(600));
        let told = told.unwrap();
        assert_eq!((&told["totalTokens"], &told["percentage"]), (&json!(60), &json!(10)));
    }
}
