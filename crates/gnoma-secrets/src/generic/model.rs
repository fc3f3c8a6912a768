//! Weighs a description: a small ensemble of decision trees, read from `data/assignment.txt`.
//!
//! Training happens elsewhere; the file's head says how. The format: lines that begin with `#` are comments;
//! `features NAME ...` gives the numbers of features used below; `named SUM`, `unnamed SUM` and `unbound SUM`
//! are the sums from which a place counts as a secret: with a telling name, with another one, and where
//! nothing binds the value; every further line is a tree in pre-order, `FEATURE<BOUND` for a branch (its
//! *below* side first) and `=WEIGHT` for a leaf.

use std::sync::OnceLock;

use gnoma_packed::{packed, unpack};

use super::features::{Description, NAMES};
use super::place::{NamedValue, Operator};

static MODEL: OnceLock<TreeModel> = OnceLock::new();

/// True if the trees classify the place as a secret.
pub(crate) fn is_secret(description: &Description, place: &NamedValue) -> bool {
    let model = MODEL.get_or_init(|| TreeModel::parse(&unpack(packed!("assignment.txt"))));
    let needed = match (place.by_form, place.operator) {
        (true, Operator::None) => model.unbound,
        (true, _) => model.unnamed,
        (false, _) => model.named,
    };
    model.total_weight(description) >= needed
}

/// The decision trees and the sums that they must reach.
#[derive(Debug, PartialEq)]
struct TreeModel {
    named: f32,
    unnamed: f32,
    unbound: f32,
    trees: Vec<Tree>,
}

/// No tree has more levels of branches.
const MAX_DEPTH: usize = 4;
const LEAVES: usize = 1 << MAX_DEPTH;

/// A full tree, its branches level by level, so that a walk is arithmetic and needs no jump.
#[derive(Clone, Debug, PartialEq)]
struct Tree {
    /// Feature and bound of each branch; the first place is not used.
    features: [u8; LEAVES],
    bounds: [f32; LEAVES],
    leaves: [f32; LEAVES],
}

/// A description filled up, so that no feature number can miss it.
type PaddedFeatures = [f32; 1 << FEATURE_BITS];
const FEATURE_BITS: usize = 7;
const _: () = assert!(NAMES.len() <= 1 << FEATURE_BITS);

impl Tree {
    fn leaf_value(&self, numbers: &PaddedFeatures) -> f32 {
        let mut at = 1;
        for _ in 0..MAX_DEPTH {
            let feature = usize::from(self.features[at % LEAVES]) % numbers.len();
            at = 2 * at + usize::from(numbers[feature] >= self.bounds[at % LEAVES]);
        }
        self.leaves[at % LEAVES]
    }
}

impl TreeModel {
    /// Lines that cannot be read are left out; a test says that there are none.
    fn parse(text: &str) -> Self {
        let mut model =
            Self { named: f32::MAX, unnamed: f32::MAX, unbound: f32::MAX, trees: Vec::new() };
        let mut features = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("features") => features = words.map(index_of).collect(),
                Some("named") => model.named = parse_decimal(words.next()),
                Some("unnamed") => model.unnamed = parse_decimal(words.next()),
                Some("unbound") => model.unbound = parse_decimal(words.next()),
                Some(_) => model.trees.extend(read_tree(line, &features)),
                None => {}
            }
        }
        model
    }

    fn total_weight(&self, description: &Description) -> f32 {
        let mut numbers: PaddedFeatures = [0.0; 1 << FEATURE_BITS];
        for (slot, number) in numbers.iter_mut().zip(description) {
            *slot = *number;
        }
        self.trees.iter().map(|tree| tree.leaf_value(&numbers)).sum()
    }
}

fn read_tree(line: &str, features: &[Option<u8>]) -> Option<Tree> {
    let mut tree =
        Tree { features: [0; LEAVES], bounds: [f32::MAX; LEAVES], leaves: [0.0; LEAVES] };
    let mut words = line.split_ascii_whitespace();
    read_part(&mut tree, &mut words, features, 1)?;
    words.next().is_none().then_some(tree)
}

/// Reads what hangs at the place `at`. A leaf above the last level fills all leaves below it.
fn read_part<'t>(
    tree: &mut Tree,
    words: &mut impl Iterator<Item = &'t str>,
    features: &[Option<u8>],
    at: usize,
) -> Option<()> {
    let word = words.next()?;
    if let Some(weight) = word.strip_prefix('=') {
        let (mut low, mut high) = (at, at + 1);
        while low < LEAVES {
            (low, high) = (2 * low, 2 * high);
        }
        tree.leaves.get_mut(low - LEAVES..high - LEAVES)?.fill(parse_decimal(Some(weight)));
        return Some(());
    }
    let (feature, bound) = split_branch(word)?;
    let feature = features.get(feature.parse::<usize>().ok()?).copied().flatten()?;
    *tree.features.get_mut(at)? = feature;
    *tree.bounds.get_mut(at)? = parse_decimal(Some(bound));
    read_part(tree, words, features, 2 * at)?;
    read_part(tree, words, features, 2 * at + 1)
}

fn index_of(name: &str) -> Option<u8> {
    NAMES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok())
}

/// Feature and bound. Byte by byte: for a few letters that is faster than the search for a character.
fn split_branch(word: &str) -> Option<(&str, &str)> {
    let at = word.bytes().position(|byte| byte == b'<')?;
    Some((word.get(..at)?, word.get(at + 1..)?))
}

/// A decimal number of few digits. The program's own reader takes three times as long, and there are
/// eight thousand of them.
fn parse_decimal(word: Option<&str>) -> f32 {
    const POWERS: [f32; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];
    let word = word.unwrap_or_default();
    let (mut whole, mut decimals, mut is_fraction) = (0_u32, 0, false);
    for byte in word.bytes() {
        if byte.is_ascii_digit() {
            whole = whole.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
            decimals += usize::from(is_fraction);
        }
        is_fraction |= byte == b'.';
    }
    let size = whole as f32 / POWERS.get(decimals).copied().unwrap_or(f32::MAX);
    if word.starts_with('-') { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_model_weights_are_complete() {
        let text = &unpack(packed!("assignment.txt"));
        let model = TreeModel::parse(text);
        let trees = text.lines().filter(|line| line.contains('='));
        assert_eq!(model.trees.len(), trees.filter(|line| !line.starts_with('#')).count());
        assert!(
            model.named < model.unnamed && model.unnamed <= model.unbound && model.unbound < 10.0
        );
        assert!(text.len() < 60_000);
    }

    #[test]
    fn tree_model_branches_by_feature_values() {
        let model = TreeModel::parse("features Bytes Quoted\n0<10 1<1 =1 =2 =4\n=0.5");
        let weigh = |bytes: f32, quoted: f32| {
            let mut description = [0.0; NAMES.len()];
            for (at, number) in [(index_of("Bytes"), bytes), (index_of("Quoted"), quoted)] {
                description[usize::from(at.unwrap())] = number;
            }
            model.total_weight(&description)
        };
        assert_eq!([weigh(5.0, 0.0), weigh(5.0, 1.0), weigh(20.0, 1.0)], [1.5, 2.5, 4.5]);
    }

    #[test]
    fn tree_model_decimals_parse_like_rust_floats() {
        let text = &unpack(packed!("assignment.txt"));
        let lines = text.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
        for word in lines.flat_map(|line| line.split(['<', '=', ' '])) {
            if let Ok(expected) = word.parse::<f32>() {
                assert_eq!(parse_decimal(Some(word)), expected, "{word}");
            }
        }
    }

    #[test]
    fn a_tree_with_an_unknown_feature_is_left_out() {
        let model = TreeModel::parse("features Bytes Nonsense\n1<10 =1 =2\n=3");
        assert_eq!(model.total_weight(&[0.0; NAMES.len()]), 3.0);
    }
}
