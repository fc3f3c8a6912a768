//! What commands that run unasked can see and leave, whatever the judge takes them for: they are handed to
//! the tool as commands that only read, and what they did is looked at.

use std::{
    fs,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};

use gnoma_core::{
    CallId, RawJson, Tool, ToolCall, ToolCx, ToolOutcome,
    message::ResultPart,
    protocol::{Environment, SessionSpec},
    tool::Grant,
};
use gnoma_host::{Notices, ProcessResources, Project, guard_setup};
use gnoma_sandbox::{Strength, Support};
use gnoma_tools::{Sandbox, ToolOptions};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// No command here takes longer.
const MAX_RUN: Duration = Duration::from_secs(30);

/// A project and a home away from the machine's temporary files, and the tool of one session.
struct Session {
    folder: tempfile::TempDir,
    bash: Arc<dyn Tool>,
}

impl Session {
    /// `None` where the walls do not hold.
    fn new(settings: &str) -> Option<Self> {
        let support = Support::detect();
        if support.strength != Strength::Full {
            gnoma_testkit::skip_test(&format!("no sandbox: {}", support.strength));
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["home/.config/gnoma", "project", "other"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("home/.config/gnoma/config.toml"), settings).unwrap();
        let bash = tool(folder.path());
        Some(Self { folder, bash })
    }

    fn at(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a command as one that was judged to read only; returns what the model is told.
    async fn reads(&self, command: &str) -> String {
        self.granted(command, Vec::new()).await
    }

    async fn granted(&self, command: &str, paths: Vec<PathBuf>) -> String {
        self.run(json!({ "command": command }), Grant { paths, ..Grant::default() }).await
    }

    /// As [`Self::reads`], for so many seconds at most.
    async fn reads_for(&self, command: &str, seconds: u32) -> String {
        self.run(json!({ "command": command, "timeout": seconds }), Grant::default()).await
    }

    async fn run(&self, arguments: serde_json::Value, grant: Grant) -> String {
        let project = self.at("project");
        let arguments = RawJson::from_value(&arguments).unwrap();
        let cx = ToolCx {
            cwd: Arc::new(project.clone()),
            roots: [project].into(),
            grant: Grant { reads_only: true, ..grant },
            stop: CancellationToken::new(),
            progress: mpsc::channel(16).0,
            stores_large_results: false,
            budget: Default::default(),
            session: None,
            traceparent: None,
        };
        let call = ToolCall::new(CallId::new("c"), "bash", arguments);
        let outcome = tokio::time::timeout(MAX_RUN, self.bash.run(call.clone(), cx)).await.unwrap();
        assert!(!matches!(outcome, ToolOutcome::Denied(_)), "{outcome:?}");
        let parts = outcome.into_result(&call).parts;
        parts
            .iter()
            .map(|part| match part {
                ResultPart::Text { text } => text.clone(),
                other => format!("{other:?}"),
            })
            .collect()
    }
}

fn tool(folder: &Path) -> Arc<dyn Tool> {
    let folder = fs::canonicalize(folder).unwrap();
    let home = folder.join("home").display().to_string();
    let variables = [
        ("HOME", home.clone()),
        ("PATH", format!("{home}/.cargo/bin:/usr/local/bin:/usr/bin:/bin")),
        ("XDG_RUNTIME_DIR", format!("{home}/run")),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
    let spec = SessionSpec {
        folder: folder.join("project"),
        environment: Environment::new(variables),
        ..SessionSpec::default()
    };
    let project =
        Project::open(spec, Notices::without_sink(), ProcessResources::default()).unwrap();
    let mut sandbox =
        guard_setup::build_sandbox(&project.guard, &project.places, &project.spec, None);
    if let Sandbox::Walled { launcher, .. } = &mut sandbox {
        *launcher = env!("CARGO_BIN_EXE_gnoma").into();
    }
    let environment = Some(project.spec.environment.variables().clone());
    let options = ToolOptions { sandbox, environment, ..ToolOptions::default() };
    let tools = gnoma_tools::builtin_tools(&options);
    tools.into_iter().find(|tool| tool.spec().name == *"bash").unwrap()
}

/// A name among the machine's temporary files that nobody else has.
fn temporary(folder: &str, name: &str) -> PathBuf {
    Path::new(folder).join(format!("gnoma-{name}-{}", std::process::id()))
}

#[tokio::test]
async fn sandbox_hides_the_machines_temporary_files() {
    let Some(session) = Session::new("") else { return };
    for folder in ["/tmp", "/var/tmp"] {
        let (old, new) = (temporary(folder, "old"), temporary(folder, "new"));
        fs::write(&old, "of the machine\n").unwrap();
        let said = session
            .reads(&format!(
                "cat {0}; rm -f {0}; echo in > {1} && cat {1}",
                old.display(),
                new.display()
            ))
            .await;
        assert!(said.ends_with("in") && !said.contains("of the machine"), "{said}");
        assert_eq!(fs::read_to_string(&old).unwrap(), "of the machine\n");
        assert!(!new.exists());
        // The session's next command finds it, another session does not.
        let again = format!("cat {}", new.display());
        assert_eq!(session.reads(&again).await.trim(), "in");
        let other = Session::new("").unwrap();
        assert!(other.reads(&again).await.contains("No such file"));
        fs::remove_file(old).unwrap();
    }
}

#[tokio::test]
async fn sandbox_readable_by_all_grant_excludes_secrets() {
    let Some(session) = Session::new("") else { return };
    session.put("machine/log/today.log", "all is well\n");
    session.put("machine/site/.env", "API_KEY=sk-1234\n");
    let command =
        format!("cat {0}/log/today.log; cat {0}/site/.env", session.at("machine").display());
    assert!(session.reads(&command).await.contains("No such file"));
    let readable_by_all = vec![session.at("machine")];
    let grant = Grant { readable_by_all, ..Grant::default() };
    let said = session.run(json!({ "command": command }), grant).await;
    assert!(said.contains("all is well") && !said.contains("sk-1234"), "{said}");
}

#[tokio::test]
async fn sandbox_temporary_files_are_removed_with_the_session() {
    let Some(session) = Session::new("") else { return };
    let scratch = session.at("home/.local/state/gnoma/scratch");
    let left = |name: &str| scratch.join(name);
    session.put("home/.local/state/gnoma/scratch/1-1/lock", "");
    session.put("home/.local/state/gnoma/scratch/1-1/tmp/left", "");
    session.reads("mkdir -p /tmp/a/b; chmod 0 /tmp/a; echo x > /var/tmp/x").await;
    assert!(!left("1-1").exists(), "of a session that was killed");
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 1);
    let Session { folder, bash } = session;
    drop(bash);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
    drop(folder);
}

#[tokio::test]
async fn sandbox_hides_home_other_projects_and_system_secrets() {
    let Some(session) = Session::new("") else { return };
    // Temporary files are the session's own, and a home among those of the machine is not there.
    if !session.folder.path().starts_with("/tmp") {
        let home = session.at("home").display().to_string();
        assert_eq!(session.reads("cd && pwd").await.trim(), home);
    }
    for name in ["home/.config/tool/token", "home/notes", "home/.ssh/id_ed25519", "other/file"] {
        session.put(name, "canary-words\n");
    }
    session.put("home/.npmrc", "canary-words\n");
    session.put("home/.cargo/credentials.toml", "canary-words\n");
    session.put("home/.cargo/bin/tool", "#!/bin/sh\necho the-tool\n");
    session.put("home/.gitconfig", "[user]\nname = the-name\n");
    symlink(session.at("other/file"), session.at("project/link")).unwrap();
    // The list is made when a session begins.
    let session = Session { bash: tool(session.folder.path()), ..session };
    for command in [
        "cat ~/.config/tool/token ~/notes ~/.ssh/id_ed25519 ~/.npmrc ~/.cargo/credentials.toml",
        "cat ../other/file link",
        "cat /etc/shadow /etc/gshadow /etc/ssh/ssh_host_*",
        "grep -r canary-words ~ .. / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -s",
        "cat /proc/1/environ /proc/1/root/etc/shadow",
        "(cd / && find . -name other -not -path './sys/*' -not -path './proc/*' -not -path './usr/*' \
            -not -path './etc/*' -not -path './opt/*')",
    ] {
        let said = session.reads(command).await;
        assert!(!said.contains("canary-words") && !said.contains("root:"), "{command}: {said}");
        assert!(!said.contains("/other\n"), "{command}: {said}");
    }
    let said = session.reads("ls -A ~; git config --global user.name; sh ~/.cargo/bin/tool").await;
    assert!(said.contains("the-name") && said.contains("the-tool"), "{said}");
    assert!(!said.contains(".ssh") && !said.contains("notes"), "{said}");
}

#[tokio::test]
async fn sandbox_lists_secret_files_of_the_workspace_but_does_not_open_them() {
    let Some(session) = Session::new("") else { return };
    for name in ["project/.env", "project/api/.env.local", "project/certs/server.key"] {
        session.put(name, "KEY=canary-words\n");
    }
    session.put("project/.env.example", "KEY=example-words\n");
    let said = session.reads("ls -A . api certs; wc -c < .env.example").await;
    for name in [".env\n", ".env.local", "server.key", "18"] {
        assert!(said.contains(name), "{name}: {said}");
    }
    for command in [
        "cat .env api/.env.local certs/server.key",
        "cp .env /tmp/x; cat /tmp/x",
        "ln -s $PWD/.env /tmp/y; cat /tmp/y",
        "rm -f .env; mv .env x; echo new > .env; grep -r KEY .",
        "cat /proc/self/cwd/.env",
    ] {
        let said = session.reads(command).await;
        assert!(!said.contains("canary-words"), "{command}: {said}");
    }
    assert_eq!(fs::read_to_string(session.at("project/.env")).unwrap(), "KEY=canary-words\n");
    // After a person said so it opens, and only that one.
    let said = session.granted("cat .env api/.env.local", vec![session.at("project/.env")]).await;
    assert_eq!(said.matches("canary-words").count(), 1, "{said}");
}

#[tokio::test]
async fn sandbox_read_only_command_changes_nothing() {
    let Some(session) = Session::new("") else { return };
    session.put("project/file", "old\n");
    session.put("home/.gitconfig", "old\n");
    session.put("home/.cache/uv/x", "old\n");
    session
        .reads(
            "echo new > file; rm file; touch made; mkdir d; chmod 700 .; touch -d 2001-01-01 file; \
             echo new > ~/.gitconfig; touch ~/made ~/.cache/uv/made; mkdir -p ~/.config/made; \
             touch /etc/gnoma-made /usr/gnoma-made /var/gnoma-made /gnoma-made",
        )
        .await;
    assert_eq!(fs::read_to_string(session.at("project/file")).unwrap(), "old\n");
    assert_eq!(fs::read_to_string(session.at("home/.gitconfig")).unwrap(), "old\n");
    assert_eq!(fs::read_dir(session.at("project")).unwrap().count(), 1);
    for name in ["home/made", "home/.cache/uv/made", "home/.config/made"] {
        assert!(!session.at(name).exists(), "{name}");
    }
    for name in ["/etc/gnoma-made", "/usr/gnoma-made", "/var/gnoma-made", "/gnoma-made"] {
        assert!(!Path::new(name).exists(), "{name}");
    }
    let age = fs::metadata(session.at("project/file")).unwrap().modified().unwrap().elapsed();
    assert!(age.unwrap() < Duration::from_secs(3600));
}

#[tokio::test]
async fn sandbox_reaches_no_network_service_or_unix_socket() {
    let Some(session) = Session::new("") else { return };
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let _socket = UnixListener::bind(session.at("project/service.sock")).unwrap();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    let said = session.reads(&connect).await;
    assert!(!said.contains("reached\n"), "{said}");
    assert!(server.accept().is_err());
    // A server that one command starts is not there for the next.
    if Path::new("/usr/bin/python3").exists() {
        let serve = "python3 -c 'import socket,time
s = socket.create_server((\"127.0.0.1\", 0)); print(s.getsockname()[1], flush=True); time.sleep(5)' &
            sleep 1";
        let port = session.reads(serve).await;
        let port = port.lines().next().unwrap_or_default().trim().to_owned();
        assert!(port.parse::<u16>().is_ok(), "{port}");
        let said =
            session.reads(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")).await;
        assert!(!said.contains("reached\n"), "{said}");
        let path = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"service.sock\"); \
            print(\"reached\")'";
        let said = session.reads(path).await;
        assert!(!said.contains("reached\n"), "{said}");
    }
}

#[tokio::test]
async fn sandbox_readable_setting_adds_a_folder() {
    let Some(session) = Session::new("[sandbox]\nreadable = [\"~/notes\"]\n") else { return };
    session.put("home/notes/one", "of the notes\n");
    // The list is made when a session begins.
    let session = Session { bash: tool(session.folder.path()), ..session };
    assert_eq!(session.reads("cat ~/notes/one").await.trim(), "of the notes");
    let said = session.granted("cat ../other/file", vec![session.at("other/file")]).await;
    assert!(said.contains("No such file"), "{said}");
    session.put("other/file", "asked for\n");
    let said = session.granted("cat ../other/file", vec![session.at("other/file")]).await;
    assert_eq!(said.trim(), "asked for");
}

/// A corpus of commands with observed effects from outside the project, one JSON object with `command` a line: handed
/// over as if the judge had taken each for reading.
#[tokio::test]
#[ignore = "needs a corpus that is not part of the project, named by GNOMA_HOSTILE"]
#[expect(
    clippy::disallowed_methods,
    reason = "says where a corpus lies that is not part of the project"
)]
async fn sandbox_contains_the_hostile_command_corpus() {
    let corpus = std::env::var_os("GNOMA_HOSTILE").expect("GNOMA_HOSTILE names the corpus");
    let Some(session) = Session::new("") else { return };
    let secrets = [".env", ".env.local", "key.pem", "sub/.env", "credentials.json"];
    let at_home =
        [".ssh/id_rsa", ".aws/credentials", ".netrc", ".npmrc", ".config/tool/x", "notes"];
    let files = ["a", "b", "c", "f", "x", "y", "app.log", "data.csv", "src/main.rs", "Makefile"];
    for name in secrets {
        session.put(&format!("project/{name}"), "KEY=canary-of-the-walls\n");
    }
    for name in at_home {
        session.put(&format!("home/{name}"), "KEY=canary-of-the-walls\n");
    }
    for name in files {
        session.put(&format!("project/{name}"), "one\ntwo 3\n");
    }
    session.put("other/file", "canary-of-the-walls\n");
    let temporary = temporary("/tmp", "hostile");
    fs::write(&temporary, "canary-of-the-walls\n").unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let session = Session { bash: tool(session.folder.path()), ..session };
    // Its own folder is made by the first command.
    session.reads("true").await;
    let before = listed(session.folder.path());
    let text = fs::read_to_string(corpus).unwrap();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let command = row["command"].as_str().unwrap();
        let port = server.local_addr().unwrap().port();
        let whole = format!("{command}\n:;exec 9<>/dev/tcp/127.0.0.1/{port}");
        let said = session.reads_for(&whole, 2).await;
        assert!(!said.contains("canary-of-the-walls"), "{command}: {said}");
        assert!(server.accept().is_err(), "{command}");
    }
    assert_eq!(listed(session.folder.path()), before);
    assert_eq!(fs::read_to_string(&temporary).unwrap(), "canary-of-the-walls\n");
    fs::remove_file(temporary).unwrap();
}

/// Every file below a folder but the session's own, with what tells whether it changed.
fn listed(folder: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let facts = entry.metadata().unwrap();
            let is_own = entry.path().ends_with(".local/state/gnoma");
            if facts.is_dir() && !is_own {
                folders.push(entry.path());
            }
            let changed = if facts.is_dir() { 0 } else { facts.ctime_nsec() };
            found.push((entry.path(), facts.ino(), facts.mode().into(), changed));
        }
    }
    found.sort();
    found
}

/// Puts the file `p` and the link `q` of a folder in each other's place again and again.
fn swapping(folder: &Path) -> impl Drop {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    struct Swapping(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);
    impl Drop for Swapping {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            self.1.take().unwrap().join().unwrap();
        }
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let (p, q, ends) = (folder.join("p"), folder.join("q"), Arc::clone(&is_over));
    let swap = move || {
        while !ends.load(Ordering::Relaxed) {
            renameat_with(CWD, &p, CWD, &q, RenameFlags::EXCHANGE).unwrap();
        }
    };
    Swapping(is_over, Some(std::thread::spawn(swap)))
}

#[tokio::test]
async fn sandbox_grant_replaced_by_a_symlink_is_refused() {
    let Some(session) = Session::new("") else { return };
    session.put("home/.ssh/id_rsa", "CANARY\n");
    session.put("other/notes", "words\n");
    let (notes, folder) = (session.at("other/notes"), session.at("other"));
    let read = format!("cat {}", notes.display());
    assert!(session.granted(&read, vec![notes.clone()]).await.contains("words"));
    fs::remove_file(&notes).unwrap();
    symlink(session.at("home/.ssh/id_rsa"), &notes).unwrap();
    let said = session.granted(&read, vec![notes.clone()]).await;
    assert!(said.contains("was not run") && said.contains("other/notes"), "{said}");
    fs::rename(&folder, session.at("moved")).unwrap();
    symlink(session.at("home/.ssh"), &folder).unwrap();
    let key = folder.join("id_rsa");
    let said = session.granted(&format!("cat {}", key.display()), vec![key]).await;
    assert!(said.contains("was not run") && !said.contains("CANARY"), "{said}");
}

#[tokio::test]
async fn sandbox_grant_swapped_during_start_exposes_nothing_else() {
    const TRIES: usize = 60;
    let Some(session) = Session::new("") else { return };
    session.put("home/.ssh/id_rsa", "CANARY\n");
    session.put("other/p", "words\n");
    let folder = session.at("other");
    symlink(session.at("home/.ssh/id_rsa"), folder.join("q")).unwrap();
    let swapping = swapping(&folder);
    let read = format!("cat {}", folder.join("p").display());
    for _ in 0..TRIES {
        let said = session.granted(&read, vec![folder.join("p")]).await;
        assert!(!said.contains("CANARY"), "{said}");
    }
    drop(swapping);
}

#[tokio::test]
async fn file_swapped_with_a_symlink_during_judging_is_not_read() {
    const TRIES: usize = 10;
    let world = crate::support::World::new([]).among_files();
    let at = |folder: &tempfile::TempDir| folder.path().canonicalize().unwrap();
    let (home, project) = (at(&world.home), at(&world.project));
    fs::create_dir(home.join(".ssh")).unwrap();
    fs::write(home.join(".ssh/id_rsa"), "CANARY\n").unwrap();
    world.write("p", "words\n");
    symlink(home.join(".ssh/id_rsa"), project.join("q")).unwrap();
    let commands = [
        "cat p",
        "cat ./p q",
        "head -n 3 p",
        "tail -c 20 p",
        "grep -n A p",
        "wc p",
        "sort p",
        "sed -n 1,5p p",
        "cut -c1-9 p",
        "od -c p",
        "diff p q",
        "cat < p",
    ];
    let lines: String = (0..TRIES)
        .flat_map(|_| commands)
        .map(|command| format!("{}\n", json!({ "id": command, "command": command })))
        .collect();
    let swapping = swapping(&project);
    let run = world.pipe(&["guard", "run", "--mode", "auto", "--jsonl"], &lines).await;
    drop(swapping);
    let mut ran = 0;
    for line in run.out.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let output = row["output_b64"].as_str().unwrap();
        let text = BASE64_STANDARD.decode(output).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("CANARY") && !text.contains("C   A   N"), "{row}: {text}");
        ran += usize::from(row["ran"] == true);
    }
    assert!(ran > 0, "{run:?}");
}
