//! Credentials in addresses: known from the start, and kept from what did not ask for them.

use std::fs;

use gnoma_testkit::Reply;
use serde_json::json;

use crate::{
    mcp::{SERVER, Served},
    support::{calls, finish, says},
};

const PASSWORD: &str = "Kq7-zz81Lm-Pw04";

/// Runs one turn with the address of a database in the environment.
async fn turn(served: &Served) -> String {
    let address = format!("postgres://app:{PASSWORD}@db.internal:5432/app");
    let mut command = served.world.command(&["--permission", "accept_edits", "go on with fake"]);
    let run = finish(command.env("DB_URL", address).spawn().unwrap()).await;
    run.err
}

fn backwards() -> String {
    PASSWORD.chars().rev().collect()
}

#[tokio::test]
async fn commands_hooks_and_servers_do_not_get_addresses_with_credentials() {
    let replies: [Reply; 3] = [
        calls("bash", r#"{"command":"sh ./show.sh"}"#),
        calls("bash", r#"{"command":"printenv"}"#),
        says("done"),
    ];
    let served = Served::with(replies);
    fs::write(served.at("server.sh"), SERVER.replacen("echo $$", "env > got-env; echo $$", 1))
        .unwrap();
    let world = &served.world;
    world.write("show.sh", "echo \"url=$DB_URL\" | rev\n");
    let hook = json!([{"hooks": [{"type": "command", "command": "env > hook-env"}]}]);
    world.put_home(".claude/settings.json", &json!({"hooks": {"PreToolUse": hook}}).to_string());
    let said = turn(&served).await;
    for (file, text) in [
        ("hook", world.read("hook-env")),
        ("server", fs::read_to_string(served.at("got-env")).unwrap()),
        ("model", world.sent()),
    ] {
        assert!(text.contains("PATH=") || file == "model", "{file}: {text}");
        for form in [PASSWORD, &backwards(), "postgres://"] {
            assert!(!text.contains(form), "{file} has {form}: {text} {said}");
        }
    }
    assert!(world.sent().contains("=lru"), "the command ran: {}", world.sent());
}

#[tokio::test]
async fn credentials_in_addresses_are_hidden_wherever_they_stand() {
    let served = Served::with([calls("fs_read", r#"{"path":"a.txt"}"#), says("done")]);
    let world = &served.world;
    world.write("a.txt", &format!("one {PASSWORD}\ntwo {}\n", backwards()));
    turn(&served).await;
    let sent = world.sent();
    assert!(sent.contains("one ") && sent.contains("two "), "{sent}");
    assert!(!sent.contains(PASSWORD) && !sent.contains(&backwards()), "{sent}");
}
