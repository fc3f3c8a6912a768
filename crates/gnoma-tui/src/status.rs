//! What is known about the session, in the line at the bottom and in detail. Pure: counts in, lines
//! out.

use gnoma_core::{Usage, session::PermissionMode};

use crate::{
    picker::cut,
    text::{Ink, Line, Span, Style},
};

/// Stands between two parts.
const SEPARATOR: &str = " · ";

/// What the program tells about a session before it says anything itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The version of the program.
    pub version: String,
    /// The folder of the session, short.
    pub folder: String,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// The profile of the settings, where one is in use.
    pub profile: Option<String>,
    /// Nothing is stored.
    pub incognito: bool,
    /// The model that will be called first, as far as that is known.
    pub model: Option<String>,
    /// Tokens of its window; 0 when unknown.
    pub window: u64,
    /// How much is asked.
    pub mode: PermissionMode,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tokens of the last round.
    pub round: Usage,
    /// Tokens of the turn that runs or ran last.
    pub turn: Usage,
    /// Tokens of all turns before that.
    pub past: Usage,
    /// Turns that are over.
    pub turns: u32,
    /// What the turn cost as far as prices are known, in micro-dollars.
    pub turn_micro_usd: u64,
    /// The same for the session.
    pub session_micro_usd: u64,
}

impl Counts {
    /// What is counted from now on belongs to another turn.
    pub fn begin_turn(&mut self) {
        self.past += std::mem::take(&mut self.turn);
    }

    /// Tokens of the session.
    #[must_use]
    pub fn session(&self) -> Usage {
        let mut all = self.past;
        all += self.turn;
        all
    }
}

/// What the line at the bottom shows besides facts and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// What the program is doing; empty when it waits.
    pub busy: String,
    /// A hint that is wanted now, before everything else.
    pub hint: Option<String>,
    /// Prompts that wait for the turn to end.
    pub queued: usize,
}

/// A part of the line; parts of a higher rank go first when there is no room.
struct Part {
    rank: u8,
    span: Span,
}

/// The line at the bottom, in at most `width` columns.
#[must_use]
pub fn line(facts: &Facts, counts: &Counts, now: &Now, width: usize) -> Line {
    let mut parts = parts(facts, counts, now);
    let columns = |parts: &[Part]| {
        let gaps = parts.len().saturating_sub(1) * SEPARATOR.chars().count();
        parts.iter().map(|part| part.span.width()).sum::<usize>() + gaps
    };
    while columns(&parts) > width && parts.len() > 1 {
        let ranks = parts.iter().enumerate();
        let Some((last, _)) = ranks.max_by_key(|(_, part)| part.rank) else { break };
        parts.remove(last);
    }
    let mut line = Line::default();
    for part in parts {
        if !line.spans.is_empty() {
            line.spans.push(Span::new(SEPARATOR, dim()));
        }
        line.spans.push(part.span);
    }
    cut(line, width)
}

fn parts(facts: &Facts, counts: &Counts, now: &Now) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |rank, text: String, style| {
        if !text.is_empty() {
            parts.push(Part { rank, span: Span::new(text, style) });
        }
    };
    let accent = Style::of(Ink::Accent);
    let warning = Style::of(Ink::Warning);
    add(0, now.hint.clone().unwrap_or_default(), warning);
    add(1, now.busy.clone(), accent);
    let mode_style = if facts.mode == PermissionMode::Bypass { warning.bold() } else { accent };
    add(2, facts.mode.name().to_owned(), mode_style);
    add(3, if facts.incognito { "incognito".to_owned() } else { String::new() }, warning);
    add(4, queued(now.queued), warning);
    add(5, facts.model.clone().unwrap_or_default(), dim());
    let prompt = counts.round.prompt();
    add(6, share("context ", prompt, facts.window), fullness(prompt, facts.window));
    let session = counts.session().total();
    add(8, if session > 0 { format!("{} tokens", short(session)) } else { String::new() }, dim());
    add(9, share("cache ", counts.round.cache_read, prompt), dim());
    add(7, facts.branch.clone().unwrap_or_default(), dim());
    add(10, facts.folder.clone(), dim());
    add(
        11,
        facts.profile.as_ref().map(|name| format!("profile {name}")).unwrap_or_default(),
        dim(),
    );
    if now.hint.is_none() && now.busy.is_empty() && counts.turns == 0 {
        add(12, "/ commands · F1 help".to_owned(), dim());
    }
    parts
}

fn queued(count: usize) -> String {
    if count == 0 { String::new() } else { format!("{count} queued") }
}

/// A share in percent; empty when there is nothing to share.
fn share(name: &str, part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return String::new();
    }
    format!("{name}{}%", percent(part, whole))
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}

fn fullness(part: u64, whole: u64) -> Style {
    match percent(part, whole) {
        0..=69 => dim(),
        70..=89 => Style::of(Ink::Warning),
        _ => Style::of(Ink::Bad),
    }
}

/// A count in at most five characters.
#[must_use]
pub fn short(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=9_999 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        10_000..=999_999 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// All that is known, one thing a line.
#[must_use]
pub fn detail(facts: &Facts, counts: &Counts, session: &str, why: Option<&str>) -> Vec<Line> {
    let yes = |is: bool| if is { "on: nothing is stored" } else { "off" }.to_owned();
    let mut lines = vec![fact("version", facts.version.clone())];
    if !session.is_empty() {
        lines.push(fact("session", session.to_owned()));
    }
    lines.push(fact(
        "model",
        facts.model.clone().unwrap_or_else(|| "chosen with the first prompt".to_owned()),
    ));
    lines.extend(why.map(|why| fact("chosen because", why.to_owned())));
    lines
        .extend([fact("mode", facts.mode.name().to_owned()), fact("folder", facts.folder.clone())]);
    lines.extend(facts.branch.clone().map(|branch| fact("branch", branch)));
    lines.extend(facts.profile.clone().map(|profile| fact("profile", profile)));
    lines.push(fact("incognito", yes(facts.incognito)));
    lines.push(fact("context", context(facts, counts)));
    lines.push(fact("turns", counts.turns.to_string()));
    lines
}

/// Tokens of turn and session.
#[must_use]
pub fn usage(facts: &Facts, counts: &Counts) -> Vec<Line> {
    let of = |usage: Usage| {
        let cached = share("", usage.cache_read, usage.prompt());
        let cached = if cached.is_empty() { String::new() } else { format!(" ({cached})") };
        format!(
            "{} in, {} of it from the cache{cached}, {} out",
            short(usage.prompt()),
            short(usage.cache_read),
            short(usage.output)
        )
    };
    vec![
        fact("turn", of(counts.turn)),
        fact("session", of(counts.session())),
        fact(
            "total",
            format!("{} tokens, turns: {}", short(counts.session().total()), counts.turns),
        ),
        fact("context", context(facts, counts)),
    ]
}

fn context(facts: &Facts, counts: &Counts) -> String {
    let used = counts.round.prompt() + counts.round.output;
    if facts.window == 0 {
        return format!("{} tokens", short(used));
    }
    let percent = percent(used, facts.window);
    format!("{} of {} tokens ({percent}%)", short(used), short(facts.window))
}

/// A name and what it is, in two columns.
#[must_use]
pub fn fact(name: &str, value: String) -> Line {
    Line::from([Span::new(format!("  {name:<15}"), dim()), Span::new(value, Style::default())])
}

fn dim() -> Style {
    Style::of(Ink::Dim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> Facts {
        Facts {
            folder: "~/src/gnoma".to_owned(),
            branch: Some("main".to_owned()),
            profile: Some("work".to_owned()),
            incognito: true,
            model: Some("anthropic/opus".to_owned()),
            window: 200_000,
            mode: PermissionMode::Auto,
            ..Facts::default()
        }
    }

    fn counts() -> Counts {
        let round = Usage { input: 4_000, cache_read: 16_000, output: 500, ..Usage::default() };
        Counts { round, turn: round, turns: 1, ..Counts::default() }
    }

    #[test]
    fn a_wide_line_shows_all_and_a_narrow_one_what_matters() {
        let now = Now { busy: "working 3 s".to_owned(), queued: 2, ..Now::default() };
        let shown = |width| line(&facts(), &counts(), &now, width).plain();
        assert_eq!(
            shown(160),
            "working 3 s · auto · incognito · 2 queued · anthropic/opus · context 10% · 20k tokens \
             · cache 80% · main · ~/src/gnoma · profile work"
        );
        assert_eq!(shown(41), "working 3 s · auto · incognito · 2 queued");
        assert_eq!(shown(8), "working…");
    }

    #[test]
    fn counts_are_short() {
        let shown = [999, 1_250, 20_500, 1_260_000].map(short);
        assert_eq!(shown, ["999", "1.2k", "20k", "1.2M"]);
    }

    proptest! {
        #[test]
        fn the_line_is_never_too_wide(width in 1_usize..200, hint in "[a-z 漢]{0,30}") {
            let now = Now { hint: Some(hint), ..Now::default() };
            prop_assert!(line(&facts(), &counts(), &now, width).width() <= width);
        }
    }
}
