//! A set of a Job's indexes, kept as ranges and written as `0,2-4`. Pure.
//!
//! A Job may have two thousand million of them, so nothing here visits each.

use std::fmt;

/// Some of the indexes of a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    /// First and last of each range: in order, and with a gap between any two.
    ranges: Vec<(i32, i32)>,
}

impl Indexes {
    /// Reads `0,2-4`. What is not below `completions`, and what is not a range, is left out.
    pub(super) fn read(text: &str, completions: i32) -> Self {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<i32>().ok()?, last.parse::<i32>().ok()?);
            let last = last.min(completions - 1);
            (0 <= first && first <= last).then_some((first, last))
        };
        Self::join(text.split(',').filter_map(range).collect())
    }

    /// These and those.
    pub(super) fn with(&self, others: &Self) -> Self {
        Self::join(self.ranges.iter().chain(&others.ranges).copied().collect())
    }

    pub(super) fn has(&self, index: i32) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// How many they are.
    pub(super) fn total(&self) -> i32 {
        let total =
            self.ranges.iter().map(|(first, last)| i64::from(*last) - i64::from(*first) + 1);
        i32::try_from(total.sum::<i64>()).unwrap_or(i32::MAX)
    }

    /// Those in both.
    pub(super) fn common(&self, others: &Self) -> Self {
        let overlap = |a: &(i32, i32), b: &(i32, i32)| (a.0.max(b.0), a.1.min(b.1));
        let pairs =
            self.ranges.iter().flat_map(|a| others.ranges.iter().map(move |b| overlap(a, b)));
        Self::join(pairs.filter(|(first, last)| first <= last).collect())
    }

    /// The lowest `count` indexes below `completions` that are not among these.
    pub(super) fn first_missing(&self, count: usize, completions: i32) -> Vec<i32> {
        let mut missing = Vec::new();
        let mut candidate = 0;
        for (first, last) in &self.ranges {
            let gap = candidate..(*first).min(completions);
            missing.extend(gap.take(count - missing.len()));
            candidate = candidate.max(last.saturating_add(1));
        }
        missing.extend((candidate..completions).take(count - missing.len()));
        missing
    }

    /// Sorts the ranges and joins those without a gap between them.
    fn join(mut ranges: Vec<(i32, i32)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(i32, i32)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Self { ranges: joined }
    }
}

impl FromIterator<i32> for Indexes {
    fn from_iter<I: IntoIterator<Item = i32>>(indexes: I) -> Self {
        Self::join(indexes.into_iter().map(|index| (index, index)).collect())
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_and_written_as_ranges() {
        let known = Indexes::read("9,nonsense,30-20", 100);
        let all = known.with(&[7, 0, 2, 3, 4, 6].into_iter().collect());
        assert_eq!(all.to_string(), "0,2-4,6,7,9");
        assert_eq!(Indexes::read("0,2-4,6,7,9", 100), all);
        assert_eq!(all.total(), 7);
        assert!(all.has(3) && !all.has(5));
        assert_eq!(Indexes::default().to_string(), "");
    }

    #[test]
    fn a_job_that_was_made_smaller_forgets_the_rest() {
        assert_eq!(Indexes::read("0-7,9", 5).to_string(), "0-4");
    }

    #[test]
    fn the_lowest_indexes_that_are_missing_come_first() {
        let all = Indexes::read("0,2-4,6", 10);
        assert_eq!(all.first_missing(3, 10), [1, 5, 7]);
        assert_eq!(all.first_missing(9, 8), [1, 5, 7]);
        assert_eq!(all.common(&Indexes::read("3-8", 10)).to_string(), "3,4,6");
    }

    #[test]
    fn two_thousand_million_indexes_are_no_burden() {
        let all = Indexes::read("0-2147483640", i32::MAX);
        assert_eq!(all.first_missing(2, i32::MAX), [2_147_483_641, 2_147_483_642]);
        assert_eq!(all.total(), 2_147_483_641);
    }
}
