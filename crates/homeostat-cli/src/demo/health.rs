//! How an object is, in a phrase. Pure: an object in, words out.

use homeostat::k8s_openapi::api::core::v1::Pod;
use homeostat::{condition, pod};
use jiff::Timestamp;
use serde_json::Value;

/// Why the first container of a Pod does not run.
const WAITING: &str = "/status/containerStatuses/0/state/waiting/reason";

/// How the first container of a Pod ended.
const EXIT_CODE: &str = "/status/containerStatuses/0/state/terminated/exitCode";

/// Whether an object is as it should be. The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Health {
    /// It does not get there by itself.
    Failing,
    /// It is not there yet.
    OnItsWay,
    /// It is as it should be.
    Well,
}

impl Health {
    /// What stands before the phrase.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::Failing => '✗',
            Self::OnItsWay => '○',
            Self::Well => '●',
        }
    }

    fn well_if(so: bool) -> Self {
        if so { Self::Well } else { Self::OnItsWay }
    }
}

/// How an object of that kind is.
pub(crate) fn health(kind: &str, object: &Value, now: Timestamp) -> (Health, String) {
    let (health, words) = judge(kind, object, now);
    (health, one_line(&words))
}

/// One line without control characters, whoever wrote it.
pub(crate) fn one_line(words: &str) -> String {
    let words = words.replace(char::is_control, " ");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn judge(kind: &str, object: &Value, now: Timestamp) -> (Health, String) {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return (Health::OnItsWay, "going".to_owned());
    }
    match kind {
        "Pod" => of_pod(object, now),
        "Service" => {
            let (address, port) = (text(object, "/spec/clusterIP"), "/spec/ports/0/port");
            (Health::Well, format!("{address}:{}", number(object, port)))
        }
        "Secret" => (Health::Well, "written".to_owned()),
        "Job" => {
            let ended = number(object, "/status/succeeded");
            let wanted = number(object, "/spec/completions");
            let phrase = format!("{ended} of {wanted} ended well");
            told(object, [("Failed", "True")], phrase, ended >= wanted)
        }
        "Deployment" | "ReplicaSet" | "StatefulSet" => {
            let ready = number(object, "/status/readyReplicas");
            let wanted = number(object, "/spec/replicas");
            let phrase = format!("{ready} of {wanted} ready");
            // A rollout that missed its deadline, and Pods that could not be made.
            let alarms = [("Progressing", "False"), ("ReplicaFailure", "True")];
            told(object, alarms, phrase, ready == wanted)
        }
        _ => of_custom_resource(object),
    }
}

/// The phrase, and what a condition says that has that status and is no good.
fn told<const N: usize>(
    object: &Value,
    alarms: [(&str, &str); N],
    phrase: String,
    well: bool,
) -> (Health, String) {
    let found = alarms.iter().find_map(|(name, status)| {
        find(object, name).filter(|condition| condition["status"] == *status)
    });
    match found {
        Some(alarm) => (Health::Failing, format!("{phrase}: {}", message(alarm))),
        None => (Health::well_if(well), phrase),
    }
}

fn of_pod(object: &Value, now: Timestamp) -> (Health, String) {
    let typed: Pod = serde_json::from_value(object.clone()).unwrap_or_default();
    let trouble = pod::trouble(&typed).filter(|found| found.may_pass_within(now).is_none());
    if let Some(trouble) = trouble {
        let name = typed.metadata.name.unwrap_or_default();
        let words = trouble.message.strip_prefix(&format!("Pod {name}: "));
        let words = words.filter(|words| *words != trouble.reason);
        let reason = trouble.reason;
        return (
            Health::Failing,
            words.map_or(reason.clone(), |words| format!("{reason}: {words}")),
        );
    }
    let (phase, waits) = (text(object, "/status/phase"), text(object, WAITING));
    if phase == "Failed" {
        let said = text(object, "/status/message");
        let code = object.pointer(EXIT_CODE).map(|code| format!("Failed with exit code {code}"));
        let words = if said.is_empty() { code.unwrap_or(phase) } else { format!("Failed: {said}") };
        return (Health::Failing, words);
    }
    if !waits.is_empty() {
        return (Health::OnItsWay, waits);
    }
    let is_ready = find(object, condition::READY).is_some_and(|ready| ready["status"] == "True");
    if phase == "Running" && !is_ready {
        return (Health::OnItsWay, "Running, not ready".to_owned());
    }
    (Health::well_if(phase == "Running" || phase == "Succeeded"), phase)
}

/// What is wrong with it, if its conditions say so, else whether it is `Ready`.
fn of_custom_resource(object: &Value) -> (Health, String) {
    let is_so = |condition: &&Value| condition["status"] == "True";
    if let Some(degraded) = find(object, condition::DEGRADED).filter(is_so) {
        return (Health::Failing, message(degraded));
    }
    match find(object, condition::READY) {
        Some(ready) => (Health::well_if(is_so(&ready)), message(ready)),
        None => (Health::OnItsWay, "new".to_owned()),
    }
}

fn find<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)
}

/// What a condition says to people; its reason if it says nothing.
fn message(condition: &Value) -> String {
    let said = ["message", "reason"].map(|field| condition[field].as_str().unwrap_or_default());
    said.into_iter().find(|words| !words.is_empty()).unwrap_or_default().to_owned()
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(kind: &str, object: &Value) -> (Health, String) {
        health(kind, object, "2026-01-01T00:01:00Z".parse().unwrap())
    }

    fn with(conditions: &[(&str, &str, &str)]) -> Value {
        let one = |(name, status, message): &(&str, &str, &str)| json!({ "type": name, "status": status, "reason": "Because", "message": message });
        json!({ "status": { "conditions": conditions.iter().map(one).collect::<Vec<_>>() } })
    }

    #[test]
    fn what_fails_has_another_mark_than_what_is_on_its_way() {
        let starting = ("Ready", "False", "0 of 1 servers are up");
        let (way, words) = seen("Database", &with(&[starting]));
        assert_eq!((way, words.as_str()), (Health::OnItsWay, "0 of 1 servers are up"));
        let degraded = ("Degraded", "True", "there is no image");
        let (fails, words) = seen("Database", &with(&[starting, degraded]));
        assert_eq!((fails, words.as_str()), (Health::Failing, "there is no image"));
        let (well, _) =
            seen("Database", &with(&[("Ready", "True", "up"), ("Degraded", "False", "")]));
        assert_eq!(well, Health::Well);
        let marks = [fails, way, well].map(Health::mark);
        assert!(marks[0] != marks[1] && marks[1] != marks[2] && marks[0] != marks[2], "{marks:?}");
    }

    #[test]
    fn a_pod_that_cannot_start_fails_in_the_words_of_its_node() {
        let pod = |state: Value| {
            let container = json!({ "name": "c", "image": "i", "imageID": "", "ready": false,
                "restartCount": 0, "state": state });
            json!({ "metadata": { "name": "p" },
                "status": { "phase": "Pending", "containerStatuses": [container] } })
        };
        let waiting = |reason: &str, message: &str| {
            pod(json!({ "waiting": { "reason": reason, "message": message } }))
        };
        assert_eq!(
            seen("Pod", &waiting("ErrImagePull", "there is\nno \u{1b}[31mimage")),
            (Health::Failing, "ErrImagePull: there is no [31mimage".to_owned())
        );
        assert_eq!(
            seen("Pod", &waiting("CrashLoopBackOff", "")),
            (Health::Failing, "CrashLoopBackOff".to_owned())
        );
        assert_eq!(
            seen("Pod", &waiting("ContainerCreating", "")),
            (Health::OnItsWay, "ContainerCreating".to_owned())
        );
        let mut ended = pod(json!({ "terminated": { "exitCode": 3 } }));
        ended["status"]["phase"] = json!("Failed");
        assert_eq!(seen("Pod", &ended), (Health::Failing, "Failed with exit code 3".to_owned()));
    }

    #[test]
    fn a_pod_that_runs_is_well_when_it_is_ready() {
        let mut running = with(&[("Ready", "False", "")]);
        running["status"]["phase"] = json!("Running");
        assert_eq!(seen("Pod", &running), (Health::OnItsWay, "Running, not ready".to_owned()));
        running["status"]["conditions"][0]["status"] = json!("True");
        assert_eq!(seen("Pod", &running), (Health::Well, "Running".to_owned()));
    }

    #[test]
    fn a_workload_fails_when_its_conditions_say_so() {
        let mut late = with(&[("Progressing", "False", "it has timed out")]);
        late["spec"] = json!({ "replicas": 2 });
        assert_eq!(
            seen("Deployment", &late),
            (Health::Failing, "0 of 2 ready: it has timed out".to_owned())
        );
        let (job, _) = seen("Job", &with(&[("Failed", "True", "too many failures")]));
        assert_eq!(job, Health::Failing);
    }
}
