//! A project, a home and a server for one run of the program.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Server, Wire};
use serde_json::Value;
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
};

/// No run of these tests takes longer; one that does hangs.
const MAX_RUN: Duration = Duration::from_secs(60);

/// What the program finds around itself.
pub(crate) struct World {
    pub home: tempfile::TempDir,
    pub project: tempfile::TempDir,
    pub server: Server,
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl World {
    /// A world whose provider `test` answers with `replies`, one a request.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(Server::start_with_replies(replies).unwrap())
    }

    /// The same world with its folders where those of people are: not among temporary files, which
    /// commands find replaced by ones of their own.
    pub(crate) fn among_files(mut self) -> Self {
        let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        (self.home, self.project) = (folder(), folder());
        self.configure("");
        self
    }

    pub(crate) fn with(server: Server) -> Self {
        let world = Self {
            home: tempfile::tempdir().unwrap(),
            project: tempfile::tempdir().unwrap(),
            server,
        };
        world.configure("");
        world
    }

    /// Writes the user's configuration, with `more` at its end.
    pub(crate) fn configure(&self, more: &str) {
        let folder = self.home.path().join(".config/gnoma");
        std::fs::create_dir_all(&folder).unwrap();
        let url = self.server.url();
        let text = format!(
            "[provider]\ndefault = \"test\"\nmodel = \"m1\"\n[provider.endpoints]\ntest = \"{url}/v1\"\n{more}"
        );
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.project.path().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project.path().join(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gnoma"));
        command
            .args(args)
            .current_dir(self.project.path())
            .env_clear()
            .env("TZ", "UTC")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path().join("run"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Run {
        finish(self.command(args).spawn().unwrap()).await
    }

    /// Runs a command that prints JSON.
    pub(crate) async fn json(&self, args: &[&str]) -> Value {
        let run = self.run(args).await;
        assert_eq!(run.code, Some(0), "{args:?}: {run:?}");
        serde_json::from_str(&run.out).unwrap()
    }

    /// The ids of the sessions that are kept, the newest first.
    pub(crate) async fn sessions(&self) -> Vec<String> {
        let all = self.json(&["sessions", "list", "--json"]).await;
        let ids = all.as_array().unwrap().iter();
        ids.map(|facts| facts["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Where sessions and checkpoints are kept.
    pub(crate) fn kept(&self) -> PathBuf {
        self.home.path().join(".local/state/gnoma/kept")
    }

    /// Roles and texts of the messages in the last request, without the system prompt.
    pub(crate) fn last_request(&self) -> Vec<(String, String)> {
        let requests = self.server.requests();
        let messages = requests.last().unwrap().json()["messages"].clone();
        let text = |message: &Value| {
            let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
            (text("role"), text("content"))
        };
        messages.as_array().unwrap().iter().skip(1).map(text).collect()
    }

    /// Runs with `input` on standard input.
    pub(crate) async fn pipe(&self, args: &[&str], input: &str) -> Run {
        fed(self.command(args), input).await
    }
}

/// Runs with `input` on standard input.
pub(crate) async fn fed(mut command: Command, input: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    finish(child).await
}

pub(crate) async fn finish(child: Child) -> Run {
    let output = tokio::time::timeout(MAX_RUN, child.wait_with_output()).await;
    let output = output.expect("the program hangs").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The model says `text` and is done.
pub(crate) fn says(text: &str) -> Reply {
    Wire::OpenAi.stream_reply(&Script::text([text]).with_stop(StopReason::EndTurn))
}

/// The model calls one tool, in the wire's spelling.
pub(crate) fn calls(name: &str, arguments: &str) -> Reply {
    let script = Script::text([""; 0]).with_call("call_a", name, arguments);
    Wire::OpenAi.stream_reply(&script.with_stop(StopReason::ToolUse))
}

/// The model says `text`, and then its provider refuses to go on.
pub(crate) fn refused_midway(text: &str) -> Reply {
    let piece = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let refusal = r#"{"error":{"message":"no more","type":"invalid_request_error"}}"#;
    Reply::sse(format!("data: {piece}\n\ndata: {refusal}\n\n"))
}

pub(crate) fn exists(folder: &Path, name: &str) -> bool {
    folder.join(name).exists()
}
