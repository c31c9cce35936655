//! Sizes and costs: a least and a most, which never overflow.

/// From the least to the most, of a size or of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Amount {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Amount {
    /// Nothing is known.
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    /// The identity of [`Amount::union`].
    pub(super) const NOTHING: Self = Self { min: u64::MAX, max: 0 };

    pub(super) const fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Multiplied by a factor, rounded up.
    pub(super) fn scaled(self, factor: f64) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "estimates; the cast back saturates"
        )]
        let scale = |size: u64| (size as f64 * factor).ceil() as u64;
        Self { min: scale(self.min), max: scale(self.max) }
    }

    /// What covers both.
    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}
