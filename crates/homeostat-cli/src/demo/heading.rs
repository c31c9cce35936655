//! How much of the heading a window shows above the tree: whole paragraphs, and of the first one at
//! least its beginning, because it says how to get at the cluster. Pure.

use super::picture::{Window, cut, options};

/// As many whole paragraphs of the heading as `room` has lines for, with an empty one below. Where
/// there is room for none, the tree makes some: for the first one, in a third of the window at most.
pub(super) fn headed(heading: &str, room: usize, window: Window) -> Vec<String> {
    let wrapped = |paragraph| {
        let lines = textwrap::wrap(paragraph, options(window.width));
        lines.into_iter().map(String::from).collect::<Vec<_>>()
    };
    let paragraphs: Vec<Vec<String>> = heading.lines().map(wrapped).collect();
    let Some(first) = paragraphs.first() else { return Vec::new() };
    for count in (1..=paragraphs.len()).rev() {
        let mut lines = paragraphs[..count].concat();
        if lines.len() < room {
            lines.push(String::new());
            return lines;
        }
    }
    let (mut lines, most) = (first.clone(), window.height / 3);
    if lines.len() < most {
        lines.push(String::new());
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = cut(last, window.width);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "In another terminal: export KUBECONFIG=/home/somebody/.config/homeostat/kubeconfig\n\
                           Then try this and that, and see what comes of it and what does not. Ctrl-C ends it.";

    fn shown(room: usize, width: usize, height: usize) -> Vec<String> {
        headed(HEADING, room, Window { width, height })
    }

    #[test]
    fn whole_paragraphs_are_shown_as_far_as_there_is_room_beside_the_tree() {
        let lines = shown(5, 90, 24);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("KUBECONFIG=") && lines[1].ends_with("Ctrl-C ends it."));
        assert_eq!(lines[2], "");
        assert_eq!(shown(3, 90, 24).len(), 3, "with an empty line");
        assert_eq!(shown(2, 90, 24), [lines[0].as_str(), ""], "the second is left out whole");
        assert_eq!(headed("", 9, Window { width: 80, height: 24 }), [""; 0]);
    }

    #[test]
    fn without_room_the_first_paragraph_has_a_third_of_the_window() {
        let path = "KUBECONFIG=/home/somebody/.config/homeostat/kubeconfig";
        assert_eq!(shown(0, 80, 24), ["In another terminal: export", path, ""]);
        let broken = ["KUBECONFIG=/home/somebody/.config/homeos", "tat/kubeconfig"];
        assert_eq!(shown(0, 40, 10), ["In another terminal: export", broken[0], broken[1]]);
        let cut = "KUBECONFIG=/home/somebody/.…";
        assert_eq!(shown(0, 28, 6), ["In another terminal: export", cut]);
        assert_eq!(shown(0, 40, 3), ["In another terminal: export …"]);
        assert_eq!(shown(0, 40, 2), [""; 0], "a window of two lines is for the tree");
    }
}
