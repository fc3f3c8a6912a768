//! `gnoma sessions delete`: forgets sessions, after a question.

use anyhow::{Context as _, Result};
use gnoma_core::store::SessionStore as _;

use super::{Ground, list};
use crate::{
    clock,
    commands::show,
    report::{Exit, Misuse},
    screen, terminal,
};

pub(super) async fn run(ground: &Ground<'_>, ids: &[String], yes: bool) -> Result<Exit> {
    let past = ground.past()?;
    let mut doomed = Vec::new();
    for id in ids {
        let facts = past.session(Some(id)).await?;
        if !doomed.contains(&facts) {
            doomed.push(facts);
        }
    }
    if !yes {
        let Some(terminal) = terminal::open(ground.around) else {
            let text = "nobody can be asked whether to forget this for good; --yes does it";
            return Err(Misuse(text.to_owned()).into());
        };
        let rows = list::rows(&doomed, clock::now_ms());
        let question = format!("{rows}Forget for good? [y]es, [n]o: ");
        if !terminal::is_yes(&terminal, &screen::clean(&question)) {
            return show("nothing was forgotten\n");
        }
    }
    let mut told = String::new();
    for facts in doomed {
        let deleted = past.store.delete(facts.id.clone()).await;
        deleted.with_context(|| format!("cannot forget `{}`", facts.id))?;
        told.push_str(&format!("{} is forgotten\n", facts.id));
    }
    show(&told)
}
