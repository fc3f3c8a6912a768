//! Which of several tools a refusal is about. Pure.

use std::sync::Arc;

use gnoma_core::ToolSpec;

/// What stands before the number of a tool, where the number of the list that it is in comes first.
const NESTED: [&str; 4] = [
    "function_declarations[",
    "functiondeclarations[",
    "function_declarations.",
    "functiondeclarations.",
];
/// What stands before the number of a tool.
const NUMBERED: [&str; 2] = ["tools[", "tools."];
/// What stands before the name of a tool.
const NAMED: [&str; 6] = ["function '", "function `", "function \"", "tool '", "tool `", "tool \""];
/// What of a tool a server may refuse.
const PARTS: [&str; 6] = ["schema", "parameters", "properties", "'type'", ".name", "description"];

/// The name of the tool whose description a server refuses, in its words (in small letters) or in the field that it
/// names. The only tool is never it: without that, the request would be another one.
pub(super) fn refused_tool(
    text: &str,
    param: Option<&str>,
    tools: &[Arc<ToolSpec>],
) -> Option<String> {
    let all = [param.unwrap_or_default(), text];
    let is_about_part = all.iter().any(|text| PARTS.iter().any(|part| text.contains(part)));
    if tools.len() < 2 || !is_about_part {
        return None;
    }
    let numbered = all.iter().find_map(|text| {
        let number = NESTED.iter().find_map(|before| number_behind(text, before));
        number.or_else(|| NUMBERED.iter().find_map(|before| number_behind(text, before)))
    });
    if let Some(number) = numbered {
        return tools.get(number).map(|tool| tool.name.clone());
    }
    let named = NAMED.iter().find_map(|before| {
        let (_, after) = text.split_once(before)?;
        after.split(['\'', '`', '"']).next()
    })?;
    let is_named =
        |name: &str| name.replace('.', "_").eq_ignore_ascii_case(&named.replace('.', "_"));
    tools.iter().find(|tool| is_named(&tool.name)).map(|tool| tool.name.clone())
}

fn number_behind(text: &str, before: &str) -> Option<usize> {
    let (_, after) = text.split_once(before)?;
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after.get(..end)?.parse().ok()
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
    fn a_refusal_that_names_a_schema_is_of_one_tool() {
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
            ("tools.9.custom.input_schema.type: field required", None, None),
            ("invalid schema for function 'gone'", None, None),
            ("tools are not supported", None, None),
            ("messages.1.content.0: schema", None, None),
        ] {
            assert_eq!(refused_tool(text, param, &all).as_deref(), name, "{text}");
        }
        let only = tools(&["mcp__s__odd"]);
        assert_eq!(refused_tool("tools.0.custom.input_schema: no", None, &only), None);
    }
}
