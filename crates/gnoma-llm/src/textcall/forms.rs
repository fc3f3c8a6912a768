//! The forms in which models write calls as text.
//!
//! | form | written by |
//! |---|---|
//! | a fenced block, marked `json`, `tool_call` or not at all | most small models |
//! | `<tool_call>{…}</tool_call>`, often without its end | Hermes, Qwen |
//! | `<tools>{…}</tools>`, the tag of their list of tools | Qwen, when small |
//! | `<function=NAME>{…}</function>`, or with `<parameter=KEY>` inside | Llama, Qwen Coder |
//! | `[TOOL_CALLS][{…}]` or `[TOOL_CALLS]NAME[ARGS]{…}` | Mistral |
//! | an object or a list on lines of its own, at the end of the answer | most small models |
//!
//! A form only counts if every name in it is a tool on offer; anything else is text.

use super::{
    offer::{Offer, TextCall},
    scan,
};

/// Longest name in `<function=NAME>` and `[TOOL_CALLS]NAME`, and longest mark on a fence.
const MAX_NAME_BYTES: usize = 128;

/// Marks of a fence that may hold calls, and whether they say that it does.
const FENCES: [(&str, bool); 10] = [
    ("", false),
    ("json", false),
    ("xml", false),
    ("tool", true),
    ("tool_call", true),
    ("tool_calls", true),
    ("tool_use", true),
    ("function", true),
    ("function_call", true),
    ("functions", true),
];
const FENCE: &str = "```";
const TAGS: [(&str, &str); 3] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<tools>", "</tools>"),
];
const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";
const MISTRAL: &str = "[TOOL_CALLS]";
const MISTRAL_ARGUMENTS: &str = "[ARGS]";

/// The kind of text that a text starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormMatch {
    /// Plain text without calls.
    Text,
    /// The beginning may become calls: more text must be seen.
    Open,
    /// Calls, and how many bytes they take.
    Calls(usize, Vec<TextCall>),
}

/// A text that may start with calls.
#[derive(Clone, Copy)]
pub(super) struct CallText<'a> {
    pub(super) text: &'a str,
    /// True if only white space stands before the text on its line.
    pub(super) on_own_line: bool,
    /// No more text will come.
    pub(super) ended: bool,
}

impl Offer {
    /// Judges what `candidate` starts with.
    pub(super) fn match_form(&self, candidate: CallText<'_>) -> FormMatch {
        let CallText { text, on_own_line, ended } = candidate;
        let verdict = match text.bytes().next() {
            Some(b'<') => self.match_tagged(text, ended),
            Some(b'[') if may_become(text, MISTRAL) => self.match_mistral(text, ended),
            Some(b'{' | b'[') if on_own_line => self.match_bare(text, ended),
            Some(b'`') if on_own_line => self.match_fenced(text, ended),
            _ => FormMatch::Text,
        };
        match verdict {
            FormMatch::Open if ended => FormMatch::Text,
            verdict => verdict,
        }
    }

    fn match_tagged(&self, text: &str, ended: bool) -> FormMatch {
        if may_become(text, FUNCTION) {
            return self.match_function(text, ended);
        }
        let Some((tag, end)) = TAGS.into_iter().find(|(tag, _)| may_become(text, tag)) else {
            return FormMatch::Text;
        };
        let body = strip_mark(text, tag);
        if may_become(body, FUNCTION) {
            return shift_match(self.match_function(body, ended), text.len() - body.len());
        }
        let values = self.match_values(body, true, ended, &[end]);
        shift_match(values, text.len() - body.len())
    }

    fn match_mistral(&self, text: &str, ended: bool) -> FormMatch {
        let body = strip_mark(text, MISTRAL);
        let Some(start) = body.find(['{', '[']) else {
            return open_if(body.len() <= MAX_NAME_BYTES);
        };
        let (name, rest) = body.split_at(start);
        let name = name.trim();
        let value = match rest.strip_prefix(MISTRAL_ARGUMENTS) {
            Some(arguments) => arguments.trim_start(),
            None if MISTRAL_ARGUMENTS.starts_with(rest) => return FormMatch::Open,
            None => rest,
        };
        let is_known = name.is_empty() || self.names.has_tool(name);
        if !is_known || !value.starts_with(['{', '[']) {
            return open_if(is_known && value.is_empty());
        }
        let length = match scan::end_of(value) {
            Some(length) => length,
            None if ended => value.len(),
            None => return FormMatch::Open,
        };
        let (value, behind) = value.split_at(length);
        let calls = if name.is_empty() {
            self.parse_calls(value, true)
        } else {
            Some(vec![self.build_call(name, value)])
        };
        calls.map_or(FormMatch::Text, |calls| FormMatch::Calls(text.len() - behind.len(), calls))
    }

    /// `<function=NAME>` with JSON or parameters inside.
    fn match_function(&self, text: &str, ended: bool) -> FormMatch {
        let head = strip_mark(text, FUNCTION);
        let Some((name, body)) = head.split_once('>') else {
            return open_if(head.len() <= MAX_NAME_BYTES);
        };
        let name = name.trim_matches(['"', '\'', ' ']);
        if !self.names.has_tool(name) {
            return FormMatch::Text;
        }
        let body = body.trim_start();
        let (arguments, rest) = if body.starts_with('{') {
            match scan::end_of(body) {
                Some(length) => {
                    let (json, rest) = body.split_at(length);
                    (json.to_owned(), rest)
                }
                None if ended => {
                    let (json, rest) = body.split_once(FUNCTION_END).unwrap_or((body, ""));
                    (json.trim_end().to_owned(), rest)
                }
                None => return FormMatch::Open,
            }
        } else {
            match parse_parameters(body, ended) {
                Parameters::Open => return FormMatch::Open,
                Parameters::Text => return FormMatch::Text,
                Parameters::Read(pairs, rest) => (self.build_arguments(name, pairs), rest),
            }
        };
        match without_ends(rest, &[FUNCTION_END, TAGS[0].1], ended) {
            Some(rest) => {
                FormMatch::Calls(text.len() - rest.len(), vec![self.build_call(name, &arguments)])
            }
            None => FormMatch::Open,
        }
    }

    /// Objects or lists of calls, one after another, and what may end them.
    fn match_values(&self, text: &str, explicit: bool, ended: bool, ends: &[&str]) -> FormMatch {
        let mut calls = Vec::new();
        let mut rest = text.trim_start();
        while rest.starts_with(['{', '[']) {
            let Some(length) = scan::end_of(rest) else {
                return match self.parse_unfinished(rest, explicit, ended, ends) {
                    Some((length, call)) => {
                        calls.extend(call);
                        FormMatch::Calls(text.len() - rest.len() + length, calls)
                    }
                    None => open_if(!ended && (explicit || self.is_hopeful(rest))),
                };
            };
            let (value, after) = rest.split_at(length);
            match self.parse_calls(value, explicit) {
                Some(found) => calls.extend(found),
                None => return FormMatch::Text,
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
        if calls.is_empty() {
            return open_if(rest.is_empty());
        }
        match without_ends(rest, ends, ended) {
            Some(rest) => FormMatch::Calls(text.len() - rest.len(), calls),
            None => FormMatch::Open,
        }
    }

    /// A value whose brackets do not close although the answer is over: what stands before the end
    /// mark, or all of it, if it names a tool and has begun its arguments.
    fn parse_unfinished(
        &self,
        text: &str,
        explicit: bool,
        ended: bool,
        ends: &[&str],
    ) -> Option<(usize, Vec<TextCall>)> {
        if !ended {
            return None;
        }
        let cut = ends.iter().find_map(|end| Some((text.rfind(end)?, end.len())));
        let (length, end) = cut.unwrap_or((text.len(), 0));
        let value = text.get(..length)?.trim_end();
        let calls = self.parse_calls(value, explicit)?;
        Some((length + end, calls))
    }

    /// Objects and lists on lines of their own, up to the end of the answer: a model that goes on in
    /// words was only talking about a call.
    fn match_bare(&self, text: &str, ended: bool) -> FormMatch {
        let mut calls = Vec::new();
        let mut rest = text;
        while rest.starts_with(['{', '[']) {
            let Some(length) = scan::end_of(rest) else {
                return match self.parse_unfinished(rest, false, ended, &[]) {
                    Some((_, cut)) => {
                        calls.extend(cut);
                        FormMatch::Calls(text.len(), calls)
                    }
                    None => open_if(self.is_hopeful(rest)),
                };
            };
            let (value, behind) = rest.split_at(length);
            let Some(found) = self.parse_calls(value, false) else {
                return FormMatch::Text;
            };
            calls.extend(found);
            rest = behind.trim_start();
            if !rest.is_empty() && !behind[..behind.len() - rest.len()].contains('\n') {
                return FormMatch::Text;
            }
        }
        match rest {
            "" if ended => FormMatch::Calls(text.len(), calls),
            "" => FormMatch::Open,
            _ => FormMatch::Text,
        }
    }

    fn match_fenced(&self, text: &str, ended: bool) -> FormMatch {
        if !may_become(text, FENCE) {
            return FormMatch::Text;
        }
        let line = text.strip_prefix(FENCE).unwrap_or_default();
        let (mark, body) = line.split_once('\n').unwrap_or((line, ""));
        let mark = mark.trim().to_ascii_lowercase();
        if !line.contains('\n') {
            return open_if(FENCES.iter().any(|(known, _)| known.starts_with(&mark)));
        }
        let Some((_, explicit)) = FENCES.into_iter().find(|(known, _)| *known == mark) else {
            return FormMatch::Text;
        };
        let offset = text.len() - body.len();
        let inner = body.trim_start();
        let verdict = if inner.starts_with('<') {
            shift_match(self.match_tagged(inner, ended), text.len() - inner.len())
        } else {
            shift_match(self.match_values(body, explicit, ended, &[FENCE]), offset)
        };
        let FormMatch::Calls(length, calls) = verdict else {
            return verdict;
        };
        let (block, rest) = text.split_at(length);
        if block.ends_with(FENCE) {
            return FormMatch::Calls(length, calls);
        }
        match without_ends(rest, &[FENCE], ended) {
            None => FormMatch::Open,
            // The block holds something else too.
            Some(rest) if !rest.is_empty() && rest.len() == text.len() - length => FormMatch::Text,
            Some(rest) => FormMatch::Calls(text.len() - rest.len(), calls),
        }
    }
}

enum Parameters<'a> {
    Text,
    Open,
    /// The pairs, and what stands behind them.
    Read(Vec<(&'a str, &'a str)>, &'a str),
}

/// `<parameter=KEY>VALUE</parameter>`, any number of them. One line break on either side of a value
/// belongs to the form.
fn parse_parameters(text: &str, ended: bool) -> Parameters<'_> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while let Some(head) = rest.strip_prefix(PARAMETER) {
        let Some((key, body)) = head.split_once('>') else {
            return if head.len() <= MAX_NAME_BYTES && !ended {
                Parameters::Open
            } else {
                Parameters::Text
            };
        };
        let (value, behind) = match body.split_once(PARAMETER_END) {
            Some(found) => found,
            None if ended => match body.find(FUNCTION_END) {
                Some(end) => body.split_at(end),
                None => (body, ""),
            },
            None => return Parameters::Open,
        };
        let value = value.strip_prefix('\n').unwrap_or(value);
        pairs.push((key.trim(), value.strip_suffix('\n').unwrap_or(value)));
        rest = behind.trim_start();
    }
    if rest.starts_with(FUNCTION_END) || (ended && !pairs.is_empty()) {
        Parameters::Read(pairs, rest)
    } else if may_become(rest, PARAMETER) || may_become(rest, FUNCTION_END) {
        Parameters::Open
    } else {
        Parameters::Text
    }
}

/// `text` behind the end marks that may stand there, each at most once and in this order. `None` if
/// one of them may still come.
fn without_ends<'a>(text: &'a str, ends: &[&str], ended: bool) -> Option<&'a str> {
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
fn may_become(text: &str, mark: &str) -> bool {
    text.starts_with(mark) || mark.starts_with(text)
}

/// Returns the text after `mark` and white space; nothing while the mark is unfinished.
fn strip_mark<'a>(text: &'a str, mark: &str) -> &'a str {
    text.strip_prefix(mark).unwrap_or_default().trim_start()
}

fn open_if(open: bool) -> FormMatch {
    if open { FormMatch::Open } else { FormMatch::Text }
}

fn shift_match(verdict: FormMatch, by: usize) -> FormMatch {
    match verdict {
        FormMatch::Calls(length, calls) => FormMatch::Calls(length + by, calls),
        other => other,
    }
}
