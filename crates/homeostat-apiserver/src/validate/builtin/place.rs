//! Where in an object something is: a chain on the stack that becomes a text only when there is
//! something to say about it.

use std::fmt;

/// A path below the object: `spec.volumes[0].name`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// Where to begin, as clients write it.
    Root(&'a str),
    /// A field, or several with dots between them.
    Field(&'a Place<'a>, &'a str),
    /// An item of a list.
    Item(&'a Place<'a>, usize),
    /// An entry of a map.
    Key(&'a Place<'a>, &'a str),
}

impl<'a> Place<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(super) fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(path) => f.write_str(path),
            Self::Field(Place::Root(""), name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

impl From<Place<'_>> for String {
    fn from(place: Place<'_>) -> Self {
        place.to_string()
    }
}

impl From<&Place<'_>> for String {
    fn from(place: &Place<'_>) -> Self {
        place.to_string()
    }
}
