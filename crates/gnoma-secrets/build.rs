//! Compresses what is read when a first value is weighed. Rules and keywords, which every start reads, stay as they are.

fn main() -> std::io::Result<()> {
    gnoma_packed::pack(["data/assignment.txt", "data/vocabulary.txt"])
}
