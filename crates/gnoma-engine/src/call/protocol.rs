//! The facts that a call to a model takes, and its end.

use gnoma_core::{ModelRef, ProviderError, Response, StopReason, StreamEvent};

use crate::compaction::CompactionInput;

/// The steps that the work of a turn goes through before it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The work is delivered without any further step.
    #[default]
    Direct,
    /// The work is checked, and another arm continues if the check fails.
    Checked,
    /// The arm only looks at the files: approaches are compared first.
    Conferred,
}

/// The arm of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallArm {
    /// Its name, as the origin of the answer.
    pub(crate) name: ModelRef,
    /// The arm has the lean tool set: of its answer only the first tool call counts, because such models write
    /// several with invented results in between.
    pub(crate) is_lean: bool,
    /// An agent of another program answers: each of its steps takes a round.
    pub(crate) is_agent: bool,
}

/// The result of making room for a call.
#[derive(Clone, Debug)]
pub(crate) enum Room {
    /// There is room, and it is reserved: this arm is called.
    Held(CallArm),
    /// The window of the arm in charge is about to be full.
    Filled,
    /// Not for this arm; another one may have some.
    Refused(ProviderError),
    /// Not for any arm.
    Denied(ProviderError),
}

/// Facts for a call; only the driver makes them.
#[derive(Clone, Debug)]
pub(crate) enum CallInput {
    /// An arm was chosen for the turn, or none can be asked.
    Chosen(Result<Delivery, ProviderError>),
    /// The result of making room for a call.
    Reserved(Room),
    /// Several arms have answered at once; the answer is this one's.
    Authored(ModelRef),
    /// The model stream gave an event or failed.
    Stream(Result<StreamEvent, ProviderError>),
    /// Another arm takes over from the one whose call failed.
    Moved {
        /// The arm that is given up.
        from: ModelRef,
        /// The arm that continues.
        to: ModelRef,
        /// The reason for the change, in one line.
        why: String,
    },
    /// No other arm takes over: the failure is final.
    Stayed(ProviderError),
    /// The compaction that makes room has begun or ended.
    Compaction(CompactionInput),
    /// The wait before the next attempt is over.
    BackoffOver,
}

/// The end of a call. Its attempts are settled.
#[derive(Debug)]
pub(crate) enum CallEnd {
    /// The model has answered.
    Answered {
        response: Response,
        stop: StopReason,
        /// The answer had begun a tool call, which may be missing in the response.
        has_call: bool,
    },
    /// The answer was cut because the model had begun to repeat itself.
    Repeated(Response),
    /// No arm has answered.
    Failed {
        error: ProviderError,
        /// The part of an answer that had come.
        partial: Option<Response>,
    },
}
