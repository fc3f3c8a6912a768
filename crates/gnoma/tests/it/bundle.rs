//! `gnoma doctor --bundle`: an archive for a bug report, without secrets and conversations.

use std::process::Command;

use crate::support::{World, exists, says};

/// Secrets of many forms, each of which is planted in another place.
const SECRETS: [&str; 20] = [
    "sk-ant-api03-q7Zk3VdYt9LmWc2RxH8sJb4NfPa6GeUo1KiTq7Zk3VdYt9LmWc2Rx",
    "hunter2-of-the-address",
    "hunter3-of-the-query",
    "hunter4-of-the-server",
    "hunter5-of-the-header",
    "hunter6-of-the-argument",
    "hunter7-of-the-hook",
    "ghp_q7Zk3VdYt9LmWc2RxH8sJb4NfPa6GeUo1KiT",
    "AKIAQ7ZK3VDYT9LMWC2R",
    "hunter8-of-the-log",
    "hunter9-of-the-environment",
    "xoxb-123456789012-123456789012-q7Zk3VdYt9LmWc2RxH8sJb4N",
    "hunter10-of-the-agent",
    "hunter11-of-the-remote",
    "words of a person 12",
    "words of a model 13",
    "words of a file 14",
    "glpat-q7Zk3VdYt9LmWc2RxH8s",
    "hunter15-of-a-warning",
    "hunter16-of-the-instructions",
];

fn plant(world: &World) {
    let [key, address, query, server, header, argument, hook, github, aws, log, _, slack, ..] =
        SECRETS;
    let (agent, warning) = (SECRETS[12], SECRETS[18]);
    let more = format!(
        "[provider.api_keys]\ntest = \"{key}\"\nother = \"{github}\"\n\
         [[mcp_servers]]\nname = \"git\"\ncommand = \"no-such-server --token {slack}\"\n\
         args = [\"--token\", \"{argument}\"]\nenv.TOKEN = \"{server}\"\n\
         [[mcp_servers]]\nname = \"far\"\nurl = \"https://far.invalid/mcp?key={query}\"\n\
         headers.X-Key = \"{header}\"\n\
         [[hooks]]\nname = \"h\"\nevent = \"pre_tool_use\"\nexec = \"curl -u me:{hook} http://me:{address}@far.invalid\"\n\
         [[cli_agents]]\nname = \"a\"\ncommand = \"no-such-agent\"\nenv.PASS = \"{agent}\"\n\
         [[security.actions]]\nrule = \"*\"\naction = \"allow\"\n"
    );
    world.configure(&more);
    let logs = world.home.path().join(".local/state/gnoma/logs");
    std::fs::create_dir_all(&logs).unwrap();
    let lines = format!(
        "# debug log of gnoma\n\
         2026-11-28T12:00:00.000Z session=s approval decided call=c allowed=true reason=\"`curl {log}` may run\"\n\
         2026-11-28T12:00:00.000Z session=s model call failed provider=test kind=Auth status=401 error=\"{aws}\"\n\
         2026-11-28T12:00:00.000Z session=s warning text=\"{warning}\"\n\
         2026-11-28T12:00:00.000Z panic thread=\"main\" at=crates/a.rs:1:2 message_bytes=9\n"
    );
    std::fs::write(logs.join("1795867200000-1.log"), lines).unwrap();
}

#[tokio::test]
async fn a_bundle_has_facts_and_neither_secrets_nor_conversations() {
    let world = World::new([says(SECRETS[15])]);
    world.write("AGENTS.md", SECRETS[19]);
    world.write("a.txt", SECRETS[16]);
    std::fs::create_dir(world.project.path().join(".git")).unwrap();
    let remote = format!("[remote \"o\"]\nurl = https://me:{}@far.invalid/x\n", SECRETS[13]);
    world.write(".git/config", &remote);
    world.write(".git/HEAD", &format!("ref: refs/heads/fix-{}\n", SECRETS[17]));
    assert_eq!(world.run(&[SECRETS[14]]).await.code, Some(0));
    plant(&world);

    let mut command = world.command(&["doctor", "--bundle", "report.tar"]);
    command.env("SOME_TOKEN", SECRETS[10]).env("TERM", "xterm-256color");
    let run = crate::support::finish(command.spawn().unwrap()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let files = ["doctor.txt", "versions.txt", "terminal.txt", "configuration.toml", "debug.log"];
    for file in files {
        assert!(run.out.contains(file), "no {file} in {}", run.out);
    }
    let path = world.project.path().join("report.tar");
    let bytes = std::fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    for secret in SECRETS {
        assert!(!text.contains(secret) && !run.out.contains(secret), "{secret} in\n{text}");
    }
    let home = world.home.path().to_str().unwrap();
    assert!(!text.contains(home), "the home in\n{text}");
    for fact in [
        "\nsandbox: ",
        "TERM=\"xterm-256color\"",
        "provider.default = \"test\"",
        " status=401 error=<",
        " panic thread=\"main\" at=crates/a.rs:1:2",
        &format!("gnoma {}", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(text.contains(fact), "no {fact:?} in\n{text}");
    }
    if let Ok(listed) = Command::new("tar").arg("-tf").arg(&path).output() {
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert_eq!(names.lines().collect::<Vec<_>>(), files);
    }
    let again = world.run(&["doctor", "--bundle", "report.tar"]).await;
    assert!(again.code == Some(2) && again.err.contains("already exists"), "{again:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[tokio::test]
async fn incognito_writes_no_bundle() {
    let world = World::new([]);
    let run = world.run(&["--incognito", "doctor", "--bundle", "report.tar"]).await;
    assert!(run.code == Some(2) && run.err.contains("incognito"), "{run:?}");
    assert!(!exists(world.project.path(), "report.tar"));
}
