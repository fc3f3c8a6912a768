//! How far off the tracker is, by recorded traffic of real providers.
//!
//! Each request that extends an earlier one of its conversation, of 500 tokens or more, is predicted
//! from the usage of that one and from what is new. The recordings are not part of the project:
//! `GNOMA_CASSETTES` names their folder (a relative one counts from the workspace's root), and without
//! it nothing is predicted, which is said.

mod bodies;

use std::{collections::BTreeMap, io::Write as _, path::Path, sync::Arc};

use gnoma_core::{Message, ModelRef, Usage};
use gnoma_engine::context::{Counter, Tracker};
use gnoma_router::Wire;
use gnoma_testkit::{Cassette, cassette::Api};

const FOLDER: &str = "GNOMA_CASSETTES";
/// Smaller requests say little of a conversation that fills a window.
const LEAST_TOKENS: u64 = 500;
/// Most that half of the predictions of a wire are off, in percent.
const MEDIAN: f64 = 5.0;
/// Most that 95 of 100 are off.
const MOST: f64 = 15.0;

/// A request and what it was taken for.
struct Prediction {
    wire: Wire,
    id: String,
    told: u64,
    predicted: u64,
    /// Why it cannot be predicted, where it cannot.
    beyond: Option<&'static str>,
}

impl Prediction {
    fn off(&self) -> f64 {
        (self.predicted as f64 - self.told as f64).abs() * 100.0 / self.told as f64
    }
}

#[test]
fn predicted_request_size_matches_recorded_token_usage() {
    let Some(folder) = variable(FOLDER) else {
        let reason = format!("recordings are not part of the project, and {FOLDER} is not set");
        return gnoma_testkit::skip_test(&reason);
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let cassettes = Cassette::load_dir(&folder).expect("the recordings can be read");
    let mut conversations: BTreeMap<_, Vec<Cassette>> = BTreeMap::new();
    for cassette in cassettes {
        let key = (cassette.conversation.clone(), cassette.api, cassette.provider.clone());
        conversations.entry(key).or_default().push(cassette);
    }
    let mut all = Vec::new();
    for steps in conversations.values_mut() {
        steps.sort_by_key(|cassette| cassette.step);
        all.extend((0..steps.len()).filter_map(|at| prediction(steps, at)));
    }
    let (text, failed) = table(&all);
    say(&text);
    assert!(
        !failed,
        "the tracker is further off than {MEDIAN} % in the middle or {MOST} % at most"
    );
}

/// The request at a place, by the latest before it that it extends.
fn prediction(steps: &[Cassette], at: usize) -> Option<Prediction> {
    let next = &steps[at];
    let told = prompt(next).filter(|told| *told >= LEAST_TOKENS)?;
    let items = bodies::items(next.api, &next.request.body);
    let before = steps[..at].iter().rev().find(|before| {
        let known = bodies::items(before.api, &before.request.body);
        prompt(before).is_some()
            && !known.is_empty()
            && known.len() < items.len()
            && bodies::plain(&items[..known.len()]) == bodies::plain(&known)
    })?;
    let new = &items[bodies::items(before.api, &before.request.body).len()..];
    let past = bodies::messages(next.api, &items[..items.len() - new.len()]);
    let since = bodies::messages(next.api, new);
    let name = ModelRef { provider: next.provider.clone(), model: model(next) };
    let counter = Counter { wire: wire(next.api), name };
    let predicted = predicted(usage(before)?, past, since, &counter);
    let beyond = bodies::beyond(before, next, new);
    Some(Prediction { wire: counter.wire, id: next.id.clone(), told, predicted, beyond })
}

/// What the tracker takes a conversation for that was `usage` until the first answer of `since`.
fn predicted(usage: Usage, past: Vec<Message>, since: Vec<Message>, by: &Counter) -> u64 {
    let known = past.len();
    let history: Vec<Arc<Message>> = past.into_iter().chain(since).map(Arc::new).collect();
    let is_answer =
        history.get(known).is_some_and(|first| first.role() == gnoma_core::Role::Assistant);
    let mut tracker = Tracker::default();
    tracker.record_usage(usage, &history, known + usize::from(is_answer), by.clone());
    tracker.count_tokens(&history, by)
}

fn wire(api: Api) -> Wire {
    match api {
        Api::Anthropic => Wire::Anthropic,
        Api::OpenAi => Wire::Chat,
        Api::Responses => Wire::Responses,
        Api::Mistral => Wire::Mistral,
        Api::Google => Wire::Google,
        Api::Ollama => Wire::Ollama,
    }
}

fn model(cassette: &Cassette) -> String {
    let asked = cassette.request.body["model"].as_str();
    asked.or(cassette.expect.model.as_deref()).unwrap_or_default().to_owned()
}

fn prompt(cassette: &Cassette) -> Option<u64> {
    usage(cassette).map(|usage| usage.prompt_tokens())
}

/// What the provider told, as gnoma's own parts that do not overlap.
fn usage(cassette: &Cassette) -> Option<Usage> {
    let told = cassette.expect.usage?;
    let (input, mut output) = (told.input_tokens?, told.output_tokens.unwrap_or(0));
    let reasoning = told.reasoning_tokens.unwrap_or(0);
    let raw = &cassette.expect.usage_raw;
    let total = raw["total_tokens"].as_u64().or(raw["totalTokenCount"].as_u64()).unwrap_or(0);
    let (read, written) =
        (told.cache_read_tokens.unwrap_or(0), told.cache_write_tokens.unwrap_or(0));
    let cached = if cassette.api == Api::Anthropic { read + written } else { 0 };
    if cassette.api == Api::Google {
        output += reasoning;
    } else if total == input + output + reasoning {
        // Some count reasoning beside the answer.
        output += reasoning;
    }
    Some(Usage { input: input + cached, output, reasoning, ..Usage::default() })
}

fn table(all: &[Prediction]) -> (String, bool) {
    let mut text = "\nsize of the next request, as predicted\n".to_owned();
    text.push_str("wire            n   median %    p95 %\n");
    let mut by_wire: BTreeMap<Wire, Vec<f64>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.beyond.is_none()) {
        by_wire.entry(one.wire).or_default().push(one.off());
    }
    let mut failed = false;
    for (wire, off) in &mut by_wire {
        off.sort_by(f64::total_cmp);
        let at =
            |share: f64| off[((off.len() as f64 * share).ceil() as usize).clamp(1, off.len()) - 1];
        let (median, p95) = (at(0.5), at(0.95));
        failed |= median > MEDIAN || p95 > MOST;
        let name = format!("{wire:?}");
        text.push_str(&format!("{name:<12} {:>4} {median:>10.1} {p95:>8.1}\n", off.len()));
    }
    for one in all.iter().filter(|one| one.off() > MOST || one.beyond.is_some()) {
        let Prediction { id, told, predicted, .. } = one;
        let why = one.beyond.unwrap_or("NOT EXPLAINED");
        text.push_str(&format!(
            "  {id}\n    {told} told, {predicted} predicted, {:.0} % off: {why}\n",
            one.off()
        ));
    }
    (text, failed)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is predicted is an input of this test and of nothing else"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Writes past the test harness, which would swallow it.
fn say(text: &str) {
    let mut out = std::io::stderr().lock();
    // Nothing is left to be told if standard error is closed.
    out.write_all(text.as_bytes()).ok();
}
