//! Decides which requests of the protocol HTTP carries, and for which senders. Pure.
//!
//! The lists name what is carried. All other requests are made at the machine itself, so that a new request is refused
//! until it is added here.

use gnoma_core::{
    protocol::{Request, RequestError, RequestErrorKind, SessionSpec, Switch, TaskRequest},
    session::PermissionMode,
    store::SessionId,
};

use crate::access::{Denial, Rights};

/// Settings that may be changed over HTTP: what even a project that nobody trusts may set.
pub const SETTINGS: [&str; 5] = [
    "provider.effort",
    "provider.temperature",
    "provider.thinking",
    "tools.bash_timeout",
    "tools.max_rounds",
];
/// Longest value of such a setting.
const MAX_VALUE_BYTES: usize = 32;

/// The requests that a client which watches may make of a session, by name, besides the list of sessions.
const LOOKS: [&str; 5] = ["status", "history", "output", "usage", "points"];

/// Reports whether a request of that name only looks at what a watcher sees in any case.
pub(crate) fn is_look(name: &str, session: Option<&SessionId>) -> bool {
    match session {
        None => name == "list",
        Some(_) => LOOKS.contains(&name),
    }
}

/// Checks that a request is one that HTTP carries, and that its sender may make.
///
/// # Errors
/// [`Denial`] where it is for others, or an error where it is not for HTTP.
pub(crate) fn is_permitted(
    request: &Request,
    session: Option<&SessionId>,
    rights: Rights,
) -> Result<(), Result<Denial, RequestError>> {
    match rights {
        Rights::Steer => is_carried(request).map_err(Err),
        Rights::Watch if is_looking(request, session) => Ok(()),
        Rights::Watch => Err(Ok(Denial::Watching)),
    }
}

fn is_looking(request: &Request, session: Option<&SessionId>) -> bool {
    match request {
        Request::List => session.is_none(),
        Request::Status
        | Request::History { .. }
        | Request::Output { .. }
        | Request::Usage
        | Request::Points => session.is_some(),
        _ => false,
    }
}

fn is_carried(request: &Request) -> Result<(), RequestError> {
    match request {
        request if is_query(request) || is_session_step(request) => Ok(()),
        Request::Open(spec) | Request::StoredIn { spec, .. } | Request::Delete { spec, .. } => {
            is_spec_carried(spec)
        }
        Request::SetMode { mode } => is_mode_carried(*mode),
        Request::Export { path } if path.as_os_str().is_empty() => Ok(()),
        Request::SetSetting { key, value } => is_setting_carried(key, value),
        Request::Attach { .. } | Request::Detach | Request::Watch => {
            let cause = "a request over HTTP has no connection to send events over";
            let error = RequestError::new(RequestErrorKind::Invalid, cause);
            Err(error.with_remedy("`GET /api/v1/events` tells what happens."))
        }
        Request::Shutdown => {
            let error =
                RequestError::new(RequestErrorKind::Refused, "it cannot be ended from here");
            Err(error.with_remedy("End the server where it was started."))
        }
        _ => Err(at_machine("this request")),
    }
}

/// Reports whether a request only reads: of sessions, of the project, or of the settings.
fn is_query(request: &Request) -> bool {
    matches!(
        request,
        Request::List
            | Request::Status
            | Request::Wait { .. }
            | Request::Points
            | Request::Changes
            | Request::SessionChanges
            | Request::Files { .. }
            | Request::Search { .. }
            | Request::Stored { .. }
            | Request::History { .. }
            | Request::Output { .. }
            | Request::Models { .. }
            | Request::Providers
            | Request::Profiles
            | Request::Settings
            | Request::Usage
            | Request::Explain(_)
            | Request::KeepRule { dry_run: true, .. }
            | Request::Task(
                TaskRequest::List
                    | TaskRequest::Show { .. }
                    | TaskRequest::Complete { .. }
                    | TaskRequest::History { .. }
                    | TaskRequest::Schedules
            )
    )
}

/// Reports whether a request continues, changes or replaces a session as its person may from afar.
fn is_session_step(request: &Request) -> bool {
    matches!(
        request,
        Request::KeepRunning { .. }
            | Request::Send { .. }
            | Request::EditQueue { .. }
            | Request::Answer { .. }
            | Request::Cancel
            | Request::CancelElf { .. }
            | Request::WatchElf { .. }
            | Request::Close
            | Request::SetThinking { .. }
            | Request::Pin { .. }
            | Request::Rate { .. }
            | Request::Compact { .. }
            | Request::EditSummary { .. }
            | Request::UndoCompaction
            | Request::Rewind { .. }
            | Request::RewindElf { .. }
            | Request::Redo
            | Request::CommitChanges
            | Request::RevertFile { .. }
            | Request::Fork
            | Request::Rename { .. }
            // The guard judges the commands of a task like those of a model.
            | Request::Task(TaskRequest::Run { .. } | TaskRequest::Resume { .. })
            | Request::Switch(
                Switch::Model(_)
                    | Switch::Provider(_)
                    | Switch::Incognito(_)
                    | Switch::New
                    | Switch::Stored(_)
                    | Switch::Copy(_)
            )
    )
}

/// Checks the settings with which a session is opened from afar: none may decide which programs run, with which
/// environment, or that no person is asked.
fn is_spec_carried(spec: &SessionSpec) -> Result<(), RequestError> {
    if !spec.environment.variables().is_empty() || spec.umask.is_some() {
        return Err(at_machine("setting a session's environment"));
    }
    if !spec.mcp_servers.is_empty() {
        return Err(at_machine("bringing MCP servers along"));
    }
    if spec.profile.is_some() {
        return Err(at_machine("choosing a profile"));
    }
    if spec.overrides.confirm_bypass {
        return Err(at_machine("switching to mode bypass"));
    }
    spec.overrides.mode.map_or(Ok(()), is_mode_carried)
}

fn is_mode_carried(mode: PermissionMode) -> Result<(), RequestError> {
    match mode {
        PermissionMode::Bypass => Err(at_machine("switching to mode bypass")),
        PermissionMode::Default
        | PermissionMode::AcceptEdits
        | PermissionMode::Auto
        | PermissionMode::Plan
        | PermissionMode::Deny => Ok(()),
    }
}

fn is_setting_carried(key: &str, value: &str) -> Result<(), RequestError> {
    if !SETTINGS.contains(&key) {
        return Err(at_machine("changing this setting"));
    }
    // Numbers, words and times: none that stands for a variable of the environment.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._- ".contains(&byte);
    if value.len() > MAX_VALUE_BYTES || !value.bytes().all(is_plain) {
        return Err(at_machine("setting anything but a number, a word or a time"));
    }
    Ok(())
}

fn at_machine(what: &str) -> RequestError {
    let error =
        RequestError::new(RequestErrorKind::Refused, format!("{what} is not allowed over HTTP"));
    error.with_remedy("Do it at the machine itself, in a terminal.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::parse_named_request;

    /// The kinds of requests; one that is new does not compile.
    macro_rules! kinds {
        ($($variant:ident)*) => {
            const KINDS: &[&str] = &[$(stringify!($variant)),*];
            fn kind(request: &Request) -> &'static str {
                match request { $(Request::$variant { .. } => stringify!($variant)),* }
            }
        };
    }
    kinds!(Open List StoredIn Delete Watch Shutdown Attach Detach KeepRunning Status Wait Send EditQueue Answer Cancel
        CancelElf WatchElf Close SetMode SetThinking KeepRule Trust Pin Rate Compact EditSummary UndoCompaction Rewind
        RewindElf Redo Points Changes SessionChanges CommitChanges RevertFile Files Export Fork Rename Search Stored History Output Models Providers Profiles Switch TryProvider
        AddProvider RemoveProvider Settings SetSetting Usage Explain Task Memory);

    /// Requests that are carried, by name and fields.
    const CARRIED: &[(&str, &str)] = &[
        (
            "open",
            r#"{"folder":"/work","interactive":true,"overrides":{"mode":"plan","model":"m"}}"#,
        ),
        ("list", ""),
        ("stored_in", r#"{"spec":{"folder":"/work"},"max":5}"#),
        ("delete", r#"{"spec":{},"id":"s"}"#),
        ("keep_running", r#"{"keep":true}"#),
        ("status", ""),
        ("wait", r#"{"max_seconds":5}"#),
        ("send", r#"{"content":[]}"#),
        ("edit_queue", r#"{"was":[],"queue":[]}"#),
        ("answer", r#"{"call":"c","answer":"allow"}"#),
        ("cancel", ""),
        ("cancel_elf", r#"{"name":"ada"}"#),
        ("watch_elf", r#"{"name":"ada"}"#),
        ("rewind_elf", r#"{"name":"ada"}"#),
        ("close", ""),
        ("set_mode", r#"{"mode":"accept_edits"}"#),
        ("set_thinking", r#"{"thinking":null}"#),
        ("keep_rule", r#"{"rule":"bash(ls)","scope":"user","dry_run":true}"#),
        ("pin", r#"{"arm":null}"#),
        ("rate", r#"{"good":true}"#),
        ("compact", r#"{"focus":""}"#),
        ("edit_summary", r#"{"summary":"s"}"#),
        ("undo_compaction", ""),
        ("rewind", r#"{"turns":1,"files":true,"conversation":true}"#),
        ("redo", ""),
        ("points", ""),
        ("changes", ""),
        ("session_changes", ""),
        ("commit_changes", ""),
        ("revert_file", r#"{"since":"turn","path":"a.rs"}"#),
        ("files", r#"{"max":5}"#),
        ("export", r#"{"path":""}"#),
        ("fork", ""),
        ("rename", r#"{"title":"t"}"#),
        ("search", r#"{"words":"w","max":5}"#),
        ("stored", r#"{"max":5}"#),
        ("history", r#"{"before":null,"max":5}"#),
        ("output", r#"{"result":"r","from":0,"max_bytes":9}"#),
        ("models", r#"{"ask":false}"#),
        ("providers", ""),
        ("profiles", ""),
        ("switch", r#"{"model":"m"}"#),
        ("settings", ""),
        ("set_setting", r#"{"key":"tools.max_rounds","value":"20"}"#),
        ("usage", ""),
        ("explain", "\"routing\""),
        ("task", "\"list\""),
        ("task", r#"{"run":{"line":"release v1"}}"#),
        ("task", r#"{"resume":{"run":"","choice":null}}"#),
    ];

    /// Requests that are not.
    const REFUSED: &[(&str, &str)] = &[
        ("set_mode", r#"{"mode":"bypass"}"#),
        ("open", r#"{"overrides":{"mode":"bypass"}}"#),
        ("open", r#"{"overrides":{"mode":"auto","confirm_bypass":true}}"#),
        ("open", r#"{"environment":{"PATH":"/tmp"}}"#),
        ("open", r#"{"umask":0}"#),
        ("open", r#"{"profile":"careless"}"#),
        (
            "open",
            r#"{"mcp_servers":[{"name":"a","address":{"program":{"command":"sh","args":[],"environment":{}}}}]}"#,
        ),
        ("stored_in", r#"{"spec":{"environment":{"HOME":"/tmp"}},"max":5}"#),
        ("delete", r#"{"spec":{"environment":{"HOME":"/tmp"}},"id":"s"}"#),
        ("switch", r#"{"profile":"careless"}"#),
        ("keep_rule", r#"{"rule":"bash(*)","scope":"user","dry_run":false}"#),
        ("export", r#"{"path":"/home/me/.bashrc"}"#),
        ("task", r#"{"save":{"name":"release"}}"#),
        ("task", r#"{"draft":{"name":"release"}}"#),
        ("task", "\"decline_offer\""),
        ("memory", "\"show\""),
        ("trust", ""),
        ("try_provider", r#"{"provider":"p","by":{"address":"http://evil.example"}}"#),
        ("add_provider", r#"{"provider":"p","by":{"key":"k"}}"#),
        ("remove_provider", r#"{"provider":"p"}"#),
        ("set_setting", r#"{"key":"permission.mode","value":"bypass"}"#),
        ("set_setting", r#"{"key":"provider.endpoints.p","value":"http://evil.example"}"#),
        ("set_setting", r#"{"key":"tools.shell","value":"sh"}"#),
        ("set_setting", r#"{"key":"tools.max_rounds","value":"${MISTRAL_API_KEY}"}"#),
        ("attach", r#"{"from":null}"#),
        ("detach", ""),
        ("watch", ""),
        ("shutdown", ""),
    ];

    #[test]
    fn each_kind_of_request_is_carried_or_refused() {
        let mut known: Vec<&str> = Vec::new();
        for (all, is_so) in [(CARRIED, true), (REFUSED, false)] {
            for (name, fields) in all {
                let request = parse_named_request(name, fields.as_bytes()).unwrap();
                let told = is_permitted(&request, None, Rights::Steer);
                assert_eq!(told.is_ok(), is_so, "{name} {fields}");
                if let Err(error) = told {
                    let error = error.unwrap_err();
                    assert!(error.remedy.is_some_and(|it| it.ends_with('.')), "{name} {fields}");
                }
                known.push(kind(&request));
            }
        }
        for kind in KINDS {
            assert!(known.contains(kind), "it is not decided whether `{kind}` is carried");
        }
    }

    #[test]
    fn a_watcher_changes_nothing_and_reads_no_settings() {
        let session = SessionId::new("s");
        let mut looks = Vec::new();
        for (name, fields) in CARRIED.iter().chain(REFUSED) {
            let request = parse_named_request(name, fields.as_bytes()).unwrap();
            for session in [None, Some(&session)] {
                let may = is_permitted(&request, session, Rights::Watch).is_ok();
                assert_eq!(may, is_look(name, session), "{name}");
                looks.extend(may.then_some(*name));
            }
        }
        assert_eq!(looks, ["list", "status", "points", "history", "output", "usage"]);
    }
}
