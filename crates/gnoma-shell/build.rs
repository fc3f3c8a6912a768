//! Compresses the tables of programs.

fn main() -> std::io::Result<()> {
    gnoma_packed::pack([
        "src/programs/tables/text.table",
        "src/programs/tables/files.table",
        "src/programs/tables/git.table",
        "src/programs/tables/development.table",
        "src/programs/tables/system.table",
        "src/programs/tables/network.table",
        "src/programs/tables/running.table",
    ])
}
