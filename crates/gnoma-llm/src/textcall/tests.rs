use gnoma_core::{
    Accumulator, Content, RawJson, Response,
    tool::{Access, Tier, ToolKind},
};
use proptest::prelude::*;

use super::*;

fn tool(name: &str, parameters: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: RawJson::parse(parameters).unwrap(),
        access: Access::Read,
        touches: [].into(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    })
}

fn filter() -> TextCalls {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},
        "all":{"type":"boolean"},"edits":{"type":"array"}}}"#;
    let tools: Arc<[_]> =
        Arc::new([tool("fs.read", schema), tool("fs.edit", schema), tool("bash", "{}")]);
    TextCalls::new(Arc::new(NameMap::new(&tools)), tools)
}

fn delta(text: &str) -> StreamEvent {
    StreamEvent::TextDelta { slot: 0, text: text.to_owned() }
}

/// What becomes of an answer that arrives in `pieces`, each a network read.
fn read_with(pieces: &[&str], stop: Option<StopReason>) -> Response {
    let mut filter = filter();
    let mut answer = Accumulator::new();
    let mut events = Events::new();
    for piece in pieces {
        events.push_back(delta(piece));
        filter.filter_events(&mut events);
        events.drain(..).for_each(|event| answer.push(&event));
    }
    events.extend(stop.map(StreamEvent::Stop));
    filter.finish(&mut events);
    events.drain(..).for_each(|event| answer.push(&event));
    answer.into_response()
}

fn read(pieces: &[&str]) -> Response {
    read_with(pieces, Some(StopReason::EndTurn))
}

/// The answer in short: text as it is, thinking in `«»`, calls as `NAME(ARGUMENTS)`.
fn short(response: &Response) -> Vec<String> {
    let block = |block: &Content| match block {
        Content::Text(text) => text.text.clone(),
        Content::Thinking(thinking) => format!("«{}»", thinking.text),
        Content::ToolCall(call) => {
            let mark = if call.broken { "!" } else { "" };
            format!("{}({}){mark}", call.name, call.arguments)
        }
        other => format!("{other:?}"),
    };
    response.content.iter().map(block).collect()
}

#[test]
fn text_deltas_that_arrive_together_stay_separate() {
    let mut events: Events = ["one ", "two ", "three"].map(delta).into_iter().collect();
    filter().filter_events(&mut events);
    assert_eq!(events.len(), 3, "{events:?}");
}

/// Answers with calls, and what is in them.
const ANSWERS: &[(&str, &[&str])] = &[
    (
        "I'll look.\n```json\n{\"name\": \"fs_read\", \"arguments\": {\"path\": \"a.rs\"}}\n```\n",
        &["I'll look.\n", r#"fs.read({"path": "a.rs"})"#],
    ),
    (
        "<tools>\n{\"name\": \"fs_read\", \"arguments\": {\"path\": \"a.md\"}}\n</tools>",
        &[r#"fs.read({"path": "a.md"})"#],
    ),
    (
        "```tool_call\n{\"tool\":\"bash\",\"input\":{\"command\":\"ls }\"}}\n```",
        &[r#"bash({"command":"ls }"})"#],
    ),
    (
        "```\n[{\"name\":\"bash\",\"arguments\":{}},\n{\"name\":\"fs.read\",\"parameters\":{\"path\":\"b\"}}]\n```",
        &["bash({})", r#"fs.read({"path":"b"})"#],
    ),
    (
        "<tool_call>\n{\"name\":\"bash\",\"arguments\":{\"command\":\"a < b\"}}\n</tool_call>\n<tool_call>{\"name\":\"fs.read\",\"arguments\":\"{\\\"path\\\":\\\"c\\\"}\"}",
        &[r#"bash({"command":"a < b"})"#, r#"fs.read({"path":"c"})"#],
    ),
    (
        "Reading it now: <tool_call>{\"name\":\"fs_read\",\"arguments\":{\"path\":\"it's\"}}}</tool_call>\n<|im_end|>",
        &["Reading it now: ", r#"fs.read({"path":"it's"})"#],
    ),
    ("<function=bash>{\"command\":\"ls\"}</function>", &[r#"bash({"command":"ls"})"#]),
    (
        "<tool_call>\n<function=fs_edit>\n<parameter=path>\n7\n</parameter>\n<parameter=limit>\n7\n</parameter>\n<parameter=all>\ntrue\n</parameter>\n<parameter=edits>\n[{\"old\": 1}]\n</parameter>\n<parameter=note>\nfirst\n\nlast\n</parameter>\n</function>\n</tool_call>",
        &[
            r#"fs.edit({"path":"7","limit":7,"all":true,"edits":[{"old":1}],"note":"first\n\nlast"})"#,
        ],
    ),
    (
        "[TOOL_CALLS][{\"name\": \"bash\", \"arguments\": {\"command\": \"pwd\"}}]",
        &[r#"bash({"command": "pwd"})"#],
    ),
    (
        "[TOOL_CALLS]bash[ARGS]{\"command\":\"id\"}[TOOL_CALLS]fs_read[ARGS]{\"path\":\"d\"}",
        &[r#"bash({"command":"id"})"#, r#"fs.read({"path":"d"})"#],
    ),
    (
        "\n{\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":{\"command\":\"w\"}}}\n",
        &[r#"bash({"command":"w"})"#],
    ),
    ("{\"tool_calls\":[{\"id\":\"1\",\"function\":\"bash\",\"args\":{}}]}", &["bash({})"]),
    (
        "Two files are left.\n\n  {\"name\": \"fs.read\",\n   \"arguments\": {\"path\": \"e\"}}\n\n{\"name\":\"bash\",\"arguments\":{}}\n",
        &["Two files are left.\n\n  ", r#"fs.read({"path": "e"})"#, "bash({})"],
    ),
    (
        "<think>\nThe user wants {\"name\":\"bash\",\"arguments\":{}}.\n</think>\n\nSure: <b>",
        &["«The user wants {\"name\":\"bash\",\"arguments\":{}}.\n»", "Sure: <b>"],
    ),
    (
        "<think></think>{'name': 'bash', 'arguments': {'command': 'ls'}}",
        &[r#"bash("{'command': 'ls'}")!"#],
    ),
    (
        "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"cat <<E\nx\nE\"}}</tool_call>",
        &["bash(\"{\\\"command\\\":\\\"cat <<E\\nx\\nE\\\"}\")!"],
    ),
    (
        "```json\n{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}\n```",
        &[r#"bash({"command":"ls"})"#],
    ),
    (
        "```xml\n<function=fs.read><parameter=path>f</parameter></function>\n```\n",
        &[r#"fs.read({"path":"f"})"#],
    ),
    // A result that the model invents.
    (
        "<tool_call>{\"name\":\"fs_read\",\"arguments\":{\"path\":\"a\"}}</tool_call>\nIt holds 7.\n",
        &[r#"fs.read({"path":"a"})"#, "It holds 7.\n"],
    ),
    (
        "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call><|im_end|><|im_start|>user\nOK",
        &["bash({})", "user\nOK"],
    ),
    (
        "<|python_tag|>{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}<|eom_id|>",
        &[r#"bash({"command": "ls"})"#],
    ),
    ("<|tool_call|>[{\"name\":\"bash\",\"arguments\":{}}]", &["bash({})"]),
    ("<TOOLCALL>[{\"name\":\"bash\",\"arguments\":{}}]</TOOLCALL>", &["bash({})"]),
    ("{\"name\":\"bash\",\"arguments\":{}}<|eot_id|>", &["bash({})"]),
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{\"command\":\"ls\"}<|tool_call_end|><|tool_call_begin|>functions.fs_read:1<|tool_call_argument_begin|>{\"path\":\"a\"}<|tool_call_end|><|tool_calls_section_end|>",
        &[r#"bash({"command":"ls"})"#, r#"fs.read({"path":"a"})"#],
    ),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{\"command\":\"ls\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &[r#"bash({"command":"ls"})"#],
    ),
    (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{\"command\":\"ls\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &[r#"bash({"command":"ls"})"#],
    ),
    (
        "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{\"command\":\"ls\"}<|call|>",
        &[r#"bash({"command":"ls"})"#],
    ),
    (
        "<|channel|>analysis<|message|>Not bash.<|end|><|start|>assistant<|channel|>commentary to=functions.fs_read<|message|>{\"path\":\"a\"}",
        &[r#"fs.read({"path":"a"})"#],
    ),
    (
        "<tool_call>fs_read\n<arg_key>path</arg_key>\n<arg_value>7</arg_value>\n<arg_key>limit</arg_key><arg_value>7</arg_value>\n</tool_call>",
        &[r#"fs.read({"path":"7","limit":7})"#],
    ),
    (
        "<minimax:tool_call>\n<invoke name=\"bash\">\n<parameter name=\"command\">echo A1</parameter>\n</invoke>\n<invoke name=\"bash\">\n</invoke>\n</minimax:tool_call>",
        &[r#"bash({"command":"echo A1"})"#, "bash({})"],
    ),
    (
        "<function_calls>\n<invoke name=\"bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>\n</function_calls>",
        &[r#"bash({"command":"ls"})"#],
    ),
];

/// Answers that look like calls and are none.
const TEXTS: &[&str] = &[
    "",
    " \n ",
    "plain",
    "An array `[1]`, a tag <b>, and { braces }\n{ return; }\n[link](x)\n",
    "```rust\nfn main() {}\n```\n{\"not\": \"a call\"}\n",
    "```json\n{\"name\": \"left-pad\", \"version\": \"1.0.0\"}\n```",
    "```json\n{\"name\": \"bash\", \"description\": \"runs\", \"parameters\": {}}\n```",
    "```text\n{\"name\":\"bash\",\"arguments\":{}}\n<function=bash>\n```\nThat is the form.",
    "Write `<tool_call>` and then `</tool_call>`, or <tool_call>like this</tool_call>.",
    "<tool_call>{\"name\":\"unknown\",\"arguments\":{}}</tool_call>",
    "<function=unknown>{}</function> <function",
    "{\"name\":\"bash\",\"arguments\":{}} is the form\n",
    "see {\"name\":\"bash\",\"arguments\":{}}\n",
    "[TOOL_CALLS] is a token of Mistral's, and one that nobody writes unless they mean it",
    "[TOOL_CALLS]nobody{\"a\":1}",
    "{\"name\":\"bash\"}",
    "So the call must be:\n\n{\"name\":\"bash\",\"arguments\":{}}\n\nThen I am done.",
    "[[{\"a\":[]}]]\n[]\n{}\n",
    "text <think>not at the start</think>",
    "```json\n{\"name\":\"bash\",\"arguments\":{}}\nmore\n```",
    "``` `` ` <",
    // A call that is explained.
    "The tag `<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>` is what Hermes writes.",
    "The tag <tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call> is what Hermes writes.",
    "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call> is what Hermes writes.",
    "```json\n{\"name\":\"bash\",\"arguments\":{}}\n```\nThat is the format.",
    "It must be `<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>",
    "The file says:\n\n<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>\n\nThat is odd.",
    "To run it, send:\n```json\n{\"name\":\"bash\",\"arguments\":{}}\n```\nThat is the format.",
    "Thus:\n```tool_call\n{\"name\":\"bash\",\"arguments\":{}}\n```\nThat is the format.",
    "[TOOL_CALLS]bash[ARGS]{\"a\":1} is Mistral's",
    "<invoke name=\"unknown\"></invoke>",
    "<|channel|>analysis<|message|>I could call bash with {\"command\":\"ls\"}",
    "`<|im_end|>` ends a turn, <|>, <|im_end|> too, and so does\n```\n<|im_end|>\n```",
];

#[test]
fn tool_calls_in_text_are_found_in_every_known_format() {
    for (answer, expected) in ANSWERS {
        let response = read(&[answer]);
        assert_eq!(short(&response), *expected, "{answer}");
        let has_calls = response.tool_calls().next().is_some();
        let stop = if has_calls { StopReason::ToolUse } else { StopReason::EndTurn };
        assert_eq!(response.stop, Some(stop), "{answer}");
    }
}

#[test]
fn text_without_tool_calls_is_unchanged() {
    for text in TEXTS {
        let whole: String = short(&read(&[text])).concat();
        assert_eq!(whole, *text);
    }
}

#[test]
fn chat_template_tokens_are_removed_from_the_answer() {
    for text in ["<|im_end|>", "\n<｜end▁of▁sentence｜>", "<|im_end|>\n<|endoftext|>", "</s>"]
    {
        assert!(short(&read(&[text])).is_empty(), "{text}");
    }
    assert_eq!(short(&read(&["Hello.<|im_", "end|>"])), ["Hello."]);
}

#[test]
fn text_tool_call_filter_streams_plain_text_immediately() {
    let mut filter = filter();
    for (text, passed) in [
        ("Let me ", "Let me "),
        ("see <", "see "),
        ("b> and\n{", "<b> and\n"),
        ("\"version\": ", "{\"version\": "),
        ("1}\n```", "1}\n"),
        ("rs\n{", "```rs\n{"),
        (
            "\"name\":\"bash\",\"arguments\":{}}\n```\n",
            "\"name\":\"bash\",\"arguments\":{}}\n```\n",
        ),
    ] {
        let mut events = Events::from([delta(text)]);
        filter.filter_events(&mut events);
        let got: String = events
            .iter()
            .map(|event| match event {
                StreamEvent::TextDelta { text, .. } => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(got, passed, "after {text:?}");
    }
}

#[test]
fn text_tool_calls_stay_text_if_the_server_sends_tool_calls() {
    let mut filter = filter();
    let mut events = Events::from([
        delta("<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>\n"),
        StreamEvent::ToolCallStart { slot: 1, id: "c".into(), name: "bash".into() },
        StreamEvent::ToolCallDone { slot: 1 },
        StreamEvent::TextDelta { slot: 2, text: "{\"name\":\"bash\",\"arguments\":{}}".into() },
        StreamEvent::Stop(StopReason::ToolUse),
    ]);
    let before = events.clone();
    filter.filter_events(&mut events);
    assert_eq!(events, before);
}

#[test]
fn truncated_text_tool_call_stays_text() {
    let text = "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"l";
    for stop in [Some(StopReason::MaxTokens), None] {
        let response = read_with(&[text], stop);
        assert_eq!(short(&response), [text]);
        assert_eq!(response.stop, stop);
    }
}

#[test]
fn text_tool_call_filter_buffer_is_bounded() {
    let mut filter = filter();
    let start = "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"";
    let mut events = Events::from([delta(start)]);
    filter.filter_events(&mut events);
    assert!(events.is_empty());
    events.push_back(delta(&"x".repeat(MAX_HELD_BYTES)));
    filter.filter_events(&mut events);
    assert_eq!(events.len(), 1);
    assert!(filter.held.is_empty());
    let mut filter = self::filter();
    let mut events = Events::from([delta(&" ".repeat(MAX_HELD_BYTES + 1))]);
    filter.filter_events(&mut events);
    assert!(filter.held.is_empty());
}

#[test]
fn truncated_think_block_stays_thinking() {
    for stop in [Some(StopReason::MaxTokens), Some(StopReason::EndTurn), None] {
        assert_eq!(short(&read_with(&["<think>if a </", "t"], stop)), ["«if a </t»"]);
    }
}

/// `text` in pieces that end at `cuts`.
fn cut<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    ends.retain(|end| text.is_char_boundary(*end));
    ends.extend([0, text.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("<tool_call>"),
        Just("</tool_call>"),
        Just("<function=bash>"),
        Just("</function>"),
        Just("<parameter=a>"),
        Just("</parameter>"),
        Just("[TOOL_CALLS]"),
        Just("[ARGS]"),
        Just("```json\n"),
        Just("```"),
        Just("`"),
        Just("<|python_tag|>"),
        Just("<invoke name=\"bash\">"),
        Just("</invoke>"),
        Just("<arg_key>"),
        Just("\n"),
        Just(" "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("\""),
        Just("\"name\""),
        Just(":"),
        Just("\"bash\""),
        Just(","),
        Just("\"arguments\""),
        Just("<think>"),
        Just("</think>"),
        Just("é"),
        Just("word"),
        Just("{\"name\":\"bash\",\"arguments\":{\"a\":1}}"),
    ];
    prop::collection::vec(scrap, 0..24).prop_map(|scraps| scraps.concat())
}

proptest! {
    /// Where the network cuts an answer does not matter.
    #[test]
    fn text_tool_calls_decode_the_same_for_any_chunking(answer in 0..ANSWERS.len(), cuts in prop::collection::vec(0_usize..400, 0..12)) {
        let text = ANSWERS[answer].0;
        prop_assert_eq!(short(&read(&cut(text, &cuts))), short(&read(&[text])));
    }

    /// Nor does it in any mess that models may write.
    #[test]
    fn malformed_text_tool_calls_decode_the_same_for_any_chunking(text in scraps(), cuts in prop::collection::vec(0_usize..400, 0..12)) {
        prop_assert_eq!(short(&read(&cut(&text, &cuts))), short(&read(&[&text])));
    }

    /// Text without a call comes through byte for byte.
    #[test]
    fn text_without_tool_calls_passes_byte_for_byte(text in 0..TEXTS.len(), cuts in prop::collection::vec(0_usize..400, 0..12)) {
        let text = TEXTS[text];
        prop_assert_eq!(short(&read(&cut(text, &cuts))).concat(), text);
    }

    /// A mess in which no tool is named comes through byte for byte.
    #[test]
    fn malformed_text_without_tool_names_passes_byte_for_byte(text in scraps(), cuts in prop::collection::vec(0_usize..400, 0..12)) {
        let text = text.replace("bash", "bush");
        let is_thought = text.trim_start().starts_with(THINK);
        let text = if is_thought { format!("So: {text}") } else { text };
        prop_assert_eq!(short(&read(&cut(&text, &cuts))).concat(), text);
    }
}
