//! Compresses the list of models.

fn main() -> std::io::Result<()> {
    gnoma_packed::pack(["src/catalogue/models.tsv"])
}
