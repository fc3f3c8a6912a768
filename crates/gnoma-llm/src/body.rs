//! The body of a request, put together from pieces that are encoded once.
//!
//! A round sends the whole conversation, but only its end is new. What was encoded for the round
//! before is kept and sent again as it is, so the work of a round does not grow with the history.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use gnoma_core::{Message, ModelRef, ModelRequest, RawJson, Role, ToolSpec};
use serde::Serialize;

use crate::{
    dialect::{Dialect, MessageCx},
    names::NameMap,
};

/// Conversations whose encodings are remembered at a time: the session and its parallel children.
const MAX_CHAINS: usize = 4;

/// Cache breakpoints on messages. Anthropic allows four in all; system and tools take two.
const MESSAGE_BREAKPOINTS: usize = 2;

/// A request without its messages: what stands before them, and what after.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    head: Vec<u8>,
    has_items: bool,
}

/// What follows the list of messages, which is the last field of every body.
const TAIL: &[u8] = b"]}";

impl Envelope {
    /// Takes `body`, whose last field must be the list of messages. It may hold items already (a
    /// system message), which come first.
    pub(crate) fn new(body: &impl Serialize) -> Self {
        let mut head = serde_json::to_vec(body).unwrap_or_default();
        debug_assert!(
            head.ends_with(TAIL),
            "the last field must be the list of messages"
        );
        head.truncate(head.len().saturating_sub(TAIL.len()));
        let has_items = !head.ends_with(b"[");
        Self { head, has_items }
    }
}

/// Serialises `item` onto `out`, after a comma if something is there already.
pub(crate) fn push_item(out: &mut Vec<u8>, item: &impl Serialize) {
    if !out.is_empty() {
        out.push(b',');
    }
    // The wire types are plain structs: serialising them into memory cannot fail.
    let _infallible = serde_json::to_writer(&mut *out, item);
}

/// What one conversation looked like on the wire when it was last sent.
struct Chain {
    target: ModelRef,
    tools: Arc<[Arc<ToolSpec>]>,
    names: Arc<NameMap>,
    tools_json: Option<RawJson>,
    messages: Vec<(Arc<Message>, Bytes)>,
}

impl Chain {
    fn new(dialect: &dyn Dialect, request: &ModelRequest, target: ModelRef) -> Self {
        let names = Arc::new(NameMap::new(&request.tools));
        Self {
            target,
            tools: Arc::clone(&request.tools),
            tools_json: dialect.tools(&request.tools, &names),
            names,
            messages: Vec::new(),
        }
    }

    fn serves(&self, request: &ModelRequest, target: &ModelRef) -> bool {
        self.target == *target && Arc::ptr_eq(&self.tools, &request.tools)
    }

    /// How many messages this chain has encoded already, from the start.
    fn shared(&self, messages: &[Arc<Message>]) -> usize {
        self.messages
            .iter()
            .zip(messages)
            .take_while(|((old, _), new)| Arc::ptr_eq(old, new))
            .count()
    }

    fn extend(&mut self, dialect: &dyn Dialect, messages: &[Arc<Message>], shared: usize) {
        self.messages.truncate(shared);
        for at in shared..messages.len() {
            let encoded = dialect.message(&messages[at], self.cx(messages, at, false));
            self.messages
                .push((Arc::clone(&messages[at]), encoded.into()));
        }
    }

    fn cx<'a>(&'a self, messages: &[Arc<Message>], at: usize, breakpoint: bool) -> MessageCx<'a> {
        let before = at.checked_sub(1).map(|before| messages[before].role());
        MessageCx {
            names: &self.names,
            target: &self.target,
            before,
            breakpoint,
        }
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
        let target = ModelRef {
            provider: provider.to_owned(),
            model: request.model.to_string(),
        };
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chain = take_best(&mut chains, request, &target)
            .unwrap_or_else(|| Chain::new(dialect, request, target));
        let shared = chain.shared(&request.messages);
        chain.extend(dialect, &request.messages, shared);
        let envelope = dialect.envelope(request, chain.tools_json.as_ref(), &chain.names);
        let pieces = assemble(dialect, &chain, envelope, &request.messages);
        let names = Arc::clone(&chain.names);
        if chains.len() == MAX_CHAINS {
            chains.remove(0);
        }
        chains.push(chain);
        (pieces, names)
    }
}

/// The chain that shares most with `request`. One that shares nothing is another conversation's.
fn take_best(chains: &mut Vec<Chain>, request: &ModelRequest, target: &ModelRef) -> Option<Chain> {
    let best = (0..chains.len())
        .filter(|at| chains[*at].serves(request, target))
        .max_by_key(|at| chains[*at].shared(&request.messages))?;
    (chains[best].shared(&request.messages) > 0).then(|| chains.remove(best))
}

fn assemble(
    dialect: &dyn Dialect,
    chain: &Chain,
    envelope: Envelope,
    messages: &[Arc<Message>],
) -> Vec<Bytes> {
    let marked = if dialect.has_breakpoints() {
        breakpoints(messages)
    } else {
        Vec::new()
    };
    let mut pieces = Vec::with_capacity(2 * messages.len() + 2);
    let mut has_items = envelope.has_items;
    pieces.push(Bytes::from(envelope.head));
    for (at, (message, encoded)) in chain.messages.iter().enumerate() {
        let encoded = if marked.contains(&at) {
            dialect
                .message(message, chain.cx(messages, at, true))
                .into()
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
fn breakpoints(messages: &[Arc<Message>]) -> Vec<usize> {
    let ours = |at: &usize| messages[*at].role() != Role::Assistant;
    (0..messages.len())
        .rev()
        .filter(ours)
        .take(MESSAGE_BREAKPOINTS)
        .collect()
}
