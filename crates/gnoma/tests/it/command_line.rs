//! Lines that are mistyped: nothing of them reaches a model, and each says what to write.

use std::process::Stdio;

use crate::support::{World, finish, says};

/// Runs a line that must end as misuse without a request; returns what was said.
async fn refused(world: &World, line: &[&str]) -> String {
    let run = world.run(line).await;
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{line:?}: {run:?}");
    assert!(world.server.requests().is_empty(), "{line:?} was sent to a model");
    run.err
}

#[tokio::test]
async fn mistyped_commands_are_not_sent_to_a_model() {
    let world = World::new([]);
    for (line, told) in [
        (&["config", "edit"][..], "`gnoma config set KEY VALUE`"),
        (&["config", "unset", "tui.vim"], "delete its line"),
        (&["config", "reset"], "delete its line"),
        (&["plugin", "uninstall", "x"], "did you mean `gnoma plugin remove x`?"),
        (&["providers", "lst"], "did you mean `gnoma providers list`?"),
        (&["mcp", "get", "x"], "did you mean `gnoma mcp list`?"),
        (&["agents", "show", "x"], "did you mean `gnoma agents list`?"),
        (&["guard", "check", "a.txt"], "did you mean `gnoma guard scan a.txt`?"),
        (&["hooks", "list"], "`gnoma extensions`"),
        (&["usage", "today"], "gnoma -- usage today"),
        (&["man", "sesions"], "there is no command `sesions`"),
        (&["update", "now"], "gnoma -- update now"),
        (&["help", "sesions"], "did you mean `gnoma help sessions`?"),
        (&["/nosuch"], "there is no command `/nosuch`"),
    ] {
        let said = refused(&world, line).await;
        assert!(said.contains(told), "{line:?}: {said}");
        let as_prompt = format!("gnoma -- {}", line.join(" "));
        assert!(said.contains(&as_prompt), "{line:?}: {said}");
    }
    for line in [&["sessions", "rm", "nosuch"][..], &["sessions", "remove", "nosuch"]] {
        assert!(refused(&world, line).await.contains("no saved sessions"), "{line:?}");
    }
    for line in [&["providers", "rm", "work"][..], &["mcp", "delete", "x"], &["plugin", "rm", "x"]]
    {
        let run = world.run(line).await;
        assert!(run.code == Some(2) && !run.err.contains("gnoma -- "), "{line:?}: {run:?}");
    }
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn misspelt_command_of_the_project_is_named_and_a_path_is_a_prompt() {
    let world = World::new([says("a file")]);
    let commands = world.home.path().join(".config/gnoma/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("fix.md"), "Fix $ARGUMENTS\n").unwrap();
    let said = refused(&world, &["/fxi", "42"]).await;
    assert!(said.contains("there is no command `/fxi`; did you mean `/fix`?"), "{said}");
    assert!(said.contains("`gnoma -- /fxi 42`"), "{said}");
    let said = refused(&world, &["exec", "/fxi", "42"]).await;
    assert!(said.contains("did you mean `/fix`?"), "{said}");
    let run = world.pipe(&[], "/model\n").await;
    assert!(run.code == Some(2) && run.err.contains("`/model` is for the conversation"), "{run:?}");
    let run = world.run(&["/etc/passwd", "what is this"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "a file\n"), "{run:?}");
}

#[tokio::test]
async fn help_explains_exec_and_fails_where_it_cannot_be_written() {
    let world = World::new([]);
    let run = world.run(&["help", "exec"]).await;
    assert!(run.code == Some(0) && run.out.contains("Usage: gnoma exec"), "{run:?}");
    for line in [&["--help"][..], &["--version"], &["help", "exec"], &["help", "sessions"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let Ok(full) = full else { return };
        let mut command = world.command(line);
        let run = finish(command.stdout(Stdio::from(full)).spawn().unwrap()).await;
        assert_eq!(run.code, Some(1), "{line:?}: {run:?}");
        assert!(run.err.contains("cannot write to standard output"), "{line:?}: {run:?}");
    }
}

#[tokio::test]
async fn print_may_stand_beside_exec_and_the_last_model_counts() {
    let world = World::new([says("one"), says("two"), says("three")]);
    for line in [
        &["exec", "-p", "hi"][..],
        &["-p", "exec", "hi"],
        &["exec", "--print", "-m", "m1", "-m", "test/m2", "hi"],
    ] {
        assert_eq!(world.run(line).await.code, Some(0), "{line:?}");
    }
    let requests = world.server.requests();
    assert_eq!(requests.last().unwrap().json()["model"], "m2");
}

#[tokio::test]
async fn options_that_change_nothing_about_a_prompt_are_told() {
    let world = World::new([says("one"), says("two")]);
    let run = world.run(&["--confirm-bypass", "--full-screen", "hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "one\n"), "{run:?}");
    assert!(run.err.contains("note: --full-screen has no effect"), "{run:?}");
    assert!(run.err.contains("note: --confirm-bypass has no effect in mode auto"), "{run:?}");
    let run = world.run(&["--confirm-bypass", "--permission", "bypass", "hi"]).await;
    assert!(!run.err.contains("has no effect"), "{run:?}");
}

#[tokio::test]
async fn empty_or_mistaken_session_id_is_refused() {
    let world = World::new([]);
    assert!(refused(&world, &["-r", "", "hi"]).await.contains("the id is empty"));
    let said = refused(&world, &["-r", "hi"]).await;
    assert!(said.contains("`hi` was taken as the id of a session"), "{said}");
    assert!(said.contains("gnoma --continue \"hi\""), "{said}");
}

#[tokio::test]
async fn names_and_keys_of_providers_are_checked() {
    let world = World::new([]);
    assert!(refused(&world, &["--provider", "", "hi"]).await.contains("the name is empty"));
    let vendor = refused(&world, &["--provider", "claude", "hi"]).await;
    assert!(vendor.contains("did you mean `anthropic`?"), "{vendor}");
    let address = ["--address", "http://127.0.0.1:1/v1", "--untested"];
    for name in ["", " ", "../x", "a/b", "my server"] {
        let said = refused(&world, &[&["providers", "add", name][..], &address].concat()).await;
        assert!(said.contains("the name of a provider has no blanks, slashes"), "{name}: {said}");
    }
    let said = refused(&world, &["providers", "add", "minstral"]).await;
    assert!(said.contains("there is no provider `minstral`; did you mean `mistral`?"), "{said}");
    for (key, told) in [("", "is empty"), ("a b", "contains a space")] {
        let line = [&["providers", "add", "work", "--key-stdin"][..], &address].concat();
        let run = world.pipe(&line, key).await;
        let told = format!("`work` was not added: the key on standard input {told}");
        assert!(run.code == Some(2) && run.err.contains(&told), "{run:?}");
    }
    let said = refused(&world, &["providers", "add", "mistral", "--key", "abc"]).await;
    assert!(said.contains("use --key-stdin or --key-env NAME"), "{said}");
    let run = world.run(&["--provider", "openai", "hi"]).await;
    assert!(run.err.contains("`gnoma providers add openai`"), "{run:?}");
}

#[tokio::test]
async fn folders_that_cannot_be_trusted_are_named() {
    let world = World::new([]);
    world.write("a.txt", "");
    for (line, told) in [
        (&["trust", "/not/there"][..], "there is no folder `/not/there`"),
        (&["trust", "me"], "there is no folder `me`"),
        (&["trust", "revoke"], "did you mean `gnoma trust --revoke`?"),
        (&["trust", "a.txt"], "`a.txt` is a file"),
    ] {
        assert!(refused(&world, line).await.contains(told), "{line:?}");
    }
    let run = world.run(&["trust", "--yes"]).await;
    assert!(run.code == Some(0) && run.out.contains("has no settings"), "{run:?}");
    let run = world.run(&["trust", "--list"]).await;
    assert!(run.code == Some(0) && run.err.contains("no folder is trusted"), "{run:?}");
}

#[tokio::test]
async fn options_of_prompts_are_refused_by_commands_that_would_ignore_them() {
    let world = World::new([]);
    for (line, option) in [
        (&["usage", "--model", "x"][..], "--model"),
        (&["models", "--output-format", "json"], "--output-format"),
        (&["--output-format", "json", "sessions", "list"], "--output-format"),
        (&["doctor", "--max-turns", "3"], "--max-turns"),
        (&["--continue", "models"], "--continue"),
    ] {
        let said = refused(&world, line).await;
        assert!(said.contains(&format!("takes no {option}")), "{line:?}: {said}");
    }
    let run = world.run(&["config", "show", "--model", "x"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[tokio::test]
async fn mcp_add_distinguishes_server_addresses_from_programs() {
    let world = World::new([]);
    let said = refused(&world, &["mcp", "add", "z", "ftp://x"]).await;
    assert!(said.contains("begins with http:// or https://"), "{said}");
    let said = refused(&world, &["mcp", "add", "yy", "localhost:9000/mcp"]).await;
    assert!(said.contains("as in http://localhost:9000/mcp"), "{said}");
    let run = world.run(&["mcp", "add", "q", "HTTP://localhost:9000/mcp"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let file = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("url = \"http://localhost:9000/mcp\""), "{text}");
    let said = refused(&world, &["mcp", "add", "q", "x"]).await;
    assert!(said.contains("`gnoma mcp remove q` removes it"), "{said}");
    for line in [&["-e", "K=v", "--", "npx", "thing"][..], &["-s", "user", "npx"]] {
        let said = refused(&world, &[&["mcp", "add", "db"][..], line].concat()).await;
        assert!(said.contains("gnoma mcp add --env KEY=VALUE db -- PROGRAM"), "{said}");
    }
    for (line, told) in [
        (&["https://x", "y"][..], "`y` does: `gnoma mcp add u https://x`"),
        (&["https://x", "--header", "A=b"], "gnoma mcp add --header KEY=VALUE u https://x"),
        (&["--url", "https://x"], "needs no `--url`: `gnoma mcp add u https://x`"),
    ] {
        let said = refused(&world, &[&["mcp", "add", "u"][..], line].concat()).await;
        assert!(said.contains("`u` was not added") && said.contains(told), "{said}");
    }
    let said = refused(&world, &["mcp", "add", "db", "npx -y thing"]).await;
    assert!(said.contains("`gnoma mcp add db -- npx -y thing`"), "{said}");
    let said = refused(&world, &["mcp", "add", "bad name", "x"]).await;
    assert!(said.contains("`bad name` cannot be a server's name"), "{said}");
}

#[tokio::test]
async fn export_follows_the_ending_of_the_file() {
    let world = World::new([says("hello")]);
    assert_eq!(world.run(&["hi"]).await.code, Some(0));
    for (file, begins) in [("e.jsonl", "{"), ("out.HTML", "<!"), ("a.md", "#"), ("plain", "#")] {
        let run = world.run(&["sessions", "export", "-o", file]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(
            world.read(file).to_lowercase().starts_with(begins),
            "{file}: {}",
            world.read(file)
        );
    }
    let run = world.run(&["sessions", "export", "-o", "out.pdf"]).await;
    assert!(run.code == Some(2) && run.err.contains(".md, .html or .jsonl"), "{run:?}");
    assert!(!world.project.path().join("out.pdf").exists());
    let run = world.run(&["sessions", "export", "--format", "html", "-o", "x.pdf"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = world.run(&["sessions", "fork", "--at", "99"]).await;
    assert!(run.err.contains("has no entry 99; `gnoma sessions show "), "{run:?}");
}

#[tokio::test]
async fn broken_skills_are_checked_without_being_named() {
    let world = World::new([]);
    let run = world.run(&["skills", "validate"]).await;
    assert!(run.code == Some(0) && run.err.contains("no skills to check"), "{run:?}");
    let folder = world.project.path().join(".claude/skills/x");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), "---\nname: [\n---\nbody\n").unwrap();
    let run = world.run(&["skills", "validate"]).await;
    assert!(run.code == Some(1) && run.out.contains("not valid"), "{run:?}");
    let run = world.run(&["skills", "show", "nosuch"]).await;
    assert!(run.err.contains("`gnoma skills list` lists them"), "{run:?}");
}

#[tokio::test]
async fn guard_accepts_command_words_and_refuses_folders() {
    let world = World::new([]);
    for line in
        [&["guard", "explain", "rm", "-rf", "build"][..], &["guard", "explain", "rm -rf build"]]
    {
        let run = world.run(line).await;
        assert!(run.out.contains("rm") && run.out.contains("verdict: "), "{line:?}: {run:?}");
    }
    let run = world.run(&["guard", "explain", "--mode", "auto", "ls"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    let run = world.run(&["guard", "explain", "--", "ls", "-la"]).await;
    assert!(run.out.contains("verdict: "), "{run:?}");
    for command in ["scan", "clean", "shell"] {
        let said = refused(&world, &["guard", command, "."]).await;
        assert!(said.contains("`.` is a folder; name a file"), "{command}: {said}");
    }
}

#[tokio::test]
async fn command_line_mistakes_are_answered_with_what_to_write() {
    let world = World::new([]);
    world.write("e.jsonl", "");
    for (line, told) in [
        (&["config", "set", "tui.vim=true"][..], "write `gnoma config set tui.vim true`"),
        (&["config", "set", "tui.vim", ""], "its value is empty"),
        (&["completions"], "needs one of: bash"),
        (&["import"], "needs one of: claude"),
        (&["ci", "init"], "needs one of: github"),
        (&["sessions", "import", "e.jsonl"], "e.jsonl` is empty"),
        (&["sessions", "import", ".", "--from", "opencode"], "looked for opencode's `.json` files"),
        (&["--thinking", "high", "hi"], "--thinking takes off, adaptive or a number of tokens"),
        (&["--thinking", "-5", "hi"], "--thinking takes off, adaptive or a number of tokens"),
        (&["serve", "--http", "4666"], "write it like 127.0.0.1:4666"),
        (&["--model", "", "hi"], "--model is empty"),
        (&["--json-schema", "", "hi"], "--json-schema is empty"),
        (&["--max-turns", "0", "hi"], "must be 1 or more"),
        (&["rewind", "0"], "the number of turns must be 1 or more"),
        (&["ci", "review"], "is not a git repository, or has no commits yet"),
    ] {
        let said = refused(&world, line).await;
        assert!(said.contains(told), "{line:?}: {said}");
    }
}
