//! Model lists of OpenAI-compatible servers, with the size of the window where it is told.

use gnoma_core::ModelInfo;
use serde_json::Value;

/// The places where servers give the size of the window: vLLM, Mistral and LM Studio, OpenRouter and Together,
/// Groq, Novita, then, a level deeper, llama.cpp and Copilot.
const WINDOWS: &[&str] = &[
    "/max_model_len",
    "/max_context_length",
    "/context_length",
    "/context_window",
    "/context_size",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
    "/capabilities/limits/max_context_window_tokens",
];

/// Larger numbers of billions are no sizes.
const MOST_UNITS: f64 = 1e6;

/// The models of a list; entries that cannot be used for chat by their own account are left out.
pub(crate) fn parse_models(body: &[u8]) -> Vec<ModelInfo> {
    let list: Value = gnoma_core::json::from_bytes(body).unwrap_or_default();
    let entries = match &list {
        Value::Array(entries) => Some(entries),
        _ => ["data", "models"].iter().find_map(|key| list.get(key)?.as_array()),
    };
    entries.into_iter().flatten().filter_map(parse_model).collect()
}

fn parse_model(entry: &Value) -> Option<ModelInfo> {
    let chats = entry.pointer("/capabilities/completion_chat");
    if chats.and_then(Value::as_bool) == Some(false) {
        return None;
    }
    let id = ["id", "name"].iter().find_map(|key| entry.get(key)?.as_str())?;
    let window = WINDOWS
        .iter()
        .filter_map(|path| entry.pointer(path)?.as_u64())
        .find_map(|tokens| u32::try_from(tokens).ok().filter(|tokens| *tokens > 0));
    Some(ModelInfo {
        id: id.to_owned(),
        context_window: window,
        parameters: parameter_count(entry),
    })
}

/// Returns the number of parameters of a model, which llama.cpp gives as a number and Ollama as `1.5B` or `270M`.
fn parameter_count(entry: &Value) -> Option<u64> {
    if let Some(number) = entry.pointer("/meta/n_params").and_then(Value::as_u64) {
        return Some(number);
    }
    let text = entry.pointer("/details/parameter_size")?.as_str()?;
    let unit = match text.chars().last()?.to_ascii_uppercase() {
        'B' => 1e9,
        'M' => 1e6,
        _ => return None,
    };
    let number: f64 = text.get(..text.len() - 1)?.trim().parse().ok()?;
    (number > 0.0 && number < MOST_UNITS).then_some((number * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_list_context_window_is_read_under_every_field_name() {
        let body = br#"{"object":"list","data":[
            {"id":"a","max_model_len":4096},
            {"id":"b","context_length":8192,"top_provider":{}},
            {"id":"c","meta":{"n_ctx_train":32768}},
            {"id":"d","context_window":null},
            {"id":"e","max_context_length":1000,"capabilities":{"completion_chat":false}},
            {"object":"model"}]}"#;
        let found: Vec<_> =
            parse_models(body).into_iter().map(|model| (model.id, model.context_window)).collect();
        let expected = [
            ("a".to_owned(), Some(4096)),
            ("b".to_owned(), Some(8192)),
            ("c".to_owned(), Some(32768)),
            ("d".to_owned(), None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn model_list_parameter_count_is_read_as_number_or_text() {
        let body = br#"{"models":[
            {"name":"a","meta":{"n_params":1777088000}},
            {"name":"b","details":{"parameter_size":"4.3B"}},
            {"name":"c","details":{"parameter_size":"268.10M"}},
            {"name":"d","details":{"parameter_size":""}},
            {"name":"e","details":{"parameter_size":"many\u00e9"}}]}"#;
        let sizes: Vec<_> = parse_models(body).into_iter().map(|model| model.parameters).collect();
        let expected = [Some(1_777_088_000), Some(4_300_000_000), Some(268_100_000), None, None];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn model_list_may_be_a_bare_array() {
        assert_eq!(parse_models(br#"[{"id":"a"}]"#).len(), 1);
        assert_eq!(parse_models(b"<html>"), []);
        assert_eq!(parse_models(br#"{"data":null}"#), []);
    }
}
