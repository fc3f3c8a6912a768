//! Settings, keys and variables that name what does not exist, and what a person reads of it.

use gnoma_testkit::{Reply, Server};
use serde_json::Value;

use crate::support::{Run, World, calls, finish, says};

const LIST: &str = r#"{"data":[{"id":"m1"},{"id":"m2"}]}"#;

/// A world whose server lists two models and answers with the name of the model that it is asked for.
fn two_models() -> World {
    let server = Server::start(|request| {
        if request.path().ends_with("/models") {
            return Reply::json(200, LIST);
        }
        says(request.json()["model"].as_str().unwrap_or_default())
    });
    World::with(server.unwrap())
}

async fn with_variables(world: &World, args: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = world.command(args);
    command.envs(variables.iter().copied());
    finish(command.spawn().unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_turned_off_is_not_used() {
    let world = two_models();
    let off = |model: &str| format!("[[arms]]\nid = \"test/{model}\"\nenabled = false\n");
    world.configure(&off("m1"));
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "m2\n"), "{run:?}");
    let named = world.run(&["-m", "test/m1", "hi"]).await;
    assert_eq!(named.out, "m1\n", "a model that is named for the run is used: {named:?}");
    world.configure(&[off("m1"), off("m2")].concat());
    let run = world.run(&["hi"]).await;
    assert!(run.code == Some(2) && run.out.is_empty(), "{run:?}");
    assert!(run.err.contains("every model of `test` is turned off"), "{run:?}");
}

#[tokio::test]
async fn a_default_profile_that_does_not_exist_stops_and_names_its_line() {
    let world = World::new([says("never")]);
    world.configure("");
    let file = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("default_profile = \"nosuch\"\n{text}")).unwrap();
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    let told =
        run.err.contains("there is no profile `nosuch`") && run.err.contains("config.toml:1:");
    assert!(told, "{run:?}");
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.out.contains("there is no profile `nosuch`"), "{doctor:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_marks_what_does_not_work() {
    let world = two_models();
    world.configure(
        "[[permission.rules]]\nrule = \"bsh(x)\"\naction = \"allow\"\n[tui]\ntheme = \"pinkk\"\n\
         [provider.api_keys]\ntst = \"abc\"\n[rate_limits.tst]\nrpm = 1\n[[arms]]\nid = \"nosuch/m\"\n",
    );
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    let rule = "did you mean `bash(x)`?";
    assert!(run.err.contains("config.toml:7:") && run.err.contains(rule), "{run:?}");
    let doctor = world.run(&["doctor"]).await.out;
    let marked: Vec<&str> = doctor.lines().filter(|line| line.starts_with("  ✗")).collect();
    for part in [
        rule,
        "there is no theme `pinkk`",
        "`provider.api_keys.tst`: no provider has the name `tst`; did you mean `test`?",
        "`rate_limits.tst`",
        "no provider has the name `nosuch`",
    ] {
        assert!(marked.iter().any(|line| line.contains(part)), "{part}: {doctor}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arm_with_only_one_of_two_prices_is_reported() {
    let world = two_models();
    world.configure("[[arms]]\nid = \"test/m1\"\ninput_price = 3\n");
    let run = world.run(&["hi"]).await;
    let told = "`[[arms]] id = \"test/m1\"`: a price needs both `input_price` and `output_price`";
    assert!(run.err.contains(told), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_style_permission_rule_suggests_the_gnoma_rule() {
    let world = two_models();
    for (theirs, ours) in [
        ("Bash(git *)", "bash(git *)"),
        ("WebFetch(domain:x.org)", "web(x.org)"),
        ("bsh(x)", "bash(x)"),
    ] {
        world
            .configure(&format!("[[permission.rules]]\ntool = \"{theirs}\"\naction = \"allow\"\n"));
        let run = world.run(&["hi"]).await;
        assert!(run.err.contains(&format!("did you mean `{ours}`?")), "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blanks_in_the_name_of_a_model_do_not_matter() {
    let world = two_models();
    let run = world.run(&["--model", " test / m2 ", "hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "m2\n"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_hooks_that_name_unknown_things_are_reported() {
    let world = two_models();
    world.configure(
        "[tools]\nshell = \"/nosuch/sh\"\n[[permission.rules]]\nrule = \"Edit\"\naction = \"deny\"\n\
         [[permission.rules]]\nrule = \"mcp__git__push\"\naction = \"deny\"\n\
         [[hooks]]\nevent = \"pre_tool_use\"\ntool_pattern = \"Bash\"\nexec = \"exit 2\"\n\
         [[security.actions]]\nprovider = \"tst\"\naction = \"block\"\n\
         [[router.rules]]\npin = \"tst/*\"\n",
    );
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let doctor = world.run(&["doctor"]).await.out;
    for part in [
        "no tool has the name `Edit`; did you mean `fs.edit`?",
        "no tool has the name `Bash`; did you mean `bash`?",
        "there is no program `/nosuch/sh`",
        "`[[security.actions]] provider = \"tst\"`: no provider has the name `tst`",
        "`[[router.rules]] pin = \"tst/*\"",
    ] {
        assert!(run.err.contains(part) && doctor.contains(part), "{part}: {run:?} {doctor}");
    }
    assert!(!run.err.contains("mcp__"), "{run:?}");
    world.configure("[[permission.rules]]\nrule = \"bash(rm:*)\"\naction = \"deny\"\n");
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("write `bash(rm *)`"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_marks_an_arm_that_its_provider_does_not_list() {
    let world = two_models();
    world.configure("[[arms]]\nid = \"test/m2x\"\n[[arms]]\nid = \"test/m2\"\n");
    let doctor = world.run(&["doctor"]).await.out;
    let told = "`test/m2x` may be chosen, but `test` does not list it; did you mean `test/m2`?";
    assert!(doctor.contains(told) && doctor.matches("may be chosen").count() == 1, "{doctor}");
    world.configure("[router.roles]\nreviewer = \"test/m2x\"\neditor = \"test/m2\"\n");
    let doctor = world.run(&["doctor"]).await.out;
    let told = format!("✗ router.roles.reviewer: {told}");
    assert!(doctor.contains(&told) && doctor.matches("may be chosen").count() == 1, "{doctor}");
}

#[tokio::test(flavor = "multi_thread")]
async fn setting_for_an_unknown_provider_is_reported_once() {
    let world = two_models();
    world.configure("[provider.api_keys]\ntst = \"abc\"\n");
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "m1\n"), "{run:?}");
    assert_eq!(run.err.matches("did you mean `test`?").count(), 1, "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_default_provider_is_named_with_its_place() {
    let world = two_models();
    let file = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("default = \"test\"", "default = \"tset\"")).unwrap();
    let run = world.run(&["hi"]).await;
    assert!(run.err.contains("unknown provider `tset`, set by `provider.default`"), "{run:?}");
    assert!(
        run.err.contains("config.toml:2") && run.err.contains("did you mean `test`?"),
        "{run:?}"
    );
    let doctor = world.run(&["doctor"]).await.out;
    assert!(doctor.contains("✗ tset (default): unknown provider `tset`"), "{doctor}");
    let run = with_variables(&world, &["hi"], &[("GNOMA_PROVIDER", "x")]).await;
    assert!(run.err.contains("unknown provider `x`, set by GNOMA_PROVIDER"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn model_with_an_unknown_provider_prefix_names_the_provider_used() {
    let world = two_models();
    let run = world.run(&["-m", "nosuch/m9", "hi"]).await;
    assert_eq!(run.out, "nosuch/m9\n", "{run:?}");
    let told = "there is no provider `nosuch`, so `test` is asked for the model `nosuch/m9`";
    assert!(run.err.contains(told), "{run:?}");
    let run = world.run(&["-m", "claude-opus-4-7", "hi"]).await;
    assert!(run.err.contains("`anthropic`") && run.err.contains("`test` is asked"), "{run:?}");
    let run = world.run(&["-m", "m2", "hi"]).await;
    assert!(!run.err.contains("is asked"), "{run:?}");
    let run = world.run(&["-m", "TEST/m2", "hi"]).await;
    assert!(run.out == "m2\n" && !run.err.contains("is asked"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_list_of_models_wants_a_model_named() {
    let bodies = [
        (404, r#"{"error":"no"}"#, "has no list of models: name one with --model"),
        (200, r#"{"data":[]}"#, "but lists no models"),
        (200, r#""hello""#, "with no list of models"),
    ];
    for (status, body, told) in bodies {
        let server = Server::start(move |_| Reply::json(status, body)).unwrap();
        let world = World::with(server);
        let file = world.home.path().join(".config/gnoma/config.toml");
        let text = std::fs::read_to_string(&file).unwrap().replace("model = \"m1\"\n", "");
        std::fs::write(&file, text).unwrap();
        let providers = world.run(&["providers"]).await.out;
        let own = providers.lines().find(|line| line.starts_with("* test")).unwrap();
        assert!(!own.contains("ready at"), "{own}");
        if status == 200 {
            assert!(own.contains(told), "{own}");
            continue;
        }
        let run = world.run(&["hi"]).await;
        assert!(run.code != Some(0) && run.err.contains(told), "{run:?}");
        assert!(!run.err.contains("`gnoma models` lists"), "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_named_in_the_list_of_providers() {
    let server = Server::start(|_| Reply::json(401, r#"{"error":"no"}"#)).unwrap();
    let world = World::with(server);
    let run = with_variables(&world, &["providers"], &[("TEST_API_KEY", "sk-1")]).await;
    assert!(run.out.contains("check TEST_API_KEY"), "{run:?}");
}

#[tokio::test]
async fn keys_that_cannot_be_keys_are_refused_and_not_shown() {
    let world = World::new([]);
    for (key, told) in [
        ("sk test 12345678", "a space, which no key has"),
        ("TEST_API_KEY=sk-12345678", "a whole assignment"),
        ("export X=sk-12345678", "a whole assignment"),
    ] {
        let run = with_variables(&world, &["hi"], &[("TEST_API_KEY", key)]).await;
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(run.err.contains(told) && !run.err.contains("12345678"), "{run:?}");
    }
    assert!(world.server.requests().is_empty());
    let args = ["providers", "add", "mistral", "--key-env", "sk-abcdef123456"];
    let run = world.run(&args).await;
    assert!(run.err.contains("the name of a variable"), "{run:?}");
    assert!(!run.err.contains("sk-abcdef123456"), "{run:?}");
}

#[tokio::test]
async fn invalid_proxy_variable_is_reported() {
    let world = World::new([says("here")]);
    let run = with_variables(&world, &["hi"], &[("HTTP_PROXY", "foo bar")]).await;
    assert_eq!(run.out, "here\n", "{run:?}");
    assert!(run.err.contains("HTTP_PROXY is `foo bar`, which is not an address"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_tried_three_times_and_each_line_says_of_how_many() {
    let server = Server::start(|_| Reply::sse("")).unwrap();
    let world = World::with(server);
    let run = world.run(&["hi"]).await;
    assert_eq!(world.server.requests().len(), 3, "{run:?}");
    assert!(
        run.err.contains("(attempt 2 of 3)") && run.err.contains("(attempt 3 of 3)"),
        "{run:?}"
    );
}

#[tokio::test]
async fn slow_api_key_command_is_reported() {
    let world = World::new([says("here")]);
    world.configure("[provider.key_commands]\ntest = \"sleep 3; echo k\"\n");
    let run = world.run(&["hi"]).await;
    assert_eq!(run.out, "here\n", "{run:?}");
    let told = "waiting for `sleep 3; echo k` (provider.key_commands.test), up to 30s";
    assert!(run.err.contains(told), "{run:?}");
}

#[tokio::test]
async fn discarded_trial_is_reported_on_its_card_and_in_json() {
    let command = r#"{"command":"echo hi > out.txt"}"#;
    let world =
        World::new([calls("bash", command), says("ok"), calls("bash", command), says("ok")]);
    let run = world.run(&["--permission", "plan", "go"]).await;
    if !world.last_request().iter().any(|(_, text)| text.contains("ran on trial")) {
        gnoma_testkit::skip_test("no sandbox: nothing can be tried here");
        return;
    }
    let card = "✓ Bash echo hi > out.txt (on trial; out.txt was not kept)";
    assert!(run.err.contains(card), "{run:?}");
    let run = world.run(&["--permission", "auto", "--output-format", "json", "go"]).await;
    let result: Value = serde_json::from_str(run.out.trim()).unwrap();
    for denial in result["permission_denials"].as_array().unwrap() {
        assert_eq!(denial["tool_name"], "bash", "{denial}");
        assert_eq!(denial["tool_input"]["command"], "echo hi > out.txt", "{denial}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_before_standard_input_is_no_part_of_the_prompt() {
    let world = World::new([says("ok")]);
    let run = world.pipe(&[], "\u{feff}hello").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.last_request()[0].1.trim(), "hello");
}

#[tokio::test]
async fn settings_that_name_missing_things_are_reported_by_runs_and_doctor() {
    let world = World::new((0..4).map(|_| says("hello")));
    world.configure(
        "[plugins]\nenabled = [\"nosuch\"]\n[sandbox]\nwritable = [\"rel\", \"/nosuch/dir\"]\n\
         [network]\nca_file = \"/nosuch.pem\"\n\
         [slm]\nenabled = true\nbackend = \"ollama\"\nmodel = \"x\"\n",
    );
    let always = [
        "`plugins.enabled`: no plugin has the name `nosuch`",
        "`sandbox.writable`: `rel` is left out",
        "`sandbox.writable`: `/nosuch/dir` does not exist",
    ];
    let run = world.run(&["hi"]).await;
    let doctor = world.run(&["doctor"]).await;
    assert_eq!((run.out.as_str(), doctor.code), ("hello\n", Some(1)), "{run:?} {doctor:?}");
    for part in always {
        assert!(run.err.contains(part), "{part}: {run:?}");
        assert!(doctor.out.contains(part), "{part}: {doctor:?}");
    }
    assert!(run.err.contains("ollama/x, which classifies requests (`slm`)"), "{run:?}");
    for part in ["✗ ollama: ", "`network.ca_file`: cannot read"] {
        assert!(doctor.out.contains(part), "{part}: {doctor:?}");
    }
}
