//! The policy of each kind of provider error: retry, wait, fail over, exit code, remedy. One row a kind.
//!
//! | reader | column |
//! |---|---|
//! | the turn, before it makes a call again | [`retry`](ErrorPolicy::retry) |
//! | the router, before another model takes over | [`another_model`](ErrorPolicy::another_model), [`scope`](ErrorPolicy::scope) |
//! | the router's health, and the processes that share it | [`rest_rule`](ErrorPolicy::rest), [`scope`](ErrorPolicy::scope), [`is_shared`](ErrorPolicy::is_shared) |
//! | the command, when it ends | [`exit`](ErrorPolicy::exit) |
//! | the adapters, for the sentence that follows an error | [`remedy`](ErrorPolicy::remedy) |

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;

/// The consequences of a kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPolicy {
    /// The rule for sending the same request to the same model again.
    pub retry: RetryRule,
    /// True if another model may do better.
    pub another_model: bool,
    /// The scope of the failure: one model, a provider or a host.
    pub scope: FaultScope,
    /// The time for which the model, provider or host in `scope` is left alone; `None` if only the request is to
    /// blame.
    pub rest: Option<RestRule>,
    /// True if the failure says something to other processes and to the next start. A failure that a new key,
    /// another model in the settings or a restored line repairs is not shared: each process that starts tries
    /// again.
    pub is_shared: bool,
    /// The way in which the command ends.
    pub exit: ExitMeaning,
    /// The remedy that a person can apply.
    pub remedy: Remedy,
}

/// The rule for sending the same request to the same model again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryRule {
    /// Never: the answer would be the same.
    Never,
    /// As often as any call that breaks.
    Broken,
    /// As often as any call that breaks, if its answer had begun, and a few times otherwise.
    Unreadable,
    /// A few times: a server that is started or comes back does so within seconds.
    Unreachable,
    /// Once or twice: each attempt takes minutes.
    Silent,
    /// As long as the turn is patient, with the waits that the provider asks for.
    Patient,
}

/// The model, provider or host that a failure speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultScope {
    /// One model at one provider.
    Arm,
    /// All models of the provider.
    Provider,
    /// All providers at the same host.
    Host,
}

/// The time for which something is left alone after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestRule {
    /// After the first failure, where the provider asks for nothing; doubles each time it fails again.
    pub first: Duration,
    /// At most; the provider's own wish may be longer.
    pub most: Duration,
}

/// The reason with which a command ends after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitMeaning {
    /// The key was refused.
    NotAuthorised,
    /// No model could answer.
    NoModel,
    /// The request is at fault.
    Failed,
}

/// The action that a person can take after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Check the API key.
    Key,
    /// Check what the account may do, or use another provider.
    Access,
    /// Check the request, or what the server supports.
    Request,
    /// Make the conversation shorter.
    Shorten,
    /// Check the name of the model and the address.
    ModelName,
    /// Wait, or use another provider.
    Wait,
    /// Top up, or use another provider.
    Quota,
    /// Wait, as the fault is at the provider.
    Report,
    /// Check that the server runs, and the network.
    Network,
    /// Trust the certificate, or do not.
    Certificate,
    /// Check the address of the provider.
    Address,
    /// Wait longer for the answer.
    Patience,
    /// No remedy is needed.
    Nothing,
}

const fn rest_rule(first_s: u64, most_s: u64) -> Option<RestRule> {
    Some(RestRule { first: Duration::from_secs(first_s), most: Duration::from_secs(most_s) })
}

const fn policy_row(
    retry: RetryRule,
    (another_model, scope): (bool, FaultScope),
    (rest, is_shared): (Option<RestRule>, bool),
    exit: ExitMeaning,
    remedy: Remedy,
) -> ErrorPolicy {
    ErrorPolicy { retry, another_model, scope, rest, is_shared, exit, remedy }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

impl ErrorKind {
    /// All kinds of errors.
    pub const ALL: [Self; 18] = [
        Self::Auth,
        Self::Forbidden,
        Self::BadRequest,
        Self::ContextTooLong,
        Self::NotFound,
        Self::RateLimited,
        Self::Quota,
        Self::Overloaded,
        Self::ServerError,
        Self::Unreachable,
        Self::Certificate,
        Self::WrongServer,
        Self::Network,
        Self::Timeout,
        Self::Garbled,
        Self::Protocol,
        Self::Agent,
        Self::Cancelled,
    ];

    /// Returns the consequences of this kind of failure for all code that acts on it.
    #[must_use]
    #[rustfmt::skip]
    pub const fn policy(self) -> ErrorPolicy {
        use self::{ExitMeaning as Exit, FaultScope as Of, Remedy as Do, RetryRule as Retry};
        // again · another model, at fault · left alone for, told to others · exit · remedy
        match self {
            Self::Auth =>           policy_row(Retry::Never, (true, Of::Provider), (rest_rule(10 * MINUTE, 6 * HOUR), false), Exit::NotAuthorised, Do::Key),
            Self::Forbidden =>      policy_row(Retry::Never, (true, Of::Arm), (rest_rule(10 * MINUTE, 6 * HOUR), false), Exit::NoModel, Do::Access),
            Self::BadRequest =>     policy_row(Retry::Never, (true, Of::Arm), (None, false), Exit::Failed, Do::Request),
            Self::ContextTooLong => policy_row(Retry::Never, (true, Of::Arm), (None, false), Exit::Failed, Do::Shorten),
            Self::NotFound =>       policy_row(Retry::Never, (true, Of::Arm), (rest_rule(HOUR, 24 * HOUR), false), Exit::Failed, Do::ModelName),
            Self::RateLimited =>    policy_row(Retry::Patient, (true, Of::Arm), (rest_rule(30, 15 * MINUTE), true), Exit::NoModel, Do::Wait),
            Self::Quota =>          policy_row(Retry::Never, (true, Of::Provider), (rest_rule(15 * MINUTE, 6 * HOUR), true), Exit::NoModel, Do::Quota),
            Self::Overloaded =>     policy_row(Retry::Patient, (true, Of::Arm), (rest_rule(15, 10 * MINUTE), true), Exit::NoModel, Do::Wait),
            Self::ServerError =>    policy_row(Retry::Broken, (true, Of::Arm), (rest_rule(15, 10 * MINUTE), true), Exit::NoModel, Do::Report),
            Self::Unreachable =>    policy_row(Retry::Unreachable, (true, Of::Host), (rest_rule(5, 5 * MINUTE), false), Exit::NoModel, Do::Network),
            Self::Certificate =>    policy_row(Retry::Never, (true, Of::Host), (rest_rule(MINUTE, 30 * MINUTE), false), Exit::NoModel, Do::Certificate),
            Self::WrongServer =>    policy_row(Retry::Never, (true, Of::Provider), (rest_rule(MINUTE, 30 * MINUTE), false), Exit::NoModel, Do::Address),
            Self::Network =>        policy_row(Retry::Broken, (true, Of::Host), (rest_rule(5, 5 * MINUTE), false), Exit::NoModel, Do::Network),
            Self::Timeout =>        policy_row(Retry::Silent, (true, Of::Arm), (rest_rule(30, 10 * MINUTE), true), Exit::NoModel, Do::Patience),
            Self::Garbled =>        policy_row(Retry::Broken, (true, Of::Arm), (rest_rule(30, 10 * MINUTE), true), Exit::NoModel, Do::Address),
            Self::Protocol =>       policy_row(Retry::Unreadable, (true, Of::Arm), (rest_rule(MINUTE, 30 * MINUTE), true), Exit::NoModel, Do::Address),
            Self::Agent =>          policy_row(Retry::Never, (true, Of::Arm), (rest_rule(MINUTE, 30 * MINUTE), true), Exit::NoModel, Do::Nothing),
            Self::Cancelled =>      policy_row(Retry::Never, (false, Of::Arm), (None, false), Exit::Failed, Do::Nothing),
        }
    }

    /// True if the same request may succeed a little later.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        match self.policy().retry {
            RetryRule::Broken | RetryRule::Unreachable | RetryRule::Silent | RetryRule::Patient => {
                true
            }
            RetryRule::Never | RetryRule::Unreadable => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_kind_has_one_consistent_retry_policy() {
        for (at, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert!(!ErrorKind::ALL[..at].contains(&kind), "{kind:?} is listed twice");
            let policy = kind.policy();
            if let Some(rest) = policy.rest {
                assert!(rest.first <= rest.most, "{kind:?}");
            } else {
                assert!(
                    !policy.is_shared && !kind.is_transient(),
                    "{kind:?} is remembered by nobody"
                );
            }
            assert_eq!(
                policy.remedy == Remedy::Key,
                policy.exit == ExitMeaning::NotAuthorised,
                "{kind:?}"
            );
            assert!(!format!("{kind}").is_empty());
        }
    }

    #[test]
    fn auth_certificate_and_forbidden_errors_are_never_retried() {
        for kind in
            [ErrorKind::Certificate, ErrorKind::WrongServer, ErrorKind::Forbidden, ErrorKind::Auth]
        {
            assert_eq!(kind.policy().retry, RetryRule::Never, "{kind:?}");
        }
    }
}
