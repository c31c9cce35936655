//! From values to bytes in every encoding, and the many ways in which bytes are no value.

use homeostat_apiserver::kinds::Kind;
use serde_json::Value;

use crate::dice::Dice;
use crate::messages;

/// Protobuf bodies that kubectl really sent.
const SENT: [&[u8]; 6] = [
    include_bytes!("../samples/configmap.pb"),
    include_bytes!("../samples/deployment.pb"),
    include_bytes!("../samples/job.pb"),
    include_bytes!("../samples/service.pb"),
    include_bytes!("../samples/quota.pb"),
    include_bytes!("../samples/access-review.pb"),
];

/// The value in some encoding, with its media type.
pub(crate) fn encode(dice: &Dice, kind: &Kind, value: &Value) -> (&'static str, Vec<u8>) {
    match dice.below(100) {
        0..8 => {
            let text = serde_saphyr::to_string(value).unwrap_or_default();
            ("application/yaml", text.into_bytes())
        }
        8..10 => ("application/yaml", value.to_string().into_bytes()),
        10..16 => {
            let (api_version, name) = (kind.api_version(), kind.kind.as_str());
            let own = value["metadata"]["name"].as_str().unwrap_or("a");
            let known = if dice.chance(70) { messages::of(dice, kind, own) } else { None };
            let raw = known.unwrap_or_else(|| message(dice, 3));
            ("application/vnd.kubernetes.protobuf", envelope(&api_version, name, &raw, ""))
        }
        16..18 => {
            let body = envelope("v1", &kind.kind, value.to_string().as_bytes(), "application/json");
            ("application/vnd.kubernetes.protobuf", body)
        }
        18..20 => ("application/vnd.kubernetes.protobuf", dice.pick(&SENT).to_vec()),
        20 => ("application/cbor", value.to_string().into_bytes()),
        21 => ("text/plain", value.to_string().into_bytes()),
        _ => ("application/json", value.to_string().into_bytes()),
    }
}

/// Makes a body larger than some limit: that of annotations, of what a ConfigMap holds, of objects,
/// of requests.
pub(crate) fn inflate(dice: &Dice, value: &mut Value) {
    const KIB: usize = 1024;
    let size =
        *dice.pick(&[256 * KIB, 1024 * KIB, 1536 * KIB, 3072 * KIB - 2000, 3072 * KIB, 4096 * KIB]);
    let text = dice.pick(&["x", "é", "\u{0}", "\""]).repeat(size);
    let Some(fields) = value.as_object_mut() else { return };
    let long = Value::String(text);
    match dice.below(6) {
        0 => {
            let metadata = serde_json::json!({"name": "a", "annotations": {"long": long}});
            fields.insert("metadata".to_owned(), metadata);
        }
        1 => drop(fields.insert("data".to_owned(), serde_json::json!({"long": long}))),
        2 => drop(fields.insert("unknown".to_owned(), long)),
        3 => drop(fields.insert("spec".to_owned(), long)),
        4 => drop(fields.insert("data".to_owned(), serde_json::json!(vec![1; size / 2]))),
        _ => {
            let many = (0..size / 16).map(|at| (format!("k{at}"), Value::from("v")));
            fields.insert("data".to_owned(), Value::Object(many.collect()));
        }
    }
}

/// Breaks a body; says whether it is one for readers of YAML.
pub(crate) fn spoil(dice: &Dice, body: &mut Vec<u8>) -> bool {
    let middle = body.len() / 2;
    match dice.below(12) {
        0 => body.truncate(dice.below(body.len() + 1)),
        1 => body.clear(),
        2 => {
            for _ in 0..1 + dice.below(4) {
                if !body.is_empty() {
                    let at = dice.below(body.len());
                    body[at] = u8::try_from(dice.below(256)).unwrap();
                }
            }
        }
        3 => drop(body.splice(middle..middle, b"\xff\xfe\x00".iter().copied())),
        4 => drop(body.splice(0..0, "\u{feff}".bytes())),
        5 => body.extend(b" {} "),
        6 => body.extend_from_within(..middle),
        7 => body.resize(body.len() + *dice.pick(&[1_100_000, 3_200_000]), b' '),
        8 => {
            *body = yaml_bomb(dice).into_bytes();
            return true;
        }
        _ => *body = bomb(dice).into_bytes(),
    }
    false
}

/// Bodies that are small to send and large, deep or strange to read.
fn bomb(dice: &Dice) -> String {
    let many = *dice.pick(&[10, 90, 101, 500, 40_000, 500_000]);
    match dice.below(12) {
        0 => "[".repeat(many) + &"]".repeat(many),
        1 => "{\"a\":".repeat(many) + "1" + &"}".repeat(many),
        2 => format!("{{\"metadata\":{}1{}}}", "{\"a\":".repeat(many), "}".repeat(many)),
        3 => format!("{{\"metadata\":{{\"name\":\"{}\"}}}}", "x".repeat(many * 20)),
        4 => format!("{{\"a\":{}}}", "9".repeat(many)),
        5 => "{\"a\":1e999999999}".to_owned(),
        6 => "{\"a\":-0.0,\"b\":1e-400,\"c\":0.1e1}".to_owned(),
        7 => "{\"a\":\"\\ud800\",\"b\":\"\\u0000\"}".to_owned(),
        8 => {
            let keys: Vec<String> = (0..many).map(|at| format!("\"k{}\":1", at / 2)).collect();
            format!("{{{}}}", keys.join(","))
        }
        9 => {
            let items = vec!["{\"name\":\"a\",\"uid\":\"a\"}"; many.min(2000)].join(",");
            format!("{{\"metadata\":{{\"name\":\"a\",\"ownerReferences\":[{items}]}}}}")
        }
        10 => {
            // One key again and again, or many of them.
            let same = dice.chance(50);
            let key = |at: usize| if same { "a".to_owned() } else { format!("k{at}") };
            let fields: String =
                (0..many.min(5000)).map(|at| format!("\"{}\":1,", key(at))).collect();
            let long = "x".repeat(many * 5);
            format!("{{\"metadata\":{{\"name\":\"a\"}},\"{long}\":{{{fields}\"b\":1}}}}")
        }
        _ => (*dice.pick(&["null", "true", "7", "\"x\"", "[]", "[null]", "{}", " "])).to_owned(),
    }
}

/// The same in YAML.
fn yaml_bomb(dice: &Dice) -> String {
    let many = *dice.pick(&[10, 90, 101, 500, 40_000]);
    match dice.below(14) {
        0 => {
            let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
            for at in 1..10 {
                let before = at - 1;
                text += &format!("a{at}: &a{at} [*a{before},*a{before},*a{before},*a{before}]\n");
            }
            text
        }
        1 => "a: &a\n  b: *a\n".to_owned(),
        2 => "--- \na: 1\n---\nb: 2\n".to_owned(),
        3 => "? [a, b]\n: c\n1: 2\ntrue: x\n~: y\n".to_owned(),
        4 => "a: !!binary x\nb: !odd y\nc: 0x7f\nd: 1_000\ne: .nan\nf: .inf\ng: 2020-01-01\n"
            .to_owned(),
        5 => "a: {b: 1}\n<<: {c: 2}\n<<: [{d: 3}, *x]\n".to_owned(),
        6 => "a: 1\na: 2\n\tb: 3\n".to_owned(),
        7 => format!("a: |{}\n  x\nb: >-\n\n  y\n", dice.pick(&["", "+", "9", "-0", "99"])),
        8 => "%YAML 9.9\n%TAG ! tag:x,2000:\n--- !x\n...\n...\n".to_owned(),
        9 => format!("a: \"{}\"\n", dice.pick(&["\\x", "\\U00110000", "\\ud800", "\\/"])),
        10 => "{".repeat(many) + &"}".repeat(many),
        11 => (0..many.min(5000)).map(|at| format!("{}a:\n", " ".repeat(at))).collect(),
        12 => "&a *a: *a\n? ? ? x\n".to_owned(),
        _ => "- ".repeat(many),
    }
}

/// What protobuf bodies are wrapped in.
fn envelope(api_version: &str, kind: &str, raw: &[u8], media: &str) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw), field(4, media.as_bytes())].concat()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 127 {
        out.push(u8::try_from(length % 128).unwrap() | 128);
        length /= 128;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(bytes);
    out
}

/// A message of fields with any number and type.
fn message(dice: &Dice, depth: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..dice.below(5) {
        let number = u8::try_from(1 + dice.below(15)).unwrap();
        match dice.below(10) {
            0 | 1 => out.extend([number << 3, u8::try_from(dice.below(128)).unwrap()]),
            2 => out.extend([number << 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            3 => out.extend([number << 3 | 5, 1, 2, 3, 4]),
            4 if depth > 0 => {
                // A message inside itself, many times over.
                let mut deep = Vec::new();
                for _ in 0..*dice.pick(&[3, 99, 150]) {
                    deep = field(number, &deep);
                }
                out.extend(deep);
            }
            5..8 if depth > 0 => out.extend(field(number, &message(dice, depth - 1))),
            _ => out.extend(field(number, dice.pick(&["", "a", "\u{0}", "1Gi", "x y"]).as_bytes())),
        }
    }
    out
}
