//! A link as a QR code for a phone's camera. Pure.
//!
//! Only what a link needs: bytes, version 6 (41 modules a side) with the low level of correction, one mask. ISO/IEC
//! 18004 has the numbers.

/// Modules of a side, and the largest text in bytes.
const SIDE: usize = 41;
const MAX_BYTES: usize = 134;
/// Blocks, and bytes of data and of correction in each.
const BLOCKS: usize = 2;
const DATA: usize = 68;
const CHECK: usize = 18;
/// The place at which the patterns at the other corners begin, and the middle of the small pattern.
const FAR: usize = SIDE - 7;
const SMALL: usize = 34;
/// Level low, mask 0, with the bits that correct them.
const FORMAT: u32 = 0b111_0111_1100_0100;
/// The polynomial of the field.
const FIELD: u16 = 0x11d;
/// Light modules around the code.
const QUIET: usize = 4;

/// Draws a text with two modules a character; `None` if it is too long. Dark is drawn as blank, so that the code is right
/// where text is light on dark, and most cameras read it the other way round, too.
pub(crate) fn draw(text: &str) -> Option<String> {
    let code = Code::from_text(text)?;
    let is_light = |row: usize, column: usize| {
        let (row, column) = (row.wrapping_sub(QUIET), column.wrapping_sub(QUIET));
        !(row < SIDE && column < SIDE && code.dark[row][column])
    };
    let whole = SIDE + 2 * QUIET;
    let mut lines = String::new();
    for row in (0..whole).step_by(2) {
        for column in 0..whole {
            let below = row + 1 < whole && is_light(row + 1, column);
            lines.push(match (is_light(row, column), below) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        lines.push('\n');
    }
    Some(lines)
}

struct Code {
    dark: [[bool; SIDE]; SIDE],
    /// Modules that hold no data.
    is_fixed: [[bool; SIDE]; SIDE],
}

impl Code {
    fn from_text(text: &str) -> Option<Self> {
        let bytes = encode(text.as_bytes())?;
        let mut code = Self { dark: [[false; SIDE]; SIDE], is_fixed: [[false; SIDE]; SIDE] };
        code.set_patterns();
        code.set_data(&bytes);
        Some(code)
    }

    fn set(&mut self, row: usize, column: usize, is_dark: bool) {
        if let Some(module) = self.dark.get_mut(row).and_then(|it| it.get_mut(column)) {
            *module = is_dark;
            self.is_fixed[row][column] = true;
        }
    }

    fn set_patterns(&mut self) {
        for place in 0..SIDE {
            self.set(6, place, place % 2 == 0);
            self.set(place, 6, place % 2 == 0);
        }
        for (top, left) in [(0, 0), (0, FAR), (FAR, 0)] {
            // With the light frame around it, as far as that is inside.
            for (row, column) in
                (0..9_usize).flat_map(|row| (0..9_usize).map(move |column| (row, column)))
            {
                let ring = row.abs_diff(4).max(column.abs_diff(4));
                let (row, column) = ((top + row).wrapping_sub(1), (left + column).wrapping_sub(1));
                self.set(row, column, !matches!(ring, 2 | 4));
            }
        }
        for (row, column) in
            (0..5_usize).flat_map(|row| (0..5_usize).map(move |column| (row, column)))
        {
            let ring = row.abs_diff(2).max(column.abs_diff(2));
            self.set(SMALL - 2 + row, SMALL - 2 + column, ring != 1);
        }
        for bit in 0..15 {
            let is_dark = FORMAT >> bit & 1 == 1;
            let near = |place: usize| if place < 6 { place } else { place + 1 };
            match bit {
                0..8 => {
                    self.set(near(bit), 8, is_dark);
                    self.set(8, SIDE - 1 - bit, is_dark);
                }
                _ => {
                    self.set(8, near(14 - bit), is_dark);
                    self.set(SIDE - 15 + bit, 8, is_dark);
                }
            }
        }
        self.set(SIDE - 8, 8, true);
    }

    /// Lays the bits in pairs of columns, from the right, up and down in turn.
    fn set_data(&mut self, bytes: &[u8]) {
        let mut bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        let rights =
            (1..SIDE).rev().step_by(2).map(|right| if right <= 6 { right - 1 } else { right });
        for (pair, right) in rights.enumerate() {
            for step in 0..SIDE {
                let row = if pair % 2 == 0 { SIDE - 1 - step } else { step };
                for column in [right, right - 1] {
                    if !self.is_fixed[row][column] {
                        let bit = bits.next().unwrap_or(0) == 1;
                        self.dark[row][column] = bit != ((row + column) % 2 == 0);
                    }
                }
            }
        }
    }
}

/// The bytes of a code: mode and length, the text, filling, and what corrects them.
fn encode(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > MAX_BYTES {
        return None;
    }
    // Four bits of mode and eight of length, so that the text begins in the middle of a byte.
    let length = u8::try_from(text.len()).ok()?;
    let halves = [0x4, length >> 4, length & 0xf];
    let halves = halves.into_iter().chain(text.iter().flat_map(|byte| [byte >> 4, byte & 0xf]));
    let halves: Vec<u8> = halves.chain([0]).collect();
    let mut data: Vec<u8> = halves.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    let filling = [0xec, 0x11].into_iter().cycle();
    data.extend(filling.take((BLOCKS * DATA).saturating_sub(data.len())));
    let blocks: Vec<&[u8]> = data.chunks(DATA).collect();
    let checks: Vec<[u8; CHECK]> = blocks.iter().map(|block| check(block)).collect();
    let of_data = (0..DATA).flat_map(|at| blocks.iter().filter_map(move |block| block.get(at)));
    let of_checks = (0..CHECK).flat_map(|at| checks.iter().map(move |check| &check[at]));
    Some(of_data.chain(of_checks).copied().collect())
}

fn multiply(a: u8, b: u8) -> u8 {
    let mut product = 0_u16;
    for bit in (0..8).rev() {
        product = (product << 1) ^ ((product >> 7) * FIELD);
        product ^= u16::from(b >> bit & 1) * u16::from(a);
    }
    product as u8
}

/// The remainder of a block by the generator of Reed and Solomon.
fn check(block: &[u8]) -> [u8; CHECK] {
    let mut generator = [0; CHECK];
    generator[CHECK - 1] = 1;
    let mut root = 1;
    for _ in 0..CHECK {
        for at in 0..CHECK {
            let next = generator.get(at + 1).copied().unwrap_or(0);
            generator[at] = multiply(generator[at], root) ^ next;
        }
        root = multiply(root, 2);
    }
    let mut rest = [0; CHECK];
    for byte in block {
        let factor = byte ^ rest[0];
        rest.rotate_left(1);
        rest[CHECK - 1] = 0;
        for (rest, of) in rest.iter_mut().zip(generator) {
            *rest ^= multiply(of, factor);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correction_bytes_are_those_of_the_standard() {
        // A block of zeros has none; one that ends with 1 has the generator itself (α^215, α^234, … for 18).
        assert_eq!(check(&[0; DATA]), [0; CHECK]);
        let mut block = [0; DATA];
        block[DATA - 1] = 1;
        let found = check(&block);
        let power = |exponent: u32| (0..exponent).fold(1, |all, _| multiply(all, 2));
        assert_eq!(found[..4], [215, 234, 158, 94].map(power));
        assert_eq!(found[CHECK - 1], power(153));
    }

    #[test]
    fn qr_code_is_drawn_for_a_link_and_not_for_one_too_long() {
        let link = format!("https://desk.tail1234.ts.net/#t={}", "0123456789abcdef".repeat(4));
        let drawn = draw(&link).unwrap();
        assert_eq!(drawn.lines().count(), (SIDE + 2 * QUIET).div_ceil(2));
        assert!(drawn.lines().all(|line| line.chars().count() == SIDE + 2 * QUIET));
        assert!(draw(&"x".repeat(MAX_BYTES)).is_some());
        assert_eq!(draw(&"x".repeat(MAX_BYTES + 1)), None);
    }
}
