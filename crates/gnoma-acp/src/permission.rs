//! Permission requests over ACP: the question to the client, and its answer for the session.

use gnoma_core::{
    CallId,
    json_value::json,
    protocol::Question,
    session::{NotableChange, PermissionAnswer},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    tools::{call_locations, call_title, tool_kind},
    updates::Translator,
};

/// Most answers that are offered to one question.
const MAX_OFFERED: usize = 16;
/// The field of a form in which one of the choices comes back, and the one for other words.
const CHOICE: &str = "choice";
const WORDS: &str = "answer";

/// A question as the client gets it.
#[derive(Debug)]
pub(crate) struct ClientQuestion {
    pub method: &'static str,
    pub params: Value,
    /// The question in the session.
    pub call: CallId,
    pub offers: AnswerOffer,
}

/// The choices that an answer of the client can stand for.
#[derive(Debug)]
pub(crate) enum AnswerOffer {
    /// One of these, by its place.
    Options(Vec<PermissionAnswer>),
    /// Fields of a form.
    Form,
}

/// Puts a question. Where it needs more to be seen than what was told of its call, `out` gets that.
pub(crate) fn build_request(
    session: &str,
    question: &Question,
    forms: bool,
    translator: &mut Translator,
    out: &mut Vec<Value>,
) -> ClientQuestion {
    let shown = announce_call(question, translator, out);
    let id = translator.calls.client_id(shown).unwrap_or(shown.as_str()).to_owned();
    let call = question.call.id.clone();
    if question.inquiry.is_some() && forms {
        let params = build_form(session, &id, question);
        return ClientQuestion {
            method: "elicitation/create",
            params,
            call,
            offers: AnswerOffer::Form,
        };
    }
    let mut update = json!({
        "toolCallId": id,
        "title": question_title(question),
        "kind": tool_kind(&question.call.name),
        "locations": call_locations(&question.call, translator.cwd()),
    });
    let content = render_changes(question, shown, translator);
    if !content.is_empty() || question.preview.is_some() {
        update["content"] = Value::Array(content.clone());
        out.push(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "content": content,
        }));
    }
    let offered = build_options(question);
    let options = render_options(&offered);
    let params = json!({ "sessionId": session, "toolCall": update, "options": options });
    let answers = offered.into_iter().map(|offered| offered.answer).collect();
    ClientQuestion {
        method: "session/request_permission",
        params,
        call,
        offers: AnswerOffer::Options(answers),
    }
}

/// Shows the call that a question belongs to, unless the client knows it, and returns its id.
fn announce_call<'q>(
    question: &'q Question,
    translator: &mut Translator,
    out: &mut Vec<Value>,
) -> &'q CallId {
    let cwd = translator.cwd().to_owned();
    let during = question.during.as_ref().filter(|call| translator.calls.client_id(call).is_some());
    match (&question.during, during) {
        (None, _) => translator.calls.show_call(&question.call, &cwd, out),
        // That call has ended, and what it started goes on.
        (Some(_), None) => translator.calls.show_question(&question.call, &cwd, out),
        (Some(_), Some(_)) => (),
    }
    // A question in the middle of a call has an id that was never announced: it belongs to that call.
    during.unwrap_or(&question.call.id)
}

/// Renders the changes that a call would make: first those to look at by name, then the diff.
fn render_changes(question: &Question, call: &CallId, translator: &Translator) -> Vec<Value> {
    let mut content = render_notable_changes(&question.notable);
    let diff = question.preview.iter();
    content.extend(
        diff.flat_map(|diff| translator.calls.render_preview(call, diff, translator.cwd())),
    );
    content
}

/// Lists, as a text, the changes that the user must see by name before approving.
fn render_notable_changes(notable: &[NotableChange]) -> Vec<Value> {
    if notable.is_empty() {
        return Vec::new();
    }
    let lines: Vec<_> =
        notable.iter().map(|change| format!("- `{}` {}", change.name, change.what)).collect();
    let text = format!("Look at these first:\n{}", lines.join("\n"));
    vec![json!({ "type": "content", "content": { "type": "text", "text": text } })]
}

/// Returns the question in one line.
fn question_title(question: &Question) -> String {
    if question.inquiry.is_some() || question.during.is_some() {
        return question.reason.clone();
    }
    format!("{} ({})", call_title(&question.call), question.reason)
}

struct OfferedOption {
    name: String,
    kind: &'static str,
    answer: PermissionAnswer,
}

fn build_options(question: &Question) -> Vec<OfferedOption> {
    let one = |name: String, kind, answer| OfferedOption { name, kind, answer };
    let deny = || PermissionAnswer::Deny { reason: String::new() };
    if let Some(inquiry) = &question.inquiry {
        let choices = inquiry.choices.iter().take(MAX_OFFERED);
        let choice = |text: &String| {
            one(text.clone(), "allow_once", PermissionAnswer::Text { text: text.clone() })
        };
        let mut all: Vec<_> = choices.map(choice).collect();
        all.push(one("No answer".to_owned(), "reject_once", deny()));
        return all;
    }
    let mut all = vec![one("Approve".to_owned(), "allow_once", PermissionAnswer::Allow)];
    if let Some(rule) = &question.always {
        let name = format!("Always approve {rule}");
        all.push(one(name, "allow_always", PermissionAnswer::Always));
    }
    // One part is all of it.
    if question.parts.len() > 1 {
        all.extend(question.parts.iter().take(MAX_OFFERED).map(|part| {
            let answer = PermissionAnswer::Part { names: vec![part.clone()] };
            one(format!("Approve only {part}"), "allow_once", answer)
        }));
    }
    all.push(one("Deny".to_owned(), "reject_once", deny()));
    all
}

/// Renders the answers that are offered; the id of each is its place.
fn render_options(offered: &[OfferedOption]) -> Vec<Value> {
    (0_usize..)
        .zip(offered)
        .map(|(place, OfferedOption { name, kind, .. })| {
            json!({ "optionId": place.to_string(), "name": name, "kind": kind })
        })
        .collect()
}

/// A form for a question that is answered with words.
fn build_form(session: &str, call: &str, question: &Question) -> Value {
    let choices = question.inquiry.as_ref().map(|it| it.choices.as_slice()).unwrap_or_default();
    let words = |title: &str| json!({ "type": "string", "title": title });
    let schema = if choices.is_empty() {
        json!({ "type": "object", "properties": { WORDS: words("Answer") }, "required": [WORDS] })
    } else {
        let choice = json!({ "type": "string", "title": "Answer", "enum": choices });
        let properties = json!({ CHOICE: choice, WORDS: words("Or another answer") });
        json!({ "type": "object", "properties": properties })
    };
    json!({
        "sessionId": session,
        "toolCallId": call,
        "mode": "form",
        "message": question.reason,
        "requestedSchema": schema,
    })
}

/// Reads the client's answer to a question, which is `None` if the client answered with an error. An answer that cannot
/// be read is no approval.
pub(crate) fn parse_answer(offers: &AnswerOffer, result: Option<&RawValue>) -> PermissionAnswer {
    let deny = |reason: &str| PermissionAnswer::Deny { reason: reason.to_owned() };
    let Some(result) = result else { return deny("the client could not ask the person") };
    match offers {
        AnswerOffer::Options(answers) => {
            let Ok(PermissionResponse { outcome }) = gnoma_core::json::from_str(result.get())
            else {
                return deny("the client's answer could not be read");
            };
            let place = outcome.option_id.as_deref().and_then(|id| id.parse::<usize>().ok());
            let chosen = place.filter(|_| outcome.outcome == "selected");
            chosen.and_then(|place| answers.get(place).cloned()).unwrap_or_else(|| deny(""))
        }
        AnswerOffer::Form => {
            let Ok(ElicitationResponse { action, content }) =
                gnoma_core::json::from_str(result.get())
            else {
                return deny("the client's answer could not be read");
            };
            let content = content.filter(|_| action == "accept").unwrap_or_default();
            let said = [content.answer, content.choice].into_iter().flatten();
            let said = said.map(|text| text.trim().to_owned()).find(|text| !text.is_empty());
            said.map_or_else(|| deny(""), |text| PermissionAnswer::Text { text })
        }
    }
}

#[derive(Deserialize)]
struct PermissionResponse {
    outcome: SelectedOption,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelectedOption {
    outcome: String,
    option_id: Option<String>,
}

#[derive(Deserialize)]
struct ElicitationResponse {
    action: String,
    content: Option<Fields>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    choice: Option<String>,
    answer: Option<String>,
}

#[cfg(test)]
mod tests {
    use gnoma_core::{RawJson, ToolCall, session::Inquiry};

    use super::*;

    fn question() -> Question {
        let arguments = RawJson::parse(r#"{"path":"a.txt"}"#).unwrap();
        Question {
            call: ToolCall::new(CallId::new("c"), "fs.write", arguments),
            reason: "mode auto asks".into(),
            preview: Some("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+hi\n".into()),
            always: Some("fs.write(a.txt)".into()),
            inquiry: None,
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        }
    }

    fn asked(question: &Question, forms: bool) -> (ClientQuestion, Vec<Value>) {
        let (mut translator, mut out) = (Translator::default(), Vec::new());
        translator.work_in("/p");
        (build_request("s", question, forms, &mut translator, &mut out), out)
    }

    fn said(offers: &AnswerOffer, json: &str) -> PermissionAnswer {
        parse_answer(offers, Some(&RawValue::from_string(json.to_owned()).unwrap()))
    }

    fn selected(id: &str) -> String {
        format!(r#"{{"outcome":{{"outcome":"selected","optionId":"{id}"}}}}"#)
    }

    #[test]
    fn permission_request_announces_its_tool_call_with_a_diff_first() {
        let (asking, out) = asked(&question(), true);
        assert_eq!(asking.method, "session/request_permission");
        assert_eq!(asking.params["toolCall"]["toolCallId"], out[0]["toolCallId"]);
        assert_eq!(asking.params["toolCall"]["content"][0]["path"], "/p/a.txt");
        assert_eq!(asking.params["toolCall"]["kind"], "edit");
        assert_eq!(asking.params["toolCall"]["locations"], json!([{ "path": "/p/a.txt" }]));
        let kinds = asking.params["options"].as_array().unwrap().iter();
        let kinds: Vec<_> = kinds.map(|option| option["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
        assert_eq!(said(&asking.offers, &selected("1")), PermissionAnswer::Always);
    }

    #[test]
    fn permission_request_lists_notable_changes() {
        let what = "creates: a program, which version control reads on every run".to_owned();
        let notable = vec![NotableChange { name: ".husky/pre-commit".into(), what }];
        let (asking, _) = asked(&Question { notable, ..question() }, false);
        let content = &asking.params["toolCall"]["content"];
        let text = content[0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("`.husky/pre-commit` creates: a program"), "{text}");
        assert_eq!(content[1]["path"], "/p/a.txt");
    }

    #[test]
    fn only_an_offered_option_approves() {
        let deny = |answer| matches!(answer, PermissionAnswer::Deny { .. });
        for wrong in [
            &selected("9"),
            &selected("-1"),
            "{}",
            "5",
            r#"{"outcome":{"outcome":"cancelled","optionId":"0"}}"#,
            r#"{"outcome":{"outcome":"selected"}}"#,
        ] {
            assert!(deny(said(&asked(&question(), false).0.offers, wrong)), "{wrong}");
        }
        assert!(deny(parse_answer(&asked(&question(), false).0.offers, None)));
        assert_eq!(
            said(&asked(&question(), false).0.offers, &selected("0")),
            PermissionAnswer::Allow
        );
    }

    #[test]
    fn question_with_choices_is_an_elicitation_form_or_buttons() {
        let inquiry = Some(Inquiry { choices: vec!["red".into(), "blue".into()] });
        let question = Question { inquiry, preview: None, reason: "Which?".into(), ..question() };
        let (form, _) = asked(&question, true);
        assert_eq!(form.method, "elicitation/create");
        assert_eq!(form.params["requestedSchema"]["properties"]["choice"]["enum"][1], "blue");
        let text = |text: &str| PermissionAnswer::Text { text: text.to_owned() };
        assert_eq!(
            said(&form.offers, r#"{"action":"accept","content":{"choice":"red","answer":" "}}"#),
            text("red")
        );
        let declined = said(&asked(&question, true).0.offers, r#"{"action":"decline"}"#);
        assert!(matches!(declined, PermissionAnswer::Deny { .. }));
        let (buttons, _) = asked(&question, false);
        assert_eq!(buttons.params["toolCall"]["title"], "Which?");
        assert_eq!(said(&buttons.offers, &selected("1")), text("blue"));
    }

    #[test]
    fn question_during_a_tool_call_belongs_to_it_and_allows_a_partial_answer() {
        let running = ToolCall::new(CallId::new("run"), "bash", RawJson::empty_object());
        let (mut translator, mut out) = (Translator::default(), Vec::new());
        translator.calls.mark_running(&running, "/p", &mut out);
        let (during, parts) = (Some(running.id), vec!["a.txt".to_owned(), "b.txt".to_owned()]);
        let question = Question { during, parts, always: None, ..question() };
        let asking = build_request("s", &question, false, &mut translator, &mut out);
        assert_eq!(asking.params["toolCall"]["toolCallId"], out[0]["toolCallId"]);
        let part = PermissionAnswer::Part { names: vec!["b.txt".into()] };
        assert_eq!(said(&asking.offers, &selected("2")), part);
    }

    #[test]
    fn a_question_of_a_call_that_has_ended_is_announced_and_ends() {
        let question = Question { during: Some(CallId::new("gone")), ..question() };
        let (mut translator, mut out) = (Translator::default(), Vec::new());
        let asking = build_request("s", &question, false, &mut translator, &mut out);
        assert_eq!(asking.params["toolCall"]["toolCallId"], out[0]["toolCallId"]);
        out.clear();
        for _ in 0..2 {
            translator.calls.close_question(&question.call.id, false, &mut out);
        }
        assert_eq!(out.len(), 1);
        assert_eq!(out[0]["status"], "failed");
    }
}
