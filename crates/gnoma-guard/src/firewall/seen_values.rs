//! Caches the redaction of shared values, so that a history is not scanned again every round.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

/// Values that are remembered; beyond, those that nobody holds any more are forgotten.
const MAX_SEEN: usize = 16_384;

/// The outcomes for shared values, by their place in memory and by the reader that gets them.
///
/// A weak reference keeps a value's place from being used again, so that a place is a name.
pub(super) struct SeenValues<T: ?Sized, O> {
    outcomes: HashMap<(usize, usize), (Weak<T>, O)>,
}

impl<T: ?Sized, O> Default for SeenValues<T, O> {
    fn default() -> Self {
        Self { outcomes: HashMap::new() }
    }
}

impl<T: ?Sized, O> SeenValues<T, O> {
    /// Returns the outcome of `value` for `reader`; `decide` is called only the first time.
    pub(super) fn get_or_decide(
        &mut self,
        value: &Arc<T>,
        reader: usize,
        decide: impl FnOnce() -> O,
    ) -> &O {
        self.make_room();
        let place = Arc::as_ptr(value).cast::<()>().addr();
        let (_, outcome) = self
            .outcomes
            .entry((place, reader))
            .or_insert_with(|| (Arc::downgrade(value), decide()));
        outcome
    }

    /// Returns the number of outcomes that are remembered.
    pub(super) fn len(&self) -> usize {
        self.outcomes.len()
    }

    fn make_room(&mut self) {
        if self.outcomes.len() < MAX_SEEN {
            return;
        }
        self.outcomes.retain(|_, (value, _)| value.strong_count() > 0);
        if self.outcomes.len() >= MAX_SEEN {
            self.outcomes.clear();
        }
    }
}
