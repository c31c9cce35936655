//! Label and field selectors: parsing and matching, as the API's query parameters spell them.

mod fields;
mod labels;

use crate::status::Status;
use crate::store::{Pairs, Stored};

/// Which objects a list, a watch or a deletecollection is about; the default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    field: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Parses `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    /// A 400 `Status` that names what cannot be read.
    pub fn parse(labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = labels::parse(labels).map_err(Status::bad_request)?;
        let fields = fields::parse(fields).map_err(Status::bad_request)?;
        Ok(Self { labels, fields })
    }

    /// Whether everything is selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The fields asked for.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|requirement| requirement.field.as_str())
    }

    /// The single name that `metadata.name=` asks for, if it does.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let by_name = |it: &&FieldRequirement| it.equal && it.field == "metadata.name";
        self.fields.iter().find(by_name).map(|requirement| requirement.value.as_str())
    }

    /// The field selector that asks for one name, whatever is in it.
    pub(crate) fn of_name(name: &str) -> String {
        format!("metadata.name={}", fields::escaped(name))
    }

    /// Whether the object is selected.
    #[must_use]
    pub fn matches(&self, object: &Stored) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(&object.labels))
            && self.fields.iter().all(|requirement| requirement.matches(object))
    }
}

impl Requirement {
    fn matches(&self, labels: &Pairs) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Greater(bound) => number().is_some_and(|number| number > *bound),
            Test::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FieldRequirement {
    fn matches(&self, object: &Stored) -> bool {
        let value = match self.field.as_str() {
            "metadata.name" => object.key.name.as_str(),
            "metadata.namespace" => object.key.namespace.as_str(),
            field => object.fields.get(field).unwrap_or(""),
        };
        (value == self.value) == self.equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    fn object(labels: &[(&str, &str)]) -> Stored {
        Stored {
            revision: 2,
            key: Key::new("default", "web"),
            api_version: "v1".into(),
            labels: labels.iter().copied().collect(),
            fields: [("status.phase", "Running")].into_iter().collect(),
            body: bytes::Bytes::new(),
        }
    }

    #[test]
    fn label_selectors_select_as_written() {
        let web = object(&[("app", "web"), ("tier", "3")]);
        for (selector, selected) in [
            ("", true),
            ("app=web", true),
            ("app == web,tier", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web, api)", true),
            ("app notin (web,api)", false),
            ("!app", false),
            ("!other", true),
            ("tier>2,tier<4", true),
            ("tier>3", false),
        ] {
            let parsed = Selector::parse(selector, "").unwrap();
            assert_eq!(parsed.matches(&web), selected, "{selector}");
        }
        assert_eq!(Selector::parse("a in b", "").unwrap_err().code, 400);
    }

    #[test]
    fn field_selectors_select_as_written() {
        let web = object(&[]);
        for (selector, selected) in [
            ("metadata.name=web", true),
            ("metadata.name=api", false),
            ("metadata.namespace!=kube-system,status.phase=Running", true),
            ("status.phase!=Running", false),
            ("spec.nodeName=", true),
        ] {
            let parsed = Selector::parse("", selector).unwrap();
            assert_eq!(parsed.matches(&web), selected, "{selector}");
        }
        assert_eq!(Selector::parse("", "nonsense").unwrap_err().code, 400);
    }
}
