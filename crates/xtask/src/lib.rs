//! Rules of the project as tests. There is nothing to call.
