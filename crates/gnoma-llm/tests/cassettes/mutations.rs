//! Recordings with damage that leaves their content whole: the answer must be the same.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use gnoma_core::Response;
use gnoma_net::Http;
use gnoma_testkit::{Cassette, End, Reply, ReplyBody, Server};
use tokio::time::{Instant, timeout};

use crate::{
    mutate::Body,
    replay::{Reading, profile, read, request},
};

/// Readings under way at once. Most wait for what may follow an end.
const CONCURRENT: usize = 128;
/// Longest wait for one reading.
const PATIENCE: Duration = Duration::from_secs(60);
/// Faults that are shown.
const MAX_SHOWN: usize = 20;

/// How many damaged answers were read, and those that were read as something else.
pub(crate) struct MutationReport {
    pub(crate) tried: usize,
    pub(crate) faults: Vec<String>,
}

impl MutationReport {
    /// The first faults, a line each.
    pub(crate) fn shown(&self) -> String {
        self.faults.iter().take(MAX_SHOWN).map(|fault| format!("{fault}\n")).collect()
    }
}

/// The system's words for a connection that was reset. The system throws away what has arrived and was not read yet, which
/// on a busy machine may be the end of the answer: the same is tried again, for as long as one reading may take.
const RESET: &str = "reset by peer";

/// One kind of damage to one recording.
struct Mutation {
    name: &'static str,
    /// What the damaged answer must be equal to; `None` is the recording itself.
    baseline: Option<String>,
    damaged: String,
    end: End,
    /// The tokens may come after what is left.
    loses_usage: bool,
}

/// Reads every recording of a whole answer with each kind of damage.
pub(crate) async fn every(cassettes: Vec<Arc<Cassette>>, http: &Http) -> MutationReport {
    let jobs = cassettes.into_iter().filter(|it| it.response.status == 200).map(|cassette| {
        let http = http.clone();
        async move { tried(&cassette, &http).await }
    });
    let done: Vec<_> = stream::iter(jobs).buffer_unordered(CONCURRENT).collect().await;
    let mut report = MutationReport { tried: 0, faults: Vec::new() };
    for (tried, faults) in done {
        report.tried += tried;
        report.faults.extend(faults);
    }
    report
}

async fn tried(cassette: &Cassette, http: &Http) -> (usize, Vec<String>) {
    let Ok(body) = cassette.body() else { return (0, Vec::new()) };
    let Some(parsed) = Body::parse(&body) else { return (0, Vec::new()) };
    let text = String::from_utf8_lossy(&body).into_owned();
    let Ok(plain) = reading(cassette, http, &text, End::Whole).await else {
        return (1, vec![format!("{}: hung", cassette.id)]);
    };
    // What its provider did not finish has no end that could be damaged.
    if plain.error.is_some() || plain.response.stop.is_none() {
        return (0, Vec::new());
    }
    let (mut count, mut faults) = (0, Vec::new());
    for mutation in mutations(&parsed) {
        count += 1;
        let name = format!("{}: {}", cassette.id, mutation.name);
        let baseline = match &mutation.baseline {
            Some(body) => match reading(cassette, http, body, End::Whole).await {
                Ok(reading) => reading.response,
                Err(why) => {
                    faults.push(format!("{name}: baseline {why}"));
                    continue;
                }
            },
            None => plain.response.clone(),
        };
        let begun = Instant::now();
        let read = loop {
            let read = reading(cassette, http, &mutation.damaged, mutation.end).await;
            let is_lost = matches!(&read, Ok(Reading { error: Some(error), .. }) if error.to_string().contains(RESET));
            if !is_lost || begun.elapsed() > PATIENCE {
                break read;
            }
        };
        match read {
            Err(why) => faults.push(format!("{name}: {why}")),
            Ok(Reading { error: Some(error), .. }) => faults.push(format!("{name}: {error}")),
            Ok(Reading { response, .. }) => {
                let [own, other] = [response, baseline]
                    .map(|it| if mutation.loses_usage { without_usage(it) } else { it });
                if own != other {
                    faults.push(format!("{name}:\n  {own:?}\n  {other:?}"));
                }
            }
        }
    }
    (count, faults)
}

fn without_usage(response: Response) -> Response {
    Response { usage: None, ..response }
}

fn mutations(body: &Body) -> Vec<Mutation> {
    let mut all = Vec::new();
    if let Some(cut) = body.up_to_reason() {
        let length = cut.len();
        for (name, end) in [
            ("cut after the reason to stop", End::Truncate(length)),
            ("broken off after the reason to stop", End::Abort(length)),
            ("reset after the reason to stop", End::Reset(length)),
            ("stalled after the reason to stop", End::Stall(length)),
        ] {
            let damaged = cut.clone();
            all.push(Mutation { name, baseline: None, damaged, end, loses_usage: true });
        }
    }
    let end = End::Whole;
    let ended =
        [("doubled end", body.with_doubled_end()), ("junk at the end", body.with_junk_at_end())];
    for (name, damaged) in ended {
        let mutation = |damaged| Mutation { name, baseline: None, damaged, end, loses_usage: true };
        all.extend(damaged.map(mutation));
    }
    if let Some((whole, damaged)) = body.with_split_letters() {
        let (name, baseline) = ("split surrogates", Some(whole));
        all.push(Mutation { name, baseline, damaged, end, loses_usage: false });
    }
    if let Some(damaged) = body.with_stand_ins() {
        let name = "stand-in arguments";
        all.push(Mutation { name, baseline: None, damaged, end, loses_usage: false });
    }
    all
}

async fn reading(
    cassette: &Cassette,
    http: &Http,
    body: &str,
    end: End,
) -> Result<Reading, String> {
    let reply = cassette.reply(usize::MAX).map_err(|error| error.to_string())?;
    let reply = Reply { body: ReplyBody::Bytes(body.to_owned().into()), ..reply };
    let server =
        Server::start_with_replies([reply.with_end(end)]).map_err(|error| error.to_string())?;
    let provider = gnoma_llm::connect_provider(profile(cassette, &server.url()), http.clone());
    let reading = timeout(PATIENCE, read(&*provider, request(cassette))).await;
    reading.map_err(|_| "hung".to_owned())
}
