//! What is said about the choice of models: read in full, bounded by the user, refused in clear words.

use std::time::Duration;

use gnoma_config::{
    Origin,
    settings::{ArmSettings, Priority, RateLimits, RouterMode, SlmBackend},
};
use gnoma_router::{
    Strategy, Verify,
    pool::{Caps, Rates},
    rules::{Day, Hours, RuleEffect},
};
use proptest::prelude::*;

use crate::home::Home;

const FULL: &str = r#"
[provider.models]
mistral = ["devstral-small", "large"]
openrouter = ["meta/llama"]

[router]
mode = "off"
value = 2.5
waiting = 36
priority = "high"
strategy = "cascade"
max_attempts = 2
verify = "checks"
checks = ["cargo test", "test -n \"${HOME}\""]
failover = false
learn = false
discovery_interval = 0
catalogue = "~/models.json"

[router.caps]
turn = 0.5
day = 5
project_month = 0

[router.roles]
small = "ollama/qwen3:4b"
reviewer = "openrouter/meta/llama"

[[router.rules]]
name = "secrets stay here"
path = ["secrets/**"]
forbid = ["openai/*", "*/gpt-*"]

[[router.rules]]
task = ["Debug", "unit-test"]
hours = "22:00-06:00"
days = ["sat", "Sun"]
complexity = "40-100"
pin = "anthropic/claude-*"
prefer = ["mistral/*"]
prefer_by = 25
max_cost = 0.25
max_seconds = 90

[rate_limits.mistral]
tier = "starter"
rps = 0.5
rpm = 60
tokens_month = 5_000_000_000
spend_cap = 20
spend_month = 12.5
spend_day = 1
custom = 3
custom_month = 1500

[[arms]]
id = "mistral/large"
enabled = false
strengths = ["review"]
cost_weight = 0.5
input_price = 0.4
output_price = 2
cache_read_price = 0.04
cache_write_price = 0
context = 128000
max_output = 8192
small = true
tools = true
vision = false
thinking = false
pools = ["gateway"]

[slm]
enabled = true
backend = "LlamaCpp"
model = "tiny"
base_url = "http://localhost:8080/v1"
"#;

#[test]
fn router_settings_are_read_completely() {
    let home = Home::new().user(FULL);
    let loaded = home.load();
    assert_eq!(loaded.findings, []);
    let settings = loaded.settings;
    assert_eq!(settings.provider.models["mistral"], ["devstral-small", "large"]);
    let router = settings.router;
    assert_eq!(router.mode, RouterMode::Off);
    assert_eq!((router.value_micro_usd, router.second_micro_usd), (2_500_000, 10_000));
    assert_eq!(router.priority, Priority::High);
    assert_eq!((router.strategy, router.verify), (Strategy::Cascade, Verify::Checks));
    assert_eq!(router.max_attempts, 2);
    assert_eq!(router.checks, ["cargo test", "test -n \"${HOME}\""], "a shell has its own `$`");
    assert!(!router.failover && !router.learn);
    assert_eq!(router.discovery_interval, None);
    assert_eq!(router.catalogue.as_deref(), Some("~/models.json"));
    assert_eq!((router.caps.turn, router.caps.day), (Some(500_000), Some(5_000_000)));
    assert_eq!((router.caps.project_month, router.caps.session), (Some(0), None));
    assert_eq!(router.roles.small.unwrap().to_string(), "ollama/qwen3:4b");
    assert_eq!(router.roles.reviewer.unwrap().provider, "openrouter");
    assert_eq!(router.roles.planner, None);
}

#[test]
fn router_rules_are_read_in_order_with_their_position() {
    let home = Home::new().user(FULL).project("[[router.rules]]\nforbid = [\"openai/*\"]\n");
    let rules = home.load().settings.router.rules;
    let [first, second, third] = rules.as_slice() else { panic!("{rules:?}") };
    assert_eq!(first.rule.name, "secrets stay here");
    assert_eq!(first.rule.when.paths, ["secrets/**"]);
    let [RuleEffect::Forbid(forbidden)] = first.rule.then.as_slice() else { panic!("{first:?}") };
    assert_eq!(forbidden.len(), 2);
    assert_eq!((first.origin, first.place.position().unwrap().line), (Origin::User, 30));
    let when = &second.rule.when;
    assert_eq!(when.tasks, ["debug", "unit_test"], "in the spelling of the schema");
    let days = vec![Day::Sat, Day::Sun];
    assert_eq!(when.hours, Some(Hours { from: 22 * 60, to: 6 * 60, days }));
    assert_eq!((when.min_complexity, when.max_complexity), (Some(40), Some(100)));
    let prefer = RuleEffect::Prefer { arms: vec!["mistral/*".to_owned()], percent: 25 };
    let pin = RuleEffect::Pin("anthropic/claude-*".to_owned());
    let most = [RuleEffect::MaxCostMicroUsd(250_000), RuleEffect::MaxSeconds(90)];
    assert_eq!(second.rule.then, [[pin, prefer], most].concat());
    assert_eq!(third.rule.name, "number 3", "where nothing is said");
    assert_eq!((third.origin, third.place.position().unwrap().line), (Origin::Project, 2));
}

#[test]
fn rate_limits_arms_and_small_model_settings_are_read() {
    let settings = Home::new().user(FULL).load().settings;
    let rates = Rates {
        rps: Some(0.5),
        rpm: Some(60),
        tokens_month: Some(5_000_000_000),
        spend_day_micro_usd: Some(1_000_000),
        spend_month_micro_usd: Some(12_500_000),
        custom: Some(3),
        custom_month: Some(1500),
        ..Rates::default()
    };
    let limits = RateLimits { tier: Some("starter".to_owned()), rates };
    assert_eq!(settings.rate_limits["mistral"], limits);
    let arm = ArmSettings {
        enabled: false,
        strengths: vec!["review".to_owned()],
        cost_weight: Some(0.5),
        input_price: Some(400_000),
        output_price: Some(2_000_000),
        cache_read_price: Some(40_000),
        cache_write_price: Some(0),
        context: Some(128_000),
        max_output: Some(8192),
        small: Some(true),
        tools: Some(true),
        vision: Some(false),
        thinking: Some(false),
        pools: vec!["gateway".to_owned()],
    };
    assert_eq!(settings.arms["mistral/large"], arm);
    assert!(settings.slm.enabled);
    assert_eq!(settings.slm.backend, SlmBackend::LlamaCpp);
    assert_eq!(settings.slm.model.as_deref(), Some("tiny"));
    assert_eq!(settings.slm.base_url.as_deref(), Some("http://localhost:8080/v1"));
}

#[test]
fn router_defaults_route_each_turn_without_caps() {
    let settings = Home::new().load().settings;
    let router = settings.router;
    assert_eq!((router.mode, router.strategy), (RouterMode::Auto, Strategy::Auto));
    assert_eq!((router.value_micro_usd, router.second_micro_usd), (10_000_000, 0));
    assert_eq!((router.max_attempts, router.verify), (3, Verify::Auto));
    assert!(router.failover && router.learn && router.rules.is_empty());
    assert_eq!(router.discovery_interval, Some(Duration::from_secs(30)));
    assert_eq!(router.caps, Caps::default());
    assert!(settings.arms.is_empty() && settings.rate_limits.is_empty());
    assert!(!settings.slm.enabled && settings.slm.backend == SlmBackend::Auto);
}

#[test]
fn zero_spend_cap_of_the_old_key_means_no_cap() {
    let cap = |file: &str| {
        let limits = Home::new().user(file).load().settings.rate_limits;
        limits["x"].rates.spend_month_micro_usd
    };
    assert_eq!(cap("rate_limits.x.spend_cap = 0\n"), None);
    assert_eq!(cap("rate_limits.x.spend_cap = 3\n"), Some(3_000_000));
    assert_eq!(cap("[rate_limits.x]\nspend_cap = 3\nspend_month = 0\n"), Some(0));
}

#[test]
fn invalid_router_settings_are_reported_with_line_and_suggestion() {
    let home = Home::new().user(
        r#"
[router]
strategy = "casscade"
max_attempts = 0
value = -1
waiting = nan
checks = [""]
caps.daily = 3
caps.month = 1e9
roles.small = "qwen"
roles.critic = "a/b"

[[router.rules]]
task = ["debugg"]
hours = "9-17"
days = ["monday"]
complexity = "0.4-1"
pin = "openai"
forbid = ["openai"]
prefer = "openai/*"
max_cost = "cheap"

[[router.rules]]
task = ["review"]

[[arms]]
id = "large"

[provider.models]
mistral = [3]
"#,
    );
    insta::assert_snapshot!(home.words(), @r#"
    error: `router.strategy` cannot be `casscade`: it is one of auto, single, cascade, ensemble, synthesis
      --> ~/config/config.toml:3:12
      |
    3 | strategy = "casscade"
      |            ^^^^^^^^^^
    hint: did you mean `cascade`?

    error: `router.max_attempts` must be a whole number from 1 to 10, not `0`
      --> ~/config/config.toml:4:16
      |
    4 | max_attempts = 0
      |                ^

    error: `router.value` must be a number from 0 to 1000000, not `-1`
      --> ~/config/config.toml:5:9
      |
    5 | value = -1
      |         ^^

    error: `router.waiting` must be a number from 0 to 1000000, not `NaN`
      --> ~/config/config.toml:6:11
      |
    6 | waiting = nan
      |           ^^^

    error: `router.checks` must be a list, each entry a command such as "cargo test", not one with `` in it
      --> ~/config/config.toml:7:10
      |
    7 | checks = [""]
      |          ^^^^

    error: `router.caps.month` must be a number from 0 to 1000000, not `1000000000`
      --> ~/config/config.toml:9:14
      |
    9 | caps.month = 1e9
      |              ^^^

    error: `router.roles.small` must be a provider and a model such as "mistral/devstral-small", not `qwen`
      --> ~/config/config.toml:10:15
       |
    10 | roles.small = "qwen"
       |               ^^^^^^

    error: `router.rules.0.task` must be a list, each entry one of boilerplate, generation, refactor, review, unit_test, planning, orchestration, security_review, debug, explain, not one with `debugg` in it
      --> ~/config/config.toml:14:8
       |
    14 | task = ["debugg"]
       |        ^^^^^^^^^^
    hint: did you mean `debug`?

    error: `router.rules.0.hours` must be hours of a day such as "09:00-17:00", not `9-17`
      --> ~/config/config.toml:15:9
       |
    15 | hours = "9-17"
       |         ^^^^^^

    error: `router.rules.0.days` must be a list, each entry one of mon, tue, wed, thu, fri, sat, sun, not one with `monday` in it
      --> ~/config/config.toml:16:8
       |
    16 | days = ["monday"]
       |        ^^^^^^^^^^

    error: `router.rules.0.complexity` must be a range within 0 to 100 such as "40-100", not `0.4-1`
      --> ~/config/config.toml:17:14
       |
    17 | complexity = "0.4-1"
       |              ^^^^^^^

    error: `router.rules.0.pin` must be a provider and a model, `*` for any, such as "openai/*", not `openai`
      --> ~/config/config.toml:18:7
       |
    18 | pin = "openai"
       |       ^^^^^^^^

    error: `router.rules.0.forbid` must be a list, each entry a provider and a model, `*` for any, such as "openai/*", not one with `openai` in it
      --> ~/config/config.toml:19:10
       |
    19 | forbid = ["openai"]
       |          ^^^^^^^^^^

    error: `router.rules.0.prefer` must be a list, each entry a provider and a model, `*` for any, such as "openai/*", not text
      --> ~/config/config.toml:20:10
       |
    20 | prefer = "openai/*"
       |          ^^^^^^^^^^

    error: `router.rules.0.max_cost` must be a number from 0 to 1000000, not text
      --> ~/config/config.toml:21:12
       |
    21 | max_cost = "cheap"
       |            ^^^^^^^

    error: `arms.large.id` must be a provider and a model such as "mistral/devstral-small", not `large`
      --> ~/config/config.toml:27:6
       |
    27 | id = "large"
       |      ^^^^^^^

    error: `provider.models.mistral` must be a list, each entry a model such as "devstral-small", not a list with other values in it
      --> ~/config/config.toml:30:11
       |
    30 | mistral = [3]
       |           ^^^

    warning: `router.caps.daily` is ignored: there is no such key
      --> ~/config/config.toml:8:6
      |
    8 | caps.daily = 3
      |      ^^^^^
    hint: known here are turn, session, day, month, project_day, project_month

    warning: `router.roles.critic` is ignored: there is no such key
      --> ~/config/config.toml:11:7
       |
    11 | roles.critic = "a/b"
       |       ^^^^^^
    hint: known here are small, planner, editor, reviewer

    warning: `router.rules.1` has no effect: it says when, but not what
      --> ~/config/config.toml:24:8
    hint: give it one of pin, forbid, prefer, max_cost, max_seconds, or remove it
    "#);
}

#[test]
fn router_settings_without_effect_are_reported() {
    let home = Home::new().user(
        "[router]\nstrategy = \"cascade\"\nverify = \"off\"\n[[router.rules]]\nname = \"nights\"\nhours = \"22:00-06:00\"\n",
    );
    insta::assert_snapshot!(home.words(), @r#"
    warning: `router.rules.0` has no effect: it says when, but not what
      --> ~/config/config.toml:5:8
    hint: give it one of pin, forbid, prefer, max_cost, max_seconds, or remove it

    warning: `router.strategy` never tries a second model: nothing checks what the first one did
      --> ~/config/config.toml:2:12
    hint: set `router.verify` to auto, or `router.strategy` to single
    "#);
}

#[test]
fn project_may_tighten_routing_and_caps_but_not_loosen_them() {
    let home = Home::new().user("[router.caps]\nday = 5\nturn = 1\n").project(
        r#"
[router]
value = 1000
force_two_stage = true
caps = { day = 50, turn = 0.5, session = 3 }

[[router.rules]]
forbid = ["openai/*"]
max_cost = 0.1

[[router.rules]]
task = ["debug"]
pin = "openai/gpt"

[[arms]]
id = "openai/gpt"
input_price = 0
"#,
    );
    insta::assert_snapshot!(home.words(), @r#"
    warning: `router.value` is ignored because it could run a program, redirect traffic, spend money or weaken a protection: this folder is not trusted
      --> ~/project/.gnoma/config.toml:3:9
    hint: read the file; if you trust it, run `gnoma trust` in that folder

    warning: `router.caps.day` is ignored because it is more than you allow: a project can only lower it
      --> ~/project/.gnoma/config.toml:5:16
    hint: set it in your own config.toml

    warning: `router.rules.1` is ignored because it could run a program, redirect traffic, spend money or weaken a protection: this folder is not trusted
      --> ~/project/.gnoma/config.toml:12:8
    hint: read the file; if you trust it, run `gnoma trust` in that folder

    warning: `arms."openai/gpt"` is ignored because it could run a program, redirect traffic, spend money or weaken a protection: this folder is not trusted
      --> ~/project/.gnoma/config.toml:16:6
    hint: read the file; if you trust it, run `gnoma trust` in that folder
    "#);
    let router = home.load().settings.router;
    assert!(router.force_two_stage);
    assert_eq!(router.rules.len(), 1);
    assert_eq!(router.value_micro_usd, 10_000_000);
    assert_eq!(router.caps.day, Some(5_000_000));
    assert_eq!((router.caps.turn, router.caps.session), (Some(500_000), Some(3_000_000)));
}

#[test]
fn the_command_line_may_raise_a_cap_for_a_run() {
    let home = Home::new()
        .user("router.caps.day = 5\n")
        .project("router.caps.day = 1\n")
        .flag("router.caps.day", 20);
    assert_eq!(home.load().settings.router.caps.day, Some(20_000_000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn project_cannot_raise_the_spending_cap_of_the_user(
        user in proptest::option::of(0_u32..200),
        project in 0_u32..200,
        is_trusted: bool,
        key in proptest::sample::select(vec!["router.caps.month", "rate_limits.x.spend_day"]),
    ) {
        let mut home = Home::new().project(&format!("{key} = {project}\n"));
        if let Some(user) = user {
            home = home.user(&format!("{key} = {user}\n"));
        }
        if is_trusted {
            home = home.trusted();
        }
        let loaded = home.load();
        let lowest = user.map_or(project, |user| user.min(project));
        prop_assert_eq!(&loaded.explain_key(key).unwrap().value, &format!("{lowest}.0"));
        prop_assert_eq!(loaded.findings.len(), usize::from(user.is_some_and(|user| project > user)));
    }
}

#[test]
fn caps_in_another_currency_are_counted_in_dollars_by_their_rate() {
    let home = Home::new().user(
        "[router.caps]\nday = \"5 EUR\"\nmonth = \"€20\"\nturn = \"$0.50\"\nsession = 3\n[router.exchange]\nEUR = 1.1\n",
    );
    let caps = home.load().settings.router.caps;
    assert_eq!((caps.day, caps.month), (Some(5_500_000), Some(22_000_000)));
    assert_eq!((caps.turn, caps.session), (Some(500_000), Some(3_000_000)));
    let without_rate = Home::new().user("[router.caps]\nday = \"5 EUR\"\n").words();
    assert!(without_rate.contains("`router.caps.day` is in EUR"), "{without_rate}");
    assert!(without_rate.contains("`router.exchange.EUR`"), "{without_rate}");
    let no_amount = Home::new().user("[router.caps]\nday = \"five euros\"\n").words();
    assert!(no_amount.contains("or text such as \"5 EUR\""), "{no_amount}");
}

#[test]
fn variable_that_is_ignored_gives_no_key_and_no_address() {
    let home = Home::new()
        .user("[provider]\nignored_variables = [\"MISTRAL_API_KEY\", \"OPENAI_BASE_URL\"]\n")
        .env("MISTRAL_API_KEY", "made-up")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1")
        .env("GROQ_API_KEY", "made-up");
    let provider = home.load().settings.provider;
    assert_eq!(provider.api_keys.keys().collect::<Vec<_>>(), ["groq"]);
    assert!(provider.endpoints.is_empty(), "{:?}", provider.endpoints);
}
