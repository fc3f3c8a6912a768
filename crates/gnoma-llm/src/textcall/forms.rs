//! The forms in which models write calls as text.
//!
//! | form | written by |
//! |---|---|
//! | a fenced block, marked `json`, `tool_call` or not at all | most small models |
//! | `<tool_call>{…}</tool_call>`, often without its end | Hermes, Qwen |
//! | `<tools>{…}</tools>`, the tag of their list of tools | Qwen, when small |
//! | `{…}` behind the token `python_tag` or `tool_call`, or in `<TOOLCALL>` | Llama, Granite, Nemotron |
//! | `<function=NAME>{…}</function>`, or with `<parameter=KEY>` inside | Llama, Qwen Coder |
//! | `<invoke name="NAME">` with `<parameter name="KEY">` inside | MiniMax, and models that learnt from Claude |
//! | `<tool_call>NAME`, then `<arg_key>KEY</arg_key><arg_value>…</arg_value>` | GLM |
//! | tokens around `NAME` and `{…}`, see [`NAMED`] | Kimi, DeepSeek, gpt-oss |
//! | `[TOOL_CALLS][{…}]` or `[TOOL_CALLS]NAME[ARGS]{…}` | Mistral |
//! | an object or a list on lines of its own | most small models |
//!
//! A form only counts if every name in it is a tool on offer, and if the model does not go on in words (see
//! [`Offer::match_to_end`]); anything else is text. A token of a chat template at the end, such as `<|im_end|>`, stands
//! for nothing.

use super::{
    markup::{
        CallMarkup, GLM, MARKUPS, MAX_NAME_BYTES, Parameters, find_markup, may_become,
        parse_parameters, strip_mark, without_ends,
    },
    offer::{Offer, TextCall},
    scan,
};

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
/// Marks before calls, and the mark behind them.
static TAGS: [(&str, &str); 8] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<function_calls>", "</function_calls>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<tools>", "</tools>"),
    ("<TOOLCALL>", "</TOOLCALL>"),
    ("<|python_tag|>", "<|eom_id|>"),
    ("<|tool_call|>", "<|end_of_text|>"),
];
/// Tokens before a head that names the tool; the arguments follow it as an object. Such are
/// `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}` (Kimi), `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}`
/// (DeepSeek) and `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}` (gpt-oss).
const NAMED: [&str; 6] = [
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<|channel|>",
    "<|start|>assistant",
];
/// The ends of such a head.
const HEAD_ENDS: [&str; 4] = ["|>", "｜>", "```json", FENCE];
/// Longest head of a named call.
const MAX_HEAD_BYTES: usize = 256;
/// The ends of a turn in templates whose tokens look like elements. They count on a line of their own only.
const PLAIN_TOKENS: [&str; 2] = ["</s>", "<end_of_turn>"];
const MISTRAL: &str = "[TOOL_CALLS]";
const MISTRAL_ARGUMENTS: &str = "[ARGS]";

/// The kind of text that a text starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormMatch {
    /// Plain text without calls.
    Text,
    /// The beginning may become calls: more text must be seen.
    Open,
    /// Calls, and how many bytes they take; no calls where a token of a template stands.
    Calls(usize, Vec<TextCall>),
}

/// Most tokens of a template before a call.
const MAX_TOKENS: usize = 16;

/// A text that may start with calls.
#[derive(Clone, Copy)]
pub(super) struct CallText<'a> {
    pub(super) text: &'a str,
    /// True if only white space stands before the text on its line.
    pub(super) on_own_line: bool,
    /// True if the answer has no words before the text.
    pub(super) opens_answer: bool,
    /// No more text will come.
    pub(super) ended: bool,
}

impl Offer {
    /// Judges what `candidate` starts with and all that follows it. Words behind a call show that the model was only
    /// talking about it, unless the call opens the answer in a form of its own: then they stand on lines of their own
    /// and are a result that a small model invents.
    pub(super) fn match_to_end(&self, candidate: CallText<'_>) -> FormMatch {
        let ended = candidate.ended;
        let (mut calls, mut tokens) = (Vec::new(), 0);
        let mut next = candidate;
        let (mut is_meant, mut is_apart) = (candidate.opens_answer, false);
        loop {
            match self.match_form(next) {
                FormMatch::Calls(length, found) => {
                    is_meant &= is_marked(next.text);
                    let is_token = found.is_empty();
                    tokens += usize::from(is_token && calls.is_empty());
                    if tokens > MAX_TOKENS {
                        return FormMatch::Text;
                    }
                    calls.extend(found);
                    let behind = next.text.get(length..).unwrap_or_default();
                    let is_call = !calls.is_empty();
                    let text = if is_call { skip_closers(behind) } else { behind.trim_start() };
                    let before = next.text.strip_suffix(text).unwrap_or_default();
                    let space = before.get(before.trim_end().len()..).unwrap_or_default();
                    is_apart = is_token || space.contains('\n');
                    next = CallText { text, on_own_line: true, ..next };
                }
                FormMatch::Open if !calls.is_empty() => break,
                FormMatch::Text if !calls.is_empty() && is_meant && is_apart => break,
                verdict => return verdict,
            }
            let may_close = || closers().any(|closer| closer.starts_with(next.text));
            if next.text.is_empty() || (!ended && may_close()) {
                break;
            }
        }
        FormMatch::Calls(candidate.text.len() - next.text.len(), calls)
    }

    /// Judges what `candidate` starts with, whatever follows.
    fn match_form(&self, candidate: CallText<'_>) -> FormMatch {
        let CallText { text, on_own_line, ended, .. } = candidate;
        let verdict = match text.bytes().next() {
            Some(b'<') => self.match_tagged(text, on_own_line, ended),
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

    fn match_tagged(&self, text: &str, on_own_line: bool, ended: bool) -> FormMatch {
        if let Some(markup) = find_markup(text) {
            return self.match_markup(markup, text, TAGS[0].1, ended);
        }
        if let Some((tag, end)) = TAGS.into_iter().find(|(tag, _)| may_become(text, tag)) {
            let body = strip_mark(text, tag);
            let verdict = match find_markup(body) {
                Some(markup) => self.match_markup(markup, body, end, ended),
                None if body.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                    self.match_markup(&GLM, body, end, ended)
                }
                None => self.match_values(body, true, ended, &[end]),
            };
            return shift_match(verdict, text.len() - body.len());
        }
        if let Some(mark) = NAMED.into_iter().find(|mark| may_become(text, mark)) {
            return self.match_named(text, mark, ended);
        }
        let mut plain = PLAIN_TOKENS.into_iter().filter(|_| on_own_line);
        match plain.find(|token| may_become(text, token)) {
            Some(token) if text.starts_with(token) => FormMatch::Calls(token.len(), Vec::new()),
            Some(_) => FormMatch::Open,
            None => match_token(text),
        }
    }

    /// A head that names the tool, and the arguments as an object.
    fn match_named(&self, text: &str, mark: &str, ended: bool) -> FormMatch {
        let body = strip_mark(text, mark);
        let start = body.bytes().take(MAX_HEAD_BYTES + 1).position(|byte| byte == b'{');
        let Some(start) = start else {
            return open_if(body.len() <= MAX_HEAD_BYTES);
        };
        let (head, value) = body.split_at(start);
        let is_whole = HEAD_ENDS.iter().any(|end| head.trim_end().ends_with(*end));
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_tool = |word: &&str| self.names.has_tool(self.names.tool_name(word));
        // Thoughts may stand before the name, and name other tools.
        let mut words = head.rsplit(|c: char| !is_part(c));
        let name = words.find(is_tool).filter(|_| is_whole && head.len() <= MAX_HEAD_BYTES);
        let Some(name) = name else {
            return FormMatch::Text;
        };
        let length = match scan::end_of(value) {
            Some(length) => length,
            None if ended => value.len(),
            None => return FormMatch::Open,
        };
        let (value, behind) = value.split_at(length);
        // DeepSeek writes the arguments in a fenced block.
        let fence: &[&str] = if head.contains(FENCE) { &[FENCE] } else { &[] };
        match without_ends(behind, fence, ended) {
            Some(behind) => {
                let call = self.build_call(name, value);
                FormMatch::Calls(text.len() - behind.len(), vec![call])
            }
            None => FormMatch::Open,
        }
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

    /// A name in markup with JSON or parameters behind it. `tag_end` may follow the end of the call.
    fn match_markup(
        &self,
        markup: &CallMarkup,
        text: &str,
        tag_end: &str,
        ended: bool,
    ) -> FormMatch {
        let head = strip_mark(text, markup.begin);
        let Some(length) = head.find(['>', '<', '\n']) else {
            return open_if(head.len() <= MAX_NAME_BYTES);
        };
        let (name, body) = head.split_at(length);
        let name = name.trim_matches(['"', '\'', ' ']);
        if !self.names.has_tool(name) {
            return FormMatch::Text;
        }
        let body = body.strip_prefix('>').unwrap_or(body).trim_start();
        let (arguments, rest) = if body.starts_with('{') {
            match scan::end_of(body) {
                Some(length) => {
                    let (json, rest) = body.split_at(length);
                    (json.to_owned(), rest)
                }
                None if ended => {
                    let (json, rest) = body.split_once(markup.end).unwrap_or((body, ""));
                    (json.trim_end().to_owned(), rest)
                }
                None => return FormMatch::Open,
            }
        } else {
            match parse_parameters(markup, body, ended) {
                Parameters::Open => return FormMatch::Open,
                Parameters::Text => return FormMatch::Text,
                Parameters::Read(pairs, rest) => (self.build_arguments(name, pairs), rest),
            }
        };
        match without_ends(rest, &[markup.end, tag_end], ended) {
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

    /// Objects and lists on lines of their own.
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
            let is_line_end = behind[..behind.len() - rest.len()].contains('\n');
            if !is_line_end && !rest.is_empty() && !rest.starts_with('<') {
                return FormMatch::Text;
            }
        }
        if rest.is_empty() && !ended {
            return FormMatch::Open;
        }
        FormMatch::Calls(text.len() - rest.len(), calls)
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
            shift_match(self.match_tagged(inner, true, ended), text.len() - inner.len())
        } else {
            shift_match(self.match_values(body, explicit, ended, &[FENCE]), offset)
        };
        let FormMatch::Calls(length, calls) = verdict else {
            return verdict;
        };
        if calls.is_empty() {
            return FormMatch::Text;
        }
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

/// Reports whether the form that `text` starts with says by itself that it is a call.
fn is_marked(text: &str) -> bool {
    let is_marked_fence =
        |text: &str| FENCES.iter().any(|(mark, explicit)| *explicit && text.starts_with(*mark));
    text.starts_with('<')
        || text.starts_with(MISTRAL)
        || text.strip_prefix(FENCE).is_some_and(is_marked_fence)
}

/// A token of a chat template: it stands for no call.
fn match_token(text: &str) -> FormMatch {
    const BEGINS: [&str; 2] = ["<|", "<｜"];
    const ENDS: [&str; 2] = ["|>", "｜>"];
    let Some(inner) = BEGINS.into_iter().find_map(|begin| text.strip_prefix(begin)) else {
        return open_if(BEGINS.iter().any(|begin| begin.starts_with(text)));
    };
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '▁');
    let behind = inner.trim_start_matches(is_part);
    if behind.len() == inner.len() && !inner.is_empty() {
        return FormMatch::Text;
    }
    match ENDS.into_iter().find_map(|end| behind.strip_prefix(end)) {
        Some(rest) => FormMatch::Calls(text.len() - rest.len(), Vec::new()),
        None => {
            open_if(inner.len() <= MAX_NAME_BYTES && ENDS.iter().any(|end| end.starts_with(behind)))
        }
    }
}

/// The marks that end calls.
fn closers() -> impl Iterator<Item = &'static str> {
    TAGS.iter().map(|(_, end)| *end).chain(MARKUPS.iter().map(|markup| markup.end))
}

/// `text` without what models leave behind a call: white space, brackets too many, and marks that end calls.
fn skip_closers(text: &str) -> &str {
    let is_left = |c: char| c.is_whitespace() || matches!(c, '}' | ']');
    let mut rest = text.trim_start_matches(is_left);
    while let Some(behind) = closers().find_map(|closer| rest.strip_prefix(closer)) {
        rest = behind.trim_start_matches(is_left);
    }
    rest
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
