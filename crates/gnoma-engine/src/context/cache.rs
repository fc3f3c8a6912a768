//! Statistics of prompt caching: what caches saved, and what invalidated them.
//!
//! Providers keep the beginning of a request and charge little for it when the next one begins alike.
//! What gnoma sends is divided into segments; a segment that is not what it was makes all behind it
//! cold. Comparing costs what is new, not what there is: the conversation only grows at its end.

use std::{collections::VecDeque, fmt::Write as _, sync::Arc};

use gnoma_core::{Message, ModelRef, Price, Usage, tool::ToolSpec};

/// Breaks that are remembered.
const MAX_BREAKS: usize = 16;
/// Tools that are named of a change.
const MAX_NAMED: usize = 4;
/// Caches forget what was not asked for so long, in milliseconds.
const USUAL_LIFE_MS: i64 = 5 * 60 * 1_000;
/// Shorter prompts are not cached by most providers.
const LEAST_TOKENS: u64 = 1_024;
/// A call that reads less than this part of what was sent before was not served from the cache.
const HIT_SHARE: u64 = 2;

/// The segments that a request begins with.
#[derive(Clone, Debug)]
pub(crate) struct SentPrefix {
    pub(crate) arm: ModelRef,
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[Arc<ToolSpec>]>,
    pub(crate) summary: Option<Arc<Message>>,
    /// The index in the history at which the verbatim part begins.
    pub(crate) from: usize,
    /// The last message, and its place in the history.
    pub(crate) last: Option<(usize, Arc<Message>)>,
    pub(crate) at_ms: i64,
}

/// A cache that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Break {
    /// Number of the call, from 1.
    call: u64,
    /// The segment, and what about it.
    what: String,
    /// Tokens that were in the cache.
    tokens: u64,
}

/// The effect of prompt caches in a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    last: Option<SentPrefix>,
    /// The reason why the current call begins differently from the last one.
    broken: Option<String>,
    /// Tokens of the last call.
    warm: u64,
    calls: u64,
    prompt: u64,
    read: u64,
    saved_micro_usd: Option<u64>,
    breaks: VecDeque<Break>,
}

impl Cache {
    /// A call is about to be made. `message_at`: the message of the history at a place.
    pub(crate) fn record_request(
        &mut self,
        now: SentPrefix,
        message_at: impl Fn(usize) -> Option<Arc<Message>>,
    ) {
        let before = self.last.as_ref();
        self.broken = before.and_then(|before| find_difference(before, &now, message_at));
        self.last = Some(now);
    }

    /// A provider told what a call took.
    pub(crate) fn record_usage(&mut self, usage: Usage, price: Option<Price>) {
        self.calls += 1;
        self.prompt = self.prompt.saturating_add(usage.prompt_tokens());
        self.read = self.read.saturating_add(usage.cache_read);
        if let Some(price) = price {
            let cold = Usage { input: usage.cache_read, ..Usage::default() };
            let warm = Usage { cache_read: usage.cache_read, ..Usage::default() };
            let saved = price.cost_micro_usd(&cold).saturating_sub(price.cost_micro_usd(&warm));
            self.saved_micro_usd = Some(self.saved_micro_usd.unwrap_or(0).saturating_add(saved));
        }
        let missed = self.warm >= LEAST_TOKENS && usage.cache_read < self.warm / HIT_SHARE;
        let provider = || {
            "nothing that gnoma sent changed: the provider did not serve it from its cache"
                .to_owned()
        };
        let what = match self.broken.take() {
            Some(what) => Some(what),
            None if missed && self.read > 0 => Some(provider()),
            None => None,
        };
        if let Some(what) = what {
            let tokens = self.warm.saturating_sub(usage.cache_read);
            if self.breaks.len() == MAX_BREAKS {
                self.breaks.pop_front();
            }
            self.breaks.push_back(Break { call: self.calls, what, tokens });
        }
        self.warm = usage.prompt_tokens();
    }

    /// Describes the effect of the caches for people.
    pub(crate) fn describe_savings(&self) -> String {
        if self.calls == 0 {
            return "no model has been called yet".to_owned();
        }
        let percent =
            (u128::from(self.read) * 100).checked_div(u128::from(self.prompt)).unwrap_or(0);
        let mut out = format!(
            "hit rate {percent}%: {} of {} prompt tokens in {} came from the cache\n",
            self.read,
            self.prompt,
            if self.calls == 1 { "1 call".to_owned() } else { format!("{} calls", self.calls) }
        );
        // Writing to a string cannot fail.
        let _written = match self.saved_micro_usd {
            Some(saved) => {
                let (dollars, rest) = (saved / 1_000_000, saved % 1_000_000);
                writeln!(out, "saved ${dollars}.{:04}", rest / 100)
            }
            None => writeln!(out, "savings unknown, because the model's price is unknown"),
        };
        if self.breaks.is_empty() {
            out.push_str("the cache was not invalidated");
        }
        for Break { call, what, tokens } in &self.breaks {
            let _written = writeln!(out, "call {call}: {what} ({tokens} tokens were sent again)");
        }
        out.trim_end().to_owned()
    }
}

/// The first segment in which two requests differ; `None` where the later one only adds to the first.
fn find_difference(
    before: &SentPrefix,
    now: &SentPrefix,
    message_at: impl Fn(usize) -> Option<Arc<Message>>,
) -> Option<String> {
    if before.arm != now.arm {
        return Some(format!("model: {} in place of {}", now.arm, before.arm));
    }
    if let Some(change) = tools_changed(&before.tools, &now.tools) {
        return Some(format!("tools: {change}"));
    }
    if before.system != now.system {
        return Some(format!("system prompt: {}", system_changed(&before.system, &now.system)));
    }
    if before.from != now.from || !is_same_message(before.summary.as_ref(), now.summary.as_ref()) {
        return Some("conversation: compacted, or a compaction edited or undone".to_owned());
    }
    let (place, last) = before.last.as_ref()?;
    if !message_at(*place).is_some_and(|message| Arc::ptr_eq(&message, last)) {
        return Some("conversation: its last message is gone".to_owned());
    }
    let idle_ms = now.at_ms.saturating_sub(before.at_ms);
    (idle_ms > USUAL_LIFE_MS)
        .then(|| format!("time: {} minutes without a call, caches expire sooner", idle_ms / 60_000))
}

fn is_same_message(one: Option<&Arc<Message>>, other: Option<&Arc<Message>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

fn tools_changed(before: &Arc<[Arc<ToolSpec>]>, now: &Arc<[Arc<ToolSpec>]>) -> Option<String> {
    if Arc::ptr_eq(before, now) || before == now {
        return None;
    }
    let names = |tools: &[Arc<ToolSpec>], other: &[Arc<ToolSpec>], sign: &str| {
        let gone = |tool: &&Arc<ToolSpec>| !other.iter().any(|it| it.name == tool.name);
        tools.iter().filter(gone).map(|tool| format!("{sign}{}", tool.name)).collect::<Vec<_>>()
    };
    let mut changes = names(now, before, "+");
    changes.extend(names(before, now, "-"));
    let is_changed =
        |tool: &&Arc<ToolSpec>| before.iter().any(|it| it.name == tool.name && it != *tool);
    changes.extend(now.iter().filter(is_changed).map(|tool| format!("{} changed", tool.name)));
    if changes.is_empty() {
        return Some("in another order".to_owned());
    }
    let more = changes.len().saturating_sub(MAX_NAMED);
    changes.truncate(MAX_NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{}{rest}", changes.join(", ")))
}

/// Describes the place where two system prompts start to differ.
fn system_changed(before: &str, now: &str) -> String {
    let differs = |(one, other): &(&str, &str)| one != other;
    let mut lines = before.lines().zip(now.lines()).enumerate();
    match lines.find(|(_, pair)| differs(pair)) {
        Some((at, (_, line))) => {
            format!(
                "line {}: {}",
                at + 1,
                gnoma_core::text_truncation::word_prefix(line.trim(), 60)
            )
        }
        None => "its end".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(system: &str, messages: &[Arc<Message>]) -> SentPrefix {
        SentPrefix {
            arm: ModelRef { provider: "p".into(), model: "m".into() },
            system: system.into(),
            tools: Arc::default(),
            summary: None,
            from: 0,
            last: messages.len().checked_sub(1).map(|at| (at, Arc::clone(&messages[at]))),
            at_ms: 0,
        }
    }

    fn used(input: u64, cache_read: u64) -> Usage {
        Usage { input, cache_read, ..Usage::default() }
    }

    #[test]
    fn prompt_cache_report_names_what_invalidated_the_cache() {
        let messages: Vec<_> =
            (0..3).map(|it| Arc::new(Message::user_text(format!("{it}")))).collect();
        let mut cache = Cache::default();
        let at = |place: usize| messages.get(place).cloned();
        for (system, usage) in
            [("a\nb", used(3_000, 0)), ("a\nb", used(100, 3_000)), ("a\nat 9:41", used(3_200, 0))]
        {
            cache.record_request(sent(system, &messages), at);
            cache.record_usage(usage, Some(Price { input: 1_000_000, ..Price::default() }));
        }
        let words = cache.describe_savings();
        assert!(words.contains("call 3: system prompt: line 2: at 9:41 (3100 tokens"), "{words}");
        assert!(words.contains("hit rate 32%") && words.contains("saved $0.0030"), "{words}");
    }

    #[test]
    fn append_only_conversation_never_invalidates_the_prompt_cache() {
        let mut messages = Vec::new();
        let mut cache = Cache::default();
        for turn in 0..50 {
            messages.push(Arc::new(Message::user_text(format!("{turn}"))));
            cache.record_request(sent("s", &messages), |place| messages.get(place).cloned());
            cache.record_usage(used(10, 2_000), None);
        }
        assert!(
            cache.describe_savings().contains("the cache was not invalidated"),
            "{}",
            cache.describe_savings()
        );
    }
}
