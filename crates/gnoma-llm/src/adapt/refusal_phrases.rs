//! Phrases of servers about parameters that they do not take.

/// That something is not taken.
pub(super) const UNKNOWN: &[&str] = &[
    "unsupported",
    "not supported",
    "not support",
    "n't support",
    "no longer supported",
    "unknown",
    "unrecognized",
    "unrecognised",
    "not recognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "not available",
    "not enabled",
    "not accept",
    "extra inputs",
    "extra_forbidden",
    "extra fields",
    "deprecated",
    "cannot find field",
    "cannot be used",
    "invalid field",
    "invalid parameter",
    "only the default",
    "does not exist",
    "requires --",
];
/// What is clear whatever the status.
pub(super) const CLEAR: &[&str] = &[
    "no endpoints found that support",
    "image input is not supported",
    "does not support tools",
    "does not support thinking",
];
pub(super) const NO_TOOLS: &[&str] = &[
    "support tools",
    "support tool use",
    "support tool calling",
    "support function call",
    "support functions",
    "function call is not supported",
    "tool calls are not supported",
    "tools is not supported",
    "tools are not supported",
    "tools not supported",
    "tool use is not supported",
    "tool use is not enabled",
    "tool calling is not supported",
    "function calling is not supported",
    "function calling is not enabled",
    "requires --enable-auto-tool-choice",
];
pub(super) const NO_STREAM: &[&str] =
    &["support streaming", "streaming is not supported", "streaming not supported"];
/// Only a part of what is said of tools, so that they are not all meant.
pub(super) const PART_OF_TOOLS: &[&str] =
    &["tools.", "tools[", "schema", "strict", "function.", "'parameters'", "tool_choice"];
pub(super) const TOOL_CHOICE: &[&str] = &[
    "tool_choice",
    "tool choice",
    "toolconfig",
    "tool_config",
    "functioncallingconfig",
    "forced function calling",
];
pub(super) const PICTURES: &[&str] = &[
    "image_url",
    "image",
    "images",
    "vision",
    "multimodal",
    "multi-modal",
    "picture",
    "inlinedata",
];
/// That a picture is the reason, in other words.
pub(super) const NO_PICTURES: &[&str] = &[
    "support image input",
    "not a multimodal",
    "at most 0 image",
    "could not process image",
    "image exceeds",
    "unsupported image",
];
/// That the content of a message is taken as a plain text only, and not as a list, in which pictures stand.
pub(super) const PLAIN_CONTENT: &[&str] = &[
    "must be a string",
    "expected a string",
    "expected string",
    "should be a valid string",
    "str type expected",
];
/// What is thought must come back; it did not, or not as it was.
pub(super) const NO_THINKING: &[&str] =
    &["expected `thinking`", "must start with a thinking block"];
pub(super) const EARLIER: &[&str] = &[
    "signature",
    "reasoning_content",
    "reasoning_details",
    "encrypted content",
    "encrypted_content",
    "redacted_thinking",
    "thinking block",
    "type 'reasoning'",
    "`thinking` or",
];
/// That the wish for more or less thinking is the reason, in other words.
pub(super) const NO_EFFORT: &[&str] =
    &["think value", "only works in thinking mode", "only enabled when thinking"];
pub(super) const EFFORT: &[&str] = &[
    "reasoning_effort",
    "reasoningeffort",
    "reasoning.effort",
    "reasoning effort",
    "support reasoning",
    "thinking",
    "think value",
    "thinkingconfig",
    "thinking_config",
    "output_config",
    "enable_thinking",
    "chat_template_kwargs",
    "prompt_mode",
    "'reasoning'",
    "\"reasoning\"",
    "`reasoning`",
    "\"think\"",
    "'think'",
];
pub(super) const SYSTEM: &[&str] = &[
    "developer instruction",
    "system instruction",
    "system_instruction",
    "system role",
    "system message",
    "system prompt",
    "developer role",
    "developer message",
    "role 'system'",
    "role `system`",
    "role \"system\"",
    "role: system",
    "'system' role",
    "'system'",
    "'developer'",
];
pub(super) const ANSWER_LAST: &[&str] = &[
    "assistant message prefill",
    "assistant prefill",
    "must end with a user message",
    "expected last role user",
    "last message must",
    "last message cannot be",
    "prefill is not supported",
    "must be a user message",
];
/// Never left out, or changed in a way of their own.
pub(super) const KEPT: &[&str] = &[
    "model",
    "messages",
    "input",
    "contents",
    "stream",
    "store",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "system",
    "instructions",
    "systemInstruction",
    "tools",
    "tool_choice",
    "toolConfig",
    "response_format",
    "format",
    "text",
    "generationConfig",
    "generationConfig.maxOutputTokens",
    "generationConfig.responseMimeType",
    "generationConfig.responseJsonSchema",
    "options",
    "options.num_predict",
];
/// Fields that hold fields.
pub(super) const HOLDERS: &[&str] = &["generationConfig", "options"];
