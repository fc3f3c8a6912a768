//! Which layer wins, and how lists, tables and sections merge.

use std::{collections::BTreeMap, time::Duration};

use gnoma_config::{
    Origin, Protocol,
    settings::{Action, RuleSubject, ValueSource},
    toml::Value,
};
use gnoma_core::{Effort, session::PermissionMode};
use proptest::prelude::*;

use crate::home::Home;

#[test]
fn defaults_apply_without_any_file() {
    let loaded = Home::new().load();
    assert_eq!(loaded.findings, []);
    let settings = loaded.settings;
    assert_eq!(settings.provider.default, None);
    assert_eq!(settings.provider.max_tokens, 8192);
    assert_eq!(settings.permission.mode, PermissionMode::Auto);
    assert_eq!(settings.tools.bash_timeout, Duration::from_secs(30));
    assert_eq!(settings.tools.max_file_size, 1 << 20);
    assert_eq!(settings.tools.max_rounds, 50);
    assert_eq!(settings.session.max_keep, 1000);
    assert!(!settings.router.force_two_stage);
    assert_eq!(settings.network.connect_timeout, Duration::from_secs(10));
    assert_eq!(settings.network.idle_timeout, Duration::from_secs(300));
    insta::assert_snapshot!(Home::new().origins(), @r#"
    analytics.local = false  # default
    checkpoints.enabled = true  # default
    checkpoints.ignored_max_file = 1048576  # default
    checkpoints.max_age = "30 days"  # default
    checkpoints.max_file = 536870912  # default
    checkpoints.max_size = 4294967296  # default
    memory.enabled = false  # default
    network.connect_timeout = "10s"  # default
    network.idle_timeout = "5m"  # default
    notify.after = "10s"  # default
    otel.content = false  # default
    otel.enabled = false  # default
    otel.endpoint = "http://localhost:4318"  # default
    otel.protocol = "http/protobuf"  # default
    permission.confirm_bypass = false  # default
    permission.mode = "auto"  # default
    privacy.incognito = false  # default
    privacy.local_only = false  # default
    provider.max_tokens = 8192  # default
    router.discovery_interval = "30s"  # default
    router.failover = true  # default
    router.force_two_stage = false  # default
    router.learn = true  # default
    router.max_attempts = 3  # default
    router.mode = "auto"  # default
    router.priority = "normal"  # default
    router.strategy = "auto"  # default
    router.value = 10.0  # default
    router.verify = "auto"  # default
    router.waiting = 0.0  # default
    sandbox.mode = "auto"  # default
    sandbox.network = "asked"  # default
    security.entropy_safelist = ["uuid", "sha_hex", "iso8601", "url"]  # default
    security.entropy_threshold = 4.5  # default
    security.redact_high_entropy = true  # default
    session.keep = true  # default
    session.max_keep = 1000  # default
    session.max_size = 1073741824  # default
    slm.backend = "auto"  # default
    slm.enabled = false  # default
    slm.startup_timeout = "5s"  # default
    tasks.suggest = "on"  # default
    tools.bash_timeout = "30s"  # default
    tools.compaction = "full"  # default
    tools.max_file_size = 1048576  # default
    tools.max_rounds = 50  # default
    tui.theme = "gnoma"  # default
    tui.vim = false  # default
    "#);
}

#[test]
fn origin_of_each_value_names_its_layer() {
    let home = Home::new()
        .user("[provider]\ndefault = \"mistral\"\nmodel = \"small\"\nmax_tokens = 100\n")
        .profile("provider.model = \"medium\"\nsession.max_keep = 3\n")
        .project("[provider]\neffort = \"high\"\ntemperature = 1\n")
        .env("GNOMA_PROVIDER", "anthropic")
        .env("ANTHROPIC_API_KEY", "sk-ant-api03-0123456789")
        .flag("permission.mode", "plan");
    insta::assert_snapshot!(home.origins(), @r#"
    analytics.local = false  # default
    checkpoints.enabled = true  # default
    checkpoints.ignored_max_file = 1048576  # default
    checkpoints.max_age = "30 days"  # default
    checkpoints.max_file = 536870912  # default
    checkpoints.max_size = 4294967296  # default
    memory.enabled = false  # default
    network.connect_timeout = "10s"  # default
    network.idle_timeout = "5m"  # default
    notify.after = "10s"  # default
    otel.content = false  # default
    otel.enabled = false  # default
    otel.endpoint = "http://localhost:4318"  # default
    otel.protocol = "http/protobuf"  # default
    permission.confirm_bypass = false  # default
    permission.mode = "plan"  # flag: command line, permission.mode
    privacy.incognito = false  # default
    privacy.local_only = false  # default
    provider.api_keys.anthropic = "***6789"  # environment variable ANTHROPIC_API_KEY
    provider.default = "anthropic"  # environment variable GNOMA_PROVIDER
    provider.effort = "high"  # project: ~/project/.gnoma/config.toml:2:10
    provider.max_tokens = 100  # user: ~/config/config.toml:4:14
    provider.model = "medium"  # profile: ~/config/profiles/work.toml:1:18
    provider.temperature = 1.0  # project: ~/project/.gnoma/config.toml:3:15
    router.discovery_interval = "30s"  # default
    router.failover = true  # default
    router.force_two_stage = false  # default
    router.learn = true  # default
    router.max_attempts = 3  # default
    router.mode = "auto"  # default
    router.priority = "normal"  # default
    router.strategy = "auto"  # default
    router.value = 10.0  # default
    router.verify = "auto"  # default
    router.waiting = 0.0  # default
    sandbox.mode = "auto"  # default
    sandbox.network = "asked"  # default
    security.entropy_safelist = ["uuid", "sha_hex", "iso8601", "url"]  # default
    security.entropy_threshold = 4.5  # default
    security.redact_high_entropy = true  # default
    session.keep = true  # default
    session.max_keep = 3  # profile: ~/config/profiles/work.toml:2:20
    session.max_size = 1073741824  # default
    slm.backend = "auto"  # default
    slm.enabled = false  # default
    slm.startup_timeout = "5s"  # default
    tasks.suggest = "on"  # default
    tools.bash_timeout = "30s"  # default
    tools.compaction = "full"  # default
    tools.max_file_size = 1048576  # default
    tools.max_rounds = 50  # default
    tui.theme = "gnoma"  # default
    tui.vim = false  # default
    "#);
    assert_eq!(home.load().explain_key("provider.default").unwrap().origin, Origin::Environment);
    let settings = home.load().settings;
    assert_eq!(settings.provider.default.as_deref(), Some("anthropic"));
    assert_eq!(settings.provider.model.as_deref(), Some("medium"));
    assert_eq!(settings.provider.effort, Some(Effort::High));
    assert_eq!(settings.provider.temperature, Some(1.0));
    assert_eq!(settings.permission.mode, PermissionMode::Plan);
}

#[test]
fn tables_merge_by_key_and_lists_are_appended_to() {
    let home = Home::new()
        .user(
            r#"
            [provider.context]
            ollama = 8192
            vllm = 4096
            [[permission.rules]]
            tool = "bash"
            action = "deny"
            [[hooks]]
            name = "first"
            event = "stop"
            exec = "a"
            "#,
        )
        .profile(
            r#"
            [provider.context]
            vllm = 32768
            [[hooks]]
            name = "second"
            event = "stop"
            exec = "b"
            "#,
        )
        .project(
            r#"
            [[permission.rules]]
            tool = "fs.*"
            pattern = "secret"
            action = "deny"
            [[hooks]]
            name = "third"
            event = "stop"
            exec = "c"
            [[hooks]]
            name = "fourth"
            event = "stop"
            exec = "d"
            "#,
        )
        .trusted();
    let loaded = home.load();
    let context = BTreeMap::from([("ollama".to_owned(), 8192), ("vllm".to_owned(), 32768)]);
    assert_eq!(loaded.settings.provider.context, context);
    let rules: Vec<_> = loaded.settings.permission.rules.iter().map(|rule| &rule.about).collect();
    let about = |tool: &str, pattern: &str| RuleSubject::Text {
        tool: tool.to_owned(),
        pattern: pattern.to_owned(),
    };
    assert_eq!(rules, [&about("bash", ""), &about("fs.*", "secret")]);
    let rules = &loaded.settings.permission.rules;
    assert!(rules.iter().all(|rule| rule.action == Action::Deny));
    assert!(rules.iter().all(|rule| rule.place.position().is_some()));
    let names: Vec<_> = (0..4).map(|index| format!("hooks.{index}.name")).collect();
    let names: Vec<_> =
        names.iter().map(|key| loaded.explain_key(key).unwrap().value.as_str()).collect();
    assert_eq!(names, [r#""first""#, r#""second""#, r#""third""#, r#""fourth""#]);
}

#[test]
fn named_entries_and_whole_sections_are_replaced_as_one() {
    let home = Home::new()
        .user(
            r#"
            [[arms]]
            id = "mistral/large"
            strengths = ["planning"]
            cost_weight = 0.5
            [[arms]]
            id = "ollama/qwen"
            cost_weight = 0.1
            [[mcp_servers]]
            name = "git"
            command = "old"
            args = ["--all"]
            [security]
            entropy_threshold = 5.0
            redact_high_entropy = true
            [[security.patterns]]
            regex = "a"
            [plugins]
            disabled = ["noisy"]
            "#,
        )
        .profile(
            r#"
            [[arms]]
            id = "mistral/large"
            cost_weight = 1
            [[mcp_servers]]
            name = "git"
            command = "new"
            [[security.patterns]]
            regex = "b"
            "#,
        );
    let shown = home.load().render_values(false);
    let of = |section: &str| shown.lines().filter(|l| l.starts_with(section)).collect::<Vec<_>>();
    insta::assert_debug_snapshot!([of("arms"), of("mcp"), of("security"), of("plugins")], @r#"
    [
        [
            "arms.\"mistral/large\".cost_weight = 1.0",
            "arms.\"mistral/large\".id = \"mistral/large\"",
            "arms.\"ollama/qwen\".cost_weight = 0.1",
            "arms.\"ollama/qwen\".id = \"ollama/qwen\"",
        ],
        [
            "mcp_servers.git.command = \"new\"",
            "mcp_servers.git.name = \"git\"",
        ],
        [
            "security.entropy_safelist = [\"uuid\", \"sha_hex\", \"iso8601\", \"url\"]",
            "security.entropy_threshold = 4.5",
            "security.patterns.0.regex = \"b\"",
            "security.redact_high_entropy = true",
        ],
        [
            "plugins.disabled = [\"noisy\"]",
        ],
    ]
    "#);
}

#[test]
fn endpoints_and_api_keys_are_read_from_the_environment() {
    let home = Home::new()
        .user(
            r#"
            [provider.endpoints]
            openai = "https://proxy.example/v1"
            my-vllm = "http://gpu:8000/v1"
            [provider.protocols]
            my-vllm = "Responses"
            "#,
        )
        .env("OPENAI_BASE_URL", "https://other.example/v1")
        .env("OLLAMA_HOST", "gpu")
        .env("MY_VLLM_API_KEY", "k")
        .env("UNKNOWN_API_KEY", "k")
        .env("GOOGLE_API_KEY", "second choice")
        .env("GEMINI_API_KEY", " ")
        .env("GNOMA_MODEL", "${HOME}");
    let provider = home.load().settings.provider;
    let endpoints: Vec<_> =
        provider.endpoints.iter().map(|(p, url)| (p.as_str(), url.as_str())).collect();
    assert_eq!(
        endpoints,
        [
            ("my-vllm", "http://gpu:8000/v1"),
            ("ollama", "http://gpu:11434"),
            ("openai", "https://other.example/v1"),
        ]
    );
    assert_eq!(provider.protocols["my-vllm"], Protocol::Responses);
    assert_eq!(provider.api_keys.keys().collect::<Vec<_>>(), ["google", "my-vllm"]);
    assert_eq!(provider.model.as_deref(), Some("${HOME}"), "variables are taken as they are");
}

#[test]
fn api_keys_and_endpoints_record_their_source() {
    let home = Home::new()
        .user(
            "[provider.endpoints]\nwork = \"http://gpu:8000/v1\"\nopenai = \"https://a.example/v1\"\n\
             far = \"https://${FAR_HOST}/v1\"\n[provider.api_keys]\nwork = \"${WORK_KEY}\"\nmistral = \"plain\"\n\
             far = \"${FAR_KEY}\"\n",
        )
        .env("WORK_KEY", "k")
        .env("FAR_HOST", "far.example")
        .env("OPENAI_BASE_URL", "https://other.example/v1")
        .env("OLLAMA_HOST", "gpu")
        .env("ANTHROPIC_API_KEY", "k");
    let provider = home.load().settings.provider;
    let said = |sources: &BTreeMap<String, ValueSource>, name: &str| sources[name].to_string();
    for (name, source) in [("work", "WORK_KEY"), ("anthropic", "ANTHROPIC_API_KEY")] {
        assert_eq!(said(&provider.key_sources, name), source);
    }
    for (name, source) in
        [("openai", "OPENAI_BASE_URL"), ("ollama", "OLLAMA_HOST"), ("far", "FAR_HOST")]
    {
        assert_eq!(said(&provider.endpoint_sources, name), source);
    }
    let work = said(&provider.endpoint_sources, "work");
    assert!(
        work.starts_with("`provider.endpoints.work` (") && work.ends_with("config.toml:2)"),
        "{work}"
    );
    assert_eq!(provider.unset_keys["far"], "FAR_KEY");
    assert!(!provider.unset_keys.contains_key("work"));
    let told = home.words();
    assert!(told.contains("export FAR_KEY=…") && !told.contains("${FAR_KEY:-"), "{told}");
    let home = home.user("[provider.api_keys]\nwork = \"${NO_KEY:-sk-1}\"\n");
    let by_default = said(&home.load().settings.provider.key_sources, "work");
    assert!(by_default.starts_with("`provider.api_keys.work` ("), "{by_default}");
    let plain = said(&provider.key_sources, "mistral");
    assert!(
        plain.starts_with("`provider.api_keys.mistral` (") && plain.ends_with(":7)"),
        "{plain}"
    );
}

#[test]
fn a_missing_variable_leaves_the_layer_below_in_force() {
    let home = Home::new()
        .user("provider.model = \"${MODEL:-small}\"\nprovider.default = \"mistral\"\n")
        .profile("provider.model = \"${BIG_MODEL}\"\nprovider.default = \"\"\n");
    let loaded = home.load();
    assert_eq!(loaded.settings.provider.model.as_deref(), Some("small"));
    assert_eq!(loaded.settings.provider.default.as_deref(), Some("mistral"));
    insta::assert_snapshot!(home.words(), @r#"
    warning: `provider.model` is ignored: the variable BIG_MODEL is not set
      --> ~/config/profiles/work.toml:1:18
      |
    1 | provider.model = "${BIG_MODEL}"
      |                  ^^^^^^^^^^^^^^
    hint: set BIG_MODEL, or write `${BIG_MODEL:-default}`
    "#);
}

#[test]
fn both_spellings_of_a_permission_mode_are_accepted() {
    for spelling in ["accept_edits", "acceptEdits"] {
        let home = Home::new().flag("permission.mode", spelling);
        assert_eq!(home.load().settings.permission.mode, PermissionMode::AcceptEdits);
    }
}

/// Everything the Go program documented, as its users may have written it.
#[test]
fn a_configuration_of_the_go_program_loads() {
    let home = Home::new().env("MISTRAL_KEY", "m").user(include_str!("go_era.toml"));
    let home = home.write("config/profiles/work.toml", "");
    let loaded = home.load();
    assert!(loaded.findings.is_empty(), "{:?}", loaded.findings);
    let agents = loaded.settings.cli_agents.iter();
    let programs: Vec<_> = agents.map(|agent| (&*agent.name, &*agent.command)).collect();
    assert_eq!(programs, [("claude", "claude-priv"), ("gemini", "gemini")]);
    assert_eq!(loaded.settings.provider.api_keys["mistral"].expose(), "m");
    assert_eq!(loaded.settings.tools.max_file_size, 2_097_152);
    assert_eq!(loaded.settings.permission.mode, PermissionMode::AcceptEdits);
    assert_eq!(loaded.settings.permission.rules.len(), 2);
    let arm = loaded.explain_key(r#"arms."anthropic/claude-opus-4-7".cost_weight"#).unwrap();
    assert_eq!(arm.value, "0.3");
}

/// Keys that hold a single whole number, where any layer may speak.
const COUNTS: [&str; 5] = [
    "rate_limits.delta.rpm",
    "tools.max_rounds",
    "rate_limits.alpha.rpm",
    "rate_limits.beta.rpm",
    "rate_limits.gamma.rpm",
];

/// What one layer says about each of `COUNTS`.
type Saying = [Option<u16>; COUNTS.len()];

fn file(saying: &Saying) -> String {
    let said = COUNTS.iter().zip(saying).filter_map(|(key, value)| Some((key, (*value)?)));
    said.map(|(key, value)| format!("{key} = {}\n", u32::from(value) + 1)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_that_of_the_highest_layer_that_sets_it(
        user: Saying, profile: Saying, project: Saying, flags: Saying, is_trusted: bool,
    ) {
        let mut home = Home::new().user(&file(&user)).profile(&file(&profile)).project(&file(&project));
        if is_trusted {
            home = home.trusted();
        }
        for (key, value) in COUNTS.iter().zip(flags) {
            if let Some(value) = value {
                home = home.flag(key, Value::Integer(i64::from(value) + 1));
            }
        }
        let loaded = home.load();
        let layers = [
            (Origin::Flag, flags),
            (Origin::Project, project),
            (Origin::Profile, profile),
            (Origin::User, user),
        ];
        for (index, key) in COUNTS.iter().enumerate() {
            let wanted = layers.iter().find_map(|(origin, says)| Some((*origin, says[index]?)));
            let found = loaded.explain_key(key).filter(|found| found.origin != Origin::Default);
            prop_assert_eq!(
                found.map(|found| (found.origin, found.value.clone())),
                wanted.map(|(origin, value)| (origin, (u32::from(value) + 1).to_string()))
            );
        }
    }

    #[test]
    fn config_loading_never_panics(text in r#"([a-z_.]{1,9}|provider|hooks|arms|api_keys|[=\[\]{}"'$#,\n-]|\PC| |1){0,40}"#) {
        let home = Home::new().user(&text).project(&text);
        if let Err(error) = home.try_load() {
            prop_assert!(!error.findings.is_empty());
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn cli_agents_are_read_only_from_the_user_config() {
    let home = Home::new().user(
        "[[cli_agents]]\nname = \"opencode\"\n\
         [[cli_agents]]\nname = \"mine\"\nargs = [\"--acp\"]\nautomatic = true\nnetwork = false\n",
    );
    let agents = home.load().settings.cli_agents;
    let [mine, opencode] = agents.as_slice() else { panic!("{agents:?}") };
    assert_eq!((&*opencode.command, &*opencode.args), ("opencode", ["acp".to_owned()].as_slice()));
    assert!(opencode.network && !opencode.automatic && opencode.enabled);
    assert!(opencode.writable.contains(&"~/.local/share/opencode".to_owned()));
    assert_eq!((&*mine.command, &*mine.args), ("mine", ["--acp".to_owned()].as_slice()));
    assert!(mine.automatic && !mine.network);
    let project = Home::new().project("[[cli_agents]]\nname = \"planted\"\ncommand = \"./evil\"\n");
    assert!(project.load().settings.cli_agents.is_empty(), "nobody trusts the project");
}
