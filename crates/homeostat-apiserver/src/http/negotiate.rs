//! Media types: what the client can read, what it sent.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::print::MetaVersion;
use crate::status::Status;

/// The encoding of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

impl Encoding {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// The form in which objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Object,
    /// As rows for people.
    Table,
    /// Only their metadata.
    Metadata,
    /// Only the metadata of all objects of a list.
    MetadataList,
    /// Discovery of all groups in one document.
    Discovery,
}

impl Form {
    pub(crate) const ALL: [Self; 5] =
        [Self::Object, Self::Table, Self::Metadata, Self::MetadataList, Self::Discovery];
}

/// What the client reads best among what is offered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) encoding: Encoding,
    pub(crate) form: Form,
    /// Of tables and metadata.
    pub(crate) version: MetaVersion,
}

impl Accepted {
    fn as_is(encoding: Encoding) -> Self {
        Self { encoding, form: Form::Object, version: MetaVersion::V1 }
    }
}

/// Chooses by the `Accept` header: of what can be made, what is liked best; what is named goes before
/// what is a wildcard, and the first before the others.
pub(crate) fn accepted(headers: &HeaderMap) -> Result<Accepted, Status> {
    accepted_as(headers, &Form::ALL)
}

/// What a refusal is written in, which has one form; nothing if the client reads only others.
pub(crate) fn for_refusals(headers: &HeaderMap) -> Option<Encoding> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    // Whoever routes requests does not know this one; whoever writes refusals does.
    let takes_all = header.split(',').any(|clause| clause.trim() == "*");
    match accepted_as(headers, &[Form::Object]) {
        Ok(accepted) => Some(accepted.encoding),
        Err(_) => takes_all.then_some(Encoding::Json),
    }
}

/// The same where there are only those forms.
pub(crate) fn accepted_as(headers: &HeaderMap, forms: &[Form]) -> Result<Accepted, Status> {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    if header.trim().is_empty() {
        return Ok(Accepted::as_is(Encoding::Json));
    }
    let mut clauses: Vec<(f64, [bool; 2], &str)> = header.split(',').map(rank).collect();
    // Insertion, one place at a time: the order is not transitive, and Go sorts a few in this way.
    for end in 1..clauses.len() {
        for at in (1..=end).rev() {
            if !goes_before(&clauses[at], &clauses[at - 1]) {
                break;
            }
            clauses.swap(at, at - 1);
        }
    }
    let is_offered = |accepted: &Accepted| forms.contains(&accepted.form);
    let mut offered = clauses.iter().filter_map(|(.., text)| clause(text).filter(is_offered));
    offered.next().ok_or_else(Status::not_acceptable)
}

/// How much a clause is liked, and whether it names a type and a subtype.
fn rank(clause: &str) -> (f64, [bool; 2], &str) {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let (ty, subtype) = media.split_once('/').unwrap_or((media, ""));
    let liked = parts.find_map(|part| part.strip_prefix("q=")).map(|q| q.parse().unwrap_or(0.0));
    (liked.unwrap_or(1.0), [ty != "*", subtype != "*"], clause)
}

fn goes_before(one: &(f64, [bool; 2], &str), other: &(f64, [bool; 2], &str)) -> bool {
    let named = |at: usize| one.1[at] && !other.1[at];
    one.0 > other.0 || named(0) || named(1)
}

fn clause(clause: &str) -> Option<Accepted> {
    let mut parts = clause.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "application/*" | "*/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let (mut group, mut version, mut target) = ("", "", "");
    for parameter in parts {
        match parameter.split_once('=') {
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            Some(("as", value)) => target = value,
            _ => {}
        }
    }
    let (form, version) = match (target, group) {
        ("", _) => return Some(Accepted::as_is(encoding)),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io") if version == "v2" => {
            (Form::Discovery, MetaVersion::V1)
        }
        (_, "meta.k8s.io") => (
            match target {
                "Table" => Form::Table,
                "PartialObjectMetadata" => Form::Metadata,
                "PartialObjectMetadataList" => Form::MetadataList,
                _ => return None,
            },
            match version {
                "v1" => MetaVersion::V1,
                "v1beta1" => MetaVersion::V1Beta1,
                _ => return None,
            },
        ),
        _ => return None,
    };
    Some(Accepted { encoding, form, version })
}

/// The v2 document as protobuf, which kubectl reads in no other form.
pub(crate) const SWAGGER_MESSAGE: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The same under the name that it was first given; clients still ask for it.
const SWAGGER_MESSAGE_OF_OLD: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Whether the client would rather have the v2 document as protobuf than as JSON.
pub(crate) fn wants_swagger_message(headers: &HeaderMap) -> bool {
    let header = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut types = header.split(',').map(|clause| clause.split(';').next().unwrap_or("").trim());
    let known = [SWAGGER_MESSAGE, SWAGGER_MESSAGE_OF_OLD, "application/json", "*/*"];
    let first = types.find(|media| known.contains(media));
    first.is_some_and(|media| media == SWAGGER_MESSAGE || media == SWAGGER_MESSAGE_OF_OLD)
}

/// The media type of a request's body, without parameters; JSON when none is given.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    match header.split(';').next().unwrap_or("").trim() {
        "" => "application/json",
        media_type => media_type,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(header: &str) -> Result<Accepted, Status> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, header.parse().unwrap());
        accepted(&headers)
    }

    #[test]
    fn the_first_form_that_can_be_made_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept(table).unwrap().form, Form::Table);
        let protobuf = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accept(protobuf).unwrap(), Accepted::as_is(Encoding::Json));
        assert_eq!(accept("application/yaml").unwrap().encoding, Encoding::Yaml);
        assert_eq!(accept("text/html").unwrap_err().code, 406);
    }

    #[test]
    fn tables_and_metadata_are_there_in_both_versions_and_no_third() {
        for kind in ["Table", "PartialObjectMetadata", "PartialObjectMetadataList"] {
            let version = |version: &str| {
                let header = format!("application/json;as={kind};v={version};g=meta.k8s.io");
                accept(&header).map(|accepted| accepted.version).map_err(|status| status.code)
            };
            assert_eq!(version("v1"), Ok(MetaVersion::V1), "{kind}");
            assert_eq!(version("v1beta1"), Ok(MetaVersion::V1Beta1), "{kind}");
            assert_eq!(version("v1alpha1"), Err(406), "{kind}");
        }
    }
}
