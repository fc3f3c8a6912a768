//! Traffic with one element broken at random: nothing hangs, nothing sound is lost, and what is broken is named.

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex, split},
    task::JoinSet,
    time::timeout,
};

use super::{
    super::{
        error::CallError,
        handler::Handler,
        listed_prompt::ListedPrompt,
        listed_resource::ListedResource,
        listed_tool::ListedTool,
        lists::{Collector, ListElement},
        process::Stderr,
        prompts, result,
        result::ResultParts,
        stdio::Stdio,
        wire::rpc::RequestParams,
    },
    MAX_TEST,
    mutation::{Exchange, Mutated, Seeded, mutate},
    text,
};

/// How many exchanges there are. They take some four seconds.
const EXCHANGES: u64 = 20_000;

/// A server that answers each line with what comes next.
async fn serve(stream: DuplexStream, answers: tokio::sync::mpsc::Receiver<Vec<u8>>) {
    let (reading, mut writing) = split(stream);
    let mut lines = BufReader::new(reading).lines();
    let mut answers = answers;
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = request.get("id") else { continue };
        let Some(answer) = answers.recv().await else { return };
        let id = id.to_string();
        let place = answer.windows(2).position(|it| it == b"ID").unwrap();
        let whole = [&answer[..place], id.as_bytes(), &answer[place + 2..], b"\n"].concat();
        writing.write_all(&whole).await.unwrap();
    }
}

/// What of a list came through, and what was said of the rest.
fn listed<T: ListElement>(answer: &Value, show: impl Fn(&T) -> String) -> String {
    let mut all = Collector::<T>::new();
    all.add_page(answer);
    let elements = all.elements.iter().map(show);
    elements
        .chain(all.describe_faults().iter().map(|fault| format!("left out: {fault}")))
        .collect::<Vec<_>>()
        .join("\n")
}

/// All that a reader says of an answer.
fn read(exchange: Exchange, answer: &Value) -> String {
    match exchange {
        Exchange::Tools => listed::<ListedTool>(answer, |tool| tool.described.name.clone()),
        Exchange::Resources => listed::<ListedResource>(answer, ListedResource::to_line),
        Exchange::Prompts => listed::<ListedPrompt>(answer, |prompt| prompt.name.clone()),
        Exchange::Call => text(&result::to_outcome(answer, false)),
        Exchange::Messages => prompts::render_messages(answer),
        Exchange::Contents => {
            let mut parts = ResultParts::new(false);
            super::super::resource::add_contents(answer, &mut parts);
            text(&gnoma_core::ToolOutcome::Done(parts.into_output()))
        }
    }
}

fn check(mutated: &Mutated, answer: Result<Value, CallError>) {
    let shown =
        || String::from_utf8_lossy(&mutated.bytes[..mutated.bytes.len().min(3000)]).into_owned();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            assert!(mutated.is_cut, "{error}: {}", shown());
            return;
        }
    };
    let said = read(mutated.exchange, &answer);
    for sound in &mutated.sound {
        assert!(said.contains(sound.as_str()), "{sound} is lost: {said}\n{}", shown());
    }
    let (marker, number) = &mutated.broken;
    let is_named = said.contains(marker.as_str())
        || said.contains(&format!("number {number}"))
        || said.contains(&format!("message {number} has"))
        || said.contains("left out")
        || said.contains("cannot be read");
    assert!(is_named, "the broken one is not named: {said}\n{}", shown());
}

#[tokio::test]
async fn mcp_answers_with_one_mutated_element_never_hang_and_are_reported() {
    let (client, server) = duplex(1 << 20);
    let (send, answers) = tokio::sync::mpsc::channel(1);
    let mut serving = JoinSet::new();
    serving.spawn(serve(server, answers));
    let (reading, writing) = split(client);
    let link = Stdio::new(writing, reading, Handler::new("s"), Stderr::default());
    let mut seeded = Seeded::new(32);
    for _ in 0..EXCHANGES {
        let mutated = mutate(&mut seeded);
        send.send(mutated.bytes.clone()).await.unwrap();
        let params = RequestParams::default();
        let asked = timeout(MAX_TEST, link.request("x", &params)).await;
        let Ok(answer) = asked else {
            panic!("hangs: {}", String::from_utf8_lossy(&mutated.bytes));
        };
        check(&mutated, answer);
    }
}
