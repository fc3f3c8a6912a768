//! The first minutes: commands that are none, what is said about models and settings, and how the
//! program ends.

use gnoma_testkit::{Reply, Server};
use serde_json::Value;

use crate::support::{World, calls, finish, says};

#[tokio::test]
async fn help_and_version_need_no_dashes() {
    let world = World::new([]);
    let lines: &[(&[&str], &[&str])] = &[
        (&["help"], &["--help"]),
        (&["help", "sessions"], &["sessions", "--help"]),
        (&["version"], &["--version"]),
    ];
    for (words, options) in lines {
        let (said, run) = (world.run(words).await, world.run(options).await);
        assert_eq!((said.code, &said.out), (Some(0), &run.out), "{words:?}");
    }
}

#[tokio::test]
async fn mistyped_commands_send_no_request() {
    let world = World::new([]);
    let lines: &[&[&str]] = &[
        &["login"],
        &["init"],
        &["plugins"],
        &["session", "list"],
        &["sesions", "list"],
        &["upgrade"],
        &["--output-format", "json", "login"],
        &["/model", "gpt-5"],
        &["/compact focus on x"],
        &["."],
    ];
    for line in lines {
        let run = world.run(line).await;
        assert_eq!(run.code, Some(2), "{line:?}: {run:?}");
        assert!(run.err.starts_with("gnoma: "), "{line:?}: {run:?}");
        assert!(run.err.lines().count() <= 2 && run.err.contains("`gnoma "), "{line:?}: {run:?}");
    }
    assert_eq!(world.server.requests().len(), 0);
}

#[tokio::test]
async fn double_dash_makes_a_prompt_of_any_words() {
    let world = World::new([says("one"), says("two"), says("three")]);
    assert_eq!(world.run(&["--", "version"]).await.out, "one\n");
    assert_eq!(world.run(&["--", "models"]).await.out, "two\n");
    assert_eq!(world.run(&["help", "me", "with", "this"]).await.out, "three\n");
    assert_eq!(world.last_request().last().unwrap().1, "help me with this");
}

#[tokio::test]
async fn missing_prompt_is_an_error_in_one_line() {
    let run = World::new([]).run(&[]).await;
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("gnoma: no prompt given"), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
}

#[tokio::test]
async fn models_shows_who_can_be_asked_and_update_what_to_do() {
    let world = World::new([]);
    let run = world.run(&["models", "TEST/"]).await;
    assert!(run.out.starts_with("model ") && run.out.contains("state"), "{run:?}");
    assert!(run.out.contains("test/m1") && run.out.contains("ready"), "{run:?}");
    let json = world.json(&["models", "--json"]).await;
    assert_eq!(json["arms"][0]["arm"], "test/m1", "{json}");
    let none = world.run(&["models", "nosuch"]).await;
    assert_eq!((none.code, none.err.contains("`gnoma models` lists all")), (Some(2), true));
    let update = world.run(&["update"]).await;
    assert!(update.code == Some(0) && update.out.contains("to update it: "), "{update:?}");
    assert!(update.out.contains("git pull"), "a build of a checkout: {update:?}");
}

#[tokio::test]
async fn server_that_gives_no_list_of_models_is_named_with_the_reason() {
    let closed = Server::start(|_| Reply::json(403, r#"{"error":"closed"}"#)).unwrap();
    let world = World::new([]);
    world.configure(&format!("other = \"{}/v1\"\n", closed.url()));
    let run = world.run(&["models"]).await;
    let told = "no list of models from other: no access (HTTP 403): closed";
    assert!(run.out.contains("test/m1") && run.out.contains(told), "{run:?}");
    let json = world.json(&["models", "--json"]).await;
    let unlisted = json["unlisted"][0].as_str().unwrap();
    assert!(unlisted.starts_with("other: no access"), "{json}");
}

#[tokio::test]
async fn a_setting_is_explained_set_and_read() {
    let world = World::new([]);
    let said = world.run(&["config", "explain", "provider.model"]).await.out;
    for part in [
        "model that routing starts from",
        "`router.mode` is `off`",
        "\"m1\"",
        "config.toml:3",
        "GNOMA_MODEL",
        "--model",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(world.run(&["config", "get", "provider.model"]).await.out, "m1\n");
    let unset = world.run(&["config", "get", "provider.effort"]).await;
    assert_eq!((unset.code, unset.out.as_str()), (Some(1), ""), "{unset:?}");
    let set = world.run(&["config", "set", "tools.max_rounds", "7"]).await;
    assert_eq!(set.code, Some(0), "{set:?}");
    assert_eq!(world.run(&["config", "get", "tools.max_rounds"]).await.out, "7\n");
    let over = world.run(&["--model", "m9", "config", "set", "provider.model", "m2"]).await;
    assert!(over.err.contains("note: here `provider.model` is \"m9\""), "{over:?}");
    for (key, value, told) in [
        ("tui.theme", "pink", "ember"),
        ("provider.default", "mistrall", "unknown provider `mistrall`"),
        ("default_profile", "work", "there is no profile `work`"),
        ("provider.max_tokens", "many", "a whole number"),
        ("tui.theem", "mono", "`tui.theme`"),
    ] {
        let refused = world.run(&["config", "set", key, value]).await;
        assert_eq!(refused.code, Some(2), "{key}: {refused:?}");
        assert!(refused.err.contains(told), "{key}: {refused:?}");
    }
    world.configure("[router.caps]\nday = \"5 EUR\"\n");
    let refused = world.run(&["config", "set", "tui.theme", "mono"]).await;
    assert!(refused.code == Some(2) && refused.err.contains("`router.exchange.EUR`"));
    let rate = world.run(&["config", "set", "router.exchange.EUR", "1.1"]).await;
    assert_eq!(rate.code, Some(0), "{rate:?}");
    assert_eq!(world.run(&["config", "get", "router.exchange.EUR"]).await.out, "1.1\n");
    let unknown = world.run(&["config", "explain", "theme"]).await;
    assert!(unknown.code == Some(2) && unknown.err.contains("did you mean `tui.theme`?"));
}

#[tokio::test]
async fn a_configuration_file_is_written_with_its_schema_and_never_over_one() {
    let world = World::new([]);
    let folder = world.home.path().join(".config/gnoma");
    let before = std::fs::read_to_string(folder.join("config.toml")).unwrap();
    let there = world.run(&["config", "init"]).await;
    assert_eq!(there.code, Some(0), "{there:?}");
    assert_eq!(std::fs::read_to_string(folder.join("config.toml")).unwrap(), before);
    let example = std::fs::read_to_string(folder.join("config.example.toml")).unwrap();
    assert!(example.starts_with("#:schema ./config.schema.json\n"), "{example}");
    std::fs::remove_file(folder.join("config.toml")).unwrap();
    let written = world.run(&["config", "init"]).await;
    assert_eq!(written.code, Some(0), "{written:?}");
    let text = std::fs::read_to_string(folder.join("config.toml")).unwrap();
    assert!(text.starts_with("#:schema ./config.schema.json\n"), "{text}");
    let beside = std::fs::read_to_string(folder.join("config.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&world.run(&["config", "schema"]).await.out).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&beside).unwrap(), schema);
    assert_eq!(schema["properties"]["tui"]["properties"]["vim"]["type"], "boolean");
    assert_eq!(world.run(&["config", "show"]).await.code, Some(0), "the file is valid");
}

#[tokio::test]
async fn the_manual_has_a_page_for_every_command() {
    let world = World::new([]);
    let nested = world.run(&["man", "providers", "add"]).await;
    assert!(nested.code == Some(0) && nested.out.contains("untested"), "{nested:?}");
    let page = world.run(&["man"]).await;
    assert!(page.code == Some(0) && page.out.contains(".TH gnoma 1"), "{page:?}");
    assert_eq!(world.run(&["man", "--dir", "pages"]).await.code, Some(0));
    let pages = world.project.path().join("pages");
    for name in ["gnoma.1", "gnoma-sessions.1", "gnoma-sessions-list.1", "gnoma-config-set.1"] {
        assert!(pages.join(name).is_file(), "{name}");
    }
}

#[tokio::test]
async fn invalid_home_folder_is_reported() {
    let world = World::new([says("hi")]);
    let file = world.project.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut command = world.command(&["sessions", "list"]);
    command.env("HOME", &file);
    let run = finish(command.spawn().unwrap()).await;
    let told = format!("warning: the home folder {} is not a folder", file.display());
    assert!(run.err.starts_with(&told) && run.err.contains("Set HOME"), "{run:?}");
}

#[tokio::test]
async fn program_starts_with_a_256_kb_stack() {
    let mut shell = tokio::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_gnoma");
    shell.args(["-c", "ulimit -s 256; exec \"$0\" --version"]).arg(program).env_clear();
    let output = shell.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// A session that cannot be saved is answered all the same.
#[tokio::test]
async fn a_limit_on_the_size_of_files_does_not_end_the_program() {
    let world = World::new([says("hello")]);
    let command = world.command(&[]);
    let program = command.as_std().get_program().to_owned();
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", "ulimit -f 10; exec \"$0\" hi"]).arg(program).env_clear();
    shell.envs(command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(world.project.path());
    let stdio = std::process::Stdio::piped;
    let run = shell.stdin(std::process::Stdio::null()).stdout(stdio()).stderr(stdio());
    let run = finish(run.spawn().unwrap()).await;
    assert_eq!(run.out, "hello\n", "{run:?}");
    assert!(run.code.is_some() && run.err.contains("not being saved"), "{run:?}");
}

/// Code 5 stands in `routing`, those of signals in `life` and `tui`.
#[tokio::test]
async fn exit_codes_report_how_the_turn_ended() {
    let refused = |status| Reply::json(status, r#"{"error":{"message":"no"}}"#);
    let shell = || calls("bash", r#"{"command":"touch x"}"#);
    let prose = (0..9).map(|_| says("no JSON")).collect();
    let cases: Vec<(Vec<Reply>, &[&str], i32)> = vec![
        (vec![says("done")], &["hi"], 0),
        (vec![refused(400)], &["hi"], 1),
        (vec![], &["--no-such-flag"], 2),
        (vec![refused(401)], &["hi"], 3),
        (vec![shell(), says("I could not.")], &["hi"], 4),
        (vec![shell(), says("never")], &["--permission", "bypass", "--max-turns", "1", "hi"], 6),
        (vec![refused(402)], &["hi"], 7),
        (prose, &["--json-schema", r#"{"type":"object"}"#, "hi"], 8),
    ];
    for (replies, line, code) in cases {
        let world = World::new(replies);
        let run = world.run(line).await;
        assert_eq!(run.code, Some(code), "{line:?}: {run:?}");
    }
}

#[tokio::test]
async fn denial_without_a_terminal_shows_the_whole_remedy() {
    let world = World::new([calls("bash", r#"{"command":"touch x"}"#), says("I could not.")]);
    let run = world.run(&["hi"]).await;
    assert!(run.err.contains("gnoma: denied: "), "{run:?}");
    assert!(run.err.contains("or --permission bypass (everything; "), "{run:?}");
}

#[tokio::test]
async fn a_provider_is_added_without_a_terminal_with_a_key_from_a_command() {
    let models = r#"{"object":"list","data":[{"id":"alpha"},{"id":"beta"}]}"#;
    let world = World::new([Reply::json(200, models), says("hello")]);
    let url = world.server.url();
    let line =
        ["providers", "add", "work", "--address", &url, "--key-command", "echo sk-from-a-vault"];
    let run = world.run(&[&line[..], &["--default"]].concat()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("`work` answers and has 2 models: alpha, beta"), "{run:?}");
    assert!(run.out.contains("Added `work`"), "{run:?}");
    assert!(run.out.contains("New sessions start with it; before: `test`"), "{run:?}");
    let again = world.run(&[&line[..], &["--untested"]].concat()).await;
    assert!(again.out.starts_with("Changed `work` in "), "{again:?}");
    let get = world.run(&["config", "get", "provider"]).await.out;
    assert!(get.contains("provider.key_commands.work = \"echo sk-from-a-vault\""), "{get}");
    assert_eq!(world.run(&["--model", "alpha", "hi"]).await.out, "hello\n");
    for request in world.server.requests() {
        assert!(format!("{:?}", request.headers).contains("Bearer sk-from-a-vault"));
    }
}

#[tokio::test]
async fn a_provider_is_added_with_the_model_to_use_there() {
    let models = r#"{"object":"list","data":[{"id":"alpha"},{"id":"beta"}]}"#;
    let world = World::new([models, models, models].map(|models| Reply::json(200, models)));
    let url = world.server.url();
    let line = |more: &[&'static str]| {
        let line = ["providers", "add", "work", "--address"].into_iter().chain([url.as_str()]);
        line.chain(more.iter().copied()).map(str::to_owned).collect::<Vec<_>>()
    };
    let run = async |more: &[&'static str]| {
        world.run(&line(more).iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let wrong = run(&["--model", "bata"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("it does not list the model `bata`"), "{wrong:?}");
    assert!(wrong.err.contains("--model beta"), "{wrong:?}");
    let own = run(&["--model", "work/beta"]).await;
    assert_eq!(own.code, Some(0), "{own:?}");
    let get = world.run(&["config", "get", "provider"]).await.out;
    assert!(get.contains("provider.models.work = [\"beta\"]"), "{get}");
    assert_eq!(run(&["--model", "beta", "--default"]).await.code, Some(0));
    let get = world.run(&["config", "get", "provider"]).await.out;
    assert!(get.contains("provider.model = \"beta\""), "{get}");
}

#[tokio::test]
async fn a_provider_that_does_not_answer_is_not_added() {
    let world = World::new([]);
    let before = std::fs::read(world.home.path().join(".config/gnoma/config.toml")).unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["providers", "add", "x", "--address", "127.0.0.1:9/v1"], 7, "--untested"),
        (&["providers", "add"], 2, "Known providers: mistral"),
        (&["providers", "add", "mistral"], 2, "--key-command"),
        (&["providers", "add", "azure", "--key-env", "K"], 2, "--address https://"),
        (&["providers", "add", "x", "--address", "http://127.0.0.1:9/v1"], 7, "--untested"),
        (&["providers", "add", "mistral", "--key-command", "exit 3"], 1, "(exit status: 3);"),
    ];
    for (line, code, told) in cases {
        let run = world.run(line).await;
        assert_eq!(run.code, Some(code), "{line:?}: {run:?}");
        assert!(run.err.contains(told), "{line:?}: {run:?}");
    }
    // What cannot be written into the settings is not a matter of the test.
    for option in [["--address", "ftp://127.0.0.1/"], ["--protocol", "carrier-pigeon"]] {
        let line = ["providers", "add", "x", "--address", "http://127.0.0.1:9/v1"];
        let line = if option[0] == "--address" { &line[..3] } else { &line[..] };
        for more in [&["--untested"][..], &[]] {
            let run = world.run(&[line, &option, more].concat()).await;
            assert_eq!(run.code, Some(2), "{option:?}: {run:?}");
            assert!(run.err.contains("`x` was not added: "), "{option:?}: {run:?}");
            assert!(!run.err.contains("--untested"), "{option:?}: {run:?}");
        }
    }
    let after = std::fs::read(world.home.path().join(".config/gnoma/config.toml")).unwrap();
    assert_eq!(after, before);
}

#[tokio::test]
async fn options_of_other_assistants_are_explained_and_cost_nothing() {
    let world = World::new([]);
    let lines: &[(&[&str], &str)] = &[
        (&["--yolo", "hi"], "`--permission bypass`"),
        (&["--dangerously-skip-permissions", "-p", "hi"], "`--permission bypass`"),
        (&["--allowedTools", "Bash", "hi"], "[[permission.rules]]"),
        (&["--full-auto", "hi"], "accept_edits"),
        (&["--api-key", "sk-1", "hi"], "gnoma providers add"),
    ];
    for (line, told) in lines {
        let run = world.run(line).await;
        assert_eq!(run.code, Some(2), "{line:?}: {run:?}");
        assert!(
            run.err.starts_with("gnoma: there is no option") && run.err.contains(told),
            "{run:?}"
        );
        assert!(!run.err.contains("sk-1"), "{run:?}");
    }
    let run = world.run(&["trust", "--sure"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.ends_with("\n`gnoma trust --help` lists the options\n"), "{run:?}");
    assert_eq!(world.server.requests().len(), 0);
}

#[tokio::test]
async fn api_key_and_address_are_normalized_as_copied() {
    for (key, tail) in
        [("\"sk-1\"", "/v1/chat/completions"), ("Bearer sk-1", "/v1/"), ("sk-1\n", "")]
    {
        let world = World::new([says("hello")]);
        let url = format!("{}{tail}", world.server.url());
        std::fs::write(
            world.home.path().join(".config/gnoma/config.toml"),
            format!("[provider]\ndefault = \"test\"\nmodel = \"m1\"\n[provider.endpoints]\ntest = \"{url}\"\n"),
        )
        .unwrap();
        let run = finish(world.command(&["hi"]).env("TEST_API_KEY", key).spawn().unwrap()).await;
        assert_eq!(run.out, "hello\n", "{run:?}");
        let request = world.server.requests().pop().unwrap();
        assert_eq!(request.path(), "/v1/chat/completions");
        assert!(
            format!("{:?}", request.headers).contains("Bearer sk-1\""),
            "{:?}",
            request.headers
        );
    }
}

#[tokio::test]
async fn malformed_api_key_is_reported_with_its_reason() {
    let refused = || Reply::json(401, r#"{"error":{"message":"bad key"}}"#);
    for (key, told) in [
        ("sk-\u{200b}1", "U+200B"),
        ("sk-1\nsk-2", "a line break"),
        ("sk-ant-api03-x", "Anthropic"),
    ] {
        let world = World::new([refused()]);
        let run = finish(world.command(&["hi"]).env("TEST_API_KEY", key).spawn().unwrap()).await;
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.err.contains(told) && run.err.contains("TEST_API_KEY"), "{run:?}");
    }
    let world = World::new([]);
    std::fs::remove_file(world.home.path().join(".config/gnoma/config.toml")).unwrap();
    let run = world.run(&["--model", "gpt-5", "hi"]).await;
    assert!(run.err.contains("no key for `openai`"), "{run:?}");
    assert!(run.err.contains("OPENAI_API_KEY") && !run.err.contains("MISTRAL"), "{run:?}");
    let run = finish(world.command(&["hi"]).env("CLAUDE_API_KEY", "k").spawn().unwrap()).await;
    assert!(run.err.contains("gnoma reads ANTHROPIC_API_KEY"), "{run:?}");
}

#[tokio::test]
async fn deleted_current_folder_is_reported() {
    let world = World::new([]);
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" hi";
    let command = world.command(&[]);
    let program = command.as_std().get_program().to_owned();
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", script]).arg(program).env_clear();
    shell.envs(command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(world.project.path());
    let stdio = std::process::Stdio::piped;
    let run = shell.stdin(std::process::Stdio::null()).stdout(stdio()).stderr(stdio());
    let run = finish(run.spawn().unwrap()).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("the current folder was deleted"), "{run:?}");
}
