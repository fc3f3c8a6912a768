use proptest::prelude::*;
use toml::{Table, Value};

use super::*;

fn set_in(text: &str, key: &str, value: impl Into<Value>) -> Result<String, EditError> {
    let path: Vec<&str> = key.split('.').collect();
    apply_changes(text, &[Change::set_path(&path, value)])
}

#[track_caller]
fn becomes(text: &str, key: &str, value: impl Into<Value>, wanted: &str) {
    assert_eq!(set_in(text, key, value).as_deref(), Ok(wanted));
}

#[test]
fn edit_replaces_a_value_in_place() {
    let text = "# mine\n[tui]\ntheme = \"mono\"   # dark\nvim = true\n";
    let wanted = "# mine\n[tui]\ntheme = \"ember\"   # dark\nvim = true\n";
    becomes(text, "tui.theme", "ember", wanted);
    becomes("tui.theme = 'mono'", "tui.theme", "ember", "tui.theme = \"ember\"");
    becomes("tui = { vim = true }\r\n", "tui.vim", false, "tui = { vim = false }\r\n");
    becomes("a.x = [\n 1, # one\n]\nb = 1\n", "a.x", 2, "a.x = 2\nb = 1\n");
}

#[test]
fn edit_appends_a_new_key_to_its_table() {
    becomes("", "tui.vim", true, "[tui]\nvim = true\n");
    becomes("# mine\n[tui]", "tui.vim", true, "# mine\n[tui]\nvim = true\n");
    becomes(
        "[tui]\ntheme = 'a' # x\n\n# next\n[z]\n",
        "tui.vim",
        true,
        "[tui]\ntheme = 'a' # x\nvim = true\n\n# next\n[z]\n",
    );
    becomes(
        "[z]\nx = 1\n",
        "provider.default",
        "test",
        "[z]\nx = 1\n\n[provider]\ndefault = \"test\"\n",
    );
    becomes("[a.b]\nx = 1\n", "a.y", 2, "[a.b]\nx = 1\n\n[a]\ny = 2\n");
    becomes("[a]\nx = 1\n", "top", 2, "top = 2\n\n[a]\nx = 1\n");
    becomes("[a]\n", "a.my key", 2, "[a]\n\"my key\" = 2\n");
}

#[test]
fn edit_preserves_the_style_of_the_file() {
    becomes("\u{feff}a.b=1\nc=2\na.d=3\n", "a.e", 4, "\u{feff}a.b=1\nc=2\na.d=3\na.e = 4\n");
    becomes("[a]\r\nx=1\r\n[b]\r\n", "a.y", 2, "[a]\r\nx=1\r\ny = 2\r\n[b]\r\n");
    becomes("a = {}\n", "a.b.c", 2, "a = { b.c = 2 }\n");
    becomes("a = { x = 1, b.c = 1 }\n", "a.b.d", 2, "a = { x = 1, b.c = 1, b.d = 2 }\n");
    becomes("[a]\nx = { y = 1 } # z\n", "a.x.q", 2, "[a]\nx = { y = 1, q = 2 } # z\n");
}

#[test]
fn refused_edit_names_its_cause() {
    let refused = |text: &str, key: &str| set_in(text, key, 1).unwrap_err().to_string();
    assert!(refused("a = 1\n\n[b", "a").starts_with("line 3 is not valid TOML"));
    assert!(refused("tui = 1", "tui.theme").contains("`tui` is set to a value"));
    assert!(refused("[tui]\nx = 1", "tui").contains("`tui` is a table"));
    assert!(refused("tui.x.y = 1", "tui.x").contains("`tui.x` is a table"));
    assert!(refused("[[arms]]\nid = 'x'", "arms.x").contains("`arms` is a list"));
    assert_eq!(Change::set_key("a b", 1), Err(EditError::NoKey));
    assert_eq!(Change::set_key("a.\"b.c\"", 1), Ok(Change::set_path(&["a", "b.c"], 1)));
    assert_eq!(
        apply_changes("", &[Change::Set { path: Vec::new(), value: 1.into() }]),
        Err(EditError::NoKey)
    );
}

fn allowed(text: &str, rules: &[&str]) -> Result<String, EditError> {
    let changes: Vec<_> = rules.iter().map(|rule| Change::Allow((*rule).to_owned())).collect();
    apply_changes(text, &changes)
}

#[test]
fn permission_rule_is_appended_once() {
    let text = "# mine\n[permission] # careful\nmode = \"auto\"\n";
    let rule = "[[permission.rules]]\nrule = \"bash(cargo test *)\"\naction = \"allow\"\n";
    let new = allowed(text, &["bash(cargo test *)"]).unwrap();
    assert_eq!(new, format!("{text}\n{rule}"));
    assert_eq!(allowed("", &["bash(cargo test *)"]).unwrap(), rule);
    assert_eq!(allowed(&new, &["bash(cargo test *)"]).unwrap(), new);
    let both = allowed(&new, &["bash(cargo test *)", "web(\"x\")"]).unwrap();
    let read: Table = toml::from_str(&both).unwrap();
    assert_eq!(read["permission"]["rules"].as_array().unwrap().len(), 2);
}

#[test]
fn permission_rule_is_added_to_lists_in_any_notation() {
    let one = "{ rule = \"bash(ls)\", action = \"allow\" }";
    let cases = [
        ("[permission]\nrules = [] # none\n", format!("[permission]\nrules = [{one}] # none\n")),
        (
            "permission.mode = 'auto'\n",
            format!("permission.mode = 'auto'\npermission.rules = [{one}]\n"),
        ),
        (
            "permission = { mode = 'auto' }\n",
            format!("permission = {{ mode = 'auto', rules = [{one}] }}\n"),
        ),
        (
            "[permission]\nrules = [\n  { rule = 'x', action = 'deny' }, # why\n]\n",
            format!(
                "[permission]\nrules = [\n  {{ rule = 'x', action = 'deny' }},\n  {one}, # why\n]\n"
            ),
        ),
    ];
    for (text, wanted) in cases {
        let new = allowed(text, &["bash(ls)"]).unwrap();
        assert_eq!(new, wanted);
        assert_eq!(allowed(&new, &["bash(ls)"]).unwrap(), wanted, "not twice");
    }
    for text in
        ["permission = 1\n", "[permission]\nrules = 1\n", "permission.rules = [1]\n", "[a\n"]
    {
        assert!(allowed(text, &["bash(ls)"]).is_err(), "{text}");
    }
}

/// Lines of files in many ways to write them, some of which do not go together.
fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "# a comment",
        "",
        "a = 1",
        "a.b = 1 # why",
        "a.c=[1,\n 2]",
        "b = { c = 1 }",
        "b = {}",
        "b = { c.a = 1,\n b = 2 }",
        "[a]",
        "[b]  # b",
        "[a.b]",
        "[a.b.c]",
        "[c.\"x y\"]",
        "[[c]]",
        "[[d.a]]",
        "  c = '''x\n[a]\n'''",
        "\"b\" = \"\\u00e9\"",
        "c.c.c = 1",
        "permission.mode = 'x'",
        "[permission]",
        "rules = []",
        "permission = {}",
        "[[permission.rules]]",
        "rule = 'r'\naction = 'allow'",
    ]);
    (prop::collection::vec(line, 0..7), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(lines, has_mark, has_returns, ends)| {
            let end = if has_returns { "\r\n" } else { "\n" };
            let text = lines.join("\n").replace('\n', end);
            let mark = if has_mark { "\u{feff}" } else { "" };
            format!("{mark}{text}{}", if ends { end } else { "" })
        },
    )
}

fn put(table: &mut Table, path: &[String], value: Value) -> Option<()> {
    let (name, sections) = path.split_last()?;
    let mut table = table;
    for section in sections {
        let inner = table.entry(section.as_str()).or_insert_with(|| Value::Table(Table::new()));
        table = inner.as_table_mut()?;
    }
    table.insert(name.clone(), value);
    Some(())
}

/// Bytes of the old text that stand neither before nor after the place that changed.
fn lost(old: &str, new: &str) -> usize {
    let same = |(one, other): &(u8, u8)| one == other;
    let before = old.bytes().zip(new.bytes()).take_while(same).count();
    let after = old.bytes().rev().zip(new.bytes().rev()).take_while(same).count();
    old.len().saturating_sub(before + after)
}

proptest! {
    #[test]
    fn edited_value_reads_back_and_the_rest_is_unchanged(
        text in lines(),
        path in prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "x y"]), 1..4),
        value in prop_oneof![
            any::<i64>().prop_map(Value::Integer),
            "\\PC{0,9}|[\"'\\\\\n\r\t]{0,5}".prop_map(Value::String),
        ],
    ) {
        let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
        let change = Change::Set { path: path.clone(), value: value.clone() };
        let before = toml::from_str::<Table>(&text);
        match (before, apply_changes(&text, &[change])) {
            (Err(_), result) => {
                let is_told = matches!(result, Err(EditError::NotToml { .. }));
                prop_assert!(is_told);
            }
            (Ok(before), Ok(new)) => {
                let mut wanted = before.clone();
                prop_assert!(put(&mut wanted, &path, value).is_some());
                prop_assert_eq!(toml::from_str::<Table>(&new), Ok(wanted), "{}", new);
                let old = path.iter().try_fold(&Value::Table(before), |at, name| at.get(name)).cloned();
                prop_assert!(old.is_some() || lost(&text, &new) == 0, "{}", new);
                prop_assert!(text.matches('#').count() <= new.matches('#').count());
            }
            (Ok(before), Err(_)) => {
                // Only what stands in the way of the key is a reason.
                let at = path.iter().try_fold(&Value::Table(before), |at, name| match at {
                    Value::Table(table) => table.get(name).ok_or(false),
                    _ => Err(true),
                }).cloned();
                let is_in_the_way = match at {
                    Ok(found) => matches!(found, Value::Table(_) | Value::Array(_)),
                    Err(is_value) => is_value,
                };
                prop_assert!(is_in_the_way);
            }
        }
    }

    #[test]
    fn allow_rule_is_appended_and_the_rest_is_unchanged(text in lines(), rule in "\\PC{1,9}|r") {
        if let Ok(new) = allowed(&text, &[&rule]) {
            prop_assert_eq!(lost(&text, &new), 0);
            let read = toml::from_str::<Table>(&new).unwrap();
            let rules = read["permission"]["rules"].as_array().unwrap();
            let is_it = |entry: &Value| entry.get("action").and_then(Value::as_str) == Some("allow") && entry.get("rule").and_then(Value::as_str) == Some(&rule);
            prop_assert!(rules.iter().any(|entry| entry.as_table().is_some_and(|table| table.len() == 2) && is_it(entry)));
            prop_assert_eq!(allowed(&new, &[&rule]), Ok(new));
        }
    }
}

#[test]
fn removed_key_takes_only_its_line() {
    let removed = |text: &str, path: &[&str]| apply_changes(text, &[Change::remove(path)]).unwrap();
    let path = ["provider", "api_keys", "work"];
    for (before, after) in [
        (
            "[provider.api_keys]\nwork = \"k\" # mine\nother = \"o\"\n",
            "[provider.api_keys]\nother = \"o\"\n",
        ),
        ("[provider]\napi_keys.work = \"k\"\nmodel = \"m\"\n", "[provider]\nmodel = \"m\"\n"),
        ("provider.api_keys.work = \"k\"", ""),
        (
            "[provider]\napi_keys = { work = \"k\", other = \"o\" }\n",
            "[provider]\napi_keys = { other = \"o\" }\n",
        ),
        (
            "[provider]\napi_keys = { other = \"o\", work = \"k\" }\n",
            "[provider]\napi_keys = { other = \"o\" }\n",
        ),
        ("[provider]\napi_keys = { work = \"k\" }\n", "[provider]\napi_keys = { }\n"),
        ("[provider]\nmodel = \"m\"\n", "[provider]\nmodel = \"m\"\n"),
        ("", ""),
    ] {
        assert_eq!(removed(before, &path), after, "{before}");
    }
}
