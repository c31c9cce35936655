//! The sandbox's helper as a binary of its own, for programs that embed the node agent without
//! calling `main_if_asked` in their `main`: the tests of this crate, for one.

fn main() {
    homeostat_cluster::node::sandbox::main_if_asked();
    std::process::exit(64);
}
