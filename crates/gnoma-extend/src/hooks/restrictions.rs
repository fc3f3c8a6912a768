//! Reads the deny and ask rules of Claude Code's settings.

use gnoma_core::suggest::is_slip_of;
use serde_json::Value;

use crate::places::ExtensionSource;

/// Longest name of an unknown setting that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 80;
/// The object of the lists.
const PERMISSIONS: &str = "permissions";
/// The lists of permissions that apply as they are.
const RESTRICTING: [&str; 2] = ["deny", "ask"];
/// The other permissions that Claude Code has.
pub(super) const OTHER_PERMISSIONS: [&str; 5] = [
    "additionalDirectories",
    "allow",
    "defaultMode",
    "disableAutoMode",
    "disableBypassPermissionsMode",
];

/// The rules in one file of Claude Code's settings that deny or ask, as they are written there.
#[derive(Clone, Debug)]
pub struct Restrictions {
    /// The party that provides the rules.
    pub by: ExtensionSource,
    /// The file, for people.
    pub shown: String,
    /// The rules about what does not run.
    pub deny: Vec<Value>,
    /// The rules about what needs approval.
    pub ask: Vec<Value>,
}

/// Reads what a file of Claude Code's settings denies or asks about, and names what has no effect in it.
pub(super) fn read_restrictions(
    by: ExtensionSource,
    shown: &str,
    value: &Value,
) -> (Option<Restrictions>, Vec<String>) {
    let rules = |name: &str| match value.pointer(&format!("/permissions/{name}")) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(rules)) => rules.clone(),
        Some(rule) => vec![rule.clone()],
    };
    let (deny, ask) = (rules("deny"), rules("ask"));
    let restrictions = (!deny.is_empty() || !ask.is_empty()).then(|| Restrictions {
        by,
        shown: shown.to_owned(),
        deny,
        ask,
    });
    (restrictions, find_permission_faults(shown, value))
}

/// Returns what has no effect in the permissions of a file, a sentence each.
fn find_permission_faults(shown: &str, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    match value.get(PERMISSIONS) {
        None | Some(Value::Null) => {
            let keys = value.as_object().into_iter().flat_map(serde_json::Map::keys);
            let mut near =
                keys.filter(|key| *key != PERMISSIONS && is_slip_of(key, PERMISSIONS));
            faults.extend(near.next().map(|key| {
                format!(
                    "{shown}: `{}` has no effect; did you mean `{PERMISSIONS}`?",
                    key.escape_debug()
                )
            }));
        }
        Some(Value::Object(permissions)) => {
            let is_known =
                |name: &str| RESTRICTING.contains(&name) || OTHER_PERMISSIONS.contains(&name);
            faults.extend(permissions.keys().filter(|name| !is_known(name)).map(|name| {
                format!(
                    "{shown}: `permissions.{}` has no effect; rules that restrict are in `permissions.deny` and \
                     `permissions.ask`",
                    gnoma_core::text_truncation::head_chars(&name.escape_debug().to_string(), MAX_SHOWN_CHARS)
                )
            }));
        }
        Some(_) => faults.push(format!(
            "{shown}: `permissions` must be an object with the lists `deny` and `ask`, so its rules have no effect"
        )),
    }
    faults
}
