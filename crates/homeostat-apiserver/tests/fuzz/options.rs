//! Query options and headers, valid and absurd.

use crate::dice::Dice;
use crate::request::Request;
use crate::selectors;

const NUMBERS: &[&str] =
    &["0", "1", "2", "500", "-1", "x", "", "1.5", "99999999999999999999", "9223372036854775807"];

const TOKENS: &[&str] = &[
    "",
    "x",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiXHUwMDAwIn0",
    "eyJydiI6OTk5OTk5OTk5OTk5OTk5OTk5OTk5fQ",
    "////",
];

const ACCEPTS: &[&str] = &[
    "application/json",
    "application/json",
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=Odd;v=v1;g=meta.k8s.io",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf,application/json",
    "text/html",
    "*/*",
    ";;;",
    ",",
    "",
];

/// What the client says it reads.
pub(crate) fn accept(dice: &Dice) -> &'static str {
    if dice.chance(60) { ACCEPTS[0] } else { dice.pick::<&str>(ACCEPTS) }
}

/// Options of reads and deletes.
pub(crate) fn list(dice: &Dice) -> String {
    let mut query = Query::new(dice);
    query.sometimes(20, "labelSelector", selectors::labels);
    query.sometimes(20, "fieldSelector", selectors::fields);
    query.maybe(15, "limit", NUMBERS);
    query.maybe(8, "continue", TOKENS);
    query.maybe(20, "resourceVersion", NUMBERS);
    query.maybe(10, "resourceVersionMatch", &["Exact", "NotOlderThan", "Odd", ""]);
    query.maybe(15, "watch", &["1", "true", "0", "odd"]);
    query.maybe(10, "sendInitialEvents", &["true", "false", "x"]);
    query.maybe(10, "allowWatchBookmarks", &["true", "x"]);
    query.maybe(20, "timeoutSeconds", NUMBERS);
    query.maybe(5, "includeObject", &["None", "Metadata", "Object", "Odd"]);
    query.maybe(5, "gracePeriodSeconds", NUMBERS);
    query.maybe(5, "propagationPolicy", &["Orphan", "Background", "Foreground", "Odd"]);
    query.maybe(3, "dryRun", &["All", "Odd"]);
    query.maybe(3, "pretty", &["true"]);
    query.text()
}

/// Options of writes.
pub(crate) fn write(dice: &Dice) -> String {
    let mut query = Query::new(dice);
    options(&mut query);
    query.text()
}

/// Options of patches, which an apply needs.
pub(crate) fn patch(dice: &Dice, media: &str) -> String {
    let mut query = Query::new(dice);
    options(&mut query);
    if media.contains("apply") {
        query.maybe(90, "fieldManager", &["one", "two"]);
        query.maybe(60, "force", &["true", "true", "false", "x"]);
    }
    query.text()
}

fn options(query: &mut Query<'_>) {
    query.maybe(20, "fieldManager", &["one", "two", "", "\u{0}", "a\nb", "éééé"]);
    query.maybe(10, "dryRun", &["All", "All", "All", "Odd", ""]);
    query.maybe(20, "fieldValidation", &["Strict", "Warn", "Ignore", "Ignore", "Odd"]);
    query.maybe(3, "force", &["true", "x"]);
}

struct Query<'a> {
    dice: &'a Dice,
    text: form_urlencoded::Serializer<'static, String>,
}

impl<'a> Query<'a> {
    fn new(dice: &'a Dice) -> Self {
        Self { dice, text: form_urlencoded::Serializer::new(String::new()) }
    }

    fn maybe(&mut self, percent: usize, name: &str, values: &[&str]) {
        if self.dice.chance(percent) {
            let value: &str = self.dice.pick::<&str>(values);
            self.text.append_pair(name, value);
        }
    }

    fn sometimes(&mut self, percent: usize, name: &str, value: impl Fn(&Dice) -> String) {
        if self.dice.chance(percent) {
            self.text.append_pair(name, &value(self.dice));
        }
    }

    fn text(mut self) -> String {
        let text = self.text.finish();
        if text.is_empty() { text } else { format!("?{text}") }
    }
}

/// Headers that change who asks, and how.
pub(crate) fn headers(dice: &Dice, request: &mut Request) {
    let mut add = |percent: usize, name: &str, values: &[&str]| {
        if dice.chance(percent) {
            request.headers.push((name.to_owned(), (*dice.pick(values)).to_owned()));
        }
    };
    add(4, "accept", ACCEPTS);
    add(3, "content-type", &["application/json", "text/plain", "application/yaml;x=y", "", ";"]);
    add(
        5,
        "impersonate-user",
        &["jane", "", "system:serviceaccount:default:default", "é", "system:admin"],
    );
    add(1, "impersonate-group", &["system:masters", "system:authenticated", ""]);
    add(1, "impersonate-uid", &["1", ""]);
    add(1, "impersonate-extra-a", &["b"]);
    add(1, "impersonate-extra-%", &["b"]);
    add(
        2,
        "authorization",
        &["Bearer x", "Bearer a.b.c", "Basic x", "Bearer", "Bearer eyJhbGciOiJub25lIn0.e30."],
    );
    add(5, "user-agent", &["kubectl/v1.36.4 (linux/amd64)", "", "é", "a b c/\u{1}"]);
    add(2, "if-none-match", &["\"x\"", "*"]);
    add(2, "accept-encoding", &["gzip", "br"]);
    add(2, "upgrade", &["websocket", "SPDY/3.1"]);
}

/// Bends a path or a query a little.
pub(crate) fn bend(dice: &Dice, target: &mut String) {
    let at = dice.below(target.len() + 1);
    if !target.is_char_boundary(at) {
        return;
    }
    match dice.below(5) {
        0 => target.insert_str(
            at,
            dice.pick::<&str>(&["/", "%", "%00", "%2F", "..", "&", "=", "?", "%ff"]),
        ),
        1 => {
            let rest = target.split_off(at);
            if target.is_empty() {
                target.push('/');
            }
            drop(rest);
        }
        2 => target.push_str(&format!("&{}", "a=b&".repeat(500))),
        3 => *target = target.replacen("v1", dice.pick::<&str>(&["v2", "v1alpha1", "V1", ""]), 1),
        _ => target.push_str("/x"),
    }
}
