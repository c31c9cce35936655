//! Differences that are accepted: reviewed, with the reason, and checked to still be there.

use crate::difference::Difference;

/// One accepted difference.
#[derive(Debug)]
pub(crate) struct Known {
    /// `area: sequence / step`, or the beginning of it.
    step: &'static str,
    /// The place, or some part of it.
    place: &'static str,
    /// Why it is so, and why that is fine for now.
    #[expect(dead_code, reason = "shown with the entry when it no longer differs")]
    why: &'static str,
}

/// The list; the shorter the better.
pub(crate) const KNOWN: &[Known] = &[Known {
    step: "",
    place: "/description",
    why: "tables do not carry the long descriptions of columns; kubectl does not show them",
}];

/// The row that accepts the difference.
pub(crate) fn position(difference: &Difference) -> Option<usize> {
    KNOWN.iter().position(|known| {
        difference.step.starts_with(known.step) && difference.place.contains(known.place)
    })
}
