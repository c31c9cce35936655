//! The tutorial shows this crate and nothing else: each of its pieces of Rust is in a file here.

#[test]
fn every_piece_of_rust_in_the_tutorial_is_compiled() {
    let tutorial = include_str!("../../../docs/first-operator.md");
    let files = [
        include_str!("../src/lib.rs"),
        include_str!("../src/main.rs"),
        include_str!("../examples/several.rs"),
        include_str!("greeting.rs"),
    ];
    let pieces: Vec<&str> = tutorial
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default().trim())
        .collect();
    assert!(pieces.len() >= 7, "the tutorial shows code");
    for piece in pieces {
        assert!(files.iter().any(|file| file.contains(piece)), "not in this crate:\n{piece}");
    }
}

#[test]
fn what_is_only_indented_in_the_tutorial_is_a_command() {
    let tutorial = include_str!("../../../docs/first-operator.md");
    let words = tutorial.split("```").step_by(2).flat_map(str::lines);
    let indented: Vec<&str> = words.filter_map(|line| line.strip_prefix("    ")).collect();
    assert!(!indented.is_empty(), "the tutorial says what to run");
    for line in indented {
        assert!(line.starts_with("cargo "), "nobody compiles this: {line}");
    }
}
