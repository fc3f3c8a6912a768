//! Interprets a hook's exit code and output: 0 succeeds, exit code 2 blocks, JSON says more. Pure.

use gnoma_core::{
    RawJson, ToolCall, duration,
    lifecycle::{Point, PointAnswer, PointKind},
};
use serde_json::Value;

use super::{
    hook::{Hook, HookContract, HookKind},
    input::own_arguments,
    output::{self, HookOutput},
};

/// Most of a hook's words that continue, in characters.
const MAX_WORDS: usize = 10_000;

/// Objects of a model's answer that are tried, from its end.
const MAX_OBJECTS: usize = 16;

/// The way in which a hook's program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HookEnd {
    /// With this exit code.
    Code(i32),
    /// The program took too long and was ended.
    TimedOut,
    /// By a signal, or it could not be started; why.
    Failed(String),
}

/// The result of running one hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookRun {
    pub(crate) end: HookEnd,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Converts the result of a hook's run to its answer at the point.
pub(crate) fn interpret_hook_exit_code(hook: &Hook, point: &Point, run: &HookRun) -> PointAnswer {
    if matches!(hook.kind, HookKind::Prompt { .. } | HookKind::Agent { .. })
        && run.end == HookEnd::Code(0)
    {
        return parse_judgement(hook, point, run);
    }
    match (&run.end, hook.contract) {
        (HookEnd::Code(0), HookContract::Claude) => parse_success_output(hook, point, run),
        (HookEnd::Code(2), HookContract::Claude) => block_point(point, bounded_words(&run.stderr)),
        (HookEnd::Code(code), HookContract::Own) if is_own_answer(hook, point, *code, run) => {
            interpret_gnoma_contract(hook, point, *code, run)
        }
        (end, contract) => {
            merge_answers([find_denial(point, contract, hook, run), failure_answer(hook, end, run)])
        }
    }
}

/// Reports whether an exit code answers by gnoma's own contract. With 1, most programs that fail end as well: it
/// abstains only where a call is judged, without a word, and not for a hook that must not fail.
fn is_own_answer(hook: &Hook, point: &Point, code: i32, run: &HookRun) -> bool {
    let can_abstain = matches!(point, Point::BeforeTool { .. } | Point::PermissionAsked { .. });
    match code {
        0 | 2 => true,
        1 => can_abstain && !hook.fails_closed && run.stderr.trim().is_empty(),
        _ => false,
    }
}

/// Returns the denial that a program printed before it failed, at the points where something waits for its answer.
fn find_denial(point: &Point, contract: HookContract, hook: &Hook, run: &HookRun) -> PointAnswer {
    if !matches!(
        point,
        Point::BeforeTool { .. } | Point::PermissionAsked { .. } | Point::Prompt { .. }
    ) {
        return PointAnswer::default();
    }
    let answer = match contract {
        HookContract::Claude => parse_success_output(hook, point, run),
        HookContract::Own => interpret_gnoma_contract(hook, point, 0, run),
    };
    let PointAnswer { block, ask, stop, .. } = answer;
    PointAnswer { block, ask, stop, ..PointAnswer::default() }
}

/// Returns a model's judgement of its condition: the last object in its answer that says whether the condition
/// holds.
fn parse_judgement(hook: &Hook, point: &Point, run: &HookRun) -> PointAnswer {
    let starts = run.stdout.rmatch_indices('{').map(|(at, _)| at).take(MAX_OBJECTS);
    let judgement = |at: usize| {
        let text = run.stdout.get(at..)?;
        let value = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?;
        Some((value.get("ok")?.as_bool()?, value))
    };
    match starts.filter_map(judgement).next() {
        Some((true, _)) => PointAnswer::default(),
        Some((false, value)) => {
            let reason = value.get("reason").and_then(Value::as_str).unwrap_or_default();
            block_point(point, bounded_words(reason))
        }
        None => {
            let why = "was not answered with `{\"ok\": …}`".to_owned();
            failure_answer(hook, &HookEnd::Failed(why), run)
        }
    }
}

/// A program that fails is shown, and blocks only where the hook says so.
fn failure_answer(hook: &Hook, end: &HookEnd, run: &HookRun) -> PointAnswer {
    let how = match end {
        HookEnd::Code(code) => format!("ended with exit code {code}"),
        HookEnd::TimedOut => {
            format!("took longer than {}", duration::format_duration(hook.timeout))
        }
        HookEnd::Failed(why) => why.clone(),
    };
    let said = bounded_words(&run.stderr).lines().next().unwrap_or_default().to_owned();
    let said = if said.is_empty() { said } else { format!(": {said}") };
    let text = of_hook(hook, &format!("{how}{said}"));
    let block = hook.fails_closed.then(|| text.clone());
    PointAnswer { block, notices: vec![text], ..PointAnswer::default() }
}

fn shorten_text(text: &str) -> String {
    const MOST: usize = 80;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= MOST {
        return text;
    }
    format!("{}…", text.chars().take(MOST).collect::<String>())
}

fn bounded_words(text: &str) -> String {
    text.trim().chars().take(MAX_WORDS).collect()
}

fn block_point(point: &Point, why: String) -> PointAnswer {
    let why = if why.is_empty() { "a hook blocked it".to_owned() } else { why };
    let mut answer = PointAnswer::default();
    match point.kind() {
        PointKind::SessionStart
        | PointKind::SessionEnd
        | PointKind::AfterCompaction
        | PointKind::Notification
        | PointKind::PermissionDenied
        | PointKind::ModelSwitched
        | PointKind::ChildStop => answer.notices.push(why),
        PointKind::Prompt
        | PointKind::BeforeTool
        | PointKind::AfterTool
        | PointKind::ToolFailed
        | PointKind::PermissionAsked
        | PointKind::BeforeCompaction
        | PointKind::BeforeStop
        | PointKind::ChildStart => answer.block = Some(why),
    }
    answer
}

/// The meaning of an output: text is context at two points, JSON is an answer. A denial is never lost, whatever form
/// it has.
fn parse_success_output(hook: &Hook, point: &Point, run: &HookRun) -> PointAnswer {
    let text = run.stdout.trim();
    let answer = match output::parse_output(text) {
        HookOutput::Text => {
            PointAnswer { context: context_lines(point, text), ..PointAnswer::default() }
        }
        HookOutput::Json(value) => {
            let answer = parse_json_answer(hook, point, &value);
            return if output::is_forbidding(&value) {
                enforce_denial(hook, point, answer)
            } else {
                answer
            };
        }
        HookOutput::Mixed(values) => {
            let answer =
                merge_answers(values.iter().map(|value| parse_json_answer(hook, point, value)));
            let what = match values.len() {
                1 => "prints other text beside its JSON",
                _ => "prints more than one JSON object",
            };
            let advice = "only what forbids something or asks was used. Print the JSON alone";
            let notice = of_hook(hook, &format!("{what}; {advice}"));
            let PointAnswer { block, ask, stop, notices, .. } = answer;
            let notices = notices.into_iter().chain([notice]).collect();
            let context = context_lines(point, text);
            PointAnswer { block, ask, stop, notices, context, ..PointAnswer::default() }
        }
        HookOutput::Broken(why) => unreadable_answer(hook, &why),
    };
    let forbids = output::forbids_somewhere(text) || output::forbids_somewhere(&run.stderr);
    if forbids { enforce_denial(hook, point, answer) } else { answer }
}

/// A hook whose answer cannot be read is shown, and blocks only where the hook says so.
fn unreadable_answer(hook: &Hook, why: &str) -> PointAnswer {
    let text = of_hook(hook, &format!("printed JSON that cannot be read: {why}"));
    let block = hook.fails_closed.then(|| text.clone());
    PointAnswer { block, notices: vec![text], ..PointAnswer::default() }
}

/// Returns the text of a hook at the points where text is context.
fn context_lines(point: &Point, text: &str) -> Vec<String> {
    let is_heard = matches!(point.kind(), PointKind::SessionStart | PointKind::Prompt);
    (is_heard && !text.is_empty()).then(|| bounded_words(text)).into_iter().collect()
}

/// An answer in which a hook denies something: where that was not understood, it is told, and a call does not run.
fn enforce_denial(hook: &Hook, point: &Point, mut answer: PointAnswer) -> PointAnswer {
    if answer.block.is_some() || answer.stop.is_some() {
        return answer;
    }
    let why = of_hook(hook, "denies something in a form that is not an answer to this event");
    if matches!(point, Point::BeforeTool { .. } | Point::PermissionAsked { .. }) {
        answer.block = Some(why);
    } else if !answer.notices.contains(&why) {
        answer.notices.push(why);
    }
    answer
}

fn of_hook(hook: &Hook, what: &str) -> String {
    format!("the {} hook `{}` {what}", hook.event, shorten_text(&hook.name))
}

/// Returns a text of a hook's answer within the limit; `None` where it is missing or empty.
fn text_field(value: &Value, name: &str) -> Option<String> {
    let text = value.get(name).and_then(Value::as_str);
    text.map(bounded_words).filter(|text| !text.is_empty())
}

/// Converts the JSON that a hook has printed to its answer at the point.
fn parse_json_answer(hook: &Hook, point: &Point, value: &Value) -> PointAnswer {
    let mut answer = PointAnswer::default();
    answer.notices.extend(text_field(value, "systemMessage"));
    if value.get("continue").and_then(Value::as_bool) == Some(false) {
        let why = text_field(value, "stopReason");
        let why = why.unwrap_or_else(|| "no reason was given".to_owned());
        if matches!(point.kind(), PointKind::Prompt) {
            answer.block = Some(why);
        } else {
            answer.stop = Some(why);
        }
    }
    if text_field(value, "decision").as_deref() == Some("block") {
        let block = block_point(point, text_field(value, "reason").unwrap_or_default());
        answer.block = answer.block.or(block.block);
        answer.notices.extend(block.notices);
    }
    let is_meant = |specific: &&Value| {
        text_field(specific, "hookEventName").is_none_or(|event| event == hook.event)
    };
    if let Some(specific) = value.get("hookSpecificOutput").filter(is_meant) {
        add_specific_output(&mut answer, point, specific);
    }
    answer
}

/// Adds what a hook's JSON says for its event alone.
fn add_specific_output(answer: &mut PointAnswer, point: &Point, specific: &Value) {
    answer.context.extend(text_field(specific, "additionalContext"));
    answer.output = specific.get("updatedToolOutput").map(|output| match output {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let why = text_field(specific, "permissionDecisionReason");
    let denial = |why: Option<String>| why.unwrap_or_else(|| "a hook denied it".to_owned());
    match text_field(specific, "permissionDecision").as_deref() {
        Some("deny") => answer.block = Some(denial(why)),
        Some("ask" | "defer") => {
            answer.ask = Some(why.unwrap_or_else(|| "a hook requires approval".to_owned()));
        }
        // A hook's `allow` never widens permissions.
        _ => (),
    }
    if let Some(decision) = specific.get("decision")
        && text_field(decision, "behavior").as_deref() == Some("deny")
    {
        answer.block = Some(denial(text_field(decision, "message")));
    }
    let changed = match point {
        Point::BeforeTool { .. } => specific.get("updatedInput"),
        Point::PermissionAsked { .. } => specific.pointer("/decision/updatedInput"),
        _ => None,
    };
    if let (Some(changed), Some(call)) = (changed.filter(|it| !it.is_null()), point.tool_call()) {
        change_arguments(answer, call, changed);
    }
}

/// Replaces the arguments of a call. A call whose new arguments are not valid is blocked.
fn change_arguments(answer: &mut PointAnswer, call: &ToolCall, changed: &Value) {
    answer.arguments = convert_arguments(call, changed);
    if answer.arguments.is_none() {
        let why = "a hook changed its input to something other than an object";
        answer.block.get_or_insert_with(|| why.to_owned());
    }
}

fn convert_arguments(call: &ToolCall, changed: &Value) -> Option<RawJson> {
    changed.is_object().then(|| RawJson::from_value(&own_arguments(call, changed.clone())).ok())?
}

/// Reports whether a program's callback allows the call that is about to be judged or asked about.
pub(crate) fn is_call_allowed(hook: &Hook, point: &Point, said: &Value) -> bool {
    let is = |path: &str, word: &str| said.pointer(path).and_then(Value::as_str) == Some(word);
    let event = said.pointer("/hookSpecificOutput/hookEventName").and_then(Value::as_str);
    let is_meant = event.is_none_or(|event| event == hook.event);
    match point {
        Point::BeforeTool { .. } => {
            is("/decision", "approve")
                || (is_meant && is("/hookSpecificOutput/permissionDecision", "allow"))
        }
        Point::PermissionAsked { .. } => {
            is_meant && is("/hookSpecificOutput/decision/behavior", "allow")
        }
        _ => false,
    }
}

/// gnoma's own contract: 0 allows, 1 abstains, 2 denies, and JSON weighs more than the code.
fn interpret_gnoma_contract(hook: &Hook, point: &Point, code: i32, run: &HookRun) -> PointAnswer {
    let mut unreadable = PointAnswer::default();
    let value = match output::parse_output(&run.stdout) {
        HookOutput::Json(value) => value,
        // Of several, one that forbids counts.
        HookOutput::Mixed(values) => {
            let forbidding = values.iter().find(|value| output::is_forbidding(value));
            forbidding.or(values.last()).cloned().unwrap_or_default()
        }
        HookOutput::Text | HookOutput::Broken(_) if output::forbids_somewhere(&run.stdout) => {
            serde_json::json!({ "action": "deny" })
        }
        HookOutput::Broken(why) => {
            unreadable = unreadable_answer(hook, &why);
            Value::Null
        }
        HookOutput::Text => Value::Null,
    };
    let action = value.get("action").and_then(Value::as_str);
    // A denial counts in whatever words; one of gnoma's own is also the exit code.
    let denies =
        output::is_forbidding(&value) || action.map_or(code == 2, |action| action == "deny");
    let mut answer = PointAnswer::default();
    if denies && !matches!(point.kind(), PointKind::AfterTool) {
        answer = block_point(point, bounded_words(&run.stderr));
    }
    match (point, value.get("transformed")) {
        (_, None | Some(Value::Null)) => (),
        (Point::BeforeTool { call }, Some(changed)) => change_arguments(&mut answer, call, changed),
        (Point::AfterTool { .. }, Some(Value::String(text))) => answer.output = Some(text.clone()),
        (Point::AfterTool { .. }, Some(other)) => {
            let output = other.get("output").and_then(Value::as_str);
            answer.output = Some(output.map_or_else(|| other.to_string(), str::to_owned));
        }
        _ => (),
    }
    merge_answers([answer, unreadable])
}

/// All answers of a point as one: what blocks beats what asks, and that beats what allows.
#[must_use]
pub fn merge_answers(answers: impl IntoIterator<Item = PointAnswer>) -> PointAnswer {
    let mut all = PointAnswer::default();
    for answer in answers {
        let PointAnswer { block, ask, arguments, output, context, stop, notices } = answer;
        all.block = match (all.block.take(), block) {
            (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
            (one, other) => one.or(other),
        };
        all.ask = all.ask.or(ask);
        all.arguments = arguments.or(all.arguments);
        all.output = output.or(all.output);
        all.stop = all.stop.or(stop);
        all.context.extend(context);
        all.notices.extend(notices);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, time::Duration};

    use gnoma_core::CallId;

    use super::*;
    use crate::{hooks::matcher::Matcher, places::ExtensionSource};

    fn said(fails_closed: bool, event: &str, point: &Point, stdout: &str) -> PointAnswer {
        ended(HookEnd::Code(0), fails_closed, event, point, stdout)
    }

    fn ended(
        end: HookEnd,
        fails_closed: bool,
        event: &str,
        point: &Point,
        stdout: &str,
    ) -> PointAnswer {
        let hook = hook(fails_closed, event, point.kind());
        let (stdout, stderr) = (stdout.to_owned(), String::new());
        interpret_hook_exit_code(&hook, point, &HookRun { end, stdout, stderr })
    }

    fn hook(fails_closed: bool, event: &str, point: PointKind) -> Hook {
        Hook {
            name: "h".to_owned(),
            point,
            event: event.to_owned(),
            condition: None,
            matcher: Matcher::All,
            kind: HookKind::Command,
            command: "h".to_owned(),
            timeout: Duration::from_secs(1),
            contract: HookContract::Claude,
            is_async: false,
            fails_closed,
            by: ExtensionSource::User,
            origin: PathBuf::new(),
            root: None,
        }
    }

    #[test]
    fn hook_output_with_text_beside_json_is_reported_as_such() {
        let deny = r#"{"decision":"block","reason":"no"}"#;
        let point = Point::BeforeTool { call: call() };
        let told = |output: &str| said(false, "PreToolUse", &point, output).notices.join("; ");
        let one = told(&format!("log\n{deny}"));
        assert!(one.contains("prints other text beside its JSON"), "{one}");
        let two = told(&format!("{deny}\n{deny}"));
        assert!(two.contains("prints more than one JSON object"), "{two}");
        assert_eq!(shorten_text("cat <<X\n{}\nX"), "cat <<X {} X");
    }

    fn call() -> ToolCall {
        ToolCall::new(CallId::new("c"), "fs.write", RawJson::empty_object())
    }

    #[test]
    fn fail_closed_hook_blocks_if_its_output_cannot_be_parsed() {
        let point = Point::BeforeTool { call: call() };
        let cut = r#"{"decision": "blo"#;
        assert!(said(true, "PreToolUse", &point, cut).block.is_some());
        let open = said(false, "PreToolUse", &point, cut);
        assert_eq!(open.block, None);
        assert!(open.notices[0].contains("cannot be read"), "{open:?}");
        // A hook in gnoma's own format, too.
        let (end, stdout, stderr) = (HookEnd::Code(0), cut.to_owned(), String::new());
        let run = HookRun { end, stdout, stderr };
        for fails_closed in [true, false] {
            let hook = Hook {
                contract: HookContract::Own,
                ..hook(fails_closed, "pre_tool_use", point.kind())
            };
            let own = interpret_hook_exit_code(&hook, &point, &run);
            assert_eq!(own.block.is_some(), fails_closed);
            assert!(own.notices[0].contains("cannot be read"), "{own:?}");
        }
    }

    #[test]
    fn hook_denial_counts_with_other_text_around_its_json() {
        let before = Point::BeforeTool { call: call() };
        let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
        for output in
            [format!("loading profile\n{deny}"), format!("{deny}\nbye"), format!("… {deny}")]
        {
            let answer = said(false, "PreToolUse", &before, &output);
            assert_eq!(answer.block.as_deref(), Some("no"), "{output}");
            assert!(answer.notices[0].contains("Print the JSON alone"), "{answer:?}");
        }
        for output in [
            format!("{deny} bye"),
            deny.replace("PreToolUse", "preToolUse"),
            r#"{"permissionDecision": "deny"}"#.to_owned(),
            r#"{"decision": "block", "reason": "cut"#.to_owned(),
        ] {
            assert!(said(false, "PreToolUse", &before, &output).block.is_some(), "{output}");
        }
        let allow = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"file_path":"b"}}}"#;
        let answer = said(false, "PreToolUse", &before, &format!("log\n{allow}"));
        assert_eq!((answer.block, answer.arguments), (None, None));
        assert_eq!(said(false, "PreToolUse", &before, "just text"), PointAnswer::default());
    }

    #[test]
    fn hook_denial_counts_even_if_the_hook_fails() {
        let before = Point::BeforeTool { call: call() };
        let deny = r#"{"decision": "block", "reason": "no"}"#;
        for end in [HookEnd::Code(1), HookEnd::Code(139), HookEnd::TimedOut] {
            let answer = ended(end.clone(), false, "PreToolUse", &before, deny);
            assert_eq!(answer.block.as_deref(), Some("no"), "{end:?}");
            assert_eq!(answer.notices.len(), 1, "{answer:?}");
            let answer = ended(end, false, "PreToolUse", &before, "just text");
            assert_eq!(answer.block, None);
        }
        for output in ["deny", r#"{"ok": false, "reason": "no"}"#, r#"{"decision": "reject"}"#] {
            let answer = said(false, "PreToolUse", &before, output);
            assert!(answer.block.is_some(), "{output}");
        }
        let start = Point::SessionStart { is_resumed: false };
        assert_eq!(said(false, "SessionStart", &start, "[info] x").context, ["[info] x"]);
    }

    #[test]
    fn hook_exit_code_1_abstains_only_without_stderr_and_not_if_fail_closed() {
        let run = |point: &Point, fails_closed: bool, stderr: &str| {
            let own = HookContract::Own;
            let hook = Hook { contract: own, ..hook(fails_closed, "pre_tool_use", point.kind()) };
            let (end, stderr) = (HookEnd::Code(1), stderr.to_owned());
            interpret_hook_exit_code(&hook, point, &HookRun { end, stdout: String::new(), stderr })
        };
        let before = Point::BeforeTool { call: call() };
        assert_eq!(run(&before, false, ""), PointAnswer::default());
        let failed = run(&before, false, "Traceback\n  line 1");
        assert_eq!(failed.block, None);
        assert!(failed.notices[0].ends_with("ended with exit code 1: Traceback"), "{failed:?}");
        for stderr in ["", "Traceback"] {
            assert!(run(&before, true, stderr).block.is_some(), "{stderr}");
        }
        let start = Point::SessionStart { is_resumed: false };
        assert_eq!(run(&start, false, "").notices.len(), 1);
    }

    #[test]
    fn session_start_hook_text_containing_json_is_added_as_context() {
        let point = Point::SessionStart { is_resumed: false };
        let text = "Notes\n{\"level\": \"info\"}\nmore";
        assert_eq!(said(false, "SessionStart", &point, text).context, [text]);
        let text = "Notes\n{\"decision\": \"block\", \"reason\": \"r\"}";
        let answer = said(false, "SessionStart", &point, text);
        assert_eq!(answer.context, [text]);
        assert!(!answer.notices.is_empty());
    }

    #[test]
    fn hook_updated_input_replaces_the_tool_arguments_or_blocks_the_call() {
        let before = Point::BeforeTool { call: call() };
        let asked = Point::PermissionAsked { call: call(), reason: String::new() };
        let fields = |input: &str| {
            [
                ("PreToolUse", &before, format!(r#""updatedInput": {input}"#)),
                (
                    "PermissionRequest",
                    &asked,
                    format!(r#""decision": {{"updatedInput": {input}}}"#),
                ),
            ]
        };
        let answers = |input: &str| {
            fields(input).map(|(event, point, fields)| {
                said(false, event, point, &format!(r#"{{"hookSpecificOutput": {{{fields}}}}}"#))
            })
        };
        for answer in answers(r#"{"file_path": "b"}"#) {
            assert_eq!(answer.arguments.unwrap().get(), r#"{"path":"b"}"#);
            assert_eq!(answer.block, None);
        }
        for answer in answers(r#""rm -rf""#) {
            assert!(answer.arguments.is_none() && answer.block.is_some());
        }
    }
}
