//! Hooks as other programs keep them: `{"hooks": {"Event": [{"matcher": "…", "hooks": [{…}]}]}}`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use gnoma_core::lifecycle::PointKind;
use serde_json::Value;

use super::{
    hook::{Hook, HookContract, HookKind, MAX_TIMEOUT, MODEL_TIMEOUT, OwnHook, USUAL_TIMEOUT},
    matcher::Matcher,
};
use crate::{
    places::{BroughtBy, ExtendPlaces, read_text},
    plugin::PluginPlace,
};

/// Most hooks of all files together.
const MAX_HOOKS: usize = 200;

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

/// What was found in files.
#[derive(Debug, Default)]
pub struct Found {
    /// The hooks.
    pub hooks: Vec<Hook>,
    /// What is there and does nothing, or cannot be read, a sentence each.
    pub faults: Vec<String>,
}

/// Reads the hooks of other programs' files: the person's, then the project's.
#[must_use]
pub fn read(places: &ExtendPlaces) -> Found {
    let mut found = Found::default();
    let mut files = Vec::new();
    if let Some(home) = &places.home {
        files.push((BroughtBy::User, home.join(".claude/settings.json")));
        files.push((BroughtBy::User, home.join(".codex/hooks.json")));
    }
    if places.home.as_deref() != Some(&*places.project) {
        for name in [".claude/settings.json", ".claude/settings.local.json", ".codex/hooks.json"] {
            files.push((BroughtBy::Project, places.project.join(name)));
        }
    }
    codex_settings(places, &mut found);
    for plugin in &places.plugins {
        let Found { hooks, faults } = of_plugin(plugin);
        found.hooks.extend(hooks);
        found.faults.extend(faults);
    }
    for (by, path) in files {
        if path.is_file() {
            file(places, by, &path, &mut found);
        }
    }
    found
}

/// Hooks in Codex's other file are not read; that is said.
fn codex_settings(places: &ExtendPlaces, found: &mut Found) {
    let home = places.home.iter().map(|home| home.join(".codex/config.toml"));
    for path in home.chain([places.project.join(".codex/config.toml")]) {
        let text = read_text(&path).unwrap_or_default();
        if text.lines().any(|line| line.starts_with("[hooks") || line.starts_with("[[hooks")) {
            let shown = places.shown(&path);
            found.faults.push(format!(
                "the hooks in {shown} do not run: gnoma reads those in `hooks.json` beside it"
            ));
        }
    }
}

fn file(places: &ExtendPlaces, by: BroughtBy, path: &Path, found: &mut Found) {
    let shown = places.shown(path);
    if !places.is_inside(by, path) {
        return found.faults.push(format!("{shown} leads out of the project or to secrets"));
    }
    let value = read_text(path).and_then(|text| {
        serde_json::from_str::<Value>(&text).map_err(|error| format!("it is no JSON: {error}"))
    });
    if let Ok(value) = &value {
        other_plugins(&shown, value, found);
    }
    match value {
        Ok(value) => document(&HookFile { by, path, shown, root: None }, &value, found),
        Err(why) => found.faults.push(format!("the hooks of {shown} are not read: {why}")),
    }
}

/// Plugins that another program has installed are not read; that is said.
fn other_plugins(shown: &str, value: &Value, found: &mut Found) {
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

/// The hooks of a plugin.
#[must_use]
pub fn of_plugin(plugin: &PluginPlace) -> Found {
    let mut found = Found::default();
    let root = Some(&*plugin.root);
    for (path, value) in &plugin.hooks {
        let shown = format!("the plugin `{}`", plugin.name);
        document(&HookFile { by: plugin.by, path, shown, root }, value, &mut found);
    }
    for value in &plugin.own_hooks {
        match own(plugin, value) {
            Ok(hook) => found.hooks.push(hook),
            Err(why) => found.faults.push(format!("the plugin `{}`: a hook {why}", plugin.name)),
        }
    }
    found
}

/// A hook as plugins of gnoma have it, with the names of the settings.
fn own(plugin: &PluginPlace, entry: &Value) -> Result<Hook, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = kind(entry)?;
    if text("exec").trim().is_empty() {
        return Err("has no `exec`".to_owned());
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
    Ok(Hook { root: Some(plugin.root.clone()), ..hook.hook()? })
}

/// Where a document with hooks stands.
struct HookFile<'a> {
    by: BroughtBy,
    path: &'a Path,
    shown: String,
    root: Option<&'a Path>,
}

fn document(file: &HookFile<'_>, value: &Value, found: &mut Found) {
    let shown = &file.shown;
    if value.get("disableAllHooks").and_then(Value::as_bool) == Some(true) {
        return found.faults.push(format!("{shown} switches its hooks off"));
    }
    let Some(events) = value.get("hooks").and_then(Value::as_object) else { return };
    for (event, groups) in events {
        let Some((_, point)) = EVENTS.iter().find(|(name, _)| name == event) else {
            found
                .faults
                .push(format!("{shown}: gnoma has no event `{event}`, so its hooks never run"));
            continue;
        };
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
            for entry in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                if found.hooks.len() == MAX_HOOKS {
                    return found.faults.push(format!("{shown}: more than {MAX_HOOKS} hooks"));
                }
                match hook(event, *point, matcher, entry) {
                    Ok(hook) => found.hooks.push(Hook {
                        by: file.by,
                        origin: file.path.to_owned(),
                        root: file.root.map(Path::to_owned),
                        ..hook
                    }),
                    Err(why) => found.faults.push(format!("{shown}: a hook for {event} {why}")),
                }
            }
        }
    }
}

/// What an entry wants done.
fn kind(entry: &Value) -> Result<HookKind, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let model = text("model").map(str::to_owned);
    Ok(match text("type").unwrap_or_default() {
        "" | "command" => HookKind::Command,
        "prompt" => HookKind::Prompt { model },
        "agent" => HookKind::Agent { model },
        "http" => {
            let headers = entry.get("headers").and_then(Value::as_object).into_iter().flatten();
            let header =
                |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            let listed = entry.get("allowedEnvVars").and_then(Value::as_array);
            let listed = listed.into_iter().flatten().filter_map(Value::as_str);
            HookKind::Http {
                headers: headers.filter_map(header).collect(),
                variables: listed.map(str::to_owned).collect(),
            }
        }
        other => return Err(format!("is of the kind `{other}`, which gnoma does not run")),
    })
}

fn hook(event: &str, point: PointKind, matcher: &str, entry: &Value) -> Result<Hook, String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let kind = kind(entry)?;
    let (field, usual) = match kind {
        HookKind::Command => ("command", USUAL_TIMEOUT),
        HookKind::Prompt { .. } => ("prompt", MODEL_TIMEOUT),
        HookKind::Agent { .. } => ("prompt", USUAL_TIMEOUT),
        HookKind::Http { .. } => ("url", USUAL_TIMEOUT),
    };
    let command = text(field).filter(|text| !text.trim().is_empty());
    let command = command.ok_or_else(|| format!("has no `{field}`"))?.to_owned();
    kind.check(point, &command)?;
    let read = Matcher::read(matcher);
    if matches!(read, Matcher::Broken) {
        return Err(format!("has a matcher that is not a valid regular expression: `{matcher}`"));
    }
    let timeout = entry.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    let timeout = timeout.map_or(usual, |seconds| {
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT)
    });
    Ok(Hook {
        name: command.clone(),
        point,
        event: event.to_owned(),
        matcher: read,
        kind,
        command,
        timeout,
        contract: HookContract::Claude,
        is_async: entry.get("async").and_then(Value::as_bool).unwrap_or(false),
        fails_closed: text("fail") == Some("closed"),
        by: BroughtBy::User,
        origin: PathBuf::new(),
        root: None,
    })
}
