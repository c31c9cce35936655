//! The shortest story that still ends badly in the same way.

use serde_json::Value;

use crate::request::Request;

/// Drops every request that the last one does not need, then every part of its body. `fails` runs a
/// story and says what was found.
pub(crate) fn shortest(
    mut story: Vec<Request>,
    finding: &str,
    fails: impl Fn(&[Request]) -> Option<String>,
) -> Vec<Request> {
    let same = |story: &[Request]| fails(story).is_some_and(|found| sort(&found) == sort(finding));
    let mut size = story.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at + 1 < story.len() {
            let end = (at + size).min(story.len() - 1);
            let shorter = [&story[..at], &story[end..]].concat();
            if same(&shorter) {
                story = shorter;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    for at in (0..story.len()).rev() {
        if let Ok(body) = serde_json::from_slice::<Value>(&story[at].body) {
            simplify(&mut story, at, body, &same);
        }
    }
    story
}

/// Takes fields and items out of a body for as long as that changes nothing.
fn simplify(story: &mut [Request], at: usize, mut body: Value, same: &impl Fn(&[Request]) -> bool) {
    let before = story[at].body.clone();
    story[at].body = body.to_string().into_bytes();
    if !same(story) {
        story[at].body = before;
        return;
    }
    let mut tried = 0;
    loop {
        let mut smaller = body.clone();
        let mut left = tried;
        if !remove(&mut smaller, &mut left) {
            return;
        }
        let kept = std::mem::replace(&mut story[at].body, smaller.to_string().into_bytes());
        if same(story) {
            body = smaller;
        } else {
            story[at].body = kept;
            tried += 1;
        }
    }
}

/// Removes the part of that number, counting from the outside in.
fn remove(value: &mut Value, number: &mut usize) -> bool {
    match value {
        Value::Object(fields) => {
            for at in 0..fields.len() {
                if *number == 0 {
                    let name = fields.keys().nth(at).cloned().unwrap_or_default();
                    fields.shift_remove(&name);
                    return true;
                }
                *number -= 1;
            }
            fields.values_mut().any(|below| remove(below, number))
        }
        Value::Array(items) => {
            for at in 0..items.len() {
                if *number == 0 {
                    items.remove(at);
                    return true;
                }
                *number -= 1;
            }
            items.iter_mut().any(|below| remove(below, number))
        }
        _ => false,
    }
}

/// What makes two findings the same: their first words, without numbers.
pub(crate) fn sort(finding: &str) -> String {
    finding.chars().filter(|letter| !letter.is_ascii_digit()).take(60).collect()
}

#[test]
fn a_story_is_cut_down_to_what_it_needs() {
    let request = |body: &str| Request { body: body.into(), ..Request::default() };
    let story: Vec<Request> = ["1", "{\"bad\": 1, \"b\": [1, 2]}", "3", "4"].map(request).into();
    let fails = |story: &[Request]| {
        let bad = story.iter().any(|one| String::from_utf8_lossy(&one.body).contains("bad"));
        (bad && story.last().is_some_and(|last| last.body == b"4")).then(|| "bad".to_owned())
    };
    let short = shortest(story, "bad", fails);
    let bodies: Vec<_> = short.iter().map(|one| String::from_utf8_lossy(&one.body)).collect();
    assert_eq!(bodies, ["{\"bad\":1}", "4"]);
}
