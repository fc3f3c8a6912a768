//! Metrics: sums and histograms since the process began.

use crate::span::{Attribute, AttributeValue};

/// Most series in all; what would be one more is counted without its attributes.
const MAX_SERIES: usize = 256;
/// The attribute of the series that counts the rest: `specification/metrics/sdk.md`, overflow attribute.
const OVERFLOW: &str = "otel.metric.overflow";

/// Bounds of the buckets for tokens and for seconds, as the GenAI conventions name them.
const TOKEN_BOUNDS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECOND_BOUNDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// A metric that gnoma sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// Tokens of a model call, of the type that the attribute `gen_ai.token.type` says.
    TokenUsage,
    /// Duration of a model call, in seconds.
    OperationDuration,
    /// Cost of model calls, recorded in micro-dollars and sent in dollars.
    CostUsd,
    /// Turns of the conversation.
    Turns,
    /// Questions put to people.
    Questions,
    /// Failovers from one model to another.
    Failovers,
    /// Spans that could not be sent.
    DroppedSpans,
    /// Log records that could not be sent.
    DroppedLogs,
}

/// The form of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum InstrumentForm {
    /// A sum that only grows.
    Count,
    /// The same, sent as a millionth.
    Millionths,
    /// A histogram with these bounds.
    Histogram(&'static [f64]),
}

impl Instrument {
    /// Returns the name, the unit, the description and the form of the instrument.
    pub(crate) fn describe(self) -> (&'static str, &'static str, &'static str, InstrumentForm) {
        use InstrumentForm::{Count, Histogram, Millionths};
        match self {
            Self::TokenUsage => (
                "gen_ai.client.token.usage",
                "{token}",
                "Number of input and output tokens used.",
                Histogram(TOKEN_BOUNDS),
            ),
            Self::OperationDuration => (
                "gen_ai.client.operation.duration",
                "s",
                "GenAI operation duration.",
                Histogram(SECOND_BOUNDS),
            ),
            Self::CostUsd => {
                ("gnoma.cost.usd", "USD", "Cost of model calls at known prices.", Millionths)
            }
            Self::Turns => ("gnoma.turns", "{turn}", "Turns.", Count),
            Self::Questions => ("gnoma.questions", "{question}", "Questions to people.", Count),
            Self::Failovers => {
                ("gnoma.failovers", "{failover}", "Failovers to another model.", Count)
            }
            Self::DroppedSpans => {
                ("gnoma.telemetry.spans.dropped", "{span}", "Spans that could not be sent.", Count)
            }
            Self::DroppedLogs => {
                ("gnoma.telemetry.logs.dropped", "{record}", "Logs that could not be sent.", Count)
            }
        }
    }
}

/// The values of one instrument with the same attributes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) instrument: Instrument,
    pub(crate) attributes: Vec<Attribute>,
    /// The number of values recorded.
    pub(crate) count: u64,
    /// Their sum: whole for counts, and exact for numbers below 2^53 in histograms.
    pub(crate) total: u64,
    pub(crate) sum: f64,
    /// Values by bucket; empty for counts.
    pub(crate) buckets: Vec<u64>,
}

/// All series of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    series: Vec<Series>,
    has_changed: bool,
}

impl Metrics {
    /// Adds to a count.
    pub(crate) fn add_count(
        &mut self,
        instrument: Instrument,
        amount: u64,
        attributes: Vec<Attribute>,
    ) {
        let series = self.find_or_insert(instrument, attributes);
        series.count = series.count.saturating_add(1);
        series.total = series.total.saturating_add(amount);
    }

    /// Records a value of a histogram.
    pub(crate) fn record_value(
        &mut self,
        instrument: Instrument,
        value: f64,
        attributes: Vec<Attribute>,
    ) {
        let (.., form) = instrument.describe();
        let InstrumentForm::Histogram(bounds) = form else { return };
        let series = self.find_or_insert(instrument, attributes);
        series.count = series.count.saturating_add(1);
        series.sum += value;
        let bucket = bounds.iter().take_while(|bound| value > **bound).count();
        if let Some(count) = series.buckets.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// The series, if any value was recorded since they were taken last.
    pub(crate) fn take_changed(&mut self) -> Option<Vec<Series>> {
        std::mem::take(&mut self.has_changed).then(|| self.series.clone())
    }

    /// Marks the metrics as changed again, because those that were taken could not be sent.
    pub(crate) fn not_sent(&mut self) {
        self.has_changed = true;
    }

    fn find_or_insert(
        &mut self,
        instrument: Instrument,
        attributes: Vec<Attribute>,
    ) -> &mut Series {
        self.has_changed = true;
        let at = self.find_position(instrument, &attributes).or_else(|| {
            (self.series.len() >= MAX_SERIES)
                .then(|| self.find_position(instrument, &overflow_attributes()))
                .flatten()
        });
        let at = at.unwrap_or_else(|| {
            let is_full = self.series.len() >= MAX_SERIES;
            let attributes = if is_full { overflow_attributes() } else { attributes };
            let (.., form) = instrument.describe();
            let buckets = match form {
                InstrumentForm::Histogram(bounds) => vec![0; bounds.len() + 1],
                InstrumentForm::Count | InstrumentForm::Millionths => Vec::new(),
            };
            self.series.push(Series {
                instrument,
                attributes,
                count: 0,
                total: 0,
                sum: 0.0,
                buckets,
            });
            self.series.len() - 1
        });
        &mut self.series[at]
    }

    fn find_position(&self, instrument: Instrument, attributes: &[Attribute]) -> Option<usize> {
        let is_same =
            |known: &Series| known.instrument == instrument && known.attributes == attributes;
        self.series.iter().position(is_same)
    }
}

fn overflow_attributes() -> Vec<Attribute> {
    vec![(OVERFLOW.into(), AttributeValue::Bool(true))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_include_their_upper_bound() {
        let mut metrics = Metrics::default();
        for seconds in [0.005, 0.01, 0.011, 100.0] {
            metrics.record_value(Instrument::OperationDuration, seconds, Vec::new());
        }
        let all = metrics.take_changed().unwrap();
        assert_eq!((all.len(), all[0].count), (1, 4));
        assert_eq!(&all[0].buckets[..2], [2, 1]);
        assert_eq!((all[0].buckets.len(), all[0].buckets.last()), (15, Some(&1)));
        assert!(metrics.take_changed().is_none(), "nothing is new");
    }

    #[test]
    fn metric_series_over_the_limit_overflow_without_losing_counts() {
        let mut metrics = Metrics::default();
        let named =
            |number: usize| vec![("model".into(), AttributeValue::Text(number.to_string()))];
        for number in 0..2 * MAX_SERIES {
            metrics.add_count(Instrument::CostUsd, 1, named(number));
            metrics.add_count(Instrument::Turns, 1, Vec::new());
        }
        let all = metrics.take_changed().unwrap();
        assert!(all.len() <= MAX_SERIES + 1, "{}", all.len());
        let total = |instrument| {
            all.iter().filter(|it| it.instrument == instrument).map(|it| it.total).sum::<u64>()
        };
        assert_eq!(total(Instrument::CostUsd), 2 * MAX_SERIES as u64);
        assert_eq!(total(Instrument::Turns), 2 * MAX_SERIES as u64);
    }
}
