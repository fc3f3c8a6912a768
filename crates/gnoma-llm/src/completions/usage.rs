//! Token counts of one answer, gathered from the reports of its records.

use gnoma_core::Usage;

use super::wire::UsageReport;
use crate::lenient_values::Count;

/// The token counts that have been reported so far. A later report wins; counts that it leaves out stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageTotals {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    reasoning: Option<u64>,
}

impl UsageTotals {
    /// Takes a report; true when it brought anything new.
    pub(crate) fn merge_report(&mut self, report: &UsageReport) -> bool {
        let before = *self;
        let prompt = report.prompt_tokens_details.as_ref();
        let answer = report.completion_tokens_details.as_ref();
        replace_known(&mut self.prompt, &[report.prompt_tokens, report.input_tokens]);
        replace_known(&mut self.completion, &[report.completion_tokens, report.output_tokens]);
        replace_known(&mut self.total, &[report.total_tokens]);
        let cached = [
            prompt.map_or(Count(None), |details| details.cached_tokens),
            report.prompt_cache_hit_tokens,
            report.cache_read_input_tokens,
            report.cached_tokens,
            report.num_cached_tokens,
        ];
        replace_known(&mut self.cached, &cached);
        let written = [
            prompt.map_or(Count(None), |details| details.cache_write_tokens),
            report.cache_creation_input_tokens,
        ];
        replace_known(&mut self.written, &written);
        let reasoning = [
            answer.map_or(Count(None), |details| details.reasoning_tokens),
            report.reasoning_tokens,
        ];
        replace_known(&mut self.reasoning, &reasoning);
        *self != before
    }

    /// Reports whether any token counts have come.
    pub(crate) fn has_counts(&self) -> bool {
        *self != Self::default()
    }

    /// The counts in parts that do not overlap.
    pub(crate) fn usage(&self) -> Usage {
        let prompt = self.prompt.unwrap_or_default();
        let cache_read = self.cached.unwrap_or_default();
        let cache_write = self.written.unwrap_or_default();
        // What is more than the whole was no part of it (Grok on Azure).
        let input = prompt.checked_sub(cache_read.saturating_add(cache_write));
        Usage {
            input: input.unwrap_or(prompt),
            output: self.output_tokens(),
            cache_read,
            cache_write,
            reasoning: self.reasoning.unwrap_or_default(),
        }
    }

    /// Most count reasoning as part of the answer; of those who do not (xAI), the total shows it.
    fn output_tokens(&self) -> u64 {
        let completion = self.completion.unwrap_or_default();
        let reasoning = self.reasoning.unwrap_or_default();
        let apart = completion.saturating_add(reasoning);
        let told = self.total.zip(self.prompt);
        if told.is_some_and(|(total, prompt)| prompt.checked_add(apart) == Some(total)) {
            apart
        } else {
            completion
        }
    }
}

/// The first of `reported` that is there replaces what was known. A 0 replaces nothing: some servers end a stream
/// with a record of zeros.
fn replace_known(known: &mut Option<u64>, reported: &[Count]) {
    let new = reported.iter().find_map(|count| count.0.filter(|count| *count > 0));
    let is_told = reported.iter().any(|count| count.0.is_some());
    *known = new.or(*known).or(is_told.then_some(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(reports: &[&str]) -> Usage {
        let mut tally = UsageTotals::default();
        for report in reports {
            tally.merge_report(&serde_json::from_str(report).unwrap());
        }
        tally.usage()
    }

    #[test]
    fn cached_token_count_is_read_under_every_field_name() {
        let names = [
            r#""prompt_tokens_details":{"cached_tokens":40}"#,
            r#""prompt_tokens_details":null,"prompt_cache_hit_tokens":40"#,
            r#""cache_read_input_tokens":40"#,
            r#""cached_tokens":40"#,
            r#""num_cached_tokens":40"#,
        ];
        for name in names {
            let told =
                usage(&[&format!(r#"{{"prompt_tokens":100,"completion_tokens":5,{name}}}"#)]);
            assert_eq!((told.input, told.cache_read, told.output), (60, 40, 5));
        }
    }

    #[test]
    fn cached_tokens_above_the_prompt_count_are_not_subtracted() {
        let told =
            usage(&[r#"{"prompt_tokens":24,"prompt_tokens_details":{"cached_tokens":161}}"#]);
        assert_eq!((told.input, told.cache_read), (24, 161));
    }

    #[test]
    fn later_usage_report_overrides_only_the_fields_it_has() {
        let told = usage(&[
            r#"{"prompt_tokens":9,"completion_tokens":null}"#,
            r#"{"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":2}}"#,
            r#"{"completion_tokens":4}"#,
        ]);
        assert_eq!((told.input, told.output, told.reasoning), (9, 4, 2));
    }

    #[test]
    fn trailing_zero_usage_report_does_not_reset_token_counts() {
        let zeros = r#"{"prompt_tokens":0,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}"#;
        let told = r#"{"input_tokens":9,"output_tokens":3,"prompt_cache_hit_tokens":4}"#;
        let usage = usage(&[told, zeros]);
        assert_eq!((usage.input, usage.output, usage.cache_read), (5, 3, 4));
        let mut tally = UsageTotals::default();
        assert!(tally.merge_report(&serde_json::from_str(zeros).unwrap()));
    }

    #[test]
    fn reasoning_counted_apart_is_added_to_the_answer() {
        let details = r#""completion_tokens_details":{"reasoning_tokens":50}"#;
        let apart =
            format!(r#"{{"prompt_tokens":10,"completion_tokens":7,"total_tokens":67,{details}}}"#);
        let within =
            format!(r#"{{"prompt_tokens":10,"completion_tokens":57,"total_tokens":67,{details}}}"#);
        assert_eq!(usage(&[&apart]).output, 57);
        assert_eq!(usage(&[&within]).output, 57);
    }
}
