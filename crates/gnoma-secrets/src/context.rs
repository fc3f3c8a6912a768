//! Detects secrets by their context, whatever they look like.
//!
//! Each file knows one kind of place and is called where one of its keywords stands. The shape of the
//! value is not asked for, only that it is a value and not a stand-in for one ([`value`]). Names that
//! promise a secret (`password = ...`) are the business of `generic`.

mod address;
mod codes;
mod command;
mod credential_file;
mod directive;
mod header;
mod kubernetes;
mod operand;
mod pem;
mod phrase;
mod prose;
mod secret_context;
mod url;
mod value;

pub use address::{address_credentials, basic_password};
pub(crate) use secret_context::SecretContext;

/// The family that all places belong to.
pub(crate) const FAMILY: &str = "context";

/// All contexts in which secrets are looked for.
pub(crate) const PLACES: &[SecretContext] = &[
    url::USER_INFO,
    header::AUTHORIZATION,
    header::COOKIE,
    pem::PRIVATE_KEY,
    pem::PRIVATE_KEY_END,
    pem::PRIVATE_KEY_BODY,
    credential_file::NETRC,
    credential_file::PGPASS,
    credential_file::DOCKER_AUTH,
    credential_file::CONNECTION_STRING,
    command::PASSWORD_OPTION,
    directive::DIRECTIVE,
    kubernetes::SECRET_DATA,
    prose::PASSWORD,
    prose::FOREIGN_PASSWORD,
    operand::LOGIN,
    operand::PIPED,
    operand::SHARE,
    operand::DATA_SOURCE,
    operand::THIRD_ARGUMENT,
    operand::DEVICE,
    phrase::PRIVATE_LINES,
    phrase::SEED_WORDS,
    codes::RECOVERY_CODES,
    prose::KEY,
    operand::SECURE_STRING,
];
