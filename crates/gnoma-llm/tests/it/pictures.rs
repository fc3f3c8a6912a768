//! One picture that a server refuses costs no other picture.

use std::sync::Arc;

use futures_util::StreamExt as _;
use gnoma_core::{Content, Image, Message, ModelRequest, Provider, ProviderError, StreamEvent};
use gnoma_llm::{Profile, connect_provider};
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{Reply, Script, Server};

use crate::{
    endpoints::{COMPATIBLE, Endpoint, PROTOCOLS},
    histories::{ask, user},
};

/// What servers say of one picture, in four languages; none tells where it stands.
const REFUSALS: [&str; 4] = [
    "Could not process image",
    "Invalid image: cannot identify image file",
    "图片格式无效",
    "Das Bild ist zu groß",
];

fn picture(bytes: &[u8]) -> Arc<Message> {
    let image = Content::Image(Image::from_bytes("image/png", bytes));
    Arc::new(Message::user(vec![Content::from_text("look"), image]).unwrap())
}

fn base64(bytes: &[u8]) -> String {
    Image::from_bytes("image/png", bytes).base64.to_string()
}

/// A server that says `message` to each request with the bad picture.
fn strict(endpoint: &'static Endpoint, message: &'static str) -> Server {
    let good = endpoint.wire.stream_reply(&Script::text(["fine"]));
    let bad = base64(b"a bad picture");
    Server::start(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let refusal = serde_json::json!({"error": {"message": message}}).to_string();
        if body.contains(&bad) { Reply::json(400, refusal) } else { good.clone() }
    })
    .unwrap()
}

async fn asked(
    provider: &dyn Provider,
    request: ModelRequest,
) -> (Vec<String>, Option<ProviderError>) {
    let mut stream = provider.stream(request);
    let (mut notes, mut error) = (Vec::new(), None);
    while let Some(event) = stream.next().await {
        match event {
            Ok(StreamEvent::Adapted { note }) => notes.push(note),
            Ok(_) => (),
            Err(failure) => error = Some(failure),
        }
    }
    (notes, error)
}

fn takes_pictures(endpoint: &Endpoint) -> bool {
    endpoint.label != "deepseek"
}

#[tokio::test]
async fn refused_image_is_left_out_alone_and_later_images_are_sent() {
    let endpoints = PROTOCOLS.iter().chain(&COMPATIBLE).filter(|it| takes_pictures(it));
    for (endpoint, message) in endpoints.zip(REFUSALS.iter().cycle()) {
        let label = endpoint.label;
        let server = strict(endpoint, message);
        let provider =
            connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
        let mut request = ask(endpoint, [user("hello")]);
        request.messages.push(picture(b"an old picture"));
        assert_eq!(asked(&*provider, request.clone()).await, (vec![], None), "{label}");
        request.messages.push(Arc::new(
            Message::assistant(vec![Content::from_text("so")], None, None).unwrap(),
        ));
        request.messages.push(picture(b"a bad picture"));
        let (notes, error) = asked(&*provider, request.clone()).await;
        assert_eq!(error, None, "{label}");
        assert!(notes.len() == 1 && notes[0].contains("sends the others"), "{label}: {notes:?}");
        request.messages.push(Arc::new(
            Message::assistant(vec![Content::from_text("so")], None, None).unwrap(),
        ));
        request.messages.push(picture(b"a good picture"));
        assert_eq!(asked(&*provider, request).await, (vec![], None), "{label}");
        let body = String::from_utf8(server.requests().pop().unwrap().body.to_vec()).unwrap();
        for kept in [&b"an old picture"[..], b"a good picture"] {
            assert!(body.contains(&base64(kept)), "{label}: a good picture is left out");
        }
        assert!(!body.contains(&base64(b"a bad picture")), "{label}");
        let cause = serde_json::to_string(message).unwrap();
        assert!(body.contains(cause.trim_matches('"')), "{label}: the cause is told to the model");
    }
}

/// The one that is refused stands before one that is not, and nothing says which it is.
#[tokio::test]
async fn refused_image_is_found_among_new_ones() {
    for endpoint in PROTOCOLS.iter().chain(&COMPATIBLE).filter(|it| takes_pictures(it)) {
        let server = strict(endpoint, "Could not process image");
        let provider =
            connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
        let mut request = ask(endpoint, [user("hello")]);
        request.messages.extend([picture(b"a bad picture"), picture(b"a good picture")]);
        let (_, error) = asked(&*provider, request).await;
        assert_eq!(error, None, "{}", endpoint.label);
        let body = String::from_utf8(server.requests().pop().unwrap().body.to_vec()).unwrap();
        assert!(body.contains(&base64(b"a good picture")), "{}", endpoint.label);
        assert!(!body.contains(&base64(b"a bad picture")), "{}", endpoint.label);
    }
}

#[tokio::test]
async fn model_without_vision_is_sent_no_image() {
    for endpoint in &PROTOCOLS {
        let server = strict(endpoint, "no");
        let profile = Profile {
            blind_models: vec![endpoint.model.to_owned()],
            ..endpoint.profile(&server.url())
        };
        let provider = connect_provider(profile, Http::new(HttpOptions::default()));
        let mut request = ask(endpoint, [user("hello")]);
        request.messages.push(picture(b"a bad picture"));
        assert_eq!(asked(&*provider, request).await, (vec![], None), "{}", endpoint.label);
    }
}

/// Local servers fail inside where they cannot read a picture.
#[tokio::test]
async fn image_rejected_with_http_500_or_413_is_left_out() {
    for (status, message) in [
        (500, "failed to decode image"),
        (500, "Failed to load image or audio file"),
        (413, "Request Entity Too Large"),
    ] {
        let endpoint =
            PROTOCOLS.iter().chain(&COMPATIBLE).find(|it| it.label == "llamacpp").unwrap();
        let good = endpoint.wire.stream_reply(&Script::text(["good"]));
        let bad = base64(b"a bad picture");
        let server = Server::start(move |request| {
            let is_bad = String::from_utf8_lossy(&request.body).contains(&bad);
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            if is_bad { Reply::json(status, body) } else { good.clone() }
        });
        let server = server.unwrap();
        let provider =
            connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
        let mut request = ask(endpoint, [user("hello")]);
        request.messages.push(picture(b"a bad picture"));
        let (notes, error) = asked(&*provider, request).await;
        assert_eq!((notes.len(), error), (1, None), "{message}");
    }
}
