//! Structured output: how a request asks each vendor for an answer that fits a JSON Schema.
//!
//! A wire has a field for the schema or it has not. Some that have one let it stand beside tools; with others
//! a model that is held to a schema can call nothing, so that it goes along only once the answer is wanted.
//! Where there is no field, or the schema is none that it takes, the answer is asked for as the arguments
//! of a tool that has to be called, and [`answer::AnswerCalls`] makes a text of that again. Nothing here is
//! trusted: whoever asked for the form checks the answer.

pub(crate) mod answer;
mod vendors;

use std::{borrow::Cow, sync::Arc};

use gnoma_core::{
    AnswerFormat, FormatStage, ModelRequest, RawJson, ToolChoice, ToolSpec,
    tool::{Access, Tier, ToolKind},
};
use serde_json::{Value, json};

use crate::{Profile, Protocol, anthropic, google, profile::FormatField};

/// The name of the form, for wires that want one.
pub(crate) const NAME: &str = "answer";
/// The only property of the answer's wrapping, where the answer itself need be no object.
const WRAPPED: &str = "answer";

/// The way in which the schema goes along with a request.
#[derive(Clone, Debug, PartialEq)]
enum SchemaCarrier {
    /// Not at all: the words of the request say it.
    Words,
    /// In the wire's field, as this schema.
    Field { schema: Arc<RawJson>, beside_tools: bool },
    /// As the parameters of a tool.
    Call,
}

/// A request as it is sent, and whether its answer comes as a call.
pub(crate) struct FormattedRequest<'r> {
    pub(crate) request: Cow<'r, ModelRequest>,
    pub(crate) as_call: bool,
}

/// Puts the form that is asked for into the form of whoever is asked.
pub(crate) fn shape_request<'r>(
    profile: &Profile,
    request: &'r ModelRequest,
) -> FormattedRequest<'r> {
    let Some(format) = &request.format else {
        return FormattedRequest { request: Cow::Borrowed(request), as_call: false };
    };
    let mut shaped = request.clone();
    shaped.format = None;
    let mut as_call = false;
    match choose_way(profile, request, format) {
        SchemaCarrier::Words => (),
        SchemaCarrier::Field { schema, beside_tools } => {
            if !beside_tools {
                shaped.tools = Arc::default();
                shaped.tool_choice = ToolChoice::None;
            }
            shaped.format = Some(AnswerFormat { schema, stage: format.stage });
        }
        SchemaCarrier::Call => {
            let tool = build_answer_tool(&format.schema);
            (shaped.tools, shaped.tool_choice) = ([tool].into(), ToolChoice::Tool(NAME.to_owned()));
            as_call = true;
        }
    }
    FormattedRequest { request: Cow::Owned(shaped), as_call }
}

fn choose_way(profile: &Profile, request: &ModelRequest, format: &AnswerFormat) -> SchemaCarrier {
    let value: Value = format.schema.read().unwrap_or_default();
    let field = format_field(profile, &request.model, &value).map(|(schema, beside_tools)| {
        let schema = match schema {
            Some(other) => {
                RawJson::from_value(&other).map_or_else(|_| Arc::clone(&format.schema), Arc::new)
            }
            None => Arc::clone(&format.schema),
        };
        SchemaCarrier::Field { schema, beside_tools }
    });
    let calls_nothing = request.tools.is_empty() || request.tool_choice == ToolChoice::None;
    match (format.stage, field) {
        (FormatStage::WithTools, Some(SchemaCarrier::Field { beside_tools: false, .. }))
            if !calls_nothing =>
        {
            SchemaCarrier::Words
        }
        (FormatStage::WithTools | FormatStage::AnswerNow, Some(field)) => field,
        (FormatStage::WithTools, None) => SchemaCarrier::Words,
        (FormatStage::AnswerNow, None) | (FormatStage::AsCall, _) => SchemaCarrier::Call,
    }
}

/// Returns the schema for the wire's field (`None` if the schema goes there as it is) and whether tools may stand
/// beside it. Returns `None` if the wire has no field for such a schema.
fn format_field(profile: &Profile, model: &str, schema: &Value) -> Option<(Option<Value>, bool)> {
    let is_object = schema["type"] == "object";
    match profile.protocol {
        Protocol::Mistral => is_object.then_some((None, false)),
        Protocol::Responses => is_object.then_some((None, true)),
        Protocol::Ollama => Some((None, false)),
        Protocol::Google => Some((None, google::is_third_generation(model))),
        Protocol::Anthropic => {
            let loosened =
                vendors::loosen_schema(schema).filter(|_| anthropic::takes_schemas(model))?;
            Some((Some(loosened), true))
        }
        Protocol::OpenAi => match profile.quirks.format {
            FormatField::None => None,
            FormatField::Alone => Some((None, false)),
            FormatField::Beside => is_object.then_some((None, true)),
        },
    }
}

/// The tool that takes the answer. Its parameters are always an object.
fn build_answer_tool(schema: &Arc<RawJson>) -> Arc<ToolSpec> {
    let value: Value = schema.read().unwrap_or_default();
    let parameters = if value["type"] == "object" {
        RawJson::clone(schema)
    } else {
        let wrapped = json!({
            "type": "object",
            "properties": { WRAPPED: vendors::move_references(value, &format!("/properties/{WRAPPED}")) },
            "required": [WRAPPED],
        });
        RawJson::from_value(&wrapped).unwrap_or_else(|_| RawJson::empty_object())
    };
    Arc::new(ToolSpec {
        name: NAME.to_owned(),
        description: "Gives the final answer. Call it once, with the whole answer.".to_owned(),
        parameters,
        access: Access::Read,
        touches: Arc::default(),
        kind: ToolKind::Other,
        tier: Tier::Lean,
    })
}

/// Reports whether OpenAI, and the servers that copy it, would guarantee the form.
pub(crate) fn is_guaranteed(format: &AnswerFormat) -> bool {
    format.schema.read::<Value>().is_ok_and(|schema| vendors::is_strict(&schema))
}

/// Reports whether the answer is wrapped if it comes as a call.
pub(crate) fn is_wrapped(format: &AnswerFormat) -> bool {
    format.schema.read::<Value>().is_ok_and(|schema| schema["type"] != "object")
}
