//! Random walks of the machines in tests.

/// Walks of a test run; `GNOMA_WALKS` names another number.
const WALKS: u64 = 20_000;

/// A generator of random numbers; the same seed gives the same walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below this one.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    /// True one time in so many.
    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let at = self.below(of.len() as u64);
        of[usize::try_from(at).unwrap()].clone()
    }
}

/// The number of walks of a test run.
#[expect(clippy::disallowed_methods, reason = "long runs are asked for from outside")]
pub(crate) fn walks() -> u64 {
    std::env::var("GNOMA_WALKS").ok().and_then(|walks| walks.parse().ok()).unwrap_or(WALKS)
}
