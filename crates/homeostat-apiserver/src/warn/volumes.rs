//! Volumes that put two things in one place.

use serde_json::Value;

use super::{list, text};

/// A path in a volume and where its content comes from, if that is said.
struct Place<'a> {
    path: &'a str,
    source: String,
}

impl Place<'_> {
    /// Whether one of the two is the other, or below it.
    fn overlaps(&self, other: &Place<'_>) -> bool {
        let below = |upper: &str, lower: &str| {
            lower.strip_prefix(upper).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.path.is_empty()
            && !other.path.is_empty()
            && (below(self.path, other.path) || below(other.path, self.path))
    }

    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }
}

pub(super) fn of_overlaps(spec: &Value, warnings: &mut Vec<String>) {
    for volume in list(spec, "/volumes") {
        let name = text(volume, "/name");
        for (field, named, by) in [
            ("configMap", "ConfigMap", "/name"),
            ("secret", "Secret", "/secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let Some(source) = volume.get(field) else { continue };
            let title = match by {
                "" => named.to_owned(),
                pointer => format!("{named} {:?}", text(source, pointer)),
            };
            of_places(name, &title, &items(source, ""), warnings);
        }
        let mut places = Vec::new();
        for source in list(volume, "/projected/sources") {
            if source.as_object().is_some_and(serde_json::Map::is_empty) {
                warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
            places.extend(projected(source));
        }
        of_places(name, "Projected", &places, warnings);
    }
}

fn of_places(volume: &str, title: &str, places: &[Place<'_>], warnings: &mut Vec<String>) {
    for (index, place) in places.iter().enumerate() {
        for other in places[..index].iter().filter(|other| place.overlaps(other)) {
            warnings.push(format!(
                "volume {volume:?} ({title}): overlapping paths: {} with {}",
                place.shown(),
                other.shown()
            ));
        }
    }
}

fn items<'a>(source: &'a Value, title: &str) -> Vec<Place<'a>> {
    let place = |item: &'a Value| place(text(item, "/path"), title);
    list(source, "/items").iter().map(place).collect()
}

fn place<'a>(path: &'a str, source: &str) -> Place<'a> {
    Place { path: path.trim_end_matches('/'), source: source.to_owned() }
}

/// The paths of one source; of several, only the first that counts is looked at.
fn projected(source: &Value) -> Vec<Place<'_>> {
    let titled = |field: &str, title: &str| format!("{title} {:?}", text(&source[field], "/name"));
    if source["configMap"].get("items").is_some() {
        return items(&source["configMap"], &titled("configMap", "ConfigMap"));
    }
    if source["secret"].get("items").is_some() {
        return items(&source["secret"], &titled("secret", "Secret"));
    }
    if source["downwardAPI"].get("items").is_some() {
        return items(&source["downwardAPI"], "DownwardAPI");
    }
    if let Some(token) = source.get("serviceAccountToken") {
        return vec![place(text(token, "/path"), "ServiceAccountToken")];
    }
    if let Some(bundle) = source.get("clusterTrustBundle") {
        let named = bundle.get("name").or_else(|| bundle.get("signerName"));
        let title = named.and_then(Value::as_str).unwrap_or_default();
        return vec![place(text(bundle, "/path"), &format!("ClusterTrustBundle {title:?}"))];
    }
    let certificate = &source["podCertificate"];
    [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ]
    .into_iter()
    .map(|(field, title)| place(text(certificate, &format!("/{field}")), title))
    .filter(|place| !place.path.is_empty())
    .collect()
}
