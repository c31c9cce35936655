//! The lines in which two texts differ, as Python's `difflib` and its port to Go show them: the
//! longest run of lines that both have is kept, then the longest before and after it, and so on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Lines that are shown around those that differ.
const AROUND: usize = 3;
/// In texts of so many lines, those that stand there too often say nothing about what belongs together.
const LONG: usize = 200;

/// A stretch of both texts: the same lines, or lines that take the place of others.
#[derive(Clone)]
struct Stretch {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// What differs, in hunks with a few lines around it; nothing if nothing does.
pub(super) fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut text = String::new();
    for hunk in hunks(stretches(&old, &new)) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let from = place(first.old.start..last.old.end);
        let to = place(first.new.start..last.new.end);
        let _ = writeln!(text, "@@ -{from} +{to} @@");
        for Stretch { same, old: gone, new: come } in hunk {
            let gone = old[gone].iter().map(|line| (if same { ' ' } else { '-' }, line));
            let come = new[come].iter().map(|line| ('+', line)).filter(|_| !same);
            for (mark, line) in gone.chain(come) {
                let _ = writeln!(text, "{mark}{line}");
            }
        }
    }
    text
}

fn place(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        length => format!("{},{length}", lines.start + 1),
    }
}

/// Cuts what is the same down to the lines that are shown.
fn hunks(mut stretches: Vec<Stretch>) -> Vec<Vec<Stretch>> {
    let keep_end = |stretch: &mut Stretch| {
        stretch.old.start = stretch.old.start.max(stretch.old.end.saturating_sub(AROUND));
        stretch.new.start = stretch.new.start.max(stretch.new.end.saturating_sub(AROUND));
    };
    let keep_start = |stretch: &mut Stretch| {
        stretch.old.end = stretch.old.end.min(stretch.old.start + AROUND);
        stretch.new.end = stretch.new.end.min(stretch.new.start + AROUND);
    };
    stretches.first_mut().filter(|first| first.same).map(keep_end);
    stretches.last_mut().filter(|last| last.same).map(keep_start);
    let (mut hunks, mut hunk) = (Vec::new(), Vec::new());
    for mut stretch in stretches {
        if stretch.same && stretch.old.len() > 2 * AROUND {
            let mut end = stretch.clone();
            keep_start(&mut end);
            hunk.push(end);
            hunks.push(std::mem::take(&mut hunk));
            keep_end(&mut stretch);
        }
        hunk.push(stretch);
    }
    if hunk.iter().any(|stretch| !stretch.same) {
        hunks.push(hunk);
    }
    hunks
}

/// Both texts from beginning to end.
fn stretches(old: &[&str], new: &[&str]) -> Vec<Stretch> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if new.len() >= LONG {
        places.retain(|_, at| at.len() <= new.len() / 100 + 1);
    }
    let mut matches = Vec::new();
    let texts = Texts { old, new, places };
    texts.matches(0..old.len(), 0..new.len(), &mut matches);
    matches.push((old.len(), new.len(), 0));
    let (mut found, mut done) = (Vec::<Stretch>::new(), (0, 0));
    for (at_old, at_new, length) in matches {
        if done != (at_old, at_new) {
            let (old, new) = (done.0..at_old, done.1..at_new);
            found.push(Stretch { same: false, old, new });
        }
        done = (at_old + length, at_new + length);
        let (old, new) = (at_old..done.0, at_new..done.1);
        match found.last_mut().filter(|last| last.same) {
            Some(last) => (last.old.end, last.new.end) = done,
            None if length > 0 => found.push(Stretch { same: true, old, new }),
            None => {}
        }
    }
    found
}

struct Texts<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// Where the lines of the new text are.
    places: BTreeMap<&'a str, Vec<usize>>,
}

impl Texts<'_> {
    /// The runs of lines that both have, as `(begin in old, begin in new, length)`, in order.
    fn matches(
        &self,
        old: Range<usize>,
        new: Range<usize>,
        found: &mut Vec<(usize, usize, usize)>,
    ) {
        let (at_old, at_new, length) = self.longest(&old, &new);
        if length == 0 {
            return;
        }
        if old.start < at_old && new.start < at_new {
            self.matches(old.start..at_old, new.start..at_new, found);
        }
        found.push((at_old, at_new, length));
        let (end_old, end_new) = (at_old + length, at_new + length);
        if end_old < old.end && end_new < new.end {
            self.matches(end_old..old.end, end_new..new.end, found);
        }
    }

    /// The longest run; of several, the one that begins first in the old text, then in the new one.
    fn longest(&self, old: &Range<usize>, new: &Range<usize>) -> (usize, usize, usize) {
        let (mut at_old, mut at_new, mut length) = (old.start, new.start, 0);
        // How long the run is that ends at a line of the new text.
        let mut ending: BTreeMap<usize, usize> = BTreeMap::new();
        for here in old.clone() {
            let mut next = BTreeMap::new();
            let places = self.places.get(self.old[here]).into_iter().flatten();
            for there in places.copied().filter(|there| new.contains(there)) {
                let before = there.checked_sub(1).and_then(|before| ending.get(&before));
                let run = before.copied().unwrap_or_default() + 1;
                next.insert(there, run);
                if run > length {
                    (at_old, at_new, length) = (here + 1 - run, there + 1 - run, run);
                }
            }
            ending = next;
        }
        // Lines that are everywhere may still belong to it.
        while at_old > old.start
            && at_new > new.start
            && self.old[at_old - 1] == self.new[at_new - 1]
        {
            (at_old, at_new, length) = (at_old - 1, at_new - 1, length + 1);
        }
        while at_old + length < old.end
            && at_new + length < new.end
            && self.old[at_old + length] == self.new[at_new + length]
        {
            length += 1;
        }
        (at_old, at_new, length)
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn what_differs_is_shown_with_three_lines_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\nk\nl\nm\nn\no";
        let shown =
            "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n@@ -12,3 +12,4 @@\n l\n m\n n\n+o\n";
        assert_eq!(difference(old, new), shown);
        assert_eq!(difference(old, old), "");
    }

    #[test]
    fn the_longest_run_of_lines_is_kept() {
        assert_eq!(difference("x\ny", "y\nx\ny"), "@@ -1,2 +1,3 @@\n+y\n x\n y\n");
        assert_eq!(difference("x", "y"), "@@ -1 +1 @@\n-x\n+y\n");
    }
}
