//! The tree as lines of a window: long phrases go on below, and never is there a line more, or a
//! line wider, than the window has room for. Pure: facts and a size in, lines out.

use jiff::Timestamp;
use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};

use super::choice::choose;
use super::feed::Deed;
use super::heading::headed;
use super::health::Health;
use super::tree::{Fact, Row, rows};

/// A longer name moves no state away from the others.
const WIDEST: usize = 60;

/// What stands between a name and its state: two spaces, the mark, a space.
const BETWEEN: usize = 4;

/// With less room than this for states beside the names, the window is narrow: marks come first, and
/// states go below.
const NARROWEST: usize = 24;

/// How far a phrase below a name is moved in.
const STEP: usize = 4;

/// So many of the last deeds keep their lines, also where the tree has too few; fewer in a low window.
const FEW: usize = 3;

/// How much a terminal shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// The heading, the tree, and as many of the last deeds as there is room for below.
///
/// Every object has a line as long as there are enough of them beside a few deeds and the beginning
/// of the heading. Those that are left go to the rest of the heading, and then to the long phrases, of
/// what fails before all others; one that does not get all it needs ends with `…`.
pub(crate) fn picture(
    heading: &str,
    facts: &[Fact],
    deeds: &[Deed],
    window: Window,
) -> Vec<String> {
    let kept = deeds.len().min(FEW).min(window.height / 4);
    let below = if kept == FEW { kept + 1 } else { kept };
    let room = window.height.saturating_sub(facts.len() + below);
    let mut lines = headed(heading, room, window);
    let rest = window.height.saturating_sub(lines.len() + below);
    lines.extend(tree(facts, Window { height: rest, ..window }));
    // One line stays empty in between, unless that took the place of a deed that is to be seen.
    let room = window.height.saturating_sub(lines.len());
    let shown = if room > kept { room - 1 } else { room }.min(deeds.len());
    if shown > 0 {
        if room > kept {
            lines.push(String::new());
        }
        lines.extend(deeds[deeds.len() - shown..].iter().map(told));
    }
    lines.iter().map(|line| shortened(line, window.width)).collect()
}

/// The time tells one that happened again from the one before.
fn told(deed: &Deed) -> String {
    timed(deed.at, &deed.words)
}

/// Words and when they came true.
pub(crate) fn timed(at: Timestamp, words: &str) -> String {
    format!("{} {words}", at.strftime("%H:%M:%SZ"))
}

/// Words stay whole where they can: people copy them.
pub(super) fn options<'a>(width: usize) -> Options<'a> {
    let options = Options::new(width).word_separator(WordSeparator::AsciiSpace);
    options.word_splitter(WordSplitter::NoHyphenation)
}

fn tree(facts: &[Fact], window: Window) -> Vec<String> {
    let (mut shown, mut missing) = (facts.to_vec(), Vec::new());
    if facts.len() > window.height {
        (shown, missing) = choose(facts, window.height.saturating_sub(1));
    }
    let rows = rows(&shown);
    // As wide as the names need: states stand near them.
    let widths = rows.iter().map(|row| display_width(&row.name));
    let column = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    let is_narrow = column + BETWEEN + NARROWEST > window.width;
    let mut drawn: Vec<Drawn> = rows
        .iter()
        .map(|row| match is_narrow {
            true => Drawn::narrow(row, window.width),
            false => Drawn::wide(row, column, window.width),
        })
        .collect();
    let used = rows.len() + usize::from(!missing.is_empty());
    ration(&mut drawn, window.height.saturating_sub(used), window.width);
    let mut lines: Vec<String> = drawn.into_iter().flat_map(|drawn| drawn.lines).collect();
    if !missing.is_empty() {
        lines.push(left_out(&missing, shown.is_empty()));
    }
    lines.truncate(window.height);
    lines
}

/// One object.
struct Drawn {
    health: Health,
    /// Everything in one line, however wide.
    whole: String,
    /// Everything in lines that fit.
    lines: Vec<String>,
}

impl Drawn {
    /// Names in one column, states in another; a long one goes on below itself.
    fn wide(row: &Row<'_>, column: usize, width: usize) -> Self {
        let Fact { state, health, .. } = row.fact;
        let padding = column.saturating_sub(display_width(&row.name));
        let head = format!("{}{:padding$}  {} ", row.name, "", health.mark());
        let (health, whole, start) = (*health, format!("{head}{state}"), display_width(&head));
        if display_width(&whole) <= width {
            return Self { health, lines: vec![whole.clone()], whole };
        }
        if width.saturating_sub(start) < NARROWEST {
            return Self::narrow(row, width);
        }
        let space = start.saturating_sub(display_width(&row.below));
        let indent = format!("{}{:space$}", row.below, "");
        let options = options(width).initial_indent(&head).subsequent_indent(&indent);
        let lines = textwrap::wrap(state, options).into_iter().map(Into::into).collect();
        Self { health, whole, lines }
    }

    /// The mark first, where no window is too narrow for it; a long state goes below the name.
    fn narrow(row: &Row<'_>, width: usize) -> Self {
        let Fact { state, health, .. } = row.fact;
        let head = format!("{} {}", health.mark(), row.name);
        let (health, whole) = (*health, format!("{head}  {state}"));
        if display_width(&whole) <= width {
            return Self { health, lines: vec![whole.clone()], whole };
        }
        let indent = format!("  {}{:STEP$}", row.below, "");
        let options = options(width).initial_indent(&indent).subsequent_indent(&indent);
        let wrapped = textwrap::wrap(state, options).into_iter().map(Into::into);
        Self { health, whole, lines: [head].into_iter().chain(wrapped).collect() }
    }
}

/// Leaves each object its first line, and as many others as there are: to the worst first.
fn ration(drawn: &mut [Drawn], mut spare: usize, width: usize) {
    let mut in_need: Vec<&mut Drawn> = drawn.iter_mut().collect();
    in_need.sort_by_key(|drawn| drawn.health);
    for Drawn { whole, lines, .. } in in_need {
        let asked = lines.len().saturating_sub(1);
        let given = asked.min(spare);
        spare -= given;
        lines.truncate(1 + given);
        match lines.last_mut() {
            Some(last) if given < asked => {
                *last = if given == 0 { shortened(whole, width) } else { cut(last, width) };
            }
            _ => {}
        }
    }
}

fn left_out(missing: &[Fact], is_all: bool) -> String {
    let count = |health| missing.iter().filter(|fact| fact.health == health).count();
    let (failing, on_their_way) = (count(Health::Failing), count(Health::OnItsWay));
    let failing = if failing > 0 { format!(", {failing} failing") } else { String::new() };
    if is_all {
        let well = count(Health::Well);
        let rest =
            if on_their_way > 0 { format!(", {on_their_way} on their way") } else { String::new() };
        return format!("{} objects: {well} well{failing}{rest}", missing.len());
    }
    format!("… and {} more{failing}: make the window higher, or ask kubectl", missing.len())
}

/// A line after which something is missing.
pub(super) fn cut(line: &str, width: usize) -> String {
    shortened(&format!("{line} …"), width)
}

/// At most so wide; `…` at the end says that something is missing.
fn shortened(line: &str, width: usize) -> String {
    console::truncate_str(line, width, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::fact;
    use super::*;

    const LONG: &str = "image \"postgres:99\" needs PostgreSQL 99 on the host, which has postgres:15 only; use \
                        that, or install the other version and the Pod will start";

    fn failing(title: &str, uid: &str, owner: Option<&str>) -> Fact {
        Fact { state: LONG.to_owned(), health: Health::Failing, ..fact(title, uid, owner) }
    }

    fn deed(words: &str) -> Deed {
        Deed { at: "2026-01-01T00:01:02Z".parse().unwrap(), words: words.to_owned() }
    }

    fn drawn(facts: &[Fact], width: usize, height: usize) -> Vec<String> {
        picture("", facts, &[], Window { width, height })
    }

    #[test]
    fn states_stand_in_one_column_as_near_as_the_names_allow() {
        let endless = "x".repeat(WIDEST + 1);
        let facts = [fact("WebApp w", "1", None), fact("Pod p", "2", Some("1"))];
        assert_eq!(drawn(&facts, 80, 24), ["WebApp w  ● Ready", "└─ Pod p  ● Ready"]);
        let facts = [fact("Pod p", "2", None), fact(&endless, "1", None)];
        assert_eq!(
            drawn(&facts, 80, 24),
            ["Pod p  ● Ready".to_owned(), format!("{endless}  ● Ready")]
        );
    }

    #[test]
    fn a_long_phrase_goes_on_below_and_the_tree_beside_it() {
        let facts = [failing("Database d", "1", None), fact("StatefulSet s", "2", Some("1"))];
        assert_eq!(
            drawn(&facts, 60, 24),
            [
                "Database d        ✗ image \"postgres:99\" needs PostgreSQL 99",
                "│                   on the host, which has postgres:15 only;",
                "│                   use that, or install the other version",
                "│                   and the Pod will start",
                "└─ StatefulSet s  ● Ready",
            ]
        );
        assert_eq!(
            drawn(&facts, 30, 24),
            [
                "✗ Database d",
                "  │    image \"postgres:99\"",
                "  │    needs PostgreSQL 99 on",
                "  │    the host, which has",
                "  │    postgres:15 only; use",
                "  │    that, or install the",
                "  │    other version and the",
                "  │    Pod will start",
                "● └─ StatefulSet s  Ready",
            ]
        );
    }

    #[test]
    fn what_fails_is_told_in_full_before_what_is_on_its_way() {
        let mut waits = failing("Database a", "1", None);
        waits.health = Health::OnItsWay;
        let lines = drawn(&[waits, failing("Database b", "2", None)], 60, 5);
        assert_eq!(lines.len(), 5);
        assert!(lines[0].ends_with('…'), "{lines:?}");
        let words = lines[1..].join(" ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, format!("Database b ✗ {LONG}"));
    }

    #[test]
    fn a_line_alone_holds_as_much_as_it_can() {
        let facts = [failing("Database d", "1", None), fact("StatefulSet s", "2", Some("1"))];
        assert_eq!(
            drawn(&facts, 30, 2),
            ["✗ Database d  image \"postgres…", "● └─ StatefulSet s  Ready"]
        );
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let facts: Vec<Fact> = (0..5)
            .map(|number| failing(&format!("Pod {number}"), &number.to_string(), None))
            .collect();
        assert_eq!(drawn(&facts[..4], 300, 4).len(), 4);
        let lines = drawn(&facts, 300, 4);
        assert!(lines.len() == 4 && lines[2].starts_with("Pod 2"), "{lines:?}");
        assert!(lines[3].contains("2 more, 2 failing"), "{lines:?}");
    }

    #[test]
    fn the_smallest_window_tells_how_things_are() {
        let facts = [
            fact("WebApp w", "1", None),
            fact("Deployment with-a-long-name", "2", Some("1")),
            failing("Database with-a-long-name", "3", None),
        ];
        assert_eq!(
            drawn(&facts, 20, 3),
            ["✗ Database with-a-l…", "● WebApp w  Ready", "● └─ Deployment wit…"]
        );
        assert_eq!(drawn(&facts, 20, 2), ["✗ Database with-a-l…", "… and 2 more: make …"]);
        assert_eq!(drawn(&facts, 40, 1), ["3 objects: 2 well, 1 failing"]);
    }

    #[test]
    fn the_picture_is_never_larger_than_the_window() {
        let facts = [
            failing("Database d", "1", None),
            failing("StatefulSet s", "2", Some("1")),
            failing(&"x".repeat(WIDEST + 1), "3", Some("2")),
            Fact { state: "表".repeat(90), ..fact("Service s", "4", Some("1")) },
            Fact { state: "y".repeat(200), ..fact("Secret s", "5", Some("1")) },
        ];
        for width in 1..130 {
            for height in 0..20 {
                let window = Window { width, height };
                let lines = picture("Two words\nand a line", &facts, &[deed(LONG)], window);
                assert!(lines.len() <= height, "{width}x{height}: {lines:#?}");
                let widest = lines.iter().map(|line| display_width(line)).max().unwrap_or(0);
                assert!(widest <= width, "{width}x{height}: {lines:#?}");
            }
        }
    }

    #[test]
    fn a_few_deeds_are_told_however_many_objects_there_are() {
        let many: Vec<Fact> =
            (0..50).map(|n| fact(&format!("Pod {n:02}"), &n.to_string(), None)).collect();
        let deeds: Vec<Deed> = (0..9).map(|n| deed(&format!("deed {n}"))).collect();
        for (width, height, told) in [(80, 24, 3), (40, 10, 2), (40, 5, 1)] {
            let lines = picture("In another terminal", &many, &deeds, Window { width, height });
            assert_eq!(lines.len(), height, "{lines:#?}");
            assert!(lines[0].starts_with("In another terminal"), "{lines:#?}");
            assert!(lines.iter().any(|line| line.contains("more: make the window")), "{lines:#?}");
            let seen = lines.iter().filter(|line| line.contains("deed ")).count();
            assert_eq!(seen, told, "{lines:#?}");
            assert!(lines[height - 1].ends_with("deed 8"), "the last ones: {lines:#?}");
        }
    }

    #[test]
    fn the_last_deeds_stand_below_the_tree_as_far_as_there_is_room() {
        let (facts, deeds) = ([fact("WebApp w", "1", None)], ["one", "two"].map(deed));
        let with = |height| picture("", &facts, &deeds, Window { width: 80, height });
        let tree = "WebApp w  ● Ready";
        assert_eq!(with(9), [tree, "", "00:01:02Z one", "00:01:02Z two"]);
        assert_eq!(with(3), [tree, "", "00:01:02Z two"]);
        assert_eq!(with(2), [tree]);
    }
}
