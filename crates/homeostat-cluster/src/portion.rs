//! A number, or a share of a whole: how workloads say how many Pods they mean. Pure.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Where a share that is no whole number goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

/// The number, or the percentage of `total`; words that are neither are none of it.
pub(crate) fn of(total: i32, value: &IntOrString, round: Round) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let product = percent * i64::from(total);
            let rounded = if round == Round::Up { (product + 99) / 100 } else { product / 100 };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_as_asked_and_a_number_is_itself() {
        let share = |text: &str, round| of(9, &IntOrString::String(text.into()), round);
        assert_eq!((share("25%", Round::Up), share("25%", Round::Down)), (3, 2));
        assert_eq!((share("100%", Round::Up), share("none", Round::Up)), (9, 0));
        assert_eq!(of(9, &IntOrString::Int(20), Round::Down), 20);
    }
}
