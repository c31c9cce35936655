//! Reads requests as text, in the form editors know as `.http` files.
//!
//! ```text
//! ## a sequence, in a namespace of its own
//! @history 2                  how many changes this server keeps for its watchers
//!
//! ### a step
//! @save first                 keeps {{first.rv}}, {{first.uid}}, {{first.name}}, {{first.continue}},
//!                             {{first.token}}, {{first.etag}}
//! @until 200                  asks again until the answer has this code,
//! @until 403 exceeded quota   and these words
//! @answer /a {"allowed": true}  how the webhook {{webhook}}/a responds from here on
//! @reply /a 500 no            or replies; `silence` and `hang-up` are no replies
//! @watch w                    the request opens a watch, which goes on during the next steps
//! POST /api/v1/namespaces/{{ns}}/configmaps?fieldManager=me
//! Accept: application/json
//!
//! {"metadata": {"name": "a"}}
//!
//! ### a step without a request
//! @end w the-last             what came of the watch until an event with these words, or to its end
//! ```
//!
//! `{{ns}}` is the namespace; `{{hook}}` and `{{ca}}` lead to the webhook of `converter`;
//! `{{webhook}}` and `{{authority}}` to those of `reviewer`, and whatever they are asked in a step
//! (one without `@until`) is compared like its answer;
//! `{{medium}}` and `{{large}}` are long texts, `{{operations}}` too many operations of a JSON patch.
//! A body of protobuf is written in base64.
//! Lines that start with `//` are comments. A body that does not start like JSON is YAML; a
//! `Content-Type` header overrides that.

use crate::reviewer::Manner;

/// Steps that share a namespace and variables.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// `area: title`
    pub(crate) name: String,
    pub(crate) history: Option<usize>,
    pub(crate) steps: Vec<Step>,
}

/// One request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) title: String,
    pub(crate) save: Option<String>,
    pub(crate) until: Option<Until>,
    /// The name of the watch that it opens.
    pub(crate) watch: Option<String>,
    /// The watch whose events are told, and the words of the last one; without words it must end.
    pub(crate) end: Option<(String, String)>,
    /// How webhooks behave from here on, by path.
    pub(crate) manners: Vec<(String, Manner)>,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What both sides will answer in the end.
#[derive(Debug, Clone)]
pub(crate) struct Until {
    pub(crate) code: u16,
    pub(crate) words: String,
}

impl Until {
    pub(crate) fn holds(&self, code: u16, text: &str) -> bool {
        self.code == code && text.contains(&self.words)
    }
}

/// The sequences of an area.
pub(crate) fn read(area: &str, text: &str) -> Vec<Sequence> {
    let text: String = text.lines().filter(|line| !line.starts_with("//")).fold(
        String::new(),
        |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        },
    );
    let sequences = format!("\n{text}");
    sequences
        .split("\n## ")
        .skip(1)
        .map(|sequence| {
            let (title, steps) = sequence.split_once('\n').unwrap_or((sequence, ""));
            let steps = format!("\n{steps}");
            let head = steps.split("\n### ").next().unwrap_or_default();
            let history = head.trim().strip_prefix("@history ").and_then(|text| text.parse().ok());
            let steps = steps.split("\n### ").skip(1).map(step).collect();
            Sequence { name: format!("{area}: {}", title.trim()), history, steps }
        })
        .collect()
}

fn step(text: &str) -> Step {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let mut step = Step {
        title: lines.next().unwrap_or_default().trim().to_owned(),
        body: body.trim().to_owned(),
        ..Step::default()
    };
    for line in lines {
        if let Some(name) = line.strip_prefix("@save ") {
            step.save = Some(name.trim().to_owned());
        } else if let Some(answer) = line.strip_prefix("@until ") {
            let (code, words) = answer.trim().split_once(' ').unwrap_or((answer.trim(), ""));
            let words = words.trim().to_owned();
            step.until = code.parse().ok().map(|code| Until { code, words });
        } else if let Some(name) = line.strip_prefix("@watch ") {
            step.watch = Some(name.trim().to_owned());
        } else if let Some(which) = line.strip_prefix("@end ") {
            let (name, words) = which.trim().split_once(' ').unwrap_or((which.trim(), ""));
            step.end = Some((name.to_owned(), words.trim().to_owned()));
        } else if let Some((path, text)) = directive(line, "@answer ") {
            step.manners.push((path.to_owned(), Manner::Response(text.to_owned())));
        } else if let Some((path, text)) = directive(line, "@reply ") {
            step.manners.push((path.to_owned(), Manner::Raw(text.to_owned())));
        } else if let (true, Some((method, path))) = (step.method.is_empty(), line.split_once(' '))
        {
            step.method = method.to_owned();
            step.path = path.trim().to_owned();
        } else if let Some((name, value)) = line.split_once(':') {
            step.headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
    }
    let asks = !step.method.is_empty();
    assert!(asks != step.end.is_some(), "a request or an end in step {:?}", step.title);
    let given = step.headers.iter().any(|(name, _)| name == "content-type");
    if !given && !step.body.is_empty() {
        let json = step.body.starts_with(['{', '[', '"']);
        let media = if json { "application/json" } else { "application/yaml" };
        step.headers.push(("content-type".to_owned(), media.to_owned()));
    }
    step
}

/// The two parts of what follows a word that begins with `@`.
fn directive<'a>(line: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(word)?.trim().split_once(' ')
}

#[test]
fn a_script_becomes_sequences_of_steps() {
    let read = read(
        "area",
        "## one\n\n### first\n@save a\nGET /x?y={{ns}}\nAccept: b\n\n### second\nPOST /z\n\nbody: 1\n",
    );
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].name, "area: one");
    let [first, second] = &read[0].steps[..] else { panic!("{read:?}") };
    assert_eq!((first.method.as_str(), first.path.as_str()), ("GET", "/x?y={{ns}}"));
    assert_eq!(first.save.as_deref(), Some("a"));
    assert_eq!(first.headers, [("accept".to_owned(), "b".to_owned())]);
    assert_eq!(second.body, "body: 1");
    assert_eq!(second.headers[0].1, "application/yaml");
}

#[test]
fn a_watch_is_opened_in_one_step_and_told_in_another() {
    let read =
        read("area", "## one\n\n### it begins\n@watch w\nGET /x\n\n### it ends\n@end w b c\n");
    let [begin, end] = &read[0].steps[..] else { panic!("{read:?}") };
    assert_eq!((begin.watch.as_deref(), begin.path.as_str()), (Some("w"), "/x"));
    assert_eq!(end.end, Some(("w".to_owned(), "b c".to_owned())));
}
