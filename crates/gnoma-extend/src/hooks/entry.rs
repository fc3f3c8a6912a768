//! One hook, as files of other programs write it.

use std::{path::PathBuf, time::Duration};

use gnoma_core::lifecycle::PointKind;
use serde_json::Value;

use super::{
    error::HookError,
    hook::{Hook, HookContract, HookKind, MAX_TIMEOUT, MODEL_TIMEOUT, USUAL_TIMEOUT},
    matcher::Matcher,
};
use crate::places::ExtensionSource;

/// The folders that the words of a hook may name.
const FOLDERS: [&str; 4] =
    ["CLAUDE_PLUGIN_ROOT", "GNOMA_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR", "GNOMA_PROJECT_DIR"];

/// Returns the kind of hook that an entry asks for.
pub(super) fn parse_kind(entry: &Value) -> Result<HookKind, HookError> {
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
        other => return Err(HookError::UnknownKind(other.to_owned())),
    })
}

/// The shell line of a program. With `args` it is the program alone, and no shell reads the words.
fn build_shell_line(entry: &Value, command: String) -> Result<String, HookError> {
    let shell = entry.get("shell").and_then(Value::as_str).unwrap_or("bash");
    if !matches!(shell, "bash" | "sh") {
        return Err(HookError::UnknownShell(shell.to_owned()));
    }
    let Some(args) = entry.get("args").and_then(Value::as_array) else { return Ok(command) };
    let args = args.iter().map(|arg| arg.as_str().map(quote_word)).collect::<Option<Vec<_>>>();
    let args = args.ok_or(HookError::ArgumentsNotText)?;
    Ok([quote_word(&command)].into_iter().chain(args).collect::<Vec<_>>().join(" "))
}

/// A word that the shell takes as it is, but for the folders that hooks may name.
fn quote_word(word: &str) -> String {
    let whole = format!("'{}'", word.replace('\'', "'\\''"));
    FOLDERS.iter().fold(whole, |word, name| {
        word.replace(&format!("${{{name}}}"), &format!("'\"${{{name}}}\"'"))
    })
}

/// Reads a hook for an event. Its place in a file is for the caller to fill in.
pub(super) fn parse_hook(
    event: &str,
    point: PointKind,
    matcher: &str,
    entry: &Value,
) -> Result<Hook, HookError> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let kind = parse_kind(entry)?;
    let (field, usual) = match kind {
        HookKind::Command => ("command", USUAL_TIMEOUT),
        HookKind::Prompt { .. } => ("prompt", MODEL_TIMEOUT),
        HookKind::Agent { .. } => ("prompt", USUAL_TIMEOUT),
        HookKind::Http { .. } => ("url", USUAL_TIMEOUT),
    };
    let command = text(field).filter(|text| !text.trim().is_empty());
    let command = command.ok_or(HookError::NoField(field))?.to_owned();
    let command =
        if kind == HookKind::Command { build_shell_line(entry, command)? } else { command };
    kind.check_point(point, &command)?;
    let read = Matcher::from_pattern(matcher);
    if matches!(read, Matcher::Broken) {
        return Err(HookError::Matcher(matcher.to_owned()));
    }
    let timeout = entry.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    let timeout = timeout.map_or(usual, |seconds| {
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT)
    });
    Ok(Hook {
        name: command.clone(),
        point,
        event: event.to_owned(),
        condition: None,
        matcher: read,
        kind,
        command,
        timeout,
        contract: HookContract::Claude,
        is_async: entry.get("async").and_then(Value::as_bool).unwrap_or(false),
        fails_closed: text("fail") == Some("closed"),
        by: ExtensionSource::User,
        origin: PathBuf::new(),
        root: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_command_words_are_quoted_except_plugin_root() {
        assert_eq!(quote_word("it's $HOME"), r"'it'\''s $HOME'");
        let script = "${CLAUDE_PLUGIN_ROOT}/a b.sh";
        assert_eq!(quote_word(script), r#"''"${CLAUDE_PLUGIN_ROOT}"'/a b.sh'"#);
    }
}
