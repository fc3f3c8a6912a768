//! The HTTP API as an OpenAPI document, made from the protocol's JSON Schema. Pure.

use serde_json::{Map, Value, json};

/// Where OpenAPI keeps types, in place of a schema's `$defs`.
const TYPES: &str = "#/components/schemas/";
/// Requests that are not for a session.
const OF_PROCESS: [&str; 4] = ["open", "list", "stored_in", "delete"];
/// Requests that HTTP does not carry; of others it does not carry everything that could be asked.
const NOT_CARRIED: [&str; 8] = [
    "attach",
    "detach",
    "watch",
    "shutdown",
    "trust",
    "add_provider",
    "remove_provider",
    "try_provider",
];

/// Makes the document of a schema, which `gnoma protocol --schema` prints.
///
/// # Errors
/// It is not that schema.
pub fn openapi(schema: &str, version: &str) -> Result<String, serde_json::Error> {
    let mut schema: Value = gnoma_core::json::from_str(schema)?;
    let types = schema.get_mut("$defs").map(Value::take).unwrap_or_default();
    let mut paths = fixed();
    let requests = types.pointer("/Request/oneOf").and_then(Value::as_array);
    for request in requests.into_iter().flatten() {
        if let Some((name, fields)) = request_of(request)
            && !NOT_CARRIED.contains(&name)
        {
            let is_of_process = OF_PROCESS.contains(&name);
            let path = if is_of_process {
                format!("/api/v1/process/{name}")
            } else {
                format!("/api/v1/sessions/{{session}}/{name}")
            };
            paths.insert(path, json!({ "post": operation(name, request, fields, !is_of_process) }));
        }
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "gnoma",
            "version": version,
            "description": "The session protocol over HTTP. Errors are a `RequestError` with a status of its kind.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": types,
        },
    });
    let text = serde_json::to_string_pretty(&document)?;
    Ok(text.replace("#/$defs/", TYPES) + "\n")
}

/// The name of a request, and the schema of its fields, where it has some.
fn request_of(request: &Value) -> Option<(&str, Option<&Value>)> {
    if let Some(name) = request.get("const").and_then(Value::as_str) {
        return Some((name, None));
    }
    let (name, fields) = request.get("properties")?.as_object()?.iter().next()?;
    Some((name, Some(fields)))
}

fn operation(name: &str, request: &Value, fields: Option<&Value>, of_session: bool) -> Value {
    let mut operation = json!({
        "operationId": name,
        "description": request.get("description"),
        "parameters": parameters(of_session),
        "responses": responses("Reply"),
    });
    if let (Some(fields), Some(into)) = (fields, operation.as_object_mut()) {
        into.insert("requestBody".into(), body(fields));
    }
    operation
}

fn parameters(of_session: bool) -> Value {
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "description": description, "schema": schema });
    let mut all = vec![
        header(
            "Gnoma-Client",
            "Names the client over all its requests; nobody else can guess it.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9-]{8,64}$" }),
        ),
        header(
            "Idempotency-Key",
            "Names the request among those of its client. One that comes again has no second effect.",
            json!({ "type": "integer", "minimum": 0 }),
        ),
    ];
    if of_session {
        all.push(json!({
            "name": "session", "in": "path", "required": true, "schema": { "type": "string" },
        }));
    }
    Value::Array(all)
}

fn body(schema: &Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn responses(of: &str) -> Value {
    let content = |name: &str| json!({ "application/json": { "schema": { "$ref": format!("{TYPES}{name}") } } });
    json!({
        "200": { "description": "What came of it.", "content": content(of) },
        "default": { "description": "Why it had no effect.", "content": content("RequestError") },
    })
}

/// What is no request of the protocol.
fn fixed() -> Map<String, Value> {
    let attach = "ID, or ID@EPOCH.SEQ to go on after an event; may stand there several times.";
    let events = json!({
        "operationId": "events",
        "description": "Server-sent events: `hello`, `snapshot` (SessionView), `event` (Envelope), `process` (ProcessEvent), \
                        `refused`. The id of an event is its position, and Last-Event-ID goes on after it.",
        "parameters": [
            { "name": "attach", "in": "query", "description": attach,
              "schema": { "type": "array", "items": { "type": "string" } }, "explode": true },
            { "name": "watch", "in": "query", "description": "1: also tell what happens to any session.",
              "schema": { "type": "integer", "enum": [1] } },
        ],
        "responses": {
            "200": { "description": "What happens.", "content": { "text/event-stream": { "schema": { "type": "string" } } } },
            "default": responses("RequestError").get("default"),
        },
    });
    let messages = json!({
        "operationId": "messages",
        "description": "A message of the protocol, whole; the answer is one as well, with status 200 also where it holds an error.",
        "requestBody": body(&json!({ "$ref": format!("{TYPES}ClientMessage") })),
        "responses": responses("ServerMessage"),
    });
    let hello = json!({
        "operationId": "hello",
        "description": "What this server is: version of the protocol, program, rights of the token, folder.",
        "responses": { "200": { "description": "What it is.", "content": { "application/json": { "schema": { "type": "object" } } } } },
    });
    [
        ("/api/v1/hello".to_owned(), json!({ "get": hello })),
        ("/api/v1/events".to_owned(), json!({ "get": events })),
        ("/api/v1/messages".to_owned(), json!({ "post": messages })),
    ]
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_an_address() {
        let schema = r##"{"$defs":{"Request":{"oneOf":[
            {"description":"Stop.","type":"string","const":"cancel"},
            {"type":"string","const":"watch"},
            {"type":"string","const":"list"},
            {"type":"object","properties":{"send":{"$ref":"#/$defs/Send"}}}]},"Send":{"type":"object"}}}"##;
        let document: Value = serde_json::from_str(&openapi(schema, "1").unwrap()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.contains_key("/api/v1/sessions/{session}/cancel"));
        assert!(paths.contains_key("/api/v1/process/list"));
        assert!(!paths.keys().any(|path| path.ends_with("watch")), "{paths:?}");
        let body = &paths["/api/v1/sessions/{session}/send"]["post"]["requestBody"];
        let schema = &body["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(schema, "#/components/schemas/Send");
        assert!(openapi("{", "1").is_err());
    }
}
