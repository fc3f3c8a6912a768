//! Metrics of `gnoma serve --metrics` in Prometheus' text format: what the ledger counted of all processes, and the
//! sessions of this server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gnoma_core::{
    ModelRef,
    ledger::{Amount, Ledger as _, Total},
    protocol::LiveSession,
    session::SessionState,
};
use gnoma_host::{Project, live::Host, routing};

use crate::server;

/// Most models that have lines of their own; further ones are counted together.
const MAX_ARMS: usize = 1_000;
/// Most of those that are told apart to count them.
const MAX_OTHERS: usize = 100_000;
/// The provider and the model under which those are counted.
const OTHERS: (&str, &str) = ("(others)", "(others)");

/// The metric of costs, which a model has no line of if nothing is known of what it cost.
const COST: &str = "gnoma_cost_usd_total";

/// A metric of model calls: its name, its help, and its samples, each with a label and a value.
type CallMetric = (&'static str, &'static str, fn(&Amount) -> Vec<(&'static str, String)>);

const CALL_METRICS: [CallMetric; 3] = [
    ("gnoma_model_calls_total", "Model calls of all processes.", |amount| {
        vec![("", amount.requests.to_string())]
    }),
    ("gnoma_tokens_total", "Tokens; cached and cache_write are parts of input.", |amount| {
        let Amount { input, cached, cache_write, output, .. } = amount;
        let kinds = [("input", input), ("cached", cached), ("cache_write", cache_write)];
        let kinds = kinds.into_iter().chain([("output", output)]);
        kinds.map(|(kind, count)| (kind, count.to_string())).collect()
    }),
    (COST, "Cost where the price was known.", |amount| {
        let micro_usd = amount.micro_usd;
        vec![("", format!("{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000))]
    }),
];

/// Reads and writes the metrics; `None` if the ledger cannot be read.
pub(crate) async fn read(project: &Project, host: &Arc<Host>) -> Option<String> {
    let totals = routing::ledger_to_look_at(project).daily_totals(0).await.ok()?;
    let priced = routing::known_prices(project, &totals).into_iter().map(|(arm, _)| arm);
    let priced: Vec<ModelRef> = priced.collect();
    let mut client = host.connect("metrics");
    let sessions = server::list_sessions(&mut client).await.ok()?;
    Some(render(&totals, &priced, &sessions))
}

/// `priced`: models whose price is known today.
fn render(totals: &[Total], priced: &[ModelRef], sessions: &[LiveSession]) -> String {
    let mut arms: BTreeMap<(&str, &str), Amount> = BTreeMap::new();
    let mut others = BTreeSet::new();
    for Total { arm: ModelRef { provider, model }, amount, .. } in totals {
        let arm = (provider.as_str(), model.as_str());
        let is_own = arms.len() < MAX_ARMS || arms.contains_key(&arm);
        if !is_own && others.len() < MAX_OTHERS {
            others.insert(arm);
        }
        arms.entry(if is_own { arm } else { OTHERS }).or_default().add(amount);
    }
    let mut text = String::new();
    for (name, help, samples) in CALL_METRICS {
        text += &format!("# HELP {name} {help}\n# TYPE {name} counter\n");
        for ((provider, model), amount) in &arms {
            let is_priced = |arm: &ModelRef| arm.provider == *provider && arm.model == *model;
            if name == COST && amount.micro_usd == 0 && !priced.iter().any(is_priced) {
                continue;
            }
            let (provider, model) = (label(provider), label(model));
            for (kind, value) in samples(amount) {
                let kind =
                    if kind.is_empty() { kind.to_owned() } else { format!(",type=\"{kind}\"") };
                text +=
                    &format!("{name}{{provider=\"{provider}\",model=\"{model}\"{kind}}} {value}\n");
            }
        }
    }
    let count = |is: fn(&LiveSession) -> bool| sessions.iter().filter(|it| is(it)).count();
    let working = count(|session| {
        matches!(session.status.state, SessionState::Active | SessionState::Cancelling)
    });
    let questions: usize = sessions.iter().map(|session| session.status.questions).sum();
    for (name, help, value) in [
        ("gnoma_models_counted_together", "Models that are counted as (others).", others.len()),
        ("gnoma_sessions", "Sessions in this server.", sessions.len()),
        ("gnoma_sessions_working", "Sessions in which a turn runs.", working),
        ("gnoma_questions", "Questions that wait for a person.", questions),
    ] {
        text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
    }
    text
}

/// A value of a label, with what ends it escaped.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_sums_by_model_with_escaped_labels() {
        let amount = Amount {
            requests: 2,
            input: 100,
            cached: 40,
            cache_write: 3,
            output: 7,
            micro_usd: 1_250_001,
        };
        let arm = ModelRef { provider: "p".into(), model: "a\"b\\c\nd".into() };
        let total = |day| Total { day, arm: arm.clone(), amount };
        let text = render(&[total(1), total(2)], &[], &[]);
        for line in [
            "gnoma_model_calls_total{provider=\"p\",model=\"a\\\"b\\\\c\\nd\"} 4",
            "gnoma_tokens_total{provider=\"p\",model=\"a\\\"b\\\\c\\nd\",type=\"cached\"} 80",
            "gnoma_cost_usd_total{provider=\"p\",model=\"a\\\"b\\\\c\\nd\"} 2.500002",
            "# TYPE gnoma_sessions gauge",
            "gnoma_sessions 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }

    #[test]
    fn cost_of_a_model_without_a_price_is_no_zero() {
        let arm = |model: &str| ModelRef { provider: "p".into(), model: model.into() };
        let amount = Amount { requests: 1, input: 9, ..Amount::default() };
        let totals = ["free", "unknown"].map(|model| Total { day: 1, arm: arm(model), amount });
        let text = render(&totals, &[arm("free")], &[]);
        assert!(text.contains("gnoma_cost_usd_total{provider=\"p\",model=\"free\"} 0.000000\n"));
        assert!(!text.contains("gnoma_cost_usd_total{provider=\"p\",model=\"unknown\"}"), "{text}");
        assert!(text.contains("gnoma_model_calls_total{provider=\"p\",model=\"unknown\"} 1\n"));
    }

    #[test]
    fn models_beyond_the_limit_share_one_metrics_label() {
        let arm = |number: usize| ModelRef { provider: "p".into(), model: format!("m{number}") };
        let amount = Amount { requests: 1, ..Amount::default() };
        let total = |number: usize| Total { day: 1, arm: arm(number), amount };
        let totals: Vec<_> = (0..MAX_ARMS + 3).chain(0..MAX_ARMS + 3).map(total).collect();
        let text = render(&totals, &[], &[]);
        for line in [
            "gnoma_model_calls_total{provider=\"(others)\",model=\"(others)\"} 6",
            "gnoma_models_counted_together 3",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}");
        }
    }
}
