//! Calls in markup, element by element, and the marks that stand around calls.

/// Longest name in `<function=NAME>` and `[TOOL_CALLS]NAME`, and longest mark on a fence.
pub(super) const MAX_NAME_BYTES: usize = 128;

/// The elements of a call in markup.
pub(super) struct CallMarkup {
    /// Stands before the name of the tool.
    pub(super) begin: &'static str,
    /// Ends the call.
    pub(super) end: &'static str,
    /// Stands before the name of a parameter.
    pub(super) key: &'static str,
    /// Ends the name of a parameter.
    pub(super) key_end: &'static str,
    /// Stands before a value; nothing where the name's end does.
    pub(super) value: &'static str,
    /// Ends a value.
    pub(super) value_end: &'static str,
}

/// Elements that hold a call and its parameters.
pub(super) static MARKUPS: [CallMarkup; 2] = [
    CallMarkup {
        begin: "<function=",
        end: "</function>",
        key: "<parameter=",
        key_end: ">",
        value: "",
        value_end: "</parameter>",
    },
    CallMarkup {
        begin: "<invoke name=",
        end: "</invoke>",
        key: "<parameter name=",
        key_end: ">",
        value: "",
        value_end: "</parameter>",
    },
];
/// The elements behind GLM's tag and name.
pub(super) const GLM: CallMarkup = CallMarkup {
    begin: "",
    end: "</tool_call>",
    key: "<arg_key>",
    key_end: "</arg_key>",
    value: "<arg_value>",
    value_end: "</arg_value>",
};

/// Returns the markup that `text` begins with, or may begin with once more of it is there.
pub(super) fn find_markup(text: &str) -> Option<&'static CallMarkup> {
    MARKUPS.iter().find(|markup| may_become(text, markup.begin))
}

/// The parameters that a text begins with.
pub(super) enum Parameters<'a> {
    /// None: the text is no call.
    Text,
    /// More text must be seen.
    Open,
    /// The pairs, and what stands behind them.
    Read(Vec<(&'a str, &'a str)>, &'a str),
}

/// Parameters in `markup`, any number of them. One line break on either side of a value belongs to the form.
pub(super) fn parse_parameters<'a>(
    markup: &CallMarkup,
    text: &'a str,
    ended: bool,
) -> Parameters<'a> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while let Some(head) = rest.strip_prefix(markup.key) {
        let pair = head.split_once(markup.key_end);
        let pair = pair.and_then(|(key, body)| Some((key, body.split_once(markup.value)?.1)));
        let Some((key, body)) = pair else {
            return if head.len() <= MAX_NAME_BYTES && !ended {
                Parameters::Open
            } else {
                Parameters::Text
            };
        };
        let (value, behind) = match body.split_once(markup.value_end) {
            Some(found) => found,
            None if ended => match body.find(markup.end) {
                Some(end) => body.split_at(end),
                None => (body, ""),
            },
            None => return Parameters::Open,
        };
        let value = value.strip_prefix('\n').unwrap_or(value);
        let key = key.trim().trim_matches(['"', '\'']);
        pairs.push((key, value.strip_suffix('\n').unwrap_or(value)));
        rest = behind.trim_start();
    }
    if rest.starts_with(markup.end) || (ended && !pairs.is_empty()) {
        Parameters::Read(pairs, rest)
    } else if may_become(rest, markup.key) || may_become(rest, markup.end) {
        Parameters::Open
    } else {
        Parameters::Text
    }
}

/// `text` behind the end marks that may stand there, each at most once and in this order. `None` if
/// one of them may still come.
pub(super) fn without_ends<'a>(text: &'a str, ends: &[&str], ended: bool) -> Option<&'a str> {
    let mut rest = text;
    for end in ends {
        let trimmed = rest.trim_start();
        if let Some(behind) = trimmed.strip_prefix(end) {
            rest = behind;
        } else if !ended && may_become(trimmed, end) {
            return None;
        }
    }
    Some(rest)
}

/// Reports whether `text` starts with `mark`, or may do so once more of it is there.
pub(super) fn may_become(text: &str, mark: &str) -> bool {
    text.starts_with(mark) || mark.starts_with(text)
}

/// Returns the text after `mark` and white space; nothing while the mark is unfinished.
pub(super) fn strip_mark<'a>(text: &'a str, mark: &str) -> &'a str {
    text.strip_prefix(mark).unwrap_or_default().trim_start()
}
