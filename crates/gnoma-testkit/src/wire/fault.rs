//! Streams that begin well and go wrong in a chosen place.

use bytes::Bytes;

use super::{
    failure::{self, Failure},
    protocol::Wire,
    script::Script,
};
use crate::server::{End, Reply, ReplyBody};

/// The stage of an answer at which the fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultStage {
    /// The first piece of thinking is out; on a wire that shows none, nothing but the beginning.
    Thinking,
    /// The first piece of text is out.
    Text,
    /// Half of the first call's arguments is out. Wires that send a call whole are cut within it.
    Arguments,
}

/// The fault that breaks an answer.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The connection is closed without HTTP's last chunk.
    Cut,
    /// The connection is reset.
    Reset,
    /// The answer ends properly as far as HTTP is concerned.
    TooShort,
    /// The connection stays open and silent.
    Silence,
    /// The vendor says in the stream that it has failed.
    Told(Failure),
    /// Bytes that are no answer.
    Garbage,
}

pub(super) fn broken_reply(wire: Wire, script: &Script, stage: FaultStage, fault: &Fault) -> Reply {
    let reply = wire.stream_reply(script);
    let ReplyBody::Bytes(whole) = &reply.body else { return reply };
    let whole = String::from_utf8_lossy(whole).into_owned();
    let place = StreamOffset::find_stage(wire, &whole, script, stage);
    let end = match fault {
        Fault::Cut => End::Abort(place.cut),
        Fault::Reset => End::Reset(place.cut),
        Fault::TooShort => End::Truncate(place.cut),
        Fault::Silence => End::Stall(place.cut),
        Fault::Told(failure) => {
            let record = failure::failure_record(wire, failure);
            return with_body(reply, format!("{}{record}", &whole[..place.record_end]));
        }
        Fault::Garbage => {
            let record = wire.garbage_record();
            return with_body(reply, format!("{}{record}", &whole[..place.record_end]));
        }
    };
    reply.with_end(end)
}

fn with_body(mut reply: Reply, body: String) -> Reply {
    reply.body = ReplyBody::Bytes(Bytes::from(body));
    reply
}

/// A place in a stream, in bytes from its start.
struct StreamOffset {
    /// The place at which the stream breaks off.
    cut: usize,
    /// End of the record that it breaks off in or behind.
    record_end: usize,
}

impl StreamOffset {
    fn find_stage(wire: Wire, whole: &str, script: &Script, stage: FaultStage) -> Self {
        let mut at = 0;
        let records: Vec<(usize, &str)> = whole
            .split_inclusive(wire.record_end())
            .map(|record| {
                at += record.len();
                (at, record)
            })
            .collect();
        let holding = |from: usize, words: &str| {
            let words = inside_json(words);
            let found = records.iter().skip(from).position(|(_, record)| record.contains(&words));
            found.map(|found| found + from)
        };
        let first = |words: &[String]| words.first().and_then(|words| holding(0, words));
        let nth = match stage {
            FaultStage::Thinking => first(&script.thinking),
            FaultStage::Text => first(&script.text),
            FaultStage::Arguments => script.calls.first().and_then(|call| {
                let begins = holding(0, &call.name)?;
                Some(holding(begins, call.argument_fragments().0).unwrap_or(begins))
            }),
        };
        let (end, record) = records.get(nth.unwrap_or(0)).copied().unwrap_or((0, ""));
        let within = stage == FaultStage::Arguments && wire.sends_calls_whole();
        let cut = if within { end - record.len() / 2 } else { end };
        Self { cut, record_end: end }
    }
}

/// Words as they stand in a string of JSON.
fn inside_json(words: &str) -> String {
    let quoted = serde_json::Value::from(words).to_string();
    quoted.trim_matches('"').to_owned()
}

impl Wire {
    fn record_end(self) -> &'static str {
        match self {
            Self::Google => "\r\n\r\n",
            Self::Ollama => "\n",
            Self::Mistral | Self::Anthropic | Self::OpenAi | Self::Responses | Self::Compatible => {
                "\n\n"
            }
        }
    }

    fn sends_calls_whole(self) -> bool {
        matches!(self, Self::Mistral | Self::Google | Self::Ollama)
    }

    fn garbage_record(self) -> &'static str {
        match self {
            Self::Ollama => "{\"message\": [}\n",
            _ => "data: {\"choices\": [{]}\n\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: [&str; 3] = ["pondering", "saying", "finale"];

    fn script() -> Script {
        Script::text(["saying", "finale"]).with_thinking("pondering", "dG9rZW4=").with_call(
            "abcdefghi",
            "callable",
            r#"{"path":"long/enough"}"#,
        )
    }

    fn sent(reply: &Reply) -> String {
        let ReplyBody::Bytes(body) = &reply.body else { panic!("{reply:?}") };
        let limit = match reply.end {
            End::Abort(limit) | End::Stall(limit) => limit,
            _ => body.len(),
        };
        String::from_utf8(body[..limit].to_vec()).unwrap()
    }

    /// Up to the place everything is there, and nothing that comes later.
    #[test]
    fn broken_stream_reply_is_cut_at_the_scripted_stage() {
        for wire in Wire::ALL {
            for (stage, shown) in
                [(FaultStage::Thinking, 1), (FaultStage::Text, 2), (FaultStage::Arguments, 3)]
            {
                let body = sent(&wire.broken_reply(&script(), stage, &Fault::Cut));
                let hidden = usize::from(wire == Wire::OpenAi);
                let (before, after) = MARKS.split_at(shown);
                for mark in &before[hidden..] {
                    assert!(body.contains(mark), "{wire:?} {stage:?} {mark}: {body}");
                }
                for mark in after {
                    assert!(!body.contains(mark), "{wire:?} {stage:?} {mark}: {body}");
                }
                let within = stage == FaultStage::Arguments && wire.sends_calls_whole();
                assert_eq!(!body.ends_with(wire.record_end()), within, "{wire:?} {stage:?}");
            }
            let body = sent(&wire.broken_reply(&script(), FaultStage::Arguments, &Fault::Cut));
            let fragment = !wire.sends_calls_whole();
            assert!(!fragment || body.contains("callable") && !body.contains("enough"), "{body}");
        }
    }

    #[test]
    fn scripted_stream_failure_is_the_last_record() {
        for wire in Wire::ALL {
            let fault = Fault::Told(Failure::Overloaded);
            let body = sent(&wire.broken_reply(&script(), FaultStage::Text, &fault));
            let last = body.trim_end().rsplit(wire.record_end()).next().unwrap();
            assert!(last.contains("error"), "{wire:?}: {last}");
            assert!(body.contains("saying") && !body.contains("finale"), "{wire:?}");
        }
    }
}
