//! Places where text puts secrets, whatever they look like.
//!
//! Each file knows one kind of place and is called where one of its keywords stands. The shape of the
//! value is not asked for, only that it is a value and not a stand-in for one ([`value`]). Names that
//! promise a secret (`password = ...`) are the business of `generic`.

use std::ops::Range;

mod command;
mod credential_file;
mod header;
mod kubernetes;
mod pem;
mod url;
mod value;

/// The family that all places belong to.
pub(crate) const FAMILY: &str = "context";

/// Takes the spans of what was found.
pub(crate) type Found<'a> = &'a mut dyn FnMut(Range<usize>);

/// One kind of place.
#[derive(Debug)]
pub(crate) struct Place {
    /// Shown like the id of a rule.
    pub(crate) id: &'static str,
    /// What calls `find`, in lower case.
    pub(crate) keywords: &'static [&'static str],
    /// Looks around the keyword that stands at the range.
    pub(crate) find: fn(&[u8], Range<usize>, Found),
}

/// All places.
pub(crate) const PLACES: &[Place] = &[
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
    kubernetes::SECRET_DATA,
];
