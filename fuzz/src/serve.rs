//! What comes over the socket, from either side.

use gnoma_core::protocol::RequestId;
use gnoma_serve::{Line, LineReader, codec};

/// Lines are the same wherever the bytes are cut; each is a message or one error; what was read is
/// written so that it reads the same.
pub fn protocol(input: &[u8]) {
    let lines = LineReader::default().push(input);
    let mut reader = LineReader::default();
    let pieces: Vec<Line> = input.chunks(7).flat_map(|piece| reader.push(piece)).collect();
    assert_eq!(pieces, lines, "cut elsewhere");
    for line in &lines {
        match codec::parse_request(line) {
            Ok(message) => {
                let again = codec::parse_request(&written(&message));
                assert_eq!(again.as_ref(), Ok(&message), "written and read");
            }
            Err(unreadable) => assert!(!unreadable.error.cause.is_empty()),
        }
        if let Ok(Some(message)) = codec::parse_message(line) {
            assert_eq!(codec::parse_message(&written(&message)), Ok(Some(message)));
        }
        if let Ok((hello, version)) = codec::parse_hello(line) {
            assert!(version <= hello.version, "a version that the client does not speak");
        }
        let _greeting = codec::parse_greeting(line);
    }
    let long = LineReader::new(8).push(input);
    for line in long {
        if line == Line::TooLong {
            assert_eq!(codec::parse_request(&line).map_err(|error| error.id), Err(RequestId(0)));
        }
    }
}

fn written(message: &impl serde::Serialize) -> Line {
    let mut out = Vec::new();
    codec::encode_message(message, &mut out);
    assert_eq!(out.pop(), Some(b'\n'), "it was not written");
    assert!(!out.contains(&b'\n'), "more than a line");
    Line::Whole(out)
}
