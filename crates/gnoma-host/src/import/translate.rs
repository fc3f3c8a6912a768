//! Rules, servers and commands of other assistants in gnoma's words. Pure.

use gnoma_core::Secret;
use gnoma_extend::{
    claude::our_rules,
    mcp::{ServerNameError, check_server},
};
use gnoma_guard::permission::{Origin, Rule, RuleAction};
use serde_json::Value;

use super::plan::{ImportPlan, ImportStep};
use crate::mcp_edit::NewServer;

/// Takes over a rule, or says why not.
pub(super) fn take_rule(action: &'static str, theirs: &str, plan: &mut ImportPlan) {
    match our_rules(theirs) {
        Ok(rules) => rules.into_iter().for_each(|own| take_own_rule(action, own, theirs, plan)),
        Err(why) => plan.left.push(format!("the rule `{action} {theirs}`: {why}")),
    }
}

/// Takes over a rule in our words, if it is one.
pub(super) fn take_own_rule(
    action: &'static str,
    rule: String,
    theirs: &str,
    plan: &mut ImportPlan,
) {
    let read = match action {
        "allow" => RuleAction::Allow,
        "ask" => RuleAction::Ask,
        _ => RuleAction::Deny,
    };
    match Rule::parse(read, &rule, Origin::User) {
        Ok(_) => plan.steps.push(ImportStep::Rule { action, rule, theirs: theirs.to_owned() }),
        Err(error) => plan.left.push(format!("the rule `{action} {theirs}`: {error}")),
    }
}

fn text_field<'v>(entry: &'v Value, name: &str) -> Option<&'v str> {
    entry.get(name).and_then(Value::as_str)
}

fn secret_pairs(entry: &Value, name: &str) -> Vec<(String, Secret<String>)> {
    let fields = entry.get(name).and_then(Value::as_object).into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.clone(), Secret::new(value.as_str()?.to_owned()))))
        .collect()
}

/// The pairs under one name, or else under the other.
fn first_secret_pairs(entry: &Value, one: &str, other: &str) -> Vec<(String, Secret<String>)> {
    let found = secret_pairs(entry, one);
    if found.is_empty() { secret_pairs(entry, other) } else { found }
}

/// Returns the headers that are sent with each request, values of variables included.
fn request_headers(entry: &Value) -> Vec<(String, Secret<String>)> {
    let mut headers = first_secret_pairs(entry, "headers", "http_headers");
    if let Some(variable) = text_field(entry, "bearer_token_env_var") {
        let value = Secret::new(format!("Bearer ${{{variable}}}"));
        headers.push(("Authorization".to_owned(), value));
    }
    for (header, variable) in secret_pairs(entry, "env_http_headers") {
        headers.push((header, Secret::new(format!("${{{}}}", variable.expose()))));
    }
    headers
}

/// Reports whether an address holds a user, which settings refuse.
fn names_user(url: &str) -> bool {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    behind.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@'))
}

/// The reason why an MCP server of another assistant is not imported.
#[derive(thiserror::Error)]
enum ServerImportError {
    #[error("it is turned off")]
    Disabled,
    #[error("its transport, `sse`, is outdated, and gnoma does not support it")]
    OutdatedTransport,
    #[error("it has neither `command` nor `url`")]
    NoReach,
    #[error("its address holds a user name or password; send that in a header instead")]
    CredentialsInAddress,
    #[error(transparent)]
    Name(ServerNameError),
}

gnoma_core::debug_as_display!(ServerImportError);

/// Adds a server, given by `command`, `args`, `env`, or `url` and `headers`, to the plan.
pub(super) fn take_server(name: &str, entry: &Value, plan: &mut ImportPlan) {
    let words = |name: &str| -> Vec<String> {
        let items = entry.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    // opencode has the program and its arguments in one list.
    let command = match text_field(entry, "command") {
        Some(program) => std::iter::once(program.to_owned()).chain(words("args")).collect(),
        None => words("command"),
    };
    let url = text_field(entry, "url").map(str::to_owned);
    let is = |name: &str, value: bool| entry.get(name).and_then(Value::as_bool) == Some(value);
    let why = if is("disabled", true) || is("enabled", false) {
        Err(ServerImportError::Disabled)
    } else if text_field(entry, "type") == Some("sse") {
        Err(ServerImportError::OutdatedTransport)
    } else if url.is_none() && command.is_empty() {
        Err(ServerImportError::NoReach)
    } else if url.as_deref().is_some_and(names_user) {
        Err(ServerImportError::CredentialsInAddress)
    } else {
        check_server(name).map_err(ServerImportError::Name)
    };
    if let Err(why) = why {
        return plan.left.push(format!("the MCP server `{name}`: {why}"));
    }
    let (env, headers) = (first_secret_pairs(entry, "env", "environment"), request_headers(entry));
    let (name, network) = (name.to_owned(), false);
    let is_program = url.is_none();
    if is_program {
        plan.left.push(format!(
            "the MCP server `{name}` has no network access; if it needs the network, set \
             `network = true` in its entry"
        ));
    }
    let command = if is_program { command } else { Vec::new() };
    plan.steps.push(ImportStep::Server(NewServer { name, url, command, env, headers, network }));
}

/// A command whose positions count from one, with positions that count from zero.
pub(super) fn from_zero(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        text.push('$');
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = after.split_at(digits);
        match number.parse::<u32>().ok().and_then(|number| number.checked_sub(1)) {
            Some(number) => text.push_str(&number.to_string()),
            None => text.push_str(number),
        }
        rest = behind;
    }
    text + rest
}

/// Keys of a document that nothing was made of, in a sentence.
pub(super) fn left_keys<'k>(
    keys: impl Iterator<Item = &'k String>,
    taken: &[&str],
    place: &str,
    plan: &mut ImportPlan,
) {
    let left: Vec<&str> = keys.map(String::as_str).filter(|key| !taken.contains(key)).collect();
    if !left.is_empty() {
        plan.left.push(format!(
            "`{}` in {place} are not imported; set these yourself: `gnoma config show` \
             lists the settings",
            left.join("`, `")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_translates_permission_rules_or_reports_them() {
        let mut plan = ImportPlan::default();
        for theirs in [
            "Bash(npm run test:*)",
            "Read(./.env)",
            "Edit(/src/**)",
            "Read(//etc/**)",
            "WebFetch(domain:example.com)",
            "mcp__git",
            "mcp__git__log",
            "Bash(git push origin main)",
            "Task(x)",
            "Bash(a && b)",
        ] {
            take_rule("deny", theirs, &mut plan);
        }
        let rules: Vec<&str> = plan
            .steps
            .iter()
            .filter_map(|step| match step {
                ImportStep::Rule { rule, .. } => Some(rule.as_str()),
                _ => None,
            })
            .collect();
        let wanted = [
            "bash(npm run test *)",
            "fs.read(.env)",
            "fs.edit(src/**)",
            "fs.write(src/**)",
            "fs.read(/etc/**)",
            "web(example.com)",
            "mcp(git:*)",
            "mcp(git:log)",
            "bash(git push origin main)",
        ];
        assert_eq!(rules, wanted);
        assert_eq!(plan.left.len(), 2, "{:?}", plan.left);
    }

    #[test]
    fn imported_command_arguments_are_renumbered_from_zero() {
        assert_eq!(from_zero("a $1 b $2, $ARGUMENTS $$ $10"), "a $0 b $1, $ARGUMENTS $$ $9");
    }
}
