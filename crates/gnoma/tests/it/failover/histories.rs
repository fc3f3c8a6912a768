//! What one vendor's model has begun, another's is asked to go on with: real adapters over real HTTP,
//! and servers that refuse whatever the vendors would refuse. No engine.

use std::sync::Arc;

use futures_util::StreamExt as _;
use gnoma_core::{
    Accumulator, CallId, Content, Effort, Image, Message, ModelRef, ModelRequest, Provider,
    RawJson, ResultPart, StopReason, Thinking, ToolCall, ToolChoice, ToolResult, ToolSpec,
    tool::{Access, Tier, ToolKind},
};
use gnoma_llm::{Profile, connect_provider};
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{Fault, FaultStage, Reaction, Vendor};

use super::sides::{SIDES, Side};

/// One end of a conversation.
struct End {
    side: &'static Side,
    name: &'static str,
    vendor: Vendor,
    provider: Arc<dyn Provider>,
}

impl End {
    fn new(
        name: &'static str,
        side: &'static Side,
        reactions: impl IntoIterator<Item = Reaction>,
    ) -> Self {
        let vendor = side.start(reactions);
        let profile = Profile::new(name, side.protocol, vendor.url());
        let provider = connect_provider(profile, Http::new(HttpOptions::default()));
        Self { side, name, vendor, provider }
    }

    /// One that makes each of `moves`: true looks for the file, false ends the turn.
    fn moving(name: &'static str, side: &'static Side, moves: &[bool]) -> Self {
        let script = |looks: &bool| if *looks { side.looks() } else { side.ends() };
        Self::new(name, side, moves.iter().map(script).map(Reaction::Answer))
    }
}

/// A conversation, kept as a session keeps it.
struct Talk {
    history: Vec<Arc<Message>>,
    tools: Arc<[Arc<ToolSpec>]>,
}

impl Talk {
    fn new() -> Self {
        let parameters = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
        let spec = ToolSpec {
            name: "fs.read".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: RawJson::parse(parameters).unwrap(),
            access: Access::Read,
            touches: [].into(),
            kind: ToolKind::Other,
            tier: Tier::Lean,
        };
        Self { history: Vec::new(), tools: Arc::new([Arc::new(spec)]) }
    }

    fn say(&mut self, text: &str) {
        self.history.push(Arc::new(Message::user_text(text)));
    }

    /// Lets `end` say the next word and answers its calls.
    async fn hear(&mut self, end: &End) {
        let mut stream = end.provider.stream(ModelRequest {
            model: end.side.model.into(),
            system: "Be brief.".into(),
            messages: self.history.clone(),
            tools: Arc::clone(&self.tools),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: Some(8192),
            temperature: None,
            effort: Some(Effort::Low),
            context_window: None,
            format: None,
            thinking: None,
        });
        let mut answer = Accumulator::new();
        // A failure is an end like any other here: the vendors tell what was wrong with a request.
        while let Some(Ok(event)) = stream.next().await {
            answer.push(&event);
        }
        let origin = end.side.arm(end.name);
        let Some(message) = answer.into_response().into_message(Some(origin)) else { return };
        let result = |call| ToolResult::from_text(call, "one", false);
        let results: Vec<_> = message.tool_calls().map(result).collect();
        self.history.push(Arc::new(message));
        if let Ok(results) = Message::results(results) {
            self.history.push(Arc::new(results));
        }
    }
}

/// Two that take turns, in the middle of a turn and between turns, until each has seen all that the
/// other leaves behind.
#[tokio::test]
async fn histories_of_each_provider_are_accepted_by_every_other() {
    let mut violations = Vec::new();
    for from in &SIDES {
        for to in &SIDES {
            let one = End::moving("one", from, &[true, true, true, false]);
            let other = End::moving("other", to, &[true, false, true, false]);
            let mut talk = Talk::new();
            let turns: [&[&End]; 3] =
                [&[&one, &other, &other], &[&one, &other, &one, &other], &[&one]];
            for turn in turns {
                talk.say("What does it hold?");
                for end in turn {
                    talk.hear(end).await;
                }
            }
            for end in [&one, &other] {
                assert_eq!(end.vendor.requests().len(), 4, "{} and {}", from.word, to.word);
                let wrong = end.vendor.violations().into_iter();
                let place = format!("{} and {}", from.word, to.word);
                violations.extend(wrong.map(|wrong| format!("{place}: {wrong}")));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// What is kept of an answer that broke off can be sent to everybody, its own vendor included.
#[tokio::test]
async fn interrupted_answer_of_each_provider_is_accepted_by_every_other() {
    let mut violations = Vec::new();
    for from in &SIDES {
        for to in &SIDES {
            for stage in [FaultStage::Thinking, FaultStage::Text, FaultStage::Arguments] {
                let broken = Reaction::Break { script: from.half(), stage, fault: Fault::Cut };
                let reactions =
                    [Reaction::Answer(from.looks()), broken, Reaction::Answer(from.ends())];
                let one = End::new("one", from, reactions);
                let other = End::moving("other", to, &[true, false]);
                let mut talk = Talk::new();
                talk.say("What does it hold?");
                talk.hear(&one).await;
                talk.hear(&one).await;
                talk.say("Go on.");
                talk.hear(&other).await;
                talk.hear(&other).await;
                talk.say("And now?");
                talk.hear(&one).await;
                for end in [&one, &other] {
                    let wrong = end.vendor.violations().into_iter();
                    let place = format!("{} → {}, {stage:?}", from.word, to.word);
                    violations.extend(wrong.map(|wrong| format!("{place}: {wrong}")));
                }
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Histories that some model somewhere leaves behind, by name.
fn odd() -> Vec<(&'static str, Vec<Message>)> {
    let call = |id: &str| {
        let arguments = RawJson::parse(r#"{"path":"a.txt"}"#).unwrap();
        ToolCall::new(CallId::new(id), "fs.read", arguments)
    };
    let said = |content: Vec<Content>| {
        let origin = ModelRef { provider: "elsewhere".into(), model: "other".into() };
        Message::assistant(content, Some(origin), Some(StopReason::ToolUse)).unwrap()
    };
    let asks = || Message::user_text("What does it hold?");
    let called = |calls: &[ToolCall], mut content: Vec<Content>, text: &str| {
        let results = calls.iter().map(|call| ToolResult::from_text(call, text, false)).collect();
        content.splice(0..0, calls.iter().cloned().map(Content::ToolCall));
        vec![asks(), said(content), Message::results(results).unwrap()]
    };
    let broken = ToolCall {
        arguments: RawJson::from_value(&r#"{"pa"#).unwrap(),
        broken: true,
        ..call("c1")
    };
    let strange = [call(&"x".repeat(300)), call("a b\u{e9}:1"), call("1")];
    let thought = Thinking { text: "hm".into(), signature: Some("c2ln".into()), item: None };
    let mut picture = ToolResult::from_text(&call("c1"), "", false);
    picture.parts = vec![ResultPart::Image(Image::from_bytes("image/png", b"png"))];
    let shown = vec![
        asks(),
        said(vec![Content::ToolCall(call("c1"))]),
        Message::results(vec![picture]).unwrap(),
    ];
    vec![
        ("words behind a call", called(&[call("c1")], vec![Content::from_text("I look.")], "one")),
        ("a broken call", called(&[broken], vec![], "the arguments are no JSON")),
        ("strange ids", called(&strange, vec![], "one")),
        ("an empty result", called(&[call("c1")], vec![], "")),
        ("a picture as a result", shown),
        ("nothing but a thought", vec![asks(), said(vec![Content::Thinking(thought)]), asks()]),
        ("two questions", vec![asks(), asks()]),
    ]
}

#[tokio::test]
async fn odd_histories_are_accepted_by_every_provider() {
    let mut violations = Vec::new();
    for side in &SIDES {
        for (name, history) in odd() {
            let end = End::moving("one", side, &[true, false]);
            let mut talk = Talk::new();
            talk.history = history.into_iter().map(Arc::new).collect();
            talk.hear(&end).await;
            talk.hear(&end).await;
            let wrong = end.vendor.violations().into_iter();
            violations.extend(wrong.map(|wrong| format!("{name}: {wrong}")));
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
