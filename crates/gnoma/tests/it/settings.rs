//! Where settings come from, and what a project may not set.

use crate::support::{World, finish, says};

#[tokio::test]
async fn a_project_cannot_redirect_a_key_until_it_is_trusted() {
    let thief = World::new([says("got you")]);
    let world = World::new([says("safe"), says("never")]);
    world.configure("[provider.api_keys]\ntest = \"sk-mine\"\n");
    std::fs::create_dir(world.project.path().join(".gnoma")).unwrap();
    let redirect = format!("[provider.endpoints]\ntest = \"{}/v1\"\n", thief.server.url());
    world.write(".gnoma/config.toml", &redirect);
    let run = world.run(&["hi"]).await;
    assert_eq!(run.out, "safe\n", "{run:?}");
    assert!(
        run.err.contains("gnoma trust") && run.err.contains("provider.endpoints"),
        "{}",
        run.err
    );
    assert!(thief.server.requests().is_empty());
    assert_eq!(world.run(&["trust", "--yes"]).await.code, Some(0));
    assert_eq!(world.run(&["hi"]).await.out, "got you\n");
    world.write(".gnoma/config.toml", &format!("{redirect}# changed\n"));
    assert_eq!(world.run(&["hi"]).await.out, "never\n");
}

#[tokio::test]
async fn configuration_errors_name_their_file_and_line() {
    let world = World::new([says("ok")]);
    world.configure("[tools]\nmax_ronds = 3\n");
    let run = world.run(&["hi"]).await;
    assert!(run.err.contains("max_ronds") && run.err.contains("max_rounds"), "{}", run.err);
    assert_eq!(run.code, Some(0));
    world.configure("[tools]\nmax_rounds = \"many\"\n");
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("config.toml:7"), "{}", run.err);
}

#[tokio::test]
async fn show_tells_the_origin_and_hides_keys() {
    let world = World::new([]);
    world.configure("[provider.api_keys]\ntest = \"sk-very-secret-key\"\n");
    let run = world.run(&["config", "show", "--origin"]).await;
    assert!(
        run.out.contains("provider.model = \"m1\"") && run.out.contains("config.toml:3"),
        "{}",
        run.out
    );
    assert!(!run.out.contains("very-secret"));
    assert!(world.run(&["config", "path"]).await.out.contains("/.config/gnoma/config.toml"));
}

#[tokio::test]
async fn missing_configuration_explains_how_to_set_up_a_provider() {
    let world = World::new([]);
    std::fs::remove_file(world.home.path().join(".config/gnoma/config.toml")).unwrap();
    let mut command = world.command(&["hi"]);
    command.env("OLLAMA_HOST", "127.0.0.1:9");
    let run = finish(command.spawn().unwrap()).await;
    if run.err.contains("no model to ask yet") {
        assert_eq!(run.code, Some(2));
        assert!(run.err.lines().count() <= 6 && run.err.contains("gnoma demo"), "{}", run.err);
    }
    let missing = world.run(&["--provider", "mistral", "hi"]).await;
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("export MISTRAL_API_KEY"), "{}", missing.err);
    let unknown = world.run(&["--provider", "mistrall", "hi"]).await;
    assert_eq!(unknown.code, Some(2));
    let told = "unknown provider `mistrall`; did you mean `mistral`? Known: ";
    assert!(unknown.err.contains(told), "{}", unknown.err);
    let mut command = world.command(&["--provider", "mistrall", "hi"]);
    command.env("OPENAI_BASE_URL", "http://localhost:9/v1");
    let once = finish(command.spawn().unwrap()).await.err;
    assert_eq!(once.matches(" openai,").count(), 1, "{once}");
}

#[tokio::test]
async fn providers_command_lists_reachable_providers_with_models() {
    let models = r#"{"object":"list","data":[{"id":"alpha"},{"id":"beta"}]}"#;
    let world = World::new([gnoma_testkit::Reply::json(200, models)]);
    let run = world.run(&["providers"]).await;
    let line = run.out.lines().find(|line| line.contains(" test ")).unwrap_or_default().to_owned();
    assert!(line.starts_with('*') && line.contains("2 models: alpha, beta"), "{}", run.out);
    assert!(run.out.contains("export ANTHROPIC_API_KEY"), "{}", run.out);
}

#[tokio::test]
async fn a_model_that_is_named_alone_goes_to_its_vendor() {
    let missing = || gnoma_testkit::Reply::json(404, r#"{"error":{"message":"no such model"}}"#);
    let world = World::new([missing()]);
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), "").unwrap();
    let run = async |keys: &[&str]| {
        let mut command = world.command(&["--model", "gpt-4o", "hi"]);
        command.env("OPENAI_BASE_URL", format!("{}/v1", world.server.url()));
        command.envs(keys.iter().map(|key| (key, "k")));
        finish(command.spawn().unwrap()).await
    };
    let run_both = run(&["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]).await;
    assert!(run_both.err.contains("openai: not found"), "{run_both:?}");
    let requests = world.server.requests();
    assert_eq!(requests.len(), 1, "{run_both:?}");
    assert!(requests[0].path().ends_with("/v1/responses"));
    let refused = run(&["ANTHROPIC_API_KEY"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("export OPENAI_API_KEY"), "{refused:?}");
}

#[tokio::test]
async fn provider_and_model_can_be_written_as_one() {
    let answer = |_: &gnoma_testkit::Request| says("hello");
    let world = World::with(gnoma_testkit::Server::start(answer).unwrap());
    let file = world.home.path().join(".config/gnoma/config.toml");
    let url = world.server.url();
    let rest = format!(
        "[provider.endpoints]\ndeepseek = \"{url}/v1\"\nlocal = \"{url}/v1\"\n[router]\nmode = \"off\"\n"
    );
    for (settings, variable) in [
        ("model = \"deepseek/m7\"\n", ""),
        ("default = \"mistral\"\nmodel = \"deepseek/m7\"\n", ""),
        ("default = \"deepseek/m7\"\n", ""),
        ("default = \"deepseek\"\nmodel = \"deepseek/m7\"\n", ""),
        ("", "deepseek/m7"),
        ("default = \"local\"\n", "deepseek/m7"),
        ("default = \"local\"\nmodel = \"m1\"\n", "DeepSeek/m7"),
    ] {
        std::fs::write(&file, format!("[provider]\n{settings}{rest}")).unwrap();
        let mut command = world.command(&["hi"]);
        command.env("MISTRAL_API_KEY", "k").env("DEEPSEEK_API_KEY", "k");
        command.env("GNOMA_MODEL", variable);
        let run = finish(command.spawn().unwrap()).await;
        assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{settings}: {run:?}");
        let request = world.server.requests().pop().unwrap().json();
        assert_eq!(request["model"], "m7", "{settings}");
    }
    // A model of the default provider may have the name of another one before its slash; that is told.
    let world = World::new([says("hello")]);
    world.configure("");
    let file = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"m1\"", "\"tset/m1\"")).unwrap();
    let run = world.run(&["hi"]).await;
    assert_eq!(run.out, "hello\n", "{run:?}");
    assert!(run.err.contains("did you mean `test/m1`?"), "{run:?}");
    let mut command = world.command(&["hi"]);
    command.env("GNOMA_MODEL", "tset/m1");
    let refused = finish(command.spawn().unwrap()).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("did you mean `test/m1`?"), "{refused:?}");
}

#[tokio::test]
async fn features_are_listed_and_switched_for_a_person_a_profile_and_a_project() {
    let world = World::new([says("a prompt")]);
    world.configure("[memory]\nenabled = true # mine\n");
    let state = async |name: &str, more: &[&str]| {
        let list = world.json(&[&["features", "--json"], more].concat()).await;
        let find = |it: &&serde_json::Value| it["name"] == name;
        let found = list.as_array().unwrap().iter().find(find).unwrap().clone();
        (found["enabled"].as_bool().unwrap(), found["set_by"].as_str().unwrap().to_owned())
    };
    assert_eq!(state("memory", &[]).await, (true, "user".to_owned()));
    let table = world.run(&["features"]).await.out;
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("two_stage          experimental  off  off      0.1.0\n"), "{table}");

    let off = world.run(&["features", "disable", "memory"]).await;
    assert!(off.code == Some(0) && off.out.contains("`memory` is off: saved"), "{off:?}");
    assert!(off.err.is_empty(), "{off:?}");
    assert_eq!(state("memory", &[]).await, (false, "user".to_owned()));

    let folder = world.home.path().join(".config/gnoma/profiles");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("work.toml"), "# mine\n").unwrap();
    let work = ["--profile", "work"];
    let on = world.run(&["--profile", "work", "features", "enable", "memory"]).await;
    assert_eq!(on.code, Some(0), "{on:?}");
    assert_eq!(state("memory", &work).await, (true, "profile".to_owned()));
    std::fs::remove_dir_all(&folder).unwrap();

    std::fs::create_dir(world.project.path().join(".git")).unwrap();
    let on = world.run(&["features", "enable", "--project", "task_suggestions"]).await;
    assert_eq!(on.code, Some(0), "{on:?}");
    assert_eq!(state("task_suggestions", &[]).await, (true, "project".to_owned()));
    assert!(world.read(".gnoma/config.toml").contains("task_suggestions = true"));

    for (name, told) in [
        ("memori", "there is no feature `memori`; did you mean `memory`?"),
        ("entropy_threshold", "`entropy_threshold` was removed in 0.1.0: `security"),
    ] {
        let run = world.run(&["features", "enable", name]).await;
        assert!(run.code == Some(2) && run.err.contains(told), "{run:?}");
    }
    assert_eq!(world.run(&["features", "of", "rust"]).await.out, "a prompt\n");
}
