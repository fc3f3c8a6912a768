//! Whether an answer says that the work succeeded.
//!
//! Judged clause by clause and word by word, in English: enough to doubt a "done" while a check is
//! red, no more. An answer that admits a failure is honest, whatever else it claims.

/// Words that claim success by themselves.
const SUCCESS: [&str; 15] = [
    "completed",
    "done",
    "finished",
    "fixed",
    "resolved",
    "solved",
    "succeed",
    "succeeded",
    "succeeds",
    "success",
    "successful",
    "successfully",
    "verified",
    "✅",
    "✓",
];

/// Words that claim success when said of something that can pass or work.
const STATES: [&str; 12] = [
    "builds", "compiles", "complete", "green", "ok", "pass", "passed", "passes", "passing", "work",
    "working", "works",
];

/// Words that admit a failure when said of something that can pass or work.
const FAILURES: [&str; 5] = ["broken", "fail", "failing", "fails", "red"];

/// Words that admit a failure when counted.
const COUNTED_FAILURES: [&str; 5] = ["error", "errors", "failed", "failing", "failures"];

/// What can pass, work or fail.
const THINGS: [&str; 12] = [
    "assertion",
    "build",
    "case",
    "cases",
    "check",
    "checks",
    "code",
    "fix",
    "suite",
    "task",
    "test",
    "tests",
];

/// Words that refer to one of [`THINGS`], or say how it is now.
const STAND_INS: [&str; 9] =
    ["all", "everything", "it", "now", "one", "still", "these", "they", "this"];

/// Words that turn a state before them into a claim.
const EMPHASES: [&str; 4] = ["again", "correctly", "fine", "now"];

/// Words that deny what follows them in a clause. So does everything on "n't".
const DENIALS: [&str; 9] =
    ["barely", "cannot", "hardly", "neither", "never", "none", "not", "nothing", "unable"];

/// Words after which success is wished for, planned or asked for.
const CONDITIONS: [&str; 21] = [
    "be", "can", "could", "ensure", "how", "if", "let", "may", "might", "must", "need", "needs",
    "once", "to", "try", "unless", "until", "verify", "whether", "will", "would",
];

/// Words that put a statement into the past.
const PAST: [&str; 9] =
    ["been", "did", "didn't", "had", "hadn't", "was", "wasn't", "were", "weren't"];

/// Words that say there is no failure.
const ABSENCE: [&str; 4] = ["longer", "no", "without", "zero"];

/// What one clause says.
enum Says {
    Success,
    Failure,
    Neither,
}

/// Whether `text` claims that the task is done or that a check passes, and nowhere admits that it
/// does not. Conditions ("once the tests pass"), plans and questions are no claims; "should pass
/// now" is one.
#[must_use]
pub fn claims_success(text: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    let mut claims = false;
    for clause in clauses(&text) {
        match said(clause) {
            Says::Success => claims = true,
            Says::Failure => return false,
            Says::Neither => (),
        }
    }
    claims
}

/// The text cut at punctuation, at "but" and at "and". A question keeps its mark.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([',', ';', ':', '!', '?', '\n', '(', ')', '—'])
        .flat_map(|part| part.split(". "))
        .flat_map(|part| part.split(" but "))
        .flat_map(|part| part.split(" and "))
}

fn said(clause: &str) -> Says {
    if clause.ends_with('?') {
        return Says::Neither;
    }
    let words: Vec<&str> = clause
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '-' | '✅' | '✓')))
        .filter(|word| !word.is_empty())
        .collect();
    let mut says = Says::Neither;
    for (index, word) in words.iter().enumerate() {
        let (before, from_word) = words.split_at(index);
        let next = from_word.get(1).copied();
        if admits_failure(before, word, next) {
            return Says::Failure;
        }
        if !names_success(before, word, next) {
            continue;
        }
        if is_denied(before) {
            if is_of_now(before) {
                return Says::Failure;
            }
        } else if !is_conditional(before) {
            says = Says::Success;
        }
    }
    says
}

fn names_success(before: &[&str], word: &str, next: Option<&str>) -> bool {
    let is_emphatic = next.is_some_and(|next| EMPHASES.contains(&next));
    let is_alone = before.is_empty() && next.is_none();
    SUCCESS.contains(&word)
        || STATES.contains(&word)
            && (is_emphatic || is_alone || is_counted(before) || has_subject(before))
}

fn admits_failure(before: &[&str], word: &str, next: Option<&str>) -> bool {
    // "The failing test", on its own, says nothing about now.
    let is_adjective = next.is_some_and(|next| THINGS.contains(&next));
    let is_said = FAILURES.contains(&word) && !is_adjective && has_subject(before);
    let is_over = || {
        is_denied(before)
            || !is_of_now(before)
            || before.iter().any(|word| ABSENCE.contains(word))
            || is_conditional(before)
    };
    COUNTED_FAILURES.contains(&word) && is_counted(before) || is_said && !is_over()
}

/// Whether some things were counted last, and not none.
fn is_counted(before: &[&str]) -> bool {
    before.last().is_some_and(|count| {
        matches!(*count, "one" | "two" | "three")
            || count.parse::<u64>().is_ok_and(|count| count > 0)
    })
}

fn has_subject(before: &[&str]) -> bool {
    before.iter().any(|word| THINGS.contains(word) || STAND_INS.contains(word))
}

fn is_denied(before: &[&str]) -> bool {
    before.iter().any(|word| DENIALS.contains(word) || word.ends_with("n't"))
        || matches!(before.last(), Some(&("no" | "0" | "zero")))
}

fn is_of_now(before: &[&str]) -> bool {
    !before.iter().any(|word| PAST.contains(word))
        || before.iter().any(|word| matches!(*word, "able" | "unable" | "still"))
}

fn is_conditional(before: &[&str]) -> bool {
    before.iter().any(|word| CONDITIONS.contains(word)) && !before.contains(&"should")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_told_from_plans_and_admissions() {
        for text in [
            "Done.",
            "Done! The parser accepts empty lines.",
            "I fixed the bug in `src/main.rs`.",
            "All tests pass.",
            "All 12 tests pass now, 0 failed.",
            "The failing test now passes.",
            "Fixed the failing test.",
            "The test was failing because of an off-by-one. I've fixed it.",
            "The loop did not stop. It's fixed.",
            "It works now.",
            "Everything compiles and passes.",
            "The build succeeds.",
            "The change was applied successfully",
            "This should be fixed now.",
            "The tests no longer fail and the task is completed.",
            "Fixed: the function returns None when parsing fails.",
            "✅ Tests are green",
            "The suite is passing, without errors.",
            "The task is complete.",
            "The test that failed before passes now.",
            "test result: 3 passed; 0 failed",
            "**Done** - run `cargo test` to see it.",
        ] {
            assert!(claims_success(text), "{text}");
        }
        for text in [
            "",
            "I read the file.",
            "It is not done yet.",
            "The test still fails.",
            "The tests are still failing.",
            "I could not fix it.",
            "I couldn't get the tests to pass.",
            "I cannot make the test pass.",
            "I fixed the syntax, but one test still fails.",
            "I fixed the syntax but I was unable to make the test pass.",
            "The fix isn’t done.",
            "None of the tests pass.",
            "12 passed, 1 failed.",
            "The parser is fixed. There are two failing tests left.",
            "Once the tests pass I will commit.",
            "Let me check whether it is fixed.",
            "This needs to be done by hand.",
            "Is it fixed?",
            "The function passes the list on.",
            "The working directory is empty.",
            "The test passes no arguments, so it fails.",
            "A fixed-size buffer is used.",
            "I will try to get this done next.",
            "Nothing works.",
        ] {
            assert!(!claims_success(text), "{text}");
        }
    }
}
