//! Options of an ACP session: permission mode, model and thinking level, as clients list and set them.

use gnoma_core::{
    ModelRef, ThinkingMode,
    json_value::json,
    protocol::SessionView,
    session::{PermissionMode, PermissionModeError},
};
use serde_json::Value;

use crate::error::RpcError;

/// The ids of the options.
const MODE: &str = "mode";
const MODEL: &str = "model";
const THINKING: &str = "thinking";
/// The value that leaves it to the settings how much models think.
const BY_SETTINGS: &str = "default";
/// Ways to think that can be chosen, beside one that was set elsewhere.
const WAYS_TO_THINK: [ThinkingMode; 5] = [
    ThinkingMode::Off,
    ThinkingMode::Adaptive,
    ThinkingMode::Tokens(4_000),
    ThinkingMode::Tokens(16_000),
    ThinkingMode::Tokens(32_000),
];
/// The value that leaves the choice of the model to the router.
const AUTO: &str = "auto";

/// The model that was chosen here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PinnedModel {
    /// None yet: the settings say.
    #[default]
    BySettings,
    /// The router chooses the model.
    Router,
    /// This one, by its name among the choices.
    Model(String),
}

/// A choice that a client has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigChoice {
    Mode(PermissionMode),
    Model(PinnedModel, Option<ModelRef>),
    Thinking(Option<ThinkingMode>),
}

/// The modes, for clients that know no other options.
pub(crate) fn modes_json(current: PermissionMode) -> Value {
    let mode = |mode: PermissionMode| json!({ "id": mode.name(), "name": mode_title(mode), "description": mode_description(mode) });
    let all: Vec<_> = PermissionMode::ALL.into_iter().map(mode).collect();
    json!({ "currentModeId": current.name(), "availableModes": all })
}

/// All options with their values.
pub(crate) fn options_json(view: &SessionView, pinned: &PinnedModel) -> Value {
    let mode = |mode: PermissionMode| json!({ "value": mode.name(), "name": mode_title(mode), "description": mode_description(mode) });
    let modes: Vec<_> = PermissionMode::ALL.into_iter().map(mode).collect();
    let mut models = vec![json!({
        "value": AUTO, "name": "Automatic", "description": "gnoma chooses a model for each turn",
    })];
    models.extend(pinnable_models(view).map(|(choice, _)| {
        let mut model = json!({ "value": choice, "name": choice });
        if let Some(about) = view.models.iter().find(|it| it.name == *choice).map(|it| &it.about)
            && !about.is_empty()
        {
            model["description"] = Value::from(about.as_str());
        }
        model
    }));
    let mode = json!({
            "id": MODE,
            "name": "Mode",
            "description": "When to ask for approval before tools run",
            "category": "mode",
            "type": "select",
            "currentValue": view.mode.name(),
            "options": modes,
    });
    let model = json!({
            "id": MODEL,
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": current_model(view, pinned),
            "options": models,
    });
    Value::Array(vec![mode, model, thinking_option(view.thinking)])
}

/// Returns the option that sets how much models think.
fn thinking_option(current: Option<ThinkingMode>) -> Value {
    let way = |way: ThinkingMode| {
        let name = match way {
            ThinkingMode::Off => "Off".to_owned(),
            ThinkingMode::Adaptive => "Adaptive".to_owned(),
            ThinkingMode::Tokens(tokens) => format!("About {tokens} tokens"),
        };
        json!({ "value": way.to_string(), "name": name })
    };
    let mut ways = vec![json!({
        "value": BY_SETTINGS, "name": "Default", "description": "As the settings of each model say",
    })];
    ways.extend(WAYS_TO_THINK.map(way));
    ways.extend(current.filter(|current| !WAYS_TO_THINK.contains(current)).map(way));
    json!({
        "id": THINKING,
        "name": "Thinking",
        "description": "How much the model thinks",
        "category": "thought_level",
        "type": "select",
        "currentValue": current.map_or_else(|| BY_SETTINGS.to_owned(), |way| way.to_string()),
        "options": ways,
    })
}

fn pinnable_models(view: &SessionView) -> impl Iterator<Item = (&String, &ModelRef)> {
    view.models.iter().filter_map(|choice| Some((&choice.name, choice.arm.as_ref()?)))
}

fn current_model(view: &SessionView, pinned: &PinnedModel) -> String {
    match pinned {
        PinnedModel::Router => AUTO.to_owned(),
        PinnedModel::Model(name) if pinnable_models(view).any(|(known, _)| known == name) => {
            name.clone()
        }
        PinnedModel::Model(_) | PinnedModel::BySettings => {
            let current = view.models.iter().find(|choice| choice.current && choice.arm.is_some());
            current.map_or_else(|| AUTO.to_owned(), |choice| choice.name.clone())
        }
    }
}

/// The mode of this name.
pub(crate) fn parse_mode(id: &str) -> Result<PermissionMode, RpcError> {
    id.parse().map_err(|error: PermissionModeError| RpcError::invalid_params(error.to_string()))
}

/// Returns the choice that setting an option to a value stands for.
pub(crate) fn parse_choice(
    view: &SessionView,
    option: &str,
    value: &str,
) -> Result<ConfigChoice, RpcError> {
    match option {
        MODE => parse_mode(value).map(ConfigChoice::Mode),
        MODEL if value == AUTO => Ok(ConfigChoice::Model(PinnedModel::Router, None)),
        MODEL => match pinnable_models(view).find(|(name, _)| *name == value) {
            Some((name, arm)) => {
                Ok(ConfigChoice::Model(PinnedModel::Model(name.clone()), Some(arm.clone())))
            }
            None => Err(RpcError::invalid_params(format!("there is no model `{value}` to choose"))),
        },
        THINKING if value == BY_SETTINGS => Ok(ConfigChoice::Thinking(None)),
        THINKING => {
            let way = value
                .parse::<ThinkingMode>()
                .map_err(|error| RpcError::invalid_params(error.to_string()))?;
            Ok(ConfigChoice::Thinking(Some(way)))
        }
        _ => Err(RpcError::invalid_params(format!("there is no option `{option}`"))),
    }
}

fn mode_title(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "Default",
        PermissionMode::AcceptEdits => "Accept edits",
        PermissionMode::Auto => "Auto",
        PermissionMode::Plan => "Plan",
        PermissionMode::Deny => "Deny",
        PermissionMode::Bypass => "Bypass",
    }
}

fn mode_description(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "Asks before every call",
        PermissionMode::AcceptEdits => "Reads and edits freely; asks for the rest",
        PermissionMode::Auto => {
            "Reads freely; tries commands on a copy; asks before keeping changes"
        }
        PermissionMode::Plan => "Reads, and changes nothing",
        PermissionMode::Deny => "Runs nothing",
        PermissionMode::Bypass => "Asks only about what is dangerous",
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::protocol::Choice;

    use super::*;

    fn view() -> SessionView {
        let arm = |name: &str| ModelRef { provider: "p".into(), model: name.into() };
        let choice = |name: &str, current| Choice {
            name: format!("p/{name}"),
            arm: Some(arm(name)),
            current,
            ..Choice::default()
        };
        SessionView {
            models: vec![choice("a", false), choice("b", true)],
            ..SessionView::default()
        }
    }

    fn current(pinned: &PinnedModel) -> String {
        options_json(&view(), pinned)[1]["currentValue"].as_str().unwrap().to_owned()
    }

    #[test]
    fn current_model_is_the_configured_one_until_another_is_pinned() {
        assert_eq!(current(&PinnedModel::BySettings), "p/b");
        assert_eq!(current(&PinnedModel::Router), "auto");
        assert_eq!(current(&PinnedModel::Model("p/a".into())), "p/a");
        assert_eq!(current(&PinnedModel::Model("gone".into())), "p/b");
    }

    #[test]
    fn thinking_option_always_lists_its_current_value() {
        for (now, value) in [
            (None, "default"),
            (Some(ThinkingMode::Off), "off"),
            (Some(ThinkingMode::Tokens(777)), "777"),
        ] {
            let option = thinking_option(now);
            assert_eq!(option["currentValue"], value);
            let values = option["options"].as_array().unwrap().iter();
            assert_eq!(values.filter(|it| it["value"] == value).count(), 1, "{option}");
        }
    }

    #[test]
    fn unknown_config_option_values_are_refused() {
        let view = view();
        assert_eq!(
            parse_choice(&view, "mode", "plan"),
            Ok(ConfigChoice::Mode(PermissionMode::Plan))
        );
        assert!(matches!(parse_choice(&view, "model", "p/a"), Ok(ConfigChoice::Model(_, Some(_)))));
        assert_eq!(parse_choice(&view, "thinking", "default"), Ok(ConfigChoice::Thinking(None)));
        let way = ThinkingMode::Tokens(500);
        assert_eq!(parse_choice(&view, "thinking", "500"), Ok(ConfigChoice::Thinking(Some(way))));
        let wrong = [("mode", "x"), ("model", "x"), ("x", "auto"), ("thinking", "much")];
        for (option, value) in wrong {
            assert_eq!(
                parse_choice(&view, option, value).unwrap_err().code,
                RpcError::INVALID_PARAMS
            );
        }
    }
}
