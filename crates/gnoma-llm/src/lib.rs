//! Speaks each vendor's API: its dialect.
//!
//! A dialect is a folder: `wire` (their types), `encode` (ours to theirs), `decode` (theirs to ours, a
//! pure state machine) and a thin `mod`. What dialects share is beside them: framing ([`sse`],
//! [`objects`]), characters that are cut in two ([`characters`]), the body with its memory of what was
//! encoded ([`body`]), tool names ([`names`]), error classification ([`errors`]), the skeleton of chat
//! completions ([`completions`]). [`client`] and the stream that it returns ([`answer_stream`]) are the
//! only parts that await anything.
//!
//! Nothing here retries, chooses a model or reads the environment, with one exception: a request that the server
//! refused for something that can be left out or lowered is sent again without it ([`adapt`]).

mod adapt;
mod answer_stream;
mod anthropic;
mod arguments;
mod body;
pub mod catalogue;
mod characters;
mod client;
mod completions;
mod dialect;
mod end_reason;
mod envelope;
mod errors;
mod families;
mod format;
mod framing;
mod google;
mod host;
mod ids;
mod lenient_values;
mod mistral;
mod names;
mod objects;
mod ollama;
mod openai;
mod profile;
pub mod replay;
mod sse;
#[cfg(test)]
mod testing;
mod textcall;
mod thinking;

use std::sync::Arc;

use gnoma_core::Provider;
use gnoma_net::Http;

use crate::dialect::Dialect;
pub use crate::{
    profile::{KNOWN, KnownProvider, Profile, Protocol, Quirks},
    thinking::always_thinks,
};

/// A provider that speaks as `profile` says.
#[must_use]
pub fn connect_provider(profile: Profile, http: Http) -> Arc<dyn Provider> {
    let profile = Arc::new(profile);
    let dialect = dialect_of(&profile);
    Arc::new(client::Client::new(profile, dialect, http))
}

fn dialect_of(profile: &Arc<Profile>) -> Box<dyn Dialect> {
    let profile = Arc::clone(profile);
    match profile.protocol {
        Protocol::Mistral => Box::new(mistral::Mistral::new(profile)),
        Protocol::Anthropic => Box::new(anthropic::Anthropic::new(profile)),
        Protocol::OpenAi => Box::new(openai::chat::Chat::new(profile)),
        Protocol::Responses => Box::new(openai::responses::Responses::new(profile)),
        Protocol::Google => Box::new(google::Google::new(profile)),
        Protocol::Ollama => Box::new(ollama::Ollama::new(profile)),
    }
}

/// Parts that fuzz targets and benchmarks reach into. Not an interface.
#[doc(hidden)]
pub mod internals {
    use std::sync::Arc;

    use bytes::Bytes;
    use gnoma_core::ModelRequest;

    use crate::{Profile, Protocol, body::Encoder, dialect::Dialect, names::NameMap};
    pub use crate::{
        dialect::{AnswerDecoder, Events, Frame},
        framing::{Framer, FramingError, Record},
    };

    /// Encodes the requests of one connection, and remembers what it has encoded.
    pub struct Requests {
        provider: String,
        dialect: Box<dyn Dialect>,
        encoder: Encoder,
    }

    impl Requests {
        /// A connection that was never used.
        #[must_use]
        pub fn new(profile: Profile) -> Self {
            Self {
                provider: profile.name.clone(),
                dialect: crate::dialect_of(&Arc::new(profile)),
                encoder: Encoder::default(),
            }
        }

        /// The body that would be sent for `request`, in pieces.
        #[must_use]
        pub fn encode_body(&self, request: &ModelRequest) -> Vec<Bytes> {
            let shaped = crate::format::shape_request(self.dialect.profile(), request);
            self.encoder.encode(&*self.dialect, &self.provider, &shaped.request).0
        }
    }

    /// The body that would be sent for `request`.
    #[must_use]
    pub fn encode_request(profile: Profile, request: &ModelRequest) -> Vec<u8> {
        Requests::new(profile).encode_body(request).concat()
    }

    /// A decoder of the given protocol that knows no tools.
    #[must_use]
    pub fn protocol_decoder(protocol: Protocol) -> Box<dyn AnswerDecoder> {
        let profile = Arc::new(Profile::new("bench", protocol, ""));
        crate::dialect_of(&profile).new_decoder(Arc::new(NameMap::default()))
    }
}
