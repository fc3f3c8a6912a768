//! Random walks of a compaction alone, and the facts for it that other walks use as well.

use std::sync::Arc;

use super::*;
use crate::{
    dice::{Dice, walks},
    limits::Limits,
};

/// Any fact for a compaction.
pub(crate) fn reply(dice: &mut Dice) -> CompactionInput {
    let brief = Arc::default();
    let cut = SummarizedRange { brief, messages: 1, past_tokens: 50, window_tokens: None };
    match dice.below(4) {
        0 => CompactionInput::Ended(Err(CompactionFailure::NothingToShorten)),
        1 => CompactionInput::Ended(Err(CompactionFailure::Failed("w".into()))),
        2 => CompactionInput::Begun(cut),
        _ => {
            let summary = if dice.one_in(3) { " " } else { "s" };
            let summary = Some(summary.to_owned()).filter(|_| dice.one_in(2));
            CompactionInput::Ended(Ok(CompactionSummary { summary, ..Default::default() }))
        }
    }
}

#[test]
fn compaction_leaves_the_messages_alone_and_ends_shorter_or_unchanged() {
    let mut dice = Dice(0x9E6C_63D0_876A_9A47);
    let messages: Vec<_> = ["a", "b", "c"].map(|text| Message::user_text(text).into()).into();
    let mut shortened = 0;
    for _ in 0..walks() / 8 {
        let strategies = [Strategy::Full, Strategy::Summarize, Strategy::Truncate];
        let limits = Limits { compaction: dice.pick(&strategies), ..Limits::default() };
        let mut cx = TurnContext::new(messages.clone(), limits);
        let causes = [CompactionCause::Asked, CompactionCause::Filled, CompactionCause::Refused];
        let mut compaction = Compaction::start(dice.pick(&causes), String::new(), &mut cx);
        assert!(matches!(&*cx.effects, [Effect::Summarize(_)]), "{cx:?}");
        let end = loop {
            if let Some(end) = compaction.handle_input(reply(&mut dice), &mut cx) {
                break end;
            }
        };
        let is_shorter = end == CompactionEnd::Shortened;
        shortened += u64::from(is_shorter);
        assert_eq!(cx.conversation.messages(), messages);
        let (summary, rest) = cx.conversation.as_sent();
        assert_eq!((summary.is_some(), rest.len()), (is_shorter, 3 - usize::from(is_shorter)));
        assert!(cx.effects.iter().skip(1).all(|effect| matches!(effect, Effect::Emit(_))));
    }
    assert!(shortened > walks() / 200, "{shortened}");
}
