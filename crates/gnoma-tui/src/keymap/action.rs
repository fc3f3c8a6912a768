//! Names of everything that a key can do. The built-in table of keys says where each is allowed.

macro_rules! actions {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*) => {
        /// An action that a key asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Action {
            /// Every action, in the order of their kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name of the action in settings.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Describes the action in a sentence.
            #[must_use]
            pub fn help_text(self) -> &'static str {
                let about = match self {
                    $(Self::$variant => concat!($($doc),*),)*
                };
                about.trim()
            }
        }
    };
}

actions! {
    /// Send the message; during a turn, the model reads it at its next step.
    Send = "send",
    /// Begin a new line.
    Newline = "newline",
    /// Send the message when the turn has ended.
    Queue = "queue",
    /// One character to the left.
    Left = "left",
    /// One character to the right.
    Right = "right",
    /// One line of the screen up, or the choice above.
    Up = "up",
    /// One line of the screen down, or the choice below.
    Down = "down",
    /// To the start of the word.
    WordLeft = "word_left",
    /// Past the end of the word; in normal mode to the start of the next.
    WordRight = "word_right",
    /// To the last character of the word.
    WordEnd = "word_end",
    /// To the start of the line.
    LineStart = "line_start",
    /// To the first character of the line that is no space.
    LineTextStart = "line_text_start",
    /// To the end of the line.
    LineEnd = "line_end",
    /// To the start of the text.
    TextStart = "text_start",
    /// To the end of the text.
    TextEnd = "text_end",
    /// Delete the character to the left.
    DeleteLeft = "delete_left",
    /// Delete the character to the right.
    DeleteRight = "delete_right",
    /// Delete the character to the right; on an empty line, quit.
    DeleteRightOrQuit = "delete_right_or_quit",
    /// Delete to the start of the word.
    DeleteWordLeft = "delete_word_left",
    /// Delete to the end of the word.
    DeleteWordRight = "delete_word_right",
    /// Delete to the left up to a space.
    DeleteToSpace = "delete_to_space",
    /// Delete to the start of the line.
    DeleteToLineStart = "delete_to_line_start",
    /// Delete to the end of the line.
    DeleteToLineEnd = "delete_to_line_end",
    /// Insert what was deleted last.
    Yank = "yank",
    /// Right after that: replace it with what was deleted before.
    YankOlder = "yank_older",
    /// Swap the two characters around the cursor.
    Transpose = "transpose",
    /// Change the rest of the word to upper case.
    UppercaseWord = "uppercase_word",
    /// Change the rest of the word to lower case.
    LowercaseWord = "lowercase_word",
    /// Capitalize the rest of the word.
    CapitalizeWord = "capitalize_word",
    /// Undo the last change.
    Undo = "undo",
    /// Redo what was undone last.
    Redo = "redo",
    /// The prompt before this one.
    HistoryOlder = "history_older",
    /// The prompt after this one.
    HistoryNewer = "history_newer",
    /// Search earlier prompts; while searching, the next older match.
    HistorySearch = "history_search",
    /// Continue writing in `$VISUAL` or `$EDITOR`.
    ExternalEditor = "external_editor",
    /// Insert the image on the clipboard, else its text.
    PasteImage = "paste_image",
    /// Write before the cursor.
    Insert = "insert",
    /// Write at the start of the line.
    InsertAtLineStart = "insert_at_line_start",
    /// Write after the cursor.
    Append = "append",
    /// Write at the end of the line.
    AppendAtLineEnd = "append_at_line_end",
    /// Write on a new line below.
    OpenBelow = "open_below",
    /// Write on a new line above.
    OpenAbove = "open_above",
    /// Delete up to where the next key moves.
    Delete = "delete",
    /// Delete up to where the next key moves, and write there.
    Change = "change",
    /// Copy up to where the next key moves.
    Copy = "copy",
    /// Delete to the end of the line and write there.
    ChangeToLineEnd = "change_to_line_end",
    /// Insert what was deleted or copied last after the cursor.
    Put = "put",
    /// Insert what was deleted or copied last before the cursor.
    PutBefore = "put_before",
    /// A screenful up.
    PageUp = "page_up",
    /// A screenful down.
    PageDown = "page_down",
    /// To the first choice.
    First = "first",
    /// To the last choice.
    Last = "last",
    /// Select the choice.
    Accept = "accept",
    /// Select the choice and continue writing.
    Complete = "complete",
    /// Close without a choice.
    Close = "close",
    /// Switch the choice on or off.
    Toggle = "toggle",
    /// Remove the choice from the list.
    Remove = "remove",
    /// Approve this once.
    AllowOnce = "allow_once",
    /// Approve, and allow whatever the rule that is shown covers.
    AllowAlways = "allow_always",
    /// Approve a part, which you name.
    AllowPart = "allow_part",
    /// Deny.
    Refuse = "refuse",
    /// Deny, and send the model a message.
    RefuseWithReason = "refuse_with_reason",
    /// Change the rule that is offered.
    EditRule = "edit_rule",
    /// Change where the rule applies: this session, this project, everywhere.
    NextScope = "next_scope",
    /// Stop the turn and keep its work.
    Stop = "stop",
    /// Clear the text, or stop the turn; a second time, quit.
    Interrupt = "interrupt",
    /// End the session.
    Quit = "quit",
    /// Suspend to the shell.
    Suspend = "suspend",
    /// Leave the window while the session continues in its server.
    Detach = "detach",
    /// Redraw everything.
    Redraw = "redraw",
    /// The next permission mode.
    CycleMode = "cycle_mode",
    /// The next thinking mode: off, as the task needs, as your settings say.
    CycleThinking = "cycle_thinking",
    /// Incognito on or off.
    Incognito = "incognito",
    /// Show the newest folded output whole; again, fold it.
    Unfold = "unfold",
    /// Show or fold thinking.
    Thinking = "thinking",
    /// Choose the model.
    PickModel = "pick_model",
    /// Copy the last answer.
    CopyAnswer = "copy_answer",
    /// Show the keys and the commands.
    Help = "help",
    /// Scroll up a little.
    ScrollUp = "scroll_up",
    /// Scroll down a little.
    ScrollDown = "scroll_down",
    /// Scroll to the beginning.
    ScrollToStart = "scroll_to_start",
    /// Scroll to the end.
    ScrollToEnd = "scroll_to_end",
}

impl Action {
    /// The action of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}
