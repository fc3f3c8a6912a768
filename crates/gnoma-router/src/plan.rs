//! What to do next on a task: exact look-ahead over the attempts that are left (expectimax on the difficulty grid).
//!
//! All values are expectations times the weight of the branch, so that branches simply add up and nothing is
//! normalised on the way. Arms know each other's fate only through the difficulty: once it is given, attempts are
//! independent. No arm runs twice on a task.

use crate::{
    evidence::{Seen, dot, mass, weigh},
    probit::{NODES, Nodes},
    verifier::Rates,
};

/// Arms that enter the look-ahead.
pub(crate) const MOST_OPTIONS: usize = 8;
/// Attempts looked ahead.
const MOST_DEPTH: usize = 3;
/// Arms weighed at each depth but the first, by what is left.
const BEAM: [usize; MOST_DEPTH] = [2, 3, MOST_OPTIONS];
/// Arms of which pairs are weighed.
const MOST_PAIRED: usize = 3;
/// Attempts that can still be delivered; of more, the first are forgotten.
const MOST_DELIVERABLE: usize = 6;

/// An arm that could run next.
#[derive(Clone, Debug)]
pub(crate) struct Runnable {
    /// Chance to be right, by difficulty.
    pub(crate) chances: Nodes,
    /// Dollars it is expected to cost, shadow prices included.
    pub(crate) cost: f64,
    /// Dollars that waiting for it counts for.
    pub(crate) wait: f64,
}

/// A verdict that may come, and what it would mean.
#[derive(Clone, Debug)]
struct Branch {
    likelihood: Nodes,
    right: Nodes,
}

struct Action {
    /// Dollars, waiting included.
    cost: f64,
    wait: f64,
    chances: Nodes,
    passed: Branch,
    failed: Branch,
}

/// The look-ahead for one task.
pub(crate) struct Plan {
    value: f64,
    actions: Vec<Action>,
    least_cost: f64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Valued {
    /// Expected dollars of accepting the best attempt so far, and which it is.
    pub(crate) accept: Option<(usize, f64)>,
    /// Expected dollars of running each option next and going on as well as possible.
    pub(crate) run: Vec<f64>,
    /// The best pair to run at once, where waiting costs anything.
    pub(crate) pair: Option<([usize; 2], f64)>,
}

/// Attempts that can be delivered: the chance that each is right, by difficulty.
#[derive(Clone, Copy)]
struct Deliverable<'a> {
    right: [&'a Nodes; MOST_DELIVERABLE],
    count: usize,
}

/// Fills the places nothing was tried for.
static NEVER: Nodes = [0.0; NODES];

impl<'a> Deliverable<'a> {
    const NONE: Self = Self { right: [&NEVER; MOST_DELIVERABLE], count: 0 };

    fn with(mut self, right: &'a Nodes) -> Self {
        if self.count == MOST_DELIVERABLE {
            self.right.rotate_left(1);
            self.count -= 1;
        }
        self.right[self.count] = right;
        self.count += 1;
        self
    }

    fn best(&self, weights: &Nodes) -> Option<(usize, f64)> {
        self.right[..self.count]
            .iter()
            .map(|right| dot(weights, right))
            .enumerate()
            .reduce(|best, next| if next.1 >= best.1 { next } else { best })
    }
}

impl Plan {
    /// Of the options, the first [`MOST_OPTIONS`] are looked at.
    pub(crate) fn new(value: f64, options: &[Runnable], rates: Rates) -> Self {
        let actions: Vec<Action> = options
            .iter()
            .take(MOST_OPTIONS)
            .map(|option| {
                let branch = |passed| {
                    let seen = Seen { verdict: Some(passed), right: None };
                    Branch {
                        likelihood: seen.by_difficulty(&option.chances, rates),
                        right: seen.right_given(&option.chances, rates),
                    }
                };
                Action {
                    cost: option.cost + option.wait,
                    wait: option.wait,
                    chances: option.chances,
                    passed: branch(true),
                    failed: branch(false),
                }
            })
            .collect();
        let least_cost = actions.iter().map(|action| action.cost).fold(f64::INFINITY, f64::min);
        Self { value, actions, least_cost }
    }

    /// Values everything that can be done now. `tried` are the chances that each attempt so far is right.
    pub(crate) fn valued<'a>(&'a self, weights: &Nodes, tried: &'a [Nodes], left: usize) -> Valued {
        let deliverable = tried.iter().fold(Deliverable::NONE, Deliverable::with);
        let forgotten = tried.len() - deliverable.count;
        let left = left.min(MOST_DEPTH);
        let run = if left == 0 {
            Vec::new()
        } else {
            (0..self.actions.len())
                .map(|option| self.run(weights, &deliverable, 0, option, left))
                .collect()
        };
        Valued {
            accept: deliverable
                .best(weights)
                .map(|(index, right)| (index + forgotten, right * self.value)),
            pair: self.best_pair(weights, &deliverable, &run, left),
            run,
        }
    }

    fn best<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &Deliverable<'a>,
        used: u32,
        left: usize,
    ) -> f64 {
        let (best, accept) = deliverable
            .best(weights)
            .map_or((&NEVER, 0.0), |(index, right)| (deliverable.right[index], right * self.value));
        let mass = mass(weights);
        if left == 0 || self.value * mass - accept <= self.least_cost * mass {
            return accept;
        }
        let missing = weigh(weights, &best.map(|right| 1.0 - right));
        self.beam(&missing, mass, used, left)
            .map(|option| self.run(weights, deliverable, used, option, left))
            .fold(accept, f64::max)
    }

    fn run<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &Deliverable<'a>,
        used: u32,
        option: usize,
        left: usize,
    ) -> f64 {
        let action = &self.actions[option];
        let mass = mass(weights);
        let after = |branch: &Branch| {
            self.best(
                &weigh(weights, &branch.likelihood),
                &deliverable.with(&branch.right),
                used | 1 << option,
                left - 1,
            )
        };
        after(&action.passed) + after(&action.failed) - action.cost * mass
    }

    /// The best two to run at once, of those best alone: what both cost, but only the longer wait.
    fn best_pair<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &Deliverable<'a>,
        run: &[f64],
        left: usize,
    ) -> Option<([usize; 2], f64)> {
        if left < 2 || self.actions.iter().all(|action| action.wait <= 0.0) {
            return None;
        }
        let mut ranked: Vec<usize> = (0..run.len()).collect();
        ranked.sort_by(|a, b| run[*b].total_cmp(&run[*a]));
        ranked.truncate(MOST_PAIRED);
        let pairs = ranked
            .iter()
            .enumerate()
            .flat_map(|(place, first)| ranked[place + 1..].iter().map(|second| [*first, *second]));
        pairs
            .map(|pair| (pair, self.run_pair(weights, deliverable, pair, left)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn run_pair<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &Deliverable<'a>,
        pair: [usize; 2],
        left: usize,
    ) -> f64 {
        let [first, second] = pair.map(|option| &self.actions[option]);
        let used = 1 << pair[0] | 1 << pair[1];
        let mut value = 0.0;
        for one in [&first.passed, &first.failed] {
            for two in [&second.passed, &second.failed] {
                let weights = weigh(&weigh(weights, &one.likelihood), &two.likelihood);
                let deliverable = deliverable.with(&one.right).with(&two.right);
                value += self.best(&weights, &deliverable, used, left - 2);
            }
        }
        let mass = mass(weights);
        value - (first.cost + second.cost - first.wait.min(second.wait)) * mass
    }

    /// The options worth trying next, by what each would bring where the best so far is wrong (`missing`). The last
    /// attempt must bring more than it costs even if its verdict were beyond doubt.
    fn beam(
        &self,
        missing: &Nodes,
        mass: f64,
        used: u32,
        left: usize,
    ) -> impl Iterator<Item = usize> {
        let mut ranked = [(f64::NEG_INFINITY, usize::MAX); MOST_OPTIONS];
        let mut count = 0;
        for (option, action) in self.actions.iter().enumerate() {
            let gain = self.value * dot(missing, &action.chances) - action.cost * mass;
            if used & (1 << option) == 0 && (left > 1 || gain > 0.0) {
                ranked[count] = (gain, option);
                count += 1;
            }
        }
        ranked[..count].sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        ranked.into_iter().take(count.min(BEAM[left - 1])).map(|(_, option)| option)
    }
}
