//! Screens and whole runs of the terminal face.
