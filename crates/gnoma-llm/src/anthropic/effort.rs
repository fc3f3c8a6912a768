//! Thinking parameters of Claude models: effort or a budget of tokens.
//!
//! There are three generations of the parameter: none, a budget in tokens, and "adaptive" with an
//! effort. Which one a model takes depends on its version, and a wrong one is refused, so the versions
//! are a table here. Source: Anthropic's guides "Extended thinking", "Adaptive thinking" and "Effort".

use gnoma_core::{
    Content, Effort, Message, ModelRef, ModelRequest, Role, ThinkingMode, ToolChoice,
};

use super::wire::{OutputConfig, ThinkingConfig};

/// Most tokens of an answer without its thinking, when the request does not say.
const ANSWER_TOKENS: u32 = 8192;
/// Most tokens of an answer of the oldest models, which refuse more.
const PLAIN_TOKENS: u32 = 4096;
/// Most tokens of an answer with its thinking, for models that share one limit between thinking and answer. All of them can write more.
const SHARED_TOKENS: u32 = 32_000;
/// Smallest budget the API takes.
const MIN_BUDGET: u32 = 1024;

/// The fields of a request about limits and thinking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThinkingPlan {
    pub max_tokens: u32,
    pub temperature: Option<f32>,
    pub thinking: Option<ThinkingConfig>,
    pub output_config: Option<OutputConfig>,
}

type Version = (u32, u32);

/// The settings that Claude models take from one version on.
struct Generation {
    since: Version,
    form: ThinkingForm,
    /// True if a temperature may be set at all.
    samples: bool,
}

#[derive(Clone, Copy)]
enum ThinkingForm {
    /// The model cannot think.
    Plain,
    /// `thinking: {type: enabled, budget_tokens}`; may be told to be off.
    Budget,
    /// `thinking: {type: adaptive}` and an effort; off unless asked for.
    Adaptive,
    /// `thinking: {type: adaptive}` and an effort; on by default. No more than a low effort can be asked of all of them.
    AlwaysAdaptive,
}

/// The generations of Claude models, newest first.
const GENERATIONS: [Generation; 5] = [
    Generation { since: (5, 0), form: ThinkingForm::AlwaysAdaptive, samples: false },
    Generation { since: (4, 7), form: ThinkingForm::Adaptive, samples: false },
    Generation { since: (4, 6), form: ThinkingForm::Adaptive, samples: true },
    Generation { since: (3, 7), form: ThinkingForm::Budget, samples: true },
    Generation { since: (0, 0), form: ThinkingForm::Plain, samples: true },
];

/// Returns the fields about limits and thinking that `request` sends to `asked`.
pub(super) fn plan_thinking(request: &ModelRequest, asked: &ModelRef) -> ThinkingPlan {
    let (form, samples) = thinking_abilities(&request.model);
    // The API refuses thinking together with a call that the model must make.
    let free = matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::None);
    let effort = request.effort.filter(|effort| free || *effort == Effort::None);
    let (thinking, output_config) = match effort {
        None => (None, None),
        Some(Effort::None) => no_thinking_parameters(form),
        Some(effort) => thinking_parameters(form, effort, request, asked),
    };
    let thinks = thinking.is_some_and(|thinking| thinking != ThinkingConfig::Disabled);
    ThinkingPlan {
        max_tokens: request.max_output_tokens.unwrap_or_else(|| default_limit(form, thinking)),
        temperature: request.temperature.filter(|_| samples && !thinks),
        thinking,
        output_config,
    }
}

/// The parameters for no thinking, or as little as the model allows.
fn no_thinking_parameters(form: ThinkingForm) -> (Option<ThinkingConfig>, Option<OutputConfig>) {
    match form {
        ThinkingForm::Plain | ThinkingForm::Adaptive => (None, None),
        ThinkingForm::Budget => (Some(ThinkingConfig::Disabled), None),
        ThinkingForm::AlwaysAdaptive => (None, output_config(Effort::None)),
    }
}

/// The parameters for thinking of some effort.
fn thinking_parameters(
    form: ThinkingForm,
    effort: Effort,
    request: &ModelRequest,
    asked: &ModelRef,
) -> (Option<ThinkingConfig>, Option<OutputConfig>) {
    match form {
        ThinkingForm::Plain => (None, None),
        ThinkingForm::Budget => {
            let budget = thinking_budget(effort, request);
            (budget.filter(|_| may_think(&request.messages, asked)), None)
        }
        ThinkingForm::Adaptive | ThinkingForm::AlwaysAdaptive => {
            let display = "summarized";
            let adaptive = ThinkingConfig::Adaptive { display };
            // Left to itself, the model thinks as much as the task needs.
            let decides = request.thinking == Some(ThinkingMode::Adaptive);
            (Some(adaptive), output_config(effort).filter(|_| !decides))
        }
    }
}

fn default_limit(form: ThinkingForm, thinking: Option<ThinkingConfig>) -> u32 {
    match (form, thinking) {
        (ThinkingForm::Adaptive | ThinkingForm::AlwaysAdaptive, _) => SHARED_TOKENS,
        (ThinkingForm::Plain, _) => PLAIN_TOKENS,
        (ThinkingForm::Budget, Some(ThinkingConfig::Enabled { budget_tokens })) => {
            ANSWER_TOKENS + budget_tokens
        }
        (ThinkingForm::Budget, _) => ANSWER_TOKENS,
    }
}

/// A budget that leaves at least half of the limit to the answer, or nothing where that is too small.
fn thinking_budget(effort: Effort, request: &ModelRequest) -> Option<ThinkingConfig> {
    let wanted = match (request.thinking, effort) {
        (Some(ThinkingMode::Tokens(tokens)), _) => tokens.max(MIN_BUDGET),
        (_, Effort::None) => 0,
        (_, Effort::Low) => 2048,
        (_, Effort::Medium) => 8192,
        (_, Effort::High) => 16_384,
    };
    let limit = request.max_output_tokens;
    let budget_tokens = limit.map_or(wanted, |limit| wanted.min(limit / 2));
    (budget_tokens >= MIN_BUDGET).then_some(ThinkingConfig::Enabled { budget_tokens })
}

fn output_config(effort: Effort) -> Option<OutputConfig> {
    let effort = match effort {
        Effort::None | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    };
    Some(OutputConfig { effort })
}

/// Reports whether a budget for thinking may be given at this point of the conversation.
///
/// The turn after the last word of the user must open with the model's own thinking; one that another
/// model began, or this one without thinking, has to be ended without. Words that follow results
/// directly are one message with them on this wire, and begin no turn.
fn may_think(messages: &[impl AsRef<Message>], asked: &ModelRef) -> bool {
    let role = |at: usize| messages.get(at).map(|message| message.as_ref().role());
    let begins = |at: &usize| {
        let before = at.checked_sub(1).and_then(role);
        role(*at) == Some(Role::User) && before != Some(Role::Tool)
    };
    let start = (0..messages.len()).rev().find(begins).unwrap_or(0);
    let opening = messages
        .iter()
        .skip(start)
        .map(AsRef::as_ref)
        .find(|message| message.role() == Role::Assistant);
    opening.is_none_or(|message| {
        message.origin() == Some(asked)
            && match message.content().first() {
                Some(Content::Thinking(thinking)) => {
                    thinking.signature.is_some() || takes_unsigned(&asked.model)
                }
                Some(Content::RedactedThinking(_)) => true,
                Some(
                    Content::Text(_)
                    | Content::Image(_)
                    | Content::ToolCall(_)
                    | Content::ToolResult(_),
                )
                | None => false,
            }
    })
}

/// Returns the text after `claude` in the name of a Claude model; `None` for other models.
fn claude_suffix(model: &str) -> Option<&str> {
    Some(model.split_once("claude")?.1)
}

/// Reports whether the model takes its thinking back without a signature: some models that copy the protocol sign
/// nothing, and want it all the same.
pub(super) fn takes_unsigned(model: &str) -> bool {
    claude_suffix(model).is_none()
}

/// Reports whether the model cannot be told not to think.
pub(crate) fn always_thinks(model: &str) -> bool {
    matches!(thinking_abilities(model).0, ThinkingForm::AlwaysAdaptive)
}

/// Reports whether the model can be held to a schema: Claude models from 4.1 on. No other models are known to be.
pub(crate) fn takes_schemas(model: &str) -> bool {
    claude_suffix(model)
        .is_some_and(|name| parse_version(name).is_none_or(|version| version >= (4, 1)))
}

/// Servers with other models than Claude copy the form that was there first.
fn thinking_abilities(model: &str) -> (ThinkingForm, bool) {
    let Some(name) = claude_suffix(model) else {
        return (ThinkingForm::Budget, true);
    };
    // A Claude without a version is one of the newest.
    let version = parse_version(name).unwrap_or((u32::MAX, 0));
    GENERATIONS
        .iter()
        .find(|generation| version >= generation.since)
        .map_or((ThinkingForm::Plain, true), |found| (found.form, found.samples))
}

/// `-opus-4-6`, `-3-7-sonnet-20250219`, `-opus-4.1@20250805`: the first short number, and the one after.
fn parse_version(name: &str) -> Option<Version> {
    let number = |word: &str| -> Option<u32> {
        // Eight digits are a date.
        word.parse().ok().filter(|_| word.len() <= 2)
    };
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let major = words.find_map(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{CallId, RawJson, Thinking, ToolCall, ToolResult};

    use super::*;

    const OLD: &str = "claude-sonnet-4-5-20250929";

    fn asked(model: &str) -> ModelRef {
        ModelRef { provider: "anthropic".into(), model: model.into() }
    }

    fn request(model: &str, effort: Option<Effort>) -> ModelRequest {
        ModelRequest {
            model: model.into(),
            system: "".into(),
            messages: vec![Arc::new(Message::user_text("go"))],
            tools: [].into(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            temperature: Some(0.5),
            effort,
            context_window: None,
            format: None,
            thinking: None,
        }
    }

    fn planned(request: &ModelRequest) -> ThinkingPlan {
        plan_thinking(request, &asked(&request.model))
    }

    #[test]
    fn claude_version_is_parsed_from_any_model_id() {
        for (name, expected) in [
            ("-opus-4-6", Some((4, 6))),
            ("-opus-4.1@20250805", Some((4, 1))),
            ("-sonnet-4-20250514-v1:0", Some((4, 0))),
            ("-3-7-sonnet-20250219", Some((3, 7))),
            ("-sonnet-5", Some((5, 0))),
            ("-mythos-preview", None),
        ] {
            assert_eq!(parse_version(name), expected, "{name}");
        }
    }

    #[test]
    fn claude_generations_get_budget_or_adaptive_thinking() {
        let adaptive = Some(ThinkingConfig::Adaptive { display: "summarized" });
        let budget = Some(ThinkingConfig::Enabled { budget_tokens: 2048 });
        for (model, thinking, effort, temperature) in [
            ("claude-3-5-haiku-latest", None, None, Some(0.5)),
            (OLD, budget, None, None),
            ("anthropic/claude-opus-4.6", adaptive, Some("low"), None),
            ("claude-opus-4-8", adaptive, Some("low"), None),
            ("claude-sonnet-5", adaptive, Some("low"), None),
            ("kimi-k2", budget, None, None),
        ] {
            let plan = planned(&request(model, Some(Effort::Low)));
            assert_eq!(plan.thinking, thinking, "{model}");
            let told = plan.output_config.map(|config| config.effort);
            assert_eq!(told, effort, "{model}");
            assert_eq!(plan.temperature, temperature, "{model}");
        }
    }

    #[test]
    fn claude_effort_none_disables_thinking_or_uses_the_lowest_effort() {
        let off = planned(&request(OLD, Some(Effort::None)));
        assert_eq!(off.thinking, Some(ThinkingConfig::Disabled));
        assert_eq!(off.temperature, Some(0.5));
        let low = planned(&request("claude-opus-5", Some(Effort::None)));
        assert_eq!(low.output_config, Some(OutputConfig { effort: "low" }));
        let silent = planned(&request("claude-opus-5", None));
        assert_eq!((silent.thinking, silent.output_config), (None, None));
        assert_eq!(silent.temperature, None);
    }

    #[test]
    fn claude_thinking_budget_fits_under_max_tokens_or_is_omitted() {
        let mut request = request(OLD, Some(Effort::High));
        let plan = planned(&request);
        assert_eq!(plan.max_tokens, ANSWER_TOKENS + 16_384);
        request.max_output_tokens = Some(4000);
        let small = planned(&request);
        let budget_tokens = 2000;
        assert_eq!(
            (small.max_tokens, small.thinking),
            (4000, Some(ThinkingConfig::Enabled { budget_tokens }))
        );
        request.max_output_tokens = Some(500);
        assert_eq!(planned(&request).thinking, None);
    }

    #[test]
    fn claude_thinking_setting_overrides_the_effort() {
        let wish = |model, thinking| {
            let mut request = request(model, Some(Effort::High));
            request.thinking = Some(thinking);
            let plan = planned(&request);
            (plan.thinking, plan.output_config.map(|config| config.effort))
        };
        let adaptive = Some(ThinkingConfig::Adaptive { display: "summarized" });
        let budget = |budget_tokens| Some(ThinkingConfig::Enabled { budget_tokens });
        let tokens = ThinkingMode::Tokens;
        assert_eq!(wish(OLD, tokens(5000)), (budget(5000), None));
        assert_eq!(wish(OLD, tokens(10)), (budget(MIN_BUDGET), None));
        assert_eq!(wish(OLD, ThinkingMode::Adaptive), (budget(16_384), None));
        assert_eq!(wish("claude-opus-4-8", tokens(5000)), (adaptive, Some("high")));
        assert_eq!(wish("claude-opus-4-8", ThinkingMode::Adaptive), (adaptive, None));
        assert!(always_thinks("claude-sonnet-5") && !always_thinks(OLD));
    }

    #[test]
    fn claude_forced_tool_choice_disables_thinking() {
        for model in [OLD, "claude-opus-4-6"] {
            let mut request = request(model, Some(Effort::High));
            request.tool_choice = ToolChoice::Required;
            assert_eq!(planned(&request).thinking, None, "{model}");
        }
    }

    /// The rounds of a turn: each a call and its result, some with thinking before the call.
    fn turn(rounds: &[(&str, bool)]) -> Vec<Arc<Message>> {
        let mut messages = vec![Arc::new(Message::user_text("go"))];
        for (model, thinks) in rounds {
            let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
            let result = ToolResult::from_text(&call, "ok", false);
            let mut content = vec![Content::ToolCall(call)];
            if *thinks {
                let thinking =
                    Thinking { text: String::new(), signature: Some("sig".into()), item: None };
                content.insert(0, Content::Thinking(thinking));
            }
            let message = Message::assistant(content, Some(asked(model)), None).unwrap();
            messages.push(Arc::new(message));
            messages.push(Arc::new(Message::results(vec![result]).unwrap()));
        }
        messages
    }

    #[test]
    fn claude_turn_started_without_thinking_continues_without_it() {
        let mut request = request(OLD, Some(Effort::Low));
        for (rounds, thinks) in [
            (&[(OLD, true)][..], true),
            (&[(OLD, true), (OLD, false)], true),
            (&[(OLD, false)], false),
            (&[("other", true)], false),
        ] {
            request.messages = turn(rounds);
            assert_eq!(planned(&request).thinking.is_some(), thinks, "{rounds:?}");
        }
        // Words behind results are one message with them.
        request.messages.push(Arc::new(Message::user_text("and")));
        assert!(planned(&request).thinking.is_none());
        let end = Message::assistant(vec![Content::from_text("Done.")], None, None).unwrap();
        request.messages.extend([end, Message::user_text("next")].map(Arc::new));
        assert!(planned(&request).thinking.is_some());
    }
}
