//! An object whose text was made before its revision was known: what is left to do is to write the
//! revision into it. Nothing here reads or checks the text.

use super::{Key, Pairs, Stored};

/// An object to be kept as it is, with everything but its revision.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The resource.
    pub resource: &'static str,
    /// Where in it.
    pub key: Key,
    /// The `apiVersion` it is written in.
    pub api_version: &'static str,
    /// The labels, which the text has, too.
    pub labels: Pairs,
    /// What field selectors of its kind can ask for.
    pub fields: Pairs,
    /// The object as JSON, in the form of [`Stored::body`]: what is before the number of its
    /// `metadata.resourceVersion`, and what is after it.
    pub text: [String; 2],
}

impl Finished {
    /// The object at that revision.
    pub(super) fn at(self, revision: u64) -> Stored {
        let [before, after] = self.text;
        Stored {
            revision,
            key: self.key,
            api_version: self.api_version.to_owned(),
            labels: self.labels,
            fields: self.fields,
            body: [before, revision.to_string(), after].concat().into(),
        }
    }
}
