//! The trait of a dialect (a vendor's API): encodes requests and decodes answers. Pure: [`crate::client`] does the
//! talking.

use std::{collections::VecDeque, sync::Arc};

use gnoma_core::{
    Message, ModelInfo, ModelRef, ModelRequest, ProviderError, RawJson, Role, Secret, StopReason,
    StreamEvent, ToolSpec, stream::Slot,
};

use crate::{Profile, completions, envelope::Envelope, lenient_values::Text, names::NameMap};

/// Events a decoder has found and nobody has taken yet: those of one network read at most.
pub type Events = VecDeque<StreamEvent>;

/// One record of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The SSE event name; empty where the wire has none.
    pub event: &'a str,
    /// The record's text: an SSE `data`, or one JSON object of a body that is not SSE.
    pub data: &'a str,
    /// The body is JSON, not SSE: the server answers in one piece (or line by line, Ollama).
    pub whole: bool,
}

/// Reads one answer, record by record.
pub trait AnswerDecoder: Send {
    /// Takes one record. Unknown kinds of record are skipped.
    ///
    /// # Errors
    /// When the record is broken or says that the call failed. The stream ends with it.
    fn decode_frame(&mut self, frame: Frame<'_>, out: &mut Events) -> Result<(), ProviderError>;

    /// The connection has ended. Emits the [`StreamEvent::Stop`] that is still owed, if the answer
    /// is complete.
    ///
    /// # Errors
    /// When the end came too early.
    fn finish(&mut self, out: &mut Events) -> Result<(), ProviderError>;

    /// Returns what the server has said about the end of an answer that is not marked as ended yet. More may come:
    /// tokens, and on some wires more of the answer.
    fn ending(&self) -> Option<Ending> {
        None
    }
}

/// The information that a server has given about the end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The reason why the answer ends.
    pub reason: StopReason,
    /// True if the number of tokens that the answer took has come too.
    pub has_usage: bool,
}

/// Header names and values; values may be keys.
pub(crate) type Headers = Vec<(&'static str, Secret<String>)>;

/// Tells of a signature, where there is one.
pub(crate) fn push_signature(slot: Slot, signature: Text<'_>, out: &mut Events) {
    if let Some(signature) = signature.into_filled() {
        out.push_back(StreamEvent::Signature { slot, signature });
    }
}

/// The context of a message when it is encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageCx<'a> {
    /// Tool names on this wire.
    pub names: &'a NameMap,
    /// The model that is asked. Opaque parts of other models' messages are not sent to it.
    pub target: &'a ModelRef,
    /// Role of the message before, if any.
    pub before: Option<Role>,
    /// The prompt up to and including this message should be cached (Anthropic's breakpoints).
    pub breakpoint: bool,
}

impl MessageCx<'_> {
    /// Reports whether the model that is asked wrote `message` itself.
    pub(crate) fn is_own_message(&self, message: &Message) -> bool {
        message.origin() == Some(self.target)
    }
}

/// One vendor's way of being asked and of answering.
pub(crate) trait Dialect: Send + Sync {
    /// The endpoint that is asked.
    fn profile(&self) -> &Profile;

    /// Path under the base URL for a streamed answer of `model`.
    fn answer_path(&self, model: &str) -> String;

    /// Headers of every request: the key, as nearly everybody wants it.
    fn request_headers(&self) -> Headers {
        self.profile().auth_header().into_iter().collect()
    }

    /// The tools as the wire wants them, or `None` when there are none. Called once per tool set. Most
    /// wires took OpenAI's form.
    fn encode_tools(&self, tools: &[Arc<ToolSpec>], names: &NameMap) -> Option<RawJson> {
        completions::encode::encode_tools(tools, names)
    }

    /// The request without its messages.
    fn encode_envelope(
        &self,
        request: &ModelRequest,
        tools: Option<&RawJson>,
        names: &NameMap,
    ) -> Envelope;

    /// One message as the wire's items, separated by commas; empty when nothing of it may be sent.
    /// Called once per message: the result is kept.
    fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8>;

    /// Reports whether [`MessageCx::breakpoint`] makes a difference in this dialect.
    fn has_breakpoints(&self) -> bool {
        false
    }

    /// A decoder for one answer.
    fn new_decoder(&self, names: Arc<NameMap>) -> Box<dyn AnswerDecoder>;

    /// Path under the base URL that lists models.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// Reads the answer to [`models_path`](Self::models_path); what cannot be read is no model.
    fn parse_models(&self, body: &[u8]) -> Vec<ModelInfo> {
        completions::models::parse_models(body)
    }
}
