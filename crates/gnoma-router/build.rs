//! Compresses the table of words.

fn main() -> std::io::Result<()> {
    gnoma_packed::pack(["src/classify/words.tsv"])
}
