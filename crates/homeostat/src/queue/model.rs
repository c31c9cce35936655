//! A naive queue to compare with.
