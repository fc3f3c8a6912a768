//! A prompt as a server lists it.

use serde_json::Value;

use super::{
    limits::MAX_PROMPTS,
    lists::{ListElement, ListElementError, identity_field, text_field},
    naming,
    server_prompt::ServerPrompt,
};

/// A prompt in a server's list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListedPrompt {
    pub(super) name: String,
    about: String,
    pub(super) arguments: Vec<PromptArgument>,
}

/// An argument that a prompt takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PromptArgument {
    pub(super) name: String,
    pub(super) is_required: bool,
}

impl ListElement for ListedPrompt {
    const FIELD: &'static str = "prompts";
    const KIND: &'static str = "prompt";
    const MAX: usize = MAX_PROMPTS;

    fn from_value(value: &Value) -> Result<(Self, Option<String>), ListElementError> {
        let name = identity_field(value, "name")?;
        let (description, mut odd) = text_field(value, "description");
        let about = if description.is_empty() { text_field(value, "title").0 } else { description };
        let mut arguments = Vec::new();
        match value.get("arguments") {
            None | Some(Value::Null) => {}
            Some(Value::Array(all)) => {
                for argument in all {
                    match identity_field(argument, "name") {
                        Ok(name) => arguments.push(PromptArgument {
                            name,
                            is_required: argument.get("required") == Some(&Value::Bool(true)),
                        }),
                        Err(why) => odd = Some(format!("one of its arguments is left out: {why}")),
                    }
                }
            }
            Some(_) => {
                odd = Some("its `arguments` are no list, so it is used without any".to_owned());
            }
        }
        Ok((Self { name, about, arguments }, odd))
    }

    fn identity(&self) -> &str {
        &self.name
    }
}

impl ListedPrompt {
    /// The prompt as people see it.
    pub(super) fn to_server_prompt(&self, server: &str) -> ServerPrompt {
        let hint =
            self.arguments.iter().map(|argument| format!("[{}]", to_single_line(&argument.name)));
        ServerPrompt {
            name: naming::qualified_tool_name(server, &self.name),
            hint: hint.collect::<Vec<_>>().join(" "),
            about: to_single_line(&self.about),
        }
    }
}

/// A text of a server in one line, without what steers a terminal.
fn to_single_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::lists::Collector, *};

    #[test]
    fn invalid_mcp_prompt_or_argument_is_skipped_without_the_others() {
        let mut all = Collector::<ListedPrompt>::new();
        all.add_page(&json!({"prompts": [
            {"name": "a", "arguments": [{"name": "x", "required": true}, {"name": 1}, {"name": "y", "required": "no"}]},
            {"name": "b", "arguments": 7, "description": "says\nmuch"},
            {"description": "nameless"},
            {"name": "c", "title": "last"},
        ]}));
        let shown: Vec<_> =
            all.elements.iter().map(|prompt| prompt.to_server_prompt("s")).collect();
        let hints: Vec<_> =
            shown.iter().map(|it| format!("{} {}|{}", it.name, it.hint, it.about)).collect();
        assert_eq!(hints, ["mcp__s__a [x] [y]|", "mcp__s__b |says much", "mcp__s__c |last"]);
        assert_eq!(all.describe_faults().len(), 3, "{:?}", all.describe_faults());
    }
}
