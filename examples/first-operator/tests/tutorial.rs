//! The tutorial shows this crate and nothing else: each of its pieces of Rust is in a file here.

#[test]
fn every_piece_of_rust_in_the_tutorial_is_compiled() {
    let tutorial = include_str!("../../../docs/first-operator.md");
    let files = [
        include_str!("../src/lib.rs"),
        include_str!("../src/main.rs"),
        include_str!("greeting.rs"),
    ];
    let pieces: Vec<&str> = tutorial
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default().trim())
        .collect();
    assert!(pieces.len() >= 4, "the tutorial shows code");
    for piece in pieces {
        assert!(files.iter().any(|file| file.contains(piece)), "not in this crate:\n{piece}");
    }
}
