//! Runs the detector on the labelled histories and measures precision and recall. The rules are in the data's README.

mod labelled;
mod scale;

use self::labelled::{LabelledHistory, read_histories};
use super::{
    PastCall, PastSession, PastTurn, Repetition, draft_from_repetition, find_repetition_of,
    find_repetitions,
};
use crate::tasks::parse_task;

/// Counts of offers and labels.
#[derive(Default)]
struct Score {
    offers: usize,
    agreed: usize,
    labels: usize,
    doubles: usize,
}

impl Score {
    /// Scores one history; `tells` is whether disagreements are printed.
    fn add(&mut self, history: &LabelledHistory, tells: bool) {
        let found = find_repetitions(&history.sessions, &history.existing);
        let mut is_matched = vec![false; history.labels.len()];
        for repetition in &found {
            let fits = |at: &usize| {
                !is_matched[*at] && history.labels[*at].agrees(repetition, &history.sessions)
            };
            match (0..history.labels.len()).find(fits) {
                Some(at) => is_matched[at] = true,
                None => {
                    self.doubles += usize::from(history.all_exist());
                    if tells {
                        println!("{}: not to be offered: {repetition:?}", history.id);
                    }
                }
            }
        }
        let agreed = is_matched.iter().filter(|it| **it).count();
        if tells && agreed < is_matched.len() {
            println!("{}: {agreed} of {} labels found", history.id, is_matched.len());
        }
        self.offers += found.len();
        self.agreed += agreed;
        self.labels += is_matched.len();
    }

    fn precision(&self) -> f64 {
        self.agreed as f64 / self.offers.max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.agreed as f64 / self.labels.max(1) as f64
    }
}

#[test]
fn labelled_histories_are_detected_with_precision_and_recall() {
    let histories = read_histories();
    assert!(histories.len() >= 200, "{}", histories.len());
    // The detector was tuned on the first half alone, but for one rule: what a recipe's own name started is no
    // occurrence.
    for (is_tuning, name) in [(true, "tuned half"), (false, "scored half")] {
        let mut score = Score::default();
        for history in histories.iter().filter(|it| it.is_for_tuning() == is_tuning) {
            score.add(history, is_tuning);
        }
        println!(
            "{name}: {} offers, {} agree, {} labels: precision {:.3}, recall {:.3}, {} doubles",
            score.offers,
            score.agreed,
            score.labels,
            score.precision(),
            score.recall(),
            score.doubles
        );
        assert!(score.precision() >= 0.9, "{name}: precision {}", score.precision());
        assert!(score.recall() >= 0.7, "{name}: recall {}", score.recall());
        assert_eq!(score.doubles, 0, "{name}: offers of what exists");
    }
}

#[test]
fn different_work_that_ends_with_a_commit_is_no_repetition() {
    let session = |at: u32, calls: Vec<PastCall>| {
        let id = format!("s{at}");
        let turn = PastTurn { index: 0, message: "go".to_owned(), calls, ended_well: true };
        PastSession { family: id.clone(), id, at_ms: i64::from(at), turns: vec![turn] }
    };
    let command = PastCall::Command;
    let fixes = ["lexer", "parser", "codegen", "driver"].into_iter().zip(0..).map(|(name, at)| {
        let edit = PastCall::Edit(format!("src/{name}.rs"));
        let commit = command(format!("git commit -am \"fix {name}\""));
        session(at, vec![edit, commit])
    });
    assert!(find_repetitions(&fixes.collect::<Vec<_>>(), &[]).is_empty());
    let formats = (0..4).map(|at| {
        let lines = ["cargo fmt", "git commit -am fmt"].map(str::to_owned);
        session(at, lines.map(command).to_vec())
    });
    assert!(find_repetitions(&formats.collect::<Vec<_>>(), &[]).is_empty());
    let posts = ["fungi", "autumn", "winter"].into_iter().zip(0..).map(|(name, at)| {
        let new = command(format!("hugo new posts/{name}.md"));
        session(at, vec![new, command(format!("git commit -am \"post {name}\""))])
    });
    assert_eq!(find_repetitions(&posts.collect::<Vec<_>>(), &[]).len(), 1);
}

#[test]
fn every_detected_repetition_becomes_a_valid_task() {
    let (mut commands, mut all) = (0, 0);
    for history in read_histories() {
        for found in find_repetitions(&history.sessions, &history.existing) {
            let text = draft_from_repetition("chore", &found, &history.sessions).unwrap();
            let task = parse_task("chore", &text).unwrap();
            assert_eq!(task.arguments.len(), found.arguments.len(), "{text}");
            commands += task.shell_commands().count();
            all +=
                found.steps.iter().filter(|it| it.action == super::RepeatedAction::Command).count();
        }
    }
    println!("{commands} of {all} commands became steps");
    assert!(commands * 10 >= all * 8, "{commands} of {all}");
}

#[test]
fn last_turn_of_a_session_finds_its_repetition() {
    let history = read_histories().into_iter().find(|it| it.id == "or-docs").unwrap();
    let all = find_repetitions(&history.sessions, &history.existing);
    let (session, turn) = *all[0].occurrences.last().unwrap();
    let mut sessions = history.sessions;
    let id = sessions[session].id.clone();
    sessions[session].turns.truncate(turn + 1);
    let found = find_repetition_of(&sessions, &id, &[]).unwrap();
    assert_eq!(found.key(), all[0].key());
    sessions[session].turns.push(super::PastTurn::default());
    assert_eq!(find_repetition_of(&sessions, &id, &[]), None, "another turn followed");
}

#[test]
fn release_is_summarized_with_its_argument() {
    let history = read_histories().into_iter().find(|it| it.id == "release").unwrap();
    let found: Vec<Repetition> = find_repetitions(&history.sessions, &history.existing);
    assert_eq!(found.len(), 1);
    println!(
        "{}\n{}",
        found[0].summary(),
        draft_from_repetition("release", &found[0], &history.sessions).unwrap()
    );
    assert!(found[0].summary().contains(" VERSION ("), "{}", found[0].summary());
    assert_eq!(found[0].arguments[0].values, ["v1.2.0", "v1.3.0", "v2.0.0"]);
}
