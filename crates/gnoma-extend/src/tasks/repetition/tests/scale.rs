//! A generated history of thousands of sessions, to measure the time that the detector takes.

use std::time::Instant;

use super::super::{PastCall, PastSession, PastTurn, find_repetition_of, find_repetitions};

/// Sessions of everyday work with a release in every fortieth.
pub(super) fn long_history(count: u32) -> Vec<PastSession> {
    let mut state = 7_u32;
    let mut below = move |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % limit
    };
    let everyday = ["cargo test", "cargo clippy", "git commit -am \"work\"", "npm run build"];
    (0..count)
        .map(|number| {
            let mut turns: Vec<PastTurn> = (0..2 + below(5))
                .map(|index| {
                    let (module, file) = (below(30), below(400));
                    let mut calls =
                        vec![PastCall::Edit(format!("crates/m{module}/src/f{file}.rs"))];
                    for _ in 0..below(4) {
                        calls.push(PastCall::Command(everyday[below(4) as usize].to_owned()));
                    }
                    if below(3) == 0 {
                        calls.push(PastCall::Command(format!(
                            "cargo run -p x{} -- {number}",
                            below(90)
                        )));
                    }
                    let message = format!("Fix number {number} in f{file}, please");
                    PastTurn { index, message, calls, ended_well: below(8) > 0 }
                })
                .collect();
            if number % 40 == 0 {
                let version = format!("v0.{number}.0");
                turns.push(PastTurn {
                    index: 9,
                    message: format!("release {version}"),
                    calls: vec![
                        PastCall::Edit("CHANGELOG.md".to_owned()),
                        PastCall::Command(format!("git tag {version}")),
                        PastCall::Command("git push --follow-tags".to_owned()),
                    ],
                    ended_well: true,
                });
            }
            let id = format!("s{number}");
            PastSession { family: id.clone(), id, at_ms: i64::from(number), turns }
        })
        .collect()
}

#[test]
#[ignore = "measures; run with `--ignored --nocapture`, in a release build"]
fn repetition_detection_over_thousands_of_sessions_is_fast() {
    let history = long_history(5_001);
    let start = Instant::now();
    let found = find_repetitions(&history, &[]);
    println!("all of 5,001 sessions: {:?}, {} found", start.elapsed(), found.len());
    for one in found.iter().take(5) {
        println!("  {} times {}", one.occurrences.len(), one.summary());
    }
    let start = Instant::now();
    let found = find_repetition_of(&history, "s5000", &[]);
    println!("the last turn: {:?}", start.elapsed());
    assert_eq!(found.unwrap().name, "release");
}
