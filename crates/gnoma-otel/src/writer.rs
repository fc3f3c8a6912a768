//! Writes messages in the two forms of OTLP: protobuf and JSON, from the same description.
//!
//! Of protobuf only what OTLP needs is here: <https://protobuf.dev/programming-guides/encoding/>. In JSON, names are in
//! lower camel case, ids are hexadecimal, 64-bit numbers are texts, and enums are numbers:
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use std::fmt::Write as _;

use crate::options::Format;

/// A field of a message: its number in protobuf and its name in JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field(pub(crate) u32, pub(crate) &'static str);

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// Writes the fields of one message.
pub(crate) struct Writer {
    format: Format,
    bytes: Vec<u8>,
}

impl Writer {
    /// Returns the bytes of a message with the fields that `write` writes.
    pub(crate) fn encode_message(format: Format, write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut writer = Self { format, bytes: Vec::new() };
        writer.write_body(write);
        writer.bytes
    }

    /// Writes a message within this one.
    pub(crate) fn write_nested(&mut self, field: Field, write: impl FnOnce(&mut Self)) {
        match self.format {
            Format::Protobuf => {
                let body = Self::encode_message(self.format, write);
                self.write_delimited(field, &body);
            }
            Format::Json => {
                self.write_name(field);
                self.write_body(write);
            }
        }
    }

    /// Writes a list of messages; nothing if it is empty.
    pub(crate) fn write_list<T>(
        &mut self,
        field: Field,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        match self.format {
            Format::Protobuf => {
                items.for_each(|item| self.write_nested(field, |body| write(body, item)));
            }
            Format::Json => {
                self.write_name(field);
                self.bytes.push(b'[');
                for item in items {
                    self.write_comma(b'[');
                    self.write_body(|body| write(body, item));
                }
                self.bytes.push(b']');
            }
        }
    }

    pub(crate) fn write_text(&mut self, field: Field, text: &str) {
        match self.format {
            Format::Protobuf => self.write_delimited(field, text.as_bytes()),
            Format::Json => {
                self.write_name(field);
                self.write_quoted(text);
            }
        }
    }

    /// Writes the bytes of an id.
    pub(crate) fn write_id(&mut self, field: Field, id: &[u8]) {
        match self.format {
            Format::Protobuf => self.write_delimited(field, id),
            Format::Json => {
                let mut hex = String::with_capacity(2 * id.len());
                for byte in id {
                    let _infallible = write!(hex, "{byte:02x}");
                }
                self.write_text(field, &hex);
            }
        }
    }

    /// Writes a value of an enum or a truth value that is a number in JSON as well.
    pub(crate) fn write_small(&mut self, field: Field, number: u8) {
        match self.format {
            Format::Protobuf => {
                self.write_tag(field, VARINT);
                self.write_varint(number.into());
            }
            Format::Json => self.write_raw(field, &number.to_string()),
        }
    }

    pub(crate) fn write_bool(&mut self, field: Field, value: bool) {
        match self.format {
            Format::Protobuf => self.write_small(field, value.into()),
            Format::Json => self.write_raw(field, if value { "true" } else { "false" }),
        }
    }

    /// Writes an `int64` as a varint.
    pub(crate) fn write_int(&mut self, field: Field, number: i64) {
        match self.format {
            Format::Protobuf => {
                self.write_tag(field, VARINT);
                self.write_varint(number.cast_unsigned());
            }
            Format::Json => self.write_raw(field, &format!("\"{number}\"")),
        }
    }

    /// Writes a `fixed64` or `sfixed64` that is not negative.
    pub(crate) fn write_fixed(&mut self, field: Field, number: u64) {
        match self.format {
            Format::Protobuf => {
                self.write_tag(field, FIXED_64);
                self.bytes.extend(number.to_le_bytes());
            }
            Format::Json => self.write_raw(field, &format!("\"{number}\"")),
        }
    }

    /// Writes a finite `double`.
    pub(crate) fn write_double(&mut self, field: Field, number: f64) {
        match self.format {
            Format::Protobuf => {
                self.write_tag(field, FIXED_64);
                self.bytes.extend(number.to_le_bytes());
            }
            Format::Json => self.write_raw(field, &number.to_string()),
        }
    }

    /// Writes a packed list of `fixed64`.
    pub(crate) fn fixed_list(&mut self, field: Field, numbers: &[u64]) {
        let bytes = || numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        self.write_packed(field, bytes, || numbers.iter().map(|it| format!("\"{it}\"")).collect());
    }

    /// Writes a packed list of `double`.
    pub(crate) fn double_list(&mut self, field: Field, numbers: &[f64]) {
        let bytes = || numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        self.write_packed(field, bytes, || numbers.iter().map(ToString::to_string).collect());
    }

    fn write_packed(
        &mut self,
        field: Field,
        bytes: impl FnOnce() -> Vec<u8>,
        texts: impl FnOnce() -> Vec<String>,
    ) {
        match self.format {
            Format::Protobuf => self.write_delimited(field, &bytes()),
            Format::Json => self.write_raw(field, &format!("[{}]", texts().join(","))),
        }
    }

    fn write_body(&mut self, write: impl FnOnce(&mut Self)) {
        match self.format {
            Format::Protobuf => write(self),
            Format::Json => {
                self.bytes.push(b'{');
                write(self);
                self.bytes.push(b'}');
            }
        }
    }

    fn write_raw(&mut self, field: Field, json: &str) {
        self.write_name(field);
        self.bytes.extend(json.as_bytes());
    }

    fn write_name(&mut self, Field(_, name): Field) {
        self.write_comma(b'{');
        self.write_quoted(name);
        self.bytes.push(b':');
    }

    /// Separates an item from the one before it, if there is one behind `begin`.
    fn write_comma(&mut self, begin: u8) {
        if self.bytes.last() != Some(&begin) {
            self.bytes.push(b',');
        }
    }

    fn write_quoted(&mut self, text: &str) {
        // Text has no form that JSON cannot write.
        self.bytes.extend(serde_json::to_vec(text).unwrap_or_default());
    }

    fn write_delimited(&mut self, field: Field, bytes: &[u8]) {
        self.write_tag(field, LENGTH_DELIMITED);
        self.write_varint(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    fn write_tag(&mut self, Field(number, _): Field, wire_type: u32) {
        self.write_varint(u64::from((number << 3) | wire_type));
    }

    fn write_varint(&mut self, mut number: u64) {
        while number > 0x7F {
            self.bytes.push((number & 0x7F) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format) -> Vec<u8> {
        Writer::encode_message(format, |body| {
            body.write_text(Field(1, "name"), "a\"b");
            body.write_int(Field(2, "count"), 300);
            body.write_list(Field(3, "items"), [1, 2], |item, number| {
                item.write_small(Field(1, "n"), number);
            });
            body.write_list(Field(4, "none"), [0_u8; 0], |item, number| {
                item.write_small(Field(1, "n"), number);
            });
            body.write_fixed(Field(5, "time"), 1);
            body.double_list(Field(6, "bounds"), &[0.5]);
            body.write_bool(Field(16, "yes"), true);
        })
    }

    #[test]
    fn protobuf_fields_are_encoded_per_the_wire_format() {
        let expected: &[u8] = &[
            0x0A, 3, b'a', b'"', b'b', // 1: bytes
            0x10, 0xAC, 0x02, // 2: varint 300
            0x1A, 2, 0x08, 1, 0x1A, 2, 0x08, 2, // 3: two messages
            0x29, 1, 0, 0, 0, 0, 0, 0, 0, // 5: fixed64
            0x32, 8, 0, 0, 0, 0, 0, 0, 0xE0, 0x3F, // 6: packed doubles
            0x80, 0x01, 1, // 16: a tag of two bytes
        ];
        assert_eq!(written(Format::Protobuf), expected);
        let negative =
            Writer::encode_message(Format::Protobuf, |body| body.write_int(Field(1, "n"), -1));
        assert_eq!(negative.len(), 11, "ten bytes of seven bits");
    }

    #[test]
    fn otlp_json_encodes_64_bit_integers_as_strings() {
        let json = String::from_utf8(written(Format::Json)).unwrap();
        let expected = r#"{"name":"a\"b","count":"300","items":[{"n":1},{"n":2}],"time":"1","bounds":[0.5],"yes":true}"#;
        assert_eq!(json, expected);
    }
}
