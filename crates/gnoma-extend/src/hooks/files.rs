//! Hooks as other programs keep them: `{"hooks": {"Event": [{"matcher": "…", "hooks": [{…}]}]}}`.

use std::{ops::ControlFlow, path::Path, time::Duration};

use gnoma_core::{json, lifecycle::PointKind, suggest::nearest_name};
use serde_json::Value;

use super::{
    codex::{self, CodexChoices},
    entry::{parse_hook, parse_kind},
    error::{HookConditionError, HookError, HookFileError},
    hook::{Hook, OwnHook},
    restrictions::{OTHER_PERMISSIONS, Restrictions, read_restrictions},
};
use crate::{
    claude::our_rules,
    places::{ExtendPlaces, ExtensionSource, read_text},
    plugin::PluginPlace,
};

/// Most hooks of all files together.
const MAX_HOOKS: usize = 200;

/// The fields of a hook that are read, one that only people read (`statusMessage`), and one that has no effect in
/// such files (`once`).
const FIELDS: [&str; 16] = [
    "allowedEnvVars",
    "args",
    "async",
    "asyncTimeout",
    "command",
    "fail",
    "headers",
    "if",
    "model",
    "once",
    "prompt",
    "shell",
    "statusMessage",
    "timeout",
    "type",
    "url",
];
/// The points that are about a call.
const CALLS: [PointKind; 5] = [
    PointKind::BeforeTool,
    PointKind::AfterTool,
    PointKind::ToolFailed,
    PointKind::PermissionAsked,
    PointKind::PermissionDenied,
];
/// The settings that are read or told of.
const SETTINGS: [&str; 6] = [
    "$schema",
    "disableAllHooks",
    "enabledPlugins",
    "extraKnownMarketplaces",
    "hooks",
    "permissions",
];

/// The events of other programs that gnoma has.
pub(super) const EVENTS: [(&str, PointKind); 15] = [
    ("SessionStart", PointKind::SessionStart),
    ("SessionEnd", PointKind::SessionEnd),
    ("UserPromptSubmit", PointKind::Prompt),
    ("PreToolUse", PointKind::BeforeTool),
    ("PostToolUse", PointKind::AfterTool),
    ("PostToolUseFailure", PointKind::ToolFailed),
    ("PermissionRequest", PointKind::PermissionAsked),
    ("PermissionDenied", PointKind::PermissionDenied),
    ("PreCompact", PointKind::BeforeCompaction),
    ("PostCompact", PointKind::AfterCompaction),
    ("Stop", PointKind::BeforeStop),
    ("Notification", PointKind::Notification),
    ("PostModelSwitch", PointKind::ModelSwitched),
    ("SubagentStart", PointKind::ChildStart),
    ("SubagentStop", PointKind::ChildStop),
];

/// The hooks and rules that were found in files.
#[derive(Debug, Default)]
pub struct FoundHooks {
    /// The hooks that can be run.
    pub hooks: Vec<Hook>,
    /// Hooks that do nothing or cannot be read, a sentence each.
    pub faults: Vec<String>,
    /// Hooks that change nothing here, a sentence each.
    pub notes: Vec<String>,
    /// Rules of Claude Code that restrict, by the file that they are in.
    pub restrictions: Vec<Restrictions>,
}

/// Reads the hooks of other programs' files: the person's, then the project's.
#[must_use]
pub fn read_hook_files(places: &ExtendPlaces) -> FoundHooks {
    let mut found = FoundHooks::default();
    let mut files = Vec::new();
    if let Some(home) = &places.home {
        for name in [
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".codex/hooks.json",
            ".codex/config.toml",
        ] {
            files.push((ExtensionSource::User, home.join(name)));
        }
    }
    if places.home.as_deref() != Some(&*places.project) {
        for name in [
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".codex/hooks.json",
            ".codex/config.toml",
        ] {
            files.push((ExtensionSource::Project, places.project.join(name)));
        }
    }
    let choices = CodexChoices::from_home(places.home.as_deref());
    for plugin in &places.plugins {
        let FoundHooks { hooks, faults, notes, restrictions: _ } = of_plugin(plugin);
        found.hooks.extend(hooks);
        found.faults.extend(faults);
        found.notes.extend(notes);
    }
    for (by, path) in files {
        if path.is_file() {
            read_hook_file(places, (by, &choices), &path, &mut found);
        }
    }
    found
}

fn read_hook_file(
    places: &ExtendPlaces,
    (by, choices): (ExtensionSource, &CodexChoices),
    path: &Path,
    found: &mut FoundHooks,
) {
    let shown = places.display_path(path);
    if !places.is_inside(by, path) {
        return found.faults.push(format!("{shown} leads outside the project or to secrets"));
    }
    let is_codex = path.parent().is_some_and(|folder| folder.ends_with(codex::FOLDER));
    let value = read_document(&shown, path, &mut found.faults);
    if let Some(value) = value.as_ref().ok().filter(|_| !is_codex) {
        other_plugins(&shown, value, found);
        other_settings(&shown, value, found);
        let (restrictions, faults) = read_restrictions(by, &shown, value);
        found.restrictions.extend(restrictions);
        found.faults.extend(faults);
    }
    let choices = Some(choices).filter(|_| is_codex);
    match value {
        Ok(value) if choices.is_some_and(|choices| choices.all_off) => {
            if value.get("hooks").is_some() {
                found
                    .faults
                    .push(format!("the hooks of {shown} are turned off in Codex's settings"));
            }
        }
        Ok(value) => {
            parse_document(&HookFile { by, path, shown, root: None, choices }, &value, found);
        }
        Err(why) => {
            found.faults.push(format!("the hooks and rules of {shown} are not read: {why}"));
        }
    }
}

/// Reads the document in a file, and names the keys that it has more than once.
fn read_document(
    shown: &str,
    path: &Path,
    faults: &mut Vec<String>,
) -> Result<Value, HookFileError> {
    if path.ends_with(codex::SETTINGS) {
        return codex::read_settings(path);
    }
    let text = read_text(path)?;
    faults.extend(json::repeated_keys(&text).into_iter().map(|key| {
        format!("{shown} has `{key}` more than once, and only the last one counts: merge them")
    }));
    Ok(json::from_hand(&text)?)
}

/// Plugins that another program has installed are not read; a notice says so.
fn other_plugins(shown: &str, value: &Value, found: &mut FoundHooks) {
    let enabled = value.get("enabledPlugins").and_then(Value::as_object).into_iter().flatten();
    let enabled = enabled.filter(|(_, is_on)| is_on.as_bool() == Some(true));
    let names: Vec<_> = enabled.map(|(name, _)| name.escape_debug().to_string()).collect();
    if !names.is_empty() {
        found.faults.push(format!(
            "{shown} enables plugins that gnoma does not load from there: {}; `gnoma import claude` says how to \
             install them",
            names.join(", ")
        ));
    }
}

/// Settings of another program that mean something else than hooks.
fn other_settings(shown: &str, value: &Value, found: &mut FoundHooks) {
    let Some(fields) = value.as_object() else { return };
    let permissions = fields.get("permissions").and_then(Value::as_object).into_iter().flatten();
    let permissions = permissions
        .filter(|(name, _)| OTHER_PERMISSIONS.contains(&name.as_str()))
        .map(|(name, _)| format!("permissions.{name}"));
    let others: Vec<String> = fields
        .keys()
        .filter(|name| !SETTINGS.contains(&name.as_str()))
        .cloned()
        .chain(permissions)
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect();
    if !others.is_empty() {
        found.notes.push(format!(
            "{shown}: gnoma does not support {}; `gnoma import claude` imports what it can",
            others.join(", ")
        ));
    }
}

/// The hooks of a plugin.
#[must_use]
pub fn of_plugin(plugin: &PluginPlace) -> FoundHooks {
    let mut found = FoundHooks::default();
    let root = Some(&*plugin.root);
    for (path, value) in &plugin.hooks {
        let shown = format!("the plugin `{}`", plugin.name);
        let file = HookFile { by: plugin.by, path, shown, root, choices: None };
        parse_document(&file, value, &mut found);
    }
    for value in &plugin.own_hooks {
        match parse_own_hook(plugin, value) {
            Ok(hook) => found.hooks.push(hook),
            Err(why) => found.faults.push(format!("the plugin `{}`: a hook {why}", plugin.name)),
        }
    }
    found
}

/// A hook as plugins of gnoma have it, with the names of the settings.
fn parse_own_hook(plugin: &PluginPlace, entry: &Value) -> Result<Hook, HookError> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = parse_kind(entry)?;
    if text("exec").trim().is_empty() {
        return Err(HookError::NoField("exec"));
    }
    let hook = OwnHook {
        name: text("name"),
        event: text("event"),
        kind,
        exec: text("exec"),
        timeout: entry.get("timeout").and_then(Value::as_u64).map(Duration::from_secs),
        fails_open: entry.get("fail_open").and_then(Value::as_bool).unwrap_or(false),
        tools: text("tool_pattern"),
        by: plugin.by,
        origin: plugin.root.clone(),
    };
    Ok(Hook { root: Some(plugin.root.clone()), ..hook.into_hook()? })
}

/// The place of a document with hooks.
struct HookFile<'a> {
    by: ExtensionSource,
    path: &'a Path,
    shown: String,
    root: Option<&'a Path>,
    /// The choices that the person made about the hooks of such a file.
    choices: Option<&'a CodexChoices>,
}

/// A list, or the one object that somebody wrote in its place.
fn list_of_objects(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(list) => Some(list),
        Value::Object(_) => Some(std::slice::from_ref(value)),
        _ => None,
    }
}

fn parse_document(file: &HookFile<'_>, value: &Value, found: &mut FoundHooks) {
    let shown = &file.shown;
    if value.get("disableAllHooks").and_then(Value::as_bool) == Some(true) {
        return found.faults.push(format!("{shown} turns its hooks off"));
    }
    let events = match (value, value.get("hooks")) {
        (_, Some(Value::Object(events))) => events,
        (Value::Object(_), None | Some(Value::Null)) => return,
        (Value::Object(_), Some(_)) => {
            return found.faults.push(format!(
                "{shown}: `hooks` must be an object that names an event for each list of hooks, so none of them runs"
            ));
        }
        _ => return found.faults.push(format!("{shown} must be an object, so it has no effect")),
    };
    for (event, groups) in events {
        if file.choices.is_some() && event == codex::STATE {
            continue;
        }
        let Some((_, point)) = EVENTS.iter().find(|(name, _)| name == event) else {
            let near = nearest_name(event, EVENTS.iter().map(|(name, _)| *name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            found.faults.push(format!(
                "{shown}: gnoma has no event `{event}`, so its hooks never run{near}"
            ));
            continue;
        };
        let Some(groups) = list_of_objects(groups) else {
            found
                .faults
                .push(format!("{shown}: `hooks.{event}` must be a list, so it runs nothing"));
            continue;
        };
        for (number, group) in groups.iter().enumerate() {
            let place = GroupPlace { event, point: *point, number };
            if parse_group(file, place, group, found).is_break() {
                return;
            }
        }
    }
}

/// The place of a group of hooks in a document.
#[derive(Clone, Copy)]
struct GroupPlace<'a> {
    event: &'a str,
    point: PointKind,
    /// The number of the group in the event's list, from 0.
    number: usize,
}

/// Reads the hooks of one group. Breaks off where the documents have too many.
fn parse_group(
    file: &HookFile<'_>,
    place: GroupPlace<'_>,
    group: &Value,
    found: &mut FoundHooks,
) -> ControlFlow<()> {
    let (shown, GroupPlace { event, number, .. }) = (&file.shown, place);
    let matcher = match group.get("matcher") {
        Some(Value::String(matcher)) => matcher,
        None | Some(Value::Null) => "",
        Some(_) => {
            found.faults.push(format!(
                "{shown}: `hooks.{event}[{number}].matcher` must be a text; its hooks run for everything"
            ));
            ""
        }
    };
    let Some(entries) = group.get("hooks").and_then(list_of_objects) else {
        found.faults.push(format!(
            "{shown}: `hooks.{event}[{number}].hooks` must be a list, so it runs nothing"
        ));
        return ControlFlow::Continue(());
    };
    for (at, entry) in entries.iter().enumerate() {
        if found.hooks.len() == MAX_HOOKS {
            found.faults.push(format!("{shown}: more than {MAX_HOOKS} hooks"));
            return ControlFlow::Break(());
        }
        if file.choices.is_some_and(|it| it.is_off(file.path, event, (number, at))) {
            found.notes.push(format!("{shown}: a hook for {event} is turned off"));
        } else {
            add_hook(file, place, matcher, entry, found);
        }
    }
    ControlFlow::Continue(())
}

/// Adds one hook of a group, or the reason why it does not run.
fn add_hook(
    file: &HookFile<'_>,
    GroupPlace { event, point, .. }: GroupPlace<'_>,
    matcher: &str,
    entry: &Value,
    found: &mut FoundHooks,
) {
    report_unused_fields(file, event, entry, found);
    let condition = parse_condition(file, (event, point), entry, found);
    match parse_hook(event, point, matcher, entry) {
        Ok(hook) if condition != Some(Vec::new()) => found.hooks.push(Hook {
            condition,
            by: file.by,
            origin: file.path.to_owned(),
            root: file.root.map(Path::to_owned),
            ..hook
        }),
        Ok(_) => (),
        Err(error) => {
            found.faults.push(format!("{}: a hook for {event} {error}", file.shown));
        }
    }
}

/// The rules of `if`, one of which a call must meet; none where it never runs.
fn parse_condition(
    file: &HookFile<'_>,
    (event, point): (&str, PointKind),
    entry: &Value,
    found: &mut FoundHooks,
) -> Option<Vec<String>> {
    let (shown, written) = (&file.shown, entry.get("if")?);
    if !CALLS.contains(&point) {
        found.faults.push(format!(
            "{shown}: a hook for {event}: `if` works only for tool calls, so this hook never runs"
        ));
        return Some(Vec::new());
    }
    let rules = written.as_str().ok_or(HookConditionError::NoText);
    match rules.and_then(|rule| Ok(our_rules(rule)?)) {
        Ok(rules) => Some(rules),
        Err(why) => {
            found.faults.push(format!(
                "{shown}: a hook for {event} has an `if` that gnoma cannot read ({why}): the hook runs for \
                 everything that its `matcher` matches"
            ));
            None
        }
    }
}

/// Names the fields of a hook that change nothing here.
fn report_unused_fields(file: &HookFile<'_>, event: &str, entry: &Value, found: &mut FoundHooks) {
    let shown = &file.shown;
    let names = entry.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let others: Vec<String> = names
        .filter(|name| !FIELDS.contains(name))
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect();
    if !others.is_empty() {
        let others = others.join(", ");
        found.notes.push(format!("{shown}: gnoma does not support {others} in a hook for {event}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_settings(text: &str) -> FoundHooks {
        let value: Value = serde_json::from_str(text).unwrap();
        let (path, shown) = (Path::new("/p/f"), "f".to_owned());
        let file =
            HookFile { by: ExtensionSource::Project, path, shown, root: None, choices: None };
        let mut found = FoundHooks::default();
        found.faults.extend(read_restrictions(file.by, &file.shown, &value).1);
        parse_document(&file, &value, &mut found);
        found
    }

    #[test]
    fn single_hook_object_instead_of_a_list_is_accepted() {
        for hooks in [
            r#"{"PreToolUse":[{"matcher":"Bash","hooks":{"type":"command","command":"exit 2"}}]}"#,
            r#"{"PreToolUse":{"matcher":"Bash","hooks":[{"type":"command","command":"exit 2"}]}}"#,
        ] {
            let found = read_settings(&format!(r#"{{"hooks":{hooks}}}"#));
            assert_eq!((found.hooks.len(), found.faults), (1, Vec::new()), "{hooks}");
        }
    }

    #[test]
    fn malformed_hook_and_permission_settings_are_reported_with_their_path() {
        for (text, place) in [
            (
                r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","command":"exit 2"}]}}"#,
                "`hooks.PreToolUse[0].hooks`",
            ),
            (r#"{"hooks":{"PreToolUse":[{"hooks":"exit 2"}]}}"#, "`hooks.PreToolUse[0].hooks`"),
            (r#"{"hooks":{"PreToolUse":[5]}}"#, "`hooks.PreToolUse[0].hooks`"),
            (r#"{"hooks":{"Stop":"x"}}"#, "`hooks.Stop`"),
            (r#"{"hooks":{"PreToolUs":[]}}"#, "; did you mean `PreToolUse`?"),
            (r#"{"hooks":[{"event":"Stop"}]}"#, "`hooks`"),
            (r#"{"hooks":"x"}"#, "`hooks`"),
            ("[]", "f must be an object"),
            (r#"{"permissions":["Bash(echo:*)"]}"#, "`permissions`"),
            (r#"{"permissions":"y"}"#, "`permissions`"),
            (r#"{"permission":{"deny":["Bash(ls:*)"]}}"#, "`permission` has no effect"),
            (r#"{"permissions":{"denny":["Bash"]}}"#, "`permissions.denny`"),
        ] {
            let found = read_settings(text);
            let [fault] = found.faults.as_slice() else { panic!("{text}: {:?}", found.faults) };
            assert!(fault.contains(place), "{text}: {fault}");
        }
        assert_eq!(
            read_settings(r#"{"permissions":{"allow":["Bash"]},"hooks":{}}"#).faults,
            Vec::<String>::new()
        );
    }
}
