//! Finds the tool that a refusal is about. Pure.

use std::sync::Arc;

use gnoma_core::ToolSpec;

/// The names of lists of tools. If one list stands within another, the position in the inner one counts.
const LISTS: [&str; 4] = ["function_declarations", "functiondeclarations", "tools", "functions"];
/// Most signs between the name of a list and the number of a tool: `tools[1`, `tools.1`, `'tools', 1`, `"tools"][1`.
const MAX_SIGNS: usize = 4;
/// Words that stand before the name of a tool.
const NAMED: [&str; 6] = ["function '", "function `", "function \"", "tool '", "tool `", "tool \""];
/// Words for the parts of a tool that a server may refuse.
const PARTS: [&str; 8] = [
    "schema",
    "parameters",
    "properties",
    "'type'",
    ".name",
    "description",
    "declaration",
    "grammar",
];
/// Words of servers for a schema that they cannot read, if they do not say to which tool it belongs.
const SCHEMAS: [&str; 12] = [
    "schema",
    "grammar",
    "tools.function",
    "function.parameters",
    "function parameters",
    "tool parameters",
    "functiondeclaration",
    "function_declaration",
    "function declaration",
    "tool definition",
    "tools/",
    "['tools'",
];
/// The same in other languages: all words of a row.
const SCHEMAS_ABROAD: [[&str; 2]; 4] =
    [["工具", "参数"], ["工具", "定义"], ["函数", "参数"], ["tools", "参数"]];
/// The form of the answer, which is no tool.
const ANSWER_FORMS: [&str; 7] = [
    "response_format",
    "response_schema",
    "responseschema",
    "responsejsonschema",
    "response_json_schema",
    "output_format",
    "text.format",
];
/// Parts of the conversation, which is not what tools are offered in.
const CONVERSATION: [&str; 6] =
    ["messages.", "messages[", "contents[", "input[", "tool_use", "tool_result"];

/// The name of the tool whose description a server refuses, in its words (in small letters) or in the field that it
/// names. The only tool is never it: without that, the request would be another one.
pub(super) fn refused_tool(
    text: &str,
    param: Option<&str>,
    tools: &[Arc<ToolSpec>],
) -> Option<String> {
    let all = [param.unwrap_or_default(), text];
    let says = |words: &[&str]| all.iter().any(|text| words.iter().any(|word| text.contains(word)));
    let is_about_part = says(&PARTS) || all.iter().any(|text| number_in_list(text).is_some());
    if tools.len() < 2 || !is_about_part || says(&CONVERSATION) {
        return None;
    }
    let is_named = |tool: &&Arc<ToolSpec>| {
        let name = tool.name.to_ascii_lowercase();
        // The names of built-in tools are words that mean other things too.
        let is_word = !name.contains("__");
        let (wire, is_quoted) = (name.replace('.', "_"), is_quoted_name);
        all.iter().any(|text| {
            if is_word {
                is_quoted(text, &name) || is_quoted(text, &wire)
            } else {
                has_word(text, &name) || has_word(text, &wire)
            }
        })
    };
    // A gateway may have sorted the tools or added some, so a name counts more than a number, and a number that
    // leads to a built-in tool is another list's.
    let is_foreign = |tool: &&Arc<ToolSpec>| tool.name.contains("__");
    let numbered = || {
        let number = all.iter().find_map(|text| number_in_list(text))?;
        tools.get(number).filter(is_foreign)
    };
    tools.iter().find(is_named).or_else(numbered).map(|tool| tool.name.clone())
}

/// Reports whether `text`, in small letters, is about the schema of a tool, and does not say of which. `has_form`
/// tells that the answer has a form of its own, which has a schema too.
pub(super) fn is_about_schema(text: &str, has_form: bool) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_abroad = SCHEMAS_ABROAD.iter().any(|row| row.iter().all(|word| text.contains(word)));
    let is_schema = says(&SCHEMAS) || is_abroad;
    let is_of_tool = !has_form || says(&["tool", "function"]) || is_abroad;
    is_schema && is_of_tool && !says(&ANSWER_FORMS) && !says(&CONVERSATION)
}

/// Returns the number of tools that a server takes after it refused `count` of them for their number.
pub(super) fn tool_limit(text: &str, param: Option<&str>, count: usize) -> Option<usize> {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_of_list = param == Some("tools")
        || says(&[
            "'tools'",
            "`tools`",
            "\"tools\"",
            "too many tools",
            "number of tools",
            "tools array",
            "number of functions",
            "too many functions",
            "工具数量",
        ]);
    let is_many = says(&[
        "too long",
        "too many",
        "at most",
        "maximum",
        "exceed",
        "limit",
        "less than",
        "超过",
        "最多",
    ]);
    if !is_of_list || !is_many || says(&CONVERSATION) {
        return None;
    }
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    numbers.filter(|number| (1..count).contains(number)).max()
}

/// The number behind the name of a list of tools.
fn number_in_list(text: &str) -> Option<usize> {
    LISTS.iter().find_map(|list| {
        text.match_indices(list).find_map(|(at, _)| number_behind(text.get(at + list.len()..)?))
    })
}

fn number_behind(after: &str) -> Option<usize> {
    let start =
        after.find(|c: char| !matches!(c, '[' | ']' | '.' | '/' | '\'' | '"' | ',' | ' '))?;
    // A sentence may go on with a number: only signs of a path lead to one.
    let signs = after.get(..start)?;
    let is_path = !signs.is_empty() && !signs.starts_with([',', ' ']) && !signs.contains(". ");
    if !is_path || signs.len() > MAX_SIGNS {
        return None;
    }
    let digits = after.get(start..)?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

fn is_quoted_name(text: &str, name: &str) -> bool {
    NAMED.iter().any(|before| {
        text.match_indices(before).any(|(at, _)| {
            let after = text.get(at + before.len()..).and_then(|after| after.strip_prefix(name));
            after.is_some_and(|after| after.starts_with(['\'', '`', '"']))
        })
    })
}

/// Reports whether a name stands in a text, and not as a part of another one.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        RawJson,
        tool::{Access, Tier, ToolKind},
    };

    use super::*;

    fn tools(names: &[&str]) -> Vec<Arc<ToolSpec>> {
        let tool = |name: &&str| {
            Arc::new(ToolSpec {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: RawJson::empty_object(),
                access: Access::Execute,
                touches: [].into(),
                kind: ToolKind::Other,
                tier: Tier::Full,
            })
        };
        names.iter().map(tool).collect()
    }

    #[test]
    fn schema_error_identifies_the_rejected_tool() {
        let all = tools(&["fs.read", "mcp__s__odd", "mcp__t__other"]);
        for (text, param, name) in [
            ("tools.1.custom.input_schema.type: field required", None, Some("mcp__s__odd")),
            ("tools.2.custom.input_schema: json schema is invalid", None, Some("mcp__t__other")),
            (
                "invalid schema for function 'mcp__s__odd': x is not valid",
                None,
                Some("mcp__s__odd"),
            ),
            ("invalid schema", Some("tools[2].function.parameters"), Some("mcp__t__other")),
            (
                "invalid value at 'tools[0].function_declarations[1].parameters'",
                None,
                Some("mcp__s__odd"),
            ),
            ("tool `fs_read` has a schema that is not supported", None, Some("fs.read")),
            ("['body', 'tools', 1, 'function', 'parameters']: invalid", None, Some("mcp__s__odd")),
            ("/tools/2/function/parameters: unknown keyword", None, Some("mcp__t__other")),
            (
                "unable to submit request because `mcp__t__other` functiondeclaration `parameters.x` schema didn't \
                 specify the schema type field",
                None,
                Some("mcp__t__other"),
            ),
            ("schema of mcp__s__odd_2 is invalid", None, None),
            ("messages.1.content.0.tool_use.name: mcp__s__odd has no schema", None, None),
            ("tools, 1 of them with a schema, were sent", None, None),
            ("tools.9.custom.input_schema.type: field required", None, None),
            ("tools.0.custom.input_schema.type: field required", None, None),
            (
                "invalid schema for function 'mcp__t__other': array schema missing items",
                Some("tools[1].parameters"),
                Some("mcp__t__other"),
            ),
            ("invalid schema for function 'gone'", None, None),
            ("tools are not supported", None, None),
            ("messages.1.content.0: schema", None, None),
        ] {
            assert_eq!(refused_tool(text, param, &all).as_deref(), name, "{text}");
        }
        let only = tools(&["mcp__s__odd"]);
        assert_eq!(refused_tool("tools.0.custom.input_schema: no", None, &only), None);
    }
    #[test]
    fn schema_errors_without_a_tool_name_are_recognized() {
        for text in [
            "invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <at \
             path 'properties.x': type is not defined>",
            "the provided json schema contains features not supported by xgrammar.",
            "json schema conversion failed: unrecognized schema",
            "failed to initialize samplers: failed to parse grammar",
            "工具参数格式不正确",
        ] {
            assert!(is_about_schema(text, false), "{text}");
        }
        for text in [
            "messages.1.content.0: does not match the schema",
            "invalid schema for response_format 'answer'",
            "temperature must be at most 1",
            "internal server error",
            "",
        ] {
            assert!(!is_about_schema(text, false), "{text}");
        }
        assert!(!is_about_schema("invalid json schema: unsupported keyword", true));
    }

    #[test]
    fn tool_count_limit_is_parsed_from_the_error() {
        let text = "invalid 'tools': array too long. expected an array with maximum length 128, but got an array \
                    with length 142 instead.";
        assert_eq!(tool_limit(text, Some("tools"), 142), Some(128));
        assert_eq!(tool_limit("too many tools: at most 64 are allowed", None, 70), Some(64));
        for text in [
            "invalid 'messages[3].tool_calls': array too long. expected maximum length 128",
            "the tools array is not supported",
            "too many tokens: 100",
        ] {
            assert_eq!(tool_limit(text, None, 142), None, "{text}");
        }
    }
}
