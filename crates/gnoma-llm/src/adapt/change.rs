//! Changes to requests that a server has refused.

use super::{pictures::RefusedPictures, room::Room, tool_trials::ToolTrials};

/// Most names of tools that a note lists.
const MAX_NAMES: usize = 8;

/// One change of the requests of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Adaptation {
    /// A field is left out; one inside of another has that one's name and a dot before it.
    Field(String),
    /// The output limit goes by another name.
    Renamed {
        /// The name that was refused.
        from: &'static str,
        /// The name it goes by.
        to: &'static str,
    },
    /// The answer is asked for in one piece.
    Stream,
    /// No tools are offered.
    Tools,
    /// One tool is not offered: the one of that name.
    OneTool(String),
    /// Some tools are not offered; which ones the server refuses is being found out.
    ToolTrials(ToolTrials),
    /// The model is free to decide whether it calls tools.
    ToolChoice,
    /// Pictures stay at home.
    Pictures,
    /// These pictures stay at home.
    RefusedPictures(RefusedPictures),
    /// The thinking in the first messages is not sent. Holds the number of these messages.
    EarlierThinking(usize),
    /// The model is free to decide how hard it thinks.
    Effort,
    /// The system prompt stands before the first words of the user.
    SystemRole,
    /// A conversation that ends with the model's own words gets a word behind them.
    AnswerLast,
    /// Most tokens of an answer.
    MostTokens(u32),
    /// The room that prompt and answer share.
    Room(Room),
}

impl Adaptation {
    /// Describes the change for people; the text follows the model's name.
    pub(crate) fn describe_effect(&self) -> String {
        match self {
            Self::Field(name) => format!("does not accept `{name}`; gnoma leaves it out"),
            Self::Renamed { from, to } => format!("wants `{to}` instead of `{from}`"),
            Self::Stream => "does not stream; gnoma waits for the whole answer".to_owned(),
            Self::Tools => {
                "does not accept tools; gnoma continues without them, so the model can only answer"
                    .to_owned()
            }
            Self::OneTool(name) => {
                format!("does not accept the tool `{name}`; gnoma leaves that tool out")
            }
            Self::ToolTrials(trials) => describe_tool_trials(trials),
            Self::ToolChoice => {
                "does not let gnoma decide whether to call tools; gnoma leaves it to the model"
                    .to_owned()
            }
            Self::Pictures => "does not accept an image; gnoma leaves images out".to_owned(),
            Self::RefusedPictures(pictures) => describe_pictures(pictures),
            Self::EarlierThinking(_) => {
                "does not accept its earlier thinking; gnoma leaves it out".to_owned()
            }
            Self::Effort => {
                "cannot be told how hard to think; gnoma leaves it to the model".to_owned()
            }
            Self::SystemRole => "does not accept a system prompt; gnoma sends it with your first \
                                 message"
                .to_owned(),
            Self::AnswerLast => {
                "does not continue its own text; gnoma asks it to continue".to_owned()
            }
            Self::MostTokens(most) => {
                format!("writes at most {most} tokens; gnoma asks for no more")
            }
            Self::Room(room) => format!(
                "has room for {} tokens, prompt and answer together; gnoma asks for shorter answers",
                room.window
            ),
        }
    }
}

/// Describes the tools that are left out by their names.
fn describe_tool_trials(trials: &ToolTrials) -> String {
    if trials.is_given_up() {
        return "refuses the request with and without the tools of tool servers".to_owned();
    }
    let all: Vec<_> = trials.left_out().collect();
    let names = all.iter().take(MAX_NAMES).map(|name| format!("`{name}`"));
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match all.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = if trials.is_open() { "; one of them may be the reason" } else { "" };
    format!("does not accept all tools; gnoma leaves out {names}{more}{why}")
}

/// Describes the pictures that are left out by their number and, as pictures have no names, by their sizes.
fn describe_pictures(pictures: &RefusedPictures) -> String {
    let (most, count) = pictures.counts();
    let said = match (most, count) {
        (Some(_), 0) => String::new(),
        (_, 1) if pictures.is_open() => {
            "refused a picture; gnoma leaves one out that may be the reason".to_owned()
        }
        (_, count) if pictures.is_open() => {
            format!("refused a picture; gnoma leaves out {count} for now that may be the reason")
        }
        (_, 0 | 1) => "refused a picture; gnoma leaves it out and sends the others".to_owned(),
        (_, count) => {
            let sizes = pictures.sizes().take(MAX_NAMES);
            let sizes: Vec<_> = sizes.map(|size| format!("{} KB", size.div_ceil(1_000))).collect();
            let more = if count > MAX_NAMES { ", …" } else { "" };
            format!("refused pictures; gnoma leaves {count} out ({}{more})", sizes.join(", "))
        }
    };
    let Some(most) = most else { return said };
    let gap = if said.is_empty() { "" } else { "; it " };
    let s = if most == 1 { "" } else { "s" };
    format!("{said}{gap}takes at most {most} picture{s} in a request; gnoma sends the newest")
}

/// `changes` with another one; `None` where it changes nothing any more.
pub(crate) fn merge_change(changes: &[Adaptation], new: Adaptation) -> Option<Vec<Adaptation>> {
    let mut all = changes.to_vec();
    let place =
        all.iter().position(|old| std::mem::discriminant(old) == std::mem::discriminant(&new));
    let old = place.and_then(|at| changes.get(at));
    match (&new, old) {
        (Adaptation::Field(_) | Adaptation::OneTool(_), _) if !changes.contains(&new) => {
            all.push(new);
        }
        (_, None) => all.push(new),
        (Adaptation::ToolTrials(_), Some(_)) => {
            all.retain(|old| !matches!(old, Adaptation::ToolTrials(_)));
            all.push(new);
        }
        // ReadRefusal again: then it is all of it.
        (Adaptation::EarlierThinking(_), Some(Adaptation::EarlierThinking(some)))
            if *some < usize::MAX =>
        {
            all.retain(|old| !matches!(old, Adaptation::EarlierThinking(_)));
            all.push(Adaptation::EarlierThinking(usize::MAX));
        }
        (Adaptation::MostTokens(now), Some(Adaptation::MostTokens(then))) if now < then => {
            all.retain(|old| !matches!(old, Adaptation::MostTokens(_)));
            all.push(new);
        }
        (Adaptation::RefusedPictures(_), Some(_)) => {
            all.retain(|old| !matches!(old, Adaptation::RefusedPictures(_)));
            all.push(new);
        }
        (Adaptation::Room(_), Some(_)) => {
            all.retain(|old| !matches!(old, Adaptation::Room(_)));
            all.push(new);
        }
        (_, Some(_)) => return None,
    }
    Some(all)
}
