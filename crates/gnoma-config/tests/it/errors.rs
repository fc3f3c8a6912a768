//! What is said about a broken configuration.

use gnoma_config::toml::Value;

use crate::home::Home;

#[test]
fn syntax_errors_are_shown_with_their_line() {
    let home = Home::new().user("[provider]\nmodel = \"small\nmax_tokens = 1\n[tools\n");
    insta::assert_snapshot!(home.words(), @r#"
    error: not valid TOML: invalid basic string, expected `"`
      --> ~/config/config.toml:2:15
      |
    2 | model = "small
      |               ^

    error: not valid TOML: unclosed table, expected `]`
      --> ~/config/config.toml:4:7
      |
    4 | [tools
      |       ^
    "#);
}

#[test]
fn wrong_types_in_all_files_are_reported_together() {
    let home = Home::new()
        .user(
            "[provider]\nmax_tokens = \"many\"\ntemperature = 9\n\n[tools]\n  bash_timeout = \"soon\"\n",
        )
        .project("[permission]\nmode = \"plain\"\n[[hooks]]\nevent = \"stop\"\n[hooks.0]\n");
    insta::assert_snapshot!(home.words(), @r#"
    error: `provider.max_tokens` must be a whole number from 1 to 4294967295, not text
      --> ~/config/config.toml:2:14
      |
    2 | max_tokens = "many"
      |              ^^^^^^

    error: `provider.temperature` must be a number from 0 to 2, not `9`
      --> ~/config/config.toml:3:15
      |
    3 | temperature = 9
      |               ^

    error: `tools.bash_timeout` must be a time from 1 s to 366 days: a number of seconds, or text such as "30s", "1m30s" or "30 days", not `soon`
      --> ~/config/config.toml:6:18
      |
    6 |   bash_timeout = "soon"
      |                  ^^^^^^

    error: `permission.mode` cannot be `plain`: it is one of default, accept_edits, auto, plan, deny, bypass
      --> ~/project/.gnoma/config.toml:2:8
      |
    2 | mode = "plain"
      |        ^^^^^^^
    hint: did you mean `plan`?

    warning: `hooks.0.0` is ignored: there is no such key
      --> ~/project/.gnoma/config.toml:5:8
      |
    5 | [hooks.0]
      |        ^
    hint: known here are name, event, type, exec, model, timeout, fail_open, fail, tool_pattern

    warning: `hooks.0` is ignored because it could run a program, redirect traffic, spend money or weaken a protection: this folder is not trusted
      --> ~/project/.gnoma/config.toml:4:9
    hint: read the file; if you trust it, run `gnoma trust` in that folder
    "#);
    let home =
        Home::new().user("tools = 3\narms = { id = \"x\" }\nrouter.force_two_stage = 1979-05-27\n");
    insta::assert_snapshot!(home.words(), @r#"
    error: `tools` must be a table of settings, not a whole number
      --> ~/config/config.toml:1:9
      |
    1 | tools = 3
      |         ^

    error: `arms` must be a list of tables, not a table
      --> ~/config/config.toml:2:8
      |
    2 | arms = { id = "x" }
      |        ^^^^^^^^^^^^
    hint: write each entry under a header `[[arms]]`

    error: `router.force_two_stage` must be true or false, not a date
      --> ~/config/config.toml:3:26
      |
    3 | router.force_two_stage = 1979-05-27
      |                          ^^^^^^^^^^
    "#);
}

#[test]
fn setting_without_effect_is_reported_with_its_replacement() {
    let defaults = "[security]\nentropy_threshold = 4.5\n";
    assert_eq!(Home::new().user(defaults).load().findings, []);
    let wish = "[security]\nentropy_threshold = 5\nentropy_safelist = [\"uuid\"]\n";
    let loaded = Home::new().user(wish).load();
    let told: Vec<_> = loaded.findings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`security.entropy_safelist` has no effect"), "{told:?}");
    assert!(told[0].contains("hint: ") && told[0].contains("`security.allow`"), "{told:?}");
    assert!(told[1].contains("`security.redact_high_entropy = false`"), "{told:?}");
}

#[test]
fn unknown_keys_are_ignored_with_the_nearest_known_one() {
    let home = Home::new().user(
        "modle = 1\nmodel = \"small\"\n[provder]\nx = 1\n[provider]\nmax_token = 5\n[tui]\ncolour = 3\n[[arms]]\nid = \"a/b\"\nstrength = []\n",
    );
    insta::assert_snapshot!(home.words(), @r#"
    warning: `modle` is ignored: there is no such key
      --> ~/config/config.toml:1:1
      |
    1 | modle = 1
      | ^^^^^
    hint: did you mean `provider.model`?

    warning: `model` is ignored: there is no such key
      --> ~/config/config.toml:2:1
      |
    2 | model = "small"
      | ^^^^^
    hint: did you mean `provider.model`?

    warning: `provder` is ignored: there is no such key
      --> ~/config/config.toml:3:2
      |
    3 | [provder]
      |  ^^^^^^^
    hint: did you mean `provider`?

    warning: `provider.max_token` is ignored: there is no such key
      --> ~/config/config.toml:6:1
      |
    6 | max_token = *
      | ^^^^^^^^^
    hint: did you mean `provider.max_tokens`?

    warning: `tui.colour` is ignored: there is no such key
      --> ~/config/config.toml:8:1
      |
    8 | colour = 3
      | ^^^^^^
    hint: known here are theme, vim

    warning: `arms."a/b".strength` is ignored: there is no such key
      --> ~/config/config.toml:11:1
       |
    11 | strength = []
       | ^^^^^^^^
    hint: did you mean `arms."a/b".strengths`?
    "#);
    assert_eq!(home.load().settings.provider.model, None);
}

#[test]
fn unknown_key_suggestion_stays_in_its_section_and_names_no_guarded_key() {
    for (text, hint) in [
        (
            "[permission]\nallow = [\"x\"]",
            "hint: write each rule under a header `[[permission.rules]]`",
        ),
        ("[sandbox]\nallow = [\"x\"]", "hint: known here are "),
        ("allow = [\"x\"]", ""),
        (
            "[[hooks]]\nevent = \"stop\"\nexec = \"true\"\ncommand = \"x\"",
            "hint: the program is `exec`",
        ),
        ("[tui]\ncommand = \"x\"", "hint: known here are theme, vim"),
        (
            "[[mcp_servers]]\nname = \"a\"\ncommand = \"x\"\nmodel = \"m\"",
            "hint: known here are name, ",
        ),
        ("[session]\nmax_turns = 3", "hint: `--max-turns` limits one run"),
    ] {
        let words = Home::new().user(text).words();
        assert!(words.contains("there is no such key") && words.contains(hint), "{words}");
        assert!(!words.contains("did you mean"), "{words}");
    }
}

#[test]
fn list_entries_must_be_complete_and_unique() {
    let home = Home::new().user(
        "[[arms]]\nid = \"a/b\"\n[[arms]]\nid = \"a/b\"\n[[mcp_servers]]\ncommand = \"x\"\n[[permission.rules]]\ntool = \"bash\"\n",
    );
    insta::assert_snapshot!(home.words(), @r#"
    error: `arms."a/b"` is set twice in this file
      --> ~/config/config.toml:3:1
      |
    3 | [[arms]]
      | ^^^^^^^^
    hint: keep one of them

    error: `mcp_servers` has an entry without `name`
      --> ~/config/config.toml:5:1
      |
    5 | [[mcp_servers]]
      | ^^^^^^^^^^^^^^^

    error: `permission.rules.0` has no `action`
      --> ~/config/config.toml:7:1
      |
    7 | [[permission.rules]]
      | ^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn invalid_address_is_reported_with_its_fault() {
    for (address, told) in [
        ("http:///v1", "names no host"),
        ("http://127.0.0.1:1 //v1", "contains a blank"),
        ("127.0.0.1/v1", "must be an address with its scheme"),
    ] {
        let said = gnoma_config::wrong_address(address).unwrap_or_default();
        assert!(said.contains(told), "{address}: {said}");
    }
    let home = Home::new().user("[provider.endpoints]\nwork = \"HTTP://h/V1\"\n");
    assert_eq!(home.load().settings.provider.endpoints["work"], "http://h/V1");
}

#[test]
fn misspelt_word_in_camel_case_gets_a_suggestion() {
    let words = Home::new().user("[[hooks]]\nevent = \"PreToolUs\"\nexec = \"true\"\n").words();
    assert!(words.contains("did you mean `pre_tool_use`?"), "{words}");
}

#[test]
fn dangling_symlink_to_the_config_file_is_an_error() {
    let home = Home::new().user("");
    let file = home.sources.config_dir.join("config.toml");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    let words = home.words();
    assert!(words.starts_with("error: this file is a link that leads nowhere"), "{words}");
}

#[test]
fn variables_and_flags_are_named_in_errors() {
    let home = Home::new()
        .env("OPENAI_BASE_URL", "localhost:8080")
        .flag("provider.max_tokens", "lots")
        .flag("provider.modle", "x")
        .flag("permission.mode", Value::Integer(3));
    insta::assert_snapshot!(home.words(), @r#"
    error: `provider.endpoints.openai` must be an address with its scheme, such as "http://localhost:8080/v1"
      --> environment variable OPENAI_BASE_URL
    hint: did you mean "http://localhost:8080"?

    error: `provider.max_tokens` must be a whole number from 1 to 4294967295, not text
      --> command line, provider.max_tokens

    error: `provider.modle` cannot be set: there is no such key
      --> command line, provider.modle
    hint: did you mean `provider.model`?

    error: `permission.mode` must be one of default, accept_edits, auto, plan, deny, bypass, not a whole number
      --> command line, permission.mode
    "#);
}

#[test]
fn empty_endpoint_address_is_reported() {
    let home = Home::new()
        .env("URL", "")
        .user("[provider.endpoints]\nwork = \"\"\nown = \"${URL:-}\"\n[slm]\nbase_url = \"\"\n");
    let words = home.words();
    assert!(words.contains("`provider.endpoints.work` is ignored: it is empty"), "{words}");
    assert_eq!(words.matches("warning").count(), 1, "{words}");
}

#[test]
fn unread_gnoma_environment_variables_are_reported() {
    let home = Home::new()
        .env("GNOMA_MODEL", "m")
        .env("GNOMA_PERMISSION", "bypass")
        .env("GNOMA_SESSION", "x")
        .env("GNOMA_TUI_THEME", "light");
    insta::assert_snapshot!(home.words(), @r#"
    warning: `permission.mode` is not set: nothing reads this variable
      --> environment variable GNOMA_PERMISSION
    hint: `gnoma config set permission.mode VALUE` sets it; for one run, `gnoma --help` lists options

    warning: `tui.theme` is not set: nothing reads this variable
      --> environment variable GNOMA_TUI_THEME
    hint: `gnoma config set tui.theme VALUE` sets it; for one run, `gnoma --help` lists options
    "#);
}

#[test]
fn unreadable_files_are_errors() {
    let home = Home::new().write("config/config.toml/inside", "");
    insta::assert_snapshot!(home.words(), @r#"
    error: this file cannot be read: it is a folder
      --> ~/config/config.toml
    "#);
    let home = Home::new();
    let path = home.sources.config_dir.clone();
    let home = home.user("");
    std::fs::write(path.join("config.toml"), [0xff]).unwrap();
    insta::assert_snapshot!(home.words(), @r#"
    error: this file is not UTF-8 text; save it as UTF-8
      --> ~/config/config.toml
    "#);
}

#[test]
fn common_configuration_mistakes_get_a_hint() {
    for (text, hint) in [
        ("{\"provider\": {\"default\": \"x\"}}", "this is JSON"),
        ("provider:\n  default: x\n  model: y\n", "this is YAML"),
        ("[provider]\ndefault = mistral\n", "put text in quotes"),
        ("[provider]\ndefault = \u{201c}mistral\u{201d}\n", "straight quotes"),
        ("api_key = \"k\"\n", "`provider.api_keys`"),
        ("[provider]\nbase_url = \"http://x/v1\"\n", "`provider.endpoints`"),
        ("[model_providers.x]\nbase_url = \"http://x/v1\"\n", "`gnoma providers add`"),
        ("[limits]\nday = 5\n", "`router.caps.day`"),
        ("[provider.endpoints]\nx = \"localhost:8080/v1\"\n", "mean \"http://localhost:8080/v1\"?"),
        ("[provider.endpoints]\nx = \" http://x/v1 \"\n", "mean \"http://x/v1\"?"),
        ("[provider.endpoints]\nx = \"https//api.x.y/v1\"\n", "mean \"https://api.x.y/v1\"?"),
        ("[provider.endpoints]\nx = \"http://x:99999/v1\"\n", "has no usable port: `99999`"),
    ] {
        let words = Home::new().user(text).words();
        assert!(words.contains(hint), "{text}: {words}");
        assert_eq!(words.matches("-->").count(), 1, "{text}: {words}");
    }
    let home = Home::new().user("");
    let utf16: Vec<u8> = "\u{feff}[tui]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(home.sources.config_dir.join("config.toml"), utf16).unwrap();
    assert!(home.words().contains("is UTF-16 text"), "{}", home.words());
}

#[test]
fn malformed_variable_syntax_is_an_error() {
    let home = Home::new().user("provider.model = \"${OPEN\"\n");
    insta::assert_snapshot!(home.words(), @r#"
    error: `provider.model` has `${` without `}`
      --> ~/config/config.toml:1:18
      |
    1 | provider.model = "${OPEN"
      |                  ^^^^^^^^
    hint: write `$${` for a plain `${`
    "#);
}

#[test]
fn number_of_reported_findings_is_limited() {
    let lines: String = (0..50).map(|n| format!("zzzzzz{n} = 1\n")).collect();
    let home = Home::new().user(&format!("{lines}tools = 1\n"));
    let words = home.words();
    assert_eq!(words.matches("warning:").count() + words.matches("error:").count(), 20);
    assert!(words.starts_with("error: `tools` must be a table"), "{words}");
    assert!(words.ends_with("and 31 more"), "{words}");
}

#[test]
fn huge_hostile_config_files_are_read_in_bounded_time() {
    let files = [
        format!("tools = {}", "[".repeat(50_000)),
        "=\n".repeat(50_000),
        (0..9_000).map(|n| format!("[[arms]]\nid = \"a/{n}\"\n")).collect(),
        format!("slm = {{ {} }}", (0..10_000).map(|n| format!("k{n} = 1,")).collect::<String>()),
        (0..9_000).map(|n| format!("provider.context.p{n} = 0\n")).collect(),
        (0..6_000).map(|n| format!("[[router.rules]]\nmax_cost = {n}\n")).collect(),
    ];
    for file in files {
        assert!(file.len() < 256 * 1024);
        assert!(Home::new().user(&file).words().len() < 60_000);
    }
}

#[test]
fn file_in_place_of_the_settings_folder_is_an_error() {
    let home = Home::new().write("config", "not a folder");
    assert!(home.words().contains("this file stands where a folder is needed"), "{}", home.words());
    let home = Home::new().user("[provider]\ndefault = \"x\"\ndefault = \"y\"\n");
    let words = home.words();
    assert!(words.contains("duplicate key") && !words.contains("quotes"), "{words}");
}
