//! The HTTP API as an OpenAPI document, made from the protocol's JSON Schema. Pure.

use serde_json::{Map, Value, json};

use super::integer_limits::add_integer_limits;

/// Requests that are not for a session.
const OF_PROCESS: [&str; 4] = ["open", "list", "stored_in", "delete"];
/// Requests that HTTP does not carry; of others it does not carry everything that could be asked.
const NOT_CARRIED: [&str; 9] = [
    "memory",
    "attach",
    "detach",
    "watch",
    "shutdown",
    "trust",
    "add_provider",
    "remove_provider",
    "try_provider",
];

/// Requests without fields that change nothing: GET asks for them as well.
const READS: [&str; 10] = [
    "list",
    "status",
    "points",
    "changes",
    "session_changes",
    "commit_changes",
    "providers",
    "profiles",
    "settings",
    "usage",
];
/// Statuses of errors, and what they say.
const ERRORS: [(&str, &str); 11] = [
    ("400", "The request cannot be read, or asks for what does not fit."),
    ("401", "There is no token, or an old one."),
    ("403", "The token does not allow it, or it is done at the machine itself."),
    ("404", "There is no such address, session or thing."),
    ("405", "The address takes another method; `Allow` names it."),
    ("409", "It was answered before, or is open elsewhere."),
    ("410", "The session has ended, or could not be opened."),
    ("413", "The body is too long."),
    ("429", "Too much waits already."),
    ("502", "A provider refused or could not be reached."),
    ("503", "The server is ending, or has too many clients."),
];

/// Makes the document of the protocol's schema. Types are referred to as there until it is printed.
pub(crate) fn openapi_document(schema: &Value, version: &str) -> Value {
    let mut types = schema.get("$defs").cloned().unwrap_or_default();
    add_integer_limits(&mut types);
    let mut paths = fixed_paths();
    for request in types.pointer("/Request/oneOf").and_then(Value::as_array).into_iter().flatten() {
        if let Some((name, fields)) = request_of(request)
            && !NOT_CARRIED.contains(&name)
        {
            let is_of_process = OF_PROCESS.contains(&name);
            let path = if is_of_process {
                format!("/api/v1/process/{name}")
            } else {
                format!("/api/v1/sessions/{{session}}/{name}")
            };
            let fields = fields.map(|fields| add_field_limits(name, fields.clone()));
            let post = build_operation(name, request, fields.as_ref(), &types, !is_of_process);
            let mut methods = json!({ "post": post });
            if READS.contains(&name) {
                let mut get = post;
                get["operationId"] = json!(format!("get_{name}"));
                methods["get"] = get;
            }
            paths.insert(path, methods);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "gnoma",
            "version": version,
            "description": "The session protocol over HTTP. Errors are a `RequestError` with a status of its kind.",
        },
        "servers": [{ "url": "http://127.0.0.1:4666" }],
        "tags": [
            { "name": "process", "description": "The server and its list of sessions." },
            { "name": "session", "description": "One session." },
        ],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": types,
        },
    })
}

/// Adds to the fields of a request what the server refuses whatever else is right.
fn add_field_limits(name: &str, mut fields: Value) -> Value {
    let limit = match name {
        "send" => Some(("content", "minItems")),
        "rename" => Some(("title", "minLength")),
        _ => None,
    };
    let field = limit.and_then(|(field, _)| fields.pointer_mut(&format!("/properties/{field}")));
    if let (Some((_, least)), Some(Value::Object(field))) = (limit, field) {
        field.insert(least.to_owned(), json!(1));
    }
    fields
}

/// The name of a request, and the schema of its fields, where it has some.
fn request_of(request: &Value) -> Option<(&str, Option<&Value>)> {
    if let Some(name) = request.get("const").and_then(Value::as_str) {
        return Some((name, None));
    }
    let (name, fields) = request.get("properties")?.as_object()?.iter().next()?;
    Some((name, Some(fields)))
}

fn build_operation(
    name: &str,
    request: &Value,
    fields: Option<&Value>,
    types: &Value,
    of_session: bool,
) -> Value {
    let description = request.get("description").and_then(Value::as_str).unwrap_or_default();
    let summary = description.split(['.', '\n']).next().unwrap_or_default();
    let mut operation = json!({
        "operationId": name,
        "summary": summary,
        "description": description,
        "tags": [if of_session { "session" } else { "process" }],
        "parameters": header_parameters(of_session),
        "responses": response_table(reply_of(description, types)),
    });
    if let (Some(fields), Some(into)) = (fields, operation.as_object_mut()) {
        into.insert("requestBody".into(), request_body(fields));
    }
    operation
}

/// The schema of the replies that a description names as [`Reply::Name`]; without any, that of all replies.
fn reply_of(description: &str, types: &Value) -> Value {
    let names = description.split("[`Reply::").skip(1);
    let names: Vec<_> =
        names.filter_map(|rest| rest.split('`').next()).map(str::to_lowercase).collect();
    let known = types.pointer("/Reply/oneOf").and_then(Value::as_array);
    let is_named = |reply: &&Value| {
        request_of(reply).is_some_and(|(known, _)| names.iter().any(|name| name == known))
    };
    let mut found: Vec<_> = known.into_iter().flatten().filter(is_named).cloned().collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => only,
        (Some(last), false) => {
            found.push(last);
            json!({ "oneOf": found })
        }
        (None, _) => json!({ "$ref": "#/$defs/Reply" }),
    }
}

fn header_parameters(of_session: bool) -> Value {
    let header = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "header", "description": description, "schema": schema });
    let mut all = vec![
        header(
            "Gnoma-Client",
            "Names the client over all its requests; nobody else can guess it.",
            json!({ "type": "string", "pattern": "^[A-Za-z0-9-]{8,64}$" }),
        ),
        header(
            "Idempotency-Key",
            "Names the request among those of its client; it needs Gnoma-Client. One that comes again has no second effect.",
            json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        ),
    ];
    if of_session {
        all.push(json!({
            "name": "session", "in": "path", "required": true, "schema": { "type": "string" },
        }));
    }
    Value::Array(all)
}

fn request_body(schema: &Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn response_table(of: Value) -> Value {
    let content = |schema: Value| json!({ "application/json": { "schema": schema } });
    let error = || content(json!({ "$ref": "#/$defs/RequestError" }));
    let mut all = json!({
        "200": { "description": "What came of it.", "content": content(of) },
        "default": { "description": "Why it had no effect.", "content": error() },
    });
    for (status, meaning) in ERRORS {
        all[status] = json!({ "description": meaning, "content": error() });
    }
    all
}

/// The schema of one server-sent event: its name, and the JSON of its data. As `itemSchema` of OpenAPI 3.2.
fn event_schema() -> Value {
    let event = |name: &str, data: Value| {
        json!({
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "id": { "type": "string" },
                "event": { "const": name },
                "data": { "type": "string", "contentMediaType": "application/json", "contentSchema": data },
            },
        })
    };
    let of = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let refused = json!({
        "type": "object",
        "properties": { "session": { "type": ["string", "null"] }, "error": of("RequestError") },
    });
    json!({ "oneOf": [
        event("hello", json!({ "type": "object" })),
        event("snapshot", of("SessionView")),
        event("event", of("Envelope")),
        event("process", of("ProcessEvent")),
        event("refused", refused),
    ] })
}

/// Returns the paths of the OpenAPI document that are not requests of the protocol.
fn fixed_paths() -> Map<String, Value> {
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
            "200": { "description": "What happens.", "content": { "text/event-stream": {
                "schema": { "type": "string" }, "x-itemSchema": event_schema(),
            } } },
            "default": response_table(Value::Null).get("default"),
        },
    });
    let messages = json!({
        "operationId": "messages",
        "description": "A message of the protocol, whole; the answer is one as well, with status 200 also where it holds an error.",
        "requestBody": request_body(&json!({ "$ref": "#/$defs/ClientMessage" })),
        "responses": response_table(json!({ "$ref": "#/$defs/ServerMessage" })),
    });
    let object = |name: &str, description: &str| {
        let responses = response_table(json!({ "type": "object" }));
        json!({ "get": { "operationId": name, "description": description, "responses": responses } })
    };
    let hello =
        "What this server is: version of the protocol, program, rights of the token, folder.";
    let usage =
        "What models cost in all sessions of the last 30 days, as `gnoma usage --json` prints it.";
    [
        ("/api/v1/openapi.json".to_owned(), object("openapi", "This document.")),
        ("/api/v1/hello".to_owned(), object("hello", hello)),
        ("/api/v1/usage".to_owned(), object("usage_of_all", usage)),
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
    fn openapi_has_a_path_for_every_request() {
        let schema = r##"{"$defs":{"Request":{"oneOf":[
            {"description":"Stop.","type":"string","const":"cancel"},
            {"type":"string","const":"watch"},
            {"description":"All. Reply: [`Reply::Live`].","type":"string","const":"list"},
            {"description":"Why. Reply: [`Reply::Text`] or [`Reply::Live`].","type":"string","const":"explain"},
            {"type":"object","properties":{"rename":{"type":"object","properties":{"title":{"type":"string"}}}}},
            {"type":"object","properties":{"rewind":{"type":"object","properties":{"turns":{"format":"uint32"}}}}},
            {"type":"object","properties":{"send":{"$ref":"#/$defs/Send"}}}]},
            "Reply":{"oneOf":[{"const":"done"},{"type":"object","properties":{"live":{"type":"array"}}},
                {"type":"object","properties":{"text":{"type":"string"}}}]},"Send":{"type":"object"}}}"##;
        let document = openapi_document(&serde_json::from_str(schema).unwrap(), "1");
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.contains_key("/api/v1/sessions/{session}/cancel"));
        assert!(paths.contains_key("/api/v1/process/list"));
        assert!(!paths.keys().any(|path| path.ends_with("watch")), "{paths:?}");
        let body = &paths["/api/v1/sessions/{session}/send"]["post"]["requestBody"];
        let schema = &body["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(schema, "#/$defs/Send");
        let rename = &paths["/api/v1/sessions/{session}/rename"]["post"]["requestBody"];
        let title = rename.pointer("/content/application~1json/schema/properties/title").unwrap();
        assert_eq!(title["minLength"], 1);
        let turns = "/paths/~1api~1v1~1sessions~1{session}~1rewind/post/requestBody/content/application~1json/schema/properties/turns";
        assert_eq!(document.pointer(turns).unwrap()["maximum"], u32::MAX);
        let list = &paths["/api/v1/process/list"];
        let reply = &list["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(reply["properties"]["live"].is_object(), "{reply}");
        assert_eq!(list["post"]["summary"], "All");
        let explain = &paths["/api/v1/sessions/{session}/explain"]["post"]["responses"]["200"];
        let replies = explain.pointer("/content/application~1json/schema/oneOf").unwrap();
        assert_eq!(replies.as_array().map(Vec::len), Some(2), "{replies}");
        assert!(list["post"]["responses"]["409"].is_object());
        assert!(paths["/api/v1/sessions/{session}/send"].get("get").is_none());
        let events = paths["/api/v1/events"].pointer("/get/responses/200/content").unwrap();
        let events = events["text/event-stream"]["x-itemSchema"]["oneOf"].as_array().unwrap();
        let names: Vec<_> = events.iter().map(|it| &it["properties"]["event"]["const"]).collect();
        assert_eq!(names, ["hello", "snapshot", "event", "process", "refused"]);
    }
}
