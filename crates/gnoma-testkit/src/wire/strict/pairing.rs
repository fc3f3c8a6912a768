//! The law that every vendor has: each call is answered once, right after it.

use super::findings::Findings;

/// Calls that wait for their results.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    open: Vec<String>,
}

impl Pairing {
    /// Records a call of the model.
    pub(super) fn open_call(&mut self, at: &str, id: &str, findings: &mut Findings) {
        if self.open.iter().any(|open| open == id) {
            findings.add_violation(at, format_args!("two calls have the id `{id}`"));
        }
        self.open.push(id.to_owned());
    }

    /// A call is answered.
    pub(super) fn close_call(&mut self, at: &str, id: &str, findings: &mut Findings) {
        let waiting = self.open.iter().position(|open| open == id);
        let Some(found) = waiting else {
            findings
                .add_violation(at, format_args!("the result `{id}` has no call right before it"));
            return;
        };
        self.open.remove(found);
    }

    /// Closes a row of calls because another item follows or the request ends: no call may wait for its result any
    /// more.
    pub(super) fn require_none_open(&mut self, at: &str, findings: &mut Findings) {
        for id in self.open.drain(..) {
            findings
                .add_violation(at, format_args!("the call `{id}` has no result right after it"));
        }
    }
}
