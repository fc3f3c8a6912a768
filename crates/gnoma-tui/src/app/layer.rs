//! What can cover the editor and take the keys. The effect of a choice is a value, so lists need not know it.

use gnoma_core::{
    CallId, ThinkingMode,
    message::ModelRef,
    protocol::{FoundProviders, Request, Setting},
    session::PermissionMode,
};

use crate::{
    composer::{Composer, Draft},
    history::Search,
    picker::Picker,
    setup::Setup,
    transcript::OutputReader,
};

/// The part of the screen that takes the keys instead of the editor.
#[derive(Clone, Debug)]
pub(crate) enum Layer {
    /// A list; each row has its choice.
    Pick { list: Picker, choices: Vec<LayerChoice> },
    /// One thing to write.
    Field { title: String, field: Composer, goal: FieldPurpose },
    /// A question with the answers yes and no.
    Confirm { question: String, choice: LayerChoice },
    /// The search through the history.
    Search(Search),
    /// The guided first start.
    Setup(Setup),
    /// Output that is shown folded above, whole.
    Reader(OutputReader),
}

/// The effect of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LayerChoice {
    /// Go on in another way, or with another session.
    Switch(Request),
    /// Have this done, and say what was done.
    Report(Request),
    /// Write this in the place of what is written.
    Write(String),
    /// Run the task with this line of usage.
    Task(String),
    /// Ask one model only, or let the router choose again.
    Pin(Option<ModelRef>),
    /// Set the permission mode.
    Mode(PermissionMode),
    /// Set how much models think.
    Thinking(Option<ThinkingMode>),
    /// Paint with another theme.
    Theme(String),
    /// Let a setting be changed.
    Edit(Setting),
    /// Change a setting to this value.
    Set { key: String, value: String },
    /// Ask what is to be taken back.
    Rewind { turns: usize, prompt: String },
}

/// The purpose of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldPurpose {
    /// The reason for a refusal.
    Refuse(CallId),
    /// The answer to a question of the model's.
    Reply(CallId),
    /// The rule of a lasting yes.
    Rule(CallId),
    /// The part to be saved of what a command changed.
    Part(CallId),
    /// The value of a setting.
    Set(String),
    /// The word that confirms that nothing is asked any more.
    Bypass,
}

impl Layer {
    /// The first start. Where the terminal shows what is typed, no key can be entered.
    pub(super) fn setup(found: &FoundProviders, is_shown: bool) -> Self {
        Self::Setup(Setup::new(found, is_shown))
    }

    pub(crate) fn field(title: &str, text: &str, goal: FieldPurpose) -> Self {
        let mut field = Composer::default();
        field.restore_draft(text.into());
        Self::Field { title: title.to_owned(), field, goal }
    }

    /// Returns the text that is being written here and is worth saving.
    pub(super) fn unsent_draft(&self) -> Option<Draft> {
        match self {
            Self::Field {
                field, goal: FieldPurpose::Refuse(_) | FieldPurpose::Reply(_), ..
            } => Some(field.draft()),
            Self::Field { .. }
            | Self::Pick { .. }
            | Self::Confirm { .. }
            | Self::Search(_)
            | Self::Setup(_)
            | Self::Reader(_) => None,
        }
    }

    /// The answer to a question is being written here.
    pub(super) fn is_answer(&self) -> bool {
        let Self::Field { goal, .. } = self else { return false };
        matches!(
            goal,
            FieldPurpose::Refuse(_)
                | FieldPurpose::Reply(_)
                | FieldPurpose::Rule(_)
                | FieldPurpose::Part(_)
        )
    }

    /// The answer to this one is.
    pub(super) fn is_answer_to(&self, call: &CallId) -> bool {
        let Self::Field { goal, .. } = self else { return false };
        let (FieldPurpose::Refuse(of)
        | FieldPurpose::Reply(of)
        | FieldPurpose::Rule(of)
        | FieldPurpose::Part(of)) = goal
        else {
            return false;
        };
        of == call
    }
}
