//! What a client of HTTP/1.1 may send, and what it may not: requests as bytes; and what is no TLS.

use crate::dice::Dice;

/// One side of a connection from its first byte on: some requests, one after the other.
pub(crate) fn conversation(dice: &Dice, token: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1 + dice.below(4) {
        out.extend(request(dice, token));
    }
    if dice.chance(20) {
        out.truncate(dice.below(out.len() + 1));
    }
    if dice.chance(10) && !out.is_empty() {
        let at = dice.below(out.len());
        out[at] = u8::try_from(dice.below(256)).unwrap();
    }
    out
}

fn request(dice: &Dice, token: &str) -> Vec<u8> {
    let method = dice
        .pick::<&str>(&["GET", "GET", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "G\u{0}T", ""]);
    let path = dice.pick::<&str>(&[
        "/livez",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/a",
        "https://elsewhere/api",
        "*",
        "//",
        "/a b",
        "/\u{7f}",
        "",
    ]);
    let version = if dice.chance(90) {
        "HTTP/1.1"
    } else {
        dice.pick::<&str>(&["HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "http/1.1", "RTSP/1.0"])
    };
    let end = if dice.chance(95) { "\r\n" } else { dice.pick::<&str>(&["\n", "\r", "\r\n\r\n"]) };
    let (mut head, body) = (format!("{method} {path} {version}{end}"), body(dice));
    let mut add = |line: &str| head.push_str(&format!("{line}{end}"));
    if dice.chance(97) {
        add("Host: localhost");
    }
    if dice.chance(97) {
        add(&format!("Authorization: {token}"));
    }
    if dice.chance(80) {
        add("Content-Type: application/json");
    }
    match &body {
        Body::None => {}
        Body::Counted(bytes) => add(&format!("Content-Length: {}", bytes.len())),
        Body::Miscounted(_, length) => add(&format!("Content-Length: {length}")),
        Body::Chunked(_) => add("Transfer-Encoding: chunked"),
        Body::Both(bytes) => {
            add(&format!("Content-Length: {}", bytes.len()));
            add("Transfer-Encoding: chunked");
        }
    }
    for _ in 0..dice.below(4) {
        add(dice.pick::<&str>(&[
            "Connection: close",
            "Connection: upgrade\r\nUpgrade: h2c",
            "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x",
            "Expect: 100-continue",
            "Expect: nothing",
            " folded: line",
            "No colon",
            ": no name",
            "Content-Length: 7",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked, identity",
            "Accept: application/json",
            "X: \u{1}\u{2}",
            "Host: another",
        ]));
    }
    if dice.chance(4) {
        let line = format!("X-Long: {}", "x".repeat(*dice.pick(&[1000, 70_000, 500_000])));
        add(&line);
    }
    if dice.chance(4) {
        for at in 0..*dice.pick(&[99, 101, 3000]) {
            add(&format!("X-{at}: y"));
        }
    }
    head.push_str(end);
    let mut out = head.into_bytes();
    out.extend(body.bytes());
    out
}

/// How a body is said to come, and what comes.
enum Body {
    None,
    Counted(Vec<u8>),
    /// With another length than it has.
    Miscounted(Vec<u8>, &'static str),
    Chunked(Vec<u8>),
    Both(Vec<u8>),
}

impl Body {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Counted(bytes)
            | Self::Miscounted(bytes, _)
            | Self::Chunked(bytes)
            | Self::Both(bytes) => bytes,
        }
    }
}

fn body(dice: &Dice) -> Body {
    let object = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#.to_vec();
    let lengths =
        ["0", "1", "-1", "+5", "x", "", "99999999999999999999", "1, 1", "4000000000", "0x3e"];
    match dice.below(10) {
        0..4 => Body::None,
        4 | 5 => Body::Counted(object),
        6 => Body::Miscounted(object, dice.pick::<&str>(&lengths)),
        7 | 8 => Body::Chunked(chunks(dice, &object)),
        _ => Body::Both(chunks(dice, &object)),
    }
}

fn chunks(dice: &Dice, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in object.chunks(1 + dice.below(object.len())) {
        let size = if dice.chance(93) {
            format!("{:x}", piece.len())
        } else {
            (*dice.pick(&["fffffffffffffffff", "-1", "", "0", "g", "5;ext=\"", "00000000005"]))
                .to_owned()
        };
        out.extend(format!("{size}\r\n").bytes());
        out.extend(piece);
        out.extend(b"\r\n");
    }
    if dice.chance(90) {
        out.extend(dice.pick::<&str>(&["0\r\n\r\n", "0\r\nTrailer: x\r\n\r\n", "0\r\n"]).bytes());
    }
    out
}

/// What is no handshake, or only its beginning.
pub(crate) fn no_handshake(dice: &Dice) -> Vec<u8> {
    // A record of a handshake that says it holds a greeting of so many bytes.
    let greeting = |length: usize| {
        let length = u16::try_from(length).unwrap().to_be_bytes();
        [&[22, 3, 1][..], &length, &[1, 0, 1, 252, 3, 3]].concat()
    };
    let noise = |most: usize| -> Vec<u8> {
        (0..dice.below(most)).map(|_| u8::try_from(dice.below(256)).unwrap()).collect()
    };
    match dice.below(6) {
        0 => b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        1 => Vec::new(),
        2 => noise(2000),
        3 => [greeting(512), noise(600)].concat(),
        4 => greeting(65_535),
        _ => [21, 3, 3, 0, 2, 2, 40].repeat(1 + dice.below(20)),
    }
}
