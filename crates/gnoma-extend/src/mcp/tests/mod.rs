//! Whole exchanges with servers: programs, HTTP, and traffic with something broken in it.

mod http;
mod mutated;
mod mutation;
mod program;

use std::{
    collections::BTreeMap, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration,
};

use gnoma_core::{
    RawJson, ToolCall, ToolCx, ToolOutcome, message::CallId, message::ResultPart, sync::Mutex,
    tool::Grant,
};
use gnoma_net::{Http, HttpOptions};
use tokio::{sync::mpsc, time::timeout};

use super::{
    approval::ToolMemory,
    definition::{Definition, ServerOrigin, ServerReach},
    process::ServerEnvironment,
    servers::{ServerOptions, ServerReport, Servers},
};

/// Nothing in these tests takes longer; it is a hang.
const MAX_TEST: Duration = Duration::from_secs(30);

fn definition(reach: ServerReach) -> Definition {
    Definition {
        name: "s".to_owned(),
        origin: ServerOrigin::Configuration,
        reach,
        cwd: None,
        timeout: Some(MAX_TEST),
        network: false,
        writable: Vec::new(),
        replaces: BTreeMap::new(),
        path_args: BTreeMap::new(),
    }
}

/// One server, and what people were told of it.
struct OneServer {
    servers: Servers,
    told: Arc<Mutex<Vec<String>>>,
}

impl OneServer {
    fn new(definition: Definition, cwd: &Path) -> Self {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&told);
        let around = ServerEnvironment {
            http: Http::new(HttpOptions::default()),
            state: None,
            keyring: None,
            cwd: cwd.to_owned(),
            environment: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
            enclosure: None,
            reporter: None,
        };
        let servers = Servers::start_on_demand(ServerOptions {
            definitions: vec![definition],
            around,
            memory: ToolMemory::default(),
            tell: Arc::new(move |_, text| heard.lock().push(text)),
            clean: Arc::new(|text| text.replace("s3cret", "***")),
            window: 200_000,
        });
        Self { servers, told }
    }

    async fn connect(&self) -> ServerReport {
        let connected = timeout(MAX_TEST, self.servers.connect_all(None)).await.expect("no hang");
        connected.into_iter().next().unwrap()
    }

    fn told(&self) -> String {
        self.told.lock().join("\n")
    }

    /// Names of the tools that models are offered.
    fn offered(&self) -> Vec<String> {
        let tools = self.servers.offered_tools(&[]);
        let names = tools.iter().map(|tool| tool.spec().name.clone());
        // Before the server was seen, its tools had to be searched for.
        names.filter(|name| name.starts_with("mcp__")).collect()
    }

    /// The outcome of a call, as text.
    async fn call(&self, tool: &str, arguments: &str) -> String {
        let tools = self.servers.offered_tools(&[]);
        let tool = tools.iter().find(|known| known.spec().name == tool).expect("it is offered");
        let arguments = RawJson::parse(arguments.to_owned()).unwrap();
        let call = ToolCall::new(CallId::new("c"), tool.spec().name.clone(), arguments);
        text(&timeout(MAX_TEST, tool.run(call, cx())).await.expect("no hang"))
    }
}

fn cx() -> ToolCx {
    ToolCx {
        cwd: Arc::default(),
        roots: Arc::default(),
        grant: Grant::default(),
        stop: Default::default(),
        progress: mpsc::channel(1).0,
        stores_large_results: false,
        budget: Default::default(),
        session: None,
        traceparent: None,
    }
}

fn text(outcome: &ToolOutcome) -> String {
    let (start, output) = match outcome {
        ToolOutcome::Done(output) => ("", output),
        ToolOutcome::Failed(output) => ("failed: ", output),
        other => return format!("{other:?}"),
    };
    let parts = output.parts.iter().map(|part| match part {
        ResultPart::Text { text } => text.clone(),
        ResultPart::Image(image) => format!("image {}", image.base64),
    });
    start.to_owned() + &parts.collect::<Vec<_>>().join("\n")
}

#[test]
fn mcp_tool_memory_file_is_owner_only_and_a_pipe_in_its_place_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let memory = ToolMemory::in_state(folder.path());
    let url = "https://mcp.example/".to_owned();
    let definition = definition(ServerReach::Http { url, headers: BTreeMap::new() });
    memory.save_known(&definition, &memory.load_known(&definition).unwrap()).unwrap();
    let mut files = folder.path().join("mcp").read_dir().unwrap();
    let path = files.next().unwrap().unwrap().path();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(memory.load_known(&definition).is_ok());
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(memory.load_known(&definition).unwrap_err().to_string().contains("not a regular file"));
}
