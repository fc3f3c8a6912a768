//! One key, one provider, one model: faults that end, refusals that can be met, limits that come near.

use futures_util::future::join_all;
use gnoma_testkit::{Reply, Request, Server};
use serde_json::json;

use crate::support::{Run, World, calls, says};

fn refusal(status: u16, message: &str) -> Reply {
    let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
    Reply::json(status, error.to_string())
}

/// Faults of all kinds; the next answer is good.
#[tokio::test]
async fn transient_provider_errors_are_retried_and_the_turn_completes() {
    let sse = |records: &str| Reply::sse(records.to_owned());
    let piece = r#"data: {"choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    let end = |why: &str| {
        sse(&format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{why}\"}}]}}\n\n"
        ))
    };
    let faults = [
        ("conflict", refusal(409, "locked")),
        ("too early", Reply::text(425, "")),
        ("time-out", Reply::text(408, "")),
        ("page", Reply::new(502, "text/html", "<html>Bad gateway</html>")),
        ("words in place of an answer", sse("data: {\"error\":\"upstream connect error\"}\n\n")),
        (
            "error midway",
            sse(&format!("{piece}\n\ndata: {{\"error\":{{\"message\":\"oh\"}}}}\n\n")),
        ),
        ("broken record", sse(&format!("{piece}\n\ndata: {{\"choices\":[{{\n\n"))),
        ("no end", sse(&format!("{piece}\n\n"))),
        ("comments only", sse(": wait\n\n: wait\n\n")),
        ("empty", Reply::sse("")),
        ("empty answer", end("stop")),
        ("ends with error", end("error")),
    ];
    let turns = faults.map(|(name, fault)| async move {
        let world = World::new([fault, says("here")]);
        (name, world.run(&["hi"]).await)
    });
    for (name, run) in join_all(turns).await {
        assert_eq!(run.code, Some(0), "{name}: {run:?}");
        assert!(run.out.ends_with("here\n"), "{name}: {run:?}");
    }
}

#[tokio::test]
async fn unsupported_request_field_is_dropped_and_reported() {
    for format in ["json", "text"] {
        let world = World::new([
            refusal(400, "Unrecognized request argument supplied: stream_options"),
            says("here"),
            says("again"),
        ]);
        let run = world.run(&["--output-format", format, "hi"]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.err.contains("test/m1 does not accept `stream_options`"), "{run:?}");
        let fields: Vec<_> = world.server.requests().iter().map(Request::json).collect();
        assert!(fields[0].get("stream_options").is_some(), "{}", fields[0]);
        assert!(fields[1].get("stream_options").is_none(), "{}", fields[1]);
        // Another session knows nothing of it.
        assert_eq!(world.run(&["hi"]).await.code, Some(0));
        assert!(world.server.requests()[2].json().get("stream_options").is_some());
    }
}

#[tokio::test]
async fn a_model_without_tools_can_still_answer() {
    let world = World::new([refusal(400, "m1 does not support tools"), says("here")]);
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "here\n"), "{run:?}");
    assert!(run.err.contains("test/m1 does not accept tools"), "{run:?}");
}

/// Nobody is there who could approve it, so a question would end with 4.
#[tokio::test]
async fn invalid_tool_arguments_are_returned_to_the_model() {
    let world = World::new([calls("fs_write", r#"{"content":"x"}"#), says("so be it")]);
    let run = world.run(&["write"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "so be it\n"), "{run:?}");
    let (_, result) = world.last_request().pop().unwrap();
    assert!(result.contains("missing field `path`"), "{result}");
}

async fn with_settings(server: Server, settings: &str) -> Run {
    let world = World::with(server);
    let text = settings.replace("URL", &format!("{}/v1", world.server.url()));
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    let mut command = world.command(&["hi"]);
    command.env("TEST_API_KEY", "sk-wrong");
    crate::support::finish(command.spawn().unwrap()).await
}

#[tokio::test]
async fn refused_api_key_ends_with_exit_code_3_wherever_it_is_set() {
    let named =
        "[provider]\ndefault = \"test\"\nmodel = \"m1\"\n[provider.endpoints]\ntest = \"URL\"\n";
    let listed = "[provider]\ndefault = \"test\"\n[provider.endpoints]\ntest = \"URL\"\n";
    let found = "[provider.endpoints]\ntest = \"URL\"\n";
    for settings in [named, listed, found] {
        let refuses = || Server::start(|_| refusal(401, "Incorrect API key provided")).unwrap();
        let run = with_settings(refuses(), settings).await;
        assert_eq!(run.code, Some(3), "{settings}: {run:?}");
        assert!(run.err.contains("check TEST_API_KEY"), "{run:?}");
    }
}

/// The price of an arm rises while its limit comes near, before the limit bars it.
#[tokio::test]
async fn nearing_rate_limit_raises_the_routing_price_before_blocking() {
    let server = Server::start(|_| says("a")).unwrap();
    let world = World::with(server);
    let url = world.server.url();
    let text = format!(
        "[provider.endpoints]\none = \"{url}/v1\"\ntwo = \"{url}/v1\"\n\
         [provider.models]\none = [\"m1\"]\ntwo = [\"m2\"]\n\
         [router]\nstrategy = \"single\"\nverify = \"off\"\ndiscovery_interval = \"0s\"\n\
         [[arms]]\nid = \"one/m1\"\ninput_price = 1\noutput_price = 4\ncontext = 100_000\n\
         [[arms]]\nid = \"two/m2\"\ninput_price = 3\noutput_price = 15\ncontext = 100_000\n\
         [rate_limits.one]\nrpd = 6\n[rate_limits.two]\nrpd = 6\n"
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), text).unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        let run = world.run(&["--output-format", "stream-json", "explain this"]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        told.extend(run.out.lines().find(|line| line.contains("\"route\"")).map(str::to_owned));
    }
    assert!(!told[0].contains("scarce"), "{}", told[0]);
    // Both can still be asked, and who was asked is dearer.
    assert!(told[2].contains("scarce: each dollar counts"), "{}", told[2]);
    assert!(told[2].contains("one/m1: right") && told[2].contains("two/m2: right"), "{}", told[2]);
}
