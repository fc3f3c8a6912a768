//! Whole behaviour of the router.
