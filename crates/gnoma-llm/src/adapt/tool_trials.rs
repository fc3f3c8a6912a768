//! Finds a refused tool by trying, where the server does not name it. Pure.
//!
//! Servers refuse a request for the schema of one tool and name none: then those of tool servers that were not taken
//! yet are tried in halves. A group that is refused is halved again, until single tools are left, which stay out. A
//! group that is taken stays, and the next request brings the next group: so a conversation comes to all sound tools,
//! with one refusal, which costs nothing, for each step.

use std::{collections::VecDeque, sync::Arc};

use gnoma_core::ToolSpec;

/// Most requests of one call that try which tools are refused.
pub(crate) const MAX_TRIALS: usize = 12;

/// The findings about the tools of a conversation whose server refused some of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolTrials {
    /// The tools that are refused.
    out: Vec<String>,
    /// Tools of which nothing is known; the first group is in the request, the others are left out.
    groups: VecDeque<Vec<String>>,
    /// Requests that were refused since one was taken.
    refusals: usize,
    /// Without all of them the request was refused too: they were not the reason.
    is_given_up: bool,
}

impl ToolTrials {
    /// Begins with tools that were never taken; `None` where there are none.
    pub(super) fn from_unknown(unknown: Vec<String>) -> Option<Self> {
        let mut trials = Self { refusals: 1, ..Self::default() };
        match unknown.len() {
            0 => return None,
            1 => trials.out = unknown,
            _ => trials.groups = split_halves(unknown),
        }
        Some(trials)
    }

    /// Leaves out the last tools of tool servers, of which a server takes no more.
    pub(super) fn from_surplus(out: Vec<String>) -> Option<Self> {
        (!out.is_empty()).then(|| Self { out, ..Self::default() })
    }

    /// Returns the next trial after another refusal; `None` if nothing is left to try.
    pub(super) fn next_trial(mut self) -> Option<Self> {
        self.refusals += 1;
        if self.is_given_up {
            return None;
        }
        let Some(group) = self.groups.pop_front() else {
            return Some(Self { is_given_up: true, ..Self::default() });
        };
        if self.refusals + 1 >= MAX_TRIALS {
            self.out.extend(group);
            self.out.extend(self.groups.drain(..).flatten());
        } else if group.len() == 1 {
            self.out.extend(group);
        } else {
            let rest = std::mem::replace(&mut self.groups, split_halves(group));
            self.groups.extend(rest);
        }
        Some(self)
    }

    /// The request was taken: what was tried stays, and the next request tries the next group.
    pub(crate) fn record_accepted(&mut self) -> bool {
        self.refusals = 0;
        self.groups.pop_front().is_some()
    }

    /// With the tools that another refusal is about.
    pub(super) fn merge_refusal(mut self, new: &Self) -> Self {
        let known: Vec<String> = self.left_out().map(str::to_owned).collect();
        self.out.extend(new.out.iter().filter(|name| !known.contains(name)).cloned());
        self.groups = new.groups.clone();
        self.refusals = new.refusals;
        self
    }

    /// Reports whether the trials have ended without a reason to leave anything out.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// Reports whether something is still to be found out.
    pub(super) fn is_open(&self) -> bool {
        !self.groups.is_empty() || self.refusals > 0
    }

    /// The names of the tools that are left out.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &str> {
        self.out.iter().chain(self.groups.iter().skip(1).flatten()).map(String::as_str)
    }

    /// The tools that are offered.
    pub(super) fn offered_tools(&self, tools: &[Arc<ToolSpec>]) -> Arc<[Arc<ToolSpec>]> {
        let is_out = |tool: &&Arc<ToolSpec>| !self.left_out().any(|name| name == tool.name);
        tools.iter().filter(is_out).cloned().collect()
    }
}

fn split_halves(mut all: Vec<String>) -> VecDeque<Vec<String>> {
    let rest = all.split_off(all.len() / 2);
    [all, rest].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a conversation with a server that refuses requests with any of `bad`; returns what stays out in the end,
    /// and how often it refused.
    fn play(count: usize, bad: &[usize]) -> (Vec<String>, usize) {
        let name = |at: usize| format!("mcp__s__t{at}");
        let all: Vec<String> = (0..count).map(name).collect();
        let bad: Vec<String> = bad.iter().map(|at| name(*at)).collect();
        let mut trials = ToolTrials::from_unknown(all).unwrap();
        let mut refusals = 1;
        loop {
            let left: Vec<String> = trials.left_out().map(str::to_owned).collect();
            if bad.iter().all(|name| left.contains(name)) {
                if !trials.record_accepted() {
                    return (left, refusals);
                }
            } else {
                refusals += 1;
                trials = trials.next_trial().unwrap();
                assert!(!trials.is_given_up(), "{left:?}");
            }
        }
    }

    #[test]
    fn unnamed_rejected_tool_is_found_by_bisection() {
        for (count, bad) in [(1, 0), (2, 0), (2, 1), (5, 3), (16, 15), (40, 0)] {
            let (out, refusals) = play(count, &[bad]);
            assert_eq!(out, [format!("mcp__s__t{bad}")], "of {count}");
            assert!(refusals <= 8, "{refusals} of {count}");
        }
        assert_eq!(play(8, &[1, 6]).0, ["mcp__s__t1", "mcp__s__t6"]);
    }

    #[test]
    fn tool_bisection_gives_up_if_no_tool_is_the_cause() {
        let names = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
        for count in [1, 2, 7, 300] {
            let mut trials = ToolTrials::from_unknown(names(count)).unwrap();
            let mut refusals = 1;
            while !trials.is_given_up() {
                assert!(trials.is_open(), "a refusal goes on with what was begun");
                trials = trials.next_trial().unwrap();
                refusals += 1;
            }
            assert!(refusals <= MAX_TRIALS + 1, "{refusals} of {count}");
            assert_eq!(trials.left_out().count(), 0);
            assert_eq!(trials.next_trial(), None);
        }
        assert_eq!(ToolTrials::from_unknown(Vec::new()), None);
    }
}
