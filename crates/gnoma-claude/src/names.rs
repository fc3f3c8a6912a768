//! Translates names of permission modes and models between the Claude wire and gnoma. Pure.

use gnoma_core::session::PermissionMode;

use super::error::DriverError;

/// The modes that a program can choose, as their errors list them.
const MODES: &str = "acceptEdits, auto, bypassPermissions, default, dontAsk, plan";

/// A mode, and whether what needs approval is denied unasked.
pub(super) fn parse_mode(name: &str) -> Option<(PermissionMode, bool)> {
    Some(match name {
        "default" | "auto" => (PermissionMode::Auto, false),
        "acceptEdits" => (PermissionMode::AcceptEdits, false),
        "plan" => (PermissionMode::Plan, false),
        "bypassPermissions" => (PermissionMode::Bypass, false),
        "dontAsk" => (PermissionMode::Auto, true),
        _ => return None,
    })
}

/// Returns the error for an unknown permission mode.
pub(super) fn unknown_mode() -> DriverError {
    DriverError::UnknownMode { modes: MODES }
}

/// Returns the name that the program uses for one of gnoma's permission modes.
pub(super) fn mode_name(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Bypass => "bypassPermissions",
        PermissionMode::Plan => "plan",
        PermissionMode::Default | PermissionMode::Auto | PermissionMode::Deny => "default",
    }
}

/// True if a model name is an alias that only another vendor's program would know.
pub(super) fn is_alias(model: &str) -> bool {
    const ALIASES: [&str; 8] =
        ["default", "best", "sonnet", "opus", "haiku", "opusplan", "sonnet[1m]", "opus[1m]"];
    ALIASES.contains(&model)
}

/// The model that is meant: `None` leaves the choice to gnoma. `vendor`: the provider that is asked.
pub(super) fn resolve_model<'m>(wanted: &'m str, vendor: Option<&str>) -> Option<&'m str> {
    let is_foreign = wanted.starts_with("claude-") && vendor != Some("anthropic");
    (!is_alias(wanted) && !is_foreign && !wanted.is_empty()).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_of_another_vendor_is_left_to_the_default() {
        assert_eq!(resolve_model("sonnet", Some("mistral")), None);
        assert_eq!(resolve_model("claude-sonnet-4-5", Some("mistral")), None);
        assert_eq!(
            resolve_model("claude-sonnet-4-5", Some("anthropic")),
            Some("claude-sonnet-4-5")
        );
        assert_eq!(
            resolve_model("mistral-large-latest", Some("mistral")),
            Some("mistral-large-latest")
        );
    }

    #[test]
    fn claude_permission_mode_names_round_trip() {
        for name in ["acceptEdits", "bypassPermissions", "plan", "default"] {
            assert_eq!(parse_mode(name).map(|(mode, _)| mode_name(mode)), Some(name));
        }
        assert_eq!(parse_mode("dontAsk"), Some((PermissionMode::Auto, true)));
        assert_eq!(parse_mode("deny"), None);
    }
}
