//! Picks the arm for a call and learns from the outcome. Pure: time, randomness and outcomes are inputs.
