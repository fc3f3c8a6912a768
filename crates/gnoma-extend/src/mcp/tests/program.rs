//! Servers that are programs: here shell scripts that answer from files beside them.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    super::definition::{Definition, ServerReach},
    OneServer, definition,
};

/// Answers with the text of a file for each method, as it is. `ID` in it is the request's id.
const SCRIPT: &str = r#"
reply() { sed "s/ID/$id/g" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) reply initialize ;;
    *'"method":"tools/list"'*) reply tools ;;
    *'"method":"tools/call"'*) printf '%s\n' "$line" >> called; reply result ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  esac
done
"#;

fn server(folder: &Path, tools: &Value, result: &str) -> Definition {
    let put = |name: &str, text: String| fs::write(folder.join(name), text + "\n").unwrap();
    put("server.sh", SCRIPT.to_owned());
    put("initialize", r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}"#.to_owned());
    put("tools", format!("{{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{{\"tools\":{tools}}}}}"));
    put("result", result.to_owned());
    program(&["server.sh"])
}

fn program(args: &[&str]) -> Definition {
    definition(ServerReach::Process {
        command: "sh".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Default::default(),
    })
}

fn hello() -> Value {
    json!([{"name": "hello", "inputSchema": {"type": "object"}}])
}

#[tokio::test]
async fn half_a_surrogate_pair_hangs_no_call() {
    for (result, said) in [
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"cut \ud83d"}]}}"#,
            "cut \u{fffd}",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\ude00 late"}]}}"#,
            "\u{fffd} late",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"x"},{"type":"odd","v":NaN}]}}"#,
            "x\n[a part of",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"te"#,
            "failed: the server's answer cannot be read",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
            "failed: the server refused: parse error",
        ),
        (r#"{"jsonrpc":"2.0","id":ID}"#, "failed: the server's answer cannot be read"),
        (
            r#"busy {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"behind"}]}}"#,
            "behind",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let one = OneServer::new(server(folder.path(), &hello(), result), folder.path());
        one.connect().await;
        let called = one.call("mcp__s__hello", "{}").await;
        assert!(called.starts_with(said), "{result}: {called}");
    }
}

#[tokio::test]
async fn invalid_mcp_tool_is_reported_and_the_others_are_offered() {
    for broken in [
        json!({"name": "odd", "inputSchema": 3}),
        json!({"name": "odd", "inputSchema": "none"}),
        json!({"name": "odd", "inputSchema": {"type": "object", "x": "y".repeat(40_000)}}),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let tools = json!([hello()[0], broken, {"name": "last", "inputSchema": {}}]);
        let result =
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"hi"}]}}"#;
        let one = OneServer::new(server(folder.path(), &tools, result), folder.path());
        let standing = one.connect().await;
        assert_eq!(one.offered(), ["mcp__s__hello", "mcp__s__last"], "{:?}", standing.seen.state);
        assert!(one.told().contains("`odd`"), "{}", one.told());
        assert_eq!(one.call("mcp__s__last", "{}").await, "hi");
    }
}

#[tokio::test]
async fn mcp_server_without_tools_capability_or_with_multi_line_json_works() {
    let result = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"hi"}]}}"#;
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"result\": {\n    \"content\": [\n      \"hi\"\n    ]\n  }\n}";
    for (capabilities, result) in [("{}", result), (r#"{"tools":null}"#, pretty)] {
        let folder = tempfile::tempdir().unwrap();
        let definition = server(folder.path(), &hello(), result);
        let initialize = fs::read_to_string(folder.path().join("initialize")).unwrap();
        let initialize = initialize.replace(r#"{"tools":{}}"#, capabilities);
        fs::write(folder.path().join("initialize"), initialize).unwrap();
        let one = OneServer::new(definition, folder.path());
        let standing = one.connect().await;
        assert_eq!(one.offered(), ["mcp__s__hello"], "{:?}", standing.seen.state);
        assert_eq!(one.call("mcp__s__hello", "{}").await, "hi", "{result}");
    }
}

#[tokio::test]
async fn mcp_server_start_failure_shows_its_output() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("server.sh"), "echo no database; exit 1").unwrap();
    let one = OneServer::new(program(&["server.sh"]), folder.path());
    let state = format!("{:?}", one.connect().await.seen.state);
    assert!(state.contains("it wrote: no database"), "{state}");
}

#[tokio::test(start_paused = true)]
async fn mcp_server_that_a_message_names_and_that_is_slow_to_start_is_reported() {
    let one = OneServer::new(program(&["server.sh"]), Path::new("/"));
    one.servers.weak_view().named_in("list them with s").await;
    assert!(one.told().contains("`s` has not answered within 10s"), "{}", one.told());
}

#[tokio::test]
async fn mcp_call_preserves_the_numbers_that_the_model_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({"properties": {"a b": {"type": "integer"}, "n": {"type": "number"}}});
    let result = r#"{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"id":123456789012345678901234}}}"#;
    let tools = json!([{"name": "hello", "inputSchema": schema}]);
    let one = OneServer::new(server(folder.path(), &tools, result), folder.path());
    one.connect().await;
    let said = one.call("mcp__s__hello", r#"{"a_b":123456789012345678901234,"n":1.10}"#).await;
    assert_eq!(said, r#"{"id":123456789012345678901234}"#);
    let called = fs::read_to_string(folder.path().join("called")).unwrap();
    assert!(
        called.contains(r#""arguments":{"a b":123456789012345678901234,"n":1.10}"#),
        "{called}"
    );
}

#[tokio::test]
async fn mcp_call_restores_sanitized_argument_names_for_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let schema = json!({"properties": {"a b": {"type": "string"}}, "required": ["a b"]});
    let result = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#;
    let tools = json!([{"name": "hello", "inputSchema": schema}]);
    let one = OneServer::new(server(folder.path(), &tools, result), folder.path());
    one.connect().await;
    let offered = one.servers.offered_tools(&[]);
    let shown: Value = offered.last().unwrap().spec().parameters.read().unwrap();
    assert_eq!(shown["required"], json!(["a_b"]), "{shown}");
    one.call("mcp__s__hello", r#"{"a_b":"x"}"#).await;
    let called = fs::read_to_string(folder.path().join("called")).unwrap();
    assert!(called.contains(r#""arguments":{"a b":"x"}"#), "{called}");
}

#[tokio::test]
async fn mcp_server_starts_in_its_configured_folder() {
    let folder = tempfile::tempdir().unwrap();
    let result = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#;
    let mut definition = server(folder.path(), &hello(), result);
    definition.cwd = Some(folder.path().to_owned());
    let one = OneServer::new(definition.clone(), Path::new("/"));
    one.connect().await;
    assert_eq!(one.offered(), ["mcp__s__hello"]);
    definition.cwd = Some(folder.path().join("gone"));
    let one = OneServer::new(definition, Path::new("/"));
    one.connect().await;
    let why = format!("{:?}", one.connect().await.seen.state);
    assert!(why.contains("gone` does not exist"), "{why}");
    let (command, args) = ("sh server.sh".to_owned(), Vec::new());
    let reach = ServerReach::Process { command, args, env: Default::default() };
    let one = OneServer::new(super::definition(reach), folder.path());
    let why = format!("{:?}", one.connect().await.seen.state);
    assert!(why.contains("`sh server.sh` was not found; put its arguments into `args`"), "{why}");
}

#[tokio::test]
async fn mcp_server_stderr_is_redacted_before_it_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("server.sh"), "echo the key is s3cret >&2; exit 1").unwrap();
    let one = OneServer::new(program(&["server.sh"]), folder.path());
    let standing = one.connect().await;
    let state = format!("{:?}", standing.seen.state);
    assert!(state.contains("the key is ***") && !state.contains("s3cret"), "{state}");
    assert!(standing.stderr.contains("***") && !standing.stderr.contains("s3cret"));
}

#[tokio::test]
async fn mcp_server_that_exits_at_an_unknown_method_is_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let result = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#;
    let definition = server(folder.path(), &hello(), result);
    let script = SCRIPT.replace("*'\"id\":'*) printf", "*'\"id\":'*) exit 1; printf");
    fs::write(folder.path().join("server.sh"), script).unwrap();
    let one = OneServer::new(definition, folder.path());
    let standing = one.connect().await;
    assert_eq!(one.offered(), ["mcp__s__hello"], "{:?}", standing.seen.state);
}
