//! Amounts with a suffix (`500m`, `1Gi`, `2e3`): read exactly, compared, written canonically.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An amount in thousand-millionths, and the family of suffixes it was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    family: Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

/// The suffix, its family, and the power (of ten, or of two) it stands for.
const SUFFIXES: &[(&str, Family, i32)] = &[
    ("n", Family::Decimal, -9),
    ("u", Family::Decimal, -6),
    ("m", Family::Decimal, -3),
    ("", Family::Decimal, 0),
    ("k", Family::Decimal, 3),
    ("M", Family::Decimal, 6),
    ("G", Family::Decimal, 9),
    ("T", Family::Decimal, 12),
    ("P", Family::Decimal, 15),
    ("E", Family::Decimal, 18),
    ("Ki", Family::Binary, 10),
    ("Mi", Family::Binary, 20),
    ("Gi", Family::Binary, 30),
    ("Ti", Family::Binary, 40),
    ("Pi", Family::Binary, 50),
    ("Ei", Family::Binary, 60),
];

const NANO: i128 = 1_000_000_000;

impl Quantity {
    /// Nothing at all.
    pub const ZERO: Self = Self { nanos: 0, family: Family::Decimal };

    /// That many.
    #[must_use]
    pub fn whole(amount: u32) -> Self {
        Self { nanos: i128::from(amount) * NANO, family: Family::Decimal }
    }

    /// The amount rounded up to whole units.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        let rest = self.nanos.rem_euclid(NANO);
        let missing = if rest == 0 { 0 } else { NANO - rest };
        Self { nanos: self.nanos + missing, ..self }
    }

    /// How many whole units that is, rounded up.
    #[must_use]
    pub fn units(self) -> i128 {
        self.rounded_up().nanos / NANO
    }

    /// How many thousandths of a unit that is, rounded up.
    #[must_use]
    pub fn thousandths(self) -> i128 {
        Self { nanos: self.nanos.saturating_mul(1000), ..self }.units()
    }

    /// Both together, written as the first one is (nothing is written as the other one).
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let family = if self.is_zero() { other.family } else { self.family };
        Self { nanos: self.nanos.saturating_add(other.nanos), family }
    }

    /// What is left of it without `other`, less than nothing included.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let family = if self.is_zero() { other.family } else { self.family };
        Self { nanos: self.nanos.saturating_sub(other.nanos), family }
    }

    /// How many times `other` it is; `other` must not be nothing.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people and for a loose bound")]
    pub fn ratio(self, other: Self) -> f64 {
        self.nanos as f64 / other.nanos as f64
    }

    /// Less than nothing.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Nothing.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// The text is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAQuantity {
    /// It does not have the form of one.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Form,
    /// What comes after the number is no suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number is beyond all bounds.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if text.is_empty() {
            return Err(NotAQuantity::Form);
        }
        // No digits at all are a zero, and so is a mere sign.
        let is_digit = |c: char| c.is_ascii_digit();
        let end = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
        let (whole, rest) = rest.split_at(end);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(below) => below.split_at(below.find(|c| !is_digit(c)).unwrap_or(below.len())),
            None => ("", rest),
        };
        let (family, power) = suffix_of(suffix)?;
        let digits: i128 =
            format!("0{whole}{fraction}").parse().map_err(|_| NotAQuantity::Number)?;
        let scale = i32::try_from(fraction.len()).map_err(|_| NotAQuantity::Number)?;
        let nanos = match family {
            Family::Binary => {
                let bytes = digits.checked_mul(1_i128 << power).ok_or(NotAQuantity::Number)?;
                shift_ten(bytes, 9 - scale)
            }
            Family::Decimal | Family::Exponent => {
                power.checked_add(9 - scale).and_then(|power| shift_ten(digits, power))
            }
        }
        .ok_or(NotAQuantity::Number)?;
        Ok(Self { nanos: if negative { -nanos } else { nanos }, family })
    }
}

fn suffix_of(suffix: &str) -> Result<(Family, i32), NotAQuantity> {
    if let Some((_, family, power)) = SUFFIXES.iter().find(|(text, ..)| *text == suffix) {
        return Ok((*family, *power));
    }
    let power = suffix.strip_prefix(['e', 'E']).and_then(|power| power.parse().ok());
    power.map(|power| (Family::Exponent, power)).ok_or_else(|| {
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
        let could_be_one = digits.bytes().all(|byte| byte.is_ascii_digit());
        if could_be_one { NotAQuantity::Suffix } else { NotAQuantity::Form }
    })
}

/// `value * 10^power`; parts below one are rounded up, as the API does.
fn shift_ten(value: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        value.checked_mul(factor)
    } else {
        Some(value / factor + i128::from(value % factor != 0))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.family == Family::Binary && self.nanos % NANO == 0 {
            let amount = self.nanos / NANO;
            if amount.abs() >= 1024 || amount == 0 {
                let power = [60, 50, 40, 30, 20, 10].into_iter().find(|p| amount % (1 << p) == 0);
                return match power {
                    Some(power) => write!(f, "{}{}", amount >> power, name(Family::Binary, power)),
                    None => write!(f, "{amount}"),
                };
            }
        }
        let mut power = 18_i32;
        while power > -9 && self.nanos % 10_i128.pow((power + 9).unsigned_abs()) != 0 {
            power -= 3;
        }
        let amount = self.nanos / 10_i128.pow((power + 9).unsigned_abs());
        match (self.family, power) {
            (Family::Exponent, 0) => write!(f, "{amount}"),
            (Family::Exponent, _) => write!(f, "{amount}e{power}"),
            _ => write!(f, "{amount}{}", name(Family::Decimal, power)),
        }
    }
}

fn name(family: Family, power: i32) -> &'static str {
    SUFFIXES.iter().find(|row| row.1 == family && row.2 == power).map_or("", |row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponent_beyond_all_bounds_is_refused() {
        assert!("1e2147483647".parse::<Quantity>().is_err());
        assert!("1e-2147483648".parse::<Quantity>().is_err());
    }

    #[test]
    fn quantities_are_written_as_the_api_writes_them() {
        for (given, canonical) in [
            ("0.5", "500m"),
            ("1", "1"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("128974848", "128974848"),
            ("512Ki", "512Ki"),
            ("1e3", "1e3"),
            ("0", "0"),
            ("-2", "-2"),
            ("1023", "1023"),
            ("0.1Ki", "102400m"),
            ("-", "0"),
            (".k", "0"),
            ("1.", "1"),
        ] {
            assert_eq!(given.parse::<Quantity>().unwrap().to_string(), canonical, "{given}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "x", "1Xi", "1.2.3", "1 Gi"] {
            assert_eq!(text.parse::<Quantity>(), Err(NotAQuantity::Form), "{text}");
        }
        assert_eq!("1ki".parse::<Quantity>(), Err(NotAQuantity::Suffix));
    }

    #[test]
    fn amounts_compare_across_suffixes() {
        assert!("1Gi".parse::<Quantity>().unwrap() > "1G".parse().unwrap());
        assert!("999m".parse::<Quantity>().unwrap() < "1".parse().unwrap());
    }
}
