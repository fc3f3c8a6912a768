//! The body of a request, put together from pieces that are encoded once.
//!
//! A round sends the whole conversation, but only its end is new. What was encoded for the round
//! before is kept and sent again as it is, so the work of a round does not grow with the history.
//!
//! All sessions of a process may share one provider. A conversation is known by its first message, and
//! what is remembered of it goes with that: whoever holds the conversation decides how long it lasts.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use gnoma_core::{Message, ModelRef, ModelRequest, RawJson, Role, ToolSpec};

use crate::{
    dialect::{Dialect, MessageCx},
    envelope::{Envelope, TAIL},
    names::NameMap,
};

/// Ways that one conversation goes of which the encodings are remembered: its own, other models', and
/// talks beside it that begin like it.
const MAX_CHAINS: usize = 4;

/// Encodings that are remembered in all; a process has fewer conversations.
const MAX_ALL_CHAINS: usize = 1_024;

/// Cache breakpoints on messages. Anthropic allows four in all; system and tools take two.
const MESSAGE_BREAKPOINTS: usize = 2;

/// The encoded form of one conversation when it was last sent.
struct Chain {
    target: ModelRef,
    tools: Arc<[Arc<ToolSpec>]>,
    names: Arc<NameMap>,
    tools_json: Option<RawJson>,
    messages: Vec<(Weak<Message>, Bytes)>,
}

impl Chain {
    fn new(dialect: &dyn Dialect, request: &ModelRequest, target: ModelRef) -> Self {
        let names = Arc::new(NameMap::new(&request.tools));
        Self {
            target,
            tools: Arc::clone(&request.tools),
            tools_json: dialect.encode_tools(&request.tools, &names),
            names,
            messages: Vec::new(),
        }
    }

    fn can_serve(&self, request: &ModelRequest, target: &ModelRef) -> bool {
        self.target == *target && Arc::ptr_eq(&self.tools, &request.tools)
    }

    /// Returns the number of messages that this chain has encoded already, from the start.
    fn count_shared_messages(&self, messages: &[Arc<Message>]) -> usize {
        self.messages
            .iter()
            .zip(messages)
            .take_while(|((old, _), new)| old.as_ptr() == Arc::as_ptr(new))
            .count()
    }

    /// The message by which its conversation is known.
    fn first_message(&self) -> Option<&Weak<Message>> {
        self.messages.first().map(|(first, _)| first)
    }

    /// Reports whether the conversation of this chain is still in use.
    fn is_alive(&self) -> bool {
        self.first_message().is_some_and(|first| first.strong_count() > 0)
    }

    /// Another chain with the same beginning.
    fn fork(&self, shared: usize) -> Self {
        Self {
            target: self.target.clone(),
            tools: Arc::clone(&self.tools),
            names: Arc::clone(&self.names),
            tools_json: self.tools_json.clone(),
            messages: self.messages.iter().take(shared).cloned().collect(),
        }
    }

    /// Encodes what is new in `messages`, which begin with what this chain holds.
    fn encode_new_messages(&mut self, dialect: &dyn Dialect, messages: &[Arc<Message>]) {
        for at in self.messages.len()..messages.len() {
            let encoded =
                dialect.encode_message(&messages[at], self.message_context(messages, at, false));
            self.messages.push((Arc::downgrade(&messages[at]), encoded.into()));
        }
    }

    fn message_context<'a>(
        &'a self,
        messages: &[Arc<Message>],
        at: usize,
        breakpoint: bool,
    ) -> MessageCx<'a> {
        let before = at.checked_sub(1).map(|before| messages[before].role());
        MessageCx { names: &self.names, target: &self.target, before, breakpoint }
    }
}

/// Encodes the requests of one provider and remembers how.
#[derive(Default)]
pub(crate) struct Encoder {
    /// Most recently used last.
    chains: Mutex<Vec<Chain>>,
}

impl Encoder {
    /// The request's body in pieces, and the tool names it uses.
    pub(crate) fn encode(
        &self,
        dialect: &dyn Dialect,
        provider: &str,
        request: &ModelRequest,
    ) -> (Vec<Bytes>, Arc<NameMap>) {
        let target = ModelRef { provider: provider.to_owned(), model: request.model.to_string() };
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        chains.retain(Chain::is_alive);
        let mut chain = take_best(&mut chains, request, &target)
            .unwrap_or_else(|| Chain::new(dialect, request, target));
        chain.encode_new_messages(dialect, &request.messages);
        let envelope = dialect.encode_envelope(request, chain.tools_json.as_ref(), &chain.names);
        let pieces = assemble_body(dialect, &chain, envelope, &request.messages);
        let names = Arc::clone(&chain.names);
        store_chain(&mut chains, chain);
        (pieces, names)
    }
}

/// Keeps a chain as the last used one, and lets go of the oldest where its conversation, or all of
/// them, have too many.
fn store_chain(chains: &mut Vec<Chain>, chain: Chain) {
    let is_of_same = |other: &Chain| match (chain.first_message(), other.first_message()) {
        (Some(own), Some(other)) => own.ptr_eq(other),
        (None, _) | (_, None) => false,
    };
    if chains.iter().filter(|other| is_of_same(other)).count() >= MAX_CHAINS
        && let Some(oldest) = chains.iter().position(is_of_same)
    {
        chains.remove(oldest);
    }
    chains.push(chain);
    let extra = chains.len().saturating_sub(MAX_ALL_CHAINS);
    chains.drain(..extra);
}

/// The chain that `request` goes on with. Where the two part ways before the chain's end, it stays for
/// its own conversation, and the request gets a copy of the common part. A chain that shares nothing is
/// no help.
fn take_best(chains: &mut Vec<Chain>, request: &ModelRequest, target: &ModelRef) -> Option<Chain> {
    let (best, shared) = (0..chains.len())
        .filter(|at| chains[*at].can_serve(request, target))
        .map(|at| (at, chains[at].count_shared_messages(&request.messages)))
        .filter(|(_, shared)| *shared > 0)
        .max_by_key(|(at, shared)| {
            // Copying from the longest keeps that one among the recently used.
            let length = chains[*at].messages.len();
            (*shared, *shared == length, length)
        })?;
    let chain = chains.remove(best);
    if shared == chain.messages.len() {
        return Some(chain);
    }
    let fork = chain.fork(shared);
    chains.push(chain);
    Some(fork)
}

fn assemble_body(
    dialect: &dyn Dialect,
    chain: &Chain,
    envelope: Envelope,
    messages: &[Arc<Message>],
) -> Vec<Bytes> {
    let marked = if dialect.has_breakpoints() { find_breakpoints(messages) } else { Vec::new() };
    let mut pieces = Vec::with_capacity(2 * messages.len() + 2);
    let mut has_items = envelope.has_items;
    pieces.push(Bytes::from(envelope.head));
    for (at, (message, (_, encoded))) in messages.iter().zip(&chain.messages).enumerate() {
        let encoded = if marked.contains(&at) {
            dialect.encode_message(message, chain.message_context(messages, at, true)).into()
        } else {
            encoded.clone()
        };
        if encoded.is_empty() {
            continue;
        }
        if std::mem::replace(&mut has_items, true) {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(encoded);
    }
    pieces.push(Bytes::from_static(TAIL));
    pieces
}

/// The last messages that are not the model's own: the prompt up to there is sent again next round.
fn find_breakpoints(messages: &[Arc<Message>]) -> Vec<usize> {
    let ours = |at: &usize| messages[*at].role() != Role::Assistant;
    (0..messages.len()).rev().filter(ours).take(MESSAGE_BREAKPOINTS).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use gnoma_core::ToolChoice;
    use serde::Serialize;

    use super::*;
    use crate::envelope::push_item;
    use crate::{Profile, dialect::AnswerDecoder};

    /// Says a message as its role, and counts how often it is asked to.
    #[derive(Default)]
    struct Counting {
        encoded: AtomicUsize,
        breakpoints: bool,
    }

    impl Counting {
        fn encoded(&self) -> usize {
            self.encoded.swap(0, Ordering::Relaxed)
        }
    }

    impl Dialect for Counting {
        fn profile(&self) -> &Profile {
            unreachable!("nobody is asked here")
        }

        fn answer_path(&self, _model: &str) -> String {
            String::new()
        }

        fn encode_tools(&self, _tools: &[Arc<ToolSpec>], _names: &NameMap) -> Option<RawJson> {
            None
        }

        fn encode_envelope(
            &self,
            _request: &ModelRequest,
            _tools: Option<&RawJson>,
            _names: &NameMap,
        ) -> Envelope {
            #[derive(Serialize)]
            struct Body {
                messages: [(); 0],
            }
            Envelope::new(&Body { messages: [] })
        }

        fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
            self.encoded.fetch_add(1, Ordering::Relaxed);
            let mut out = Vec::new();
            push_item(&mut out, &(message.role(), message.text_content(), cx.breakpoint));
            out
        }

        fn has_breakpoints(&self) -> bool {
            self.breakpoints
        }

        fn new_decoder(&self, _names: Arc<NameMap>) -> Box<dyn AnswerDecoder> {
            unreachable!("nothing is read here")
        }
    }

    fn request(messages: &[Arc<Message>], tools: &Arc<[Arc<ToolSpec>]>) -> ModelRequest {
        ModelRequest {
            model: "m".into(),
            system: "".into(),
            messages: messages.to_vec(),
            tools: Arc::clone(tools),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            context_window: None,
            format: None,
            thinking: None,
        }
    }

    fn history(length: usize) -> Vec<Arc<Message>> {
        (0..length).map(|nth| Arc::new(Message::user_text(format!("{nth}")))).collect()
    }

    fn encode(encoder: &Encoder, dialect: &Counting, request: &ModelRequest) -> Vec<Bytes> {
        encoder.encode(dialect, "p", request).0
    }

    /// Round by round, what was said before is neither encoded nor copied again.
    #[test]
    fn request_body_encodes_only_new_messages() {
        let (encoder, dialect, tools) = (Encoder::default(), Counting::default(), [].into());
        let history = history(50);
        let mut before: Vec<Bytes> = Vec::new();
        for length in 1..=history.len() {
            let pieces = encode(&encoder, &dialect, &request(&history[..length], &tools));
            assert_eq!(dialect.encoded(), 1, "round {length}");
            // All but the tail, and but the envelope, which is made anew.
            let kept = before.len().saturating_sub(1);
            for (old, new) in before.iter().zip(&pieces).take(kept).skip(1) {
                assert_eq!(old.as_ptr(), new.as_ptr(), "round {length}");
            }
            before = pieces;
        }
        assert_eq!(
            String::from_utf8(before.concat()).unwrap().matches("user").count(),
            history.len()
        );
    }

    /// A breakpoint costs its own messages, however long the history.
    #[test]
    fn cache_breakpoints_reencode_a_constant_number_of_messages() {
        let dialect = Counting { breakpoints: true, ..Counting::default() };
        let (encoder, tools) = (Encoder::default(), [].into());
        let history = history(50);
        for length in 1..=history.len() {
            let pieces = encode(&encoder, &dialect, &request(&history[..length], &tools));
            assert!(dialect.encoded() <= 1 + MESSAGE_BREAKPOINTS, "round {length}");
            let body = String::from_utf8(pieces.concat()).unwrap();
            assert_eq!(body.matches("true").count(), length.min(MESSAGE_BREAKPOINTS));
        }
    }

    /// What changes the encoding is noticed: another model, other tools, another past.
    #[test]
    fn request_body_cache_is_reset_by_another_model_tools_or_history() {
        let (encoder, dialect) = (Encoder::default(), Counting::default());
        let (tools, other_tools) = ([].into(), [].into());
        let mut history = history(5);
        let whole = request(&history, &tools);
        encode(&encoder, &dialect, &whole);
        assert_eq!(dialect.encoded(), 5);
        encode(&encoder, &dialect, &ModelRequest { model: "n".into(), ..whole });
        assert_eq!(dialect.encoded(), 5);
        history[3] = Arc::new(Message::user_text("elsewhere"));
        encode(&encoder, &dialect, &request(&history, &tools));
        assert_eq!(dialect.encoded(), 2);
        encode(&encoder, &dialect, &request(&history, &other_tools));
        assert_eq!(dialect.encoded(), 5);
    }

    /// A side conversation that begins like the main one leaves it as it was.
    #[test]
    fn side_conversation_does_not_evict_the_main_body_cache() {
        let (encoder, dialect, tools) = (Encoder::default(), Counting::default(), [].into());
        let main = history(50);
        encode(&encoder, &dialect, &request(&main[..40], &tools));
        dialect.encoded();
        for round in 0..2 * MAX_CHAINS {
            let mut side = main[..30].to_vec();
            side.extend(history(2));
            let pieces = encode(&encoder, &dialect, &request(&side, &tools));
            assert_eq!(dialect.encoded(), 2, "round {round}");
            assert_eq!(String::from_utf8(pieces.concat()).unwrap().matches("user").count(), 32);
        }
        encode(&encoder, &dialect, &request(&main, &tools));
        assert_eq!(dialect.encoded(), 10);
        assert_eq!(encoder.chains.lock().unwrap().len(), MAX_CHAINS);
    }

    /// Many sessions on one provider: each pays only for what is new, in whatever order they come, and
    /// nothing is kept of one that is over.
    #[test]
    fn request_body_cache_holds_many_live_conversations() {
        const SESSIONS: usize = 50;
        let (encoder, dialect, tools) = (Encoder::default(), Counting::default(), [].into());
        let mut talks: Vec<_> = (0..SESSIONS).map(|_| history(20)).collect();
        for length in 1..=20 {
            for (number, talk) in talks.iter().enumerate() {
                encode(&encoder, &dialect, &request(&talk[..length], &tools));
                assert_eq!(dialect.encoded(), 1, "round {length} of session {number}");
            }
        }
        // A talk beside each, whose own words nobody keeps.
        for talk in &talks {
            let aside = [&talk[..15], &history(1)].concat();
            encode(&encoder, &dialect, &request(&aside, &tools));
            assert_eq!(dialect.encoded(), 1);
        }
        talks.truncate(1);
        encode(&encoder, &dialect, &request(&talks[0], &tools));
        assert_eq!(dialect.encoded(), 0);
        assert!(encoder.chains.lock().unwrap().len() <= MAX_CHAINS);
    }
}
