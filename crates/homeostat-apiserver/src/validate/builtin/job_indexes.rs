//! The indexes of a Job's Pods as text (`0,2-4`): ranges in rising order, below how many there are.

/// How many indexes the text names.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = range(part, completions)?;
        if let Some(last) = last {
            rising(last, first)?;
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that both texts name, as far as they can be read.
pub(super) fn shared(one: &str, other: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| range(part, completions).ok()).collect()
    };
    let (ones, others) = (read(one), read(other));
    let (mut at, mut other_at) = (0, 0);
    while let (Some((first, end)), Some((other_first, other_end))) =
        (ones.get(at), others.get(other_at))
    {
        if first <= other_end && other_first <= end {
            return Some(*first.max(other_first));
        }
        if first <= other_first { at += 1 } else { other_at += 1 }
    }
    None
}

/// One part of the text: an index, or the first and the last of several.
fn range(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |digits: &str| match digits.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {digits:?}")),
        Ok(index) if index >= completions => Err(format!("too large index: {digits:?}")),
        Ok(index) => Ok(index),
    };
    match part.split('-').collect::<Vec<_>>()[..] {
        [single] => index(single).map(|index| (index, index)),
        [first, end] => {
            let (first, end) = (index(first)?, index(end)?);
            rising(first, end)?;
            Ok((first, end))
        }
        _ => Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most \
             two parts separated by '-'"
        )),
    }
}

fn rising(before: i64, now: i64) -> Result<(), String> {
    let why = || format!("non-increasing order, previous: {before}, current: {now}");
    if before < now { Ok(()) } else { Err(why()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_in_rising_order_only() {
        assert_eq!(count("", 3), Ok(0));
        assert_eq!(count("0,2-4", 5), Ok(4));
        for (wrong, why) in [
            ("2,1", "non-increasing order, previous: 2, current: 1"),
            ("2-2", "non-increasing order, previous: 2, current: 2"),
            ("9", "too large index: \"9\""),
            ("-1", "cannot convert string to integer for index: \"\""),
        ] {
            assert_eq!(count(wrong, 5), Err(why.to_owned()));
        }
    }

    #[test]
    fn what_two_texts_share_is_found_past_what_cannot_be_read() {
        assert_eq!(shared("0,2-4", "x,1,3-5", 9), Some(3));
        assert_eq!(shared("0-2", "3", 9), None);
        assert_eq!(shared("", "3", 9), None);
    }
}
