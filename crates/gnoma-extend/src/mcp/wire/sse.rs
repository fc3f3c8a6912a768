//! Server-sent events, as streamable HTTP carries messages.

use super::super::limits::MAX_MESSAGE_BYTES;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// The name of the event; empty where it has none, which means a message.
    pub(crate) name: String,
    /// The lines of the event, with line ends between them.
    pub(crate) data: String,
}

/// Takes bytes as they come, and gives events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The last byte was a carriage return, so that a line feed after it ends no line.
    after_return: bool,
    /// The id of the last event that has one.
    pub(crate) last_id: Option<String>,
    /// The time to wait before connecting again, in milliseconds, if the server gives one.
    pub(crate) retry_ms: Option<u64>,
}

/// An event is larger than a message may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Events {
    /// Takes a piece, and appends the events that are whole now.
    pub(crate) fn push(&mut self, piece: &[u8], whole: &mut Vec<Event>) -> Result<(), TooLarge> {
        for byte in piece {
            let is_second = std::mem::take(&mut self.after_return) && *byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    self.end_line(whole);
                }
                other => self.line.push(*other),
            }
            if self.line.len() + self.event.data.len() > MAX_MESSAGE_BYTES {
                return Err(TooLarge);
            }
        }
        Ok(())
    }

    /// The event that was not ended by an empty line, as some servers leave their last.
    pub(crate) fn finish_event(&mut self) -> Option<Event> {
        let mut whole = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut whole);
        }
        self.end_line(&mut whole);
        whole.pop()
    }

    fn end_line(&mut self, whole: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}');
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                whole.push(event);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.name),
            "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()),
            "retry" => self.retry_ms = value.parse().ok().or(self.retry_ms),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&str]) -> (Vec<String>, Events) {
        let (mut events, mut whole) = (Events::default(), Vec::new());
        for piece in pieces {
            events.push(piece.as_bytes(), &mut whole).unwrap();
        }
        whole.extend(events.finish_event());
        (whole.into_iter().map(|event| event.data).collect(), events)
    }

    #[test]
    fn sse_events_are_parsed_for_any_chunk_boundaries_and_line_endings() {
        let text =
            ": hi\r\nid: 4\r\nretry: 20\r\ndata: a\r\ndata: b\r\n\r\nevent: x\ndata:c\n\ndata: d";
        for size in 1..text.len() {
            let pieces: Vec<_> =
                text.as_bytes().chunks(size).map(|it| std::str::from_utf8(it).unwrap()).collect();
            let (all, events) = events(&pieces);
            assert_eq!(all, ["a\nb", "c", "d"], "{size}");
            assert_eq!((events.last_id.as_deref(), events.retry_ms), (Some("4"), Some(20)));
        }
    }

    #[test]
    fn sse_event_above_the_size_limit_is_an_error() {
        let (mut events, mut whole) = (Events::default(), Vec::new());
        let line = vec![b'x'; MAX_MESSAGE_BYTES + 1];
        assert_eq!(events.push(&line, &mut whole), Err(TooLarge));
    }
}
