//! Models that say nothing: it is said, and it ends.

use std::time::Duration;

use gnoma_core::{ErrorKind, Event, StreamEvent, session::Outcome};
use gnoma_testkit::Answer;

use super::{outcome, start};

fn waits(events: &[Event]) -> Vec<(u64, u64)> {
    let mut waits = Vec::new();
    for event in events {
        if let Event::Waiting { waited_ms, limit_ms, .. } = event {
            waits.push((waited_ms / 1_000, limit_ms / 1_000));
        }
    }
    waits
}

fn delta(text: &str) -> Result<StreamEvent, gnoma_core::ProviderError> {
    Ok(StreamEvent::TextDelta { slot: 0, text: text.into() })
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_reported_and_times_out_within_minutes() {
    let mut run = start(vec![Answer::endless_silence(), Answer::endless_silence()], vec![], false);
    let began = tokio::time::Instant::now();
    run.say("go");
    let events = run.until_idle().await;
    let once = [(15, 120), (30, 120), (60, 120)];
    assert_eq!(waits(&events), [once, once].concat());
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(error.hint.unwrap().contains("network.first_byte_timeout"));
    assert!(began.elapsed() < Duration::from_secs(250), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn empty_stream_deltas_count_as_silence_for_the_timeout() {
    let pieces = std::iter::once(delta("so")).chain((0..2_000).map(|_| delta("")));
    let empty = Answer::from_events(pieces.collect()).with_event_delay(Duration::from_secs(1));
    let mut run = start(vec![empty, Answer::text("at last")], vec![], false);
    let began = tokio::time::Instant::now();
    run.say("go");
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{events:?}");
    let again = events.iter().find_map(|event| match event {
        Event::Retrying { error, retracted, .. } => Some((error.message.as_str(), *retracted)),
        _ => None,
    });
    assert_eq!(again, Some(("no part of the answer came for 5m", true)));
    assert!(began.elapsed() < Duration::from_secs(310), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn slow_answer_does_not_time_out() {
    let slow = (0..20)
        .map(|_| delta("word "))
        .chain([Ok(StreamEvent::Stop(gnoma_core::StopReason::EndTurn))]);
    let slow = Answer::from_events(slow.collect()).with_event_delay(Duration::from_secs(100));
    let mut run = start(vec![slow], vec![], false);
    run.say("go");
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{events:?}");
    assert!(waits(&events).iter().all(|(waited, _)| *waited < 100));
}
