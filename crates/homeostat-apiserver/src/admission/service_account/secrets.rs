//! Which Secrets a Pod uses, and whether its account lists them.

use serde_json::Value;

/// The lists of containers that are looked at, and what a refusal calls one of them.
const CONTAINERS: [(&str, &str); 2] =
    [("initContainers", "init container"), ("containers", "container")];

/// Whether a Pod refers to any Secret at all.
pub(super) fn any(spec: &Value) -> bool {
    let is_mentioned = |part: &str| spec.get(part).is_some_and(mentions);
    list(spec, "imagePullSecrets").next().is_some()
        || is_mentioned("volumes")
        || CONTAINERS.iter().any(|(field, _)| is_mentioned(field))
}

/// Whether a Secret is named anywhere in a volume or a container.
fn mentions(value: &Value) -> bool {
    const REFERENCES: [&str; 5] =
        ["secret", "secretRef", "secretKeyRef", "secretName", "nodePublishSecretRef"];
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| REFERENCES.contains(&name.as_str()) || mentions(value)),
        Value::Array(items) => items.iter().any(mentions),
        _ => false,
    }
}

/// Whether the account lists every Secret that the Pod uses; if not, which one.
pub(super) fn check(spec: &Value, account: &Value) -> Result<(), String> {
    let owner = account["metadata"]["name"].as_str().unwrap_or("");
    let lists = |field: &str, name: &str| list(account, field).any(|one| one["name"] == name);
    let refuse = |user: String, name: &str| {
        Err(format!(
            "{user}=\"{name}\" is not allowed because service account {owner} does not reference \
             that secret"
        ))
    };
    for volume in list(spec, "volumes") {
        if let Some(name) = volume["secret"]["secretName"].as_str()
            && !lists("secrets", name)
        {
            return refuse("volume with secret.secretName".to_owned(), name);
        }
    }
    for (field, called) in CONTAINERS {
        for container in list(spec, field) {
            let which = format!("{called} {}", container["name"].as_str().unwrap_or(""));
            for variable in list(container, "env") {
                if let Some(name) = variable["valueFrom"]["secretKeyRef"]["name"].as_str()
                    && !lists("secrets", name)
                {
                    let variable = variable["name"].as_str().unwrap_or("");
                    let user =
                        format!("{which} with envVar {variable} referencing secret.secretName");
                    return refuse(user, name);
                }
            }
            for source in list(container, "envFrom") {
                if let Some(name) = source["secretRef"]["name"].as_str()
                    && !lists("secrets", name)
                {
                    let user = format!("{which} with envFrom referencing secret.secretName");
                    return refuse(user, name);
                }
            }
        }
    }
    for (number, pull) in list(spec, "imagePullSecrets").enumerate() {
        let name = pull["name"].as_str().unwrap_or("");
        if !lists("imagePullSecrets", name) {
            return Err(format!(
                "imagePullSecrets[{number}].name=\"{name}\" is not allowed because service \
                 account {owner} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}
