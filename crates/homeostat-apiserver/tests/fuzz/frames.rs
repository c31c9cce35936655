//! What a client of HTTP/2 may send, and what it may not: frames, well made and otherwise.

use crate::dice::Dice;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// One side of a connection from its first byte on.
pub(crate) fn conversation(dice: &Dice, token: &str) -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    if dice.chance(5) {
        let at = dice.below(out.len());
        out[at] ^= 0x20;
    }
    out.extend(settings(dice));
    let mut stream = 1;
    for _ in 0..1 + dice.below(12) {
        out.extend(step(dice, token, &mut stream));
    }
    if dice.chance(15) {
        out.truncate(dice.below(out.len() + 1));
    }
    out
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

fn settings(dice: &Dice) -> Vec<u8> {
    let mut payload = Vec::new();
    for _ in 0..dice.below(4) {
        let name = u16::try_from(dice.below(10)).unwrap();
        let value = *dice.pick(&[0_u32, 1, 100, 16_384, 65_535, 16_777_215, 1 << 31, u32::MAX]);
        payload.extend(name.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    if dice.chance(5) {
        payload.push(0);
    }
    frame(SETTINGS, 0, 0, &payload)
}

fn step(dice: &Dice, token: &str, stream: &mut u32) -> Vec<u8> {
    let number = |choices: &[u32]| dice.pick(choices).to_be_bytes();
    let some = u8::try_from(dice.below(256)).unwrap();
    match dice.below(20) {
        0..6 => request(dice, token, stream),
        6 => {
            // Asked for and given up at once, again and again.
            let mut out = Vec::new();
            for _ in 0..1 + dice.below(60) {
                out.extend(request(dice, token, stream));
                out.extend(frame(3, 0, stream.wrapping_sub(2), &number(&[8, 0, 99])));
            }
            out
        }
        7 => frame(DATA, some & END_STREAM, *stream, &vec![b'x'; dice.below(3000)]),
        8 => frame(8, 0, *dice.pick(&[0, 1, *stream]), &number(&[0, 1, 0x7fff_ffff, u32::MAX])),
        9 => frame(6, some & 1, 0, &[7; 8]).repeat(1 + dice.below(300)),
        10 => frame(2, 0, *dice.pick(&[0, 1, *stream]), &[0x80, 0, 0, 1, 9]),
        11 => frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]),
        12 => frame(5, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
        13 => frame(some, some, *stream, &vec![some; dice.below(300)]),
        14 => {
            let flood = frame(CONTINUATION, 0, *stream, &literal("x-more", &"y".repeat(500)));
            let mut out = frame(HEADERS, END_STREAM, *stream, &block(dice, token, "/livez"));
            out.extend(flood.repeat(1 + dice.below(200)));
            out
        }
        // Of a table that is not there, of any size, and of no letters.
        15 => frame(HEADERS, END_HEADERS | END_STREAM, *stream, dice.pick::<&[u8]>(BLOCKS)),
        16 => settings(dice).repeat(1 + dice.below(50)),
        // Longer than it may be, and longer than it says.
        17 => frame(DATA, 0, *stream, &vec![0; 20_000]),
        18 => vec![0xff, 0xff, 0xff, HEADERS, 0, 0, 0, 0, 1],
        _ => (0..dice.below(200)).map(|_| u8::try_from(dice.below(256)).unwrap()).collect(),
    }
}

/// Blocks of headers that cannot be read.
const BLOCKS: &[&[u8]] = &[
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0x3f, 0xff, 0xff, 0xff, 0x0f, 0x82],
    &[0x80],
    &[0x00, 0x85, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, b'x'],
    &[0x00, 0x7f, 0xff, 0xff, 0xff, 0x7f],
    &[0x82, 0x82, 0x84, 0x87],
    &[0x84],
    &[],
];

fn request(dice: &Dice, token: &str, stream: &mut u32) -> Vec<u8> {
    let paths =
        ["/livez", "/api/v1/namespaces", "/apis", "/%ff", "", "*", "//", "/api/v1/pods?x=\u{1}"];
    let own = *stream;
    // Streams of a client are odd, and go up.
    *stream = stream.wrapping_add(if dice.chance(95) { 2 } else { *dice.pick(&[0, 1, 1 << 30]) });
    let block = block(dice, token, dice.pick::<&str>(&paths));
    let flags = if dice.chance(70) { END_HEADERS | END_STREAM } else { END_HEADERS };
    let mut out = if dice.chance(80) {
        frame(HEADERS, flags, own, &block)
    } else {
        let (first, rest) = block.split_at(dice.below(block.len()));
        let mut out = frame(HEADERS, flags & END_STREAM, own, first);
        out.extend(frame(CONTINUATION, END_HEADERS, own, rest));
        out
    };
    if flags & END_STREAM == 0 && dice.chance(80) {
        out.extend(frame(DATA, END_STREAM, own, b"{\"kind\": 1"));
    }
    out
}

fn block(dice: &Dice, token: &str, path: &str) -> Vec<u8> {
    let method = *dice.pick::<&str>(&["GET", "GET", "POST", "PUT", "CONNECT", "get", ""]);
    let mut out: Vec<u8> = [
        (":method", method),
        (":scheme", "https"),
        (":path", path),
        (":authority", "localhost"),
        ("authorization", token),
    ]
    .into_iter()
    .filter(|_| dice.chance(97))
    .flat_map(|(name, value)| literal(name, value))
    .collect();
    if dice.chance(20) {
        let (name, value) = *dice.pick(&[
            ("X-Upper", "a"),
            (":path", "/twice"),
            (":odd", "x"),
            ("connection", "close"),
            ("content-length", "5"),
            ("content-length", "-1"),
            ("te", "gzip"),
            ("a b", "c"),
            ("x", "\r\nset: y"),
            ("", ""),
        ]);
        out.extend(literal(name, value));
    }
    if dice.chance(5) {
        out.extend(literal("x-long", &"x".repeat(100)).repeat(dice.below(300)));
    }
    out
}

/// A header that is in no table, letter by letter.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0];
    for text in [name, value] {
        match text.len() {
            length @ 0..127 => out.push(u8::try_from(length).unwrap()),
            length => {
                out.push(127);
                let mut rest = length - 127;
                while rest > 127 {
                    out.push(u8::try_from(rest % 128).unwrap() | 128);
                    rest /= 128;
                }
                out.push(u8::try_from(rest).unwrap());
            }
        }
        out.extend(text.as_bytes());
    }
    out
}
