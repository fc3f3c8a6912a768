//! Permission questions on the terminal.
//!
//! The question goes to the terminal itself, not to standard output or input: these may be pipes.

use std::{collections::VecDeque, fs::File, sync::Arc};

use gnoma_core::{
    Event, ToolCall,
    message::CallId,
    protocol::Request,
    session::{Inquiry, NotableChange, PermissionAnswer},
    tool::approval_question,
};
use serde_json::{Map, Value};
use tokio::task::{JoinHandle, spawn_blocking};

use super::wording::{call_headline, shorten_line};
use crate::{
    environment::ProcessEnvironment,
    report,
    screen::{Size, mark_unsafe_chars, split_into_rows},
    terminal,
};

/// Screen rows of a diff that are shown.
const MAX_PREVIEW_ROWS: usize = 40;
/// Screen rows around the arguments at most: the heading, the reason, the prompt and the lines about
/// what is left out.
const FRAME_ROWS: usize = 9;
/// Rows of a long command's start that are shown again next to the prompt.
const MAX_HEAD_ROWS: usize = 10;
/// The same for its end.
const MAX_TAIL_ROWS: usize = 5;
/// Rows of both together, however low the terminal is.
const MIN_DIGEST_ROWS: usize = 3;

/// Lines that are no answer, after which the next one counts whatever it says.
const MAX_SLIPS: usize = 5;

/// Asks for permission on the terminal, one call at a time.
pub struct Asker {
    who: QuestionTarget,
    /// Questions that wait for the open one.
    waiting: VecDeque<Question>,
    open: Option<JoinHandle<Request>>,
}

/// The party that answers questions.
enum QuestionTarget {
    /// The person at the terminal.
    Terminal(Arc<File>),
    /// Nobody: the demo allows what its own script does, and says so.
    Demo,
}

struct Question {
    call: CallId,
    text: String,
    wanted: ExpectedAnswer,
}

/// The kind of answer that a line is read as.
enum ExpectedAnswer {
    /// Yes or no, or more where that is offered.
    Permission(LastingAnswers),
    /// One of these by its number, or other words.
    Words(Vec<String>),
}

/// The answers that a question offers besides yes and no.
#[derive(Clone, Copy)]
struct QuestionOptions<'a> {
    /// The rule that a lasting yes would add.
    always: Option<&'a str>,
    /// True if the command has run on trial, and some of what it changed can be kept.
    has_parts: bool,
    /// The changes of the trial that a person must see by name.
    notable: &'a [NotableChange],
}

/// The answers that exist besides yes and no.
#[derive(Clone, Copy, Default)]
struct LastingAnswers {
    always: bool,
    part: bool,
}

impl Asker {
    /// Creates an asker, if there is a terminal and standard error is shown on one.
    pub fn of_terminal(around: &ProcessEnvironment) -> Option<Self> {
        Some(Self::new(QuestionTarget::Terminal(Arc::new(terminal::open_terminal(around)?))))
    }

    /// Creates an asker that allows everything, for the demo's own script.
    pub fn of_demo() -> Self {
        Self::new(QuestionTarget::Demo)
    }

    fn new(who: QuestionTarget) -> Self {
        Self { who, waiting: VecDeque::new(), open: None }
    }

    /// Shows what is asked, after what was asked before; [`wait_for_answer`] gives the answers.
    pub(super) fn on_event(&mut self, event: &Event) {
        let Event::PermissionAsked {
            call, reason, preview, always, inquiry, parts, notable, ..
        } = event
        else {
            return;
        };
        let preview = preview.as_deref();
        let has_parts = !parts.is_empty();
        let offered = QuestionOptions { always: always.as_deref(), has_parts, notable };
        let text = match (&self.who, inquiry) {
            (QuestionTarget::Terminal(_), Some(inquiry)) => render_inquiry(reason, inquiry),
            (QuestionTarget::Terminal(terminal), None) => {
                render_question(call, reason, preview, offered, Size::of_terminal(terminal))
            }
            (QuestionTarget::Demo, _) => {
                format!("? {} ({reason}): approved by the demo", call_headline(call))
            }
        };
        let wanted = match inquiry {
            Some(inquiry) => ExpectedAnswer::Words(inquiry.choices.clone()),
            None => {
                let (always, part) = (offered.always.is_some(), offered.has_parts);
                ExpectedAnswer::Permission(LastingAnswers { always, part })
            }
        };
        self.waiting.push_back(Question { call: call.id.clone(), text, wanted });
        self.open_next();
    }

    fn open_next(&mut self) {
        if self.open.is_some() {
            return;
        }
        let Some(question) = self.waiting.pop_front() else { return };
        let Question { call, text, wanted } = question;
        self.open = Some(match &self.who {
            QuestionTarget::Terminal(terminal) => {
                let terminal = Arc::clone(terminal);
                spawn_blocking(move || {
                    let line = ask_until_valid(&terminal, text, &wanted);
                    let answer = parse_answer(line.as_deref(), &wanted);
                    Request::Answer { call, answer }
                })
            }
            QuestionTarget::Demo => {
                report::print_line(text);
                spawn_blocking(|| Request::Answer { call, answer: PermissionAnswer::Allow })
            }
        });
    }
}

/// A line from the terminal. A key that is none here is no reason to deny: the keys are told instead.
fn ask_until_valid(terminal: &File, mut text: String, wanted: &ExpectedAnswer) -> Option<String> {
    for _ in 0..MAX_SLIPS {
        let line = terminal::ask_line(terminal, &text);
        match line.as_deref().and_then(|line| no_key(line, wanted)) {
            Some(told) => text = told,
            None => return line,
        }
    }
    terminal::ask_line(terminal, &text)
}

/// Returns a hint for a line that was meant as a key and is none.
fn no_key(line: &str, wanted: &ExpectedAnswer) -> Option<String> {
    let ExpectedAnswer::Permission(offers) = wanted else { return None };
    let line = line.trim();
    let word = line.to_lowercase();
    let is_known = match word.as_str() {
        "y" | "yes" | "n" | "no" => true,
        "a" | "always" => offers.always,
        "p" | "part" => false,
        other => other.chars().count() != 1,
    };
    let always = if offers.always { "[a]lways, " } else { "" };
    let keys = format!("[y]es, {}{always}[n]o, or a reason to deny:  ", part_key(offers.part));
    (!is_known).then(|| format!("`{}` is not one of the answers. {keys}", mark_unsafe_chars(line)))
}

fn part_key(is_offered: bool) -> &'static str {
    if is_offered { "[p]art (p FILE, FILE or p FOLDER), " } else { "" }
}

/// The answer to the question that is open; never, if none is.
pub(super) async fn wait_for_answer(asker: &mut Option<Asker>) -> Request {
    let Some(asker) = asker else {
        return std::future::pending().await;
    };
    let Some(open) = &mut asker.open else {
        return std::future::pending().await;
    };
    let answer = open.await;
    asker.open = None;
    asker.open_next();
    answer.unwrap_or(Request::Cancel)
}

fn render_question(
    call: &ToolCall,
    reason: &str,
    preview: Option<&str>,
    QuestionOptions { always, has_parts, notable }: QuestionOptions<'_>,
    size: Size,
) -> String {
    let reason = shorten_line(reason);
    // Where the question does not say which file it is, the diff does.
    let names_file =
        call.arguments.read::<Map<String, Value>>().is_ok_and(|all| all.contains_key("path"));
    let body = match preview {
        Some(diff) if has_parts || !names_file => cut_diff(&mark_unsafe_chars(diff), size),
        Some(diff) => cut_diff(without_file_names(&mark_unsafe_chars(diff)), size),
        None => with_digest(&mark_unsafe_chars(&render_arguments(call)), size),
    };
    let always =
        always.map_or_else(String::new, |rule| format!("[a]lways {}, ", mark_unsafe_chars(rule)));
    if has_parts {
        return format!(
            "\nKeep what this command changed?\n{}\n{body}\n({reason})\n{}\
             [y]es, {}{always}[n]o, or a reason to deny:  ",
            with_digest(&mark_unsafe_chars(&render_arguments(call)), size),
            render_notable_changes(notable),
            part_key(true)
        );
    }
    let title = mark_unsafe_chars(&approval_question(call)).to_string();
    format!(
        "\n{title}\n{body}\n({reason})\n{}\
         [y]es, {always}[n]o, or a reason to deny:  ",
        render_notable_changes(notable)
    )
}

/// Lists the changes that a person must see by name, one in each line, to stand right above the answer.
fn render_notable_changes(notable: &[NotableChange]) -> String {
    if notable.is_empty() {
        return String::new();
    }
    let line = |change: &NotableChange| {
        format!("  ! {}  {}\n", mark_unsafe_chars(&change.name), mark_unsafe_chars(&change.what))
    };
    format!("Look at these first:\n{}", notable.iter().map(line).collect::<String>())
}

/// A diff without the names of its file, which the question has.
fn without_file_names(diff: &str) -> &str {
    let is_one = diff.lines().filter(|line| line.starts_with("+++ ")).count() == 1;
    let rest = diff.split_once("\n").and_then(|(old, rest)| {
        let (new, rest) = rest.split_once('\n')?;
        (old.starts_with("--- ") && new.starts_with("+++ ")).then_some(rest)
    });
    rest.filter(|_| is_one).unwrap_or(diff)
}

/// The beginning of a diff, and how much more there is.
fn cut_diff(diff: &str, size: Size) -> String {
    let diff = diff.trim_end_matches('\n');
    let rows = split_into_rows(diff, size.columns);
    match rows.split_at_checked(MAX_PREVIEW_ROWS) {
        None | Some((_, [])) => diff.to_owned(),
        Some((shown, hidden)) => format!(
            "{}\n… {} more characters not shown, but written too",
            shown.join("\n"),
            count_characters(hidden)
        ),
    }
}

/// The whole text; where it is too long for the screen, its start and end again beneath it, so that
/// nothing can scroll away before the question is read.
fn with_digest(text: &str, size: Size) -> String {
    let rows = split_into_rows(text, size.columns);
    let room = size.rows.saturating_sub(FRAME_ROWS).max(MIN_DIGEST_ROWS);
    if rows.len() <= room {
        return text.to_owned();
    }
    let tail = MAX_TAIL_ROWS.min(room / 3);
    let head = MAX_HEAD_ROWS.min(room - tail);
    let (start, rest) = rows.split_at(head);
    let (middle, end) = rest.split_at(rest.len() - tail);
    let (count, left_out) = (rows.len(), count_characters(middle));
    let (start, end) = (start.join("\n"), end.join("\n"));
    format!(
        "{text}\n({count} rows; the start and the end:)\n\
         {start}\n… {left_out} characters omitted; scroll up to see them …\n{end}"
    )
}

fn count_characters(rows: &[&str]) -> usize {
    rows.iter().map(|row| row.chars().count()).sum()
}

/// The arguments to read: what runs must be seen as it runs, so a command comes first and decoded.
fn render_arguments(call: &ToolCall) -> String {
    let arguments: Value = call.arguments.read().unwrap_or_default();
    let Value::Object(mut arguments) = arguments else {
        return call.arguments.get().to_owned();
    };
    match arguments.remove("command") {
        Some(Value::String(command)) if arguments.is_empty() => command,
        Some(Value::String(command)) => format!("{command}\n{}", Value::Object(arguments)),
        Some(_) | None => call.arguments.get().to_owned(),
    }
}

/// A question of the model's, and the answers that it offers.
fn render_inquiry(question: &str, inquiry: &Inquiry) -> String {
    let mut text = format!("\n{}\n", mark_unsafe_chars(question));
    for (place, choice) in inquiry.choices.iter().enumerate() {
        text.push_str(&format!("  {}  {}\n", place + 1, mark_unsafe_chars(choice)));
    }
    text.push_str(match inquiry.choices.is_empty() {
        true => "Your answer, or Enter for none:  ",
        false => "A number, other words, or Enter for no answer:  ",
    });
    text
}

/// Parses a line as the answer to a question.
fn parse_answer(line: Option<&str>, wanted: &ExpectedAnswer) -> PermissionAnswer {
    let line = line.unwrap_or_default();
    match wanted {
        ExpectedAnswer::Words(_) if line.trim().is_empty() => {
            PermissionAnswer::Deny { reason: String::new() }
        }
        ExpectedAnswer::Words(choices) => {
            let number = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let text = number.and_then(|place| choices.get(place)).map_or(line, String::as_str);
            PermissionAnswer::Text { text: text.to_owned() }
        }
        ExpectedAnswer::Permission(offers) => match line {
            line if offers.part
                && let Some(names) = parse_approved_parts(line) =>
            {
                PermissionAnswer::Part { names }
            }
            "y" | "Y" | "yes" | "Yes" => PermissionAnswer::Allow,
            "a" | "A" | "always" | "Always" if offers.always => PermissionAnswer::Always,
            "" | "n" | "N" | "no" | "No" => PermissionAnswer::Deny { reason: String::new() },
            reason => PermissionAnswer::Deny { reason: reason.to_owned() },
        },
    }
}

/// The names of an answer that keeps a part.
fn parse_approved_parts(line: &str) -> Option<Vec<String>> {
    let (word, names) = line.trim().split_once(' ')?;
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    matches!(word, "p" | "P" | "part" | "Part").then(|| names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use gnoma_core::RawJson;
    use serde_json::json;

    use super::*;

    const SCREEN: Size = Size { columns: 80, rows: 24 };
    const NOTHING: QuestionOptions<'static> =
        QuestionOptions { always: None, has_parts: false, notable: &[] };

    fn asked(arguments: &Value, preview: Option<&str>) -> String {
        let arguments = RawJson::from_value(arguments).unwrap();
        let call = ToolCall::new(CallId::new("c"), "bash", arguments);
        render_question(&call, "mode auto: commands are asked for", preview, NOTHING, SCREEN)
    }

    /// What the screen shows when the question has been written.
    fn last_screen(text: &str) -> String {
        let rows = split_into_rows(text, SCREEN.columns);
        rows[rows.len().saturating_sub(SCREEN.rows)..].join("\n")
    }

    #[test]
    fn permission_question_shows_the_whole_command_without_control_characters() {
        let text = asked(&json!({"command": "rm -rf x\u{1b}[2K\r ls"}), None);
        assert!(text.contains("rm -rf x\u{FFFD} ls"), "{text}");
    }

    #[test]
    fn a_command_is_decoded_also_beside_other_arguments() {
        let text = asked(&json!({"command": "a \"b\"\nc", "timeout": 5}), None);
        assert!(text.contains("\na \"b\"\nc\n{\"timeout\":5}\n("), "{text}");
    }

    #[test]
    fn padded_command_still_shows_its_start_and_end_on_screen() {
        for padding in [" ", "\n", "\t", "日"] {
            let command = format!("rm -rf ~{}# ls", padding.repeat(8000));
            let text = asked(&json!({"command": command, "note": "n".repeat(100)}), None);
            let seen = last_screen(&text);
            assert!(seen.contains("rm -rf ~") && seen.contains("# ls"), "{padding:?}: {seen}");
            assert!(seen.contains("characters omitted"), "{seen}");
            assert!(text.contains(&command), "the whole command is above");
        }
    }

    #[test]
    fn short_command_is_shown_once() {
        let text = asked(&json!({"command": "make\n".repeat(10)}), None);
        assert_eq!(text.matches("make").count(), 10, "{text}");
    }

    #[test]
    fn truncated_diff_says_that_the_rest_is_written_too() {
        let said = "300 more characters not shown, but written too";
        let lines = format!("{}{}", "+\n".repeat(40), "+line\n".repeat(60));
        assert!(asked(&json!({}), Some(&lines)).contains(said));
        let one_line = "x".repeat(40 * SCREEN.columns + 300);
        assert!(asked(&json!({}), Some(&one_line)).contains(said));
        let short = "+\n".repeat(40);
        assert!(!asked(&json!({}), Some(&short)).contains("not shown"));
    }

    #[test]
    fn anything_but_yes_is_no() {
        let denied =
            |line| parse_answer(line, &ExpectedAnswer::Permission(LastingAnswers::default()));
        assert_eq!(denied(Some("y")), PermissionAnswer::Allow);
        assert_eq!(denied(Some("")), PermissionAnswer::Deny { reason: String::new() });
        assert_eq!(denied(Some("use make")), PermissionAnswer::Deny { reason: "use make".into() });
        assert_eq!(denied(None), PermissionAnswer::Deny { reason: String::new() });
        assert_eq!(denied(Some("a")), PermissionAnswer::Deny { reason: "a".into() });
    }

    #[test]
    fn key_that_is_not_offered_is_explained_instead_of_denying() {
        let offers = |always, part| ExpectedAnswer::Permission(LastingAnswers { always, part });
        for line in ["a", "A", "always", "x", "?", "p", "part"] {
            let told = no_key(line, &offers(false, false)).unwrap_or_else(|| panic!("{line}"));
            assert!(told.contains("[y]es, [n]o"), "{told}");
        }
        let told = no_key("p", &offers(false, true)).unwrap();
        assert!(told.contains("p FILE"), "{told}");
        for line in ["", "y", "n", "No", "use make", "p src/a", "naïve"] {
            assert_eq!(no_key(line, &offers(false, true)), None, "{line}");
        }
        assert_eq!(no_key("a", &offers(true, false)), None);
        assert_eq!(no_key("x", &ExpectedAnswer::Words(Vec::new())), None);
    }

    #[test]
    fn always_is_an_answer_where_its_rule_was_shown() {
        let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
        let offered = QuestionOptions { always: Some("bash(cargo test)"), ..NOTHING };
        let text = render_question(&call, "why", None, offered, SCREEN);
        assert!(text.contains("[y]es, [a]lways bash(cargo test), [n]o"), "{text}");
        let offered = ExpectedAnswer::Permission(LastingAnswers { always: true, part: false });
        assert_eq!(parse_answer(Some("a"), &offered), PermissionAnswer::Always);
    }

    #[test]
    fn question_of_the_model_takes_a_number_or_free_text() {
        let inquiry = Inquiry { choices: vec!["SQLite".into(), "Post\u{1b}7gres".into()] };
        let text = render_inquiry("Which database?", &inquiry);
        assert!(text.contains("Which database?\n  1  SQLite\n  2  Post\u{FFFD}gres\n"), "{text}");
        let wanted = ExpectedAnswer::Words(inquiry.choices);
        let said = |text: &str| PermissionAnswer::Text { text: text.into() };
        assert_eq!(parse_answer(Some("1"), &wanted), said("SQLite"));
        assert_eq!(parse_answer(Some("3"), &wanted), said("3"));
        assert_eq!(parse_answer(Some("neither, use a file"), &wanted), said("neither, use a file"));
        assert_eq!(parse_answer(None, &wanted), PermissionAnswer::Deny { reason: String::new() });
    }

    #[test]
    fn part_answer_is_accepted_where_parts_are_offered() {
        let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
        let what = "creates: a program, which version control reads on every run".to_owned();
        let notable = [NotableChange { name: ".husky/pre-commit".into(), what }];
        let offered = QuestionOptions { has_parts: true, notable: &notable, ..NOTHING };
        let text = render_question(&call, "`make` creates `a`", Some("+1\n"), offered, SCREEN);
        assert!(
            text.contains("Keep what this command changed?") && text.contains("[p]art"),
            "{text}"
        );
        let seen = last_screen(&text);
        assert!(seen.contains("! .husky/pre-commit  creates: a program, which"), "{seen}");
        let said = |line, part| {
            parse_answer(
                Some(line),
                &ExpectedAnswer::Permission(LastingAnswers { always: false, part }),
            )
        };
        let names = vec!["src/a".to_owned(), "b c".to_owned()];
        assert_eq!(said("p src/a, b c", true), PermissionAnswer::Part { names });
        let refused = |line: &str| PermissionAnswer::Deny { reason: line.to_owned() };
        assert_eq!(said("p src/a", false), refused("p src/a"));
        assert_eq!(said("prefer make", true), refused("prefer make"));
    }
}
