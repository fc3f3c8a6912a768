//! Weighs a description: a small ensemble of decision trees, read from `data/assignment.txt`.
//!
//! Training happens elsewhere; the file's head says how. The format: lines that begin with `#` are comments;
//! `features NAME ...` gives the numbers of features used below; `named SUM`, `unnamed SUM` and `unbound SUM`
//! are the sums from which a place counts as a secret: with a telling name, with another one, and where
//! nothing binds the value; every further line is a tree in pre-order, `FEATURE<BOUND` for a branch (its
//! *below* side first) and `=WEIGHT` for a leaf.

use std::sync::OnceLock;

use super::features::{Description, NAMES};
use super::place::{Operator, Place};

static MODEL: OnceLock<Model> = OnceLock::new();

/// Whether the trees hold the place for a secret.
pub(crate) fn is_secret(description: &Description, place: &Place) -> bool {
    let model = MODEL.get_or_init(|| Model::parse(include_str!("../../data/assignment.txt")));
    let needed = match (place.by_form, place.operator) {
        (true, Operator::None) => model.unbound,
        (true, _) => model.unnamed,
        (false, _) => model.named,
    };
    model.weigh(description) >= needed
}

/// What the trees say in sum, for training and for tests.
#[derive(Debug, PartialEq)]
struct Model {
    named: f32,
    unnamed: f32,
    unbound: f32,
    roots: Vec<usize>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Node {
    /// Below the bound, go on with the next node; else with `other`.
    Branch {
        feature: usize,
        bound: f32,
        other: usize,
    },
    Leaf(f32),
}

/// No tree is deeper.
const MAX_DEPTH: usize = 12;

impl Model {
    /// Lines that cannot be read are left out; a test says that there are none.
    fn parse(text: &str) -> Self {
        let mut model = Self {
            named: f32::MAX,
            unnamed: f32::MAX,
            unbound: f32::MAX,
            roots: Vec::new(),
            nodes: Vec::new(),
        };
        let mut features = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("features") => features = words.map(index_of).collect(),
                Some("named") => model.named = number(words.next()),
                Some("unnamed") => model.unnamed = number(words.next()),
                Some("unbound") => model.unbound = number(words.next()),
                Some(first) => model.add_tree(std::iter::once(first).chain(words), &features),
                None => {}
            }
        }
        model
    }

    fn add_tree<'t>(&mut self, words: impl Iterator<Item = &'t str>, features: &[Option<usize>]) {
        let root = self.nodes.len();
        // Branches whose second side is still to come.
        let mut open: Vec<usize> = Vec::new();
        for word in words {
            let here = self.nodes.len();
            if let Some((feature, bound)) = word.split_once('<') {
                let feature =
                    feature.parse().ok().and_then(|at: usize| features.get(at).copied().flatten());
                let Some(feature) = feature else { return self.nodes.truncate(root) };
                self.nodes.push(Node::Branch { feature, bound: number(Some(bound)), other: 0 });
                open.push(here);
            } else {
                self.nodes.push(Node::Leaf(number(word.strip_prefix('='))));
                if let Some(Node::Branch { other, .. }) =
                    open.pop().and_then(|at| self.nodes.get_mut(at))
                {
                    *other = here + 1;
                }
            }
        }
        self.roots.push(root);
    }

    fn weigh(&self, description: &Description) -> f32 {
        self.roots.iter().map(|root| self.leaf(*root, description)).sum()
    }

    fn leaf(&self, root: usize, description: &Description) -> f32 {
        let mut at = root;
        for _ in 0..=MAX_DEPTH {
            match self.nodes.get(at) {
                Some(Node::Branch { feature, bound, other }) => {
                    let number = description.get(*feature).copied().unwrap_or_default();
                    at = if number < *bound { at + 1 } else { *other };
                }
                Some(Node::Leaf(weight)) => return *weight,
                None => break,
            }
        }
        0.0
    }
}

fn index_of(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| *known == name)
}

fn number(word: Option<&str>) -> f32 {
    word.and_then(|word| word.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_whole() {
        let text = include_str!("../../data/assignment.txt");
        let model = Model::parse(text);
        let trees = text.lines().filter(|line| line.contains('='));
        assert_eq!(model.roots.len(), trees.filter(|line| !line.starts_with('#')).count());
        for (at, node) in model.nodes.iter().enumerate() {
            if let Node::Branch { other, .. } = node {
                assert!(*other > at + 1 && *other < model.nodes.len());
            }
        }
        assert!(
            model.named < model.unnamed && model.unnamed <= model.unbound && model.unbound < 10.0
        );
        assert!(text.len() < 60_000);
    }

    #[test]
    fn a_tree_takes_the_side_its_features_say() {
        let model = Model::parse("features Bytes Quoted\n0<10 1<1 =1 =2 =4\n=0.5");
        let weigh = |bytes: f32, quoted: f32| {
            let mut description = [0.0; NAMES.len()];
            for (at, number) in [(index_of("Bytes"), bytes), (index_of("Quoted"), quoted)] {
                description[at.unwrap()] = number;
            }
            model.weigh(&description)
        };
        assert_eq!([weigh(5.0, 0.0), weigh(5.0, 1.0), weigh(20.0, 1.0)], [1.5, 2.5, 4.5]);
    }

    #[test]
    fn a_tree_with_an_unknown_feature_is_left_out() {
        let model = Model::parse("features Bytes Nonsense\n1<10 =1 =2\n=3");
        assert_eq!(model.weigh(&[0.0; NAMES.len()]), 3.0);
    }
}
