//! Tool calls that a model wrote as text. (Placeholder until its tests exist.)

use std::sync::Arc;

use crate::{dialect::Events, names::NameMap};

pub(crate) struct TextCalls {
    _names: Arc<NameMap>,
}

impl TextCalls {
    pub(crate) fn new(names: Arc<NameMap>) -> Self {
        Self { _names: names }
    }

    pub(crate) fn filter(&mut self, _events: &mut Events) {}

    pub(crate) fn finish(&mut self, _events: &mut Events) {}
}
