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
    /// Send what is written; while a turn runs it steers.
    Send = "send",
    /// Begin a new line.
    Newline = "newline",
    /// Send what is written when the turn has ended.
    Queue = "queue",
    /// One grapheme to the left.
    Left = "left",
    /// One grapheme to the right.
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
    /// Delete the grapheme to the left.
    DeleteLeft = "delete_left",
    /// Delete the grapheme to the right.
    DeleteRight = "delete_right",
    /// Delete the grapheme to the right; where nothing is written, quit.
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
    /// Right after that: what was deleted before it instead.
    YankOlder = "yank_older",
    /// Swap the two graphemes around the cursor.
    Transpose = "transpose",
    /// The rest of the word in upper case.
    UppercaseWord = "uppercase_word",
    /// The rest of the word in lower case.
    LowercaseWord = "lowercase_word",
    /// The rest of the word with a capital.
    CapitalizeWord = "capitalize_word",
    /// Take the last change back.
    Undo = "undo",
    /// Make it again.
    Redo = "redo",
    /// The prompt before this one.
    HistoryOlder = "history_older",
    /// The prompt after this one.
    HistoryNewer = "history_newer",
    /// Search the prompts; while searching, the next older hit.
    HistorySearch = "history_search",
    /// Write on in the editor of choice.
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
    /// Delete what the next key spans.
    Delete = "delete",
    /// Delete what the next key spans and write there.
    Change = "change",
    /// Keep what the next key spans for putting.
    Copy = "copy",
    /// Delete to the end of the line and write there.
    ChangeToLineEnd = "change_to_line_end",
    /// Insert what was deleted or copied last behind the cursor.
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
    /// Take the choice.
    Accept = "accept",
    /// Take the choice and write on.
    Complete = "complete",
    /// Leave without a choice.
    Close = "close",
    /// Switch the choice on or off.
    Toggle = "toggle",
    /// Take the choice off the list.
    Remove = "remove",
    /// Yes, this once.
    AllowOnce = "allow_once",
    /// Yes, and for everything that the rule shown covers.
    AllowAlways = "allow_always",
    /// Yes to a part, which will be named.
    AllowPart = "allow_part",
    /// No.
    Refuse = "refuse",
    /// No, with words to the model.
    RefuseWithReason = "refuse_with_reason",
    /// Change the rule that is offered.
    EditRule = "edit_rule",
    /// Choose where the rule holds: this session, this project, everywhere.
    NextScope = "next_scope",
    /// Stop the turn and keep its work.
    Stop = "stop",
    /// Clear the text, or stop the turn; a second time, quit.
    Interrupt = "interrupt",
    /// End the session.
    Quit = "quit",
    /// Give the terminal back to the shell for a while.
    Suspend = "suspend",
    /// Leave the window while the session continues in its server.
    Detach = "detach",
    /// Draw everything again.
    Redraw = "redraw",
    /// The next permission mode.
    CycleMode = "cycle_mode",
    /// The next way to think: off, as the task needs, as set.
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
    /// The transcript a little up.
    ScrollUp = "scroll_up",
    /// The transcript a little down.
    ScrollDown = "scroll_down",
    /// To the start of the transcript.
    ScrollToStart = "scroll_to_start",
    /// To the end of the transcript.
    ScrollToEnd = "scroll_to_end",
}

impl Action {
    /// The action of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}
